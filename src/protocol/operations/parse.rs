//! Parses JSON text into messages: strictly, or accepting the well-formed operations of a message that has faults.
//!
//! Each operation is read separately, so an operation that cannot be read does not affect the others. If an object has
//! a key twice, the last one counts, as in `JSON.parse`.

use std::collections::BTreeMap;
use std::fmt;

use memchr::memchr_iter;
use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Error, Value, json};

use super::validate::{check, check_union, form, in_plain_words};
use super::{Approval, Event, EventsMessage, OPERATION_TYPES, SchemaFaults};
use crate::protocol::{Kind, SentValues, bounded};
use crate::text::visible_line;

/// The most operations of one message that are carried out.
pub const OPERATIONS_LIMIT: usize = 1_000;
/// A message with more operations than this is refused as a whole, because each operation gets an event.
pub const MESSAGE_OPERATIONS_LIMIT: usize = 10_000;
const MESSAGE: &str = "OperationsMessage";
/// The most bytes that are shown on each side of an error.
const CONTEXT: usize = 24;
/// The fields of an object. Their values are not parsed yet.
pub(super) type RawFields<'a> = BTreeMap<String, &'a RawValue>;

/// A message as it was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// The line of the text on which the message begins, counted from 1.
    pub line: usize,
    /// The message's operations, in order.
    pub entries: Vec<ReceivedOperation>,
}

/// One entry of a message's `operations`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedOperation {
    /// The line of the text on which the entry begins, counted from 1.
    pub line: usize,
    /// The kind of operation, if the type is one of the six.
    pub kind: Option<Kind>,
    /// The ID, and for a valid operation its path or command.
    pub asked: SentValues,
    /// The valid operation as it was sent, or why it is skipped although others are carried out (agent-spaces-protocol,
    /// "Graceful Degradation"). Operations after the first [`OPERATIONS_LIMIT`] are also skipped.
    pub operation: Result<Value, SchemaFaults>,
}

/// Reads a message, each operation separately: a malformed operation does not affect the others. The message is the
/// whole of `text`. For a message within a reply, see [`find`](super::find).
///
/// # Errors
/// The message has a fault because of which none of it may be carried out: it is not JSON, has no `operations`, has
/// more than [`MESSAGE_OPERATIONS_LIMIT`] of them, or has another version.
pub fn receive(text: &str) -> Result<Received, SchemaFaults> {
    receive_part(text, &mut Lines::of(text))
}

/// Receives a message that is a part of a text. `lines` counts the lines of that text.
pub(super) fn receive_part(part: &str, lines: &mut Lines) -> Result<Received, SchemaFaults> {
    let mut faults = SchemaFaults::default();
    let list = operations_of(part, lines, &mut faults);
    faults.or(())?;
    let line = lines.line_of(without_bom(part).trim_start());
    let mut entries = Vec::new();
    let count = elements(list, |n, part| {
        if n < MESSAGE_OPERATIONS_LIMIT {
            entries.push(entry(n, part, lines));
        }
    });
    if count > MESSAGE_OPERATIONS_LIMIT {
        let form = format!("at most {MESSAGE_OPERATIONS_LIMIT} operations in a message");
        return Err(SchemaFaults::one(
            "$.operations",
            format!("there are {count} operations"),
            form,
        ));
    }
    Ok(Received { line, entries })
}

fn entry(n: usize, part: &str, lines: &mut Lines) -> ReceivedOperation {
    let line = lines.line_of(part);
    let value = value_of(part, lines);
    let text = |key: &str| value.as_ref().ok()?.get(key)?.as_str();
    let kind = text("type").and_then(kind_named);
    let id = text("id").map(str::to_owned);
    let about = if kind == Some(Kind::Run) { text("command") } else { text("path") };
    let about = about.filter(|_| kind != Some(Kind::Message)).unwrap_or_default().to_owned();
    let operation = if n < OPERATIONS_LIMIT {
        validated("Operation", value, &operation_path(n))
    } else {
        let problem =
            format!("only the first {OPERATIONS_LIMIT} operations of a message are carried out");
        let form = "the same operation in another message";
        Err(SchemaFaults::one(&operation_path(n), problem, form))
    };
    let about = if operation.is_ok() { about } else { String::new() };
    ReceivedOperation { line, kind, asked: SentValues { id, about }, operation }
}

/// The kind of operations of the type with this name.
pub(super) fn kind_named(name: &str) -> Option<Kind> {
    OPERATION_TYPES.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
}

/// Validates a whole operations message, and returns its operations as they were sent, without unknown fields.
///
/// # Errors
/// All faults of the message and its operations.
pub fn parse_operations_message(text: &str) -> Result<Vec<Value>, SchemaFaults> {
    let lines = &mut Lines::of(text);
    let (mut faults, mut operations) = (SchemaFaults::default(), Vec::new());
    let list = operations_of(text, lines, &mut faults);
    elements(list, |n, part| {
        let operation = validated("Operation", value_of(part, lines), &operation_path(n));
        operations.extend(faults.keep(operation));
    });
    faults.or(operations)
}

