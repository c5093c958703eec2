//! Private keys: PEM of any kind, OpenSSH, PGP, SSH2, `PuTTY`, and PEM in base64 as in Kubernetes Secrets.
//!
//! Between the begin and end markers of a key, every run of base64 that is not a plain word is withheld, however short
//! it is. If one marker is missing, the lines next to the other are withheld as long as they look like lines of a key.
//! Words that are also on the line of the first marker (`file.pem:`, `println!`) and line numbers stay.

use std::collections::BTreeSet;
use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use memchr::memmem;

use super::heuristics::{Mix, entropy, is_hex, is_readable};
use super::rules::PATTERNS;
use super::{Certainty, SecretKind, SecretSpan};

/// The part of `-----BEGIN` in base64 that does not depend on what follows.
const ENCODED_BEGIN: &[u8] = b"LS0tLS1CRUdJTi";
/// The fewest characters of a private key. An Ed25519 key (PKCS #8) has 64, and the smallest elliptic-curve key
/// (192 bits, without the name of the curve) has 44.
const SHORTEST_KEY: usize = 40;
/// The fewest characters of a cut-off key that are withheld. Fewer characters reveal too little.
const SHORTEST_REST: usize = 8;
/// The longest private key, in bytes.
const LONGEST_KEY: usize = 32 << 10;
/// If this many more characters do not look like a key than do, the text is not a key.
const MOST_OTHER: usize = 4 << 10;
/// The shortest random run that proves that other text contains a key.
const SHORTEST_DRAWN: usize = 8;
/// The most word-like characters between the lines of a key with only one marker.
const MOST_WORDS: usize = 32;
/// The shortest line of a key, except for the last one.
const FULL_LINE: usize = 16;
/// How many bytes around a marker are searched for the words that frame each line, and the most words that count.
const FRAME: usize = 256;
const FRAME_WORDS: usize = 32;
/// The number of characters for which the entropy is computed.
const SAMPLE: usize = 512;

pub(super) fn find(text: &str, spans: &mut Vec<SecretSpan>) {
    let text = text.as_bytes();
    let mut withhold = |runs| {
        spans.extend(SecretSpan::parts(runs, SecretKind::PRIVATE_KEY, Certainty::PrivateKey));
    };
    let (mut begin, mut from) = (None, 0);
    for marker in PATTERNS.key_marker.captures_iter(text) {
        let Some(all) = marker.get(0) else { continue };
        let begins = marker.name("begin").or(marker.name("lines")).is_some();
        let gap = Gap::new(text, begin, from..all.start(), !begins);
        // Between the end of one key and the beginning of another there may be a key with its lines in reverse order.
        let is_reversed = begins && begin.is_none() && from > 0;
        withhold(if is_reversed { gap.reversed_runs() } else { gap.key_runs() });
        (begin, from) = (begins.then(|| all.start()), all.end());
    }
    withhold(Gap::new(text, begin, from..text.len(), false).key_runs());
    // PEM in base64, on one line or wrapped.
    let mut encoded = memmem::find_iter(text, ENCODED_BEGIN).peekable();
    while let Some(at) = encoded.next() {
        let decoded = STANDARD.decode(&text[at..text.len().min(at + 60)]).unwrap_or_default();
        if memmem::find(&decoded, b"PRIVATE KEY").is_some() {
            let end = at + text[at..].iter().take_while(|byte| is_base64(**byte)).count();
            let next = encoded.peek().map_or(text.len(), |next| end.max(*next));
            let mut runs = Gap::new(text, Some(at), end..next, false).key_runs();
            runs.insert(0, at..end);
            withhold(runs);
        }
    }
}

