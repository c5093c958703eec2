//! How outcomes are told in this dialect (tag protocol, "Previous Command Results").

use crate::protocol::{Capture, Detail, Ending, Excerpt, Execution, FailureKind, Outcome, Output};
use crate::text::{byte_count, count, named, visible, visible_line};

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
        Detail::Unknown { reason } => visible_line(reason).into_owned(),
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
