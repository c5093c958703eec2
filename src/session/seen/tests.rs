//! What is known of files after replies and outboxes.

use super::*;
use crate::protocol::{Change, Existing, Failure, Fresh, Revision};

fn path(text: &str) -> RelPath {
    RelPath::parse(text).unwrap()
}

fn whole(text: &str) -> Seen {
    Seen::whole(text.as_bytes())
}

fn seen(files: &[(&str, &str)]) -> SeenFiles {
    let mut all = SeenFiles::default();
    files.iter().for_each(|(at, text)| all.see(path(at), whole(text)));
    all
}

/// `a`, seen whole as `old` and then in these lines as `new`.
fn seen_in_part(lines: &[Range]) -> SeenFiles {
    let mut all = seen(&[("a", "old")]);
    all.see_lines(&path("a"), whole("new"), lines);
    all
}

/// In which state each line of `a` counts as seen: `o` old, `n` new, `l` later.
fn states(all: &SeenFiles, lines: usize) -> String {
    let state = |n| match all.get(&path("a"), (n, n)) {
        Some(seen) if *seen == whole("old") => 'o',
        Some(seen) if *seen == whole("new") => 'n',
        Some(seen) if *seen == whole("later") => 'l',
        _ => '?',
    };
    (1..=lines).map(state).collect()
}

fn excerpt(lines: impl IntoIterator<Item = usize>, more: usize) -> Excerpt {
    Excerpt { lines: lines.into_iter().map(|n| (n, String::new())).collect(), more }
}

/// An edit by search of `a`, what is shown with it, and what it came to.
fn search(before: &str, after: &str, excerpt: Excerpt) -> (Operation, Detail) {
    let revision =
        Revision { before: whole(before), after: whole(after), excerpt, loosely: vec![] };
    let revision = Some(Box::new(revision));
    let detail = Detail::Replaced { path: path("a"), edits: 1, revision };
    (Operation::Edit { path: path("a"), change: Change::Once(Vec::new()) }, detail)
}

fn edit(before: &str, after: &str) -> (Operation, Detail) {
    search(before, after, Excerpt::default())
}

/// An edit by lines of `a` as it was `before`.
fn edit_lines(before: &str, after: &str, lines: Range, inserted: usize) -> (Operation, Detail) {
    let (_, detail) = edit(before, after);
    let Detail::Replaced { path, revision, .. } = detail else { unreachable!() };
    let change = Change::Lines { start: lines.0, end: lines.1, with: String::new(), seen: None };
    let operation = Operation::Edit { path: path.clone(), change };
    (operation, Detail::Edited { path, lines, inserted, total: 9, revision })
}

/// An edit by lines that was refused, since `a` is this now; these lines are shown with it.
fn refused(now: &str, lines: Range) -> (Operation, Detail) {
    let fresh = Fresh { path: path("a"), seen: whole(now) };
    let excerpt = excerpt(lines.0..=lines.1, 0);
    let failure = Failure { fresh: Some(Box::new(fresh)), excerpt, ..Failure::execution("x") };
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
    let asks = Asks::Operation(operation);
    let step =
        Step { line: 1, asks, ends: false, passes_over: false, warnings, asked, as_sent: None };
    let outcome = Outcome::of(&step, detail);
    (step, outcome)
}

/// What is known after a reply, once it is told what came of it.
fn after(mut all: SeenFiles, came_to: Vec<(Operation, Detail)>) -> SeenFiles {
    for (step, outcome) in came_to.into_iter().map(step) {
        all.take_in(&step, &outcome);
        all.take_in_shown(&outcome);
    }
    all
}

/// The same of `a`, seen whole as `old`.
fn after_old(old: Option<&str>, came_to: Vec<(Operation, Detail)>) -> Option<Seen> {
    let old: Vec<_> = old.iter().map(|old| ("a", *old)).collect();
    after(seen(&old), came_to).get(&path("a"), (1, 1)).cloned()
}

#[test]
fn what_was_written_is_seen_and_what_is_gone_forgotten() {
    let is = |text: &str| Some(whole(text));
    assert_eq!(after_old(None, vec![create("1")]), is("1"));
    assert_eq!(after_old(None, vec![edit("1", "2")]), is("2"));
    assert_eq!(after_old(Some("1"), vec![edit("1", "2"), edit("2", "3")]), is("3"));
    let delete = || (Operation::Delete { path: path("a") }, Detail::Deleted { path: path("a") });
    assert_eq!(after_old(Some("1"), vec![delete()]), None);
    // Of an edit of an older version nothing is known but that it was made.
    let (operation, _) = edit("1", "2");
    let detail = Detail::Replaced { path: path("a"), edits: 1, revision: None };
    assert_eq!(after_old(Some("1"), vec![(operation, detail)]), None);
}

