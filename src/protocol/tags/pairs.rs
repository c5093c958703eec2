//! The body of an edit by search: pairs of a text that the file holds and the one to put in its
//! place.
//!
//! ```text
//! pair = "<<<<<<< SEARCH" NL { line NL } "=======" NL { line NL } ">>>>>>> REPLACE" NL
//! ```
//!
//! The three lines of a pair have the same number of signs, five to forty, so that a pair whose texts
//! hold such lines can have more of them. Between pairs stand blank lines, or those of a fence.

use std::ops::Range;

use memchr::{memmem, memrchr};

use super::attributes::brief;
use super::fences::fence_of;
use super::line::Line;
use super::marks::{Mark, What};
use super::repairs::is_zero_width;
use super::wrong::{Wrong, wrong};
use crate::protocol::{Mistake, Replacement, Warning, WarningSort};

/// How to write such an edit, for error messages.
pub(super) const FORM: &str = "[EDIT_FILE path=\"relative/path\"], on the lines below <<<<<<< SEARCH, lines of the file as they are, =======, the new lines, >>>>>>> REPLACE, each marker alone on a line, then [/EDIT_FILE] alone on a line";

/// How many signs a line of a pair has as it is taught, and can have.
const USUAL: usize = 7;
const SIGNS: std::ops::RangeInclusive<usize> = 5..=40;

/// The lines that begin pairs, up to `limit`.
pub(super) fn find(text: &str, limit: usize) -> impl Iterator<Item = Mark> {
    let lines = lines_with(text, limit, "<<<<< SEARCH");
    let begins = lines.filter(|(_, line)| is_beginning(text[line.clone()].trim()));
    begins.map(|(at, line)| Mark::of(What::Pair, line.start, at, at))
}

/// Where the first pair of a text ends: behind the line of its last marker.
pub(super) fn ends(text: &str) -> Option<usize> {
    let mut lines = lines_with(text, text.len(), ">>>>> REPLACE");
    let end = lines.find(|(_, line)| is_any_marker(text[line.clone()].trim()));
    end.map(|(_, line)| (line.end + 1).min(text.len()))
}

/// The places of `sign` up to `limit`, each with its line.
fn lines_with(
    text: &str,
    limit: usize,
    sign: &'static str,
) -> impl Iterator<Item = (usize, Range<usize>)> {
    let bytes = &text.as_bytes()[..limit];
    let mut line = Line::default();
    memmem::find_iter(bytes, sign).filter_map(move |at| {
        let end = line.for_one_more(text, at)?;
        Some((at, memrchr(b'\n', &bytes[..at]).map_or(0, |n| n + 1)..end))
    })
}

/// Whether a body is meant as pairs.
pub(super) fn are_in(body: &str) -> bool {
    body.lines().any(|line| begin(line).is_some())
}

/// Whether a line is the first of a pair.
pub(super) fn is_beginning(line: &str) -> bool {
    begin(line).is_some()
}

