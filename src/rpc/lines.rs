//! The lines of a connection, read ahead in bounded memory. A line that is too long is dropped as it
//! comes, and the next is read as if nothing had been.

use std::collections::VecDeque;
use std::io;
use std::mem::{self, MaybeUninit};
use std::os::fd::AsFd;

use memchr::{memchr, memrchr};
use rustix::io::Errno;

use super::budget::{FREE, Pool, Share};

/// How much is read at once, in bytes.
const CHUNK: usize = 64 << 10;
/// How much may wait, in bytes; one line may be longer if it waits alone.
const WAITING: usize = 4 << 20;

/// A line of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// A line, without its end.
    Whole(&'a [u8]),
    /// One that is longer than the limit, of which nothing is kept.
    TooLong,
}

/// What was read and not carried out yet.
pub(super) struct Lines {
    bytes: Vec<u8>,
    /// Where the next line begins.
    start: usize,
    /// Where the line begins whose end has not come.
    tail: usize,
    /// Lines up to here were returned by [`Lines::unscanned`].
    scanned: usize,
    /// The longest line, in bytes, without its end.
    limit: usize,
    /// The next line is longer: its bytes are dropped until its end.
    too_long: bool,
    /// No more comes.
    ended: bool,
    /// The memory of all connections' lines, and what those longer than [`FREE`] take of it: the whole
    /// ones, in their order, and the one whose end has not come.
    pool: Pool,
    shares: VecDeque<Share>,
    tail_share: Option<Share>,
}

impl Lines {
    pub(super) fn new(limit: usize, pool: &Pool) -> Self {
        Self {
            bytes: Vec::new(),
            start: 0,
            tail: 0,
            scanned: 0,
            limit,
            too_long: false,
            ended: false,
            pool: pool.clone(),
            shares: VecDeque::new(),
            tail_share: None,
        }
    }

    /// Whether no more comes.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Whether more may be read now. `is_idle`: nothing else of this connection holds memory that
    /// others may wait for, so that a long line may wait for room.
    pub(super) fn has_room(&mut self, is_idle: bool) -> bool {
        if self.ended {
            return false;
        }
        let is_first = self.start == self.tail;
        if self.bytes.len() - self.tail > FREE && self.tail_share.is_none() {
            // All that the line can need at once: whoever waits for more holds nothing that others need.
            self.tail_share = self.pool.try_take(self.limit);
            if self.tail_share.is_none() {
                if !(is_first && is_idle) {
                    return false;
                }
                self.tail_share = Some(self.pool.take(self.limit));
            }
        }
        is_first || self.bytes.len() - self.start < WAITING
    }

