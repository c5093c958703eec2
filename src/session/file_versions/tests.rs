//! The known versions of files after replies and outboxes.

use proptest::prelude::*;

use super::*;
use crate::protocol::{Change, Existing, Failure, PresentFile, Revision};

fn path(text: &str) -> RelPath {
    RelPath::parse(text).unwrap()
}

fn whole(text: &str) -> FileVersion {
    FileVersion::whole(text.as_bytes())
}

fn seen(files: &[(&str, &str)]) -> FileVersions {
    let mut all = FileVersions::default();
    files.iter().for_each(|(at, text)| all.record(path(at), whole(text)));
    all
}

/// `a`, seen completely as `old`, and then in these lines as `new`.
fn seen_in_part(lines: &[Range]) -> FileVersions {
    let mut all = seen(&[("a", "old")]);
    all.record_lines(&path("a"), whole("new"), lines);
    all
}

/// The version in which each line of `a` counts as seen: `o` old, `n` new, `l` later, `?` none.
fn states(all: &FileVersions, lines: usize) -> String {
    let state = |n| match all.get(&path("a"), (n, n)) {
        Some(seen) if seen == whole("old") => 'o',
        Some(seen) if seen == whole("new") => 'n',
        Some(seen) if seen == whole("later") => 'l',
        _ => '?',
    };
    (1..=lines).map(state).collect()
}

fn excerpt(lines: impl IntoIterator<Item = usize>, more: usize) -> Excerpt {
    Excerpt { lines: lines.into_iter().map(|n| (n, String::new())).collect(), more }
}

/// An edit of `a` by search, with its outcome and the excerpt shown with it.
fn search(before: &str, after: &str, excerpt: Excerpt) -> (Operation, Detail) {
    let revision =
        Revision { before: whole(before), after: whole(after), excerpt, fuzzy_matches: vec![] };
    let revision = Some(Box::new(revision));
    let detail = Detail::Replaced { path: path("a"), edits: 1, revision };
    (Operation::Edit { path: path("a"), change: Change::Once(Vec::new()) }, detail)
}

fn edit(before: &str, after: &str) -> (Operation, Detail) {
    search(before, after, Excerpt::default())
}

/// An edit of `a` by line numbers, based on the version `before`.
fn edit_lines(before: &str, after: &str, lines: Range, inserted: usize) -> (Operation, Detail) {
    let (_, detail) = edit(before, after);
    let Detail::Replaced { path, revision, .. } = detail else { unreachable!() };
    let change = Change::Lines { start: lines.0, end: lines.1, with: String::new(), seen: None };
    let operation = Operation::Edit { path: path.clone(), change };
    (operation, Detail::Edited { path, lines, inserted, total: 9, revision })
}

/// An edit by line numbers that was refused, since `a` is now different. These lines are shown with the outcome.
fn refused(now: &str, lines: Range) -> (Operation, Detail) {
    let fresh = PresentFile { path: path("a"), seen: whole(now) };
    let excerpt = excerpt(lines.0..=lines.1, 0);
    let failure =
        Failure { present_file: Some(Box::new(fresh)), excerpt, ..Failure::execution("x") };
    let change = Change::Lines { start: 1, end: 1, with: String::new(), seen: None };
    (Operation::Edit { path: path("a"), change }, failure.into())
}

fn create(text: &str) -> (Operation, Detail) {
    let (content, existing) = (text.into(), Existing::Replace);
    let detail = Detail::Created { path: path("a"), bytes: 1, replaced: true };
    (Operation::Create { path: path("a"), content, existing }, detail)
}

fn step((operation, detail): (Operation, Detail)) -> (Step, Outcome) {
    let (warnings, asked) = (Vec::new(), None);
    let asks = StepContent::Operation(operation);
    let step = Step {
        line: 1,
        asks,
        ends: false,
        passes_over: false,
        left_out: None,
        warnings,
        asked,
        as_sent: None,
    };
    let outcome = Outcome::of(&step, detail);
    (step, outcome)
}

/// The known versions after a reply, once its results are shown.
fn after(mut all: FileVersions, came_to: Vec<(Operation, Detail)>) -> FileVersions {
    for (step, outcome) in came_to.into_iter().map(step) {
        all.apply(&step, &outcome);
        all.record_excerpt(&outcome);
    }
    all
}

