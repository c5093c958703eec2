//! Lines that stand for others which a text leaves out: `// ... rest unchanged ...`, and those in which
//! something stands for a secret that was not shown: `[withheld: AWS key]`. Pure.

mod shorter;
mod shrinking;

use std::cell::OnceCell;
use std::collections::HashSet;

use self::shrinking::Loss;
use super::{RelPath, Replacement};
use crate::secrets;

/// Why a line is not put into a file, which would lose something by it, as that follows the line's name;
/// `instead` is what to do where it stands for others.
pub fn loses(line: &str, path: &str, instead: &str) -> String {
    let (what, instead) = if holds_withheld(line) {
        let leave = "Leave that line as it is, and change others with SEARCH and REPLACE";
        ("holds what stands for a secret, which", leave)
    } else {
        ("stands for lines that", instead)
    };
    format!("{what} '{path}' would lose; nothing was changed. {instead}")
}

/// Whether something in a text stands for a secret that was not shown.
pub fn holds_withheld(text: &str) -> bool {
    memchr::memmem::find(text.as_bytes(), secrets::MARK.as_bytes()).is_some()
}

/// The number of the first line of a new file, from 1, in which something stands for a secret.
pub fn stand_in(content: &[u8]) -> Option<usize> {
    let at = memchr::memmem::find(content, secrets::MARK.as_bytes())?;
    Some(memchr::memchr_iter(b'\n', &content[..at]).count() + 1)
}

/// The first line of `new` that stands for lines left out and does not stand in `old`, with its
/// number from 1.
pub fn left_out<'a>(new: &'a str, old: &[u8]) -> Option<(usize, &'a str)> {
    Held::of(old).lacks(elisions(new), new)
}

/// The same of lines that count only where a text is replaced by a shorter one: in the file at `path`,
/// which is `old`, `new` takes the place of `replaced`.
pub fn left_out_of<'a>(
    new: &'a str,
    replaced: &[u8],
    old: &[u8],
    path: &RelPath,
) -> Option<(usize, &'a str)> {
    Held::of(old).lacks_for(new, replaced, path)
}

/// The same of several edits by search: which of them it is in, the line's number in what that puts
/// in, and the line.
pub fn left_out_of_pairs<'a>(
    pairs: &'a [Replacement],
    old: &[u8],
    path: &RelPath,
) -> Option<(usize, usize, &'a str)> {
    let held = Held::of(old);
    pairs.iter().enumerate().find_map(|(n, pair)| {
        let found = held.lacks_for(&pair.new, pair.old.as_bytes(), path)?;
        Some((n, found.0, found.1))
    })
}

/// The lines of a file, looked at once if at all.
struct Held<'a> {
    file: &'a [u8],
    lines: OnceCell<HashSet<&'a [u8]>>,
}

impl<'a> Held<'a> {
    fn of(file: &'a [u8]) -> Self {
        Self { file, lines: OnceCell::new() }
    }

    /// The first of these lines of `new` that it lacks.
    fn lacks<'n>(
        &self,
        mut found: impl Iterator<Item = (usize, &'n str)>,
        new: &str,
    ) -> Option<(usize, &'n str)> {
        let lines =
            || self.file.split(|b| *b == b'\n').map(<[u8]>::trim_ascii).collect::<HashSet<_>>();
        let is_held = |line: &str| self.lines.get_or_init(lines).contains(line.trim().as_bytes());
        let (at, line) = found.find(|(_, line)| !is_held(line))?;
        Some((memchr::memchr_iter(b'\n', &new.as_bytes()[..at]).count() + 1, line.trim()))
    }

    fn lacks_for<'n>(
        &self,
        new: &'n str,
        replaced: &[u8],
        path: &RelPath,
    ) -> Option<(usize, &'n str)> {
        let loss = Loss::of(new, replaced)?;
        let shrinking = self.lacks(shrinking::lines(new, Some(path), loss), new);
        if shrinking.is_some() || loss == Loss::None {
            return shrinking;
        }
        self.lacks(shorter::lines(new, Some(path)), new)
    }
}

/// Whether a text may leave something out.
pub fn may_leave_out(text: &str) -> bool {
    elisions(text).next().is_some()
        || shorter::lines(text, None).next().is_some()
        || shrinking::lines(text, None, Loss::Half).next().is_some()
}

/// A line that is not blank.
struct Filled<'a> {
    /// Where it begins, and the whole of it.
    at: (usize, &'a str),
    /// What it says, and what the last such line before it does.
    shown: &'a str,
    before: &'a str,
}

fn filled(text: &str) -> impl Iterator<Item = Filled<'_>> {
    let (mut end, mut last) = (0, "");
    text.split_inclusive('\n').filter_map(move |line| {
        let at = (end, line);
        end += line.len();
        let shown = line.trim();
        let before = last;
        last = if shown.is_empty() { last } else { shown };
        (!shown.is_empty()).then_some(Filled { at, shown, before })
    })
}

/// Which places of a text lie between two marks, asked for in their order.
struct Between<'a> {
    text: &'a str,
    /// How many marks there are in a text that begins and ends where lines do.
    marks: fn(&str) -> usize,
    at: usize,
    is: bool,
}

