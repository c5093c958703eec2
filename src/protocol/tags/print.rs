//! Writes operations as blocks, the inverse of the reader, and outcomes as lines of an outbox (tag protocol,
//! "Previous Command Results").

use std::borrow::Cow;
use std::fmt::Write;

use super::catalogue::{EDIT_BY_LINES, name};
use super::{pairs, paths};
use crate::protocol::mistake::brief;
use crate::protocol::{
    Capture, Change, Detail, Ending, Excerpt, Execution, FailureKind, Operation, Outcome, Output,
    Part, Reading, RelPath, ShellCommand,
};
use crate::text::{byte_count, count, named, visible, visible_line};

/// A reply that asks for `operations`, in canonical form. Reading it gives the same operations,
/// as long as no body holds what reading takes for none of it: a fence around all of it, a gutter of
/// line numbers. Edits by first occurrence, for which this dialect has no words, are left out.
pub fn print<'a>(operations: impl IntoIterator<Item = &'a Operation>) -> String {
    let mut out = String::new();
    let operations: Vec<&Operation> = operations.into_iter().collect();
    let word = word_for(&operations);
    for operation in operations {
        let name = name(operation.kind());
        let path = |path: &RelPath| {
            let guard = if paths::needs_guard(path) { "./" } else { "" };
            format!(" path=\"{guard}{}\"", escaped(path.as_str()))
        };
        // Writing to a String cannot fail.
        let _ = match operation {
            Operation::Edit { change: Change::First(_), .. } => Ok(()),
            Operation::Edit { path: at, change: Change::Lines { start, end, .. } } => {
                let range = format!(" start_line=\"{start}\" end_line=\"{end}\"");
                block(&mut out, &word, name, &(path(at) + &range), &body(operation))
            }
            Operation::Create { path: at, .. } | Operation::Edit { path: at, .. } => {
                block(&mut out, &word, name, &path(at), &body(operation))
            }
            Operation::Delete { path: at } => writeln!(out, "[{name}{}]", path(at)),
            Operation::Read { path: at, reading } => {
                let part = match reading {
                    Reading::Later(part) => *part,
                    Reading::Now(_) => Part::default(),
                };
                let line = |key: &str, line: Option<usize>| {
                    line.map_or(String::new(), |line| format!(" {key}=\"{line}\""))
                };
                let numbered = if part.numbered { " numbered=\"true\"" } else { "" };
                let lines = line("start_line", part.start) + &line("end_line", part.end);
                writeln!(out, "[{name}{}{lines}{numbered}]", path(at))
            }
            Operation::List { path: at } => {
                writeln!(out, "[{name}{}]", at.as_ref().map(path).unwrap_or_default())
            }
            Operation::Search { pattern, path: at } => {
                // As it is, where single quotes can hold it.
                let is_plain = !pattern.contains([';', '\'', '‘', '’', '‚', '‛', '′']);
                let quoted = if pattern.contains('"') && is_plain {
                    format!("'{pattern}'")
                } else {
                    format!("\"{}\"", escaped(pattern))
                };
                let at = at.as_ref().map(path).unwrap_or_default();
                writeln!(out, "[{name} pattern={quoted}{at}]")
            }
            Operation::Move { path: at, to } => {
                let to = path(to).replacen("path", "to", 1);
                writeln!(out, "[{name}{}{to}]", path(at))
            }
            Operation::Done { if_ok: true, .. } => {
                block(&mut out, &word, name, " if=\"ok\"", &body(operation))
            }
            Operation::Run(_) | Operation::Message { .. } | Operation::Done { .. } => {
                block(&mut out, &word, name, "", &body(operation))
            }
        };
    }
    out
}

/// The opening tag of an operation, cut where it is long.
pub(super) fn opening(operation: &Operation) -> Option<String> {
    let printed = print([&without_body(operation)]);
    printed.lines().next().map(brief)
}

/// What is told behind the reason why an operation failed: where in the reply it was asked for, and the
/// tag as it was sent, where that is another than would be written.
pub fn asked_at(operation: &Operation, line: usize, as_sent: Option<&str>) -> String {
    let tag = as_sent.map(str::to_owned).or_else(|| opening(operation));
    let tag = tag.map(|tag| format!(", `{tag}`"));
    format!(" (line {line} of the reply{})", tag.unwrap_or_default())
}

/// The same where there are no such lines, and how a range is given. None of what has no range.
pub fn range_asked(operation: &Operation, line: usize, as_sent: Option<&str>) -> Option<String> {
    let form = match operation {
        Operation::Edit { change: Change::Lines { .. }, .. } => EDIT_BY_LINES,
        Operation::Read { .. } => PART_FORM,
        _ => return None,
    };
    let asked = asked_at(operation, line, as_sent);
    Some(format!("{asked}. Correct form, with lines that the file has: {form}"))
}

