//! The descriptions of changes, and the reasons why changes are refused.

use super::*;

fn path() -> RelPath {
    RelPath::parse("a.py").unwrap()
}

fn once(old: &str, pairs: &[(&str, &str)]) -> Result<(String, Detail), Failure> {
    let pair = |(old, new): &(&str, &str)| Replacement { old: (*old).into(), new: (*new).into() };
    let change = Change::Once(pairs.iter().map(pair).collect());
    let (bytes, detail) = changed(&path(), old.as_bytes(), &change)?;
    Ok((String::from_utf8(bytes).unwrap(), detail))
}

fn lines(
    old: &str,
    (start, end): (usize, usize),
    seen: Option<&str>,
) -> Result<(Vec<u8>, Detail), Failure> {
    let seen = seen.map(|seen| FileVersion::whole(seen.as_bytes()));
    let change = Change::Lines { start, end, with: "x\n".into(), seen };
    changed(&path(), old.as_bytes(), &change)
}

/// The numbers of the shown lines.
fn numbers(excerpt: &Excerpt) -> Vec<usize> {
    excerpt.lines.iter().map(|(number, _)| *number).collect()
}

#[test]
fn an_edit_tells_the_file_before_and_after_and_shows_the_lines_around_it() {
    let (_, detail) = lines("1\n2\n3\n", (2, 2), Some("1\n2\n3\n")).unwrap();
    let revision = detail.revision().unwrap();
    assert_eq!(revision.before, FileVersion::whole(b"1\n2\n3\n"));
    assert_eq!(revision.after, FileVersion::whole(b"1\nx\n3\n"));
    let shown = [(1, "1".to_owned()), (2, "x".to_owned()), (3, "3".to_owned())];
    assert_eq!(detail.excerpt().unwrap().lines, shown);
    let (text, detail) = once("1\n2 \n3\n", &[("2\n", "x\n"), ("3\n", "")]).unwrap();
    assert_eq!(text, "1\nx\n");
    assert_eq!(numbers(detail.excerpt().unwrap()), [1, 2]);
    let loosely = FuzzyMatch { line: 2, likeness: Likeness::TrailingBlanks };
    assert_eq!(detail.revision().unwrap().fuzzy_matches, [loosely]);
}

#[test]
fn an_edit_by_lines_of_another_file_than_was_seen_is_refused_with_the_lines_as_they_are() {
    let now: String = (1..=100).map(|n| format!("{n}\n")).collect();
    let failure = lines(&now, (50, 51), Some("older\n")).unwrap_err();
    assert!(failure.reason.starts_with("'a.py' has changed since you last saw it"));
    assert!(failure.reason.contains("Below are lines 47-54 of 100 as they are now"), "{failure:?}");
    assert_eq!(numbers(&failure.excerpt), (47..=54).collect::<Vec<_>>());
    let fresh = failure.present_file.unwrap();
    assert_eq!(*fresh, PresentFile { path: path(), seen: FileVersion::whole(now.as_bytes()) });
    // A range beyond the end of the file, and a range without an end.
    let failure = lines("1\n2\n", (7, 9), Some("older\n")).unwrap_err();
    assert_eq!(numbers(&failure.excerpt), [1, 2]);
    let failure = lines(&now, (1, usize::MAX), Some("older\n")).unwrap_err();
    assert!(failure.excerpt.lines.len() <= Excerpt::LINES);
    assert!(lines("", (1, 1), Some("1\n")).unwrap_err().reason.contains("The file is empty now"));
    // A file that was never seen can be edited, and so can one that has not changed since.
    assert!(lines(&now, (50, 51), None).is_ok() && lines(&now, (50, 51), Some(&now)).is_ok());
}

