//! How the room of an outbox is shared out, in tokens. Pure.

use std::cell::RefCell;

use crate::text::count;
use crate::tokens;

/// About so many characters are a token, for a first guess.
pub(super) const CHARS_PER_TOKEN: usize = 4;
/// So many lines the command shows that is proposed for the rest of a file.
pub(super) const NEXT: usize = 400;
/// As often room that some cannot use is shared out among the others.
const ROUNDS: usize = 3;
/// A text is first cut to so many bytes for each token there is room for: few texts have more.
const BYTES_PER_TOKEN: usize = 16;

/// What each of these sizes gets of `room`: None for all that it needs. Small ones come first, in the
/// order of their sizes, and those that are larger than an even share of what is left have that.
pub(super) fn shares(sizes: &[usize], room: usize) -> Vec<Option<usize>> {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|&n| sizes[n]);
    let (mut shares, mut left) = (vec![None; sizes.len()], room);
    for (place, &n) in order.iter().enumerate() {
        let even = left / (order.len() - place);
        if sizes[n] <= even {
            left -= sizes[n];
        } else {
            for &large in &order[place..] {
                shares[large] = Some(even);
            }
            break;
        }
    }
    shares
}

/// The level up to which texts of these lengths are kept, so that all together are within `room`.
pub(super) fn level(lengths: &[usize], room: usize) -> usize {
    shares(lengths, room).into_iter().flatten().next().unwrap_or(usize::MAX)
}

/// Cuts texts so that all together are about `room` tokens: small ones are whole, large ones share what
/// is left, and what one of them cannot use of its share, since its next line is too long for that, goes
/// to the others. `sizes` are what they are whole; `cut` gives text `n` that many tokens at most, and says
/// how many of them it uses. Nothing is cut shorter than it was before in the same call.
pub(super) fn share_out(sizes: &[usize], room: usize, cut: &mut dyn FnMut(usize, usize) -> usize) {
    let mut sizes = sizes.to_vec();
    let mut used: Vec<Option<usize>> = vec![None; sizes.len()];
    for _ in 0..ROUNDS {
        let mut leaves_some = false;
        for (n, share) in shares(&sizes, room).into_iter().enumerate() {
            let Some(share) = share else { continue };
            let taken_now = cut(n, share);
            used[n] = Some(taken_now);
            // Others make more of it.
            if taken_now + share / 16 < share {
                sizes[n] = taken_now;
                leaves_some = true;
            }
        }
        if !leaves_some {
            break;
        }
    }
    // Where no other has use for it, it may be enough for a long line of one.
    let of = |n: usize, size: usize| used[n].unwrap_or(size);
    let taken: usize = sizes.iter().enumerate().map(|(n, &size)| of(n, size)).sum();
    let mut left = room.saturating_sub(taken);
    for (n, before) in used.into_iter().enumerate() {
        if let Some(before) = before.filter(|_| left > 0) {
            let taken_now = cut(n, before + left);
            left = left.saturating_sub(taken_now.saturating_sub(before));
        }
    }
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

/// The first whole lines of `text` that are `room` tokens at most.
pub(super) fn lines_within(text: &str, room: usize) -> &str {
    LineTokens::default().within(text, room).0
}

/// The first characters of `text` that are `room` tokens at most: whole lines, if there is one.
pub(super) fn chars_within(text: &str, room: usize) -> &str {
    let long = text.floor_char_boundary(room.saturating_mul(BYTES_PER_TOKEN).min(text.len()));
    if long == text.len() && tokens::count(text) <= room {
        return text;
    }
    let lines = lines_within(&text[..long], room);
    let whole = match lines.rfind('\n') {
        Some(n) => &lines[..=n],
        None => "",
    };
    if !whole.trim().is_empty() {
        return whole;
    }
    let mut part = &text[..long];
    while !part.is_empty() && tokens::count(part) > room {
        part = &part[..part.floor_char_boundary(part.len() / 2)];
    }
    part
}

/// A text of one line that is shortened to so many characters, with a word on the rest.
pub(super) fn clipped(line: &str, limit: usize) -> String {
    match line.char_indices().nth(limit) {
        None => line.to_owned(),
        Some((cut, _)) => {
            let more = line[cut..].chars().count();
            format!("{}… ({} left out)", &line[..cut], count(more, "more character"))
        }
    }
}

/// The first whole lines of `text` that are so many characters at most, with a line that counts the
/// rest, where that is shorter.
pub(super) fn first_lines(text: &str, limit: usize) -> String {
    let (mut end, mut left) = (0, limit);
    for line in text.split_inclusive('\n') {
        let Some(less) = left.checked_sub(line.chars().count()) else { break };
        (end, left) = (end + line.len(), less);
    }
    let more = text[end..].lines().count();
    let told = format!("[... {} left out for room ...]\n", count(more, "more line"));
    if text[end..].chars().count() <= told.len() {
        return text.to_owned();
    }
    text[..end].to_owned() + &told
}

/// Looks for the greatest limit, up to `first`, with which what `render` gives is `room` tokens at most;
/// None where that is so with none. A few guesses are made, each nearer: the last that fits counts.
pub(super) fn greatest(
    first: usize,
    room: usize,
    render: &dyn Fn(usize) -> String,
) -> Option<usize> {
    let least = tokens::count(&render(0));
    if least > room {
        return None;
    }
    let (mut best, mut limit) = (0, first);
    for _ in 0..6 {
        let tokens = tokens::count(&render(limit));
        if tokens <= room {
            best = best.max(limit);
            // Near enough.
            if limit >= first || tokens.saturating_sub(least) >= (room - least) / 10 * 8 {
                break;
            }
        }
        // What is left out is told, which may be longer than what is.
        let wants = tokens.saturating_sub(least).max(1);
        let (has, wants) = ((room - least) as u128, wants as u128);
        let next = usize::try_from(limit as u128 * has * 95 / (wants * 100)).unwrap_or(first);
        // What did not fit once need not be tried again.
        limit = if tokens > room { next.min(limit / 10 * 9) } else { next.min(first) };
        if limit <= best {
            break;
        }
    }
    Some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_ones_are_whole_and_large_ones_share_what_is_left() {
        assert_eq!(shares(&[10, 500, 20, 900], 130), [None, Some(50), None, Some(50)]);
        assert_eq!(shares(&[10, 20], 30), [None, None]);
        assert_eq!(shares(&[10, 20], 29), [None, Some(19)]);
        assert_eq!(shares(&[10, 20], 0), [Some(0), Some(0)]);
        assert_eq!(shares(&[0], 0), [None]);
        assert_eq!(shares(&[], 5), []);
        assert_eq!((level(&[1, 2], 5), level(&[9, 9, 1], 7)), (usize::MAX, 3));
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
            let shown = lines_within(text, room);
            assert!(shown.is_empty() || shown.ends_with('\n') || shown == text, "{shown:?}");
            assert!(tokens::count(shown) <= room, "{room}: {shown:?}");
        }
        assert_eq!(lines_within(text, 12), text);
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
