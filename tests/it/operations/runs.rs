//! `run`: one message of operations, told as events, with and without a question.

use serde_json::{Value, json};

use crate::support::{Project, Run, wait_until};

/// "Example 3: Sensitive Operation with Approval" of the specification.
const EXAMPLE: &str = r#"{
  "protocolVersion": "1.0",
  "operations": [
    {"type": "message", "content": "I need to clean up the temp directory."},
    {"type": "shell", "id": "cleanup-1", "command": "rm -rf temp/*"}
  ]
}"#;

fn message(operations: &Value) -> String {
    json!({"protocolVersion": "1.0", "operations": operations}).to_string()
}

fn events(run: &Run) -> Value {
    serde_json::from_str(&run.stdout).unwrap_or_else(|e| panic!("{e}: {run:?}"))
}

fn types(events: &Value) -> Vec<&str> {
    events["events"].as_array().unwrap().iter().map(|e| e["type"].as_str().unwrap()).collect()
}

#[test]
fn a_message_is_carried_out_without_a_session() {
    let base = Project::new();
    let text = message(&json!([
        {"type": "message", "id": "done", "content": "Hello"},
        {"type": "createFile", "path": "a", "content": "x\n"},
        {"type": "readFile", "path": "a"},
        {"type": "shell", "command": "cat a; cat missing >&2"},
        {"type": "shell", "command": "curl x"},
        {"type": "createFile", "path": "b"}
    ]));
    base.write(".m.json", &text);
    let run = base.run(&["ops", "run", ".m.json"]).ok();
    let told = events(&run);
    assert_eq!(
        types(&told),
        ["message", "createFile", "readFile", "shell", "policyDenied", "error"]
    );
    assert_eq!(told["status"], "completed");
    assert!(told["runId"].as_str().unwrap().starts_with("run_"));
    assert_eq!(told["events"][2]["content"], "x\n");
    assert_eq!(told["events"][3]["stdout"], "x\n");
    assert_eq!(run.stderr, "", "nothing but the events");
    assert!(run.stdout.starts_with("{\n  \"protocolVersion\": \"1.0\",\n  \"runId\""), "{run:?}");
    assert_eq!(base.names("outbox"), [""; 0]);
    assert_eq!(base.run(&["status"]).ok().stdout, "");
    // From standard input, within prose, on one line; the file is there now.
    let prose = format!("Sure!\n```json\n{text}\n```\n");
    let run = base.run_with(&["ops", "run", "--json"], prose).ok();
    assert_eq!(run.stdout.lines().count(), 1);
    assert_eq!(events(&run)["events"][1]["success"], false);
    assert!(base.run_with(&["ops", "run", "-v"], text).ok().stderr.contains("cat a"));
}

#[test]
fn the_policy_is_standard_unless_told_otherwise() {
    let base = Project::new();
    let text = message(&json!([{"type": "shell", "command": "touch made"}]));
    assert_eq!(types(&events(&base.run_with(&["ops", "run"], &text).ok())), ["policyDenied"]);
    let run = base.run_with(&["ops", "run", "--policy", "permissive"], &text).ok();
    assert_eq!(types(&events(&run)), ["shell"]);
    base.write("deaddrop.toml", "policy = \"workspace\"\n");
    assert_eq!(types(&events(&base.run_with(&["ops", "run"], &text).ok())), ["shell"]);
    let elsewhere = Project::new();
    let wrong = ["ops", "run", "--policy", "standrad"];
    let run = elsewhere.fails_with(&wrong, &text, "invalid-setting").with_code(2);
    assert!(run.message().contains("did you mean 'standard'?"), "{run:?}");
    elsewhere.fails(&["new", "--policy", "standrad", "A task"], "invalid-setting").with_code(2);
    assert_eq!(elsewhere.names("."), [""; 0], "nothing is made");
}

#[test]
fn the_third_example_of_the_specification() {
    let base = Project::new();
    base.write("workspace/temp/a", "x\n");
    let run = base.run_with(&["ops", "run"], EXAMPLE).with_code(3);
    let paused = events(&run);
    assert_eq!(paused["status"], "awaiting_approval");
    assert_eq!(types(&paused), ["message", "approvalRequired"]);
    let asked = &paused["events"][1];
    assert_eq!(asked["operationId"], "cleanup-1");
    assert_eq!(asked["operationType"], "shell");
    assert_eq!(asked["reason"], "Destructive command requires approval");
    assert_eq!(asked["details"]["command"], "rm -rf temp/*");
    let id = paused["runId"].as_str().unwrap();
    // It is told again as long as nobody has decided.
    let again = base.run(&["ops", "run", "--resume", id]).with_code(3);
    assert_eq!(events(&again), paused);
    assert!(base.run(&["status"]).ok().stdout.starts_with(&format!("{id}  waits for you")));
    assert_eq!(base.json(&["status"])["waiting"]["operation"], "cleanup-1");
    let status = base.run(&["status", id]).ok().stdout;
    let waits = "waits for your decision about cleanup-1: shell\n  | rm -rf temp/*\n";
    assert!(status.contains(waits), "{status}");
    let verbose = base.run(&["ops", "run", "--resume", id, "-v"]).with_code(3);
    assert!(verbose.stderr.contains("  | rm -rf temp/*\n"), "{verbose:?}");

    let approval = r#"{"approval": {"operationId": "cleanup-1", "decision": "approved"}}"#;
    base.write("approvals/a.json", approval);
    let run = base.run(&["ops", "run", "--resume", id]).ok();
    let resumed = events(&run);
    assert_eq!((&resumed["status"], &resumed["runId"]), (&json!("completed"), &json!(id)));
    assert_eq!(types(&resumed), ["shell"], "what was told is not told again");
    assert_eq!(resumed["events"][0]["exitCode"], 0);
    assert_eq!(base.names("workspace/temp"), [""; 0]);
    assert_eq!(events(&base.run(&["ops", "run", "--resume", id]).ok()), resumed);
    assert_eq!(base.run(&["status"]).ok().stdout, "");
}

