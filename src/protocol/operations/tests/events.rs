//! The rules for events ("Event Types", "Error Response Format"), and how events are made.

use serde_json::{Value, json};

use super::super::{Event, EventType, EventsMessage, Status, UtcTime};
use super::{paths, validate_event, validate_events_message, with, without};

const TIME: &str = "2025-01-15T10:30:00Z";

/// One event of each type with all its fields, and the names of the required fields.
fn full() -> Vec<(Value, &'static [&'static str])> {
    vec![
        (
            json!({"type": "userMessage", "timestamp": TIME, "content": "Hi"}),
            &["timestamp", "content"],
        ),
        (
            json!({"type": "message", "operationId": "m", "timestamp": TIME, "success": true}),
            &["timestamp", "success"],
        ),
        (
            json!({"type": "createFile", "operationId": "c", "timestamp": TIME, "path": "a",
                   "success": true, "error": "", "bytesWritten": 5}),
            &["timestamp", "path", "success"],
        ),
        (
            json!({"type": "readFile", "operationId": "r", "timestamp": TIME, "path": "a",
                   "success": true, "content": "eA==", "encoding": "base64", "size": 1, "error": ""}),
            &["timestamp", "path", "success"],
        ),
        (
            json!({"type": "editFile", "operationId": "e", "timestamp": TIME, "path": "a",
                   "success": false, "editsApplied": 0, "error": "not found"}),
            &["timestamp", "path", "success"],
        ),
        (
            json!({"type": "deleteFile", "operationId": "d", "timestamp": TIME, "path": "a",
                   "success": false, "error": "File not found"}),
            &["timestamp", "path", "success"],
        ),
        (
            json!({"type": "shell", "operationId": "s", "timestamp": TIME, "command": "ls",
                   "success": false, "exitCode": -1, "stdout": "", "stderr": "", "durationMs": 3,
                   "error": "", "timedOut": true}),
            &["timestamp", "command", "success"],
        ),
        (
            json!({"type": "approvalRequired", "timestamp": TIME, "operationId": "s",
                   "operationType": "shell", "reason": "why",
                   "details": {"command": "rm", "path": "a", "policy": "shell.approvalRequired"}}),
            &["timestamp", "operationId", "operationType", "reason", "details"],
        ),
        (
            json!({"type": "policyDenied", "operationId": "s", "timestamp": TIME,
                   "operationType": "shell", "reason": "why", "suggestion": "else"}),
            &["timestamp", "operationType", "reason"],
        ),
        (
            json!({"type": "error", "operationId": "s", "timestamp": TIME,
                   "category": "system", "message": "Disk full", "details": {"any": [1, null]}}),
            &["timestamp", "category", "message"],
        ),
    ]
}

#[test]
fn fields_are_required_or_may_be_left_out_but_are_never_null_or_of_another_type() {
    for (event, required) in full() {
        let printed = serde_json::to_value(validate_event(&event).unwrap()).unwrap();
        assert_eq!(printed, event);
        for key in event.as_object().unwrap().keys() {
            let less = without(&event, key);
            if key == "type" || required.contains(&&**key) {
                let faults = validate_event(&less).unwrap_err();
                assert_eq!(paths(&faults), [format!("$.{key}")]);
            } else {
                let read = validate_event(&less).unwrap();
                assert_eq!(serde_json::to_value(read).unwrap(), less);
            }
            for other in [json!(null), json!([[]]), json!(-0.5)] {
                let faults = validate_event(&with(&event, key, other)).unwrap_err();
                assert_eq!(paths(&faults), [format!("$.{key}")], "{event}");
            }
        }
    }
}

