//! Finds the lines of a file that are most similar to a text that it does not contain. Pure.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use memchr::{memchr_iter, memmem};

use super::excerpt::Place;
use crate::text::is_hazard;

/// The most lines that are shown as JSON.
const MAX_JSON_LINES: usize = 10;
/// The most equal lines of the searched text that are considered.
const MAX_EQUAL: usize = 4;
/// The most candidate places that get votes.
const MAX_CANDIDATES: usize = 100_000;
/// The size of the largest file whose words are compared, in bytes.
const MAX_WORD_BYTES: usize = 4 << 20;

/// The place in `bytes` that is most similar to `text`, which consists of whole lines. A place that differs only in
/// white space is preferred, then the place with most of the text's lines, then the line with most of its words. None
/// if nothing is similar.
pub(super) fn closest(bytes: &[u8], text: &str) -> Option<Place> {
    let bytes = String::from_utf8_lossy(bytes);
    if let Some(found) = find_ignoring_blanks(&bytes, text) {
        let lines = |part: &str| memchr_iter(b'\n', part.as_bytes()).count();
        let first = lines(&bytes[..found.start]) + 1;
        return Some((first, lines(bytes[found].trim_end_matches('\n')) + 1));
    }
    let wanted: Vec<String> = text.lines().map(without_blanks).collect();
    let begin = by_lines(&bytes, &wanted).or_else(|| by_words(&bytes, text))?;
    // The text may have to begin before the beginning of the file.
    let first = begin.max(0).unsigned_abs();
    let count = wanted.len() - begin.min(0).unsigned_abs().min(wanted.len() - 1);
    Some((first + 1, count))
}

/// Whether the lines of `bytes`, starting at line `first`, equal those of `text`, ignoring white space.
pub(super) fn equals_ignoring_blanks(bytes: &[u8], text: &str, first: usize) -> bool {
    let bytes = String::from_utf8_lossy(bytes);
    let mut there = bytes.lines().skip(first.saturating_sub(1));
    let mut lines = text.lines();
    lines
        .all(|line| there.next().is_some_and(|found| without_blanks(found) == without_blanks(line)))
}

/// Up to `lines` lines, starting at line `first`, as a JSON string. All white space except U+0020 is escaped.
pub(super) fn as_json(bytes: &[u8], first: usize, lines: usize) -> String {
    let text = String::from_utf8_lossy(bytes);
    let part: String =
        text.split_inclusive('\n').skip(first - 1).take(lines.min(MAX_JSON_LINES)).collect();
    let json = serde_json::Value::from(part).to_string();
    let escaped = |c: char| match c {
        ' ' => " ".to_owned(),
        c if is_blank(c) => {
            c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect()
        }
        c => c.to_string(),
    };
    json.chars().map(escaped).collect()
}

/// The line, from 0, at which the text would have to begin so that most of its lines match.
fn by_lines(bytes: &str, wanted: &[String]) -> Option<isize> {
    let mut at: HashMap<&str, Vec<usize>> = HashMap::new();
    for (n, line) in wanted.iter().enumerate() {
        // Lines that contain only brackets would match in too many places.
        if line.contains(char::is_alphanumeric) {
            let places = at.entry(line).or_default();
            if places.len() < MAX_EQUAL {
                places.push(n);
            }
        }
    }
    let mut votes: HashMap<isize, usize> = HashMap::new();
    for (n, line) in bytes.lines().enumerate() {
        for place in at.get(&*without_blanks(line)).into_iter().flatten() {
            let begin = n.cast_signed() - place.cast_signed();
            if votes.len() < MAX_CANDIDATES || votes.contains_key(&begin) {
                *votes.entry(begin).or_default() += 1;
            }
        }
    }
    let most = votes.values().max()?;
    votes.iter().filter(|(_, count)| *count == most).map(|(begin, _)| *begin).min()
}

/// The line, from 0, at which the text would have to begin so that its longest line matches the line of the file that
/// shares the most words with it. The two lines must share at least half of their words.
fn by_words(bytes: &str, text: &str) -> Option<isize> {
    if bytes.len() > MAX_WORD_BYTES {
        return None;
    }
    let (place, line) = text.lines().enumerate().max_by_key(|(_, line)| line.trim().len())?;
    let wanted: HashSet<&str> = words(line).collect();
    let mut best: Option<(usize, usize, usize)> = None;
    for (n, line) in bytes.lines().enumerate() {
        let found: HashSet<&str> = words(line).collect();
        let shared = found.intersection(&wanted).count();
        let all = found.len() + wanted.len();
        // The similarity, 2 · shared / all, is 1 if both lines have the same words.
        if 4 * shared >= all
            && shared > 0
            && best.is_none_or(|(_, most, of)| shared * of > most * all)
        {
            best = Some((n, shared, all));
        }
    }
    best.map(|(n, ..)| n.cast_signed() - place.cast_signed())
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

/// Finds a text, ignoring white space. Returns the range in bytes.
fn find_ignoring_blanks(bytes: &str, text: &str) -> Option<Range<usize>> {
    let wanted = without_blanks(text);
    if wanted.is_empty() {
        return None;
    }
    let at = memmem::find(without_blanks(bytes).as_bytes(), wanted.as_bytes())?;
    Some(range_with_blanks(bytes, at, wanted.len()))
}

fn without_blanks(text: &str) -> String {
    text.chars().filter(|c| !is_blank(*c)).collect()
}

/// Converts a nonempty range of the text without white space to a range of `text`.
fn range_with_blanks(text: &str, at: usize, length: usize) -> Range<usize> {
    let (mut seen, mut begin, mut end) = (0, 0, text.len());
    for (n, c) in text.char_indices().filter(|(_, c)| !is_blank(*c)) {
        if seen == at {
            begin = n;
        }
        seen += c.len_utf8();
        if seen >= at + length {
            end = n + c.len_utf8();
            break;
        }
    }
    begin..end
}

/// Whether a character is white space or invisible.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || is_hazard(c)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FILE: &str =
        "fn a() {\n    one();\n    two();\n}\n\nfn b() {\n    one();\n    three(1, 2);\n}\n";

    #[track_caller]
    fn check(text: &str, place: Option<Place>) {
        assert_eq!(closest(FILE.as_bytes(), text), place);
    }

    #[test]
    fn the_place_that_differs_least_is_found() {
        // A difference in white space.
        check("fn a() {\n\tone();\n\ttwo();\n", Some((1, 3)));
        // A difference in one of several lines.
        check("fn b() {\n    one();\n    three(1, 3);\n}\n", Some((6, 4)));
        check("// the first\nfn a() {\n    one();\n", Some((1, 2)));
        // A difference in one word of a line.
        check("    three(1, 3);\n", Some((8, 1)));
        check("    three(1, 3);\n}\n", Some((8, 2)));
    }

    #[test]
    fn where_nothing_is_like_it_none_is() {
        for text in ["nothing of it\n", "}}\n", "\n", "  \n\n"] {
            check(text, None);
        }
        assert_eq!(closest(b"", "a\n"), None);
        assert_eq!(closest(b"\xff\n", "a\n"), None);
    }

    proptest! {
        #[test]
        fn a_place_begins_in_the_file(bytes in "[ab(\n ]{0,60}", text in "[ab(\n ]{1,20}") {
            if let Some((first, count)) = closest(bytes.as_bytes(), &text) {
                prop_assert!(first >= 1 && count >= 1);
                prop_assert!(first <= bytes.lines().count());
            }
        }
    }
}
