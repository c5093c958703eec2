//! Private keys: PEM of any kind, `OpenSSH`, PGP, SSH2, `PuTTY`, and PEM in base64 as Kubernetes keeps
//! it.
//!
//! Between the marker that begins a key and the one that ends it every run of base64 is withheld,
//! whatever stands around it and however short it is. Where one of the two markers is missing, so are
//! the lines beside the other, as far as they look like those of a key. The words that also stand
//! before the first marker on its line (`file.pem:`, `println!`), and the numbers of lines, stay.

use std::ops::Range;
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use memchr::memmem;
use regex::bytes::Regex;

use super::shape::{Mix, entropy, is_hex, reads};
use super::{Rank, Sort, Span};

pub(super) const KEY: Sort = Sort("private key");
/// `-----BEGIN` in base64, as far as it does not depend on what follows.
const ENCODED: &[u8] = b"LS0tLS1CRUdJTi";
/// No private key has fewer characters: one of Ed25519 (PKCS #8) has 64, and the smallest on a curve,
/// of 192 bits and without its curve's name, has 44.
const LEAST: usize = 40;
/// Fewer characters of a key that was cut off tell too little to be withheld.
const LEAST_CUT: usize = 8;
/// Lines of a key are at least this long, but for the last.
const FULL: usize = 16;
/// So much beside what could be of a key, and more than that, is no key.
const OTHER: usize = 4 << 10;
/// So many bytes before a marker are looked at for what stands around the lines of its key, and so many
/// words are known of that.
const FRAME: usize = 256;
const WORDS: usize = 16;
/// So many characters of a key tell how mixed it is.
const SAMPLE: usize = 512;

/// Where a key begins or ends.
static MARKERS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?-u)-{4,5} ?(?:BEGIN|END)(?:(?:[ +_]|%20)[A-Z0-9]{1,16}){0,4}?(?:[ +_]|%20)",
        r"(?:PRIVATE|SECRET)(?:[ +_]|%20)KEY(?:(?:[ +_]|%20)BLOCK)? ?-{4,5}",
        r"|Private-Lines:[ \t]*[0-9]*|Private-(?:MAC|Hash):"
    ))
    .expect("a regex")
});

/// Finds keys; `is_cut` says that something stood before the text, which may have begun one.
pub(super) fn find(text: &str, is_cut: bool, spans: &mut Vec<Span>) {
    let text = text.as_bytes();
    let (mut opened, mut from) = (is_cut.then_some(0), 0);
    for marker in MARKERS.find_iter(text) {
        let begins = marker.as_bytes().starts_with(b"Private-L")
            || memmem::find(marker.as_bytes(), b"BEGIN").is_some();
        withhold(Gap::new(text, opened, from..marker.start(), !begins).key(), spans);
        (opened, from) = (begins.then(|| marker.start()), marker.end());
    }
    withhold(Gap::new(text, opened, from..text.len(), false).key(), spans);
    // PEM in base64, on one line or as `base64` wraps it.
    let mut encoded = memmem::find_iter(text, ENCODED).peekable();
    while let Some(at) = encoded.next() {
        let beginning = STANDARD.decode(&text[at..text.len().min(at + 60)]).unwrap_or_default();
        if memmem::find(&beginning, b"PRIVATE KEY").is_some() {
            let end = at + text[at..].iter().take_while(|byte| is_base64(**byte)).count();
            let next = encoded.peek().map_or(text.len(), |next| end.max(*next));
            let behind = Gap::new(text, Some(at), end..next, false).key();
            withhold(std::iter::once(at..end).chain(behind).collect(), spans);
        }
    }
}

/// What by itself could be of a private key: long base64 that is no number.
pub(super) fn alone(text: &str) -> Vec<Range<usize>> {
    let text = text.as_bytes();
    let is_one = |run: &[u8]| {
        let mix = Mix::of(run);
        run.len() >= LEAST && mix.upper.min(mix.lower) > 0 && entropy(run) >= 3.5
    };
    let mut runs = Line::read(text, 0..text.len(), &[]).runs;
    runs.retain(|run| is_one(&text[run.clone()]));
    runs
}

