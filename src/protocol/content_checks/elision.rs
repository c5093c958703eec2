//! Finds placeholder lines that stand for omitted lines (`// ... rest unchanged ...`), and placeholders of secrets that
//! were not shown (`[withheld: AWS key]`). Pure.
//!
//! The patterns of such lines are in `data/elision.toml`.

use std::cell::{LazyCell, OnceCell};
use std::collections::{BTreeMap, HashSet};
use std::sync::LazyLock;

use memchr::{memchr, memchr_iter, memmem, memrchr};
use regex::RegexSet;
use serde::Deserialize;

use super::{FileKind, TablePattern};
use crate::protocol::{RelPath, Replacement};
use crate::secrets;

/// Explains why a line is not written: the file would lose text. The phrase follows the line's name. `instead` is the
/// advice for a line that stands for other lines.
pub fn explain_loss(line: &str, path: &str, instead: &str) -> String {
    if has_secret_placeholder(line) {
        return format!(
            "contains a placeholder; writing it would erase the real secret in '{path}'. Nothing was changed. Leave that line as it is, and edit only others"
        );
    }
    format!("stands for lines that '{path}' would lose; nothing was changed. {instead}")
}

/// Whether a text contains the placeholder of a secret.
pub fn has_secret_placeholder(text: &str) -> bool {
    memmem::find(text.as_bytes(), secrets::MARK.as_bytes()).is_some()
}

/// The number (from 1) of the first line of a new file that contains the placeholder of a secret. `[withheld: ...]`
/// does not count, because the protocol itself writes this about placeholders.
pub fn secret_placeholder_line(content: &[u8]) -> Option<usize> {
    let is_rule = |at: &usize| {
        let rest = &content[at + secrets::MARK.len()..];
        rest.starts_with(b"...") || rest.starts_with("…".as_bytes())
    };
    let mut found = memmem::find_iter(content, secrets::MARK.as_bytes());
    found.find(|at| !is_rule(at)).map(|at| line_number(content, at))
}

/// Finds the first line that stands for omitted lines and is not in the file. `texts` are new texts, each with the text
/// that it replaces. Returns the index of the text, the number (from 1) of the line in it, and the line.
pub fn left_out<'a>(
    texts: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    file: &[u8],
    path: &RelPath,
) -> Option<(usize, usize, &'a str)> {
    let lines = LazyCell::new(|| {
        file.split(|b| *b == b'\n').map(<[u8]>::trim_ascii).collect::<HashSet<_>>()
    });
    let extension = path.name().rsplit_once('.').map_or("", |(_, end)| end).to_ascii_lowercase();
    texts.into_iter().enumerate().find_map(|(n, (new, replaced))| {
        candidates(new).next()?;
        let (extension, loss) = (Some(extension.clone()), Loss::of(new, replaced));
        let detector = Detector::new(new, FileKind::of(path), extension, loss);
        let (start, line) = candidates(new).find(|(start, line)| {
            detector.is_elision(*start, line) && !lines.contains(line.trim().as_bytes())
        })?;
        Some((n, line_number(new.as_bytes(), start), line.trim()))
    })
}

/// Like [`left_out`], for the pairs of an edit.
pub fn left_out_of_pairs<'a>(
    pairs: &'a [Replacement],
    file: &[u8],
    path: &RelPath,
) -> Option<(usize, usize, &'a str)> {
    left_out(pairs.iter().map(|pair| (&*pair.new, pair.old.as_bytes())), file, path)
}

/// Whether a text may omit something, regardless of the file.
pub fn may_leave_out(text: &str) -> bool {
    let kinds = [FileKind::Code, FileKind::Document];
    let detectors = kinds.map(|kind| Detector::new(text, kind, None, Loss::Half));
    candidates(text).any(|(start, line)| detectors.iter().any(|one| one.is_elision(start, line)))
}

/// The number of the line that contains an offset, from 1.
fn line_number(text: &[u8], at: usize) -> usize {
    memchr_iter(b'\n', &text[..at]).count() + 1
}

/// The lines of a text that contain an anchor, and their offsets.
fn candidates(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let (bytes, mut from) = (text.as_bytes(), 0);
    std::iter::from_fn(move || {
        let at = TABLE.anchors.find_at(text, from)?.start();
        let start = memrchr(b'\n', &bytes[..at]).map_or(0, |end| end + 1);
        from = memchr(b'\n', &bytes[at..]).map_or(text.len(), |end| at + end + 1);
        Some((start, &text[start..from]))
    })
}

