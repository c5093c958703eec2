//! Ranges of lines of one file, both ends included: few, and none beside another that it touches. Pure.

use serde::{Deserialize, Serialize};

/// So many ranges of a file are remembered, as many as one search shows lines; the one that was put in
/// first is forgotten first.
const REMEMBERED: usize = 200;

/// The first and the last line of a range, counted from 1.
pub(super) type Range = (usize, usize);

/// Ranges of lines, the newest last.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Ranges(Vec<Range>);

impl Ranges {
    pub(super) fn of(ranges: &[Range]) -> Self {
        let mut all = Self::default();
        ranges.iter().for_each(|range| all.put_in(*range));
        all
    }

    /// All of them.
    pub(super) fn all(&self) -> &[Range] {
        &self.0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether all of these lines stand in one of them.
    pub(super) fn hold(&self, (first, last): Range) -> bool {
        first <= last && self.0.iter().any(|(begin, end)| *begin <= first && last <= *end)
    }

    /// Puts a range in, as one with those that it touches. One without lines is none.
    pub(super) fn put_in(&mut self, (mut first, mut last): Range) {
        if first == 0 || first > last {
            return;
        }
        // Those that are there do not touch each other, so one look finds all that it touches.
        self.0.retain(|(begin, end)| {
            let touches = *begin <= last.saturating_add(1) && first <= end.saturating_add(1);
            if touches {
                (first, last) = (first.min(*begin), last.max(*end));
            }
            !touches
        });
        self.0.push((first, last));
        if self.0.len() > REMEMBERED {
            self.0.remove(0);
        }
    }

    /// Takes these lines out.
    pub(super) fn take_out(&mut self, (first, last): Range) {
        let rest = |(begin, end): &Range| {
            let before = (*begin, (*end).min(first.saturating_sub(1)));
            let after = ((*begin).max(last.saturating_add(1)), *end);
            [before, after]
        };
        *self = Self::of(&self.0.iter().flat_map(rest).collect::<Vec<_>>());
    }

    /// What they are once these lines are `inserted` others: what stands behind is moved, and a range that
    /// held some of them holds what stands in their place.
    pub(super) fn replace(&mut self, (first, last): Range, inserted: usize) {
        let moved = |line: usize| line.saturating_add(inserted).saturating_sub(last + 1 - first);
        let after = |(begin, end): &Range| match (*begin, *end) {
            (begin, end) if end < first => (begin, end),
            (begin, end) if begin > last => (moved(begin), moved(end)),
            (begin, end) => (begin.min(first), moved(end.max(last))),
        };
        *self = Self::of(&self.0.iter().map(after).collect::<Vec<_>>());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_that_touch_are_one() {
        let all = |ranges: &[Range]| Ranges::of(ranges).0;
        assert_eq!(all(&[(1, 3), (5, 6)]), [(1, 3), (5, 6)]);
        assert_eq!(all(&[(1, 3), (5, 6), (4, 4)]), [(1, 6)]);
        assert_eq!(all(&[(5, 6), (1, 3), (2, 9)]), [(1, 9)]);
        assert_eq!(all(&[(5, 4), (0, 0), (0, 3)]), []);
        let ranges = Ranges::of(&[(5, 9), (20, 20)]);
        assert!(ranges.hold((5, 9)) && ranges.hold((20, 20)) && ranges.hold((6, 6)));
        assert!(!ranges.hold((4, 5)) && !ranges.hold((9, 20)) && !ranges.hold((9, 8)));
    }

    #[test]
    fn the_first_of_many_is_forgotten_and_never_the_newest() {
        let many: Vec<Range> =
            (1..=REMEMBERED + 2).map(|n| (10_000 - 10 * n, 10_000 - 10 * n)).collect();
        let ranges = Ranges::of(&many);
        assert_eq!(ranges.0, many[2..]);
    }

    #[test]
    fn an_edit_moves_what_stands_behind_it() {
        let after = |edit: Range, inserted: usize| {
            let mut ranges = Ranges::of(&[(2, 4), (10, 12), (20, 20)]);
            ranges.replace(edit, inserted);
            ranges.0
        };
        assert_eq!(after((11, 11), 1), [(2, 4), (10, 12), (20, 20)]);
        assert_eq!(after((11, 11), 3), [(2, 4), (10, 14), (22, 22)]);
        assert_eq!(after((10, 12), 0), [(2, 4), (17, 17)]);
        assert_eq!(after((4, 10), 2), [(2, 7), (15, 15)]);
        assert_eq!(after((30, 40), 0), [(2, 4), (10, 12), (20, 20)]);
        assert_eq!(after((1, 30), 0), []);
    }

    /// Each line as a name of its own, and which of them are in the ranges.
    fn held(ranges: &Ranges, file: &[usize]) -> Vec<usize> {
        let is_held = |(n, _): &(usize, &usize)| ranges.hold((n + 1, n + 1));
        file.iter().enumerate().filter(is_held).map(|(_, name)| *name).collect()
    }

    proptest! {
        #[test]
        fn lines_are_held_as_a_list_of_them_would_hold_them(
            given in prop::collection::vec((1usize..40, 0usize..8), 0..8),
            (first, length, inserted) in (1usize..40, 1usize..8, 0usize..5),
        ) {
            let given: Vec<Range> = given.into_iter().map(|(n, length)| (n, n + length)).collect();
            let ranges = Ranges::of(&given);
            let file: Vec<usize> = (1..=60).collect();
            let wanted: Vec<usize> = file.iter().copied()
                .filter(|n| given.iter().any(|(begin, end)| (begin..=end).contains(&n)))
                .collect();
            prop_assert_eq!(held(&ranges, &file), &wanted[..]);

            let edit = (first, first + length - 1);
            let mut without = ranges.clone();
            without.take_out(edit);
            let outside = |n: &usize| !(edit.0..=edit.1).contains(n);
            let rest: Vec<usize> = wanted.iter().copied().filter(outside).collect();
            prop_assert_eq!(held(&without, &file), &rest[..]);

            // The lines put in have names beyond 100, and are known where the edit met a range.
            let mut edited = file.clone();
            edited.splice(edit.0 - 1..edit.1, 101..101 + inserted);
            let mut after = ranges;
            after.replace(edit, inserted);
            let kept: Vec<usize> =
                held(&after, &edited).into_iter().filter(|name| *name <= 100).collect();
            prop_assert_eq!(kept, rest);
        }
    }
}
