//! The values of the dialect: the six operations that an agent sends ("Operation Types"), the ten
//! events that answer them ("Event Types", "Error Response Format"), and the messages around both.
//!
//! Optional fields are left out when they are empty, never sent as null. Deserializing the payload structs
//! does not validate them; the parse and validate functions of the parent module do.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Number, Value};

use super::{Encoding, UtcTime};

/// The version of the protocol that every message names. There is only `1.0` (agent-spaces-protocol,
/// "Protocol Version").
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Version;

impl Version {
    /// The version as messages write it.
    pub const TEXT: &str = "1.0";
}

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(Self::TEXT)
    }
}

/// What an agent sends (agent-spaces-protocol, "Operations Message").
///
/// # Examples
/// ```
/// use deaddrop::protocol::operations::{MessageOperation, Operation, OperationsMessage};
/// let hello = MessageOperation { id: None, content: "Hello".into() };
/// let message = OperationsMessage::new(vec![Operation::Message(hello)]);
/// assert_eq!(
///     serde_json::to_string(&message).unwrap(),
///     r#"{"protocolVersion":"1.0","operations":[{"type":"message","content":"Hello"}]}"#
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OperationsMessage {
    /// Always `"1.0"`.
    pub protocol_version: Version,
    /// What to do, in this order.
    pub operations: Vec<Operation>,
}

impl OperationsMessage {
    /// Creates a message of these operations.
    pub fn new(operations: Vec<Operation>) -> Self {
        Self { protocol_version: Version, operations }
    }
}

/// One request of an agent. There are exactly these six, and no extensions (agent-spaces-protocol,
/// "Operation Types").
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum Operation {
    /// Shows the user a text.
    Message(MessageOperation),
    /// Creates a file and its parent directories.
    CreateFile(CreateFileOperation),
    /// Returns the content of a file.
    ReadFile(ReadFileOperation),
    /// Replaces parts of a file.
    EditFile(EditFileOperation),
    /// Deletes a file.
    DeleteFile(DeleteFileOperation),
    /// Runs a shell command.
    Shell(ShellOperation),
}

/// `message`: shows the user a text and has no side effects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageOperation {
    /// The correlation ID that the event repeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The text, at most 100,000 UTF-16 units.
    pub content: String,
}

/// `createFile`: creates a file and its parent directories.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateFileOperation {
    /// The correlation ID that the event repeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The path, see [`is_valid_path`](super::is_valid_path).
    pub path: String,
    /// The whole content in `encoding`, at most 10 MiB once decoded.
    pub content: String,
    /// How `content` is encoded; the default is UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<Encoding>,
    /// Whether an existing file is replaced; by default the operation fails then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overwrite: Option<bool>,
}

/// `readFile`: returns the content of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadFileOperation {
    /// The correlation ID that the event repeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The path, see [`is_valid_path`](super::is_valid_path).
    pub path: String,
    /// How the event encodes the content; the default is UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<Encoding>,
}

/// `editFile`: replaces parts of a file. The edits are applied in order, all of them or none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditFileOperation {
    /// The correlation ID that the event repeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The path, see [`is_valid_path`](super::is_valid_path).
    pub path: String,
    /// The replacements.
    pub edits: Vec<FileEdit>,
}

/// A literal replacement of the first occurrence of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileEdit {
    /// The text to find; the edit fails if the file does not contain it.
    pub old_content: String,
    /// The text that replaces it.
    pub new_content: String,
}

/// `deleteFile`: deletes a file, never a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeleteFileOperation {
    /// The correlation ID that the event repeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The path, see [`is_valid_path`](super::is_valid_path).
    pub path: String,
}

/// `shell`: runs a shell command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellOperation {
    /// The correlation ID that the event repeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The command line, at most 4,096 UTF-16 units.
    pub command: String,
    /// The working directory, a path like those of files; the default is the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The timeout in milliseconds, 1,000 to 3,600,000; the default is 30,000.
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u32>,
    /// Additional environment variables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<BTreeMap<String, String>>,
}

impl Operation {
    /// Returns its type.
    pub fn kind(&self) -> OperationType {
        match self {
            Self::Message(_) => OperationType::Message,
            Self::CreateFile(_) => OperationType::CreateFile,
            Self::ReadFile(_) => OperationType::ReadFile,
            Self::EditFile(_) => OperationType::EditFile,
            Self::DeleteFile(_) => OperationType::DeleteFile,
            Self::Shell(_) => OperationType::Shell,
        }
    }

