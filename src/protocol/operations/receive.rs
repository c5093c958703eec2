//! From JSON text to messages: strictly, or taking what is well-formed in a message that is not.
//!
//! Each operation is read by itself, so one that cannot be read does not take the others with it.
//! If an object has a key twice, the last one counts, as in `JSON.parse`.

use std::collections::BTreeMap;
use std::fmt;

use memchr::{memchr_iter, memchr2};
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Error, Map, Value, json};

use super::validate::{
    check, form, operation_at, validate_event, validate_events_message, validate_operation,
};
use super::{Event, EventsMessage, Faults, Operation, OperationType, OperationsMessage};
use crate::protocol::bounded;
use crate::text::visible_line;

/// The number of operations of one message that are carried out.
pub const OPERATIONS_LIMIT: usize = 1_000;
/// A message of more operations is refused as a whole, since each of them gets an event.
pub const MESSAGE_OPERATIONS_LIMIT: usize = 10_000;
const MESSAGE: &str = "OperationsMessage";
/// The number of bytes that are shown on each side of an error.
const CONTEXT: usize = 24;

/// The fields of an object, their values not read yet.
pub(super) type RawFields<'a> = BTreeMap<String, &'a RawValue>;

/// A message as it was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// The line of the text on which the message begins, counted from 1.
    pub line: usize,
    /// Its operations, in order.
    pub entries: Vec<Entry>,
}

/// One entry of a message's `operations`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The line of the text on which it begins, counted from 1.
    pub line: usize,
    /// What it asks for, or why it is skipped.
    pub operation: Result<Operation, Skipped>,
}

/// An operation that is not carried out although others are (agent-spaces-protocol, "Graceful
/// Degradation").
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Its ID, if it has one.
    pub id: Option<String>,
    /// Its type, if that is one of the six.
    pub kind: Option<OperationType>,
    /// Why.
    pub reason: SkipReason,
}

/// Why an operation is skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkipReason {
    /// It is malformed; paths are from the message (`$.operations[2]`).
    Malformed(Faults),
    /// It comes after the first [`OPERATIONS_LIMIT`] operations.
    BeyondLimit,
}

/// Reads a message, taking each operation by itself: a malformed one does not stop the others. The
/// message is the whole of `text`; for one within a reply see [`find`](super::find).
///
/// # Errors
/// What is wrong with the message as a whole, so that nothing of it may be carried out: it is not
/// JSON, has no `operations`, has more than [`MESSAGE_OPERATIONS_LIMIT`], or has another version.
///
/// # Examples
/// ```
/// use deaddrop::protocol::operations::{SkipReason, receive};
/// let text = r#"{"protocolVersion": "1.0", "operations": [
///     {"type": "message", "content": "Hello"},
///     {"type": "sehll", "command": "ls"}
/// ]}"#;
/// let received = receive(text).unwrap();
/// assert!(received.entries[0].operation.is_ok());
/// let skipped = received.entries[1].operation.as_ref().unwrap_err();
/// let SkipReason::Malformed(faults) = &skipped.reason else { panic!() };
/// assert!(faults.to_string().contains("\"sehll\" (\"shell\"?)"));
/// assert!(receive(&text.replace("1.0", "2.0")).is_err());
/// ```
pub fn receive(text: &str) -> Result<Received, Faults> {
    receive_part(text, &mut Lines::of(text))
}

/// Receives a message that is a part of the text in which lines are counted.
pub(super) fn receive_part(part: &str, lines: &mut Lines) -> Result<Received, Faults> {
    let mut faults = Faults::default();
    let list = operations_of(part, lines, &mut faults);
    faults.or(())?;
    let line = lines.line_of(lines.offset_of(without_bom(part).trim_start()));
    let (mut entries, mut count) = (Vec::new(), 0);
    each_element(list, |part| {
        if count < MESSAGE_OPERATIONS_LIMIT {
            entries.push(entry(count, part, lines));
        }
        count += 1;
    });
    if count > MESSAGE_OPERATIONS_LIMIT {
        let form = format!("at most {MESSAGE_OPERATIONS_LIMIT} operations in a message");
        return Err(Faults::one("$.operations", format!("there are {count} operations"), form));
    }
    Ok(Received { line, entries })
}

fn entry(n: usize, part: &str, lines: &mut Lines) -> Entry {
    let line = lines.line_of(lines.offset_of(part));
    let value = value_of(part, lines);
    let reason = if n >= OPERATIONS_LIMIT {
        SkipReason::BeyondLimit
    } else {
        let mut faults = Faults::default();
        match operation_of(n, &value, &mut faults) {
            Some(operation) => return Entry { line, operation: Ok(operation) },
            None => SkipReason::Malformed(faults),
        }
    };
    let field = |key| value.as_ref().ok()?.get(key)?.as_str();
    let kind = field("type").and_then(OperationType::named);
    let skipped = Skipped { id: field("id").map(str::to_owned), kind, reason };
    Entry { line, operation: Err(skipped) }
}

