//! Steps that the person leaves out of a reply, and what binds their selection.

use serde_json::Value;

use crate::support::{ID, Project, wait_until};

const REPLY: &str = "[CREATE_FILE path=\"a\"]\none\n[/CREATE_FILE]\n\
    [CREATE_FILE path=\"b\"]\ntwo\n[/CREATE_FILE]\n[DONE if=\"ok\"]\nAll made.\n[/DONE]\n";

/// What identifies the reply and the files, by `check`.
#[track_caller]
fn state(base: &Project, reply: &str) -> String {
    let told = base.run_with(&["check", "--json", "-"], reply).stdout;
    serde_json::from_str::<Value>(&told).unwrap()["state"].as_str().unwrap().to_owned()
}

#[test]
fn a_step_that_is_left_out_is_not_executed_and_the_model_reads_why() {
    let base = Project::with_session();
    let flags = ["apply", "--leave-out", "1=keep the old one", "-"];
    base.run_with(&flags, REPLY).ok();
    assert_eq!((base.exists("workspace/a"), &*base.read("workspace/b")), (false, "two\n"));
    let outbox = base.outbox(2);
    let told = "[FAILED] CREATE_FILE: 'a' was left out by the user: keep the old one";
    assert!(outbox.contains(told), "{outbox}");
    assert!(outbox.contains("not counted"), "the session goes on: {outbox}");
}

#[test]
fn a_check_shows_what_is_left_of_the_reply() {
    let base = Project::with_session();
    let reply = format!("{REPLY}[RUN_COMMAND]\ntrue\ntrue\n[/RUN_COMMAND]\n");
    let check = |more: &[&str]| {
        let told = base.run_with(&[&["check", "--json", "-"], more].concat(), &reply).stdout;
        serde_json::from_str::<Value>(&told).unwrap()
    };
    let [all, some] = [check(&[]), check(&["--leave-out", "1=no"])];
    let paths = |told: &Value| -> Vec<String> {
        let files = told["files"].as_array().unwrap().iter();
        files.map(|file| file["path"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!((paths(&all), paths(&some)), (vec!["a".into(), "b".into()], vec!["b".into()]));
    assert_eq!((&some["commands"][0]["code"], &some["state"]), (&"denied".into(), &all["state"]));
    let scripts = all["commands"].as_array().unwrap().iter().map(|command| &command["script"]);
    assert_eq!(scripts.filter_map(Value::as_str).collect::<Vec<_>>(), ["true\ntrue"]);
}

#[test]
fn in_operations_it_is_denied() {
    let base = Project::new();
    base.run(&["new", "--no-watch", "--id", ID, "--dialect", "operations", "A task"]).ok();
    let reply = r#"{"protocolVersion": "1.0", "operations": [
        {"type": "createFile", "id": "c-1", "path": "a", "content": "x"},
        {"type": "shell", "id": "s-1", "command": "touch b"}]}"#;
    base.run_with(&["apply", "--leave-out", "2", "-"], reply).ok();
    assert_eq!((base.exists("workspace/a"), base.exists("workspace/b")), (true, false));
    let events = base.read(&format!("outbox/{ID}_seq0002.events.json"));
    let events: Value = serde_json::from_str(&events).unwrap();
    let denied = &events["events"][1];
    assert_eq!((&denied["type"], &denied["operationId"]), (&"policyDenied".into(), &"s-1".into()));
    assert_eq!(denied["reason"], "'touch b' was left out by the user");
}

#[test]
fn a_selection_counts_for_the_reply_and_the_files_that_were_seen() {
    let base = Project::with_session();
    let reply = "[EDIT_FILE path=\"f\" start_line=\"1\" end_line=\"1\"]\nnew\n[/EDIT_FILE]\n";
    base.write("workspace/f", "old\n");
    let seen = state(&base, reply);
    base.write("workspace/f", "other\n");
    let flags = ["apply", "--as-checked", &seen, "-"];
    base.fails_with(&flags, reply, "changed-since-check").with_code(1);
    assert_eq!((&*base.read("workspace/f"), base.names("outbox").len()), ("other\n", 1));
    let now = state(&base, reply);
    let another = reply.replace("new", "newer");
    let flags = ["apply", "--as-checked", &now, "-"];
    base.fails_with(&flags, &another, "changed-since-check").with_code(1);
    base.run_with(&flags, reply).ok();
    assert_eq!(base.read("workspace/f"), "new\n");
}

#[test]
fn a_file_of_the_inbox_that_was_seen_otherwise_is_held() {
    let base = Project::with_session();
    base.write("inbox/r.txt", REPLY);
    let seen = state(&base, REPLY);
    base.write("workspace/a", "now there\n");
    let flags = ["apply", "--as-checked", &seen, "inbox/r.txt"];
    base.fails(&flags, "changed-since-check").with_code(1);
    assert_eq!(base.names("inbox/held"), ["r.txt", "r.txt.why.txt"]);
}

#[test]
fn there_must_be_such_a_step() {
    let base = Project::with_session();
    base.fails_with(&["apply", "--leave-out", "4", "-"], REPLY, "no-such-step").with_code(1);
    let checked = base.run_with(&["check", "--json", "--leave-out", "4", "-"], REPLY).stdout;
    let checked: Value = serde_json::from_str(&checked).unwrap();
    assert_eq!(checked["heldCode"], "no-such-step");
    for wrong in ["0", "x", "=why"] {
        base.run_with(&["apply", "--leave-out", wrong, "-"], REPLY).with_code(2);
    }
    assert!(!base.exists("workspace/a"));
}

#[test]
fn it_stays_left_out_after_a_question() {
    let base = Project::new();
    base.begin_asking(ID);
    let reply = "[RUN_COMMAND]\nrm -rf x\n[/RUN_COMMAND]\n\
        [CREATE_FILE path=\"a\"]\none\n[/CREATE_FILE]\n";
    base.run_with(&["apply", "--leave-out", "2=no", "-"], reply).with_code(3);
    base.run(&["approve"]).ok();
    assert!(!base.exists("workspace/a"));
    assert!(base.outbox(2).contains("'a' was left out by the user: no"));
}

#[test]
fn it_stays_left_out_after_a_hard_stop() {
    let base = Project::with_session();
    let mut daemon = base.serve(&["watch"]);
    let reply = "[RUN_COMMAND]\ntouch begun; sleep 300\n[/RUN_COMMAND]\n\
        [CREATE_FILE path=\"a\"]\none\n[/CREATE_FILE]\n[CREATE_FILE path=\"b\"]\ntwo\n[/CREATE_FILE]\n";
    base.write("reply", reply);
    let mut apply = base.command(&["apply", "--leave-out", "2", "reply"]).spawn().unwrap();
    wait_until("the command", || base.exists("workspace/begun"));
    daemon.signal("KILL");
    daemon.wait();
    apply.wait().unwrap();
    base.run(&["resume", "--no-watch"]).ok();
    assert_eq!((base.exists("workspace/a"), base.exists("workspace/b")), (false, true));
    assert!(base.outbox(2).contains("'a' was left out by the user"));
}
