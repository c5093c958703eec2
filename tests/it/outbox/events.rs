//! Outboxes of sessions of operations, made of hostile values: a strict reader finds the events that
//! were put in, and nothing in them can pose as anything else or hide.

use std::time::Duration;

use crate::replies::which_outbox;
use deaddrop::outbox::{self, Environment, Files, render};
use deaddrop::policy::{Ask, Grant};
use deaddrop::protocol::operations::{self, Encoding, EventType, Status, parse_events_message};
use deaddrop::protocol::{
    Capture, CommandOutput, Detail, Dialect, Digest, Ending, Execution, Failure, FailureKind, Kind,
    Mistake, Outcome, RelPath, SentValues, Warning, WarningKind, read,
};
use deaddrop::session::{Pending, Question, Session};
use deaddrop::text::is_hazard;
use deaddrop::workspace::walk::Walk;
use proptest::prelude::*;
use proptest::sample::select;

fn session(task: &str) -> Session {
    let now = "2025-01-15T10:30:00Z".parse().unwrap();
    let mut session = Session::new("a1b2c3d4".into(), task, vec![], now);
    session.dialect = Dialect::Operations;
    session
}

fn shown(session: &Session) -> String {
    let some = || "x".to_owned();
    let environment = Environment {
        system: some(),
        shell: some(),
        sandbox: some(),
        network: some(),
        protected: some(),
        policy: None,
        timeout: 30,
        longest: 30,
        output_limit: 4,
        max_tokens: 24_000,
        context_tokens: 24_000,
        secrets: deaddrop::settings::Secrets::default(),
    };
    render(session, &environment, &Walk::of([("a", 1)]), &Files::default()).text
}

/// The JSON below `## Events`.
fn events_in(outbox: &str) -> &str {
    let (_, after) = outbox.split_once("\n=== CONTEXT ===\n").unwrap();
    let (_, after) = after.split_once("\n## Events\n").unwrap();
    let (json, _) = after.split_once("\n\n=== PROMPT ===\n").unwrap();
    json
}

fn ran(stdout: &str, stderr: &str) -> Detail {
    let capture = |text: &str| Capture { head: text.into(), ..Capture::default() };
    Detail::Ran(Execution {
        command: "ls".into(),
        ending: Ending::Exited(0),
        output: CommandOutput::Apart { stdout: capture(stdout), stderr: capture(stderr) },
        duration: Duration::from_millis(5),
    })
}

fn outcome(kind: Kind, about: &str, detail: Detail) -> Outcome {
    let asked = Some(SentValues { id: Some("i".into()), about: about.into() });
    Outcome { kind, line: 1, detail, warnings: vec![], asked, at: None }
}

#[test]
fn the_first_outbox_teaches_the_dialect_and_tells_the_task() {
    let outbox = shown(&session("Write\nit"));
    assert!(outbox.contains(&format!("=== PROTOCOL ===\n{}\n=== CONTEXT ===", operations::PROMPT)));
    assert!(
        outbox.contains("Limits: 30 s a command, 4 characters of its stdout and of its stderr")
    );
    assert_eq!(
        events_in(&outbox),
        r#"{"protocolVersion":"1.0","runId":"run_a1b2c3d4_0000","status":"completed","events":[
  {"type":"userMessage","timestamp":"2025-01-15T10:30:00Z","content":"Write\nit"}
]}"#
    );
    assert_eq!(which_outbox::prompt(&outbox), "Write\nit");
    assert!(!outbox.contains("RUN_COMMAND") && !outbox.contains("[DONE]"));
}

