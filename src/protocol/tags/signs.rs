//! The offsets at which tags and markers of reasoning may begin, found once for a whole text. Most bodies have none.

use std::ops::Range;

use memchr::memchr3_iter;

use super::catalogue::find_command;
use super::reasoning::{may_be_reasoning, wide_signs};

#[derive(Default)]
pub(super) struct Signs {
    tags: Vec<usize>,
    reasoning: Vec<usize>,
}

impl Signs {
    pub(super) fn of(text: &str) -> Self {
        let (bytes, mut signs) = (text.as_bytes(), Self::default());
        for at in memchr3_iter(b'<', b'[', b'&', bytes) {
            let rest = &bytes[at + 1..];
            let name = rest.strip_prefix(b"/").unwrap_or(rest);
            if bytes[at] == b'['
                && name.first().is_some_and(u8::is_ascii_uppercase)
                && find_command(|known| name.starts_with(known.as_bytes())).is_some()
            {
                signs.tags.push(at);
            }
            if may_be_reasoning(bytes[at], rest) {
                signs.reasoning.push(at);
            }
        }
        signs.reasoning.extend(wide_signs(bytes));
        signs.reasoning.sort_unstable();
        signs
    }

    /// The brackets in a range that are followed by the name of a command, with or without a slash.
    pub(super) fn tags(&self, range: Range<usize>) -> &[usize] {
        within(&self.tags, range)
    }

    /// The characters in a range that may begin a marker of reasoning.
    pub(super) fn reasoning(&self, range: Range<usize>) -> &[usize] {
        within(&self.reasoning, range)
    }
}

fn within(all: &[usize], range: Range<usize>) -> &[usize] {
    let from = &all[all.partition_point(|at| *at < range.start)..];
    &from[..from.partition_point(|at| *at < range.end)]
}
