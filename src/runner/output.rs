//! Output of a command in bounded memory: its beginning, its end, and how much lay between.

use std::collections::VecDeque;

use crate::protocol::Capture;

/// Keeps the first and last characters of a stream.
pub(super) struct Bounded {
    /// Of how many characters the head and the tail may consist, each.
    head_limit: usize,
    tail_limit: usize,
    head: Vec<u8>,
    /// Whether the head is complete; then all else goes to the tail.
    full: bool,
    tail: VecDeque<u8>,
    /// How many characters and bytes were written in all.
    characters: u64,
    bytes: u64,
}

/// No character takes more bytes.
const WIDEST: usize = 4;

impl Bounded {
    /// Keeps `limit` characters in all, half of them from the beginning.
    pub(super) fn new(limit: usize) -> Self {
        let head_limit = limit.div_ceil(2);
        Self {
            head_limit,
            tail_limit: limit - head_limit,
            head: Vec::new(),
            full: false,
            tail: VecDeque::new(),
            characters: 0,
            bytes: 0,
        }
    }

    /// Takes what was written next.
    pub(super) fn push(&mut self, mut bytes: &[u8]) {
        self.characters += count_characters(bytes);
        self.bytes += bytes.len() as u64;
        if !self.full {
            let room = self.head_limit * WIDEST - self.head.len();
            let taken = room.min(bytes.len());
            self.head.extend_from_slice(&bytes[..taken]);
            self.full = self.head.len() == self.head_limit * WIDEST;
            bytes = &bytes[taken..];
        }
        let keep = self.tail_limit * WIDEST;
        let bytes = &bytes[bytes.len().saturating_sub(keep)..];
        let excess = (self.tail.len() + bytes.len()).saturating_sub(keep);
        self.tail.drain(..excess.min(self.tail.len()));
        self.tail.extend(bytes);
    }

    /// What is kept, as text. Bytes that are no UTF-8 become U+FFFD.
    pub(super) fn finish(mut self) -> Capture {
        let limit = self.head_limit + self.tail_limit;
        let dropped = self.bytes - (self.head.len() + self.tail.len()) as u64;
        let tail = self.tail.make_contiguous();
        // What is not UTF-8 is counted as it is shown, so that no cut goes unmarked.
        let (head, tail, left_out) = if dropped == 0 {
            let all = text(&[self.head.as_slice(), tail].concat());
            let characters = all.chars().count();
            if characters <= limit {
                return Capture { head: all, left_out: 0, tail: String::new() };
            }
            (all.clone(), all, (characters - limit) as u64)
        } else {
            // The tail may begin within a character, before the part of it that is kept.
            let left_out = self.characters.saturating_sub(limit as u64);
            (text(&self.head), text(tail), left_out.max(dropped.div_ceil(WIDEST as u64)))
        };
        let skip = tail.chars().count().saturating_sub(self.tail_limit);
        let head = head.chars().take(self.head_limit).collect();
        Capture { head, left_out, tail: tail.chars().skip(skip).collect() }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Characters of UTF-8: all bytes but continuations.
fn count_characters(bytes: &[u8]) -> u64 {
    // In blocks whose count fits a byte, which the compiler makes into wide instructions.
    bytes
        .chunks(255)
        .map(|block| {
            let count = block.iter().fold(0u8, |n, b| n + u8::from(b & 0xC0 != 0x80));
            u64::from(count)
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(limit: usize, pieces: &[&str]) -> Capture {
        let mut bounded = Bounded::new(limit);
        pieces.iter().for_each(|piece| bounded.push(piece.as_bytes()));
        bounded.finish()
    }

    #[test]
    fn short_output_is_whole() {
        assert_eq!(kept(10, &["ab", "cd"]).head, "abcd");
        assert_eq!(kept(10, &["äöü", "äöüß", "abc"]).head, "äöüäöüßabc");
        assert_eq!(kept(10, &["äöü", "äöüß", "abc"]).left_out, 0);
    }

    #[test]
    fn of_long_output_head_and_tail_are_kept_and_the_rest_counted() {
        let capture = kept(4, &["0123456789"]);
        assert_eq!((&*capture.head, capture.left_out, &*capture.tail), ("01", 6, "89"));
        let long = "x".repeat(100_000) + "end";
        let capture = kept(6, &["beg", &long]);
        assert_eq!((&*capture.head, capture.left_out, &*capture.tail), ("beg", 100_000, "end"));
    }

    #[test]
    fn a_cut_in_what_is_no_text_is_marked_too() {
        for length in [11, 40, 41, 1000] {
            let mut bounded = Bounded::new(10);
            bounded.push(&vec![0x80; length]);
            let capture = bounded.finish();
            let shown = capture.head.chars().count() + capture.tail.chars().count();
            assert_eq!(shown, 10);
            assert!(capture.left_out > 0, "{length}");
        }
    }

    #[test]
    fn every_split_gives_the_same_as_one_piece() {
        let text = "aä€😀".repeat(9);
        let bytes = text.as_bytes();
        for limit in [1, 2, 5, 8, 20, 35, 36, 40] {
            let whole = kept(limit, &[&text]);
            let characters: Vec<char> = text.chars().collect();
            let left_out = characters.len().saturating_sub(limit);
            assert_eq!(whole.left_out, left_out as u64);
            if left_out > 0 {
                let head: String = characters[..limit.div_ceil(2)].iter().collect();
                let tail: String = characters[characters.len() - limit / 2..].iter().collect();
                assert_eq!((&whole.head, &whole.tail), (&head, &tail), "limit {limit}");
            }
            for cut in 0..bytes.len() {
                let mut bounded = Bounded::new(limit);
                bounded.push(&bytes[..cut]);
                bounded.push(&bytes[cut..]);
                assert_eq!(bounded.finish(), whole, "limit {limit}, cut {cut}");
            }
        }
    }
}
