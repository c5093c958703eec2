//! How the room of an outbox is shared out, in tokens, and how a text is shortened to fit. Pure.

use std::cell::RefCell;

use crate::protocol::{Detail, Outcome};
use crate::text::count;
use crate::tokens;

/// About so many characters are a token, for a first guess.
pub(super) const CHARS_PER_TOKEN: usize = 4;
/// So many lines the command shows that is proposed for the rest of a file.
pub(super) const NEXT_LINES: usize = 400;
/// How often a limit is tried, each time a lower one.
const GUESSES: usize = 6;
/// A text is first cut to so many bytes for each token there is room for: few texts have more.
const BYTES_PER_TOKEN: usize = 16;

/// The indexes of sizes, the smallest first.
fn ascending(sizes: &[usize]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|&n| sizes[n]);
    order
}

/// The length to which texts of these lengths are cut, so that all together are within `room`.
fn level(lengths: &[usize], room: usize) -> usize {
    let (order, mut left) = (ascending(lengths), room);
    for (place, &n) in order.iter().enumerate() {
        let even = left / (order.len() - place);
        if lengths[n] > even {
            return even;
        }
        left -= lengths[n];
    }
    usize::MAX
}

/// Cuts texts so that all together are about `room` tokens: small ones stay whole, and large ones share
/// what is left evenly. What one of them cannot use, since its next line is too long for that, goes to the
/// others. `sizes` are those of whole texts; `cut` gives text `n` that many tokens at most, and returns how
/// many it uses.
pub(super) fn share_out(sizes: &[usize], room: usize, cut: &mut dyn FnMut(usize, usize) -> usize) {
    let (order, mut left, mut shortened) = (ascending(sizes), room, Vec::new());
    for (place, &n) in order.iter().enumerate() {
        let even = left / (order.len() - place);
        let used = if sizes[n] <= even {
            sizes[n]
        } else {
            let used = cut(n, even);
            shortened.push((n, used));
            used
        };
        left = left.saturating_sub(used);
    }
    // If the last ones have no use for it, it may be enough for a long line of one before them.
    for (n, before) in shortened {
        if left > 0 {
            let used = cut(n, before + left);
            left = left.saturating_sub(used.saturating_sub(before));
        }
    }
}

/// Keeps the first of these results that take `room` tokens at most, all if there is no limit: failures
/// before successes, which each of them says first. Returns them in their order, and how many failures and
/// how many successes are left out.
pub(super) fn keep<T>(
    results: Vec<(bool, T)>,
    room: Option<usize>,
    size: impl Fn(&T) -> usize,
) -> (Vec<T>, [usize; 2]) {
    let mut order: Vec<usize> = (0..results.len()).collect();
    order.sort_by_key(|&n| results[n].0);
    let (mut kept, mut left) = (vec![false; results.len()], room.unwrap_or_default());
    for n in order {
        let size = if room.is_none() { 0 } else { size(&results[n].1) };
        let Some(less) = left.checked_sub(size) else { break };
        (kept[n], left) = (true, less);
    }
    let (mut shown, mut left_out) = (Vec::new(), [0, 0]);
    for ((success, result), is_kept) in results.into_iter().zip(kept) {
        if is_kept {
            shown.push(result);
        } else {
            left_out[usize::from(success)] += 1;
        }
    }
    (shown, left_out)
}

/// How many tokens the lines of a text are, from the first on: each is counted once, when that is asked
/// for, however often the text is cut.
#[derive(Debug, Default)]
pub(super) struct LineTokens(RefCell<Vec<usize>>);

impl LineTokens {
    /// The first whole lines of `text`, always the same one, that are `room` tokens at most, and how
    /// many they are.
    pub(super) fn within<'t>(&self, text: &'t str, room: usize) -> (&'t str, usize) {
        let mut counted = self.0.borrow_mut();
        let (mut end, mut left) = (0, room);
        for (n, line) in text.split_inclusive('\n').enumerate() {
            if n == counted.len() {
                // No need to count what cannot fit.
                if line.len() > room.saturating_mul(1 << 10) {
                    break;
                }
                counted.push(tokens::count(line));
            }
            let Some(less) = left.checked_sub(counted[n]) else { break };
            (end, left) = (end + line.len(), less);
        }
        (&text[..end], room - left)
    }
}

