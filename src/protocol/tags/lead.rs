//! What stands before a tag on its line: the decoration of a list, a quotation, a heading.

use super::address;
use super::reasoning;
use super::repairs::{Repairs, is_zero_width};

/// What stands before a tag on its line.
pub(super) struct Lead {
    /// Where the line begins.
    pub(super) line: usize,
    /// How many `>` stand there.
    pub(super) quote: u8,
    pub(super) repairs: Repairs,
}

/// The same of a tag behind what may be the end of a comment.
pub(super) fn behind_comment(text: &str, at: usize) -> Option<Lead> {
    let line = text[..at].trim_end_matches([' ', '\t']).len();
    let is_near = at - line < 8 && text[..line].ends_with("-->");
    is_near.then(|| Lead { line, quote: 0, repairs: Repairs::default() })
}

/// What stands before a tag on its line; None where that is more than decoration.
pub(super) fn lead(text: &str, at: usize) -> Option<Lead> {
    let mut line = at;
    for c in text[..at].chars().rev() {
        if c == '\n' {
            break;
        }
        let decorates = c.is_whitespace()
            || is_zero_width(c)
            || c.is_ascii_digit()
            || "*_`~#>-+.)\\•‣◦▪●–".contains(c);
        if !decorates {
            let before = &text[..line];
            let escaped = text[line..].len() - text[line..].trim_start_matches('\\').len();
            let end = line + escaped;
            let end = if text[end..].starts_with('>') { end + 1 } else { line };
            if end <= at && reasoning::ends_with_one(&text[..end]) {
                line = end;
                break;
            }
            if c == ']' && address::ends_with_line(before) {
                break;
            }
            return None;
        }
        line -= c.len_utf8();
    }
    let (mut quote, mut repairs) = (0u8, Repairs::default());
    let mut rest = &text[line..at];
    if rest.bytes().all(|b| matches!(b, b' ' | b'\t')) {
        return Some(Lead { line, quote, repairs });
    }
    // Longer than any list or quotation has.
    if rest.trim().len() > 64 {
        return None;
    }
    loop {
        let blank = rest.trim_start();
        rest = blank.trim_start_matches(is_zero_width);
        if rest.len() < blank.len() {
            repairs.add(Repairs::INVISIBLE);
            continue;
        }
        let Some(c) = rest.chars().next() else { return Some(Lead { line, quote, repairs }) };
        let run = rest.len() - rest.trim_start_matches(c).len();
        let after = rest[run..].chars().next();
        let ends = after.is_none_or(char::is_whitespace);
        let length = match c {
            '>' => {
                quote = quote.saturating_add(1);
                repairs.add(Repairs::QUOTED);
                1
            }
            '#' if run <= 6 && ends => {
                repairs.add(Repairs::HEADING);
                run
            }
            // Right before the tag it is no bullet: `*[DONE]*`.
            '*' if run == 1 && after.is_some_and(char::is_whitespace) => {
                repairs.add(Repairs::BULLET);
                run
            }
            '-' | '+' | '•' | '‣' | '◦' | '▪' | '●' | '–' if run == c.len_utf8() && ends =>
            {
                repairs.add(Repairs::BULLET);
                run
            }
            '*' | '_' if run <= 3 => {
                repairs.add(Repairs::EMPHASIS);
                run
            }
            '`' if run <= 2 => {
                repairs.add(Repairs::EMPHASIS);
                run
            }
            '~' if run <= 2 => {
                repairs.add(Repairs::STRUCK);
                run
            }
            '`' | '~' => {
                repairs.add(Repairs::FENCE);
                run
            }
            '0'..='9' => {
                let digits =
                    rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
                let after = rest[digits..].strip_prefix(['.', ')'])?;
                if digits > 3 || !after.chars().next().is_none_or(char::is_whitespace) {
                    return None;
                }
                repairs.add(Repairs::NUMBER);
                digits + 1
            }
            '\\' if rest.len() == 1 => {
                repairs.add(Repairs::ESCAPES);
                1
            }
            _ => return None,
        };
        rest = &rest[length..];
    }
}
