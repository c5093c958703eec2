//! How a reader takes an outcome, the end of what commands wrote, and what a turn changed.

use serde::Serialize;

use crate::protocol::{Detail, Execution, FailureKind, Outcome};
use crate::runner::last_line;
use crate::secrets::Redactor;
use crate::session::log::LogEntry;
use crate::session::{CountedNames, FileChange, Ignored, Reversal, TurnChanges};
use crate::settings::Secrets;
use crate::text::{count, indented, named, visible_line};

/// So many lines of the last command's output are shown at the end of a session.
const LAST_LINES: usize = 10;

/// How a reader takes an outcome. `--json` has these words, which stay what they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
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

/// So many files are named.
const NAMED: usize = 8;

/// `2 files changed: src/a.py (+3 −1), new tests/b.py (+20)`, and folders and what cannot be undone where
/// there is such; None where nothing was.
pub(super) fn line(changed: &TurnChanges) -> Option<String> {
    let named: Vec<String> =
        changed.named.iter().take(NAMED).map(FileChange::describe_with_lines).collect();
    let files = list(changed.files, &named)
        .map(|named| format!("{} changed: {named}", count(changed.files, "file")));
    let folders = several(&changed.folders)
        .map(|named| format!("{} changed: {named}", count(changed.folders.count, "folder")));
    let unrestorable = match changed.back {
        None => lost(&changed.unrestorable, changed.ignored.as_ref()),
        Some(_) => None,
    };
    let back = changed.back.as_deref().map(back_told);
    let all: Vec<String> = [back, files, folders, unrestorable].into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.join("; "))
}

fn several(of: &CountedNames) -> Option<String> {
    list(of.count, &of.named[..of.named.len().min(NAMED)])
}

/// These names of so many; None of none.
fn list(all: usize, named: &[String]) -> Option<String> {
    let more = match all - named.len() {
        0 => String::new(),
        n => format!(" and {n} more (`deaddrop diff --stat`)"),
    };
    (all > 0).then(|| format!("{}{more}", named.join(", ")))
}

/// What cannot be taken back: what is not kept, and what is lost of what rules leave out.
fn lost(unrestorable: &CountedNames, ignored: Option<&Ignored>) -> Option<String> {
    let ignored = ignored.into_iter().flat_map(Ignored::describe_lost);
    let told: Vec<String> = several(unrestorable).into_iter().chain(ignored).collect();
    (!told.is_empty()).then(|| format!("cannot be undone: {}", told.join(", ")))
}

/// What a turn of the log did beside what is kept, in lines: what cannot be taken back of it; or where it took
/// `back` others, what it left as it is.
pub(super) fn beside(entry: &LogEntry, back: Option<&Ignored>) -> Vec<String> {
    let none = CountedNames::default();
    let lost = lost(&none, entry.ignored.as_ref());
    let left = back.map(|ignored| format!("not taken back (ignored): {}", ignored.describe()));
    lost.into_iter().chain(left).collect()
}

/// The same in a line each, without what cannot be undone.
pub(super) fn lines(changed: &TurnChanges) -> Vec<String> {
    let mut lines: Vec<String> =
        changed.named.iter().map(FileChange::describe_with_lines).collect();
    let more = |all: usize, named: usize, one: &str| match all - named {
        0 => None,
        n => Some(format!("and {} more", count(n, one))),
    };
    lines.extend(more(changed.files, changed.named.len(), "file"));
    lines.extend(changed.folders.named.iter().cloned());
    lines.extend(more(changed.folders.count, changed.folders.named.len(), "folder"));
    lines
}

fn back_told(back: &Reversal) -> String {
    let turns: Vec<String> = back.turns.iter().map(u32::to_string).collect();
    let which = if turns.len() == 1 { "Turn" } else { "Turns" };
    let what = if back.redid.is_some() { "put back" } else { "undone" };
    let left = match back.left.len() + back.others.count {
        0 => String::new(),
        n => format!(", but for {} (see above)", count(n, "place")),
    };
    format!("{which} {} {what}{left}", turns.join(", "))
}
