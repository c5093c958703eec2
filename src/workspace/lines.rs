//! Lines of a file that are replaced by others: the file keeps its line endings, and whether its last line ends in a
//! newline. Pure.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr_iter;

/// A file as lines whose endings are kept beside them.
pub(super) struct Lines {
    /// A line feed, then each line with one.
    pub(super) text: Vec<u8>,
    /// Whether a line ends in CRLF.
    crlf: Vec<bool>,
    /// Whether the last line has a line ending.
    ended: bool,
}

impl Lines {
    pub(super) fn of(bytes: &[u8]) -> Self {
        let mut text = Vec::with_capacity(bytes.len() + 2);
        text.push(b'\n');
        let mut crlf = Vec::new();
        let mut begin = 0;
        for end in memchr_iter(b'\n', bytes) {
            let line = &bytes[begin..end];
            let content = line.strip_suffix(b"\r");
            crlf.push(content.is_some());
            text.extend_from_slice(content.unwrap_or(line));
            text.push(b'\n');
            begin = end + 1;
        }
        let ended = begin == bytes.len();
        if !ended {
            // What would follow it is told where that is needed.
            crlf.push(false);
            text.extend_from_slice(&bytes[begin..]);
            text.push(b'\n');
        }
        Self { text, crlf, ended }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.crlf.len()
    }

    /// So many lines from `line` on, as text with a line feed after each.
    pub(super) fn part(&self, line: usize, count: usize) -> &[u8] {
        &self.text[self.range(line, count)]
    }

    fn range(&self, line: usize, count: usize) -> Range<usize> {
        let mut ends = memchr_iter(b'\n', &self.text).map(|at| at + 1);
        let begin = ends.nth(line).unwrap_or(self.text.len());
        begin..ends.nth(count - 1).unwrap_or(self.text.len())
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        let Self { text, crlf, ended } = self;
        let mut bytes = Vec::with_capacity(text.len());
        let mut begin = 1;
        let last = crlf.len().wrapping_sub(1);
        for (n, (end, crlf)) in memchr_iter(b'\n', &text).skip(1).zip(crlf).enumerate() {
            bytes.extend_from_slice(&text[begin..end]);
            if ended || n != last {
                bytes.extend_from_slice(if crlf { b"\r\n" } else { b"\n" });
            }
            begin = end + 1;
        }
        bytes
    }

    /// Replaces `count` lines from `line` on, and tells by how many.
    pub(super) fn replace(&mut self, line: usize, count: usize, new: &str) -> usize {
        let last = self.crlf.len() - 1;
        let crlf = match (self.ended, line == last) {
            // The first line tells what would follow it, as it is now.
            (false, true) => last > 0 && self.crlf[0],
            _ => self.crlf[line],
        };
        let mut new = if crlf { without_cr(new) } else { Cow::Borrowed(new) };
        if !new.is_empty() && !new.ends_with('\n') {
            new.to_mut().push('\n');
        }
        let put = memchr_iter(b'\n', new.as_bytes()).count();
        self.text.splice(self.range(line, count), new.bytes());
        self.crlf.splice(line..line + count, std::iter::repeat_n(crlf, put));
        // A last line that is empty and not ended is none, as it is for whoever reads the file anew.
        if !self.ended && self.text.ends_with(b"\n\n") {
            self.text.pop();
            self.crlf.pop();
            self.ended = true;
        }
        put
    }
}

pub(super) fn without_cr(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") { text.replace("\r\n", "\n").into() } else { text.into() }
}
