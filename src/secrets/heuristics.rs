//! Recognises secrets without a known format by their names, and decides whether a value looks like a secret.
//!
//! In `password = "…"`, `api_key: …` and `Authorization: Bearer …`, a name contains a certain word ([`NAME_WORDS`]),
//! and a value follows it in one of several ways ([`ASSIGNMENTS`]). The value is a secret if its characters are mixed
//! enough, and it contains no readable words and is not a placeholder.

use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use memchr::memmem;

use super::formats::is_random;
use super::rules::{ASSIGNMENT_SET, ASSIGNMENTS, NAME_WORDS, NAMES, PATTERNS, STAND_INS};
use super::{Certainty, MARK, SecretKind, SecretSpan};

/// The most characters of a name on either side of the word.
const LONGEST_NAME: usize = 48;
/// How many bytes before and after a name the patterns of [`ASSIGNMENTS`] see.
const BEFORE: usize = 320;
const AFTER: usize = 5_000;

/// Finds secrets under a name that suggests one.
pub(super) fn find_named(text: &str, file: Option<&str>, spans: &mut Vec<SecretSpan>) {
    let text = text.as_bytes();
    let in_source = is_source(file);
    let words = NAME_WORDS.find_iter(text);
    spans.extend(words.filter_map(|word| secret_of(text, word.range(), in_source)));
}

/// Whether a file is source code. There, a value without quotes is an expression.
pub(super) fn is_source(file: Option<&str>) -> bool {
    file.is_some_and(|path| PATTERNS.source_file.is_match(path.as_bytes()))
}

/// Whether a value is a user name and a password in base64.
pub(super) fn is_login(value: &[u8]) -> bool {
    if !(12..=400).contains(&value.len()) {
        return false;
    }
    let Ok(decoded) = STANDARD.decode(value) else { return false };
    let Some(colon) = memchr::memchr(b':', &decoded) else { return false };
    let (user, password) = (&decoded[..colon], &decoded[colon + 1..]);
    decoded.iter().all(|byte| matches!(byte, b' '..=b'~'))
        && password.len() >= 5
        && user != password
        // The example of RFC 7617.
        && user != b"Aladdin"
        && !is_sample(user)
        && !is_placeholder(password)
        && !is_sample(password)
}

/// The value after the name that contains this word, if the value is a secret.
fn secret_of(text: &[u8], word: Range<usize>, in_source: bool) -> Option<SecretSpan> {
    let is_name = |byte: &&u8| is_word(**byte) || **byte == b'-';
    let before = &text[word.start.saturating_sub(LONGEST_NAME)..word.start];
    let before = before.iter().rev().take_while(is_name).count();
    let after = text[word.end..].iter().take(LONGEST_NAME).take_while(is_name).count();
    let range = word.start - before..word.end + after;
    if before.max(after) == LONGEST_NAME || !suggests_secret(text, &range, &word) {
        return None;
    }
    let name = &text[range.clone()];
    let before = &text[range.start.saturating_sub(BEFORE)..range.start];
    let after = &text[range.end..text.len().min(range.end + AFTER)];
    ASSIGNMENT_SET.matches(after).into_iter().find_map(|n| {
        let (pattern, way) = &ASSIGNMENTS[n];
        if way.in_source.is_some_and(|wanted| wanted != in_source)
            || way.name.as_ref().is_some_and(|pattern| !pattern.is_match(name))
            || way.before.as_ref().is_some_and(|pattern| !pattern.is_match(before))
        {
            return None;
        }
        let value = pattern.captures(after)?.iter().skip(1).flatten().next()?;
        let kind = secret_kind(name, value.as_bytes())?;
        let value = range.end + value.start()..range.end + value.end();
        Some(SecretSpan::new(value, kind, Certainty::Name))
    })
}