/// Finds possible parts of a private key in a text without markers. There is no other evidence, so everything that
/// looks random counts. If the file has a key (`has_key`), so does every run alone on its line that is not a word.
pub(super) fn find_isolated(text: &str, has_key: bool, spans: &mut Vec<SecretSpan>) {
    let gap = Gap::new(text.as_bytes(), None, 0..text.len(), false);
    for line in gap.lines(0) {
        let is_alone = line.runs.len() == 1;
        for mut run in line.runs {
            // A name before the value (`name=`) does not belong to it.
            let name = text[run.clone()].trim_end_matches('=').rfind('=');
            run.start += name.map_or(0, |at| at + 1);
            let (piece, mix) = (&gap.text[run.clone()], Mix::of(&gap.text[run.clone()]));
            let is_long = piece.len() >= SHORTEST_DRAWN && is_random(piece);
            let is_mixed = mix.digits.min(mix.upper).min(mix.lower) > 0 || line.random > 0;
            if is_long || is_alone && (is_mixed || has_key && !is_plain_word(piece)) {
                // If the run also looks like another kind of secret, it is reported as that kind.
                spans.push(SecretSpan::new(run, SecretKind::PRIVATE_KEY, Certainty::File));
            }
        }
    }
}

/// The text between two markers, before the first marker, or after the last.
struct Gap<'a> {
    text: &'a [u8],
    part: Range<usize>,
    /// Whether the marker before the gap begins a key.
    is_begun: bool,
    /// Whether the marker after the gap ends a key.
    is_ended: bool,
    /// The words on the line of the marker. They may also surround each line of the key.
    surrounding_words: Vec<&'a [u8]>,
}

impl<'a> Gap<'a> {
    /// `begin` is the start of the marker before the gap, if that marker begins a key.
    fn new(text: &'a [u8], begin: Option<usize>, part: Range<usize>, is_ended: bool) -> Self {
        let marker = begin.unwrap_or(part.end);
        let near = marker.saturating_sub(FRAME);
        let start = memchr::memrchr(b'\n', &text[near..marker]).map_or(near, |n| near + n + 1);
        let behind = begin.map_or(marker, |_| part.start);
        let end = text.len().min(behind + FRAME);
        let end = memchr::memchr(b'\n', &text[behind..end]).map_or(end, |n| behind + n);
        // The whole key may be on the line of its marker.
        let before = Some(KeyLine::read(text, start..marker, &[]))
            .filter(|line| begin.is_some() || is_ended && !line.is_of_key());
        let behind = Some(KeyLine::read(text, behind..end, &[])).filter(|line| line.random == 0);
        let words = before.into_iter().chain(behind).flat_map(|line| line.runs);
        let surrounding_words = words.map(|run| &text[run]).take(FRAME_WORDS).collect();
        Self { text, part, is_begun: begin.is_some(), is_ended, surrounding_words }
    }

    /// The runs of base64 that belong to a key.
    fn key_runs(&self) -> Vec<Range<usize>> {
        if !self.is_begun && !self.is_ended {
            return Vec::new();
        }
        let lines = if self.is_begun { self.lines(self.part.start) } else { Vec::new() };
        let all = || lines.iter().flat_map(|line| line.runs.clone());
        let mut runs = if self.is_begun && self.is_ended && self.is_mostly_key(&lines) {
            all().collect()
        } else if self.is_begun && self.is_ended && self.contains_key(&lines) {
            all().filter(|run| !is_plain_word(&self.text[run.clone()])).collect()
        } else {
            self.adjoining(lines.iter(), true).concat()
        };
        if self.is_ended {
            let from = runs.last().map_or(self.part.start, |run| run.end);
            let from = from.max(self.part.end.saturating_sub(LONGEST_KEY));
            let mut lines = self.adjoining(self.lines(from).iter().rev(), false);
            lines.reverse();
            runs.extend(lines.concat());
        }
        runs
    }

    /// The runs of a key whose lines are in reverse order, if the gap contains nothing else.
    fn reversed_runs(&self) -> Vec<Range<usize>> {
        let is_other = memmem::find(&self.text[self.part.clone()], b"-----").is_some();
        let lines = if is_other { Vec::new() } else { self.lines(self.part.start) };
        let is_key = self.is_mostly_key(&lines);
        lines.into_iter().flat_map(|line| line.runs).filter(|_| is_key).collect()
    }

