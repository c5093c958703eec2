//! The scratch directories of commands, with their HOME and `/tmp`: one of each server, removed at its end, and one of
//! each session of a host, removed when that is over or after a month without a step. A directory in use is locked.
//! What cannot be removed soon, and what a server left that was killed, is removed by those that come later.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::steps::{is_at, is_key};
use crate::error::{Error, Result};
use crate::runner::removal::{put_aside, remove_aside};

/// How the names of servers' directories begin.
const SERVER: &str = ".rpc-";
/// How those of sessions begin, and how long one is kept that no step uses.
const SESSION: &str = "own_";
const KEPT: Duration = Duration::from_hours(30 * 24);
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
        let name = format!("{SERVER}{}", uuid::Uuid::new_v4().simple());
        Ok(Self { state: state.to_owned(), held: HeldDir::hold(state.join(name), true)? })
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
    /// None where there is none yet, folders cannot be locked, or the server holds it.
    lock: Option<File>,
}

impl HeldDir {
    /// The directory of a server, which holds it.
    pub(super) fn of_server(folder: PathBuf) -> Self {
        Self { folder, lock: None }
    }

    /// Holds the directory of a session, used from now on; made where that is wanted.
    pub(super) fn of_session(state: &Path, session: &str, make: bool) -> Result<Self> {
        Self::hold(state.join(format!("{SESSION}{session}")), make)
    }

    fn hold(folder: PathBuf, make: bool) -> Result<Self> {
        let fail = |e| Error::io("open", &folder, e);
        loop {
            if make {
                make_folder(&folder).map_err(|e| Error::io("make the folder", &folder, e))?;
            }
            let file = match open(&folder) {
                Err(e) if e.kind() == io::ErrorKind::NotFound && make => continue,
                Err(e) if e.kind() == io::ErrorKind::NotFound => {
                    return Ok(Self { folder, lock: None });
                }
                other => other.map_err(fail)?,
            };
            let is_locked = file.lock_shared().is_ok();
            // Somebody may just have put it aside.
            if is_at(&file, &folder).map_err(fail)? {
                let _ = file.set_modified(SystemTime::now());
                return Ok(Self { folder, lock: is_locked.then_some(file) });
            }
        }
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

/// Puts the directory of a session aside and begins to remove it, if there is one.
///
/// # Errors
/// A step is using it.
pub(super) fn remove_session(state: &Path, session: &str) -> Result<()> {
    let folder = state.join(format!("{SESSION}{session}"));
    match put_aside_unused(&folder, Duration::ZERO) {
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
        let kept =
            [(SERVER, Duration::ZERO), (SESSION, KEPT)].into_iter().find_map(|(prefix, kept)| {
                let rest = name.to_str()?.strip_prefix(prefix)?;
                is_key(rest).then_some(kept)
            });
        if let Some(kept) = kept
            && entry.file_type().is_ok_and(|kind| kind.is_dir())
        {
            // Where this fails, the next process tries it again.
            let _ = put_aside_unused(&entry.path(), kept);
        }
    }
    sweep(state);
}

/// Puts a directory aside that nobody holds or has used for that long. Whoever is just making it makes it anew.
fn put_aside_unused(folder: &Path, kept: Duration) -> io::Result<()> {
    let file = open(folder)?;
    let is_young = || !kept.is_zero() && age(&file).is_none_or(|age| age < kept);
    if file.try_lock().is_err() || is_young() {
        return Err(io::Error::new(io::ErrorKind::ResourceBusy, "a step is using it"));
    }
    put_aside(folder)
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
    fn what_others_left_goes_unless_it_is_held() {
        let state = tempfile::tempdir().unwrap();
        let made: Vec<_> = ["dead", "live", "locked-up"]
            .map(|name| state.path().join(format!("{SERVER}{name}")))
            .into_iter()
            .inspect(|path| fs::create_dir_all(path.join("own/home")).unwrap())
            .collect();
        let [dead, live, shut] = &made[..] else { unreachable!("three are made") };
        // Only what is called so is touched.
        fs::create_dir(state.path().join("other")).unwrap();
        std::os::unix::fs::symlink("other", state.path().join(".rpc-link")).unwrap();
        fs::set_permissions(shut, fs::Permissions::from_mode(0o000)).unwrap();
        let held = File::open(live).unwrap();
        held.try_lock().unwrap();
        let own = ScratchDir::make(state.path()).unwrap();
        clear_old(state.path());
        wait_until("what is left over", || {
            names(state.path()).iter().all(|name| !name.starts_with(".gone-"))
        });
        assert!(!dead.exists() && !shut.exists());
        assert!(live.join("own/home").exists() && own.held.folder.exists());
        drop(own);
        assert_eq!(names(state.path()), [".rpc-link", ".rpc-live", "other"]);
    }
}