/// Whether this word in a name suggests that the value is a secret.
fn suggests_secret(text: &[u8], name: &Range<usize>, word: &Range<usize>) -> bool {
    let lower = text[name.clone()].to_ascii_lowercase();
    let (start, end) = (word.start - name.start, word.end - name.start);
    let (found, rest) = (&lower[start..end], &lower[end..]);
    let is_last_word_only = NAMES.last_words.iter().any(|(last, _)| last.as_bytes() == found);
    let begins = || NAMES.begins_word.is_match(&text[name.start..=word.start]);
    !NAMES.of_a_list.is_match(&lower)
        && NAMES.may_follow.is_match(rest)
        && !NAMES.describes.is_match(rest)
        && (!is_last_word_only || rest.is_empty() && begins())
}

/// The kind of secret that a value with this name is; None if it is not a secret.
fn secret_kind(name: &[u8], value: &[u8]) -> Option<SecretKind> {
    if value.len() < 8 || is_placeholder(value) || is_url_or_path(value) {
        return None;
    }
    let name: Vec<u8> =
        name.iter().filter(|byte| !b"_-. ".contains(byte)).map(u8::to_ascii_lowercase).collect();
    let contains = |word: &str| memmem::find(&name, word.replace('_', "").as_bytes()).is_some();
    let by_word = NAMES.words.iter().rev().find(|(word, _)| contains(word));
    let by_last = || NAMES.last_words.iter().find(|(word, _)| name.ends_with(word.as_bytes()));
    let kind = by_word.or_else(by_last).map(|(_, kind)| *kind)?;
    if is_login(value) {
        return Some(SecretKind::LOGIN);
    }
    if PATTERNS.uuid.is_match(value) {
        let keys = ["_authtoken", "heroku_token", "codecov_token", "api_key"];
        let is_key = keys.into_iter().any(contains) && !is_sample(value);
        return is_key.then_some(kind);
    }
    let is_secret = kind != SecretKind::LOGIN && looks_random(value)
        || kind == SecretKind::PASSWORD && is_strong_password(value)
        || kind == SecretKind::AWS && value.len() == 40 && is_random(value, 4.2)
        || has_random_letters(value);
    // A digest, in a variable named after it (`sha256`).
    let is_digest = is_hex(value) && contains("sha") && !contains("shared");
    (is_secret && !is_digest).then_some(kind)
}

/// Whether a value is a URL or a path.
fn is_url_or_path(value: &[u8]) -> bool {
    let dotted = value
        .split(|byte| matches!(byte, b'.' | b':' | b'/'))
        .filter(|part| part.len() > 1 && Mix::of(part).digits == 0);
    PATTERNS.location.is_match(value) || dotted.count() > 2
}

/// Whether a value is a real password in a URL such as `postgres://user:password@host`.
pub(super) fn is_url_password(scheme: &[u8], user: &[u8], password: &[u8], host: &[u8]) -> bool {
    if host.is_empty() || password.len() < 5 || is_placeholder(password) || user == password {
        return false;
    }
    let name = host.split(|byte| *byte == b':').next().unwrap_or_default();
    let mix = Mix::of(password);
    if looks_random(password) || is_strong_password(password) {
        true
    } else if PATTERNS.example_host.is_match(name) || PATTERNS.local_address.is_match(host) {
        false
    } else if name.contains(&b'.') {
        password.len() >= 8 && !password.iter().all(u8::is_ascii_lowercase)
    } else {
        // A host without a dot is as common in documentation as in container networks.
        PATTERNS.service.is_match(scheme)
            && password.len() >= 10
            && mix.digits >= 2
            && mix.changes >= 4
            && has_inner_digit(password)
            && !is_sample(password)
    }
}

/// 66 of the 676 pairs of letters. They are more than half of the pairs in English texts, but a tenth in random ones.
const PAIRS: &[u8] = b"thheineranreonatenndtiesorteofedisitalarsttontngsehaasouiolevecome\
    dehiriroicneearaceliochllbemmururtctetelssgekeypeidusrdwopwacnsunp";

/// The longest escape sequence or terminal colour, in bytes.
const LONGEST_ESCAPE: usize = 24;

/// Counts of the kinds of characters in a text.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Mix {
    pub(super) digits: usize,
    pub(super) upper: usize,
    pub(super) lower: usize,
    pub(super) other: usize,
    /// The number of characters whose kind differs from that of the character before.
    pub(super) changes: usize,
}