impl<'a> Between<'a> {
    fn new(text: &'a str, marks: fn(&str) -> usize) -> Self {
        Self { text, marks, at: 0, is: false }
    }

    /// Between the fences of Markdown.
    fn fences(text: &'a str) -> Self {
        Self::new(text, |text| {
            text.lines().filter(|line| line.trim_start().starts_with("```")).count()
        })
    }

    /// Within the long strings of Python.
    fn quotes(text: &'a str) -> Self {
        Self::new(text, |text| text.matches("\"\"\"").count() + text.matches("'''").count())
    }

    fn is_there(&mut self, at: usize) -> bool {
        self.is ^= (self.marks)(&self.text[self.at..at]) % 2 == 1;
        self.at = at;
        self.is
    }
}

/// What begins a comment, and what it says; of what stands in brackets by itself, nothing and that. In
/// texts a `#` begins a heading.
fn said(line: &str, is_code: bool) -> Option<(Option<&'static str>, &str)> {
    const LONGEST: usize = 160;
    const MARKERS: [&str; 6] = ["{/*", "/*", "//", "#", "--", ";"];
    if line.len() > LONGEST {
        return None;
    }
    if let Some(rest) = line.strip_prefix("<!--") {
        return Some((Some("<!--"), rest.strip_suffix("-->")?));
    }
    if is_code && let Some(marker) = MARKERS.into_iter().find(|marker| line.starts_with(marker)) {
        let sign = marker.chars().next_back().unwrap_or(' ');
        let inner = line[marker.len()..].trim_start_matches(sign);
        let inner = inner.strip_suffix("*/}").or_else(|| inner.strip_suffix("*/")).unwrap_or(inner);
        return Some((Some(marker), inner));
    }
    let inner = line.trim_matches(['*', '_']);
    let brackets = [('(', ')'), ('[', ']')];
    let within = |(open, close)| inner.strip_prefix(open)?.strip_suffix(close);
    brackets.into_iter().find_map(within).map(|inner| (None, inner))
}

/// The lines that stand for others, with where they begin.
fn elisions(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    let lines = text.split_inclusive('\n').map(move |line| {
        at += line.len();
        (at - line.len(), line)
    });
    lines.filter(|(_, line)| is_elision(line) || holds_withheld(line))
}

fn is_elision(line: &str) -> bool {
    const LONGEST: usize = 160;
    const MARKERS: [&str; 9] = ["//", "#", "--", "/*", "<!--", "{/*", ";", "%", "*"];
    const WORDS: [&str; 19] = [
        "rest",
        "remain",
        "remains",
        "remaining",
        "remainder",
        "unchanged",
        "existing",
        "same as",
        "omitted",
        "previous",
        "other",
        "others",
        "keep",
        "as before",
        "no change",
        "no changes",
        "above",
        "below",
        "same code",
    ];
    // What a program tells while it works ends in dots, too.
    const CLEAR: [&str; 3] = ["rest of", "unchanged", "same as"];
    let line = line.trim();
    let begins = line.starts_with(['/', '#', '-', '<', '{', ';', '%', '*', '.', '…', '(', '[']);
    if !begins || line.len() > LONGEST {
        return false;
    }
    let marker = MARKERS.iter().find(|marker| line.starts_with(**marker));
    let mut inner = line;
    if let Some(marker) = marker {
        inner = inner[marker.len()..].trim_start_matches(marker.chars().next_back().unwrap_or(' '));
        inner =
            ["*/}", "*/", "-->"].iter().find_map(|end| inner.strip_suffix(end)).unwrap_or(inner);
    }
    let inner = inner.trim().trim_start_matches(['(', '[']).trim_end_matches([')', ']']);
    let dots = |text: &str| text.starts_with("...") || text.starts_with('…');
    let closing = |text: &str| text.ends_with("...") || text.ends_with('…');
    let stands_for_more = dots(inner) || marker.is_some() && closing(inner);
    if !stands_for_more && marker.is_none() {
        return false;
    }
    let words = inner.trim_matches(['.', '…', ' ', '(', ')', '[', ']']).to_ascii_lowercase();
    if !stands_for_more {
        // Of a list such words are an item.
        return marker.is_some_and(|marker| !matches!(*marker, "*" | ";" | "%"))
            && is_said_of_more(&words);
    }
    // What is spread in JavaScript follows its dots at once.
    if marker.is_none() && inner.trim_start_matches(['.', '…']).starts_with(char::is_alphanumeric)
    {
        return false;
    }
    if words.is_empty() {
        return marker.is_some_and(|marker| !matches!(*marker, "*" | ";" | "%"));
    }
    // A sentence goes on behind dots, too.
    let goes_on = inner.trim_start_matches(['.', '…']).starts_with(char::is_alphanumeric);
    let sought: &[&str] = if dots(inner) && (!goes_on || closing(inner)) { &WORDS } else { &CLEAR };
    words.is_ascii() && sought.iter().any(|word| holds(&words, word))
}

