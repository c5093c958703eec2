//! The outcomes of operations, in the same form for every dialect.
#![expect(missing_docs, reason = "the names say what most fields and variants are")]

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::operations::{Encoding, UtcTime};
use super::{
    CommandOutput, Excerpt, Invalid, Kind, Mistake, Operation, Part, PathFault, PresentFile,
    RelPath, Revision, SentValues, Step, StepContent, Warning, code,
};
use crate::text::{named, visible_line};

/// The outcome of one operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    pub kind: Kind,
    /// The line of the reply that requested the operation; 0 if no line did.
    pub line: usize,
    pub detail: Detail,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// The values that the event repeats, if the session's dialect is operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<SentValues>,
    /// The time of the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<UtcTime>,
}

/// The result of an operation. Symbolic links in the paths of files are resolved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Detail {
    /// A message was shown to the person.
    Shown { text: String },
    /// A file was created, or its content replaced.
    Created { path: RelPath, bytes: u64, replaced: bool },
    /// Lines of a file, from the first to the last, were replaced.
    Edited {
        path: RelPath,
        lines: (usize, usize),
        /// The number of new lines.
        inserted: usize,
        /// The number of lines of the file after the edit.
        total: usize,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        revision: Option<Box<Revision>>,
    },
    /// Parts of a file were replaced.
    Replaced {
        path: RelPath,
        edits: usize,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        revision: Option<Box<Revision>>,
    },
    /// A file was deleted.
    Deleted { path: RelPath },
    /// A file or a folder was moved.
    Moved {
        path: RelPath,
        to: RelPath,
        /// The number of files in the folder; None if a file was moved.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        files: Option<usize>,
    },
    /// The files below a folder (None: the workspace).
    Listed {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<RelPath>,
        files: usize,
        /// One line for each file that is shown.
        shown: String,
    },
    /// The lines that match a pattern were searched.
    Found {
        pattern: String,
        /// The number of matching lines, up to a limit.
        lines: usize,
        files: usize,
        /// Whether the search stopped at a limit.
        cut: bool,
        /// The first matching lines.
        #[serde(default)]
        hits: Vec<Hit>,
    },
    /// The next outbox is to show a file, if this is possible then.
    ReadLater {
        path: RelPath,
        #[serde(default, skip_serializing_if = "Part::is_whole")]
        part: Part,
    },
    /// A file was read.
    Read { path: RelPath, content: String, encoding: Encoding, size: u64 },
    /// A command was run, or could not be run.
    Ran(Execution),
    /// The session was completed.
    Completed { summary: String },
    /// The session was not completed.
    Ineffective { summary: String, reason: String },
    /// A preview cannot determine the result.
    Unknown { reason: String },
    /// The operation failed. Nothing was changed unless the reason says so.
    Failed(Failure),
}

/// The most characters of a search hit that are shown.
pub const HIT_WIDTH: usize = 300;

/// A line that a search found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hit {
    pub path: String,
    /// The number of the line, from 1.
    pub line: usize,
    /// The line. If it is very long, only the text around the shown part.
    pub text: String,
    /// How many characters of the text come before the shown part.
    #[serde(default)]
    pub start: usize,
}

impl std::fmt::Display for Hit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut rest = self.text.chars().skip(self.start);
        let shown: String = rest.by_ref().take(HIT_WIDTH).collect();
        let [before, after] =
            [self.start > 0, rest.next().is_some()].map(|is_cut| if is_cut { "…" } else { "" });
        write!(f, "{}:{}:{before}{shown}{after}", visible_line(&self.path), self.line)
    }
}

impl Detail {
    /// The lines of a listing or search, and the number of other lines.
    pub fn listing(&self) -> Option<(Cow<'_, str>, usize)> {
        match self {
            Self::Listed { shown, .. } => Some((Cow::Borrowed(shown), 0)),
            Self::Found { lines, hits, .. } => {
                let shown = hits.iter().map(|hit| format!("{hit}\n")).collect();
                Some((shown, lines.saturating_sub(hits.len())))
            }
            _ => None,
        }
    }
}

