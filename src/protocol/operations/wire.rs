//! The values of the dialect: the six operations that an agent sends ("Operation Types"), the ten events that answer
//! them ("Event Types", "Error Response Format"), and the message that contains the events.
//!
//! Empty optional fields are omitted, never sent as null. Deserializing does not validate; the parse functions of the
//! parent module do.
#![expect(missing_docs, reason = "the specification explains the fields, by these names")]

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::{Map, Number, Value};

use super::{Encoding, UtcTime};
use crate::protocol::Kind;

/// The types of operations, in the order of the specification.
pub const OPERATION_TYPES: [(&str, Kind); 6] = [
    ("message", Kind::Message),
    ("createFile", Kind::Create),
    ("readFile", Kind::Read),
    ("editFile", Kind::Edit),
    ("deleteFile", Kind::Delete),
    ("shell", Kind::Run),
];

/// An operation as it was sent, after its JSON was validated. There are exactly these six, without extensions
/// (agent-spaces-protocol, "Operation Types").
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub(super) enum SentOperation {
    Message {
        content: String,
    },
    CreateFile {
        path: String,
        content: String,
        #[serde(default)]
        encoding: Encoding,
        #[serde(default)]
        overwrite: bool,
    },
    ReadFile {
        path: String,
        #[serde(default)]
        encoding: Encoding,
    },
    EditFile {
        path: String,
        edits: Vec<FileEdit>,
    },
    DeleteFile {
        path: String,
    },
    Shell {
        command: String,
        cwd: Option<String>,
        /// The timeout in milliseconds.
        #[serde(default, deserialize_with = "whole")]
        timeout: Option<u32>,
        #[serde(default)]
        env: BTreeMap<String, String>,
    },
}

/// A literal replacement of the first occurrence of a text.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FileEdit {
    pub(super) old_content: String,
    pub(super) new_content: String,
}

/// The answer to an operations message (agent-spaces-protocol, "Events Message"). deaddrop's run IDs consist of `run_`
/// and letters, digits, `-` and `_`; the protocol allows any text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "protocolVersion", rename = "1.0")]
pub struct EventsMessage {
    pub run_id: String,
    pub status: Status,
    pub events: Vec<Event>,
}

/// How far a run has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Every operation was tried.
    Completed,
    /// The run continues after the user has decided.
    AwaitingApproval,
    /// The run was rejected as a whole, halted by the system, or has operations beyond the limit.
    Error,
}

/// The types of events: a text from the user, the results of the six operations, and other consequences of an
/// operation. `Error` is a failure for which there is no other event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EventType {
    UserMessage,
    Message,
    CreateFile,
    ReadFile,
    EditFile,
    DeleteFile,
    Shell,
    ApprovalRequired,
    PolicyDenied,
    #[default]
    Error,
}

/// The result of an operation, or a text from the user. The event's type determines which fields it has (see the
/// schema). In the event of a success, `error` is a warning.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    #[serde(rename = "type")]
    pub event_type: EventType,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<String>,
    pub timestamp: UtcTime,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub success: Option<bool>,
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdout: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timed_out: Option<bool>,
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    pub bytes_written: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<Encoding>,
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    pub edits_applied: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<ErrorCategory>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Map<String, Value>>,
}

/// The kinds of failure (agent-spaces-protocol, "Error Categories").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ErrorCategory {
    /// The operation is malformed.
    Validation,
    /// A policy blocks the operation.
    Policy,
    /// The operation was tried and failed.
    Execution,
    /// The operation took too long.
    Timeout,
    /// The machine cannot carry out the operation: no disk space, no sandbox.
    System,
}

/// Reads a whole number in any notation: `30000`, `30000.0` or `3e4`.
fn whole<'de, D: Deserializer<'de>, T: TryFrom<i64>>(from: D) -> Result<Option<T>, D::Error> {
    let number = Number::deserialize(from)?;
    #[expect(clippy::cast_possible_truncation, reason = "whole, and within bounds below 2^53")]
    let float = || number.as_f64().filter(|float| float.fract() == 0.0).map(|float| float as i64);
    let whole = number.as_i64().or_else(float).and_then(|whole| T::try_from(whole).ok());
    whole.map(Some).ok_or_else(|| de::Error::custom(format!("{number} is out of range")))
}

/// A user's decision about an operation that waits (agent-spaces-protocol, "User Provides Approval Decision"). It
/// counts only if it comes from the user: a decision in a reply is the agent's.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// The ID of the operation. None means the only operation that waits.
    pub operation_id: Option<String>,
    pub decision: Decision,
    pub reason: Option<String>,
}

/// The possible decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Decision {
    /// The operation is carried out.
    Approved,
    /// The operation is not carried out, and a `policyDenied` event reports this.
    Denied,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_six_operations_each_with_its_name() {
        let names = OPERATION_TYPES.map(|(name, _)| name);
        assert_eq!(names, ["message", "createFile", "readFile", "editFile", "deleteFile", "shell"]);
    }

    #[test]
    fn numbers_out_of_range_are_no_values() {
        let read = |number: &str| {
            let text = format!(r#"{{"type": "shell", "command": "ls", "timeout": {number}}}"#);
            serde_json::from_str::<SentOperation>(&text)
        };
        for (text, kept) in [("1000", 1000), ("3e4", 30_000), ("2.0", 2)] {
            let SentOperation::Shell { timeout, .. } = read(text).unwrap() else { panic!() };
            assert_eq!(timeout, Some(kept));
        }
        for text in ["-1", "1.5", "4294967296", "1e99", "null"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
