//! The state of a session, as stored in its file.

use std::collections::BTreeMap;

use serde::ser::Serializer;
use serde::{Deserialize, Deserializer, Serialize};

use super::{FileVersions, TurnChanges, is_id, run_stem};
use crate::clock::Timestamp;
use crate::policy::Ask;
use crate::protocol::operations::Event;
use crate::protocol::{
    Detail, Dialect, Digest, Kind, Operation, Outcome, Part, RelPath, Step, StepContent,
    WarningKind, tags,
};
use crate::settings::{Policy, SESSION_POLICY};
use crate::workspace::Contents;

/// The state of a task and its conversation (tag protocol, "Session Management").
///
/// A field that is missing in a file of an earlier version has its default value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Session {
    /// Eight hexadecimal digits.
    #[serde(rename = "sessionId", alias = "id")]
    pub id: String,
    /// The person's task, one or more lines.
    pub task: String,
    /// The number of the newest outbox, from 1.
    #[serde(rename = "sequenceNumber", alias = "sequence")]
    pub sequence: u32,
    /// Whether the model has said `[DONE]`.
    pub is_complete: bool,
    /// When the session began.
    pub created_at: Timestamp,
    /// When the session last advanced.
    pub updated_at: Timestamp,
    /// The results of the newest reply.
    #[serde(serialize_with = "write_results", deserialize_with = "read_results")]
    pub last_results: Vec<Outcome>,
    /// The messages from the person in the newest outbox.
    pub said: Vec<String>,
    /// How many of these messages, from the first, were also in an earlier outbox.
    pub said_before: usize,
    /// How many of these messages, from the last, were added after the outbox was written.
    pub added: usize,
    /// Earlier outboxes that may still be answered, since no later reply could be read: the outbox's number, and how
    /// many messages were added to it.
    pub unanswered: BTreeMap<u32, usize>,
    /// The outbox that the newest reply answers, if the newest outbox follows that reply. The model has read it.
    pub read: Option<u32>,
    /// Messages that the model may not have read yet. The next outbox repeats them.
    pub to_repeat: Vec<String>,
    /// New messages from the person for the next outbox.
    pub to_say: Vec<String>,
    /// The model's summary, once the session is complete.
    pub summary: Option<String>,
    /// The digest of the newest reply's text, to recognise a duplicate.
    pub last_reply: Option<Digest>,
    /// The tools of this machine, such as `python3 3.11.7`.
    pub tools: Vec<String>,
    /// The description of the project when the session began, for the outboxes.
    pub project: Option<String>,
    /// Whether the person allowed commands to run unconfined if there is no sandbox.
    pub unconfined: bool,
    /// The file contents that the first outbox shows without a request; None for none.
    pub offer: Option<FilePatterns>,
    /// The dialect of outboxes and replies.
    pub dialect: Dialect,
    /// The name of the policy of this session.
    #[serde(default = "default_policy")]
    pub policy: String,
    /// The name of the workspace (see `Config::workspace_name`); None in a guest.
    pub workspace: Option<String>,
    /// Present if this is a run of a single message, which has no outboxes.
    pub run: Option<Run>,
    /// The IDs of all questions. No ID is used twice.
    pub asked: Vec<String>,
    /// The versions of files that the model last saw.
    pub seen: FileVersions,
    /// The turn that waits for the person to approve an operation.
    pub pending: Option<Box<Pending>>,
    /// The workspace changes of the newest turn, or of its part up to a question.
    pub changed: Option<Box<TurnChanges>>,
    /// Secret files as they were before a turn changed them.
    pub held: Vec<SecretFile>,
    /// Sentences about secrets that the newest outbox withholds or shows.
    pub withheld: Vec<String>,
    /// The approximate size of the newest outbox in tokens, if known.
    pub tokens: Option<usize>,
    /// The key from which boundaries and reply keys are derived. It is never shown.
    pub secret: String,
}

