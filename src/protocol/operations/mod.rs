//! The Agent Spaces operations/events dialect 1.0: what an agent sends, what answers it
//! ([`EventsMessage`]), and whether either is valid. Pure.
//!
//! A reply goes through `find` (where is the message?), `parse` and `validate` (what is in it?),
//! and `lower` (message → steps). `events` reports the outcomes. A malformed operation does not stop the others; a wrong
//! version does. Every fault names its JSON path and the correct form.
//!
//! If the specifications disagree, agent-spaces-protocol.md wins, and within it the stricter statement. Where they say
//! nothing, deaddrop reads what common writers produce. docs/operations.md lists the rules that follow. In addition:
//!
//! - The schema counts characters, the original's `length` UTF-16 units: the latter, of which there are never fewer.
//! - Examples abbreviate events and write `operationId: null`. Fields are required as in the interfaces, and never null.
//!   "Present if success" is about what is sent: what is marked `?` may be left out of what is read.
//! - There are ten event types, not "exactly 6", and the approval policy has three names there: any text here.

mod encoding;
mod events;
mod find;
mod lower;
mod parse;
mod validate;
mod wire;

#[cfg(test)]
mod tests;

pub use encoding::{Encoding, UtcTime};
pub use events::{NOT_ALLOWED, approval_required, events_of, print, status_of, user_message};
pub(super) use find::ends_early;
pub use find::{RefusedMessage, find};
pub use lower::{DEFAULT_TIMEOUT, DONE, steps};
pub use parse::{
    MESSAGE_OPERATIONS_LIMIT, OPERATIONS_LIMIT, Received, ReceivedOperation, parse_approval,
    parse_events_message, parse_operations_message, receive,
};
pub use validate::{CONTENT_LIMIT, SchemaFault, SchemaFaults};
pub use wire::{
    Approval, Decision, ErrorCategory, Event, EventType, EventsMessage, OPERATION_TYPES, Status,
};

/// What a model is told about this dialect: the PROTOCOL section of outboxes that teach it.
pub const PROMPT: &str = include_str!("../../../protocol-prompt/operations.md");

/// The JSON Schema (draft-07) of what an agent sends: the specification's own (agent-spaces-protocol, "JSON Schema").
///
/// Validation refuses whatever a schema refuses, and knows more: which paths are valid, how large a
/// file may be, that base64 is base64. It counts lengths in UTF-16 units.
pub const OPERATIONS_SCHEMA: &str = include_str!("schema/operations.json");

/// The JSON Schema of what answers it, which the specification does not print: it follows the interfaces of "Event
/// Types" and "Error Response Format".
pub const EVENTS_SCHEMA: &str = include_str!("schema/events.json");
