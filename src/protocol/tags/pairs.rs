//! The body of an edit by search: pairs of a text that is in the file and one that replaces it.
//!
//! ```text
//! pair = "<<<<<<< SEARCH" NL { line NL } "=======" NL { line NL } ">>>>>>> REPLACE" NL
//! ```
//!
//! The three markers of a pair have the same number of signs, five to forty, so that a pair whose texts
//! contain such lines can have more. Between pairs there are only blank lines and those of a fence.

use std::ops::RangeInclusive;

use super::lexer::is_zero_width;
use super::wrong::{Wrong, wrong};
use crate::protocol::content_checks::fence::fence_of;
use crate::protocol::mistake::brief;
use crate::protocol::{Mistake, Replacement, Warning, WarningSort};

/// How to write such an edit, for error messages.
pub(super) const FORM: &str = "[EDIT_FILE path=\"relative/path\"], on the lines below <<<<<<< SEARCH, lines of the file as they are, =======, the new lines, >>>>>>> REPLACE, each marker alone on a line, then [/EDIT_FILE] alone on a line";

/// How the markers are written, for error messages.
const MARKERS: &str = "the markers of a pair are <<<<<<< SEARCH, ======= and >>>>>>> REPLACE, in capitals, with as many signs in each and nothing else on the line";

/// How many signs a marker has as the protocol teaches it, and may have.
const USUAL: usize = 7;
const SIGNS: RangeInclusive<usize> = 5..=40;

/// Whether a body contains the beginning of a pair.
pub(super) fn are_in(body: &str) -> bool {
    body.lines().any(is_beginning)
}

/// Whether a line begins a pair.
pub(super) fn is_beginning(line: &str) -> bool {
    begin(line).is_some()
}

/// Whether a body begins with a pair, but for blank lines and a fence.
pub(super) fn are_first_in(body: &str) -> bool {
    body.lines().find(|line| !is_between(line)).is_some_and(|line| begin(line).is_some())
}

/// Whether a line may stand between pairs.
fn is_between(line: &str) -> bool {
    line.trim().is_empty() || fence_of(line.trim_end()).is_some()
}

/// A warning about a marker that was accepted though it has fewer signs than it should, or no blank behind them.
fn odd(line: &str, number: usize, word: &str) -> Option<Warning> {
    let rest = line.trim_start_matches(['<', '>']);
    let signs = &line[..line.len() - rest.len()];
    (signs.len() < USUAL || rest.starts_with(word)).then(|| {
        let meant = signs[..1].repeat(signs.len().max(USUAL));
        let text = format!("line {number} `{}` was read as {meant} {word}", brief(line.trim()));
        Warning::new(WarningSort::TagRepaired, text)
    })
}

/// The pairs of a body, each text as whole lines; `first` is the line of the reply that it begins on.
pub(super) fn read(
    body: &str,
    first: usize,
    warnings: &mut Vec<Warning>,
) -> Result<Vec<Replacement>, Wrong> {
    let (mut pairs, mut odd_marker) = (Vec::new(), None);
    let mut lines = body.split_inclusive('\n').enumerate();
    while let Some((n, line)) = lines.next() {
        let Some(signs) = begin(line) else {
            if is_between(line) {
                continue;
            }
            let hint = if is_like(line, '<') { format!(": {MARKERS}") } else { String::new() };
            let (n, line) = (first + n, brief(line.trim()));
            let phrase = format!(
                "line {n} `{line}` stands outside of <<<<<<< SEARCH and >>>>>>> REPLACE{hint}"
            );
            return Err(wrong(Mistake::SearchPairs, phrase));
        };
        odd_marker = odd_marker.or_else(|| odd(line, first + n, "SEARCH"));
        let mut texts = [String::new(), String::new()];
        let (mut is_new, mut is_closed, mut hint) = (false, false, String::new());
        let fault = |what: String| {
            let begin = first + n;
            wrong(Mistake::SearchPairs, format!("the pair that begins on line {begin} {what}"))
        };
        let (divider, end) = ("=".repeat(signs), format!("{} REPLACE", ">".repeat(signs)));
        for (at, line) in lines.by_ref() {
            if is_marker(line, '>', signs, "REPLACE") {
                is_closed = true;
                odd_marker = odd_marker.or_else(|| odd(line, first + at, "REPLACE"));
                break;
            }
            if is_marker(line, '=', signs, "") {
                if is_new {
                    let more = "<".repeat(signs + 2);
                    return Err(fault(format!(
                        "has two lines {divider}: if its texts contain such a line, give its own three markers more signs, as in {more} SEARCH"
                    )));
                }
                is_new = true;
                continue;
            }
            if begin(line) == Some(signs) {
                return Err(fault(format!(
                    "does not end before the next one: it ends with {end}{hint}"
                )));
            }
            if hint.is_empty() && (is_like_end(line) || is_like_divider(line)) {
                let shown = brief(line.trim());
                hint = format!(", and line {} `{shown}` is none: {MARKERS}", first + at);
            }
            texts[usize::from(is_new)].push_str(line);
        }
        if !is_closed || !is_new {
            let missing = if is_new { end } else { divider };
            return Err(fault(format!("has no line {missing}{hint}")));
        }
        let [old, new] = texts;
        if old.is_empty() {
            return Err(fault("searches for nothing: give the lines that are to be replaced, or one beside which lines are to be inserted".to_owned()));
        }
        pairs.push(Replacement { old, new });
    }
    warnings.extend(odd_marker);
    Ok(pairs)
}

