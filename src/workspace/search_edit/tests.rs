//! Edits by search, compared with a naive implementation.

use proptest::prelude::*;

use super::*;

fn pair(old: &str, new: &str) -> Replacement {
    Replacement { old: old.into(), new: new.into() }
}

fn edit(old: &str, pairs: &[(&str, &str)]) -> Result<(String, Vec<FuzzyMatch>), EditError> {
    let pairs: Vec<Replacement> = pairs.iter().map(|(old, new)| pair(old, new)).collect();
    let found = replace_once(old.as_bytes(), &pairs, u64::MAX)?;
    Ok((String::from_utf8(found.bytes).unwrap(), found.fuzzy_matches))
}

#[track_caller]
fn check(old: &str, pairs: &[(&str, &str)], new: &str) {
    assert_eq!(edit(old, pairs).unwrap(), (new.to_owned(), vec![]));
}

fn loosely(line: usize, likeness: Likeness) -> Vec<FuzzyMatch> {
    vec![FuzzyMatch { line, likeness }]
}

#[test]
fn whole_lines_are_replaced() {
    check("a\nb\nc\n", &[("b\n", "x\ny\n")], "a\nx\ny\nc\n");
    check("a\nb\nc\n", &[("a\nb\nc\n", "")], "");
    check("a\n\nc\n", &[("\n", "x\n")], "a\nx\nc\n");
    check("ab\nb\nba\n", &[("b\n", "x\n")], "ab\nx\nba\n");
    check("a\nb\n", &[("a\n", "b\n"), ("b\nb\n", "c\n")], "c\n");
    assert_eq!(edit("abc\n", &[("b\n", "x\n")]), Err(EditError::NotFound { n: 0 }));
    assert_eq!(edit("", &[("\n", "x\n")]), Err(EditError::NotFound { n: 0 }));
    assert_eq!(edit("a\n", &[("a\n", "b\n"), ("", "x\n")]), Err(EditError::Empty { n: 1 }));
}

#[test]
fn a_file_keeps_its_line_endings() {
    check("a\r\nb\r\nc\r\n", &[("b\n", "x\ny\n")], "a\r\nx\r\ny\r\nc\r\n");
    check("a\r\nb\nc\n", &[("b\n", "x\n")], "a\r\nx\nc\n");
    check("a\r\nb\nc\n", &[("a\nb\n", "x\ny\n")], "x\r\ny\r\nc\n");
    check("a\nb", &[("b\n", "x\ny\n")], "a\nx\ny");
    check("a\r\nb", &[("b\n", "x\ny\n")], "a\r\nx\r\ny");
    check("a\nb", &[("b\n", "")], "a");
    check("a\nb\r\nc", &[("c\n", "")], "a\nb");
    check("a", &[("a\n", "")], "");
    check("a\n", &[("a\n", "x\r\n")], "x\r\n");
    check("a\r\n", &[("a\r\n", "x\r\n")], "x\r\n");
}

#[test]
fn trailing_blanks_and_look_alikes_are_left_out_of_account_last() {
    let found = edit("a  \n\tb\t\nc\n", &[("a\n\tb\n", "x\n")]).unwrap();
    assert_eq!(found, ("x\nc\n".into(), loosely(1, Likeness::TrailingBlanks)));
    let found = edit("a\nb\n", &[("b \n", "x \n")]).unwrap();
    assert_eq!(found, ("a\nx \n".into(), loosely(2, Likeness::TrailingBlanks)));
    let text = "say(\u{201c}it\u{2019}s\u{201d})\u{a0}\u{2014} 1\u{2026} \n";
    let found = edit(text, &[("say(\"it's\") - 1...\n", "\u{201c}\n")]).unwrap();
    assert_eq!(found, ("\u{201c}\n".into(), loosely(1, Likeness::Punctuation)));
    let found = edit("f(a, b)\n", &[("f\u{ff08}a\u{ff0c} b\u{ff09}\n", "x\n")]).unwrap();
    assert_eq!(found, ("x\n".into(), loosely(1, Likeness::Punctuation)));
    // An exact match takes precedence.
    check("a \na\n", &[("a\n", "x\n")], "a \nx\n");
    check("\u{2018}\n'\n", &[("'\n", "x\n")], "\u{2018}\nx\n");
}

#[test]
fn nothing_is_fuzzier() {
    for (text, sought) in [
        ("  a\n", "a\n"),
        ("a b\n", "a  b\n"),
        ("A\n", "a\n"),
        ("\u{ff41}\n", "a\n"),
        ("a\u{200b}\n", "a\n"),
        ("`a`\n", "'a'\n"),
        ("a\n\nb\n", "a\nb\n"),
        ("e\u{301}\n", "\u{e9}\n"),
    ] {
        assert_eq!(edit(text, &[(sought, "x\n")]), Err(EditError::NotFound { n: 0 }), "{text:?}");
    }
}

