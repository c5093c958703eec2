//! The rules of "Validation Rules" at their bounds, through `validate` and `run` alike.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::{message, only, told};
use crate::support::Project;

/// Asserts that an operation is valid, and gives what comes of it.
#[track_caller]
fn taken(base: &Project, operation: &Value) -> Value {
    base.run_with(&["ops", "validate"], message(&json!([operation]))).ok();
    let event = only(base, operation);
    assert_ne!(event["type"], "error", "{event}");
    event
}

/// Asserts that an operation is skipped as malformed, and nothing else is.
#[track_caller]
fn refused(base: &Project, operation: &Value) {
    let field = ["path", "cwd", "content", "command", "timeout"];
    let operations = json!([operation, {"type": "message", "content": "x"}]);
    let text = message(&operations);
    let judged = base.run_with(&["ops", "validate", "--json"], &text).with_code(1);
    let judged: Value = serde_json::from_str(&judged.stdout).unwrap();
    assert_eq!(judged["faults"].as_array().unwrap().len(), 1, "{judged}");
    let path = judged["faults"][0]["path"].as_str().unwrap();
    assert!(field.iter().any(|field| path == format!("$.operations[0].{field}")), "{path}");
    let told = told(&base.run_with(&["ops", "run", "--policy=workspace"], &text).ok());
    assert_eq!(told["status"], "completed");
    assert_eq!(told["events"][0]["category"], "validation", "{told}");
    assert!(told["events"][0]["message"].as_str().unwrap().contains(path), "{told}");
    assert_eq!(told["events"][1]["success"], true, "{told}");
}

#[test]
fn paths_at_their_bounds() {
    let base = Project::new();
    let each = |path: &str| {
        [
            json!({"type": "createFile", "path": path, "content": "x", "overwrite": true}),
            json!({"type": "readFile", "path": path}),
            json!({"type": "editFile", "path": path,
                   "edits": [{"oldContent": "x", "newContent": "y"}]}),
            json!({"type": "deleteFile", "path": path}),
        ]
    };
    // Counted in UTF-16 units; a name has at most 255 bytes.
    for path in [
        "a".repeat(255),
        format!("{}a", "é/".repeat(127)),
        format!("{}é", "a/".repeat(127)),
        format!("{}/aaa", "😀".repeat(63) + "/" + &"😀".repeat(62)),
    ] {
        assert_eq!(path.encode_utf16().count(), 255);
        for operation in each(&path) {
            assert_eq!(taken(&base, &operation)["success"], true, "{operation}");
        }
        for operation in each(&format!("{path}b")) {
            refused(&base, &operation);
        }
    }
    assert_eq!("😀".repeat(127).encode_utf16().count(), 254);
    for path in ["..", "../x", "a/../b", "a..b", "x/..", "...", "/", "/etc/passwd", "a\0b", "\0"] {
        let [create, read, edit, delete] = each(path);
        for operation in [create, read, edit, delete] {
            refused(&base, &operation);
        }
        refused(&base, &json!({"type": "shell", "command": "ls", "cwd": path}));
    }
    refused(&base, &json!({"type": "shell", "command": "ls", "cwd": "a".repeat(256)}));
    taken(&base, &json!({"type": "shell", "command": "ls", "cwd": "a".repeat(255)}));
    assert!(!base.exists("x"));
}

#[test]
fn commands_and_timeouts_at_their_bounds() {
    let base = Project::new();
    let shell = |command: String| json!({"type": "shell", "command": command});
    // Comments, counted in UTF-16 units.
    for (begin, unit, count) in [("#", "x", 4095), ("#", "é", 4095), ("##", "😀", 2047)] {
        let command = format!("{begin}{}", unit.repeat(count));
        assert_eq!(command.encode_utf16().count(), 4096);
        assert_eq!(taken(&base, &shell(command.clone()))["success"], true);
        refused(&base, &shell(command + "x"));
    }
    let timed = |timeout: Value| json!({"type": "shell", "command": "true", "timeout": timeout});
    for timeout in [json!(1000), json!(1000.0), json!(3_600_000)] {
        assert_eq!(taken(&base, &timed(timeout))["success"], true);
    }
    for timeout in [
        json!(999),
        json!(3_600_001),
        json!(0),
        json!(-1),
        json!(1e99),
        json!(1000.5),
        json!("1000"),
        json!(null),
        json!(true),
    ] {
        refused(&base, &timed(timeout));
    }
}