    /// The lines from an offset on, without headers, until there is too much other text. The first and last line may
    /// be parts of the lines with markers.
    fn lines(&self, from: usize) -> Vec<KeyLine> {
        let (mut lines, mut at, mut is_body) = (Vec::new(), from, !self.is_begun);
        let (mut all, mut random) = (0, 0);
        for text in self.text[from..self.part.end].split_inclusive(|byte| *byte == b'\n') {
            let mut line = KeyLine::read(self.text, at..at + text.len(), &self.surrounding_words);
            line.is_marker = memmem::find(text, b"-----").is_some();
            at += text.len();
            (all, random) = (all + line.all, random + line.random);
            is_body |= line.is_of_key();
            let is_header = !is_body && line.runs.len() > 1 && memmem::find(text, b": ").is_some();
            lines.push(if is_header { KeyLine::default() } else { line });
            let share = if self.is_ended { 8 } else { 2 };
            if self.is_begun && all > random * share + MOST_OTHER {
                break;
            }
        }
        // Consecutive lines of the same length belong together, even if one alone does not look like a key.
        let mut filled: Vec<&mut KeyLine> = lines.iter_mut().filter(|line| line.all > 0).collect();
        let is_alike = |one: &&mut KeyLine, next: &&mut KeyLine| {
            one.all == next.all && one.runs.len().max(next.runs.len()) == 1
        };
        for block in filled.chunk_by_mut(is_alike).filter(|block| block.len() > 1) {
            let body = self.sample(block.iter().flat_map(|line| &line.runs));
            if is_random(&body) && !is_readable(&body) {
                block.iter_mut().for_each(|line| line.random = line.all);
            }
        }
        lines
    }

    /// Whether other text contains a key. Repeated runs count once, since source code repeats names.
    fn contains_key(&self, lines: &[KeyLine]) -> bool {
        let runs = lines.iter().flat_map(|line| &line.runs).map(|run| &self.text[run.clone()]);
        let drawn = runs.filter(|run| run.len() >= SHORTEST_DRAWN && is_random(run));
        let drawn: BTreeSet<&[u8]> = drawn.collect();
        let drawn: Vec<u8> = drawn.into_iter().flatten().copied().collect();
        drawn.len() >= SHORTEST_KEY && entropy(&drawn) >= 4.0
    }

    /// Whether most of the text belongs to a key.
    fn is_mostly_key(&self, lines: &[KeyLine]) -> bool {
        let all: usize = lines.iter().map(|line| line.all).sum();
        let random: usize = lines.iter().map(|line| line.random).sum();
        let body = self.sample(lines.iter().flat_map(|line| &line.runs));
        random * 2 >= all && all >= SHORTEST_KEY && entropy(&body) >= 3.5
    }

