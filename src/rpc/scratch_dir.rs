//! The scratch directories of commands, with their HOME and `/tmp`: one of each server, removed at its
//! end, and one of each session of a host, removed when that is over or after a month without a step.
//! Whatever commands have put there: what cannot be removed soon, and what a server left that was killed,
//! is removed by those that come later.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::steps::{is_at, is_key};
use crate::error::{Error, Result};
use crate::runner::aside::{put_aside, remove_aside};

/// How the names of servers' directories begin, and from which age on one is left over that nobody holds:
/// it may have been made just now.
const SERVER: (&str, Duration) = (".rpc-", Duration::from_mins(1));
/// How those of sessions begin, and how long one is kept that no step uses.
const SESSION: (&str, Duration) = ("own_", Duration::from_hours(30 * 24));
/// How much later the program ends to remove what is put aside. Some disks remove a thousand directories a
/// second, and a command can make a million.
const LAST: Duration = Duration::from_secs(2);

/// The directory of a server, locked for as long as this process lives, and put aside and removed with
/// this, as far as that can be done soon.
#[derive(Debug)]
pub struct ScratchDir {
    state: PathBuf,
    folder: PathBuf,
    _lock: Option<File>,
}

impl ScratchDir {
    /// Makes one in deaddrop's own folder for a root, and begins to remove what other servers have left
    /// there.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn make(state: &Path) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix(SERVER.0).tempdir_in(state);
        // tempfile would remove it by a recursion as deep as a command likes.
        let folder = folder.map_err(|e| Error::io("make a folder in", state, e))?.keep();
        // Where folders cannot be locked, nothing there is removed by others either.
        let lock = File::open(&folder).ok().filter(|lock| lock.try_lock().is_ok());
        put_aside_old(state, SERVER);
        Sweeper::default().sweep(state);
        Ok(Self { state: state.to_owned(), folder, _lock: lock })
    }

    /// Where commands have their HOME and `/tmp`. The first of them makes it.
    #[must_use]
    pub fn for_commands(&self) -> PathBuf {
        self.folder.join("own")
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        // Where this fails, it is left over.
        let _ = put_aside(&self.folder);
        let begun = Instant::now();
        let _ = remove_aside(&self.state, &|| begun.elapsed() > LAST);
    }
}

/// The directories of sessions, in deaddrop's own folder for a root.
#[derive(Debug)]
pub(super) struct SessionDirs {
    state: PathBuf,
    sweeper: Sweeper,
    /// Done once in a process: those that no step has used for long are put aside.
    cleared: OnceLock<()>,
}

/// The scratch directory of a step, held against being removed.
#[derive(Debug)]
pub(super) struct HeldDir {
    pub(super) folder: PathBuf,
    lock: Option<File>,
}

impl HeldDir {
    /// One that nobody removes meanwhile.
    pub(super) fn unlocked(folder: PathBuf) -> Self {
        Self { folder, lock: None }
    }
}

impl SessionDirs {
    pub(super) fn new(state: PathBuf) -> Self {
        Self { state, sweeper: Sweeper::default(), cleared: OnceLock::new() }
    }

    /// Puts those aside that no step has used for long, once in a process.
    pub(super) fn clear_old(&self) {
        self.cleared.get_or_init(|| {
            if put_aside_old(&self.state, SESSION) {
                self.sweeper.sweep(&self.state);
            }
        });
    }

    /// Holds the directory of a session, used from now on; made where that is wanted.
    pub(super) fn hold(&self, session: &str, make: bool) -> Result<HeldDir> {
        let folder = self.path_of(session);
        let fail = |e| Error::io("open", &folder, e);
        loop {
            if make {
                make_folder(&folder).map_err(|e| Error::io("make the folder", &folder, e))?;
            }
            let file = match open(&folder) {
                Err(e) if e.kind() == io::ErrorKind::NotFound && make => continue,
                Err(e) if e.kind() == io::ErrorKind::NotFound => {
                    return Ok(HeldDir::unlocked(folder));
                }
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

    /// Puts the directory of a session aside and begins to remove it, if there is one.
    ///
    /// # Errors
    /// A step is using it.
    pub(super) fn remove(&self, session: &str) -> Result<()> {
        let folder = self.path_of(session);
        let removed = open(&folder).and_then(|file| match file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                Err(io::Error::new(io::ErrorKind::ResourceBusy, "a step is using it"))
            }
            _ => put_aside(&folder),
        });
        match removed {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", &folder, e)),
            Err(_) => Ok(()),
            Ok(()) => {
                self.sweeper.sweep(&self.state);
                Ok(())
            }
        }
    }

    fn path_of(&self, session: &str) -> PathBuf {
        self.state.join(format!("{}{session}", SESSION.0))
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

/// How long ago a file was written; None where that cannot be said.
pub(super) fn age(file: &File) -> Option<Duration> {
    file.metadata().ok()?.modified().ok()?.elapsed().ok()
}

/// Puts directories aside that are old and that nobody holds. Whether there were any.
fn put_aside_old(state: &Path, (prefix, kept): (&str, Duration)) -> bool {
    let mut any = false;
    for entry in fs::read_dir(state).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_str().and_then(|name| name.strip_prefix(prefix));
        if !name.is_some_and(is_key) || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        // Where this fails, the next process tries it again.
        any |= open(&entry.path()).is_ok_and(|file| {
            age(&file).is_some_and(|age| age > kept)
                && file.try_lock().is_ok()
                && put_aside(&entry.path()).is_ok()
        });
    }
    any
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

/// Removes what was put aside, on a thread of its own, of which there is one at most.
#[derive(Debug, Default)]
struct Sweeper(Arc<AtomicUsize>);

impl Sweeper {
    /// Begins to remove what was put aside in a folder; always the same one. Nobody waits for it: the end
    /// of the server goes on with it for a while, and the next start.
    fn sweep(&self, place: &Path) {
        if self.0.fetch_add(1, Ordering::AcqRel) > 0 {
            // Whoever is at it looks once more.
            return;
        }
        let (asked, place) = (Arc::clone(&self.0), place.to_owned());
        let work = move || {
            loop {
                let seen = asked.load(Ordering::Acquire);
                let _ = remove_aside(&place, &|| false);
                if asked.compare_exchange(seen, 0, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                    break;
                }
            }
        };
        if thread::Builder::new().name("sweep".into()).spawn(work).is_err() {
            self.0.store(0, Ordering::Release);
        }
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
        wait_until("what is left over", || {
            names(state.path()).iter().all(|name| !name.starts_with(".gone-"))
        });
        assert!(!dead.exists() && !shut.exists());
        assert!(live.join("own/home").exists() && new.join("own/home").exists());
        drop(own);
        assert_eq!(names(state.path()), [".rpc-link", ".rpc-live", ".rpc-new", "other"]);
    }

    #[test]
    fn a_sweeper_that_is_at_it_looks_once_more() {
        let state = tempfile::tempdir().unwrap();
        let sweeper = Sweeper::default();
        for n in 0..100 {
            let folder = state.path().join(format!("x{n}"));
            fs::create_dir_all(folder.join("a/b")).unwrap();
            put_aside(&folder).unwrap();
            sweeper.sweep(state.path());
        }
        wait_until("the sweeper", || names(state.path()).is_empty());
        wait_until("its rest", || sweeper.0.load(Ordering::Acquire) == 0);
    }
}
