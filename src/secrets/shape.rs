//! What a text looks like: how mixed its characters are, whether words can be read in it, and
//! whether it stands for a secret rather than being one.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use memchr::memmem;

/// Words that only a stand-in for a secret holds. In a random text of 40 letters and digits one of
/// the short ones stands by chance in fewer than one of 1,000.
const STAND_INS: [&[u8]; 24] = [
    b"example",
    b"sample",
    b"dummy",
    b"fake",
    b"placeholder",
    b"your",
    b"redacted",
    b"changeme",
    b"change_me",
    b"change-me",
    b"xxxx",
    b"test",
    b"demo",
    b"insert",
    b"replace",
    b"deadbeef",
    b"foobar",
    b"secret",
    b"password",
    b"passwd",
    b"token",
    b"qwerty",
    b"apikey",
    b"00000000",
];

/// Examples of OAuth's specifications, which its libraries and their tests repeat.
const PUBLISHED: [&[u8]; 7] = [
    b"2yotnfzfejr1",
    b"tgzv3jokf0xg",
    b"s6bhdrkqt3",
    b"ad180jjd733k",
    b"kkk9d7dh3k39",
    b"nnch734d00sl",
    b"slav32hkkg",
];

/// 66 of the 676 pairs of letters: more than half of those in English texts, one in ten of those in
/// random ones.
const PAIRS: &[u8] = b"thheineranreonatenndtiesorteofedisitalarsttontngsehaasouiolevecome\
    dehiriroicneearaceliochllbemmururtctetelssgekeypeidusrdwopwacnsunp";

/// In how many bits a character of `text` could be told on average, by how often each occurs in it.
pub(super) fn entropy(text: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in text {
        counts[usize::from(*byte)] += 1;
    }
    let all = number(text.len());
    let bits = |count: u32| f64::from(count) / all * (all / f64::from(count)).log2();
    counts.into_iter().filter(|count| *count > 0).map(bits).sum()
}

/// Whether a text stands for a secret: it says so, or its characters are in a row or repeat.
pub(super) fn is_sample(text: &[u8]) -> bool {
    let lower = text.to_ascii_lowercase();
    let says = |word: &[u8]| memmem::find(&lower, word).is_some();
    STAND_INS.into_iter().chain(PUBLISHED).any(says) || is_in_a_row(&lower) || repeats(&lower)
}

/// `abcdef`, `987654` or `aaaaaa`.
fn is_in_a_row(text: &[u8]) -> bool {
    [1, 0, 255].into_iter().any(|step| {
        let mut length = 1;
        text.windows(2).any(|pair| {
            length = if pair[1] == pair[0].wrapping_add(step) { length + 1 } else { 1 };
            length >= 6
        })
    })
}

/// One piece again and again, at least three times.
fn repeats(text: &[u8]) -> bool {
    let most = (text.len() / 3).min(24);
    (1..=most).any(|n| text.iter().skip(n).zip(text).all(|(one, other)| one == other))
}

/// Whether words can be read in a text: of the pairs of neighbouring letters too many are those of
/// a language.
pub(super) fn reads(text: &[u8]) -> bool {
    known_pairs(text).is_some_and(|(known, all)| known * 100 > all * 36)
}

/// Whether a text of letters alone can hardly be anything but drawn at random: long, with pairs of
/// letters as no language has them, and mixed where both cases occur.
pub(super) fn is_drawn_of_letters(text: &[u8]) -> bool {
    let mix = Mix::of(text);
    let is_mixed = mix.upper.min(mix.lower) == 0 || mix.changes * 100 >= text.len() * 33;
    (24..=64).contains(&text.len())
        && mix.upper + mix.lower == text.len()
        && is_mixed
        && entropy(text) >= 3.4
        && known_pairs(text).is_some_and(|(known, all)| known * 100 <= all * 24)
        && !is_sample(text)
        && !encodes(text)
}

/// How many pairs of neighbouring letters are those of a language, of how many; None for too few.
fn known_pairs(text: &[u8]) -> Option<(usize, usize)> {
    let (mut known, mut all) = (0_usize, 0_usize);
    for pair in text.windows(2) {
        if pair.iter().all(u8::is_ascii_alphabetic) {
            let pair = [pair[0].to_ascii_lowercase(), pair[1].to_ascii_lowercase()];
            all += 1;
            known += usize::from(PAIRS.chunks(2).any(|other| other == pair));
        }
    }
    (all >= 4).then_some((known, all))
}

/// How the characters of a text are mixed.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Mix {
    pub(super) digits: usize,
    pub(super) upper: usize,
    pub(super) lower: usize,
    pub(super) other: usize,
    /// How often a character is of another kind than the one before it.
    pub(super) changes: usize,
}

impl Mix {
    pub(super) fn of(text: &[u8]) -> Self {
        let mut mix = Self::default();
        let mut last = None;
        for byte in text {
            let kind = match byte {
                b'0'..=b'9' => &mut mix.digits,
                b'A'..=b'Z' => &mut mix.upper,
                b'a'..=b'z' => &mut mix.lower,
                _ => &mut mix.other,
            };
            *kind += 1;
            let kind =
                [byte.is_ascii_digit(), byte.is_ascii_uppercase(), byte.is_ascii_lowercase()];
            mix.changes += usize::from(last.is_some_and(|last| last != kind));
            last = Some(kind);
        }
        mix
    }