impl Mix {
    pub(super) fn of(text: &[u8]) -> Self {
        let mut counts = [0; 4];
        let (mut changes, mut last) = (0, None);
        for byte in text {
            let kind = match byte {
                b'0'..=b'9' => 0,
                b'A'..=b'Z' => 1,
                b'a'..=b'z' => 2,
                _ => 3,
            };
            counts[kind] += 1;
            changes += usize::from(last.is_some_and(|last| last != kind));
            last = Some(kind);
        }
        let [digits, upper, lower, other] = counts;
        Self { digits, upper, lower, other, changes }
    }

    /// Whether the letters of this text, except perhaps the first, have the same case.
    pub(super) fn is_one_case(self, text: &[u8]) -> bool {
        self.upper.min(self.lower) == 0 || self.upper == 1 && text[0].is_ascii_uppercase()
    }

    /// How many of the four kinds occur.
    pub(super) fn kinds(self) -> usize {
        [self.digits, self.upper, self.lower, self.other].iter().filter(|n| **n > 0).count()
    }
}

/// The entropy of a text in bits per character.
pub(super) fn entropy(text: &[u8]) -> f64 {
    let number = |n: usize| f64::from(u32::try_from(n).unwrap_or(u32::MAX));
    let mut counts = [0_u32; 256];
    for byte in text {
        counts[usize::from(*byte)] += 1;
    }
    let all = number(text.len());
    let bits = |count: u32| f64::from(count) / all * (all / f64::from(count)).log2();
    counts.into_iter().filter(|count| *count > 0).map(bits).sum()
}

/// Whether a text of at least 16 characters is almost certainly random.
pub(super) fn looks_random(text: &[u8]) -> bool {
    if text.len() < 16 || has_meaning(text) || PATTERNS.composed.is_match(text) {
        return false;
    }
    let (mix, bits) = (Mix::of(text), entropy(text));
    if is_hex(text) {
        // Shorter hexadecimal texts are commits, colours and addresses.
        return text.len() >= 32 && mix.digits > 3 && mix.digits < text.len() - 3 && bits >= 3.0;
    }
    let is_mixed = if mix.upper > 0 && mix.lower > 0 {
        mix.digits >= 1 && mix.changes * 100 >= text.len() * 33
    } else {
        mix.digits >= 3 && mix.changes * 100 >= text.len() * 25 && mix.digits < text.len() - 3
    };
    let least = if text.len() < 24 { 3.2 } else { 3.5 };
    is_mixed && mix.other * 5 <= text.len() && bits >= least
}

/// Whether a text of only letters is almost certainly random: it is long, its letter pairs are unusual in any
/// language, and upper and lower case are mixed if both occur.
pub(super) fn has_random_letters(text: &[u8]) -> bool {
    let mix = Mix::of(text);
    let is_mixed = mix.upper.min(mix.lower) == 0 || mix.changes * 100 >= text.len() * 33;
    (24..=64).contains(&text.len())
        && mix.upper + mix.lower == text.len()
        && is_mixed
        && entropy(text) >= 3.4
        && common_pairs(text).is_some_and(|(common, all)| common * 100 <= all * 24)
        && !has_meaning(text)
}

/// Whether a text is a strong password: eight characters or more, mixed, and not a word.
pub(super) fn is_strong_password(text: &[u8]) -> bool {
    let (mix, bits) = (Mix::of(text), entropy(text));
    (8..=64).contains(&text.len())
        && mix.kinds() >= 3
        && mix.digits >= 1
        && mix.upper + mix.lower >= 2
        && mix.other <= 4
        && (mix.changes >= 3 || text.len() >= 12 && bits >= 3.2)
        && bits >= 2.75
        && !is_placeholder(text)
        && !has_meaning(text)
}

/// Whether a text is a sample or contains words, possibly in base64.
fn has_meaning(text: &[u8]) -> bool {
    let is_plain = |text: &[u8]| text.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\n'));
    let has_words = |text: &[u8]| is_sample(text) || is_readable(text);
    has_words(text)
        || STANDARD.decode(text).is_ok_and(|decoded| is_plain(&decoded) && has_words(&decoded))
}