#[test]
fn a_run_goes_on_after_approve_or_deny_and_keeps_its_policy() {
    let base = Project::new();
    base.write("workspace/temp/a", "x\n");
    let text = message(&json!([
        {"type": "shell", "command": "rm -r temp"},
        {"type": "shell", "command": "rm -r other"},
        {"type": "shell", "command": "touch made"}
    ]));
    let told = events(&base.run_with(&["ops", "run"], text).with_code(3));
    let id = told["runId"].as_str().unwrap();
    let run = base.run(&["approve"]).ok();
    assert!(run.stderr.contains(&format!("`deaddrop ops run --resume {id}` continues")), "{run:?}");
    assert!(run.stdout.is_empty() && base.exists("workspace/temp/a"), "it is only recorded");
    base.fails(&["approve"], "nothing-pending").with_code(5);
    let told = events(&base.run(&["ops", "run", "--resume", id]).with_code(3));
    assert_eq!(types(&told), ["shell", "approvalRequired"]);
    assert!(!base.exists("workspace/temp"));
    let run = base.run(&["deny", "--session", id, "--reason", "no", "--json"]).ok();
    assert_eq!(events(&run)["recorded"], true);
    base.run(&["ops", "run", "--resume", id, "--policy", "workspace"]).with_code(2);
    let told = events(&base.run(&["ops", "run", "--resume", id]).ok());
    assert_eq!(types(&told), ["policyDenied", "policyDenied"]);
    assert_eq!(told["events"][0]["reason"], "The user denied 'rm -r other': no");
    assert!(!base.exists("workspace/made"), "`touch` is not in the policy it began with");
}

#[test]
fn what_is_refused_is_told_as_an_event() {
    let base = Project::new();
    for text in [
        "",
        "Hello",
        "{\"protocolVersion\": \"1.0\"",
        r#"{"protocolVersion": "2.0", "operations": []}"#,
        "\u{0}",
    ] {
        let run = base.run_with(&["ops", "run"], text).with_code(1);
        let told = events(&run);
        assert_eq!(told["status"], "error", "{run:?}");
        assert_eq!(types(&told), ["error"]);
        assert_eq!(told["events"][0]["category"], "validation");
    }
    let run = base.run_with(&["ops", "run"], [0xff, 0xfe, 0xfd]).with_code(1);
    assert_eq!(types(&events(&run)), ["error"], "{run:?}");
    let told = events(&base.run_with(&["ops", "run"], message(&json!([]))).ok());
    assert_eq!((types(&told).len(), &told["status"]), (0, &json!("completed")));
    base.fails(&["ops", "run", "missing.json"], "io").with_code(1);
    base.fails(&["ops", "run", "--resume", "run_00000000"], "no-session").with_code(5);
    base.run(&["ops", "run", "--resume", "a1b2c3d4"]).with_code(2);
}

#[test]
fn a_run_beside_a_daemon_is_carried_out_by_it() {
    let base = Project::new();
    base.write("workspace/temp/a", "x\n");
    let daemon = base.serve(&["watch"]);
    let run = base.run_with(&["ops", "run"], EXAMPLE).with_code(3);
    let id = events(&run)["runId"].as_str().unwrap().to_owned();
    base.run(&["approve", "cleanup-1"]).ok();
    assert_eq!(types(&events(&base.run(&["ops", "run", "--resume", &id]).ok())), ["shell"]);
    let run = base.run_with(&["ops", "run"], EXAMPLE).with_code(3);
    let id = events(&run)["runId"].as_str().unwrap().to_owned();
    base.write("approvals/a.json", r#"{"type": "userMessage", "content": "denied"}"#);
    wait_until("the archive", || base.names("approvals/processed") == ["a.json"]);
    let told = events(&base.run(&["ops", "run", "--resume", &id]).ok());
    assert_eq!(types(&told), ["policyDenied"]);
    daemon.stop();
}

#[test]
fn a_session_speaks_the_dialect_and_has_the_policy_it_was_begun_with() {
    let base = Project::new();
    let new = ["new", "--no-watch", "--dialect", "operations", "--policy", "standard", "A task"];
    let outbox = base.run(&new).ok().stdout;
    assert!(base.read(outbox.trim()).contains("\"protocolVersion\": \"1.0\""));
    let reply = message(&json!([{"type": "shell", "id": "one", "command": "rm -r temp"}]));
    let run = base.run_with(&["apply", "-"], reply).with_code(3);
    assert!(run.stderr.contains("decision about one: shell\n  | rm -r temp"), "{run:?}");
    base.run(&["deny", "one"]).ok();
    let outbox = base.run(&["show"]).ok().stdout;
    assert!(outbox.contains("\"policyDenied\""), "{outbox}");
    base.run(&["new", "--dialect", "latin", "A task"]).with_code(2);
}