/// Why an operation failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    pub kind: FailureKind,
    /// The model's mistake, if the model caused the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mistake: Option<Mistake>,
    /// The reason, written so that the model can act on it.
    pub reason: String,
    /// The advice of the person or policy that denied the operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
    /// Lines of the file that help to correct the mistake.
    #[serde(default, skip_serializing_if = "Excerpt::is_empty")]
    pub excerpt: Excerpt,
    /// The file whose content the reason and the excerpt may show.
    #[serde(default, rename = "of", skip_serializing_if = "Option::is_none")]
    pub real_path: Option<RelPath>,
    /// The current version of that file, if the operation was based on another version.
    #[serde(default, rename = "fresh", skip_serializing_if = "Option::is_none")]
    pub present_file: Option<Box<PresentFile>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FailureKind {
    /// The block could not be understood.
    Invalid,
    /// Neither the block nor anything after it could be understood. The reply may have been cut off.
    CutOff,
    /// The operation was refused for safety. A refused path is shown as `REJECTED: …`.
    Rejected,
    /// The operation is not possible: there is no such file or no such line.
    Execution,
    /// The operation was not started.
    NotRun,
    /// A policy or the person denied the operation.
    Denied,
    /// The machine failed: no sandbox, no disk space.
    System,
}

/// The execution of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Execution {
    pub command: String,
    pub ending: Ending,
    pub output: CommandOutput,
    pub duration: Duration,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Ending {
    /// The command exited with this code.
    Exited(i32),
    /// A signal that deaddrop did not send ended the command.
    Signalled(i32),
    /// The command was ended at its timeout, with all its processes.
    TimedOut(Duration),
    /// The person interrupted the command.
    Interrupted,
    /// It is unknown how the command ended, because deaddrop or its helper was stopped during it.
    Lost,
    /// deaddrop stopped the command for this reason.
    Stopped(String),
    /// The command was not started, for this reason.
    NotStarted(String),
}

impl Ending {
    /// A phrase that says how the command ended, to follow the command's name. None after an ordinary exit.
    pub fn in_words(&self) -> Option<String> {
        Some(match self {
            Self::Exited(_) => return None,
            Self::Signalled(signal) => format!("ended by signal {signal}"),
            Self::TimedOut(limit) => format!(
                "timed out after {} s; it and all its processes were ended",
                limit.as_secs_f64()
            ),
            Self::Interrupted => "interrupted by the user; it may have partly run".to_owned(),
            Self::Lost => "deaddrop, or its process that ran the command, was stopped during the command: it may have run in part or as a whole, and is not run again; look at what it did".to_owned(),
            Self::Stopped(why) => {
                format!("ended by deaddrop with all its processes: {}", visible_line(why))
            }
            Self::NotStarted(why) => visible_line(why).into_owned(),
        })
    }
}

impl Outcome {
    /// The outcome of a step.
    pub fn of(step: &Step, detail: Detail) -> Self {
        let warnings = step.warnings.iter().cloned().chain(detail.fuzzy_match_warnings()).collect();
        let (kind, line, asked) = (step.kind(), step.line, step.asked.clone());
        Self { kind, line, detail, warnings, asked, at: None }
    }

    /// The stable code of the failure, such as `file-not-found`. None if the operation succeeded.
    pub fn code(&self) -> Option<String> {
        let word = match &self.detail {
            _ if self.success() => return None,
            Detail::Failed(Failure { mistake: Some(mistake), .. }) => return Some(code(mistake)),
            Detail::Failed(failure) => match failure.kind {
                FailureKind::Invalid | FailureKind::CutOff | FailureKind::Execution => "failed",
                FailureKind::Rejected => "rejected",
                FailureKind::NotRun => "not-run",
                FailureKind::Denied => "denied",
                FailureKind::System => "system",
            },
            Detail::Ran(execution) => match execution.ending {
                Ending::Exited(_) => "exit-status",
                Ending::Signalled(_) => "killed",
                Ending::TimedOut(_) => "timed-out",
                Ending::Interrupted => "interrupted",
                Ending::Lost => "lost",
                Ending::Stopped(_) => "stopped",
                Ending::NotStarted(_) => "not-started",
            },
            Detail::Ineffective { .. } => "ineffective-done",
            _ => "failed",
        };
        Some(word.to_owned())
    }

    /// The outcome of a malformed block.
    pub fn invalid(step: &Step, invalid: &Invalid) -> Self {
        let kind = match invalid.rejected {
            true => FailureKind::Rejected,
            false if step.ends => FailureKind::CutOff,
            false => FailureKind::Invalid,
        };
        let failure = Failure::new(kind, invalid.reason.clone()).as_a(invalid.mistake);
        Self::of(step, failure.into())
    }

    /// The outcome of a step that was not started, with the reason.
    pub fn not_run(step: &Step, why: &str) -> Self {
        let what = match &step.asks {
            StepContent::Operation(Operation::Run(run)) => {
                Some(format!("{} was not run: {why}", named(&run.command)))
            }
            StepContent::Operation(operation) => {
                operation.path().map(|path| format!("'{path}' was not touched: {why}"))
            }
            StepContent::Invalid(_) => None,
        };
        // An `error` event contains neither the path nor the command.
        let reason = match (what, &step.asked) {
            (Some(what), None) => what,
            (None, None) => format!("Not carried out: {why}"),
            (what, Some(_)) => format!("not carried out: {}", what.as_deref().unwrap_or(why)),
        };
        Self::of(step, Failure::new(FailureKind::NotRun, reason).into())
    }

