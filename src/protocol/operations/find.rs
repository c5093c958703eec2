//! Finds the operations message in a reply. It may be bare or in a code fence, with prose around it.
//!
//! A message begins a line; only white space and fence characters may come before it. Fences of other languages are not
//! searched. Each line is read at most twice: if a text begins like JSON but is not JSON, the search continues at the
//! line with the error. A line that opens a fence cannot be inside JSON.

use memchr::{memchr, memchr_iter, memmem, memrchr};
use serde_json::Error;
use serde_json::value::RawValue;

use super::parse::{
    Lines, RawFields, Received, elements, error_offset, json_problem, kind_named, receive_part,
    without_bom,
};
use super::validate::form;
use super::{OPERATION_TYPES, SchemaFaults};
use crate::protocol::{Kind, content_checks::fence};

/// The languages of code fences that may contain a message.
const LANGUAGES: [&str; 7] = ["", "json", "jsonc", "json5", "text", "txt", "plaintext"];
/// The keys of a message.
const VERSION: &str = "protocolVersion";
const OPERATIONS: &str = "operations";
/// How many bytes after an error are also searched for these keys.
const AHEAD: usize = 200;

/// A message that is rejected as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedMessage {
    /// The line of the reply on which the message begins, counted from 1.
    pub line: usize,
    /// What is wrong with the message.
    pub faults: SchemaFaults,
    /// Whether only the end of the message is missing. The reply may be cut off or incomplete.
    pub unclosed: bool,
}

/// Finds the operations message of a reply; None if there is none.
///
/// The message may be bare or in a code fence, with prose, other fences and other JSON around it. A text that is
/// clearly meant as a message is refused, not ignored, if it is broken JSON or has no version. Several messages in one
/// reply are also refused, because later messages may continue or replace the first.
///
/// # Errors
/// There is a message, but it must be refused as a whole.
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
pub fn find(reply: &str) -> Option<Result<Received, RefusedMessage>> {
    let lines = &mut Lines::of(reply);
    let SearchResult { messages, broken, .. } = search(without_bom(reply));
    let (line, faults, unclosed) = match (&*messages, broken) {
        ([], None) => return None,
        ([], Some((part, error))) => {
            let unclosed = is_cut(part, &error);
            let problem = if unclosed {
                cut_off(part, &error, lines)
            } else {
                json_problem(&error, part, lines)
            };
            let faults = SchemaFaults::one("$", problem, form("OperationsMessage", &[]));
            (lines.line_of(part), faults, unclosed)
        }
        ([message], _) => match receive_part(message, lines) {
            Ok(received) => return Some(Ok(received)),
            Err(faults) => (lines.line_of(message), faults, false),
        },
        ([first, second, ..], _) => {
            let (line, other) = (lines.line_of(first), lines.line_of(second));
            let problem = format!(
                "the reply contains several operations messages, on lines {line} and {other}"
            );
            let form = "one message with all operations, in their order";
            (line, SchemaFaults::one("$", problem, form), false)
        }
    };
    Some(Err(RefusedMessage { line, faults, unclosed }))
}

/// Whether a reply ends inside a text that begins like a message. It may be incomplete.
pub(in crate::protocol) fn ends_early(reply: &str) -> bool {
    search(without_bom(reply)).unfinished
}

/// The result of a search.
#[derive(Default)]
struct SearchResult<'a> {
    /// The first messages; at most two.
    messages: Vec<&'a str>,
    /// The first text that was meant as a message but is not JSON, up to the end of the reply, and the error.
    broken: Option<(&'a str, Error)>,
    /// Whether any object is still open where the reply ends.
    unfinished: bool,
}

fn search(text: &str) -> SearchResult<'_> {
    let (mut found, mut fence) = (SearchResult::default(), None);
    let line_after = |at: usize| {
        memchr(b'\n', &text.as_bytes()[at..]).map_or(text.len(), |length| at + length + 1)
    };
    let mut next = 0;
    while next < text.len() && found.messages.len() < 2 {
        let begin = next;
        next = line_after(begin);
        let line = &text[begin..next];
        if !is_searched(line, &mut fence) {
            continue;
        }
        let Some(start) = object_in(line).map(|start| begin + start) else { continue };
        let rest = &text[start..];
        match first_value(rest) {
            Ok(value) => {
                found.messages.extend(is_message(value).then_some(value));
                next = line_after(start + value.len() - 1);
            }
            Err(error) => {
                found.unfinished |= error.is_eof();
                let stopped = start + error_offset(&error, rest);
                let seen = &text.as_bytes()[start..(stopped + AHEAD).min(text.len())];
                if found.broken.is_none() && is_meant(seen) {
                    found.unfinished |= is_cut(rest, &error);
                    found.broken = Some((rest, error));
                }
                // Continue at the line that cannot be JSON, because it may be a fence. Never go back.
                let before = &text.as_bytes()[..stopped];
                next = next.max(memrchr(b'\n', before).map_or(0, |at| at + 1));
            }
        }
    }
    found
}