#[test]
fn a_file_that_had_changed_is_not_seen_for_an_edit_by_search() {
    assert_eq!(after_old(Some("1"), vec![edit("x", "y")]), Some(whole("1")));
    assert_eq!(after_old(Some("1"), vec![edit("x", "y"), create("2")]), Some(whole("2")));
    // But for the lines that are shown with it.
    let all = after(seen(&[("a", "old")]), vec![search("x", "new", excerpt(3..=5, 0))]);
    assert_eq!(states(&all, 7), "oonnnoo");
}

#[test]
fn a_part_of_a_file_that_changed_makes_only_that_part_known() {
    let mut all = seen_in_part(&[(3, 5)]);
    assert_eq!(states(&all, 7), "oonnnoo");
    assert_eq!(all.get(&path("a"), (3, 5)), Some(&whole("new")));
    for across in [(2, 3), (5, 6), (1, 7), (5, 4)] {
        assert_eq!(all.get(&path("a"), across), Some(&whole("old")), "{across:?}");
    }
    all.see_lines(&path("a"), whole("new"), &[(6, 6), (1, 1)]);
    assert_eq!(states(&all, 7), "nonnnno");
    assert_eq!(all.get(&path("a"), (4, 6)), Some(&whole("new")));
    // A third state: what was seen of the second is of no use.
    all.see_lines(&path("a"), whole("later"), &[(2, 3)]);
    assert_eq!(states(&all, 7), "olloooo");
    all.see(path("a"), whole("later"));
    assert_eq!(states(&all, 7), "lllllll");
}

#[test]
fn a_part_of_a_file_that_did_not_change_changes_nothing() {
    let mut all = seen(&[("a", "old")]);
    all.see_lines(&path("a"), whole("old"), &[(3, 5)]);
    assert_eq!(states(&all, 7), "ooooooo");
    let mut part = SeenFiles::default();
    part.see_lines(&path("a"), whole("old"), &[(3, 5)]);
    assert_eq!(states(&part, 7), "ooooooo");
    // It is as it was again, and these lines are shown so.
    let mut all = seen_in_part(&[(3, 5)]);
    all.see_lines(&path("a"), whole("old"), &[(4, 7)]);
    assert_eq!(states(&all, 7), "oonoooo");
    all.see_lines(&path("a"), whole("old"), &[(1, 3)]);
    assert_eq!(all.0[&path("a")].newer, None);
    // The beginning of a large file that may be what an edit made of it.
    let mut large = seen(&[("a", "old")]);
    large.see_lines(&path("a"), Seen::of(b"ol", 3), &[(1, 1)]);
    assert_eq!(states(&large, 2), "oo");
    large.see_lines(&path("a"), Seen::of(b"ol", 4), &[(1, 1)]);
    assert_eq!(states(&large, 2), "?o");
}

#[test]
fn fresh_lines_count_when_they_are_told_and_go_with_what_came_after_them() {
    let old = || seen(&[("a", "old")]);
    let all = after(old(), vec![refused("x", (1, 9)), refused("new", (2, 4))]);
    assert_eq!(states(&all, 5), "onnno");
    let all = after(old(), vec![refused("new", (2, 4)), refused("new", (5, 6))]);
    assert_eq!(states(&all, 7), "onnnnno");
    // An edit by search: above what is shown with it nothing moved.
    let later = search("new", "later", excerpt(4..=5, 0));
    let all = after(old(), vec![refused("new", (2, 9)), later]);
    assert_eq!(states(&all, 9), "olllloooo");
    // One of which nothing, or not every place, is shown may be anywhere.
    for nowhere in [edit("new", "later"), search("new", "later", excerpt(4..=5, 1))] {
        let shown = nowhere.1.excerpt().is_some();
        let all = after(old(), vec![refused("new", (2, 9)), nowhere]);
        assert_eq!(states(&all, 6), if shown { "ooollo" } else { "oooooo" });
    }
    let all = after(old(), vec![refused("x", (1, 3)), create("new")]);
    assert_eq!(states(&all, 4), "nnnn");
    // Nobody was told yet.
    let mut within = old();
    let (step, outcome) = step(refused("new", (1, 1)));
    within.take_in(&step, &outcome);
    assert_eq!(within, old());
}

#[test]
fn an_edit_by_lines_moves_the_lines_that_are_known() {
    let mut all = seen_in_part(&[(2, 3), (6, 7)]);
    let (step, outcome) = step(edit_lines("new", "later", (2, 2), 3));
    all.take_in(&step, &outcome);
    assert_eq!(states(&all, 10), "olllloollo");
    // What is seen as it stands is seen after it.
    let all = after(seen(&[("a", "old")]), vec![edit_lines("old", "new", (2, 2), 3)]);
    assert_eq!(states(&all, 3), "nnn");
    // It is as it was at first again: what was seen of the state between is of no use.
    let mut all = seen_in_part(&[(2, 3)]);
    let (step, outcome) = self::step(edit("old", "later"));
    all.take_in(&step, &outcome);
    assert_eq!(states(&all, 4), "lnnl");
    // Another edit of a state that nobody saw tells of itself.
    let all = after(seen_in_part(&[(2, 3)]), vec![search("x", "later", excerpt(5..=6, 0))]);
    assert_eq!(states(&all, 7), "oooollo");
}

