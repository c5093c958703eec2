//! What one operation came to: the same values for every dialect, rendered by each in its own way.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Asks, Invalid, Kind, Operation, RelPath, Step};

/// What one operation of a reply came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    /// Which operation.
    pub kind: Kind,
    /// The line of the reply that asked for it; 0 where no line did.
    pub line: usize,
    /// What happened.
    pub detail: Detail,
    /// What was repaired on the way, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Detail {
    /// A message was shown to the person.
    Shown {
        /// The message.
        text: String,
    },
    /// A file was made or replaced.
    Created {
        /// Where it really stands: a link on the way is resolved.
        path: RelPath,
        /// Its size.
        bytes: u64,
        /// Whether a file stood there before.
        replaced: bool,
    },
    /// Lines of a file were replaced.
    Edited {
        /// Which file, links resolved.
        path: RelPath,
        /// The first and last line that were replaced.
        lines: (usize, usize),
        /// How many lines stand in their place now.
        inserted: usize,
        /// How many lines the file has now.
        total: usize,
    },
    /// A file is gone.
    Deleted {
        /// Which.
        path: RelPath,
    },
    /// A file is to be shown in the next outbox; whether it can be is known then.
    ReadLater {
        /// Which.
        path: RelPath,
    },
    /// A command was run, or tried.
    Ran(Execution),
    /// The session was completed.
    Completed {
        /// The LLM's summary.
        summary: String,
    },
    /// What a preview cannot know, and why.
    Unknown {
        /// A phrase for the person.
        reason: String,
    },
    /// It failed. Unless the reason says otherwise, nothing was changed.
    Failed(Failure),
}

/// Why an operation failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// Of what sort.
    pub kind: FailureKind,
    /// The reason, for the LLM to act on.
    pub reason: String,
}

/// Sorts of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FailureKind {
    /// The block could not be understood.
    Invalid,
    /// Refused for safety; shown as `REJECTED: …`.
    Rejected,
    /// It could not be carried out as things stand: no such file, no such line.
    Execution,
    /// It was never begun.
    NotRun,
}

/// How a command went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Execution {
    /// What the shell was given.
    pub command: String,
    /// How it ended.
    pub ending: Ending,
    /// What it wrote, both streams in the order written.
    pub output: Capture,
    /// How long it took.
    pub duration: Duration,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Ending {
    /// By itself, with this exit code.
    Exited(i32),
    /// By a signal that deaddrop did not send.
    Signalled(i32),
    /// Ended by deaddrop at the deadline, with every process that it had started.
    TimedOut(Duration),
    /// Ended by deaddrop because the person stopped it.
    Interrupted,
    /// deaddrop itself, or its helper, was stopped while it ran, so how it ended is not known.
    Lost,
    /// Ended by deaddrop for another reason, this one.
    Stopped(String),
    /// Never begun, for this reason.
    NotStarted(String),
}

/// Output of a command, bounded: its beginning and its end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Capture {
    /// The first characters, or all of them.
    pub head: String,
    /// How many characters were left out between `head` and `tail`.
    pub left_out: u64,
    /// The last characters; empty where nothing was left out.
    pub tail: String,
}

impl Outcome {
    /// The outcome of `step` with this detail.
    pub fn of(step: &Step, detail: Detail) -> Self {
        Self { kind: step.kind(), line: step.line, detail, warnings: step.warnings.clone() }
    }

    /// The outcome of a malformed block.
    pub fn invalid(step: &Step, invalid: &Invalid) -> Self {
        let kind = if invalid.rejected { FailureKind::Rejected } else { FailureKind::Invalid };
        Self::of(step, Detail::Failed(Failure { kind, reason: invalid.reason.clone() }))
    }

    /// The outcome of a step that was never begun, and why.
    pub fn not_run(step: &Step, why: &str) -> Self {
        let reason = match &step.asks {
            Asks::Operation(Operation::Run { command }) => {
                format!("{} was not run: {why}", crate::text::named(command))
            }
            Asks::Operation(operation) => match operation.path() {
                Some(path) => format!("'{path}' was not touched: {why}"),
                None => format!("Not carried out: {why}"),
            },
            Asks::Invalid(_) => format!("Not carried out: {why}"),
        };
        Self::of(step, Detail::Failed(Failure { kind: FailureKind::NotRun, reason }))
    }

    /// The one outcome of all `count` commands from `first` on, which are more than `limit`.
    pub fn not_run_from(first: &Step, count: usize, limit: usize) -> Self {
        let reason = format!(
            "{} from line {} on not carried out: of one reply the first {limit} are",
            if count == 1 { "1 command was".to_owned() } else { format!("{count} commands were") },
            first.line
        );
        let detail = Detail::Failed(Failure { kind: FailureKind::NotRun, reason });
        Self { kind: Kind::Reply, line: first.line, detail, warnings: Vec::new() }
    }

    /// Whether it is a command of which nobody knows how it ended.
    pub fn is_lost(&self) -> bool {
        matches!(&self.detail, Detail::Ran(execution) if execution.ending == Ending::Lost)
    }

    /// Whether it did what was asked. A command succeeds with exit code 0.
    pub fn success(&self) -> bool {
        match &self.detail {
            Detail::Failed(_) => false,
            Detail::Ran(execution) => execution.ending == Ending::Exited(0),
            _ => true,
        }
    }
}

impl Failure {
    /// Refused for safety.
    pub fn rejected(reason: impl Into<String>) -> Self {
        Self { kind: FailureKind::Rejected, reason: reason.into() }
    }

    /// Not possible as things stand.
    pub fn execution(reason: impl Into<String>) -> Self {
        Self { kind: FailureKind::Execution, reason: reason.into() }
    }
}

impl From<Failure> for Detail {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}
