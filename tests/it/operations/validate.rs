//! `validate` and `schema`: messages of the operations dialect, judged and described.

use std::process::Command;

use boon::{Compiler, Schemas};
use deaddrop::protocol::operations::{EVENTS_SCHEMA, OPERATIONS_SCHEMA};
use serde_json::{Value, json};

use crate::support::{Project, Run, program};

const TIME: &str = "2025-01-15T10:30:00Z";

/// A message of these operations, as text.
fn message(operations: &str) -> String {
    format!("{{\"protocolVersion\": \"1.0\", \"operations\": [{operations}]}}")
}

fn of_operation(operation: &Value) -> String {
    message(&operation.to_string())
}

fn of_event(event: &Value) -> String {
    json!({"protocolVersion": "1.0", "runId": "run_a", "status": "completed", "events": [event]})
        .to_string()
}

fn validate(input: impl AsRef<[u8]>) -> Run {
    let base = Project::new();
    let run = base.run_with(&["ops", "validate"], input);
    assert_eq!(base.names("."), Vec::<String>::new(), "it creates nothing");
    run
}

/// Asserts that each of these lines of faults, and no other, is told; gives only their beginnings.
#[track_caller]
fn refused(input: impl AsRef<[u8]>, beginnings: &[&str]) -> String {
    let run = validate(input).with_code(1);
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(lines.len(), beginnings.len(), "{run:#?}");
    for (line, beginning) in lines.iter().zip(beginnings) {
        assert!(line.starts_with(beginning), "{line}\nbegins not with {beginning}");
        assert!(line.contains(". Correct form: "), "{line}");
    }
    run.stdout
}

/// Whether the schema that the program prints takes a message.
fn taken(of: &str, message: &str) -> bool {
    let printed = Project::new().run(&["ops", "schema", of]).ok().stdout;
    let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
    compiler.add_resource("schema.json", serde_json::from_str(&printed).unwrap()).unwrap();
    // Compiling holds it against the schema of draft-07 that it names.
    let index = compiler.compile("schema.json", &mut schemas).unwrap();
    schemas.validate(&serde_json::from_str(message).unwrap(), index).is_ok()
}

/// Every example of the three texts that is an operation, an event or a message of them, with the
/// paths of what its text leaves out.
fn examples() -> Vec<(&'static str, String, Vec<String>)> {
    let texts = [
        include_str!("../../../src/protocol/operations/examples/protocol.json"),
        include_str!("../../../src/protocol/operations/examples/reference.json"),
        include_str!("../../../src/protocol/operations/examples/guide.json"),
    ];
    let all = texts.into_iter().flat_map(|text| serde_json::from_str::<Vec<Value>>(text).unwrap());
    let read = |example: Value| {
        let value = &example["value"];
        let (of, text, place) = match example["is"].as_str().unwrap() {
            "operation" => ("operations", of_operation(value), "$.operations[0]"),
            "operations" => ("operations", value.to_string(), "$"),
            "event" => ("events", of_event(value), "$.events[0]"),
            "events" => ("events", value.to_string(), "$"),
            _ => return None,
        };
        let faults = example["faults"].as_array().into_iter().flatten();
        let path = |path: &Value| path.as_str().unwrap().replacen('$', place, 1);
        Some((of, text, faults.map(path).collect()))
    };
    all.filter_map(read).collect()
}

#[test]
fn every_example_of_the_three_texts_is_judged_as_what_it_is() {
    let examples = examples();
    assert_eq!(examples.len(), 56);
    let mut valid = 0;
    for (of, text, faults) in examples {
        let beginnings: Vec<String> = faults.iter().map(|path| format!("{path}: ")).collect();
        if faults.is_empty() {
            let run = validate(&text).ok();
            assert_eq!(run.stdout, "", "{text}");
            assert!(run.stderr.starts_with(&format!("valid: an {of} message with ")), "{run:?}");
            valid += 1;
        } else {
            refused(&text, &beginnings.iter().map(String::as_str).collect::<Vec<_>>());
        }
        assert_eq!(taken(of, &text), faults.is_empty(), "{text}");
    }
    assert!(valid > 30, "{valid}");
}

