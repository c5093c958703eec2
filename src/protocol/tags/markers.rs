//! The marker lines of an edit by search, as a chat window leaves them: with invisible characters
//! around them, or indented together with their tag. They are read as tag lines are, with a warning.

use super::attributes::brief;
use super::pairs;
use super::repairs::is_zero_width;
use crate::protocol::{Warning, WarningSort};

/// A body whose marker lines stand as they should, where that is beyond doubt. `tag` is the line of the
/// opening tag, `first` the line of the reply that the body begins on.
pub(super) fn repaired(
    body: String,
    tag: &str,
    first: usize,
    warnings: &mut Vec<Warning>,
) -> String {
    let body = visible(body, first, warnings);
    if pairs::are_in(&body) {
        return body;
    }
    let Some(blanks) = indentation(&body) else { return body };
    let is_below = !tag.trim_start_matches(is_zero_width).starts_with(['[', '*', '`', '\\', '#']);
    let mut lines = body.lines().filter(|line| !line.trim().is_empty());
    if !is_below || !lines.all(|line| line.starts_with(blanks)) {
        return body;
    }
    let plain = |line| {
        str::strip_prefix(line, blanks).unwrap_or_else(|| line.trim_start_matches([' ', '\t']))
    };
    let text: String = body.split_inclusive('\n').map(plain).collect();
    if !pairs::are_in(&text) {
        return body;
    }
    warnings.retain(|warning| warning.sort != WarningSort::IndentedBody);
    let told = format!(
        "the body from line {first} on is indented as its tag is: what it is indented by ({}) was taken off each line",
        counted(blanks)
    );
    warnings.push(Warning::new(WarningSort::TagRepaired, told));
    text
}

/// What is told of markers that are indented, where the lines below them do not tell how far.
pub(super) fn indented(body: &str, first: usize) -> Option<String> {
    let blanks = indentation(body)?;
    let n = body.lines().position(is_marked)?;
    let shown = brief(body.lines().nth(n)?.trim());
    Some(format!(
        "line {} `{shown}` begins with {}: markers begin at the start of their line, and what stands between them is as it is in the file",
        first + n,
        counted(blanks)
    ))
}

fn counted(blanks: &str) -> String {
    let what = if blanks.contains('\t') { "character" } else { "blank" };
    match blanks.len() {
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    }
}

/// The blanks before the first line that would begin a pair without them.
fn indentation(body: &str) -> Option<&str> {
    let line = body.lines().find(|line| is_marked(line))?;
    Some(&line[..line.len() - line.trim_start_matches([' ', '\t']).len()])
}

fn is_marked(line: &str) -> bool {
    let inner = line.trim_start_matches([' ', '\t']);
    inner.len() < line.len() && pairs::is_beginning(inner)
}

/// Without the invisible characters around marker lines.
fn visible(body: String, first: usize, warnings: &mut Vec<Warning>) -> String {
    let is_odd = |line: &str| {
        let line = line.trim_end();
        (line.starts_with(is_zero_width) || line.ends_with(is_zero_width))
            && pairs::is_any_marker(line.trim_matches(is_zero_width))
    };
    if body.is_ascii() || !body.lines().any(is_odd) {
        return body;
    }
    let (mut text, mut at) = (String::with_capacity(body.len()), None);
    for (n, line) in body.split_inclusive('\n').enumerate() {
        if !is_odd(line) {
            text.push_str(line);
            continue;
        }
        let shown = line.trim_end();
        text.push_str(shown.trim_matches(is_zero_width));
        text.push_str(&line[shown.len()..]);
        at = at.or_else(|| Some((n, shown.chars().find(|c| is_zero_width(*c))?)));
    }
    if let Some((n, c)) = at {
        let told = format!(
            "line {} is a marker of a pair, and was read without the invisible character U+{:04X} on it",
            first + n,
            u32::from(c)
        );
        warnings.push(Warning::new(WarningSort::TagRepaired, told));
    }
    text
}