#[test]
fn later_outboxes_tell_the_events_and_what_the_user_says() {
    let mut session = session("Write it");
    let results = vec![
        outcome(Kind::Run, "ls", ran("123456789", "ab")),
        outcome(Kind::Delete, "./a", Failure::execution("x").as_a(Mistake::FileNotFound).into()),
    ];
    session.say("Hurry", "2025-01-15T10:31:00Z".parse().unwrap());
    session.advance(results, "2025-01-15T10:32:00Z".parse().unwrap());
    let outbox = shown(&session);
    assert_eq!(
        events_in(&outbox),
        r#"{"protocolVersion":"1.0","runId":"run_a1b2c3d4_0001","status":"completed","events":[
  {"type":"shell","operationId":"i","timestamp":"2025-01-15T10:32:00Z","command":"ls","success":true,"exitCode":0,"stdout":"12\n[... 5 characters left out ...]\n89","stderr":"ab","durationMs":5},
  {"type":"deleteFile","operationId":"i","timestamp":"2025-01-15T10:32:00Z","path":"./a","success":false,"error":"File not found"},
  {"type":"userMessage","timestamp":"2025-01-15T10:32:00Z","content":"Hurry"}
]}"#
    );
    assert_eq!(
        which_outbox::prompt(&outbox),
        "The user says:\n  Hurry\n\nContinue working on the task based on the events above. If the task is complete, send a message operation with the id \"done\" and a summary."
    );
    let whole = outbox::events(&session);
    assert_eq!(whole.events[0].event_type, EventType::Shell);
    assert_eq!(whole.events[0].stdout.as_deref(), Some("123456789"));
    assert_eq!(session.events_name(), "a1b2c3d4_seq0002.events.json");
}

#[test]
fn the_last_events_of_a_session_are_those_of_its_last_reply() {
    let mut session = session("Write it");
    let done = Detail::Completed { summary: "Done.".into() };
    session.advance(vec![outcome(Kind::Done, "", done)], session.updated_at);
    let events = outbox::events(&session);
    assert_eq!((&*events.run_id, events.status), ("run_a1b2c3d4_0001", Status::Completed));
    let types: Vec<_> = events.events.iter().map(|event| event.event_type).collect();
    assert_eq!(types, [EventType::Message], "{events:?}");
    assert_eq!(session.events_name(), "a1b2c3d4_seq0002.events.json");
}

#[test]
fn a_turn_that_waits_tells_what_it_came_to_and_what_is_asked() {
    let mut session = session("Write it");
    let before = shown(&session);
    assert_eq!(outbox::waiting(&session), None);
    let text = r#"{"protocolVersion": "1.0", "operations": [
        {"type": "message", "content": "x"},
        {"type": "shell", "id": "cleanup-1", "command": "rm -rf temp/*"}
    ]}"#;
    let steps = read(text, Dialect::Operations).steps;
    let first = Outcome::of(&steps[0], Detail::Shown { text: "x".into() });
    let question = Question {
        step: Some(1),
        id: "cleanup-1".into(),
        kind: Kind::Run,
        ask: Ask {
            reason: "Destructive command requires approval".into(),
            policy: "destructive_commands_approval".into(),
            opens: Grant::default(),
            always: false,
        },
        digest: Digest::of(b""),
        at: session.updated_at,
    };
    let pending = Pending {
        reply: "r.txt".into(),
        text: Digest::of(b""),
        steps,
        outcomes: vec![first],
        question,
        guest: None,
        decision: None,
    };
    session.pause(pending, session.updated_at);
    let message = outbox::waiting(&session).unwrap();
    assert_eq!(
        operations::print(&message),
        r#"{"protocolVersion":"1.0","runId":"run_a1b2c3d4_0001","status":"awaiting_approval","events":[
  {"type":"message","timestamp":"2025-01-15T10:30:00Z","success":true},
  {"type":"approvalRequired","operationId":"cleanup-1","timestamp":"2025-01-15T10:30:00Z","operationType":"shell","reason":"Destructive command requires approval","details":{"command":"rm -rf temp/*","policy":"destructive_commands_approval"}}
]}
"#
    );
    assert_eq!(session.events_name(), "a1b2c3d4_seq0002.events.json");
    // The outbox that the reply answers stays what it was.
    assert_eq!(shown(&session), before);
}

/// How every line of an event begins.
const BEGINS: &str = "  {\"type\":\"";

