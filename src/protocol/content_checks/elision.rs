//! Lines that stand for lines which a text leaves out (`// ... rest unchanged ...`), and placeholders of
//! secrets that were not shown (`[withheld: AWS key]`). Pure.
//!
//! What such lines look like, and how much a text must lose before they count, is in
//! `data/elision.toml`.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashSet};
use std::sync::LazyLock;

use memchr::{memchr_iter, memmem};
use regex::Regex;
use serde::Deserialize;

use super::FileKind;
use crate::protocol::{RelPath, Replacement};
use crate::secrets;

/// No longer line stands for others.
const LONGEST: usize = 160;

/// Why a line is not written to a file that would lose something by it, as a phrase that follows the line's
/// name. `instead` says what to do if the line stands for others.
pub fn loses(line: &str, path: &str, instead: &str) -> String {
    let (what, instead) = if has_secret_placeholder(line) {
        let leave = "Leave that line as it is, and edit others";
        ("holds what stands for a secret, which", leave)
    } else {
        ("stands for lines that", instead)
    };
    format!("{what} '{path}' would lose; nothing was changed. {instead}")
}

/// Whether a text contains the placeholder of a secret.
pub fn has_secret_placeholder(text: &str) -> bool {
    memmem::find(text.as_bytes(), secrets::MARK.as_bytes()).is_some()
}

/// The number of the first line of a new file, from 1, that contains the placeholder of a secret.
/// `[withheld: ...]` is how the protocol itself writes about them.
pub fn secret_placeholder_line(content: &[u8]) -> Option<usize> {
    let is_rule = |at: &usize| {
        let rest = &content[at + secrets::MARK.len()..];
        rest.starts_with(b"...") || rest.starts_with("…".as_bytes())
    };
    let mut found = memmem::find_iter(content, secrets::MARK.as_bytes());
    let at = found.find(|at| !is_rule(at))?;
    Some(memchr_iter(b'\n', &content[..at]).count() + 1)
}

/// The first line of `new` that stands for lines left out, with its number from 1, if `new` replaces
/// `replaced` in the file at `path`, whose content is `old` and lacks that line.
pub fn left_out<'a>(
    new: &'a str,
    replaced: &[u8],
    old: &[u8],
    path: &RelPath,
) -> Option<(usize, &'a str)> {
    OldLines::of(old).first_missing(new, replaced, path)
}

/// The same for several replacements: the index of the replacement, the line's number in its new text,
/// and the line.
pub fn left_out_of_pairs<'a>(
    pairs: &'a [Replacement],
    old: &[u8],
    path: &RelPath,
) -> Option<(usize, usize, &'a str)> {
    let lines = OldLines::of(old);
    pairs.iter().enumerate().find_map(|(n, pair)| {
        let (line, text) = lines.first_missing(&pair.new, pair.old.as_bytes(), path)?;
        Some((n, line, text))
    })
}

/// Whether a text may leave something out, whatever file it is for.
pub fn may_leave_out(text: &str) -> bool {
    let finds = |is_code| {
        let file = File { is_code, is_output: false, extension: None };
        find(text, &file, Loss::Half).next().is_some()
    };
    finds(true) || finds(false)
}

/// The lines of a file, collected once if at all.
struct OldLines<'a> {
    file: &'a [u8],
    lines: OnceCell<HashSet<&'a [u8]>>,
}

impl<'a> OldLines<'a> {
    fn of(file: &'a [u8]) -> Self {
        Self { file, lines: OnceCell::new() }
    }

    fn has(&self, line: &str) -> bool {
        let lines = || self.file.split(|b| *b == b'\n').map(<[u8]>::trim_ascii).collect();
        self.lines.get_or_init(lines).contains(line.as_bytes())
    }

    /// The first line of `new` that stands for others and is not one of these.
    fn first_missing<'n>(
        &self,
        new: &'n str,
        replaced: &[u8],
        path: &RelPath,
    ) -> Option<(usize, &'n str)> {
        let kind = FileKind::of(path);
        let extension = path.name().rsplit_once('.').map(|(_, end)| end.to_ascii_lowercase());
        let extension = Some(extension.unwrap_or_default());
        let (is_code, is_output) = (kind == FileKind::Code, kind == FileKind::Output);
        let (file, loss) = (File { is_code, is_output, extension }, Loss::of(new, replaced));
        let (at, line) = find(new, &file, loss).find(|(_, line)| !self.has(line))?;
        Some((memchr_iter(b'\n', &new.as_bytes()[..at]).count() + 1, line))
    }
}

