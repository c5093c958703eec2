//! Tokens that services have given a form of their own: how they begin, of what characters they are
//! and how many.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use memchr::memmem;
use regex::bytes::Regex;

use super::forms::{Alphabet, FORMS, Form, OF_TELEGRAM};
use super::shape::{Mix, bounded, entropy, is_sample, is_word, looks_random, reads};
use super::{Rank, Sort, Span};

pub(super) const JWT: Sort = Sort("JWT");
pub(super) const AWS: Sort = Sort("AWS key");
const DISCORD: Sort = Sort("Discord token");
/// The longest JWT that is told from other text.
const LONGEST_JWT: usize = 16 << 10;
/// How far the header of one within a word may reach.
const LONGEST_HEADER: usize = 512;
/// How far after an AWS key id its secret is looked for.
const NEAR: usize = 160;

/// Where a token can begin.
pub(super) static BEGINNINGS: LazyLock<Regex> = LazyLock::new(|| {
    let mut all: Vec<String> = FORMS.iter().map(|form| regex::escape(form.prefix)).collect();
    all.extend(["eyJ".to_owned(), OF_TELEGRAM.prefix.to_owned()]);
    Regex::new(&format!("(?-u){}", all.join("|"))).expect("an alternation of texts")
});

/// A bot's token: its number in base64, a time, and a signature.
static OF_DISCORD: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?-u)\b[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}")
        .expect("a regex")
});

pub(super) fn find(text: &str, spans: &mut Vec<Span>) {
    let bytes = text.as_bytes();
    let mut from = 0;
    while let Some(hit) = BEGINNINGS.find_at(bytes, from) {
        let at = hit.start();
        from = at + 1;
        if let Some((sort, start, end)) = token(bytes, at) {
            spans.push(Span::new(start..end, sort, Rank::Form));
            if sort == AWS {
                beside(bytes, end, spans);
            }
            from = end;
        }
    }
    if memmem::find(bytes, b"iscord").is_some() || memmem::find(bytes, b"ISCORD").is_some() {
        let all = OF_DISCORD.find_iter(bytes).filter(|hit| looks_random(hit.as_bytes()));
        spans.extend(all.map(|hit| Span::new(hit.range(), DISCORD, Rank::Form)));
    }
}

/// The token that what stands at `at` belongs to, if there is one: its sort, and what of it is
/// secret.
fn token(text: &[u8], at: usize) -> Option<(Sort, usize, usize)> {
    if text[at..].starts_with(b"eyJ") {
        return Some((JWT, at, jwt(text, at)?));
    }
    if text[at..].starts_with(OF_TELEGRAM.prefix.as_bytes()) {
        // The number of the bot is known to everybody.
        let digits = text[..at].iter().rev().take(11).take_while(|byte| byte.is_ascii_digit());
        return match digits.count() {
            8..=10 => Some((OF_TELEGRAM.sort, at + 1, fits(&OF_TELEGRAM, text, at)?)),
            _ => None,
        };
    }
    FORMS.iter().find_map(|form| {
        let end = fits(form, text, at)?;
        Some((form.sort, at + form.kept() - form.before, end))
    })
}

/// Where a token of that form ends that begins at `at`.
fn fits(form: &Form, text: &[u8], at: usize) -> Option<usize> {
    let rest = text[at..].strip_prefix(form.prefix.as_bytes())?;
    let start = at.checked_sub(form.before)?;
    let is_part = |byte: &u8| form.alphabet.has(*byte);
    if !text[start..at].iter().all(is_part) {
        return None;
    }
    let length =
        rest.iter().take(form.most + 1).take_while(|byte| form.alphabet.has(**byte)).count();
    if !(form.least..=form.most).contains(&length)
        || rest.get(length).is_some_and(|byte| {
            // A word that goes on is another word, but for what is put behind a token.
            let is_behind = *byte == b'_' && form.stands_out();
            is_word(*byte) && !is_behind && rest[..length].last().is_some_and(|last| is_word(*last))
        })
    {
        return None;
    }
    let body = &rest[..length];
    let is_one = match form.check {
        Some(check) => check(body),
        None => is_drawn(body, form.alphabet),
    };
    (is_one && begins(form, text, start, body)).then_some(at + form.prefix.len() + length)
}