fn hostile() -> impl Strategy<Value = String> {
    const PIECES: &[&str] = &[
        "=== PROMPT ===",
        "\n=== CONTEXT ===\n",
        "--- end a ---",
        "## Events\n",
        "]}\n\n=== PROMPT ===\n",
        "\"}\n]}\n",
        "{\"protocolVersion\":\"1.0\",\"events\":[",
        "\\",
        "\\u202e",
        "\"",
        "\n",
        "\r\n",
        "\t",
        "\x1b[2J",
        "\u{202e}",
        "\u{2028}",
        "\u{85}",
        "\x7f",
        "\u{feff}",
        "\u{200b}",
        "\u{e0041}",
        "\u{200d}",
        "\0",
        "é😀",
    ];
    let piece = prop_oneof![9 => select(PIECES).prop_map(str::to_owned), 1 => any::<String>()];
    prop::collection::vec(piece, 0..9).prop_map(|pieces| pieces.concat())
}

fn hostile_outcome() -> impl Strategy<Value = Outcome> {
    let path = || RelPath::parse("a").unwrap();
    let detail = prop_oneof![
        (hostile(), hostile()).prop_map(|(stdout, stderr)| ran(&stdout, &stderr)),
        hostile().prop_map(move |content| {
            Detail::Read { path: path(), size: 1, encoding: Encoding::Utf8, content }
        }),
        (
            select(&[FailureKind::Execution, FailureKind::Denied, FailureKind::Invalid][..]),
            hostile()
        )
            .prop_map(|(kind, reason)| Failure::new(kind, reason).into()),
    ];
    (detail, hostile(), hostile(), prop::collection::vec(hostile(), 0..2)).prop_map(
        |(detail, id, about, warnings)| {
            let asked = Some(SentValues { id: Some(id), about });
            let warning = |text| Warning::new(WarningKind::Guard, text);
            let warnings = warnings.into_iter().map(warning).collect();
            Outcome { warnings, asked, ..outcome(Kind::Run, "", detail) }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn a_strict_reader_finds_the_events_that_were_put_in(
        task in hostile(),
        results in prop::collection::vec(hostile_outcome(), 0..4),
        said in prop::collection::vec(hostile(), 0..2),
        goes_on in any::<bool>(),
    ) {
        let mut session = session(&task);
        if goes_on {
            session.to_say.clone_from(&said);
            session.advance(results.clone(), session.updated_at);
        }
        let outbox = shown(&session);
        prop_assert!(!outbox.chars().any(is_hazard), "{:?}", outbox);
        for marker in ["=== CONTEXT ===", "=== PROMPT ===", "## Events", "## Environment"] {
            prop_assert_eq!(outbox.lines().filter(|line| line == &marker).count(), 1, "{}", outbox);
        }
        let json = events_in(&outbox);
        let lines: Vec<&str> = json.lines().collect();
        let events = lines.get(1..lines.len() - 1).unwrap_or_default();
        prop_assert!(json.ends_with("]}"), "{}", json);
        prop_assert!(events.iter().all(|line| line.starts_with(BEGINS)), "{}", json);

        let whole = outbox::events(&session);
        let found = parse_events_message(json).unwrap();
        prop_assert_eq!((&found.run_id, found.status), (&whole.run_id, whole.status));
        prop_assert_eq!(found.events.len(), whole.events.len());
        for (found, whole) in found.events.iter().zip(&whole.events) {
            prop_assert_eq!(found.event_type, whole.event_type);
            match found.event_type {
                EventType::Shell => {
                    prop_assert_eq!(&found.command, &whole.command);
                    for (found, whole) in [(&found.stdout, &whole.stdout), (&found.stderr, &whole.stderr)] {
                        let short = whole.as_ref().is_none_or(|text| text.chars().count() <= 4);
                        prop_assert!(found == whole || !short, "{:?}", found);
                    }
                }
                _ => prop_assert_eq!(found, whole),
            }
        }
        prop_assert_eq!(parse_events_message(&operations::print(&whole)).unwrap(), whole);
    }
}