#[test]
fn the_content_of_files_at_its_bound() {
    let base = Project::new();
    let most = 10 << 20;
    let create = |content: &str, encoding: &str| {
        json!({"type": "createFile", "path": "a", "content": content, "encoding": encoding,
               "overwrite": true})
    };
    for encode in [
        (|bytes| (String::from_utf8(bytes).unwrap(), "utf-8"))
            as fn(Vec<u8>) -> (String, &'static str),
        |bytes| (BASE64_STANDARD.encode(bytes), "base64"),
    ] {
        let (content, encoding) = encode(vec![b'x'; most]);
        let made = taken(&base, &create(&content, encoding));
        assert_eq!(made["bytesWritten"], most);
        assert_eq!(base.at("workspace/a").metadata().unwrap().len(), most as u64);
        let (content, encoding) = encode(vec![b'y'; most + 1]);
        refused(&base, &create(&content, encoding));
        assert_eq!(base.at("workspace/a").metadata().unwrap().len(), most as u64);
    }
    for content in ["AP8= ", "AP-_", "A===", "AB=="] {
        refused(&base, &create(content, "base64"));
    }
}

#[test]
fn of_a_message_the_first_thousand_operations_are_carried_out() {
    let base = Project::new();
    let one = |n: usize| json!({"type": "message", "id": n.to_string(), "content": "x"});
    let all: Vec<Value> = (0..1_000).map(one).collect();
    let told_of = |all: &[Value], code| {
        told(&base.run_with(&["ops", "run"], message(&json!(all))).with_code(code))
    };
    assert_eq!(told_of(&all, 0)["events"].as_array().unwrap().len(), 1_000);
    let mut more = all;
    more.push(json!({"type": "createFile", "path": "beyond", "content": "x"}));
    let told = told_of(&more, 1);
    let events = told["events"].as_array().unwrap();
    assert_eq!(events.len(), 1_001);
    assert!(events[..1_000].iter().all(|event| event["success"] == true));
    assert_eq!(events[999]["operationId"], "999");
    assert_eq!(events[1_000]["type"], "error", "{}", events[1_000]);
    assert!(!base.exists("workspace/beyond"));
}

#[test]
fn hostile_json_is_an_error_of_one_operation_or_of_the_message() {
    let base = Project::new();
    let with = |operation: &str| {
        format!(
            "{{\"protocolVersion\": \"1.0\", \"operations\": [{operation}, {}]}}",
            json!({"type": "message", "content": "x"})
        )
    };
    let deep = "[".repeat(10_000) + &"]".repeat(10_000);
    let many = |id: &str| format!("{{\"type\": \"message\", \"id\": {id}, \"content\": \"x\"}}");
    for malformed in [
        format!("{{\"type\": \"shell\", \"command\": \"touch never\", \"x\": {deep}}}"),
        deep,
        many("18446744073709551616"),
        many("1.5"),
        many("null"),
        "{\"type\": \"message\", \"content\": \"\\ud800\"}".to_owned(),
        "{\"type\": \"shell\", \"command\": \"touch never\", \"env\": {\"A\": null}}".to_owned(),
        "{\"type\": \"shell\", \"command\": \"touch never\", \"cwd\": \"../\"}".to_owned(),
        "[{\"type\": \"shell\", \"command\": \"touch never\"}]".to_owned(),
        "\"shell\"".to_owned(),
    ] {
        let run = base.run_with(&["ops", "run", "--policy=workspace"], with(&malformed)).ok();
        let told = told(&run);
        assert_eq!(told["events"][0]["category"], "validation", "{told}");
        assert_eq!(told["events"][1]["success"], true, "{told}");
    }
    for hopeless in [
        "[".repeat(10_000),
        "{\"operations\":".repeat(10_000),
        with("{\"type\": \"message\"} ,,"),
        with("NaN"),
        with("{'type': 'message'}"),
        format!("[{}]", with("5")),
    ] {
        let told =
            told(&base.run_with(&["ops", "run", "--policy=workspace"], hopeless).with_code(1));
        assert_eq!(told["status"], "error");
        assert_eq!(told["events"][0]["category"], "validation", "{told}");
    }
    assert!(!base.exists("workspace/never"));
}

#[test]
fn what_is_wrong_with_a_command_is_its_own_failure_and_not_the_systems() {
    let base = Project::new();
    for wrong in [
        json!({"type": "shell", "command": "echo a\0b"}),
        json!({"type": "shell", "command": "true", "env": {"A": "a\0b"}}),
        json!({"type": "shell", "command": "true", "env": {"A=B": "x"}}),
        json!({"type": "shell", "command": "true", "env": {"A": "x".repeat(3 << 20)}}),
        json!({"type": "shell", "command": "true", "cwd": "missing"}),
    ] {
        let operations = json!([wrong, {"type": "message", "content": "x"}]);
        let run = base.run_with(&["ops", "run", "--policy=workspace"], message(&operations));
        let told = told(&run);
        assert_eq!(told["events"][0]["type"], "shell", "{told}");
        assert_eq!(told["events"][0]["success"], false, "{told}");
        assert!(told["events"][0]["error"].is_string(), "{told}");
        assert_eq!(told["events"][1]["type"], "message", "{told}");
        assert_eq!((run.code, &told["status"]), (Some(0), &json!("completed")), "{told}");
    }
}
