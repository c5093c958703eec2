//! What the journal says: a turn from its beginning to its end, as records.
//!
//! ```text
//! turn = Begin { Noted | Guard | Intent Result | Result } Commit End
//! undo = Begin { Restoring } Restored Commit End
//! ```
//!
//! A turn that stops to ask the person is two of these: the Commit of the first holds the question
//! (in the session), and the Begin of the second what was decided.
//!
//! `Noted` stands before the Intents of what it is about, and says what is kept of that. An undo or a redo
//! goes by a plan, which is on disk before its Begin; every Restoring is before the first of them is
//! carried out.
//!
//! `Guard` stands before the Intent of the first command. A Result can be told anew, with what was
//! noticed later.
//!
//! `State` stands between turns, where the person changed a session. Only the last turn can be
//! unfinished, since there is one writer.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::log::Entry;
use super::{Ignored, Session, Verdict, is_id};
use crate::blobs::BlobId;
use crate::config::Policy;
use crate::protocol::{Detail, Digest, Effect, Outcome, Step};
use crate::workspace::checkpoint::Noted;
use crate::workspace::guard::Snapshot;

/// One record of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Record {
    /// A session as the person made or changed it.
    State(Box<Session>),
    /// A reply is ours, and is carried out from here on.
    Begin(Box<Begin>),
    /// This step of it is about to do that.
    Intent {
        /// Which step, counted from 0.
        step: usize,
        /// What.
        effect: Effect,
    },
    /// Commands will run in it, and this is what stood under protected names before the first.
    Guard(Box<Snapshot>),
    /// This is kept of what is about to change in it.
    Noted(Box<Noted>),
    /// This place is about to be put back, as the plan of the turn has it.
    Restoring {
        /// Which change of the plan, counted from 0.
        change: usize,
        /// Where.
        path: String,
    },
    /// That was done with all of them but these.
    Restored {
        /// What could not be put back, and why.
        left: Vec<(String, String)>,
    },
    /// This step of it came to that.
    Result {
        /// Which step, counted from 0.
        step: usize,
        /// What.
        outcome: Box<Outcome>,
    },
    /// The turn is decided: all that follows can be done again.
    Commit(Box<Commit>),
    /// All that follows from the turn was done.
    End,
}

/// How a turn begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Begin {
    /// Whose turn it is, as it is before it.
    pub session: Session,
    /// The name that the reply was dropped under.
    pub name: String,
    /// Its name among the claimed.
    pub claim: String,
    /// Which file it was.
    pub file: FileId,
    /// Its text, whole.
    pub text: String,
    /// Its steps, as the program that began the turn read them; none where the turn goes on that
    /// waited, since the session has them.
    pub steps: Vec<Step>,
    /// The policy that it is carried out under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    /// Where the file is that began it.
    #[serde(default)]
    pub folder: Folder,
    /// The guest that it is carried out in; None for this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<String>,
    /// What the person decided, where the turn goes on that waited for it. Then the file, if there is
    /// one, and its text are what they said it with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// What is taken back, where that is all that the turn does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoing: Option<Undoing>,
}

/// What an undo or a redo takes back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Undoing {
    /// The plan: which places become what.
    pub plan: BlobId,
    /// The turns that are taken back, or done again, by their sequences.
    pub turns: Vec<u32>,
    /// The undo that is taken back, if it is a redo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redid: Option<u32>,
    /// Why, in the person's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The summary of the session that was complete and is taken up again by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reopened: Option<String>,
    /// The summary of the session that is complete again after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completes: Option<String>,
    /// What the turns changed that rules leave out, which stays as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignored: Option<Ignored>,
}

/// Where a file was dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Folder {
    /// Among the replies.
    #[default]
    Inbox,
    /// Among the approvals.
    Approvals,
    /// There is no file.
    Nowhere,
}

impl Begin {
    /// All steps of the turn.
    pub fn steps(&self) -> &[Step] {
        match (&self.verdict, &self.session.pending) {
            (Some(_), Some(pending)) => &pending.steps,
            _ => &self.steps,
        }
    }

    /// What was known when it began: where a turn goes on that waited, what it had come to.
    pub fn known(&self) -> BTreeMap<usize, Outcome> {
        let earlier = self.session.pending.iter().flat_map(|pending| &pending.outcomes);
        // What is to be shown is shown as it is in the end.
        let done =
            |(_, outcome): &(usize, &Outcome)| !matches!(outcome.detail, Detail::ReadLater { .. });
        earlier.enumerate().filter(done).map(|(n, outcome)| (n, outcome.clone())).collect()
    }

    /// Whether it only notes what was decided about a run, which is taken up later.
    pub fn is_decision_alone(&self) -> bool {
        let pending = self.session.pending.as_ref();
        self.session.run.is_some()
            && self.verdict.is_some()
            && pending.is_some_and(|pending| pending.decision.is_none())
    }

    /// The name that the reply was dropped under, and what identifies its text.
    pub fn reply(&self) -> (&str, Digest) {
        match &self.session.pending {
            Some(pending) => (&pending.reply, pending.text.clone()),
            None => (&self.name, Session::identity(&self.text)),
        }
    }
}