#[test]
fn events_hold_only_what_their_types_allow() {
    let all = full();
    for (n, key, value) in [
        (1, "success", json!(false)),
        (2, "bytesWritten", json!(-1)),
        (2, "bytesWritten", json!(1.5)),
        (2, "bytesWritten", json!(1_u64 << 53)),
        (3, "content", json!("no base64")),
        (3, "encoding", json!("hex")),
        (6, "exitCode", json!(0.5)),
        (7, "details", json!({"command": null})),
        (9, "category", json!("disk")),
        (9, "details", json!("none")),
        (0, "timestamp", json!("2025-01-15T10:30:00+00:00")),
        (0, "timestamp", json!("2025-02-30T10:30:00Z")),
        (0, "type", json!("done")),
    ] {
        let faults = validate_event(&with(&all[n].0, key, value.clone())).unwrap_err();
        assert!(paths(&faults)[0].starts_with(&format!("$.{key}")), "{key} {value}: {faults}");
        assert_eq!(faults.count(), 1, "{faults}");
    }
    for category in ["validation", "policy", "execution", "timeout", "system"] {
        let event = with(&all[9].0, "category", json!(category));
        let read = validate_event(&event).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), event);
    }
    assert!(validate_event(&with(&all[7].0, "details", json!({}))).is_ok());
    assert!(validate_event(&json!("message")).is_err());
}

#[test]
fn an_events_message_has_a_run_a_status_and_events() {
    let events: Vec<Value> = full().into_iter().map(|(event, _)| event).collect();
    let message = json!({"protocolVersion": "1.0", "runId": "run_abc123", "status": "completed", "events": events});
    for status in ["completed", "awaiting_approval", "error"] {
        let message = with(&message, "status", json!(status));
        let read = validate_events_message(&message).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), message);
    }
    for (key, value) in [
        ("protocolVersion", json!("1.1")),
        ("runId", json!(7)),
        ("status", json!("awaitingApproval")),
        ("events", json!({})),
    ] {
        let faults = validate_events_message(&with(&message, key, value)).unwrap_err();
        assert_eq!(paths(&faults), [format!("$.{key}")]);
        let faults = validate_events_message(&without(&message, key)).unwrap_err();
        assert_eq!(paths(&faults), [format!("$.{key}")]);
    }
    let mut two_wrong = message;
    two_wrong["events"][1]["success"] = json!(1);
    two_wrong["events"][2]["path"] = json!(1);
    let faults = validate_events_message(&two_wrong).unwrap_err();
    assert_eq!(paths(&faults), ["$.events[1].success", "$.events[2].path"]);
}

#[test]
fn made_events_are_printed_as_the_specification_prints_them() {
    let time = || UtcTime::parse(TIME).unwrap();
    let said = Event {
        event_type: EventType::Message,
        timestamp: time(),
        success: Some(true),
        ..Event::default()
    };
    let timed_out = Event {
        event_type: EventType::Shell,
        operation_id: Some("s".into()),
        timestamp: time(),
        command: Some("sleep 1000".into()),
        success: Some(false),
        exit_code: Some(124),
        duration_ms: Some(30000),
        timed_out: Some(true),
        ..Event::default()
    };
    let (run_id, status) = ("run_xyz789".to_owned(), Status::AwaitingApproval);
    let message = EventsMessage { run_id, status, events: vec![said, timed_out] };
    let printed = serde_json::to_value(&message).unwrap();
    assert_eq!(
        printed,
        json!({
            "protocolVersion": "1.0", "runId": "run_xyz789", "status": "awaiting_approval",
            "events": [
                {"type": "message", "timestamp": TIME, "success": true},
                {"type": "shell", "operationId": "s", "timestamp": TIME, "command": "sleep 1000",
                 "success": false, "exitCode": 124, "durationMs": 30000, "timedOut": true},
            ],
        })
    );
    assert_eq!(validate_events_message(&printed), Ok(message));
}

#[test]
fn fields_of_other_events_are_ignored() {
    let event = json!({"type": "deleteFile", "timestamp": TIME, "path": "a", "success": true});
    let more = with(&with(&event, "content", json!("x")), "bytesWritten", json!("?"));
    assert_eq!(serde_json::to_value(validate_event(&more).unwrap()).unwrap(), event);
}

#[test]
fn failures_can_be_told_from_successes() {
    let told: Vec<Option<bool>> =
        full().iter().map(|(event, _)| validate_event(event).unwrap().success).collect();
    let (yes, no) = (Some(true), Some(false));
    assert_eq!(told, [None, yes, yes, yes, no, no, no, None, None, None]);
}
