//! An edit whose lines are named `start` and `end`, the second of which is also the word that a block
//! ends with.

use memchr::memmem;

use super::attributes;
use super::marks::{ALL, Mark, PLAIN, What};
use super::reader::Reader;
use super::repairs::Repairs;
use crate::protocol::Kind;

impl Reader<'_> {
    /// What is to be overlooked of a tag before it is read, from its name on.
    pub(super) fn with_range(&mut self, mark: &Mark, rest: &str) -> Repairs {
        let mut repairs = mark.repairs;
        if self.names_lines(mark, rest) {
            repairs.add(Repairs::RANGE);
        }
        repairs
    }

    /// Whether `start` and `end` of a tag, from its name on, are lines: numbers, the block is closed
    /// without a word, and no closing tag behind it has a number as its word.
    fn names_lines(&mut self, mark: &Mark, rest: &str) -> bool {
        if mark.command().kind != Kind::Edit {
            return false;
        }
        let (found, _) = attributes::pairs(rest);
        let value = |name: &str| {
            let pair = found.iter().find(|(key, _)| key.eq_ignore_ascii_case(name))?;
            Some(pair.1.trim())
        };
        let [start, end, start_line, end_line] =
            ["start", "end", "start_line", "end_line"].map(value);
        let begins = match (start, start_line) {
            (Some(begin), None) | (None, Some(begin)) => is_number(begin),
            _ => false,
        };
        match (end, end_line) {
            (None, Some(end)) => begins && start.is_some() && is_number(end),
            (Some(end), None) => begins && is_number(end) && self.is_closed_without(mark),
            _ => false,
        }
    }

    fn is_closed_without(&mut self, mark: &Mark) -> bool {
        let class = if mark.is_plain() { PLAIN } else { ALL };
        let next = self.marks.get(mark.next[class] as usize);
        let text = self.text;
        next.is_some_and(|next| next.what == What::Closing)
            && *self.numbered.get_or_insert_with(|| last_numbered(text)) <= mark.at
    }
}

/// Up to where a closing tag of an edit begins whose word is a number: behind the bracket of the last
/// such tag, or 0.
fn last_numbered(text: &str) -> usize {
    /// No such tag is longer, in bytes.
    const LONGEST: usize = 128;
    let bytes = text.as_bytes();
    let is_numbered = |at: &usize| {
        let tag = &bytes[*at..bytes.len().min(at + LONGEST)];
        let tag = tag.split(|b| matches!(b, b']' | b'\n')).next().unwrap_or_default();
        let word = tag.iter().position(|b| *b == b'=').map(|sign| &tag[sign..]).unwrap_or_default();
        let mut word = word.iter().filter(|b| b.is_ascii_alphanumeric()).peekable();
        word.peek().is_some() && word.all(u8::is_ascii_digit)
    };
    memmem::find_iter(bytes, "[/EDIT_FILE").filter(is_numbered).last().map_or(0, |at| at + 1)
}

/// Whether a text is a number and nothing else.
pub(super) fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}
