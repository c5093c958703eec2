//! Outcomes as events: each example event of the three texts is made again from an outcome, and the events of any
//! outcome are valid.

use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

use super::super::{
    Encoding, Event, Status, UtcTime, approval_required, events_of, status_of, user_message,
};
use super::validate_event;
use crate::protocol::{
    Capture, CommandOutput, Detail, Ending, Execution, Failure, FailureKind, Kind, Mistake,
    Operation, Outcome, RelPath, SentValues, ShellCommand, Step, StepContent, Warning, WarningKind,
};

fn time(text: &str) -> UtcTime {
    UtcTime::parse(text).unwrap()
}

fn now() -> UtcTime {
    time("2025-01-15T10:30:00Z")
}

fn outcome(kind: Kind, id: Option<&str>, about: &str, detail: Detail) -> Outcome {
    let asked = SentValues { id: id.map(str::to_owned), about: about.to_owned() };
    Outcome { kind, line: 1, detail, warnings: Vec::new(), asked: Some(asked), at: None }
}

fn failed(kind: Kind, about: &str, sort: FailureKind, reason: &str) -> Outcome {
    outcome(kind, Some("x-1"), about, Failure::new(sort, reason).into())
}

/// The only event of an outcome, as JSON without its time.
fn told(outcome: &Outcome) -> Value {
    let events = events_of(outcome, &now());
    assert_eq!(events.len(), 1);
    let mut event = serde_json::to_value(&events[0]).unwrap();
    assert!(event.as_object_mut().unwrap().remove("timestamp").is_some());
    event
}

fn ran(ending: Ending, stdout: &str, stderr: &str, ms: u64) -> Detail {
    let capture = |text: &str| Capture { head: text.into(), ..Capture::default() };
    let output = CommandOutput::Apart { stdout: capture(stdout), stderr: capture(stderr) };
    let duration = Duration::from_millis(ms);
    Detail::Ran(Execution { command: "as run".into(), ending, output, duration })
}

/// Makes the event of an example again, from the outcome that it reports.
fn again(example: &Map<String, Value>) -> Event {
    let text = |key: &str| example.get(key).and_then(Value::as_str).unwrap_or_default();
    let number = |key: &str| example.get(key).and_then(Value::as_u64);
    let id = example.get("operationId").and_then(Value::as_str);
    let at = example.get("timestamp").map_or_else(now, |at| time(at.as_str().unwrap()));
    let real = || RelPath::parse("where/it/really/is").unwrap();
    let path = real();
    let (kind, detail) = match text("type") {
        "userMessage" => return user_message(text("content"), at),
        "approvalRequired" => {
            let details = &example["details"];
            let command = details["command"].as_str().unwrap();
            let asks = StepContent::Operation(Operation::Run(ShellCommand::new(command)));
            let policy = details["policy"].as_str().unwrap();
            return approval_required(
                &Step::new(1, asks),
                id.unwrap_or("shell-1"),
                text("reason"),
                policy,
                at,
            );
        }
        "policyDenied" => {
            let suggestion = example.get("suggestion").map(|text| text.as_str().unwrap().into());
            let failure = Failure::new(FailureKind::Denied, text("reason"));
            (Kind::Run, Failure { suggestion, ..failure }.into())
        }
        "error" => {
            let sort = match text("category") {
                "validation" => FailureKind::Invalid,
                "system" => FailureKind::System,
                _ => FailureKind::NotRun,
            };
            (Kind::Reply, Failure::new(sort, text("message")).into())
        }
        "message" => (Kind::Message, Detail::Shown { text: "x".into() }),
        "createFile" if example["success"] == false => {
            (Kind::Create, Failure::execution(text("error")).into())
        }
        "createFile" => {
            let bytes = number("bytesWritten").unwrap_or(1);
            (Kind::Create, Detail::Created { path, bytes, replaced: false })
        }
        "readFile" if example["success"] == false => {
            (Kind::Read, Failure::execution(text("error")).into())
        }
        "readFile" => {
            let (content, size) = (text("content").to_owned(), number("size").unwrap_or(1));
            (Kind::Read, Detail::Read { path, content, encoding: Encoding::Utf8, size })
        }
        "editFile" => {
            let edits = usize::try_from(number("editsApplied").unwrap()).unwrap();
            (Kind::Edit, Detail::Replaced { path, edits, revision: None })
        }
        "deleteFile" => (Kind::Delete, Detail::Deleted { path }),
        "shell" => {
            let ms = number("durationMs").unwrap_or(1);
            let ending = match example.get("timedOut") {
                Some(_) => Ending::TimedOut(Duration::from_millis(ms)),
                None => Ending::Exited(0),
            };
            (Kind::Run, ran(ending, text("stdout"), text("stderr"), ms))
        }
        other => panic!("no event is {other}"),
    };
    let about = if kind == Kind::Run { text("command") } else { text("path") };
    let mut outcome = outcome(kind, id, about, detail);
    outcome.at = Some(at);
    events_of(&outcome, &time("2000-01-01T00:00:00Z")).remove(0)
}

