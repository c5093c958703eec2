//! Random values under names that tell of a secret: `password = "…"`, `api_key: …`,
//! `Authorization: Bearer …`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use memchr::memmem;

use super::beside::{self, Name};
use super::literal::{LONGEST, bare, element, literal, quoted, skip};
use super::names::{
    LOGIN, LONGEST_NAME, NAMES, Named, PASSWORD, SCHEMES, TOKEN, holds, is_source, joined, named,
    told_by,
};
use super::shape::{
    Mix, bounded, could_be_drawn, is_drawn_of_letters, is_hex, is_sample, is_uuid, is_word,
    looks_random,
};
use super::tokens::{AWS, is_aws_secret};
use super::values::{is_stand_in, is_strong, is_variable};
use super::{Rank, Sort, Span};

pub(super) fn find(text: &str, name: Option<&str>, spans: &mut Vec<Span>) {
    let bytes = text.as_bytes();
    let in_source = is_source(name);
    for hit in NAMES.find_iter(bytes) {
        let word = hit.as_bytes();
        let scheme = SCHEMES.iter().find(|(known, _)| word.eq_ignore_ascii_case(known.as_bytes()));
        let found = scheme.and_then(|(_, sort)| credentials(bytes, hit.start(), hit.end(), *sort));
        let is_name = scheme.is_none_or(|(known, _)| known.starts_with('_'));
        let found = found.or_else(|| {
            is_name.then(|| setting(bytes, hit.start(), hit.end(), in_source)).flatten()
        });
        spans.extend(found);
    }
}

/// What `Bearer`, `Basic` or `_auth` is followed by.
fn credentials(text: &[u8], start: usize, end: usize, sort: Sort) -> Option<Span> {
    let rest = &text[end..];
    if rest.starts_with(b"Token") || (text[start] != b'_' && !bounded(text, start)) {
        return None;
    }
    let blank = rest.iter().take(4).take_while(|byte| matches!(byte, b' ' | b'=' | b'"')).count();
    let from = end + blank;
    let is_part =
        |byte: &&u8| is_word(**byte) || matches!(byte, b'-' | b'.' | b'~' | b'+' | b'/' | b'=');
    let length = text[from..].iter().take(LONGEST * 8).take_while(is_part).count();
    let value = &text[from..from + length];
    let is_one =
        if sort == LOGIN { is_login(value) } else { looks_random(value) && !is_uuid(value) };
    (blank > 0 && is_one).then(|| Span::new(from..from + length, sort, Rank::Name))
}

/// A user and a password in base64.
pub(super) fn is_login(value: &[u8]) -> bool {
    if value.len() < 12 || value.len() > 400 {
        return false;
    }
    let Ok(decoded) = STANDARD.decode(value) else { return false };
    let Some(colon) = memchr::memchr(b':', &decoded) else { return false };
    let (user, password) = (&decoded[..colon], &decoded[colon + 1..]);
    decoded.iter().all(|byte| matches!(byte, b' '..=b'~'))
        && password.len() >= 5
        && user != password
        && user != b"Aladdin"
        && !is_sample(user)
        && !is_stand_in(password)
        && !is_sample(password)
}

/// The value of a setting in whose name the word at `start..end` stands, if that is a secret.
fn setting(text: &[u8], start: usize, end: usize, in_source: bool) -> Option<Span> {
    let Named { first, last, name, .. } = named(text, start, end)?;
    let behind = value(text, first, last, Reading { in_source, is_cut: false });
    let beside = beside::all(Name { text, first, last, in_source }).map(|at| (at, Rank::File));
    let all = behind.map(|at| (at, Rank::Name)).into_iter().chain(beside);
    let mut found = all.filter_map(|(at, rank)| Some((sort(&name, &text[at.clone()])?, at, rank)));
    found.next().map(|(sort, at, rank)| Span::new(at, sort, rank))
}

/// How a value is read.
#[derive(Clone, Copy)]
struct Reading {
    /// Whether one without quotes is an expression.
    in_source: bool,
    /// Whether the text ends where it was cut: a quote may not be closed.
    is_cut: bool,
}

