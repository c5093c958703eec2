//! The values of the dialect: the six operations that an agent sends ("Operation Types"), the ten
//! events that answer them ("Event Types", "Error Response Format"), and the messages around both.
//!
//! Empty optional fields are left out, never sent as null. Deserializing does not validate: the parse
//! functions of the parent module do.
#![expect(missing_docs, reason = "the specification explains the fields, by these names")]

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Number, Value};

use super::{Encoding, UtcTime};
use crate::protocol::Kind;

/// The version of the protocol that every message names. There is only `1.0` (agent-spaces-protocol,
/// "Protocol Version").
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Version;

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("1.0")
    }
}

/// What an agent sends (agent-spaces-protocol, "Operations Message").
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OperationsMessage {
    pub protocol_version: Version,
    pub operations: Vec<Operation>,
}

impl OperationsMessage {
    /// Creates a message of these operations.
    pub fn new(operations: Vec<Operation>) -> Self {
        Self { protocol_version: Version, operations }
    }
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
#[serde(rename_all = "camelCase")]
pub struct EventsMessage {
    #[serde(skip_deserializing)]
    pub protocol_version: Version,
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

/// What happened to an operation, or what the user said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Event {
    /// The user said something.
    UserMessage { timestamp: UtcTime, content: String },
    /// A message was shown.
    Message(MessageEvent),
    /// The result of `createFile`.
    CreateFile {
        #[serde(flatten)]
        file: FileEvent,
        #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
        bytes_written: Option<u64>,
    },
    /// The result of `readFile`: `content` in `encoding`, and the size of the file in bytes.
    ReadFile {
        #[serde(flatten)]
        file: FileEvent,
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        encoding: Option<Encoding>,
        #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
        size: Option<u64>,
    },
    /// The result of `editFile`.
    EditFile {
        #[serde(flatten)]
        file: FileEvent,
        #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
        edits_applied: Option<u64>,
    },
    /// The result of `deleteFile`.
    DeleteFile(FileEvent),
    /// The result of `shell`.
    Shell(ShellEvent),
    /// The run waits for the user to approve an operation. `operation_id` is its own ID or a generated
    /// one.
    ApprovalRequired {
        timestamp: UtcTime,
        operation_id: String,
        operation_type: String,
        reason: String,
        details: ApprovalDetails,
    },
    /// The policy or the user denied an operation.
    PolicyDenied(PolicyDeniedEvent),
    /// A failure for which there is no other event.
    Error(ErrorEvent),
}

/// `message`: a message was shown, so `success` is always true.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageEvent {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<String>,
    pub timestamp: UtcTime,
    pub success: bool,
}

/// What the events of file operations have in common. Beside a success, `error` is a warning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileEvent {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<String>,
    pub timestamp: UtcTime,
    pub path: String,
    pub success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// `shell`: its result. `error` is what the system, not the command, reports; beside a success, a warning.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShellEvent {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<String>,
    pub timestamp: UtcTime,
    pub command: String,
    pub success: bool,
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
}

/// What an operation that needs approval is about, and the policy that asks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalDetails {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
}

/// `policyDenied`: an operation was not tried, since the policy or the user denied it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyDeniedEvent {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<String>,
    pub timestamp: UtcTime,
    pub operation_type: String,
    pub reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

/// `error`: a failure for which there is no other event (agent-spaces-protocol, "Error Response
/// Format").
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorEvent {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<String>,
    pub timestamp: UtcTime,
    pub category: ErrorCategory,
    pub message: String,
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

impl Event {
    /// Returns whether the operation succeeded, for events that have `success`.
    pub fn success(&self) -> Option<bool> {
        match self {
            Self::Message(event) => Some(event.success),
            Self::CreateFile { file, .. }
            | Self::ReadFile { file, .. }
            | Self::EditFile { file, .. }
            | Self::DeleteFile(file) => Some(file.success),
            Self::Shell(event) => Some(event.success),
            Self::UserMessage { .. }
            | Self::ApprovalRequired { .. }
            | Self::PolicyDenied(_)
            | Self::Error(_) => None,
        }
    }
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
