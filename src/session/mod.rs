//! A session: one task, and where its conversation stands. Pure; `store` keeps it on disk.

mod changed;
mod held;
pub mod journal;
pub mod log;
mod pending;
mod ranges;
pub mod record;
mod repeat;
mod results;
mod seen;
pub mod store;
mod words;

use serde::{Deserialize, Serialize};

pub use changed::{Back, Changed, FileChange, How, Ignored, NAMED, Several};
pub use held::Held;
pub use pending::{Pending, Question, Verdict};
pub use seen::SeenFiles;

use crate::clock::Timestamp;
use crate::config::{Policy, SESSION_POLICY};
use crate::protocol::{Address, Detail, Dialect, Digest, Outcome, Part, RelPath};
use crate::text::visible_line;

/// Where the conversation about one task stands (tag protocol, "Session Management").
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// Eight hexadecimal digits. Journals of former versions call it `id`.
    #[serde(rename = "sessionId", alias = "id")]
    pub id: String,
    /// The person's task, of one or more lines.
    pub task: String,
    /// The number of the newest outbox, from 1. Journals of former versions call it `sequence`.
    #[serde(rename = "sequenceNumber", alias = "sequence")]
    pub sequence: u32,
    /// Whether the LLM has said `[DONE]`.
    pub is_complete: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last went on.
    pub updated_at: Timestamp,
    /// What came of the newest reply.
    #[serde(with = "results")]
    pub last_results: Vec<Outcome>,
    /// What the newest outbox says on the person's behalf.
    #[serde(default)]
    pub said: Vec<String>,
    /// So many of the first of these were said by an outbox before it, and may have been read.
    #[serde(default, skip_serializing_if = "is_default")]
    pub said_before: usize,
    /// So many of the last of these were added to the outbox after it had been written.
    #[serde(default, skip_serializing_if = "is_default")]
    pub added: usize,
    /// What an outbox has said and nobody knows to have been read: the next one says it again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to_repeat: Vec<String>,
    /// What the next outbox will say on the person's behalf.
    #[serde(default)]
    pub to_say: Vec<String>,
    /// The LLM's summary, once complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// What identifies the text of the newest reply: the same again is likely a mistake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_reply: Option<Digest>,
    /// The tools of this machine, asked once: `python3 3.11.7`.
    #[serde(default)]
    pub tools: Vec<String>,
    /// Whether the person allowed commands with their own rights where no sandbox is to be had.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unconfined: bool,
    /// What its first outbox shows of the workspace's contents unasked; None for nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offer: Option<Offer>,
    /// What its outboxes teach, and how they tell results.
    #[serde(default, skip_serializing_if = "is_default")]
    pub dialect: Dialect,
    /// The name of its policy.
    #[serde(default = "workspace_policy")]
    pub policy: String,
    /// What the workspace is known by that it began in (see [`Config::workspace_name`]); None where that
    /// was not noted, or is in a guest.
    ///
    /// [`Config::workspace_name`]: crate::config::Config::workspace_name
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// What makes it a run of one message, which has no outboxes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,
    /// What operations were called that the person was asked about: no name counts twice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<String>,
    /// What the LLM last saw of files.
    #[serde(default, skip_serializing_if = "SeenFiles::is_empty")]
    pub seen: SeenFiles,
    /// The turn that waits for the person to approve an operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<Box<Pending>>,
    /// What its newest turn, or the part of it up to a question, changed in the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<Box<Changed>>,
    /// Files that hold secrets by their nature as they were before its turns, where they are not so now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<Held>,
    /// What its newest outbox does not show since it is secret, or shows all the same: sentences for
    /// the person.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<String>,
    /// How many tokens its newest outbox is, about; None where nobody noted that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<usize>,
    /// What boundaries are derived from; never shown.
    pub secret: String,
}

impl Session {
    /// A new session, at its first outbox.
    pub fn new(id: String, task: &str, tools: Vec<String>, now: Timestamp) -> Self {
        Self {
            id,
            task: task.trim_matches(['\n', '\r']).trim_end().to_owned(),
            sequence: 1,
            is_complete: false,
            created_at: now,
            updated_at: now,
            last_results: Vec::new(),
            said: Vec::new(),
            said_before: 0,
            added: 0,
            to_repeat: Vec::new(),
            to_say: Vec::new(),
            summary: None,
            last_reply: None,
            tools,
            unconfined: false,
            offer: None,
            dialect: Dialect::default(),
            policy: workspace_policy(),
            workspace: None,
            run: None,
            asked: Vec::new(),
            seen: SeenFiles::default(),
            pending: None,
            changed: None,
            held: Vec::new(),
            withheld: Vec::new(),
            tokens: None,
            secret: uuid::Uuid::new_v4().simple().to_string(),
        }
    }

    /// Takes in what a reply came to: on to the next outbox, or complete.
    pub fn advance(&mut self, outcomes: Vec<Outcome>, now: Timestamp) {
        let summary = outcomes.iter().find_map(|outcome| match &outcome.detail {
            Detail::Completed { summary } => Some(summary.clone()),
            _ => None,
        });
        self.last_results = outcomes;
        self.updated_at = now;
        self.pending = None;
        self.is_complete = summary.is_some() || self.run.is_some();
        self.summary = summary;
        if !self.is_complete {
            self.next_outbox();
        }
    }

