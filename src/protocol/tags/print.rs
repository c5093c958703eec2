//! Formats outcomes as lines of an outbox (tag protocol, "Previous Command Results").

use super::catalogue::{EDIT_BY_LINES, PART_FORM};
use crate::protocol::{
    Capture, Change, CommandOutput, Detail, Ending, Excerpt, Execution, FailureKind, Mistake,
    Operation, Outcome,
};
use crate::text::{byte_count, count, named, visible, visible_line};

/// The line of the reply that requested an operation, and its tag as it was sent. Follows the reason of a failure.
pub fn asked_at(line: usize, as_sent: Option<&str>) -> String {
    let tag = as_sent.map_or(String::new(), |tag| format!(", `{tag}`"));
    format!(" (line {line} of the reply{tag})")
}

/// The correct form of a line range, for an error about lines that do not exist. None if the operation has no range.
pub fn form_of_range(operation: &Operation) -> Option<String> {
    let form = match operation {
        Operation::Edit { change: Change::Lines { .. }, .. } => EDIT_BY_LINES,
        Operation::Read { .. } => PART_FORM,
        _ => return None,
    };
    Some(format!(". Correct form, with lines that the file has: {form}"))
}

/// The outcome of an operation in one line, without the `[OK] NAME: ` at its beginning.
pub fn summary(outcome: &Outcome) -> String {
    match &outcome.detail {
        Detail::Shown { text } => format!("Shown to the user: {}", named(text)),
        Detail::Created { path, replaced, .. } => {
            format!("{} '{path}'", if *replaced { "Replaced" } else { "Created" })
        }
        Detail::Edited { path, lines: (start, end), inserted, total, .. } => {
            let lines =
                if start == end { format!("line {start}") } else { format!("lines {start}-{end}") };
            let became = match inserted {
                0 => "removed".to_owned(),
                n => format!("replaced by {}", count(*n, "line")),
            };
            format!(
                "Edited '{path}' ({lines} {became}; the file has {} now)",
                count(*total, "line")
            )
        }
        Detail::Replaced { path, edits, .. } => {
            format!("Edited '{path}' ({})", count(*edits, "replacement"))
        }
        Detail::Read { path, size, .. } => format!("Read '{path}' ({})", byte_count(*size)),
        Detail::Deleted { path } => format!("Deleted '{path}'"),
        Detail::Moved { path, to, files } => {
            let held = files.map_or(String::new(), |files| format!(" ({})", count(files, "file")));
            format!("Moved '{path}' to '{to}'{held}")
        }
        Detail::Listed { path, files, .. } => {
            let folder =
                path.as_ref().map_or("the workspace".to_owned(), |path| format!("'{path}'"));
            format!("{} in {folder}", count(*files, "file"))
        }
        Detail::Found { pattern, lines, files, cut, .. } => {
            let pattern = named(pattern);
            let cut = if *cut { "; not all was looked through" } else { "" };
            match lines {
                0 => format!(
                    "No line matches {pattern}{cut}; ignored files are searched only if path names them"
                ),
                lines => format!(
                    "{} in {} {} {pattern}{cut}",
                    count(*lines, "line"),
                    count(*files, "file"),
                    if *lines == 1 { "matches" } else { "match" }
                ),
            }
        }
        Detail::ReadLater { path, .. } => format!("'{path}' will be shown in the next outbox"),
        Detail::Ran(Execution { command, ending, .. }) => {
            let (command, words) = (named(command), ending.in_words().unwrap_or_default());
            match ending {
                Ending::Exited(code) => format!("Ran {command} (exit code {code})"),
                Ending::NotStarted(_) => format!("Could not run {command}: {words}"),
                _ => format!("Ran {command} ({words})"),
            }
        }
        Detail::Completed { .. } => "The session is complete".to_owned(),
        Detail::Ineffective { reason, .. } | Detail::Unknown { reason } => {
            visible_line(reason).into_owned()
        }
        Detail::Failed(failure) => {
            let reason = visible_line(&failure.reason);
            match (failure.mistake, failure.kind, &failure.suggestion) {
                (Some(Mistake::PathRefused), ..) => format!("REJECTED: {reason}"),
                (_, FailureKind::Denied, Some(advice)) => {
                    format!("{reason}. {}", visible_line(advice))
                }
                _ => reason.into_owned(),
            }
        }
    }
}

/// The output of a command, with separate streams one after the other. A line between head and tail gives the length of
/// the omitted part. Control characters are made visible, and blank lines at the end are removed.
pub fn output(output: &CommandOutput) -> String {
    let shown = |capture: &Capture| {
        let text = capture.text_of(&visible(&capture.head), &visible(&capture.tail));
        text.trim_end().to_owned()
    };
    let streams = output.captures().into_iter().map(shown).filter(|text| !text.is_empty());
    streams.collect::<Vec<_>>().join("\n")
}

/// The most lines of files that all results in one outbox show.
pub const EXCERPT_LINES: usize = 400;

/// The lines of a file, each after its number: `12| text`. `room` is the number of lines that may still be shown. If
/// the excerpt has more lines, a note is returned instead.
///
/// # Examples
/// ```
/// use deaddrop::protocol::{Excerpt, tags};
/// let excerpt = Excerpt { lines: vec![(9, "a".into()), (10, "".into()), (13, "\x1b".into())], more: 2 };
/// let shown = " 9| a\n10|\n  ...\n13| ␛\n  ... (2 more places)\n";
/// assert_eq!(tags::excerpt(&excerpt, &mut 3), shown);
/// assert_eq!(tags::excerpt(&excerpt, &mut 2), "(lines 9-13 are not shown: too many for one outbox)\n");
/// ```
pub fn excerpt(excerpt: &Excerpt, room: &mut usize) -> String {
    let Excerpt { lines, more } = excerpt;
    let (Some((first, _)), Some((last, _))) = (lines.first(), lines.last()) else {
        return String::new();
    };
    if !has_room(excerpt, room) {
        return format!("(lines {first}-{last} are not shown: too many for one outbox)\n");
    }
    let width = last.to_string().len();
    let mut shown = String::new();
    let mut next = *first;
    for (number, line) in lines {
        if *number != next {
            shown.push_str(&format!("{:>width$}...\n", ""));
        }
        next = number.saturating_add(1);
        let line = visible(line).replace('\n', "␊");
        let blank = if line.is_empty() { "" } else { " " };
        shown.push_str(&format!("{number:>width$}|{blank}{line}\n"));
    }
    if *more > 0 {
        shown.push_str(&format!("{:>width$}... ({})\n", "", count(*more, "more place")));
    }
    shown
}

/// Whether an excerpt fits into the remaining room. If it does, its lines are subtracted from the room.
pub fn has_room(excerpt: &Excerpt, room: &mut usize) -> bool {
    let left = room.checked_sub(excerpt.lines.len());
    *room = left.unwrap_or(*room);
    left.is_some()
}
