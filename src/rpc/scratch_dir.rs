//! The scratch directories of commands, with their HOME and `/tmp`: one of each server, removed at its
//! end, and one of each session of a host, removed when that is over or after a month without a step.
//! Whatever commands have put there: what cannot be removed soon, and what a server left that was killed,
//! is removed by those that come later.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::steps::{is_at, is_key};
use crate::error::{Error, Result};
use crate::runner::removal::{put_aside, remove_aside};

/// How the names of servers' directories begin, and from which age on one is left over that nobody holds:
/// it may have been made just now.
const SERVER: (&str, Duration) = (".rpc-", Duration::from_mins(1));
/// How those of sessions begin, and how long one is kept that no step uses.
const SESSION: (&str, Duration) = ("own_", Duration::from_hours(30 * 24));
/// How much later the program ends to remove what is put aside. Some disks remove a thousand directories a
/// second, and a command can make a million.
const LAST: Duration = Duration::from_secs(2);

/// The directory of a server, held for as long as this process lives, and put aside and removed with this,
/// as far as that can be done soon.
#[derive(Debug)]
pub struct ScratchDir {
    state: PathBuf,
    held: HeldDir,
}

impl ScratchDir {
    /// Makes one in deaddrop's own folder for a root.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn make(state: &Path) -> Result<Self> {
        let name = format!("{}{}", SERVER.0, uuid::Uuid::new_v4().simple());
        Ok(Self { state: state.to_owned(), held: hold(state.join(name), true)? })
    }

    /// Where commands have their HOME and `/tmp`. The first of them makes it.
    #[must_use]
    pub fn for_commands(&self) -> PathBuf {
        self.held.folder.join("own")
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        // Where this fails, it is left over.
        let _ = put_aside(&self.held.folder);
        let begun = Instant::now();
        let _ = remove_aside(&self.state, &|| begun.elapsed() > LAST);
    }
}

/// A scratch directory, held against being removed.
#[derive(Debug)]
pub(super) struct HeldDir {
    pub(super) folder: PathBuf,
    /// None where there is none yet, or where folders cannot be locked.
    lock: Option<File>,
}

impl HeldDir {
    /// One that nobody removes meanwhile.
    pub(super) fn unlocked(folder: PathBuf) -> Self {
        Self { folder, lock: None }
    }
}

impl Drop for HeldDir {
    fn drop(&mut self) {
        // A helper that is just being started has the file, too, for a moment.
        if let Some(lock) = &self.lock {
            let _ = lock.unlock();
        }
    }
}

/// Holds the directory of a session, used from now on; made where that is wanted.
pub(super) fn hold_session(state: &Path, session: &str, make: bool) -> Result<HeldDir> {
    hold(of_session(state, session), make)
}

/// Puts the directory of a session aside and begins to remove it, if there is one.
///
/// # Errors
/// A step is using it.
pub(super) fn remove_session(state: &Path, session: &str) -> Result<()> {
    let folder = of_session(state, session);
    let removed = open(&folder).and_then(|file| match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            Err(io::Error::new(io::ErrorKind::ResourceBusy, "a step is using it"))
        }
        _ => put_aside(&folder),
    });
    match removed {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(Error::io("remove", &folder, e)),
        Ok(()) => {
            sweep(state);
            Ok(())
        }
    }
}

/// Puts aside what is old and what nobody holds, and begins to remove that and what others could not remove.
pub(super) fn clear_old(state: &Path) {
    for entry in fs::read_dir(state).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let kept = [SERVER, SESSION].into_iter().find_map(|(prefix, kept)| {
            let rest = name.to_str()?.strip_prefix(prefix)?;
            is_key(rest).then_some(kept)
        });
        let Some(kept) = kept.filter(|_| entry.file_type().is_ok_and(|kind| kind.is_dir())) else {
            continue;
        };
        if let Ok(file) = open(&entry.path())
            && age(&file).is_some_and(|age| age > kept)
            && file.try_lock().is_ok()
        {
            // Where this fails, the next process tries it again.
            let _ = put_aside(&entry.path());
        }
    }
    sweep(state);
}

/// Begins to remove what was put aside, one after another. Nobody waits for it: the end of the server goes on with it
/// for a while, and the next start.
fn sweep(state: &Path) {
    static ONE: Mutex<()> = Mutex::new(());
    let state = state.to_owned();
    let work = move || {
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = remove_aside(&state, &|| false);
    };
    let _ = thread::Builder::new().name("sweep".to_owned()).spawn(work);
}

