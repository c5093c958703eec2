//! Lines in bounded memory: one that is too long is dropped as it comes, and the next is read as if
//! nothing had been.

use std::io::{self, Read};
use std::mem;
use std::sync::Arc;

use memchr::memchr;

use super::budget::{Budget, FREE, Share};

/// So much is read at once, in bytes.
const CHUNK: usize = 64 << 10;

/// What was read, and what waits among it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A line, its end not with it.
    Whole(Vec<u8>),
    /// One that is longer than the limit, of which nothing is kept.
    TooLong,
    /// Lines for the other side, their ends with them: they are written as they are.
    Answers(Vec<u8>),
}

/// Reads lines.
pub(super) struct Lines<R> {
    input: R,
    /// No line is longer, in bytes, its end not counted.
    limit: usize,
    /// What was read last.
    chunk: Box<[u8]>,
    /// What of it is not looked at yet.
    rest: std::ops::Range<usize>,
    /// What is held of all connections' lines together.
    budget: Arc<Budget>,
    /// What the line takes of that which was read last, if it is long.
    share: Option<Share>,
}

impl<R: Read> Lines<R> {
    pub(super) fn new(input: R, limit: usize, budget: &Arc<Budget>) -> Self {
        let (chunk, budget) = (vec![0; CHUNK].into_boxed_slice(), Arc::clone(budget));
        Self { input, limit, chunk, rest: 0..0, budget, share: None }
    }

    /// What the line takes of the budget that was read last, for whoever holds it.
    pub(super) fn take_share(&mut self) -> Option<Share> {
        self.share.take()
    }

    /// Whether the next line is there, so that nothing is waited for.
    pub(super) fn has_next(&self) -> bool {
        memchr(b'\n', &self.chunk[self.rest.clone()]).is_some()
    }

    /// The next line; None at the end. What stands before the end without `\n` is a line too. A long one
    /// is read on when there is room for it.
    ///
    /// # Errors
    /// It cannot be read on: whoever wrote is gone.
    pub(super) fn next(&mut self) -> io::Result<Option<Line>> {
        let mut line = Vec::new();
        let mut too_long = false;
        self.share = None;
        loop {
            if self.rest.is_empty() {
                match self.input.read(&mut self.chunk) {
                    Ok(0) if line.is_empty() && !too_long => return Ok(None),
                    Ok(0) => return Ok(Some(self.done(line, too_long))),
                    Ok(read) => self.rest = 0..read,
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                    Err(e) => return Err(e),
                }
            }
            let fresh = &self.chunk[self.rest.clone()];
            let end = memchr(b'\n', fresh);
            let part = &fresh[..end.unwrap_or(fresh.len())];
            too_long |= line.len() + part.len() > self.limit;
            if too_long {
                // At once: the rest may take its time.
                drop(mem::take(&mut line));
                self.share = None;
            } else {
                if self.share.is_none() && line.len() + part.len() > FREE {
                    // All that it can need at once: who waits for more holds nothing that others need.
                    self.share = Some(self.budget.take(self.limit));
                    line.reserve_exact(self.limit - line.len());
                }
                line.extend_from_slice(part);
            }
            self.rest.start += part.len() + usize::from(end.is_some());
            if end.is_some() {
                return Ok(Some(self.done(line, too_long)));
            }
        }
    }

    fn done(&mut self, mut line: Vec<u8>, too_long: bool) -> Line {
        if too_long {
            return Line::TooLong;
        }
        // It may wait for long, and has grown beyond what it needs.
        line.shrink_to_fit();
        if let Some(share) = &mut self.share {
            share.keep(line.len());
        }
        Line::Whole(line)
    }
}

#[cfg(test)]
mod tests {
    use super::super::budget::Budgets;
    use super::*;

    /// Gives what is told in pieces of this size.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let n = self.1.min(self.0.len()).min(buffer.len());
            buffer[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    fn read(text: &str, piece: usize, limit: usize) -> Vec<Option<String>> {
        let mut lines =
            Lines::new(Pieces(text.as_bytes(), piece), limit, &Budgets::default().lines);
        let mut found = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            found.push(match line {
                Line::Whole(line) => Some(String::from_utf8(line).unwrap()),
                Line::TooLong => None,
                Line::Answers(_) => panic!("nobody reads those"),
            });
        }
        found
    }

    #[test]
    fn lines_are_the_same_in_pieces_of_any_size() {
        let some = |text: &str| Some(text.to_owned());
        for piece in 1..=9 {
            assert_eq!(read("", piece, 4), []);
            assert_eq!(read("\n", piece, 4), [some("")]);
            assert_eq!(read("a\n\nbc", piece, 4), [some("a"), some(""), some("bc")]);
            assert_eq!(read("abcd\nx\n", piece, 4), [some("abcd"), some("x")]);
            assert_eq!(read("abcde\nx\n", piece, 4), [None, some("x")]);
            assert_eq!(read("x\nabcdefghij", piece, 4), [some("x"), None]);
            assert_eq!(read("abcdefgh\nabcdefgh\nabcd", piece, 4), [None, None, some("abcd")]);
        }
    }

    #[test]
    fn nothing_is_kept_of_a_long_line() {
        let text = "x".repeat(1 << 20) + "\nshort\n";
        let mut lines = Lines::new(text.as_bytes(), 1 << 20, &Budgets::default().lines);
        let Some(Line::Whole(line)) = lines.next().unwrap() else { panic!() };
        assert_eq!((line.len(), line.capacity()), (1 << 20, 1 << 20));
        let Some(Line::Whole(line)) = lines.next().unwrap() else { panic!() };
        assert!(line.capacity() < 64, "{}", line.capacity());
    }
}