    /// The first characters of these runs.
    fn sample<'r>(&self, runs: impl Iterator<Item = &'r Range<usize>>) -> Vec<u8> {
        runs.flat_map(|run| &self.text[run.clone()]).copied().take(SAMPLE).collect()
    }

    /// The lines next to a marker that look like lines of a key. There must be enough for a whole key or, if the other
    /// marker is missing, for the rest of a key.
    fn adjoining<'l>(
        &self,
        lines: impl Iterator<Item = &'l KeyLine>,
        is_downward: bool,
    ) -> Vec<Vec<Range<usize>>> {
        let (mut taken, mut short, mut last) = (Vec::new(), 0, None);
        let (mut between, mut words) = (Vec::new(), 0);
        let text = &self.text[..self.part.end];
        for (n, line) in lines.enumerate() {
            let is_beside = n == 0 && (is_downward || !text.ends_with(b"\n"));
            if line.is_marker && !is_beside {
                break;
            }
            let is_single = line.runs.len() == 1 && !is_plain_word(&text[line.runs[0].clone()]);
            let is_next = is_single && !is_beside && taken.len() < 2 && between.is_empty();
            // These may be too short to judge: the last line, the checksum of a PGP key after it, and a cut-off line.
            let is_short = line.runs.len() == 1 && line.all < FULL_LINE;
            let is_end = is_short && last.is_some() == is_downward
                || is_single && last.is_some_and(|last| line.all <= last);
            let is_end = is_end && !is_beside && short < 2;
            if line.is_of_key() || is_next || line.runs.len() == 1 && last == Some(line.all) {
                last = Some(line.all);
                taken.append(&mut between);
                words = 0;
            } else if is_end {
                short += 1;
            } else if line.runs.is_empty() || is_beside {
                continue;
            } else if words + line.all <= MOST_WORDS {
                words += line.all;
                between.push(line.runs.clone());
                continue;
            } else {
                break;
            }
            taken.push(line.runs.clone());
        }
        let body = self.sample(taken.iter().flatten());
        // A key that the author abbreviated with `...` is not a key.
        let end = taken.iter().flatten().map(|run| run.end).max().unwrap_or_default();
        let is_abbreviated = self.text[end..].starts_with(b"...");
        let is_rest = self.is_begun != self.is_ended && !is_abbreviated;
        let (fewest, bits) = if is_rest { (SHORTEST_REST, 2.5) } else { (SHORTEST_KEY, 3.5) };
        let is_key = last.is_some() && body.len() >= fewest && entropy(&body) >= bits;
        if is_key { taken } else { Vec::new() }
    }
}

/// The parts of a line that could belong to a key.
#[derive(Default)]
struct KeyLine {
    /// The runs of base64, except the words that surround every line.
    runs: Vec<Range<usize>>,
    /// The number of characters in the runs.
    all: usize,
    /// The number of characters in runs that look random.
    random: usize,
    /// Whether the line contains a marker, such as that of a certificate.
    is_marker: bool,
}

impl KeyLine {
    fn read(text: &[u8], part: Range<usize>, surrounding_words: &[&[u8]]) -> Self {
        let (mut runs, mut at) = (Vec::new(), part.start);
        while at < part.end {
            let rest = &text[at..part.end];
            let length = rest.iter().take_while(|byte| is_base64(**byte)).count();
            let run = &rest[..length];
            if run.iter().any(u8::is_ascii_alphanumeric) && !surrounding_words.contains(&run) {
                runs.push(at..at + length);
            }
            // Skip a line end that is written as an escape.
            let is_escape = rest[0] == b'\\' && matches!(rest.get(1), Some(b'n' | b'r' | b't'));
            at += length.max(1 + usize::from(is_escape));
        }
        let bytes = |run: &Range<usize>| &text[run.clone()];
        // Drop a line number.
        if runs.len() > 1 && runs[0].len() <= 7 && bytes(&runs[0]).iter().all(u8::is_ascii_digit) {
            runs.remove(0);
        }
        let random = runs.iter().filter(|run| is_random(bytes(run))).map(Range::len).sum();
        Self { all: runs.iter().map(Range::len).sum(), random, runs, is_marker: false }
    }

    fn is_of_key(&self) -> bool {
        self.random > 0 && self.random * 2 >= self.all
    }
}

/// Whether a run of base64 is a word or a short number, and so probably not part of a key.
fn is_plain_word(run: &[u8]) -> bool {
    let mix = Mix::of(run);
    mix.digits == run.len() && run.len() <= 4
        || mix.upper + mix.lower == run.len()
            && mix.is_one_case(run)
            && (run.len() < SHORTEST_DRAWN || is_readable(run))
}

/// Whether a run of base64 is not a word, name or number.
fn is_random(run: &[u8]) -> bool {
    let mix = Mix::of(run);
    let is_mixed = mix.digits > 0 && mix.upper + mix.lower > 0 || !mix.is_one_case(run);
    let is_word = || {
        let digits = run.strip_prefix(b"0x").unwrap_or(run);
        mix.changes * 4 < run.len()
            || mix.other * 4 > run.len()
            || is_hex(digits)
            || is_readable(run)
    };
    is_mixed && run.len() >= 4 && (run.len() >= SHORTEST_KEY && !is_hex(run) || !is_word())
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}
