//! From text to operations: strictly, or taking what is well-formed in a message that is not.

use serde::{Deserialize, Deserializer, de};
use serde_json::Value;

use super::check::{MESSAGE, OPERATIONS, operation, version};
use super::fault::{At, Faults};
use super::fields::wrong;
use super::json::{self, Lines, RawFields};
use super::{
    Event, EventsMessage, Operation, OperationType, OperationsMessage, Version, validate_event,
    validate_events_message, validate_operation, validate_operations_message,
};
use crate::protocol::bounded;

/// Said of a key that has to be there.
pub(super) const MISSING: &str = "it is missing";
/// So many operations of one message are read; the rest is counted.
pub const OPERATIONS_LIMIT: usize = 1_000;

/// A message as it was received: what of it can be done, and what cannot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// The line of the text that the message begins on, counted from 1.
    pub line: usize,
    /// Its operations in order, at most [`OPERATIONS_LIMIT`].
    pub entries: Vec<Entry>,
    /// How many more there are.
    pub left_out: usize,
    /// The line that the first of those begins on; 0 where there is none.
    pub left_out_from: usize,
}

/// One entry of a message's `operations`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The line of the text that it begins on, counted from 1.
    pub line: usize,
    /// What it asks for.
    pub asks: Result<Operation, Malformed>,
}

/// An operation that is not as it should be: it is skipped, and the others are carried out
/// (agent-spaces-protocol, "Graceful Degradation").
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    /// Its id, if it has one.
    pub id: Option<String>,
    /// What it was meant to be, if that can be told.
    pub kind: Option<OperationType>,
    /// What is wrong with it; paths are from the message (`$.operations[2]`).
    pub faults: Faults,
}

/// Reads a message, taking each operation by itself: one that is malformed does not stop the
/// others. The message is the whole of `text`; for one within a reply see [`find`](super::find).
///
/// # Errors
/// What is wrong with the message as a whole: then nothing of it may be carried out. It is not
/// JSON, has no `operations`, or is of another version than 1.0.
///
/// # Examples
/// ```
/// use deaddrop::protocol::operations::receive;
/// let text = r#"{"protocolVersion": "1.0", "operations": [
///     {"type": "message", "content": "Hello"},
///     {"type": "sehll", "command": "ls"}
/// ]}"#;
/// let received = receive(text).unwrap();
/// assert!(received.entries[0].asks.is_ok());
/// let malformed = received.entries[1].asks.as_ref().unwrap_err();
/// assert!(malformed.faults.to_string().contains("\"sehll\" (\"shell\"?)"));
/// assert!(receive(&text.replace("1.0", "2.0")).is_err());
/// ```
pub fn receive(text: &str) -> Result<Received, Faults> {
    receive_part(text, &mut Lines::of(text))
}

/// The same of a part of the text that the lines are counted in.
pub(super) fn receive_part(part: &str, lines: &mut Lines) -> Result<Received, Faults> {
    let mut faults = Faults::default();
    let list = envelope(part, lines, &mut faults);
    let list = faults.or(list)?;
    let line = lines.line_of(lines.offset_of(without_bom(part).trim_start()));
    let mut received = Received { line, entries: Vec::new(), left_out: 0, left_out_from: 0 };
    each_operation(list, lines, |n, line, value| {
        if n >= OPERATIONS_LIMIT {
            if received.left_out == 0 {
                received.left_out_from = line;
            }
            received.left_out += 1;
            return;
        }
        let asks = entry(n, value());
        received.entries.push(Entry { line, asks });
    });
    Ok(received)
}

/// Reads and validates a whole message, as [`validate_operations_message`] does.
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
    let (mut faults, lines) = (Faults::default(), &mut Lines::of(text));
    let mut operations = Vec::new();
    if let Some(list) = envelope(text, lines, &mut faults) {
        each_operation(list, lines, |n, _, value| {
            operations.extend(one(n, value(), &mut faults).1);
        });
    }
    faults.or(Some(OperationsMessage { protocol_version: Version, operations }))
}

/// Reads and validates one operation, as [`validate_operation`] does.
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
    parsed(text, super::check::OPERATION, validate_operation)
}

/// Reads and validates one event, as [`validate_event`] does.
///
/// # Errors
/// Everything that is wrong with it.
pub fn parse_event(text: &str) -> Result<Event, Faults> {
    parsed(text, super::check_events::EVENT, validate_event)
}