/// An operation as its opening tag tells it.
fn without_body(operation: &Operation) -> Operation {
    match operation {
        Operation::Create { path, existing, .. } => Operation::Create {
            path: path.clone(),
            content: String::new().into(),
            existing: *existing,
        },
        Operation::Edit { path, change } => {
            let change = match change {
                Change::Lines { start, end, .. } => {
                    let (start, end) = (*start, *end);
                    Change::Lines { start, end, with: String::new(), seen: None }
                }
                Change::Once(_) | Change::First(_) => Change::Once(Vec::new()),
            };
            Operation::Edit { path: path.clone(), change }
        }
        Operation::Run(_) => Operation::Run(ShellCommand::new(String::new())),
        Operation::Message { .. } => Operation::Message { text: String::new() },
        Operation::Done { if_ok, .. } => Operation::Done { summary: String::new(), if_ok: *if_ok },
        other => other.clone(),
    }
}

/// How a part of a file is asked for.
pub(super) const PART_FORM: &str =
    "[READ_FILE path=\"relative/path\" start_line=\"3\" end_line=\"9\" numbered=\"true\"]";

/// A value as it stands between double quotes: one of them would end it, and entities are read wherever
/// they stand in it.
fn escaped(value: &str) -> Cow<'_, str> {
    if value.contains(['"', ';']) {
        Cow::from(value.replace('&', "&amp;").replace('"', "&quot;"))
    } else {
        Cow::from(value)
    }
}

/// A word that none of their bodies holds: one that another block's body holds would leave a closing tag
/// over there.
fn word_for(operations: &[&Operation]) -> String {
    let bodies: Vec<Cow<'_, str>> = operations.iter().map(|operation| body(operation)).collect();
    let mut words = (1..=u32::MAX).map(|n| format!("EOF{n}"));
    let word = words.find(|word| !bodies.iter().any(|body| body.contains(word.as_str())));
    word.unwrap_or_default()
}

/// What stands between the tags of an operation.
fn body(operation: &Operation) -> Cow<'_, str> {
    match operation {
        Operation::Create { content, .. } => content.to_text(),
        Operation::Edit { change: Change::Lines { with, .. }, .. } => Cow::from(with),
        Operation::Edit { change: Change::Once(replacements), .. } => {
            Cow::from(pairs::write(replacements))
        }
        Operation::Run(ShellCommand { command: text, .. })
        | Operation::Message { text }
        | Operation::Done { summary: text, .. } => Cow::from(format!("{text}\n")),
        _ => Cow::from(""),
    }
}

/// A block with a body; where that may hold a tag of its own name, the word closes it instead.
fn block(
    out: &mut String,
    word: &str,
    name: &str,
    attributes: &str,
    body: &str,
) -> std::fmt::Result {
    let mut end = String::new();
    if body.contains('[') && body.to_ascii_uppercase().contains(name) {
        end = format!(" end=\"{word}\"");
    }
    writeln!(out, "[{name}{attributes}{end}]\n{body}[/{name}{end}]")
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
        Detail::Ran(execution) => ran(execution),
        Detail::Completed { .. } => "The session is complete".to_owned(),
        Detail::Ineffective { reason, .. } | Detail::Unknown { reason } => {
            visible_line(reason).into_owned()
        }
        Detail::Failed(failure) if failure.kind == FailureKind::Rejected => {
            format!("REJECTED: {}", visible_line(&failure.reason))
        }
        Detail::Failed(failure) if failure.kind == FailureKind::Denied => {
            let suggestion = failure.suggestion.as_deref();
            let suggestion = suggestion.map_or(String::new(), |text| format!(". {text}"));
            format!("DENIED: {}", visible_line(&(failure.reason.clone() + &suggestion)))
        }
        Detail::Failed(failure) => visible_line(&failure.reason).into_owned(),
    }
}

fn ran(execution: &Execution) -> String {
    let name = named(&execution.command);
    match (&execution.ending, execution.ending.in_words()) {
        (Ending::Exited(code), _) => format!("Ran {name} (exit code {code})"),
        (Ending::NotStarted(_), words) => {
            format!("Could not run {name}: {}", words.unwrap_or_default())
        }
        (_, words) => format!("Ran {name} ({})", words.unwrap_or_default()),
    }
}

/// A command's output as it is shown, one stream after the other where they were kept apart.
pub fn output(output: &Output) -> String {
    let shown = output.captures().into_iter().map(captured).filter(|text| !text.is_empty());
    shown.collect::<Vec<_>>().join("\n")
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

/// A stream as it is shown: head and tail, with a line between them that counts what was left out;
/// control characters made visible; no blank lines at the end.
fn captured(capture: &Capture) -> String {
    let mut shown = capture.text_of(&visible(&capture.head), &visible(&capture.tail));
    shown.truncate(shown.trim_end().len());
    shown
}
