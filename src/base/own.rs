//! The folder that a session's commands have for themselves (their HOME and `/tmp`): removed when
//! the session is over, whatever commands have put there.
//!
//! That can be a lot, so it takes two steps: the folder is put aside at once, by a rename, and what
//! lies aside is removed bit by bit while nothing else is to be done, or at the end. No turn and no
//! start waits for it, and whoever wants to stop does not either: the next start goes on.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cap_fs_ext::DirExt;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirEntry};
use walkdir::WalkDir;

use super::Base;
use super::environment::PROBE;
use crate::error::Error;
use crate::session::{Session, is_id, run_id};

/// What lies aside has a name that begins with this.
const ASIDE: &str = ".gone-";
/// So long what lies aside is removed before somebody looks whether there is something to do: a
/// reply does not notice it.
const BIT: Duration = Duration::from_millis(20);
/// So long the program ends later for it. Some disks remove a thousand folders a second, and a command
/// can make a million.
const LAST: Duration = Duration::from_secs(2);
/// So many entries, or bytes, are much for a session's commands to have.
const MANY: usize = 10_000;
const MUCH: u64 = 64 << 20;

impl Base {
    /// The folder that the commands of a session have for themselves.
    pub(super) fn own_folder(&self, session: &Session) -> PathBuf {
        self.config.sessions.join(session.stem())
    }

    /// Puts aside what commands of a session that is over have left for themselves.
    pub(super) fn forget(&self, session: &Session) {
        self.put_aside(&self.own_folder(session));
    }

    /// The same for all sessions that are over or gone. Little is removed at once, for a start that
    /// finds nothing to do has no other moment for it.
    pub(super) fn forget_all(&self) {
        self.put_all_aside();
        self.tidies.set(true);
        self.tidy_a_bit();
    }

    /// The probe begins anew: what those before it left would grow.
    pub(super) fn forget_probe(&self) {
        self.put_aside(&self.config.sessions.join(PROBE));
    }

    fn put_all_aside(&self) {
        let Ok(entries) = fs::read_dir(&self.config.sessions) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let known = |name: &&str| is_id(name) || run_id(name).is_some();
            let Some(stem) = name.to_str().filter(known) else { continue };
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let gone = !self.config.sessions.join(format!("{stem}.json")).exists();
            if is_folder && (gone || self.store.load_stem(stem).is_ok_and(|s| s.is_complete)) {
                self.put_aside(&entry.path());
            }
        }
    }

    /// Where that fails it is in nobody's way, and tried again at the next start.
    fn put_aside(&self, folder: &Path) {
        let aside = format!("{ASIDE}{}", uuid::Uuid::new_v4().simple());
        if fs::rename(folder, self.config.sessions.join(aside)).is_ok() {
            self.tidies.set(true);
        }
    }

    /// Removes a bit of what lies aside. Returns whether there may be more.
    pub fn tidy_a_bit(&self) -> bool {
        let begun = Instant::now();
        self.tidy(&|| begun.elapsed() > BIT || self.stop.is_asked())
    }

    /// Removes what lies aside, as far as that can be done soon and the person does not want to stop.
    pub(super) fn tidy_up(&self) {
        let begun = Instant::now();
        self.tidy(&|| begun.elapsed() > LAST || self.stop.is_asked());
    }

    fn tidy(&self, is_enough: &dyn Fn() -> bool) -> bool {
        // What could not be removed is not tried again and again, but at the next start.
        if self.tidies.get() && !is_enough() {
            self.tidies.set(remove_aside(&self.config.sessions, is_enough).unwrap_or(false));
        }
        self.tidies.get()
    }

    /// Says with an error where room can be made, if that is what is missing and the session's
    /// commands have used much.
    pub(super) fn tell_room(&self, error: Error, session: &Session) -> Error {
        let own = self.own_folder(session);
        if error.is_of_a_full_disk() && is_much(&own) { error.with_room_in(&own) } else { error }
    }
}

/// Whether so much is in a folder that a full disk may come of it. Nobody waits until all of it is
/// counted.
fn is_much(folder: &Path) -> bool {
    let (mut entries, mut bytes) = (0, 0);
    WalkDir::new(folder).into_iter().any(|entry| {
        entries += 1;
        bytes += entry.ok().and_then(|entry| entry.metadata().ok()).map_or(0, |found| found.len());
        entries > MANY || bytes > MUCH
    })
}

/// Removes what lies aside. Returns whether it was enough before that was done.
fn remove_aside(sessions: &Path, is_enough: &dyn Fn() -> bool) -> io::Result<bool> {
    let sessions = Dir::open_ambient_dir(sessions, ambient_authority())?;
    for entry in sessions.entries()? {
        let name = entry?.file_name();
        if name.to_string_lossy().starts_with(ASIDE) {
            match remove(&sessions, &name, is_enough) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => return Ok(true),
                // The others may go.
                _ => {}
            }
        }
    }
    Ok(false)
}

/// Removes a folder that commands could fill as they liked: however deep, whatever its rights. Links
/// are removed, never followed. Fails with `Interrupted` when it is enough; what is left can be gone
/// on with, and each step leaves less.
///
/// Each folder in it that is not empty is moved to its top under a number, so that this needs neither
/// a stack nor paths of its depth; and numbers are all that is kept in mind, so that the top, where
/// many may stand, is not read again for each.
fn remove(parent: &Dir, name: &OsStr, is_enough: &dyn Fn() -> bool) -> io::Result<()> {
    take_rights(parent, name)?;
    let top = parent.open_dir_nofollow(name)?;
    loop {
        let mark = format!("{}-", uuid::Uuid::new_v4().simple());
        let mut removal =
            Removal { top: &top, mark, moved: 0, waiting: Vec::new(), removed: 0, is_enough };
        removal.all()?;
        match parent.remove_dir(name) {
            // Some file systems leave entries out of a listing while others are removed.
            Err(e) if e.kind() == io::ErrorKind::DirectoryNotEmpty && removal.removed > 0 => {}
            done => return done,
        }
    }
}