    /// Reads what is there; waits if nothing is.
    ///
    /// # Errors
    /// Whoever wrote is gone.
    pub(super) fn fill(&mut self, input: impl AsFd) -> io::Result<()> {
        if self.start == self.bytes.len() {
            self.drop_first(self.start);
            self.bytes.shrink_to(2 * CHUNK);
        } else if self.start > self.bytes.len() / 2 {
            self.drop_first(self.start);
        }
        let length = self.bytes.len() - self.tail;
        let most = if self.tail_share.is_some() {
            self.bytes.reserve_exact((self.limit + CHUNK).saturating_sub(length));
            CHUNK
        } else {
            // No line gets longer than FREE without a share.
            (FREE + 1).saturating_sub(length).clamp(1, CHUNK)
        };
        let mut chunk = [MaybeUninit::<u8>::uninit(); CHUNK];
        match rustix::io::read(input, &mut chunk[..most]) {
            Ok(([], _)) => {
                self.end_line(self.bytes.len());
                self.ended = true;
            }
            Ok((read, _)) => {
                if let Some(end) = memchr(b'\n', read) {
                    self.end_line(self.bytes.len() + end);
                }
                if let Some(end) = memrchr(b'\n', read) {
                    self.tail = self.bytes.len() + end + 1;
                }
                self.bytes.extend_from_slice(read);
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(e) => return Err(e.into()),
        }
        if self.start == self.tail {
            self.too_long |= self.bytes.len() - self.start > self.limit;
            if self.too_long {
                // At once: the rest may take its time.
                self.clear();
            }
        }
        Ok(())
    }

    /// Takes the next line, if it is there; what is before the end of the input without an end is a line,
    /// too. `read` makes of it what is kept; with it comes what the line takes of the pool.
    pub(super) fn next<T>(
        &mut self,
        read: impl FnOnce(Line<'_>) -> T,
    ) -> Option<(T, Option<Share>)> {
        let is_last = self.ended && (self.start < self.bytes.len() || self.too_long);
        let end = memchr(b'\n', &self.bytes[self.start..self.tail]).map(|end| self.start + end);
        let end = end.or(is_last.then_some(self.bytes.len()))?;
        let line = &self.bytes[self.start..end];
        let share = if line.len() > FREE { self.shares.pop_front() } else { None };
        debug_assert!(line.len() <= FREE || share.is_some(), "a long line has a share");
        let is_long = mem::take(&mut self.too_long) || line.len() > self.limit;
        let kept = read(if is_long { Line::TooLong } else { Line::Whole(line) });
        self.start = (end + 1).min(self.bytes.len());
        self.tail = self.tail.max(self.start);
        if share.is_some() {
            self.drop_first(self.start);
            self.bytes.shrink_to(2 * CHUNK);
        }
        Some((kept, share))
    }

    /// The whole lines that were not returned yet.
    pub(super) fn unscanned(&mut self) -> impl Iterator<Item = &[u8]> {
        let from = mem::replace(&mut self.scanned, self.tail).max(self.start);
        let lines = self.bytes[from..self.tail].split_inclusive(|byte| *byte == b'\n');
        lines.map(|line| &line[..line.len() - 1])
    }

    /// Has [`Lines::unscanned`] return the lines that are there again.
    pub(super) fn rescan(&mut self) {
        self.scanned = self.start;
    }

    /// Drops all, and takes no more.
    pub(super) fn close(&mut self) {
        self.clear();
        (self.ended, self.too_long) = (true, false);
    }

    fn clear(&mut self) {
        self.bytes = Vec::new();
        (self.start, self.tail, self.scanned) = (0, 0, 0);
        self.shares.clear();
        self.tail_share = None;
    }

    /// The line ends here whose end had not come: its share is what it needs.
    fn end_line(&mut self, end: usize) {
        if let Some(mut share) = self.tail_share.take() {
            share.keep((end - self.tail).min(self.limit));
            self.shares.push_back(share);
        }
    }

    fn drop_first(&mut self, count: usize) {
        self.bytes.drain(..count);
        self.start -= count;
        self.tail -= count;
        self.scanned = self.scanned.saturating_sub(count);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::thread;

    use super::super::budget::Budgets;
    use super::*;

    fn read(text: &str, piece: usize, limit: usize) -> Vec<Option<String>> {
        let mut lines = Lines::new(limit, &Budgets::default().lines);
        let mut found = Vec::new();
        let mut take = |lines: &mut Lines| {
            while let Some((line, _)) = lines.next(|line| match line {
                Line::Whole(line) => Some(String::from_utf8(line.to_vec()).unwrap()),
                Line::TooLong => None,
            }) {
                found.push(line);
            }
        };
        let (input, mut output) = io::pipe().unwrap();
        for piece in text.as_bytes().chunks(piece) {
            output.write_all(piece).unwrap();
            assert!(lines.has_room(true));
            lines.fill(&input).unwrap();
            take(&mut lines);
        }
        drop(output);
        lines.fill(&input).unwrap();
        take(&mut lines);
        assert!(lines.has_ended() && !lines.has_room(true));
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

    /// Reads until a whole line is there, or until there is no room; how much waits then.
    fn fill(lines: &mut Lines, input: &io::PipeReader, is_idle: bool) -> usize {
        while lines.start == lines.tail && lines.has_room(is_idle) {
            lines.fill(input).unwrap();
        }
        lines.bytes.len() - lines.start
    }

    #[test]
    fn a_long_line_has_a_share_and_nothing_is_kept_of_it() {
        let budgets = Budgets::new(1 << 20, 1);
        let (input, mut output) = io::pipe().unwrap();
        let writing = thread::spawn(move || {
            let long = "x".repeat(1 << 20);
            output.write_all(format!("{long}\n{long}\nshort\n").as_bytes()).unwrap();
        });
        let mut lines = Lines::new(1 << 20, &budgets.lines);
        fill(&mut lines, &input, true);
        let (length, share) = lines
            .next(|line| match line {
                Line::Whole(line) => line.len(),
                Line::TooLong => panic!("it is as long as it may be"),
            })
            .unwrap();
        assert_eq!((length, budgets.lines.now().0), (1 << 20, 1 << 20));
        // While that is held the next one has no room, and does not wait for it.
        let begun = fill(&mut lines, &input, false);
        assert!(begun > FREE && begun < 1 << 20, "{begun}");
        drop(share);
        fill(&mut lines, &input, false);
        assert!(lines.next(|_| ()).unwrap().1.is_some());
        assert!(lines.bytes.capacity() <= 4 * CHUNK, "{}", lines.bytes.capacity());
        fill(&mut lines, &input, false);
        assert!(lines.next(|line| assert_eq!(line, Line::Whole(b"short"))).is_some());
        assert_eq!(budgets.lines.now().0, 0);
        writing.join().unwrap();
    }

    #[test]
    fn long_lines_behind_others_have_shares_too() {
        let budgets = Budgets::new(2 << 20, 1);
        let (input, mut output) = io::pipe().unwrap();
        let long = FREE + 2 * CHUNK;
        let writing = thread::spawn(move || {
            let long = "x".repeat(long);
            output.write_all(format!("a\n{long}\nb\n{long}\nc\n").as_bytes()).unwrap();
        });
        let mut lines = Lines::new(1 << 20, &budgets.lines);
        let taken = budgets.lines.take(2 << 20);
        while lines.has_room(false) {
            lines.fill(&input).unwrap();
        }
        assert_eq!(lines.bytes.len(), "a\n".len() + FREE + 1, "there is none to be had");
        drop(taken);
        while !lines.has_ended() {
            assert!(lines.has_room(false));
            lines.fill(&input).unwrap();
        }
        assert_eq!(budgets.lines.now().0, 2 * long);
        assert!(budgets.lines.most() <= 2 << 20);
        for (length, left) in [(1, 2), (long, 1), (1, 1), (long, 0), (1, 0)] {
            let read =
                |line: Line<'_>| assert!(matches!(line, Line::Whole(l) if l.len() == length));
            let ((), share) = lines.next(read).unwrap();
            assert_eq!(share.is_some(), length > FREE);
            drop(share);
            assert_eq!(budgets.lines.now().0, left * long);
        }
        writing.join().unwrap();
    }

    #[test]
    fn as_much_is_read_ahead_as_may_wait_and_each_line_is_shown_once() {
        let (input, mut output) = io::pipe().unwrap();
        let mut lines = Lines::new(1 << 20, &Budgets::default().lines);
        let (mut sent, mut shown) = (0, 0);
        while lines.has_room(false) {
            output.write_all("abc\n".repeat(1000).as_bytes()).unwrap();
            sent += 1000;
            lines.fill(&input).unwrap();
            shown += lines.unscanned().filter(|line| *line == b"abc").count();
        }
        assert!((WAITING..2 * WAITING).contains(&(4 * sent)), "{sent}");
        assert_eq!(shown, sent);
        let mut taken = 0;
        while lines.next(|line| assert_eq!(line, Line::Whole(b"abc"))).is_some() {
            taken += 1;
        }
        assert_eq!(taken, sent);
        output.write_all(b"abc\nab").unwrap();
        lines.fill(&input).unwrap();
        assert_eq!(lines.unscanned().count(), 1);
        output.write_all(b"c\n").unwrap();
        lines.fill(&input).unwrap();
        assert_eq!(lines.unscanned().filter(|line| *line == b"abc").count(), 1);
    }
}
