//! Changes the permissions of an entry of a folder, but never those of a link's target, even if the entry is replaced
//! by a link between the check and the change.

use std::ffi::OsStr;
use std::io;

use cap_std::fs::Dir;

/// The set-user-ID and set-group-ID bits. A program with such a bit runs with the rights of its owner or group.
pub(super) const SET_IDS: u32 = 0o6000;

/// The permissions without the set-user-ID and set-group-ID bits, which deaddrop never sets.
pub(super) fn without_set_ids(mode: u32) -> u32 {
    mode & !SET_IDS
}

/// Clears the set-user-ID and set-group-ID bits of a regular file. Returns whether one was set.
///
/// # Errors
/// The entry is a link, or the change fails.
pub(super) fn clear_set_ids(folder: &Dir, name: &OsStr) -> io::Result<bool> {
    let mut had = false;
    change_mode(folder, name, |mode, is_file| {
        had = is_file && mode & SET_IDS != 0;
        had.then(|| without_set_ids(mode))
    })?;
    Ok(had)
}

/// Sets the permissions of an entry, as `chmod` does, even if nobody may read the entry.
///
/// # Errors
/// The entry is a link, or the change fails.
pub(super) fn set_mode(folder: &Dir, name: &OsStr, mode: u32) -> io::Result<()> {
    change_mode(folder, name, |_, _| Some(mode))
}

/// Changes permissions. `change` receives the current permissions and whether the entry is a regular file. It returns
/// the new permissions, or None for no change.
#[cfg(target_os = "linux")]
fn change_mode(
    folder: &Dir,
    name: &OsStr,
    change: impl FnOnce(u32, bool) -> Option<u32>,
) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    use rustix::fs::{FileType, Mode, OFlags, chmod, fchmod, fstat, openat};
    use rustix::io::Errno;
    let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let place = openat(folder, name, flags | OFlags::PATH, Mode::empty())?;
    let found = fstat(&place)?.st_mode;
    let kind = FileType::from_raw_mode(found);
    if kind == FileType::Symlink {
        return Err(Errno::LOOP.into());
    }
    let Some(mode) = change(found & 0o7777, kind == FileType::RegularFile) else { return Ok(()) };
    let mode = Mode::from_raw_mode(mode);
    // fchmod fails for an O_PATH handle, but chmod of its path in /proc works.
    match chmod(format!("/proc/self/fd/{}", place.as_raw_fd()), mode) {
        Err(Errno::NOENT) => {
            let flags = flags | OFlags::RDONLY | OFlags::NONBLOCK;
            Ok(fchmod(openat(folder, name, flags, Mode::empty())?, mode)?)
        }
        done => Ok(done?),
    }
}

#[cfg(not(target_os = "linux"))]
fn change_mode(
    folder: &Dir,
    name: &OsStr,
    change: impl FnOnce(u32, bool) -> Option<u32>,
) -> io::Result<()> {
    use cap_std::fs::MetadataExt;
    use rustix::fs::{AtFlags, Mode, RawMode, chmodat};
    let found = folder.symlink_metadata(name)?;
    let Some(mode) = change(found.mode() & 0o7777, found.is_file()) else { return Ok(()) };
    let mode = Mode::from_raw_mode(RawMode::try_from(mode).unwrap_or_default());
    Ok(chmodat(folder, name, mode, AtFlags::SYMLINK_NOFOLLOW)?)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    #[test]
    fn what_a_link_leads_to_keeps_its_permissions() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("d")).unwrap();
        for name in ["a", "shut", "d/in"] {
            fs::write(at(name), name).unwrap();
            fs::set_permissions(at(name), Permissions::from_mode(0o600)).unwrap();
        }
        fs::set_permissions(at("shut"), Permissions::from_mode(0o000)).unwrap();
        for (target, link) in [("a", "link"), ("d", "folder"), ("gone", "none")] {
            symlink(target, at(link)).unwrap();
        }
        let fifo = std::process::Command::new("mkfifo").arg(at("fifo")).status();
        assert!(fifo.unwrap().success());
        let folder = Dir::open_ambient_dir(dir.path(), cap_std::ambient_authority()).unwrap();
        let mode = |name: &str| at(name).metadata().unwrap().mode() & 0o7777;
        let before = mode("d");
        for link in ["link", "folder", "none"] {
            assert!(set_mode(&folder, link.as_ref(), 0o777).is_err(), "{link}");
        }
        assert_eq!((mode("a"), mode("d")), (0o600, before));
        // Entries that nobody may read, one that would wait for a writer, and the folder itself.
        for name in ["a", "shut", "d", "fifo", "."] {
            set_mode(&folder, name.as_ref(), 0o1751).unwrap();
            assert_eq!(mode(name), 0o1751, "{name}");
        }
    }
}