/// Reads and validates a whole events message.
///
/// # Errors
/// All faults of the message and its events. Fields that the interfaces mark with `?` may be omitted but not be null;
/// unknown fields are ignored.
pub fn parse_events_message(text: &str) -> Result<EventsMessage, SchemaFaults> {
    let name = "EventsMessage";
    let fault = |problem| SchemaFaults::one("$", problem, form(name, &[]));
    let mut message = whole_value(text).map_err(fault)?;
    // Events are validated one by one, each against the definition for its type.
    let sent = message.get_mut("events").and_then(Value::as_array_mut).map(std::mem::take);
    let (mut faults, mut events) = (SchemaFaults::default(), Vec::new());
    check(name, &message, "$", &mut faults);
    for (n, event) in sent.into_iter().flatten().enumerate() {
        events.extend(faults.keep(event_of(Ok(event), &format!("$.events[{n}]"))));
    }
    faults.or(())?;
    let message = EventsMessage::deserialize(message).map_err(|error| fault(error.to_string()))?;
    Ok(EventsMessage { events, ..message })
}

/// Reads a user's decision about an operation: `{"approval": …}`, or a `userMessage` whose content is
/// `approved` or `denied` and nothing else (agent-spaces-protocol, "User Provides Approval Decision").
///
/// # Errors
/// Everything that is wrong with the decision.
pub fn parse_approval(text: &str) -> Result<Approval, SchemaFaults> {
    let fault = |problem| SchemaFaults::one("$", problem, form("ApprovalMessage", &[]));
    let mut value = whole_value(text).map_err(fault)?;
    // If both are present, `approval` counts.
    let is_said = value["type"] == "userMessage" && value.get("approval").is_none();
    let definition = if is_said { "UserMessage" } else { "ApprovalMessage" };
    let mut faults = SchemaFaults::default();
    check(definition, &value, "$", &mut faults);
    faults.or(())?;
    if is_said {
        value["approval"] =
            json!({"decision": value["content"].as_str().unwrap_or_default().trim()});
    }
    Approval::deserialize(&value["approval"]).map_err(|error| fault(error.to_string()))
}

/// The value at `path` without unknown fields. An error if it cannot be read or is not a valid `Operation` or `Event`.
pub(super) fn validated(
    union: &str,
    value: Result<Value, String>,
    path: &str,
) -> Result<Value, SchemaFaults> {
    let fault = |problem| SchemaFaults::one(path, problem, form(union, &[]));
    let (mut value, mut faults) = (value.map_err(fault)?, SchemaFaults::default());
    check_union(union, &mut value, path, &mut faults);
    faults.or(value)
}

/// Converts the value at `path` to an event, if it could be read.
pub(super) fn event_of(value: Result<Value, String>, path: &str) -> Result<Event, SchemaFaults> {
    let fault = |error: Error| SchemaFaults::one(path, error.to_string(), form("Event", &[]));
    Event::deserialize(validated("Event", value, path)?).map_err(fault)
}

/// Reads a text that must be exactly one JSON value.
pub(super) fn whole_value(text: &str) -> Result<Value, String> {
    value_of(without_bom(text), &mut Lines::of(text))
}

fn operation_path(n: usize) -> String {
    format!("$.operations[{n}]")
}

/// Removes the byte order mark that some editors put at the beginning of a file.
pub(super) fn without_bom(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Validates the fields of a message except its operations. Returns the text of the list of operations.
fn operations_of<'a>(text: &'a str, lines: &mut Lines, faults: &mut SchemaFaults) -> &'a str {
    const NONE: &str = "[]";
    let text = without_bom(text);
    let Ok(fields) = serde_json::from_str::<RawFields>(text) else {
        match value_of(text, lines) {
            Ok(value) => check(MESSAGE, &value, "$", faults),
            Err(problem) => faults.add("$", problem, form(MESSAGE, &[])),
        }
        return NONE;
    };
    let (mut around, mut list) = (json!({}), NONE);
    for key in ["protocolVersion", "operations"] {
        let Some(mut raw) = fields.get(key).map(|raw| raw.get()) else { continue };
        if key == "operations" && raw.starts_with('[') {
            (list, raw) = (raw, NONE);
        }
        match value_of(raw, lines) {
            Ok(value) => around[key] = value,
            Err(problem) => {
                faults.add(&format!("$.{key}"), problem, form(MESSAGE, &[key]));
                return NONE;
            }
        }
    }
    check(MESSAGE, &around, "$", faults);
    list
}

/// Calls `each` with the index and the text of each element of a list, up to the first element that is not JSON.
/// Returns the number of these elements.
pub(super) fn elements<'a>(list: &'a str, each: impl FnMut(usize, &'a str)) -> usize {
    struct Each<'n, F>(&'n mut usize, F);
    impl<'a, F: FnMut(usize, &'a str)> Visitor<'a> for Each<'_, F> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'a>>(mut self, mut seq: A) -> Result<(), A::Error> {
            while let Some(element) = seq.next_element::<&RawValue>()? {
                (self.1)(*self.0, element.get());
                *self.0 += 1;
            }
            Ok(())
        }
    }
    let mut count = 0;
    // A value that is not a list has no elements.
    let _ = serde_json::Deserializer::from_str(list).deserialize_seq(Each(&mut count, each));
    count
}