/// The operation at that place of a message, unless something is wrong with it.
fn operation_of(n: usize, value: &Result<Value, String>, faults: &mut Faults) -> Option<Operation> {
    let path = format!("$.operations[{n}]");
    match value {
        Ok(value) => operation_at(value, &path, faults),
        Err(problem) => {
            faults.add(&path, problem, form("Operation", &[]));
            None
        }
    }
}

/// Reads and validates a whole operations message.
///
/// # Errors
/// Everything that is wrong with it and its operations.
///
/// # Examples
/// ```
/// use deaddrop::protocol::operations::parse_operations_message;
/// let text = r#"{"protocolVersion": "1.0", "operations": [{"type": "deleteFile", "path": "a"}]}"#;
/// assert_eq!(parse_operations_message(text).unwrap().operations.len(), 1);
/// let faults = parse_operations_message(&text[..50]).unwrap_err();
/// assert!(faults.to_string().contains("was it cut off?"));
/// ```
pub fn parse_operations_message(text: &str) -> Result<OperationsMessage, Faults> {
    let lines = &mut Lines::of(text);
    let (mut faults, mut operations, mut n) = (Faults::default(), Vec::new(), 0);
    let list = operations_of(text, lines, &mut faults);
    each_element(list, |part| {
        operations.extend(operation_of(n, &value_of(part, lines), &mut faults));
        n += 1;
    });
    faults.or(OperationsMessage::new(operations))
}

/// Reads and validates one operation.
///
/// # Errors
/// Everything that is wrong with it.
///
/// # Examples
/// ```
/// use deaddrop::protocol::operations::{Operation, parse_operation};
/// let operation = parse_operation(r#"{"type": "shell", "id": "s", "command": "ls"}"#).unwrap();
/// let Operation::Shell(shell) = operation else { panic!() };
/// assert_eq!((shell.id.as_deref(), &*shell.command), (Some("s"), "ls"));
/// assert!(parse_operation("ls").is_err());
/// ```
pub fn parse_operation(text: &str) -> Result<Operation, Faults> {
    parse(text, "Operation", validate_operation)
}

/// Reads and validates one event.
///
/// # Errors
/// Everything that is wrong with it.
pub fn parse_event(text: &str) -> Result<Event, Faults> {
    parse(text, "Event", validate_event)
}

/// Reads and validates a whole events message.
///
/// # Errors
/// Everything that is wrong with it and its events.
pub fn parse_events_message(text: &str) -> Result<EventsMessage, Faults> {
    parse(text, "EventsMessage", validate_events_message)
}

/// Reads a value of this definition and validates it.
pub(super) fn parse<T>(
    text: &str,
    name: &str,
    validate: impl Fn(&Value) -> Result<T, Faults>,
) -> Result<T, Faults> {
    let value = value_of(without_bom(text), &mut Lines::of(text));
    validate(&value.map_err(|problem| Faults::one("$", problem, form(name, &[])))?)
}

/// Removes the byte order mark with which some editors begin a file.
pub(super) fn without_bom(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Validates what is around the operations of a message, and returns the text of their list.
fn operations_of<'a>(text: &'a str, lines: &mut Lines, faults: &mut Faults) -> &'a str {
    const NONE: &str = "[]";
    let text = without_bom(text);
    if !text.trim_start().starts_with('{') {
        match value_of(text, lines) {
            Ok(value) => check(MESSAGE, &value, "$", faults),
            Err(problem) => faults.add("$", problem, form(MESSAGE, &[])),
        }
        return NONE;
    }
    let fields: RawFields = match serde_json::from_str(text) {
        Ok(fields) => fields,
        Err(error) => {
            faults.add("$", json_problem(&error, text, lines), form(MESSAGE, &[]));
            return NONE;
        }
    };
    let list = fields.get("operations").map(|raw| raw.get()).filter(|raw| raw.starts_with('['));
    // The elements of the list are read one by one.
    let mut around = Map::from_iter(list.map(|_| ("operations".to_owned(), json!([]))));
    for (key, raw) in fields {
        if key == "protocolVersion" || (key == "operations" && list.is_none()) {
            match value_of(raw.get(), lines) {
                Ok(value) => drop(around.insert(key, value)),
                Err(problem) => {
                    faults.add(&format!("$.{key}"), problem, form(MESSAGE, &[&key]));
                    return NONE;
                }
            }
        }
    }
    check(MESSAGE, &Value::Object(around), "$", faults);
    list.unwrap_or(NONE)
}

