//! Replaces lines of a file. The file keeps its line endings. Its last line keeps or still lacks a newline. Pure.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr_iter;

/// The lines of a file, with their endings stored separately.
pub(super) struct FileLines {
    /// A line feed, followed by all lines, each ending in a line feed.
    pub(super) text: Vec<u8>,
    /// Whether each line ends in CRLF.
    crlf: Vec<bool>,
    /// Whether the last line has a line ending.
    ended: bool,
}

impl FileLines {
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
            // `replace` chooses the ending of this line when one is needed.
            crlf.push(false);
            text.extend_from_slice(&bytes[begin..]);
            text.push(b'\n');
        }
        Self { text, crlf, ended }
    }

    pub(super) fn count(&self) -> usize {
        self.crlf.len()
    }

    /// Returns `count` lines, starting at `line`, each ending in a line feed.
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

    /// Replaces `count` lines, starting at `line`. Returns the number of new lines.
    pub(super) fn replace(&mut self, line: usize, count: usize, new: &str) -> usize {
        let last = self.crlf.len() - 1;
        let crlf = match (self.ended, line == last) {
            // A last line without an ending gets the ending of the first line.
            (false, true) => last > 0 && self.crlf[0],
            _ => self.crlf[line],
        };
        let mut new = if crlf { without_cr(new) } else { Cow::Borrowed(new) };
        if !new.is_empty() && !new.ends_with('\n') {
            new.to_mut().push('\n');
        }
        let inserted = memchr_iter(b'\n', new.as_bytes()).count();
        self.text.splice(self.range(line, count), new.bytes());
        self.crlf.splice(line..line + count, std::iter::repeat_n(crlf, inserted));
        // An empty last line without an ending would not exist once the file is read again.
        if !self.ended && self.text.ends_with(b"\n\n") {
            self.text.pop();
            self.crlf.pop();
            self.ended = true;
        }
        inserted
    }
}

pub(super) fn without_cr(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") { text.replace("\r\n", "\n").into() } else { text.into() }
}