/// Reads `part`, which is a part of the text whose lines are counted.
fn value_of(part: &str, lines: &mut Lines) -> Result<Value, String> {
    bounded::from_str(part).map_err(|error| json_problem(&error, part, lines))
}

/// Explains why `part` is not JSON: the problem, its line, and the text around it.
pub(super) fn json_problem(error: &Error, part: &str, lines: &mut Lines) -> String {
    let message = error.to_string();
    let what = message.rsplit_once(" at line ").map_or(&*message, |(what, _)| what);
    let at = error_offset(error, part);
    let what = match part.as_bytes().get(at) {
        _ if error.is_eof() => "it ends before it is complete; was it cut off?",
        Some(b']' | b'}') if what == "expected value" => {
            "there is a comma before a closing bracket"
        }
        Some(b'/') if what == "expected value" => "it contains a comment",
        _ => in_plain_words(what),
    };
    let from = part.floor_char_boundary(at.saturating_sub(CONTEXT));
    let to = part.ceil_char_boundary((at + CONTEXT).min(part.len()));
    let near = visible_line(&part[from..to]);
    let line = lines.line_of(&part[part.floor_char_boundary(at)..]);
    format!("it is not valid JSON: {what} (line {line}, near `{near}`)")
}

/// The offset in `part` at which reading stopped.
pub(super) fn error_offset(error: &Error, part: &str) -> usize {
    let start = match error.line() {
        0 | 1 => 0,
        line => memchr_iter(b'\n', part.as_bytes()).nth(line - 2).map_or(part.len(), |n| n + 1),
    };
    // Column 0 means the line break before the line.
    (start + error.column()).saturating_sub(1).min(part.len())
}

/// Counts lines. If lines are requested in order, the text is read only once.
pub(super) struct Lines<'a> {
    whole: &'a str,
    at: usize,
    line: usize,
}

impl<'a> Lines<'a> {
    pub(super) fn of(whole: &'a str) -> Self {
        Self { whole, at: 0, line: 1 }
    }

    /// The line (counted from 1) on which `part` begins. `part` must be a part of the text.
    pub(super) fn line_of(&mut self, part: &str) -> usize {
        let offset = part.as_ptr().addr().saturating_sub(self.whole.as_ptr().addr());
        let offset = offset.min(self.whole.len());
        if offset < self.at {
            (self.at, self.line) = (0, 1);
        }
        self.line += memchr_iter(b'\n', &self.whole.as_bytes()[self.at..offset]).count();
        self.at = offset;
        self.line
    }
}
#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::operations::Decision;

    #[test]
    fn both_forms_are_read() {
        let id = Some("cleanup-1".to_owned());
        for (text, wanted) in [
            (
                r#"{"approval": {"operationId": "cleanup-1", "decision": "approved"}}"#,
                Approval { operation_id: id, decision: Decision::Approved, reason: None },
            ),
            (
                r#"{"type": "userMessage", "content": " denied\n"}"#,
                Approval { operation_id: None, decision: Decision::Denied, reason: None },
            ),
        ] {
            assert_eq!(parse_approval(text), Ok(wanted), "{text}");
        }
    }

    #[test]
    fn what_is_no_decision_is_refused() {
        for (text, told) in [
            ("approved", "$: it is not valid JSON"),
            ("[]", "$: [] is not of type object"),
            ("{}", "$.approval: it is missing"),
            (r#"{"type": "userMessage"}"#, "$.content: it is missing"),
            (
                r#"{"type": "userMessage", "content": "not approved"}"#,
                "$.content: \"not approved\" is not allowed",
            ),
            (
                r#"{"type": "userMessage", "content": "Approved"}"#,
                "$.content: \"Approved\" is not allowed",
            ),
            (r#"{"type": "message", "content": "approved"}"#, "$.approval: it is missing"),
            (r#"{"approval": {"decision": "approved"}}"#, "$.approval.operationId: it is missing"),
            (r#"{"approval": {"operationId": "a"}}"#, "$.approval.decision: it is missing"),
            (
                r#"{"approval": {"operationId": "a", "decision": true}}"#,
                "$.approval.decision: true is not of type string",
            ),
            (
                r#"{"approval": {"operationId": "a", "decision": "approved", "reason": null}}"#,
                "$.approval.reason: null is not of type string",
            ),
            (
                r#"{"type": "userMessage", "content": "approved", "approval": {"operationId": "a", "decision": "no"}}"#,
                "$.approval.decision: \"no\" is not allowed",
            ),
        ] {
            let faults = parse_approval(text).unwrap_err().to_string();
            assert!(faults.starts_with(told), "{text}: {faults}");
        }
    }
}