/// Like [`after`], for `a`, seen completely as `old`.
fn after_old(old: Option<&str>, came_to: Vec<(Operation, Detail)>) -> Option<FileVersion> {
    let old: Vec<_> = old.iter().map(|old| ("a", *old)).collect();
    after(seen(&old), came_to).get(&path("a"), (1, 1))
}

#[test]
fn what_was_written_is_seen_and_what_is_gone_forgotten() {
    let is = |text: &str| Some(whole(text));
    assert_eq!(after_old(None, vec![create("1")]), is("1"));
    assert_eq!(after_old(None, vec![edit("1", "2")]), is("2"));
    assert_eq!(after_old(Some("1"), vec![edit("1", "2"), edit("2", "3")]), is("3"));
    let delete = || (Operation::Delete { path: path("a") }, Detail::Deleted { path: path("a") });
    assert_eq!(after_old(Some("1"), vec![delete()]), None);
    // If an older version recorded the edit, the result is unknown.
    let (operation, _) = edit("1", "2");
    let detail = Detail::Replaced { path: path("a"), edits: 1, revision: None };
    assert_eq!(after_old(Some("1"), vec![(operation, detail)]), None);
}

#[test]
fn a_file_that_had_changed_is_not_seen_for_an_edit_by_search() {
    assert_eq!(after_old(Some("1"), vec![edit("x", "y")]), Some(whole("1")));
    assert_eq!(after_old(Some("1"), vec![edit("x", "y"), create("2")]), Some(whole("2")));
    // Only the lines shown with the edit count as seen.
    let all = after(seen(&[("a", "old")]), vec![search("x", "new", excerpt(3..=5, 0))]);
    assert_eq!(states(&all, 7), "??nnn??");
}

#[test]
fn a_line_that_was_shown_in_part_is_not_seen() {
    let mut all = FileVersions::default();
    let show = |all: &mut FileVersions, version: &str, lines: &[Range], cut: usize| {
        all.record_lines(&path("a"), whole(version), lines);
        all.record_cut(&path("a"), cut);
    };
    show(&mut all, "new", &[], 2);
    assert_eq!(states(&all, 5), "n?nnn");
    show(&mut all, "new", &[(3, 3)], 4);
    assert_eq!(states(&all, 5), "n?n?n");
    all.record_lines(&path("a"), whole("new"), &[(2, 2)]);
    assert_eq!(states(&all, 5), "nnn?n");
    // All other lines stay seen, and an edit below keeps the partial line unseen.
    all.forget_newer(&path("a"));
    let mut all = after(all, vec![search("new", "new", excerpt(5..=5, 0))]);
    assert_eq!(states(&all, 5), "nnn?n");
    show(&mut all, "later", &[(1, 1)], 2);
    assert_eq!(states(&all, 5), "l????");
    all.record(path("a"), whole("later"));
    assert_eq!(states(&all, 5), "lllll");
}

#[test]
fn a_part_of_a_file_that_changed_makes_only_that_part_known() {
    let mut all = seen_in_part(&[(3, 5)]);
    assert_eq!(states(&all, 7), "??nnn??");
    assert_eq!(all.get(&path("a"), (3, 5)), Some(whole("new")));
    for across in [(2, 3), (5, 6), (1, 7), (5, 4)] {
        assert_eq!(all.get(&path("a"), across), Some(FileVersion::outdated()), "{across:?}");
    }
    all.record_lines(&path("a"), whole("new"), &[(6, 6), (1, 1)]);
    assert_eq!(states(&all, 7), "n?nnnn?");
    assert_eq!(all.get(&path("a"), (4, 6)), Some(whole("new")));
    // In a third version, the lines seen of the second one no longer count.
    all.record_lines(&path("a"), whole("later"), &[(2, 3)]);
    assert_eq!(states(&all, 7), "?ll????");
    all.record(path("a"), whole("later"));
    assert_eq!(states(&all, 7), "lllllll");
}