#[test]
fn what_occurs_more_than_once_is_told_with_its_lines_in_the_file() {
    let often = |n, lines: &[Option<usize>], more, likeness| {
        let count = lines.len() + more;
        Err(EditError::NotUnique { n, lines: lines.to_vec(), count, all: true, likeness })
    };
    assert_eq!(edit("a\nb\na\n", &[("a\n", "x\n")]), often(0, &[Some(1), Some(3)], 0, None));
    // Occurrences may overlap.
    assert_eq!(edit("a\na\na\n", &[("a\na\n", "x\n")]), often(0, &[Some(1), Some(2)], 0, None));
    let blanks = Some(Likeness::TrailingBlanks);
    assert_eq!(edit("a \nb\na  \n", &[("a\n", "")]), often(0, &[Some(1), Some(3)], 0, blanks));
    let many = "a\n".repeat(30);
    let first: Vec<_> = (1..=REPORTED).map(Some).collect();
    assert_eq!(edit(&many, &[("a\n", "")]), often(0, &first, 20, None));
    // If counting would be too much work, it stops early.
    let blank = "\n".repeat(20_000);
    let found = edit(&blank, &[(&blank[..10_000], "x\n")]);
    assert!(
        matches!(found, Err(EditError::NotUnique { count: 11..100, all: false, .. })),
        "{found:?}"
    );
    // Lines of the original file, and lines that an earlier edit inserted.
    assert_eq!(
        edit("p\nq\na\n", &[("p\n", "1\n2\na\n3\n"), ("a\n", "x\n")]),
        often(1, &[None, Some(3)], 0, None)
    );
    assert_eq!(
        edit("p\nq\na\nb\na\n", &[("p\nq\n", ""), ("a\n", "x\n")]),
        often(1, &[Some(3), Some(5)], 0, None)
    );
}

#[test]
fn changed_places_are_those_of_the_file_as_it_is_in_the_end() {
    let places = |old: &str, pairs: &[(&str, &str)]| {
        let pairs: Vec<Replacement> = pairs.iter().map(|(old, new)| pair(old, new)).collect();
        let found = replace_once(old.as_bytes(), &pairs, u64::MAX).unwrap();
        (found.places, found.more)
    };
    let file = "a\nb\nc\nd\n";
    assert_eq!(places(file, &[("d\n", "x\n"), ("a\n", "1\n2\n3\n")]), (vec![(6, 1), (1, 3)], 0));
    assert_eq!(places(file, &[("b\n", ""), ("c\n", "x\ny\n")]), (vec![(2, 0), (2, 2)], 0));
    // A later edit that replaces lines inside and after the lines that an earlier edit inserted.
    assert_eq!(places(file, &[("b\n", "1\n2\n"), ("2\nc\n", "x\ny\nz\n")]), (vec![(2, 4)], 0));
    let many: String = (0..100).map(|n| format!("{n}\n")).collect();
    let olds: Vec<String> = (0..100).map(|n| format!("{n}\n")).collect();
    let pairs: Vec<(&str, &str)> = olds.iter().map(|old| (old.as_str(), "x\n")).collect();
    let (kept, more) = places(&many, &pairs);
    assert_eq!((kept.len(), more), (MAX_PLACES, 100 - MAX_PLACES));
}

#[test]
fn what_all_edits_look_at_is_counted() {
    let pairs: Vec<Replacement> = (0..100).map(|_| pair("a\n", "a\n")).collect();
    let text = format!("a\n{}", "b\n".repeat(1000));
    assert_eq!(replace_once(text.as_bytes(), &pairs, 100_000), Err(EditError::TooMuch));
    assert!(replace_once(text.as_bytes(), &pairs, 250_000).is_ok());
}

#[test]
fn the_only_line_of_a_text_is_found() {
    assert_eq!(line_of(b"a\r\nb\r\nc", "b\nc\n"), Some(2));
    assert_eq!(line_of(b"a\na\n", "a\n"), None);
    assert_eq!(line_of(b"a\n", ""), None);
}

/// A line without the details that a stage ignores, implemented in another way.
fn simplified(line: &str, stage: usize) -> String {
    match stage {
        0 => line.to_owned(),
        1 => line.trim_end().to_owned(),
        _ => line
            .trim_end()
            .replace(['\u{2019}'], "'")
            .replace(['\u{201c}'], "\"")
            .replace(['\u{2014}'], "-")
            .replace(['\u{a0}'], " "),
    }
}

