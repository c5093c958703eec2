//! Temporary folders of tests. Before ext4 without a journal creates a file, it looks at each file that was removed from
//! the same block group within the last minute; this took a fifth of the time of the tests. So the temporary folders are
//! in a folder with the attribute of `chattr +T`: ext4 puts its subfolders in different block groups. On other file
//! systems it is an ordinary folder.

use std::env;
use std::path::PathBuf;
use std::sync::OnceLock;

use tempfile::TempDir;

/// Creates a temporary folder, which is removed when dropped.
pub(super) fn folder() -> TempDir {
    static ROOM: OnceLock<PathBuf> = OnceLock::new();
    tempfile::tempdir_in(ROOM.get_or_init(|| room().unwrap_or_else(env::temp_dir))).unwrap()
}

/// The folder that contains them. Everybody may write in it, as in its parent. It is not removed. None if it belongs to
/// another user.
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
