//! Private keys between their lines of `BEGIN` and `END` (PEM, `OpenSSH`, PGP, SSH2), those of `PuTTY`,
//! and PEM in base64, as Kubernetes keeps it. A half is enough: a body without its end, or, as the
//! tail of an output has it, without its beginning.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use memchr::memmem;

use super::shape::{entropy, is_word};
use super::{Rank, Sort, Span};

pub(super) const KEY: Sort = Sort("private key");
/// What all the marker lines hold.
const MARKED: &str = "PRIVATE KEY";
/// After this line of a `PuTTY` key the private lines follow.
const PUTTY: &str = "Private-Lines:";
/// `-----BEGIN` in base64, as far as it does not depend on what follows.
const ENCODED: &str = "LS0tLS1CRUdJTi";
/// No private key has fewer characters: one of Ed25519 (PKCS #8) has 64, and the smallest on a curve,
/// of 192 bits and without its curve's name, has 44.
const LEAST: usize = 40;
/// Fewer characters of a key that was cut off tell too little to be left out.
const LEAST_CUT: usize = 8;
/// How far up the end of a line is looked for, without which there is none of a key.
const LONGEST_LINE: usize = 512;
/// Lines of a key are longer than this, but for the last.
const FULL: usize = 16;

pub(super) fn find(text: &str, spans: &mut Vec<Span>) {
    let bytes = text.as_bytes();
    for at in memmem::find_iter(bytes, MARKED) {
        match marker(bytes, at) {
            Some((_, true, end)) => take(bytes, forward(bytes, end), spans),
            Some((start, false, _)) => take(bytes, backward(bytes, start), spans),
            None => {}
        }
    }
    for at in memmem::find_iter(bytes, PUTTY) {
        let end = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |n| at + n);
        take(bytes, forward(bytes, end), spans);
    }
    let mut from = 0;
    while let Some(n) = memmem::find(&bytes[from..], ENCODED.as_bytes()) {
        let at = from + n;
        from = at + run(&bytes[at..]);
        if STANDARD.decode(&bytes[at..from.min(at + 64)]).is_ok_and(|decoded| {
            memmem::find(&decoded, MARKED.as_bytes()).is_some() && from - at > 64
        }) {
            spans.push(Span::new(at..from, KEY, Rank::Key));
        }
    }
}

/// Whether a line by itself could be of a private key: base64 that is no number.
pub(super) fn could_be_line(line: &str) -> bool {
    let line = line.trim().as_bytes();
    line.len() >= LEAST
        && line.iter().all(|byte| is_base64(*byte))
        && line.iter().any(u8::is_ascii_uppercase)
        && line.iter().any(u8::is_ascii_lowercase)
        && entropy(line) >= 3.5
}

/// The beginning of a key that a text ends within, too short to be told as one else.
pub(super) fn cut_off(text: &[u8], spans: &mut Vec<Span>) {
    let Some(at) = memmem::rfind(text, MARKED.as_bytes()) else { return };
    let Some((_, true, end)) = marker(text, at) else { return };
    let lines = forward(text, end);
    let length: usize = lines.iter().map(ExactSizeIterator::len).sum();
    if length >= LEAST_CUT && lines.last().is_some_and(|line| line.end == text.len()) {
        withhold(lines, spans);
    }
}

/// The lines that a text begins with which could be of a key; the first may lack its beginning.
pub(super) fn lines_from_the_beginning(text: &[u8]) -> Vec<std::ops::Range<usize>> {
    let (mut lines, mut at) = (Vec::new(), 0);
    while at < text.len() {
        let end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |n| at + n);
        let line = &text[at..end];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let is_one = match at {
            0 => !line.is_empty() && line.iter().all(|byte| is_base64(*byte)),
            _ => std::str::from_utf8(line).is_ok_and(could_be_line),
        };
        if !is_one {
            break;
        }
        lines.push(at..at + line.len());
        at = end + 1;
    }
    lines
}

/// The marker around `PRIVATE KEY` at `at`: where it starts, whether it begins a key, where it ends.
fn marker(text: &[u8], at: usize) -> Option<(usize, bool, usize)> {
    let after = &text[at + MARKED.len()..];
    let after = after.strip_prefix(b" BLOCK").unwrap_or(after);
    let after = after.strip_prefix(b" ").unwrap_or(after);
    let dashes = after.iter().take_while(|byte| **byte == b'-').take(5).count();
    let end = text.len() - after.len() + dashes;
    let first = at.saturating_sub(48);
    let before = &text[first..at];
    let words = |byte: &&u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || **byte == b' ';
    let kept = before.len() - before.iter().rev().take_while(words).count();
    let label = before[kept..].trim_ascii_start();
    let begins = label.starts_with(b"BEGIN ");
    let is_marker =
        (begins || label.starts_with(b"END ")) && before[..kept].ends_with(b"----") && dashes >= 4;
    let start =
        first + kept - text[first..first + kept].iter().rev().take_while(|b| **b == b'-').count();
    is_marker.then_some((start, begins, end))
}

