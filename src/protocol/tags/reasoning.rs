//! The markers of reasoning, and the tags of elements. Commands inside them are never executed.
//!
//! Chats escape markers, write them as entities, or use other characters for `<`. So a line is first converted to a
//! canonical form, in which one pattern finds all markers. An opening marker must begin its line. A closing marker at
//! the start or end of its line or before a tag always counts; in other places it counts only if something opened it.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::LazyLock;

use memchr::{memchr, memchr3, memchr3_iter, memrchr};
use regex::Regex;

use super::lexer::{self, Decoration, is_zero_width};
use super::pairs;

/// The names of reasoning, each with its canonical name. Names with the same canonical name close each other.
const NAMES: [(&str, &str); 8] = [
    ("think", "think"),
    ("thinking", "think"),
    ("thought", "thought"),
    ("thoughts", "thought"),
    ("reasoning", "reasoning"),
    ("reflection", "reflection"),
    ("analysis", "analysis"),
    ("scratchpad", "scratchpad"),
];
/// The entities for the characters in markers.
const ENTITIES: [(&str, char); 12] = [
    ("lt", '<'),
    ("gt", '>'),
    ("lang", '<'),
    ("rang", '>'),
    ("sol", '/'),
    ("lsqb", '['),
    ("lbrack", '['),
    ("rsqb", ']'),
    ("rbrack", ']'),
    ("vert", '|'),
    ("lowbar", '_'),
    ("nbsp", ' '),
];
const COMMENT: &str = "<!--";
/// Encloses verbatim text in XML.
const VERBATIM: &str = "<![cdata[";
/// The reasoning channel of one chat template.
const THOUGHT: &str = "<|channel>";
/// The token of a chat template with several channels. All channels except `final` are reasoning.
const CHANNEL: &str = "<|channel|>";
/// An element in which pages hide reasoning and other text.
const DETAILS: &str = "<details";
/// Begins a pair of SEARCH and REPLACE.
pub(super) const PAIR: &str = "<<<<<<< SEARCH";

/// Finds possible markers in the canonical form of a line.
static MARKER: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r#"(?x)
        <!\[cdata\[ | \]\]> | <!-- | -->
        | <\|channel>\w* | <channel\|>
        | <\|end\|>\s*(?:<\|start\|>\w*)?<\|channel\|>\s*final\b(?:<\|message\|>)?
        | <\|end\|>
        | (?:<\|start\|>\w*)?<\|channel\|>\s*\w*(?:<\|message\|>)?
        | <\|start\|>\w*(?:<\|message\|>)?
        | <(?:="[^"]*"|='[^']*'|[^<>])*>
        | \[[^\[\]]*\] | ◁[^◁▷]*▷"#;
    Regex::new(pattern).unwrap()
});

/// A marker of reasoning, or the tag of any other element.
#[derive(Debug)]
pub(super) struct Marker {
    /// The key, which is the same for an opening marker and its closing marker.
    pub(super) key: String,
    pub(super) is_end: bool,
    /// The byte offsets of its start and end.
    pub(super) at: usize,
    pub(super) end: usize,
    pub(super) kind: MarkerKind,
    /// Whether no element with the same key begins before this marker on its line.
    is_first_of_key: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MarkerKind {
    /// Reasoning. An end marker proves that there is reasoning before it, even if nothing opened it.
    Reasoning,
    /// Hidden text. An end marker counts only if something opened it.
    Paired,
    /// An element with any other name.
    Element,
}

/// How much a closing marker proves at its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strength {
    /// It can only close an open span.
    Closes,
    /// It counts even if no span is open.
    Alone,
}

/// A line with its markers.
pub(super) struct MarkedLine<'t> {
    text: &'t str,
    pub(super) begin: usize,
    end: usize,
    /// The end of the decoration at the start of the line, and its kind.
    lead: Option<(usize, Decoration)>,
    pub(super) markers: Vec<Marker>,
    /// Whether the line may be part of an operations message, in which markers are ordinary text.
    is_json: bool,
    /// The start of the first and the end of the last letter or digit outside tags and comments.
    first_word: usize,
    last_word: usize,
}