/// Which files of the workspace the first outbox shows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FilePatterns {
    /// Patterns, as in a `.gitignore`, of the files to show first.
    pub include: Vec<String>,
    /// Patterns of the files that are not shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
}

/// One message that is executed without a conversation (agent-spaces-protocol, "Events Message").
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The policy with which the run began. It does not change.
    pub policy: Policy,
    /// How many of the outcomes were reported before the run was resumed.
    pub told: usize,
    /// The request, if it came over the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<RunRequest>,
    /// The decided questions, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decided: Vec<DecidedQuestion>,
}

/// A request for a run over the network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRequest {
    /// The run's space.
    pub space: String,
    /// A digest of the idempotency key and its owner, if the request has a key.
    pub key: Option<Digest>,
    /// A digest of the body and its sender.
    pub body: Digest,
    /// Whether the request only changes one file, so that nobody requests its result again.
    pub is_passing: bool,
}

/// A question of a run that was decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecidedQuestion {
    /// The step in question, counted from 0.
    pub step: usize,
    /// The question as an event.
    pub event: Event,
    /// Whether the operation was approved.
    pub approved: bool,
}

/// A turn that waits for the person to decide about one of its operations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// The file name of the reply.
    pub reply: String,
    /// The digest of the reply's text.
    pub text: Digest,
    /// All steps of the turn.
    pub steps: Vec<Step>,
    /// The outcomes of the steps before the one in question.
    #[serde(deserialize_with = "read_results")]
    pub outcomes: Vec<Outcome>,
    /// The question.
    pub question: Question,
    /// The guest that executes the turn; None for this machine.
    pub guest: Option<String>,
    /// The person's decision, until the turn is continued.
    pub decision: Option<ApprovalDecision>,
}

/// A question to the person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The step in question, counted from 0; None for the reply as a whole.
    pub step: Option<usize>,
    /// The question's ID: that of the operation, or a generated one.
    pub id: String,
    /// The operation's kind.
    pub kind: Kind,
    /// Why the person is asked, and what an approval permits.
    pub ask: Ask,
    /// A digest of the operation and of the state that it would change. An approval is valid only for these.
    pub digest: Digest,
    /// When the question was asked.
    pub at: Timestamp,
}

/// The person's answer to a [`Question`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalDecision {
    /// The question as it was at the time of the decision.
    pub question: Question,
    /// Whether the operation may be executed.
    pub approved: bool,
    /// Whether it also covers later questions: an approval, those about this command; a denial, those of this reply.
    #[serde(default)]
    pub further: bool,
    /// The person's reason.
    pub reason: Option<String>,
}

/// A secret file as it was before a turn. Its values are also withheld from the output of commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretFile {
    /// The file's path.
    pub path: RelPath,
    /// Its whole text, with U+FFFD for bytes that are not UTF-8.
    pub text: String,
}

impl SecretFile {
    /// A snapshot of a completely read file.
    pub fn of(file: &Contents) -> Self {
        let text = String::from_utf8_lossy(&file.bytes).into_owned();
        Self { path: file.path.clone(), text }
    }

    /// The snapshot as a file that was read.
    pub fn contents(&self) -> Contents {
        let (bytes, size) = (self.text.clone().into_bytes(), self.text.len() as u64);
        Contents { path: self.path.clone(), bytes, size, lines: None }
    }
}

impl Session {
    /// A new session with its first outbox.
    pub fn new(id: String, task: &str, tools: Vec<String>, now: Timestamp) -> Self {
        Self {
            id,
            task: task.trim_matches(['\n', '\r']).trim_end().to_owned(),
            sequence: 1,
            created_at: now,
            updated_at: now,
            tools,
            policy: default_policy(),
            secret: uuid::Uuid::new_v4().simple().to_string(),
            ..Self::default()
        }
    }

    /// Whether a stored session has a valid ID and a secret. File names and keys are derived from them.
    pub(super) fn is_valid(&self) -> bool {
        is_id(&self.id) && !self.secret.is_empty()
    }