#[test]
fn a_search_text_that_is_nowhere_is_answered_with_the_nearest_lines() {
    let file = "def f(a):\n    return a\n\ndef g(b):\n    return b + 1\n";
    let failure = once(file, &[("def g(b):\n    return b\n", "x\n")]).unwrap_err();
    assert_eq!(
        failure.reason,
        "'a.py' does not contain the SEARCH text; nothing was changed. The closest match is lines 4-5, shown below. Copy them exactly, without the line numbers"
    );
    assert_eq!(numbers(&failure.excerpt), [1, 2, 3, 4, 5]);
    assert_eq!(failure.present_file.map(|fresh| fresh.path), Some(path()));
    let failure = once(file, &[("def g(b):\n  return b + 1\n", "x\n")]).unwrap_err();
    let told = "The closest match is lines 4-5, shown below; only the white space differs. ";
    assert!(failure.reason.contains(told), "{}", failure.reason);
    let failure = once(file, &[("def f(a):\n", "def f():\n"), ("q\n", "x\n")]).unwrap_err();
    assert_eq!(
        failure.reason,
        "In pair 2 of 2: 'a.py' after the previous pairs does not contain the SEARCH text; nothing was changed, and nothing in it is similar. Read it with READ_FILE, and copy lines exactly"
    );
    assert!(failure.excerpt.is_empty());
    let failure = once(file, &[("def f(a):\n", "def f():\n"), ("def f(a):\n", "x\n")]).unwrap_err();
    let told = "nothing was changed. Before them it is at line 1: combine the pairs that";
    assert!(failure.reason.contains(told), "{}", failure.reason);
}

#[test]
fn what_was_done_already_is_told_so() {
    let failure = once("1\nnew\n3\n", &[("old\n", "new\n")]).unwrap_err();
    assert!(
        failure
            .reason
            .ends_with("The change seems to have been made already: the REPLACE text is at line 2")
    );
    assert_eq!(numbers(&failure.excerpt), [1, 2, 3]);
    // A bracket alone proves nothing.
    assert!(!once("}\n", &[("old\n", "}\n")]).unwrap_err().reason.contains("already"));
}

#[test]
fn a_search_text_that_is_there_more_than_once_is_answered_with_all_places() {
    let told = |old: &str, pairs: &[(&str, &str)]| once(old, pairs).unwrap_err().reason;
    assert_eq!(
        told("a\nb\na\n", &[("a\n", "x\n")]),
        "'a.py' contains the SEARCH text 2 times, at lines 1, 3; nothing was changed. Add lines before or after it until it occurs only once"
    );
    assert!(
        told(&"a\n".repeat(30), &[("a\n", "")])
            .contains(" 30 times, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 20 more; nothing")
    );
    let blank = "\n".repeat(20_000);
    assert!(told(&blank, &[(&blank[..10_000], "x\n")]).contains(" at least "));
    assert!(
        told("a \na\t\n", &[("a\n", "")]).contains(
            "2 times (found by ignoring white space at the ends of lines), at lines 1, 2;"
        )
    );
    assert!(told("p\na\n", &[("p\n", "a\n"), ("a\n", "x\n")]).starts_with(
        "In pair 2 of 2: 'a.py' contains the SEARCH text 2 times, at line 2 of the file and once in the text inserted by previous pairs;"
    ));
}

#[test]
fn lines_that_stand_for_others_are_refused() {
    let reason = once("a\nb\n", &[("a\n", "x\n// ... rest unchanged ...\n")]).unwrap_err().reason;
    assert!(reason.starts_with("Line 2 of the REPLACE text, `// ... rest unchanged ...`, stands"));
    let pairs = [("a\n", "x\n"), ("b\n", ""), ("c\n", "y\n// ...\n")];
    let reason = once("a\nb\nc\n", &pairs).unwrap_err().reason;
    assert!(
        reason.starts_with("In pair 3 of 3: Line 2 of the REPLACE text, `// ...`,"),
        "{reason}"
    );
    let kept = "a\n// ... rest unchanged ...\n";
    assert!(once(kept, &[("a\n", kept)]).is_ok());
}
