//! An events message as text that people and models can carry: one event a line, in ASCII where a
//! character could hide or steer.

use serde::Serialize;

use super::EventsMessage;
use crate::text::is_hazard;

/// A message as JSON, each event on a line of its own, which is indented; no other line begins with
/// anything but a brace or a bracket. Characters that steer a terminal, reorder text or cannot be
/// seen are escaped, so what comes out is the same message and holds none of them.
///
/// # Examples
/// ```
/// use deaddrop::protocol::operations::{EventsMessage, RunId, Status, UtcTime, print, user_message};
/// let at = UtcTime::parse("2025-01-15T10:30:00Z").unwrap();
/// let id = RunId::new("a1b2c3d4_0000").unwrap();
/// let message = EventsMessage::new(&id, Status::Completed, vec![user_message("a\u{202e}b", at)]);
/// assert_eq!(
///     print(&message),
///     r#"{"protocolVersion":"1.0","runId":"run_a1b2c3d4_0000","status":"completed","events":[
///   {"type":"userMessage","timestamp":"2025-01-15T10:30:00Z","content":"a\u202eb"}
/// ]}
/// "#
/// );
/// ```
pub fn print(message: &EventsMessage) -> String {
    let EventsMessage { protocol_version, run_id, status, events } = message;
    let mut out = String::from("{");
    out.push_str("\"protocolVersion\":");
    put(protocol_version, &mut out);
    out.push_str(",\"runId\":");
    put(run_id, &mut out);
    out.push_str(",\"status\":");
    put(status, &mut out);
    out.push_str(",\"events\":[");
    for (n, event) in events.iter().enumerate() {
        out.push_str(if n == 0 { "\n  " } else { ",\n  " });
        put(event, &mut out);
    }
    out.push_str(if events.is_empty() { "]}\n" } else { "\n]}\n" });
    out
}

/// Writes a value as JSON without line breaks, hazards escaped. They stand in texts only, since all
/// else of JSON is ASCII that can be seen.
fn put(value: &impl Serialize, out: &mut String) {
    // Texts, numbers and objects of them can always be written.
    let json = serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned());
    let mut rest = &*json;
    while let Some((at, c)) = rest.char_indices().find(|(_, c)| is_hazard(*c)) {
        out.push_str(&rest[..at]);
        for unit in c.encode_utf16(&mut [0; 2]) {
            out.push_str(&format!("\\u{unit:04x}"));
        }
        rest = &rest[at + c.len_utf8()..];
    }
    out.push_str(rest);
}
