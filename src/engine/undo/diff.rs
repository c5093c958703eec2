//! Shows what turns changed, from the log and the checkpoints, without the project's lock.

use super::gc;
use crate::blobs::BlobId;
use crate::engine::changes;
use crate::error::{Error, Result};
use crate::session::log::{self, LogEntry};
use crate::session::{Ignored, Session, TurnChanges};
use crate::settings::Config;
use crate::workspace::checkpoint::{CheckpointStore, TreeChange, TreeEntry, compose};
use crate::workspace::overlay::FileState;

/// The turns to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnSpan {
    /// The last turn.
    Last,
    /// The turn that answered this outbox.
    One(u32),
    /// The turns that answered the outboxes from the first number to the last, combined.
    From(u32, u32),
}

/// What turns changed.
#[derive(Debug)]
pub struct TurnDiff<'a> {
    /// The outbox that the first turn answered.
    pub first: u32,
    /// The outbox that the last turn answered.
    pub last: u32,
    /// Their combined changes, by path.
    pub changes: Vec<TreeChange>,
    /// The turns.
    turns: &'a [RecordedTurn],
    store: &'a CheckpointStore,
}

impl TurnDiff<'_> {
    /// A summary of the changes.
    pub fn summary(&self) -> TurnChanges {
        changes::describe(self.store, &self.changes, Vec::new())
    }

    /// The content of an entry; None for no entry or a folder.
    ///
    /// # Errors
    /// The content is not stored any more.
    pub fn content(&self, entry: Option<&TreeEntry>) -> Result<Option<FileState>> {
        Ok(match entry {
            None | Some(TreeEntry::Folder { .. }) => None,
            Some(TreeEntry::Link { target }) => Some(FileState::Link(target.clone())),
            Some(TreeEntry::NotStored { .. }) => Some(FileState::Large),
            Some(TreeEntry::File { blob, .. }) => {
                let bytes = self.store.blobs.read(blob)?.ok_or_else(|| gone(self.turn_of(blob)))?;
                Some(FileState::File(bytes))
            }
        })
    }

    /// The known changes of ignored files, which cannot be shown.
    pub fn ignored(&self) -> Option<Ignored> {
        self.turns.iter().filter_map(|turn| turn.ignored.clone()).reduce(Ignored::and)
    }

    /// The first turn whose record contains this content.
    fn turn_of(&self, content: &BlobId) -> u32 {
        let names = |turn: &&RecordedTurn| {
            let records = turn.records.as_deref().unwrap_or_default();
            let changes = self.store.read_composed(records).ok().flatten().unwrap_or_default();
            changes.iter().any(|change| change.blobs().any(|blob| blob == content))
        };
        self.turns.iter().find(names).map_or(self.last, |turn| turn.sequence)
    }
}

/// A turn and its records; None if nothing was recorded.
#[derive(Debug)]
struct RecordedTurn {
    sequence: u32,
    records: Option<Vec<BlobId>>,
    ignored: Option<Ignored>,
}

/// The turns of a session. Its log is read once, however many turns are shown.
#[derive(Debug)]
pub struct TurnDiffs {
    id: String,
    /// In their order.
    all: Vec<RecordedTurn>,
    store: CheckpointStore,
}

impl TurnDiffs {
    /// The turns of a session.
    ///
    /// # Errors
    /// The log cannot be read, or the changes of this session are never recorded here.
    pub fn read(config: &Config, session: &Session) -> Result<Self> {
        Self::of(config, session, &log::read(&config.sessions, &session.id)?)
    }

    /// The turns of a session with these log entries.
    ///
    /// # Errors
    /// The changes of this session are never recorded here.
    pub fn of(config: &Config, session: &Session, entries: &[LogEntry]) -> Result<Self> {
        if let Some(guest) = &config.guest {
            let guest = guest.label();
            return Err(in_guest(&guest));
        }
        if session.run.is_some() {
            return Err(not_of_runs(&session.stem()));
        }
        let known = |entry: &LogEntry| RecordedTurn {
            sequence: entry.sequence,
            records: entry.changed.map(|_| entry.records.clone()),
            ignored: entry.ignored.clone(),
        };
        let mut all: Vec<RecordedTurn> = entries.iter().map(known).collect();
        // The part of a turn that waits for a decision.
        if let (Some(changed), Some(_)) = (&session.changed, &session.pending) {
            let records = changed.not_kept.is_none().then(|| changed.records.clone());
            let ignored = changed.ignored.clone();
            all.push(RecordedTurn { sequence: session.sequence, records, ignored });
        }
        all.sort_by_key(|turn| turn.sequence);
        Ok(Self { id: session.id.clone(), all, store: gc::store(config) })
    }

    /// The changes of some turns. Those of several turns are combined, undos included.
    ///
    /// # Errors
    /// There is no such turn, or nothing was recorded of one of them.
    pub fn diff(&self, range: TurnSpan) -> Result<TurnDiff<'_>> {
        let (first, last) = match (range, self.all.last()) {
            (TurnSpan::Last, newest) => {
                newest.map_or((1, 0), |turn| (turn.sequence, turn.sequence))
            }
            (TurnSpan::One(wanted), _) => (wanted, wanted),
            (TurnSpan::From(first, last), _) => (first, last),
        };
        let begin = self.all.partition_point(|turn| turn.sequence < first);
        let end = self.all.partition_point(|turn| turn.sequence <= last);
        let turns = self.all.get(begin..end).unwrap_or_default();
        let (Some(RecordedTurn { sequence: first, .. }), Some(RecordedTurn { sequence: last, .. })) =
            (turns.first(), turns.last())
        else {
            return Err(self.no_such_turn(range));
        };
        let mut parts = Vec::new();
        for RecordedTurn { sequence, records, .. } in turns {
            let records = records.as_ref().ok_or_else(|| {
                Error::undo(format!(
                    "nothing was kept of what turn {sequence} changed, so it cannot be shown or taken back"
                ))
                .with_code("not-recorded")
            })?;
            parts.push(self.store.read_composed(records)?.ok_or_else(|| gone(*sequence))?);
        }
        let mut changes = compose(parts);
        changes.retain(|change| change.before != change.after);
        Ok(TurnDiff { first: *first, last: *last, changes, turns, store: &self.store })
    }

    fn no_such_turn(&self, range: TurnSpan) -> Error {
        let id = &self.id;
        Error::undo(match range {
            TurnSpan::One(n) if !self.all.is_empty() => {
                format!("session {id} has had no turn {n}; `deaddrop log` lists them")
            }
            TurnSpan::From(..) if !self.all.is_empty() => {
                format!("session {id} has had none of these turns; `deaddrop log` lists them")
            }
            _ => format!("session {id} has had no turn yet"),
        })
        .with_code("no-turn")
    }
}

/// The error for a run.
pub(super) fn not_of_runs(stem: &str) -> Error {
    Error::undo(format!(
        "{stem} is a run: nothing is kept of what `deaddrop ops run` changes, so it cannot be shown or taken back; use what is there, such as git"
    ))
    .with_code("not-recorded")
}

/// The error for a session in a guest.
pub(super) fn in_guest(guest: &str) -> Error {
    Error::undo(format!(
        "what a session changes in the guest '{guest}' is not kept here, so it cannot be shown or taken back; use what is there, such as git"
    ))
    .with_code("not-recorded")
}

/// The error for a turn whose record is gone.
pub(super) fn gone(sequence: u32) -> Error {
    Error::undo(format!(
        "the checkpoint of turn {sequence} is gone, so it can be neither shown nor taken back (checkpoint_max_bytes bounds what is kept)"
    ))
    .with_code("checkpoint-gone")
}
