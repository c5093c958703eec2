//! An outbox in parts, for chat windows that take only so many characters at once. PURE.
//!
//! A part begins and ends with a line that tells the model what it is. Without these lines the parts,
//! one after another, are the outbox to the byte. They are cut where lines end; only what is longer
//! than a part is cut within.
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
    /// Of how many; None where a limit says how many there are.
    pub of: Option<usize>,
}

/// A part of an outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// What is to be sent; where there is one part only, the outbox as it is.
    pub text: String,
    /// Which it is, counted from 1.
    pub part: usize,
    /// How many there are.
    pub of: usize,
}

/// Why there is no such part.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NoPart {
    /// It is neither `K` nor `K/N`.
    #[error("it is not K, as in 2, nor K/N, as in 2/5")]
    Form,
    /// Parts are counted from 1 to the last.
    #[error("there is no part {part} of {of}; parts are counted from 1 to {of}")]
    Beyond {
        /// Which was asked for.
        part: usize,
        /// How many there are.
        of: usize,
    },
    /// So many parts would be shorter than is worth it.
    #[error(
        "the outbox has {length} characters, which fit in fewer than {of} parts; {most} at most"
    )]
    TooMany {
        /// How long the outbox is.
        length: usize,
        /// How many parts were asked for.
        of: usize,
        /// How many there can be.
        most: usize,
    },
    /// No part fits into so few characters.
    #[error(
        "a part of at most {limit} characters has no room beside the lines that tell what it is; {least} at least"
    )]
    Limit {
        /// What was asked for.
        limit: usize,
        /// What it must be.
        least: usize,
    },
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

/// The part of an outbox that is asked for. Where it is not said of how many, as many are made as it
/// takes for none to be longer than `limit` characters, its own lines included.
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
    let word = could_be_part(outbox).then(|| {
        let digest = blake3::hash(outbox.as_bytes());
        word(outbox, digest.to_string())
    });
    let frame = Frame { word };
    let ends = match asked.of {
        Some(of) => into(outbox, of)?,
        None => at_most(outbox, limit, &frame)?,
    };
    let (part, of) = (asked.part, ends.len());
    let beyond = NoPart::Beyond { part, of };
    let n = part.checked_sub(1).ok_or(beyond.clone())?;
    let end = *ends.get(n).ok_or(beyond)?;
    let begin = if n == 0 { 0 } else { ends[n - 1] };
    let text = frame.around(&outbox[begin..end], part, of);
    Ok(Part { text, part, of })
}

/// How many characters a text has.
pub fn length(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

/// The lines around parts, with the word that no line of the outbox holds, where they need one.
struct Frame {
    word: Option<String>,
}

impl Frame {
    /// A part with its lines.
    fn around(&self, piece: &str, part: usize, of: usize) -> String {
        if of == 1 {
            return piece.to_owned();
        }
        let word = self.word.as_ref().map_or(String::new(), |word| format!(" [{word}]"));
        let (begins, ends) = if part == of {
            ("this is the last part".to_owned(), "this was the last part, now answer".to_owned())
        } else {
            let wait = format!("wait for part {of} before you answer");
            (wait.clone(), wait)
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

    /// How many characters the lines of a part take at the most, where there are up to `of`.
    fn length(&self, of: usize) -> usize {
        // A piece without a newline has the longest lines.
        let inner = self.around("", of - 1, of).len();
        inner.max(self.around("", of, of).len())
    }
}

/// Where parts end of which none is longer than a limit.
fn at_most(text: &str, limit: usize, frame: &Frame) -> Result<Vec<usize>, NoPart> {
    if length(text) <= limit {
        return Ok(vec![text.len()]);
    }
    // How long the lines are depends on how many parts there are, and the other way round.
    let mut most = 9;
    loop {
        let lines = frame.length(most);
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
        if used + size > room {
            if used > 0 {
                ends.push(at);
                used = 0;
            }
            if size > room {
                for (n, c) in line.char_indices() {
                    if used + c.len_utf16() > room {
                        ends.push(at + n);
                        used = 0;
                    }
                    used += c.len_utf16();
                }
            } else {
                used = size;
            }
        } else {
            used += size;
        }
        at += line.len();
    }
    ends.push(text.len());
    ends
}

/// Where so many pieces end that are about equally long: each at the end of the line that is nearest
/// to where it would end by its length, but no nearer to where another one would.
fn into(text: &str, of: usize) -> Result<Vec<usize>, NoPart> {
    let length = length(text);
    let most = (length / LEAST).max(1);
    if of > most {
        return Err(NoPart::TooMany { length, of, most });
    }
    let mut ends = Vec::with_capacity(of);
    let mut chars = text.char_indices();
    // Where the next character begins: its offset, and how many characters stand before.
    let (mut at, mut before) = (0, 0);
    for n in 1..of {
        // In halves of characters times `of`, so that nothing is rounded.
        let (ideal, window) = (2 * length * n, length);
        let place = |before: usize| 2 * of * before;
        let (mut within, mut nearest) = (None, None::<(usize, usize)>);
        while place(before) <= ideal + window {
            let off = place(before).abs_diff(ideal);
            if text[..at].ends_with('\n')
                && off < window
                && nearest.is_none_or(|(best, _)| off < best)
            {
                nearest = Some((off, at));
            }
            if within.is_none() && place(before) >= ideal {
                within = Some(at);
            }
            let Some((_, c)) = chars.next() else { break };
            at += c.len_utf8();
            before += c.len_utf16();
        }
        ends.extend(nearest.map(|(_, at)| at).or(within));
    }
    ends.push(text.len());
    Ok(ends)
}

#[cfg(test)]
mod tests;
