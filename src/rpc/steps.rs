//! What is known of steps by their keys: a small file for each, which is held (locked) while the step
//! is being carried out, against other processes and other connections of this one.
//!
//! A file has two lines, each a checksum and a value: what is about to be done, on disk before it is
//! done, and what it came to. A last line that is torn was never written: without the first one nothing
//! was done, without the second the disk tells of a file, and a command counts as lost.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime};

use cap_fs_ext::MetadataExt;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::atomic;
use crate::error::{Error, Result};
use crate::protocol::{Detail, Digest, Effect, Warning};
use crate::watch::Stop;
use crate::workspace::guard::Snapshot;

/// The folder of the files, and how their names begin: no key is a name that a system reserves.
const FOLDER: &str = "steps";
const RECORD: &str = "step_";
/// How the names of the files begin that the helper of a command holds.
const COMMAND: &str = "run_";
/// No key is longer.
const LONGEST: usize = 64;
/// What nobody has asked about for so long is forgotten.
const KEPT: Duration = Duration::from_hours(90 * 24);
/// How often a file is tried for that somebody else holds.
const SLICE: Duration = Duration::from_millis(5);

/// The steps that a guest knows of.
pub(super) struct Steps {
    state: PathBuf,
    /// What is being carried out here, or waited for: whether it is to end, and by how many.
    going: Mutex<BTreeMap<String, (Arc<AtomicBool>, usize)>>,
    /// Done once in a process: what an earlier one left.
    swept: OnceLock<()>,
}

/// A step that somebody in this process asked to be carried out.
pub(super) struct Going<'a> {
    steps: &'a Steps,
    key: &'a str,
    ends: Arc<AtomicBool>,
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

/// What it came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Done {
    pub(super) detail: Detail,
    pub(super) warnings: Vec<Warning>,
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

/// The file of a step, held.
#[derive(Debug)]
pub(super) struct Held {
    file: File,
    path: PathBuf,
    /// Where the last whole line ends.
    end: usize,
    pub(super) begun: Option<Begun>,
    pub(super) done: Option<Done>,
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

    /// A step is asked for: from here on it can be interrupted.
    pub(super) fn enter<'a>(&'a self, key: &'a str) -> Going<'a> {
        let mut going = self.going();
        let (ends, count) = going.entry(key.to_owned()).or_default();
        *count += 1;
        Going { steps: self, key, ends: Arc::clone(ends) }
    }

    /// Ends a step, where it is being carried out here.
    pub(super) fn interrupt(&self, key: &str) {
        if let Some((ends, _)) = self.going().get(key) {
            ends.store(true, Ordering::Relaxed);
        }
    }

    fn going(&self) -> MutexGuard<'_, BTreeMap<String, (Arc<AtomicBool>, usize)>> {
        self.going.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file that the helper of a step's command holds.
    pub(super) fn lock_of(&self, key: &str) -> PathBuf {
        self.state.join(FOLDER).join(format!("{COMMAND}{key}"))
    }

    fn path_of(&self, key: &str) -> PathBuf {
        self.state.join(FOLDER).join(format!("{RECORD}{key}"))
    }

    /// Tries to hold the file of a step, which is made where that is wanted.
    pub(super) fn try_hold(&self, key: &str, make: bool) -> Result<Taken> {
        let path = self.path_of(key);
        let fail = |e| Error::io("open", &path, e);
        let mut options = File::options();
        options.read(true).write(true).create(make);
        // It holds commands, and what files held.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        loop {
            let file = match options.open(&path) {
                Err(e) if e.kind() == io::ErrorKind::NotFound && make => {
                    self.make_folder()?;
                    options.open(&path).map_err(fail)?
                }
                Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Taken::Missing),
                other => other.map_err(fail)?,
            };
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(Taken::Elsewhere),
                Err(TryLockError::Error(e)) => return Err(Error::io("lock", &path, e)),
            }
            // Whoever held it may have removed it, and another made it anew.
            if is_at(&file, &path).map_err(fail)? {
                return Held::read(file, path).map(|held| Taken::Held(Box::new(held)));
            }
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

    /// Waits for the end of a step's command: that of a process that was killed dies with it, but not
    /// in the same moment. Gives false where deaddrop is to stop before that.
    pub(super) fn wait_for_command(&self, key: &str, stop: &Stop) -> Result<bool> {
        let path = self.lock_of(key);
        let file = match File::options().write(true).open(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(true),
            other => other.map_err(|e| Error::io("open", &path, e))?,
        };
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(true),
                Err(TryLockError::Error(e)) => return Err(Error::io("lock", &path, e)),
                Err(TryLockError::WouldBlock) if stop.is_asked() => return Ok(false),
                Err(TryLockError::WouldBlock) => thread::sleep(SLICE),
            }
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
        // Else it goes with the step.
        let _ = fs::remove_file(self.lock_of(key));
    }

    /// Goes once through what earlier processes left and nobody holds: removes what is old, and gives
    /// the rest to `look`.
    pub(super) fn sweep(&self, look: &dyn Fn(&str, &mut Held)) {
        self.swept.get_or_init(|| {
            let Ok(entries) = fs::read_dir(self.state.join(FOLDER)) else { return };
            for entry in entries.flatten() {
                let name = entry.file_name();
                let key = name.to_str().and_then(|name| name.strip_prefix(RECORD));
                let Some(key) = key.filter(|key| is_key(key)) else { continue };
                // What cannot be read is told to whoever asks for it.
                let Ok(Taken::Held(mut held)) = self.try_hold(key, false) else { continue };
                if held.is_old() {
                    let _ = self.remove(key, &held);
                } else {
                    look(key, &mut held);
                }
            }
        });
    }

    fn make_folder(&self) -> Result<()> {
        let path = self.state.join(FOLDER);
        let mut builder = DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        match builder.create(&path) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
                Err(Error::io("make the folder", &path, e))
            }
            _ => atomic::sync_folder(&self.state),
        }
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
        let mut going = self.steps.going();
        if let Some((_, count)) = going.get_mut(self.key) {
            *count -= 1;
            if *count == 0 {
                going.remove(self.key);
            }
        }
    }
}

