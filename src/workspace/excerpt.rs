//! Extracts numbered lines of a file around some places, within limits. Pure.

use memchr::memchr_iter;

use super::edit::count_lines;
use crate::protocol::Excerpt;

/// How many lines are shown before and after a place.
const AROUND: usize = 3;

/// A place in a file: its first line (from 1) and its number of lines. A place with 0 lines is between two lines.
pub(super) type Place = (usize, usize);

/// The lines at `places` and a few lines around each place. A place with more than `whole` lines is shown only at its
/// beginning and end. If there is not enough room for all places, only the first ones are shown.
pub(super) fn around(bytes: &[u8], places: &[Place], whole: usize) -> Excerpt {
    let mut places = places.to_vec();
    places.sort_unstable();
    let total = count_lines(bytes);
    let mut wanted: Vec<(usize, usize)> = Vec::new();
    let (mut room, mut more) = (Excerpt::LINES, 0);
    for (n, (first, count)) in places.iter().enumerate() {
        let begin = first.saturating_sub(AROUND).max(1);
        let end = first.saturating_add(count + AROUND).saturating_sub(1).min(total);
        let half = whole / 2;
        let parts = if *count > whole {
            [(begin, first + half - 1), (first + count - half, end)]
        } else {
            [(begin, end), (1, 0)]
        };
        // Lines that are already shown for the previous place are not repeated.
        let shown = wanted.last().map_or(0, |(_, end)| *end);
        let parts = parts.map(|(begin, end)| (begin.max(shown + 1), end));
        let lines = parts.iter().map(|(begin, end)| (end + 1).saturating_sub(*begin)).sum();
        if lines > room && n > 0 {
            more = places.len() - n;
            break;
        }
        room = room.saturating_sub(lines);
        wanted.extend(parts.into_iter().filter(|(begin, end)| begin <= end));
    }
    Excerpt { lines: numbered(bytes, &wanted), more }
}

/// The lines in sorted ranges, with their numbers. Both ends of a range are included.
fn numbered(bytes: &[u8], wanted: &[(usize, usize)]) -> Vec<(usize, String)> {
    let mut wanted = wanted.iter().copied().peekable();
    let mut lines = Vec::new();
    let mut begin = 0;
    let ends = memchr_iter(b'\n', bytes).chain([bytes.len()]);
    for (number, end) in (1..).zip(ends) {
        while wanted.next_if(|(_, last)| *last < number).is_some() {}
        let Some((first, _)) = wanted.peek() else { break };
        if *first <= number && (begin < end || end < bytes.len()) {
            let line = &bytes[begin..end];
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            lines.push((number, shortened(line)));
        }
        begin = end + 1;
    }
    lines
}

fn shortened(line: &[u8]) -> String {
    // The most bytes that the shown characters can take, plus some more, so that a longer line is noticed.
    const MOST: usize = 8 * Excerpt::LENGTH;
    match line.len() {
        ..=MOST => Excerpt::line(&String::from_utf8_lossy(line)),
        length => {
            let shown: String =
                String::from_utf8_lossy(&line[..MOST]).chars().take(Excerpt::LENGTH).collect();
            format!("{shown} … (a line of {length} bytes)")
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn numbers(bytes: &str, places: &[Place], whole: usize) -> (Vec<usize>, usize) {
        let Excerpt { lines, more } = around(bytes.as_bytes(), places, whole);
        (lines.into_iter().map(|(number, _)| number).collect(), more)
    }

    fn file(lines: usize) -> String {
        (1..=lines).map(|n| format!("{n}\n")).collect()
    }

    #[test]
    fn a_place_is_shown_with_lines_around_it() {
        let all = |from: usize, to: usize| (from..=to).collect::<Vec<_>>();
        assert_eq!(numbers(&file(20), &[(8, 2)], 10), (all(5, 12), 0));
        assert_eq!(numbers(&file(20), &[(1, 1)], 10), (all(1, 4), 0));
        assert_eq!(numbers(&file(20), &[(20, 1)], 10), (all(17, 20), 0));
        // A place between lines 7 and 8, and one at the end of the file.
        assert_eq!(numbers(&file(20), &[(8, 0)], 10), (all(5, 10), 0));
        assert_eq!(numbers(&file(2), &[(3, 0)], 10), (all(1, 2), 0));
        assert_eq!(numbers("", &[(1, 0)], 10), (vec![], 0));
        let ends = [all(2, 9), all(21, 28)].concat();
        assert_eq!(numbers(&file(40), &[(5, 21)], 10), (ends, 0));
    }

    #[test]
    fn places_that_touch_are_shown_once_and_many_are_counted() {
        assert_eq!(numbers(&file(20), &[(10, 1), (5, 1)], 10).0, (2..=13).collect::<Vec<_>>());
        let places: Vec<Place> = (0..20).map(|n| (10 * n + 1, 1)).collect();
        let (lines, more) = numbers(&file(200), &places, 10);
        assert!(lines.len() <= Excerpt::LINES && more == 14, "{lines:?} {more}");
    }

    #[test]
    fn lines_are_shown_without_their_endings_and_cut() {
        let Excerpt { lines, .. } = around(b"a\r\n\r\n\xff\tb", &[(1, 3)], 10);
        assert_eq!(lines, [(1, "a".into()), (2, String::new()), (3, "\u{fffd}\tb".into())]);
        let long = around("é".repeat(5_000).as_bytes(), &[(1, 1)], 10).lines.remove(0).1;
        assert_eq!(long, format!("{} … (a line of 10000 bytes)", "é".repeat(Excerpt::LENGTH)));
    }

    proptest! {
        #[test]
        fn every_line_shown_is_that_line_and_there_are_not_too_many(
            text in "[ab\r\n]{0,120}",
            places in prop::collection::vec((1usize..60, 0usize..40), 1..6),
        ) {
            let whole = 10;
            let Excerpt { lines, .. } = around(text.as_bytes(), &places, whole);
            prop_assert!(lines.len() <= Excerpt::LINES.max(whole + 2 * AROUND));
            prop_assert!(lines.windows(2).all(|pair| pair[0].0 < pair[1].0));
            let all: Vec<&str> = text.split('\n').collect();
            for (number, line) in &lines {
                prop_assert_eq!(all[number - 1].strip_suffix('\r').unwrap_or(all[number - 1]), line);
            }
        }
    }
}
