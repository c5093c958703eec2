//! The file of a step: two records as those of a [`journal`]. The first says what is about to be done, and is on
//! disk before it is done; the second what it came to. A last record that is torn was never written: without
//! the first one nothing was done, without the second the disk tells of a file, and a command counts as lost.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::scratch_dir::age;
use crate::atomic;
use crate::error::{Error, Result};
use crate::protocol::jsonrpc::Done;
use crate::protocol::{Digest, Effect};
use crate::session::journal;
use crate::workspace::protected::Snapshot;

/// What nobody has asked about for so long is forgotten.
const KEPT: Duration = Duration::from_hours(90 * 24);

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

    /// Notes what is about to be done, which is on disk then. After an error nothing is noted.
    pub(super) fn begin(&mut self, begun: &Begun) -> Result<()> {
        let noted = self.note(begun).and_then(|()| {
            self.file.sync_data().map_err(|e| Error::io("sync", &self.path, e))?;
            self.synced = self.end;
            atomic::sync_folder(self.path.parent().unwrap_or(Path::new(".")))
        });
        if noted.is_err() {
            // The error that counts is the first.
            let _ = self.file.set_len(0);
            (self.end, self.synced, self.begun) = (0, 0, None);
        }
        noted
    }

    /// The same without waiting for the disk: for what has no effect.
    pub(super) fn note(&mut self, begun: &Begun) -> Result<()> {
        (self.end, self.synced, self.begun, self.done) = (0, 0, None, None);
        self.add(begun)?;
        self.begun = Some(begun.clone());
        Ok(())
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
