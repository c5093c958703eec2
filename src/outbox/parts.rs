//! An outbox in parts, for chat windows that take only so many characters at once. Pure.
//!
//! A part begins and ends with a line that tells the model what it is. Without these lines the parts,
//! one after another, are the outbox to the byte. They are cut where lines end; only a line that is longer
//! than a part is cut itself.
//!
//! Characters are counted as web pages count them, in UTF-16 units: whoever counts otherwise counts
//! fewer.

use std::str::FromStr;

use thiserror::Error;

use super::boundaries::{could_be_part, word};

/// No part has less of an outbox, in characters: its own two lines are nearly as long.
const LEAST: usize = 200;

/// Which part is asked for, as `K` or `K/N`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// Counted from 1.
    pub part: usize,
    /// Of how many; None if a limit says how many there are.
    pub of: Option<usize>,
}

/// A part of an outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// What is to be sent; if there is only one part, the outbox as it is.
    pub text: String,
    /// Which it is, counted from 1.
    pub part: usize,
    /// How many there are.
    pub of: usize,
}

/// Why there is no such part.
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

/// The part of an outbox that is asked for. Unless it is said of how many, as many are made as it takes
/// for none to be longer than `limit` characters, its own lines included.
///
/// # Errors
/// There is none, or there cannot be so many.
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
    // Without the outbox's secret: what it holds cannot be written to hold the digest of all of it.
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

/// How many characters a text has.
pub fn length(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

/// A part with its lines. They contain a word that no line of the outbox contains, if they need one.
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

/// Where parts end of which none is longer than a limit.
fn ends_within(text: &str, limit: usize, word: &str) -> Result<Vec<usize>, NoPart> {
    if length(text) <= limit {
        return Ok(vec![text.len()]);
    }
    // How long the lines are depends on how many parts there are, and the other way round.
    let mut most = 9;
    loop {
        // A piece without a newline has the longest lines.
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

/// Where pieces end that hold as many lines as there is room for; of a longer line, as much of it.
fn filled(text: &str, room: usize) -> Vec<usize> {
    let mut ends = Vec::new();
    let (mut at, mut used) = (0, 0);
    for line in text.split_inclusive('\n') {
        let size = length(line);
        if used > 0 && used + size > room {
            ends.push(at);
            used = 0;
        }
        if size <= room {
            used += size;
        } else {
            for (n, c) in line.char_indices() {
                if used + c.len_utf16() > room {
                    ends.push(at + n);
                    used = 0;
                }
                used += c.len_utf16();
            }
        }
        at += line.len();
    }
    ends.push(text.len());
    ends
}

/// Where so many pieces end that are about equally long: each at the end of the line that is nearest
/// to where it would end by its length, unless the next or the last one would end nearer to that.
fn even_ends(text: &str, of: usize) -> Result<Vec<usize>, NoPart> {
    let length = length(text);
    let most = (length / LEAST).max(1);
    if of > most {
        return Err(NoPart::TooMany { length, of, most });
    }
    let mut ends = Vec::with_capacity(of);
    let mut chars = text.char_indices();
    // Where the next character begins: its offset, and how many characters are before it.
    let (mut at, mut before) = (0, 0);
    for n in 1..of {
        // In halves of characters times `of`, so that nothing is rounded.
        let (ideal, place) = (2 * length * n, |before: usize| 2 * of * before);
        let (mut within, mut nearest) = (None, (length, None));
        while place(before) <= ideal + length {
            let off = place(before).abs_diff(ideal);
            if off < nearest.0 && text[..at].ends_with('\n') {
                nearest = (off, Some(at));
            }
            if place(before) >= ideal {
                within = within.or(Some(at));
            }
            let Some((_, c)) = chars.next() else { break };
            at += c.len_utf8();
            before += c.len_utf16();
        }
        ends.extend(nearest.1.or(within));
    }
    ends.push(text.len());
    Ok(ends)
}

#[cfg(test)]
mod tests;