/// Whether a message may begin on this line. `open` is the fence around the line, and whether that fence is searched.
fn is_searched<'a>(line: &'a str, open: &mut Option<(&'a str, bool)>) -> bool {
    if let Some((mark, searched)) = *open {
        let closes = fence::closes(mark, line);
        *open = open.take().filter(|_| !closes);
        return searched && !closes;
    }
    let Some((mark, info)) = fence::opening(line) else { return true };
    let word = info.split([' ', '\t', '{', ',']).find(|word| !word.is_empty()).unwrap_or_default();
    let searched = info.trim_start().starts_with("{\"")
        || LANGUAGES.iter().any(|known| word.eq_ignore_ascii_case(known));
    *open = Some((mark, searched));
    searched
}

/// The offset at which an object begins on a line, after nothing but white space and fence characters.
fn object_in(line: &str) -> Option<usize> {
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

/// The JSON value at the beginning of a text.
fn first_value(text: &str) -> serde_json::Result<&str> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    // White space alone is not a value.
    values.next().map_or(Ok(text), |value| value.map(RawValue::get))
}

/// Whether an object has operations, and a version or an operation of a known type.
fn is_message(object: &str) -> bool {
    let fields_of = |object| serde_json::from_str::<RawFields>(object).unwrap_or_default();
    let is_operation = |element| {
        let kind = fields_of(element).get("type").map(|kind| kind.get());
        let kind = kind.and_then(|kind| serde_json::from_str::<String>(kind).ok());
        kind.is_some_and(|kind| kind_named(&kind).is_some())
    };
    let fields = fields_of(object);
    let Some(operations) = fields.get(OPERATIONS) else { return false };
    let mut is_message = fields.contains_key(VERSION);
    elements(operations.get(), |_, it| is_message = is_message || is_operation(it));
    is_message
}

/// Whether broken JSON contains the keys of a message.
fn is_meant(seen: &[u8]) -> bool {
    let has = |part: &str| memmem::find(seen, part.as_bytes()).is_some();
    // The type `message` is excluded, because other JSON has messages, too.
    let mut kinds = OPERATION_TYPES.iter().filter(|(_, kind)| *kind != Kind::Message);
    has(OPERATIONS) && (has(VERSION) || kinds.any(|(name, _)| has(&format!("\"{name}\""))))
}

/// Whether a broken message is cut off: no `]}` and no string with `}` follows the error, which could end the message.
fn is_cut(part: &str, error: &Error) -> bool {
    let rest = &part[part.floor_char_boundary(error_offset(error, part))..];
    let ends_message = |at: usize| rest[..at].trim_end().ends_with([']', '"']);
    error.is_eof() || !memchr_iter(b'}', rest.as_bytes()).any(ends_message)
}

/// Describes where a message was cut off, and what to do.
fn cut_off(part: &str, error: &Error, lines: &mut Lines) -> String {
    let stopped = part.floor_char_boundary(error_offset(error, part));
    let before = if error.is_eof() { part } else { &part[..stopped] };
    let list = memmem::find(before.as_bytes(), b"\"operations\"")
        .and_then(|key| Some(&before[key + memchr(b'[', &before.as_bytes()[key..])?..]))
        .unwrap_or_default();
    let mut rest = list.get(1..).unwrap_or_default();
    let count = elements(list, |_, element| {
        rest = &list[element.as_ptr().addr() - list.as_ptr().addr() + element.len()..];
    });
    let open = rest.trim_start_matches(|c: char| c == ',' || c.is_whitespace());
    let ends = if open.starts_with('{') {
        let line = lines.line_of(open);
        format!("the message ends inside operation {} (line {line})", count + 1)
    } else if count == 0 {
        "the message ends before its first operation".to_owned()
    } else {
        format!("the message ends after operation {count}, without the brackets that close it")
    };
    format!(
        "{ends}: it was cut off. Send a long message as several smaller ones, each in a reply of its own"
    )
}