#[test]
fn every_example_of_an_event_is_told_as_it_stands() {
    let mut seen = 0;
    for text in [
        include_str!("../examples/protocol.json"),
        include_str!("../examples/reference.json"),
        include_str!("../examples/guide.json"),
    ] {
        let examples: Vec<Value> = serde_json::from_str(text).unwrap();
        for example in examples {
            let events = match example["is"].as_str().unwrap() {
                "event" => vec![example["value"].clone()],
                "events" => example["value"]["events"].as_array().unwrap().clone(),
                _ => continue,
            };
            for event in events {
                let Value::Object(mut event) = event else { panic!("{event}") };
                // Some of the text's own abbreviations omit the type and report only a success.
                if !event.contains_key("type") {
                    continue;
                }
                // Slips in the text: null values, and empty details.
                event.retain(|key, value| {
                    let empty = key == "details" && *value == json!({});
                    !(value.is_null() || empty)
                });
                let told = serde_json::to_value(again(&event)).unwrap();
                let told = told.as_object().unwrap();
                // The event also contains the abbreviated fields. All that the example shows is the same.
                let abbreviated = [
                    "timestamp",
                    "bytesWritten",
                    "size",
                    "encoding",
                    "exitCode",
                    "durationMs",
                    "stdout",
                    "stderr",
                    "command",
                    "path",
                    "operationId",
                ];
                for (key, value) in told {
                    match event.get(key) {
                        Some(shown) => assert_eq!(shown, value, "{key} of {event:?}"),
                        None => assert!(
                            !event.contains_key("timestamp") && abbreviated.contains(&&**key)
                                || example.get("faults").is_some(),
                            "{key}: {event:?}"
                        ),
                    }
                }
                assert!(event.keys().all(|key| told.contains_key(key)), "{event:?}: {told:?}");
                seen += 1;
            }
        }
    }
    assert!(seen >= 35, "{seen}");
}

#[test]
fn failures_are_told_in_the_words_of_the_specification() {
    let failure = |kind, sort, reason| told(&failed(kind, "./a", sort, reason));
    let mistaken = |kind, mistake, suggestion: Option<&str>| {
        let failure = Failure::execution("File 'a' …").as_a(mistake);
        let suggestion = suggestion.map(str::to_owned);
        told(&outcome(kind, Some("x-1"), "./a", Failure { suggestion, ..failure }.into()))
    };
    assert_eq!(
        mistaken(Kind::Read, Mistake::FileNotFound, None),
        json!({"type": "readFile", "operationId": "x-1", "path": "./a", "success": false,
               "error": "File not found"})
    );
    assert_eq!(
        mistaken(Kind::Edit, Mistake::FileNotFound, Some("did you mean 'b'?"))["error"],
        "File not found: did you mean 'b'?"
    );
    assert_eq!(mistaken(Kind::Create, Mistake::FileExists, None)["error"], "File already exists");
    assert_eq!(
        failure(Kind::Read, FailureKind::Execution, "File 'a' not found")["error"],
        "File 'a' not found",
        "no sentence is read"
    );
    assert_eq!(
        failure(Kind::Delete, FailureKind::Rejected, "Path is outside workspace: 'a'"),
        json!({"type": "deleteFile", "operationId": "x-1", "path": "./a", "success": false,
               "error": "Path is outside workspace: 'a'"})
    );
    assert_eq!(
        failure(Kind::Run, FailureKind::Rejected, "no"),
        json!({"type": "shell", "operationId": "x-1", "command": "./a", "success": false,
               "error": "no"})
    );
    for (sort, category) in [
        (FailureKind::Invalid, "validation"),
        (FailureKind::NotRun, "execution"),
        (FailureKind::System, "system"),
    ] {
        let event = failure(Kind::Run, sort, "not carried out: x");
        assert_eq!((&event["type"], &event["category"]), (&json!("error"), &json!(category)));
        assert_eq!(event["operationId"], "x-1");
    }
}

