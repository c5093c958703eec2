//! How many tokens a text is for a chat model, as tokenizers of today count (`o200k_base`).
//!
//! The exact number needs the vocabulary, which takes about 0.12 s of a processor and 22 MB to load, once. Most texts
//! are so far from any limit that an estimate says enough: see [`Estimate`].

use std::cell::Cell;

use tiktoken::CoreBpe;

use crate::text::grouped;

/// The vocabulary that is counted with.
const VOCABULARY: &str = "o200k_base";
/// A longer text is counted in pieces of so many bytes: a single word of a megabyte, as minified files
/// and encoded data have, would take long.
const PIECE: usize = 64 << 10;

/// What can be told of a text without the vocabulary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Estimate {
    /// About so many tokens it is.
    pub likely: usize,
    /// It is not more than these, but for texts made to be: of them it may be a twentieth more.
    pub most: usize,
}

thread_local! {
    static COUNTED: Cell<usize> = const { Cell::new(0) };
}

/// How often this thread has counted exactly, and so needed the vocabulary.
pub fn counted() -> usize {
    COUNTED.get()
}

/// Exactly how many tokens `text` is.
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

/// How many tokens `text` is: exactly where it could be more than `limit`, else about.
pub fn about(text: &str, limit: usize) -> usize {
    let Estimate { likely, most } = estimate(text);
    if most > limit { count(text) } else { likely }
}

/// A number of tokens for a person, in two digits: `≈ 5,300 tokens`.
///
/// # Examples
/// ```
/// assert_eq!(deaddrop::tokens::told(5_261), "≈ 5,300 tokens");
/// ```
pub fn told(tokens: usize) -> String {
    let mut unit = 1;
    while tokens / unit >= 100 {
        unit *= 10;
    }
    let rounded = (tokens + unit / 2) / unit * unit;
    format!("≈ {} tokens", grouped(rounded as u64))
}

/// A text in pieces that end at a line's end where there is one.
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

/// What a byte is, for where words begin and end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
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

fn class(byte: u8) -> Class {
    match byte.to_ascii_lowercase() {
        b'a' | b'e' | b'i' | b'o' | b'u' | b'y' => Class::Vowel,
        b'a'..=b'z' => Class::Consonant,
        b'0'..=b'9' => Class::Digit,
        b' ' => Class::Space,
        b'\t' => Class::Tab,
        b'\n' => Class::Line,
        0x80.. => Class::Beyond,
        0..b' ' | 0x7f => Class::Control,
        _ => Class::Mark,
    }
}

/// Estimates how many tokens `text` is, in one look at its bytes.
///
/// Both numbers were measured, not proved. What it is at most: the weights are so that random letters,
/// digits, marks, encoded data and scripts of all sorts come out at 1.0 to 2.0 times their tokens, and at
/// up to 3.5 times what Chinese, Japanese and Korean are, where a rare character can be a token a byte.
/// What is likely has weights of its own, fitted to 700 pieces of source in ten languages, prose, JSON,
/// logs, tables of numbers and encoded data.
pub fn estimate(text: &str) -> Estimate {
    // In hundredths of a token.
    let (mut likely, mut most) = (0, 0);
    let (mut before, mut run, mut was_lower) = (Class::Line, 0, false);
    let mut last = 0;
    for &byte in text.as_bytes() {
        let class = class(byte);
        let is_letter = matches!(class, Class::Vowel | Class::Consonant);
        let was_letter = matches!(before, Class::Vowel | Class::Consonant);
        let begins = is_letter && (!was_letter || (was_lower && byte.is_ascii_uppercase()));
        run = if class == before && !begins { run + 1 } else { 1 };
        let (likely_of, most_of) = match class {
            // A word is a token at least, and what is hard to pronounce is many.
            _ if begins && was_letter => (167, 150),
            // It takes in the blank or the mark in front.
            _ if begins && before == Class::Space => (81, 100),
            _ if begins && before == Class::Mark => (39, 100),
            _ if begins && before == Class::Digit => (108, 100),
            // The rest of a word with an accent.
            _ if begins && before == Class::Beyond => (40, 100),
            _ if begins => (159, 100),
            Class::Vowel => (2, 85),
            Class::Consonant if run == 1 => (0, 10),
            Class::Consonant if run == 2 => (0, 40),
            Class::Consonant => (56, 90),
            // Three digits are one; a blank before them is one by itself.
            Class::Digit if run == 1 && before == Class::Space => (186, 190),
            Class::Digit if run % 3 == 1 => (105, 105),
            Class::Space if run == 1 => (14, 15),
            Class::Space if run == 2 => (70, 85),
            Class::Space => (0, 8),
            Class::Tab if run > 1 => (0, 10),
            Class::Tab => (74, 105),
            // A mark takes in the end of its line; a word or a number does not.
            Class::Line if run > 1 => (0, 40),
            Class::Line if before == Class::Mark => (0, 70),
            Class::Line if was_letter || before == Class::Digit => (98, 100),
            Class::Line => (60, 70),
            // Seldom more than one of different ones is a token.
            Class::Mark if run == 1 => (89, 100),
            Class::Mark if byte == last => (5, 100),
            Class::Mark => (51, 100),
            // What ends a line with the byte that follows.
            Class::Control if byte == b'\r' => (0, 200),
            // Alone, and so is a blank before it.
            Class::Control => (120, 200),
            Class::Digit | Class::Beyond => (0, 0),
        };
        likely += likely_of;
        most += most_of;
        (before, last) = (class, byte);
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

/// What a character that is not ASCII is likely to be, and at most: a token a byte, and one where the
/// vocabulary knows the letter by itself. In hundredths of a token.
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