    /// How many of the four kinds occur.
    pub(super) fn kinds(self) -> usize {
        [self.digits, self.upper, self.lower, self.other].iter().filter(|n| **n > 0).count()
    }
}

/// Whether a text of at least 16 characters can hardly be anything but drawn at random.
pub(super) fn looks_random(text: &[u8]) -> bool {
    if text.len() < 16 || is_sample(text) || reads(text) || is_composed(text) || encodes(text) {
        return false;
    }
    let mix = Mix::of(text);
    let bits = entropy(text);
    if is_hex(text) {
        // Shorter ones are commits, colours and addresses.
        return text.len() >= 32 && mix.digits > 3 && mix.digits < text.len() - 3 && bits >= 3.0;
    }
    let mixed = match (mix.upper > 0, mix.lower > 0) {
        (true, true) => mix.digits >= 1 && mix.changes * 100 >= text.len() * 33,
        _ => mix.digits >= 3 && mix.changes * 100 >= text.len() * 25 && mix.digits < text.len() - 3,
    };
    let least = if text.len() < 24 { 3.2 } else { 3.5 };
    mixed && mix.other * 5 <= text.len() && bits >= least
}

/// Whether the beginning of a text of which the rest is missing could be drawn at random: no word, and
/// nothing that stands for one. Fewer than four characters tell too little.
pub(super) fn could_be_drawn(text: &[u8]) -> bool {
    let mix = Mix::of(text);
    let is_mixed = mix.digits > 0 && mix.digits < text.len() || mix.upper.min(mix.lower) > 0;
    text.len() >= 4 && (is_mixed || text.len() >= 8 && !reads(text)) && !is_sample(text)
}

/// Whether it is of words and numbers, parted: `not_exists_file_1123`.
fn is_composed(text: &[u8]) -> bool {
    let of_one_kind = |part: &[u8]| {
        part.iter().all(u8::is_ascii_digit)
            || part.iter().all(u8::is_ascii_lowercase)
            || part.iter().all(u8::is_ascii_uppercase)
    };
    let mut parts = text.split(|byte| matches!(byte, b'_' | b'-' | b'.' | b'/' | b':'));
    parts.clone().count() > 1 && parts.all(of_one_kind)
}

/// Whether it is base64 of what can be read, such as a stand-in or a place in a list.
pub(super) fn encodes(text: &[u8]) -> bool {
    STANDARD.decode(text).is_ok_and(|decoded| {
        decoded.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\n'))
            && (is_sample(&decoded) || reads(&decoded))
    })
}

/// Whether all are hexadecimal digits, and not in both cases.
pub(super) fn is_hex(text: &[u8]) -> bool {
    let lower = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let upper = |byte: &u8| matches!(byte, b'0'..=b'9' | b'A'..=b'F');
    text.iter().all(lower) || text.iter().all(upper)
}

/// Whether it is of the form `8-4-4-4-12`, as numbers are that name things.
pub(super) fn is_uuid(text: &[u8]) -> bool {
    text.len() == 36
        && text.iter().enumerate().all(|(n, byte)| match n {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Whether a word can begin at `at`: what stands before it is no part of it, but for what an escape
/// ends with (`\n`, `%3D`, `\u0022`, the colours of terminals).
pub(super) fn bounded(text: &[u8], at: usize) -> bool {
    let before = &text[..at];
    let Some(last) = before.last().filter(|last| is_word(**last)) else { return true };
    let hex = |n: usize| {
        before.len() >= n && before[before.len() - n..].iter().all(u8::is_ascii_hexdigit)
    };
    let opens = |n: usize, with: &[u8]| before[..before.len().saturating_sub(n)].ends_with(with);
    (matches!(last, b'n' | b'r' | b't' | b'b' | b'f' | b'v' | b'0') && opens(1, b"\\"))
        || (hex(2) && (opens(2, b"%") || opens(2, b"\\x")))
        || (hex(4) && opens(4, b"\\u"))
        || ends_colour(before)
}

/// Whether a text ends with a sequence such as `␛[1;31m`, raw, written or shown.
fn ends_colour(text: &[u8]) -> bool {
    let Some((b'm' | b'K', rest)) = text.split_last() else { return false };
    let codes = rest.iter().rev().take_while(|byte| matches!(byte, b'0'..=b'9' | b';')).take(16);
    let rest = &rest[..rest.len() - codes.count()];
    let Some(rest) = rest.strip_suffix(b"[") else { return false };
    let escapes: [&[u8]; 6] = [b"\x1b", b"\\e", b"\\033", b"\\x1b", b"\\u001b", "␛".as_bytes()];
    escapes.into_iter().any(|escape| rest.ends_with(escape))
}

/// A letter, a digit or `_`.
pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn number(n: usize) -> f64 {
    f64::from(u32::try_from(n).unwrap_or(u32::MAX))
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
            assert!(is_drawn_of_letters(drawn.as_bytes()), "{drawn}");
        }
        for other in [
            "resetPasswordConfirmationKey",
            "thequickbrownfoxjumpsover",
            "org.apache.kafka.clients.plain",
            "PasswordAuthenticationProvider",
            "bcdfghjklmnpqrstvwxyz",
            "KP3vXq9ZtB7mWc2LKP3vXq9Z",
        ] {
            assert!(!is_drawn_of_letters(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn a_word_begins_after_an_escape() {
        let begins = |before: &str| bounded(before.as_bytes(), before.len());
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