struct Removal<'a> {
    top: &'a Dir,
    /// What the names of moved folders begin with, which nobody has guessed.
    mark: String,
    moved: u64,
    /// The numbers of folders that were moved to the top.
    waiting: Vec<u64>,
    removed: u64,
    is_enough: &'a dyn Fn() -> bool,
}

impl Removal<'_> {
    /// Fails only when it is enough, as do the others: what cannot be removed does not keep the rest.
    fn all(&mut self) -> io::Result<()> {
        let Ok(entries) = self.top.entries() else { return Ok(()) };
        for entry in entries.flatten() {
            let name = entry.file_name();
            // The listing may show what was moved here since.
            if name.to_string_lossy().starts_with(&self.mark) || self.goes(self.top, &entry)? {
                continue;
            }
            if take_rights(self.top, &name).is_ok() {
                self.folder(&name)?;
            }
            while let Some(number) = self.waiting.pop() {
                let name = format!("{}{number}", self.mark);
                self.folder(name.as_ref())?;
            }
        }
        Ok(())
    }

    /// Removes a folder at the top.
    fn folder(&mut self, name: &OsStr) -> io::Result<()> {
        let Ok(folder) = self.top.open_dir_nofollow(name) else { return Ok(()) };
        for entry in folder.entries().into_iter().flatten().flatten() {
            if self.goes(&folder, &entry)? {
                continue;
            }
            let name = entry.file_name();
            let new = format!("{}{}", self.mark, self.moved);
            let taken = take_rights(&folder, &name);
            if taken.and_then(|()| folder.rename(&name, self.top, new)).is_ok() {
                self.waiting.push(self.moved);
                self.moved += 1;
            }
        }
        self.removed += u64::from(self.top.remove_dir(name).is_ok());
        Ok(())
    }

    /// Removes an entry, unless it is a folder that is not empty. Returns whether there is nothing
    /// more to do for it.
    fn goes(&mut self, parent: &Dir, entry: &DirEntry) -> io::Result<bool> {
        if (self.is_enough)() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let name = entry.file_name();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let gone = if is_folder { parent.remove_dir(name) } else { parent.remove_file(name) };
        self.removed += u64::from(gone.is_ok());
        Ok(gone.is_ok() || !is_folder)
    }
}

/// Takes back the rights on a folder that a command took away.
#[cfg(unix)]
fn take_rights(parent: &Dir, name: &OsStr) -> io::Result<()> {
    use cap_std::fs::{Permissions, PermissionsExt};
    parent.set_permissions(name, Permissions::from_mode(0o700))
}

#[cfg(not(unix))]
fn take_rights(_: &Dir, _: &OsStr) -> io::Result<()> {
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use std::cell::Cell;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn aside(base: &Path, name: &str) -> PathBuf {
        let path = base.join(format!("{ASIDE}{name}"));
        fs::create_dir(&path).unwrap();
        path
    }

    #[test]
    fn whatever_commands_left_goes_and_nothing_else() {
        let base = tempfile::tempdir().unwrap();
        let (own, kept) = (aside(base.path(), "1"), base.path().join("kept"));
        fs::create_dir_all(own.join("a/b/c")).unwrap();
        fs::create_dir(&kept).unwrap();
        fs::write(kept.join("file"), "").unwrap();
        symlink(&kept, own.join("a/link")).unwrap();
        for folder in ["a/b/c", "a/b", "a", ""] {
            fs::set_permissions(own.join(folder), fs::Permissions::from_mode(0o000)).unwrap();
        }
        let other = aside(base.path(), "2");
        let mut deep = Dir::open_ambient_dir(&other, ambient_authority()).unwrap();
        for _ in 0..3000 {
            deep.create_dir("d").unwrap();
            deep = deep.open_dir("d").unwrap();
        }
        assert!(!remove_aside(base.path(), &|| false).unwrap());
        assert!(!own.exists() && !other.exists());
        assert!(kept.join("file").exists());
        assert!(!remove_aside(base.path(), &|| false).unwrap());
    }

    /// The steps of removing this many folders with something in each.
    fn steps(folders: usize) -> usize {
        let base = tempfile::tempdir().unwrap();
        let own = aside(base.path(), "1");
        for n in 0..folders {
            fs::create_dir_all(own.join(format!("tmp/{n}/in"))).unwrap();
        }
        let asked = Cell::new(0);
        let count = || {
            asked.set(asked.get() + 1);
            false
        };
        assert!(!remove_aside(base.path(), &count).unwrap());
        assert!(!own.exists());
        asked.get()
    }

    #[test]
    fn twice_as_much_takes_twice_as_long() {
        let (few, many) = (steps(500), steps(1000));
        assert!(many <= few * 2 && many < 5000, "{few} and {many} entries were looked at");
    }

    #[test]
    fn it_stops_when_it_is_enough_and_goes_on_later() {
        let base = tempfile::tempdir().unwrap();
        let own = aside(base.path(), "1");
        for n in 0..100 {
            fs::create_dir_all(own.join(format!("{n}/in"))).unwrap();
        }
        let mut rounds = 0;
        loop {
            rounds += 1;
            let left = Cell::new(50);
            let is_enough = || {
                left.set(left.get() - 1);
                left.get() == 0
            };
            if !remove_aside(base.path(), &is_enough).unwrap() {
                break;
            }
            assert!(own.exists() && rounds < 100);
        }
        assert!(rounds > 1 && !own.exists());
    }
}
