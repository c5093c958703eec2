//! The records of the journal: each turn from its beginning to its end.
//!
//! ```text
//! turn = Begin { Noted | Guard | Intent Result | Result } Commit End
//! undo = Begin { Restoring } Restored Commit End
//! ```
//! A turn that stops to ask the person consists of two such turns: the first Commit contains a session with the
//! question, and the second Begin contains the decision. `State` occurs only between turns, after the person changed a
//! session. Only the last turn can be unfinished, since the journal has one writer.
//! `Noted` precedes the Intents that it protects, and `Guard` the Intent of the first command. The plan of
//! an undo or a redo is on disk before its Begin, and every Restoring before the first change. A later
//! Result of the same step replaces an earlier one.

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
    /// A session that the person created or changed.
    State(Box<Session>),
    /// A reply was claimed, and its execution begins.
    Begin(Box<Begin>),
    /// A step is about to have this effect.
    Intent { step: usize, effect: Effect },
    /// The files with protected names, before the first command.
    Guard(Box<Snapshot>),
    /// What is stored about the places that are about to change.
    Noted(Box<CheckpointNote>),
    /// The undo plan is about to change this path.
    Restoring { change: usize, path: String },
    /// The undo plan was carried out, except for these paths, each with a reason.
    Restored { left: Vec<(String, String)> },
    /// A step has this outcome.
    Result { step: usize, outcome: Box<Outcome> },
    /// The turn is committed. Everything after this can be repeated safely.
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
    /// The file name after the reply was claimed.
    pub claim: String,
    /// The identity of the file.
    pub file: FileId,
    /// The text of the file.
    pub text: String,
    /// The steps, as parsed at that time. If the turn continues after a question, the session contains them instead.
    pub steps: Vec<Step>,
    /// The policy of the turn.
    pub policy: Option<Policy>,
    /// The folder of the file.
    #[serde(default)]
    pub folder: Origin,
    /// The guest that executes the turn; None for this machine.
    pub guest: Option<String>,
    /// The decision that continues the turn. Then `file` and `text` are those of the decision's file, if it has one.
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
    /// The summary of the completed session that an undo reopens.
    pub reopened: Option<String>,
    /// The summary of the session that a redo completes again.
    pub completes: Option<String>,
    /// Changes of ignored files in these turns, which stay.
    pub ignored: Option<Ignored>,
}

/// Where the file that began a turn was found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Origin {
    /// The inbox.
    #[default]
    Inbox,
    /// The folder of approvals.
    Approvals,
    /// No file began the turn.
    Nowhere,
}

impl Begin {
    /// All steps of the turn.
    pub fn steps(&self) -> &[Step] {
        let pending = self.session.pending.as_ref().filter(|_| self.decision.is_some());
        pending.map_or(&self.steps, |pending| &pending.steps)
    }

    /// The outcomes from before the question, by step. Requested files are left out: they are read again at the end.
    pub fn known(&self) -> BTreeMap<usize, Outcome> {
        let earlier = self.session.pending.iter().flat_map(|pending| &pending.outcomes);
        let is_final = |outcome: &Outcome| !matches!(outcome.detail, Detail::ReadLater { .. });
        earlier.cloned().enumerate().filter(|(_, outcome)| is_final(outcome)).collect()
    }

    /// Whether this only records the decision about a run, which is resumed later.
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
/// The device number is not included, since it may change when the machine restarts.
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
    /// Whether the turn was continued after deaddrop was killed.
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

/// An outbox that was written under a temporary name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreparedOutbox {
    /// The temporary name.
    pub temporary: String,
    /// The digest of the content.
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
    /// The turn that has no End record.
    pub unfinished: Option<UnfinishedTurn>,
}

/// A turn that was interrupted by a hard stop.
#[derive(Debug, Default)]
pub struct UnfinishedTurn {
    /// Its Begin record.
    pub begin: Begin,
    /// The intended effects, by step.
    pub intents: BTreeMap<usize, Effect>,
    /// The files with protected names, before the first command.
    pub guard: Option<Snapshot>,
    /// What is stored about the places that were about to change.
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

    /// Adds a record; None if it violates the grammar, or if a session has no valid ID or no secret, since file names
    /// are derived from the ID, and keys from the secret.
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
            // Recovery examines these paths itself.
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
