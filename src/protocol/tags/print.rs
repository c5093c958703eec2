//! Writes operations as blocks, the inverse of the reader, and outcomes as lines of an outbox (tag protocol,
//! "Previous Command Results").

use std::borrow::Cow;

use super::catalogue::{EDIT_BY_LINES, PART_FORM, name};
use super::{pairs, paths};
use crate::protocol::mistake::brief;
use crate::protocol::{
    Capture, Change, Detail, Ending, Excerpt, Execution, FailureKind, Operation, Outcome, Output,
    Part, Reading, RelPath, ShellCommand,
};
use crate::text::{byte_count, count, named, visible, visible_line};

/// A reply that asks for `operations`, in canonical form. Reading it gives the same operations,
/// as long as no body contains what the reader removes: a fence around all of it, or line
/// numbers. Edits by first occurrence, for which this dialect has no words, are left out.
pub fn print<'a>(operations: impl IntoIterator<Item = &'a Operation>) -> String {
    let operations: Vec<_> = operations.into_iter().map(|one| (one, body(one))).collect();
    let bodies = || operations.iter().filter_map(|(_, body)| body.as_deref());
    // A word that a body contains would leave a closing tag over there.
    let mut words = (1..=u32::MAX).map(|n| format!("EOF{n}"));
    let word = words.find(|word| !bodies().any(|body| body.contains(word.as_str())));
    let end = format!(" end=\"{}\"", word.unwrap_or_default());
    let mut out = String::new();
    for (operation, body) in &operations {
        if matches!(operation, Operation::Edit { change: Change::First(_), .. }) {
            continue;
        }
        let (name, attributes) = (name(operation.kind()), attributes(operation));
        out.push_str(&match body {
            None => format!("[{name}{attributes}]\n"),
            // Where the body may contain a tag of this name, the word closes it.
            Some(body) if body.contains('[') && body.to_ascii_uppercase().contains(name) => {
                format!("[{name}{attributes}{end}]\n{body}[/{name}{end}]\n")
            }
            Some(body) => format!("[{name}{attributes}]\n{body}[/{name}]\n"),
        });
    }
    out
}

/// The attributes in an operation's opening tag, each after a blank.
fn attributes(operation: &Operation) -> String {
    let place = |path: &RelPath| {
        let guard = if paths::needs_guard(path) { "./" } else { "" };
        Some(format!("{guard}{path}"))
    };
    let line = |line: Option<usize>| line.map(|line| line.to_string());
    let given = match operation {
        Operation::Edit { path, change: Change::Lines { start, end, .. } } => vec![
            ("path", place(path)),
            ("start_line", line(Some(*start))),
            ("end_line", line(Some(*end))),
        ],
        Operation::Create { path, .. }
        | Operation::Edit { path, .. }
        | Operation::Delete { path }
        | Operation::Read { path, reading: Reading::Now(_) } => vec![("path", place(path))],
        Operation::Read { path, reading: Reading::Later(Part { start, end, numbered }) } => vec![
            ("path", place(path)),
            ("start_line", line(*start)),
            ("end_line", line(*end)),
            ("numbered", numbered.then(|| "true".to_owned())),
        ],
        Operation::List { path } => vec![("path", path.as_ref().and_then(place))],
        Operation::Search { pattern, path } => {
            vec![("pattern", Some(pattern.clone())), ("path", path.as_ref().and_then(place))]
        }
        Operation::Move { path, to } => vec![("path", place(path)), ("to", place(to))],
        Operation::Done { if_ok, .. } => vec![("if", if_ok.then(|| "ok".to_owned()))],
        Operation::Run(_) | Operation::Message { .. } => Vec::new(),
    };
    let given = given.into_iter().filter_map(|(key, value)| Some((key, value?)));
    given.map(|(key, value)| format!(" {key}={}", quoted(&value))).collect()
}

