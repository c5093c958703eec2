//! The definitions of a file and their lines. Pure.
//!
//! Definitions are found by the patterns in `data/symbols.txt`, not by grammars, and end according to indentation. So a
//! language needs only a few patterns, and a misunderstood line only wastes a little room.

use std::sync::{LazyLock, OnceLock};

use regex::bytes::{Regex, RegexBuilder};

const TABLE: &str = include_str!("data/symbols.txt");

/// The longest name of a definition, in bytes.
const NAME: usize = 120;
/// The width of a tab.
const TAB: usize = 4;

/// A definition in a file. Lines are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// The name of a function or type, or the text of a heading.
    pub name: String,
    /// The first line of the comments and attributes directly above the definition.
    pub start: usize,
    /// The line that contains the name.
    pub line: usize,
    /// The last line.
    pub end: usize,
    /// The depth: the indentation, or the level of a heading.
    pub depth: usize,
}

/// A text, split into lines.
#[derive(Debug)]
pub struct Text<'t> {
    bytes: &'t [u8],
    /// The offset of each line.
    starts: Vec<usize>,
}

impl<'t> Text<'t> {
    /// Finds the lines of a text.
    pub fn new(bytes: &'t [u8]) -> Self {
        let ends = memchr::memchr_iter(b'\n', bytes).map(|end| end + 1);
        let starts = std::iter::once(0).chain(ends).filter(|start| *start < bytes.len()).collect();
        Self { bytes, starts }
    }

    /// The number of lines.
    pub fn count(&self) -> usize {
        self.starts.len()
    }

    /// The line with this number, without white space at its end; empty if there is no such line.
    pub fn line(&self, number: usize) -> &'t [u8] {
        self.range(number, number).trim_ascii_end()
    }

    /// These lines, with their line ends.
    pub(super) fn range(&self, first: usize, last: usize) -> &'t [u8] {
        let start = |line: usize| self.starts.get(line).copied().unwrap_or(self.bytes.len());
        &self.bytes[start(first - 1)..start(last)]
    }

    /// The number of the line that contains this byte.
    pub(super) fn line_at(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset)
    }
}

/// A language of the table.
struct Language {
    /// The extensions or names of files in this language.
    files: Vec<&'static str>,
    /// Whether definitions are headings.
    is_prose: bool,
    patterns: Vec<&'static str>,
    /// All patterns as one regex, compiled when the first file needs it.
    regex: OnceLock<Regex>,
}

static LANGUAGES: LazyLock<Vec<Language>> = LazyLock::new(|| {
    let sections = TABLE.split("\n= ").skip(1);
    let language = |section: &'static str| {
        let mut lines = section.lines().filter(|line| !line.is_empty());
        let files = lines.next().unwrap_or_default().split_whitespace().collect::<Vec<_>>();
        let is_prose = files.contains(&"md");
        Language { files, is_prose, patterns: lines.collect(), regex: OnceLock::new() }
    };
    sections.map(language).collect()
});

impl Language {
    fn of(path: &str) -> Option<&'static Self> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
        let has = |file: &&str| *file == name || Some(*file) == ending.as_deref();
        LANGUAGES.iter().find(|language| language.files.iter().any(has))
    }

    fn regex(&self) -> &Regex {
        self.regex.get_or_init(|| {
            let pattern = format!(r"(?-u)^[ \t]*(?:{})", self.patterns.join("|"));
            let regex = RegexBuilder::new(&pattern).multi_line(true).build();
            regex.expect("a test compiles all patterns")
        })
    }
}

/// The definitions in the file with this path, ordered by line; none if its language is unknown.
pub fn definitions(path: &str, text: &Text<'_>) -> Vec<Definition> {
    let Some(language) = Language::of(path) else { return Vec::new() };
    let mut found: Vec<Definition> = Vec::new();
    for captures in language.regex().captures_iter(text.bytes) {
        let Some(name) = captures.iter().skip(1).flatten().next() else { continue };
        let line = text.line_at(name.start());
        let name = String::from_utf8_lossy(name.as_bytes()).into_owned();
        if name.len() > NAME || is_keyword(&name) {
            continue;
        }
        let depth = if language.is_prose {
            text.line(line).iter().take_while(|byte| **byte == b'#').count()
        } else {
            indentation(text.line(line))
        };
        let start = if language.is_prose { line } else { above(text, line) };
        let end = if language.is_prose { text.count() } else { end(text, line, depth) };
        if language.is_prose {
            // A heading ends earlier headings of the same or a deeper level.
            let ended = found.iter_mut().rev().take_while(|other| other.end == text.count());
            ended.filter(|other| other.depth >= depth).for_each(|other| other.end = line - 1);
        }
        found.push(Definition { name, start, line, end, depth });
    }
    found
}

