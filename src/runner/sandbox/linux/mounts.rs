//! Detached mounts. A mount is created, gets its flags, and is attached only then, so that nothing is ever mounted
//! without its flags. Needs Linux 5.12.
#![allow(unsafe_code)]

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::CWD;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};

/// The flags of every mount that a command sees.
pub(super) const SAFE: MountAttrFlags =
    MountAttrFlags::MOUNT_ATTR_NOSUID.union(MountAttrFlags::MOUNT_ATTR_NODEV);
/// The flags of read-only mounts.
pub(super) const READ_ONLY: MountAttrFlags = SAFE.union(MountAttrFlags::MOUNT_ATTR_RDONLY);

/// A recursive copy of the mounts at `path`. All copies get these flags.
pub(super) fn tree(path: &Path, flags: MountAttrFlags) -> io::Result<OwnedFd> {
    finish(open_tree(CWD, path, COPY)?, flags)
}

/// A recursive copy of the mounts at a handle. All copies get these flags.
pub(super) fn tree_at(handle: impl AsFd, flags: MountAttrFlags) -> io::Result<OwnedFd> {
    finish(open_tree(handle, "", COPY | OpenTreeFlags::AT_EMPTY_PATH)?, flags)
}

const COPY: OpenTreeFlags = OpenTreeFlags::OPEN_TREE_CLONE
    .union(OpenTreeFlags::OPEN_TREE_CLOEXEC)
    .union(OpenTreeFlags::AT_RECURSIVE);

fn finish(tree: OwnedFd, flags: MountAttrFlags) -> io::Result<OwnedFd> {
    restrict(&tree, flags, true)?;
    Ok(tree)
}

/// Adds flags to a mount and, with `below`, to all mounts below it.
pub(super) fn restrict(mount: impl AsFd, flags: MountAttrFlags, below: bool) -> io::Result<()> {
    let attributes = libc::mount_attr {
        attr_set: u64::from(flags.bits()),
        attr_clr: 0,
        propagation: libc::MS_PRIVATE,
        userns_fd: 0,
    };
    let how = libc::AT_EMPTY_PATH | if below { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the descriptor is open, the path is a constant string, and the structure has the given size.
    let failed = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_fd().as_raw_fd(),
            c"".as_ptr(),
            how,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A new file system of this type.
pub(super) fn new(
    kind: &str,
    options: &[(&str, &OsStr)],
    flags: MountAttrFlags,
) -> io::Result<OwnedFd> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        if value.is_empty() {
            fsconfig_set_flag(&context, *key)?;
        } else {
            fsconfig_set_string(&context, *key, *value)?;
        }
    }
    fsconfig_create(&context)?;
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, flags)?)
}

/// Attaches a mount at a handle.
pub(super) fn put(mount: impl AsFd, at: impl AsFd) -> io::Result<()> {
    let how =
        MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH.union(MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH);
    Ok(move_mount(mount, "", at, "", how)?)
}
