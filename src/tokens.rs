//! Counts the tokens of a text as current chat models do (`o200k_base`).
//!
//! An exact count needs the vocabulary, which takes about 0.12 s of processor time and 22 MB to load once. Most texts
//! are so far below any limit that an estimate is enough: see [`Estimate`].

use std::cell::Cell;

use tiktoken::CoreBpe;

use crate::text::grouped;

/// The vocabulary for exact counts.
const VOCABULARY: &str = "o200k_base";
/// Longer texts are counted in pieces of this many bytes. A single word of a megabyte, as in minified files and encoded
/// data, would take too long.
const PIECE: usize = 64 << 10;

/// The number of tokens of a text, estimated without the vocabulary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Estimate {
    /// The likely number.
    pub likely: usize,
    /// An upper bound. A text made to exceed it can do so by at most about a twentieth.
    pub most: usize,
}

thread_local! {
    static COUNTED: Cell<usize> = const { Cell::new(0) };
}

/// The number of exact counts by this thread. Each needs the vocabulary.
pub fn exact_counts() -> usize {
    COUNTED.get()
}

/// The exact number of tokens of `text`.
///
/// # Examples
/// ```
/// assert_eq!(deaddrop::tokens::count("hello world"), 2);
/// ```
///
/// # Panics
/// Never: the vocabulary is compiled in.
pub fn count(text: &str) -> usize {
    COUNTED.set(COUNTED.get() + 1);
    let encoding = tiktoken::get_encoding(VOCABULARY).expect("it is compiled in");
    pieces(text).map(|piece| CoreBpe::count(encoding, piece)).sum()
}

/// The number of tokens of `text`: exact if it could exceed `limit`, otherwise an estimate.
pub fn about(text: &str, limit: usize) -> usize {
    let Estimate { likely, most } = estimate(text);
    if most > limit { count(text) } else { likely }
}

/// A number of tokens for display, rounded to two digits: `≈ 5,300 tokens`.
///
/// # Examples
/// ```
/// assert_eq!(deaddrop::tokens::rounded(5_261), "≈ 5,300 tokens");
/// ```
pub fn rounded(tokens: usize) -> String {
    let mut unit = 1;
    while tokens / unit >= 100 {
        unit *= 10;
    }
    let rounded = (tokens + unit / 2) / unit * unit;
    format!("≈ {} tokens", grouped(rounded as u64))
}

/// Splits a text into pieces, at line ends if possible.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let limit = rest.floor_char_boundary(PIECE);
        let cut = match memchr::memrchr(b'\n', &rest.as_bytes()[..limit]) {
            _ if limit == rest.len() => limit,
            Some(n) => n + 1,
            None => limit,
        };
        let piece;
        (piece, rest) = rest.split_at(cut);
        Some(piece)
    })
}

/// The class of a byte, which decides where words begin and end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ByteClass {
    Vowel,
    Consonant,
    Digit,
    Space,
    Tab,
    Line,
    Mark,
    Control,
    /// Part of a character that is not ASCII.
    Beyond,
}

fn byte_class(byte: u8) -> ByteClass {
    match byte.to_ascii_lowercase() {
        b'a' | b'e' | b'i' | b'o' | b'u' | b'y' => ByteClass::Vowel,
        b'a'..=b'z' => ByteClass::Consonant,
        b'0'..=b'9' => ByteClass::Digit,
        b' ' => ByteClass::Space,
        b'\t' => ByteClass::Tab,
        b'\n' => ByteClass::Line,
        0x80.. => ByteClass::Beyond,
        0..b' ' | 0x7f => ByteClass::Control,
        _ => ByteClass::Mark,
    }
}