#[test]
fn a_part_of_a_file_that_did_not_change_changes_nothing() {
    let mut all = seen(&[("a", "old")]);
    all.record_lines(&path("a"), whole("old"), &[(3, 5)]);
    assert_eq!(states(&all, 7), "ooooooo");
    let mut part = FileVersions::default();
    part.record_lines(&path("a"), whole("old"), &[(3, 5)]);
    assert_eq!(states(&part, 7), "ooooooo");
    // The file is back in its old version. Only lines shown since then count.
    let mut all = seen_in_part(&[(3, 5)]);
    all.record_lines(&path("a"), whole("old"), &[(4, 7)]);
    assert_eq!(states(&all, 7), "???oooo");
    all.record_lines(&path("a"), whole("old"), &[(1, 3)]);
    assert_eq!(states(&all, 7), "ooooooo");
    // The beginning of a large file may be the result of an edit.
    let mut large = seen(&[("a", "old")]);
    large.record_lines(&path("a"), FileVersion::of(b"ol", 3), &[(1, 1)]);
    assert_eq!(states(&large, 2), "oo");
    large.record_lines(&path("a"), FileVersion::of(b"ol", 4), &[(1, 1)]);
    assert_eq!(states(&large, 2), "??");
}

#[test]
fn fresh_lines_count_when_they_are_told_and_go_with_what_came_after_them() {
    let old = || seen(&[("a", "old")]);
    let all = after(old(), vec![refused("x", (1, 9)), refused("new", (2, 4))]);
    assert_eq!(states(&all, 5), "?nnn?");
    let all = after(old(), vec![refused("new", (2, 4)), refused("new", (5, 6))]);
    assert_eq!(states(&all, 7), "?nnnnn?");
    // An edit by search moves no lines above its excerpt.
    let later = search("new", "later", excerpt(4..=5, 0));
    let all = after(old(), vec![refused("new", (2, 9)), later]);
    assert_eq!(states(&all, 9), "?llll????");
    // If nothing, or not every place, is shown, the edit may be anywhere.
    for nowhere in [edit("new", "later"), search("new", "later", excerpt(4..=5, 1))] {
        let shown = nowhere.1.excerpt().is_some();
        let all = after(old(), vec![refused("new", (2, 9)), nowhere]);
        assert_eq!(states(&all, 6), if shown { "???ll?" } else { "??????" });
    }
    let all = after(old(), vec![refused("x", (1, 3)), create("new")]);
    assert_eq!(states(&all, 4), "nnnn");
    // The result was not shown yet.
    let mut within = old();
    let (step, outcome) = step(refused("new", (1, 1)));
    within.apply(&step, &outcome);
    assert_eq!(within, old());
}

#[test]
fn an_edit_by_lines_moves_the_lines_that_are_known() {
    let mut all = seen_in_part(&[(2, 3), (6, 7)]);
    let (step, outcome) = step(edit_lines("new", "later", (2, 2), 3));
    all.apply(&step, &outcome);
    assert_eq!(states(&all, 10), "?llll??ll?");
    // If the edited version was seen completely, so is the new one.
    let all = after(seen(&[("a", "old")]), vec![edit_lines("old", "new", (2, 2), 3)]);
    assert_eq!(states(&all, 3), "nnn");
    // An edit of another version does not change what is known.
    let mut all = seen_in_part(&[(2, 3)]);
    let (step, outcome) = self::step(edit("old", "later"));
    all.apply(&step, &outcome);
    assert_eq!(states(&all, 4), "?nn?");
    // After an edit of an unseen version, only the lines shown with it are known.
    let all = after(seen_in_part(&[(2, 3)]), vec![search("x", "later", excerpt(5..=6, 0))]);
    assert_eq!(states(&all, 7), "????ll?");
}

#[test]
fn what_was_not_shown_after_all_is_forgotten() {
    let came_to = vec![refused("new", (1, 3)), search("new", "later", excerpt(2..=3, 0))];
    let outcomes: Vec<Outcome> = came_to.iter().cloned().map(|both| step(both).1).collect();
    let mut all = after(seen(&[("a", "old")]), came_to);
    assert_eq!(states(&all, 4), "lll?");
    all.forget_excerpts(&outcomes);
    assert_eq!(states(&all, 4), "????");
}

#[test]
fn what_is_moved_is_still_seen() {
    let mut all = seen(&[("f/a", "1"), ("f/b/c", "2"), ("fa", "3"), ("g/a", "old")]);
    all.rename(&path("f"), &path("g"));
    let paths: Vec<&str> = all.0.keys().map(RelPath::as_str).collect();
    assert_eq!(paths, ["fa", "g/a", "g/b/c"]);
    assert_eq!(all.get(&path("g/a"), (1, 1)), Some(whole("1")));
    all.rename(&path("fa"), &path("x"));
    assert!(all.get(&path("fa"), (1, 1)).is_none() && all.get(&path("x"), (1, 1)).is_some());
    let mut part = seen_in_part(&[(2, 2)]);
    part.rename(&path("a"), &path("b"));
    assert_eq!(part.get(&path("b"), (2, 2)), Some(whole("new")));
}

