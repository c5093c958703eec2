//! What stands around or before the lines of a body and is none of it: a fence, line numbers, the
//! signs of a quotation or a diff. A body is changed only where that is beyond doubt, with a warning.

use super::notes::fence_of;
use super::sorts::{Sort, sort};
use super::wrong::{Wrong, wrong};
use crate::protocol::{Kind, Mistake, RelPath, Warning, WarningSort};

/// A body, and the line of the reply that it begins on.
pub(super) struct Body<'a> {
    pub(super) kind: Kind,
    pub(super) path: Option<&'a RelPath>,
    pub(super) text: String,
    pub(super) line: usize,
    /// The number of its first line in the file.
    pub(super) first: Option<u64>,
}

/// Takes off what is none of the body. An error says what is wrong with it.
pub(super) fn repaired(body: Body<'_>, warnings: &mut Vec<Warning>) -> Result<String, Wrong> {
    let Body { kind, path, mut text, line, first } = body;
    let sort = path.map_or(Sort::Code, sort);
    let is_file = matches!(kind, Kind::Create | Kind::Edit);
    if (is_file && sort == Sort::Code) || kind == Kind::Run {
        let blank =
            if kind == Kind::Run { text.len() - without_blank_lines(&text).len() } else { 0 };
        if let Some(inner) = fenced(&text[blank..], kind == Kind::Run)? {
            let told = format!(
                "the body from line {line} on stood in a fence of its own, which was taken off: send it without one"
            );
            warnings.push(Warning::new(WarningSort::FenceTakenOff, told));
            text = String::from(inner);
        }
    }
    if !is_file {
        return Ok(text);
    }
    if sort != Sort::Code {
        return Ok(text);
    }
    if let Some(plain) = without_gutter(&text, first, line, warnings)? {
        let told = format!(
            "the line numbers before each line of the body from line {line} on were taken off: send it without them"
        );
        warnings.push(Warning::new(WarningSort::NumbersTakenOff, told));
        text = plain;
    }
    let is_patch = path.is_some_and(|path| path.as_str().split('/').any(|part| part == "patches"));
    if kind == Kind::Create && !is_patch && is_diff(&text) {
        let told = "the body is a diff and not the content of the file: send all of the content, or EDIT_FILE the lines that change (a file that is to hold a diff has a name in .diff or .patch, or a folder patches)";
        return Err(wrong(Mistake::Diff, told));
    }
    if kind == Kind::Edit && has_conflict(&text) {
        let told = "the body holds conflict markers (<<<<<<<, =======, >>>>>>>): send the lines as they are to be";
        return Err(wrong(Mistake::ConflictMarkers, told));
    }
    Ok(text)
}

/// Without the `>` that stand before each of its lines, as many as before the tag; None where they
/// do not stand before each.
pub(super) fn unquoted(text: &str, depth: u8) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let mut rest = line;
        for _ in 0..depth {
            rest = rest.trim_start_matches([' ', '\t']).strip_prefix('>')?;
        }
        plain.push_str(rest.strip_prefix(' ').unwrap_or(rest));
    }
    Some(plain)
}

fn without_blank_lines(text: &str) -> &str {
    let blank = text.len() - text.trim_start().len();
    let begin = text[..blank].rfind('\n').map_or(0, |at| at + 1);
    &text[begin..]
}

/// What stands in the fence that a text is, if it is one.
fn fenced(text: &str, loosely: bool) -> Result<Option<&str>, Wrong> {
    let text = if loosely { text.trim_end() } else { text.strip_suffix('\n').unwrap_or(text) };
    let Some((first, rest)) = text.split_once('\n') else { return Ok(None) };
    let Some(fence) = fence_of(first) else { return Ok(None) };
    let (inner, last) = match rest.rsplit_once('\n') {
        Some((inner, last)) => (&rest[..=inner.len()], last),
        None => ("", rest),
    };
    let closes = |line: &str| {
        let line = line.trim();
        line.len() >= fence.len() && line.bytes().all(|b| b == fence.as_bytes()[0])
    };
    if !closes(last) {
        return Ok(None);
    }
    if inner.lines().any(closes) {
        let told = format!(
            "the body begins and ends with a fence ({fence}) and holds another end of one, so what of it is meant is not clear: send it without the fence around it"
        );
        return Err(wrong(Mistake::FenceUnclear, told));
    }
    Ok(Some(inner))
}

