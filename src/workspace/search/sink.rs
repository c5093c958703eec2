//! What a search finds in one file, through ripgrep's crates: each line once, cut around its first
//! match where it is long.

use std::io::{self, Read};

use grep_matcher::{LineTerminator, Matcher as _};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{Searcher, Sink, SinkFinish, SinkMatch};

use super::{SHOWN, SHOWN_BYTES};
use crate::protocol::{Failure, HIT_WIDTH, Hit};
use crate::text::visible_line;

/// A longer pattern is refused.
const PATTERN: usize = 4_000;
/// How much memory a pattern may become, in bytes, and how much more its matching may take: beyond
/// that it is slow to match, which nobody could interrupt.
const SIZE: usize = 1 << 20;
const CACHE: usize = 8 << 20;
/// How deep brackets may stand in one another.
const DEPTH: u32 = 100;
/// So many characters are shown before the match in a long line, and so many more are kept on either side
/// of what is shown: a secret is recognised before the line is shortened.
const BEFORE: usize = 60;
const MARGIN: usize = 1_000;

/// What a line ends in: a newline, with or without a carriage return before it.
pub(super) fn line_end() -> LineTerminator {
    LineTerminator::crlf()
}

/// A pattern, ready to be matched with lines.
pub(super) struct Matcher(pub(super) RegexMatcher);

impl Matcher {
    /// Makes it of a regular expression.
    ///
    /// # Errors
    /// It is none, or too large: why, and the form.
    pub(super) fn new(pattern: &str) -> Result<Self, Failure> {
        let invalid = |why: &str| {
            Failure::execution(format!(
                "The pattern is no regular expression: {why}. Correct form: [SEARCH pattern=\"regular expression\" path=\"relative/path\"], in the syntax of Rust's regex crate; \\ before a character of ( ) [ ] {{ }} . * + ? ^ $ | \\ means that character"
            ))
        };
        if pattern.len() > PATTERN {
            return Err(invalid(&format!(
                "it is {} bytes long, of {PATTERN} at most",
                pattern.len()
            )));
        }
        if (pattern.len() - pattern.trim_end_matches('\\').len()) % 2 == 1 {
            return Err(invalid("it ends in \\, with nothing behind it"));
        }
        let mut builder = RegexMatcherBuilder::new();
        // Of each line ^ and $ are the ends.
        builder.crlf(true).multi_line(true);
        builder.size_limit(SIZE).dfa_size_limit(CACHE).nest_limit(DEPTH);
        builder.build(pattern).map(Self).map_err(|e| invalid(&in_a_line(&e.to_string())))
    }
}

/// The words of an error that is drawn over several lines, as one.
fn in_a_line(told: &str) -> String {
    let last = told.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
    let words = last.strip_prefix("error: ").unwrap_or(last);
    visible_line(words.trim_end_matches('.')).into_owned()
}

/// Lines that were found in a file.
pub(super) struct Hits<'a> {
    matcher: &'a Matcher,
    /// Their paths are not known here.
    lines: Vec<Hit>,
    /// How many there are.
    count: usize,
    /// As many are counted.
    limit: usize,
    pub(super) is_binary: bool,
}

impl<'a> Hits<'a> {
    pub(super) fn new(matcher: &'a Matcher, limit: usize) -> Self {
        Self { matcher, lines: Vec::new(), count: 0, limit, is_binary: false }
    }
}

impl Sink for Hits<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.count += 1;
        if self.lines.len() < SHOWN {
            let line = found.bytes();
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let at = self.matcher.0.find(line).ok().flatten().map_or(0, |found| found.start());
            let number = usize::try_from(found.line_number().unwrap_or_default());
            self.lines.push(Hit { line: number.unwrap_or_default(), ..around(line, at) });
        }
        Ok(self.count < self.limit)
    }

    fn finish(&mut self, _: &Searcher, end: &SinkFinish) -> io::Result<()> {
        self.is_binary = end.binary_byte_offset().is_some();
        Ok(())
    }
}

/// A line that matches at a byte of it, and which part of it is shown.
fn around(line: &[u8], at: usize) -> Hit {
    let (before, after) = line.split_at(at.min(line.len()));
    let [before, after] = [before, after].map(String::from_utf8_lossy);
    let (before, after) = (visible_line(&before), visible_line(&after));
    let (left, right) = (before.chars().count(), after.chars().count());
    let start = if left + right > HIT_WIDTH { left.saturating_sub(BEFORE) } else { 0 };
    let skipped = start.saturating_sub(MARGIN);
    let start = start - skipped;
    let kept = before.chars().chain(after.chars()).skip(skipped);
    let text = kept.take(start + HIT_WIDTH + MARGIN).collect();
    Hit { path: String::new(), line: 0, text, start }
}

/// What was found in all files.
#[derive(Default)]
pub(super) struct SearchHits {
    pub(super) lines: usize,
    pub(super) files: usize,
    pub(super) hits: Vec<Hit>,
    bytes: usize,
}

impl SearchHits {
    /// Adds what was found in one.
    pub(super) fn take(&mut self, path: &str, hits: Hits) {
        self.lines += hits.count;
        self.files += usize::from(hits.count > 0);
        for hit in hits.lines {
            let hit = Hit { path: path.to_owned(), ..hit };
            self.bytes += hit.to_string().len() + 1;
            // The first that does not fit is the last that is tried.
            if self.hits.len() == SHOWN || self.bytes > SHOWN_BYTES {
                return;
            }
            self.hits.push(hit);
        }
    }
}

/// A reader that ends where it is over, and after so many bytes.
pub(super) struct Watched<'a, R> {
    reader: R,
    room: u64,
    is_over: &'a dyn Fn() -> bool,
    /// So many bytes were read.
    pub(super) read: u64,
    /// Whether there was more than might be read.
    pub(super) is_cut: bool,
}

impl<'a, R> Watched<'a, R> {
    pub(super) fn new(reader: R, room: u64, is_over: &'a dyn Fn() -> bool) -> Self {
        Self { reader, room, is_over, read: 0, is_cut: false }
    }
}

impl<R: Read> Read for Watched<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if (self.is_over)() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let left = self.room - self.read;
        if left == 0 {
            self.is_cut = self.reader.read(&mut [0])? > 0;
            return Ok(0);
        }
        let limit = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.reader.read(&mut buffer[..limit])?;
        self.read += read as u64;
        Ok(read)
    }
}
