//! The schemas are those of the specification, and agree with validation.

use boon::{Compiler, SchemaIndex, Schemas};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use serde_json::{Value, json};

use super::super::validate::form;
use super::super::{EVENTS_SCHEMA, OPERATIONS_SCHEMA};
use super::properties::message;
use super::{validate_events_message, validate_operations_message};
use crate::protocol::Digest;

struct Validator {
    schemas: Schemas,
    index: SchemaIndex,
}

impl Validator {
    fn of(schema: &str) -> Self {
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        let text = serde_json::from_str(schema).unwrap();
        compiler.add_resource("schema.json", text).unwrap();
        let index = compiler.compile("schema.json", &mut schemas).unwrap();
        Self { schemas, index }
    }

    fn takes(&self, value: &Value) -> bool {
        self.schemas.validate(value, self.index).is_ok()
    }
}

#[test]
fn the_schema_of_operations_is_the_one_of_the_specification() {
    // The digest of the block under "JSON Schema" in the specification, with sorted keys and no white space.
    let value: Value = serde_json::from_str(OPERATIONS_SCHEMA).unwrap();
    let digest = Digest::of(sorted(&value).as_bytes());
    assert_eq!(digest.as_str(), "0a92d54343dae073b7c08de2cab01a7c");
}

/// A value as compact text, with sorted keys regardless of the features of `serde_json`.
fn sorted(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let mut fields: Vec<String> =
                map.iter().map(|(key, value)| format!("\"{key}\":{}", sorted(value))).collect();
            fields.sort();
            format!("{{{}}}", fields.join(","))
        }
        Value::Array(list) => {
            format!("[{}]", list.iter().map(sorted).collect::<Vec<_>>().join(","))
        }
        other => other.to_string(),
    }
}

#[test]
fn both_schemas_are_draft_07() {
    for schema in [OPERATIONS_SCHEMA, EVENTS_SCHEMA] {
        let value: Value = serde_json::from_str(schema).unwrap();
        assert_eq!(value["$schema"], "http://json-schema.org/draft-07/schema#");
        assert_eq!(value["properties"]["protocolVersion"], json!({"const": "1.0"}));
    }
}

#[test]
fn every_field_has_a_correct_form() {
    for schema in [OPERATIONS_SCHEMA, EVENTS_SCHEMA] {
        let value: Value = serde_json::from_str(schema).unwrap();
        for (name, definition) in value["definitions"].as_object().unwrap() {
            for (field, _) in definition["properties"].as_object().into_iter().flatten() {
                let form = form(name, &[field]);
                assert!(field == "type" || form.starts_with(&format!("\"{field}\"")), "{form}");
            }
        }
    }
}

/// A message in which one value, found by following `way`, is replaced by `other` or removed.
fn spoiled(mut message: Value, way: &[usize], other: Option<Value>) -> Value {
    let mut pointer = String::new();
    for step in way {
        let place = message.pointer(&pointer).unwrap();
        let key = match place {
            Value::Object(map) if !map.is_empty() => {
                map.keys().nth(step % map.len()).unwrap().replace('~', "~0").replace('/', "~1")
            }
            Value::Array(list) if !list.is_empty() => (step % list.len()).to_string(),
            _ => break,
        };
        pointer.push_str(&format!("/{key}"));
    }
    let (outer, key) = pointer.rsplit_once('/').unwrap();
    match (message.pointer_mut(outer).unwrap(), other) {
        (Value::Object(map), None) => drop(map.remove(key)),
        (_, other) => *message.pointer_mut(&pointer).unwrap() = other.unwrap_or(Value::Null),
    }
    message
}

fn other() -> impl Strategy<Value = Option<Value>> {
    select(vec![
        None,
        Some(json!(null)),
        Some(json!(true)),
        Some(json!(30000.0)),
        Some(json!(999)),
        Some(json!(1e99)),
        Some(json!(0.5)),
        Some(json!("shell")),
        Some(json!("1.0")),
        Some(json!("2025-01-15T10:30:00Z")),
        Some(json!("x".repeat(256))),
        Some(json!("x".repeat(4097))),
        Some(json!("x".repeat(100_001))),
        Some(json!([])),
        Some(json!({})),
        Some(json!({"a": "b"})),
    ])
}

/// The events of the examples that are complete.
fn events_message() -> Value {
    let text = include_str!("../examples/reference.json");
    let examples: Vec<Value> = serde_json::from_str(text).unwrap();
    let whole = |example: &&Value| example["is"] == "event" && example.get("faults").is_none();
    let events: Vec<Value> =
        examples.iter().filter(whole).map(|example| example["value"].clone()).collect();
    json!({"protocolVersion": "1.0", "runId": "run_a", "status": "completed", "events": events})
}

#[test]
fn what_is_right_is_taken_and_what_only_validation_knows_is_not_the_schemas_business() {
    let validator = Validator::of(EVENTS_SCHEMA);
    let events = events_message();
    assert_eq!(events["events"].as_array().unwrap().len(), 9);
    assert!(validator.takes(&events));
    let validator = Validator::of(OPERATIONS_SCHEMA);
    for (operation, valid) in [
        (json!({"type": "readFile", "path": "a"}), true),
        (json!({"type": "shell", "command": "ls", "timeout": 30000.0}), true),
        (json!({"type": "editFile", "path": "a", "edits": []}), true),
        (json!({"type": "readFile", "path": "/a"}), false),
        (json!({"type": "readFile", "path": "😀".repeat(200)}), false),
        (json!({"type": "createFile", "path": "a", "content": "?", "encoding": "base64"}), false),
    ] {
        let message = json!({"protocolVersion": "1.0", "operations": [operation]});
        assert!(validator.takes(&message), "{message}");
        assert_eq!(validate_operations_message(&message).is_ok(), valid, "{message}");
    }
}

#[test]
fn what_the_schema_of_events_refuses_is_refused() {
    let validator = Validator::of(EVENTS_SCHEMA);
    let strategy = (prop::collection::vec(0..12_usize, 1..5), other());
    let mut seen = [0, 0];
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for _ in 0..2000 {
        let (way, other) = strategy.new_tree(&mut runner).unwrap().current();
        let value = spoiled(events_message(), &way, other);
        let taken = validator.takes(&value);
        // For events, the schema covers all rules except valid base64 and existing days.
        assert_eq!(validate_events_message(&value).is_ok(), taken, "{value}");
        seen[usize::from(taken)] += 1;
    }
    assert!(seen.iter().all(|&n| n > 100), "{seen:?}");
}

#[test]
fn what_the_schema_of_operations_refuses_is_refused() {
    let validator = Validator::of(OPERATIONS_SCHEMA);
    let strategy = (message(), prop::collection::vec(0..12_usize, 1..6), other());
    let mut seen = [0, 0];
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for _ in 0..2000 {
        let (message, way, other) = strategy.new_tree(&mut runner).unwrap().current();
        let message = serde_json::to_value(message).unwrap();
        assert!(validator.takes(&message), "{message}");
        let value = spoiled(message, &way, other);
        let (taken, valid) = (validator.takes(&value), validate_operations_message(&value).is_ok());
        assert!(taken || !valid, "{value}");
        seen[usize::from(taken)] += 1;
    }
    assert!(seen.iter().all(|&n| n > 100), "{seen:?}");
}
