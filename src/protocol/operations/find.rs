//! Finds the operations message in a reply: bare, or in a code fence, with prose around it.
//!
//! A message begins a line, but for blanks and the marks of a fence. Fences of other languages are
//! not looked into. Each line is read at most twice: where something that begins like JSON is none,
//! the search goes on at the line where it ceased to be, and a line that opens a fence can stand in
//! no JSON.

use memchr::{memchr, memchr_iter, memmem, memrchr};
use serde_json::value::RawValue;

use super::check::MESSAGE;
use super::fault::{At, Faults};
use super::json::{self, Lines, RawFields};
use super::receive::{MISSING, Received, receive_part, without_bom};
use super::{OperationType, Version};

/// The first words of fences that may hold a message.
const LOOKED_INTO: [&str; 7] = ["", "json", "jsonc", "json5", "text", "txt", "plaintext"];
/// The key of a message's version.
const VERSION: &[u8] = b"protocolVersion";
/// So far behind an error it is looked for the keys that show what was meant.
const AHEAD: usize = 200;

/// A reply that holds a message which cannot be carried out as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The line of the reply that the message begins on, counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub faults: Faults,
    /// Whether it only lacks its end: the reply may have been cut off, or not be complete yet.
    pub unclosed: bool,
}

/// The operations message of a reply; None where it holds none.
///
/// It may be bare or in a code fence, with prose, other fences and other JSON around it. What is
/// not quite a message but is meant as one is refused and not overlooked: one that is no JSON, or
/// has no version. So are several messages in one reply, since whether the later ones follow or
/// replace the first would be a guess.
///
/// # Errors
/// The message is there, and has to be refused as a whole.
///
/// # Examples
/// ```
/// use deaddrop::protocol::operations::find;
/// let reply = "I'll look.\n```json\n{\"protocolVersion\": \"1.0\", \"operations\": [\n\
///              {\"type\": \"shell\", \"command\": \"ls\"}]}\n```\nThen we'll see.\n";
/// let received = find(reply).unwrap().unwrap();
/// assert_eq!((received.line, received.entries[0].line), (3, 4));
/// assert!(find(&reply.replace("1.0", "1.7")).unwrap().is_err());
/// assert_eq!(find("Just prose, with {braces}."), None);
/// ```
pub fn find(reply: &str) -> Option<Result<Received, Refused>> {
    let lines = &mut Lines::of(reply);
    let found = Search::of(without_bom(reply)).found();
    let mut faults = Faults::default();
    let line = |lines: &mut Lines, part: &str| lines.line_of(lines.offset_of(part));
    let messages = if found.messages.is_empty() && found.broken.is_none() {
        found.likely.as_slice()
    } else {
        &found.messages
    };
    match (messages, found.broken) {
        ([], None) => None,
        ([], Some((part, error))) => {
            let cut = cut_off(part, &error, lines);
            let unclosed = cut.is_some();
            let problem = cut.unwrap_or_else(|| json::in_words(&error, part, lines));
            faults.add_placed(&At::Root, problem, MESSAGE);
            if memmem::find(part.as_bytes(), VERSION).is_none() {
                faults.add(&At::Root.key("protocolVersion"), MISSING, Version::FORM);
            }
            let line = line(lines, part);
            Some(Err(Refused { line, faults, unclosed }))
        }
        ([message], _) => Some(receive_part(message, lines).map_err(|faults| {
            let line = line(lines, message);
            Refused { line, faults, unclosed: false }
        })),
        ([first, second, ..], _) => {
            let lines = [line(lines, first), line(lines, second)];
            let problem = format!(
                "the reply holds more than one operations message, on lines {} and {}, so none was carried out",
                lines[0], lines[1]
            );
            faults.add_placed(
                &At::Root,
                problem,
                "one message with all operations, in their order",
            );
            Some(Err(Refused { line: lines[0], faults, unclosed: false }))
        }
    }
}

/// Whether a reply ends within something that began as a message may: it may not be complete yet.
pub(in crate::protocol) fn ends_early(reply: &str) -> bool {
    Search::of(without_bom(reply)).found().unfinished
}

