//! Characters that a chat window may have put into a body, or that nobody sees, by code point.

use crate::protocol::{Kind, Warning, WarningSort};

/// As many lines are named.
const NAMED: usize = 3;

/// Whether a character is told of: also letters that look like blanks. Quotes and fixed spaces of texts
/// are the writer's own.
fn is_strange(c: char, is_prose: bool) -> bool {
    match c {
        '\u{a0}' | '\u{202f}' | '\u{2018}'..='\u{201f}' => !is_prose,
        _ => {
            is_invisible(c)
                || turns(c)
                || acts(c)
                || matches!(c, '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' | '\u{2800}')
        }
    }
}

/// What nobody sees, and what can hide a text: tags, and the selectors that no writing needs.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}' | '\u{2060}' | '\u{feff}')
        || matches!(c, '\u{e0000}'..='\u{e007f}' | '\u{e0100}'..='\u{e01ef}')
}

/// What turns the direction of writing.
fn turns(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// What ends a line for some, and what a terminal takes for an order.
fn acts(c: char) -> bool {
    matches!(c, '\u{2028}' | '\u{2029}' | '\u{85}' | '\u{8}' | '\u{b}' | '\u{1b}')
}

/// Whether a line holds a carriage return that ends no line.
fn has_return(line: &str) -> bool {
    memchr::memchr(b'\r', line.strip_suffix('\r').unwrap_or(line).as_bytes()).is_some()
}

/// What is told of a body that begins on `line` of the reply.
pub(super) fn strange(body: &str, line: usize, is_prose: bool) -> Option<Warning> {
    let may_be = |byte: &u8| !byte.is_ascii() || matches!(byte, 8 | 11 | 13 | 27);
    let mut points: Vec<char> = Vec::new();
    let mut lines: Vec<usize> = Vec::new();
    let mut count = 0usize;
    for (n, text) in body.split('\n').enumerate() {
        if !text.as_bytes().iter().any(&may_be) {
            continue;
        }
        let returns = has_return(text).then_some('\r');
        let found = text.chars().filter(|c| is_strange(*c, is_prose)).chain(returns);
        let before = count;
        for c in found {
            count += 1;
            if points.len() < 16 && !points.contains(&c) {
                points.push(c);
            }
        }
        if count > before && lines.len() <= NAMED {
            lines.push(line + n);
        }
    }
    if lines.is_empty() {
        return None;
    }
    let more = if lines.len() > NAMED { "…" } else { "" };
    let points: Vec<String> = points.iter().map(|c| format!("U+{:04X}", u32::from(*c))).collect();
    let lines: Vec<String> = lines.iter().take(NAMED).map(usize::to_string).collect();
    let told = format!(
        "the body holds {} (line {}{more}), as a chat window may put in; it was kept as it is",
        points.join(", "),
        lines.join(", "),
    );
    Some(Warning::new(WarningSort::StrangeCharacters, told))
}

/// A dash before a letter in a command, where an option has one or two hyphens: `ls —all`.
pub(super) fn dash(kind: Kind, body: &str, line: usize) -> Option<Warning> {
    if kind != Kind::Run {
        return None;
    }
    let at = body.char_indices().find_map(|(at, c)| {
        let is_dash = matches!(c, '–' | '—' | '−' | '‐' | '‑');
        let behind = body[at + c.len_utf8()..].chars().next();
        let begins = at > 0 && body[..at].ends_with([' ', '\t']);
        (is_dash && begins && behind.is_some_and(|c| c.is_ascii_alphanumeric())).then_some((at, c))
    });
    let (at, c) = at?;
    let line = line + memchr::memchr_iter(b'\n', &body.as_bytes()[..at]).count();
    let told = format!(
        "line {line} holds U+{:04X} ({c}) where an option begins with - or --; it was kept as it is",
        u32::from(c)
    );
    Some(Warning::new(WarningSort::StrangeCharacters, told))
}