/// Calls `each` with the text of each element of a list that was read as JSON once.
fn each_element<'a>(list: &'a str, each: impl FnMut(&'a str)) {
    let walked = elements(list, each);
    debug_assert!(walked.is_ok(), "{walked:?}");
}

/// Calls `each` with the text of each element of the list that `list` is.
pub(super) fn elements<'a>(list: &'a str, each: impl FnMut(&'a str)) -> Result<(), Error> {
    struct Each<F>(F);
    impl<'a, F: FnMut(&'a str)> Visitor<'a> for Each<F> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'a>>(mut self, mut seq: A) -> Result<(), A::Error> {
            while let Some(element) = seq.next_element::<&RawValue>()? {
                (self.0)(element.get());
            }
            Ok(())
        }
    }
    serde_json::Deserializer::from_str(list).deserialize_seq(Each(each))
}

/// Reads `part`, a piece of the text in which lines are counted.
fn value_of(part: &str, lines: &mut Lines) -> Result<Value, String> {
    bounded::from_str(part).map_err(|error| json_problem(&error, part, lines))
}

/// Says why `part` is not JSON: what is wrong, on which line, and the text around it.
pub(super) fn json_problem(error: &Error, part: &str, lines: &mut Lines) -> String {
    let message = error.to_string();
    let what = message.rsplit_once(" at line ").map_or(&*message, |(what, _)| what);
    let at = error_offset(error, part);
    let what = match what {
        _ if error.is_eof() => "it ends before it is complete; was it cut off?",
        w if w.starts_with("control character") => {
            "a string contains a line break, tab or other control character (write \\n, \\t)"
        }
        w if w.starts_with("recursion limit") => "it is nested deeper than 127 levels",
        w if w.contains("hex escape") || w.contains("surrogate") => {
            "a \\u escape is no character (surrogates come in pairs)"
        }
        w if w.starts_with("invalid escape") => {
            "a backslash precedes a character that is not escaped (write \\\\ for a backslash)"
        }
        w if w.starts_with("number out of range") => "a number is too large",
        w if w.starts_with("key must be a string") => "a key has no double quotes around it",
        "trailing comma" => "there is a comma before a closing bracket",
        "expected value" => match part.as_bytes().get(at) {
            Some(b']' | b'}') => "there is a comma before a closing bracket",
            Some(b'/') => "it contains a comment",
            _ => "a value is missing",
        },
        other => other,
    };
    let line = lines.line_of(lines.offset_of(part) + at);
    let from = part.floor_char_boundary(at.saturating_sub(CONTEXT));
    let to = part.ceil_char_boundary((at + CONTEXT).min(part.len()));
    let near = visible_line(&part[from..to]);
    // Words of the chat often follow what was cut off.
    let is_cut = !error.is_eof()
        && !what.starts_with("trailing characters")
        && memchr2(b'}', b']', &part.as_bytes()[at..]).is_none();
    let cut =
        if is_cut { "; nothing after that closes it, so it may have been cut off" } else { "" };
    format!("it cannot be read as JSON: {what} (line {line}, near `{near}`){cut}")
}

/// The byte of `part` at which reading stopped.
pub(super) fn error_offset(error: &Error, part: &str) -> usize {
    let start = match error.line() {
        0 | 1 => 0,
        line => memchr_iter(b'\n', part.as_bytes()).nth(line - 2).map_or(part.len(), |n| n + 1),
    };
    // Column 0 is the line break before.
    (start + error.column()).saturating_sub(1).min(part.len())
}

/// Counts lines. Asked in order, it looks at the text once.
pub(super) struct Lines<'a> {
    whole: &'a str,
    at: usize,
    line: usize,
}

impl<'a> Lines<'a> {
    pub(super) fn of(whole: &'a str) -> Self {
        Self { whole, at: 0, line: 1 }
    }

    /// The byte at which `part`, a piece of the text, begins.
    pub(super) fn offset_of(&self, part: &str) -> usize {
        part.as_ptr().addr().saturating_sub(self.whole.as_ptr().addr()).min(self.whole.len())
    }

    /// The line of that byte, counted from 1.
    pub(super) fn line_of(&mut self, offset: usize) -> usize {
        if offset < self.at {
            (self.at, self.line) = (0, 1);
        }
        self.line += memchr_iter(b'\n', &self.whole.as_bytes()[self.at..offset]).count();
        self.at = offset;
        self.line
    }
}
