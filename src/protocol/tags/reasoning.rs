//! Reasoning, which is never carried out: what stands between its markers, and in elements whose tags are
//! alone on their lines (`<plan>` up to `</plan>`).
//!
//! Markers nest, and in a body they are text. An opening marker begins its line. A closing one counts at
//! the start and at the end of its line and before a tag; elsewhere only if nothing else closes the
//! reasoning. Where the opening marker was lost, a closing one ends reasoning all the same, unless others
//! end so, too.

use std::collections::HashMap;
use std::ops::Range;

use memchr::{memchr2_iter, memchr3_iter, memrchr, memrchr2};

use super::attributes;
use super::lead::lead;
use super::line::line_end;
use super::marks::{ALL, Mark, PLAIN, What};
use super::names::name;
use super::repairs::{Repairs, is_zero_width};
use super::words::{Words, is_word};

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
/// What tags begin and end with, as chats write them.
const OPENS: [&str; 5] = ["<", "&lt;", "‹", "[", "◁"];
const CLOSES: [&str; 5] = [">", "&gt;", "›", "]", "▷"];
const COMMENT: [&str; 2] = ["<!--", "-->"];
/// The tokens of a template that tells apart by channels; all but the last channel are reasoning.
const END: &str = "<|end|>";
const START: &str = "<|start|>";
const CHANNEL: &str = "<|channel|>";
const MESSAGE: &str = "<|message|>";
const LAST_CHANNEL: &str = "final";
/// Ends that a tag counts behind only where they close something.
pub(super) const SHARED_ENDS: [&str; 2] = [COMMENT[1], END];
/// An element in which pages hide reasoning, and other things.
const DETAILS: &str = "details";
/// The longest name and the longest tag, in bytes.
const NAME: usize = 64;
const LONGEST: usize = 300;

/// A marker of reasoning, or the tag of any other element.
struct Marker {
    /// What its other half has as well.
    key: String,
    is_end: bool,
    /// Where it ends.
    end: usize,
    sort: Sort,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    /// Its end says that reasoning stands before it, even if the beginning was lost.
    Reasoning,
    /// Its end says so only with its beginning.
    Paired,
    /// An element of any other name.
    Element,
}

/// How much a closing marker says where it stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Strength {
    /// It may be a word.
    Weak,
    Closes,
    /// It counts even if nothing is open.
    Alone,
}

/// An opening marker that nothing has closed.
struct Opened {
    at: usize,
    length: u16,
    is_element: bool,
    /// Whether it is a word if nothing closes it.
    needs_end: bool,
}

impl Opened {
    fn mark(&self, text: &str, until: usize) -> Mark {
        let what = if self.is_element { What::Element } else { What::Reasoning };
        let line = lead(text, self.at).map_or(self.at, |lead| lead.line);
        Mark::of(what, line, self.at, self.at + usize::from(self.length)).until(until)
    }
}

/// The opening markers of each key that nothing has closed, and where those are that not even a weak end
/// has closed.
type Open = HashMap<String, (Vec<Opened>, Vec<usize>)>;