impl<'t> MarkedLine<'t> {
    /// Reads the markers of a line. None if it has none.
    pub(super) fn new(text: &'t str, line: Range<usize>) -> Option<Self> {
        let Range { start: begin, end } = line;
        let raw = &text[begin..end];
        let (lead, is_json, first_word, last_word) = (None, false, end, begin);
        let line =
            Self { text, begin, end, lead, markers: Vec::new(), is_json, first_word, last_word };
        if !may_have_marker(raw) {
            return None;
        }
        if let Some(marker) = section_marker(raw, begin) {
            return Some(Self { markers: vec![marker], ..line });
        }
        let (canonical, offsets) = canonical(raw);
        let mut markers = Vec::new();
        let (mut first_word, mut last_word, mut word_from) = (first_word, last_word, 0);
        let mut words = |from: usize, to: usize| {
            let Some(between) = canonical.get(from..to) else { return };
            if let Some(n) = between.find(char::is_alphanumeric) {
                first_word = first_word.min(begin + offsets.begin(from + n));
                let last = between.char_indices().rfind(|(_, c)| c.is_alphanumeric());
                let end = |(n, c): (usize, char)| begin + offsets.end(from + n + c.len_utf8());
                last_word = last.map_or(last_word, end);
            }
        };
        let (mut next, mut comment_end, mut opened) = (0, 0, HashSet::new());
        while let Some(found) = MARKER.find_at(&canonical, next) {
            let all = found.range();
            next = all.end;
            let marker = marker(found.as_str(), &canonical[all.end..]);
            if marker.is_none() && !found.as_str().starts_with('<') {
                continue;
            }
            words(word_from, all.start);
            word_from = all.end;
            let Some((key, is_end, sort)) = marker else { continue };
            if key == COMMENT && !is_end {
                // Each part of the line is searched only once, which keeps this linear.
                if comment_end < all.end {
                    let length = canonical[all.end..].find("-->");
                    comment_end = length.map_or(canonical.len(), |length| all.end + length);
                }
                word_from = comment_end;
            }
            let is_first_of_key = !opened.contains(&key);
            if !is_end {
                opened.insert(key.clone());
            }
            let (at, end) = (begin + offsets.begin(all.start), begin + offsets.end(all.end));
            markers.push(Marker { key, is_end, is_first_of_key, at, end, kind: sort });
        }
        words(word_from, canonical.len());
        (!markers.is_empty()).then_some(Self {
            lead: lexer::leading_decoration(raw).map(|lead| (begin + lead.length, lead.decoration)),
            markers,
            is_json: self::is_json(raw),
            first_word,
            last_word,
            ..line
        })
    }

    /// Treats the rest of the line, from this offset on, as a line of its own.
    pub(super) fn read_from(&mut self, from: usize) {
        let lead = || lexer::leading_decoration(self.text.get(from..self.end)?);
        self.lead = lead().map(|lead| (from + lead.length, lead.decoration));
    }

    /// The decoration before a marker, if the marker begins the line.
    fn lead_of(&self, marker: &Marker) -> Option<Decoration> {
        self.lead.filter(|(end, _)| *end == marker.at).map(|(_, decoration)| decoration)
    }

    /// Whether a marker is enclosed in quotation marks.
    fn is_quoted(&self, marker: &Marker) -> bool {
        // Counting the quotes of a longer line for each marker would not be linear.
        const LONGEST: usize = 4096;
        let before = self.text[self.begin..marker.at].trim_end_matches('\\');
        let after = self.after(marker).trim_start_matches('\\');
        let mark = before.chars().next_back().filter(|mark| "`\"'".contains(*mark));
        mark.is_some_and(|mark| {
            let opens = || before.len() <= LONGEST && before.matches(mark).count() % 2 == 1;
            after.starts_with(mark) && opens()
        })
    }