/// A line's number and what follows the sign behind it: `12| x`, `12│x`, `12→x`, or as `cat -n`
/// numbers.
fn numbered(line: &str) -> Option<(u64, &str)> {
    let inner = line.trim_start_matches(' ');
    let digits = inner.bytes().take_while(u8::is_ascii_digit).count();
    let number = inner[..digits].parse().ok()?;
    let rest = &inner[digits..];
    if let Some(rest) = rest.strip_prefix('\t') {
        return (inner.len() < line.len()).then_some((number, rest));
    }
    let rest = rest.trim_start_matches(' ').strip_prefix(['|', '│', '→'])?;
    (!rest.starts_with('|')).then_some((number, rest))
}

/// A body without its gutter of line numbers, which begins with `begins`; None where it has none. What
/// looks like one on a single line, or in no order, is code: `1 | 2 => x`.
fn without_gutter(
    text: &str,
    begins: Option<u64>,
    line: usize,
    warnings: &mut Vec<Warning>,
) -> Result<Option<String>, Wrong> {
    // Nearly every body is told by its first lines.
    let mut first = text.lines().filter(|line| !line.trim().is_empty()).take(2);
    if !first.any(|line| numbered(line).is_some()) {
        return Ok(None);
    }
    let (mut all, mut with, mut steps, mut in_order, mut spaced) = (0usize, 0usize, 0, true, true);
    let (mut last, mut begin) = (None, None);
    for line in text.lines() {
        all += usize::from(!line.trim().is_empty());
        let Some((number, rest)) = numbered(line) else {
            in_order = false;
            continue;
        };
        let is_step = last.is_some_and(|last: u64| last.checked_add(1) == Some(number));
        in_order &= is_step || last.is_none();
        steps += usize::from(is_step);
        begin.get_or_insert(number);
        spaced &= rest.is_empty() || rest.starts_with(' ');
        last = Some(number);
        with += 1;
    }
    let is_gutter = with > 1 && steps * 2 > with - 1 && with * 2 >= all;
    if !is_gutter {
        if with == all && begin == begins {
            let told = format!(
                "what may be line numbers before the lines of the body from line {line} on was kept as code"
            );
            warnings.push(Warning::new(WarningSort::NumbersKept, told));
        }
        return Ok(None);
    }
    if !in_order || begin != begins {
        let told = "line numbers stand before lines of the body, but not before each, not in order, or not from its first line on: send the lines without numbers";
        return Err(wrong(Mistake::NumberedLines, told));
    }
    let mut plain = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let ending = if line.ends_with('\n') { "\n" } else { "" };
        let Some((_, rest)) = numbered(line.strip_suffix('\n').unwrap_or(line)) else { continue };
        plain.push_str(if spaced { rest.strip_prefix(' ').unwrap_or(rest) } else { rest });
        plain.push_str(ending);
    }
    Ok(Some(plain))
}

/// Whether a text is a diff from its beginning.
fn is_diff(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let Some(first) = lines.next() else { return false };
    if first.starts_with("diff --git ") || is_hunk(first) {
        return true;
    }
    first.starts_with("--- ")
        && lines.next().is_some_and(|line| line.starts_with("+++ "))
        && lines.next().is_some_and(is_hunk)
}

fn is_hunk(line: &str) -> bool {
    let Some(inner) = line.strip_prefix("@@ -") else { return false };
    inner.starts_with(|c: char| c.is_ascii_digit())
        && inner.split_once(" +").is_some_and(|(_, rest)| rest.contains(" @@"))
}

/// Whether the markers of a merge stand in it, in their order.
fn has_conflict(text: &str) -> bool {
    const MARKERS: [&str; 3] = ["<<<<<<<", "=======", ">>>>>>>"];
    if memchr::memmem::find(text.as_bytes(), MARKERS[0].as_bytes()).is_none() {
        return false;
    }
    let mut sought = MARKERS.iter();
    let mut next = sought.next();
    for line in text.lines() {
        let Some(marker) = next else { break };
        let rest = line.strip_prefix(marker);
        if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\r'])) {
            next = sought.next();
        }
    }
    next.is_none()
}