/// What a search has come upon.
#[derive(Default)]
struct Found<'a> {
    /// The first messages; of more than two nobody wants to know.
    messages: Vec<&'a str>,
    /// The first object that has no version, and operations of no known type that look like some. It
    /// counts where there is nothing else.
    likely: Option<&'a str>,
    /// The first text, to the end of the reply, that was meant as a message and is no JSON.
    broken: Option<(&'a str, serde_json::Error)>,
    /// Whether an object, of whatever sort, is not closed where the reply ends.
    unfinished: bool,
}

struct Search<'a> {
    text: &'a str,
    /// Where the next line begins.
    at: usize,
    fence: Option<Fence>,
}

/// An open code fence: its mark, how often it stands there, and whether to look into it.
struct Fence {
    mark: char,
    length: usize,
    looked_into: bool,
}

impl<'a> Search<'a> {
    fn of(text: &'a str) -> Self {
        Self { text, at: 0, fence: None }
    }

    fn found(mut self) -> Found<'a> {
        let mut found = Found::default();
        while self.at < self.text.len() && found.messages.len() < 2 {
            let begin = self.at;
            self.at = self.line_after(begin);
            let line = &self.text[begin..self.at];
            if !self.is_looked_into(line) {
                continue;
            }
            let Some(start) = json_in(line).map(|start| begin + start) else { continue };
            let rest = &self.text[start..];
            match first_value(rest) {
                Ok(value) => {
                    match meaning(value) {
                        Meaning::Message => found.messages.push(value),
                        Meaning::Likely => _ = found.likely.get_or_insert(value),
                        Meaning::Other => {}
                    }
                    self.at = self.line_after(start + value.len() - 1);
                }
                Err(error) => {
                    found.unfinished |= error.is_eof();
                    let stopped = start + json::offset(&error, rest);
                    if found.broken.is_none() && self.is_meant(start, stopped) {
                        found.unfinished |= is_cut(rest, &error);
                        found.broken = Some((rest, error));
                    }
                    // On from the line that cannot be JSON, which may be a fence; never back.
                    let before = &self.text.as_bytes()[..stopped];
                    let line = memrchr(b'\n', before).map_or(0, |n| n + 1);
                    self.at = self.at.max(line);
                }
            }
        }
        found
    }

    /// Where the line after the one that holds this byte begins.
    fn line_after(&self, at: usize) -> usize {
        memchr(b'\n', &self.text.as_bytes()[at..]).map_or(self.text.len(), |n| at + n + 1)
    }

    /// Whether a message may begin on this line; takes note of the fences that it opens or closes.
    fn is_looked_into(&mut self, line: &str) -> bool {
        let Some(fence) = &self.fence else {
            let opened = opened_by(line);
            let closed_or_looked_into = opened.as_ref().is_none_or(|fence| fence.looked_into);
            self.fence = opened;
            return closed_or_looked_into;
        };
        let line = line.trim();
        let marks = line.len() - line.trim_start_matches(fence.mark).len();
        if marks == line.len() && marks >= fence.length {
            self.fence = None;
            return false;
        }
        fence.looked_into
    }

    /// Whether what begins at `start` and was JSON until `stopped` shows the keys of a message.
    fn is_meant(&self, start: usize, stopped: usize) -> bool {
        let end = (stopped + AHEAD).min(self.text.len());
        let seen = &self.text.as_bytes()[start..end];
        let has = |part: &[u8]| memmem::find(seen, part).is_some();
        // A `message` may be anything's.
        let of_an_operation = |kind: &OperationType| {
            *kind != OperationType::Message && has(format!("\"{kind}\"").as_bytes())
        };
        has(b"operations") && (has(VERSION) || OperationType::ALL.iter().any(of_an_operation))
    }
}

/// The fence that a line opens.
fn opened_by(line: &str) -> Option<Fence> {
    let line = line.trim();
    let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let info = line.trim_start_matches(mark);
    let length = line.len() - info.len();
    // What has its backticks on both sides is a span within a line.
    if length < 3 || (mark == '`' && info.contains('`')) {
        return None;
    }
    let word = info.split([' ', '\t', '{', ',']).find(|word| !word.is_empty()).unwrap_or_default();
    let json = info.trim_start().starts_with("{\"");
    let looked_into = json || LOOKED_INTO.iter().any(|known| word.eq_ignore_ascii_case(known));
    Some(Fence { mark, length, looked_into })
}

