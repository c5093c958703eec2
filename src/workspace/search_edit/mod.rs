//! Edits by search, as a pure function of bytes: replaces whole lines that occur exactly once. The search is exact at
//! first. If that fails, it ignores white space at the ends of lines, and then also treats similar punctuation as
//! equal. Line endings are not compared: a file keeps its own, and a last line without one stays without one.

use memchr::{memchr_iter, memmem};

use super::bom;
use super::edit::{EditError, REPORTED};
use super::excerpt::Place;
use super::lines::{FileLines, without_cr};
use crate::protocol::{FuzzyMatch, Likeness, Replacement};

/// The most work for counting the occurrences of a text, as a multiple of the file's size.
const COUNT_WORK: usize = 8;
/// The most changed places that are recorded.
const MAX_PLACES: usize = 64;

/// A file after its edits.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SearchEdited {
    pub(super) bytes: Vec<u8>,
    /// The first changed places, in the new content.
    pub(super) places: Vec<Place>,
    /// How many more places were changed.
    pub(super) more: usize,
    /// The texts that did not match exactly, in order.
    pub(super) fuzzy_matches: Vec<FuzzyMatch>,
}

/// Makes all replacements, each in the result of the previous one, or makes none. All together may read, move and
/// insert about `limit` bytes.
///
/// # Errors
/// A text does not occur exactly once, or the limit is exceeded.
pub(super) fn replace_once(
    old: &[u8],
    replacements: &[Replacement],
    limit: u64,
) -> Result<SearchEdited, EditError> {
    let mut left = limit;
    let mut spend = |n: usize| -> Result<(), EditError> {
        left = left.checked_sub(n as u64).ok_or(EditError::TooMuch)?;
        Ok(())
    };
    let (mark, old) = bom::split(old);
    let mut lines = FileLines::of(old);
    let mut splices: Vec<(usize, usize, usize)> = Vec::new();
    let mut changed = EditedLines::default();
    let mut fuzzy_matches = Vec::new();
    for (n, Replacement { old, new }) in replacements.iter().enumerate() {
        if old.is_empty() {
            return Err(EditError::Empty { n });
        }
        let mut count = memchr_iter(b'\n', &as_lines(old)).count() - 1;
        let (mut likeness, mut found) = lines.find_similar(old, new.len(), &mut spend)?;
        // A text with a byte order mark can only match at the first line.
        let bare = bom::without(old);
        if found.lines.is_empty() && !mark.is_empty() && bare.len() < old.len() && !bare.is_empty()
        {
            let (first_likeness, first) = lines.find_similar(bare, new.len(), &mut spend)?;
            if first.lines[..] == [0] {
                (likeness, found) = (first_likeness, first);
                count = memchr_iter(b'\n', &as_lines(bare)).count() - 1;
            }
        }
        let line = match found.lines[..] {
            [] => return Err(EditError::NotFound { n }),
            [line] => line,
            _ => {
                let origin = |line: &usize| original_line(&splices, *line).map(|line| line + 1);
                let Occurrences { lines, count, all } = found;
                let lines = lines.iter().map(origin).collect();
                return Err(EditError::NotUnique { n, lines, count, all, likeness });
            }
        };
        if let Some(likeness) = likeness {
            fuzzy_matches.push(FuzzyMatch { line: line + 1, likeness });
        }
        let new = if line == 0 && !mark.is_empty() { bom::without(new) } else { new };
        let inserted = lines.replace(line, count, new);
        splices.push((line, count, inserted));
        changed.add(line, count, inserted);
    }
    let EditedLines { places, more } = changed;
    let places = places.into_iter().map(|(line, count)| (line + 1, count)).collect();
    let bytes = [mark, &lines.into_bytes()].concat();
    Ok(SearchEdited { bytes, places, more, fuzzy_matches })
}

