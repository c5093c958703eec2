//! The markers of reasoning, and the tags of elements. What stands between them is never executed.
//!
//! Markers nest, and in a body they are text. An opening marker begins its line. A closing one counts at the
//! start and at the end of its line and before a tag; elsewhere only if its beginning stands before it. At
//! such a place it also counts if the opening marker was lost, unless others end so, too.

use std::ops::Range;

use super::lexer::{self, Decoration, Lead, is_zero_width, name};

/// The names of reasoning in `<>`, `[]` and `◁▷`, each with the first that it can be closed by.
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
/// What encloses text in XML as it is.
const VERBATIM: [&str; 2] = ["<![CDATA[", "]]>"];
/// A channel of reasoning in another template.
const THOUGHT: [&str; 2] = ["<|channel>", "<channel|>"];
const COMMENT: [&str; 2] = ["<!--", "-->"];
/// The tokens of a template that tells apart by channels; all but the last channel are reasoning.
const END: &str = "<|end|>";
const START: &str = "<|start|>";
const CHANNEL: &str = "<|channel|>";
const MESSAGE: &str = "<|message|>";
const LAST_CHANNEL: &str = "final";
/// An element in which pages hide reasoning, and other things.
const DETAILS: &str = "details";
/// The longest name and the longest tag, in bytes.
const NAME: usize = 64;
const LONGEST: usize = 300;

/// A marker of reasoning, or the tag of any other element.
pub(super) struct Marker {
    /// What its other half has as well.
    pub(super) key: String,
    pub(super) is_end: bool,
    /// Where it begins and ends.
    pub(super) at: usize,
    pub(super) end: usize,
    pub(super) sort: Sort,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Sort {
    /// Its end says that reasoning stands before it, even if the beginning was lost.
    Reasoning,
    /// Its end says so only with its beginning.
    Paired,
    /// An element of any other name.
    #[default]
    Element,
}

/// A line that markers are sought on.
pub(super) struct Line<'t> {
    pub(super) text: &'t str,
    pub(super) begin: usize,
    pub(super) end: usize,
    /// What decorates its beginning, or what follows the last end of reasoning on it, and where that begins.
    pub(super) lead: Option<Lead>,
    pub(super) from: usize,
    /// Where its first letter or digit is that is in no tag and no comment, and where the last ends.
    pub(super) prose: Range<usize>,
}

impl<'t> Line<'t> {
    pub(super) fn new(text: &'t str, begin: usize, end: usize) -> Self {
        let (lead, prose) = (lexer::lead(&text[begin..end]), end..begin);
        let mut line = Self { text, begin, end, lead, from: begin, prose };
        if line.marker(begin).is_some() {
            line.prose = line.prose();
        }
        line
    }

    fn prose(&self) -> Range<usize> {
        let (mut first, mut last, mut at) = (self.end, self.begin, self.begin);
        while at < self.end {
            let rest = &self.text[at..self.end];
            let marker = rest.starts_with(may_begin).then(|| self.marker_at(at)).flatten();
            if let Some(marker) = marker {
                let is_comment = marker.key == COMMENT[0] && !marker.is_end;
                let comment = is_comment.then(|| rest.find(COMMENT[1]).unwrap_or(rest.len()));
                at = comment.map_or(marker.end, |length| at + length).max(at + 1);
                continue;
            }
            let Some((c, mut length)) = sign(rest) else { break };
            if c == '<' {
                let inner = inner(self.text, at + length, '>', LONGEST);
                length = inner.map_or(length, |(_, end)| end - at);
            } else if c.is_alphanumeric() {
                first = first.min(at);
                last = at + length;
            }
            at += length;
        }
        first..last
    }

    /// The first marker from an offset on.
    pub(super) fn marker(&self, from: usize) -> Option<Marker> {
        let from = self.text.ceil_char_boundary(from);
        let signs = self.text.get(from..self.end)?.match_indices(may_begin);
        signs.map(|(n, _)| from + n).find_map(|at| self.marker_at(at))
    }

