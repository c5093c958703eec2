//! Line edits as a pure function of bytes. A file keeps its line endings. Its last line keeps or still lacks a newline.

use memchr::{memchr_iter, memmem};

use super::bom;
use super::lines::FileLines;
use crate::protocol::{Likeness, Replacement};

/// The most line numbers that are reported for a text that occurs more than once.
pub(super) const REPORTED: usize = 10;

/// A file after an edit.
#[derive(Debug, PartialEq, Eq)]
pub struct Edited {
    /// The new content.
    pub bytes: Vec<u8>,
    /// The replaced lines, each ending in a line feed.
    pub replaced: Vec<u8>,
    /// The number of inserted lines.
    pub inserted: usize,
    /// The number of lines of the file after the edit.
    pub total: usize,
}

/// Replaces lines `start` to `end` (from 1, both included) of `old` by the lines of `with`, each of which ends in `\n`.
/// The new lines get the line ending of the first replaced line. A byte order mark (U+FEFF) stays before the first
/// line.
///
/// # Errors
/// The range is not within the file. The error is the file's number of lines.
pub fn replace_lines(old: &[u8], start: usize, end: usize, with: &str) -> Result<Edited, usize> {
    let (mark, old) = bom::split(old);
    let with = if mark.is_empty() || start > 1 { with } else { bom::without(with) };
    let mut lines = FileLines::of(old);
    let total = lines.count();
    if start == 0 || start > end || end > total {
        return Err(total);
    }
    let (line, count) = (start - 1, end + 1 - start);
    let replaced = lines.part(line, count).to_vec();
    let inserted = lines.replace(line, count, with);
    let total = lines.count();
    Ok(Edited { bytes: [mark, &lines.into_bytes()].concat(), replaced, inserted, total })
}

/// Why nothing was replaced. `n` is the number of the replacement, from 0.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum EditError {
    /// The text to search for is empty.
    Empty { n: usize },
    /// The text does not occur.
    NotFound { n: usize },
    /// The text occurs more than once.
    NotUnique {
        n: usize,
        /// The lines (from 1) at which the text begins in the original file, up to [`REPORTED`] lines. None for a line
        /// that a previous edit inserted.
        lines: Vec<Option<usize>>,
        /// The number of occurrences counted.
        count: usize,
        /// Whether all occurrences were counted; false if counting more would have been too much work.
        all: bool,
        /// How similar the matched text had to be; None for an exact search.
        likeness: Option<Likeness>,
    },
    /// All edits together would read and move too many bytes.
    TooMuch,
}

/// Replaces the first occurrence of each text by another text. The replacements are made in order, each in the result
/// of the previous one. The texts are literal, not patterns. All replacements together may read, move and insert
/// `limit` bytes; only the last search may exceed that.
///
/// # Errors
/// A text is not found, or the limit is exceeded.
pub(super) fn replace_first(
    old: &[u8],
    replacements: &[Replacement],
    limit: u64,
) -> Result<Vec<u8>, EditError> {
    let mut bytes = old.to_vec();
    let mut left = limit;
    let mut spend = |n: usize| -> Result<(), EditError> {
        left = left.checked_sub(n as u64).ok_or(EditError::TooMuch)?;
        Ok(())
    };
    for (n, Replacement { old, new }) in replacements.iter().enumerate() {
        let found = memmem::find(&bytes, old.as_bytes()).filter(|_| !old.is_empty());
        let Some(at) = found else { return Err(EditError::NotFound { n }) };
        let end = at + old.len();
        spend(end)?;
        spend(new.len())?;
        let (after, new_end) = (bytes.len() - end, at + new.len());
        if end != new_end {
            spend(after)?;
            bytes.resize(bytes.len().max(new_end + after), 0);
            bytes.copy_within(end..end + after, new_end);
            bytes.truncate(new_end + after);
        }
        bytes[at..new_end].copy_from_slice(new.as_bytes());
    }
    Ok(bytes)
}

