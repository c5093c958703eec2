//! Properties of any text: reading never panics, valid values stay the same when they are printed and read again, and
//! all ways to read have the same result.

use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::super::validate::path_problem;
use super::super::{
    Encoding, find, parse_approval, parse_events_message, parse_operations_message, receive,
};
use super::{parse_event, parse_operation, validate_operation, validate_operations_message};

/// Pieces of which replies in this dialect consist, in any order.
pub(super) fn pieces() -> impl Strategy<Value = String> {
    const PIECES: &[&str] = &[
        "{\"protocolVersion\": \"1.0\", \"operations\": [",
        "{\"type\": \"shell\", \"command\": \"ls\", \"timeout\": ",
        "{\"type\": \"createFile\", \"path\": \"a\", \"content\": \"",
        "{\"type\":\"message\",\"content\":\"x\"}",
        "1000}",
        "\"}",
        "]}",
        "]",
        "}",
        "{",
        "[",
        ",",
        ":",
        "\"",
        "\\",
        "\\ud800",
        "null",
        "1e400",
        "-1",
        "\n",
        "\r\n",
        "```",
        "```json\n",
        "~~~\n",
        "json",
        "\u{feff}",
        "é😀",
        "\0",
        " ",
    ];
    prop::collection::vec(select(PIECES), 0..24).prop_map(|pieces| pieces.concat())
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["\\PC{0,12}", pieces()]
}

fn path() -> impl Strategy<Value = String> {
    "[a-zé😀/ .\\\\]{0,12}"
        .prop_filter("a path of the dialect", |path| path_problem(path).is_none())
}

fn content() -> impl Strategy<Value = (String, Option<Encoding>)> {
    prop_oneof![
        text().prop_map(|text| (text, None)),
        text().prop_map(|text| (text, Some(Encoding::Utf8))),
        any::<Vec<u8>>().prop_map(|bytes| {
            (Encoding::Base64.encode(&bytes).unwrap(), Some(Encoding::Base64))
        }),
    ]
}

/// An object with those fields that have a value.
fn object<const N: usize>(kind: &str, fields: [(&str, Option<Value>); N]) -> Value {
    let there = fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    Value::Object(there.chain([("type".to_owned(), kind.into())]).collect())
}

fn operation() -> impl Strategy<Value = Value> {
    let id = || of(text().prop_map(Value::from));
    let path = || path().prop_map(Value::from);
    let encoding = select(vec![Encoding::Utf8, Encoding::Base64]).prop_map(|it| json!(it));
    let edit =
        (text(), text()).prop_map(|(old, new)| json!({"oldContent": old, "newContent": new}));
    let env = prop::collection::btree_map(text(), text(), 0..3).prop_map(|env| json!(env));
    let timeout = (1000..=3_600_000_u32).prop_map(Value::from);
    prop_oneof![
        (id(), text()).prop_map(|(id, content)| {
            object("message", [("id", id), ("content", Some(content.into()))])
        }),
        (id(), path(), content(), of(any::<bool>())).prop_map(|(id, path, content, overwrite)| {
            let (content, encoding) = (content.0.into(), content.1.map(|it| json!(it)));
            let overwrite = overwrite.map(Value::from);
            object(
                "createFile",
                [
                    ("id", id),
                    ("path", Some(path)),
                    ("content", Some(content)),
                    ("encoding", encoding),
                    ("overwrite", overwrite),
                ],
            )
        }),
        (id(), path(), of(encoding)).prop_map(|(id, path, encoding)| {
            object("readFile", [("id", id), ("path", Some(path)), ("encoding", encoding)])
        }),
        (id(), path(), prop::collection::vec(edit, 0..3)).prop_map(|(id, path, edits)| {
            object("editFile", [("id", id), ("path", Some(path)), ("edits", Some(edits.into()))])
        }),
        (id(), path())
            .prop_map(|(id, path)| { object("deleteFile", [("id", id), ("path", Some(path))]) }),
        (id(), text(), of(path()), of(timeout), of(env)).prop_map(
            |(id, command, cwd, timeout, env)| {
                let command = Some(command.into());
                object(
                    "shell",
                    [
                        ("id", id),
                        ("command", command),
                        ("cwd", cwd),
                        ("timeout", timeout),
                        ("env", env),
                    ],
                )
            }
        ),
    ]
}

/// A valid message.
pub(super) fn message() -> impl Strategy<Value = Value> {
    prop::collection::vec(operation(), 0..4)
        .prop_map(|operations| json!({"protocolVersion": "1.0", "operations": operations}))
}

fn holds_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.iter().any(holds_null),
        Value::Object(map) => map.values().any(holds_null),
        _ => false,
    }
}

proptest! {
    #[test]
    fn reading_never_panics_and_all_ways_to_read_agree(
        text in prop_oneof![
            pieces(),
            any::<Vec<u8>>().prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
        ]
    ) {
        let _ = (parse_event(&text), parse_events_message(&text), parse_approval(&text));
        let (operation, message) = (parse_operation(&text), parse_operations_message(&text));
        if let Ok(value) = serde_json::from_str::<Value>(&text) {
            prop_assert_eq!(&operation, &validate_operation(&value));
            prop_assert_eq!(&message, &validate_operations_message(&value));
        } else {
            prop_assert!(operation.is_err());
        }
        let received = receive(&text);
        let all_good = received.as_ref().is_ok_and(|r| r.entries.iter().all(|e| e.operation.is_ok()));
        prop_assert_eq!(all_good, message.is_ok());
        if let Some(Ok(found)) = find(&text) {
            prop_assert!(found.line <= text.split('\n').count());
        }
    }

    #[test]
    fn a_valid_message_survives_being_printed_and_read(message in message()) {
        let operations = message["operations"].as_array().unwrap();
        let plain = serde_json::to_string(&message).unwrap();
        let pretty = serde_json::to_string_pretty(&message).unwrap();
        for text in [&plain, &pretty] {
            prop_assert_eq!(&parse_operations_message(text).unwrap(), operations);
        }
        prop_assert!(!holds_null(&message));
        prop_assert_eq!(&validate_operations_message(&message).unwrap(), operations);
        for reply in [pretty.clone(), format!("As I said:\n\n```json\n{pretty}\n```\nSo {{it}} is.\n")] {
            let found = find(&reply).unwrap().unwrap();
            let found: Vec<Value> =
                found.entries.into_iter().map(|entry| entry.operation.unwrap()).collect();
            prop_assert_eq!(&found, operations);
        }
    }

    #[test]
    fn one_operation_survives_being_printed_and_read(operation in operation()) {
        let text = serde_json::to_string(&operation).unwrap();
        prop_assert_eq!(parse_operation(&text), Ok(operation));
    }

    #[test]
    fn every_fault_is_one_line(text in pieces()) {
        if let Err(faults) = parse_operations_message(&text) {
            prop_assert!(faults.count() > 0);
            let told = faults.to_string();
            prop_assert_eq!(told.split('\n').count(), faults.count());
            prop_assert!(told.split('\n').all(|line| line.starts_with('$')), "{}", told);
        }
    }

    #[test]
    fn bytes_survive_base64(bytes in any::<Vec<u8>>()) {
        let text = Encoding::Base64.encode(&bytes).unwrap();
        prop_assert_eq!(Encoding::Base64.decode(&text).unwrap().into_owned(), bytes);
    }
}
