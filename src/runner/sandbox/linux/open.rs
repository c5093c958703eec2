//! A command without restrictions. It has its user's rights, but its whole process tree is ended. If a mount namespace
//! is available, the command can neither see deaddrop's own files nor change deaddrop's settings.

use std::fs;
use std::io;
use std::path::Path;

use rustix::mount::{
    MountFlags, MountPropagationFlags, mount, mount_bind, mount_change, mount_remount,
};

use super::super::report::{Mechanism, MechanismSet};
use super::super::request::{MountKind, SandboxRequest};

const SAFE: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV);

/// Covers deaddrop's files in this mount namespace. Must be called in the first process of the pid namespace. If a step
/// fails, as in some containers, the files stay visible, and the mechanism is not reported.
pub(super) fn hide(request: &SandboxRequest) -> MechanismSet {
    let mut facts = MechanismSet::default();
    facts.add(Mechanism::PidNamespace);
    if mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE).is_ok() {
        // Mount the namespace's own /proc. If this fails, the old one only shows more processes.
        let _ = mount("proc", "/proc", "proc", SAFE | MountFlags::NOEXEC, None);
        let mut done = request.mounts.iter().map(|mount| match mount.kind {
            MountKind::Cover => cover(&mount.at),
            MountKind::Show => show(&mount.at),
            _ => Ok(()),
        });
        facts.add_if(Mechanism::Hidden, done.all(|done| done.is_ok()));
    }
    facts
}

/// Protects a file from being written or replaced. Anything except a regular file is covered instead.
fn show(path: &Path) -> io::Result<()> {
    if !fs::symlink_metadata(path).is_ok_and(|found| found.is_file()) {
        return cover(path);
    }
    mount_bind(path, path)?;
    Ok(mount_remount(path, MountFlags::BIND | MountFlags::RDONLY | SAFE, c"")?)
}

/// Covers a file or folder, if it exists.
fn cover(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(e),
        Ok(found) if found.is_dir() => {
            let flags = SAFE | MountFlags::NOEXEC | MountFlags::RDONLY;
            Ok(mount("tmpfs", path, "tmpfs", flags, None)?)
        }
        Ok(_) => Ok(mount_bind("/dev/null", path)?),
    }
}
