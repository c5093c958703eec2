//! Whether events are as they should be ("Event Types"). Every fault is told, not the first alone.

use serde_json::Value;

use super::check::{encoding, version};
use super::fault::{At, Faults, brief};
use super::fields::{Fields, LARGEST, Read, boolean, counted, owned, text, whole, wrong};
use super::{
    ApprovalDetails, ApprovalRequiredEvent, CreateFileEvent, DeleteFileEvent, EditFileEvent,
    Encoding, ErrorCategory, ErrorEvent, Event, EventsMessage, MessageEvent, PolicyDeniedEvent,
    ReadFileEvent, ShellEvent, Status, Succeeded, UserMessageEvent, UtcTime, Version,
};

pub(super) const MESSAGE: &str =
    r#"{"protocolVersion": "1.0", "runId": "run_abc123", "status": "completed", "events": []}"#;
const EVENTS: &str =
    r#""events": [{"type": "message", "timestamp": "2025-01-15T10:30:00Z", "success": true}]"#;
pub(super) const EVENT: &str = r#"an object such as {"type": "message", "timestamp": "2025-01-15T10:30:00Z", "success": true}"#;
const TYPE: &str = r#""type": one of "userMessage", "message", "createFile", "readFile", "editFile", "deleteFile", "shell", "approvalRequired", "policyDenied" and "error""#;
const STATUS: &str = r#""status": one of "completed", "awaiting_approval" and "error""#;
const TIMESTAMP: &str = r#""timestamp": "2025-01-15T10:30:00Z" (in UTC, ending in Z)"#;
const CATEGORY: &str =
    r#""category": one of "validation", "policy", "execution", "timeout" and "system""#;
const TEXT: &str = "a text";
const OPTIONAL_TEXT: &str = "a text, or left out";
const SUCCESS: &str = r#""success": true or false (without quotes)"#;
const SUCCEEDED: &str = r#""success": true (without quotes)"#;
const COUNT: &str = "a whole number from 0, or left out";
const EXIT_CODE: &str = r#""exitCode": 0 (a whole number), or left out"#;
const TIMED_OUT: &str = r#""timedOut": true or false (without quotes), or left out"#;
const ENCODING: &str = r#""encoding": "utf-8" or "base64", or left out"#;
const IN_BASE64: &str = r#""content": "aGVsbG8=" (standard base64, padded with `=`)"#;
const DETAILS: &str =
    r#""details": {"command": "…", "path": "…", "policy": "…"}, each of them a text or left out"#;
const OBJECT: &str = "an object, or left out";

/// Validates an event (agent-spaces-protocol, "Event Types" and "Error Response Format"): the
/// event, or everything that is wrong with it. What the interfaces mark with `?` may be left out,
/// but not be null; fields that they do not name are ignored.
///
/// # Examples
/// ```
/// use deaddrop::protocol::operations::validate_event;
/// use serde_json::json;
/// let event = json!({
///     "type": "editFile", "timestamp": "2025-01-15T10:30:00Z", "path": "a", "success": true,
///     "editsApplied": 2,
/// });
/// assert_eq!(validate_event(&event).unwrap().success(), Some(true));
/// let faults = validate_event(&json!({"type": "userMessage", "content": "Hi"})).unwrap_err();
/// assert!(faults.to_string().starts_with("$.timestamp: it is missing. Correct form: "));
/// ```
pub fn validate_event(input: &Value) -> Result<Event, Faults> {
    let mut faults = Faults::default();
    let event = event(input, &At::Root, &mut faults);
    faults.or(event)
}

