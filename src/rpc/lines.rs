//! The lines of a connection, read ahead in bounded memory. A line that is too long is dropped as it
//! comes, and the next is read as if nothing had been.

use std::io::{self, BufRead};

use memchr::memchr;

use super::budget::{FREE, Pool, Share};

/// How much of a connection may wait, in bytes. A line longer than [`FREE`] waits alone.
pub(super) const AHEAD: usize = 4 << 20;
/// What a line takes besides its bytes.
const OVERHEAD: usize = 128;

/// A line of a client.
pub(super) struct Line {
    /// Its bytes, without its end; None if they are more than the limit.
    pub(super) bytes: Option<Vec<u8>>,
    /// What it takes of all lines' memory.
    pub(super) share: Option<Share>,
    /// What it takes of what its connection may have waiting: never nothing, so that a long line waits for all
    /// that came before it.
    pub(super) ahead: Share,
}

/// Reads lines. Each waits for room.
pub(super) struct Lines<R> {
    pub(super) input: R,
    /// The longest line, in bytes, without its end.
    pub(super) limit: usize,
    /// The memory of all connections' lines.
    pub(super) pool: Pool,
    /// What this connection may have waiting: [`AHEAD`].
    pub(super) ahead: Pool,
}

impl<R: BufRead> Lines<R> {
    /// The next line; what is before the end of the input without an end is one, too. None when no more come.
    ///
    /// # Errors
    /// Whoever wrote is gone.
    pub(super) fn next(&mut self) -> io::Result<Option<Line>> {
        let (mut bytes, mut long, mut is_too_long) = (Vec::new(), None, false);
        let mut has_begun = false;
        loop {
            let chunk = self.input.fill_buf()?;
            if chunk.is_empty() && !has_begun {
                return Ok(None);
            }
            has_begun = true;
            let end = memchr(b'\n', chunk).or(chunk.is_empty().then_some(0));
            let part = &chunk[..end.unwrap_or(chunk.len())];
            let length = bytes.len() + part.len();
            if length > self.limit {
                // At once: the rest may take its time.
                (bytes, long, is_too_long) = (Vec::new(), None, true);
            } else if !is_too_long {
                if length > FREE && long.is_none() {
                    // All that the line can need at once: whoever waits for it holds nothing.
                    let ahead = self.ahead.take(AHEAD);
                    long = Some((ahead, self.pool.take(self.limit)));
                    bytes.reserve_exact(self.limit - bytes.len());
                }
                bytes.extend_from_slice(part);
            }
            let used = end.map_or(chunk.len(), |end| (end + 1).min(chunk.len()));
            self.input.consume(used);
            if end.is_some() {
                break;
            }
        }
        bytes.shrink_to_fit();
        let (ahead, share) = match long {
            Some((mut ahead, mut share)) => {
                ahead.keep(OVERHEAD);
                share.keep_for(bytes.len());
                (ahead, Some(share))
            }
            None => (self.ahead.take(bytes.len() + OVERHEAD), None),
        };
        Ok(Some(Line { bytes: (!is_too_long).then_some(bytes), share, ahead }))
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;
    use std::{iter, thread};

    use super::*;

    fn lines(text: &[u8], piece: usize, limit: usize) -> Lines<BufReader<&[u8]>> {
        let input = BufReader::with_capacity(piece, text);
        Lines { input, limit, pool: Pool::new(2 << 20), ahead: Pool::new(AHEAD) }
    }

    fn read(text: &str, piece: usize, limit: usize) -> Vec<Option<String>> {
        let mut lines = lines(text.as_bytes(), piece, limit);
        let all = iter::from_fn(|| lines.next().unwrap());
        all.map(|line| line.bytes.map(|bytes| String::from_utf8(bytes).unwrap())).collect()
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
    fn a_long_line_waits_for_those_before_it_and_short_ones_come_after_it() {
        let long = "x".repeat(1 << 20);
        let text = format!("a\n{long}\nb\n{long}\n");
        let mut lines = lines(text.as_bytes(), 64 << 10, 1 << 20);
        let (pool, ahead) = (lines.pool.clone(), lines.ahead.clone());
        fn next(lines: &mut Lines<BufReader<&[u8]>>) -> Line {
            lines.next().unwrap().unwrap()
        }
        let first = next(&mut lines);
        thread::scope(|scope| {
            let reading = scope.spawn(move || (next(&mut lines), lines));
            while ahead.waiting() == 0 {
                thread::yield_now();
            }
            assert_eq!(pool.count(), 0, "nothing is held while it waits");
            drop(first);
            let (second, mut lines) = reading.join().unwrap();
            assert_eq!((second.bytes.as_ref().unwrap().len(), pool.count()), (1 << 20, 1 << 20));
            let third = next(&mut lines);
            assert_eq!(third.bytes.as_deref(), Some(&b"b"[..]));
            drop((second, third));
            drop(next(&mut lines));
            assert!(lines.next().unwrap().is_none());
            assert_eq!((pool.count(), ahead.count(), pool.most()), (0, 0, 1 << 20));
        });
    }

    #[test]
    fn as_much_is_read_ahead_as_may_wait() {
        let text = "abc\n".repeat(100_000);
        let mut lines = lines(text.as_bytes(), 1000, 1 << 20);
        let ahead = lines.ahead.clone();
        let (sender, read) = std::sync::mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(move || {
                iter::from_fn(|| lines.next().unwrap()).all(|l| sender.send(l).is_ok())
            });
            while ahead.waiting() == 0 {
                thread::yield_now();
            }
            assert!((AHEAD - 2 * OVERHEAD..=AHEAD).contains(&ahead.count()), "{}", ahead.count());
            assert_eq!(read.iter().count(), 100_000);
        });
    }
}
