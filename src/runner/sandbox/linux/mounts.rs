//! Mounts as detached trees: made, given their flags, and only then put where they belong, so that
//! nothing is ever there without them. Needs Linux 5.12.
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

/// What holds for every mount of a command's view.
pub(super) const SAFE: MountAttrFlags =
    MountAttrFlags::MOUNT_ATTR_NOSUID.union(MountAttrFlags::MOUNT_ATTR_NODEV);
/// And where it may not write.
pub(super) const READ_ONLY: MountAttrFlags = SAFE.union(MountAttrFlags::MOUNT_ATTR_RDONLY);

/// A copy of what is mounted at `path` and below it, with these flags on all of it.
pub(super) fn tree(path: &Path, flags: MountAttrFlags) -> io::Result<OwnedFd> {
    finish(open_tree(CWD, path, COPY)?, flags)
}

/// The same of what a handle stands for.
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

/// Adds flags to a mount, and to those below it if that is wanted.
pub(super) fn restrict(mount: impl AsFd, flags: MountAttrFlags, below: bool) -> io::Result<()> {
    let attributes = libc::mount_attr {
        attr_set: u64::from(flags.bits()),
        attr_clr: 0,
        propagation: libc::MS_PRIVATE,
        userns_fd: 0,
    };
    let how = libc::AT_EMPTY_PATH | if below { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the descriptor is open, the path a constant string, and the structure as long as said.
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

/// A new file system of this kind.
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

/// Puts a mount over what a handle stands for.
pub(super) fn put(mount: impl AsFd, at: impl AsFd) -> io::Result<()> {
    let how =
        MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH.union(MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH);
    Ok(move_mount(mount, "", at, "", how)?)
}