/// How much shorter a text is than what it replaces. Blank lines do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Loss {
    /// It may be longer.
    Any,
    /// It has as many lines.
    Same,
    /// It has fewer lines, or as many that are shorter together.
    Some,
    /// It has at most half of the lines.
    Half,
}

impl Loss {
    fn of(new: &str, replaced: &[u8]) -> Self {
        let filled = |line: &&[u8]| !line.trim_ascii().is_empty();
        let count = |text: &[u8]| text.split(|b| *b == b'\n').filter(filled).count();
        let (after, before) = (count(new.as_bytes()), count(replaced));
        if before >= after * 2 {
            Self::Half
        } else if before > after || before == after && new.len() < replaced.len() {
            Self::Some
        } else if before == after {
            Self::Same
        } else {
            Self::Any
        }
    }
}

/// Where in its line a phrase was found; see `data/elision.toml`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Place {
    Comment,
    Doc,
    Heading,
    Mark,
    Alone,
    Bare,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Code,
    Text,
}

/// The file that a text is for, as far as it matters here.
struct File {
    is_code: bool,
    /// Whether it is program output, which may have been cut with dots when it was recorded.
    is_output: bool,
    /// None if the file is not known.
    extension: Option<String>,
}

#[derive(Deserialize)]
struct Pattern {
    loss: Loss,
    places: Vec<Place>,
    kind: Option<Kind>,
    phrase: Option<String>,
    #[serde(default)]
    has: Vec<String>,
    #[serde(default)]
    framed: bool,
    #[serde(default)]
    dots: bool,
    #[serde(skip)]
    regex: Option<Regex>,
}

/// Where dots are content. All given conditions must hold.
#[derive(Deserialize)]
struct Content {
    kind: Option<Kind>,
    #[serde(default)]
    extensions: Vec<String>,
    #[serde(default)]
    indented: bool,
    #[serde(default, deserialize_with = "regex")]
    before: Option<Regex>,
    #[serde(default, deserialize_with = "regex")]
    between: Option<Regex>,
}

#[derive(Deserialize)]
struct Table {
    skipped: Vec<String>,
    joining: Vec<String>,
    words: BTreeMap<String, Vec<String>>,
    phrases: BTreeMap<String, Vec<String>>,
    pattern: Vec<Pattern>,
    content: Vec<Content>,
}

fn regex<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Regex>, D::Error> {
    let text = String::deserialize(from)?;
    Regex::new(&text).map(Some).map_err(serde::de::Error::custom)
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut table: Table =
        toml::from_str(include_str!("data/elision.toml")).expect("a constant table");
    for pattern in &mut table.pattern {
        pattern.regex = pattern.phrase.as_ref().map(|phrase| {
            let named = |text: String, (name, list): (&String, &Vec<String>)| {
                text.replace(&format!("<{name}>"), &format!("({})", list.join("|")))
            };
            let phrase = table.phrases.iter().fold(phrase.clone(), named);
            Regex::new(&phrase).expect("a constant pattern")
        });
    }
    table
});

impl Pattern {
    fn matches(&self, phrase: &Phrase) -> bool {
        self.places.contains(&phrase.place)
            && (!self.framed || phrase.is_framed)
            && match &self.regex {
                Some(regex) => regex.is_match(&phrase.text),
                None => consists_of(&phrase.text, &self.has),
            }
    }
}

/// Whether a phrase consists of words of the table, and has one of each of these lists.
fn consists_of(phrase: &str, lists: &[String]) -> bool {
    const MOST: usize = 10;
    let words = || phrase.split(['…', ' ', '-']).filter(|word| !word.is_empty());
    let is_in = |word: &str, list: &Vec<String>| list.iter().any(|known| known == word);
    let has = |list: &String| words().any(|word| is_in(word, &TABLE.words[list]));
    lists.iter().all(has)
        && words().count() <= MOST
        && words().all(|word| TABLE.words.values().any(|list| is_in(word, list)))
}