    fn after(&self, marker: &Marker) -> &'t str {
        &self.text[marker.end..self.end]
    }

    fn is_last(&self, marker: &Marker) -> bool {
        self.last_word <= marker.end || self.after(marker).chars().all(decorates)
    }

    /// Whether an opening marker counts even if nothing closes it. None if it does not count at all.
    pub(super) fn opens(&self, marker: &Marker) -> Option<bool> {
        if marker.is_section() {
            return Some(false);
        }
        let (is_quoted, is_last) = (self.is_quoted(marker), self.is_last(marker));
        let lead = self.lead_of(marker);
        if marker.kind == MarkerKind::Element {
            let is_first = lead.is_some() || self.first_word >= marker.at && !is_quoted;
            return (is_first && (is_last || marker.key == DETAILS)).then_some(false);
        }
        if marker.kind == MarkerKind::Reasoning && is_last && !is_quoted {
            return Some(true);
        }
        let is_plain = !is_quoted
            && lead.is_some_and(|lead| {
                !lead.exceeds(Decoration::default())
                    || is_last && !lead.exceeds(Decoration::EMPHASIS)
            });
        let is_unlike_words = marker.key == COMMENT || marker.key == CHANNEL;
        let is_one =
            is_plain || is_last && lead.is_some() || is_unlike_words && !is_quoted && !self.is_json;
        is_one.then_some(is_plain)
    }

    /// How much a closing marker proves. None if it does not count at all.
    pub(super) fn closes(&self, marker: &Marker) -> Option<Strength> {
        if marker.is_section() {
            return Some(Strength::Closes);
        }
        let (is_quoted, is_last) = (self.is_quoted(marker), self.is_last(marker));
        let before = &self.text[self.begin..marker.at];
        let ends_message = || before.trim_end().ends_with('}') && !self.is_json;
        let is_first =
            self.lead_of(marker).is_some() || self.first_word >= marker.at || ends_message();
        let is_before_a_tag = || !self.is_json && is_before_a_tag(self.after(marker));
        if is_quoted {
            return (is_last && is_first).then_some(Strength::Closes);
        }
        if marker.kind == MarkerKind::Element {
            let is_one = is_first && (is_last || marker.key == DETAILS)
                || is_last && marker.is_first_of_key
                || is_before_a_tag();
            return is_one.then_some(Strength::Closes);
        }
        let is_token = || marker.key == CHANNEL && !self.is_json;
        let is_strong = is_first || is_last || is_token() || is_before_a_tag();
        let is_reasoning = marker.kind == MarkerKind::Reasoning;
        Some(if is_strong && is_reasoning { Strength::Alone } else { Strength::Closes })
    }

    /// The end of a closing marker, including decoration up to the end of the line.
    pub(super) fn end_of(&self, marker: &Marker) -> usize {
        if self.after(marker).chars().all(decorates) { self.end } else { marker.end }
    }
}

impl Marker {
    fn is_section(&self) -> bool {
        self.key.starts_with("--- ") || self.key == PAIR
    }

    /// Whether the text after this marker counts as a new line.
    pub(super) fn ends_line(&self) -> bool {
        self.kind != MarkerKind::Element || self.key == DETAILS
    }

    /// Whether this marker ends all open reasoning with its key, however often it was opened.
    pub(super) fn ends_all(&self) -> bool {
        self.key == CHANNEL && self.kind == MarkerKind::Reasoning
    }
}

fn is_json(line: &str) -> bool {
    let shown = line.trim();
    let begin = &shown[..shown.floor_char_boundary(64)];
    let begins = begin.starts_with('"') || begin.contains('{');
    begins && shown.ends_with(['{', '[', '}', ',', '"'])
}

/// Quickly checks whether a line may contain a marker. Most lines cannot.
fn may_have_marker(raw: &str) -> bool {
    let bytes = raw.as_bytes();
    raw.starts_with("--- ")
        || memchr3(b'<', b'[', b'&', bytes).is_some()
        || memchr(b'>', bytes).is_some()
        || wide_signs(bytes).next().is_some()
}

