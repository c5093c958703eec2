//! Edits by search, as a pure function of bytes: whole lines that occur once become others. Sought to
//! the letter, then without white space at the ends of lines, then with punctuation that looks alike
//! taken for the same; never with less care. Line endings are no part of what is sought: a file keeps
//! its own, and a last line without one stays so.

use memchr::{memchr_iter, memmem};

use super::bom;
use super::edit::{TOLD, Unfound};
use super::excerpt::Place;
use super::lines::{Lines, without_cr};
use crate::protocol::{FuzzyMatch, Likeness, Replacement};

/// As often the bytes of a file are compared while it is counted how often a text stands there.
const WORK: usize = 8;
/// So many places are kept of those that were changed.
const PLACES: usize = 64;

/// A file after its edits.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Searched {
    /// All of its bytes.
    pub(super) bytes: Vec<u8>,
    /// Where lines were put in or taken out, in what it is now; of many edits the first.
    pub(super) places: Vec<Place>,
    /// How many places that leaves out.
    pub(super) more: usize,
    /// What was not found to the letter, in order.
    pub(super) loosely: Vec<FuzzyMatch>,
}

/// Replaces each text, in order, in what the ones before it made: all or none. At most about `limit`
/// bytes are looked at, moved and put in by all of them together.
///
/// # Errors
/// Where a text does not stand there once, or that is too little.
pub(super) fn replace_once(
    old: &[u8],
    replacements: &[Replacement],
    limit: u64,
) -> Result<Searched, Unfound> {
    let mut left = limit;
    let mut spend = |n: usize| -> Result<(), Unfound> {
        left = left.checked_sub(n as u64).ok_or(Unfound::TooMuch)?;
        Ok(())
    };
    let (mark, old) = bom::split(old);
    let mut lines = Lines::of(old);
    let mut splices: Vec<(usize, usize, usize)> = Vec::new();
    let mut changed = EditedLines::default();
    let mut loosely = Vec::new();
    for (n, Replacement { old, new }) in replacements.iter().enumerate() {
        if old.is_empty() {
            return Err(Unfound::Empty { n });
        }
        let mut count = memchr_iter(b'\n', &sought(old)).count() - 1;
        let (mut likeness, mut found) = lines.find_alike(old, new.len(), &mut spend)?;
        // With the mark of the file before it only its first line can be meant.
        let bare = bom::without(old);
        if found.lines.is_empty() && !mark.is_empty() && bare.len() < old.len() && !bare.is_empty()
        {
            let (how, first) = lines.find_alike(bare, new.len(), &mut spend)?;
            if first.lines[..] == [0] {
                (likeness, found) = (how, first);
                count = memchr_iter(b'\n', &sought(bare)).count() - 1;
            }
        }
        let line = match found.lines[..] {
            [] => return Err(Unfound::Nowhere { n }),
            [line] => line,
            _ => {
                let origin = |line: &usize| before(&splices, *line).map(|line| line + 1);
                let Occurrences { lines, count, all } = found;
                let lines = lines.iter().map(origin).collect();
                return Err(Unfound::Often { n, lines, count, all, likeness });
            }
        };
        if let Some(likeness) = likeness {
            loosely.push(FuzzyMatch { line: line + 1, likeness });
        }
        let new = if line == 0 && !mark.is_empty() { bom::without(new) } else { new };
        let put = lines.replace(line, count, new);
        splices.push((line, count, put));
        changed.add(line, count, put);
    }
    let EditedLines { places, more } = changed;
    let places = places.into_iter().map(|(line, count)| (line + 1, count)).collect();
    let bytes = [mark, &lines.into_bytes()].concat();
    Ok(Searched { bytes, places, more, loosely })
}

/// The line that the only occurrence of a text begins on, from 1, found to the letter.
pub(super) fn line_of(bytes: &[u8], text: &str) -> Option<usize> {
    let (mark, bytes) = bom::split(bytes);
    let lines = Lines::of(bytes);
    let only = |text: &str| match lines.find(&sought(text)).lines[..] {
        [line] if !text.is_empty() => Some(line + 1),
        _ => None,
    };
    let first = || only(bom::without(text)).filter(|line| *line == 1 && !mark.is_empty());
    only(text).or_else(first)
}

/// Where a text was found.
struct Occurrences {
    /// The first [`TOLD`] lines that it begins on, from 0.
    lines: Vec<usize>,
    /// How often it stands there, as far as that was counted.
    count: usize,
    /// Whether it was counted to the end.
    all: bool,
}

impl Lines {
    /// Where a text stands that opens with a line feed and ends in one.
    fn find(&self, sought: &[u8]) -> Occurrences {
        Self::find_in(&self.text, sought)
    }

