//! The scratch directories of commands, which contain their HOME and `/tmp`. Each server has one, removed when it ends.
//! Each session of a host has one, removed when the session ends or after a month without a step. A directory in use
//! is locked. A later process removes what is too large to remove quickly, and what a killed server left behind.

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

/// The prefix of the names of server directories.
const SERVER_PREFIX: &str = ".rpc-";
/// The prefix of the names of session directories, and how long an unused one is kept.
const SESSION_PREFIX: &str = "own_";
const SESSION_MAX_AGE: Duration = Duration::from_hours(30 * 24);
/// How long shutdown may be delayed to remove what was put aside. Some disks remove only a thousand directories per
/// second, and a command can create a million.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(2);

/// The directory of a server. It is locked while this value exists. On drop it is put aside and removed,
/// as far as this is possible in a short time.
#[derive(Debug)]
pub struct ScratchDir {
    state: PathBuf,
    held: LockedDir,
}

impl ScratchDir {
    /// Creates a directory in deaddrop's own folder for a root.
    ///
    /// # Errors
    /// The directory cannot be created.
    pub fn make(state: &Path) -> Result<Self> {
        let name = format!("{SERVER_PREFIX}{}", uuid::Uuid::new_v4().simple());
        Ok(Self { state: state.to_owned(), held: LockedDir::hold(state.join(name), true)? })
    }

    /// The folder for the HOME and `/tmp` of commands. The first command creates it.
    #[must_use]
    pub fn for_commands(&self) -> PathBuf {
        self.held.folder.join("own")
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        // If this fails, a later process removes the directory.
        let _ = put_aside(&self.held.folder);
        let begun = Instant::now();
        let _ = remove_aside(&self.state, &|| begun.elapsed() > CLEANUP_TIMEOUT);
    }
}

/// A scratch directory that is locked against removal.
#[derive(Debug)]
pub(super) struct LockedDir {
    pub(super) folder: PathBuf,
    /// None if the directory does not exist, cannot be locked, or is locked by the server.
    lock: Option<File>,
}

impl LockedDir {
    /// The directory of a server, which the server itself has locked.
    pub(super) fn of_server(folder: PathBuf) -> Self {
        Self { folder, lock: None }
    }

    /// Locks the directory of a session and marks it as used now. Creates it if `make` is set.
    pub(super) fn of_session(state: &Path, session: &str, make: bool) -> Result<Self> {
        Self::hold(state.join(format!("{SESSION_PREFIX}{session}")), make)
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
            // Another process may just have put the directory aside.
            if is_at(&file, &folder).map_err(fail)? {
                let _ = file.set_modified(SystemTime::now());
                return Ok(Self { folder, lock: is_locked.then_some(file) });
            }
        }
    }
}

impl Drop for LockedDir {
    fn drop(&mut self) {
        // A helper that is just starting may briefly share the open file, so closing it would not release the lock.
        if let Some(lock) = &self.lock {
            let _ = lock.unlock();
        }
    }
}

/// Puts aside the directory of a session, if it exists, and starts to remove it.
///
/// # Errors
/// A step is using it.
pub(super) fn remove_session(state: &Path, session: &str) -> Result<()> {
    let folder = state.join(format!("{SESSION_PREFIX}{session}"));
    match put_aside_unused(&folder, Duration::ZERO) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(Error::io("remove", &folder, e)),
        Ok(()) => {
            spawn_removal(state);
            Ok(())
        }
    }
}

/// Puts aside old and unlocked directories, and starts to remove them and what earlier processes left.
pub(super) fn clear_old(state: &Path) {
    for entry in fs::read_dir(state).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let kept = [(SERVER_PREFIX, Duration::ZERO), (SESSION_PREFIX, SESSION_MAX_AGE)]
            .into_iter()
            .find_map(|(prefix, kept)| {
                let rest = name.to_str()?.strip_prefix(prefix)?;
                is_key(rest).then_some(kept)
            });
        if let Some(kept) = kept
            && entry.file_type().is_ok_and(|kind| kind.is_dir())
        {
            // If this fails, the next process tries again.
            let _ = put_aside_unused(&entry.path(), kept);
        }
    }
    spawn_removal(state);
}

/// Puts aside a directory that is not locked and was not used for `kept`. A process that is creating it tries again.
fn put_aside_unused(folder: &Path, kept: Duration) -> io::Result<()> {
    let file = open(folder)?;
    let is_young = || !kept.is_zero() && age(&file).is_none_or(|age| age < kept);
    if file.try_lock().is_err() || is_young() {
        return Err(io::Error::new(io::ErrorKind::ResourceBusy, "a step is using it"));
    }
    put_aside(folder)
}

/// Starts a thread that removes what was put aside, one thread at a time. Nobody waits for it: shutdown
/// continues the removal for a short time, and the next start does the rest.
fn spawn_removal(state: &Path) {
    static ONE: Mutex<()> = Mutex::new(());
    let state = state.to_owned();
    let work = move || {
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = remove_aside(&state, &|| false);
    };
    let _ = thread::Builder::new().name("sweep".to_owned()).spawn(work);
}

/// The time since a file was last modified; None if it is unknown.
pub(super) fn age(file: &File) -> Option<Duration> {
    file.metadata().ok()?.modified().ok()?.elapsed().ok()
}

/// Opens an existing directory, even if a command has removed its permissions.
fn open(folder: &Path) -> io::Result<File> {
    const RIGHTS: u32 = 0o700;
    // The parent folder belongs to deaddrop, so nobody else can put a link there.
    let found = fs::symlink_metadata(folder)?;
    if found.is_dir() && found.permissions().mode() & RIGHTS != RIGHTS {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o711))?;
    }
    File::open(folder)
}

fn make_folder(folder: &Path) -> io::Result<()> {
    // The same mode as the runner uses: the user that commands run as must be able to pass through.
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
            .map(|name| state.path().join(format!("{SERVER_PREFIX}{name}")))
            .into_iter()
            .inspect(|path| fs::create_dir_all(path.join("own/home")).unwrap())
            .collect();
        let [dead, live, shut] = &made[..] else { unreachable!("three are made") };
        // Only directories with the prefix are removed, so a link with it and a directory without it stay.
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
