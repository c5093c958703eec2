//! Shortens texts to the available room. Room is measured in tokens, limits in characters. Pure.

use crate::text::count;
use crate::tokens;

/// How many further lines of a file the suggested command shows.
pub(super) const NEXT_LINES: usize = 400;
/// The most and the fewest characters that are shown of a line that does not fit.
pub(super) const BEGINNING: usize = 4_000;
const LEAST: usize = 100;
/// The first limit that is tried. It is doubled while the text fits.
const FIRST_LIMIT: usize = 16;
/// How many halving steps a search makes if each try is slow.
pub(super) const STEPS: usize = 5;

/// Whether a text has at most `room` tokens. Tokens are counted only if an estimate is not enough.
pub(super) fn fits(text: &str, room: usize) -> bool {
    let most = tokens::estimate(text).most;
    // An estimate may be up to a twentieth too low, and is almost never eight times too high.
    most + most / 20 <= room || (most / 8 <= room && tokens::count(text) <= room)
}

/// Finds the greatest limit up to `most` that fits, or a slightly lower one if `steps` is small. None if not even 0
/// fits.
pub(super) fn greatest(
    most: usize,
    steps: usize,
    mut fits: impl FnMut(usize) -> bool,
) -> Option<usize> {
    if fits(most) {
        return Some(most);
    }
    let (mut low, mut high) = (0, most.min(FIRST_LIMIT));
    while high < most && fits(high) {
        (low, high) = (high, most.min(high.saturating_mul(2)));
    }
    for _ in 0..steps {
        let middle = low.midpoint(high);
        if middle > low && fits(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low > 0 || fits(0)).then_some(low)
}

/// Keeps at most `most` of these results, failures first; each has a flag for success. Returns them in their order,
/// and the numbers of failures and successes that are left out.
pub(super) fn keep<T>(results: Vec<(bool, T)>, most: usize) -> (Vec<T>, [usize; 2]) {
    let failures = results.iter().filter(|(success, _)| !success).count();
    let mut room = [most, most.saturating_sub(failures)];
    let mut left_out = [0, 0];
    let kept = results.into_iter().filter_map(|(success, result)| {
        let kind = usize::from(success);
        if room[kind] == 0 {
            left_out[kind] += 1;
            return None;
        }
        room[kind] -= 1;
        Some(result)
    });
    (kept.collect(), left_out)
}

/// The first whole lines of `text` that have at most `limit` characters (not counting the last line feed), or the
/// beginning of the first line if that is longer.
pub(super) fn beginning(text: &str, limit: usize) -> &str {
    let Some((at, next)) = text.char_indices().nth(limit) else { return text };
    let searched = &text.as_bytes()[..at + usize::from(next == '\n')];
    &text[..memchr::memrchr(b'\n', searched).map_or(at, |n| n + 1)]
}

/// Like [`beginning`], but for the contents of a file: shows at most [`BEGINNING`] characters of a partial line, and
/// nothing if the limit is very small.
pub(super) fn contents_within(text: &str, limit: usize) -> &str {
    let shown = beginning(text, limit);
    if shown.len() == text.len() || shown.ends_with('\n') {
        return shown;
    }
    if limit < LEAST { "" } else { beginning(shown, BEGINNING) }
}

/// Shortens a text to `limit` characters, followed by a note about the rest.
pub(super) fn clipped(text: &str, limit: usize) -> String {
    let Some((at, _)) = text.char_indices().nth(limit) else { return text.to_owned() };
    let (first, rest) = text.split_at(at);
    format!("{first}… ({} left out)", count(rest.chars().count(), "more character"))
}

/// The first whole lines of `text` with at most `limit` characters, and a line that counts the others and the `more`
/// after them. If `more` is 0 and the others are no longer than that line, they are shown instead.
pub(super) fn first_lines(text: &str, limit: usize, more: usize) -> String {
    let shown = beginning(text, limit);
    let end = memchr::memrchr(b'\n', shown.as_bytes()).map_or(0, |n| n + 1);
    let (shown, rest) = text.split_at(if shown.len() == text.len() { text.len() } else { end });
    let left_out = count(rest.lines().count() + more, "more line");
    let notice = format!("[... {left_out} left out for room ...]\n");
    let is_all = more == 0 && rest.chars().count() <= notice.len();
    if is_all { text.to_owned() } else { format!("{shown}{notice}") }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const LARGEST_TEXT: usize = 1 << 26;

    #[test]
    fn failures_are_kept_before_successes() {
        let results = [(true, 5), (false, 6), (false, 90), (false, 7), (true, 1)];
        let kept = |most| keep(results.to_vec(), most);
        assert_eq!(kept(5), (vec![5, 6, 90, 7, 1], [0, 0]));
        assert_eq!(kept(4), (vec![5, 6, 90, 7], [0, 1]));
        assert_eq!(kept(3), (vec![6, 90, 7], [0, 2]));
        assert_eq!(kept(1), (vec![6], [2, 2]));
    }

    #[test]
    fn the_greatest_limit_that_fits_is_nearly_found() {
        // Rendering is expensive, so it must not happen more often than the limit is doubled and halved.
        let renders = Cell::new(0);
        let greatest = |room, render: &dyn Fn(usize) -> String| {
            renders.set(0);
            let found = greatest(LARGEST_TEXT, STEPS, |limit| {
                renders.set(renders.get() + 1);
                render(limit).split_whitespace().count() <= room
            });
            let doubled = (LARGEST_TEXT / FIRST_LIMIT).ilog2() as usize + 1;
            assert!(renders.get() <= 1 + doubled + STEPS, "{room}: {} renders", renders.get());
            found
        };
        let words = |limit: usize| "word ".repeat(10 + limit.min(5_000));
        let found = greatest(200, &words).unwrap();
        assert!((180..=190).contains(&found), "{found}");
        assert!(renders.get() <= 11, "{} renders", renders.get());
        assert_eq!(greatest(10, &words), Some(0));
        assert_eq!(greatest(5_010, &words), Some(LARGEST_TEXT));
        assert_eq!(greatest(5, &words), None);
        // Room that one part cannot use goes to the other.
        let two = |limit: usize| "word ".repeat(limit.min(1_000) + limit.min(5));
        let found = greatest(105, &two).unwrap();
        assert!((96..=100).contains(&found), "{found}");
        // Small files stay whole. Large files share the remaining room evenly.
        let files = [10, 500, 20, 900].map(|lines| "word\n".repeat(lines));
        let shown = |limit| files.each_ref().map(|text| contents_within(text, limit));
        let lines = |limit| shown(limit).map(|text| text.lines().count());
        let [first, large, small, larger] = lines(greatest(130, &|n| shown(n).concat()).unwrap());
        assert_eq!((first, small), (10, 20));
        assert!(large == larger && (48..=50).contains(&large), "{large}, {larger}");
        assert_eq!(greatest(1_430, &|n| shown(n).concat()), Some(LARGEST_TEXT));
        assert_eq!(lines(LARGEST_TEXT), [10, 500, 20, 900]);
        // A lower limit may even give a longer text.
        let text = |limit: usize| "word ".repeat(if limit < 50 { 300 } else { limit });
        assert!(greatest(400, &text).is_some_and(|limit| (380..=400).contains(&limit)));
    }

    #[test]
    fn texts_are_cut_at_the_ends_of_lines() {
        let text = "one two\nfour\n\nläst line";
        for limit in 0..=text.len() {
            let shown = beginning(text, limit);
            assert!(
                shown.trim_end().chars().count() <= limit && text.starts_with(shown),
                "{shown:?}"
            );
            assert!(limit < 7 || shown.ends_with('\n') || shown == text, "{shown:?}");
        }
        assert_eq!((beginning(text, 5), contents_within(text, 5)), ("one t", ""));
        let line = "ä".repeat(10_000);
        assert_eq!(contents_within(&line, 9_000).chars().count(), BEGINNING);
        assert_eq!(contents_within(&line, 150).chars().count(), 150);
        assert_eq!(contents_within(&line, 10_000), line);
        assert_eq!(contents_within(&line, 99), "");
    }

    #[test]
    fn whole_lines_are_kept_and_the_rest_is_counted() {
        assert_eq!(first_lines("ab\ncd\n", 6, 0), "ab\ncd\n");
        let long = "é".repeat(60);
        let told = |more| format!("[... {more} left out for room ...]\n");
        assert_eq!(
            first_lines(&format!("ab\n{long}\ne"), 5, 0),
            format!("ab\n{}", told("2 more lines"))
        );
        assert_eq!(first_lines(&long, 0, 0), told("1 more line"));
        // The line that counts the rest must not be longer than the rest.
        assert_eq!(first_lines(&long[..80], 0, 0), &long[..80]);
        assert_eq!(first_lines(&long[..82], 0, 0), told("1 more line"));
        assert_eq!(first_lines("", 0, 0), "");
        // Results that a search found but does not list also count as the rest.
        assert_eq!(first_lines("ab\n", 6, 7), format!("ab\n{}", told("7 more lines")));
        assert_eq!(
            first_lines(&format!("ab\n{long}\n"), 5, 7),
            format!("ab\n{}", told("8 more lines"))
        );
    }

    #[test]
    fn a_line_is_clipped_with_a_count() {
        assert_eq!(clipped("äbc", 3), "äbc");
        assert_eq!(clipped("äbcde", 3), "äbc… (2 more characters left out)");
    }
}
