//! Splits an outbox into parts for chat windows that take only short messages. Pure.
//!
//! The first and last line of a part tell the model what it is. Without these lines, the parts together are the outbox,
//! byte for byte. A part ends at the end of a line, unless the line is longer than a part.
//!
//! Characters are UTF-16 units, as web pages count them. Other ways of counting give fewer.

use std::str::FromStr;

use thiserror::Error;

use super::boundaries::{could_be_part, word};

/// The fewest characters of an outbox in a part, whose own two lines are about as long.
const LEAST: usize = 200;

/// A requested part: `K` or `K/N`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// Its number, from 1.
    pub part: usize,
    /// The number of parts; None if the limit decides.
    pub of: Option<usize>,
}

/// A part of an outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The text to send. A single part is the outbox itself.
    pub text: String,
    /// Its number, from 1.
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

impl FromStr for Asked {
    type Err = NoPart;

    fn from_str(text: &str) -> Result<Self, NoPart> {
        let number = |text: &str| text.trim().parse().map_err(|_| NoPart::Form);
        let (part, of) = match text.split_once('/') {
            Some((part, of)) => (number(part)?, Some(number(of)?)),
            None => (number(text)?, None),
        };
        match of {
            Some(of) if part == 0 || part > of => Err(NoPart::Beyond { part, of }),
            _ => Ok(Self { part, of }),
        }
    }
}

/// Returns the requested part of an outbox. Without a number of parts, each has at most `limit` characters, including
/// its own lines.
///
/// # Errors
/// The part does not exist, or the outbox cannot be split like that.
///
/// # Examples
/// ```
/// use deaddrop::outbox::parts::part;
/// let outbox = "a line of an outbox\n".repeat(100);
/// let second = part(&outbox, "2/2".parse().unwrap(), 30_000).unwrap();
/// assert!(second.text.starts_with("=== PART 2 of 2 of one message: "));
/// assert!(second.text.ends_with(": this was the last part, now answer ===\n"));
/// let whole = part(&outbox, "1".parse().unwrap(), 30_000).unwrap();
/// assert_eq!((whole.text, whole.of), (outbox, 1));
/// ```
pub fn part(outbox: &str, asked: Asked, limit: usize) -> Result<Part, NoPart> {
    // Nobody can write a text that contains its own digest.
    let word = could_be_part(outbox)
        .then(|| format!(" [{}]", word(outbox, blake3::hash(outbox.as_bytes()).to_string())));
    let word = word.unwrap_or_default();
    let ends = match asked.of {
        Some(of) => even_ends(outbox, of)?,
        None => ends_within(outbox, limit, &word)?,
    };
    let (part, of) = (asked.part, ends.len());
    let n = part.checked_sub(1).filter(|n| *n < of).ok_or(NoPart::Beyond { part, of })?;
    let begin = if n == 0 { 0 } else { ends[n - 1] };
    let text = framed(&outbox[begin..ends[n]], part, of, &word);
    Ok(Part { text, part, of })
}

/// The number of characters of a text.
pub fn length(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

/// A part with its two lines, which contain `word`.
fn framed(piece: &str, part: usize, of: usize, word: &str) -> String {
    if of == 1 {
        return piece.to_owned();
    }
    let wait = format!("wait for part {of} before you answer");
    let (begins, ends) = if part == of {
        ("this is the last part", "this was the last part, now answer")
    } else {
        (wait.as_str(), wait.as_str())
    };
    let (newline, goes_on) = match (piece.ends_with('\n'), part == of) {
        (true, _) => ("", String::new()),
        (false, true) => ("\n", ", without a newline before this line".to_owned()),
        (false, false) => ("\n", format!(", its last line goes on in part {}", part + 1)),
    };
    format!(
        "=== PART {part} of {of} of one message{word}: {begins} ===\n{piece}{newline}=== END OF PART {part} of {of}{word}{goes_on}: {ends} ===\n"
    )
}

/// The ends of parts that have at most `limit` characters.
fn ends_within(text: &str, limit: usize, word: &str) -> Result<Vec<usize>, NoPart> {
    if length(text) <= limit {
        return Ok(vec![text.len()]);
    }
    // The length of the two lines depends on the number of parts, and vice versa.
    let mut most = 9;
    loop {
        let lines = [most - 1, most].map(|part| framed("", part, most, word).len());
        let lines = lines[0].max(lines[1]);
        let least = lines + LEAST;
        if limit < least {
            return Err(NoPart::Limit { limit, least });
        }
        let ends = filled(text, limit - lines);
        if ends.len() <= most {
            return Ok(ends);
        }
        most = most * 10 + 9;
    }
}

/// The ends of pieces that contain as many lines as fit, or as much of a longer line.
fn filled(text: &str, room: usize) -> Vec<usize> {
    let (mut ends, mut at, mut used) = (Vec::new(), 0, 0);
    for line in text.split_inclusive('\n') {
        if used > 0 && used + length(line) > room {
            ends.push(at);
            used = 0;
        }
        for c in line.chars() {
            if used + c.len_utf16() > room {
                ends.push(at);
                used = 0;
            }
            used += c.len_utf16();
            at += c.len_utf8();
        }
    }
    ends.push(text.len());
    ends
}

/// The ends of `of` pieces of about the same length: each at the nearest end of a line, or exactly where it is due if
/// no line ends within half a piece.
fn even_ends(text: &str, of: usize) -> Result<Vec<usize>, NoPart> {
    let length = length(text);
    let most = (length / LEAST).max(1);
    if of > most {
        return Err(NoPart::TooMany { length, of, most });
    }
    // For each line end: how many characters precede it, and its offset.
    let line_ends: Vec<(usize, usize)> = text
        .split_inclusive('\n')
        .scan((0, 0), |(before, at), line| {
            (*before, *at) = (*before + self::length(line), *at + line.len());
            Some((*before, *at))
        })
        .collect();
    let end = |n: usize| {
        let ideal = length * n / of;
        let next = line_ends.partition_point(|(before, _)| *before < ideal);
        let nearby = line_ends[next.saturating_sub(1)..].iter().take(2);
        match nearby.min_by_key(|(before, _)| before.abs_diff(ideal)) {
            Some((before, at)) if before.abs_diff(ideal) * 2 * of < length => *at,
            _ => offset(text, ideal),
        }
    };
    Ok((1..of).map(end).chain([text.len()]).collect())
}

/// The offset of a character.
fn offset(text: &str, characters: usize) -> usize {
    let mut left = characters;
    let fits = |c: &char| left.checked_sub(c.len_utf16()).map(|less| left = less).is_some();
    text.chars().take_while(fits).map(char::len_utf8).sum()
}

#[cfg(test)]
mod tests;
