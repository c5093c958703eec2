//! What one operation came to: the same values for every dialect, rendered by each in its own way.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::operations::{Encoding, UtcTime};
use super::{
    Asked, Asks, Excerpt, Fresh, Invalid, Kind, Mistake, Operation, Output, Part, RelPath,
    Revision, Step, Warning, code,
};
use crate::text::{count, visible_line};

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
    /// What is told beside it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// What an event repeats of the operation; only where the session's dialect is operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Asked>,
    /// When it came to this; for events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<UtcTime>,
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
        /// The file before and after it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        revision: Option<Box<Revision>>,
    },
    /// Parts of a file were replaced, each where it occurred.
    Replaced {
        /// Which file, links resolved.
        path: RelPath,
        /// How many replacements were made.
        edits: usize,
        /// The file before and after them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        revision: Option<Box<Revision>>,
    },
    /// A file is gone.
    Deleted {
        /// Which.
        path: RelPath,
    },
    /// A file or a folder stands elsewhere.
    Moved {
        /// Where it stood.
        path: RelPath,
        /// Where it stands.
        to: RelPath,
        /// How many files a folder held; None for a file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        files: Option<usize>,
    },
    /// The files below a folder.
    Listed {
        /// Which folder; None for the workspace itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<RelPath>,
        /// How many files there are.
        files: usize,
        /// A line for each, as far as they are shown.
        shown: String,
    },
    /// The lines that a pattern matches.
    Found {
        /// The pattern.
        pattern: String,
        /// How many lines; where there are more, as many as were looked for.
        lines: usize,
        /// In how many files.
        files: usize,
        /// Whether not all was looked through.
        cut: bool,
        /// The first of the lines.
        #[serde(default)]
        hits: Vec<Hit>,
    },
    /// A file is to be shown in the next outbox; whether it can be is known then.
    ReadLater {
        /// Which.
        path: RelPath,
        /// Which lines of it, and how.
        #[serde(default, skip_serializing_if = "Part::is_whole")]
        part: Part,
    },
    /// A file was read in its place.
    Read {
        /// Which, links resolved.
        path: RelPath,
        /// All of it, in `encoding`.
        content: String,
        /// How it is written.
        encoding: Encoding,
        /// The size of the file in bytes.
        size: u64,
    },
    /// A command was run, or tried.
    Ran(Execution),
    /// The session was completed.
    Completed {
        /// The LLM's summary.
        summary: String,
    },
    /// The session was to be completed, and was not.
    Ineffective {
        /// The LLM's summary.
        summary: String,
        /// Why.
        reason: String,
    },
    /// What a preview cannot know, and why.
    Unknown {
        /// A phrase for the person.
        reason: String,
    },
    /// It failed. Unless the reason says otherwise, nothing was changed.
    Failed(Failure),
}

/// The most characters that are shown of a line that a search found.
pub const HIT_WIDTH: usize = 300;

/// A line that a search found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hit {
    /// The path of its file.
    pub path: String,
    /// Its number, from 1.
    pub line: usize,
    /// What it holds; of a very long line what is around the part that is shown.
    pub text: String,
    /// How many characters of that come before the part that is shown.
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
    /// The lines of what was listed or found, as they are shown.
    pub fn listing(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Listed { shown, .. } => Some(Cow::Borrowed(shown)),
            Self::Found { lines, hits, .. } => {
                let more = lines.saturating_sub(hits.len());
                let more = (more > 0).then(|| format!("… and {}\n", count(more, "more line")));
                Some(hits.iter().map(|hit| format!("{hit}\n")).chain(more).collect())
            }
            _ => None,
        }
    }
}

/// Why an operation failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// Of what sort.
    pub kind: FailureKind,
    /// Whose mistake of which sort it is, where it is one of the LLM's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mistake: Option<Mistake>,
    /// The reason, for the LLM to act on.
    pub reason: String,
    /// What to do instead, where somebody who denied it had a word on that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
    /// The lines of a file that help to send it right.
    #[serde(default, skip_serializing_if = "Excerpt::is_empty")]
    pub excerpt: Excerpt,
    /// The file that the reason and these lines are of, where they may show something of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<RelPath>,
    /// The file that these are of, where it was not what was believed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fresh: Option<Box<Fresh>>,
}

/// Sorts of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FailureKind {
    /// The block could not be understood.
    Invalid,
    /// The same, and nothing after it could be read either: the reply was cut off, perhaps.
    CutOff,
    /// Refused for safety; shown as `REJECTED: …`.
    Rejected,
    /// It could not be carried out as things stand: no such file, no such line.
    Execution,
    /// It was never begun.
    NotRun,
    /// A policy, or the person, denied it.
    Denied,
    /// The machine fails it: no sandbox, no disk.
    System,
}

/// How a command went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Execution {
    /// What the shell was given.
    pub command: String,
    /// How it ended.
    pub ending: Ending,
    /// What it wrote.
    pub output: Output,
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

impl Ending {
    /// How it ended, where it did not end by itself: a phrase, as it follows a command's name.
    pub fn in_words(&self) -> Option<String> {
        Some(match self {
            Self::Exited(_) => return None,
            Self::Signalled(signal) => format!("ended by signal {signal}"),
            Self::TimedOut(limit) => format!(
                "timed out after {} s; it and every process it had started were ended",
                limit.as_secs_f64()
            ),
            Self::Interrupted => "interrupted by the user; it may have partly run".to_owned(),
            Self::Lost => "deaddrop, or its process that ran the command, was stopped meanwhile: it may have run in part or as a whole, and is not run again; look at what it did".to_owned(),
            Self::Stopped(why) => format!(
                "ended by deaddrop with everything it had started: {}",
                crate::text::visible_line(why)
            ),
            Self::NotStarted(why) => crate::text::visible_line(why).into_owned(),
        })
    }
}

