//! The markers of reasoning, and the tags of elements. What is between them is never executed.
//!
//! Chats escape markers, write them as entities, or put other signs for `<`. So a line is read in a canonical
//! form, in which one pattern finds them all. An opening marker begins its line. A closing one counts at the start
//! and at the end of its line and before a tag, even if its beginning was lost; elsewhere only if that is known.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::LazyLock;

use memchr::{memchr, memchr3, memchr3_iter, memrchr};
use regex::Regex;

use super::lexer::{self, Decoration, is_zero_width};
use super::pairs;

/// The names of reasoning, each with the first that it can be closed by.
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
/// The entities of signs that markers are made of.
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
/// What encloses text in XML as it is.
const VERBATIM: &str = "<![cdata[";
/// A channel of reasoning in one template.
const THOUGHT: &str = "<|channel>";
/// The tokens of a template that tells apart by channels: all but the last channel are reasoning.
const CHANNEL: &str = "<|channel|>";
/// An element in which pages hide reasoning, and other things.
const DETAILS: &str = "<details";
/// What opens a pair of SEARCH and REPLACE.
pub(super) const PAIR: &str = "<<<<<<< SEARCH";

/// What may be a marker in the canonical form of a line.
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
    /// What its other half has as well.
    pub(super) key: String,
    pub(super) is_end: bool,
    /// Where it begins and ends, in bytes of the text.
    pub(super) at: usize,
    pub(super) end: usize,
    pub(super) sort: Sort,
    /// Whether no element of its key begins before it on its line.
    is_own: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    /// Its end says that reasoning is before it, even if the beginning was lost.
    Reasoning,
    /// Its end says so only with its beginning.
    Paired,
    /// An element of any other name.
    Element,
}

/// How much a closing marker says where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strength {
    /// It closes what is open.
    Closes,
    /// It counts even if nothing is open.
    Alone,
}

/// A line with its markers.
pub(super) struct Line<'t> {
    text: &'t str,
    pub(super) begin: usize,
    end: usize,
    /// What decorates the line, and where that ends.
    lead: Option<(usize, Decoration)>,
    pub(super) markers: Vec<Marker>,
    /// Whether it may be of an operations message, in which markers are text.
    is_json: bool,
    /// Where its first letter or digit is that is in no tag and no comment, and where the last one ends.
    first_word: usize,
    last_word: usize,
}

