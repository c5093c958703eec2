//! Ensures one writer per project with locks. The system releases a lock when its holder ends, for whatever reason.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::atomic;
use crate::error::{Error, Result};
use crate::settings::Config;

/// The word in a lock file whose holder serves the inbox until it is stopped.
const SERVING: &str = "serving";

/// How often taking a lock is retried.
const TRIES: u32 = 4;

/// The right to write in a project. It lasts until this value is dropped.
#[derive(Debug)]
pub struct Lock {
    file: File,
    /// The project folder and the inbox are also locked, so that another sessions folder does not allow a second
    /// writer. None if the system cannot lock folders.
    project: Option<File>,
    _inbox: Option<File>,
}

impl Lock {
    /// Takes the lock. The error reports who holds it.
    pub fn take(config: &Config) -> Result<Self> {
        let path = config.sessions.join(".lock");
        let fail = |e| Error::io("lock", &path, e);
        fs::create_dir_all(&config.inbox)
            .map_err(|e| Error::io("make the folder", &config.inbox, e))?;
        make_private(config)?;
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = atomic::open_own(&mut options, &path).map_err(fail)?;
        match try_for(&file) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let (pid, serves) = holder(&path);
                return Err(Error::locked(&config.project, pid, serves));
            }
            Err(TryLockError::Error(e)) => return Err(fail(e)),
        }
        let lock_folder = |folder| {
            // Some systems cannot lock a folder. Then the lock file must be enough.
            let Ok(folder) = File::open(folder) else { return Ok(None) };
            match try_for(&folder) {
                Ok(()) => Ok(Some(folder)),
                Err(TryLockError::WouldBlock) => Err(Error::locked(&config.project, None, false)),
                Err(TryLockError::Error(_)) => Ok(None),
            }
        };
        let (project, inbox) = (lock_folder(&config.project)?, lock_folder(&config.inbox)?);
        // This is only for the error messages of other processes.
        file.set_len(0).map_err(fail)?;
        write!(file, "{}", std::process::id()).map_err(fail)?;
        Ok(Self { file, project, _inbox: inbox })
    }

    /// Whether the project and its sessions are still where they were when the lock was taken.
    pub fn is_in_place(&self, config: &Config) -> bool {
        let is_at = |file: &File, path: &Path| match (file.metadata(), fs::metadata(path)) {
            (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
            _ => false,
        };
        is_at(&self.file, &config.sessions.join(".lock"))
            && self.project.as_ref().is_none_or(|project| is_at(project, &config.project))
    }

    /// Records in the lock file that this process serves the inbox until it is stopped.
    pub fn mark_serving(&mut self) {
        // If this fails, other processes only report that the project is in use.
        let _ = write!(self.file, " {SERVING}");
    }

    /// Locks a project whose workspace, or a folder of it, is served with the settings of another project. Nothing is
    /// created or written in the project: its settings may have been written by somebody who can write in the served
    /// folder.
    ///
    /// # Errors
    /// Another process holds the lock, or the system cannot lock a folder.
    pub fn borrow(config: &Config) -> Result<Borrowed> {
        let fail = |e| Error::io("lock the project", &config.project, e);
        let folder = File::open(&config.project).map_err(fail)?;
        match try_for(&folder) {
            Ok(()) => Ok(Borrowed { _folder: folder }),
            Err(TryLockError::WouldBlock) => {
                let path = config.sessions.join(".lock");
                // If nobody holds the lock file, its content is outdated.
                let (pid, serves) = if is_taken(&path) { holder(&path) } else { (None, false) };
                Err(Error::locked(&config.project, pid, serves))
            }
            Err(TryLockError::Error(e)) => Err(fail(e)),
        }
    }

    /// Whether a process holds the lock of a project.
    pub fn is_held(config: &Config) -> bool {
        is_taken(&config.sessions.join(".lock"))
    }

    /// Whether a process holds the lock of a project or has borrowed it, according to the lock of the folder itself.
    /// The project's settings are not read, since anybody may have written them.
    pub fn is_at_work_in(base: &Path) -> bool {
        is_locked(File::open(base))
    }

    /// Whether a process has borrowed a project and no process holds its lock.
    pub fn is_borrowed(config: &Config) -> bool {
        Self::is_at_work_in(&config.project) && !Self::is_held(config)
    }

    /// Whether the process that holds the lock of a project serves its inbox.
    pub fn holder_serves(config: &Config) -> bool {
        Self::is_held(config) && holder(&config.sessions.join(".lock")).1
    }
}

/// Creates the sessions folder with access only for the person, and removes wider permissions from a former version:
/// the folder contains parts of files and command output.
///
/// # Errors
/// The folder cannot be created, or cannot be made private.
pub fn make_private(config: &Config) -> Result<()> {
    let folder = &config.sessions;
    fs::create_dir_all(folder).map_err(|e| Error::io("make the folder", folder, e))?;
    // Commands run as the workspace's owner, and their own files are in this folder.
    atomic::keep_private(folder, commands_run_as_other_user(&config.workspace))
        .map_err(|e| Error::io("make private", folder, e))
}

fn commands_run_as_other_user(workspace: &Path) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    is_root && fs::metadata(workspace).is_ok_and(|found| found.uid() != 0)
}

/// The right to be the only process that uses a project. It lasts until this value is dropped (see [`Lock::borrow`]).
#[derive(Debug)]
pub struct Borrowed {
    _folder: File,
}

/// Locks a file or folder. Retries, since a process that only checks the lock holds it for a moment.
fn try_for(file: &File) -> Result<(), TryLockError> {
    for _ in 0..TRIES {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(5)),
            other => return other,
        }
    }
    file.try_lock()
}

fn is_taken(path: &Path) -> bool {
    is_locked(atomic::open_own(File::options().read(true), path))
}

fn is_locked(file: io::Result<File>) -> bool {
    file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

fn holder(path: &Path) -> (Option<u32>, bool) {
    let mut text = String::new();
    if let Ok(file) = atomic::open_own(File::options().read(true), path) {
        let _ = file.take(40).read_to_string(&mut text);
    }
    let (pid, rest) = text.split_once(' ').unwrap_or((&text, ""));
    (pid.trim().parse().ok(), rest.starts_with(SERVING))
}
