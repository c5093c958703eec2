//! Checks that hold for every events message.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part")]

use deaddrop::protocol::operations::parse_events_message;
use serde_json::Value;

/// What all events messages have in common: `validate` takes them, nothing is null, and times end
/// in `Z`.
pub fn check_events(text: &str) -> Result<Value, String> {
    fn has_null(value: &Value) -> bool {
        match value {
            Value::Null => true,
            Value::Array(values) => values.iter().any(has_null),
            Value::Object(fields) => fields.values().any(has_null),
            _ => false,
        }
    }
    if let Err(faults) = parse_events_message(text) {
        return Err(format!("these are no events: {faults}\n{text}"));
    }
    let message: Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
    if has_null(&message) {
        return Err(format!("something is null: {text}"));
    }
    let events = message["events"].as_array().unwrap();
    let in_zulu = |event: &Value| event["timestamp"].as_str().is_some_and(|t| t.ends_with('Z'));
    if !events.iter().all(in_zulu) {
        return Err(format!("a time does not end in Z: {text}"));
    }
    Ok(message)
}
