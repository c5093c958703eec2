//! The body of an edit by search: pairs of a text that the file holds and the one to put in its
//! place.
//!
//! ```text
//! pair = "<<<<<<< SEARCH" NL { line NL } "=======" NL { line NL } ">>>>>>> REPLACE" NL
//! ```
//!
//! The three lines of a pair have the same number of signs, five to forty, so that a pair whose texts
//! hold such lines can have more of them. Between pairs stand blank lines, or those of a fence.

use super::attributes::brief;
use super::notes::fence_of;
use super::wrong::{Wrong, wrong};
use crate::protocol::{Mistake, Replacement};

/// How to write such an edit, for error messages.
pub(super) const FORM: &str = "[EDIT_FILE path=\"relative/path\"], on the lines below <<<<<<< SEARCH, lines of the file as they are, =======, the new lines, >>>>>>> REPLACE, each marker alone on a line, then [/EDIT_FILE] alone on a line";

/// How many signs a line of a pair can have.
const SIGNS: std::ops::RangeInclusive<usize> = 5..=40;

/// Whether a body is meant as pairs.
pub(super) fn are_in(body: &str) -> bool {
    body.lines().any(|line| begin(line).is_some())
}

/// Whether a body holds nothing but pairs, be the last one whole or not.
pub(super) fn are_all(body: &str) -> bool {
    let mut within = None;
    let mut some = false;
    for line in body.lines() {
        match within {
            Some(signs) if is_marker(line, '>', signs, "REPLACE") => within = None,
            Some(_) => {}
            None => match begin(line) {
                Some(signs) => (within, some) = (Some(signs), true),
                None if line.trim().is_empty() || fence_of(line.trim_end()).is_some() => {}
                None => return false,
            },
        }
    }
    some
}

/// The pairs of a body, each text as whole lines.
pub(super) fn read(body: &str) -> Result<Vec<Replacement>, Wrong> {
    let no_pair = |told| wrong(Mistake::SearchPairs, told);
    let mut pairs = Vec::new();
    let mut lines = body.split_inclusive('\n').enumerate();
    while let Some((n, line)) = lines.next() {
        let Some(signs) = begin(line) else {
            if line.trim().is_empty() || fence_of(line.trim_end()).is_some() {
                continue;
            }
            return Err(no_pair(format!(
                "`{}` (line {} of the body) stands outside of <<<<<<< SEARCH and >>>>>>> REPLACE",
                brief(line.trim()),
                n + 1
            )));
        };
        let mut texts = [String::new(), String::new()];
        let mut in_new = false;
        let mut closed = false;
        for (_, line) in lines.by_ref() {
            if is_marker(line, '>', signs, "REPLACE") {
                closed = true;
                break;
            }
            if is_marker(line, '=', signs, "") {
                if in_new {
                    return Err(no_pair(ambiguous(n, signs)));
                }
                in_new = true;
            } else if begin(line) == Some(signs) {
                return Err(no_pair(format!(
                    "the pair that begins on line {} of the body does not end before the next one: it ends with {} REPLACE",
                    n + 1,
                    ">".repeat(signs)
                )));
            } else {
                texts[usize::from(in_new)].push_str(line);
            }
        }
        if !closed || !in_new {
            let missing =
                if in_new { format!("{} REPLACE", ">".repeat(signs)) } else { "=".repeat(signs) };
            return Err(no_pair(format!(
                "the pair that begins on line {} of the body has no line {missing}",
                n + 1
            )));
        }
        let [old, new] = texts;
        if old.is_empty() {
            return Err(no_pair(format!(
                "the pair that begins on line {} of the body searches for nothing: give the lines that are to be replaced, or one beside which lines are to be put in",
                n + 1
            )));
        }
        pairs.push(Replacement { old, new });
    }
    Ok(pairs)
}

/// The pairs as a body, the inverse of [`read`].
pub(super) fn write(pairs: &[Replacement]) -> String {
    let mut body = String::new();
    for Replacement { old, new } in pairs {
        let taken = |signs: &usize| {
            let (divider, end) = ("=".repeat(*signs), format!("{} REPLACE", ">".repeat(*signs)));
            old.lines().chain(new.lines()).any(|line| {
                let line = line.trim_end();
                line == divider || line == end || begin(line) == Some(*signs)
            })
        };
        let signs = (7..=*SIGNS.end()).find(|signs| !taken(signs)).unwrap_or(7);
        let (begin, divider, end) = ("<".repeat(signs), "=".repeat(signs), ">".repeat(signs));
        body.push_str(&format!("{begin} SEARCH\n{old}{divider}\n{new}{end} REPLACE\n"));
    }
    body
}

/// How many signs the first line of a pair has, if this is one.
fn begin(line: &str) -> Option<usize> {
    let signs = line.len() - line.trim_start_matches('<').len();
    (SIGNS.contains(&signs) && is_marker(line, '<', signs, "SEARCH")).then_some(signs)
}

fn is_marker(line: &str, sign: char, signs: usize, word: &str) -> bool {
    let rest = line.trim_start_matches(sign);
    line.len() - rest.len() == signs && rest.trim() == word
}

fn ambiguous(n: usize, signs: usize) -> String {
    format!(
        "the pair that begins on line {} of the body has two lines {}: where its texts hold such a line, give its own three lines more signs, as in {} SEARCH",
        n + 1,
        "=".repeat(signs),
        "<".repeat(signs + 2)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(body: &str) -> Vec<(String, String)> {
        read(body).unwrap().into_iter().map(|pair| (pair.old, pair.new)).collect()
    }

    #[test]
    fn pairs_are_read_with_their_lines_as_they_are() {
        let body = "<<<<<<< SEARCH\n  a\n\n=======\n\tb\n>>>>>>> REPLACE\n\n```\n<<<<< SEARCH \nx\n=====\n>>>>> REPLACE\n```\n";
        assert_eq!(
            pairs(body),
            [("  a\n\n".into(), "\tb\n".into()), ("x\n".into(), String::new())]
        );
    }

    #[test]
    fn texts_with_such_lines_need_more_signs() {
        let body = "<<<<<<<<< SEARCH\n<<<<<<< SEARCH\n=======\n>>>>>>> REPLACE\n=========\nx\n>>>>>>>>> REPLACE\n";
        assert_eq!(pairs(body)[0].0, "<<<<<<< SEARCH\n=======\n>>>>>>> REPLACE\n");
        let error =
            read("<<<<<<< SEARCH\na\n=======\n=======\n>>>>>>> REPLACE\n").unwrap_err().phrase;
        assert!(
            error.contains("two lines =======") && error.contains("<<<<<<<<< SEARCH"),
            "{error}"
        );
    }

    #[test]
    fn what_is_no_pair_is_an_error() {
        for (body, words) in [
            ("<<<<<<< SEARCH\na\n", "has no line ======="),
            ("<<<<<<< SEARCH\na\n=======\nb\n", "has no line >>>>>>> REPLACE"),
            ("<<<<<<< SEARCH\n=======\nb\n>>>>>>> REPLACE\n", "searches for nothing"),
            ("hm\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n", "`hm` (line 1 of the body)"),
            ("<<<<<<< SEARCH\na\n<<<<<<< SEARCH\n", "does not end before the next one"),
        ] {
            let error = read(body).unwrap_err().phrase;
            assert!(error.contains(words), "{error}");
        }
        assert!(!are_in("<<<< SEARCH\n") && are_in("x\n<<<<<<< SEARCH\n"));
    }
}
