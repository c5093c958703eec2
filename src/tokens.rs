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
/// What it is at most was measured, not proved: the weights are so that random letters, digits, marks,
/// encoded data and scripts of all sorts come out at 1.0 to 2.0 times their tokens, and at up to 3.5 times
/// what Chinese, Japanese and Korean are, where a rare character can be a token a byte. What people write
/// is about twice its tokens, hence half of it is what is likely. Bytes alone tell less: a token was 4.0
/// to 5.0 of them in source, 3.7 to 4.2 in prose, 2.2 to 3.5 in JSON, 4.2 in Chinese and Japanese, 7.9 in
/// Russian, 1.4 in base64.
pub fn estimate(text: &str) -> Estimate {
    // In hundredths of a token.
    let mut most = 0;
    let (mut before, mut run, mut was_lower) = (Class::Line, 0, false);
    for &byte in text.as_bytes() {
        let class = class(byte);
        let is_letter = matches!(class, Class::Vowel | Class::Consonant);
        let was_letter = matches!(before, Class::Vowel | Class::Consonant);
        let begins = is_letter && (!was_letter || (was_lower && byte.is_ascii_uppercase()));
        run = if class == before && !begins { run + 1 } else { 1 };
        most += match class {
            // A word is a token at least, and what is hard to pronounce is many.
            _ if begins && was_letter => 150,
            _ if begins => 100,
            Class::Vowel => 85,
            Class::Consonant if run == 1 => 10,
            Class::Consonant if run == 2 => 40,
            Class::Consonant => 90,
            // Three digits are one; a blank before them is one by itself.
            Class::Digit if run == 1 && before == Class::Space => 190,
            Class::Digit if run % 3 == 1 => 105,
            Class::Space if run == 1 => 15,
            Class::Space if run == 2 => 85,
            Class::Space => 8,
            Class::Tab if run > 1 => 10,
            Class::Line if run == 1 => 70,
            Class::Line => 40,
            // Seldom more than one is a token.
            Class::Mark => 100,
            Class::Tab => 105,
            // Alone, and so is a blank before it.
            Class::Control => 200,
            Class::Digit | Class::Beyond => 0,
        };
        before = class;
        was_lower = byte.is_ascii_lowercase();
    }
    let mut likely = most;
    if !text.is_ascii() {
        for c in text.chars().filter(|c| !c.is_ascii()) {
            let (likely_of, most_of) = weights_beyond(c);
            likely += likely_of;
            most += most_of;
        }
    }
    Estimate { likely: likely / 215, most: most / 100 + 8 }
}

/// What a character that is not ASCII is likely to be, by the same measure as all else, and at most: a
/// token a byte, and one where the vocabulary knows the letter by itself.
fn weights_beyond(c: char) -> (usize, usize) {
    let bytes = c.len_utf8() * 100;
    match c {
        '\u{3b1}'..='\u{3c9}'
        | '\u{410}'..='\u{44f}'
        | '\u{5d0}'..='\u{5ea}'
        | '\u{621}'..='\u{63a}'
        | '\u{640}'..='\u{654}' => (110, 110),
        '\u{370}'..='\u{6ff}' => (110, bytes),
        '\u{900}'..='\u{e7f}' | '\u{3040}'..='\u{30ff}' => (200, bytes),
        '\u{4e00}'..='\u{9fff}' => (230, bytes),
        '\u{ac00}'..='\u{d7a3}' => (260, bytes),
        _ => (bytes, bytes),
    }
}