/// The offsets of non-ASCII characters that can begin a marker.
pub(super) fn wide_signs(bytes: &[u8]) -> impl Iterator<Item = usize> {
    const SIGNS: [&str; 6] = ["◁", "‹", "〈", "⟨", "＜", "［"];
    let is_sign = |at: &usize| SIGNS.iter().any(|sign| bytes[*at..].starts_with(sign.as_bytes()));
    memchr3_iter(0xe2, 0xe3, 0xef, bytes).filter(is_sign)
}

/// Quickly checks whether a name of reasoning may follow a character that can begin a marker.
pub(super) fn may_be_reasoning(sign: u8, rest: &[u8]) -> bool {
    if sign == b'&' {
        return matches!(rest.first(), Some(b'#' | b'l' | b'L'));
    }
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'/' | b'\\' | b'|');
    let rest = &rest[rest.iter().take(8).take_while(|byte| is_blank(byte)).count()..];
    let name = rest.iter().take(20).take_while(|byte| byte.is_ascii_alphanumeric()).count();
    let next = rest.get(name).copied().unwrap_or_default();
    let begin = rest[..name].first_chunk().map(|begin: &[u8; 3]| begin.map(|byte| byte | 0x20));
    let begins =
        [b"thi", b"tho", b"rea", b"ref", b"ana", b"ant", b"scr", b"beg", b"sta", b"end", b"cha"];
    !next.is_ascii() || next == b':' || begin.is_some_and(|begin| begins.contains(&&begin))
}

/// Finds an end of reasoning in a body that nothing in the body opened. `signs` are the offsets in the body at which a
/// marker may begin. Markers with the key `except` are ignored.
pub(super) fn find_stray_end(
    text: &str,
    body: Range<usize>,
    signs: &[usize],
    except: &str,
) -> Option<Range<usize>> {
    let bytes = &text.as_bytes()[body.clone()];
    let mut open: HashMap<String, usize> = HashMap::new();
    let mut seen = 0;
    for sign in signs.iter().map(|at| at - body.start) {
        if sign < seen {
            continue;
        }
        let begin = memrchr(b'\n', &bytes[seen..sign]).map_or(seen, |n| seen + n + 1);
        let end = memchr(b'\n', &bytes[sign..]).map_or(bytes.len(), |n| sign + n);
        seen = end;
        let (begin, end) = (body.start + begin, body.start + end);
        let Some(line) = MarkedLine::new(text, begin..end) else { continue };
        for marker in line
            .markers
            .iter()
            .filter(|marker| marker.kind == MarkerKind::Reasoning || !marker.is_end)
        {
            if !marker.is_end {
                if line.opens(marker).is_some() {
                    *open.entry(marker.key.clone()).or_default() += 1;
                }
                continue;
            }
            let Some(strength) = line.closes(marker) else { continue };
            match open.get_mut(&marker.key).filter(|count| **count > 0) {
                Some(count) => *count -= 1,
                None if strength == Strength::Alone && marker.key != except => {
                    return Some(marker.at..marker.end);
                }
                None => {}
            }
        }
    }
    None
}

/// Whether a character is only decoration around a marker.
fn decorates(c: char) -> bool {
    c.is_whitespace() || is_zero_width(c) || "*_`~\\".contains(c)
}

/// Whether a tag, a message or another marker of reasoning follows on the line.
fn is_before_a_tag(after: &str) -> bool {
    let after = &after[..after.floor_char_boundary(128)];
    let tag = after.trim_start_matches(|c| decorates(c) || "#>-".contains(c));
    let inner = tag.strip_prefix('[').map(|inner| inner.trim_start_matches(['/', '\\', ' ']));
    let is_marker = || {
        let blank = |c: char| c.is_whitespace() || is_zero_width(c);
        let after = after.trim_start_matches(blank);
        let (canonical, _) = canonical(after);
        let found = MARKER.find(&canonical).filter(|found| found.start() == 0);
        let found = found.and_then(|found| marker(found.as_str(), &canonical[found.end()..]));
        found.is_some_and(|(_, _, sort)| sort == MarkerKind::Reasoning)
    };
    inner.is_some_and(|inner| inner.starts_with(|c: char| c.is_ascii_alphabetic()))
        || tag.strip_prefix('[').and_then(lexer::read_name).is_some()
        || tag.starts_with('{')
        || is_marker()
}

