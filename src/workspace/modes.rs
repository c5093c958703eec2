//! Permissions of what stands under a name: never of what a link leads to, also where one is put there
//! between a look and the change.

use std::ffi::OsStr;
use std::io;

use cap_std::fs::Dir;

/// Gives what stands in a folder under a name these permissions, as `chmod` has them, also where nobody may
/// read it.
///
/// # Errors
/// A link stands there, or it cannot be done.
#[cfg(target_os = "linux")]
pub(super) fn set_mode(folder: &Dir, name: &OsStr, mode: u32) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    use rustix::fs::{FileType, Mode, OFlags, chmod, fchmod, fstat, openat};
    use rustix::io::Errno;
    let mode = Mode::from_raw_mode(mode);
    let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let place = openat(folder, name, flags | OFlags::PATH, Mode::empty())?;
    if FileType::from_raw_mode(fstat(&place)?.st_mode) == FileType::Symlink {
        return Err(Errno::LOOP.into());
    }
    // Such a handle is changed by the name that the system has for it.
    match chmod(format!("/proc/self/fd/{}", place.as_raw_fd()), mode) {
        Err(Errno::NOENT) => {
            let flags = flags | OFlags::RDONLY | OFlags::NONBLOCK;
            Ok(fchmod(openat(folder, name, flags, Mode::empty())?, mode)?)
        }
        done => Ok(done?),
    }
}

/// Gives what stands in a folder under a name these permissions, as `chmod` has them.
///
/// # Errors
/// It cannot be done.
#[cfg(all(unix, not(target_os = "linux")))]
pub(super) fn set_mode(folder: &Dir, name: &OsStr, mode: u32) -> io::Result<()> {
    use rustix::fs::{AtFlags, Mode, RawMode, chmodat};
    let mode = Mode::from_raw_mode(RawMode::try_from(mode).unwrap_or_default());
    Ok(chmodat(folder, name, mode, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Here nothing has such permissions.
#[cfg(not(unix))]
pub(super) fn set_mode(_: &Dir, _: &OsStr, _: u32) -> io::Result<()> {
    Ok(())
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
        // What nobody may read, what would wait for a writer, and the folder itself.
        for name in ["a", "shut", "d", "fifo", "."] {
            set_mode(&folder, name.as_ref(), 0o1751).unwrap();
            assert_eq!(mode(name), 0o1751, "{name}");
        }
    }
}