/// The expected file after one edit. An error is the number of occurrences.
fn naive(old: &str, sought: &str, new: &str) -> Result<String, usize> {
    let ended = old.is_empty() || old.ends_with('\n');
    let mut lines: Vec<(String, &str)> = old
        .split_terminator('\n')
        .map(|line| match line.strip_suffix('\r') {
            Some(line) => (line.to_owned(), "\r\n"),
            None => (line.to_owned(), "\n"),
        })
        .collect();
    if !ended {
        let last = lines.len() - 1;
        let line = old.rsplit('\n').next().unwrap();
        lines[last] = (line.to_owned(), if last > 0 { lines[0].1 } else { "\n" });
    }
    let sought: Vec<&str> = sought.split_terminator('\n').collect();
    for stage in 0..3 {
        let found: Vec<usize> = (0..lines.len())
            .filter(|at| {
                lines.len() - at >= sought.len()
                    && sought.iter().zip(&lines[*at..]).all(|(sought, (line, _))| {
                        simplified(sought, stage) == simplified(line, stage)
                    })
            })
            .collect();
        match found[..] {
            [] => {}
            [at] => {
                let ending = lines[at].1;
                let new = new.split_terminator('\n').map(|line| (line.to_owned(), ending));
                lines.splice(at..at + sought.len(), new);
                let mut text: String =
                    lines.iter().map(|(line, ending)| format!("{line}{ending}")).collect();
                if !ended && let Some((_, ending)) = lines.last() {
                    text.truncate(text.len() - ending.len());
                }
                return Ok(text);
            }
            _ => return Err(found.len()),
        }
    }
    Err(0)
}

fn lines(most: usize) -> impl Strategy<Value = Vec<&'static str>> {
    let line = prop::sample::select(vec![
        "", "a", "a ", "a\t", "b", "'", "\u{2019}", "\u{201c}", "\"", "-", "\u{2014}", " b",
        "\u{a0}b", "ab",
    ]);
    prop::collection::vec(line, 0..most)
}

fn text(most: usize) -> impl Strategy<Value = String> {
    (lines(most), prop::collection::vec(any::<bool>(), most), any::<bool>()).prop_map(
        |(lines, crlf, ended)| {
            let ending = |crlf: &bool| if *crlf { "\r\n" } else { "\n" };
            let mut text: String = lines
                .iter()
                .zip(&crlf)
                .map(|(line, crlf)| format!("{line}{}", ending(crlf)))
                .collect();
            if !ended {
                text.truncate(text.trim_end_matches(['\r', '\n']).len());
            }
            text
        },
    )
}

fn whole(lines: &[&str]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

proptest! {
    #[test]
    fn one_edit_is_what_a_naive_reading_says(
        old in text(8),
        sought in lines(4).prop_filter("it is not empty", |lines| !lines.is_empty()),
        new in lines(4),
    ) {
        let (sought, new) = (whole(&sought), whole(&new));
        match (edit(&old, &[(&sought, &new)]), naive(&old, &sought, &new)) {
            (Ok((text, _)), Ok(naive)) => prop_assert_eq!(text, naive),
            (Err(EditError::NotFound { .. }), Err(0)) => {}
            (Err(EditError::NotUnique { lines, count: told, all, .. }), Err(count)) => {
                prop_assert!(count > 1);
                prop_assert_eq!((lines.len(), told, all), (count.min(REPORTED), count, true));
            }
            (text, naive) => prop_assert!(false, "{text:?} {naive:?}"),
        }
    }

    #[test]
    fn several_are_all_or_none_and_as_one_after_another(
        old in text(8),
        pairs in prop::collection::vec((lines(3), lines(3)), 0..5),
    ) {
        let pairs: Vec<Replacement> = pairs
            .iter()
            .filter(|(sought, _)| !sought.is_empty())
            .map(|(sought, new)| pair(&whole(sought), &whole(new)))
            .collect();
        let mut one_by_one = Ok(old.clone());
        for Replacement { old, new } in &pairs {
            one_by_one = one_by_one.and_then(|text: String| naive(&text, old, new));
        }
        let found = replace_once(old.as_bytes(), &pairs, u64::MAX);
        match (found, one_by_one) {
            (Ok(found), Ok(text)) => {
                prop_assert_eq!(String::from_utf8(found.bytes).unwrap(), text.clone());
                // A last line without an ending counts as a line even if it is empty.
                let ended = old.is_empty() || old.ends_with('\n');
                let total = text.matches('\n').count() + usize::from(!ended);
                for (line, count) in found.places {
                    prop_assert!(line >= 1 && line + count <= total + 1, "{line} {count} {total}");
                }
            }
            (Err(_), Err(_)) => {}
            (found, text) => prop_assert!(false, "{found:?} {text:?}"),
        }
    }

    #[test]
    fn any_bytes_come_back_where_a_line_is_put_in_its_own_place(
        bytes in prop::collection::vec(prop::sample::select(b"ab\r\n\xff\xc3\xa9 ".to_vec()), 0..40),
    ) {
        prop_assert_eq!(FileLines::of(&bytes).into_bytes(), bytes);
    }
}