#[test]
fn the_rules_of_the_validation_table_are_kept_at_their_bounds() {
    let shell = |key: &str, value: Value| json!({"type": "shell", "command": "ls", key: value});
    let read = |path: &str| json!({"type": "readFile", "path": path});
    let create = |content: String| json!({"type": "createFile", "path": "a", "content": content});
    for operation in [
        read(&"é".repeat(255)),
        create("x".repeat(10 << 20)),
        shell("command", json!("x".repeat(4096))),
        shell("timeout", json!(1000)),
        shell("timeout", json!(3_600_000)),
        shell("cwd", json!("src")),
        json!({"type": "message", "content": "x".repeat(100_000)}),
    ] {
        let run = validate(of_operation(&operation)).ok();
        assert_eq!(run.stderr, "valid: an operations message with 1 operation\n");
    }
    for (operation, told) in [
        (json!({"type": "moveFile"}), "type: there is no operation \"moveFile\""),
        (json!({"type": "sehll"}), "type: there is no operation \"sehll\" (\"shell\"?)"),
        (json!({}), "type: it is missing"),
        (read("/etc/passwd"), "path: the path is absolute"),
        (read("../outside.txt"), "path: the path contains `..`"),
        (read("file\0.txt"), "path: the path contains a null character (\"file␀.txt\")"),
        (read(&"é".repeat(256)), "path: the path is longer than 255 characters"),
        (create("x".repeat((10 << 20) + 1)), "content: the file would have 10485761 bytes"),
        (shell("command", json!("x".repeat(4097))), "command: it is 1 character too long"),
        (shell("timeout", json!(999)), "timeout: 999 is less than 1000"),
        (shell("timeout", json!(3_600_001)), "timeout: 3600001 is more than 3600000"),
        (shell("timeout", json!(-1)), "timeout: -1 is less than 1000"),
        (shell("timeout", json!(1e99)), "timeout: 1e+99 is more than 3600000"),
        (shell("timeout", json!("30000")), "timeout: \"30000\" is not of type integer"),
        (shell("timeout", json!(null)), "timeout: null is not of type integer"),
        (shell("cwd", json!("../")), "cwd: the path contains `..` (\"../\")"),
        (shell("env", json!({"A": 1})), "env.A: 1 is not of type string"),
        (
            json!({"type": "createFile", "path": "a", "content": "AP-8", "encoding": "base64"}),
            "content: the content is not base64: ",
        ),
    ] {
        refused(of_operation(&operation), &[&format!("$.operations[0].{told}")]);
    }
}

#[test]
fn all_faults_are_told_in_order_each_on_its_line() {
    let text = r#"{"protocolVersion": "2.0", "operations": [
        {"type": "shell", "id": 7, "timeout": 1, "cwd": "/"},
        {"type": "message", "content": "fine"},
        {"type": "createFile", "path": "../a\nb", "overwrite": "yes"}, 5]}"#;
    let paths = [
        "$.protocolVersion: \"2.0\" is not \"1.0\"",
        "$.operations[0].id: ",
        "$.operations[0].command: it is missing",
        "$.operations[0].cwd: ",
        "$.operations[0].timeout: ",
        "$.operations[2].path: ",
        "$.operations[2].content: it is missing",
        "$.operations[2].overwrite: ",
        "$.operations[3]: 5 is not an object",
    ];
    let told = refused(text, &paths);
    assert!(told.contains("(\"../a␊b\")"), "a fault keeps to its line: {told}");
    assert_eq!(validate(text).stderr, "invalid: 9 faults as an operations message\n");
}

#[test]
fn beyond_a_hundred_faults_the_rest_is_counted() {
    let text = message(&["5"; 105].join(", "));
    let run = validate(&text).with_code(1);
    assert_eq!(run.stdout.lines().count(), 100);
    assert!(run.stdout.lines().last().unwrap().starts_with("$.operations[99]: "), "{run:?}");
    assert!(run.stderr.contains("invalid: 105 faults") && run.stderr.contains("5 more faults"));
    let run = Project::new().run_with(&["ops", "validate", "--json", "-q"], &text).with_code(1);
    let verdict: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((verdict["faults"].as_array().unwrap().len(), &verdict["more"]), (100, &json!(5)));
    assert!(run.stderr.contains("5 more faults"), "what is left out is not kept quiet: {run:?}");
}

