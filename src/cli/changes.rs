//! What would become of files, as a person reads it.

use std::borrow::Cow;

use similar::TextDiff;

use super::output::Terminal;
use super::rows::{BAR, pieces};
use crate::executor::{Rewritten, Standing};
use crate::protocol::Digest;
use crate::terminal::Styled;
use crate::text::{count, visible, visible_line};

/// What becomes of a file.
pub(super) fn change(file: &Rewritten) -> &'static str {
    match (&file.before, &file.after) {
        (None, _) => "created",
        (_, None) => "deleted",
        _ => "changed",
    }
}

/// What becomes of a file, as `--json` has it.
pub(super) fn to_json(file: &Rewritten) -> serde_json::Value {
    serde_json::json!({
        "path": file.path.as_str(), "change": change(file), "diff": diff(file),
    })
}

/// What a reply would change in a file, as a unified diff.
pub(super) fn diff(file: &Rewritten) -> String {
    let path = visible_line(file.path.as_str());
    unified(&path, file.before.as_ref(), file.after.as_ref())
}

/// What a unified diff calls its sides.
fn sides_of(path: &str, before: Option<&Standing>, after: Option<&Standing>) -> (String, String) {
    let name = |side: &str, standing: Option<&Standing>| match standing {
        Some(_) => format!("{side}/{path}"),
        None => "/dev/null".to_owned(),
    };
    (name("a", before), name("b", after))
}

/// What identifies both sides.
fn both(before: Option<&Standing>, after: Option<&Standing>) -> String {
    format!("{} -> {}", told(before), told(after))
}

/// What is told instead of a diff of what is no text.
pub(super) fn binary(path: &str, before: Option<&Standing>, after: Option<&Standing>) -> String {
    let (old, new) = sides_of(path, before, after);
    format!("--- {old}\n+++ {new}\n(binary: {})\n", both(before, after))
}

/// How what stands at `path`, a line for people, changes, as a unified diff.
pub(super) fn unified(
    path: &str,
    file_before: Option<&Standing>,
    file_after: Option<&Standing>,
) -> String {
    let (old, new) = sides_of(path, file_before, file_after);
    let instead = |what: &str| format!("--- {old}\n+++ {new}\n({what})\n");
    if [file_before, file_after].into_iter().any(|side| matches!(side, Some(Standing::Large))) {
        return instead("too large to show");
    }
    let sides = || both(file_before, file_after);
    let (Some(before), Some(after)) = (text(file_before), text(file_after)) else {
        return binary(path, file_before, file_after);
    };
    if before.is_empty() && after.is_empty() {
        return if file_before == file_after { String::new() } else { instead(&sides()) };
    }
    if file_before != file_after && shown(&before) == shown(&after) {
        return binary(path, file_before, file_after);
    }
    // Lines end where a line feed does: a return alone would hide the begin of the next.
    let before: Vec<_> = before.split_inclusive('\n').collect();
    let after: Vec<_> = after.split_inclusive('\n').collect();
    let mut config = TextDiff::configure();
    let diff = config.newline_terminated(true).diff_slices(&before, &after);
    diff.unified_diff().header(&old, &new).to_string()
}

/// What stands somewhere as a text; None where it is none.
fn text(standing: Option<&Standing>) -> Option<Cow<'_, str>> {
    match standing {
        None => Some(Cow::Borrowed("")),
        Some(Standing::File(bytes)) => str::from_utf8(bytes).ok().map(Cow::Borrowed),
        Some(Standing::Link(target)) => Some(Cow::Owned(format!("(a link to {target})\n"))),
        Some(Standing::Large) => None,
    }
}

/// What identifies that which stands somewhere.
fn told(standing: Option<&Standing>) -> String {
    match standing {
        None => "nothing".to_owned(),
        Some(Standing::File(bytes)) => {
            format!("{}, digest {}", count(bytes.len(), "byte"), Digest::of(bytes).as_str())
        }
        Some(Standing::Link(target)) => format!("a link to '{}'", visible_line(target)),
        Some(Standing::Large) => "too large to show".to_owned(),
    }
}

/// A text with everything in it visible, the returns at the ends of its lines too.
fn shown(text: &str) -> String {
    visible(&text.replace('\r', "␍")).into_owned()
}

/// A diff in rows of this width that begin with the bar, and what goes on with a line with `…`.
pub(super) fn rows(ui: &Terminal, diff: &str, width: usize) -> Vec<Styled> {
    let room = width - BAR.len() - 2;
    let mut rows = Vec::new();
    for line in shown(diff).trim_end_matches('\n').split('\n') {
        for (n, piece) in pieces(line, room).into_iter().enumerate() {
            let piece = if n == 0 { piece } else { format!("…{piece}") };
            rows.push(Styled::from(BAR) + painted(ui, line, &piece));
        }
    }
    rows
}

/// A diff in the colours of `ui`, with everything in it visible.
pub(super) fn coloured(ui: &Terminal, diff: &str) -> Styled {
    let (shown, mut text) = (shown(diff), Styled::default());
    for (n, line) in shown.trim_end().split('\n').enumerate() {
        text.push(if n == 0 { "" } else { "\n" });
        text.push(painted(ui, line, line));
    }
    text
}

/// A part of a line of a diff in the colour of the line.
fn painted(ui: &Terminal, line: &str, part: &str) -> Styled {
    match line.as_bytes().first() {
        Some(b'+') => ui.green(part),
        Some(b'-') => ui.red(part),
        _ => part.into(),
    }
}