    /// Returns the correlation ID that the agent chose, if any.
    pub fn id(&self) -> Option<&str> {
        match self {
            Self::Message(MessageOperation { id, .. })
            | Self::CreateFile(CreateFileOperation { id, .. })
            | Self::ReadFile(ReadFileOperation { id, .. })
            | Self::EditFile(EditFileOperation { id, .. })
            | Self::DeleteFile(DeleteFileOperation { id, .. })
            | Self::Shell(ShellOperation { id, .. }) => id.as_deref(),
        }
    }

    /// Returns the path or the command as it was sent; empty for a message.
    pub(in crate::protocol) fn subject(&self) -> &str {
        match self {
            Self::Message(_) => "",
            Self::CreateFile(CreateFileOperation { path, .. })
            | Self::ReadFile(ReadFileOperation { path, .. })
            | Self::EditFile(EditFileOperation { path, .. })
            | Self::DeleteFile(DeleteFileOperation { path, .. }) => path,
            Self::Shell(ShellOperation { command, .. }) => command,
        }
    }
}

/// The type of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OperationType {
    /// `message`
    Message,
    /// `createFile`
    CreateFile,
    /// `readFile`
    ReadFile,
    /// `editFile`
    EditFile,
    /// `deleteFile`
    DeleteFile,
    /// `shell`
    Shell,
}

impl OperationType {
    /// All six, in the order of the specification.
    pub const ALL: [Self; 6] = [
        Self::Message,
        Self::CreateFile,
        Self::ReadFile,
        Self::EditFile,
        Self::DeleteFile,
        Self::Shell,
    ];

    /// Returns its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::CreateFile => "createFile",
            Self::ReadFile => "readFile",
            Self::EditFile => "editFile",
            Self::DeleteFile => "deleteFile",
            Self::Shell => "shell",
        }
    }

    /// Returns the type of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for OperationType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What answers an operations message (agent-spaces-protocol, "Events Message").
///
/// # Examples
/// ```
/// use deaddrop::protocol::operations::{EventsMessage, RunId, Status};
/// let id = RunId::new("abc123").unwrap();
/// let message = EventsMessage::new(&id, Status::Completed, vec![]);
/// assert_eq!(
///     serde_json::to_string(&message).unwrap(),
///     r#"{"protocolVersion":"1.0","runId":"run_abc123","status":"completed","events":[]}"#
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventsMessage {
    /// Always `"1.0"`.
    pub protocol_version: Version,
    /// The run. deaddrop's own IDs are [`RunId`]s; the protocol allows any text.
    pub run_id: String,
    /// How far the run came.
    pub status: Status,
    /// The events, in the order of the operations.
    pub events: Vec<Event>,
}

impl EventsMessage {
    /// Creates the message of that run.
    pub fn new(run_id: &RunId, status: Status, events: Vec<Event>) -> Self {
        let run_id = run_id.as_str().to_owned();
        Self { protocol_version: Version, run_id, status, events }
    }
}

/// The ID of a run: `run_` and up to 64 letters, digits, `-` and `_`, so that it can be typed and be
/// part of a file name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RunId(String);

impl RunId {
    /// Puts `run_` before a unique text.
    pub fn new(unique: &str) -> Option<Self> {
        Self::parse(&format!("run_{unique}"))
    }

    /// Parses an ID that a person or a file gives.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix("run_")?;
        let fits = (1..=64).contains(&rest.len())
            && rest.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
        fits.then(|| Self(text.to_owned()))
    }

    /// Returns the ID, with its `run_`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum Event {
    /// The user said something.
    UserMessage(UserMessageEvent),
    /// A message was shown.
    Message(MessageEvent),
    /// The result of `createFile`.
    CreateFile(FileEvent),
    /// The result of `readFile`.
    ReadFile(FileEvent),
    /// The result of `editFile`.
    EditFile(FileEvent),
    /// The result of `deleteFile`.
    DeleteFile(FileEvent),
    /// The result of `shell`.
    Shell(ShellEvent),
    /// The run waits for the user to approve an operation.
    ApprovalRequired(ApprovalRequiredEvent),
    /// The policy or the user denied an operation.
    PolicyDenied(PolicyDeniedEvent),
    /// A failure for which there is no other event.
    Error(ErrorEvent),
}

/// `userMessage`: what the user said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserMessageEvent {
    /// When.
    pub timestamp: UtcTime,
    /// The text.
    pub content: String,
}

/// `message`: a message was shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageEvent {
    /// The ID of the operation, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<String>,
    /// When.
    pub timestamp: UtcTime,
    /// Always `true`.
    pub success: bool,
}