#[test]
fn an_events_message_is_validated_as_one() {
    let event = json!({"type": "message", "timestamp": TIME, "success": true});
    let run = validate(of_event(&event)).ok();
    assert_eq!(run.stderr, "valid: an events message with 1 event\n");
    let text = r#"{"events": [{"type": "userMessage", "content": "Hi"}]}"#;
    let missing =
        ["$.protocolVersion: ", "$.runId: ", "$.status: ", "$.events[0].timestamp: it is missing"];
    refused(text, &missing);
    assert_eq!(validate(text).stderr, "invalid: 4 faults as an events message\n");
    // Where it is not plain, it is of operations.
    for text in [r#"{"protocolVersion": "1.0", "events": [], "operations": []}"#, &message("")] {
        assert!(validate(text).ok().stderr.contains("an operations message with 0 operations"));
    }
    refused("{\"protocolVersion\": \"1.0\"}", &["$.operations: it is missing"]);
    refused("{\"type\": \"shell\"}", &["$.protocolVersion: ", "$.operations: it is missing"]);
}

#[test]
fn a_message_stands_alone() {
    let bare = message("{\"type\": \"shell\", \"command\": \"ls\"}");
    refused(format!("```json\n{bare}\n```\n"), &["$: it is not valid JSON: "]);
    refused(format!("{bare}\n{bare}"), &["$: it is not valid JSON: "]);
    refused("Just prose.", &["$: it is not valid JSON: a value is missing"]);
    refused(&bare[..bare.len() - 2], &["$: it is not valid JSON: it ends before"]);
    refused(format!("[{bare}]"), &["$: [{"]);
    // Blanks are nothing.
    validate(format!("\r\n\t {bare}\r\n\r\n")).ok();
}

#[test]
fn a_verdict_is_had_as_json() {
    let base = Project::new();
    let verdict = |input: &str, code: i32| {
        let run = base.run_with(&["--json", "ops", "validate", "-"], input).with_code(code);
        assert_eq!(run.stdout.lines().count(), 1);
        serde_json::from_str::<Value>(&run.stdout).unwrap()
    };
    assert_eq!(
        verdict(&message(""), 0),
        json!({"valid": true, "kind": "operations", "faults": []})
    );
    assert_eq!(
        verdict("{\"protocolVersion\": \"2.0\", \"operations\": []}", 1),
        json!({"valid": false, "kind": "operations", "faults": [{
            "path": "$.protocolVersion",
            "problem": "\"2.0\" is not \"1.0\"",
            "form": "\"protocolVersion\": \"1.0\"",
        }]})
    );
    assert_eq!(verdict("{\"events\": 5}", 1)["kind"], "events");
}

#[test]
fn a_file_is_read_whatever_an_editor_made_of_it() {
    let base = Project::new();
    let text = message("{\"type\": \"message\", \"content\": \"ä\"}");
    let wide = |mark: u16, unit: fn(u16) -> [u8; 2]| -> Vec<u8> {
        std::iter::once(mark).chain(text.encode_utf16()).flat_map(unit).collect()
    };
    for bytes in [
        text.clone().into_bytes(),
        format!("\u{feff}{text}").into_bytes(),
        wide(0xfeff, u16::to_le_bytes),
        wide(0xfeff, u16::to_be_bytes),
    ] {
        base.write("message.json", bytes);
        let run = base.run(&["ops", "validate", "message.json"]).ok();
        assert_eq!(run.stderr, "valid: an operations message with 1 operation\n");
    }
    for (bytes, told) in [
        (&b"\xff\xd8\xff"[..], "$: it is not text: "),
        (b"{\"a\": \0}", "$: it is not text: it contains NUL bytes"),
        (b"", "$: it is not valid JSON: it ends before it is complete"),
    ] {
        refused(bytes, &[told]);
    }
    let run = base.run(&["ops", "validate", "missing.json"]).with_code(1);
    assert!(run.stdout.is_empty() && run.stderr.contains("cannot read the message"), "{run:?}");
    assert_eq!(base.names("."), ["message.json"]);
}

#[test]
fn neither_a_base_directory_nor_settings_are_asked_for() {
    let base = Project::new();
    base.write("deaddrop.toml", "sandbox = [");
    for arguments in [
        &["ops", "validate"][..],
        &["-C", "missing", "ops", "validate"],
        &["-C", "missing", "ops", "schema"],
    ] {
        let mut command = base.command(arguments);
        Run::of(command.env("DEADDROP_SANDBOX", "nonsense"), message("")).ok();
    }
    let run = base.run_with(&["ops", "validate", "-q"], message("")).ok();
    assert_eq!((run.stdout, run.stderr), (String::new(), String::new()));
    base.run(&["ops", "validate", "a", "b"]).with_code(2);
    base.run(&["ops", "schema", "operation"]).with_code(2);
    assert_eq!(base.names("."), ["deaddrop.toml"]);
}

