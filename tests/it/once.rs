//! Work that is done once: it is counted, never timed.

use deaddrop::outbox::{Rendered, render};
use deaddrop::protocol::{Detail, Excerpt, Kind, RelPath, Revision, Seen};
use deaddrop::tokens;
use deaddrop::workspace::picture;
use deaddrop::workspace::walk::Walk;

use crate::budget::{asked_for, environment, outcome, ran, rendered};

/// An edit, and so many long lines around what it changed.
fn edited(lines: usize) -> Detail {
    let seen = || Seen::whole(b"x\n");
    let lines = (1..=lines).map(|n| (n, format!("line {n} of it ").repeat(20)));
    let excerpt = Excerpt { lines: lines.collect(), more: 0 };
    let revision = Revision { before: seen(), after: seen(), excerpt, loosely: vec![] };
    let path = RelPath::parse("a.py").unwrap();
    Detail::Replaced { path, edits: 1, revision: Some(Box::new(revision)) }
}

#[test]
fn a_walk_is_sorted_once_however_often_its_outbox_is_cut() {
    let huge = "    value = compute(value, other)\n".repeat(3_000);
    let results = (0..50).map(|n| ran("make", &format!("output {n}\n").repeat(300), 0)).collect();
    let (session, files) = asked_for(&[("huge.py", &huge)], results);
    let names: Vec<String> = (0..3_000).map(|n| format!("folder{}/file_{n}.py", n % 50)).collect();
    let walk = Walk::of(names.iter().map(|name| (name.as_str(), 7)));
    for limit in [4_000, 8_000, 24_000, 1_000_000] {
        let before = picture::made();
        let Rendered { text, .. } = render(&session, &environment(limit), &walk, &files);
        assert_eq!(picture::made() - before, 1, "for {limit} tokens");
        assert!(tokens::count(&text) <= limit, "for {limit} tokens");
    }
}

#[test]
fn lines_around_an_edit_are_shortened_to_their_room() {
    let (session, files) = asked_for(&[], vec![outcome(Kind::Edit, edited(200))]);
    let Rendered { text, tokens, .. } = rendered(&session, &files, 8_000);
    assert!(tokens <= 8_000, "{tokens}");
    assert!(text.contains("[OK] EDIT_FILE: Edited 'a.py' (1 replacement)\n    1| line 1 of it "));
    assert!(text.contains(" more lines left out for room ...]\n"), "{text}");
    let whole = rendered(&session, &files, 100_000).text;
    assert!(whole.contains("\n  200| line 200 of it ") && !whole.contains("left out for room"));
}

#[test]
fn results_that_fit_are_whole_whatever_is_cut_beside_them() {
    // Few tokens for as many characters.
    let output = "international information configuration ".repeat(600);
    let (session, files) =
        asked_for(&[("a.py", &"a = 1\n".repeat(5_000))], vec![ran("make", output.trim_end(), 0)]);
    let Rendered { text, tokens, .. } = rendered(&session, &files, 8_000);
    assert!(tokens <= 8_000, "{tokens}");
    assert!(text.contains(output.trim_end()), "{text}");
    assert!(text.contains(" are left out for room: [READ_FILE path=\"a.py\""), "{text}");
}