/// The marks of reasoning and of elements up to `limit`; `marks` are those of commands.
pub(super) fn find(text: &str, limit: usize, marks: &[Mark]) -> Vec<Mark> {
    let bytes = &text.as_bytes()[..limit];
    let bodies = bodies(text, marks);
    let mut bodies = bodies.iter().peekable();
    let (mut outside, mut inside) = (Open::new(), Open::new());
    // Where markers are closed that nothing better closes.
    let mut otherwise: HashMap<usize, usize> = HashMap::new();
    let mut found = Vec::new();
    let (mut line, mut seen, mut last_sign) = (0..0, 0, 0);
    // Tokens of a template up to there are one marker.
    let mut tokens = 0;
    let mut candidates = memchr3_iter(b'<', b'[', b'&', bytes).peekable();
    let mut others = memchr2_iter(0xe2, b'-', bytes).peekable();
    loop {
        let at = match (candidates.peek(), others.peek()) {
            (Some(at), Some(other)) if at < other => candidates.next(),
            (_, Some(_)) => others.next(),
            _ => candidates.next(),
        };
        let Some(at) = at else { break };
        let Some(marker) = marker(text, at).filter(|_| at >= tokens) else { continue };
        if marker.key == CHANNEL {
            tokens = marker.end;
        }
        while bodies.next_if(|body| body.end <= at).is_some() {
            keep(text, &mut found, std::mem::take(&mut inside), &otherwise);
        }
        let is_inside = bodies.peek().is_some_and(|body| body.contains(&at));
        let scope = if is_inside { &mut inside } else { &mut outside };
        if at >= line.end {
            line = memrchr(b'\n', &bytes[..at]).map_or(0, |n| n + 1)..line_end(text, at) + 1;
        }
        if !marker.is_end {
            if let Some(opened) = begins(text, at, &marker, &line) {
                let (strong, all) = scope.entry(marker.key).or_default();
                if !opened.is_element {
                    all.push(at);
                }
                strong.push(opened);
            }
            continue;
        }
        let Some((strength, end)) = closes(text, at, &marker, &line) else { continue };
        last_sign = memrchr2(b'[', b'{', &bytes[seen..at]).map_or(last_sign, |n| seen + n);
        seen = at;
        let is_last_channel = marker.key == CHANNEL && marker.sort == Sort::Reasoning;
        let (mut closed, mut is_open) = (0, false);
        if let Some((strong, all)) = scope.get_mut(&marker.key) {
            let count = if is_last_channel { usize::MAX } else { 1 };
            for at in all.drain(all.len().saturating_sub(count)..) {
                otherwise.insert(at, end);
            }
            if strength > Strength::Weak {
                for opened in strong.drain(strong.len().saturating_sub(count)..) {
                    closed += 1;
                    // An element without a bracket asks for nothing.
                    if !opened.is_element || last_sign > opened.at {
                        found.push(opened.mark(text, end));
                    }
                }
            }
            is_open = closed > 0;
        }
        // Whether that is a body, or an element around half of a block, is a guess.
        if is_inside
            && !is_open
            && marker.sort == Sort::Element
            && let Some(opened) = outside.get(&marker.key).and_then(|(strong, _)| strong.last())
        {
            otherwise.insert(opened.at, end);
        }
        if strength == Strength::Alone {
            let mark = Mark::of(What::ReasoningEnd, at, at, end);
            found.push(mark.until(usize::from(is_open)));
        }
    }
    keep(text, &mut found, inside, &otherwise);
    keep(text, &mut found, outside, &otherwise);
    found
}

/// Takes what no strong end has closed.
fn keep(text: &str, found: &mut Vec<Mark>, open: Open, otherwise: &HashMap<usize, usize>) {
    for opened in open.into_values().flat_map(|(strong, _)| strong) {
        let until = otherwise.get(&opened.at).copied().unwrap_or_default();
        if until > 0 || !opened.needs_end {
            found.push(opened.mark(text, until));
        }
    }
}

/// Where the bodies of blocks are whose ends are beyond doubt, as far as markers go.
fn bodies(text: &str, marks: &[Mark]) -> Vec<Range<usize>> {
    let words = Words::of(text, marks);
    let mut bodies: Vec<Range<usize>> = Vec::new();
    for mark in marks.iter().filter(|mark| mark.what == What::Opening) {
        let Some(closing) = mark.command().closing else { continue };
        let begin = line_end(text, mark.at);
        let rest = &text[mark.name_end..begin.max(mark.name_end)];
        if bodies.last().is_some_and(|body| mark.at < body.end) || rest.contains(closing) {
            continue;
        }
        let class = if mark.is_plain() { PLAIN } else { ALL };
        let end = match attributes::token(rest).filter(|word| is_word(word)) {
            Some(word) => words.end(mark.which(), &word, class, begin),
            None => {
                let next = marks.get(mark.next[class] as usize);
                next.filter(|next| next.what == What::Closing).map(|next| next.line)
            }
        };
        bodies.extend(end.map(|end| begin..end));
    }
    bodies
}

/// The opening marker at an offset, if it is no word.
fn begins(text: &str, at: usize, marker: &Marker, line: &Range<usize>) -> Option<Opened> {
    let after = &text[marker.end..];
    let (is_quoted, is_last) = (is_quoted(&text[..at], after), is_last(after));
    let is_unlike_words = [COMMENT[0], CHANNEL].contains(&&*marker.key);
    let lead = lead(text, at);
    let lacks = |but| lead.as_ref().is_none_or(|lead| lead.repairs.decorates_beyond(but));
    let is_plain =
        !is_quoted && (!lacks(Repairs::default()) || is_last && !lacks(Repairs::EMPHASIS));
    let is_one = match marker.sort {
        Sort::Element => {
            let is_alone = is_last || marker.key.ends_with(DETAILS);
            is_alone && lead.is_some_and(|lead| is_line(text, lead.line))
        }
        _ => {
            is_plain
                || is_last && lead.is_some()
                || is_unlike_words && !is_quoted && !is_json(text, line)
        }
    };
    let is_element = marker.sort == Sort::Element;
    let length = u16::try_from(marker.end - at).ok().filter(|_| is_one)?;
    Some(Opened { at, length, is_element, needs_end: is_element || !is_plain })
}