/// The marker for a line that encloses a file in an outbox, or a pair of SEARCH and REPLACE.
fn section_marker(raw: &str, begin: usize) -> Option<Marker> {
    let line = raw.trim_end();
    let end = begin + line.len();
    let found = |key: String, is_end| {
        // The line itself is not part of the span.
        Some(Marker { key, is_end, is_first_of_key: true, at: end, end, kind: MarkerKind::Element })
    };
    if let Some(name) = line.strip_prefix("--- ").and_then(|line| line.strip_suffix(" ---")) {
        let closed = name.strip_prefix("end ");
        return found(format!("--- {} ---", closed.unwrap_or(name)), closed.is_some());
    }
    let is_end = pairs::is_any_marker(line.trim()) && line.ends_with("REPLACE");
    if pairs::is_beginning(line.trim()) || is_end {
        return found(PAIR.to_owned(), is_end);
    }
    None
}

/// For each character whose length changed: the offset after it in the canonical form, the offset after it in the line,
/// and whether it was left out.
#[derive(Default)]
struct Offsets(Vec<(usize, usize, bool)>);

impl Offsets {
    /// Maps the start of a range in the canonical form to an offset in the line.
    fn begin(&self, at: usize) -> usize {
        self.before(at, |(canonical, ..)| *canonical <= at)
    }

    /// Maps the end of a range in the canonical form to an offset in the line.
    fn end(&self, at: usize) -> usize {
        self.before(at, |(canonical, _, is_gap)| *canonical < at || *canonical == at && !is_gap)
    }

    fn before(&self, at: usize, is_before: impl Fn(&(usize, usize, bool)) -> bool) -> usize {
        let last = self.0[..self.0.partition_point(is_before)].last();
        last.map_or(at, |(canonical, line, _)| line + at - canonical)
    }
}

/// The canonical form of a line, and the offsets of its parts. Text is in lower case, entities are decoded, full-width
/// characters become ASCII, and invisible characters are left out.
fn canonical(raw: &str) -> (String, Offsets) {
    const ENTITY: usize = 10;
    let (mut text, mut offsets, mut at) = (String::new(), Offsets::default(), 0);
    while let Some(c) = raw[at..].chars().next() {
        let rest = &raw[at..];
        let mut length = c.len_utf8();
        let mut meant = match c {
            '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
            '‹' | '〈' | '⟨' => '<',
            '›' | '〉' | '⟩' => '>',
            '\u{a0}' => ' ',
            c => c,
        };
        let entity = (c == '&').then(|| &rest[1..rest.floor_char_boundary(ENTITY)]);
        if let Some((name, _)) = entity.and_then(|entity| entity.split_once(';')) {
            let number = name.strip_prefix('#').and_then(|number| {
                let hex = number.strip_prefix(['x', 'X']);
                hex.map_or_else(|| number.parse().ok(), |hex| u32::from_str_radix(hex, 16).ok())
            });
            let named = ENTITIES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            if let Some(sign) = number.and_then(char::from_u32).or(named.map(|(_, c)| *c)) {
                (meant, length) = (sign, name.len() + 2);
            }
        }
        let is_escape = meant == '\\' && rest[length..].starts_with(|c: char| !c.is_alphanumeric());
        let before = text.len();
        if !is_zero_width(meant) && !is_escape {
            text.extend(meant.to_lowercase());
        }
        at += length;
        if text.len() - before != length {
            offsets.0.push((text.len(), at, text.len() == before));
        }
    }
    (text, offsets)
}

