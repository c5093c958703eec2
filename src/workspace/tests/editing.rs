//! Line edits agree with a simple model.

use proptest::prelude::*;
use proptest::sample::select;

use crate::workspace::edit::{count_lines, replace_lines};

/// Texts that consist of these pieces.
fn pieces(of: &'static [&'static str], most: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(select(of), 0..most).prop_map(|pieces| pieces.concat())
}

/// The lines of a text, each with its line ending.
fn lines(text: &str) -> Vec<(String, &'static str)> {
    text.split_inclusive('\n')
        .map(|line| match (line.strip_suffix("\r\n"), line.strip_suffix('\n')) {
            (Some(line), _) => (line.to_owned(), "\r\n"),
            (None, Some(line)) => (line.to_owned(), "\n"),
            (None, None) => (line.to_owned(), ""),
        })
        .collect()
}

/// The expected result of an edit, implemented in a simple way.
fn edited(old: &str, start: usize, end: usize, with: &str) -> String {
    let mut all = lines(old);
    let bare = all.last().is_some_and(|(_, ending)| ending.is_empty());
    let to_the_end = end == all.len();
    let ending = [start - 1, 0].map(|n| all[n].1).into_iter().find(|ending| !ending.is_empty());
    let ending = ending.unwrap_or("\n");
    let new = with.split_inclusive('\n').map(|line| {
        let line = line.strip_suffix('\n').unwrap();
        match ending {
            "\r\n" => (line.strip_suffix('\r').unwrap_or(line).to_owned(), ending),
            _ => (line.to_owned(), ending),
        }
    });
    all.splice(start - 1..end, new.collect::<Vec<_>>());
    if let (true, true, Some(last)) = (bare, to_the_end, all.last_mut()) {
        last.1 = "";
    }
    all.into_iter().flat_map(|(line, ending)| [line, ending.to_owned()]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn edits_of_lines_agree_with_the_model(
        old in pieces(&["a", "b", "é", "\n", "\n", "\r\n", "\r"], 12),
        with in pieces(&["x", "y\n", "\n", "\r\n", "\r"], 6),
        start in 0usize..7,
        more in 0usize..5,
    ) {
        let with = if with.is_empty() || with.ends_with('\n') { with } else { with + "\n" };
        let (end, total) = (start + more, lines(&old).len());
        match replace_lines(old.as_bytes(), start, end, &with) {
            Err(told) => {
                prop_assert!(start == 0 || end > total);
                prop_assert_eq!(told, total);
            }
            Ok(result) => {
                prop_assert!(start > 0 && end <= total);
                let new = String::from_utf8(result.bytes).unwrap();
                prop_assert_eq!(&new, &edited(&old, start, end, &with), "{:?} {:?}", old, with);
                prop_assert_eq!(result.total, count_lines(new.as_bytes()));
                prop_assert_eq!(result.inserted, with.matches('\n').count());
            }
        }
    }
}
