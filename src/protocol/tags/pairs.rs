//! Reads the body of an edit by search: pairs of an old text in the file and its replacement.
//!
//! ```text
//! pair = "<<<<<<< SEARCH" NL { line NL } "=======" NL { line NL } ">>>>>>> REPLACE" NL
//! ```
//!
//! The three markers of a pair have the same number of signs, five to forty. So a pair whose texts contain such lines
//! can use more signs. Between pairs, only blank lines and fence lines are allowed.

use std::ops::RangeInclusive;

use memchr::memmem;

use super::lexer::is_zero_width;
use crate::protocol::content_checks::fence::fence_of;
use crate::protocol::mistake::{Problem, brief};
use crate::protocol::{Mistake, Replacement, Warning, WarningKind};

/// How to write the markers; for error messages.
pub(super) const MARKERS: &str = "the markers of a pair are <<<<<<< SEARCH, ======= and >>>>>>> REPLACE, in capitals, at the start of their line, with as many signs in each and nothing else on the line (if they arrive otherwise, send the block in a fence)";

/// The usual number of signs in a marker, and the numbers that are accepted.
const USUAL: usize = 7;
const SIGNS: RangeInclusive<usize> = 5..=40;

/// A marker line: its sign, and the number of signs.
#[derive(Clone, Copy, PartialEq, Eq)]
struct PairMarker(char, usize);

impl PairMarker {
    fn read(line: &str) -> Option<Self> {
        let sign = line.chars().next()?;
        let word = word_of(sign)?;
        let rest = line.trim_start_matches(sign);
        let signs = line.len() - rest.len();
        (SIGNS.contains(&signs) && rest.trim() == word).then_some(Self(sign, signs))
    }

    /// Like `read`, but ignores invisible characters around the marker.
    fn read_visible(line: &str) -> Option<Self> {
        Self::read(line.trim_end().trim_matches(is_zero_width))
    }

    /// The marker in its correct form.
    fn canonical(self) -> String {
        let Self(sign, signs) = self;
        let word = word_of(sign).unwrap_or_default();
        let signs = sign.to_string().repeat(signs);
        if word.is_empty() { signs } else { format!("{signs} {word}") }
    }

    /// A warning if the line of this marker is not in its correct form.
    fn repaired(self, line: &str, number: usize) -> Option<Warning> {
        let meant = Self(self.0, self.1.max(USUAL)).canonical();
        let text = || format!("line {number} `{}` was read as {meant}", brief(line.trim()));
        (line.trim_end() != meant).then(|| Warning::new(WarningKind::TagRepaired, text()))
    }
}

/// The word that follows the signs of a marker.
fn word_of(sign: char) -> Option<&'static str> {
    match sign {
        '<' => Some("SEARCH"),
        '=' => Some(""),
        '>' => Some("REPLACE"),
        _ => None,
    }
}

/// Whether a line begins a pair.
pub(super) fn is_beginning(line: &str) -> bool {
    matches!(PairMarker::read(line), Some(PairMarker('<', _)))
}

/// Whether a line is one of the three markers of a pair.
pub(super) fn is_any_marker(line: &str) -> bool {
    PairMarker::read(line).is_some()
}

/// Whether a body contains a line that begins a pair.
pub(super) fn are_in(body: &str) -> bool {
    let begins = |line: &str| matches!(PairMarker::read_visible(line), Some(PairMarker('<', _)));
    memmem::find(body.as_bytes(), b"<<<<<").is_some() && body.lines().any(begins)
}

/// Whether a body begins with a pair, ignoring blank lines and a fence.
pub(super) fn are_first_in(body: &str) -> bool {
    body.lines().find(|line| !is_between(line)).is_some_and(are_in)
}

/// Whether a line may be between pairs.
fn is_between(line: &str) -> bool {
    line.trim().is_empty() || fence_of(line.trim_end()).is_some()
}