/// Which file a reply was, whatever it is called now.
///
/// It is looked for in the inbox alone, so its device is no part of it: devices are numbered anew at
/// every start of a machine, and a file that came back would pass for a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileId {
    /// Its number on its file system.
    pub inode: u64,
    /// When it was last written, in nanoseconds since 1970.
    pub written: i128,
    /// Its length in bytes.
    pub length: u64,
}

/// How a turn was decided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Commit {
    /// The session after it.
    pub session: Session,
    /// The outbox that was rendered; None where the session is complete, or waits for the person.
    pub outbox: Option<Rendered>,
    /// Whether the turn was taken up again after deaddrop had been stopped hard.
    pub recovered: bool,
}

impl Commit {
    /// Whether the outbox has the name that the session gives it, and lies under a plain one until then.
    fn is_named_right(&self) -> bool {
        self.outbox.as_ref().is_none_or(|outbox| {
            let temporary = Path::new(&outbox.temporary);
            outbox.name == self.session.outbox_name()
                && temporary.file_name() == Some(temporary.as_os_str())
        })
    }
}

/// An outbox that is written, and not yet under its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rendered {
    /// Its name.
    pub name: String,
    /// The name that it is written under first.
    pub temporary: String,
    /// Its content.
    pub digest: Digest,
}

/// What the records of a journal come to.
#[derive(Debug, Default)]
pub struct History {
    /// The newest state of each session that the journal knows of.
    pub states: BTreeMap<String, Session>,
    /// The files that were carried out, or are being carried out.
    pub files: Vec<FileId>,
    /// What the logs say of the turns that have an end, in order, by session.
    pub logged: BTreeMap<String, Vec<Entry>>,
    /// The turn that has no end.
    pub unfinished: Option<Unfinished>,
}

/// A turn that deaddrop was stopped in.
#[derive(Debug)]
pub struct Unfinished {
    /// How it began.
    pub begin: Begin,
    /// What was about to be done, by step.
    pub intents: BTreeMap<usize, Effect>,
    /// What stood under protected names before its first command.
    pub guard: Option<Snapshot>,
    /// What is kept of what it was about to change.
    pub noted: Vec<Noted>,
    /// What is known to have come of it, by step.
    pub results: BTreeMap<usize, Outcome>,
    /// How it was decided, if it was.
    pub commit: Option<Commit>,
}

impl Unfinished {
    /// Whether a command may have run in it.
    pub fn has_begun_command(&self) -> bool {
        self.intents.values().any(|effect| *effect == Effect::Command)
    }
}

impl History {
    /// Reads the records of a journal.
    ///
    /// # Errors
    /// The number of the first record that does not fit the grammar, counted from 0.
    pub fn read(payloads: &[String]) -> Result<Self, usize> {
        let mut history = Self::default();
        for (n, payload) in payloads.iter().enumerate() {
            let record = serde_json::from_str(payload).map_err(|_| n)?;
            history.add(record).ok_or(n)?;
        }
        Ok(history)
    }

    fn add(&mut self, record: Record) -> Option<()> {
        // Files are named by these, and a journal is believed.
        let is_named = match &record {
            Record::State(session) => is_id(&session.id),
            Record::Begin(begin) => is_id(&begin.session.id),
            Record::Commit(commit) => is_id(&commit.session.id) && commit.is_named_right(),
            _ => true,
        };
        if !is_named {
            return None;
        }
        match (record, &mut self.unfinished) {
            (Record::State(session), None) => {
                self.states.insert(session.id.clone(), *session);
            }
            (Record::Begin(begin), None) => {
                self.files.push(begin.file);
                self.unfinished = Some(Unfinished {
                    begin: *begin,
                    intents: BTreeMap::new(),
                    guard: None,
                    noted: Vec::new(),
                    results: BTreeMap::new(),
                    commit: None,
                });
            }
            (Record::Intent { step, effect }, Some(turn)) if turn.commit.is_none() => {
                turn.intents.insert(step, effect);
            }
            (Record::Guard(snapshot), Some(turn)) if turn.commit.is_none() => {
                turn.guard = Some(*snapshot);
            }
            (Record::Noted(noted), Some(turn)) if turn.commit.is_none() => turn.noted.push(*noted),
            // What stands in each place tells more.
            (Record::Restoring { .. } | Record::Restored { .. }, Some(turn))
                if turn.commit.is_none() && turn.begin.undoing.is_some() => {}
            (Record::Result { step, outcome }, Some(turn)) if turn.commit.is_none() => {
                turn.results.insert(step, *outcome);
            }
            (Record::Commit(commit), Some(turn)) => {
                self.states.insert(commit.session.id.clone(), commit.session.clone());
                turn.commit = Some(*commit);
            }
            (Record::End, unfinished)
                if unfinished.as_ref().is_some_and(|t| t.commit.is_some()) =>
            {
                let turn = unfinished.take();
                if let Some(Unfinished { begin, commit: Some(commit), .. }) = turn
                    && let Some(entry) = Entry::of(&begin, &commit.session, commit.recovered)
                {
                    self.logged.entry(commit.session.id).or_default().push(entry);
                }
            }
            _ => return None,
        }
        Some(())
    }
}

impl Record {
    /// The record as one line of JSON.
    ///
    /// # Panics
    /// Never: strings and numbers always become JSON.
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).expect("strings and numbers become JSON")
    }
}