/// The lines of a key, if they are one, go.
fn take(text: &[u8], lines: Vec<std::ops::Range<usize>>, spans: &mut Vec<Span>) {
    let body: Vec<u8> =
        lines.iter().flat_map(|line| &text[line.clone()]).copied().take(512).collect();
    if body.len() < LEAST || entropy(&body) < 3.5 {
        return;
    }
    withhold(lines, spans);
}

/// The lines of a key go; the first says so.
pub(super) fn withhold(lines: Vec<std::ops::Range<usize>>, spans: &mut Vec<Span>) {
    spans.extend(
        lines
            .into_iter()
            .enumerate()
            .map(|(n, range)| Span { says: n == 0, ..Span::new(range, KEY, Rank::Key) }),
    );
}

/// The lines of base64 from `at` on, up to what can be no part of a key. Quotes, commas, comment
/// signs and written line ends (`\n`) may stand between them, and headers.
fn forward(text: &[u8], mut at: usize) -> Vec<std::ops::Range<usize>> {
    let mut lines = Vec::new();
    let (mut fresh, mut last) = (false, false);
    while let Some(byte) = text.get(at) {
        match byte {
            b'\n' | b'\r' => (fresh, at) = (true, at + 1),
            b'\\' => {
                at += text[at..].iter().take_while(|byte| **byte == b'\\').count();
                if text.get(at).is_some_and(|byte| matches!(byte, b'n' | b'r' | b't')) {
                    (fresh, at) = (true, at + 1);
                }
            }
            b' ' | b'\t' | b'"' | b'\'' | b'`' | b',' | b'#' | b'*' | b'>' | b'|' | b'.' => at += 1,
            b'-' if fresh && text.get(at + 1) != Some(&b'-') => at += 1,
            byte if is_base64(*byte) => {
                let aside = if fresh { aside(&text[at..]) } else { 0 };
                let length = run(&text[at..]);
                if aside > 0 {
                    at += aside;
                } else if text[at..at + length].iter().all(|byte| matches!(byte, b'/' | b'+')) {
                    at += length;
                } else if text[at + length..].starts_with(b"...")
                    || (length < FULL && last && !(*byte == b'=' && length == 5))
                {
                    // Left out by whoever wrote it, or no last line but words.
                    break;
                } else {
                    last |= length < FULL;
                    lines.push(at..at + length);
                    (fresh, at) = (false, at + length);
                }
            }
            _ => break,
        }
    }
    lines
}

/// How long what stands before a line of a key is, a header (`Proc-Type: 4,ENCRYPTED`) or the
/// line's number.
fn aside(text: &[u8]) -> usize {
    let name = text.iter().take(40).take_while(|byte| is_word(**byte) || **byte == b'-').count();
    if text[name..].starts_with(b": ") && text[0].is_ascii_alphabetic() {
        return memchr::memchr3(b'\n', b'\\', b'"', text).unwrap_or(text.len());
    }
    let digits = text.iter().take(7).take_while(|byte| byte.is_ascii_digit()).count();
    let ends = |byte: &u8| matches!(byte, b'\t' | b':' | b'|') || *byte == b' ';
    if (1..7).contains(&digits) && text.get(digits).is_some_and(ends) { digits + 1 } else { 0 }
}

/// The lines of base64 that end before `at`, as far up as there is nothing else on them.
fn backward(text: &[u8], at: usize) -> Vec<std::ops::Range<usize>> {
    let mut lines = Vec::new();
    let line_end = |at: usize| {
        let far = at.saturating_sub(LONGEST_LINE);
        memchr::memrchr(b'\n', &text[far..at]).map(|n| far + n)
    };
    // The line of the marker itself may have a quote or a comment sign before it.
    let mut end = line_end(at).unwrap_or(0);
    while end > 0 {
        let Some(start) = line_end(end).map(|n| n + 1).or((end <= LONGEST_LINE).then_some(0))
        else {
            break;
        };
        let lines_of = forward(&text[..end], start);
        let [line] = lines_of.as_slice() else { break };
        let is_last = lines.is_empty() || (lines.len() == 1 && text[end..].starts_with(b"="));
        if line.len() < FULL && !is_last {
            break;
        }
        lines.push(line.clone());
        end = start.saturating_sub(1);
    }
    lines.reverse();
    lines
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// How many characters of base64 a text begins with.
fn run(text: &[u8]) -> usize {
    text.iter().take_while(|byte| is_base64(**byte)).count()
}