/// The line, from 1, at which the only exact occurrence of a text begins.
pub(super) fn line_of(bytes: &[u8], text: &str) -> Option<usize> {
    let (mark, bytes) = bom::split(bytes);
    let lines = FileLines::of(bytes);
    let only = |text: &str| match lines.find(&as_lines(text)).lines[..] {
        [line] if !text.is_empty() => Some(line + 1),
        _ => None,
    };
    let first = || only(bom::without(text)).filter(|line| *line == 1 && !mark.is_empty());
    only(text).or_else(first)
}

/// The occurrences of a text.
struct Occurrences {
    /// The first lines (from 0) at which the text begins, up to [`REPORTED`] lines.
    lines: Vec<usize>,
    /// How many occurrences were counted.
    count: usize,
    /// Whether all occurrences were counted.
    all: bool,
}

impl FileLines {
    /// Finds a text that begins and ends with a line feed.
    fn find(&self, wanted: &[u8]) -> Occurrences {
        Self::find_in(&self.text, wanted)
    }

    /// Finds a text as it was sent: exactly, otherwise with the strictest likeness that matches. `more` bytes of work
    /// are counted in addition to the search.
    fn find_similar(
        &self,
        old: &str,
        more: usize,
        spend: &mut impl FnMut(usize) -> Result<(), EditError>,
    ) -> Result<(Option<Likeness>, Occurrences), EditError> {
        spend(self.text.len() + old.len() + more)?;
        let wanted = as_lines(old);
        let mut found = (None, self.find(&wanted));
        for likeness in [Likeness::TrailingBlanks, Likeness::Punctuation] {
            if found.1.lines.is_empty() {
                spend(2 * self.text.len() + old.len())?;
                let similar =
                    Self::find_in(&folded(&self.text, likeness), &folded(&wanted, likeness));
                found = (Some(likeness), similar);
            }
        }
        Ok(found)
    }

    fn find_in(text: &[u8], wanted: &[u8]) -> Occurrences {
        let finder = memmem::Finder::new(wanted);
        let (mut lines, mut count, mut at, mut line) = (Vec::new(), 0, 0, 0);
        while let Some(next) = finder.find(&text[at..]) {
            // Each overlapping occurrence takes a complete comparison.
            if count > REPORTED && count * wanted.len() > COUNT_WORK * text.len() {
                return Occurrences { lines, count, all: false };
            }
            count += 1;
            if lines.len() < REPORTED {
                line += memchr_iter(b'\n', &text[at..at + next]).count();
                lines.push(line);
                line += 1;
            }
            // Another occurrence may begin within this one.
            at += next + 1;
        }
        Occurrences { lines, count, all: true }
    }
}

/// Converts a text to the form of [`FileLines::text`]: a line feed, then all lines, each ending in a line feed.
fn as_lines(text: &str) -> Vec<u8> {
    let mut lines = format!("\n{}", without_cr(text)).into_bytes();
    if !lines.ends_with(b"\n") || lines.len() == 1 {
        lines.push(b'\n');
    }
    lines
}

/// Normalises each line, so that similar lines become equal.
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

/// The ASCII form of a similar punctuation character.
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

/// The number that a line had before these edits; None if an edit inserted the line.
fn original_line(splices: &[(usize, usize, usize)], mut line: usize) -> Option<usize> {
    for (at, removed, inserted) in splices.iter().rev() {
        if line >= at + inserted {
            line = line - inserted + removed;
        } else if line >= *at {
            return None;
        }
    }
    Some(line)
}

/// The changed places, each as its first line (from 0) and its number of lines.
#[derive(Default)]
struct EditedLines {
    places: Vec<Place>,
    more: usize,
}

impl EditedLines {
    fn add(&mut self, line: usize, removed: usize, inserted: usize) {
        let (mut first, mut end) = (line, line + inserted);
        self.places.retain_mut(|(at, count)| {
            if *at >= line + removed {
                *at = *at - removed + inserted;
            } else if *at + *count > line {
                first = first.min(*at);
                end = end.max((*at + *count).max(line + removed) - removed + inserted);
                return false;
            }
            true
        });
        if self.places.len() < MAX_PLACES {
            self.places.push((first, end - first));
        } else {
            self.more += 1;
        }
    }
}

#[cfg(test)]
mod tests;