/// The pairs as a body, the inverse of [`read`].
pub(super) fn write(pairs: &[Replacement]) -> String {
    let mut body = String::new();
    for Replacement { old, new } in pairs {
        let is_taken = |signs: &usize| {
            old.lines().chain(new.lines()).any(|line| {
                let is = |sign, word| is_marker(line, sign, *signs, word);
                is('<', "SEARCH") || is('=', "") || is('>', "REPLACE")
            })
        };
        let signs = (USUAL..=*SIGNS.end()).find(|signs| !is_taken(signs)).unwrap_or(USUAL);
        let (begin, divider, end) = ("<".repeat(signs), "=".repeat(signs), ">".repeat(signs));
        body.push_str(&format!("{begin} SEARCH\n{old}{divider}\n{new}{end} REPLACE\n"));
    }
    body
}

/// How many signs the first marker of a pair has, if a line is one.
fn begin(line: &str) -> Option<usize> {
    let signs = line.len() - line.trim_start_matches('<').len();
    (SIGNS.contains(&signs) && is_marker(line, '<', signs, "SEARCH")).then_some(signs)
}

fn is_marker(line: &str, sign: char, signs: usize, word: &str) -> bool {
    let rest = line.trim_start_matches(sign);
    line.len() - rest.len() == signs && rest.trim() == word
}

/// Whether a line is one of the three markers of a pair.
pub(super) fn is_any_marker(line: &str) -> bool {
    let is = |sign: char, word| {
        let signs = line.len() - line.trim_start_matches(sign).len();
        SIGNS.contains(&signs) && is_marker(line, sign, signs, word)
    };
    is('<', "SEARCH") || is('>', "REPLACE") || is('=', "")
}

/// Whether a line looks like the first marker or the last: in another case, with another word, with
/// too few signs or something behind it.
fn is_like(line: &str, sign: char) -> bool {
    const WORDS: [&str; 8] =
        ["search", "find", "original", "old", "replace", "updated", "new", "head"];
    let line = line.trim();
    let rest = line.trim_start_matches(sign);
    let (signs, word) = (line.len() - rest.len(), rest.trim_start().to_ascii_lowercase());
    let word = word.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
    signs >= 3 && WORDS.contains(&word)
}

/// Whether a line looks like the last marker, also escaped and behind what a chat window puts before it.
fn is_like_end(line: &str) -> bool {
    /// No marker is longer.
    const LONGEST: usize = 120;
    let is_decoration = |c: char| is_zero_width(c) || c.is_whitespace() || "*-+`\\_•".contains(c);
    let plain = line.trim_start_matches(is_decoration);
    let unescaped = || plain.replace("&gt;", ">").replace("\\>", ">").replace('»', ">>");
    plain.len() < LONGEST && is_like(&unescaped(), '>')
}

fn is_like_divider(line: &str) -> bool {
    let line = line.trim();
    line.len() >= 3 && line.bytes().all(|byte| byte == b'=')
}

