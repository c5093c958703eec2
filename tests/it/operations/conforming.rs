//! What the specification says of IDs, paths, defaults, events, streams, times and encodings.

use serde_json::{Value, json};

use super::{message, only, told};
use crate::support::{Project, Run};

fn events(told: &Value) -> &[Value] {
    told["events"].as_array().unwrap()
}

fn run(base: &Project, policy: &str, operations: &Value) -> Run {
    base.run_with(&["ops", "run", "--policy", policy], message(operations))
}

#[test]
fn an_operation_keeps_its_id_whatever_characters_it_contains() {
    let base = Project::new();
    let long = "x".repeat(200);
    for id in ["step 1", "-x", "a/b\n\u{202e}é😀'\"", "", "done", &long] {
        let operations = json!([{"type": "shell", "id": id, "command": "rm -r missing; echo x"}]);
        let asked = told(&run(&base, "permissive", &operations).with_code(3));
        assert_eq!(events(&asked)[0]["operationId"], id);
        let decision = json!({"approval": {"operationId": id, "decision": "approved"}});
        base.write("approvals/a.json", decision.to_string());
        let run_id = asked["runId"].as_str().unwrap();
        let done = told(&base.run(&["ops", "run", "--resume", run_id]).ok());
        assert_eq!(
            (&events(&done)[0]["operationId"], &events(&done)[0]["stdout"]),
            (&json!(id), &json!("x\n"))
        );
    }
    let operations = json!([{"type": "shell", "id": "step 1", "command": "rm -r missing"}]);
    let asked = told(&run(&base, "permissive", &operations).with_code(3));
    base.run(&["deny", "step 1"]).ok();
    let run_id = asked["runId"].as_str().unwrap();
    let denied = told(&base.run(&["ops", "run", "--resume", run_id]).ok());
    assert_eq!(events(&denied)[0]["operationId"], "step 1");
}

#[test]
fn an_id_that_was_asked_about_before_is_not_asked_about_again() {
    let base = Project::new();
    let one = json!({"type": "shell", "id": "step 1", "command": "rm -r missing"});
    let asked = told(&run(&base, "permissive", &json!([one, one])).with_code(3));
    base.run(&["approve", "step 1"]).ok();
    let run_id = asked["runId"].as_str().unwrap();
    let again = told(&base.run(&["ops", "run", "--resume", run_id]).with_code(3));
    assert_eq!(events(&again)[0]["operationId"], "step 1");
    let second = events(&again)[1]["operationId"].as_str().unwrap();
    assert!(second.starts_with("op-"), "{again}");
}

#[test]
fn what_is_a_placeholder_among_tags_is_a_path_here() {
    let base = Project::new();
    for path in ["path/to/x", "filename.ext", "~/x", "https:/x/y", "<path>", "your_file.py"] {
        let operation = json!({"type": "createFile", "path": path, "content": "x"});
        base.run_with(&["ops", "validate"], message(&json!([operation]))).ok();
        let event = only(&base, &operation);
        assert_eq!((&event["success"], &event["path"]), (&json!(true), &json!(path)), "{event}");
        assert!(base.exists(&format!("workspace/{path}")));
    }
    // A message has no lines, so no event names one.
    let event = only(&base, &json!({"type": "readFile", "path": "C:\\x"}));
    assert!(!event["error"].as_str().unwrap().contains("line"), "{event}");
    let event = only(&base, &json!({"type": "readFile"}));
    assert!(event["message"].as_str().unwrap().starts_with("$.operations[0].path: "), "{event}");
}

#[test]
fn a_command_has_30_seconds_unless_it_says_otherwise() {
    for (policy, limits) in [
        ("restrictive", "Limits: 10 s a command, "),
        ("standard", "Limits: 30 s a command, "),
        ("permissive", "Limits: 30 s a command, or its timeout up to 300 s, "),
        ("workspace", "Limits: 30 s a command, or its timeout up to 3600 s, "),
    ] {
        let base = Project::new();
        let new = ["new", "--no-watch", "--dialect", "operations", "--policy", policy, "A task"];
        let outbox = base.run(&new).ok().stdout;
        let outbox = base.read(outbox.trim());
        assert!(outbox.contains(limits), "{policy}: {outbox}");
    }
}