    /// The turn stands still until the person has decided.
    pub fn pause(&mut self, pending: Pending, now: Timestamp) {
        if !self.asked.contains(&pending.question.id) {
            self.asked.push(pending.question.id.clone());
        }
        self.pending = Some(Box::new(pending));
        self.updated_at = now;
    }

    /// Takes in that the person has taken turns back, or done that again: on to an outbox that tells it
    /// with their `reason`; or complete again, with that summary. What the outbox before it said on their
    /// behalf is said again, since nobody may have pasted it.
    pub fn go_back(
        &mut self,
        changed: Changed,
        reason: Option<String>,
        completes: Option<String>,
        now: Timestamp,
    ) {
        self.last_results = Vec::new();
        self.changed = Some(Box::new(changed));
        self.updated_at = now;
        self.is_complete = completes.is_some();
        self.summary = completes;
        if self.is_complete {
            return;
        }
        self.repeat_said();
        self.to_say.extend(reason);
        self.next_outbox();
    }

    /// Whether it stands at its newest outbox: it is not over, and no question waits.
    pub fn awaits_reply(&self) -> bool {
        !self.is_complete && self.pending.is_none()
    }

    /// What its files are named by: its id, or that of a run with its `run_`.
    pub fn stem(&self) -> String {
        if self.run.is_some() { run_stem(&self.id) } else { self.id.clone() }
    }

    /// Why a reply that says it answers that is not for the newest outbox; None where it is.
    pub fn misses(&self, answers: &Address) -> Option<String> {
        let (id, newest) = (&self.id, self.sequence);
        let Address { session, sequence, key } = answers;
        let why = if session != id {
            format!("it says that it answers session {}", visible_line(session))
        } else if *sequence < newest {
            format!(
                "it answers message {sequence} of session {id}, and the newest is {newest}: what it goes by may be no longer so"
            )
        } else if *sequence > newest {
            format!(
                "it says that it answers message {sequence} of session {id}, and the newest is {newest}"
            )
        } else if key.as_ref().is_some_and(|key| self.read_up_to(key).is_none()) {
            format!("its key is not that of message {newest} of session {id}")
        } else {
            return None;
        };
        Some(why)
    }

    /// Whether a reply that says it answers that carries the key of the newest outbox: only somebody who
    /// has seen that outbox can have made it. A session that awaits no reply has none to answer.
    pub fn is_keyed(&self, answers: &Address) -> bool {
        self.awaits_reply() && answers.key.is_some() && self.misses(answers).is_none()
    }

    /// The files whose contents the newest outbox gives, in the order asked for.
    pub fn read_requests(&self) -> impl Iterator<Item = (&RelPath, Part)> {
        self.last_results.iter().filter_map(|outcome| match &outcome.detail {
            Detail::ReadLater { path, part } => Some((path, *part)),
            _ => None,
        })
    }

    /// The name of the newest outbox's file.
    pub fn outbox_name(&self) -> String {
        outbox_name(&self.id, self.sequence)
    }

    /// The name of the file that holds the newest results as events, whole. Where the turn waits or
    /// was the last, it is that of the outbox which would have followed.
    pub fn events_name(&self) -> String {
        if self.run.is_some() {
            return format!("{}.events.json", self.stem());
        }
        let waits = self.pending.is_some() && !self.is_complete;
        events_name(&self.id, self.answered() + 1 + u32::from(waits))
    }

    /// The number of the outbox that the newest results answer; 0 where there are none yet.
    pub fn answered(&self) -> u32 {
        if self.is_complete { self.sequence } else { self.sequence.saturating_sub(1) }
    }
}

/// What the first outbox shows of the workspace's contents unasked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Offer {
    /// Patterns of files that are shown before others, written as in a `.gitignore`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<String>,
}

/// One message carried out without a conversation (agent-spaces-protocol, "Events Message").
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// The policy that it began with, and keeps.
    pub policy: Policy,
    /// How many of its outcomes were told before it was last taken up.
    pub told: usize,
}

/// What the names of runs begin with.
const RUN: &str = "run_";

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn workspace_policy() -> String {
    SESSION_POLICY.to_owned()
}

/// `{id}_seq{NNNN}.txt`
pub fn outbox_name(id: &str, sequence: u32) -> String {
    format!("{id}_seq{sequence:04}.txt")
}

/// `{id}_seq{NNNN}.events.json`
pub fn events_name(id: &str, sequence: u32) -> String {
    format!("{id}_seq{sequence:04}.events.json")
}

/// What the files of a run are named by, and what it is called: `run_{id}`.
pub fn run_stem(id: &str) -> String {
    format!("{RUN}{id}")
}

/// The id of the run that has this name, if any can.
pub fn run_id(stem: &str) -> Option<&str> {
    stem.strip_prefix(RUN).filter(|id| is_id(id))
}

/// Whether `text` can be a session's id.
pub fn is_id(text: &str) -> bool {
    text.len() == 8 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// A session id that was never given before, or as good as: the first digits of a random UUID.
pub fn new_id() -> String {
    let mut id = uuid::Uuid::new_v4().simple().to_string();
    id.truncate(8);
    id
}
