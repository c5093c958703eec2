//! Tokens to which services give a format of their own: a prefix, an alphabet and a length, or several parts.

use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use memchr::memmem;

use super::heuristics::{
    Mix, begins_word, entropy, is_hex, is_readable, is_sample, is_strong_password, is_word,
    looks_random,
};
use super::rules::{STAND_INS, TOKEN_PREFIXES, TOKENS, TokenFormat};
use super::{Certainty, Cut, SecretKind, Span};

pub(super) fn find(text: &str, spans: &mut Vec<Span>) {
    let bytes = text.as_bytes();
    let mut from = 0;
    while let Some(hit) = TOKEN_PREFIXES.find_at(bytes, from) {
        from = hit.start() + 1;
        for format in &TOKENS.formats {
            let mut prefixes = format.prefixes.iter();
            if let Some(range) =
                prefixes.find_map(|prefix| fits(format, prefix, bytes, hit.start()))
            {
                from = range.end;
                spans.push(Span::new(range, format.kind, Certainty::Format));
                break;
            }
        }
    }
    for pattern in &TOKENS.patterns {
        let is_mentioned = |word: &String| memmem::find(bytes, word.as_bytes()).is_some();
        if !pattern.mentions.is_empty() && !pattern.mentions.iter().any(is_mentioned) {
            continue;
        }
        for parts in pattern.regex.captures_iter(bytes) {
            let Some((all, drawn)) = parts.get(0).zip(parts.name("drawn")) else { continue };
            let secret = parts.name("secret").unwrap_or(all).range();
            let before = secret.start.checked_sub(1).map(|at| bytes[at]);
            let is_whole = bytes.get(secret.end).is_none_or(|byte| !is_word(*byte))
                && if pattern.inside_words {
                    before != Some(b'.')
                } else {
                    begins_word(bytes, secret.start)
                };
            let is_token = match parts.name("claims") {
                Some(claims) => {
                    entropy(drawn.as_bytes()) >= pattern.entropy && !is_example(claims.as_bytes())
                }
                None => is_random(drawn.as_bytes(), pattern.entropy),
            };
            if is_whole && is_token {
                spans.push(Span::new(secret, pattern.kind, Certainty::Format));
            }
        }
    }
}

/// Whether the claims of a JSON web token are those of an example, or none.
fn is_example(claims: &[u8]) -> bool {
    let claims = URL_SAFE_NO_PAD.decode(claims).unwrap_or_default();
    let is_known = |claim: &String| memmem::find(&claims, claim.as_bytes()).is_some();
    !claims.starts_with(b"{") || STAND_INS.claims.iter().any(is_known)
}

/// Finds what could be a piece of a token at the ends of a text that were cut off.
pub(super) fn find_pieces(text: &str, cut: Cut, spans: &mut Vec<Span>) {
    let is_end = |byte: u8| !byte.is_ascii_graphic() || b"\"'`=:,;()<>{}[]|&?@\\".contains(&byte);
    let first = text.bytes().position(is_end).unwrap_or(text.len());
    let last = text.bytes().rposition(is_end).map_or(0, |at| at + 1);
    for (is_cut, range) in [(cut.beginning, 0..first), (cut.end, last..text.len())] {
        let piece = &text.as_bytes()[range.clone()];
        if is_cut && (looks_random(piece) || is_strong_password(piece)) {
            spans.push(Span::new(range, SecretKind::CUT_TOKEN, Certainty::File));
        }
    }
}

/// The secret of the token of this format whose prefix is at `at`.
fn fits(format: &TokenFormat, prefix: &str, text: &[u8], at: usize) -> Option<Range<usize>> {
    let rest = text[at..].strip_prefix(prefix.as_bytes())?;
    let start = at.checked_sub(format.before)?;
    let (least, most) = format.length;
    let run = |text: &[u8]| format.alphabet.find(text).map_or(0, |run| run.len());
    let length = run(&rest[..rest.len().min(most + 1)]);
    let body = &rest[..length];
    // Not by chance, so that it begins a token even after a letter. `key-` ends words, `1//0` occurs in base64.
    let is_distinct = prefix.len() >= 4 && !matches!(prefix, "key-" | "1//0");
    // A word that continues is another word, except for what people append to a token.
    let continues = rest.get(length).is_some_and(|byte| {
        is_word(*byte)
            && !(*byte == b'_' && is_distinct)
            && body.last().is_some_and(|last| is_word(*last))
    });
    // After `_` or a digit a distinct prefix is enough. After a letter it may be the end of a word (`disk_test_`,
    // `SLOVAKIA`), so the rest must not be a word.
    let may_begin = || {
        let is_no_word = || Mix::of(body).kinds() > 1 && (is_hex(body) || !is_readable(body));
        !is_word(text[start])
            || format.keep_prefix
            || begins_word(text, start)
            || is_distinct && (!text[start - 1].is_ascii_alphabetic() || is_no_word())
    };
    let least_entropy = format.entropy.unwrap_or(match length {
        _ if is_hex(body) => 3.0,
        ..24 => 2.9,
        24..40 => 3.4,
        _ => 3.8,
    });
    let is_token = (least..=most).contains(&length)
        && run(&text[start..at]) == format.before
        && !continues
        && (is_random(body, least_entropy) || format.checksum && has_checksum(body))
        && may_begin();
    let kept = if format.keep_prefix { prefix.len() } else { 0 };
    is_token.then(|| start + kept..at + prefix.len() + length)
}

/// Whether a part of a token looks random, with so many bits per character, and does not stand for something.
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
