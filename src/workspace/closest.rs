//! The lines of a file that are most like some that were sought in it and not found. Pure.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use memchr::{memchr_iter, memmem};

use super::excerpt::Place;
use crate::text::is_hazard;

/// So many lines are shown as JSON.
const SHOWN: usize = 10;
/// Of so many equal lines that are sought the first count.
const EQUAL: usize = 4;
/// So many places are weighed.
const WEIGHED: usize = 100_000;
/// Words are compared in files up to that size, in bytes.
const COMPARED: usize = 4 << 20;

/// Where `bytes` are most like `text`, which is whole lines: the same but for white space, else where
/// most of its lines are, else the line with most of its words. None where nothing is like it.
pub(super) fn closest(bytes: &[u8], text: &str) -> Option<Place> {
    let bytes = String::from_utf8_lossy(bytes);
    if let Some(found) = same_but_for_blanks(&bytes, text) {
        let lines = |part: &str| memchr_iter(b'\n', part.as_bytes()).count();
        let first = lines(&bytes[..found.start]) + 1;
        return Some((first, lines(bytes[found].trim_end_matches('\n')) + 1));
    }
    let sought: Vec<String> = text.lines().map(squeezed).collect();
    let begin = by_lines(&bytes, &sought).or_else(|| by_words(&bytes, text))?;
    // The place may reach beyond the beginning of the file.
    let first = begin.max(0).unsigned_abs();
    let count = sought.len() - begin.min(0).unsigned_abs().min(sought.len() - 1);
    Some((first + 1, count))
}

/// Whether the lines of a text stand in `bytes` from line `first` on, but for their white space.
pub(super) fn differs_in_blanks(bytes: &[u8], text: &str, first: usize) -> bool {
    let bytes = String::from_utf8_lossy(bytes);
    let mut there = bytes.lines().skip(first.saturating_sub(1));
    let mut lines = text.lines();
    lines.all(|line| there.next().is_some_and(|found| squeezed(found) == squeezed(line)))
}

/// So many lines of a text from line `first` on as a JSON string, in which no white space can be taken for another.
pub(super) fn as_json(bytes: &[u8], first: usize, lines: usize) -> String {
    let text = String::from_utf8_lossy(bytes);
    let part: String = text.split_inclusive('\n').skip(first - 1).take(lines.min(SHOWN)).collect();
    let json = serde_json::Value::from(part).to_string();
    let escaped = |c: char| match c {
        ' ' => " ".to_owned(),
        c if is_left_out(c) => {
            c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect()
        }
        c => c.to_string(),
    };
    json.chars().map(escaped).collect()
}

/// The line, from 0, on which the text would begin so that most of its lines stand where they are.
fn by_lines(bytes: &str, sought: &[String]) -> Option<isize> {
    let mut at: HashMap<&str, Vec<usize>> = HashMap::new();
    for (n, line) in sought.iter().enumerate() {
        // A bracket alone is like many others.
        if line.contains(char::is_alphanumeric) {
            let places = at.entry(line).or_default();
            if places.len() < EQUAL {
                places.push(n);
            }
        }
    }
    let mut votes: HashMap<isize, usize> = HashMap::new();
    for (n, line) in bytes.lines().enumerate() {
        for place in at.get(&*squeezed(line)).into_iter().flatten() {
            let begin = n.cast_signed() - place.cast_signed();
            if votes.len() < WEIGHED || votes.contains_key(&begin) {
                *votes.entry(begin).or_default() += 1;
            }
        }
    }
    let most = votes.values().max()?;
    votes.iter().filter(|(_, count)| *count == most).map(|(begin, _)| *begin).min()
}

/// The same so that the longest of its lines meets the line which shares most words with it, if that is
/// half of them.
fn by_words(bytes: &str, text: &str) -> Option<isize> {
    if bytes.len() > COMPARED {
        return None;
    }
    let (place, line) = text.lines().enumerate().max_by_key(|(_, line)| line.trim().len())?;
    let sought: HashSet<&str> = words(line).collect();
    let mut best: Option<(usize, usize, usize)> = None;
    for (n, line) in bytes.lines().enumerate() {
        let found: HashSet<&str> = words(line).collect();
        let shared = found.intersection(&sought).count();
        let all = found.len() + sought.len();
        // 2 · shared / all is 1 where they are the same.
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

/// Where a text stands when white space is left out of account.
fn same_but_for_blanks(bytes: &str, text: &str) -> Option<Range<usize>> {
    let sought = squeezed(text);
    if sought.is_empty() {
        return None;
    }
    let at = memmem::find(squeezed(bytes).as_bytes(), sought.as_bytes())?;
    Some(unsqueezed(bytes, at, sought.len()))
}

fn squeezed(text: &str) -> String {
    text.chars().filter(|c| !is_left_out(*c)).collect()
}

/// Where that part of the squeezed text stands in `text`; it is not empty.
fn unsqueezed(text: &str, at: usize, length: usize) -> Range<usize> {
    let (mut seen, mut begin, mut end) = (0, 0, text.len());
    for (n, c) in text.char_indices().filter(|(_, c)| !is_left_out(*c)) {
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

/// White space, and what cannot be seen.
fn is_left_out(c: char) -> bool {
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
        // White space.
        check("fn a() {\n\tone();\n\ttwo();\n", Some((1, 3)));
        // One line of several.
        check("fn b() {\n    one();\n    three(1, 3);\n}\n", Some((6, 4)));
        check("// the first\nfn a() {\n    one();\n", Some((1, 2)));
        // A word of one.
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