/// The result of `createFile`, `readFile`, `editFile` or `deleteFile`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileEvent {
    /// The ID of the operation, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<String>,
    /// When.
    pub timestamp: UtcTime,
    /// The path of the operation.
    pub path: String,
    /// Whether the operation succeeded.
    pub success: bool,
    /// `readFile`: the content in `encoding`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// `readFile`: how `content` is encoded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<Encoding>,
    /// `readFile`: the size of the file in bytes.
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// `createFile`: the size of the file in bytes.
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    pub bytes_written: Option<u64>,
    /// `editFile`: how many edits were applied.
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    pub edits_applied: Option<u64>,
    /// Why it failed; beside a success, a warning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// `shell`: its result.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShellEvent {
    /// The ID of the operation, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<String>,
    /// When.
    pub timestamp: UtcTime,
    /// The command of the operation.
    pub command: String,
    /// Whether it exited with code 0.
    pub success: bool,
    /// Its exit code; 124 after a timeout.
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    /// Its standard output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdout: Option<String>,
    /// Its standard error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
    /// How long it took, in milliseconds.
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// What the system, not the command, has to say; beside a success, a warning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// True if it took too long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timed_out: Option<bool>,
}

/// `approvalRequired`: the run waits for the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalRequiredEvent {
    /// When.
    pub timestamp: UtcTime,
    /// The ID of the operation, its own or a generated one.
    pub operation_id: String,
    /// The [`name`](OperationType::name) of its type.
    pub operation_type: String,
    /// Why it needs approval.
    pub reason: String,
    /// What it is about.
    pub details: ApprovalDetails,
}

/// What an operation that needs approval is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalDetails {
    /// The command of `shell`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The path of file operations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The policy that asks, such as `shell.approvalRequired`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
}

/// `policyDenied`: an operation was not tried, since the policy or the user denied it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyDeniedEvent {
    /// The ID of the operation, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<String>,
    /// When.
    pub timestamp: UtcTime,
    /// The [`name`](OperationType::name) of its type.
    pub operation_type: String,
    /// Why it was denied.
    pub reason: String,
    /// What to do instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

/// `error`: a failure for which there is no other event (agent-spaces-protocol, "Error Response
/// Format").
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorEvent {
    /// The ID of the operation, if there is one and it has an ID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<String>,
    /// When.
    pub timestamp: UtcTime,
    /// What kind of failure.
    pub category: ErrorCategory,
    /// What failed.
    pub message: String,
    /// More about it.
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
            Self::CreateFile(event)
            | Self::ReadFile(event)
            | Self::EditFile(event)
            | Self::DeleteFile(event) => Some(event.success),
            Self::Shell(event) => Some(event.success),
            Self::UserMessage(_)
            | Self::ApprovalRequired(_)
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn empty_fields_are_left_out() {
        let shell =
            ShellOperation { id: None, command: "ls".into(), cwd: None, timeout: None, env: None };
        let printed = serde_json::to_value(Operation::Shell(shell)).unwrap();
        assert_eq!(printed, json!({"type": "shell", "command": "ls"}));
        let create = CreateFileOperation {
            id: Some("f".into()),
            path: "a".into(),
            content: String::new(),
            encoding: Some(Encoding::Utf8),
            overwrite: Some(false),
        };
        let operation = Operation::CreateFile(create);
        assert_eq!((operation.id(), operation.kind()), (Some("f"), OperationType::CreateFile));
        assert_eq!(
            serde_json::to_value(operation).unwrap(),
            json!({"type": "createFile", "id": "f", "path": "a", "content": "",
                   "encoding": "utf-8", "overwrite": false})
        );
    }

    #[test]
    fn there_are_six_operations_each_with_its_name() {
        let names = OperationType::ALL.map(OperationType::name);
        assert_eq!(names, ["message", "createFile", "readFile", "editFile", "deleteFile", "shell"]);
        for kind in OperationType::ALL {
            assert_eq!(OperationType::named(kind.name()), Some(kind));
            assert_eq!(kind.to_string(), kind.name());
        }
        assert_eq!(OperationType::named("Shell"), None);
    }

    #[test]
    fn numbers_out_of_range_are_no_values() {
        for (text, kept) in [("1000", Some(1000)), ("3e4", Some(30_000)), ("2.0", Some(2))] {
            let text = format!(r#"{{"command": "ls", "timeout": {text}}}"#);
            assert_eq!(serde_json::from_str::<ShellOperation>(&text).unwrap().timeout, kept);
        }
        for text in ["-1", "1.5", "4294967296", "1e99", "null"] {
            let text = format!(r#"{{"command": "ls", "timeout": {text}}}"#);
            assert!(serde_json::from_str::<ShellOperation>(&text).is_err(), "{text}");
        }
    }
}