impl Held {
    fn read(mut file: File, path: PathBuf) -> Result<Self> {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|e| Error::io("read", &path, e))?;
        let mut end = 0;
        let lines = next(&bytes, &mut end).and_then(|begun: Option<Begun>| {
            let done = if begun.is_some() { next(&bytes, &mut end)? } else { None };
            Ok((begun, done))
        });
        let (begun, done) = lines.map_err(|Damaged| {
            let why = "it is damaged, or of another version, so whether the step was done is not known; look at what it did, then remove the file";
            Error::io("read", &path, io::Error::new(io::ErrorKind::InvalidData, why))
        })?;
        Ok(Self { file, path, end, begun, done })
    }

    /// Notes what is about to be done, which is on disk then. After an error nothing is noted.
    pub(super) fn begin(&mut self, begun: &Begun) -> Result<()> {
        let noted = self.note(begun).and_then(|()| {
            self.file.sync_data().map_err(|e| Error::io("sync", &self.path, e))?;
            atomic::sync_folder(self.path.parent().unwrap_or(Path::new(".")))
        });
        if noted.is_err() {
            // The error that counts is the first.
            let _ = self.file.set_len(0);
            (self.end, self.begun) = (0, None);
        }
        noted
    }

    /// The same without waiting for the disk: for what has no effect.
    pub(super) fn note(&mut self, begun: &Begun) -> Result<()> {
        (self.end, self.begun, self.done) = (0, None, None);
        self.add(&line(0, begun))?;
        self.begun = Some(begun.clone());
        Ok(())
    }

    /// Adds what it came to.
    pub(super) fn finish(&mut self, done: &Done) -> Result<()> {
        self.add(&line(self.end, done))?;
        self.done = Some(done.clone());
        Ok(())
    }

    fn add(&mut self, line: &str) -> Result<()> {
        let add = || {
            let mut file = &self.file;
            // What was torn goes.
            file.set_len(self.end as u64)?;
            file.seek(SeekFrom::Start(self.end as u64))?;
            file.write_all(line.as_bytes())
        };
        add().map_err(|e| Error::io("write", &self.path, e))?;
        self.end += line.len();
        Ok(())
    }

    fn is_old(&self) -> bool {
        let written = self.file.metadata().and_then(|found| found.modified()).ok();
        let age = written.and_then(|written| SystemTime::now().duration_since(written).ok());
        age.is_some_and(|age| age > KEPT)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // A helper that is just being started has the file, too, for a moment, and closing it here
        // would not let go of it.
        let _ = self.file.unlock();
    }
}

/// Whether it is this file that has the path now.
pub(super) fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let number = |file: File| -> io::Result<(u64, u64)> {
        let found = cap_std::fs::File::from_std(file).metadata()?;
        Ok((found.dev(), found.ino()))
    };
    match File::open(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        there => Ok(number(there?)? == number(file.try_clone()?)?),
    }
}

fn checksum(place: usize, payload: &str) -> Digest {
    Digest::of(format!("{place} {payload}").as_bytes())
}

/// A line that begins at this place of a file.
///
/// # Panics
/// Never: texts and numbers always become JSON.
fn line<T: Serialize>(place: usize, value: &T) -> String {
    let payload = serde_json::to_string(value).expect("texts and numbers become JSON");
    format!("{} {payload}\n", checksum(place, &payload).as_str())
}

/// A line that was written whole, and is not what it was.
struct Damaged;

/// The line at `at`, which is then behind it; None where it was never written whole.
fn next<T: DeserializeOwned>(bytes: &[u8], at: &mut usize) -> Result<Option<T>, Damaged> {
    let rest = &bytes[*at..];
    let Some(end) = memchr::memchr(b'\n', rest) else { return Ok(None) };
    let text = std::str::from_utf8(&rest[..end]).ok();
    let good = text
        .and_then(|text| text.split_once(' '))
        .filter(|(sum, payload)| checksum(*at, payload).as_str() == *sum);
    let Some((_, payload)) = good else {
        // A power loss leaves zeros where a sector was not written.
        return if rest.contains(&0) { Ok(None) } else { Err(Damaged) };
    };
    let value = serde_json::from_str(payload).map_err(|_| Damaged)?;
    *at += end + 1;
    Ok(Some(value))
}
