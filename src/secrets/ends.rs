//! What is left of a secret where a text was cut: a token without its end, a value without its
//! closing quote, lines of a key without what says that they are one.
//!
//! What begins like a secret goes, though nobody can tell whether it would have been one. So this is
//! for the output of commands, where a cut is rare and what stands at it is seldom what counts.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use memchr::memmem;

use super::assigned;
use super::forms::{FORMS, OF_TELEGRAM};
use super::shape::{Mix, could_be_drawn, is_sample, is_word, looks_random, reads};
use super::tokens::{BEGINNINGS, JWT, begins};
use super::values::{is_stand_in, is_strong};
use super::{Rank, Sort, Span};

/// Which ends of a text were cut off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cut {
    /// Something stood before it.
    pub beginning: bool,
    /// Something stood behind it.
    pub end: bool,
}

const TOKEN: Sort = Sort("cut-off token");
const ADDRESS: Sort = Sort("password in an address");
/// As far from the end the beginning of a token is looked for: a web token is the longest.
const LONGEST: usize = 16 << 10;
/// Less of a password tells too little to be left out.
const SHORTEST: usize = 4;
/// Fewer characters at the beginning of a text are not told from a word.
const SHORTEST_END: usize = 8;

pub(super) fn find(text: &str, cut: Cut, spans: &mut Vec<Span>) {
    let bytes = text.as_bytes();
    if cut.end {
        spans.extend(token(bytes));
        spans.extend(address(bytes));
        spans.extend(assigned::cut_off(bytes));
    }
    if cut.beginning {
        beginning(bytes, spans);
    }
}

/// A character that tokens are of.
fn is_part(byte: u8) -> bool {
    is_word(byte) || matches!(byte, b'-' | b'.' | b'=' | b'/' | b'+' | b'%' | b'~' | b':')
}

/// The token that a text ends within.
fn token(text: &[u8]) -> Option<Span> {
    let last = text.iter().rev().take(LONGEST).take_while(|byte| byte.is_ascii_graphic()).count();
    let from = text.len() - last;
    BEGINNINGS.find_iter(&text[from..]).find_map(|hit| {
        let at = from + hit.start();
        let (sort, start) = begun(text, at)?;
        Some(Span::new(start..text.len(), sort, Rank::Form))
    })
}

/// What the token would be that begins at `at` and has no end, and where what is secret of it begins.
fn begun(text: &[u8], at: usize) -> Option<(Sort, usize)> {
    let rest = &text[at..];
    if rest.starts_with(b"eyJ") {
        // Its header alone tells nothing.
        let header = rest.split(|byte| *byte == b'.').next().filter(|part| part.len() < rest.len());
        let header = URL_SAFE_NO_PAD.decode(header?).ok()?;
        return memmem::find(&header, b"\"alg\"").map(|_| (JWT, at));
    }
    if let Some(body) = rest.strip_prefix(OF_TELEGRAM.prefix.as_bytes()) {
        let digits = text[..at].iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        return ((8..=10).contains(&digits) && could_be_drawn(body))
            .then_some((OF_TELEGRAM.sort, at + 1));
    }
    FORMS.iter().find_map(|form| {
        let body = rest.strip_prefix(form.prefix.as_bytes())?;
        let start = at.checked_sub(form.before)?;
        let is_one = body.iter().all(|byte| form.alphabet.has(*byte))
            && body.len() <= form.most
            && could_be_drawn(body)
            && begins(form, text, start, body);
        is_one.then_some((form.sort, at + form.kept() - form.before))
    })
}

/// The password of an address that a text ends within.
fn address(text: &[u8]) -> Option<Span> {
    let last = text.iter().rev().take(LONGEST).take_while(|byte| byte.is_ascii_graphic()).count();
    let from = text.len() - last;
    let at = from + memmem::rfind(&text[from..], b"://")? + 3;
    let authority = &text[at..];
    let colon = memchr::memchr(b':', authority)?;
    let password = &authority[colon + 1..];
    let is_one = password.len() >= SHORTEST
        && !authority.iter().any(|byte| matches!(byte, b'/' | b'@' | b'"' | b'\'' | b'<' | b'['))
        // A port.
        && !password.iter().all(u8::is_ascii_digit)
        && !is_stand_in(password);
    is_one.then(|| Span::new(at + colon + 1..text.len(), ADDRESS, Rank::Form))
}

/// The end of a token that a text begins with.
fn beginning(text: &[u8], spans: &mut Vec<Span>) {
    let length = text.iter().take(LONGEST).take_while(|byte| is_part(**byte)).count();
    let run = &text[..length];
    let mix = Mix::of(run);
    let is_mixed = run.len() >= SHORTEST_END
        && mix.digits >= 2
        && mix.upper + mix.lower >= 2
        && mix.changes >= 3
        && mix.other <= 2
        && !reads(run)
        && !is_sample(run);
    if looks_random(run) || is_strong(run) || is_mixed {
        spans.push(Span::new(0..length, TOKEN, Rank::File));
    }
}
