//! The rules for operations ("Operation Types", "Validation Rules"), each tested at its limits.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::{
    CONTENT_LIMIT, Encoding, OPERATION_TYPES, parse_operations_message, receive, steps,
};
use super::{
    parse_operation, paths, validate_operation, validate_operations_message, with, without,
};
use crate::protocol::{Existing, Kind, Operation, Step, StepContent};

/// One operation of each type, with all its fields.
fn full() -> [Value; 6] {
    [
        json!({"type": "message", "id": "m", "content": "Hello"}),
        json!({"type": "createFile", "id": "c", "path": "a", "content": "eA==",
               "encoding": "base64", "overwrite": true}),
        json!({"type": "readFile", "id": "r", "path": "a", "encoding": "base64"}),
        json!({"type": "editFile", "id": "e", "path": "a",
               "edits": [{"oldContent": "x", "newContent": ""}]}),
        json!({"type": "deleteFile", "id": "d", "path": "a"}),
        json!({"type": "shell", "id": "s", "command": "ls", "cwd": "src", "timeout": 1000,
               "env": {"DEBUG": "true"}}),
    ]
}

/// The step for an operation.
fn step(operation: &Value) -> Step {
    let message = json!({"protocolVersion": "1.0", "operations": [operation]});
    steps(Ok(receive(&message.to_string()).unwrap()), false).remove(0)
}

fn told(operation: &Value) -> String {
    validate_operation(operation).unwrap_err().to_string()
}

#[test]
fn fields_are_required_or_may_be_left_out_but_are_never_null_or_of_another_type() {
    let optional = ["id", "encoding", "overwrite", "cwd", "timeout", "env"];
    for operation in full() {
        assert_eq!(validate_operation(&operation).unwrap(), operation);
        for key in operation.as_object().unwrap().keys() {
            let less = without(&operation, key);
            if optional.contains(&&**key) {
                let less = if key == "encoding" && less.get("content").is_some() {
                    with(&less, "content", json!("x"))
                } else {
                    less
                };
                assert_eq!(validate_operation(&less).unwrap(), less);
            } else {
                let faults = validate_operation(&less).unwrap_err();
                assert_eq!(paths(&faults), [format!("$.{key}")]);
                assert!(faults.to_string().contains(": it is missing. Correct form: "));
            }
            for other in [json!(null), json!([[]]), json!(-0.5), json!({"a": 1})] {
                let faults = validate_operation(&with(&operation, key, other)).unwrap_err();
                assert!(paths(&faults)[0].starts_with(&format!("$.{key}")), "{faults}");
            }
        }
    }
}

#[test]
fn what_is_left_out_has_its_default() {
    let create = json!({"type": "createFile", "path": "a", "content": "x"});
    let step = step(&create);
    assert_eq!(step.asked.unwrap().id, None);
    let StepContent::Operation(Operation::Create { content, existing, .. }) = step.asks else {
        panic!()
    };
    assert_eq!((content, existing), ("x".into(), Existing::Fail));
}

#[test]
fn there_are_six_types_and_no_extensions() {
    for (name, _) in OPERATION_TYPES {
        let count = full().iter().filter(|operation| operation["type"] == name).count();
        assert_eq!(count, 1, "{name}");
    }
    assert_eq!(
        told(&json!({"type": "create_file", "path": 1})),
        "$.type: there is no operation \"create_file\" (\"createFile\"?). Correct form: \"type\": one of \"message\", \"createFile\", \"readFile\", \"editFile\", \"deleteFile\", \"shell\""
    );
    for name in ["", "Shell", "moveFile", "userMessage", "error", "done"] {
        assert!(told(&json!({"type": name})).starts_with("$.type: there is no operation"));
    }
    for none in [json!(null), json!(1), json!("shell"), json!([]), json!(true)] {
        assert!(told(&none).starts_with("$: "), "{none}");
    }
}

#[test]
fn fields_without_a_meaning_are_ignored() {
    let more = with(&full()[5], "timeoutMs", json!(null));
    assert_eq!(validate_operation(&more), validate_operation(&full()[5]));
}

#[test]
fn paths_and_working_directories_are_held_to_the_same_rules() {
    for operation in full() {
        for key in ["path", "cwd"] {
            if operation.get(key).is_none() {
                continue;
            }
            for (path, problem) in [
                ("/etc/passwd", "the path is absolute (\"/etc/passwd\")"),
                ("../", "the path contains `..` (\"../\")"),
                ("a..b", "the path contains `..` (\"a..b\")"),
                ("a\0", "the path contains a null character (\"a␀\")"),
                (&*"😀".repeat(128), "the path is longer than 255 characters"),
            ] {
                let told = told(&with(&operation, key, json!(path)));
                assert!(told.starts_with(&format!("$.{key}: {problem}")), "{told}");
                assert!(told.contains(&format!("Correct form: \"{key}\": \"src")), "{told}");
            }
            let longest = with(&operation, key, json!("é".repeat(255)));
            assert!(validate_operation(&longest).is_ok());
        }
    }
}