impl<'t> Line<'t> {
    /// A line, if it has markers.
    pub(super) fn new(text: &'t str, line: Range<usize>) -> Option<Self> {
        let Range { start: begin, end } = line;
        let raw = &text[begin..end];
        if let Some(marker) = section(raw, begin) {
            let markers = vec![marker];
            return Some(Self {
                text,
                begin,
                end,
                lead: None,
                markers,
                is_json: false,
                first_word: end,
                last_word: begin,
            });
        }
        if !may_have_marker(raw) {
            return None;
        }
        let (canonical, offsets) = canonical(raw);
        let mut markers = Vec::new();
        let (mut first_word, mut last_word, mut word_from) = (end, begin, 0);
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
                // No part of the line is looked through for that twice.
                if comment_end < all.end {
                    let length = canonical[all.end..].find("-->");
                    comment_end = length.map_or(canonical.len(), |length| all.end + length);
                }
                word_from = comment_end;
            }
            let is_own = !opened.contains(&key);
            if !is_end {
                opened.insert(key.clone());
            }
            let (at, end) = (offsets.begin(all.start), offsets.end(all.end));
            markers.push(Marker { key, is_end, is_own, at: begin + at, end: begin + end, sort });
        }
        words(word_from, canonical.len());
        (!markers.is_empty()).then_some(Self {
            text,
            begin,
            end,
            lead: lexer::lead(raw).map(|lead| (begin + lead.length, lead.decoration)),
            markers,
            is_json: is_json(raw),
            first_word,
            last_word,
        })
    }

    /// Reads the line from an offset on as one of its own.
    pub(super) fn read_from(&mut self, from: usize) {
        let lead = || lexer::lead(self.text.get(from..self.end)?);
        self.lead = lead().map(|lead| (from + lead.length, lead.decoration));
    }

    /// What decorates a marker that begins the line.
    fn lead_of(&self, marker: &Marker) -> Option<Decoration> {
        self.lead.filter(|(end, _)| *end == marker.at).map(|(_, decoration)| decoration)
    }

    /// Whether a marker is in quotation marks.
    fn is_quoted(&self, marker: &Marker) -> bool {
        // In a longer line they would have to be counted for each marker.
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

    /// Whether an opening marker counts, and then whether it does so even if nothing closes it.
    pub(super) fn opens(&self, marker: &Marker) -> Option<bool> {
        if marker.is_section() {
            return Some(false);
        }
        let (is_quoted, is_last) = (self.is_quoted(marker), self.is_last(marker));
        let lead = self.lead_of(marker);
        if marker.sort == Sort::Element {
            let is_first = lead.is_some() || self.first_word >= marker.at && !is_quoted;
            return (is_first && (is_last || marker.key == DETAILS)).then_some(false);
        }
        if marker.sort == Sort::Reasoning && is_last && !is_quoted {
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

    /// How much a closing marker says, if it may be one.
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
        if marker.sort == Sort::Element {
            let is_one = is_first && (is_last || marker.key == DETAILS)
                || is_last && marker.is_own
                || is_before_a_tag();
            return is_one.then_some(Strength::Closes);
        }
        let is_token = || marker.key == CHANNEL && !self.is_json;
        let is_strong = is_first || is_last || is_token() || is_before_a_tag();
        let is_reasoning = marker.sort == Sort::Reasoning;
        Some(if is_strong && is_reasoning { Strength::Alone } else { Strength::Closes })
    }

    /// Where a closing marker ends with what decorates it.
    pub(super) fn end_of(&self, marker: &Marker) -> usize {
        if self.after(marker).chars().all(decorates) { self.end } else { marker.end }
    }
}

impl Marker {
    fn is_section(&self) -> bool {
        self.key.starts_with("--- ") || self.key == PAIR
    }

    /// Whether what follows its end counts as on a line of its own.
    pub(super) fn ends_line(&self) -> bool {
        self.sort != Sort::Element || self.key == DETAILS
    }

    /// Whether it ends all reasoning of its sort, however often that was begun.
    pub(super) fn ends_all(&self) -> bool {
        self.key == CHANNEL && self.sort == Sort::Reasoning
    }
}

fn is_json(line: &str) -> bool {
    let shown = line.trim();
    let begin = &shown[..shown.floor_char_boundary(64)];
    let begins = begin.starts_with('"') || begin.contains('{');
    begins && shown.ends_with(['{', '[', '}', ',', '"'])
}

/// Whether a line may have a marker: most have none.
fn may_have_marker(raw: &str) -> bool {
    let bytes = raw.as_bytes();
    memchr3(b'<', b'[', b'&', bytes).is_some()
        || memchr(b'>', bytes).is_some()
        || wide_signs(bytes).next().is_some()
}

/// Where signs are that stand for `<` or `[`, or begin a marker as they are.
fn wide_signs(bytes: &[u8]) -> impl Iterator<Item = usize> {
    const SIGNS: [&str; 6] = ["◁", "‹", "〈", "⟨", "＜", "［"];
    let is_sign = |at: &usize| SIGNS.iter().any(|sign| bytes[*at..].starts_with(sign.as_bytes()));
    memchr3_iter(0xe2, 0xe3, 0xef, bytes).filter(is_sign)
}

/// Whether what follows a sign that begins a marker may be a name of reasoning.
fn may_be_reasoning(sign: u8, rest: &[u8]) -> bool {
    const BEGINS: [&[u8; 3]; 11] =
        [b"thi", b"tho", b"rea", b"ref", b"ana", b"ant", b"scr", b"beg", b"sta", b"end", b"cha"];
    if sign == b'&' {
        return matches!(rest.first(), Some(b'#' | b'l' | b'L'));
    }
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'/' | b'\\' | b'|');
    let rest = &rest[rest.iter().take(8).take_while(|byte| is_blank(byte)).count()..];
    let name = rest.iter().take(20).take_while(|byte| byte.is_ascii_alphanumeric()).count();
    let next = rest.get(name).copied().unwrap_or_default();
    let begin = &rest[..name.min(3)];
    !next.is_ascii()
        || next == b':'
        || BEGINS.iter().any(|known| begin.eq_ignore_ascii_case(&known[..]))
}

/// Where reasoning ends in a body that does not begin in it, by a marker of any key but one.
pub(super) fn stray_end(text: &str, body: Range<usize>, but: &str) -> Option<Range<usize>> {
    let bytes = &text.as_bytes()[body.clone()];
    let signs = memchr3_iter(b'<', b'[', b'&', bytes)
        .filter(|at| may_be_reasoning(bytes[*at], &bytes[at + 1..]));
    let mut open: HashMap<String, usize> = HashMap::new();
    let mut lines: Vec<usize> = signs.collect();
    lines.extend(wide_signs(bytes));
    lines.sort_unstable();
    let mut seen = 0;
    for sign in lines {
        if sign < seen {
            continue;
        }
        let begin = memrchr(b'\n', &bytes[seen..sign]).map_or(seen, |n| seen + n + 1);
        let end = memchr(b'\n', &bytes[sign..]).map_or(bytes.len(), |n| sign + n);
        seen = end;
        let (begin, end) = (body.start + begin, body.start + end);
        let Some(line) = Line::new(text, begin..end) else { continue };
        for marker in
            line.markers.iter().filter(|marker| marker.sort == Sort::Reasoning || !marker.is_end)
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
                None if strength == Strength::Alone && marker.key != but => {
                    return Some(marker.at..marker.end);
                }
                None => {}
            }
        }
    }
    None
}