/// A value in quotes. A double quote would end it, and entities are decoded wherever they are.
fn quoted(value: &str) -> String {
    let is_plain = !value.contains([';', '\'', '‘', '’', '‚', '‛', '′']);
    match value.contains('"') {
        true if is_plain => format!("'{value}'"),
        false if !value.contains(';') => format!("\"{value}\""),
        _ => format!("\"{}\"", value.replace('&', "&amp;").replace('"', "&quot;")),
    }
}

/// What is between the tags of an operation, if it has a body.
fn body(operation: &Operation) -> Option<Cow<'_, str>> {
    match operation {
        Operation::Create { content, .. } => Some(content.to_text()),
        Operation::Edit { change: Change::Lines { with, .. }, .. } => Some(Cow::from(with)),
        Operation::Edit {
            change: Change::Once(replacements) | Change::First(replacements),
            ..
        } => Some(Cow::from(pairs::write(replacements))),
        Operation::Run(ShellCommand { command: text, .. })
        | Operation::Message { text }
        | Operation::Done { summary: text, .. } => Some(Cow::from(format!("{text}\n"))),
        Operation::Delete { .. }
        | Operation::Read { .. }
        | Operation::List { .. }
        | Operation::Search { .. }
        | Operation::Move { .. } => None,
    }
}

/// The opening tag of an operation, cut where it is long.
pub(super) fn opening(operation: &Operation) -> String {
    brief(&format!("[{}{}]", name(operation.kind()), attributes(operation)))
}

/// Where in the reply an operation was asked for, and its tag as it was sent, if that differs from the
/// canonical one. It follows the reason of a failure.
pub fn asked_at(operation: &Operation, line: usize, as_sent: Option<&str>) -> String {
    let tag = as_sent.map_or_else(|| opening(operation), str::to_owned);
    format!(" (line {line} of the reply, `{tag}`)")
}

/// The same where the file has no such lines, with the form of a range. None if the operation has no range.
pub fn range_asked(operation: &Operation, line: usize, as_sent: Option<&str>) -> Option<String> {
    let form = match operation {
        Operation::Edit { change: Change::Lines { .. }, .. } => EDIT_BY_LINES,
        Operation::Read { .. } => PART_FORM,
        _ => return None,
    };
    let asked = asked_at(operation, line, as_sent);
    Some(format!("{asked}. Correct form, with lines that the file has: {form}"))
}

/// What came of an operation, in one line without its `[OK] NAME: `.
pub fn summary(outcome: &Outcome) -> String {
    match &outcome.detail {
        Detail::Shown { .. } => "Shown to the user".to_owned(),
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
                0 => format!("No line matches {pattern}{cut}"),
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
            match (failure.kind, &failure.suggestion) {
                (FailureKind::Rejected, _) => format!("REJECTED: {reason}"),
                (FailureKind::Denied, Some(advice)) => {
                    format!("DENIED: {reason}. {}", visible_line(advice))
                }
                (FailureKind::Denied, None) => format!("DENIED: {reason}"),
                _ => reason.into_owned(),
            }
        }
    }
}

/// A command's output as it is shown, one stream after the other where they were kept apart: head and tail, with a
/// line between them that counts what was left out; control characters made visible; no blank lines at the end.
pub fn output(output: &Output) -> String {
    let shown = |capture: &Capture| {
        let text = capture.text_of(&visible(&capture.head), &visible(&capture.tail));
        text.trim_end().to_owned()
    };
    let streams = output.captures().into_iter().map(shown).filter(|text| !text.is_empty());
    streams.collect::<Vec<_>>().join("\n")
}

/// How many lines of files all results of one outbox show.
pub const EXCERPT_LINES: usize = 400;

/// Lines of a file as they are shown, each behind its number: `12| text`. `room` is how many lines can
/// be shown yet; beyond that there is only a line that says so.
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

/// Whether lines of a file are shown where there is room for so many yet, and takes that from it.
pub fn has_room(excerpt: &Excerpt, room: &mut usize) -> bool {
    let left = room.checked_sub(excerpt.lines.len());
    *room = left.unwrap_or(*room);
    left.is_some()
}