/// Whether a word is a keyword of a statement that looks like a definition, as in `if (x) {`.
fn is_keyword(name: &str) -> bool {
    const KEYWORDS: &str = "if for while switch catch return else do with function match sizeof defined await typeof elif";
    KEYWORDS.split(' ').any(|keyword| keyword == name)
}

/// The indentation of a line, in columns.
fn indentation(line: &[u8]) -> usize {
    let blanks = line.iter().take_while(|byte| b" \t".contains(byte));
    blanks.map(|byte| if *byte == b'\t' { TAB } else { 1 }).sum()
}

/// Whether a line is a preprocessor directive, such as `#ifdef`.
fn is_directive(line: &[u8]) -> bool {
    matches!(line, [b'#', letter, ..] if letter.is_ascii_lowercase())
}

/// The first line of the comments and attributes directly above a line.
fn above(text: &Text<'_>, line: usize) -> usize {
    const MARKS: [&str; 8] = ["//", "/*", "*", "#", "@", "--", ";", "["];
    let depth = indentation(text.line(line));
    let belongs = |number: &usize| {
        let line = text.line(*number);
        // The lines of a block comment may be indented by one more column.
        !is_directive(line)
            && (depth..=depth + 1).contains(&indentation(line))
            && MARKS.iter().any(|mark| line.trim_ascii_start().starts_with(mark.as_bytes()))
    };
    (1..line).rev().take_while(belongs).last().unwrap_or(line)
}

/// The last line of the definition that begins on `line`.
fn end(text: &Text<'_>, line: usize, depth: usize) -> usize {
    let mut last = line;
    for number in line + 1..=text.count() {
        let whole = text.line(number);
        let (Some(first), Some(end)) = (whole.trim_ascii_start().first(), whole.last()) else {
            continue;
        };
        match indentation(whole) {
            _ if is_directive(whole) => {}
            deeper if deeper > depth => last = number,
            same if same == depth && *first == b'{' => last = number,
            same if same == depth && b"})]".contains(first) => {
                last = number;
                // A line such as `) {` continues the definition.
                if !b"{(:,".contains(end) {
                    return last;
                }
            }
            same if same == depth && whole.trim_ascii_start() == b"end" => return number,
            _ => return last,
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outline(path: &str, text: &str) -> Vec<String> {
        let text = Text::new(text.as_bytes());
        let told = |found: Definition| {
            format!("{} {}-{}-{}", found.name, found.start, found.line, found.end)
        };
        definitions(path, &text).into_iter().map(told).collect()
    }

    #[test]
    fn all_patterns_compile_and_have_one_group_each() {
        for language in LANGUAGES.iter() {
            assert_eq!(
                language.regex().captures_len(),
                language.patterns.len() + 1,
                "{:?}",
                language.files
            );
        }
    }

    #[test]
    fn definitions_of_each_language() {
        // Each example ends with the expected outline: name, first line, line of the name, and last line.
        for example in include_str!("data/symbols_examples.txt").split("\n=== ").skip(1) {
            let (path, example) = example.split_once('\n').unwrap();
            let (text, expected) = example.split_once("\n---\n").unwrap();
            assert_eq!(
                outline(path, text),
                expected.trim_end().lines().collect::<Vec<_>>(),
                "{path}"
            );
        }
    }

    #[test]
    fn lines_of_a_text() {
        let text = Text::new(b"a\nb \r\n\nc");
        assert_eq!(
            (text.count(), text.line(2), text.line(3), text.line(4), text.line(5)),
            (4, &b"b"[..], &b""[..], &b"c"[..], &b""[..])
        );
        assert_eq!(
            (text.line_at(0), text.line_at(2), text.line_at(6), text.line_at(7)),
            (1, 2, 3, 4)
        );
        assert_eq!(Text::new(b"").count(), 0);
    }
}