/// Where the value of a name at `first..last` stands.
fn value(
    text: &[u8],
    first: usize,
    last: usize,
    Reading { in_source, is_cut }: Reading,
) -> Option<std::ops::Range<usize>> {
    let argument = text[first..].starts_with(b"--");
    let query = first > 0 && matches!(text[first - 1], b'?' | b'&');
    let mut at = last;
    let name_quoted = quoted(text, at).inspect(|(end, _)| at = *end).is_some();
    at = skip(text, at, 2, |byte| matches!(byte, b']' | b')'));
    at = skip(text, at, 24, |byte| matches!(byte, b' ' | b'\t'));
    // `<password>…</password>`
    let is_element =
        first > 0 && text[first - 1] == b'<' && at == last && text[at..].starts_with(b">");
    if is_element && !in_source {
        return element(text, at + 1);
    }
    // `<add key="Password" value="…" />`
    const BESIDE: &[u8] = b"value";
    let beside = text[at..].get(..BESIDE.len());
    if name_quoted && beside.is_some_and(|word| word.eq_ignore_ascii_case(BESIDE)) {
        at = skip(text, at + BESIDE.len(), 24, |byte| matches!(byte, b' ' | b'\t'));
        if text.get(at) != Some(&b'=') {
            return None;
        }
    }
    let sign = match text.get(at)? {
        b'=' | b':' => skip(text, at, 3, |byte| matches!(byte, b'=' | b':' | b'>' | b'~')),
        b',' if name_quoted => at + 1,
        _ if argument && at > last => at,
        // `ENV TOKEN …`
        _ if at > last && is_env(text, first) => at,
        _ => return None,
    };
    // `token: &str = "…"`
    let typed = skip(text, sign, 40, |byte| {
        is_word(byte) || matches!(byte, b' ' | b'&' | b'\'' | b'<' | b'>' | b'[' | b']' | b':')
    });
    let sign = match text.get(typed) {
        Some(b'=') if text[at] == b':' && in_source && typed > sign => typed + 1,
        _ => sign,
    };
    let mut at = skip(text, sign, 24, |byte| matches!(byte, b' ' | b'\t'));
    // `String::from("…")`, `b"…"`
    let called = skip(text, at, 24, |byte| is_word(byte) || matches!(byte, b':' | b'.'));
    let called = match text.get(called) {
        Some(b'(') => called + 1,
        _ => skip(text, at, 2, |byte| matches!(byte, b'b' | b'r' | b'u' | b'f' | b'@')),
    };
    if let Some(open) = [at, called].into_iter().find(|at| quoted(text, *at).is_some()) {
        return literal(text, open, is_cut);
    }
    if in_source && !query {
        return None;
    }
    at += usize::from(text.get(at) == Some(&b'\''));
    bare(text, at)
}

/// Whether what begins there is what a line of a Dockerfile sets: `ENV TOKEN …`.
fn is_env(text: &[u8], first: usize) -> bool {
    let before = text[..first].strip_suffix(b"ENV ");
    before.is_some_and(|before| before.is_empty() || before.ends_with(b"\n"))
}

/// What a value is under that name, if it is a secret.
fn sort(name: &[u8], value: &[u8]) -> Option<Sort> {
    if value.len() < 8 || is_stand_in(value) || is_address_or_path(value) {
        return None;
    }
    let name = joined(name);
    let has = |word: &str| holds(&name, word);
    if (has("secret_access_key") || has("aws")) && is_aws_secret(value) {
        return Some(AWS);
    }
    if is_uuid(value) {
        let keyed =
            has("_authtoken") || has("heroku_token") || has("codecov_token") || has("api_key");
        return (keyed && !is_sample(value)).then_some(told_by(&name).unwrap_or(TOKEN));
    }
    let sort = told_by(&name)?;
    let enough =
        looks_random(value) || (sort == PASSWORD && is_strong(value)) || is_drawn_of_letters(value);
    // A digest under the name of what it is a digest of.
    let digest = is_hex(value) && has("sha") && !has("shared");
    (enough && !digest).then_some(sort)
}

/// The value that a text ends within, of a setting whose name tells of a secret: whatever could be
/// the beginning of one goes.
pub(super) fn cut_off(text: &[u8]) -> Option<Span> {
    let from = text.len().saturating_sub(LONGEST + 2 * LONGEST_NAME);
    NAMES.find_iter(&text[from..]).find_map(|hit| {
        let word = hit.as_bytes();
        let scheme = SCHEMES.iter().find(|(known, _)| word.eq_ignore_ascii_case(known.as_bytes()));
        let (start, end) = (from + hit.start(), from + hit.end());
        let (value, sort) = match scheme {
            Some((known, sort)) if !known.starts_with('_') => {
                let blank = text[end..].iter().take_while(|byte| **byte == b' ').count();
                ((blank > 0).then_some(end + blank..text.len())?, *sort)
            }
            _ => {
                let Named { first, last, name, before } = named(text, start, end)?;
                let value = value(text, first, last, Reading { in_source: false, is_cut: true })?;
                let word = &name[before..];
                (value, told_by(&joined(word))?)
            }
        };
        let cut = &text[value.clone()];
        let is_one = value.end == text.len()
            && cut.iter().all(u8::is_ascii_graphic)
            && could_be_drawn(cut)
            && !is_stand_in(cut)
            && !is_address_or_path(cut)
            && !is_variable(cut);
        is_one.then(|| Span::new(value, sort, Rank::Name))
    })
}

/// Whether it says where something is.
fn is_address_or_path(value: &[u8]) -> bool {
    let parts = value.split(|byte| *byte == b'/').count();
    let has = |part: &[u8]| memmem::find(value, part).is_some();
    let dotted = value
        .split(|byte| matches!(byte, b'.' | b':' | b'/'))
        .filter(|part| part.len() > 1 && Mix::of(part).digits == 0);
    has(b"://")
        || has(b"::")
        || value.starts_with(b"./")
        || (parts > 3 && value[0] == b'/')
        || dotted.count() > 2
}
