//! What `--json` tells while deaddrop serves: an object a line, by these names.

use serde_json::{Value, json};

use crate::support::{ID, Project, wait_until};

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

fn names(told: &[Value]) -> Vec<&str> {
    told.iter().map(|event| event["event"].as_str().unwrap()).collect()
}

/// All that `watch --json` tells: once it has told of the first event of this name, this is asked of deaddrop,
/// and so many ends of turns are waited for.
#[track_caller]
fn watched(base: &Project, first: &str, act: &[&str], ends: usize) -> Vec<Value> {
    let out = base.at("told");
    let stdout = std::fs::File::create(&out).unwrap();
    let null = std::process::Stdio::null;
    let mut command = base.command(&["watch", "--json"]);
    let mut child = command.stdin(null()).stderr(null()).stdout(stdout).spawn().unwrap();
    let seen = |event: &str| {
        let told = std::fs::read_to_string(&out).unwrap();
        told.matches(&format!("\"event\":\"{event}\"")).count()
    };
    wait_until(first, || seen(first) > 0);
    base.run(act).ok();
    wait_until("the end", || seen("end") == ends);
    child.kill().unwrap();
    child.wait().unwrap();
    lines(&std::fs::read_to_string(&out).unwrap())
}

/// An event without what differs from machine to machine, which must be there.
fn portable(mut event: Value) -> Value {
    if event["tokens"].is_u64() {
        event["tokens"] = "N".into();
    }
    if event["changed"]["records"].is_array() {
        // Of permissions too, and so of the umask.
        event["changed"]["records"] = "R".into();
    }
    event
}

#[test]
fn each_event_of_a_turn_is_a_line() {
    let base = Project::with_session();
    let reply = "[CREATE_FILE path=\"a\" mode=\"x\"]\n1\n[/CREATE_FILE]\n[RUN_COMMAND]\necho no; exit 3\n[/RUN_COMMAND]\n[CREATE_FILE path=\"../b\"]\n1\n[/CREATE_FILE]\n";
    base.write("inbox/1.txt", reply);
    base.write("inbox/2.txt", b"\xff\xd8");
    let run = base.run(&["resume", "--no-watch", "--json"]).ok();
    let told: Vec<Value> = lines(&run.stdout).into_iter().map(portable).collect();
    let session = |sequence| json!({ "session": ID, "sequence": sequence });
    let with = |value: Value, more: Value| {
        let mut value = value;
        for (key, field) in more.as_object().unwrap() {
            value[key] = field.clone();
        }
        value
    };
    let created = json!({ "line": 1, "command": "CREATE_FILE", "success": true, "code": null, "summary": "Created 'a'", "output": null, "warnings": [{ "code": "unknown-attribute", "message": "line 1: the attribute mode is unknown to CREATE_FILE and was ignored" }] });
    let ran = json!({ "line": 4, "command": "RUN_COMMAND", "success": false, "code": "exit-status", "summary": "Ran 'echo no; exit 3' (exit code 3)", "output": "no", "warnings": [] });
    let refused = json!({ "line": 7, "command": "CREATE_FILE", "success": false, "code": "path-refused", "summary": "REJECTED: Path is outside workspace: '../b' (line 7, `[CREATE_FILE path=\"../b\"]`). Correct form: [CREATE_FILE path=\"relative/path\"], the whole content on the lines below, then [/CREATE_FILE] alone on a line", "output": null, "warnings": [] });
    let operation = |of: &Value, mark: &str| {
        with(with(of.clone(), session(1)), json!({ "event": "operation", "mark": mark }))
    };
    let start = |line: u32, command: &str, what: &str| {
        let start = json!({ "event": "start", "line": line, "command": command, "what": what });
        with(start, session(1))
    };
    let outbox = |n: u32| json!({ "outbox": format!("outbox/{ID}_seq{n:04}.txt"), "tokens": "N", "withheld": [] });
    let rest = json!({ "isComplete": false, "summary": null, "waiting": null, "results": [], "changed": null });
    let none = json!({ "count": 0, "named": [] });
    let created_file =
        json!({ "path": "a", "from": null, "how": "new", "lines": [1, 0], "byCommand": false });
    let changed = json!({ "records": "R", "files": 1, "named": [created_file], "byCommands": 0, "folders": none, "unrestorable": none, "ignored": null, "rules": null, "notKept": null, "back": null });
    let expected = [
        with(with(with(session(1), outbox(1)), rest.clone()), json!({ "event": "session" })),
        with(session(1), json!({ "event": "begin", "reply": "1.txt", "goesOn": false })),
        start(1, "CREATE_FILE", "'a'"),
        operation(&created, "done"),
        start(4, "RUN_COMMAND", "'echo no; exit 3'"),
        operation(&ran, "failed"),
        operation(&refused, "refused"),
        with(with(session(2), outbox(2)), json!({ "event": "outbox" })),
        with(
            with(with(session(2), outbox(2)), rest),
            json!({ "event": "end", "results": [created, ran, refused], "changed": changed }),
        ),
        json!({ "event": "warning", "message": "2.txt was moved to inbox/rejected: it is not text: save the reply as UTF-8" }),
    ];
    for (n, expected) in expected.iter().enumerate() {
        assert_eq!(told.get(n), Some(expected), "{n} of {}", run.stdout);
    }
    assert_eq!(told.len(), expected.len(), "{}", run.stdout);
}