/// How much shorter a text is than the text that it replaces. Blank lines do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Loss {
    /// The text may be longer.
    Any,
    /// The text has fewer lines, or the same number of lines and fewer bytes.
    Some,
    /// The text has at most half as many lines.
    Half,
}

impl Loss {
    fn of(new: &str, replaced: &[u8]) -> Self {
        let is_filled = |line: &&[u8]| !line.trim_ascii().is_empty();
        let count = |text: &[u8]| text.split(|b| *b == b'\n').filter(is_filled).count();
        let (after, before) = (count(new.as_bytes()), count(replaced));
        if before >= after * 2 {
            Self::Half
        } else if before > after || before == after && new.len() < replaced.len() {
            Self::Some
        } else {
            Self::Any
        }
    }
}

/// The structure of `data/elision.toml`, the table of patterns.
#[derive(Deserialize)]
struct Table {
    anchors: TablePattern,
    comment: TablePattern,
    skipped: Vec<String>,
    names: BTreeMap<String, String>,
    pattern: Vec<Pattern>,
    content: Vec<Content>,
}

#[derive(Deserialize)]
struct Pattern {
    loss: Loss,
    line: String,
    #[serde(default)]
    dots: bool,
}

/// Where dots are content. All given conditions must be met.
#[derive(Deserialize)]
struct Content {
    #[serde(default)]
    extensions: Vec<String>,
    scene: TablePattern,
    between: Option<TablePattern>,
}

static TABLE: LazyLock<Table> =
    LazyLock::new(|| toml::from_str(include_str!("data/elision.toml")).expect("a constant table"));

/// All patterns, in the order of the table.
static PATTERNS: LazyLock<RegexSet> = LazyLock::new(|| {
    let put_in =
        |line: String, (name, text): (&String, &String)| line.replace(&format!("<{name}>"), text);
    // Names are nested at most three levels deep.
    let expand =
        |line: &String| (0..3).fold(line.clone(), |line, _| TABLE.names.iter().fold(line, put_in));
    let lines = TABLE.pattern.iter().map(|pattern| expand(&pattern.line));
    RegexSet::new(lines).expect("constant patterns")
});

/// Checks the lines of a text that is written to a file.
struct Detector<'a> {
    text: &'a str,
    kind: FileKind,
    /// The extension of the file; None if the file is not known.
    extension: Option<String>,
    loss: Loss,
    /// The offsets of the marks between which dots are content. A file has only one kind of marks.
    marks: OnceCell<Vec<usize>>,
}

impl<'a> Detector<'a> {
    fn new(text: &'a str, kind: FileKind, extension: Option<String>, loss: Loss) -> Self {
        Self { text, kind, extension, loss, marks: OnceCell::new() }
    }

    /// Whether the line that begins at `start` stands for other lines.
    fn is_elision(&self, start: usize, whole: &str) -> bool {
        /// Lines longer than this never stand for other lines.
        const LONGEST: usize = 160;
        let line = whole.trim();
        // Recorded program output may already have been shortened with dots.
        let may_be_cut = |loss| self.kind == FileKind::Output && loss > Loss::Any;
        let stands = |reading: String| {
            PATTERNS.matches(&reading).iter().any(|n| {
                let Pattern { loss, dots, .. } = TABLE.pattern[n];
                let is_content = || may_be_cut(loss) || self.is_content(&reading, start, whole);
                loss <= self.loss && !(dots && is_content())
            })
        };
        has_secret_placeholder(line)
            || line.len() <= LONGEST && readings(line, self.kind).into_iter().flatten().any(stands)
    }

    /// Whether dots in a line are content.
    fn is_content(&self, reading: &str, start: usize, whole: &str) -> bool {
        let Some(extension) = &self.extension else { return false };
        let above = self.text[..start].trim_end().rsplit('\n').next().unwrap_or_default().trim();
        let scene = format!("{reading}\n{above}\n{whole}");
        let is_between = |mark: &TablePattern| {
            let find = || mark.find_iter(self.text).map(|found| found.start()).collect();
            self.marks.get_or_init(find).partition_point(|at| *at < start) % 2 == 1
        };
        TABLE.content.iter().any(|content| {
            (content.extensions.is_empty() || content.extensions.contains(extension))
                && content.scene.is_match(&scene)
                && content.between.as_ref().is_none_or(is_between)
        })
    }
}

