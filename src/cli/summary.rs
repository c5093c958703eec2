//! Summaries for a reader: marks of outcomes, the end of command output, and the changes of a turn.

use serde::Serialize;

use crate::protocol::{Detail, Execution, FailureKind, Outcome};
use crate::runner::last_line;
use crate::secrets::Redactor;
use crate::session::log::LogEntry;
use crate::session::{CountedNames, FileChange, Ignored, Reversal, TurnChanges};
use crate::settings::Secrets;
use crate::text::{count, first_of, indented, named, visible_line};

/// The most lines of the last command's output that are shown at the end of a session.
const LAST_LINES: usize = 10;

/// The mark of an outcome for a reader. `--json` prints these words, so they must not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum OutcomeMark {
    /// The operation was done.
    Done,
    /// The operation failed, or could not be understood.
    Failed,
    /// A policy, the person or deaddrop itself prevented the operation.
    Refused,
}

impl OutcomeMark {
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

/// The last line that a command wrote to standard error or, if there is none, to standard output.
pub(super) fn last_output_line(outcome: &Outcome) -> Option<String> {
    let Detail::Ran(Execution { output, .. }) = &outcome.detail else { return None };
    let mut captures = output.captures().into_iter().rev();
    captures.find_map(|capture| {
        let end = if capture.tail.is_empty() { &capture.head } else { &capture.tail };
        last_line(end).map(|last| last.text)
    })
}

/// The end of the last command's output (at most [`LAST_LINES`] lines), after a line with the command. None if there is
/// no output. Secrets with a known format are withheld. Values from `.env` are shown, as only the person sees this.
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

/// The most files that are named.
const MAX_NAMES: usize = 8;

/// `2 files changed: src/a.py (+3 −1), new tests/b.py (+20)`, followed by changed folders and by what cannot be undone.
/// An undo names its session. None if nothing changed.
pub(super) fn changes_line(changed: &TurnChanges, session: &str) -> Option<String> {
    let named: Vec<String> = changed.named.iter().map(FileChange::describe_with_lines).collect();
    let files = list(changed.files, &named)
        .map(|named| format!("{} changed: {named}", count(changed.files, "file")));
    let folders = list_several(&changed.folders)
        .map(|named| format!("{} changed: {named}", count(changed.folders.count, "folder")));
    let unrestorable = match changed.back {
        None => describe_lost(&changed.unrestorable, changed.ignored.as_ref()),
        Some(_) => None,
    };
    let back = changed.back.as_deref().map(|back| describe_undo(back, session));
    let all: Vec<String> = [back, files, folders, unrestorable].into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.join("; "))
}

fn list_several(of: &CountedNames) -> Option<String> {
    list(of.count, &of.named)
}

/// The first of these names, and a hint if `all` is greater; None if `all` is 0.
fn list(all: usize, named: &[String]) -> Option<String> {
    let hint = if all > named.len().min(MAX_NAMES) { " (`deaddrop diff --stat`)" } else { "" };
    (all > 0).then(|| first_of(named, MAX_NAMES, all) + hint)
}

/// Describes what cannot be undone: files that are not stored, and lost ignored files.
fn describe_lost(unrestorable: &CountedNames, ignored: Option<&Ignored>) -> Option<String> {
    let ignored = ignored.into_iter().flat_map(Ignored::describe_lost);
    let parts: Vec<String> = list_several(unrestorable).into_iter().chain(ignored).collect();
    (!parts.is_empty()).then(|| format!("cannot be undone: {}", parts.join(", ")))
}

/// Lines about files that are not stored, for a turn in the log: what cannot be undone and, if the turn is an undo, the
/// ignored files (`left`) that it did not change.
pub(super) fn unkept_lines(entry: &LogEntry, left: Option<&Ignored>) -> Vec<String> {
    let none = CountedNames::default();
    let lost = describe_lost(&none, entry.ignored.as_ref());
    let left = left.map(|ignored| format!("not taken back (ignored): {}", ignored.describe()));
    lost.into_iter().chain(left).collect()
}

/// The changes of a turn, one per line, without what cannot be undone.
pub(super) fn change_lines(changed: &TurnChanges) -> Vec<String> {
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

fn describe_undo(back: &Reversal, session: &str) -> String {
    let turns: Vec<String> = back.turns.iter().map(u32::to_string).collect();
    let which = if turns.len() == 1 { "Turn" } else { "Turns" };
    let what = if back.redid.is_some() { "put back" } else { "undone" };
    let left = match back.left.len() + back.others.count {
        0 => String::new(),
        n => format!(", but for {} (see above)", count(n, "place")),
    };
    format!("{which} {} {what} in session {session}{left}", turns.join(", "))
}
