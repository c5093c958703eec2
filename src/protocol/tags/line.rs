//! Where lines end, and the line that a pass over a text has come to.

use memchr::memchr;

/// Where the line of an offset ends, without its newline.
pub(super) fn line_end(text: &str, at: usize) -> usize {
    memchr(b'\n', &text.as_bytes()[at..]).map_or(text.len(), |n| at + n)
}

/// Where that line ends, and how many tags it was searched for: behind the end of thoughts stands
/// another.
#[derive(Default)]
pub(super) struct Line {
    end: usize,
    tags: u8,
}

impl Line {
    /// The same for offsets of which none is before the last one.
    pub(super) fn end_at(&mut self, text: &str, at: usize) -> usize {
        if at >= self.end {
            *self = Self { end: line_end(text, at), tags: 0 };
        }
        self.end
    }

    /// Whether one more is looked at, each of which may cost the rest of the line.
    pub(super) fn allows(&mut self) -> bool {
        const TAGS: u8 = 4;
        self.tags = self.tags.saturating_add(1);
        self.tags <= TAGS
    }

    /// Where the line ends, if one more is looked at there.
    pub(super) fn for_one_more(&mut self, text: &str, at: usize) -> Option<usize> {
        let end = self.end_at(text, at);
        self.allows().then_some(end)
    }
}
