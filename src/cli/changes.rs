//! What becomes of files, as patches that a person can read.

use super::output::Terminal;
use super::patch::{Side, is_binary, patch};
use super::rows::{BAR, pieces};
use crate::executor::{Rewritten, Standing};
use crate::terminal::Styled;
use crate::text::{count, visible, visible_line};

/// What becomes of a file, as `--json` has it.
pub(super) fn to_json(file: &Rewritten) -> serde_json::Value {
    let change = match (&file.before, &file.after) {
        (None, _) => "created",
        (_, None) => "deleted",
        _ => "changed",
    };
    serde_json::json!({
        "path": file.path.as_str(), "change": change, "before": file.by_step, "diff": diff(file),
    })
}

/// What a reply would change in a file, as a patch.
pub(super) fn diff(file: &Rewritten) -> String {
    let standings = [&file.before, &file.after];
    if standings.into_iter().any(|standing| matches!(standing, Some(Standing::Large))) {
        let path = visible_line(file.path.as_str());
        return format!("--- a/{path}\n+++ b/{path}\n(too large to show)\n");
    }
    let side = |standing: &Option<Standing>| Side::of(standing.clone()?, false);
    let [before, after] = standings.map(side);
    let patch = patch(file.path.as_str().as_bytes(), before.as_ref(), after.as_ref());
    readable(&patch) + &sizes(before.as_ref(), after.as_ref())
}

/// How large both sides are, where that is all that can be told.
pub(super) fn sizes(before: Option<&Side>, after: Option<&Side>) -> String {
    let size = |side: Option<&Side>| {
        side.map_or("nothing".to_owned(), |side| count(side.bytes.len(), "byte"))
    };
    if [before, after].into_iter().flatten().any(|side| is_binary(&side.bytes)) {
        format!("# {} -> {}\n", size(before), size(after))
    } else {
        String::new()
    }
}

/// A patch as a text to look at: each byte that is not UTF-8 stands as `<E9>`.
pub(super) fn readable(patch: &[u8]) -> String {
    let mut text = String::with_capacity(patch.len());
    for chunk in patch.utf8_chunks() {
        text.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!("<{byte:02X}>")));
    }
    text
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
