//! The values of the dialect: the six operations that an agent sends ("Operation Types"), the ten
//! events that answer them ("Event Types", "Error Response Format"), and the messages around both.
//!
//! Empty optional fields are left out, never sent as null. Deserializing does not validate: the parse
//! functions of the parent module do.
#![expect(missing_docs, reason = "the specification explains the fields, by these names")]

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::{Map, Number, Value};

use super::{Encoding, UtcTime};
use crate::protocol::Kind;

/// What an agent sends (agent-spaces-protocol, "Operations Message"). There is only version 1.0 of the protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "protocolVersion", rename = "1.0")]
pub struct OperationsMessage {
    pub operations: Vec<Operation>,
}

/// The types of operations, in the order of the specification.
pub const OPERATION_TYPES: [(&str, Kind); 6] = [
    ("message", Kind::Message),
    ("createFile", Kind::Create),
    ("readFile", Kind::Read),
    ("editFile", Kind::Edit),
    ("deleteFile", Kind::Delete),
    ("shell", Kind::Run),
];

/// One request of an agent. There are exactly these six, and no extensions (agent-spaces-protocol,
/// "Operation Types"). `id` is the correlation ID that the event repeats.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum Operation {
    /// Shows the user a text of at most 100,000 UTF-16 units.
    Message {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        content: String,
    },
    /// Creates a file and its parent directories. `content` is at most 10 MiB once decoded.
    CreateFile {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        path: String,
        content: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        encoding: Option<Encoding>,
        #[serde(skip_serializing_if = "Option::is_none")]
        overwrite: Option<bool>,
    },
    /// Returns the content of a file.
    ReadFile {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        path: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        encoding: Option<Encoding>,
    },
    /// Replaces parts of a file. The edits are applied in order, all of them or none.
    EditFile {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        path: String,
        edits: Vec<FileEdit>,
    },
    /// Deletes a file, never a directory.
    DeleteFile {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        path: String,
    },
    /// Runs a command of at most 4,096 UTF-16 units. `timeout` is in milliseconds, 1,000 to 3,600,000.
    Shell {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        command: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        cwd: Option<String>,
        #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
        timeout: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        env: Option<BTreeMap<String, String>>,
    },
}

/// A literal replacement of the first occurrence of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileEdit {
    pub old_content: String,
    pub new_content: String,
}

/// What answers an operations message (agent-spaces-protocol, "Events Message"). deaddrop's run IDs are
/// `run_` and letters, digits, `-` and `_`; the protocol allows any text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "protocolVersion", rename = "1.0")]
pub struct EventsMessage {
    pub run_id: String,
    pub status: Status,
    pub events: Vec<Event>,
}

/// How far a run came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Every operation was tried.
    Completed,
    /// It continues once the user has decided.
    AwaitingApproval,
    /// It was rejected as a whole, halted by the system, or has operations beyond the limit.
    Error,
}

/// The types of events: what the user said, the results of the six operations, and what else may come of one. `Error`
/// is a failure for which there is no other event.
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

/// What happened to an operation, or what the user said. Its type decides which of the fields it has; see the schema.
/// Beside a success, `error` is a warning.
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
    /// A policy blocks it.
    Policy,
    /// It was tried and failed.
    Execution,
    /// It took too long.
    Timeout,
    /// The machine fails it: no disk, no sandbox.
    System,
}

/// Reads a whole number however it is written: `30000`, `30000.0` or `3e4`.
fn whole<'de, D: Deserializer<'de>, T: TryFrom<i64>>(from: D) -> Result<Option<T>, D::Error> {
    let number = Number::deserialize(from)?;
    #[expect(clippy::cast_possible_truncation, reason = "whole, and within bounds below 2^53")]
    let float = || number.as_f64().filter(|float| float.fract() == 0.0).map(|float| float as i64);
    let whole = number.as_i64().or_else(float).and_then(|whole| T::try_from(whole).ok());
    whole.map(Some).ok_or_else(|| de::Error::custom(format!("{number} is out of range")))
}

/// What a user decides about an operation that waits (agent-spaces-protocol, "User Provides Approval
/// Decision"). It counts only if it comes from the user: one in a reply is the agent's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// The operation; None means the only one that waits.
    pub operation_id: Option<String>,
    pub decision: Decision,
    pub reason: Option<String>,
}

/// What a user can decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The operation is carried out.
    Approved,
    /// It is not, and a `policyDenied` event says so.
    Denied,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn empty_fields_are_left_out() {
        let command = "ls".into();
        let shell = Operation::Shell { id: None, command, cwd: None, timeout: None, env: None };
        let printed = serde_json::to_value(shell).unwrap();
        assert_eq!(printed, json!({"type": "shell", "command": "ls"}));
        let create = Operation::CreateFile {
            id: Some("f".into()),
            path: "a".into(),
            content: String::new(),
            encoding: Some(Encoding::Utf8),
            overwrite: Some(false),
        };
        assert_eq!(
            serde_json::to_value(create).unwrap(),
            json!({"type": "createFile", "id": "f", "path": "a", "content": "",
                   "encoding": "utf-8", "overwrite": false})
        );
    }

    #[test]
    fn there_are_six_operations_each_with_its_name() {
        let names = OPERATION_TYPES.map(|(name, _)| name);
        assert_eq!(names, ["message", "createFile", "readFile", "editFile", "deleteFile", "shell"]);
    }

    #[test]
    fn numbers_out_of_range_are_no_values() {
        let read = |number: &str| {
            let text = format!(r#"{{"type": "shell", "command": "ls", "timeout": {number}}}"#);
            serde_json::from_str::<Operation>(&text)
        };
        for (text, kept) in [("1000", 1000), ("3e4", 30_000), ("2.0", 2)] {
            let Operation::Shell { timeout, .. } = read(text).unwrap() else { panic!() };
            assert_eq!(timeout, Some(kept));
        }
        for text in ["-1", "1.5", "4294967296", "1e99", "null"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
