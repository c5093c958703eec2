//! What happened in a session, a line a turn: `sessions/{id}.log`, JSON, made from the journal.

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
use crate::text::count;

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
    /// How many commands of the protocol it held.
    pub commands: usize,
    /// How many of them were work: neither words nor an end of the session. None of an older turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<usize>,
    /// How many of these ran a command of the shell.
    #[serde(default)]
    pub ran: usize,
    /// How many of them failed, were not run, or may have run in part.
    pub failed: usize,
    /// How many of those failed because deaddrop was stopped hard while they ran.
    #[serde(default)]
    pub interrupted: usize,
    /// Whether it completed the session.
    pub is_complete: bool,
    /// Whether deaddrop was stopped hard in the middle, and took the turn up again.
    pub recovered: bool,
    /// How many files and links it changed; None where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<usize>,
    /// Where all that it changed is recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub records: Vec<BlobId>,
    /// What changed beside that and is not kept, since rules leave it out; as far as that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignored: Option<Ignored>,
    /// The turns that it took back, by their sequences, where it was an undo.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undid: Vec<u32>,
    /// The undo that it took back, by its sequence, where it was a redo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redid: Option<u32>,
    /// The summary of the session that it took up again, where it was an undo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reopened: Option<String>,
}

impl Entry {
    /// That of a turn that came to this session; None where the turn has none: it waits for the person, or
    /// is of a run.
    pub fn of(begin: &Begin, session: &Session, recovered: bool) -> Option<Self> {
        if session.pending.is_some() || session.run.is_some() {
            return None;
        }
        let outcomes = || session.last_results.iter();
        let changed = session.changed.as_ref();
        let (turns, redid) = begin
            .undoing
            .as_ref()
            .map_or_else(Default::default, |undoing| (undoing.turns.clone(), undoing.redid));
        Some(Self {
            sequence: begin.session.sequence,
            at: session.updated_at,
            reply: begin.reply().0.to_owned(),
            commands: session.last_results.len(),
            operations: Some(outcomes().filter(|outcome| outcome.is_work()).count()),
            ran: outcomes().filter(|outcome| outcome.ran()).count(),
            failed: outcomes().filter(|outcome| !outcome.success()).count(),
            interrupted: outcomes().filter(|outcome| outcome.is_lost()).count(),
            is_complete: session.is_complete,
            recovered,
            changed: changed.filter(|changed| changed.not_kept.is_none()).map(|c| c.files),
            records: changed.map(|changed| changed.records.clone()).unwrap_or_default(),
            ignored: changed.and_then(|changed| changed.ignored.clone()),
            undid: if redid.is_none() { turns } else { Vec::new() },
            redid,
            reopened: begin.undoing.as_ref().and_then(|undoing| undoing.reopened.clone()),
        })
    }

    /// What the turn came to, in a few words: `3 operations (1 command)`.
    pub fn work(&self) -> String {
        match (self.operations, self.ran) {
            // Nobody counted them apart.
            (None, _) => count(self.commands, "command"),
            (Some(0), _) => "no operation".to_owned(),
            (Some(n), 0) => count(n, "operation"),
            (Some(n), ran) => format!("{} ({})", count(n, "operation"), count(ran, "command")),
        }
    }

    /// What was taken back, or done again, where the turn was that: a phrase.
    pub fn back(&self) -> Option<String> {
        match (self.redid, self.undid.as_slice()) {
            (Some(undo), _) => Some(format!("took undo {undo} back")),
            (None, []) => None,
            (None, turns) => {
                let turns: Vec<String> = turns.iter().map(u32::to_string).collect();
                Some(format!("undid {}", turns.join(", ")))
            }
        }
    }
}

/// What these turns changed that rules leave out, as far as that is known.
pub fn ignored(entries: &[Entry], turns: &[u32]) -> Option<Ignored> {
    let entries = entries.iter().filter(|entry| turns.contains(&entry.sequence));
    entries.filter_map(|entry| entry.ignored.clone()).reduce(Ignored::and)
}

