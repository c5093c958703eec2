//! What happened in a session, a line a turn: `sessions/{id}.log`, JSON, made from the journal.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::error::{Error, Result};

/// One turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// The outbox that was answered.
    pub sequence: u32,
    /// When the turn was decided.
    pub at: Timestamp,
    /// The name that the reply was dropped under.
    pub reply: String,
    /// How many commands it held.
    pub commands: usize,
    /// How many of them failed, were not run, or may have run in part.
    pub failed: usize,
    /// How many of those failed because deaddrop was stopped hard while they ran.
    #[serde(default)]
    pub interrupted: usize,
    /// Whether it completed the session.
    pub is_complete: bool,
    /// Whether deaddrop was stopped hard in the middle, and took the turn up again.
    pub recovered: bool,
}

/// Adds a turn, unless it stands there already.
///
/// # Panics
/// Never: strings and numbers always become JSON.
pub fn add(folder: &Path, id: &str, entry: &Entry) -> Result<()> {
    let path = path(folder, id);
    let mut line = serde_json::to_string(entry).expect("strings and numbers become JSON");
    line.push('\n');
    let fail = |e| Error::io("write", &path, e);
    if entry.recovered && read(folder, id)?.iter().any(|known| known.sequence == entry.sequence) {
        return Ok(());
    }
    let mut file =
        File::options().read(true).append(true).create(true).open(&path).map_err(fail)?;
    // What is torn must not swallow what follows.
    let mut last = [b'\n'];
    if file.seek(SeekFrom::End(-1)).is_ok() {
        file.read_exact(&mut last).map_err(fail)?;
    }
    if last != [b'\n'] {
        line.insert(0, '\n');
    }
    file.write_all(line.as_bytes()).map_err(fail)
}

/// The turns of a session, in order. What a power loss has torn is left out.
pub fn read(folder: &Path, id: &str) -> Result<Vec<Entry>> {
    let path = path(folder, id);
    match fs::read(&path) {
        Ok(text) => Ok(text
            .split(|byte| *byte == b'\n')
            .filter_map(|line| serde_json::from_slice(line).ok())
            .collect()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(e) => Err(Error::io("read", &path, e)),
    }
}

fn path(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.log"))
}