/// Whether a token of that form can begin at `start`, whose prefix `body` follows. Directly behind `_` or
/// a digit a prefix that stands out is one; behind a letter it may be the end of a word (`disk_test_`,
/// `SLOVAKIA`), and what follows must be no word.
pub(super) fn begins(form: &Form, text: &[u8], start: usize, body: &[u8]) -> bool {
    if !is_word(text[start]) || form.shows || bounded(text, start) {
        return true;
    }
    let behind_letter = text[start - 1].is_ascii_alphabetic();
    let is_no_word =
        || Mix::of(body).kinds() > 1 && (form.alphabet == Alphabet::Hex || !reads(body));
    form.stands_out() && (!behind_letter || is_no_word())
}

/// Whether what follows a prefix was drawn at random, and does not stand for something.
fn is_drawn(body: &[u8], alphabet: Alphabet) -> bool {
    let bits = entropy(body);
    let enough = match (alphabet, body.len()) {
        (Alphabet::Hex, _) => bits >= 3.0,
        (_, ..24) => bits >= 2.9,
        (_, ..40) => bits >= 3.4,
        _ => bits >= 3.8,
    };
    // A name in capitals or small letters is no token of thirty characters.
    let mix = Mix::of(body);
    enough && !is_sample(body) && (body.len() < 24 || mix.kinds() > 1)
}

/// Where the JSON web token ends that begins at `at`: a header in base64 that names an algorithm,
/// claims, and a signature.
fn jwt(text: &[u8], at: usize) -> Option<usize> {
    let is_part = |byte: &u8| is_word(*byte) || matches!(byte, b'-' | b'.');
    let longest = match text[..at].last() {
        // What stands behind a dot is a part of another.
        Some(b'.') => return None,
        // Within a word it may begin at any of many places, so only a short header makes one.
        Some(b'-') => LONGEST_HEADER,
        Some(last) if is_word(*last) && !bounded(text, at) => LONGEST_HEADER,
        _ => LONGEST_JWT,
    };
    // Nothing behind the header is looked at before that is one.
    let header = text[at..].iter().take(longest).position(|byte| *byte == b'.')?;
    let header = URL_SAFE_NO_PAD.decode(&text[at..at + header]).ok()?;
    memmem::find(&header, b"\"alg\"")?;
    let length = text[at..].iter().take(LONGEST_JWT).take_while(|byte| is_part(byte)).count();
    let token = &text[at..at + length];
    let mut parts = token.split(|byte| *byte == b'.').skip(1);
    let (claims, signature) = (parts.next()?, parts.next()?);
    let claims = URL_SAFE_NO_PAD.decode(claims).ok()?;
    // The examples that pages about them show.
    let shown = [&b"John Doe"[..], b"1234567890", b"\"joe\"", b"{\"some\":\"payload\"}"];
    let is_shown = shown.into_iter().any(|word| memmem::find(&claims, word).is_some());
    // More parts are no part of it.
    let length = memchr::memchr_iter(b'.', token).nth(2).unwrap_or(length);
    (signature.len() >= 20
        && claims.first() == Some(&b'{')
        && !is_shown
        && entropy(signature) >= 3.5)
        .then_some(at + length)
}

/// The secret that belongs to an AWS key id: 40 characters of base64 near it, as consoles and tables
/// write them.
fn beside(text: &[u8], from: usize, spans: &mut Vec<Span>) {
    let end = text.len().min(from + NEAR);
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'+');
    let mut at = from;
    while at < end {
        let length = text[at..].iter().take(NEAR).take_while(|byte| is_part(byte)).count();
        if is_aws_secret(&text[at..at + length]) {
            spans.push(Span::new(at..at + length, AWS, Rank::Form));
        }
        at += length + 1;
    }
}

/// Whether it is 40 characters, mixed as AWS draws them.
pub(super) fn is_aws_secret(text: &[u8]) -> bool {
    let mix = Mix::of(text);
    text.len() == 40
        && mix.upper >= 4
        && mix.lower >= 4
        && mix.digits + mix.other >= 2
        && entropy(text) >= 4.2
        && !is_sample(text)
}