#[test]
fn endings_are_told_each_in_its_way() {
    let event = |ending, ms| told(&outcome(Kind::Run, None, "", ran(ending, "o", "", ms)));
    let command = |rest: Value| {
        let mut all =
            json!({"type": "shell", "command": "as run", "success": false, "stdout": "o"});
        all.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        all
    };
    assert_eq!(
        event(Ending::Exited(3), 0),
        command(json!({"exitCode": 3, "stderr": "", "durationMs": 0}))
    );
    assert_eq!(
        event(Ending::Signalled(9), 7),
        command(
            json!({"exitCode": 137, "stderr": "", "durationMs": 7, "error": "ended by signal 9"})
        )
    );
    let timed_out = event(Ending::TimedOut(Duration::from_secs(1)), 1000);
    assert_eq!(
        timed_out,
        command(json!({"exitCode": 124, "stderr": "", "durationMs": 1000, "timedOut": true}))
    );
    for ending in [
        Ending::Interrupted,
        Ending::Lost,
        Ending::Stopped("x".into()),
        Ending::NotStarted("x".into()),
    ] {
        let event = event(ending, 0);
        assert!(event.get("exitCode").is_none() && event.get("durationMs").is_none(), "{event}");
        assert!(event["error"].is_string() && event["success"] == false, "{event}");
    }
    let together = CommandOutput::Together(Capture::cut("a", "", 2, "", "b"));
    let Detail::Ran(execution) = ran(Ending::Exited(0), "", "", 1) else { panic!() };
    let detail = Detail::Ran(Execution { output: together, ..execution });
    let event = told(&outcome(Kind::Run, None, "", detail));
    assert_eq!(event["stdout"], "a\n[... 2 characters left out ...]\nb");
    assert!(event.get("stderr").is_none());
}

