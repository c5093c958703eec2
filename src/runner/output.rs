//! Keeps the output of a command in bounded memory: its beginning, its end, and the length of the omitted part.

use std::collections::VecDeque;

use crate::protocol::Capture;

/// The unit of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LimitUnit {
    Characters,
    /// Bytes of UTF-8. No character is cut.
    Bytes,
}

/// Keeps the first and last characters (or bytes) of a stream.
pub(super) struct BoundedOutput {
    unit: LimitUnit,
    /// The most characters or bytes of the head and of the tail.
    head_limit: usize,
    tail_limit: usize,
    head: Vec<u8>,
    /// Whether the head is complete, so that all further output goes to the tail.
    full: bool,
    tail: VecDeque<u8>,
    /// The number of characters and bytes written in total.
    characters: u64,
    bytes: u64,
}

/// The most bytes of a character.
const MAX_CHARACTER_BYTES: usize = 4;

impl LimitUnit {
    /// The most bytes of one unit.
    fn max_bytes(self) -> usize {
        match self {
            Self::Characters => MAX_CHARACTER_BYTES,
            Self::Bytes => 1,
        }
    }

    fn count(self, text: &str) -> usize {
        match self {
            Self::Characters => text.chars().count(),
            Self::Bytes => text.len(),
        }
    }

    fn first(self, text: &str, limit: usize) -> &str {
        match self {
            Self::Characters => text.char_indices().nth(limit).map_or(text, |(at, _)| &text[..at]),
            Self::Bytes => &text[..text.floor_char_boundary(limit)],
        }
    }

    fn last(self, text: &str, limit: usize) -> &str {
        let skip = self.count(text).saturating_sub(limit);
        match self {
            Self::Characters => text.char_indices().nth(skip).map_or("", |(at, _)| &text[at..]),
            Self::Bytes => &text[text.ceil_char_boundary(skip)..],
        }
    }
}

impl BoundedOutput {
    /// Keeps `limit` characters or bytes, half of them from the beginning and half from the end.
    pub(super) fn new(limit: usize, unit: LimitUnit) -> Self {
        let head_limit = limit.div_ceil(2);
        Self {
            unit,
            head_limit,
            tail_limit: limit - head_limit,
            head: Vec::new(),
            full: false,
            tail: VecDeque::new(),
            characters: 0,
            bytes: 0,
        }
    }

    /// Keeps the first `limit` characters or bytes.
    pub(super) fn first(limit: usize, unit: LimitUnit) -> Self {
        Self { head_limit: limit, tail_limit: 0, ..Self::new(0, unit) }
    }

    /// Adds output.
    pub(super) fn push(&mut self, mut bytes: &[u8]) {
        self.characters += count_characters(bytes);
        self.bytes += bytes.len() as u64;
        if !self.full {
            let most = self.head_limit * self.unit.max_bytes() + Capture::MARGIN;
            let taken = (most - self.head.len()).min(bytes.len());
            self.head.extend_from_slice(&bytes[..taken]);
            self.full = self.head.len() == most;
            bytes = &bytes[taken..];
        }
        let keep = self.tail_limit * self.unit.max_bytes() + Capture::MARGIN;
        let bytes = &bytes[bytes.len().saturating_sub(keep)..];
        let excess = (self.tail.len() + bytes.len()).saturating_sub(keep);
        self.tail.drain(..excess.min(self.tail.len()));
        self.tail.extend(bytes);
    }

    /// Returns the kept output as text. Invalid UTF-8 becomes U+FFFD.
    pub(super) fn finish(mut self) -> Capture {
        let limit = self.head_limit + self.tail_limit;
        let dropped = self.bytes - (self.head.len() + self.tail.len()) as u64;
        let tail = self.tail.make_contiguous();
        // Invalid UTF-8 is counted in the form in which it is shown, so that every cut is marked.
        let (begin, end, written) = if dropped == 0 {
            let all = text(&[self.head.as_slice(), tail].concat());
            if self.unit.count(&all) <= limit {
                return Capture { head: all, ..Capture::default() };
            }
            (all.clone(), all.clone(), all.chars().count() as u64)
        } else {
            (text(whole_end(&self.head)), text(whole_beginning(tail)), self.characters)
        };
        let head = self.unit.first(&begin, self.head_limit);
        let tail = self.unit.last(&end, self.tail_limit);
        let shown = (head.chars().count() + tail.chars().count()) as u64;
        let left_out =
            written.saturating_sub(shown).max(dropped.div_ceil(MAX_CHARACTER_BYTES as u64));
        let before_tail = &end[..end.len() - tail.len()];
        Capture::cut(head, &begin[head.len()..], left_out, before_tail, tail)
    }
}

/// Removes an incomplete character at the end.
pub(super) fn whole_end(bytes: &[u8]) -> &[u8] {
    let begins = |at: &usize| bytes[*at] & 0xC0 != 0x80;
    let from = bytes.len().saturating_sub(MAX_CHARACTER_BYTES - 1);
    match (from..bytes.len()).rev().find(begins) {
        Some(at) => match std::str::from_utf8(&bytes[at..]) {
            Err(e) if e.error_len().is_none() => &bytes[..at],
            _ => bytes,
        },
        None => bytes,
    }
}

