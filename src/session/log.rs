//! The log of a session, `sessions/{id}.log`: one line of JSON for each turn. It is derived from the journal.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::record::Begin;
use super::{Ignored, Session};
use crate::atomic;
use crate::blobs::BlobId;
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::protocol::Outcome;
use crate::text::count;

/// One turn.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogEntry {
    /// The outbox that was answered.
    pub sequence: u32,
    /// When the turn was committed.
    pub at: Timestamp,
    /// The file name of the reply.
    pub reply: String,
    /// The number of protocol commands in the reply.
    pub commands: usize,
    /// How many of the commands were neither messages nor `[DONE]`.
    #[serde(default)]
    pub operations: usize,
    /// How many of the operations ran a shell command.
    #[serde(default)]
    pub ran: usize,
    /// How many of the commands failed.
    pub failed: usize,
    /// How many of the failed commands were running when deaddrop was killed.
    #[serde(default)]
    pub interrupted: usize,
    /// Whether the turn completed the session.
    pub is_complete: bool,
    /// Whether the turn was continued after deaddrop was killed.
    pub recovered: bool,
    /// The number of files and links that the turn changed; None if unknown.
    pub changed: Option<usize>,
    /// The checkpoint records of these changes.
    #[serde(default)]
    pub records: Vec<BlobId>,
    /// Changes of ignored files, if known.
    pub ignored: Option<Ignored>,
    /// The turns that an undo reversed, by their sequence numbers.
    #[serde(default)]
    pub undid: Vec<u32>,
    /// The undo that a redo reversed, by its sequence number.
    pub redid: Option<u32>,
    /// The summary of the session that an undo reopened.
    pub reopened: Option<String>,
}

impl LogEntry {
    /// The entry of a turn; `session` is the session after the turn. None if the turn waits for the person, or is a
    /// run, which has no log.
    pub fn of(begin: &Begin, session: &Session, recovered: bool) -> Option<Self> {
        if session.pending.is_some() || session.run.is_some() {
            return None;
        }
        let (changed, undoing) = (session.changed.as_ref(), begin.undoing.as_ref());
        let undo = undoing.filter(|undoing| undoing.redid.is_none());
        Some(Self {
            sequence: begin.session.sequence,
            at: session.updated_at,
            reply: begin.reply().to_owned(),
            is_complete: session.is_complete,
            recovered,
            changed: changed.filter(|it| it.not_kept.is_none()).map(|it| it.files),
            records: changed.map(|it| it.records.clone()).unwrap_or_default(),
            ignored: changed.and_then(|it| it.ignored.clone()),
            undid: undo.map(|it| it.turns.clone()).unwrap_or_default(),
            redid: undoing.and_then(|it| it.redid),
            reopened: undoing.and_then(|it| it.reopened.clone()),
            ..Self::counting(&session.last_results)
        })
    }

    /// An entry with the counts of these outcomes.
    pub fn counting(outcomes: &[Outcome]) -> Self {
        let count = |test: fn(&Outcome) -> bool| outcomes.iter().filter(|one| test(one)).count();
        Self {
            commands: outcomes.len(),
            operations: count(Outcome::is_work),
            ran: count(Outcome::ran),
            failed: count(|outcome| !outcome.success()),
            interrupted: count(Outcome::is_lost),
            ..Self::default()
        }
    }

    /// Describes the turn's operations: `3 operations (1 command)`. A failed `[DONE]` counts as an operation.
    pub fn work(&self) -> String {
        match (self.operations.max(self.failed), self.ran) {
            (0, _) => "no operation".to_owned(),
            (n, 0) => count(n, "operation"),
            (n, ran) => format!("{} ({})", count(n, "operation"), count(ran, "command")),
        }
    }

    /// Describes what an undo or a redo reversed; None for other turns.
    pub fn back(&self) -> Option<String> {
        if let Some(undo) = self.redid {
            return Some(format!("took undo {undo} back"));
        }
        let turns: Vec<String> = self.undid.iter().map(u32::to_string).collect();
        (!turns.is_empty()).then(|| format!("undid {}", turns.join(", ")))
    }
}

