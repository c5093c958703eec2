//! Every example of the three texts is read as the right kind of value, and printed unchanged. If an example omits
//! something that is required, only that is reported, and the example is valid once it is added.

use serde::Serialize;
use serde_json::{Value, json};

use super::super::{
    Approval, Decision, SchemaFaults, parse_approval, parse_events_message,
    parse_operations_message,
};
use super::{
    parse_event, parse_operation, paths, validate_event, validate_events_message,
    validate_operation, validate_operations_message,
};

/// The result of validating: the value printed again.
fn printed<T: Serialize>(read: Result<T, SchemaFaults>) -> Result<Value, SchemaFaults> {
    read.map(|read| serde_json::to_value(read).unwrap())
}

/// Reads a value in both ways, which must have the same result.
fn read(kind: &str, value: &Value) -> Result<Value, SchemaFaults> {
    let text = serde_json::to_string_pretty(value).unwrap();
    let (validated, parsed) = match kind {
        "operation" => (printed(validate_operation(value)), printed(parse_operation(&text))),
        "operations" => {
            let message = |read: Result<Vec<Value>, SchemaFaults>| {
                read.map(|operations| json!({"protocolVersion": "1.0", "operations": operations}))
            };
            (message(validate_operations_message(value)), message(parse_operations_message(&text)))
        }
        "event" => (printed(validate_event(value)), printed(parse_event(&text))),
        "events" => (printed(validate_events_message(value)), printed(parse_events_message(&text))),
        other => panic!("no example is {other}"),
    };
    assert_eq!(validated, parsed, "{text}");
    validated
}

/// Corrects the fault at a path such as `$.events[0].timestamp`.
fn complete(value: &mut Value, path: &str) {
    let pointer = path.trim_start_matches('$').replace(['.', '['], "/").replace(']', "");
    let (outer, key) = pointer.rsplit_once('/').unwrap();
    let outer = value.pointer_mut(outer).unwrap().as_object_mut().unwrap();
    if outer.remove(key).is_some() {
        return;
    }
    let usual = match key {
        "timestamp" => json!("2025-01-15T10:30:00Z"),
        "path" => json!("a.ts"),
        "protocolVersion" => json!("1.0"),
        "runId" => json!("run_abc123"),
        "status" => json!("completed"),
        "operations" => json!([]),
        other => panic!("{other} is in all examples"),
    };
    outer.insert(key.to_owned(), usual);
}

fn check(text: &str, count: usize) {
    let examples: Vec<Value> = serde_json::from_str(text).unwrap();
    assert_eq!(examples.len(), count);
    for example in examples {
        let (section, kind) = (&example["section"], example["is"].as_str().unwrap());
        let mut value = example["value"].clone();
        if kind == "approval" {
            let approval: Approval = parse_approval(&value.to_string()).unwrap();
            let inner = value.get("approval").cloned();
            let expected = inner.unwrap_or_else(|| json!({"decision": "approved"}));
            let field = |key: &str| expected[key].as_str().map(str::to_owned);
            let decision = match expected["decision"].as_str().unwrap() {
                "approved" => Decision::Approved,
                _ => Decision::Denied,
            };
            let (operation_id, reason) = (field("operationId"), field("reason"));
            assert_eq!(approval, Approval { operation_id, decision, reason }, "{section}");
            continue;
        }
        if let Some(expected) = example.get("faults") {
            let faults = read(kind, &value).unwrap_err();
            assert_eq!(json!(paths(&faults)), *expected, "{section}: {faults}");
            let told = faults.to_string();
            assert_eq!(told.lines().count(), faults.count(), "{told}");
            paths(&faults).iter().for_each(|path| complete(&mut value, path));
        }
        assert_eq!(read(kind, &value), Ok(value), "{section}");
    }
}

#[test]
fn the_examples_of_the_specification() {
    check(include_str!("../examples/protocol.json"), 24);
}

#[test]
fn the_examples_of_the_reference() {
    check(include_str!("../examples/reference.json"), 20);
}

#[test]
fn the_examples_of_the_guide() {
    check(include_str!("../examples/guide.json"), 15);
}