/// The lines of a text for `file` that stand for others, without the blanks around them and with where
/// they begin, if the text loses that much.
fn find<'a>(text: &'a str, file: &File, loss: Loss) -> impl Iterator<Item = (usize, &'a str)> {
    let kind = if file.is_code { Kind::Code } else { Kind::Text };
    let is_of_kind = move |of: Option<Kind>| of.is_none_or(|of| of == kind);
    let counts = |pattern: &&Pattern| pattern.loss <= loss && is_of_kind(pattern.kind);
    let patterns: Vec<&Pattern> = TABLE.pattern.iter().filter(counts).collect();
    let extension = file.extension.as_ref();
    let is_for = |content: &&Content| {
        let is_any = content.extensions.is_empty();
        is_of_kind(content.kind)
            && extension.is_some_and(|end| is_any || content.extensions.contains(end))
    };
    let contents = TABLE.content.iter().filter(is_for);
    let mut contents: Vec<(&Content, bool)> = contents.map(|content| (content, false)).collect();
    let (mut at, mut before) = (0, "");
    text.split_inclusive('\n').filter_map(move |whole| {
        let (begin, line, above) = (at, whole.trim(), before);
        at += whole.len();
        if line.is_empty() {
            return None;
        }
        before = line;
        let mut is_content = [false; 2];
        for (content, is_between) in &mut contents {
            let holds = (!content.indented || whole.starts_with([' ', '\t']))
                && content.before.as_ref().is_none_or(|before| before.is_match(above))
                && (content.between.is_none() || *is_between);
            is_content[0] |= holds;
            is_content[1] |= holds && content.kind == Some(Kind::Text);
            let marks = content.between.as_ref().map_or(0, |mark| mark.find_iter(line).count());
            *is_between ^= marks % 2 == 1;
        }
        let stands = |phrase: Phrase| {
            let is_content = match phrase.place {
                // No language has the other sign.
                Place::Bare => is_content[0] && line.starts_with('.') || is_content[1],
                _ => is_content[1],
            };
            let is_content = is_content || phrase.goes_on(above);
            let may_be_cut = |pattern: &Pattern| file.is_output && pattern.loss > Loss::Any;
            let counts = |pattern: &&Pattern| !pattern.dots || !is_content && !may_be_cut(pattern);
            patterns.iter().copied().filter(counts).any(|pattern| pattern.matches(&phrase))
        };
        let is_one = has_secret_placeholder(line)
            || line.len() <= LONGEST && phrases(line, kind).into_iter().flatten().any(stands);
        is_one.then_some((begin, line))
    })
}

/// What a line says, in the form that patterns are compared with.
struct Phrase {
    place: Place,
    text: String,
    /// Whether signs stand around it.
    is_framed: bool,
    /// What begins the comment.
    marker: &'static str,
}

impl Phrase {
    /// Whether it goes on with a sentence: of the comment above, or with a word that joins two parts of one.
    fn goes_on(&self, above: &str) -> bool {
        let text = self.text.strip_prefix("… ").filter(|text| !text.ends_with('…'));
        let first = text.and_then(|text| text.split(' ').next());
        let joins = |word: &str| TABLE.joining.iter().any(|joining| joining == word);
        first.is_some_and(|word| {
            !self.marker.is_empty() && above.starts_with(self.marker) || joins(word)
        })
    }
}

/// What a line may say: as a comment, and by itself.
fn phrases(line: &str, kind: Kind) -> [Option<Phrase>; 2] {
    const MARKERS: [&str; 9] = ["<!--", "{/*", "/*", "//", "#", "--", ";", "%", "*"];
    let comment = match (kind, line.strip_prefix("pass").map(str::trim_start)) {
        (Kind::Code, Some(comment)) => comment,
        _ => line,
    };
    let marker = MARKERS.into_iter().find(|marker| comment.starts_with(marker));
    let said = marker.map(|marker| {
        let sign = marker.chars().next_back().unwrap_or(' ');
        let inner = comment[marker.len()..].trim_start_matches(sign);
        let end = ["*/}", "*/", "-->"].iter().find_map(|end| inner.strip_suffix(end));
        let place = match marker {
            "<!--" => Place::Comment,
            "*" => Place::Mark,
            ";" | "%" if kind == Kind::Text => Place::Mark,
            _ if kind == Kind::Text => Place::Heading,
            _ if comment.starts_with("///") || comment.starts_with("//!") => Place::Doc,
            _ => Place::Comment,
        };
        phrase(place, marker, end.unwrap_or(inner), end.is_some())
    });
    let alone = match set_off(line, kind) {
        Some(inner) => Some((Place::Alone, inner)),
        None => (ellipsis(line) > 0).then_some((Place::Bare, line)),
    };
    [said, alone.map(|(place, inner)| phrase(place, "", inner, false))]
}