#[test]
fn a_question_and_what_follows_from_its_answer_are_events() {
    let base = crate::approvals::asked::scene();
    base.write("inbox/r.txt", crate::approvals::asked::ASKS);
    let told = watched(&base, "question", &["approve"], 2);
    assert_eq!(
        names(&told),
        [
            "session",
            "begin",
            "start",
            "operation",
            "end",
            "question",
            "begin",
            "start",
            "operation",
            "start",
            "operation",
            "outbox",
            "end"
        ]
    );
    assert_eq!(told[5]["waiting"]["command"], "rm -r temp");
    assert_eq!(told[4]["waiting"], told[5]["waiting"]);
    assert_eq!((&told[1]["goesOn"], &told[6]["goesOn"]), (&json!(false), &json!(true)));
    assert!(told.iter().all(|event| event["session"] == ID), "{told:?}");
}

#[test]
fn who_carries_out_one_reply_gets_one_object_as_before() {
    let base = Project::with_session();
    let run = base.run_with(&["apply", "--json"], "[MESSAGE]\nHello\n[/MESSAGE]\n").ok();
    let told = lines(&run.stdout);
    assert_eq!(told.len(), 1, "{}", run.stdout);
    assert_eq!(told[0]["outbox"], format!("outbox/{ID}_seq0002.txt"));
    assert_eq!(told[0]["results"][0]["output"], "Hello");
}

#[test]
fn a_turn_that_was_cut_off_and_is_finished_at_the_start_has_its_end() {
    let base = Project::with_session();
    let mut daemon = base.serve(&["watch"]);
    base.write("inbox/r.txt", "[RUN_COMMAND]\ntouch begun; sleep 300\n[/RUN_COMMAND]\n");
    wait_until("the command", || base.exists("workspace/begun"));
    daemon.signal("KILL");
    daemon.wait();
    let run = base.run(&["resume", "--no-watch", "--json"]).ok();
    let told = lines(&run.stdout);
    assert_eq!(names(&told), ["session", "warning", "outbox", "end"], "{}", run.stdout);
    let end = &told[3];
    assert_eq!(
        (&end["recovered"], &end["session"], &end["sequence"]),
        (&json!(true), &json!(ID), &json!(2))
    );
    assert_eq!(end["results"][0]["success"], false);
    assert_eq!(told[2]["outbox"], format!("outbox/{ID}_seq0002.txt"));
}

#[test]
fn an_undo_begins_and_ends_as_a_turn_does() {
    let base = Project::with_session();
    base.apply("[CREATE_FILE path=\"a\"]\n1\n[/CREATE_FILE]\n");
    let told = watched(&base, "session", &["undo"], 1);
    assert_eq!(names(&told), ["session", "begin", "outbox", "end"]);
    let begin =
        json!({ "event": "begin", "session": ID, "sequence": 2, "reply": "undo", "goesOn": false });
    assert_eq!(told[1], begin);
}

#[test]
fn an_outbox_is_as_many_tokens_wherever_that_is_told() {
    let base = Project::new();
    for n in 0..30 {
        let lines: String = (1..=300).map(|n| format!("{n}\n")).collect();
        base.write(&format!("workspace/n{n}"), lines);
    }
    let tokens = |arguments: &[&str]| -> u64 {
        let run = base.run(arguments).ok();
        lines(&run.stdout)[0]["tokens"].as_u64().unwrap_or_else(|| panic!("{run:?}"))
    };
    let new = base.run(&["new", "--no-watch", "--id", ID, "A task"]).ok();
    for added in [false, true] {
        if added {
            base.run(&["say", "Use tabs"]).ok();
        }
        let told = tokens(&["show", "--json"]);
        let exactly = deaddrop::tokens::count(&base.outbox(1));
        assert!(exactly > 4_000 && told.abs_diff(exactly as u64) * 10 < told, "{told}: {exactly}");
        assert_eq!(tokens(&["show", "--copy", "--json"]), told);
        assert_eq!(tokens(&["resume", "--no-watch", "--json"]), told);
        assert_eq!(tokens(&["show", "--json", "1"]), told);
        if !added {
            let said = deaddrop::tokens::rounded(usize::try_from(told).unwrap());
            assert!(new.stderr.contains(&said), "{new:?}");
        }
    }
}