/// Whether a text contains readable words: too many of its letter pairs are common in English.
pub(super) fn is_readable(text: &[u8]) -> bool {
    common_pairs(text).is_some_and(|(common, all)| common * 100 > all * 36)
}

/// The number of common letter pairs, and of all letter pairs; None if there are fewer than four.
fn common_pairs(text: &[u8]) -> Option<(usize, usize)> {
    let (mut common, mut all) = (0_usize, 0_usize);
    for pair in text.windows(2).filter(|pair| pair.iter().all(u8::is_ascii_alphabetic)) {
        let pair = [pair[0].to_ascii_lowercase(), pair[1].to_ascii_lowercase()];
        all += 1;
        common += usize::from(PAIRS.chunks(2).any(|other| other == pair));
    }
    (all >= 4).then_some((common, all))
}

/// Whether a text is a sample: it contains a word such as `example`, is a published example, or has runs or repetitions.
pub(super) fn is_sample(text: &[u8]) -> bool {
    let lower = text.to_ascii_lowercase();
    let contains = |word: &String| memmem::find(&lower, word.as_bytes()).is_some();
    STAND_INS.words.iter().any(contains) || has_run(&lower) || is_repeated(&lower)
}

/// `abcdef`, `987654` or `aaaaaa`.
fn has_run(text: &[u8]) -> bool {
    [1, 0, 255].into_iter().any(|step| {
        let mut length = 1;
        text.windows(2).any(|pair| {
            length = if pair[1] == pair[0].wrapping_add(step) { length + 1 } else { 1 };
            length >= 6
        })
    })
}

/// Whether a text repeats one piece at least three times.
fn is_repeated(text: &[u8]) -> bool {
    let longest = (text.len() / 3).min(24);
    (1..=longest).any(|n| text.iter().skip(n).zip(text).all(|(one, other)| one == other))
}

/// Whether a value is a placeholder for a secret: a field to fill in, a variable, or a common word.
pub(super) fn is_placeholder(value: &[u8]) -> bool {
    if PATTERNS.template.is_match(value) {
        return true;
    }
    let plain = undisguised(value);
    STAND_INS.values.iter().any(|word| word.as_bytes() == plain)
        || STAND_INS.values[..3].iter().any(|word| memmem::find(&plain, word.as_bytes()).is_some())
            && !is_disguised(value, &plain)
}

/// Whether all common words in a password are disguised, and the rest is not what people write in documents. In
/// `S3cr3tP4ssn19q` the rest is `n19q`.
fn is_disguised(value: &[u8], plain: &[u8]) -> bool {
    let mut rest = value.to_vec();
    for word in &STAND_INS.disguised {
        for at in memmem::find_iter(plain, word.as_bytes()) {
            let found = at..at + word.len();
            if value[found.clone()].eq_ignore_ascii_case(word.as_bytes()) {
                return false;
            }
            rest[found].fill(0);
        }
    }
    rest.retain(|byte| *byte != 0);
    rest.len() >= 4 && has_inner_digit(&rest)
}

/// Whether a digit comes before a letter. Otherwise the digits may be only a number after a word.
fn has_inner_digit(text: &[u8]) -> bool {
    let digit = text.iter().position(u8::is_ascii_digit);
    let letter = text.iter().rposition(u8::is_ascii_alphabetic);
    digit.zip(letter).is_some_and(|(digit, letter)| digit < letter)
}

/// Undoes letter substitutions, and removes digits and signs at the end: `P@ssw0rd1!` becomes `password`.
fn undisguised(value: &[u8]) -> Vec<u8> {
    let is_letter =
        |byte: &u8| !matches!(byte, b'0'..=b'9' | b'!' | b'.' | b'?' | b'*' | b'#' | b' ');
    let end = value.iter().rposition(is_letter).map_or(0, |last| last + 1);
    let letter = |byte: &u8| match byte.to_ascii_lowercase() {
        b'0' => b'o',
        b'1' => b'l',
        b'3' => b'e',
        b'4' | b'@' => b'a',
        b'5' | b'$' => b's',
        other => other,
    };
    value[..end].iter().map(letter).collect()
}

