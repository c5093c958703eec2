//! The Agent Spaces operations/events dialect 1.0, between JSON and values: what an agent sends
//! ([`OperationsMessage`]), what it is told ([`EventsMessage`]), and whether either is as the
//! specification has it.
//!
//! Every fault is told with its JSON path and the correct form, a line each ([`Faults`]). A
//! malformed operation does not stop the others ([`receive`]); a wrong version does.
//!
//! Where the texts disagree, agent-spaces-protocol.md wins, and within it the stricter:
//!
//! - *Version*: "should" be included, "must" be (reference), is not (guide, "Batching"): required.
//! - *`..` in paths*: no "escapes" ("createFile"), or none at all ("Path Validation"): none at all,
//!   and so for `cwd`.
//! - *Lengths*: the schema counts characters, the original's `length` UTF-16 units: the latter, of
//!   which there are never fewer.
//! - *`timeout`*: a number (interface), an integer (schema): an integer, however written.
//! - *`content`*: 10 MB for files (table; taken as MiB, decoded), 100,000 characters for a
//!   `message` (schema): each as it says.
//! - *`operationId: null`* ("Example 1") against `operationId?: string`: left out, never null.
//! - *Events without `timestamp`* or other required fields, in many examples: abbreviated;
//!   required, as in the interfaces. "Present if success" are words about what is sent; what is
//!   marked `?` may be left out of what is read.
//! - *"Exactly 6 event types"*: ten are defined, `error` among them.
//! - *Names of the approval policy* (`destructive_commands`, `destructive_commands_approval`,
//!   `shell.approvalRequired`): any text here.

mod approval;
mod check;
mod check_events;
mod encoding;
mod events;
mod fault;
mod fields;
mod find;
mod json;
mod meaning;
mod path;
mod print;
mod receive;
mod schema;
mod telling;
mod time;
mod wire;

#[cfg(test)]
mod tests;

use serde::{Serialize, Serializer};

pub use approval::{Approval, Decision, parse_approval};
pub use check::{
    COMMAND_LIMIT, CONTENT_LIMIT, MESSAGE_LIMIT, TIMEOUT_LEAST, TIMEOUT_MOST, validate_operation,
    validate_operations_message,
};
pub use check_events::{validate_event, validate_events_message};
pub use encoding::{BadBase64, Encoding};
pub use events::{
    ApprovalDetails, ApprovalRequiredEvent, CreateFileEvent, DeleteFileEvent, EditFileEvent,
    ErrorCategory, ErrorEvent, Event, EventsMessage, MessageEvent, PolicyDeniedEvent,
    ReadFileEvent, RunId, ShellEvent, Status, Succeeded, UserMessageEvent,
};
pub use fault::{Fault, Faults};
pub(super) use find::ends_early;
pub use find::{Refused, find};
pub use meaning::{DONE, steps};
pub use path::is_valid_path;
pub use print::print;
pub use receive::{
    Entry, Malformed, OPERATIONS_LIMIT, Received, parse_event, parse_events_message,
    parse_operation, parse_operations_message, receive,
};
pub use schema::{Schema, schema};
pub use telling::{approval_required, events_of, status_of, user_message};
pub use time::UtcTime;
pub use wire::{
    CreateFileOperation, DeleteFileOperation, EditFileOperation, FileEdit, MessageOperation,
    Operation, OperationType, OperationsMessage, ReadFileOperation, ShellOperation,
};

/// What an LLM is told about this dialect: the PROTOCOL section of outboxes that teach it.
pub const PROMPT: &str = include_str!("../../../protocol-prompt/operations.md");

/// The version of the protocol, in every message: there is one, `1.0` (agent-spaces-protocol,
/// "Protocol Version").
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Version;

impl Version {
    /// How it is written.
    pub const TEXT: &str = "1.0";
    const FORM: &str = r#""protocolVersion": "1.0""#;
}

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(Self::TEXT)
    }
}