    /// The outcomes of the steps beyond `limit`. For a message, there is one outcome per operation, because each has an
    /// event. For blocks, of which there may be millions, there is one outcome for all.
    pub fn not_run_from(left: &[Step], limit: usize) -> Vec<Self> {
        let Some(first) = left.first() else { return Vec::new() };
        let beyond_limit = |step: &Step| match &step.asks {
            StepContent::Invalid(invalid) if invalid.mistake == Mistake::TooMany => {
                Some(Self::invalid(step, invalid))
            }
            _ => None,
        };
        if let Some(each) = left.iter().map(beyond_limit).collect() {
            return each;
        }
        let were = if left.len() == 1 { "command was" } else { "commands were" };
        let reason = format!(
            "{} {were} from line {} on not carried out: only the first {limit} of one reply are",
            left.len(),
            first.line
        );
        let of_reply = Step::refused(first.line, Mistake::TooMany, "");
        vec![Self::of(&of_reply, Failure::new(FailureKind::NotRun, reason).into())]
    }

    /// Shortens each stream of a command's output to `limit` characters.
    #[must_use]
    pub fn within(&self, limit: usize) -> Self {
        let mut outcome = self.clone();
        if let Detail::Ran(execution) = &mut outcome.detail {
            execution.output = execution.output.within(limit);
        }
        outcome
    }

    /// Whether the operation concerns files or a command.
    pub fn is_work(&self) -> bool {
        !matches!(
            self.detail,
            Detail::Shown { .. } | Detail::Completed { .. } | Detail::Ineffective { .. }
        )
    }

    /// Whether the operation is a command.
    pub fn ran(&self) -> bool {
        matches!(self.detail, Detail::Ran(_))
    }

    /// Whether the operation is a command whose end is unknown.
    pub fn is_lost(&self) -> bool {
        matches!(&self.detail, Detail::Ran(execution) if execution.ending == Ending::Lost)
    }

    /// Whether the user or a policy denied the operation.
    pub fn is_denied(&self) -> bool {
        matches!(&self.detail, Detail::Failed(failure) if failure.kind == FailureKind::Denied)
    }

    /// Whether the reply could not be read from this step on.
    pub fn is_cut_off(&self) -> bool {
        matches!(&self.detail, Detail::Failed(failure) if failure.kind == FailureKind::CutOff)
    }

    /// Whether the block's text could not be read, so that nothing was tried.
    pub fn is_unread(&self) -> bool {
        matches!(
            &self.detail,
            Detail::Failed(Failure { kind: FailureKind::Invalid | FailureKind::CutOff, .. })
        )
    }

    /// Whether the operation failed. A `[DONE]` without effect did not fail.
    pub fn failed(&self) -> bool {
        !self.success() && !matches!(self.detail, Detail::Ineffective { .. })
    }

    /// Whether the operation succeeded. For a command, this means exit code 0.
    pub fn success(&self) -> bool {
        match &self.detail {
            Detail::Failed(_) | Detail::Ineffective { .. } => false,
            Detail::Ran(execution) => execution.ending == Ending::Exited(0),
            _ => true,
        }
    }
}

impl Failure {
    /// A failure of this kind.
    pub fn new(kind: FailureKind, reason: impl Into<String>) -> Self {
        Self {
            kind,
            mistake: None,
            reason: reason.into(),
            suggestion: None,
            excerpt: Excerpt::default(),
            real_path: None,
            present_file: None,
        }
    }

    /// Adds a suggestion, also to the reason. It is kept separately, too, because an event may replace the reason.
    #[must_use]
    pub fn suggesting(mut self, suggestion: String) -> Self {
        self.reason.push_str(&format!(": {suggestion}"));
        self.suggestion = Some(suggestion);
        self
    }

    /// Adds the kind of mistake.
    #[must_use]
    pub fn as_a(self, mistake: Mistake) -> Self {
        Self { mistake: Some(mistake), ..self }
    }

    /// A refusal for safety.
    pub fn rejected(reason: impl Into<String>) -> Self {
        Self::new(FailureKind::Rejected, reason)
    }

    /// A failure of an operation that is not possible.
    pub fn execution(reason: impl Into<String>) -> Self {
        Self::new(FailureKind::Execution, reason)
    }
}

impl From<PathFault> for Failure {
    fn from(fault: PathFault) -> Self {
        Self::rejected(fault.to_string()).as_a(Mistake::PathRefused)
    }
}

impl From<Failure> for Detail {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}