fn of_session(state: &Path, session: &str) -> PathBuf {
    state.join(format!("{}{session}", SESSION.0))
}

fn hold(folder: PathBuf, make: bool) -> Result<HeldDir> {
    let fail = |e| Error::io("open", &folder, e);
    loop {
        if make {
            make_folder(&folder).map_err(|e| Error::io("make the folder", &folder, e))?;
        }
        let file = match open(&folder) {
            Err(e) if e.kind() == io::ErrorKind::NotFound && make => continue,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(HeldDir::unlocked(folder)),
            other => other.map_err(fail)?,
        };
        let is_locked = file.lock_shared().is_ok();
        // Somebody may just have put it aside.
        if is_at(&file, &folder).map_err(fail)? {
            let _ = file.set_modified(SystemTime::now());
            return Ok(HeldDir { folder, lock: is_locked.then_some(file) });
        }
    }
}

/// How long ago a file was written; None where that cannot be said.
pub(super) fn age(file: &File) -> Option<Duration> {
    file.metadata().ok()?.modified().ok()?.elapsed().ok()
}

/// Opens a directory that is there, also where a command has taken away the rights on it.
fn open(folder: &Path) -> io::Result<File> {
    const RIGHTS: u32 = 0o700;
    // The folder that holds it is deaddrop's: nobody else puts a link there.
    let found = fs::symlink_metadata(folder)?;
    if found.is_dir() && found.permissions().mode() & RIGHTS != RIGHTS {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o711))?;
    }
    File::open(folder)
}

fn make_folder(folder: &Path) -> io::Result<()> {
    // As the runner makes them: whom commands run as goes through it.
    match DirBuilder::new().mode(0o711).create(folder) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        made => made,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn wait_until(what: &str, condition: impl Fn() -> bool) {
        let begun = Instant::now();
        while !condition() {
            assert!(begun.elapsed() < Duration::from_secs(30), "waited in vain for {what}");
            thread::sleep(Duration::from_millis(2));
        }
    }

    fn made_before(folder: &Path, age: Duration) {
        File::open(folder).unwrap().set_modified(SystemTime::now() - age).unwrap();
    }

    #[test]
    fn it_is_gone_with_its_server_and_whatever_is_in_it() {
        let state = tempfile::tempdir().unwrap();
        let own = ScratchDir::make(state.path()).unwrap();
        let folder = own.for_commands();
        assert_eq!(names(state.path()).len(), 1);
        fs::create_dir_all(folder.join("home/a/b")).unwrap();
        fs::write(folder.join("home/a/b/c"), "").unwrap();
        drop(own);
        assert_eq!(names(state.path()), [""; 0]);
    }

    #[test]
    fn what_others_left_goes_unless_it_is_held_or_new() {
        let state = tempfile::tempdir().unwrap();
        let old = Duration::from_secs(61);
        let made: Vec<_> = ["dead", "live", "new", "locked-up"]
            .map(|name| state.path().join(format!("{}{name}", SERVER.0)))
            .into_iter()
            .inspect(|path| fs::create_dir_all(path.join("own/home")).unwrap())
            .collect();
        let [dead, live, new, shut] = &made[..] else { unreachable!("four are made") };
        // Only what is called so is touched.
        fs::create_dir(state.path().join("other")).unwrap();
        std::os::unix::fs::symlink("other", state.path().join(".rpc-link")).unwrap();
        for folder in [dead, live, shut] {
            made_before(folder, old);
        }
        made_before(&state.path().join("other"), old);
        fs::set_permissions(shut, fs::Permissions::from_mode(0o000)).unwrap();
        let held = File::open(live).unwrap();
        held.try_lock().unwrap();
        let own = ScratchDir::make(state.path()).unwrap();
        clear_old(state.path());
        wait_until("what is left over", || {
            names(state.path()).iter().all(|name| !name.starts_with(".gone-"))
        });
        assert!(!dead.exists() && !shut.exists());
        assert!(live.join("own/home").exists() && new.join("own/home").exists());
        drop(own);
        assert_eq!(names(state.path()), [".rpc-link", ".rpc-live", ".rpc-new", "other"]);
    }
}