#[test]
fn the_oldest_is_forgotten() {
    let mut all = FileVersions::default();
    for n in 0..MAX_FILES + 2 {
        all.record(path(&format!("{n}")), FileVersion::whole(b""));
        all.record_lines(&path("0"), FileVersion::whole(b""), &[(1, 1)]);
    }
    assert_eq!(all.0.len(), MAX_FILES);
    assert!(all.get(&path("0"), (1, 1)).is_some() && all.get(&path("1"), (1, 1)).is_none());
}

#[test]
fn it_is_kept_as_json_and_that_of_the_version_before_is_read() {
    for all in [seen(&[("a", "old"), ("b", "1")]), seen_in_part(&[(2, 3), (7, 7)])] {
        let json = serde_json::to_string(&all).unwrap();
        assert_eq!(serde_json::from_str::<FileVersions>(&json).unwrap(), all);
    }
    // Saving and loading loses nothing that is known about a file.
    let mut all = seen_in_part(&[(2, 3), (7, 7)]);
    all.record(path("large"), FileVersion::of(b"ol", 3));
    all.record(path("gone"), whole("1"));
    all.mark_outdated([path("gone"), path("unseen")].into_iter());
    all.record_lines(&path("none"), whole("old"), &[(1, 1)]);
    all.record_lines(&path("none"), whole("new"), &[(1, 1)]);
    all.forget_newer(&path("none"));
    let mut read: FileVersions =
        serde_json::from_str(&serde_json::to_string(&all).unwrap()).unwrap();
    assert_eq!(read, all);
    assert_eq!(states(&read, 8), "?nn???n?");
    for all in [&mut all, &mut read] {
        all.record_lines(&path("a"), whole("new"), &[(4, 4)]);
        assert_eq!(states(all, 8), "?nnn??n?");
        for (place, version) in [
            ("large", FileVersion::of(b"ol", 3)),
            ("gone", FileVersion::outdated()),
            ("unseen", FileVersion::outdated()),
            ("none", FileVersion::outdated()),
        ] {
            assert_eq!(all.get(&path(place), (1, 1)), Some(version), "{place}");
        }
    }
    let digest = serde_json::to_value(whole("old")).unwrap()["digest"].clone();
    // Earlier versions stored the completely seen version next to the lines of a newer one.
    let newer = r#"{"digest":"x","size":1,"lines":[[2,3]]}"#;
    for rest in [String::new(), format!(r#","newer":{newer}"#)] {
        let older = format!(r#"{{"a":{{"digest":{digest},"size":3,"at":4{rest}}}}}"#);
        let read: FileVersions = serde_json::from_str(&older).unwrap();
        assert_eq!(states(&read, 2), "oo");
    }
}

#[test]
fn what_is_in_doubt_is_like_nothing_that_stands_there() {
    let mut all = seen(&[("a", "1"), ("b", "2")]);
    all.record_lines(&path("a"), FileVersion::whole(b"3"), &[(1, 1)]);
    let many = (0..MAX_FILES).map(|n| path(&format!("n{n}")));
    all.mark_outdated(many.chain([path("a")]));
    let a = all.get(&path("a"), (1, 1)).unwrap();
    assert!(!a.is(b"1") && !a.is(b"3") && !a.is(b"") && !a.fits(&FileVersion::whole(b"1")));
    assert!(all.get(&path("b"), (1, 1)).unwrap().is(b"2"));
    assert!(all.get(&path("n0"), (1, 1)).is_some() && all.0.len() == MAX_FILES);
    assert!(all.get(&path(&format!("n{}", MAX_FILES - 3)), (1, 1)).is_some());
    assert!(all.get(&path(&format!("n{}", MAX_FILES - 2)), (1, 1)).is_none());
}

#[test]
fn what_is_in_doubt_and_was_seen_is_not_forgotten_for_what_was_not() {
    let outdated =
        |all: &FileVersions| all.get(&path("f"), (1, 1)) == Some(FileVersion::outdated());
    for (first, others) in [(true, 140), (false, 140), (true, MAX_FILES), (false, MAX_FILES)] {
        let mut all = seen(&[("f", "1")]);
        (0..200).for_each(|n| all.record(path(&format!("seen{n}")), whole("x")));
        let unseen: Vec<_> = (0..others).map(|n| path(&format!("unseen{n}"))).collect();
        let (before, after) = unseen.split_at(if first { 0 } else { others });
        all.mark_outdated([before, &[path("f")], after].concat().into_iter());
        assert!(outdated(&all) && all.0.len() == MAX_FILES, "{first}, {others}");
        assert!((0..200).all(|n| all.get(&path(&format!("seen{n}")), (1, 1)).is_some()));
        // Of all these files, it is forgotten last.
        (1..MAX_FILES).for_each(|n| all.record(path(&format!("later{n}")), whole("x")));
        assert!(outdated(&all), "{first}, {others}");
    }
}

#[test]
fn ranges_that_touch_are_one() {
    let all = |ranges: &[Range]| LineRanges::default().with(ranges).0;
    assert_eq!(all(&[(1, 3), (5, 6)]), [(1, 3), (5, 6)]);
    assert_eq!(all(&[(1, 3), (5, 6), (4, 4)]), [(1, 6)]);
    assert_eq!(all(&[(5, 6), (1, 3), (2, 9)]), [(1, 9)]);
    assert_eq!(all(&[(5, 4), (0, 0), (0, 3)]), []);
    let ranges = LineRanges::default().with(&[(5, 9), (20, 20)]);
    assert!(ranges.contain((5, 9)) && ranges.contain((20, 20)) && ranges.contain((6, 6)));
    assert!(!ranges.contain((4, 5)) && !ranges.contain((9, 20)) && !ranges.contain((9, 8)));
}

#[test]
fn the_first_of_many_is_forgotten_and_never_the_newest() {
    let many: Vec<Range> =
        (1..=MAX_RANGES + 2).map(|n| (10_000 - 10 * n, 10_000 - 10 * n)).collect();
    let ranges = LineRanges::default().with(&many);
    assert_eq!(ranges.0, many[2..]);
}

#[test]
fn an_edit_moves_what_stands_behind_it() {
    let after = |edit: Range, inserted: usize| {
        let mut ranges = LineRanges::default().with(&[(2, 4), (10, 12), (20, 20)]);
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

/// Gives each line a unique name, and returns the names of the lines in the ranges.
fn held(ranges: &LineRanges, file: &[usize]) -> Vec<usize> {
    let is_held = |(n, _): &(usize, &usize)| ranges.contain((n + 1, n + 1));
    file.iter().enumerate().filter(is_held).map(|(_, name)| *name).collect()
}

proptest! {
    #[test]
    fn lines_are_held_as_a_list_of_them_would_hold_them(
        given in prop::collection::vec((1usize..40, 0usize..8), 0..8),
        (first, length, inserted) in (1usize..40, 1usize..8, 0usize..5),
    ) {
        let given: Vec<Range> = given.into_iter().map(|(n, length)| (n, n + length)).collect();
        let ranges = LineRanges::default().with(&given);
        let file: Vec<usize> = (1..=60).collect();
        let wanted: Vec<usize> = file.iter().copied()
            .filter(|n| given.iter().any(|(begin, end)| (begin..=end).contains(&n)))
            .collect();
        prop_assert_eq!(held(&ranges, &file), &wanted[..]);

        let mut above = ranges.clone();
        above.truncate(first);
        let rest: Vec<usize> = wanted.iter().copied().filter(|n| *n < first).collect();
        prop_assert_eq!(held(&above, &file), &rest[..]);

        let edit = (first, first + length - 1);
        let outside = |n: &usize| !(edit.0..=edit.1).contains(n);
        let rest: Vec<usize> = wanted.iter().copied().filter(outside).collect();

        // Inserted lines have names above 100. They are known if the edit touched a known range.
        let mut edited = file.clone();
        edited.splice(edit.0 - 1..edit.1, 101..101 + inserted);
        let mut after = ranges;
        after.replace(edit, inserted);
        let kept: Vec<usize> =
            held(&after, &edited).into_iter().filter(|name| *name <= 100).collect();
        prop_assert_eq!(kept, rest);
    }
}