/// Whether a sign behind a marker on its line says nothing.
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
        found.is_some_and(|(_, _, sort)| sort == Sort::Reasoning)
    };
    inner.is_some_and(|inner| inner.starts_with(|c: char| c.is_ascii_alphabetic()))
        || tag.strip_prefix('[').and_then(lexer::name).is_some()
        || tag.starts_with('{')
        || is_marker()
}

/// The form of what closes a span, by the text of its opening marker and its key.
pub(super) fn form_of_end(begin: &str, key: &str) -> String {
    let (style, name) = key.split_at(key.chars().next().map_or(0, char::len_utf8));
    match style {
        _ if key == COMMENT => "-->".to_owned(),
        _ if key == CHANNEL => format!("{CHANNEL}final"),
        _ if key == PAIR => ">>>>>>> REPLACE".to_owned(),
        _ if begin.contains("begin") => begin.replacen("begin", "end", 1),
        "-" => key.replacen("--- ", "--- end ", 1),
        "[" => format!("[/{name}]"),
        "◁" => format!("◁/{name}▷"),
        _ => format!("</{name}>"),
    }
}

/// A line of an outbox around a file that is shown, or around a pair of SEARCH and REPLACE.
fn section(raw: &str, begin: usize) -> Option<Marker> {
    let line = raw.trim_end();
    let end = begin + line.len();
    let found = |key: String, is_end| {
        // What is said of the line itself is not in the span.
        Some(Marker { key, is_end, is_own: true, at: end, end, sort: Sort::Element })
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

/// Behind each sign whose length changed: the offset in the canonical form, the one in the line, and whether the sign
/// was left out.
#[derive(Default)]
struct Offsets(Vec<(usize, usize, bool)>);

impl Offsets {
    /// Where what begins at an offset of the canonical form begins in the line.
    fn begin(&self, at: usize) -> usize {
        self.before(at, |(canonical, ..)| *canonical <= at)
    }

    /// Where what ends at an offset of the canonical form ends in the line.
    fn end(&self, at: usize) -> usize {
        self.before(at, |(canonical, _, is_gap)| *canonical < at || *canonical == at && !is_gap)
    }

    fn before(&self, at: usize, is_before: impl Fn(&(usize, usize, bool)) -> bool) -> usize {
        let last = self.0[..self.0.partition_point(is_before)].last();
        last.map_or(at, |(canonical, line, _)| line + at - canonical)
    }
}

/// A line as its signs are meant, in small letters, and where its parts are in the line: an entity is what
/// it stands for, signs that are as wide as an ideograph are the usual ones, and what is invisible is left out.
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

/// The key of a marker in its canonical form, whether it ends, and its sort.
fn marker(found: &str, after: &str) -> Option<(String, bool, Sort)> {
    const FIXED: [(&str, &str, bool, Sort); 6] = [
        ("<![cdata[", VERBATIM, false, Sort::Element),
        ("]]>", VERBATIM, true, Sort::Element),
        ("<!--", COMMENT, false, Sort::Paired),
        ("-->", COMMENT, true, Sort::Paired),
        ("<|channel>", THOUGHT, false, Sort::Reasoning),
        ("<channel|>", THOUGHT, true, Sort::Reasoning),
    ];
    if ["<|end|>", "<|start|>", CHANNEL].iter().any(|token| found.starts_with(token)) {
        let (_, channel) = found.rsplit_once(CHANNEL).unwrap_or_default();
        let name = channel.split('<').next().unwrap_or_default().trim();
        let is_last = name == "final";
        let is_end = is_last || found.starts_with("<|end|>");
        let sort = if is_last { Sort::Reasoning } else { Sort::Paired };
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
    let whole = || (!given.contains('=')).then(|| known(word)).flatten().map(|found| (found, ""));
    let reasoning = known(name).map(|found| (found, given)).or_else(whole);
    let is_end = is_slash || reasoning.is_some_and(|((_, is_end), _)| is_end);
    let is_element = style == '<';
    // `[a](b)` is a link, and `<a/>` encloses nothing.
    let is_link = !is_element && after.starts_with('(');
    if is_link || !is_end && given.ends_with('/') {
        return None;
    }
    let (name, sort) = match reasoning {
        Some(((first, _), given)) if is_end || given.is_empty() || given.contains('=') => {
            (first, Sort::Reasoning)
        }
        Some(((first, _), _)) if is_element => (first, Sort::Element),
        None if is_element => {
            let is_hidden = name == &DETAILS[1..] && given.contains("reasoning") && !is_end;
            let sort = if is_hidden { Sort::Paired } else { Sort::Element };
            // As models write names: `my_plan` and `my-plan` are one.
            return Some((format!("<{}", name.replace(['_', '-'], "")), is_end, sort));
        }
        _ => return None,
    };
    Some((format!("{style}{name}"), is_end, sort))
}

/// The first of the names of reasoning that a name is another form of, and whether a word in it says that
/// it ends.
fn known(name: &str) -> Option<(&'static str, bool)> {
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