#[test]
fn a_shortened_timeout_is_part_of_the_one_event() {
    let base = Project::new();
    base.write(
        "deaddrop.toml",
        "[policies.short]\npreset = \"workspace\"\nshell.timeout_seconds = 1\n",
    );
    let operations = json!([
        {"type": "shell", "id": "s", "command": "sleep 30", "timeout": 60000},
        {"type": "shell", "id": "t", "command": "sleep 30"},
        {"type": "shell", "id": "u", "command": "echo x", "timeout": 60000}
    ]);
    let told = told(&run(&base, "short", &operations).ok());
    assert_eq!(events(&told).len(), 3, "{told}");
    let [shortened, usual, quick] = events(&told) else { panic!() };
    for event in [shortened, usual] {
        assert_eq!((&event["type"], &event["timedOut"]), (&json!("shell"), &json!(true)));
        assert_eq!((&event["exitCode"], &event["success"]), (&json!(124), &json!(false)));
        assert_eq!((&event["stdout"], &event["stderr"]), (&json!(""), &json!("")), "{event}");
    }
    let error = shortened["error"].as_str().unwrap();
    assert!(error.contains("60 s") && error.contains("1 s"), "{error}");
    assert!(usual.get("error").is_none() && quick.get("error").is_none(), "{told}");
}

#[test]
fn a_warning_is_part_of_the_one_event() {
    let base = Project::new();
    let event = only(&base, &json!({"type": "createFile", "path": "a\\b", "content": "x"}));
    assert_eq!((&event["success"], &event["path"]), (&json!(true), &json!("a\\b")));
    assert!(event["error"].as_str().unwrap().contains("'a/b'"), "{event}");
}

#[test]
fn each_operation_beyond_the_limit_has_its_event() {
    let base = Project::new();
    let mut operations = vec![json!({"type": "message", "content": "x"}); 1_000];
    operations.push(json!({"type": "createFile", "id": "1,001", "path": "a", "content": "x"}));
    operations.push(json!({"type": "shell", "id": "1,002", "command": "touch a"}));
    let beyond = told(&run(&base, "workspace", &json!(operations)).with_code(1));
    assert_eq!((events(&beyond).len(), &beyond["status"]), (1_002, &json!("error")));
    for (event, id) in events(&beyond)[1_000..].iter().zip(["1,001", "1,002"]) {
        assert_eq!((&event["type"], &event["operationId"]), (&json!("error"), &json!(id)));
    }
    assert!(!base.exists("workspace/a"));
    // Nothing of a message is carried out that has more than can be reported.
    let text = message(&json!(vec![&operations[1_000]; 10_001]));
    base.run_with(&["ops", "validate"], &text).ok();
    let refused = told(&base.run_with(&["ops", "run", "--policy=workspace"], &text).with_code(1));
    assert_eq!((events(&refused).len(), &refused["status"]), (1, &json!("error")));
    assert!(!base.exists("workspace/a"));
}

#[test]
fn times_may_have_no_seconds() {
    let base = Project::new();
    let text = |time: &str| {
        let event = json!({"type": "userMessage", "timestamp": time, "content": "x"});
        json!({"protocolVersion": "1.0", "runId": "r", "status": "completed", "events": [event]})
            .to_string()
    };
    for time in ["2025-01-15T10:30Z", "2025-01-15T10:30:00Z", "2025-01-15T10:30:00.5Z"] {
        base.run_with(&["ops", "validate"], text(time)).ok();
    }
    for time in ["2025-01-15T10Z", "2025-01-15T10:30", "2025-02-30T10:30Z", "2025-01-15T24:30Z"] {
        let run = base.run_with(&["ops", "validate"], text(time)).with_code(1);
        assert!(run.stdout.starts_with("$.events[0].timestamp: "), "{run:?}");
    }
}

#[test]
fn base64_may_be_wrapped_and_unpadded() {
    let base = Project::new();
    let create = |content: &str| {
        json!({"type": "createFile", "path": "a", "content": content, "encoding": "base64",
               "overwrite": true})
    };
    for content in ["AP8=", "AP8", "AP\r\n8=\n", "A\nP\n8\n"] {
        base.run_with(&["ops", "validate"], message(&json!([create(content)]))).ok();
        assert_eq!(only(&base, &create(content))["bytesWritten"], 2, "{content:?}");
        assert_eq!(std::fs::read(base.at("workspace/a")).unwrap(), [0, 255]);
    }
    let read = only(&base, &json!({"type": "readFile", "path": "a", "encoding": "base64"}));
    assert_eq!(read["content"], "AP8=");
    for content in ["AP 8=", "AP-_", "A", "AP9=", "A===", "=", "AP8=x"] {
        let event = only(&base, &create(content));
        assert_eq!(event["category"], "validation", "{content:?}: {event}");
        assert_eq!(std::fs::read(base.at("workspace/a")).unwrap(), [0, 255]);
    }
}