/// Whether a value is certainly not a secret: a number, a switch, a path, a variable, or a host without a password.
pub(super) fn is_harmless(value: &[u8]) -> bool {
    // A path with a long random part is probably base64 that begins with `/`.
    let mut parts = value.split(|byte| matches!(byte, b'/' | b'.' | b'-' | b'_'));
    let mut is_base64 = || parts.any(|part| part.len() >= 20) && !is_readable(value);
    is_unset(value)
        || PATTERNS.harmless.is_match(value)
        || PATTERNS.path.is_match(value) && !is_base64()
        || PATTERNS.local_address.is_match(value)
}

/// Whether a value is empty, only a variable, or the mark of a withheld secret.
pub(super) fn is_unset(value: &[u8]) -> bool {
    value.is_empty() || is_mark(value) || PATTERNS.variable.is_match(value)
}

/// Whether a value is the mark of a withheld secret.
pub(super) fn is_mark(value: &[u8]) -> bool {
    value.starts_with(MARK.as_bytes()) && value.ends_with(b"]")
}

/// Whether a text consists of hexadecimal digits in one case.
pub(super) fn is_hex(text: &[u8]) -> bool {
    text.iter().all(u8::is_ascii_hexdigit)
        && !(text.iter().any(u8::is_ascii_lowercase) && text.iter().any(u8::is_ascii_uppercase))
}

/// A letter, a digit or `_`.
pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Whether a word may begin at `at`: not inside a word, except after an escape sequence or terminal colour.
pub(super) fn begins_word(text: &[u8], at: usize) -> bool {
    let before = &text[at.saturating_sub(LONGEST_ESCAPE)..at];
    !before.last().is_some_and(|last| is_word(*last)) || PATTERNS.escape.is_match(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_texts_are_told_from_words() {
        for random in
            ["kP3vXq9ZtB7mWc2L", "9f8a3c1e7b2d4f6089ac13be57d2f4a6", "8g2kd93jf0s8q4mzn5b7"]
        {
            assert!(looks_random(random.as_bytes()), "{random}");
        }
        for other in [
            "getPasswordResetToken2Now",
            "my_secret_token_v2_final",
            "abcdefghijklmnop1234",
            "1234567890abcdef1234567890abcdef",
            "AKIAIOSFODNN7EXAMPLE",
            "aB3aB3aB3aB3aB3aB3aB3aB3",
            "application/x-www-form-urlencoded",
            "short1A",
        ] {
            assert!(!looks_random(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn letters_alone_are_told_from_words() {
        for drawn in [
            "ybmwskriqhbjacdtrbgnjtiewbkklemm",
            "SUEBUUKOLVLTWIXPASBVALIUOJSTKFLF",
            "OKrsheEOEfwZeAjbsBXAhcMN",
        ] {
            assert!(has_random_letters(drawn.as_bytes()), "{drawn}");
        }
        for other in [
            "resetPasswordConfirmationKey",
            "thequickbrownfoxjumpsover",
            "org.apache.kafka.clients.plain",
            "PasswordAuthenticationProvider",
            "bcdfghjklmnpqrstvwxyz",
            "KP3vXq9ZtB7mWc2LKP3vXq9Z",
        ] {
            assert!(!has_random_letters(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn a_word_begins_after_an_escape() {
        let begins = |before: &str| begins_word(before.as_bytes(), before.len());
        for before in [
            "",
            " ",
            "\"",
            "\\n",
            "%3D",
            "=",
            "\\u0022",
            "\\x22",
            "\x1b[1;31m",
            "␛[m",
            "é",
            "\\033[0m",
        ] {
            assert!(begins(before), "{before:?}");
        }
        for before in ["a", "_", "9", "nn", "3D", "u0022", "1m", "[1m"] {
            assert!(!begins(before), "{before:?}");
        }
    }

    #[test]
    fn entropy_is_in_bits() {
        assert!(entropy(b"aaaa") < 1e-9);
        assert!((entropy(b"abab") - 1.0).abs() < 1e-9);
        assert!((entropy(b"abcdefgh") - 3.0).abs() < 1e-9);
        assert!(entropy(b"") < 1e-9);
    }
}