/// How much the closing marker at an offset says, and where it ends with what decorates it.
fn closes(
    text: &str,
    at: usize,
    marker: &Marker,
    line: &Range<usize>,
) -> Option<(Strength, usize)> {
    let after = &text[marker.end..];
    let behind = after.find(|c: char| c == '\n' || !decorates(c)).unwrap_or(after.len());
    let is_last = is_last(after);
    let end = if is_last { marker.end + behind } else { marker.end };
    let is_quoted = is_quoted(&text[..at], after);
    let begin = &text[line.start..at];
    let is_before_a_tag = || !is_quoted && is_before_a_tag(after) && !is_json(text, line);
    if marker.key == COMMENT[0] {
        let begins = begin.len() < NAME && begin.trim().is_empty();
        let is_strong = begins || is_last || is_before_a_tag();
        let strength = if is_strong { Strength::Closes } else { Strength::Weak };
        return (!is_quoted).then_some((strength, end));
    }
    let lead = lead(text, at);
    let is_alone = is_last && lead.is_some();
    if marker.sort == Sort::Element {
        // Not that of another element, which begins on its line.
        let is_own = || !begin.to_ascii_lowercase().contains(&format!("<{}", &marker.key[1..]));
        let begins = lead.is_some() && (is_last || marker.key.ends_with(DETAILS));
        let closes = begins || !is_quoted && is_last && is_own() || is_before_a_tag();
        return closes.then_some((Strength::Closes, end));
    }
    let is_token = || marker.key == CHANNEL && !is_json(text, line);
    let strength = match is_quoted {
        true => is_alone.then_some(Strength::Closes)?,
        false if lead.is_some() || is_last || is_token() || is_before_a_tag() => Strength::Alone,
        false => Strength::Weak,
    };
    let most = if marker.sort == Sort::Reasoning { Strength::Alone } else { Strength::Closes };
    Some((strength.min(most), end))
}

/// Whether a marker between these texts is in quotation marks.
fn is_quoted(before: &str, after: &str) -> bool {
    let mark = before.trim_end_matches('\\').chars().next_back();
    let mark = mark.filter(|mark| "`\"'".contains(*mark));
    mark.is_some_and(|mark| after.trim_start_matches('\\').starts_with(mark))
}

fn is_line(text: &str, at: usize) -> bool {
    at == 0 || text.as_bytes()[at - 1] == b'\n'
}

/// Whether a line may be of a message, in which markers are text.
fn is_json(text: &str, line: &Range<usize>) -> bool {
    let shown = text[line.start..line.end.min(text.len())].trim();
    let begin = &shown[..shown.floor_char_boundary(NAME)];
    let begins = begin.starts_with('"') || begin.contains('{');
    begins && shown.ends_with(['{', '[', '}', ',', '"'])
}

/// Whether a sign behind a marker on its line says nothing.
fn decorates(c: char) -> bool {
    c.is_whitespace() || is_zero_width(c) || "*_`~\\".contains(c)
}

fn is_last(after: &str) -> bool {
    let after = after.trim_start_matches(|c: char| c != '\n' && decorates(c));
    after.is_empty() || after.starts_with('\n')
}

/// Whether a tag, a message or another marker of reasoning follows on the line.
fn is_before_a_tag(after: &str) -> bool {
    let is_blank = |c: char| c != '\n' && (c.is_whitespace() || is_zero_width(c));
    let after = after[..after.floor_char_boundary(2 * NAME)].trim_start_matches(is_blank);
    let tag = after.trim_start_matches(|c| is_blank(c) || "*_`#>-\\".contains(c));
    tag.strip_prefix('[').and_then(name).is_some()
        || tag.starts_with('{')
        || marker(after, 0).is_some_and(|marker| marker.sort == Sort::Reasoning)
}