    /// The same of a text as it was sent, and how loosely it was taken where it does not stand there to
    /// the letter; `more` bytes are looked at with it.
    fn find_alike(
        &self,
        old: &str,
        more: usize,
        spend: &mut impl FnMut(usize) -> Result<(), Unfound>,
    ) -> Result<(Option<Likeness>, Occurrences), Unfound> {
        spend(self.text.len() + old.len() + more)?;
        let sought = sought(old);
        let mut found = (None, self.find(&sought));
        for likeness in [Likeness::TrailingBlanks, Likeness::Punctuation] {
            if found.1.lines.is_empty() {
                spend(2 * self.text.len() + old.len())?;
                let alike =
                    Self::find_in(&folded(&self.text, likeness), &folded(&sought, likeness));
                found = (Some(likeness), alike);
            }
        }
        Ok(found)
    }

    fn find_in(text: &[u8], sought: &[u8]) -> Occurrences {
        let finder = memmem::Finder::new(sought);
        let (mut lines, mut count, mut at, mut line) = (Vec::new(), 0, 0, 0);
        while let Some(next) = finder.find(&text[at..]) {
            // Where they lie over each other, each is compared whole.
            if count > TOLD && count * sought.len() > WORK * text.len() {
                return Occurrences { lines, count, all: false };
            }
            count += 1;
            if lines.len() < TOLD {
                line += memchr_iter(b'\n', &text[at..at + next]).count();
                lines.push(line);
                line += 1;
            }
            // Others may begin within this one.
            at += next + 1;
        }
        Occurrences { lines, count, all: true }
    }
}

/// A text as it is sought in [`Lines`].
fn sought(text: &str) -> Vec<u8> {
    let mut sought = format!("\n{}", without_cr(text)).into_bytes();
    if !sought.ends_with(b"\n") || sought.len() == 1 {
        sought.push(b'\n');
    }
    sought
}

/// Each line without what is left out of account.
fn folded(text: &[u8], likeness: Likeness) -> Vec<u8> {
    let mut folded = Vec::with_capacity(text.len());
    for line in text.split_inclusive(|b| *b == b'\n') {
        let line = &line[..line.len() - 1];
        match std::str::from_utf8(line) {
            Err(_) => folded.extend_from_slice(line.trim_ascii_end()),
            Ok(line) if likeness == Likeness::TrailingBlanks || line.is_ascii() => {
                folded.extend_from_slice(line.trim_end().as_bytes());
            }
            Ok(line) => {
                let mut buffer = [0; 4];
                for c in line.trim_end().chars() {
                    let plain = plain(c).unwrap_or_else(|| &*c.encode_utf8(&mut buffer));
                    folded.extend_from_slice(plain.as_bytes());
                }
            }
        }
        folded.push(b'\n');
    }
    folded
}

/// The plain form of punctuation that looks like it.
fn plain(c: char) -> Option<&'static str> {
    const WIDE: &str = "!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~";
    Some(match c {
        '\u{2018}' | '\u{2019}' | '\u{201b}' | '\u{2032}' | '\u{2bc}' => "'",
        '\u{201c}' | '\u{201d}' | '\u{201f}' | '\u{2033}' => "\"",
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe58}' | '\u{fe63}' => "-",
        '\u{2026}' => "...",
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => " ",
        '\u{ff01}'..='\u{ff5e}' => {
            let at = (u32::from(c) - 0xff01) as usize;
            WIDE.get(at..=at).filter(|plain| !plain.contains(char::is_alphanumeric))?
        }
        _ => return None,
    })
}

/// Which line of the file a line was before these edits; None for one that they put in.
fn before(splices: &[(usize, usize, usize)], mut line: usize) -> Option<usize> {
    for (at, taken, put) in splices.iter().rev() {
        if line >= at + put {
            line = line - put + taken;
        } else if line >= *at {
            return None;
        }
    }
    Some(line)
}

/// Where lines were changed, as line (from 0) and number of lines.
#[derive(Default)]
struct EditedLines {
    places: Vec<Place>,
    more: usize,
}

impl EditedLines {
    fn add(&mut self, line: usize, taken: usize, put: usize) {
        let (mut first, mut end) = (line, line + put);
        self.places.retain_mut(|(at, count)| {
            if *at >= line + taken {
                *at = *at - taken + put;
            } else if *at + *count > line {
                first = first.min(*at);
                end = end.max((*at + *count).max(line + taken) - taken + put);
                return false;
            }
            true
        });
        if self.places.len() < PLACES {
            self.places.push((first, end - first));
        } else {
            self.more += 1;
        }
    }
}

#[cfg(test)]
mod tests;
