//! Where the folders of tests are. An ext4 without a journal, which many virtual machines have, looks at each file
//! that was removed within the last minute before it makes another in the same group of blocks. The tests remove so
//! many that a fifth of their time went there. So they are in a folder whose folders the file system keeps apart,
//! as it does with those of `/`: what `chattr +T` is for. Elsewhere it is a folder like any other.

use std::env;
use std::path::PathBuf;
use std::sync::OnceLock;

use tempfile::TempDir;

/// A folder of its own, removed at the end.
pub(super) fn folder() -> TempDir {
    static ROOM: OnceLock<PathBuf> = OnceLock::new();
    tempfile::tempdir_in(ROOM.get_or_init(|| room().unwrap_or_else(env::temp_dir))).unwrap()
}

/// Anybody may write in it, as in the one that it is in; it stays. None if it is somebody else's.
#[cfg(target_os = "linux")]
fn room() -> Option<PathBuf> {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use rustix::fs::{IFlags, Mode, OFlags, ioctl_getflags, ioctl_setflags, open};

    let room = env::temp_dir().join("deaddrop-tests");
    let _ = fs::create_dir(&room);
    let is = fs::symlink_metadata(&room).ok()?;
    if !is.is_dir() || is.uid() != rustix::process::geteuid().as_raw() {
        return None;
    }
    fs::set_permissions(&room, fs::Permissions::from_mode(0o1777)).ok()?;
    let opened = open(&room, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).ok()?;
    if let Ok(flags) = ioctl_getflags(&opened) {
        let _ = ioctl_setflags(&opened, flags | IFlags::TOPDIR);
    }
    Some(room)
}

#[cfg(not(target_os = "linux"))]
fn room() -> Option<PathBuf> {
    None
}