/// Whether a text ends with a marker that closes reasoning: a tag behind it is as good as on a line of its
/// own.
pub(super) fn ends_with_one(text: &str) -> bool {
    let from = text.floor_char_boundary(text.len().saturating_sub(NAME + 16));
    let signs = text[from..].rmatch_indices(['<', '&', '‹', '[', '◁']).map(|(at, _)| from + at);
    signs.take(4).any(|at| {
        marker(text, at).is_some_and(|marker| {
            let is_one = marker.sort != Sort::Element || marker.key.ends_with(DETAILS);
            marker.is_end && marker.end == text.len() && is_one
        })
    })
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
    let inner = OPENS.iter().find_map(|open| begin.strip_prefix(open)).unwrap_or(begin);
    let inner = inner.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
    let name = inner.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or(inner);
    match begin.chars().next() {
        Some('[') => format!("[/{name}]"),
        Some('◁') => format!("◁/{name}▷"),
        _ => format!("</{name}>"),
    }
}

/// The marker at an offset.
fn marker(text: &str, at: usize) -> Option<Marker> {
    let rest = &text[at..];
    for (sign, is_end) in COMMENT.into_iter().zip([false, true]) {
        if rest.starts_with(sign) {
            let key = COMMENT[0].to_owned();
            return Some(Marker { key, is_end, end: at + sign.len(), sort: Sort::Paired });
        }
    }
    rest.starts_with("<|").then(|| channel(rest, at)).flatten().or_else(|| tag(text, at))
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
        Some(Marker { key: CHANNEL.to_owned(), is_end, end, sort })
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

/// The tag of an element at an offset, or a marker that is written like one.
fn tag(text: &str, at: usize) -> Option<Marker> {
    let rest = &text[at..];
    let which = OPENS.iter().position(|open| rest.starts_with(open))?;
    let inner = &rest[OPENS[which].len()..];
    let is_blank = |c: char| matches!(c, ' ' | '\t' | '\\' | '|' | '｜') || is_zero_width(c);
    let word = inner.trim_start_matches(is_blank);
    let (is_slash, word) = match word.strip_prefix('/') {
        Some(word) => (true, word.trim_start_matches(is_blank)),
        None => (false, word),
    };
    // Blanks without an end are of no tag.
    if inner.len() - word.len() > NAME || !word.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return None;
    }
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "_-:.\\▁".contains(c);
    let length = word.find(|c| !is_of_name(c)).filter(|length| *length <= NAME)?;
    let letters = word[..length].chars().filter(char::is_ascii_alphanumeric);
    let written: String = letters.map(|c| c.to_ascii_lowercase()).collect();
    let (begun, ended) = (written.strip_prefix("beginof"), written.strip_prefix("endof"));
    let name = begun.or(ended).filter(|name| !name.is_empty()).unwrap_or(&written);
    let is_end = is_slash || ended.is_some();
    let rest = word[length..].trim_start_matches(is_blank);
    let is_element = which < 3;
    let ends = |at: usize| {
        let signs = if is_element { &CLOSES[..3] } else { &CLOSES[which..=which] };
        signs.iter().find(|sign| rest[at..].starts_with(**sign))
    };
    let longest = if is_element { LONGEST } else { 1 };
    let mut signs = rest.char_indices().take(longest);
    let (close, _) = signs.find(|(at, c)| *c == '\n' || ends(*at).is_some())?;
    let end = text.len() - rest.len() + close + ends(close)?.len();
    let given = rest[..close].trim_matches(is_blank);
    let known = NAMES.iter().find(|(known, _)| *known == name).map(|(_, first)| *first);
    let is_hidden = is_element && name == DETAILS && given.contains("reasoning");
    let is_said = given.is_empty() || given.contains('=');
    let (key, sort) = match known {
        Some(first) if is_said => (first, Sort::Reasoning),
        None if is_hidden && !is_end => (name, Sort::Paired),
        None if is_element => (name, Sort::Element),
        _ => return None,
    };
    let is_whole = !is_end || given.is_empty();
    // `[a](b)` is a link, and `<a/>` encloses nothing.
    let is_link = !is_element && text[end..].starts_with('(');
    if !is_whole || is_link || given.ends_with('/') {
        return None;
    }
    let style = ["<", "<", "<", "[", "◁"][which];
    Some(Marker { key: format!("{style}{key}"), is_end, end, sort })
}