/// Validates a whole message (agent-spaces-protocol, "Events Message"): the message, or everything
/// that is wrong with it and its events.
///
/// # Examples
/// ```
/// use deaddrop::protocol::operations::{Status, validate_events_message};
/// use serde_json::json;
/// let message = json!({
///     "protocolVersion": "1.0", "runId": "run_abc123", "status": "completed", "events": [],
/// });
/// assert_eq!(validate_events_message(&message).unwrap().status, Status::Completed);
/// let faults = validate_events_message(&json!({"protocolVersion": "1.0"})).unwrap_err();
/// assert_eq!(faults.count(), 3);
/// ```
pub fn validate_events_message(input: &Value) -> Result<EventsMessage, Faults> {
    let mut faults = Faults::default();
    let message = Fields::of(input, &At::Root, &mut faults, MESSAGE).and_then(|mut fields| {
        let version = fields.required("protocolVersion", Version::FORM, version);
        let run_id = fields.required("runId", r#""runId": "run_abc123""#, owned);
        let status = fields.required("status", STATUS, status);
        let events = fields.list("events", EVENTS, event);
        Some(EventsMessage {
            protocol_version: version?,
            run_id: run_id?,
            status: status?,
            events: events?,
        })
    });
    faults.or(message)
}

/// Reads an event, which is one only where no fault was noted.
fn event(value: &Value, at: &At, faults: &mut Faults) -> Option<Event> {
    let fields = &mut Fields::of(value, at, faults, EVENT)?;
    let kind = fields.required("type", TYPE, text);
    let timestamp = fields.required("timestamp", TIMESTAMP, time);
    match kind? {
        "userMessage" => user_message(fields, timestamp).map(Event::UserMessage),
        "message" => message(fields, timestamp).map(Event::Message),
        "createFile" => create_file(fields, timestamp).map(Event::CreateFile),
        "readFile" => read_file(fields, timestamp).map(Event::ReadFile),
        "editFile" => edit_file(fields, timestamp).map(Event::EditFile),
        "deleteFile" => delete_file(fields, timestamp).map(Event::DeleteFile),
        "shell" => shell(fields, timestamp).map(Event::Shell),
        "approvalRequired" => approval_required(fields, timestamp).map(Event::ApprovalRequired),
        "policyDenied" => policy_denied(fields, timestamp).map(Event::PolicyDenied),
        "error" => error(fields, timestamp).map(Event::Error),
        other => {
            fields.fault("type", format!("there is no event \"{}\"", brief(other)), TYPE);
            None
        }
    }
}

// Each of these reads all fields before it gives up on one, so that every fault is told.

fn user_message(fields: &mut Fields, timestamp: Option<UtcTime>) -> Option<UserMessageEvent> {
    let content = fields.required("content", TEXT, owned);
    Some(UserMessageEvent { timestamp: timestamp?, content: content? })
}

fn message(fields: &mut Fields, timestamp: Option<UtcTime>) -> Option<MessageEvent> {
    let operation_id = optional_text(fields, "operationId");
    let success = fields.required("success", SUCCEEDED, |value| match value {
        Value::Bool(true) => Ok(Succeeded),
        other => Err(wrong(other, "true")),
    });
    Some(MessageEvent { operation_id, timestamp: timestamp?, success: success? })
}

fn create_file(fields: &mut Fields, timestamp: Option<UtcTime>) -> Option<CreateFileEvent> {
    let operation_id = optional_text(fields, "operationId");
    let path = fields.required("path", TEXT, owned);
    let success = fields.required("success", SUCCESS, boolean);
    let error = optional_text(fields, "error");
    let bytes_written = fields.optional("bytesWritten", COUNT, counted);
    Some(CreateFileEvent {
        operation_id,
        timestamp: timestamp?,
        path: path?,
        success: success?,
        error,
        bytes_written,
    })
}

fn read_file(fields: &mut Fields, timestamp: Option<UtcTime>) -> Option<ReadFileEvent> {
    let operation_id = optional_text(fields, "operationId");
    let path = fields.required("path", TEXT, owned);
    let success = fields.required("success", SUCCESS, boolean);
    let content = optional_text(fields, "content");
    let encoding = fields.optional("encoding", ENCODING, encoding);
    let size = fields.optional("size", COUNT, counted);
    let error = optional_text(fields, "error");
    if let (Some(Encoding::Base64), Some(Err(bad))) =
        (encoding, content.as_deref().map(|content| Encoding::Base64.decode(content)))
    {
        fields.fault("content", bad.to_string(), IN_BASE64);
    }
    Some(ReadFileEvent {
        operation_id,
        timestamp: timestamp?,
        path: path?,
        success: success?,
        content,
        encoding,
        size,
        error,
    })
}

fn edit_file(fields: &mut Fields, timestamp: Option<UtcTime>) -> Option<EditFileEvent> {
    let operation_id = optional_text(fields, "operationId");
    let path = fields.required("path", TEXT, owned);
    let success = fields.required("success", SUCCESS, boolean);
    let edits_applied = fields.optional("editsApplied", COUNT, counted);
    let error = optional_text(fields, "error");
    Some(EditFileEvent {
        operation_id,
        timestamp: timestamp?,
        path: path?,
        success: success?,
        edits_applied,
        error,
    })
}

fn delete_file(fields: &mut Fields, timestamp: Option<UtcTime>) -> Option<DeleteFileEvent> {
    let operation_id = optional_text(fields, "operationId");
    let path = fields.required("path", TEXT, owned);
    let success = fields.required("success", SUCCESS, boolean);
    let error = optional_text(fields, "error");
    Some(DeleteFileEvent {
        operation_id,
        timestamp: timestamp?,
        path: path?,
        success: success?,
        error,
    })
}

fn shell(fields: &mut Fields, timestamp: Option<UtcTime>) -> Option<ShellEvent> {
    let operation_id = optional_text(fields, "operationId");
    let command = fields.required("command", TEXT, owned);
    let success = fields.required("success", SUCCESS, boolean);
    let exit_code = fields.optional("exitCode", EXIT_CODE, whole(-LARGEST, LARGEST));
    let stdout = optional_text(fields, "stdout");
    let stderr = optional_text(fields, "stderr");
    let duration_ms = fields.optional("durationMs", COUNT, counted);
    let error = optional_text(fields, "error");
    let timed_out = fields.optional("timedOut", TIMED_OUT, boolean);
    Some(ShellEvent {
        operation_id,
        timestamp: timestamp?,
        command: command?,
        success: success?,
        exit_code,
        stdout,
        stderr,
        duration_ms,
        error,
        timed_out,
    })
}

fn approval_required(
    fields: &mut Fields,
    timestamp: Option<UtcTime>,
) -> Option<ApprovalRequiredEvent> {
    let operation_id = fields.required("operationId", TEXT, owned);
    let operation_type = fields.required("operationType", TEXT, owned);
    let reason = fields.required("reason", TEXT, owned);
    let details = fields.inner("details", DETAILS, |details| {
        let command = optional_text(details, "command");
        let path = optional_text(details, "path");
        let policy = optional_text(details, "policy");
        Some(ApprovalDetails { command, path, policy })
    });
    Some(ApprovalRequiredEvent {
        timestamp: timestamp?,
        operation_id: operation_id?,
        operation_type: operation_type?,
        reason: reason?,
        details: details?,
    })
}

fn policy_denied(fields: &mut Fields, timestamp: Option<UtcTime>) -> Option<PolicyDeniedEvent> {
    let operation_id = optional_text(fields, "operationId");
    let operation_type = fields.required("operationType", TEXT, owned);
    let reason = fields.required("reason", TEXT, owned);
    let suggestion = optional_text(fields, "suggestion");
    Some(PolicyDeniedEvent {
        operation_id,
        timestamp: timestamp?,
        operation_type: operation_type?,
        reason: reason?,
        suggestion,
    })
}

fn error(fields: &mut Fields, timestamp: Option<UtcTime>) -> Option<ErrorEvent> {
    let operation_id = optional_text(fields, "operationId");
    let category = fields.required("category", CATEGORY, category);
    let message = fields.required("message", TEXT, owned);
    let details = fields.optional("details", OBJECT, |value| {
        value.as_object().cloned().ok_or_else(|| wrong(value, "an object"))
    });
    Some(ErrorEvent {
        operation_id,
        timestamp: timestamp?,
        category: category?,
        message: message?,
        details,
    })
}

fn optional_text(fields: &mut Fields, key: &str) -> Option<String> {
    fields.optional(key, OPTIONAL_TEXT, owned)
}

fn time(value: &Value) -> Read<UtcTime> {
    let time = text(value)?;
    UtcTime::parse(time).ok_or_else(|| format!("\"{}\" is no time in UTC", brief(time)))
}

fn status(value: &Value) -> Read<Status> {
    match text(value)? {
        "completed" => Ok(Status::Completed),
        "awaiting_approval" => Ok(Status::AwaitingApproval),
        "error" => Ok(Status::Error),
        other => Err(format!("there is no status \"{}\"", brief(other))),
    }
}

fn category(value: &Value) -> Read<ErrorCategory> {
    match text(value)? {
        "validation" => Ok(ErrorCategory::Validation),
        "policy" => Ok(ErrorCategory::Policy),
        "execution" => Ok(ErrorCategory::Execution),
        "timeout" => Ok(ErrorCategory::Timeout),
        "system" => Ok(ErrorCategory::System),
        other => Err(format!("there is no category \"{}\"", brief(other))),
    }
}