/// Reads the pairs of a body. Each text consists of whole lines. `first` is the number of the body's first line.
pub(super) fn read(
    body: &str,
    first: usize,
    warnings: &mut Vec<Warning>,
) -> Result<Vec<Replacement>, Problem> {
    let fault = |phrase: String| Problem::new(Mistake::SearchPairs, phrase);
    let mut pairs = Vec::new();
    let mut repaired = None;
    let mut lines = (first..).zip(body.split_inclusive('\n'));
    while let Some((begin, line)) = lines.next() {
        let Some(marker @ PairMarker('<', signs)) = PairMarker::read_visible(line) else {
            if is_between(line) {
                continue;
            }
            let shown = brief(line.trim());
            return Err(fault(format!("line {begin} `{shown}` is outside of a pair: {MARKERS}")));
        };
        repaired = repaired.or_else(|| marker.repaired(line, begin));
        let [divider, end] = [PairMarker('=', signs), PairMarker('>', signs)];
        let mut old = String::new();
        let mut new = None;
        let fault = |what: &str| fault(format!("the pair that begins on line {begin} {what}"));
        loop {
            let Some((number, line)) = lines.next() else {
                let missing = if new.is_some() { end } else { divider }.canonical();
                return Err(fault(&format!("has no line {missing}: {MARKERS}")));
            };
            let found = PairMarker::read_visible(line);
            if found == Some(divider) && new.is_some() {
                return Err(fault(&format!(
                    "has two lines {}: if its texts contain such a line, give its own three markers more signs, as in {}",
                    divider.canonical(),
                    PairMarker('<', signs + 2).canonical()
                )));
            } else if found == Some(divider) {
                new = Some(String::new());
                repaired = repaired.or_else(|| divider.repaired(line, number));
            } else if found == Some(marker) {
                return Err(fault(&format!("does not end before the next one: {MARKERS}")));
            } else if found == Some(end) {
                repaired = repaired.or_else(|| end.repaired(line, number));
                break;
            } else {
                new.as_mut().unwrap_or(&mut old).push_str(line);
            }
        }
        let Some(new) = new else {
            return Err(fault(&format!("has no line {}: {MARKERS}", divider.canonical())));
        };
        if old.is_empty() {
            return Err(fault(
                "searches for nothing: give the lines that are to be replaced, or one beside which lines are to be inserted",
            ));
        }
        pairs.push(Replacement { old, new });
    }
    warnings.extend(repaired);
    Ok(pairs)
}

/// If the body in pairs is indented like its tag, removes this indentation. `tag` is the line of the opening tag, and
/// `first` is the line of the reply on which the body begins.
pub(super) fn dedent(body: &mut String, tag: &str, first: usize, warnings: &mut Vec<Warning>) {
    fn dedented(line: &str) -> &str {
        line.trim_start_matches([' ', '\t'])
    }
    if are_in(body) || tag.trim_start_matches(is_zero_width).starts_with(['[', '*', '`', '\\', '#'])
    {
        return;
    }
    let Some(begin) = body.lines().find(|line| is_beginning(dedented(line))) else { return };
    let blanks = &begin[..begin.len() - dedented(begin).len()];
    if !body.lines().all(|line| line.trim().is_empty() || line.starts_with(blanks)) {
        return;
    }
    let text = format!(
        "the body from line {first} on is indented as its tag is; {} characters were removed from the start of each line",
        blanks.len()
    );
    warnings.push(Warning::new(WarningKind::TagRepaired, text));
    let lines = body.split_inclusive('\n');
    *body = lines.map(|line| line.strip_prefix(blanks).unwrap_or_else(|| dedented(line))).collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(body: &str) -> Vec<(String, String)> {
        let pairs = read(body, 2, &mut Vec::new()).unwrap();
        pairs.into_iter().map(|pair| (pair.old, pair.new)).collect()
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
        assert_eq!(pairs(body)[0].1, "x\n");
        let body = "<<<<<<< SEARCH\na\n=======\n=======\n>>>>>>> REPLACE\n";
        let error = read(body, 2, &mut Vec::new()).unwrap_err().phrase;
        assert!(error.contains("two lines =======") && error.contains("<<<<<<<<< SEARCH"));
    }

    #[test]
    fn what_is_no_pair_is_an_error() {
        for (body, words) in [
            ("<<<<<<< SEARCH\na\n", "has no line ======="),
            ("<<<<<<< SEARCH\na\n=======\nb\n", "has no line >>>>>>> REPLACE"),
            ("<<<<<<< SEARCH\n=======\nb\n>>>>>>> REPLACE\n", "searches for nothing"),
            (
                "hm\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n",
                "line 2 `hm` is outside of a pair: the markers",
            ),
            ("<<<<<<< SEARCH\na\n<<<<<<< SEARCH\n", "does not end before the next one"),
            (
                "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> replace\n",
                "begins on line 2 has no line >>>>>>> REPLACE: the markers",
            ),
            (
                "<<<<<<< SEARCH\na\n========\nb\n>>>>>>> REPLACE\n",
                "has no line =======: the markers of a pair are",
            ),
        ] {
            let error = read(body, 2, &mut Vec::new()).unwrap_err().phrase;
            assert!(error.contains(words), "{error}");
        }
        assert!(!are_in("<<<< SEARCH\n") && are_in("x\n<<<<<<< SEARCH\n"));
    }
}