/// Whether a comment without dots says of more than its file holds that it stays.
fn is_said_of_more(words: &str) -> bool {
    const WHOLE: [&str; 5] =
        ["rest of file", "rest of the file", "rest of code", "rest of the code", "existing code"];
    const BEGINS: [&str; 8] = [
        "rest of ",
        "the rest of ",
        "remaining ",
        "existing code ",
        "other ",
        "all other ",
        "rest ",
        "everything else ",
    ];
    const ENDS: [&str; 6] =
        [" unchanged", " the same", " as before", " unmodified", " as is", " same as before"];
    let words = words.strip_suffix(" here").unwrap_or(words);
    WHOLE.contains(&words)
        || BEGINS.iter().any(|begin| words.starts_with(begin))
            && ENDS.iter().any(|end| words.ends_with(end))
}

/// Whether a text holds others as whole words.
fn holds(text: &str, words: &str) -> bool {
    text.match_indices(words).any(|(at, _)| {
        let is_letter = |c: char| c.is_alphanumeric() || c == '_';
        !text[..at].ends_with(is_letter) && !text[at + words.len()..].starts_with(is_letter)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_for_a_secret_is_left_out_unless_it_was_there() {
        let new = "a = 1\nkey = \"[withheld: AWS key]\"\n";
        assert!(may_leave_out(new) && !may_leave_out("withheld: [x]\n"));
        assert_eq!(left_out(new, b"a = 1\nkey = \"x\"\n").unwrap().0, 2);
        assert_eq!(left_out(new, new.as_bytes()), None);
        let both = format!("# ... existing code ...\n{new}");
        assert_eq!(left_out(&both, b"x").unwrap().0, 1);
        assert!(loses("[withheld: x]", "a", "").contains("for a secret, which 'a' would lose"));
        assert!(loses("// ...", "a", "b").starts_with("stands for lines that 'a' would lose"));
    }

    #[test]
    fn lines_that_stand_for_others_are_told_from_code() {
        for line in [
            "// ... rest unchanged ...",
            "    # ... existing code ...",
            "/* ... the rest of the styles ... */",
            "<!-- ... other rows ... -->",
            "{/* ... remaining items ... */}",
            "-- … unchanged …",
            "// ...",
            "# rest of the file is the same as before...",
            "... (rest of the file unchanged) ...",
            "// Same as above...",
            "// ... Remaining methods",
            "// ...existing code...",
            "// ...rest of the code",
            "[... rest of the code ...]",
            "# (rest of the code remains the same)",
            "// existing code remains unchanged",
            "<!-- rest of file -->",
            "# [existing code here]",
            "/* other rules unchanged */",
        ] {
            assert!(is_elision(line), "{line}");
        }
        for line in [
            "...",
            "    ...",
            "f(...rest)",
            "let { a, ...rest } = x;",
            "...rest,",
            "print(\"...\")",
            "# Loading...",
            "# Restarting server...",
            "// Creating another connection...",
            "# Restoring backup...",
            "// Checking other hosts...",
            "# ... restart",
            "# ...keep going until all others are done",
            "# Removing the existing file...",
            "// see above",
            "# Other fields are kept in the same order",
            "* Other commands are unchanged",
            "# keeps the existing code",
            "rest of the code",
            "// The rest of the arguments",
            "match x { 0.. => () }",
            "* ...",
        ] {
            assert!(!is_elision(line), "{line}");
        }
    }

    #[test]
    fn only_what_the_file_lacks_is_left_out() {
        let new = "a\n// ... rest unchanged ...\nb\n";
        assert_eq!(left_out(new, b"a\nb\n"), Some((2, "// ... rest unchanged ...")));
        assert_eq!(left_out(new, b"x\n  // ... rest unchanged ...\r\n"), None);
        assert_eq!(left_out("a\nb\n", b""), None);
    }

    #[test]
    fn less_is_said_where_a_longer_file_is_replaced() {
        let new = "a\n\n# existing methods\n";
        let path = RelPath::parse("a.py").unwrap();
        assert!(may_leave_out(new) && left_out(new, b"a\nb\nc\nd\n").is_none());
        let found = left_out_of(new, b"a\nb\nc\nd\n", b"a\nb\nc\nd\n", &path);
        assert_eq!(found, Some((3, "# existing methods")));
        assert_eq!(left_out_of(new, b"a\n", b"a\nb\nc\n", &path), None);
        let old = b"a\n  # existing methods\nb\nc\nd\n";
        assert_eq!(left_out_of(new, old, old, &path), None);
        // Blank lines are no loss.
        assert_eq!(left_out_of("a\n# existing code\n", b"a\n\n\nb\n", b"", &path), None);
    }

    #[test]
    fn each_of_many_pairs_is_looked_at() {
        let stub = Replacement { old: "x: int\ny\n".to_owned(), new: "x: int\n...\n".to_owned() };
        let mut pairs = vec![stub; 40];
        let last = "# existing methods\n";
        pairs.push(Replacement { old: "a\nb\nc\n".to_owned(), new: last.to_owned() });
        let path = RelPath::parse("a.py").unwrap();
        assert_eq!(left_out_of_pairs(&pairs, b"", &path), Some((40, 1, last.trim_end())));
    }
}