/// Whether a line is one of the three of a pair.
pub(super) fn is_any_marker(line: &str) -> bool {
    let is = |sign: char, word| {
        let signs = (line.len() - line.trim_start_matches(sign).len()) / sign.len_utf8();
        SIGNS.contains(&signs) && is_marker(line, sign, signs, word)
    };
    is('<', "SEARCH") || is('>', "REPLACE") || is('=', "")
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

/// What is wrong with a body that is no pairs, and has a line which was meant to begin one; `first` is the
/// line of the reply that it begins on.
pub(super) fn nearly(body: &str, first: usize) -> Option<Wrong> {
    let found = body.lines().enumerate().find_map(|(n, line)| {
        let plain = unescaped(line);
        let was_plain = plain.is_none();
        is_nearly(plain.as_deref().unwrap_or(line), '<').then_some((n, line, was_plain))
    });
    let (n, line, was_plain) = found?;
    let escaped = if was_plain {
        ""
    } else {
        "; its signs came as entities, as « or with \\ before them: send the block in a fence (```), so that they stay as they are"
    };
    let shown = brief(line.trim());
    let told = format!("line {} `{shown}` begins no pair: {MARKERS}{escaped}", first + n);
    Some(wrong(Mistake::SearchPairs, told))
}

/// How the lines of a pair are written, for error messages.
const MARKERS: &str = "the lines of a pair are <<<<<<< SEARCH, ======= and >>>>>>> REPLACE, in capitals, with as many signs in each and nothing else on the line";

/// A line that begins with signs of a pair as HTML or Markdown writes them, as it was meant.
fn unescaped(line: &str) -> Option<String> {
    let begin = line.trim_start();
    let is_escaped =
        begin.starts_with("&lt;&lt;&lt;") || begin.starts_with("\\<") || begin.starts_with('«');
    is_escaped.then(|| begin.replace("&lt;", "<").replace("\\<", "<").replace('«', "<<"))
}

/// What is told of the first line of a pair that was taken though it is not written as it should be:
/// with fewer signs, or no blank behind them.
pub(super) fn odd(body: &str, first: usize) -> Option<Warning> {
    let mut within = None;
    for (n, line) in body.lines().enumerate() {
        let (sign, signs, word) = match within {
            Some(signs) if is_marker(line, '>', signs, "REPLACE") => ('>', signs, "REPLACE"),
            Some(_) => continue,
            None => match begin(line) {
                Some(signs) => ('<', signs, "SEARCH"),
                None => continue,
            },
        };
        within = (sign == '<').then_some(signs);
        let signs = |signs| sign.to_string().repeat(signs);
        let rest = line.trim_start_matches(sign);
        let count = line.len() - rest.len();
        if count < USUAL || rest.starts_with(word) {
            let told = format!(
                "line {} `{}` was read as {} {word}",
                first + n,
                brief(line.trim()),
                signs(count.max(USUAL))
            );
            return Some(Warning::new(WarningSort::TagRepaired, told));
        }
    }
    None
}

/// Whether a line looks like the first or the last of a pair and is none: in another case, with another
/// word, with too few signs or something behind it.
fn is_nearly(line: &str, sign: char) -> bool {
    const WORDS: [&str; 8] =
        ["search", "find", "original", "old", "replace", "updated", "new", "head"];
    let line = line.trim();
    let rest = line.trim_start_matches(sign);
    let (signs, word) = (line.len() - rest.len(), rest.trim_start().to_ascii_lowercase());
    let word = word.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
    signs >= 3 && WORDS.contains(&word)
}

/// The same of the last line alone, also behind what a chat window puts before it.
fn is_nearly_end(line: &str) -> bool {
    let before = |c: char| is_zero_width(c) || c.is_whitespace() || "*-+`\\_•".contains(c);
    let plain = line.trim_start_matches(before);
    if plain.len() < 120 && plain.starts_with("&gt;") {
        return is_nearly(&plain.replace("&gt;", ">"), '>');
    }
    // No marker is longer; long lines are not copied.
    plain.len() < 120 && is_nearly(&plain.replace("\\>", ">").replace('»', ">>"), '>')
}

/// The pairs of a body, each text as whole lines; `first` is the line of the reply that it begins on.
pub(super) fn read(body: &str, first: usize) -> Result<Vec<Replacement>, Wrong> {
    let no_pair = |told| wrong(Mistake::SearchPairs, told);
    let mut pairs = Vec::new();
    let mut lines = body.split_inclusive('\n').enumerate();
    while let Some((n, line)) = lines.next() {
        let Some(signs) = begin(line) else {
            if line.trim().is_empty() || fence_of(line.trim_end()).is_some() {
                continue;
            }
            return Err(no_pair(format!(
                "line {} `{}` stands outside of <<<<<<< SEARCH and >>>>>>> REPLACE{}",
                first + n,
                brief(line.trim()),
                if is_nearly(line, '<') { format!(": {MARKERS}") } else { String::new() }
            )));
        };
        let mut texts = [String::new(), String::new()];
        let mut in_new = false;
        let (mut closed, mut nearly) = (false, None);
        for (at, line) in lines.by_ref() {
            if is_marker(line, '>', signs, "REPLACE") {
                closed = true;
                break;
            }
            if is_marker(line, '=', signs, "") {
                if in_new {
                    return Err(no_pair(ambiguous(first + n, signs)));
                }
                in_new = true;
            } else if begin(line) == Some(signs) {
                return Err(no_pair(format!(
                    "the pair that begins on line {} does not end before the next one: it ends with {} REPLACE{}",
                    first + n,
                    ">".repeat(signs),
                    told_of(nearly)
                )));
            } else {
                if nearly.is_none() && (is_nearly_end(line) || is_divider(line)) {
                    nearly = Some((first + at, line));
                }
                texts[usize::from(in_new)].push_str(line);
            }
        }
        if !closed || !in_new {
            let missing =
                if in_new { format!("{} REPLACE", ">".repeat(signs)) } else { "=".repeat(signs) };
            return Err(no_pair(format!(
                "the pair that begins on line {} has no line {missing}{}",
                first + n,
                told_of(nearly)
            )));
        }
        let [old, new] = texts;
        if old.is_empty() {
            return Err(no_pair(format!(
                "the pair that begins on line {} searches for nothing: give the lines that are to be replaced, or one beside which lines are to be put in",
                first + n
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

/// Whether a line looks like the one between the texts of a pair.
fn is_divider(line: &str) -> bool {
    let line = line.trim();
    line.len() >= 3 && line.bytes().all(|byte| byte == b'=')
}

/// What is said of a line that looks like the one which is missing.
fn told_of(nearly: Option<(usize, &str)>) -> String {
    nearly.map_or(String::new(), |(number, line)| {
        format!(", and line {number} `{}` is none: {MARKERS}", brief(line.trim()))
    })
}

fn ambiguous(line: usize, signs: usize) -> String {
    format!(
        "the pair that begins on line {line} has two lines {}: where its texts hold such a line, give its own three lines more signs, as in {} SEARCH",
        "=".repeat(signs),
        "<".repeat(signs + 2)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(body: &str) -> Vec<(String, String)> {
        read(body, 2).unwrap().into_iter().map(|pair| (pair.old, pair.new)).collect()
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
            read("<<<<<<< SEARCH\na\n=======\n=======\n>>>>>>> REPLACE\n", 2).unwrap_err().phrase;
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
                "has no line =======, and line 4 `========` is none: the lines of a pair are",
            ),
        ] {
            let error = read(body, 2).unwrap_err().phrase;
            assert!(error.contains(words), "{error}");
        }
        assert!(!are_in("<<<< SEARCH\n") && are_in("x\n<<<<<<< SEARCH\n"));
    }
}
