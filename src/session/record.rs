//! The records of the journal: each turn from its beginning to its end.
//!
//! ```text
//! turn = Begin { Noted | Guard | Intent Result | Result } Commit End
//! undo = Begin { Restoring } Restored Commit End
//! ```
//!
//! A turn that stops to ask the person is two of these: the session in the first Commit contains the question, and the
//! second Begin the decision. `State` occurs between turns, after the person changed a session. Only the last turn can be
//! unfinished, since there is one writer.
//!
//! `Noted` precedes the Intents that it protects, and `Guard` the Intent of the first command. The plan of
//! an undo or a redo is on disk before its Begin, and every Restoring before the first change. A later
//! Result of the same step replaces the earlier one.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::log::LogEntry;
use super::{ApprovalDecision, Ignored, Session};
use crate::blobs::BlobId;
use crate::protocol::{Detail, Digest, Effect, Outcome, Step};
use crate::settings::Policy;
use crate::workspace::checkpoint::CheckpointNote;
use crate::workspace::protected::Snapshot;

/// One record of the journal. Steps and changes are counted from 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the fields are named after their types")]
pub enum JournalRecord {
    /// A session as the person made or changed it.
    State(Box<Session>),
    /// A reply is claimed, and is executed from here on.
    Begin(Box<Begin>),
    /// A step is about to have this effect.
    Intent { step: usize, effect: Effect },
    /// What was under protected names before the first command.
    Guard(Box<Snapshot>),
    /// What is stored of the places that are about to change.
    Noted(Box<CheckpointNote>),
    /// A change of the undo plan is about to be made at this path.
    Restoring { change: usize, path: String },
    /// The undo plan was carried out, except for these paths, each with the reason.
    Restored { left: Vec<(String, String)> },
    /// A step has this outcome.
    Result { step: usize, outcome: Box<Outcome> },
    /// The turn is committed: everything after this can be repeated.
    Commit(Box<Commit>),
    /// The turn is completed.
    End,
}

/// The beginning of a turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Begin {
    /// The session before the turn.
    pub session: Session,
    /// The file name of the reply.
    pub name: String,
    /// Its file name once claimed.
    pub claim: String,
    /// Identifies the file.
    pub file: FileId,
    /// The text of the file.
    pub text: String,
    /// The steps, as they were parsed then. A turn that continues after a question has them in the session.
    pub steps: Vec<Step>,
    /// The policy of the turn.
    pub policy: Option<Policy>,
    /// The folder of the file.
    #[serde(default)]
    pub folder: Origin,
    /// The guest that executes the turn; None for this machine.
    pub guest: Option<String>,
    /// The decision that continues the turn. Then the file and its text, if any, are those of the decision.
    #[serde(rename = "verdict")]
    pub decision: Option<ApprovalDecision>,
    /// Present if the turn is an undo or a redo.
    pub undoing: Option<Undoing>,
}

/// An undo or a redo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undoing {
    /// The plan: the new state of each place.
    pub plan: BlobId,
    /// The turns that are undone or redone, by their sequence numbers.
    pub turns: Vec<u32>,
    /// The undo that a redo reverses.
    pub redid: Option<u32>,
    /// The person's reason.
    pub reason: Option<String>,
    /// The summary of a complete session that this reopens.
    pub reopened: Option<String>,
    /// The summary of a session that this completes again.
    pub completes: Option<String>,
    /// Changes of ignored files in these turns, which stay.
    pub ignored: Option<Ignored>,
}

/// The folder of a file that began a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Origin {
    /// The inbox.
    #[default]
    Inbox,
    /// The folder of approvals.
    Approvals,
    /// There is no file.
    Nowhere,
}

impl Begin {
    /// All steps of the turn.
    pub fn steps(&self) -> &[Step] {
        let pending = self.session.pending.as_ref().filter(|_| self.decision.is_some());
        pending.map_or(&self.steps, |pending| &pending.steps)
    }

    /// The outcomes from before the question, by step. Files to show are read again at the end.
    pub fn known(&self) -> BTreeMap<usize, Outcome> {
        let earlier = self.session.pending.iter().flat_map(|pending| &pending.outcomes);
        let is_final = |outcome: &Outcome| !matches!(outcome.detail, Detail::ReadLater { .. });
        earlier.cloned().enumerate().filter(|(_, outcome)| is_final(outcome)).collect()
    }

    /// Whether it only records the decision about a run, which is resumed later.
    pub fn is_decision_alone(&self) -> bool {
        self.session.run.is_some() && self.decision.is_some() && self.session.question().is_some()
    }

    /// The file name of the reply.
    pub fn reply(&self) -> &str {
        self.session.pending.as_ref().map_or(&self.name, |pending| &pending.reply)
    }
}