/// Estimates the number of tokens of `text` in one pass over its bytes.
///
/// Both numbers were measured, not proved. With the weights of `most`, random letters, digits, punctuation, encoded data
/// and scripts of all kinds come out at 1.0 to 2.0 times their tokens. Chinese, Japanese and Korean come out at up to 3.5
/// times, since a rare character can be one token per byte. `likely` has its own weights, fitted to 700 pieces of source in
/// ten languages, prose, JSON, logs, tables of numbers and encoded data.
pub fn estimate(text: &str) -> Estimate {
    // In hundredths of a token.
    let (mut likely, mut most) = (0, 0);
    let (mut before, mut run, mut was_lower) = (ByteClass::Line, 0, false);
    let mut last = 0;
    for &byte in text.as_bytes() {
        let byte_class = byte_class(byte);
        let is_letter = matches!(byte_class, ByteClass::Vowel | ByteClass::Consonant);
        let was_letter = matches!(before, ByteClass::Vowel | ByteClass::Consonant);
        let begins = is_letter && (!was_letter || (was_lower && byte.is_ascii_uppercase()));
        run = if byte_class == before && !begins { run + 1 } else { 1 };
        let (likely_of, most_of) = match byte_class {
            // A word is at least one token, and an unpronounceable word is many.
            _ if begins && was_letter => (167, 150),
            // The token includes the blank or the punctuation before it.
            _ if begins && before == ByteClass::Space => (81, 100),
            _ if begins && before == ByteClass::Mark => (39, 100),
            _ if begins && before == ByteClass::Digit => (108, 100),
            // The rest of a word after an accented letter.
            _ if begins && before == ByteClass::Beyond => (40, 100),
            _ if begins => (159, 100),
            ByteClass::Vowel => (2, 85),
            ByteClass::Consonant if run == 1 => (0, 10),
            ByteClass::Consonant if run == 2 => (0, 40),
            ByteClass::Consonant => (56, 90),
            // Three digits are one token. A blank before them is its own token.
            ByteClass::Digit if run == 1 && before == ByteClass::Space => (186, 190),
            ByteClass::Digit if run % 3 == 1 => (105, 105),
            ByteClass::Space if run == 1 => (14, 15),
            ByteClass::Space if run == 2 => (70, 85),
            ByteClass::Space => (0, 8),
            ByteClass::Tab if run > 1 => (0, 10),
            ByteClass::Tab => (74, 105),
            // A line end is part of a punctuation token, but not of a word or number.
            ByteClass::Line if run > 1 => (0, 40),
            ByteClass::Line if before == ByteClass::Mark => (0, 70),
            ByteClass::Line if was_letter || before == ByteClass::Digit => (98, 100),
            ByteClass::Line => (60, 70),
            // Different punctuation characters are rarely in one token.
            ByteClass::Mark if run == 1 => (89, 100),
            ByteClass::Mark if byte == last => (5, 100),
            ByteClass::Mark => (51, 100),
            // A carriage return and the line feed are one token.
            ByteClass::Control if byte == b'\r' => (0, 200),
            // It is its own token, and so is a space before it.
            ByteClass::Control => (120, 200),
            ByteClass::Digit | ByteClass::Beyond => (0, 0),
        };
        likely += likely_of;
        most += most_of;
        (before, last) = (byte_class, byte);
        was_lower = byte.is_ascii_lowercase();
    }
    if !text.is_ascii() {
        for c in text.chars().filter(|c| !c.is_ascii()) {
            let (likely_of, most_of) = weights_beyond(c);
            likely += likely_of;
            most += most_of;
        }
    }
    let most = most / 100 + 8;
    Estimate { likely: likely.div_ceil(100).min(most), most }
}

/// The likely and the highest number of tokens of a non-ASCII character, in hundredths. At most, each byte is a token.
/// A letter that is in the vocabulary is one token.
fn weights_beyond(c: char) -> (usize, usize) {
    let bytes = c.len_utf8() * 100;
    let likely = match c {
        '\u{80}'..='\u{36f}' => 80,
        '\u{400}'..='\u{52f}' => 24,
        '\u{600}'..='\u{6ff}' => 28,
        '\u{370}'..='\u{5ff}' | '\u{900}'..='\u{e7f}' => 40,
        '\u{3040}'..='\u{30ff}' => 55,
        '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' => 62,
        _ => bytes / 3,
    };
    let most = match c {
        '\u{3b1}'..='\u{3c9}'
        | '\u{410}'..='\u{44f}'
        | '\u{5d0}'..='\u{5ea}'
        | '\u{621}'..='\u{63a}'
        | '\u{640}'..='\u{654}' => 110,
        _ => bytes,
    };
    (likely, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_likely_is_near_and_what_it_is_at_most_holds() {
        let numbers = |to: usize| (0..600).map(move |n| n * 7_919 % to);
        let lines = |to: usize| numbers(to).map(|n| format!("{n}\n")).collect::<String>();
        let row = |to: usize| numbers(to).map(|n| format!("{n} ")).collect::<String>();
        let list = |to: usize| numbers(to).map(|n| format!("{n}.25,")).collect::<String>();
        let source = include_str!("tokens.rs").split("mod tests").next().unwrap_or_default();
        let prompt = include_str!("../protocol-prompt/tags.md");
        let german = "Die Funktion gibt die Zahl der Zeilen zur\u{fc}ck, die seit dem letzten Sichern ge\u{e4}ndert wurden.\n".repeat(30);
        let russian = "Функция возвращает число строк в файле.\n".repeat(30);
        for text in [lines(10), lines(300), lines(99_999), row(999), row(99_999), list(1_000)]
            .iter()
            .map(String::as_str)
            .chain([source, prompt, &source.replace('\n', "\r\n"), &german, &russian])
        {
            let (exactly, Estimate { likely, most }) = (count(text), estimate(text));
            let from = &text[..text.floor_char_boundary(40)];
            assert!(most >= exactly, "{most} for {exactly} of {from:?}");
            assert!(
                likely.abs_diff(exactly) * 100 <= exactly * 15,
                "{likely} for {exactly} of {from:?}"
            );
        }
    }

    #[test]
    fn no_more_is_likely_than_it_is_at_most() {
        for text in ["b\n", "\tif\n", "x = 1\n", "\u{1}"] {
            let Estimate { likely, most } = estimate(&text.repeat(1_000));
            assert!(likely <= most, "{likely} of {most} for {text:?}");
        }
    }
}