impl Outcome {
    /// The outcome of `step` with this detail.
    pub fn of(step: &Step, detail: Detail) -> Self {
        let warnings = step.warnings.iter().cloned().chain(detail.loosely()).collect();
        let (kind, line, asked) = (step.kind(), step.line, step.asked.clone());
        Self { kind, line, detail, warnings, asked, at: None }
    }

    /// A stable name for programs of why it did not succeed, such as `file-not-found`; None if it did.
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

    /// Whether it is of work on files or a command: neither words nor an end of the session.
    pub fn is_work(&self) -> bool {
        !matches!(
            self.detail,
            Detail::Shown { .. } | Detail::Completed { .. } | Detail::Ineffective { .. }
        )
    }

    /// Whether it is of a command that was run.
    pub fn ran(&self) -> bool {
        matches!(self.detail, Detail::Ran(_))
    }

    /// The outcome of a malformed block.
    pub fn invalid(step: &Step, invalid: &Invalid) -> Self {
        let kind = match invalid.rejected {
            true => FailureKind::Rejected,
            false if step.ends => FailureKind::CutOff,
            false => FailureKind::Invalid,
        };
        let failure = Failure::new(kind, invalid.reason.clone()).as_a(invalid.sort);
        Self::of(step, failure.into())
    }

    /// The outcome of a step that was never begun, and why.
    pub fn not_run(step: &Step, why: &str) -> Self {
        let what = match &step.asks {
            Asks::Operation(Operation::Run(run)) => {
                Some(format!("{} was not run: {why}", crate::text::named(&run.command)))
            }
            Asks::Operation(operation) => {
                operation.path().map(|path| format!("'{path}' was not touched: {why}"))
            }
            Asks::Invalid(_) => None,
        };
        // An `error` event names neither the path nor the command.
        let reason = match (what, &step.asked) {
            (Some(what), None) => what,
            (None, None) => format!("Not carried out: {why}"),
            (what, Some(_)) => format!("not carried out: {}", what.as_deref().unwrap_or(why)),
        };
        Self::of(step, Failure::new(FailureKind::NotRun, reason).into())
    }

    /// The outcomes of steps that are more than `limit`: one for each operation of a message, which has
    /// an event each, or one for all blocks, of which there may be millions.
    pub fn not_run_from(left: &[Step], limit: usize) -> Vec<Self> {
        let Some(first) = left.first() else { return Vec::new() };
        let beyond_limit = |step: &Step| match &step.asks {
            Asks::Invalid(invalid) if invalid.sort == Mistake::TooMany => {
                Some(Self::invalid(step, invalid))
            }
            _ => None,
        };
        if let Some(each) = left.iter().map(beyond_limit).collect() {
            return each;
        }
        let were = if left.len() == 1 { "command was" } else { "commands were" };
        let reason = format!(
            "{} {were} from line {} on not carried out: of one reply the first {limit} are",
            left.len(),
            first.line
        );
        let detail = Failure::new(FailureKind::NotRun, reason).into();
        let (kind, line, warnings) = (Kind::Reply, first.line, Vec::new());
        vec![Self { kind, line, detail, warnings, asked: None, at: None }]
    }

    /// The same with at most `limit` characters of each stream that a command wrote.
    #[must_use]
    pub fn within(&self, limit: usize) -> Self {
        let mut outcome = self.clone();
        if let Detail::Ran(execution) = &mut outcome.detail {
            execution.output = execution.output.within(limit);
        }
        outcome
    }

    /// Whether it is a command of which nobody knows how it ended.
    pub fn is_lost(&self) -> bool {
        matches!(&self.detail, Detail::Ran(execution) if execution.ending == Ending::Lost)
    }

    /// Whether the reply could not be read from there on.
    pub fn is_cut_off(&self) -> bool {
        matches!(&self.detail, Detail::Failed(failure) if failure.kind == FailureKind::CutOff)
    }

    /// Whether it is an operation that did not succeed. A `[DONE]` without effect is none.
    pub fn failed(&self) -> bool {
        !self.success() && !matches!(self.detail, Detail::Ineffective { .. })
    }

    /// Whether it did what was asked. A command succeeds with exit code 0.
    pub fn success(&self) -> bool {
        match &self.detail {
            Detail::Failed(_) | Detail::Ineffective { .. } => false,
            Detail::Ran(execution) => execution.ending == Ending::Exited(0),
            _ => true,
        }
    }
}

impl Failure {
    /// A failure of that sort.
    pub fn new(kind: FailureKind, reason: impl Into<String>) -> Self {
        let (suggestion, excerpt, of, fresh) = (None, Excerpt::default(), None, None);
        Self { kind, mistake: None, reason: reason.into(), suggestion, excerpt, of, fresh }
    }

    /// The same failure with a suggestion after its reason. An event, which may have other words for the
    /// reason, finds it by itself.
    #[must_use]
    pub fn suggesting(mut self, suggestion: String) -> Self {
        self.reason.push_str(&format!(": {suggestion}"));
        self.suggestion = Some(suggestion);
        self
    }

    /// The same failure, as a mistake of that sort.
    #[must_use]
    pub fn as_a(self, mistake: Mistake) -> Self {
        Self { mistake: Some(mistake), ..self }
    }

    /// Refused for safety.
    pub fn rejected(reason: impl Into<String>) -> Self {
        Self::new(FailureKind::Rejected, reason)
    }

    /// Not possible as things stand.
    pub fn execution(reason: impl Into<String>) -> Self {
        Self::new(FailureKind::Execution, reason)
    }
}

impl From<Failure> for Detail {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}
