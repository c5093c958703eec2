//! Lines by which a text shows to be an outbox, or a part of one, and no reply.

use super::lead::lead;
use super::line::Line;
use super::marks::{Mark, What};
use super::repairs::{Repairs, is_zero_width};

/// A section marker of an outbox, or the line around a part of one (`=== PART 2 of 3 … ===`), alone on
/// its line.
pub(super) fn section(text: &str, at: usize, line: &mut Line) -> Option<Mark> {
    const SECTIONS: [&str; 4] =
        ["=== HEADER ===", "=== PROTOCOL ===", "=== CONTEXT ===", "=== PROMPT ==="];
    let rest = &text[at..];
    let marker = SECTIONS.iter().find(|marker| rest.starts_with(**marker));
    let part = is_of_part(rest);
    if marker.is_none() && !part {
        return None;
    }
    let lead = lead(text, at)?;
    let emphasis = lead.repairs.has(Repairs::EMPHASIS);
    let ends = |c: char| {
        let closes = emphasis && matches!(c, '*' | '_' | '`' | '~');
        c.is_whitespace() || is_zero_width(c) || closes
    };
    let line = text[at..line.for_one_more(text, at)?].trim_end_matches(ends);
    let is_one = match marker {
        Some(marker) => line.len() == marker.len(),
        None => line.ends_with(" ==="),
    };
    is_one.then(|| Mark::of(What::Section, lead.line, at, at + line.len()))
}

/// Whether a text begins as the line before or behind a part of an outbox.
fn is_of_part(text: &str) -> bool {
    let digits = |text: &str| {
        let rest = text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        Some(text.len() - rest).filter(|length| (1..=9).contains(length))
    };
    let numbers =
        ["=== PART ", "=== END OF PART "].iter().find_map(|begin| text.strip_prefix(begin));
    numbers.is_some_and(|numbers| {
        let of = digits(numbers).and_then(|length| numbers[length..].strip_prefix(" of "));
        of.and_then(digits).is_some()
    })
}