/// Reads and validates a whole message, as [`validate_events_message`] does.
///
/// # Errors
/// Everything that is wrong with it and its events.
pub fn parse_events_message(text: &str) -> Result<EventsMessage, Faults> {
    parsed(text, super::check_events::MESSAGE, validate_events_message)
}

pub(super) fn parsed<T>(
    text: &str,
    form: &str,
    validate: impl Fn(&Value) -> Result<T, Faults>,
) -> Result<T, Faults> {
    let value = json::value(without_bom(text), &mut Lines::of(text)).map_err(|problem| {
        let mut faults = Faults::default();
        faults.add(&At::Root, problem, form);
        faults
    })?;
    validate(&value)
}

/// The mark that some editors begin a file with is no part of what it says.
pub(super) fn without_bom(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// What is around the operations: notes what is wrong with it, and gives the text of their list.
fn envelope<'a>(text: &'a str, lines: &mut Lines, faults: &mut Faults) -> Option<&'a str> {
    let text = without_bom(text);
    if !text.trim_start().starts_with('{') {
        let problem =
            json::value(text, lines).map_or_else(|problem| problem, |v| wrong(&v, "an object"));
        faults.add(&At::Root, problem, MESSAGE);
        return None;
    }
    let fields: RawFields = match serde_json::from_str(text) {
        Ok(fields) => fields,
        Err(error) => {
            faults.add_placed(&At::Root, json::in_words(&error, text, lines), MESSAGE);
            return None;
        }
    };
    let mut read = |key| match fields.get(key) {
        None => Err(MISSING.to_owned()),
        Some(raw) => json::value(raw.get(), lines),
    };
    if let Err(problem) = read("protocolVersion").and_then(|value| version(&value)) {
        faults.add(&At::Root.key("protocolVersion"), problem, Version::FORM);
    }
    match fields.get("operations") {
        Some(list) if list.get().starts_with('[') => Some(list.get()),
        _ => {
            let problem = read("operations").map(|value| wrong(&value, "a list"));
            let problem = problem.unwrap_or_else(|problem| problem);
            faults.add(&At::Root.key("operations"), problem, OPERATIONS);
            None
        }
    }
}

/// Calls `each` with the number of each operation, its line, and how to read it.
fn each_operation(
    list: &str,
    lines: &mut Lines,
    mut each: impl FnMut(usize, usize, &mut dyn FnMut() -> Result<Value, String>),
) {
    let mut n = 0;
    let walked = json::elements(list, |part| {
        let line = lines.line_of(lines.offset_of(part));
        each(n, line, &mut || json::value(part, lines));
        n += 1;
    });
    debug_assert!(walked.is_ok(), "the list was read as JSON once");
}

/// One operation in its place: its value, if it is JSON, and the operation, if it is one.
fn one(
    n: usize,
    value: Result<Value, String>,
    faults: &mut Faults,
) -> (Option<Value>, Option<Operation>) {
    let list = At::Root;
    let list = list.key("operations");
    match value {
        Ok(value) => {
            let operation = operation(&value, &list.index(n), faults);
            (Some(value), operation)
        }
        Err(problem) => {
            faults.add_placed(&list.index(n), problem, super::check::OPERATION);
            (None, None)
        }
    }
}

fn entry(n: usize, value: Result<Value, String>) -> Result<Operation, Malformed> {
    let mut faults = Faults::default();
    let (value, operation) = one(n, value, &mut faults);
    faults.or(operation).map_err(|faults| {
        let said = |key| value.as_ref().and_then(|value| value.get(key)).and_then(Value::as_str);
        Malformed {
            id: said("id").map(str::to_owned),
            kind: said("type").and_then(OperationType::named),
            faults,
        }
    })
}

/// Reading through serde is reading a value and validating it.
macro_rules! validated {
    ($($kind:ty: $validate:expr;)*) => {$(
        impl<'de> Deserialize<'de> for $kind {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $validate(&bounded::value(deserializer)?).map_err(de::Error::custom)
            }
        }
    )*};
}

validated! {
    Operation: validate_operation;
    OperationsMessage: validate_operations_message;
    Event: validate_event;
    EventsMessage: validate_events_message;
}
