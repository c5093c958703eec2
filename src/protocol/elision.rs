//! Lines that stand for others which a text leaves out: `// ... rest unchanged ...`, and those in which
//! something stands for a secret that was not shown: `[withheld: AWS key]`. Pure.

mod always;
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
        let leave = "Leave that line as it is, and edit others";
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

/// The first line of `new` that stands for lines left out, with its number from 1, where it takes the
/// place of `replaced` in the file at `path`, which is `old` and does not hold that line.
pub fn left_out<'a>(
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
        let always = self.lacks(always::lines(new, Some(path)), new);
        if always.is_some() {
            return always;
        }
        // In what becomes shorter more counts.
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
    always::lines(text, None).next().is_some()
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
    by_itself(line, is_code).map(|inner| (None, inner))
}

/// What stands in brackets, and in a text also between signs that set a line off, or behind a bullet.
fn by_itself(line: &str, is_code: bool) -> Option<&str> {
    const SIGNS: [char; 4] = ['*', '_', '`', '~'];
    let bullet = ["> ", "- "].iter().find_map(|sign| line.strip_prefix(sign));
    let line = bullet.filter(|_| !is_code).unwrap_or(line);
    let inner = line.trim_matches(SIGNS);
    let brackets = [('(', ')'), ('[', ']'), ('<', '>')];
    let brackets = &brackets[..if is_code { 2 } else { 3 }];
    let within = |(open, close): &(char, char)| inner.strip_prefix(*open)?.strip_suffix(*close);
    if let Some(inner) = brackets.iter().find_map(within) {
        return Some(inner);
    }
    let is_between = |signs: &[char]| line.starts_with(signs) && line.ends_with(signs);
    match is_code {
        true => None,
        false if is_between(&SIGNS) => Some(inner),
        false => is_between(&['-']).then(|| line.trim_matches('-')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found wherever it is put.
    fn always<'a>(new: &'a str, old: &[u8]) -> Option<(usize, &'a str)> {
        left_out(new, b"", old, &RelPath::parse("a.py").unwrap())
    }

    #[test]
    fn what_stands_for_a_secret_is_left_out_unless_it_was_there() {
        let new = "a = 1\nkey = \"[withheld: AWS key]\"\n";
        assert!(may_leave_out(new) && !may_leave_out("withheld: [x]\n"));
        assert_eq!(always(new, b"a = 1\nkey = \"x\"\n").unwrap().0, 2);
        assert_eq!(always(new, new.as_bytes()), None);
        let both = format!("# ... existing code ...\n{new}");
        assert_eq!(always(&both, b"x").unwrap().0, 1);
        assert!(loses("[withheld: x]", "a", "").contains("for a secret, which 'a' would lose"));
        assert!(loses("// ...", "a", "b").starts_with("stands for lines that 'a' would lose"));
    }

    #[test]
    fn only_what_the_file_lacks_is_left_out() {
        let new = "a\n// ... rest unchanged ...\nb\n";
        assert_eq!(always(new, b"a\nb\n"), Some((2, "// ... rest unchanged ...")));
        assert_eq!(always(new, b"x\n  // ... rest unchanged ...\r\n"), None);
        assert_eq!(always("a\nb\n", b""), None);
    }

    #[test]
    fn less_is_said_where_a_longer_file_is_replaced() {
        let new = "a\n\n# existing methods\n";
        let path = RelPath::parse("a.py").unwrap();
        assert!(may_leave_out(new) && always(new, b"a\nb\nc\nd\n").is_none());
        let found = left_out(new, b"a\nb\nc\nd\n", b"a\nb\nc\nd\n", &path);
        assert_eq!(found, Some((3, "# existing methods")));
        assert_eq!(left_out(new, b"a\n", b"a\nb\nc\n", &path), None);
        let old = b"a\n  # existing methods\nb\nc\nd\n";
        assert_eq!(left_out(new, old, old, &path), None);
        // Blank lines are no loss.
        assert_eq!(left_out("a\n# existing methods\n", b"a\n\n\nb\n", b"", &path), None);
    }

    #[test]
    fn an_example_in_a_text_may_have_gaps() {
        let text = RelPath::parse("README.md").unwrap();
        let example = "# A\n```rust\nf();\n// ...\n```\n";
        assert_eq!(left_out(example, b"", b"", &text), None);
        assert!(always(example, b"").is_some());
        let rest = "# A\n```rust\nf();\n// ... rest unchanged ...\n```\n";
        assert_eq!(left_out(rest, b"", b"", &text).unwrap().0, 4);
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