/// Removes an incomplete character at the beginning.
pub(super) fn whole_beginning(bytes: &[u8]) -> &[u8] {
    let of_another =
        bytes.iter().take(MAX_CHARACTER_BYTES - 1).take_while(|byte| **byte & 0xC0 == 0x80);
    &bytes[of_another.count()..]
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Counts characters of UTF-8: all bytes except continuation bytes.
fn count_characters(bytes: &[u8]) -> u64 {
    // Counting in blocks whose counts fit in a byte lets the compiler use vector instructions.
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
        let mut bounded = BoundedOutput::new(limit, LimitUnit::Characters);
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
            let mut bounded = BoundedOutput::new(10, LimitUnit::Characters);
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
                let mut bounded = BoundedOutput::new(limit, LimitUnit::Characters);
                bounded.push(&bytes[..cut]);
                bounded.push(&bytes[cut..]);
                assert_eq!(bounded.finish(), whole, "limit {limit}, cut {cut}");
            }
        }
    }

    #[test]
    fn halves_in_bytes_end_where_characters_do() {
        let text = "aä€😀".repeat(9);
        for limit in [1, 2, 5, 8, 20, 51, 89, 90] {
            for cut in 0..=text.len() {
                let mut bounded = BoundedOutput::new(limit, LimitUnit::Bytes);
                bounded.push(&text.as_bytes()[..cut]);
                bounded.push(&text.as_bytes()[cut..]);
                let Capture { head, left_out, tail, .. } = bounded.finish();
                if limit >= text.len() {
                    assert_eq!((&*head, left_out, &*tail), (&*text, 0, ""));
                    continue;
                }
                let half = text.floor_char_boundary(limit.div_ceil(2));
                let rest = text.ceil_char_boundary(text.len() - limit / 2);
                assert_eq!((&*head, &*tail), (&text[..half], &text[rest..]), "limit {limit}");
                assert_eq!(left_out, text[half..rest].chars().count() as u64, "limit {limit}");
            }
        }
    }

    #[test]
    fn bytes_that_are_no_text_take_no_more_room_than_text() {
        for length in [10, 11, 40, 1000] {
            let mut bounded = BoundedOutput::new(10, LimitUnit::Bytes);
            bounded.push(&vec![0xFF; length]);
            let Capture { head, left_out, tail, .. } = bounded.finish();
            assert!(head.len() <= 5 && tail.len() <= 5 && left_out > 0, "{length}");
        }
    }

    #[test]
    fn of_a_beginning_nothing_follows_and_what_is_left_out_is_counted() {
        let first = |limit: usize, pieces: &[&[u8]]| {
            let mut bounded = BoundedOutput::first(limit, LimitUnit::Bytes);
            pieces.iter().for_each(|piece| bounded.push(piece));
            let Capture { head, left_out, tail, .. } = bounded.finish();
            assert_eq!(tail, "");
            assert!(head.len() <= limit, "{head:?}");
            (head, left_out)
        };
        let is = |head: &str, left_out| (head.to_owned(), left_out);
        // Output up to the limit, and one byte more.
        assert_eq!(first(6, &[b"abc", b"def"]), is("abcdef", 0));
        assert_eq!(first(6, &[b"abc", b"defg"]), is("abcdef", 1));
        assert_eq!(first(6, &[b"abcdef", b"g", b"hij"]), is("abcdef", 4));
        assert_eq!(first(6, &[]), is("", 0));
        // A character of four bytes that ends at the limit, or crosses it.
        let smile = "\u{1f600}";
        for (before, head, left_out) in [
            ("ab", "ab\u{1f600}", 1),
            ("abc", "abc", 2),
            ("abcd", "abcd", 2),
            ("abcde", "abcde", 2),
            ("abcdef", "abcdef", 2),
        ] {
            let text = format!("{before}{smile}z");
            for cut in 0..=text.len() {
                let (one, two) = text.as_bytes().split_at(cut);
                assert_eq!(first(6, &[one, two]), is(head, left_out), "{text:?} cut at {cut}");
            }
        }
        assert_eq!(first(6, &[b"ab", smile.as_bytes()]), is("ab\u{1f600}", 0));
        // Each invalid byte becomes three bytes, but the output never exceeds the limit.
        assert_eq!(first(6, &[b"\xff\xff"]), is("\u{fffd}\u{fffd}", 0));
        assert_eq!(first(6, &[b"\xff\xff\xff"]), is("\u{fffd}\u{fffd}", 1));
        assert_eq!(first(6, &[b"a\xff\xffbc"]).0, "a\u{fffd}");
        assert!(first(6, &[b"a\xff\xffbc"]).1 > 0);
        assert_eq!(first(6, &[b"abcd\xf0\x9f"]), is("abcd", 1), "the stream ends in a character");
        assert!(first(6, &[&[0xff; 1000]]).1 > 0);
    }
}