#[test]
fn what_was_not_shown_after_all_is_forgotten() {
    let came_to = vec![refused("new", (1, 3)), search("new", "later", excerpt(2..=3, 0))];
    let outcomes: Vec<Outcome> = came_to.iter().cloned().map(|both| step(both).1).collect();
    let mut all = after(seen(&[("a", "old")]), came_to);
    assert_eq!(states(&all, 4), "lllo");
    all.forget_shown(&outcomes);
    assert_eq!(states(&all, 4), "oooo");
}

#[test]
fn what_is_moved_is_still_seen() {
    let mut all = seen(&[("f/a", "1"), ("f/b/c", "2"), ("fa", "3"), ("g/a", "old")]);
    all.carry_over(&path("f"), &path("g"));
    let paths: Vec<&str> = all.0.keys().map(RelPath::as_str).collect();
    assert_eq!(paths, ["fa", "g/a", "g/b/c"]);
    assert_eq!(all.get(&path("g/a"), (1, 1)), Some(&whole("1")));
    all.carry_over(&path("fa"), &path("x"));
    assert!(all.get(&path("fa"), (1, 1)).is_none() && all.get(&path("x"), (1, 1)).is_some());
    let mut part = seen_in_part(&[(2, 2)]);
    part.carry_over(&path("a"), &path("b"));
    assert_eq!(part.get(&path("b"), (2, 2)), Some(&whole("new")));
}

#[test]
fn the_oldest_is_forgotten() {
    let mut all = SeenFiles::default();
    for n in 0..REMEMBERED + 2 {
        all.see(path(&format!("{n}")), Seen::whole(b""));
        all.see_lines(&path("0"), Seen::whole(b""), &[(1, 1)]);
    }
    assert_eq!(all.0.len(), REMEMBERED);
    assert!(all.get(&path("0"), (1, 1)).is_some() && all.get(&path("1"), (1, 1)).is_none());
}

#[test]
fn it_is_kept_as_json_and_that_of_the_version_before_is_read() {
    for all in [seen(&[("a", "old"), ("b", "1")]), seen_in_part(&[(2, 3), (7, 7)])] {
        let json = serde_json::to_string(&all).unwrap();
        assert_eq!(serde_json::from_str::<SeenFiles>(&json).unwrap(), all);
    }
    let digest = serde_json::to_value(whole("old")).unwrap()["digest"].clone();
    let older = format!(r#"{{"a":{{"digest":{digest},"size":3,"at":4}}}}"#);
    let read: SeenFiles = serde_json::from_str(&older).unwrap();
    assert_eq!(states(&read, 2), "oo");
    assert_eq!(serde_json::to_string(&read).unwrap(), older);
    let part = serde_json::to_value(seen_in_part(&[(2, 3)])).unwrap();
    assert_eq!(part["a"]["newer"]["lines"], serde_json::json!([[2, 3]]));
}

#[test]
fn what_is_in_doubt_is_like_nothing_that_stands_there() {
    let mut all = seen(&[("a", "1"), ("b", "2")]);
    all.see_lines(&path("a"), Seen::whole(b"3"), &[(1, 1)]);
    let many = (0..REMEMBERED).map(|n| path(&format!("n{n}")));
    all.doubt(many.chain([path("a")]));
    let a = all.get(&path("a"), (1, 1)).unwrap();
    assert!(!a.is(b"1") && !a.is(b"3") && !a.is(b"") && !a.fits(&Seen::whole(b"1")));
    assert!(all.get(&path("b"), (1, 1)).unwrap().is(b"2"));
    assert!(all.get(&path("n0"), (1, 1)).is_some() && all.0.len() == REMEMBERED);
    assert!(all.get(&path(&format!("n{}", REMEMBERED - 3)), (1, 1)).is_some());
    assert!(all.get(&path(&format!("n{}", REMEMBERED - 2)), (1, 1)).is_none());
}

#[test]
fn what_is_in_doubt_and_was_seen_is_not_forgotten_for_what_was_not() {
    let outdated = |all: &SeenFiles| all.get(&path("f"), (1, 1)) == Some(&Seen::outdated());
    for (first, others) in [(true, 140), (false, 140), (true, REMEMBERED), (false, REMEMBERED)] {
        let mut all = seen(&[("f", "1")]);
        (0..200).for_each(|n| all.see(path(&format!("seen{n}")), whole("x")));
        let unseen: Vec<_> = (0..others).map(|n| path(&format!("unseen{n}"))).collect();
        let (before, after) = unseen.split_at(if first { 0 } else { others });
        all.doubt([before, &[path("f")], after].concat().into_iter());
        assert!(outdated(&all) && all.0.len() == REMEMBERED, "{first}, {others}");
        assert!((0..200).all(|n| all.get(&path(&format!("seen{n}")), (1, 1)).is_some()));
        // Of all that is there it is forgotten last.
        (1..REMEMBERED).for_each(|n| all.see(path(&format!("later{n}")), whole("x")));
        assert!(outdated(&all), "{first}, {others}");
    }
}