/// The first characters of `text` that are `room` tokens at most: whole lines, if there is one.
pub(super) fn chars_within(text: &str, room: usize) -> &str {
    let long = text.floor_char_boundary(room.saturating_mul(BYTES_PER_TOKEN).min(text.len()));
    if long == text.len() && tokens::count(text) <= room {
        return text;
    }
    let (lines, _) = LineTokens::default().within(&text[..long], room);
    let whole = &lines[..lines.rfind('\n').map_or(0, |n| n + 1)];
    if !whole.trim().is_empty() {
        return whole;
    }
    let mut part = &text[..long];
    while !part.is_empty() && tokens::count(part) > room {
        part = &part[..part.floor_char_boundary(part.len() / 2)];
    }
    part
}

/// The first `limit` characters of a text, and how many more it has; None if it has no more.
pub(super) fn cut(text: &str, limit: usize) -> Option<(&str, usize)> {
    let (at, _) = text.char_indices().nth(limit)?;
    Some((&text[..at], text[at..].chars().count()))
}

/// A text of one line that is shortened to so many characters, and says so.
pub(super) fn clipped(line: &str, limit: usize) -> String {
    match cut(line, limit) {
        None => line.to_owned(),
        Some((first, more)) => format!("{first}… ({} left out)", count(more, "more character")),
    }
}

/// The first whole lines of `text` that are so many characters at most, with a line that counts the
/// rest, if that is shorter.
pub(super) fn first_lines(text: &str, limit: usize) -> String {
    let (mut end, mut left) = (0, limit);
    for line in text.split_inclusive('\n') {
        let Some(less) = left.checked_sub(line.chars().count()) else { break };
        (end, left) = (end + line.len(), less);
    }
    let more = text[end..].lines().count();
    let notice = format!("[... {} left out for room ...]\n", count(more, "more line"));
    if text[end..].chars().count() <= notice.len() {
        return text.to_owned();
    }
    text[..end].to_owned() + &notice
}

/// The lengths in characters of what can be shortened of results.
fn lengths(results: &[Outcome]) -> Vec<usize> {
    let mut lengths = Vec::new();
    for outcome in results {
        if let Some(excerpt) = outcome.detail.excerpt() {
            lengths.push(excerpt.lines.iter().map(|(_, line)| line.chars().count()).sum());
        }
        match &outcome.detail {
            Detail::Ran(execution) => {
                let captures = execution.output.captures().into_iter();
                lengths.extend(captures.map(|c| c.head.chars().count() + c.tail.chars().count()));
            }
            Detail::Read { content, .. } => lengths.push(content.chars().count()),
            detail => lengths.extend(detail.listing().map(|lines| lines.chars().count())),
        }
    }
    lengths
}

/// Finds how many characters each output, file and list of lines of these results may have, so that what
/// `render` makes of them takes `room` tokens at most; None if it takes more even without them.
/// `usize::MAX` stands for all.
pub(super) fn limit(
    results: &[Outcome],
    room: usize,
    render: &dyn Fn(usize) -> String,
) -> Option<usize> {
    let lengths = &lengths(results);
    let longest = lengths.iter().copied().max().unwrap_or_default();
    let first = level(lengths, room.saturating_mul(CHARS_PER_TOKEN)).min(longest);
    let limit = greatest(first, room, render)?;
    Some(if limit >= longest { usize::MAX } else { limit })
}

