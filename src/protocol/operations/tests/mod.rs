//! The dialect against its specification: every example of the three texts, every rule, the
//! schemas, and what is hostile.

mod events;
mod examples;
mod finding;
mod hostile;
mod messages;
mod properties;
mod reporting;
mod schemas;

use serde_json::Value;

use super::{Faults, SkipReason, Skipped};

/// What is wrong with an operation that is malformed.
fn faults(skipped: &Skipped) -> &Faults {
    match &skipped.reason {
        SkipReason::Malformed(faults) => faults,
        SkipReason::BeyondLimit => panic!("it is beyond the limit"),
    }
}

/// The JSON paths of all faults, in order.
fn paths(faults: &Faults) -> Vec<&str> {
    faults.iter().map(|fault| &*fault.path).collect()
}

/// `value` with one of its fields set.
fn with(value: &Value, key: &str, to: Value) -> Value {
    let mut value = value.clone();
    value[key] = to;
    value
}

/// `value` without one of its fields.
fn without(value: &Value, key: &str) -> Value {
    let mut value = value.clone();
    value.as_object_mut().unwrap().remove(key).unwrap();
    value
}