    fn marker_at(&self, at: usize) -> Option<Marker> {
        let is_first = self.from == self.begin && self.lead_of(at).is_some();
        marker(self.text, at, is_first)
    }

    /// The decoration before an offset, if nothing else stands before it.
    fn lead_of(&self, at: usize) -> Option<&Lead> {
        self.lead.as_ref().filter(|lead| self.from + lead.length == at)
    }

    /// Whether it may be of an operations message, in which markers are text.
    fn is_json(&self) -> bool {
        let shown = self.text[self.begin..self.end].trim();
        let begin = &shown[..shown.floor_char_boundary(NAME)];
        let begins = begin.starts_with('"') || begin.contains('{');
        begins && shown.ends_with(['{', '[', '}', ',', '"'])
    }

    /// Whether a marker is in quotation marks.
    fn is_quoted(&self, marker: &Marker) -> bool {
        // In a longer line it would have to be sought for each of them.
        const LONGEST: usize = 4096;
        let before = self.text[self.begin..marker.at].trim_end_matches('\\');
        let mark = before.chars().next_back().filter(|mark| "`\"'".contains(*mark));
        let after = self.after(marker).trim_start_matches('\\');
        mark.is_some_and(|mark| {
            let opens = || before.len() <= LONGEST && before.matches(mark).count() % 2 == 1;
            after.starts_with(mark) && opens()
        })
    }

    fn after(&self, marker: &Marker) -> &str {
        &self.text[marker.end.min(self.end)..self.end]
    }

    fn is_last(&self, marker: &Marker) -> bool {
        self.prose.end <= marker.end || self.is_decorated(marker)
    }

    fn is_decorated(&self, marker: &Marker) -> bool {
        self.after(marker).chars().all(decorates)
    }

    /// Whether no prose stands before a marker, or only a whole operations message.
    fn is_first(&self, marker: &Marker) -> bool {
        let before = &self.text[self.begin..marker.at];
        let ends_message = || before.trim_end().ends_with('}') && !self.is_json();
        self.lead_of(marker.at).is_some() || self.prose.start >= marker.at || ends_message()
    }

    /// Whether an opening marker is none but a word; else whether it is one if nothing closes it.
    pub(super) fn opens(&self, marker: &Marker) -> Option<bool> {
        let (is_quoted, is_last) = (self.is_quoted(marker), self.is_last(marker));
        let lead = self.lead_of(marker.at);
        let lacks = |but| lead.is_none_or(|lead| lead.decoration.exceeds(but));
        let is_plain = !is_quoted
            && (!lacks(Decoration::default()) || is_last && !lacks(Decoration::EMPHASIS));
        if marker.sort == Sort::Element {
            let is_alone = is_last || marker.is_details();
            let is_led = lead.is_some() && self.from == self.begin;
            let is_first = is_led || self.prose.start >= marker.at && !is_quoted;
            return (is_alone && is_first).then_some(false);
        }
        let is_unlike_words = [COMMENT[0], CHANNEL].contains(&&*marker.key);
        if marker.sort == Sort::Reasoning && is_last && !is_quoted {
            return Some(true);
        }
        let is_one = is_plain
            || is_last && lead.is_some()
            || is_unlike_words && !is_quoted && !self.is_json();
        is_one.then_some(is_plain)
    }

