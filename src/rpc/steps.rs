//! What is known of steps by their keys: a small file for each, which is held (locked) while the step
//! is being carried out, against other processes and other connections of this one. It has two records as those of
//! a [`journal`]. The first says what is about to be done, and is on disk before it is done; the second what it came
//! to. A last record that is torn was never written: without the first one nothing was done, without the second the
//! disk tells of a file, and a command counts as lost.

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

/// The folder of the files, and how their names begin: no key is a name that a system reserves.
const FOLDER: &str = "steps";
const RECORD: &str = "step_";
/// How the names of the files begin that the helper of a command holds.
const COMMAND: &str = "run_";
/// The file of what they are known by. No record is called so.
const IDENTITY: &str = "id";
/// No key is longer.
const LONGEST: usize = 64;
/// What nobody has asked about for so long is forgotten.
const KEPT: Duration = Duration::from_hours(90 * 24);
/// How often a file is tried for that somebody else holds.
pub(super) const SLICE: Duration = Duration::from_millis(5);

/// The steps that a guest knows of.
pub(super) struct Steps {
    state: PathBuf,
    /// What is being carried out here, or waited for: keys, and whether it is to end.
    going: Mutex<Vec<(String, Arc<AtomicBool>)>>,
    /// Done once in a process: what is old is forgotten.
    swept: OnceLock<()>,
}

/// A step that somebody in this process asked to be carried out.
pub(super) struct Going<'a> {
    steps: &'a Steps,
    ends: Arc<AtomicBool>,
}

/// Whether a step's file could be had.
pub(super) enum Taken {
    /// There is none.
    Missing,
    /// Somebody holds it.
    Elsewhere,
    /// It is held from here on.
    Held(Box<Held>),
}

/// Whether a step can be known by this.
pub(super) fn is_key(key: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
    (1..=LONGEST).contains(&key.len()) && key.bytes().all(fits)
}

impl Steps {
    /// Those that are kept in a folder of deaddrop's own, which is there.
    pub(super) fn new(state: PathBuf) -> Self {
        Self { state, going: Mutex::default(), swept: OnceLock::new() }
    }

    /// What these records are known by: a random name that lies among them, made and on disk when it is
    /// first asked for. Whoever loses them, as a container does that is made anew, loses it with them, and
    /// the host sees that a key which is not known here may have been begun all the same.
    pub(super) fn identity(&self) -> Result<String> {
        let path = self.file(IDENTITY, "");
        let name = self.make_folder().and_then(|()| self.read_or_make_identity(&path));
        name.map_err(|e| Error::io("read", &path, e))
    }

    fn read_or_make_identity(&self, path: &Path) -> io::Result<String> {
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = atomic::open_own(&mut options, path)?;
        // Whoever has it makes it in no time.
        file.lock()?;
        let mut name = String::new();
        file.read_to_string(&mut name)?;
        if uuid::Uuid::try_parse(&name).is_ok() {
            return Ok(name);
        }
        // One that is torn was told to nobody.
        let name = uuid::Uuid::new_v4().simple().to_string();
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(name.as_bytes())?;
        file.sync_all()?;
        atomic::sync_folder(&self.state.join(FOLDER)).map_err(io::Error::other)?;
        Ok(name)
    }

    /// A step is asked for: from here on it can be interrupted.
    pub(super) fn enter(&self, key: &str) -> Going<'_> {
        let ends = Arc::default();
        self.going().push((key.to_owned(), Arc::clone(&ends)));
        Going { steps: self, ends }
    }

    /// Ends a step, where it is being carried out here.
    pub(super) fn interrupt(&self, key: &str) {
        for (_, ends) in self.going().iter().filter(|(going, _)| going == key) {
            ends.store(true, Ordering::Relaxed);
        }
        crate::runner::interrupt::check();
    }

    fn going(&self) -> MutexGuard<'_, Vec<(String, Arc<AtomicBool>)>> {
        self.going.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file that the helper of a step's command holds.
    pub(super) fn lock_of(&self, key: &str) -> PathBuf {
        self.file(COMMAND, key)
    }

    fn file(&self, kind: &str, key: &str) -> PathBuf {
        self.state.join(FOLDER).join(format!("{kind}{key}"))
    }

    /// Makes the folder of the files, if it is missing.
    fn make_folder(&self) -> io::Result<()> {
        match DirBuilder::new().mode(0o700).create(self.state.join(FOLDER)) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made.and_then(|()| atomic::sync_folder(&self.state).map_err(io::Error::other)),
        }
    }

    /// Tries to hold the file of a step, which is made where that is wanted.
    pub(super) fn try_hold(&self, key: &str, make: bool) -> Result<Taken> {
        let path = self.file(RECORD, key);
        let fail = |e| Error::io("open", &path, e);
        let mut options = File::options();
        options.read(true).write(true).create(make);
        let folder = if make { self.make_folder() } else { Ok(()) };
        match folder.and_then(|()| try_lock(&mut options, &path)) {
            Ok(Some(file)) => Held::read(file, path).map(|held| Taken::Held(Box::new(held))),
            Ok(None) => Ok(Taken::Elsewhere),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Taken::Missing),
            Err(e) => Err(fail(e)),
        }
    }

    /// Holds the file of a step, once nobody else does; None where deaddrop is to stop before that.
    pub(super) fn hold(&self, key: &str, stop: &Stop) -> Result<Option<Box<Held>>> {
        loop {
            match self.try_hold(key, true)? {
                Taken::Held(held) => return Ok(Some(held)),
                _ if stop.is_asked() => return Ok(None),
                _ => thread::sleep(SLICE),
            }
        }
    }

    /// Whether a step's command has ended: that of a process that was killed dies with it, but not in
    /// the same moment.
    pub(super) fn has_ended(&self, key: &str) -> Result<bool> {
        let path = self.lock_of(key);
        match try_lock(File::options().write(true), &path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(true),
            locked => locked.map(|file| file.is_some()).map_err(|e| Error::io("open", &path, e)),
        }
    }

    /// Forgets a step, unless somebody carries it out.
    pub(super) fn forget(&self, key: &str) -> Result<()> {
        match self.try_hold(key, false)? {
            Taken::Held(held) => self.remove(key, &held),
            Taken::Missing | Taken::Elsewhere => Ok(()),
        }
    }

    /// Removes the file of a step.
    pub(super) fn remove(&self, key: &str, held: &Held) -> Result<()> {
        self.end_of_command(key);
        // While it is held: whoever waits for it sees that it is no more.
        fs::remove_file(&held.path).map_err(|e| Error::io("remove", &held.path, e))
    }

    /// A step's command has ended, and that is known.
    pub(super) fn end_of_command(&self, key: &str) {
        // Otherwise it goes with the step.
        let _ = fs::remove_file(self.lock_of(key));
    }

    /// Goes through those that nobody holds.
    pub(super) fn each(&self, look: &mut dyn FnMut(&str, &mut Held)) {
        let Ok(entries) = fs::read_dir(self.state.join(FOLDER)) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let key = name.to_str().and_then(|name| name.strip_prefix(RECORD));
            let Some(key) = key.filter(|key| is_key(key)) else { continue };
            // What cannot be read is told to whoever asks for it.
            if let Ok(Taken::Held(mut held)) = self.try_hold(key, false) {
                look(key, &mut held);
            }
        }
    }

    /// Forgets what is old, once in a process; never the step that is being asked about.
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

