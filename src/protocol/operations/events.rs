//! What an agent is told: the events and the message that holds them ("Event Types").

use serde::Serialize;
use serde_json::{Map, Value};

use super::{Encoding, Faults, UtcTime, Version};

/// What an agent is told of a run (agent-spaces-protocol, "Events Message").
///
/// Reading one through serde validates it, as [`validate_events_message`] does.
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
///
/// [`validate_events_message`]: super::validate_events_message
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventsMessage {
    /// Always `"1.0"`.
    pub protocol_version: Version,
    /// Which run it tells of. deaddrop's own are [`RunId`]s; the protocol takes any text.
    pub run_id: String,
    /// Where the run stands.
    pub status: Status,
    /// What came of the operations, in their order.
    pub events: Vec<Event>,
}

impl EventsMessage {
    /// What is told of the run of that id.
    pub fn new(run_id: &RunId, status: Status, events: Vec<Event>) -> Self {
        let run_id = run_id.as_str().to_owned();
        Self { protocol_version: Version, run_id, status, events }
    }
}

/// The name of a run: `run_` and up to 64 letters, digits, `-` and `_`, so that it can be typed and
/// be part of a file's name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RunId(String);

impl RunId {
    /// `run_` before something that no other run has.
    pub fn new(unique: &str) -> Option<Self> {
        Self::parse(&format!("run_{unique}"))
    }

    /// Reads an id as a person or a file gives it.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix("run_")?;
        let fits = (1..=64).contains(&rest.len())
            && rest.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
        fits.then(|| Self(text.to_owned()))
    }

    /// The id, with its `run_`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// All operations were tried.
    Completed,
    /// It goes on once the user has decided.
    AwaitingApproval,
    /// It was refused as a whole, or halted by a failure of the system.
    Error,
}

/// What came of an operation, or was said by the user: the nine types of "Event Types", and the
/// `error` of "Error Response Format".
///
/// Reading one through serde validates it, as [`validate_event`](super::validate_event) does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum Event {
    /// The user said something.
    UserMessage(UserMessageEvent),
    /// A message was shown.
    Message(MessageEvent),
    /// What came of `createFile`.
    CreateFile(CreateFileEvent),
    /// What came of `readFile`.
    ReadFile(ReadFileEvent),
    /// What came of `editFile`.
    EditFile(EditFileEvent),
    /// What came of `deleteFile`.
    DeleteFile(DeleteFileEvent),
    /// What came of `shell`.
    Shell(ShellEvent),
    /// The run waits for the user to approve an operation.
    ApprovalRequired(ApprovalRequiredEvent),
    /// A policy, or the user, denied an operation.
    PolicyDenied(PolicyDeniedEvent),
    /// Something failed that is told in no other event.
    Error(ErrorEvent),
}

/// `userMessage`: what the user said, first or later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UserMessageEvent {
    /// When.
    pub timestamp: UtcTime,
    /// What.
    pub content: String,
}

/// `message`: the acknowledgment of a message. It always says `success: true`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageEvent {
    /// Which operation, where it has an id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<String>,
    /// When.
    pub timestamp: UtcTime,
    /// Always `true`.
    pub success: Succeeded,
}

/// The value `true`: what cannot fail has succeeded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Succeeded;

impl Serialize for Succeeded {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(true)
    }
}

/// `createFile`: what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateFileEvent {
    /// Which operation, where it has an id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<String>,
    /// When.
    pub timestamp: UtcTime,
    /// The path as the operation has it.
    pub path: String,
    /// Whether the file was made.
    pub success: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How long the file is, if it was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_written: Option<u64>,
}

/// `readFile`: what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadFileEvent {
    /// Which operation, where it has an id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<String>,
    /// When.
    pub timestamp: UtcTime,
    /// The path as the operation has it.
    pub path: String,
    /// Whether it was read.
    pub success: bool,
    /// The content in `encoding`, if it was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// How `content` is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<Encoding>,
    /// How long the file is, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Why it was not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// `editFile`: what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EditFileEvent {
    /// Which operation, where it has an id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<String>,
    /// When.
    pub timestamp: UtcTime,
    /// The path as the operation has it.
    pub path: String,
    /// Whether all edits were applied.
    pub success: bool,
    /// How many were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edits_applied: Option<u64>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// `deleteFile`: what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeleteFileEvent {
    /// Which operation, where it has an id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<String>,
    /// When.
    pub timestamp: UtcTime,
    /// The path as the operation has it.
    pub path: String,
    /// Whether it was removed.
    pub success: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// `shell`: what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShellEvent {
    /// Which operation, where it has an id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<String>,
    /// When.
    pub timestamp: UtcTime,
    /// The command as the operation has it.
    pub command: String,
    /// Whether it ran and ended well.
    pub success: bool,
    /// What it ended with; 124 where its time was over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    /// What it wrote to its standard output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdout: Option<String>,
    /// What it wrote to its standard error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
    /// How long it took, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// A failure of the system, not of the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// True where its time was over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timed_out: Option<bool>,
}

/// `approvalRequired`: the run waits for the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalRequiredEvent {
    /// When.
    pub timestamp: UtcTime,
    /// Which operation: here it always has an id.
    pub operation_id: String,
    /// Which of the six it is, by its [`name`](super::OperationType::name).
    pub operation_type: String,
    /// Why it has to be approved.
    pub reason: String,
    /// What it is about.
    pub details: ApprovalDetails,
}

/// What an operation that has to be approved is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalDetails {
    /// The command, of `shell`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The path, of operations on files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Which policy asks, such as `shell.approvalRequired`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
}

/// `policyDenied`: an operation was not tried, for a policy or the user denied it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyDeniedEvent {
    /// Which operation, where it has an id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<String>,
    /// When.
    pub timestamp: UtcTime,
    /// Which of the six it is, by its [`name`](super::OperationType::name).
    pub operation_type: String,
    /// Why it was denied.
    pub reason: String,
    /// What to do instead, if there is something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

/// `error`: a failure that is told in no other event (agent-spaces-protocol, "Error Response
/// Format").
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorEvent {
    /// Which operation, where there is one and it has an id.
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

impl ErrorEvent {
    /// What is told of a malformed operation, which is skipped, or of a message that is refused as
    /// a whole: each fault on its line.
    pub fn validation(operation_id: Option<String>, timestamp: UtcTime, faults: &Faults) -> Self {
        let category = ErrorCategory::Validation;
        Self { operation_id, timestamp, category, message: faults.to_string(), details: None }
    }
}

/// The kinds of failure (agent-spaces-protocol, "Error Categories").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ErrorCategory {
    /// The operation is malformed.
    Validation,
    /// A policy blocks it.
    Policy,
    /// It was tried and failed.
    Execution,
    /// It took longer than it may.
    Timeout,
    /// The machine fails it: no disk, no sandbox.
    System,
}

impl Event {
    /// Whether the operation succeeded, in events that say so.
    pub fn success(&self) -> Option<bool> {
        match self {
            Self::Message(_) => Some(true),
            Self::CreateFile(event) => Some(event.success),
            Self::ReadFile(event) => Some(event.success),
            Self::EditFile(event) => Some(event.success),
            Self::DeleteFile(event) => Some(event.success),
            Self::Shell(event) => Some(event.success),
            Self::UserMessage(_)
            | Self::ApprovalRequired(_)
            | Self::PolicyDenied(_)
            | Self::Error(_) => None,
        }
    }
}
