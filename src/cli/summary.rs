//! How a reader takes an outcome, and the end of what commands wrote.

use crate::protocol::{Detail, Execution, FailureKind, Outcome};
use crate::runner::last_line;
use crate::secrets::Redactor;
use crate::settings::Secrets;
use crate::text::{indented, named, visible_line};

/// So many lines of the last command's output are shown at the end of a session.
const LAST_LINES: usize = 10;

/// How a reader takes an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// It was done.
    Done,
    /// It was tried and failed, or could not be understood.
    Failed,
    /// A policy, a person or deaddrop itself did not let it be done.
    Refused,
}

impl Mark {
    pub(super) fn of(outcome: &Outcome) -> Self {
        match &outcome.detail {
            Detail::Failed(failure)
                if matches!(failure.kind, FailureKind::Rejected | FailureKind::Denied) =>
            {
                Self::Refused
            }
            _ if outcome.success() => Self::Done,
            _ => Self::Failed,
        }
    }

    /// The mark as `--json` has it; these stay what they are.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Refused => "refused",
        }
    }
}

/// The last line that a command wrote, on standard error if anything stands there.
pub(super) fn last_of(outcome: &Outcome) -> Option<String> {
    let Detail::Ran(Execution { output, .. }) = &outcome.detail else { return None };
    let mut captures = output.captures().into_iter().rev();
    captures.find_map(|capture| {
        let end = if capture.tail.is_empty() { &capture.head } else { &capture.tail };
        last_line(end).map(|last| last.text)
    })
}

/// The end of what the last command wrote, in at most [`LAST_LINES`] lines, below a line that names the command; None if
/// it wrote nothing. Secrets that are known by their form are withheld. It is for the person alone: what their `.env`
/// contains is shown.
pub(super) fn last_output(outcomes: &[Outcome], secrets: &Secrets) -> Option<String> {
    let ran = outcomes.iter().rev().find_map(|outcome| match &outcome.detail {
        Detail::Ran(execution) => Some(execution),
        _ => None,
    })?;
    let (name, mut redactor) = (named(&ran.command), Redactor::new(secrets));
    let captures = ran.output.captures();
    let is_cut = captures.iter().any(|it| !it.tail.is_empty());
    let ends = captures.iter().map(|it| {
        let end = if it.tail.is_empty() { &it.head } else { &it.tail };
        redactor.output(&name, None, end).into_owned()
    });
    let text: String = ends.collect();
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let end = lines.get(lines.len().saturating_sub(LAST_LINES)..).filter(|end| !end.is_empty())?;
    let is_part = is_cut || end.len() < lines.len();
    let of = if is_part { "the end of the output" } else { "the output" };
    let end: Vec<_> = end.iter().map(|line| visible_line(line)).collect();
    Some(format!("This is {of} of {name}:\n{}", indented(&end.join("\n"))))
}