/// The turns that were taken back and are not put back, by their sequences.
pub fn undone(entries: &[Entry]) -> BTreeSet<u32> {
    let stands: BTreeSet<u32> = standing(entries).done.iter().map(|done| done.sequence).collect();
    let turns = entries.iter().filter(|entry| entry.back().is_none());
    turns.map(|entry| entry.sequence).filter(|sequence| !stands.contains(sequence)).collect()
}

/// Which turns of a session stand.
#[derive(Debug, Default)]
pub struct Standing<'a> {
    /// Those whose changes stand, in order.
    pub done: Vec<&'a Entry>,
    /// The undos that a redo could take back, the last one last; each with the turns that it took back.
    pub undone: Vec<(&'a Entry, Vec<&'a Entry>)>,
    /// Those that later turns have made final, so that only a redo which names them takes them back.
    pub final_undos: Vec<(&'a Entry, Vec<&'a Entry>)>,
}

/// Tells from the turns of a session which of them stand. A turn after an undo makes it final, since what a
/// redo brings back is no more what stood there last; unless that turn is known to have changed nothing.
pub fn standing(entries: &[Entry]) -> Standing<'_> {
    let mut standing = Standing::default();
    for entry in entries {
        if !entry.undid.is_empty() {
            let undone = |done: &&Entry| entry.undid.contains(&done.sequence);
            let (back, done) = standing.done.into_iter().partition(undone);
            standing.done = done;
            standing.undone.push((entry, back));
        } else if let Some(undo) = entry.redid {
            for undone in [&mut standing.undone, &mut standing.final_undos] {
                if let Some(at) = undone.iter().rposition(|(e, _)| e.sequence == undo) {
                    standing.done.append(&mut undone.remove(at).1);
                }
            }
            standing.done.sort_by_key(|done| done.sequence);
        } else {
            standing.done.push(entry);
            if entry.changed.is_none() || !entry.records.is_empty() {
                standing.final_undos.append(&mut standing.undone);
            }
        }
    }
    standing
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
    let mut file = atomic::open_own(File::options().read(true).append(true).create(true), &path)
        .map_err(fail)?;
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

/// Gives a log those of these turns that it lacks, each in its place, and takes out what is torn. Gives how
/// many there were. All of it is on disk then.
///
/// # Errors
/// It cannot be read or written.
///
/// # Panics
/// Never: strings and numbers always become JSON.
pub fn put_right(folder: &Path, id: &str, turns: Vec<Entry>) -> Result<usize> {
    let path = path(folder, id);
    let bytes = match atomic::read_own(&path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
        bytes => bytes.map_err(|e| Error::io("read", &path, e))?,
    };
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| is_json(line));
    let mut lines: Vec<(Option<u32>, Vec<u8>)> = lines
        .map(|line| {
            let entry = serde_json::from_slice(line).ok();
            (entry.map(|entry: Entry| entry.sequence), line.to_owned())
        })
        .collect();
    let mut missing = 0;
    for turn in turns {
        let sequence = Some(turn.sequence);
        if lines.iter().any(|(known, _)| *known == sequence) {
            continue;
        }
        let at = lines.iter().position(|(known, _)| *known > sequence).unwrap_or(lines.len());
        let line = serde_json::to_vec(&turn).expect("strings and numbers become JSON");
        lines.insert(at, (sequence, line));
        missing += 1;
    }
    if missing > 0 {
        let text: Vec<u8> =
            lines.into_iter().flat_map(|(_, line)| [line, b"\n".to_vec()].concat()).collect();
        atomic::write_private(&path, &text)?;
    }
    Ok(missing)
}

fn is_json(line: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok()
}

/// Brings a log to disk, if there is one.
///
/// # Errors
/// It cannot be.
pub fn sync(folder: &Path, id: &str) -> Result<()> {
    let path = path(folder, id);
    match atomic::open_own(File::options().read(true), &path).and_then(|log| log.sync_all()) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::io("sync", &path, e)),
        _ => Ok(()),
    }
}

/// The turns of a session, in order. What a power loss has torn is left out.
pub fn read(folder: &Path, id: &str) -> Result<Vec<Entry>> {
    let path = path(folder, id);
    match atomic::read_own(&path) {
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