/// What brackets around a line contain, in a text also other signs, and what stands behind a bullet.
fn set_off(line: &str, kind: Kind) -> Option<&str> {
    const SIGNS: [char; 4] = ['*', '_', '`', '~'];
    const BRACKETS: [(char, char); 3] = [('(', ')'), ('[', ']'), ('<', '>')];
    let (line, inner, brackets) = match kind {
        Kind::Code => (line, line, &BRACKETS[..2]),
        Kind::Text => {
            let item = ["> ", "- "].iter().find_map(|bullet| line.strip_prefix(bullet));
            let line = item.unwrap_or(line);
            (line, line.trim_matches(SIGNS), &BRACKETS[..])
        }
    };
    let mut pairs = brackets.iter();
    let enclosed = pairs.find_map(|pair| inner.strip_prefix(pair.0)?.strip_suffix(pair.1));
    let is_between = |signs: &[char]| line.starts_with(signs) && line.ends_with(signs);
    // Code has dots in other brackets.
    let is_code = |inner: &&str| kind == Kind::Code && ellipsis(inner) == inner.len();
    let enclosed = enclosed.filter(|inner| line.starts_with('[') || !is_code(inner));
    let is_set_off = kind == Kind::Text && (is_between(&SIGNS) || is_between(&['-']));
    enclosed.or_else(|| is_set_off.then(|| inner.trim_matches('-')))
}

/// How many bytes an ellipsis at the beginning of a text has.
fn ellipsis(text: &str) -> usize {
    let rest = text.trim_start_matches(['…', '⋮', '⋯', '.']);
    let dots = &text[..text.len() - rest.len()];
    let is_one = dots.starts_with(['…', '⋮', '⋯']) || dots.starts_with("...");
    if is_one { dots.len() } else { 0 }
}

fn phrase(place: Place, marker: &'static str, said: &str, has_end: bool) -> Phrase {
    /// More dots are a line drawn with them.
    const LONGEST: usize = 9;
    let said = said.trim();
    let is_sign = |c: char| c.is_whitespace() || "-–—=*_()[]~`".contains(c);
    let mut rest = said.trim_matches(is_sign);
    let in_angles = rest.strip_prefix('<').and_then(|rest| rest.strip_suffix('>'));
    rest = in_angles.filter(|inner| !inner.contains('<')).unwrap_or(rest);
    let is_framed =
        has_end || rest.len() < said.len() || rest.contains('…') || rest.contains("...");
    let mut text = String::with_capacity(rest.len());
    while let Some(c) = rest.chars().next() {
        let dots = ellipsis(rest);
        rest = &rest[dots.max(c.len_utf8())..];
        if dots == 0 {
            // What begins with another sign is code, or an example of it.
            let is_range = "-–—".contains(c) || c == '.' && rest.starts_with('.');
            text.extend(match c {
                _ if c.is_alphanumeric() => c.to_lowercase().next(),
                // So does what goes on with a sign right behind dots: `[..., None]`.
                _ if text.ends_with('…') || text.is_empty() && !c.is_whitespace() => Some('·'),
                _ if is_range => Some('-'),
                _ => Some(' '),
            });
            continue;
        }
        let is_first = text.is_empty();
        text.push_str(if is_first { "…" } else { " …" });
        if dots > LONGEST {
            text.push('…');
        }
        if !is_first || !rest.starts_with(|c: char| c.is_alphanumeric() || c == ',') {
            text.push(' ');
        }
    }
    let is_skipped = |word: &str| TABLE.skipped.iter().any(|skipped| skipped == word);
    let words: Vec<&str> = text.split_whitespace().filter(|word| !is_skipped(word)).collect();
    let mut text = words.join(" ");
    if text.ends_with("as is") || text.ends_with("as is …") {
        text = text.replace("as is", "same");
    }
    Phrase { place, text, is_framed, marker }
}

#[cfg(test)]
mod tests;
