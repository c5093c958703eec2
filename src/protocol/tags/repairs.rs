//! What can be repaired on a tag line, as a set, and in words.

use super::attributes::brief;
use super::catalogue::Command;
use crate::protocol::{Warning, WarningSort};

/// What had to be overlooked to read a tag. Nothing of it changes what the tag says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Repairs(u16);

impl Repairs {
    pub(super) const EMPHASIS: Self = Self(1);
    pub(super) const HEADING: Self = Self(1 << 1);
    pub(super) const BULLET: Self = Self(1 << 2);
    pub(super) const NUMBER: Self = Self(1 << 3);
    pub(super) const QUOTED: Self = Self(1 << 4);
    pub(super) const ESCAPES: Self = Self(1 << 5);
    pub(super) const CASE: Self = Self(1 << 6);
    pub(super) const INVISIBLE: Self = Self(1 << 7);
    pub(super) const SPACES: Self = Self(1 << 8);
    pub(super) const QUOTES: Self = Self(1 << 9);
    pub(super) const ENTITIES: Self = Self(1 << 10);
    pub(super) const GLUED: Self = Self(1 << 11);
    /// What is struck out is taken back.
    pub(super) const STRUCK: Self = Self(1 << 12);
    /// `start` and `end` where lines are meant.
    pub(super) const RANGE: Self = Self(1 << 13);
    pub(super) const FENCE: Self = Self(1 << 14);
    /// `pattern="\"x\""`.
    pub(super) const INNER_QUOTES: Self = Self(1 << 15);

    const WORDS: [(Self, &str); 16] = [
        (Self::EMPHASIS, "bold or the like around it"),
        (Self::HEADING, "a heading's #"),
        (Self::BULLET, "a list's bullet"),
        (Self::NUMBER, "a list's number"),
        (Self::QUOTED, "a quotation's >"),
        (Self::ESCAPES, "escaped characters"),
        (Self::CASE, "letters in the wrong case"),
        (Self::INVISIBLE, "invisible characters"),
        (Self::SPACES, "odd spaces or commas"),
        (Self::QUOTES, "values not in straight double quotes"),
        (Self::ENTITIES, "HTML entities"),
        (Self::GLUED, "text before it on its line"),
        (Self::STRUCK, "a line through it"),
        (Self::RANGE, "start and end for start_line and end_line"),
        (Self::FENCE, "a fence on its line"),
        (Self::INNER_QUOTES, "double quotes in a value, with \\ before them"),
    ];

    pub(super) fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }

    pub(super) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Whether it holds decoration of a line that `other` lacks.
    pub(super) fn decorates_beyond(self, other: Self) -> bool {
        const DECORATION: u16 = Repairs::EMPHASIS.0
            | Repairs::HEADING.0
            | Repairs::BULLET.0
            | Repairs::NUMBER.0
            | Repairs::QUOTED.0
            | Repairs::STRUCK.0;
        self.0 & DECORATION & !other.0 != 0
    }

    /// What was found, as a list of phrases.
    pub(super) fn words(self) -> String {
        let found = Self::WORDS.iter().filter(|(one, _)| self.has(*one)).map(|(_, words)| *words);
        found.collect::<Vec<_>>().join(", ")
    }
}

/// Whether a character takes no room at all on a line: zero-width spaces and joiners, soft hyphens,
/// byte order marks, signs for the direction of writing.
pub(super) fn is_zero_width(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}'
    )
}

/// What a line was read as.
pub(super) fn read_as(number: usize, line: &str, tag: &str, repairs: Repairs) -> Warning {
    let line = brief(line.trim());
    let told = format!("line {number} `{line}` was read as {tag} ({})", repairs.words());
    Warning::new(WarningSort::TagRepaired, told)
}

/// An opening tag as it should have been written.
pub(super) fn canonical(command: &Command, values: &[Option<String>]) -> String {
    let mut tag = format!("[{}", command.name);
    for (attribute, value) in command.attributes.iter().zip(values) {
        if let Some(value) = value {
            let quote = if value.contains('"') { '\'' } else { '"' };
            tag.push_str(&format!(" {}={quote}{}{quote}", attribute.name, brief(value)));
        }
    }
    tag + "]"
}
