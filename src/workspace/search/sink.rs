//! Collects the matches in one file, using ripgrep's crates. Each matching line is reported once, and a long line is
//! cut around its first match.

use std::io::{self, Read};

use grep_matcher::{LineTerminator, Matcher as _};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{Searcher, Sink, SinkFinish, SinkMatch};

use super::{SHOWN, SHOWN_BYTES};
use crate::protocol::{Failure, HIT_WIDTH, Hit};
use crate::text::visible_line;

/// The longest pattern, in bytes.
const MAX_PATTERN: usize = 4_000;
/// The memory limits of a compiled pattern and of matching it, in bytes. Larger patterns match slowly, and a match
/// cannot be interrupted.
const MAX_SIZE: usize = 1 << 20;
const MAX_CACHE: usize = 8 << 20;
/// The deepest nesting of groups.
const MAX_NESTING: u32 = 100;
/// How many characters of a long line are shown before the match.
const BEFORE: usize = 60;
/// How many more characters are kept on each side of the shown part. Secrets must be recognised before the line is cut.
const MARGIN: usize = 1_000;

/// The line terminator: a newline, optionally preceded by a carriage return.
pub(super) fn line_end() -> LineTerminator {
    LineTerminator::crlf()
}

/// A compiled pattern.
pub(super) struct Matcher(pub(super) RegexMatcher);

impl Matcher {
    /// Compiles a regular expression.
    ///
    /// # Errors
    /// The expression is invalid or too large. The message gives the reason and the correct form.
    pub(super) fn new(pattern: &str) -> Result<Self, Failure> {
        let invalid = |why: &str| {
            Failure::execution(format!(
                "The pattern is not a valid regular expression: {why}. Correct form: [SEARCH pattern=\"regular expression\" path=\"relative/path\"], in the syntax of Rust's regex crate; \\ before a character of ( ) [ ] {{ }} . * + ? ^ $ | \\ means that character"
            ))
        };
        if pattern.len() > MAX_PATTERN {
            let length = pattern.len();
            return Err(invalid(&format!("it is {length} bytes long, of {MAX_PATTERN} at most")));
        }
        if (pattern.len() - pattern.trim_end_matches('\\').len()) % 2 == 1 {
            return Err(invalid("it ends in \\ without a character after it"));
        }
        let mut builder = RegexMatcherBuilder::new();
        // With `multi_line`, ^ and $ match at the ends of each line.
        builder.crlf(true).multi_line(true);
        builder.size_limit(MAX_SIZE).dfa_size_limit(MAX_CACHE).nest_limit(MAX_NESTING);
        builder.build(pattern).map(Self).map_err(|e| invalid(&error_line(&e.to_string())))
    }
}

/// The last line of a regex error message, without the drawing that shows the position.
fn error_line(error: &str) -> String {
    let last = error.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
    let words = last.strip_prefix("error: ").unwrap_or(last);
    visible_line(words.trim_end_matches('.')).into_owned()
}

/// The matching lines of a file.
pub(super) struct Hits<'a> {
    matcher: &'a Matcher,
    /// The first matching lines, without paths.
    lines: Vec<Hit>,
    /// The number of matching lines.
    count: usize,
    /// The most lines that are counted.
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

/// The hit for a line that matches at byte `at`. Contains only the part of the line around the match.
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

/// The matching lines of all files.
#[derive(Default)]
pub(super) struct SearchHits {
    pub(super) lines: usize,
    pub(super) files: usize,
    pub(super) hits: Vec<Hit>,
    bytes: usize,
}

impl SearchHits {
    /// Adds the lines of a file.
    pub(super) fn add(&mut self, path: &str, hits: Hits) {
        self.lines += hits.count;
        self.files += usize::from(hits.count > 0);
        for hit in hits.lines {
            let hit = Hit { path: path.to_owned(), ..hit };
            self.bytes += hit.to_string().len() + 1;
            // Stop at the first line that does not fit.
            if self.hits.len() == SHOWN || self.bytes > SHOWN_BYTES {
                return;
            }
            self.hits.push(hit);
        }
    }
}

/// A reader that ends after `room` bytes, and fails when the search must stop.
pub(super) struct LimitedReader<'a, R> {
    reader: R,
    room: u64,
    must_stop: &'a dyn Fn() -> bool,
    /// The number of bytes read.
    pub(super) read: u64,
    /// Whether the file has more bytes than `room`.
    pub(super) is_cut: bool,
}

impl<'a, R> LimitedReader<'a, R> {
    pub(super) fn new(reader: R, room: u64, must_stop: &'a dyn Fn() -> bool) -> Self {
        Self { reader, room, must_stop, read: 0, is_cut: false }
    }
}

impl<R: Read> Read for LimitedReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if (self.must_stop)() {
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