#[test]
fn commands_and_messages_have_a_length_in_utf_16_units() {
    for (operation, key, most) in [(&full()[5], "command", 4096), (&full()[0], "content", 100_000)]
    {
        for (unit, most) in [("a", most), ("é", most), ("😀", most / 2)] {
            let text = |n: usize| json!(unit.repeat(n));
            assert!(validate_operation(&with(operation, key, text(most))).is_ok());
            let told = told(&with(operation, key, text(most + 1)));
            assert!(told.contains(" too long. Correct form: "), "{told}");
        }
    }
    let told = told(&with(&full()[5], "command", json!("x".repeat(4100))));
    assert!(told.starts_with("$.command: it is 4 characters too long. "), "{told}");
    // No rule says that a command or a message must not be empty.
    assert!(validate_operation(&with(&full()[5], "command", json!(""))).is_ok());
}

#[test]
fn created_files_have_at_most_10_mib() {
    let plain = json!({"type": "createFile", "path": "a", "content": "x".repeat(CONTENT_LIMIT)});
    assert_eq!(CONTENT_LIMIT, 10_485_760);
    assert!(validate_operation(&plain).is_ok());
    let one_more = told(&with(&plain, "content", json!("x".repeat(CONTENT_LIMIT + 1))));
    assert!(one_more.starts_with("$.content: the file would have 10485761 bytes"), "{one_more}");
    // For base64, the limit applies to the decoded file, not to the text.
    let base64 = with(&plain, "encoding", json!("base64"));
    let of = |n: usize| json!(Encoding::Base64.encode(&vec![0; n]).unwrap());
    assert!(validate_operation(&with(&base64, "content", of(CONTENT_LIMIT))).is_ok());
    let one_more = told(&with(&base64, "content", of(CONTENT_LIMIT + 1)));
    assert!(one_more.contains("10485761 bytes"), "{one_more}");
}

#[test]
fn base64_must_be_base64_where_it_is_said_to_be() {
    for content in ["AP9", "not base64!!", "AP8==", "A-_8"] {
        let told = told(&with(&full()[1], "content", json!(content)));
        assert!(told.starts_with("$.content: the content is not base64: "), "{told}");
        assert!(told.contains("\"aGVsbG8=\" (base64"), "{told}");
        let plain = with(&without(&full()[1], "encoding"), "content", json!(content));
        assert!(validate_operation(&plain).is_ok());
    }
    for name in ["utf8", "UTF-8", "hex", ""] {
        assert!(told(&with(&full()[2], "encoding", json!(name))).starts_with("$.encoding: \""));
    }
}

#[test]
fn timeouts_are_whole_milliseconds_from_a_second_to_an_hour() {
    let shell = &full()[5];
    for (text, kept) in [("1000", 1000), ("3600000", 3_600_000), ("30000.0", 30000), ("3e4", 30000)]
    {
        let value = with(shell, "timeout", serde_json::from_str(text).unwrap());
        let StepContent::Operation(Operation::Run(run)) = step(&value).asks else { panic!() };
        assert_eq!(run.timeout, Some(Duration::from_millis(kept)));
    }
    for text in ["999", "3600001", "-1", "0", "1e99", "1500.5", "\"1000\"", "4294968296", "1e400"] {
        let shell = shell.to_string().replace("1000", text);
        assert!(parse_operation(&shell).is_err(), "{shell}");
    }
}

#[test]
fn environments_hold_texts_only() {
    let shell = &full()[5];
    assert_eq!(
        told(&with(shell, "env", json!({"A": "1", "B": 2}))),
        "$.env.B: 2 is not of type string. Correct form: \"env\": {\"DEBUG\": \"true\"} (an object, every value a string)"
    );
    for env in [json!([]), json!("A=1"), json!({"A": null}), json!({"A": ["b"]})] {
        assert!(told(&with(shell, "env", env)).starts_with("$.env"));
    }
    assert!(validate_operation(&with(shell, "env", json!({}))).is_ok());
}

#[test]
fn edits_are_pairs_and_each_is_looked_at() {
    let edit = &full()[3];
    let edits =
        json!([{"oldContent": "a"}, 5, {"oldContent": "a", "newContent": "b"}, {"newContent": 1}]);
    let faults = validate_operation(&with(edit, "edits", edits)).unwrap_err();
    assert_eq!(
        paths(&faults),
        ["$.edits[0].newContent", "$.edits[1]", "$.edits[3].oldContent", "$.edits[3].newContent"]
    );
    assert!(validate_operation(&with(edit, "edits", json!([]))).is_ok());
}

