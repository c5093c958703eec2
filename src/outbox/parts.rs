//! Splits an outbox into parts for chats that accept only short messages. Pure.
//!
//! The first and last line of a part tell the model which part it is. Without these lines, the joined parts are the
//! outbox, byte for byte. A part ends at the end of a line, unless the line is longer than a part.
//!
//! Characters are UTF-16 units, as web pages count them. Other ways of counting give smaller numbers.

use std::str::FromStr;

use thiserror::Error;

use super::boundaries::{could_be_part, word};

/// The fewest characters of an outbox in a part. The two lines around them are about as long.
const LEAST: usize = 200;
/// The most parts of an outbox. The two lines of a part have room for a number this long.
const MOST: usize = 999_999;

/// A requested part: `K` or `K/N`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartNumber {
    /// The number of the part, from 1.
    pub part: usize,
    /// The number of parts; None if it follows from the limit.
    pub of: Option<usize>,
}

/// A part of an outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxPart {
    /// The text to send. A single part is the outbox itself.
    pub text: String,
    /// The number of the part, from 1.
    pub part: usize,
    /// The number of parts.
    pub of: usize,
}

/// Why a part does not exist.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum NoPart {
    #[error("it is not K, as in 2, nor K/N, as in 2/5")]
    Form,
    #[error("there is no part {part} of {of}; parts are counted from 1 to {of}")]
    Beyond { part: usize, of: usize },
    #[error(
        "the outbox has {length} characters, which fit in fewer than {of} parts; {most} at most"
    )]
    TooMany { length: usize, of: usize, most: usize },
    #[error(
        "a part of at most {limit} characters has no room beside the lines that tell what it is; {least} at least"
    )]
    Limit { limit: usize, least: usize },
}

impl FromStr for PartNumber {
    type Err = NoPart;

    fn from_str(text: &str) -> Result<Self, NoPart> {
        let number = |text: &str| text.trim().parse().map_err(|_| NoPart::Form);
        let Some((part, of)) = text.split_once('/') else {
            return Ok(Self { part: number(text)?, of: None });
        };
        let (part, of) = (number(part)?, number(of)?);
        let is_one = (1..=of).contains(&part);
        if is_one { Ok(Self { part, of: Some(of) }) } else { Err(NoPart::Beyond { part, of }) }
    }
}

/// Returns a part of an outbox. If the number of parts is not given, a part has at most `limit` characters in all.
///
/// # Errors
/// The part does not exist, or the outbox cannot be split this way.
pub fn part(outbox: &str, asked: PartNumber, limit: usize) -> Result<OutboxPart, NoPart> {
    // A text cannot contain its own digest.
    let word = could_be_part(outbox)
        .then(|| format!(" [{}]", word(outbox, blake3::hash(outbox.as_bytes()).to_string())));
    let word = word.unwrap_or_default();
    let part = asked.part;
    let (of, piece) = match asked.of {
        Some(of) => (of, even_piece(outbox, part, of)?),
        None => {
            let pieces = pieces_within(outbox, limit, &word)?;
            (pieces.len(), part.checked_sub(1).and_then(|n| pieces.get(n).copied()))
        }
    };
    let piece = piece.ok_or(NoPart::Beyond { part, of })?;
    Ok(OutboxPart { text: framed(piece, part, of, &word), part, of })
}

/// The number of characters of a text.
pub fn length(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

/// A part between its first and last line, which contain `word`. A single part has no such lines.
fn framed(piece: &str, part: usize, of: usize, word: &str) -> String {
    if of == 1 {
        return piece.to_owned();
    }
    let wait = format!("wait for part {of} before you answer");
    let last = ("this is the last part", "this was the last part, now answer");
    let (begins, ends) = if part == of { last } else { (&*wait, &*wait) };
    let (newline, goes_on) = match (piece.ends_with('\n'), part == of) {
        (true, _) => ("", String::new()),
        (false, true) => ("\n", ", without a newline before this line".to_owned()),
        (false, false) => ("\n", format!(", its last line goes on in part {}", part + 1)),
    };
    format!(
        "=== PART {part} of {of} of one message{word}: {begins} ===\n{piece}{newline}=== END OF PART {part} of {of}{word}{goes_on}: {ends} ===\n"
    )
}

/// Splits a text so that each part, with its two lines, has at most `limit` characters.
fn pieces_within<'t>(text: &'t str, limit: usize, word: &str) -> Result<Vec<&'t str>, NoPart> {
    if length(text) <= limit {
        return Ok(vec![text]);
    }
    let lines = |part| framed("", part, MOST, word).len();
    let lines = lines(MOST - 1).max(lines(MOST));
    let least = lines + LEAST;
    if limit < least {
        return Err(NoPart::Limit { limit, least });
    }
    Ok(filled(text, limit - lines))
}

/// Splits a text into pieces with as many whole lines as fit. A longer line is split.
fn filled(text: &str, room: usize) -> Vec<&str> {
    let (mut pieces, mut begin, mut at, mut used) = (Vec::new(), 0, 0, 0);
    for line in text.split_inclusive('\n') {
        let mut is_full = used > 0 && used + length(line) > room;
        for c in line.chars() {
            if is_full || used + c.len_utf16() > room {
                pieces.push(&text[begin..at]);
                (begin, used, is_full) = (at, 0, false);
            }
            used += c.len_utf16();
            at += c.len_utf8();
        }
    }
    pieces.push(&text[begin..]);
    pieces
}

/// Piece `n` of `of` pieces of about the same length; None if `n` is out of range.
fn even_piece(text: &str, n: usize, of: usize) -> Result<Option<&str>, NoPart> {
    let length = length(text);
    let most = (length / LEAST).max(1);
    if of > most {
        return Err(NoPart::TooMany { length, of, most });
    }
    // A piece ends after the last line before its ideal end. If the next line has more than half a piece before the
    // ideal end, the piece ends exactly there.
    let end = |n: usize| {
        let mut left = length * n / of;
        let fits = |c: &char| left.checked_sub(c.len_utf16()).map(|less| left = less).is_some();
        let due = text.chars().take_while(fits).map(char::len_utf8).sum();
        let line = text[..due].rfind('\n').map_or(0, |at| at + 1);
        let is_near = self::length(&text[line..due]) * 2 * of < length;
        if is_near && n < of { line } else { due }
    };
    Ok((1..=of).contains(&n).then(|| &text[end(n - 1)..end(n)]))
}

#[cfg(test)]
mod tests;
