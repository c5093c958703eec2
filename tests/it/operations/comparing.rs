//! What an example of the texts shows, compared with what the program prints.

use serde_json::{Map, Value, json};

use super::{message, told};
use crate::support::{Project, Run};

/// The value of an example, by its text and the heading that it stands under; the `n`th there.
pub(super) fn example(text: &str, section: &str, n: usize) -> Value {
    let all = match text {
        "protocol" => include_str!("../../../src/protocol/operations/examples/protocol.json"),
        "reference" => include_str!("../../../src/protocol/operations/examples/reference.json"),
        _ => include_str!("../../../src/protocol/operations/examples/guide.json"),
    };
    let all: Vec<Value> = serde_json::from_str(all).unwrap();
    let mut found = all.iter().filter(|example| example["section"] == section);
    found.nth(n).unwrap_or_else(|| panic!("{text}: {section} {n}"))["value"].clone()
}

/// The fields of each type of event by its interface ("Event Types"), but for `type`.
pub(super) fn defined(kind: &str) -> &'static [&'static str] {
    match kind {
        "userMessage" => &["timestamp", "content"],
        "message" => &["operationId", "timestamp", "success"],
        "createFile" => &["operationId", "timestamp", "path", "success", "error", "bytesWritten"],
        "readFile" => {
            &["operationId", "timestamp", "path", "success", "content", "encoding", "size", "error"]
        }
        "editFile" => &["operationId", "timestamp", "path", "success", "editsApplied", "error"],
        "deleteFile" => &["operationId", "timestamp", "path", "success", "error"],
        "shell" => &[
            "operationId",
            "timestamp",
            "command",
            "success",
            "exitCode",
            "stdout",
            "stderr",
            "durationMs",
            "error",
            "timedOut",
        ],
        "approvalRequired" => &["timestamp", "operationId", "operationType", "reason", "details"],
        "policyDenied" => &["operationId", "timestamp", "operationType", "reason", "suggestion"],
        "error" => &["operationId", "timestamp", "category", "message", "details"],
        other => panic!("there is no event {other}"),
    }
}

/// How much of an event an example shows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    All,
    /// Some of it is left out.
    Some,
}

/// Asserts that an event is the one of the example, but for what is the run's own.
#[track_caller]
pub(super) fn same_event(shown: &Value, printed: &Value, how: Shown) {
    let kind = printed["type"].as_str().unwrap();
    let mut shown: Map<String, Value> = shown.as_object().unwrap().clone();
    let printed = printed.as_object().unwrap();
    for field in printed.keys().filter(|field| *field != "type") {
        assert!(defined(kind).contains(&field.as_str()), "{kind} has no {field}: {printed:?}");
    }
    shown.retain(|_, value| !value.is_null());
    if let Some(details) = shown.get_mut("details").and_then(Value::as_object_mut)
        && let Some(policy) = details.get_mut("policy")
    {
        *policy = json!("shell.approvalRequired");
    }
    for own in ["timestamp", "durationMs", "bytesWritten"] {
        if let Some(value) = shown.get_mut(own) {
            let mine = printed.get(own).unwrap_or_else(|| panic!("no {own}: {printed:?}"));
            assert_eq!(value.is_string(), mine.is_string(), "{own}: {printed:?}");
            *value = mine.clone();
        }
    }
    for (field, value) in &shown {
        assert_eq!(printed.get(field), Some(value), "{field}: {printed:?}");
    }
    if how == Shown::All {
        let (shown, printed): (Vec<_>, Vec<_>) = (shown.keys().collect(), printed.keys().collect());
        assert_eq!(printed, shown, "an example shows all fields");
    }
}

/// Asserts that a message is the one of the example; gives its run's id.
#[track_caller]
pub(super) fn same(shown: &Value, run: &Run, how: Shown) -> String {
    let printed = told(run);
    let fields: Vec<&String> = printed.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["events", "protocolVersion", "runId", "status"]);
    if how == Shown::All {
        assert_eq!(fields, shown.as_object().unwrap().keys().collect::<Vec<_>>());
    }
    for field in ["protocolVersion", "status"] {
        if let Some(value) = shown.get(field) {
            assert_eq!(&printed[field], value, "{printed}");
        }
    }
    let id = printed["runId"].as_str().unwrap();
    assert!(id.starts_with("run_") && id.len() > 4, "{id}");
    let (of_text, of_run) = (shown["events"].as_array().unwrap(), printed["events"].as_array());
    let of_run = of_run.unwrap();
    assert_eq!(of_run.len(), of_text.len(), "{printed}");
    for (shown, printed) in of_text.iter().zip(of_run) {
        same_event(shown, printed, how);
    }
    id.to_owned()
}

/// A project whose commands find a `bun` that prints what the examples say.
pub(super) struct Space(pub(super) Project);

impl Space {
    pub(super) fn new() -> Self {
        let base = Project::new();
        base.program(
            "workspace/bin/bun",
            "#!/bin/sh
case \"$*\" in
'run date-script.ts') echo 2025-01-15T10:30:02.123Z ;;
'run reminder.ts') echo 'Reminder created' ;;
'run test.ts') [ \"${PWD##*/}\" != src ] || [ \"$DEBUG\" = true ] || exit 9
    echo 'All tests passed!' ;;
'run a.ts') cat a.ts > output.txt ;;
'run app.ts' | 'run scripts/fetch-schedule.ts') [ -s \"$2\" ] ;;
test) ;;
*) echo \"bun: $*?\" >&2; exit 9 ;;
esac
",
        );
        Self(base)
    }

    /// Runs the program with `bun` first among the commands.
    pub(super) fn deaddrop(&self, arguments: &[&str], input: &str) -> Run {
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", self.0.at("workspace/bin").display());
        Run::of(self.0.command(arguments).env("PATH", path), input)
    }

    pub(super) fn run(&self, text: &str) -> Run {
        self.deaddrop(&["ops", "run"], text)
    }

    /// What comes of one operation.
    #[track_caller]
    pub(super) fn only(&self, operation: &Value) -> Value {
        let run = self.run(&message(&json!([operation])));
        let told = told(&run);
        assert_eq!(told["events"].as_array().unwrap().len(), 1, "{told}");
        told["events"][0].clone()
    }
}

/// The example of that section as a whole message, though it leaves the version out.
pub(super) fn with_version(mut example: Value) -> String {
    example["protocolVersion"] = json!("1.0");
    example.to_string()
}
