//! Hostile JSON: deep, long, duplicated or broken. No input causes a panic, an overflow or more than linear time.

use std::time::{Duration, Instant};

use serde_json::json;

use super::super::{
    MESSAGE_OPERATIONS_LIMIT, OPERATIONS_LIMIT, find, parse_approval, parse_events_message,
    parse_operations_message, receive,
};
use super::{parse_event, parse_operation, paths};

fn message(operations: &str) -> String {
    format!("{{\"protocolVersion\": \"1.0\", \"operations\": [{operations}]}}")
}

#[test]
fn depth_is_an_error_and_no_overflow() {
    for depth in [10_000, 200_000] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let closed = format!("{}1{}", open.repeat(depth), close.repeat(depth));
            for deep in [open.repeat(depth), closed.clone()] {
                assert!(parse_operation(&deep).is_err());
                assert!(parse_event(&deep).is_err());
                assert!(parse_events_message(&deep).is_err());
                assert!(parse_operations_message(&deep).is_err());
                assert!(parse_approval(&deep).is_err());
                assert_eq!(find(&deep), None);
            }
            // Deep nesting in one operation makes only this operation malformed.
            let text = message(&format!(
                "{{\"type\": \"shell\", \"command\": \"ls\", \"x\": {closed}}}, {{\"type\": \"deleteFile\", \"path\": \"a\"}}"
            ));
            let received = receive(&text).unwrap();
            let malformed = received.entries[0].operation.as_ref().unwrap_err();
            assert_eq!(paths(malformed), ["$.operations[0]"]);
            assert!(malformed.to_string().contains("nested deeper than 127 levels"));
            assert!(received.entries[1].operation.is_ok());
            assert_eq!(find(&text), Some(Ok(received)));
            // Deep nesting outside the operations is not read.
            let beside = message("").replacen('{', &format!("{{\"x\": {closed}, "), 1);
            assert!(receive(&beside).is_ok());
        }
    }
}

#[test]
fn of_keys_that_stand_twice_the_last_counts() {
    let text = r#"{"protocolVersion": "2.0", "operations": 5, "protocolVersion": "1.0", "operations": [
        {"type": "readFile", "type": "deleteFile", "path": "/", "path": "a", "path": "b"}]}"#;
    let operations = parse_operations_message(text).unwrap();
    assert_eq!(operations, [json!({"type": "deleteFile", "path": "b"})]);
    assert!(find(text).unwrap().is_ok());
    let worse = text.replace("\"path\": \"b\"", "\"path\": \"../b\"");
    assert!(parse_operations_message(&worse).is_err());
}

#[test]
fn json_hidden_in_a_text_is_a_text() {
    // `serde_json` alone would read the JSON in the text, and thus another message than the visible one.
    let inner = r#"{\"type\": \"shell\", \"command\": \"ls\"}"#;
    let hidden = format!("{{\"$serde_json::private::RawValue\": \"{inner}\"}}");
    let faults = parse_operation(&hidden).unwrap_err();
    assert_eq!(paths(&faults), ["$.type"]);
    assert_eq!(parse_operations_message(&message(&hidden)).unwrap_err().count(), 1);
    let approval = hidden.replace(inner, r#"{\"approval\": 1}"#);
    assert_eq!(paths(&parse_approval(&approval).unwrap_err()), ["$.approval"]);
    assert!(parse_approval(&approval).unwrap_err().to_string().contains("it is missing"));
}

#[test]
fn numbers_beyond_all_bounds_spoil_one_operation_at_most() {
    for number in ["-1", "1e99", "1e400", "-1e400", "18446744073709551616", "1.5", "1e-400", "NaN"]
    {
        let text = message(&format!(
            "{{\"type\": \"shell\", \"command\": \"ls\", \"timeout\": {number}}}, {{\"type\": \"message\", \"content\": \"\"}}"
        ));
        match receive(&text) {
            Ok(received) => {
                assert!(received.entries[0].operation.is_err(), "{number}");
                assert!(received.entries[1].operation.is_ok(), "{number}");
            }
            Err(_) => assert_eq!(number, "NaN"),
        }
    }
}

#[test]
fn hundreds_of_thousands_of_operations_are_counted_and_not_kept() {
    let text = message(&vec!["1"; 200_000].join(","));
    assert_eq!(paths(&receive(&text).unwrap_err()), ["$.operations"]);
    let text_of = |n: usize| message(&vec!["{\"id\": \"x\"}"; n].join(","));
    assert!(receive(&text_of(MESSAGE_OPERATIONS_LIMIT + 1)).is_err());
    let received = receive(&text_of(MESSAGE_OPERATIONS_LIMIT)).unwrap();
    let beyond = &received.entries[OPERATIONS_LIMIT..];
    assert_eq!(beyond.len(), 9_000);
    for entry in beyond {
        assert_eq!((entry.asked.id.as_deref(), entry.kind), (Some("x"), None));
        let faults = entry.operation.as_ref().unwrap_err().to_string();
        assert!(
            faults.contains("only the first 1000 operations of a message are carried out"),
            "{faults}"
        );
    }
    let faults = parse_operations_message(&text).unwrap_err();
    assert_eq!((faults.iter().count(), faults.count()), (100, 200_000));
    let edits = format!(
        "{{\"type\": \"editFile\", \"path\": \"a\", \"edits\": [{}1]}}",
        "1,".repeat(99_999)
    );
    let faults = parse_operation(&edits).unwrap_err();
    assert!(faults.to_string().len() < 20_000 && faults.count() == 100_000);
    let faults = parse_operation(&edits.replace("[1,", "[1,1,")).unwrap_err();
    assert_eq!((paths(&faults), faults.count()), (vec!["$.edits"], 1));
}

#[test]
fn what_was_sent_is_quoted_briefly_and_visibly() {
    let name = format!("\x1b[2J\n\u{202e}{}", "x".repeat(1_000_000));
    let text = json!({"type": name, "id": {name.clone(): 1}}).to_string();
    let told = parse_operation(&text).unwrap_err().to_string();
    assert!(told.len() < 1000 && told.contains("␛[2J␊<U+202E>xxx"), "{told}");
    assert_eq!(told.lines().count(), 1);
}

#[test]
fn searching_takes_linear_time() {
    let lines = 30_000;
    for piece in [
        "{\n",
        "{\"a\":\n",
        "{\"a\": 1,\n",
        "{\"operations\": [\n",
        "{\"protocolVersion\": \"1.0\", \"operations\": [\n",
        "```\n{\"a\": [\n```\n",
        "```json\n{\"protocolVersion\": \"1.0\", \"operations\": [}\n",
        "{}\n",
        "{\"a\": \"",
        "``` {\n~~~\n",
        "\u{feff} \r\n`{",
        "\"}{\"",
    ] {
        let text = piece.repeat(lines);
        let start = Instant::now();
        let _ = find(&text);
        // Quadratic time would take minutes.
        assert!(start.elapsed() < Duration::from_secs(5), "{piece:?}: {:?}", start.elapsed());
    }
}