/// Finds a limit, as great as possible and up to `first`, with which what `render` gives takes `room` tokens
/// at most; None if it takes more even with 0.
fn greatest(first: usize, room: usize, render: &dyn Fn(usize) -> String) -> Option<usize> {
    let least = tokens::count(&render(0));
    let left = room.checked_sub(least)?;
    let mut limit = first;
    for _ in 0..GUESSES {
        let tokens = tokens::count(&render(limit));
        if tokens <= room {
            return Some(limit);
        }
        let next = limit as u128 * left as u128 * 95 / ((tokens - least) as u128 * 100);
        // What is left out is counted in words, which may be longer than what is.
        limit = usize::try_from(next).unwrap_or(first).min(limit / 10 * 9);
    }
    Some(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_ones_are_whole_and_large_ones_share_what_is_left() {
        let shared = |sizes: &[usize], room: usize| {
            let mut cuts = vec![None; sizes.len()];
            share_out(sizes, room, &mut |n, share| *cuts[n].insert(share));
            cuts
        };
        assert_eq!(shared(&[10, 500, 20, 900], 130), [None, Some(50), None, Some(50)]);
        assert_eq!(shared(&[10, 20], 30), [None, None]);
        assert_eq!(shared(&[10, 20], 29), [None, Some(19)]);
        assert_eq!(shared(&[10, 20], 0), [Some(0), Some(0)]);
        assert_eq!(shared(&[0], 0), [None]);
        assert_eq!(shared(&[], 5), []);
        assert_eq!((level(&[1, 2], 5), level(&[9, 9, 1], 7)), (usize::MAX, 3));
    }

    #[test]
    fn failures_are_kept_before_successes() {
        let results = [(true, 5), (false, 6), (false, 90), (false, 7), (true, 1)];
        let kept = |room| keep(results.to_vec(), room, |size| *size);
        assert_eq!(kept(None), (vec![5, 6, 90, 7, 1], [0, 0]));
        assert_eq!(kept(Some(109)), (vec![5, 6, 90, 7, 1], [0, 0]));
        assert_eq!(kept(Some(104)), (vec![6, 90, 7], [0, 2]));
        assert_eq!(kept(Some(60)), (vec![6], [2, 2]));
    }

    #[test]
    fn what_one_cannot_use_goes_to_the_others() {
        // What each is cut to, where it can use so many at most, and for how many calls.
        let shared = |sizes: &[usize], usable: &[usize], room: usize| {
            let (mut used, mut calls) = (sizes.to_vec(), 0);
            share_out(sizes, room, &mut |n, share| {
                calls += 1;
                used[n] = share.min(usable[n]);
                used[n]
            });
            (used, calls)
        };
        assert_eq!(shared(&[900, 900], &[900, 900], 100), (vec![50, 50], 2));
        assert_eq!(shared(&[900, 900, 10], &[900, 5, 10], 100).0, [85, 5, 10]);
        assert_eq!(shared(&[900, 900, 900], &[5, 20, 900], 99).0, [5, 20, 74]);
        assert_eq!(shared(&[900, 900], &[5, 5], 100).0, [5, 5]);
        assert_eq!(shared(&[900, 900], &[900, 900], 0).0, [0, 0]);
        let many = shared(&[900; 100], &std::array::from_fn::<_, 100, _>(|n| n), 9_000);
        assert!(many.1 <= 400, "{} calls", many.1);
    }

    #[test]
    fn a_limit_is_found_also_where_nothing_is_longer_than_something() {
        let text = |limit: usize| "word ".repeat(if limit < 50 { 300 } else { limit });
        assert!(greatest(1_000, 400, &text).is_some_and(|limit| limit <= 400));
        assert_eq!(greatest(1_000, 2_000, &text), Some(1_000));
        let short = |limit: usize| "word ".repeat(if limit < 50 { 300 } else { 60 });
        assert_eq!(greatest(1_000, 400, &short), Some(1_000));
    }

    #[test]
    fn texts_are_cut_at_the_ends_of_lines() {
        let text = "one two three\nfour\n\nlast line of it";
        for room in 0..12 {
            let shown = LineTokens::default().within(text, room).0;
            assert!(shown.is_empty() || shown.ends_with('\n') || shown == text, "{shown:?}");
            assert!(tokens::count(shown) <= room, "{room}: {shown:?}");
        }
        assert_eq!(LineTokens::default().within(text, 12).0, text);
        // Of a single line some is better than nothing, where it is words for the model.
        let line = "word ".repeat(1000);
        let shown = chars_within(&line, 100);
        assert!(!shown.is_empty() && tokens::count(shown) <= 100, "{shown:?}");
        assert_eq!(chars_within(&line, 0), "");
    }

    #[test]
    fn whole_lines_are_kept_and_the_rest_is_counted() {
        assert_eq!(first_lines("ab\ncd\n", 6), "ab\ncd\n");
        let long = "é".repeat(60);
        let told = |more| format!("[... {more} left out for room ...]\n");
        assert_eq!(
            first_lines(&format!("ab\n{long}\ne"), 5),
            format!("ab\n{}", told("2 more lines"))
        );
        assert_eq!(first_lines(&long, 0), told("1 more line"));
        // What tells of the rest is no longer than it.
        assert_eq!(first_lines(&long[..80], 0), &long[..80]);
        assert_eq!(first_lines(&long[..82], 0), told("1 more line"));
        assert_eq!(first_lines("", 0), "");
    }

    #[test]
    fn a_line_is_clipped_with_a_count() {
        assert_eq!(clipped("äbc", 3), "äbc");
        assert_eq!(clipped("äbcde", 3), "äbc… (2 more characters left out)");
    }

    #[test]
    fn the_greatest_limit_that_fits_is_nearly_found() {
        let render = |limit: usize| "word ".repeat(10 + limit);
        let found = greatest(100_000, 200, &render).unwrap();
        assert!((140..=190).contains(&found), "{found}");
        assert_eq!(greatest(50, 200, &render), Some(50));
        assert_eq!(greatest(50, 5, &render), None);
    }
}