/// The key of a marker in canonical form, whether it is an end marker, and its kind.
fn marker(found: &str, after: &str) -> Option<(String, bool, MarkerKind)> {
    const FIXED: [(&str, &str, bool, MarkerKind); 6] = [
        ("<![cdata[", VERBATIM, false, MarkerKind::Element),
        ("]]>", VERBATIM, true, MarkerKind::Element),
        ("<!--", COMMENT, false, MarkerKind::Paired),
        ("-->", COMMENT, true, MarkerKind::Paired),
        ("<|channel>", THOUGHT, false, MarkerKind::Reasoning),
        ("<channel|>", THOUGHT, true, MarkerKind::Reasoning),
    ];
    if ["<|end|>", "<|start|>", CHANNEL].iter().any(|token| found.starts_with(token)) {
        let (_, channel) = found.rsplit_once(CHANNEL).unwrap_or_default();
        let name = channel.split('<').next().unwrap_or_default().trim();
        let is_last = name == "final";
        let is_end = is_last || found.starts_with("<|end|>");
        let sort = if is_last { MarkerKind::Reasoning } else { MarkerKind::Paired };
        return Some((CHANNEL.to_owned(), is_end, sort));
    }
    let fixed = FIXED.iter().find(|(sign, ..)| found.starts_with(sign));
    if let Some((_, key, is_end, sort)) = fixed {
        return Some(((*key).to_owned(), *is_end, *sort));
    }
    let style = found.chars().next()?;
    let is_blank = |c: char| c.is_whitespace() || matches!(c, '\\' | '|');
    let inner = &found[style.len_utf8()..];
    let word = inner.trim_end_matches(['>', ']', '▷']).trim_matches(is_blank);
    let (is_slash, word) = match word.strip_prefix('/') {
        Some(word) => (true, word.trim_start_matches(is_blank)),
        None => (false, word),
    };
    if !word.starts_with(|c: char| c.is_alphabetic() || c == '_') {
        return None;
    }
    let length = word.find(|c: char| c.is_whitespace() || c == '/').unwrap_or(word.len());
    let (name, given) = (&word[..length], word[length..].trim_matches(is_blank));
    let whole =
        || (!given.contains('=')).then(|| reasoning_name(word)).flatten().map(|found| (found, ""));
    let reasoning = reasoning_name(name).map(|found| (found, given)).or_else(whole);
    let is_end = is_slash || reasoning.is_some_and(|((_, is_end), _)| is_end);
    let is_element = style == '<';
    // `[a](b)` is a link, and `<a/>` does not enclose anything.
    let is_link = !is_element && after.starts_with('(');
    if is_link || !is_end && given.ends_with('/') {
        return None;
    }
    let (name, sort) = match reasoning {
        Some(((first, _), given)) if is_end || given.is_empty() || given.contains('=') => {
            (first, MarkerKind::Reasoning)
        }
        Some(((first, _), _)) if is_element => (first, MarkerKind::Element),
        None if is_element => {
            let is_hidden = name == &DETAILS[1..] && given.contains("reasoning") && !is_end;
            let sort = if is_hidden { MarkerKind::Paired } else { MarkerKind::Element };
            // Models use both `my_plan` and `my-plan` for the same element.
            return Some((format!("<{}", name.replace(['_', '-'], "")), is_end, sort));
        }
        _ => return None,
    };
    Some((format!("{style}{name}"), is_end, sort))
}

/// The canonical name of reasoning for a name in any form, and whether the name marks an end, as `end_thinking` does.
fn reasoning_name(name: &str) -> Option<(&'static str, bool)> {
    const WORDS: [(&str, bool); 3] = [("begin", false), ("start", false), ("end", true)];
    let name = name.rsplit(':').next().unwrap_or(name);
    let letters: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let find = |name: &str| NAMES.iter().find(|(known, _)| *known == name).map(|known| known.1);
    let forms = [Some(letters.as_str()), letters.strip_prefix("ant")];
    forms.into_iter().flatten().find_map(|name| {
        let directed = || {
            WORDS.iter().find_map(|(word, is_end)| {
                let behind = name.strip_prefix(word);
                let behind = behind.map(|rest| rest.strip_prefix("of").unwrap_or(rest));
                let before = name.strip_suffix(word);
                let first = behind.and_then(find).or_else(|| before.and_then(find));
                first.map(|first| (first, *is_end))
            })
        };
        find(name).map(|first| (first, false)).or_else(directed)
    })
}