/// Where an object begins on a line that begins with it, but for blanks and the marks of a fence.
fn json_in(line: &str) -> Option<usize> {
    let blank = |c: char| c.is_whitespace() || c == '\u{feff}';
    let rest = line.trim_start_matches(blank);
    let mut rest = rest.trim_start_matches(['`', '~']).trim_start_matches(blank);
    if let Some((word, after)) = rest.split_at_checked(4)
        && word.eq_ignore_ascii_case("json")
    {
        rest = after.trim_start_matches(blank);
    }
    rest.starts_with('{').then(|| line.len() - rest.len())
}

/// The JSON value that a text begins with.
fn first_value(text: &str) -> serde_json::Result<&str> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    match values.next() {
        Some(value) => value.map(RawValue::get),
        // Only where there is nothing but blanks.
        None => Ok(text),
    }
}

/// What an object is meant as.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Meaning {
    /// Something else.
    Other,
    /// An operations message, most likely.
    Likely,
    /// An operations message: it has `operations`, and a version or something among them that is
    /// one.
    Message,
}

fn meaning(object: &str) -> Meaning {
    let Ok(fields) = serde_json::from_str::<RawFields>(object) else { return Meaning::Other };
    let Some(operations) = fields.get("operations") else { return Meaning::Other };
    if fields.contains_key("protocolVersion") {
        return Meaning::Message;
    }
    let mut most = Meaning::Other;
    // What is no list has no elements.
    let _ = json::elements(operations.get(), |element| {
        if most < Meaning::Message {
            most = most.max(meaning_with(element));
        }
    });
    most
}

/// What a message is meant as by this element of its operations.
fn meaning_with(element: &str) -> Meaning {
    let fields = serde_json::from_str::<RawFields>(element).unwrap_or_default();
    let kind = fields.get("type").and_then(|kind| serde_json::from_str::<String>(kind.get()).ok());
    match kind {
        Some(kind) if OperationType::named(&kind).is_some() => Meaning::Message,
        Some(_) if ["command", "path", "content"].iter().any(|key| fields.contains_key(*key)) => {
            Meaning::Likely
        }
        _ => Meaning::Other,
    }
}

/// Whether a broken message is one that ends too early: with the reply, or at the end of its fence, and
/// nothing after that place could be its end.
fn is_cut(part: &str, error: &serde_json::Error) -> bool {
    if error.is_eof() {
        return true;
    }
    let rest = &part[part.floor_char_boundary(json::offset(error, part))..];
    let within_text = error.to_string().starts_with("control character");
    let begins = rest.trim_start();
    let at_fence = begins.starts_with("```") || begins.starts_with("~~~");
    (within_text || at_fence) && !has_end(rest)
}

/// Where a message that ends too early does so, and what to do.
fn cut_off(part: &str, error: &serde_json::Error, lines: &mut Lines) -> Option<String> {
    if !is_cut(part, error) {
        return None;
    }
    let stopped = part.floor_char_boundary(json::offset(error, part));
    // Up to there it is JSON.
    let before = if error.is_eof() { part } else { &part[..stopped] };
    let ends = match open_operation(before) {
        (number, Some(begin)) => {
            let line = lines.line_of(lines.offset_of(part) + begin);
            format!("the message ends within operation {number} (line {line}): it was cut off")
        }
        (0, None) => "the message ends before its first operation: it was cut off".to_owned(),
        (number, None) => format!(
            "the message ends behind operation {number}, without the brackets that close it: it was cut off, or lacks them"
        ),
    };
    Some(format!(
        "{ends}. A message is carried out as a whole or not at all: send all of it again, a long one as several smaller messages, each in a reply of its own"
    ))
}

/// Whether a text holds what could be the end of a message: `]}`, or a text and `}`, with blanks
/// between.
fn has_end(text: &str) -> bool {
    memchr_iter(b'}', text.as_bytes()).any(|at| text[..at].trim_end().ends_with([']', '"']))
}

/// How many operations begin in a text that is the beginning of a message, and where the last of them
/// does if it is not closed there.
fn open_operation(text: &str) -> (usize, Option<usize>) {
    let (mut depth, mut number, mut open) = (0_usize, 0, None);
    let (mut in_text, mut escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'{' | b'[' => {
                if depth == 2 && byte == b'{' {
                    number += 1;
                    open = Some(at);
                }
                depth += 1;
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 2 {
                    open = None;
                }
            }
            _ => {}
        }
    }
    (number, open)
}