/// The changes of ignored files in these turns, if known.
pub fn ignored(entries: &[LogEntry], turns: &[u32]) -> Option<Ignored> {
    let entries = entries.iter().filter(|entry| turns.contains(&entry.sequence));
    entries.filter_map(|entry| entry.ignored.clone()).reduce(Ignored::and)
}

/// The turns whose changes are in effect, in order.
pub fn done(entries: &[LogEntry]) -> Vec<&LogEntry> {
    let undone = undone(entries);
    let is_done = |entry: &&LogEntry| entry.back().is_none() && !undone.contains(&entry.sequence);
    entries.iter().filter(is_done).collect()
}

/// The turns that are undone, by their sequence numbers.
pub fn undone(entries: &[LogEntry]) -> BTreeSet<u32> {
    undos(entries).iter().flat_map(|undo| &undo.undid).copied().collect()
}

/// The undos that no redo has reversed, in order.
pub fn undos(entries: &[LogEntry]) -> Vec<&LogEntry> {
    let redone: BTreeSet<u32> = entries.iter().filter_map(|entry| entry.redid).collect();
    let undos = entries.iter().filter(|entry| !entry.undid.is_empty());
    undos.filter(|undo| !redone.contains(&undo.sequence)).collect()
}

/// Appends the entry of a turn.
pub fn add(folder: &Path, id: &str, entry: LogEntry) -> Result<()> {
    // The line of a recovered turn may already exist, or be torn.
    if entry.recovered {
        return restore(folder, id, vec![entry]).map(drop);
    }
    let path = path(folder, id);
    let append = || -> io::Result<()> {
        let mut log =
            atomic::open_own(File::options().read(true).append(true).create(true), &path)?;
        // If the last line is torn, begin a new line.
        let mut last = [b'\n'];
        if log.seek(SeekFrom::End(-1)).is_ok() {
            log.read_exact(&mut last)?;
        }
        let end: &[u8] = if last == *b"\n" { b"" } else { b"\n" };
        log.write_all(&[end, &to_line(&entry)].concat())
    };
    append().map_err(|e| Error::io("write", &path, e))
}

/// Adds the turns that are missing from a log, and returns their number. If there were any, or the last line was
/// torn, the log is rewritten: sorted by sequence number, without torn lines, and on disk.
pub fn restore(folder: &Path, id: &str, mut turns: Vec<LogEntry>) -> Result<usize> {
    let text = read_text(folder, id)?;
    let mut entries = parse(&text);
    turns.retain(|turn| entries.iter().all(|entry| entry.sequence != turn.sequence));
    let missing = turns.len();
    if missing > 0 || text.last().is_some_and(|last| *last != b'\n') {
        entries.append(&mut turns);
        entries.sort_by_key(|entry| entry.sequence);
        let text: Vec<u8> = entries.iter().flat_map(to_line).collect();
        atomic::write_private(&path(folder, id), &text)?;
    }
    Ok(missing)
}

/// Syncs a log to disk, if it exists.
pub fn sync(folder: &Path, id: &str) -> Result<()> {
    let path = path(folder, id);
    match atomic::open_own(File::options().read(true), &path).and_then(|log| log.sync_all()) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::io("sync", &path, e)),
        _ => Ok(()),
    }
}

/// The turns of a session, in order. Skips lines that were torn by a power loss.
pub fn read(folder: &Path, id: &str) -> Result<Vec<LogEntry>> {
    Ok(parse(&read_text(folder, id)?))
}

fn parse(text: &[u8]) -> Vec<LogEntry> {
    let lines = text.split(|byte| *byte == b'\n');
    lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

fn read_text(folder: &Path, id: &str) -> Result<Vec<u8>> {
    let path = path(folder, id);
    match atomic::read_own(&path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        text => text.map_err(|e| Error::io("read", &path, e)),
    }
}

fn to_line(entry: &LogEntry) -> Vec<u8> {
    let mut line = serde_json::to_vec(entry).expect("strings and numbers become JSON");
    line.push(b'\n');
    line
}

fn path(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.log"))
}