/// The runs of a key go; the first says so.
fn withhold(runs: Vec<Range<usize>>, spans: &mut Vec<Span>) {
    let all = runs.into_iter().enumerate();
    spans.extend(all.map(|(n, range)| Span { says: n == 0, ..Span::new(range, KEY, Rank::Key) }));
}

/// What stands between two markers, or before the first, or behind the last.
struct Gap<'a> {
    text: &'a [u8],
    part: Range<usize>,
    opens: bool,
    closes: bool,
    /// The words that stand before the marker on its line: they also stand around the lines of its key.
    frame: Vec<&'a [u8]>,
}

impl<'a> Gap<'a> {
    /// `opened` is where the marker before it starts, if that begins a key; `closes` tells whether the
    /// one behind it ends one.
    fn new(text: &'a [u8], opened: Option<usize>, part: Range<usize>, closes: bool) -> Self {
        let at = opened.unwrap_or(part.end);
        let near = at.saturating_sub(FRAME);
        let start = memchr::memrchr(b'\n', &text[near..at]).map_or(near, |n| near + n + 1);
        let mut around = Line::read(text, start..at, &[]);
        // Where a key ends, all of it may stand on that line.
        if opened.is_none() && (!closes || around.looks()) {
            around = Line::default();
        }
        let frame = around.runs.into_iter().map(|run| &text[run]).take(WORDS).collect();
        Self { text, part, opens: opened.is_some(), closes, frame }
    }

    /// The runs of base64 that are of a key.
    fn key(&self) -> Vec<Range<usize>> {
        if self.opens && self.closes && self.is_of_key() {
            return self.lines().flat_map(|line| line.runs).collect();
        }
        let mut runs = Vec::new();
        if self.opens {
            runs = self.adjoining(self.lines(), true).concat();
        }
        if self.closes {
            let from = runs.last().map_or(self.part.start, |run| run.end);
            let mut lines = self.adjoining(self.lines_up(from), false);
            lines.reverse();
            runs.extend(lines.concat());
        }
        runs
    }

    /// The lines in it, without headers. The first and the last may be parts of those that the markers
    /// stand on.
    fn lines(&self) -> impl Iterator<Item = Line> + '_ {
        let (mut at, mut begun) = (self.part.start, false);
        std::iter::from_fn(move || {
            let rest = self.text.get(at..self.part.end)?;
            let end = at + memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let line = Line::read(self.text, at..end, &self.frame);
            begun |= line.looks();
            let is_header = !begun && memmem::find(&self.text[at..end], b": ").is_some();
            at = end + 1;
            Some(if is_header { Line::default() } else { line })
        })
    }

    /// The same from the last up, not further than `from`.
    fn lines_up(&self, from: usize) -> impl Iterator<Item = Line> + '_ {
        let mut end = Some(self.part.end);
        std::iter::from_fn(move || {
            let last = end?;
            end = memchr::memrchr(b'\n', &self.text[from..last]).map(|n| from + n);
            Some(Line::read(self.text, end.map_or(from, |n| n + 1)..last, &self.frame))
        })
    }

    /// Whether most of what stands in it is of a key.
    fn is_of_key(&self) -> bool {
        let (mut all, mut drawn, mut body) = (0, 0, Vec::new());
        for line in self.lines() {
            (all, drawn) = (all + line.all, drawn + line.drawn);
            if all > drawn * 2 + OTHER {
                return false;
            }
            if body.len() < SAMPLE {
                body.extend(line.runs.into_iter().flat_map(|run| &self.text[run]));
            }
        }
        drawn * 2 >= all && all >= LEAST && entropy(&body) >= 3.5
    }

    /// Of the lines beside a marker those that look like of a key, if they are enough for one or, where
    /// the other marker is missing, for what is left of one.
    fn adjoining(
        &self,
        lines: impl Iterator<Item = Line>,
        is_behind: bool,
    ) -> Vec<Vec<Range<usize>>> {
        let (mut taken, mut short, mut last) = (Vec::new(), 0, None);
        for (n, line) in lines.enumerate() {
            // The last line, and behind it the checksum of a PGP key, may be too short to tell.
            let is_last = n > 0 && line.is_short() && last.is_some() == is_behind && short < 2;
            if line.looks() || line.runs.len() == 1 && last == Some(line.all) {
                last = Some(line.all);
            } else if is_last {
                short += 1;
            } else if line.runs.is_empty() || n == 0 {
                continue;
            } else {
                break;
            }
            taken.push(line.runs);
        }
        let body = taken.iter().flatten().flat_map(|run| &self.text[run.clone()]);
        let body: Vec<u8> = body.copied().take(SAMPLE).collect();
        // What an author left out is none.
        let end = taken.iter().flatten().map(|run| run.end).max().unwrap_or_default();
        let is_marked = !self.opens || self.part.start > 0;
        let is_left_out = self.text[end..].starts_with(b"...");
        let is_cut = is_marked && self.opens != self.closes && !is_left_out;
        let (fewest, bits) = if is_cut { (LEAST_CUT, 2.5) } else { (LEAST, 3.5) };
        let is_key = last.is_some() && body.len() >= fewest && entropy(&body) >= bits;
        if is_key && (is_marked || taken.len() > 1) { taken } else { Vec::new() }
    }
}