/// Identifies a file in the inbox, independently of its name.
///
/// The device number is not part of it, since it may change when the machine starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FileId {
    /// The inode number.
    pub inode: u64,
    /// The time of the last write, in nanoseconds since 1970.
    pub written: i64,
    /// The length in bytes.
    pub length: u64,
}

/// The commit of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Commit {
    /// The session after the turn.
    pub session: Session,
    /// The next outbox; None if the session is complete or waits for the person.
    pub outbox: Option<PreparedOutbox>,
    /// Whether the turn was continued after deaddrop had been killed.
    pub recovered: bool,
}

impl Commit {
    /// Whether the session is valid, and the temporary name of the outbox is a plain file name.
    fn is_valid(&self) -> bool {
        let temporary = self.outbox.as_ref().map(|outbox| Path::new(&outbox.temporary));
        let is_name = |path: &Path| path.file_name() == Some(path.as_os_str());
        self.session.is_valid() && temporary.is_none_or(is_name)
    }
}

/// An outbox that is written under a temporary name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreparedOutbox {
    /// The temporary name.
    pub temporary: String,
    /// Identifies the content.
    pub digest: Digest,
}

/// The state that the records of a journal describe.
#[derive(Debug, Default)]
pub struct History {
    /// The newest state of each session in the journal.
    pub states: BTreeMap<String, Session>,
    /// The files that began a turn.
    pub files: Vec<FileId>,
    /// The log entries of all finished turns, by session.
    pub logged: BTreeMap<String, Vec<LogEntry>>,
    /// The turn that has no End.
    pub unfinished: Option<UnfinishedTurn>,
}

/// A turn that was interrupted by a hard stop.
#[derive(Debug, Default)]
pub struct UnfinishedTurn {
    /// Its Begin record.
    pub begin: Begin,
    /// The intended effects, by step.
    pub intents: BTreeMap<usize, Effect>,
    /// What was under protected names before the first command.
    pub guard: Option<Snapshot>,
    /// What is stored of the places that were about to change.
    pub noted: Vec<CheckpointNote>,
    /// The known outcomes, by step.
    pub results: BTreeMap<usize, Outcome>,
    /// Its Commit record, if it has one.
    pub commit: Option<Commit>,
}

impl History {
    /// Reads the records of a journal.
    ///
    /// # Errors
    /// The number of the first record that violates the grammar, counted from 0.
    pub fn read<T: AsRef<str>>(payloads: &[T]) -> Result<Self, usize> {
        let mut history = Self::default();
        for (n, payload) in payloads.iter().enumerate() {
            let record = serde_json::from_str(payload.as_ref()).ok();
            record.and_then(|record| history.add(record)).ok_or(n)?;
        }
        Ok(history)
    }

    /// Adds a record; None if it violates the grammar, or if a session has no valid ID or secret, since file names are
    /// derived from them.
    fn add(&mut self, record: JournalRecord) -> Option<()> {
        match (record, &mut self.unfinished) {
            (JournalRecord::State(session), None) if session.is_valid() => {
                self.states.insert(session.id.clone(), *session);
            }
            (JournalRecord::Begin(begin), None) if begin.session.is_valid() => {
                self.files.push(begin.file);
                self.unfinished = Some(UnfinishedTurn { begin: *begin, ..<_>::default() });
            }
            (JournalRecord::Commit(commit), Some(turn)) if commit.is_valid() => {
                self.states.insert(commit.session.id.clone(), commit.session.clone());
                turn.commit = Some(*commit);
            }
            (JournalRecord::End, Some(UnfinishedTurn { begin, commit: Some(commit), .. })) => {
                if let Some(entry) = LogEntry::of(begin, &commit.session, commit.recovered) {
                    self.logged.entry(commit.session.id.clone()).or_default().push(entry);
                }
                self.unfinished = None;
            }
            (_, None | Some(UnfinishedTurn { commit: Some(_), .. })) => return None,
            (JournalRecord::Intent { step, effect }, Some(turn)) => {
                turn.intents.insert(step, effect);
            }
            (JournalRecord::Guard(snapshot), Some(turn)) => turn.guard = Some(*snapshot),
            (JournalRecord::Noted(noted), Some(turn)) => turn.noted.push(*noted),
            (JournalRecord::Result { step, outcome }, Some(turn)) => {
                turn.results.insert(step, super::state::upgrade(*outcome));
            }
            // Recovery examines the places themselves.
            (JournalRecord::Restoring { .. } | JournalRecord::Restored { .. }, Some(turn))
                if turn.begin.undoing.is_some() => {}
            _ => return None,
        }
        Some(())
    }
}

impl JournalRecord {
    /// The record as one line of JSON.
    ///
    /// # Panics
    /// Never: strings and numbers always become JSON.
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).expect("strings and numbers become JSON")
    }
}
