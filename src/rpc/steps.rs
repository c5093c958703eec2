//! The records of steps, by key. Each step has a small file, which is locked while the step is carried out, against
//! other processes and other connections of this one. It contains up to two records in the format of the [`journal`].
//! The first says what is about to be done, and is on disk before it is done. The second contains the result. A torn
//! last record counts as missing. Without the first record nothing was done. Without the second, the disk shows the
//! result of a file operation, and a command counts as lost.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use cap_fs_ext::MetadataExt;
use serde::{Deserialize, Serialize};

use super::scratch_dir::age;
use crate::atomic;
use crate::error::{Error, Result};
use crate::protocol::jsonrpc::Done;
use crate::protocol::{Digest, Effect};
use crate::session::journal;
use crate::watch::Stop;
use crate::workspace::protected::Snapshot;

/// The folder of the records, and the prefix of their names, which keeps a key from being a reserved file name.
const FOLDER: &str = "steps";
const RECORD: &str = "step_";
/// The prefix of the names of the files that helpers of commands lock.
const COMMAND: &str = "run_";
/// The file with the identity of the records. No record has this name.
const IDENTITY: &str = "id";
/// The maximum length of a key.
const LONGEST: usize = 64;
/// How long the record of a finished step is kept.
const KEPT: Duration = Duration::from_hours(90 * 24);
/// How often to retry locking a file that is locked elsewhere.
pub(super) const LOCK_RETRY: Duration = Duration::from_millis(5);

/// The steps that a guest has recorded.
pub(super) struct Steps {
    state: PathBuf,
    /// The steps in progress or waiting in this process: their keys, and whether they were interrupted.
    going: Mutex<Vec<(String, Arc<AtomicBool>)>>,
    /// Set once this process has removed old records.
    swept: OnceLock<()>,
}

/// A step that was requested in this process and has not returned yet.
pub(super) struct RunningStep<'a> {
    steps: &'a Steps,
    ends: Arc<AtomicBool>,
}

/// The result of trying to lock the file of a step.
pub(super) enum LockResult {
    /// The file does not exist.
    Missing,
    /// Another process or connection has locked it.
    Elsewhere,
    /// It is locked now.
    Held(Box<LockedRecord>),
}

/// Whether `key` can be the key of a step.
pub(super) fn is_key(key: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
    (1..=LONGEST).contains(&key.len()) && key.bytes().all(fits)
}

impl Steps {
    /// Uses the records in deaddrop's own folder `state`, which must exist.
    pub(super) fn new(state: PathBuf) -> Self {
        Self { state, going: Mutex::default(), swept: OnceLock::new() }
    }

    /// The identity of these records: a random name, created on disk with the first request for it. If the records are
    /// lost, for example because a container was recreated, the identity is lost, too. From that the host
    /// learns that a key that is unknown here may have been begun nevertheless.
    pub(super) fn identity(&self) -> Result<String> {
        let path = self.file(IDENTITY, "");
        let name = self.make_folder().and_then(|()| self.read_or_make_identity(&path));
        name.map_err(|e| Error::io("read", &path, e))
    }

    fn read_or_make_identity(&self, path: &Path) -> io::Result<String> {
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = atomic::open_own(&mut options, path)?;
        // Another process holds the lock only for a moment.
        file.lock()?;
        let mut name = String::new();
        file.read_to_string(&mut name)?;
        if uuid::Uuid::try_parse(&name).is_ok() {
            return Ok(name);
        }
        // A torn identity was never reported to anybody.
        let name = uuid::Uuid::new_v4().simple().to_string();
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(name.as_bytes())?;
        file.sync_all()?;
        atomic::sync_folder(&self.state.join(FOLDER)).map_err(io::Error::other)?;
        Ok(name)
    }