#[test]
fn a_warning_is_part_of_the_event_of_its_operation() {
    let warnings = |sorts: &[WarningKind]| {
        sorts.iter().map(|sort| Warning::new(*sort, format!("{sort:?}"))).collect::<Vec<_>>()
    };
    let mut outcome = outcome(Kind::Run, Some("s"), "ls", ran(Ending::Exited(0), "", "", 1));
    outcome.warnings = warnings(&[WarningKind::Guard, WarningKind::Timeout]);
    assert_eq!(
        (&told(&outcome)["success"], &told(&outcome)["error"]),
        (&json!(true), &json!("Guard\nTimeout"))
    );
    for (detail, field, expected) in [
        (Failure::execution("x").into(), "error", "x\nGuard\nTimeout"),
        (Failure::new(FailureKind::Denied, "x").into(), "reason", "x\nGuard\nTimeout"),
        (Failure::new(FailureKind::System, "x").into(), "message", "x\nGuard\nTimeout"),
    ] {
        outcome.detail = detail;
        assert_eq!(told(&outcome)[field], expected);
    }
    // A message event has no field for a warning, and a warning about the reply belongs to no operation.
    outcome.kind = Kind::Message;
    outcome.detail = Detail::Shown { text: "x".into() };
    outcome.warnings = warnings(&[WarningKind::OtherDialect, WarningKind::EndNotLast]);
    let events = serde_json::to_value(events_of(&outcome, &now())).unwrap();
    let told: Vec<_> = events
        .as_array()
        .unwrap()
        .iter()
        .map(|event| {
            (
                event["type"].as_str().unwrap(),
                event["operationId"].as_str(),
                event["message"].as_str(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("message", Some("s"), None),
            ("error", Some("s"), Some("EndNotLast")),
            ("error", None, Some("OtherDialect")),
        ]
    );
}

#[test]
fn a_command_that_ran_has_both_streams() {
    let streams = |ending| {
        let event = told(&outcome(Kind::Run, None, "", ran(ending, "", "", 1)));
        [event.get("stdout").cloned(), event.get("stderr").cloned()]
    };
    let empty = || [Some(json!("")), Some(json!(""))];
    for ending in [
        Ending::Exited(1),
        Ending::Signalled(9),
        Ending::TimedOut(Duration::from_secs(1)),
        Ending::Interrupted,
        Ending::Stopped("x".into()),
    ] {
        assert_eq!(streams(ending), empty());
    }
    for ending in [Ending::Lost, Ending::NotStarted("x".into())] {
        assert_eq!(streams(ending), [None, None]);
    }
}

#[test]
fn the_machine_and_refused_messages_make_a_run_an_error() {
    let of = |kind, sort| failed(kind, "", sort, "x");
    assert_eq!(status_of(&[]), Status::Completed);
    for kind in [FailureKind::Execution, FailureKind::Denied, FailureKind::Invalid] {
        assert_eq!(status_of(&[of(Kind::Run, kind)]), Status::Completed);
    }
    assert_eq!(status_of(&[of(Kind::Run, FailureKind::System)]), Status::Error);
    // An operation of an unknown type is skipped, but a whole message is refused.
    let mut refused = of(Kind::Reply, FailureKind::Invalid);
    assert_eq!(status_of(std::slice::from_ref(&refused)), Status::Completed);
    refused.asked = None;
    assert_eq!(status_of(&[refused]), Status::Error);
    let beyond = Failure::new(FailureKind::Invalid, "x").as_a(Mistake::TooMany);
    assert_eq!(status_of(&[outcome(Kind::Run, None, "", beyond.into())]), Status::Error);
}

fn any_outcome() -> impl Strategy<Value = Outcome> {
    let kinds = [
        Kind::Message,
        Kind::Create,
        Kind::Edit,
        Kind::Delete,
        Kind::Read,
        Kind::Run,
        Kind::Done,
        Kind::Reply,
    ];
    let sorts = [
        FailureKind::Invalid,
        FailureKind::Rejected,
        FailureKind::Execution,
        FailureKind::NotRun,
        FailureKind::Denied,
        FailureKind::System,
    ];
    let path = || RelPath::parse("a").unwrap();
    let ending = prop_oneof![
        any::<i32>().prop_map(Ending::Exited),
        any::<i32>().prop_map(Ending::Signalled),
        Just(Ending::TimedOut(Duration::MAX)),
        Just(Ending::Lost),
        any::<String>().prop_map(Ending::Stopped),
    ];
    let detail = prop_oneof![
        (select(sorts.to_vec()), any::<String>())
            .prop_map(|(sort, reason)| Failure::new(sort, reason).into()),
        (ending, any::<String>()).prop_map(|(ending, text)| ran(ending, &text, "", 1)),
        any::<String>().prop_map(|text| Detail::Shown { text }),
        any::<String>().prop_map(|reason| Detail::Unknown { reason }),
        Just(Detail::ReadLater { path: path(), part: crate::protocol::Part::default() }),
        Just(Detail::Edited { path: path(), lines: (1, 2), inserted: 1, total: 3, revision: None }),
        any::<String>().prop_map(move |content| Detail::Read {
            path: path(),
            content,
            encoding: Encoding::Utf8,
            size: 1
        }),
    ];
    let asked = proptest::option::of((proptest::option::of(any::<String>()), any::<String>()));
    (select(kinds.to_vec()), detail, asked, prop::collection::vec(any::<String>(), 0..2)).prop_map(
        |(kind, detail, asked, warnings)| {
            let asked = asked.map(|(id, about)| SentValues { id, about });
            let warning = |text| Warning::new(WarningKind::Guard, text);
            let warnings = warnings.into_iter().map(warning).collect::<Vec<_>>();
            Outcome { kind, line: 1, detail, warnings, asked, at: None }
        },
    )
}

proptest! {
    #[test]
    fn whatever_came_of_it_its_events_are_valid(outcome in any_outcome()) {
        for event in events_of(&outcome, &now()) {
            let json = serde_json::to_value(&event).unwrap();
            prop_assert_eq!(validate_event(&json), Ok(event), "{}", json);
            prop_assert!(json.as_object().unwrap().values().all(|value| !value.is_null()));
        }
    }
}