    /// Whether the session is neither complete nor waiting for the person's decision.
    pub fn awaits_reply(&self) -> bool {
        !self.is_complete && self.pending.is_none()
    }

    /// The question that the person has not decided yet.
    pub fn question(&self) -> Option<&Question> {
        let pending = self.pending.as_ref().filter(|pending| pending.decision.is_none())?;
        Some(&pending.question)
    }

    /// Whether this is a completed run whose result nobody requests again.
    pub fn is_past(&self) -> bool {
        let request = self.run.as_ref().and_then(|run| run.request.as_ref());
        self.is_complete && request.is_some_and(|request| request.is_passing)
    }

    /// The operation that a waiting turn asks about; None if it asks about the whole reply.
    pub fn asked_operation(&self) -> Option<&Operation> {
        let pending = self.pending.as_ref()?;
        match &pending.steps.get(pending.question.step?)?.asks {
            StepContent::Operation(operation) => Some(operation),
            StepContent::Invalid(_) => None,
        }
    }

    /// The files whose contents the newest outbox shows, in the order of the requests.
    pub fn read_requests(&self) -> impl Iterator<Item = (&RelPath, Part)> {
        self.last_results.iter().filter_map(|outcome| match &outcome.detail {
            Detail::ReadLater { path, part } => Some((path, *part)),
            _ => None,
        })
    }

    /// The stem of the session's file names: its ID, or `run_{id}` for a run.
    pub fn stem(&self) -> String {
        if self.run.is_some() { run_stem(&self.id) } else { self.id.clone() }
    }

    /// The file name of the newest outbox.
    pub fn outbox_name(&self) -> String {
        super::outbox_name(&self.id, self.sequence)
    }

    /// The name of the file that contains the newest results as complete events. If the turn waits or was the last one,
    /// the name contains the number of the outbox that would have followed.
    pub fn events_name(&self) -> String {
        if self.run.is_some() {
            return format!("{}.events.json", self.stem());
        }
        let waits = self.pending.is_some() && !self.is_complete;
        format!("{}_seq{:04}.events.json", self.id, self.answered() + 1 + u32::from(waits))
    }

    /// The number of the outbox that the newest results answer; 0 if there are no results yet.
    pub fn answered(&self) -> u32 {
        if self.is_complete { self.sequence } else { self.sequence.saturating_sub(1) }
    }
}

fn default_policy() -> String {
    SESSION_POLICY.to_owned()
}

/// A result with the fields from the tag protocol, "Session Management".
#[derive(Serialize)]
struct WrittenResult<'a> {
    command: &'a str,
    success: bool,
    summary: String,
    outcome: &'a Outcome,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum StoredResult {
    Shown { outcome: Outcome },
    Bare(Outcome),
}

fn write_results<S: Serializer>(outcomes: &[Outcome], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(outcomes.iter().map(|outcome| WrittenResult {
        command: tags::name(outcome.kind),
        success: outcome.success(),
        summary: tags::summary(outcome),
        outcome,
    }))
}

fn read_results<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Outcome>, D::Error> {
    let outcome = |stored| match stored {
        StoredResult::Shown { outcome } | StoredResult::Bare(outcome) => upgrade(outcome),
    };
    Ok(Vec::<StoredResult>::deserialize(from)?.into_iter().map(outcome).collect())
}

/// Earlier versions stored a `[DONE]` without effect as a message with a warning.
pub(super) fn upgrade(mut outcome: Outcome) -> Outcome {
    let is_reason = |warning: &crate::protocol::Warning| warning.kind == WarningKind::Done;
    if let (Kind::Done, Detail::Shown { text }) = (outcome.kind, &outcome.detail)
        && let Some(at) = outcome.warnings.iter().position(is_reason)
    {
        let summary = text.clone();
        outcome.detail = Detail::Ineffective { summary, reason: outcome.warnings.remove(at).text };
    }
    outcome
}