/// What is wrong with a body without pairs that has a line which was meant to begin one: it is indented, escaped
/// or misspelt.
pub(super) fn nearly(body: &str, first: usize) -> Option<Wrong> {
    let fault = |n: usize, line: &str, what: &str| {
        let shown = brief(line.trim());
        wrong(Mistake::SearchPairs, format!("line {} `{shown}` {what}", first + n))
    };
    let numbered = || body.lines().enumerate();
    if let Some((n, line)) = numbered().find(|(_, line)| is_indented(line)) {
        return Some(fault(
            n,
            line,
            "is indented: markers begin at the start of their line, and the lines between them are as they are in the file",
        ));
    }
    numbered().find_map(|(n, line)| {
        let begin = line.trim_start();
        let is_escaped =
            begin.starts_with("&lt;&lt;&lt;") || begin.starts_with("\\<") || begin.starts_with('«');
        if is_escaped {
            let plain = begin.replace("&lt;", "<").replace("\\<", "<").replace('«', "<<");
            let what = format!(
                "begins no pair: {MARKERS}; its signs came as entities, as « or with \\ before them: send the block in a fence (```), so that they stay as they are"
            );
            return is_like(&plain, '<').then(|| fault(n, line, &what));
        }
        is_like(line, '<').then(|| fault(n, line, &format!("begins no pair: {MARKERS}")))
    })
}

fn is_indented(line: &str) -> bool {
    let inner = line.trim_start_matches([' ', '\t']);
    inner.len() < line.len() && begin(inner).is_some()
}

/// A body whose markers stand as they should, if that is beyond doubt: without invisible characters around them,
/// and without the indentation that every line has in common with the tag. `tag` is the line of the
/// opening tag, `first` the line of the reply that the body begins on.
pub(super) fn repair(body: String, tag: &str, first: usize, warnings: &mut Vec<Warning>) -> String {
    let body = without_invisible(body, first, warnings);
    let is_below = !tag.trim_start_matches(is_zero_width).starts_with(['[', '*', '`', '\\', '#']);
    if are_in(&body) || !is_below {
        return body;
    }
    let Some(line) = body.lines().find(|line| is_indented(line)) else { return body };
    let blanks = &line[..line.len() - line.trim_start_matches([' ', '\t']).len()];
    if !body.lines().all(|line| line.trim().is_empty() || line.starts_with(blanks)) {
        return body;
    }
    let plain = |line| {
        str::strip_prefix(line, blanks).unwrap_or_else(|| line.trim_start_matches([' ', '\t']))
    };
    let plain: String = body.split_inclusive('\n').map(plain).collect();
    warnings.retain(|warning| warning.sort != WarningSort::IndentedBody);
    let text = format!(
        "the body from line {first} on is indented as its tag is; {} characters were removed from the start of each line",
        blanks.len()
    );
    warnings.push(Warning::new(WarningSort::TagRepaired, text));
    plain
}

fn without_invisible(body: String, first: usize, warnings: &mut Vec<Warning>) -> String {
    let is_odd = |line: &str| {
        let line = line.trim_end();
        (line.starts_with(is_zero_width) || line.ends_with(is_zero_width))
            && is_any_marker(line.trim_matches(is_zero_width))
    };
    let Some(n) = body.lines().position(|line| !line.is_ascii() && is_odd(line)) else {
        return body;
    };
    let plain = |line: &str| match line.trim_end() {
        shown if is_odd(line) => {
            shown.trim_matches(is_zero_width).to_owned() + &line[shown.len()..]
        }
        _ => line.to_owned(),
    };
    let text = format!(
        "line {} is a marker of a pair, and was read without the invisible characters on it",
        first + n
    );
    warnings.push(Warning::new(WarningSort::TagRepaired, text));
    body.split_inclusive('\n').map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(body: &str) -> Vec<(String, String)> {
        read(body, 2, &mut Vec::new())
            .unwrap()
            .into_iter()
            .map(|pair| (pair.old, pair.new))
            .collect()
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
            read("<<<<<<< SEARCH\na\n=======\n=======\n>>>>>>> REPLACE\n", 2, &mut Vec::new())
                .unwrap_err()
                .phrase;
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
            ("hm\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n", "line 2 `hm` stands outside"),
            ("<<<<<<< SEARCH\na\n<<<<<<< SEARCH\n", "does not end before the next one"),
            (
                "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> replace\n",
                "begins on line 2 has no line >>>>>>> REPLACE, and line 6 `>>>>>>> replace` is none",
            ),
            (
                "<<<<<<< SEARCH\na\n========\nb\n>>>>>>> REPLACE\n",
                "has no line =======, and line 4 `========` is none: the markers of a pair are",
            ),
        ] {
            let error = read(body, 2, &mut Vec::new()).unwrap_err().phrase;
            assert!(error.contains(words), "{error}");
        }
        assert!(!are_in("<<<< SEARCH\n") && are_in("x\n<<<<<<< SEARCH\n"));
    }
}