#[test]
fn all_faults_of_a_message_are_told_each_on_its_line_and_in_order() {
    let message = json!({
        "protocolVersion": 1.0,
        "operations": [
            {"type": "shell", "id": 7, "timeout": 1, "cwd": "/"},
            {"type": "message", "content": "fine"},
            {"type": "createFile", "path": "/a\nb", "overwrite": "yes"},
        ],
    });
    let faults = validate_operations_message(&message).unwrap_err();
    assert_eq!(
        paths(&faults),
        [
            "$.protocolVersion",
            "$.operations[0].id",
            "$.operations[0].command",
            "$.operations[0].cwd",
            "$.operations[0].timeout",
            "$.operations[2].path",
            "$.operations[2].content",
            "$.operations[2].overwrite",
        ]
    );
    let told = faults.to_string();
    assert_eq!(told.lines().count(), 8);
    assert!(told.lines().all(|line| line.contains(". Correct form: ")), "{told}");
    assert_eq!(parse_operations_message(&message.to_string()), Err(faults));
}

#[test]
fn only_version_1_0_is_spoken_and_another_is_refused_as_a_whole() {
    let message = json!({"protocolVersion": "1.0", "operations": [full()[0].clone()]});
    assert!(receive(&message.to_string()).is_ok());
    for version in [json!("2.0"), json!("1.1"), json!("1"), json!(""), json!(1.0), json!(null)] {
        let message = with(&message, "protocolVersion", version);
        let faults = receive(&message.to_string()).unwrap_err();
        assert_eq!(paths(&faults), ["$.protocolVersion"]);
        assert!(faults.to_string().ends_with("Correct form: \"protocolVersion\": \"1.0\""));
    }
    let faults = receive(&without(&message, "protocolVersion").to_string()).unwrap_err();
    assert!(faults.to_string().starts_with("$.protocolVersion: it is missing"));
}

#[test]
fn a_message_without_a_list_of_operations_is_refused_as_a_whole() {
    for (text, path) in [
        ("{\"protocolVersion\": \"1.0\"}", "$.operations"),
        ("{\"protocolVersion\": \"1.0\", \"operations\": {}}", "$.operations"),
        ("{\"protocolVersion\": \"1.0\", \"operations\": null}", "$.operations"),
        ("{\"protocolVersion\": \"1.0\", \"operations\": 1e400}", "$.operations"),
        ("[]", "$"),
        ("", "$"),
        ("null", "$"),
        ("{\"protocolVersion\": \"1.0\", \"operations\": []} x", "$"),
    ] {
        assert_eq!(paths(&receive(text).unwrap_err()), [path], "{text}");
        assert_eq!(paths(&parse_operations_message(text).unwrap_err()), [path], "{text}");
    }
    let empty = parse_operations_message("{\"protocolVersion\": \"1.0\", \"operations\": []}");
    assert_eq!(empty, Ok(vec![]));
}

#[test]
fn a_malformed_operation_does_not_stop_the_others() {
    let text = "\u{feff}\r\n{\"protocolVersion\": \"1.0\", \"operations\": [\r\n\
        {\"type\": \"message\", \"content\": \"1\"},\r\n\
        {\"type\": \"shell\", \"id\": \"s-1\", \"command\": 5},\r\n\
        {\"type\": \"shell\", \"command\": \"\\ud800\"},\r\n\
        {\"type\": \"moveFile\", \"id\": 5},\r\n\
        7, {\"type\": \"deleteFile\", \"path\": \"a\"}]}";
    let received = receive(text).unwrap();
    assert_eq!(received.line, 2);
    let lines: Vec<usize> = received.entries.iter().map(|entry| entry.line).collect();
    assert_eq!(lines, [3, 4, 5, 6, 7, 7]);
    let good: Vec<bool> = received.entries.iter().map(|entry| entry.operation.is_ok()).collect();
    assert_eq!(good, [true, false, false, false, false, true]);
    let malformed = &received.entries[1..5];
    let faults = |n: usize| malformed[n].operation.as_ref().unwrap_err();
    assert_eq!(
        (malformed[0].asked.id.as_deref(), malformed[0].kind),
        (Some("s-1"), Some(Kind::Run))
    );
    assert_eq!(paths(faults(0)), ["$.operations[1].command"]);
    assert!(faults(1).to_string().contains("surrogates come in pairs) (line 5"));
    assert_eq!((&malformed[2].asked.id, malformed[2].kind), (&None, None));
    assert_eq!(paths(faults(3)), ["$.operations[4]"]);
}
