//! Secrets with a known format ([`FORMATS`]): tokens of services, passwords in URLs, and entries of certain files.

use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use memchr::memmem;
use regex::bytes::Captures;

use super::files::file_name;
use super::heuristics::{
    Mix, begins_word, entropy, is_hex, is_login, is_mark, is_placeholder, is_readable, is_sample,
    is_source, is_strong_password, is_url_password, is_word, looks_random,
};
use super::rules::{FORMATS, Format, MENTIONED, STAND_INS, ValueCheck};
use super::{Certainty, CutEnds, SecretKind, SecretSpan};

pub(super) fn find(text: &str, path: Option<&str>, spans: &mut Vec<SecretSpan>) {
    let (text, file) = (text.as_bytes(), path.map(file_name).unwrap_or_default());
    let mentioned = MENTIONED.matches(text);
    for (n, format) in FORMATS.iter().enumerate() {
        let is_of_file = || format.files.iter().any(|end| file.ends_with(end));
        if !mentioned.matched(n) && !is_of_file() {
            continue;
        }
        let mut at = 0;
        while let Some(parts) = format.regex().captures_at(text, at) {
            let Some(secret) = parts.name("secret").or(parts.get(0)) else { break };
            let value = secret.as_bytes();
            let part =
                |name: &str| parts.name(name).map(|part| part.as_bytes()).unwrap_or_default();
            let is_secret = match format.check {
                ValueCheck::Token => is_token(format, text, secret.range(), &parts),
                ValueCheck::Url => {
                    is_url_password(part("scheme"), part("user"), value, part("host"))
                }
                // Tests of programs that read such files contain many fake passwords.
                ValueCheck::Password => {
                    !is_placeholder(value)
                        && (!is_source(path) || is_strong_password(value) || looks_random(value))
                }
                ValueCheck::Login => is_login(value),
                ValueCheck::Any => !is_mark(value),
            };
            at = secret.end();
            if is_secret {
                spans.push(SecretSpan::new(secret.range(), format.kind, Certainty::Format));
            } else if let Some(drawn) = parts.name("drawn") {
                // Another secret may begin within this match.
                at = drawn.start().max(parts.get(0).map_or(0, |all| all.start() + 1));
            }
        }
    }
}

/// Whether the secret is a whole word and looks random.
fn is_token(format: &Format, text: &[u8], secret: Range<usize>, parts: &Captures) -> bool {
    let Some(drawn) = parts.name("drawn") else { return false };
    // A long prefix does not occur by chance, so a token may begin with it even after a letter.
    let prefix = drawn.start() - parts.get(0).map_or(drawn.start(), |all| all.start());
    let is_distinct = prefix >= 4 && !format.ends_words;
    let drawn = drawn.as_bytes();
    // If the word continues, it is not a token, except for what people append to tokens with `_`.
    let continues = text.get(secret.end).is_some_and(|byte| {
        is_word(*byte) && !(*byte == b'_' && is_distinct) && is_word(text[secret.end - 1])
    });
    let before = secret.start.checked_sub(1).map(|at| text[at]);
    // After `_` or a digit a distinct prefix is enough. After a letter the prefix may be the end of a word
    // (`disk_test_`, `SLOVAKIA`), so the rest must not be a word.
    let is_no_word = || Mix::of(drawn).kinds() > 1 && (is_hex(drawn) || !is_readable(drawn));
    let may_begin = || {
        !is_word(text[secret.start])
            || begins_word(text, secret.start)
            || is_distinct
                && (!before.is_some_and(|byte| byte.is_ascii_alphabetic()) || is_no_word())
    };
    let least_entropy = format.entropy.unwrap_or(match drawn.len() {
        _ if is_hex(drawn) => 3.0,
        ..24 => 2.9,
        24..40 => 3.4,
        _ => 3.8,
    });
    let looks_drawn = match parts.name("claims") {
        Some(claims) => entropy(drawn) >= least_entropy && !is_example(claims.as_bytes()),
        None => is_random(drawn, least_entropy) || format.checksum && has_checksum(drawn),
    };
    let begins = if format.inside_words { before != Some(b'.') } else { may_begin() };
    looks_drawn && !continues && begins
}

/// Whether the claims of a JSON web token are those of an example, or not a JSON object.
fn is_example(claims: &[u8]) -> bool {
    let claims = URL_SAFE_NO_PAD.decode(claims).unwrap_or_default();
    let is_known = |claim: &String| memmem::find(&claims, claim.as_bytes()).is_some();
    !claims.starts_with(b"{") || STAND_INS.claims.iter().any(is_known)
}

/// Finds possible parts of a token at the ends where a text was cut off.
pub(super) fn find_pieces(text: &str, cut: CutEnds, spans: &mut Vec<SecretSpan>) {
    let is_end = |byte: u8| !byte.is_ascii_graphic() || b"\"'`=:,;()<>{}[]|&?@\\".contains(&byte);
    let first = text.bytes().position(is_end).unwrap_or(text.len());
    let last = text.bytes().rposition(is_end).map_or(0, |at| at + 1);
    for (is_cut, range) in [(cut.beginning, 0..first), (cut.end, last..text.len())] {
        let piece = &text.as_bytes()[range.clone()];
        if is_cut && (looks_random(piece) || is_strong_password(piece)) {
            spans.push(SecretSpan::new(range, SecretKind::CUT_TOKEN, Certainty::File));
        }
    }
}

/// Whether a part of a token looks random, with at least this entropy in bits per character, and is not a sample.
pub(super) fn is_random(part: &[u8], least_entropy: f64) -> bool {
    // Thirty letters of one case are a name.
    entropy(part) >= least_entropy
        && !is_sample(part)
        && (part.len() < 24 || Mix::of(part).kinds() > 1)
}

/// Whether the last six characters are the CRC32 of the others in base 62, as in GitHub's tokens.
fn has_checksum(body: &[u8]) -> bool {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let Some((drawn, sum)) = body.split_last_chunk::<6>() else { return false };
    let mut rest = crc32(drawn);
    sum.iter().rev().all(|digit| {
        let expected = DIGITS[(rest % 62) as usize];
        rest /= 62;
        expected == *digit
    })
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ (0xedb8_8320 * (sum & 1)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_every_zip() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }
}