/// How a line can be read: as a comment, and as ordinary text.
fn readings(line: &str, kind: FileKind) -> [Option<String>; 2] {
    let is_code = kind == FileKind::Code;
    let kind = if is_code { "code" } else { "text" };
    let comment = TABLE.comment.find(line).map(|found| {
        let marker = found.as_str().trim_start_matches("pass").trim_start();
        let said = &line[found.end()..];
        let end = ["*/}", "*/", "-->"].iter().find_map(|end| said.strip_suffix(end));
        let place = match (&marker[..1], is_code) {
            ("<", _) => "comment",
            ("*", _) | (";" | "%", false) => "mark",
            (_, false) => "heading",
            ("/", true) if marker.starts_with("///") || said.starts_with('!') => "doc",
            _ => "comment",
        };
        reading(kind, place, end.unwrap_or(said), end.is_some())
    });
    let by_itself = match set_off(line, is_code) {
        Some(inner) => Some(reading(kind, "alone", inner, false)),
        None => is_ellipsis(first_token(line)).then(|| reading(kind, "bare", line, false)),
    };
    [comment, by_itself]
}

/// A line that is enclosed in brackets. In prose it may also be enclosed in other signs, and follow a bullet.
fn set_off(line: &str, is_code: bool) -> Option<&str> {
    const PAIRS: [&str; 8] = ["[]", "()", "<>", "**", "__", "``", "~~", "--"];
    let item = ["> ", "- "].iter().find_map(|bullet| line.strip_prefix(bullet));
    let (line, pairs) = match is_code {
        // Code can contain dots in round brackets.
        true if line.trim_matches(['(', ')', '.', '…']).is_empty() => return None,
        true => (line, &PAIRS[..2]),
        false => (item.unwrap_or(line), &PAIRS[..]),
    };
    let encloses = |pair: &&str| line.starts_with(&pair[..1]) && line.ends_with(&pair[1..]);
    (line.len() > 1 && pairs.iter().any(encloses)).then_some(line)
}

/// A line in the form that the patterns expect: `code comment: … rest unchanged …`.
fn reading(kind: &str, place: &str, said: &str, has_end: bool) -> String {
    let said = said.trim();
    let inner = said.trim_matches(|c: char| c.is_whitespace() || "-–—=*_()[]~`".contains(c));
    let in_angles = inner.strip_prefix('<').and_then(|inner| inner.strip_suffix('>'));
    let inner = in_angles.filter(|inner| !inner.contains('<')).unwrap_or(inner);
    let mut words = String::with_capacity(inner.len() * 2);
    let (mut at, mut end) = (0, 0);
    while at < inner.len() {
        let token = first_token(&inner[at..]);
        let (is_first, is_attached) = (at == 0, words == "…" && at == end);
        at += token.len();
        let word = match token {
            _ if is_ellipsis(token) => "…".to_owned(),
            "," if is_attached => "·".to_owned(),
            _ if token.starts_with(char::is_alphanumeric) => token.to_lowercase(),
            // A text that begins with another sign is code, or an example of code.
            _ if is_first => "·".to_owned(),
            "-" | "–" | "—" | ".." => "-".to_owned(),
            _ => continue,
        };
        if !is_attached && TABLE.skipped.contains(&word) {
            continue;
        }
        if !(words.is_empty() || is_attached && word != "…") {
            words.push(' ');
        }
        words.push_str(&word);
        end = at;
    }
    let is_framed = has_end || inner.len() < said.len() || words.contains('…');
    format!("{kind} {}{place}: {words}", if is_framed { "framed " } else { "" })
}

/// The word, the dots or the single character with which a text begins.
fn first_token(text: &str) -> &str {
    let mut chars = text.chars();
    let end = match chars.next() {
        Some(c) if c.is_alphanumeric() => text.find(|c: char| !c.is_alphanumeric()),
        Some(c) if DOTS.contains(&c) => text.find(|c| !DOTS.contains(&c)),
        _ => return &text[..text.len() - chars.as_str().len()],
    };
    &text[..end.unwrap_or(text.len())]
}

const DOTS: [char; 4] = ['.', '…', '⋮', '⋯'];

/// Whether a token is an ellipsis. A longer row of dots is a drawn line.
fn is_ellipsis(token: &str) -> bool {
    const LONGEST: usize = 9;
    let is_one = token.starts_with("...") || token.starts_with(&DOTS[1..]);
    is_one && token.chars().count() <= LONGEST
}

#[cfg(test)]
mod tests;