#[test]
fn hostile_json_is_refused_and_bounded() {
    for depth in [10_000, 200_000] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let deep = format!("{}1{}", open.repeat(depth), close.repeat(depth));
            assert_eq!(validate(&deep).with_code(1).stderr.lines().count(), 1);
            refused(open.repeat(depth), &["$: it is not valid JSON: "]);
            let operation =
                format!("{{\"type\": \"shell\", \"command\": \"ls\", \"x\": {deep}}}, 5");
            let told = "$.operations[0]: it is not valid JSON: it is nested deeper than 127";
            refused(message(&operation), &[told, "$.operations[1]: "]);
            let events = format!("{{\"events\": [{deep}]}}");
            refused(events, &["$: it is not valid JSON: it is nested deeper than 127"]);
        }
    }
    // Of keys that stand twice the last counts.
    let twice = r#"{"protocolVersion": "2.0", "operations": 5, "protocolVersion": "1.0", "operations": [
        {"type": "readFile", "type": "deleteFile", "path": "/", "path": "a"}]}"#;
    validate(twice).ok();
    refused(twice.replace("\"a\"", "\"../a\""), &["$.operations[0].path: the path contains `..`"]);
    // A reader of ours would take this for the operation within its text.
    let hidden =
        r#"{"$serde_json::private::RawValue": "{\"type\": \"shell\", \"command\": \"ls\"}"}"#;
    refused(message(hidden), &["$.operations[0].type: it is missing"]);
    // What a terminal would act on is shown.
    let told = refused("\x1b[2J\u{202e}", &["$: it is not valid JSON: "]);
    assert!(!told.contains('\x1b') && !told.contains('\u{202e}'), "{told}");
}

#[test]
fn what_is_too_long_is_not_read_to_its_end() {
    let told = "$: it is longer than 33554432 bytes; no more is read";
    refused(vec![b'x'; 100 << 20], &[told]);
    refused(vec![b' '; (32 << 20) + 1], &[told]);
    // Just as long as it may be.
    let mut most = message("").into_bytes();
    most.resize(32 << 20, b' ');
    validate(most).ok();
}

#[test]
#[cfg(target_os = "linux")]
fn a_message_takes_no_more_memory_than_it_may() {
    let base = Project::new();
    // Made into values as they stand these would be more than a gigabyte.
    let objects = "{\"\":0},".repeat(1_700_000);
    base.write(
        "operations",
        message(&format!("{{\"type\": \"editFile\", \"edits\": [{objects}0]}}")),
    );
    base.write("events", format!("{{\"events\": [{objects}0]}}"));
    for (name, place) in [("operations", "$.operations[0]"), ("events", "$")] {
        let script =
            format!("ulimit -v 600000; exec '{}' ops validate {name}", program().display());
        let run = Run::of(Command::new("sh").args(["-c", &script]).current_dir(base.path()), "");
        let told = format!("{place}: it is not valid JSON: it contains more values than");
        assert!(run.with_code(1).stdout.starts_with(&told), "{name}");
    }
}

#[test]
fn the_schemas_are_printed_as_they_are() {
    let base = Project::new();
    for (arguments, schema) in [
        (&["ops", "schema"][..], OPERATIONS_SCHEMA),
        (&["ops", "schema", "operations"], OPERATIONS_SCHEMA),
        (&["ops", "schema", "events"], EVENTS_SCHEMA),
        (&["ops", "schema", "events", "--json"], EVENTS_SCHEMA),
    ] {
        let run = base.run(arguments).ok();
        // Whether that of operations is the specification's is tested where it lies.
        let wanted: Value = serde_json::from_str(schema).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&run.stdout).unwrap(), wanted);
        assert_eq!(wanted["$schema"], "http://json-schema.org/draft-07/schema#");
        assert_eq!(run.stderr, "");
        assert_eq!(run.stdout.lines().count() == 1, arguments.contains(&"--json"));
    }
    assert_eq!(base.names("."), Vec::<String>::new());
}

#[test]
fn both_explain_themselves_with_examples() {
    let base = Project::new();
    for command in ["run", "validate", "schema"] {
        let help = base.run(&["ops", command, "--help"]).ok().stdout;
        assert!(
            help.contains("Examples:\n") && help.contains(&format!("  deaddrop ops {command} "))
        );
        assert!(base.run(&["ops", "--help"]).ok().stdout.contains(&format!("\n  {command} ")));
    }
}