    /// Registers a requested step. From now on it can be interrupted.
    pub(super) fn enter(&self, key: &str) -> RunningStep<'_> {
        let ends = Arc::default();
        self.going().push((key.to_owned(), Arc::clone(&ends)));
        RunningStep { steps: self, ends }
    }

    /// Interrupts a step, if it is in progress in this process.
    pub(super) fn interrupt(&self, key: &str) {
        for (_, ends) in self.going().iter().filter(|(going, _)| going == key) {
            ends.store(true, Ordering::Relaxed);
        }
        crate::runner::interrupt::check();
    }

    fn going(&self) -> MutexGuard<'_, Vec<(String, Arc<AtomicBool>)>> {
        self.going.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file that the helper of a step's command locks.
    pub(super) fn lock_of(&self, key: &str) -> PathBuf {
        self.file(COMMAND, key)
    }

    fn file(&self, kind: &str, key: &str) -> PathBuf {
        self.state.join(FOLDER).join(format!("{kind}{key}"))
    }

    /// Creates the folder of the records, if it is missing.
    fn make_folder(&self) -> io::Result<()> {
        match DirBuilder::new().mode(0o700).create(self.state.join(FOLDER)) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made.and_then(|()| atomic::sync_folder(&self.state).map_err(io::Error::other)),
        }
    }

    /// Tries to lock the file of a step. Creates it if `make` is set.
    pub(super) fn try_hold(&self, key: &str, make: bool) -> Result<LockResult> {
        let path = self.file(RECORD, key);
        let fail = |e| Error::io("open", &path, e);
        let mut options = File::options();
        options.read(true).write(true).create(make);
        let folder = if make { self.make_folder() } else { Ok(()) };
        match folder.and_then(|()| try_lock(&mut options, &path)) {
            Ok(Some(file)) => {
                LockedRecord::read(file, path).map(|held| LockResult::Held(Box::new(held)))
            }
            Ok(None) => Ok(LockResult::Elsewhere),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(LockResult::Missing),
            Err(e) => Err(fail(e)),
        }
    }

    /// Waits for the lock on the file of a step. Returns None if a stop is requested first.
    pub(super) fn hold(&self, key: &str, stop: &Stop) -> Result<Option<Box<LockedRecord>>> {
        loop {
            match self.try_hold(key, true)? {
                LockResult::Held(held) => return Ok(Some(held)),
                _ if stop.is_asked() => return Ok(None),
                _ => thread::sleep(LOCK_RETRY),
            }
        }
    }

    /// Whether a step's command has ended. When its process is killed, the command dies, too, but a moment
    /// later.
    pub(super) fn has_ended(&self, key: &str) -> Result<bool> {
        let path = self.lock_of(key);
        match try_lock(File::options().write(true), &path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(true),
            locked => locked.map(|file| file.is_some()).map_err(|e| Error::io("open", &path, e)),
        }
    }

    /// Removes the record of a step, unless the step is in progress.
    pub(super) fn forget(&self, key: &str) -> Result<()> {
        match self.try_hold(key, false)? {
            LockResult::Held(held) => self.remove(key, &held),
            LockResult::Missing | LockResult::Elsewhere => Ok(()),
        }
    }

    /// Removes the file of a step.
    pub(super) fn remove(&self, key: &str, held: &LockedRecord) -> Result<()> {
        self.end_of_command(key);
        // Remove the file while it is locked: those that wait for the lock notice that it is gone.
        fs::remove_file(&held.path).map_err(|e| Error::io("remove", &held.path, e))
    }

    /// Removes the lock file of a command that has ended and whose result is recorded.
    pub(super) fn end_of_command(&self, key: &str) {
        // If this fails, the file is removed together with the step.
        let _ = fs::remove_file(self.lock_of(key));
    }

    /// Visits all steps that are not locked.
    pub(super) fn each(&self, look: &mut dyn FnMut(&str, &mut LockedRecord)) {
        let Ok(entries) = fs::read_dir(self.state.join(FOLDER)) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let key = name.to_str().and_then(|name| name.strip_prefix(RECORD));
            let Some(key) = key.filter(|key| is_key(key)) else { continue };
            // An unreadable record is reported when the host asks for its step.
            if let Ok(LockResult::Held(mut held)) = self.try_hold(key, false) {
                look(key, &mut held);
            }
        }
    }

    /// Removes old records, once per process, except that of the step in the current request.
    pub(super) fn forget_old(&self, asked: &str) {
        self.swept.get_or_init(|| {
            self.each(&mut |key, held| {
                if key != asked && held.is_old() {
                    let _ = self.remove(key, held);
                }
            });
        });
    }
}

impl RunningStep<'_> {
    /// Whether the step was interrupted.
    pub(super) fn is_to_end(&self) -> bool {
        self.ends.load(Ordering::Relaxed)
    }
}

impl Drop for RunningStep<'_> {
    fn drop(&mut self) {
        self.steps.going().retain(|(_, ends)| !Arc::ptr_eq(ends, &self.ends));
    }
}