/// Counts the lines. A last line without a newline counts.
pub fn count_lines(bytes: &[u8]) -> usize {
    memchr_iter(b'\n', bytes).count() + usize::from(!bytes.is_empty() && !bytes.ends_with(b"\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(old: &str, start: usize, end: usize, with: &str, new: &str) {
        let edited = replace_lines(old.as_bytes(), start, end, with).unwrap();
        assert_eq!(String::from_utf8(edited.bytes.clone()).unwrap(), new);
        assert_eq!(edited.total, count_lines(new.as_bytes()), "{new:?}");
    }

    #[test]
    fn lines_are_replaced_by_more_fewer_or_none() {
        check("a\nb\nc\n", 2, 2, "x\ny\n", "a\nx\ny\nc\n");
        check("a\nb\nc\n", 1, 3, "x\n", "x\n");
        check("a\nb\nc\n", 2, 3, "", "a\n");
        check("a\n", 1, 1, "", "");
    }

    #[test]
    fn line_endings_are_kept() {
        check("a\r\nb\r\n", 1, 1, "x\ny\n", "x\r\ny\r\nb\r\n");
        check("a\r\nb", 2, 2, "x\ny\n", "a\r\nx\r\ny");
        check("a\r\nb\nc\n", 2, 2, "x\n", "a\r\nx\nc\n");
    }

    #[test]
    fn a_missing_final_newline_stays_missing() {
        check("a\nb", 2, 2, "x\n", "a\nx");
        check("a\nb", 1, 1, "x\n", "x\nb");
        check("a\nb", 2, 2, "", "a");
        check("a", 1, 1, "", "");
        check("a\nb", 2, 2, "\n", "a\n");
        check("a\nb\r\nc", 3, 3, "", "a\nb");
    }

    #[test]
    fn the_first_occurrence_of_each_text_is_replaced_literally() {
        let edit = |pairs: &[(&str, &str)]| {
            let replacements: Vec<Replacement> = pairs
                .iter()
                .map(|(old, new)| Replacement { old: (*old).into(), new: (*new).into() })
                .collect();
            replace_first(b"a.c abc abc", &replacements, 1000)
                .map(|new| String::from_utf8(new).unwrap())
        };
        let not_found = |n| Err(EditError::NotFound { n });
        assert_eq!(edit(&[("abc", "$& \\1 ")]).unwrap(), "a.c $& \\1  abc");
        assert_eq!(edit(&[("a.c", "x")]).unwrap(), "x abc abc");
        assert_eq!(edit(&[("abc", "y"), ("y ", "z"), ("abc", "")]).unwrap(), "a.c z");
        assert_eq!(edit(&[]).unwrap(), "a.c abc abc");
        assert_eq!(edit(&[("abc", "x"), ("", "y")]), not_found(1));
        assert_eq!(edit(&[("abd", "x")]), not_found(0));
        assert_eq!(edit(&[("abc", ""), ("abc", ""), ("abc", "")]), not_found(2));
    }

    #[test]
    fn what_all_edits_look_at_and_move_is_counted() {
        let replacement =
            |old: &str, new: &str| Replacement { old: old.to_owned(), new: new.to_owned() };
        // The bytes that each edit reads, inserts and moves in the result of the previous edit.
        let edits = [
            (replacement("b", "BB"), 2 + 2 + 4),
            (replacement("c", "C"), 4 + 1),
            (replacement("e", ""), 7),
        ];
        let all: Vec<Replacement> = edits.iter().map(|(edit, _)| edit.clone()).collect();
        let cost = edits.iter().map(|(_, cost)| cost).sum();
        assert_eq!(replace_first(b"abcd e", &all, cost).unwrap(), b"aBBCd ");
        for n in 0..cost {
            assert_eq!(replace_first(b"abcd e", &all, n), Err(EditError::TooMuch));
        }
        // A small file that becomes large by the first edit.
        let mut many = vec![replacement("a", &format!("{}z", "a".repeat(10_000)))];
        many.extend((0..4_000).map(|_| replacement("z", "zz")));
        assert_eq!(replace_first(b"a", &many, 4_000 * 10_000), Err(EditError::TooMuch));
        assert_eq!(replace_first(b"a", &many, 4_000 * 20_000).unwrap().len(), 14_001);
    }

    #[test]
    fn ranges_outside_the_file_tell_its_length() {
        for (start, end) in [(0, 1), (2, 1), (1, 4), (4, 4)] {
            assert_eq!(replace_lines(b"a\nb\nc\n", start, end, "x\n"), Err(3));
        }
        assert_eq!(replace_lines(b"", 1, 1, "x\n"), Err(0));
    }
}