    /// How much a closing marker says, and where it ends with what decorates it.
    pub(super) fn closes(&self, marker: &Marker) -> Option<(Strength, usize)> {
        let after = self.after(marker);
        let is_last = self.is_last(marker);
        let is_decorated = self.is_decorated(marker);
        let end = if is_decorated { self.end.max(marker.end) } else { marker.end };
        let is_quoted = self.is_quoted(marker);
        let begin = &self.text[self.begin..marker.at];
        let is_before_a_tag = || !is_quoted && is_before_a_tag(after) && !self.is_json();
        if marker.key == COMMENT[0] {
            let begins = begin.len() < NAME && begin.trim().is_empty();
            let is_strong = begins || is_last || is_before_a_tag();
            let strength = if is_strong { Strength::Closes } else { Strength::Weak };
            return (!is_quoted).then_some((strength, end));
        }
        let is_led = self.is_first(marker);
        if marker.sort == Sort::Element {
            // Not that of another element, which begins on its line.
            let is_own = || !begin.to_ascii_lowercase().contains(&format!("<{}", &marker.key[1..]));
            let begins = is_led && (is_last || marker.is_details());
            let closes = begins || !is_quoted && is_last && is_own() || is_before_a_tag();
            return closes.then_some((Strength::Closes, end));
        }
        let is_token = || marker.key == CHANNEL && !self.is_json();
        let strength = match is_quoted {
            true => (is_last && is_led).then_some(Strength::Closes)?,
            false if is_led || is_last || is_token() || is_before_a_tag() => Strength::Alone,
            false => Strength::Weak,
        };
        let is_reasoning = marker.sort == Sort::Reasoning;
        let most = if is_reasoning { Strength::Alone } else { Strength::Closes };
        Some((strength.min(most), end))
    }
}

/// How much a closing marker says where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Strength {
    /// It may be a word.
    Weak,
    Closes,
    /// It counts even if nothing is open.
    Alone,
}

impl Marker {
    fn is_details(&self) -> bool {
        self.key.ends_with(DETAILS)
    }

    /// Whether what follows its end counts as on a line of its own.
    pub(super) fn ends_line(&self) -> bool {
        self.sort != Sort::Element || self.is_details()
    }

    /// Whether that is so of a plain tag even where it closes nothing.
    pub(super) fn is_of_its_own(&self) -> bool {
        self.sort == Sort::Reasoning
    }

    /// Where the next can begin: in a tag there may be another, but the tokens of a template are one marker.
    pub(super) fn next(&self) -> usize {
        if self.key == CHANNEL { self.end } else { self.at + 1 }
    }

    /// Whether it ends all reasoning of its sort, however often that was begun.
    pub(super) fn ends_all(&self) -> bool {
        self.key == CHANNEL && self.sort == Sort::Reasoning
    }
}

fn may_begin(c: char) -> bool {
    matches!(c, '<' | '[' | '&' | '-' | ']' | '◁' | '‹' | '〈' | '⟨' | '＜' | '［')
}

/// Whether a sign behind a marker on its line says nothing.
fn decorates(c: char) -> bool {
    c.is_whitespace() || is_zero_width(c) || "*_`~\\".contains(c)
}

/// Whether a tag, a message or another marker of reasoning follows on the line.
fn is_before_a_tag(after: &str) -> bool {
    let is_blank = |c: char| c.is_whitespace() || is_zero_width(c);
    let after = after[..after.floor_char_boundary(2 * NAME)].trim_start_matches(is_blank);
    let tag = after.trim_start_matches(|c| is_blank(c) || "*_`#>-\\".contains(c));
    let inner = tag.strip_prefix('[').map(|inner| inner.trim_start_matches(['/', '\\', ' ']));
    inner.is_some_and(|inner| inner.starts_with(|c: char| c.is_ascii_alphabetic()))
        || tag.strip_prefix('[').and_then(name).is_some()
        || tag.starts_with('{')
        || marker(after, 0, false).is_some_and(|marker| marker.sort == Sort::Reasoning)
}

/// The form of what closes reasoning, by the text of its opening marker.
pub(super) fn end_of(begin: &str) -> String {
    if begin.starts_with(COMMENT[0]) {
        return COMMENT[1].to_owned();
    }
    if begin.starts_with(CHANNEL) || begin.starts_with(START) {
        return format!("{CHANNEL}{LAST_CHANNEL}");
    }
    if begin.contains("begin") {
        return begin.replacen("begin", "end", 1);
    }
    let name: String = begin.chars().filter(char::is_ascii_alphanumeric).collect();
    match begin.chars().next() {
        Some('[') => format!("[/{name}]"),
        Some('◁') => format!("◁/{name}▷"),
        _ => format!("</{}>", name.strip_prefix("lt").unwrap_or(&name)),
    }
}