/// The first record: what is about to be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BeginRecord {
    /// Recorded because a file system may treat two keys as the same file name.
    pub(super) key: String,
    /// The digest of the operation as it was requested.
    pub(super) operation: Digest,
    /// The shell command, if the operation is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) command: Option<String>,
    /// The state of the protected names before the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) guard: Option<Snapshot>,
    /// None if the step ended without an effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) effect: Option<Effect>,
}

/// The locked file of a step.
#[derive(Debug)]
pub(super) struct LockedRecord {
    file: File,
    pub(super) path: PathBuf,
    /// The end of the last complete record, and the length known to be on disk.
    end: u64,
    synced: u64,
    pub(super) begun: Option<BeginRecord>,
    pub(super) done: Option<Done>,
}

impl LockedRecord {
    /// Reads a locked file.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub(super) fn read(mut file: File, path: PathBuf) -> Result<Self> {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|e| Error::io("read", &path, e))?;
        let damaged = || {
            let why = "it is damaged, or of another version, so whether the step was done is not known; look at what it did, then remove the file";
            Error::io("read", &path, io::Error::new(io::ErrorKind::InvalidData, why))
        };
        let records = journal::read(&bytes).map_err(|_| damaged())?;
        let mut payloads = records.payloads.iter();
        let begun = payloads.next().map(|payload| serde_json::from_str(payload)).transpose();
        let done = payloads.next().map(|payload| serde_json::from_str(payload)).transpose();
        let (begun, done) = (begun.map_err(|_| damaged())?, done.map_err(|_| damaged())?);
        let end = records.end as u64;
        Ok(Self { file, path, end, synced: 0, begun, done })
    }

    /// Writes the first record, and syncs it if there is an effect. After an error nothing is recorded.
    pub(super) fn begin(&mut self, begun: &BeginRecord) -> Result<()> {
        (self.end, self.synced, self.begun, self.done) = (0, 0, None, None);
        let noted = self.add(begun).and_then(|()| match &begun.effect {
            Some(_) => {
                self.file.sync_data().map_err(|e| Error::io("sync", &self.path, e))?;
                self.synced = self.end;
                atomic::sync_folder(self.path.parent().unwrap_or(Path::new(".")))
            }
            None => Ok(()),
        });
        match noted {
            Ok(()) => self.begun = Some(begun.clone()),
            // The first error is the one to report.
            Err(_) => {
                let _ = self.file.set_len(0);
                (self.end, self.synced) = (0, 0);
            }
        }
        noted
    }

    /// Writes the second record: the result.
    pub(super) fn finish(&mut self, done: &Done) -> Result<()> {
        self.add(done)?;
        self.done = Some(done.clone());
        Ok(())
    }

    fn add(&mut self, value: &impl Serialize) -> Result<()> {
        let add = || {
            let line = journal::line(self.end, self.synced, &serde_json::to_string(value)?);
            let mut file = &self.file;
            // Remove a torn record.
            file.set_len(self.end)?;
            file.seek(SeekFrom::Start(self.end))?;
            file.write_all(line.as_bytes())?;
            Ok(line.len() as u64)
        };
        self.end += add().map_err(|e: io::Error| Error::io("write", &self.path, e))?;
        Ok(())
    }

    /// Whether the step is done and its record is older than [`KEPT`]. A step that is not done is kept,
    /// because nothing else records that it was begun.
    pub(super) fn is_old(&self) -> bool {
        self.done.is_some() && age(&self.file).is_some_and(|age| age > KEPT)
    }
}

impl Drop for LockedRecord {
    fn drop(&mut self) {
        // A helper that is just starting may briefly share the open file, so closing it here
        // would not release the lock.
        let _ = self.file.unlock();
    }
}

/// Opens a file of deaddrop and locks it; None if it is locked elsewhere.
pub(super) fn try_lock(options: &mut OpenOptions, path: &Path) -> io::Result<Option<File>> {
    loop {
        let file = atomic::open_own(options, path)?;
        match file.try_lock() {
            Ok(()) if is_at(&file, path)? => return Ok(Some(file)),
            // The previous holder removed the file, and another process may have created it again.
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(e)) => return Err(e),
        }
    }
}

/// Whether `path` still leads to this file.
pub(super) fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let number = |found: Metadata| (found.dev(), found.ino());
    match fs::symlink_metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        there => Ok(number(there?) == number(file.metadata()?)),
    }
}