/// What stands on a line that could be of a key.
#[derive(Default)]
struct Line {
    /// The runs of base64, without what also stands around others.
    runs: Vec<Range<usize>>,
    /// How many characters they have.
    all: usize,
    /// How many of these are in runs that look like drawn at random.
    drawn: usize,
}

impl Line {
    fn read(text: &[u8], part: Range<usize>, frame: &[&[u8]]) -> Self {
        let (mut runs, mut at) = (Vec::new(), part.start);
        while at < part.end {
            let rest = &text[at..part.end];
            let length = rest.iter().take_while(|byte| is_base64(**byte)).count();
            let run = &rest[..length];
            if run.iter().any(u8::is_ascii_alphanumeric) && !frame.contains(&run) {
                runs.push(at..at + length);
            }
            // A written line end.
            let is_escape = rest[0] == b'\\' && matches!(rest.get(1), Some(b'n' | b'r' | b't'));
            at += length.max(1 + usize::from(is_escape));
        }
        let bytes = |run: &Range<usize>| &text[run.clone()];
        // The number of the line.
        if runs.len() > 1 && runs[0].len() <= 7 && bytes(&runs[0]).iter().all(u8::is_ascii_digit) {
            runs.remove(0);
        }
        let length = |run: &Range<usize>| run.len();
        let drawn = runs.iter().filter(|run| is_drawn(bytes(run))).map(length).sum();
        Self { all: runs.iter().map(length).sum(), drawn, runs }
    }

    fn looks(&self) -> bool {
        self.drawn > 0 && self.drawn * 2 >= self.all
    }

    fn is_short(&self) -> bool {
        self.runs.len() == 1 && self.all < FULL
    }
}

/// Whether a run of base64 is no word, name or number.
fn is_drawn(run: &[u8]) -> bool {
    let mix = Mix::of(run);
    let is_capitalised = mix.upper == 1 && run[0].is_ascii_uppercase();
    let is_mixed = mix.digits > 0 && mix.upper + mix.lower > 0
        || mix.upper.min(mix.lower) > 0 && !is_capitalised;
    let is_word =
        || mix.changes * 4 < run.len() || mix.other * 4 > run.len() || is_hex(run) || reads(run);
    is_mixed && run.len() >= 4 && (run.len() >= LEAST && !is_hex(run) || !is_word())
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}