/// The marker at an offset.
fn marker(text: &str, at: usize, is_first: bool) -> Option<Marker> {
    let rest = &text[at..];
    let found = |key: &str, is_end, length, sort| {
        Some(Marker { key: key.to_owned(), is_end, at, end: at + length, sort })
    };
    for (sign, is_end) in VERBATIM.into_iter().zip([false, true]) {
        if rest.starts_with(sign) {
            return found(VERBATIM[0], is_end, sign.len(), Sort::Element);
        }
    }
    for (sign, is_end) in THOUGHT.into_iter().zip([false, true]) {
        if let Some(inner) = behind(rest, sign) {
            let word = if is_end { inner } else { inner.trim_start_matches(char::is_alphanumeric) };
            return found(THOUGHT[0], is_end, rest.len() - word.len(), Sort::Reasoning);
        }
    }
    for (sign, is_end) in COMMENT.into_iter().zip([false, true]) {
        if rest.starts_with(sign) {
            return found(COMMENT[0], is_end, sign.len(), Sort::Paired);
        }
    }
    rest.starts_with("<|").then(|| channel(rest, at)).flatten().or_else(|| tag(text, at, is_first))
}

/// The text behind a token of a template, in any case.
fn behind<'t>(text: &'t str, token: &str) -> Option<&'t str> {
    let (begin, rest) = text.split_at_checked(token.len())?;
    begin.eq_ignore_ascii_case(token).then_some(rest)
}

/// The beginning of a message in a channel, with all of its tokens, or the end of one.
fn channel(text: &str, at: usize) -> Option<Marker> {
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let marker = |rest: &str, is_end, sort| {
        let end = at + text.len() - rest.len();
        Some(Marker { key: CHANNEL.to_owned(), is_end, at, end, sort })
    };
    let ended = behind(text, END);
    let started = ended.map_or(text, str::trim_start);
    let role = behind(started, START);
    let named = role.map_or(started, |role| role.trim_start_matches(is_of_word));
    let channel = behind(named, CHANNEL).map(str::trim_start);
    if channel.is_none() && role.is_none() && ended.is_none() {
        return None;
    }
    let is_last = channel.and_then(|channel| behind(channel, LAST_CHANNEL));
    let is_last = is_last.filter(|rest| !rest.starts_with(is_of_word));
    match (is_last, ended) {
        (Some(rest), _) => marker(behind(rest, MESSAGE).unwrap_or(rest), true, Sort::Reasoning),
        (None, Some(rest)) => marker(rest, true, Sort::Paired),
        (None, None) => {
            let rest = channel.map_or(named, |channel| channel.trim_start_matches(is_of_word));
            marker(behind(rest, MESSAGE).unwrap_or(rest), false, Sort::Paired)
        }
    }
}

/// The first sign of a text as it is meant, with its length as it is written: an entity is what it stands for,
/// and signs that are as wide as an ideograph are the usual ones.
fn sign(text: &str) -> Option<(char, usize)> {
    const ENTITY: usize = 10;
    let c = text.chars().next()?;
    let entity = (c == '&').then(|| &text[1..text.floor_char_boundary(ENTITY)]);
    if let Some((name, _)) = entity.and_then(|entity| entity.split_once(';')) {
        let number = name.strip_prefix('#').and_then(|number| {
            let hex = number.strip_prefix(['x', 'X']);
            hex.map_or_else(|| number.parse().ok(), |hex| u32::from_str_radix(hex, 16).ok())
        });
        let named = ENTITIES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        let meant = number.and_then(char::from_u32).or(named.map(|(_, c)| *c));
        if let Some(meant) = meant {
            return Some((meant, name.len() + 2));
        }
    }
    let meant = match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        '‹' | '〈' | '⟨' => '<',
        '›' | '〉' | '⟩' => '>',
        '\u{a0}' => ' ',
        c => c,
    };
    Some((meant, c.len_utf8()))
}

/// Whether a name begins with the next sign of a tag, or has begun, or may still begin.
fn is_named_so_far(named: &mut bool, c: char) -> bool {
    *named |= c.is_alphabetic() || c == '_';
    *named || c.is_whitespace() || is_zero_width(c) || "/\\|".contains(c)
}

