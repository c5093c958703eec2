//! The Agent Spaces operations/events dialect 1.0: the messages of an agent and the answers ([`EventsMessage`]), and
//! the validation of both. Pure.
//!
//! A reply passes through `find` (finds the message), `parse` and `validate` (read and check its content) and `lower`
//! (converts it to steps). `events` reports the outcomes. A malformed operation does not stop the others; a wrong
//! version stops all. Every fault contains its JSON path and the correct form.
//!
//! If specifications disagree, agent-spaces-protocol.md wins, and within it the stricter statement. If there is no rule,
//! deaddrop accepts what common writers produce. docs/operations.md lists the results. In addition:
//!
//! - The schema counts characters, the original's `length` UTF-16 units. The latter are used; there are never fewer.
//! - Examples abbreviate events and write `operationId: null`. Fields are required as in the interfaces, and never null.
//!   "Present if success" applies to what is sent. When reading, fields that are marked `?` may be missing.
//! - There are ten event types, not "exactly 6". The approval policy has three names there; here any text is accepted.

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

/// The text that explains this dialect to a model: the PROTOCOL section of outboxes that teach this dialect.
pub const PROMPT: &str = include_str!("../../../protocol-prompt/operations.md");

/// The JSON Schema (draft-07) of an agent's messages: the specification's own (agent-spaces-protocol, "JSON Schema").
///
/// Validation refuses everything that a schema refuses, and checks more: valid paths, the size of a file, valid base64.
/// It counts lengths in UTF-16 units.
pub const OPERATIONS_SCHEMA: &str = include_str!("schema/operations.json");

/// The JSON Schema of the answers. The specification does not contain it; it follows the interfaces of "Event Types"
/// and "Error Response Format".
pub const EVENTS_SCHEMA: &str = include_str!("schema/events.json");
