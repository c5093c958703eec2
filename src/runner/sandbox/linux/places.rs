//! Mount points. They are opened component by component without following links, and created if missing. Some are in
//! folders that earlier commands could write, so these may contain traps.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Uid, chmodat, chownat, fstat, mkdirat, openat, unlinkat,
};
use rustix::io::Errno;

use super::super::request::{MountKind, SandboxRequest};
use crate::atomic::rename_new;

pub(super) const HANDLE: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
pub(super) const FOLDER: Mode = Mode::from_bits_retain(0o755);
const PLAIN: Mode = Mode::from_bits_retain(0o644);

/// The names in a path, from the top.
pub(super) fn names(path: &Path) -> impl Iterator<Item = &OsStr> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name),
        _ => None,
    })
}

pub(super) fn is_link(handle: &OwnedFd) -> io::Result<bool> {
    Ok(FileType::from_raw_mode(fstat(handle)?.st_mode) == FileType::Symlink)
}

/// How often an access to a name is repeated if another command created or removed the entry meanwhile. Commands that
/// start at the same time share their folders.
const MAX_ATTEMPTS: usize = 100;

/// Opens a file or folder, and creates it if missing. With `makes_way` (for folders that only commands use), anything
/// else in its place is removed or renamed.
pub(super) fn open_or_create(
    here: BorrowedFd,
    name: &OsStr,
    folder: bool,
    makes_way: bool,
    user: Option<(u32, u32)>,
) -> io::Result<OwnedFd> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let raced = |e: &io::Error| {
            let errno = Errno::from_io_error(e);
            matches!(errno, Some(Errno::EXIST | Errno::NOENT)) && attempts < MAX_ATTEMPTS
        };
        match try_open_or_create(here, name, folder, makes_way, user) {
            Err(e) if raced(&e) => {}
            done => return done,
        }
    }
}

fn try_open_or_create(
    here: BorrowedFd,
    name: &OsStr,
    folder: bool,
    makes_way: bool,
    user: Option<(u32, u32)>,
) -> io::Result<OwnedFd> {
    match openat(here, name, HANDLE, Mode::empty()) {
        Ok(found) => {
            let mode = fstat(&found)?.st_mode;
            let is_folder = FileType::from_raw_mode(mode) == FileType::Directory;
            if is_folder == folder && !is_link(&found)? {
                let mode = Mode::from_raw_mode(mode);
                if makes_way && is_folder && !mode.contains(Mode::RWXU) {
                    // A command removed its own access. Without access, nobody else can put a link there now.
                    chmodat(here, name, mode | Mode::RWXU, AtFlags::empty())?;
                }
                return Ok(found);
            }
            if !makes_way {
                return Err(Errno::NOTDIR.into());
            }
            let how = if is_folder { AtFlags::REMOVEDIR } else { AtFlags::empty() };
            match unlinkat(here, name, how) {
                Err(Errno::NOTEMPTY) => set_aside(here, name)?,
                // Another entry has appeared here, so the caller tries again.
                Err(Errno::NOTDIR | Errno::ISDIR) => return Err(Errno::NOENT.into()),
                done => done?,
            }
        }
        Err(Errno::NOENT) => {}
        Err(e) => return Err(e.into()),
    }
    if folder {
        mkdirat(here, name, FOLDER)?;
    } else {
        drop(openat(here, name, OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC, PLAIN)?);
    }
    give(here, name, user)?;
    Ok(openat(here, name, HANDLE, Mode::empty())?)
}

/// Gives a new file or folder to the user that commands run as.
pub(super) fn give(
    folder: impl AsFd,
    name: impl rustix::path::Arg,
    user: Option<(u32, u32)>,
) -> io::Result<()> {
    let Some((user, group)) = user else { return Ok(()) };
    let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
    Ok(chownat(folder, name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Renames a folder to an unused name.
fn set_aside(here: BorrowedFd, name: &OsStr) -> io::Result<()> {
    let mut removal = name.to_owned();
    removal.push(format!(".aside-{}", uuid::Uuid::new_v4().simple()));
    rename_new(here, name, here, &removal)
}

/// Creates the mount points in the session's own folders for `bwrap`, which would follow links in them.
pub(super) fn prepare(request: &SandboxRequest) -> io::Result<()> {
    for mount in &request.mounts {
        let (at, folder) = match &mount.kind {
            MountKind::Read(from) | MountKind::Write(from) => (&mount.at, from.is_folder),
            MountKind::Overlay(_) => (&mount.at, true),
            _ => continue,
        };
        let above =
            request.mounts.iter().filter(|above| *at != above.at && at.starts_with(&above.at));
        let Some(above) = above.max_by_key(|above| names(&above.at).count()) else { continue };
        let (to, MountKind::Write(from)) = (&above.at, &above.kind) else { continue };
        if from.path == *to {
            continue;
        }
        let Some(here) = from.open(true)? else { continue };
        let mut here = OwnedFd::from(here);
        let mut left = at.strip_prefix(to).map(names).into_iter().flatten().peekable();
        while let Some(name) = left.next() {
            here = open_or_create(
                here.as_fd(),
                name,
                folder || left.peek().is_some(),
                true,
                request.user,
            )?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::{Barrier, Mutex};
    use std::thread;

    use rustix::fs::CWD;

    use super::*;

    #[test]
    fn of_many_that_make_a_place_at_once_each_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let here = openat(CWD, folder.path(), HANDLE | OFlags::DIRECTORY, Mode::empty()).unwrap();
        let barrier = Barrier::new(8);
        let failed = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for n in 0..200 {
                        // In every second round, an entry of the wrong type is already there.
                        let name = format!("{}", n / 2);
                        barrier.wait();
                        let made =
                            open_or_create(here.as_fd(), name.as_ref(), n % 2 == 0, true, None);
                        // Do not panic here: a thread that panics would keep the others waiting.
                        failed.lock().unwrap().extend(made.err());
                    }
                });
            }
        });
        assert!(failed.lock().unwrap().is_empty(), "{failed:?}");
        assert!(folder.path().join("99").is_file());
    }
}