/// What stands in a tag up to its closing sign, as it is meant, and where the tag ends. In quotation marks
/// that sign is none, unless they never end.
fn inner(text: &str, at: usize, closing: char, longest: usize) -> Option<(String, usize)> {
    let (mut inner, mut end, mut quote, mut first) = (String::new(), at, None, None);
    let mut named = false;
    loop {
        let next = sign(&text[end..]).filter(|(c, _)| *c != '\n' && inner.len() < longest);
        let Some((c, length)) = next else { break };
        end += length;
        // What has no name is none, and most signs in a line are of no tag.
        let is_named = is_named_so_far(&mut named, c);
        if !is_named || longest == LONGEST && quote.is_none() && c == '<' {
            return None;
        }
        if c == closing {
            if quote.is_none() {
                return Some((inner, end));
            }
            first = first.or(Some((inner.len(), end)));
        } else if quote == Some(c) {
            quote = None;
        } else if quote.is_none() && "\"'".contains(c) && inner.ends_with('=') {
            quote = Some(c);
        }
        if !is_zero_width(c) {
            inner.push(c);
        }
    }
    let (length, end) = first?;
    inner.truncate(length);
    Some((inner, end))
}

/// The first of the names of reasoning that a name is another form of, and whether a word in it says that
/// it begins or ends.
fn known(name: &str) -> Option<(&'static str, bool)> {
    const WORDS: [(&str, bool); 3] = [("begin", false), ("start", false), ("end", true)];
    let name = name.rsplit(':').next().unwrap_or(name);
    let letters: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let letters = letters.to_ascii_lowercase();
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

/// The tag of an element at an offset, or a marker that is written like one. One that is the first of its
/// line may be of any length.
fn tag(text: &str, at: usize, is_first: bool) -> Option<Marker> {
    let (style, length) = sign(&text[at..])?;
    let closing = match style {
        '<' => '>',
        '[' => ']',
        '◁' => '▷',
        _ => return None,
    };
    let is_element = style == '<';
    let longest = if is_first && is_element { usize::MAX } else { LONGEST };
    let (inner, end) = inner(text, at + length, closing, longest)?;
    let is_blank = |c: char| c.is_whitespace() || matches!(c, '\\' | '|');
    let word = inner.trim_matches(is_blank);
    let (is_slash, word) = match word.strip_prefix('/') {
        Some(word) => (true, word.trim_start_matches(is_blank)),
        None => (false, word),
    };
    if !word.starts_with(|c: char| c.is_alphabetic() || c == '_') {
        return None;
    }
    let is_of_name = |c: char| !c.is_whitespace() && c != '/';
    let length = word.find(|c| !is_of_name(c)).unwrap_or(word.len());
    let (name, given) = (&word[..length], word[length..].trim_matches(is_blank));
    let whole = || (!given.contains('=')).then(|| known(word)).flatten();
    let found =
        known(name).map(|found| (found, given)).or_else(|| whole().map(|found| (found, "")));
    let is_end = is_slash || found.is_some_and(|((_, is_end), _)| is_end);
    // `[a](b)` is a link, and `<a/>` encloses nothing.
    let is_link = !is_element && text[end..].starts_with('(');
    if is_link || !is_end && given.ends_with('/') {
        return None;
    }
    let is_details = is_element && name.eq_ignore_ascii_case(DETAILS);
    let is_hidden = is_details && given.contains("reasoning");
    let (name, sort) = match found {
        Some(((first, _), given)) if is_end || given.is_empty() || given.contains('=') => {
            (first.to_owned(), Sort::Reasoning)
        }
        Some(((first, _), _)) if is_element => (first.to_owned(), Sort::Element),
        None if is_element => {
            let name = name.trim_end_matches(is_blank).to_lowercase();
            (name, if is_hidden && !is_end { Sort::Paired } else { Sort::Element })
        }
        _ => return None,
    };
    Some(Marker { key: format!("{style}{name}"), is_end, at, end, sort })
}
