//! JSON Schemas of the two messages ("JSON Schema").

/// Which message a schema is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schema {
    /// What an agent sends.
    Operations,
    /// What an agent is told.
    Events,
}

/// The JSON Schema (draft-07) of a message, as text. That of operations is the specification's own
/// (agent-spaces-protocol, "JSON Schema"); that of events, which it does not print, follows the
/// interfaces of "Event Types" and "Error Response Format".
///
/// What a schema refuses, validation refuses too. Validation knows more: what a path may hold, how
/// much a file, that base64 is base64; and it counts lengths in UTF-16 units.
///
/// # Examples
/// ```
/// use deaddrop::protocol::operations::{Schema, schema};
/// let schema: serde_json::Value = serde_json::from_str(schema(Schema::Operations)).unwrap();
/// assert_eq!(schema["$schema"], "http://json-schema.org/draft-07/schema#");
/// assert_eq!(schema["required"], serde_json::json!(["protocolVersion", "operations"]));
/// ```
pub fn schema(of: Schema) -> &'static str {
    match of {
        Schema::Operations => include_str!("schema/operations.json"),
        Schema::Events => include_str!("schema/events.json"),
    }
}
