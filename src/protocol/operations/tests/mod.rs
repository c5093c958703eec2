//! Tests the dialect against its specification: every example of the three texts, every rule, the schemas, and hostile
//! input.

mod events;
mod examples;
mod finding;
mod hostile;
mod messages;
mod properties;
mod reporting;
mod schemas;

use serde_json::Value;

use super::{Event, EventsMessage, SchemaFaults, parse_events_message, parse_operations_message};
use crate::protocol::operations::parse::{event_of, validated, whole_value};

fn parse_operation(text: &str) -> Result<Value, SchemaFaults> {
    validated("Operation", whole_value(text), "$")
}

fn parse_event(text: &str) -> Result<Event, SchemaFaults> {
    event_of(whole_value(text), "$")
}

fn validate_operation(value: &Value) -> Result<Value, SchemaFaults> {
    parse_operation(&value.to_string())
}

fn validate_operations_message(value: &Value) -> Result<Vec<Value>, SchemaFaults> {
    parse_operations_message(&value.to_string())
}

fn validate_event(value: &Value) -> Result<Event, SchemaFaults> {
    parse_event(&value.to_string())
}

fn validate_events_message(value: &Value) -> Result<EventsMessage, SchemaFaults> {
    parse_events_message(&value.to_string())
}

/// The JSON paths of all faults, in order.
fn paths(faults: &SchemaFaults) -> Vec<&str> {
    faults.iter().map(|fault| &*fault.path).collect()
}

/// Returns `value` with one of its fields set.
fn with(value: &Value, key: &str, to: Value) -> Value {
    let mut value = value.clone();
    value[key] = to;
    value
}

/// Returns `value` without one of its fields.
fn without(value: &Value, key: &str) -> Value {
    let mut value = value.clone();
    value.as_object_mut().unwrap().remove(key).unwrap();
    value
}