impl Going<'_> {
    /// Whether somebody wants it to end.
    pub(super) fn is_to_end(&self) -> bool {
        self.ends.load(Ordering::Relaxed)
    }
}

impl Drop for Going<'_> {
    fn drop(&mut self) {
        self.steps.going().retain(|(_, ends)| !Arc::ptr_eq(ends, &self.ends));
    }
}

/// What is about to be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Begun {
    /// A file system may take two keys for one.
    pub(super) key: String,
    /// Of the operation as it was asked for.
    pub(super) operation: Digest,
    /// What the shell is given, where it is a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) command: Option<String>,
    /// What stands under protected names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) guard: Option<Snapshot>,
    /// None where it came to something without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) effect: Option<Effect>,
}

/// The file of a step, held.
#[derive(Debug)]
pub(super) struct Held {
    file: File,
    pub(super) path: PathBuf,
    /// Where the last whole record ends, and up to where they are on disk.
    end: u64,
    synced: u64,
    pub(super) begun: Option<Begun>,
    pub(super) done: Option<Done>,
}

impl Held {
    /// Reads a file that is held.
    ///
    /// # Errors
    /// It cannot be read, or is damaged.
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

    /// Notes what is about to be done, which is on disk then if it has an effect. After an error nothing is noted.
    pub(super) fn begin(&mut self, begun: &Begun) -> Result<()> {
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
            // The error that counts is the first.
            Err(_) => {
                let _ = self.file.set_len(0);
                (self.end, self.synced) = (0, 0);
            }
        }
        noted
    }

    /// Adds what it came to.
    pub(super) fn finish(&mut self, done: &Done) -> Result<()> {
        self.add(done)?;
        self.done = Some(done.clone());
        Ok(())
    }

    fn add(&mut self, value: &impl Serialize) -> Result<()> {
        let add = || {
            let line = journal::line(self.end, self.synced, &serde_json::to_string(value)?);
            let mut file = &self.file;
            // What was torn goes.
            file.set_len(self.end)?;
            file.seek(SeekFrom::Start(self.end))?;
            file.write_all(line.as_bytes())?;
            Ok(line.len() as u64)
        };
        self.end += add().map_err(|e: io::Error| Error::io("write", &self.path, e))?;
        Ok(())
    }

    /// Whether it is done, and nobody has asked about it for long. Of one that is not done nobody else
    /// knows that it was begun.
    pub(super) fn is_old(&self) -> bool {
        self.done.is_some() && age(&self.file).is_some_and(|age| age > KEPT)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // A helper that is just being started has the file, too, for a moment, and closing it here
        // would not let go of it.
        let _ = self.file.unlock();
    }
}

/// Opens a file of deaddrop's own and locks it; None where somebody else holds it.
pub(super) fn try_lock(options: &mut OpenOptions, path: &Path) -> io::Result<Option<File>> {
    loop {
        let file = atomic::open_own(options, path)?;
        match file.try_lock() {
            Ok(()) if is_at(&file, path)? => return Ok(Some(file)),
            // Whoever held it has removed it, and another may have made it anew.
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(e)) => return Err(e),
        }
    }
}

/// Whether it is this file that has the path now.
pub(super) fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let number = |found: Metadata| (found.dev(), found.ino());
    match fs::symlink_metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        there => Ok(number(there?) == number(file.metadata()?)),
    }
}
