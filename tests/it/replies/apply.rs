//! `apply` and `check`: a reply carried out without a daemon, and one that is only looked at.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::SystemTime;

use crate::support::{ID, Project, Run};

const OTHER: &str = "00ff00ff";
const CREATE: &str = "[CREATE_FILE path=\"a\"]\none\ntwo\n[/CREATE_FILE]\n";

/// Everything in a project: kinds, contents and times.
fn snapshot(base: &Project) -> BTreeMap<PathBuf, (bool, SystemTime, Vec<u8>)> {
    let entries = walkdir::WalkDir::new(base.path()).into_iter().map(|entry| {
        let entry = entry.unwrap();
        let found = entry.metadata().unwrap();
        let bytes = if found.is_file() { std::fs::read(entry.path()).unwrap() } else { vec![] };
        (entry.into_path(), (found.is_dir(), found.modified().unwrap(), bytes))
    });
    entries.collect()
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

#[test]
fn apply_prints_the_path_of_the_next_outbox_and_no_more() {
    let base = Project::with_session();
    base.write("r.txt", CREATE);
    let run = base.run(&["apply", "r.txt"]).ok();
    assert_eq!(run.stdout, format!("outbox/{ID}_seq0002.txt\n"));
    assert!(run.stderr.contains("Created 'a'"), "{run:?}");
    let run = base.run_with(&["apply", "--again", "-"], CREATE).ok();
    assert_eq!(run.stdout, format!("outbox/{ID}_seq0003.txt\n"));
    let run = base.run_with(&["apply", "--again"], CREATE).ok();
    assert_eq!(run.stdout, format!("outbox/{ID}_seq0004.txt\n"));
    assert!(base.exists("r.txt"), "a file outside the inbox stays");
    assert_eq!(base.names("inbox/processed").len(), 3, "a copy of each is kept");
}

#[test]
fn apply_succeeds_where_a_command_in_the_reply_fails() {
    let base = Project::with_session();
    let reply = "[RUN_COMMAND]\nexit 9\n[/RUN_COMMAND]\n[FROB]\n[EDIT_FILE path=\"no\"]\n";
    assert_eq!(base.codes(reply)[0], "exit-status");
    assert_eq!(base.codes("Just words.\n"), ["no-command"]);
}

#[test]
fn a_file_that_lies_in_the_inbox_is_not_run_twice() {
    let base = Project::with_session();
    base.write("inbox/r.txt", "[RUN_COMMAND]\necho once >> log\n[/RUN_COMMAND]\n");
    base.run(&["apply", "inbox/r.txt"]).ok();
    assert_eq!(base.names("inbox"), [".claimed", "processed"]);
    assert_eq!(base.names("inbox/processed"), ["r.txt"]);
    base.run(&["resume", "--no-watch"]).ok();
    assert_eq!(base.read("workspace/log"), "once\n");
}

#[test]
fn apply_asks_which_of_several_sessions() {
    let base = Project::with_session();
    base.begin(OTHER);
    for command in [["apply", "-"], ["say", "Hello"]] {
        let told = base.fails_with(&command, CREATE, "several-sessions").with_code(2).message();
        assert!([OTHER, ID, "--session"].iter().all(|named| told.contains(named)), "{told}");
    }
    assert!(!base.exists("workspace/a"));
    let run = base.run_with(&["apply", "--session", OTHER, "-"], CREATE).ok();
    assert_eq!(run.stdout, format!("outbox/{OTHER}_seq0002.txt\n"));
}

#[test]
fn apply_tells_why_a_file_cannot_be_a_reply() {
    let base = Project::with_session();
    let run = base.fails(&["apply", "missing.txt"], "io").with_code(1);
    assert!(run.message().contains("missing.txt"), "{run:?}");
    for (bytes, why) in [(&b"\xff\xd8"[..], "UTF-8"), (b"a\0b", "NUL")] {
        base.write("r", bytes);
        for command in ["apply", "check"] {
            let run = base.run(&[command, "r"]).with_code(1);
            assert!(run.stderr.contains(why) && run.stdout.is_empty(), "{run:?}");
        }
    }
    base.sh("truncate -s 40M big");
    assert!(base.run(&["apply", "big"]).with_code(1).stderr.contains("33554432"));
    base.run(&["apply", "workspace"]).with_code(1);
    assert_eq!(base.names("outbox").len(), 1);
}

#[test]
fn apply_as_json_tells_of_the_turn() {
    let base = Project::with_session();
    let reply = format!("{CREATE}[RUN_COMMAND]\necho hi; exit 3\n[/RUN_COMMAND]\n");
    let told = json(&base.run_with(&["apply", "--json"], reply).ok().stdout);
    assert_eq!(told["outbox"], format!("outbox/{ID}_seq0002.txt"));
    assert_eq!(told["sequence"], 2);
    assert_eq!(told["results"][0]["success"], true);
    assert_eq!(told["results"][1]["success"], false);
    assert_eq!(told["results"][1]["line"], 5);
    assert!(told["results"][1]["output"].as_str().unwrap().contains("hi"));
    let told = json(&base.run_with(&["apply", "--json"], "[DONE]\nWell\n[/DONE]\n").ok().stdout);
    assert_eq!(told["isComplete"], true);
    assert_eq!(told["summary"], "Well");
    assert!(told["outbox"].is_null());
}

#[test]
fn without_a_file_it_reads_standard_input_wherever_it_is_called() {
    let base = Project::with_session();
    base.write("inbox/-", "[CREATE_FILE path=\"wrong\"]\nx\n[/CREATE_FILE]\n");
    let reply = "[CREATE_FILE path=\"right\"]\nx\n[/CREATE_FILE]\n";
    let mut command = base.command(&["-C", "..", "apply"]);
    Run::of(command.current_dir(base.at("inbox")), reply).ok();
    assert_eq!((base.exists("workspace/right"), base.exists("workspace/wrong")), (true, false));
}

#[test]
fn check_changes_nothing_at_all() {
    let base = Project::with_session();
    base.apply(CREATE);
    base.write("inbox/r.txt", format!("{CREATE}[DELETE_FILE path=\"a\"]\n[DONE]\nx\n[/DONE]\n"));
    base.write(
        "bad",
        "[RUN_COMMAND]\ntouch b\n[/RUN_COMMAND]\n[CREATE_FILE path=\"../x\"]\n[/CREATE_FILE]\n",
    );
    let before = snapshot(&base);
    base.run(&["check", "inbox/r.txt"]).ok();
    base.run(&["check", "--session", ID, "bad"]).with_code(1);
    base.run(&["check", "--json", "bad"]).with_code(1);
    assert_eq!(snapshot(&base), before);

    let empty = Project::new();
    empty.run_with(&["check"], CREATE).ok();
    assert_eq!(empty.names("."), Vec::<String>::new());
}

#[test]
fn check_shows_a_diff_for_every_file() {
    let base = Project::with_session();
    base.apply("[CREATE_FILE path=\"a\"]\none\ntwo\n[/CREATE_FILE]\n[CREATE_FILE path=\"old\"]\nx\n[/CREATE_FILE]\n");
    // The second edit sees what the first left, and both see the created file.
    let reply = "[EDIT_FILE path=\"a\" start_line=\"1\" end_line=\"1\"]\nONE\nmore\n[/EDIT_FILE]\n\
                 [EDIT_FILE path=\"a\" start_line=\"3\" end_line=\"3\"]\nTWO\n[/EDIT_FILE]\n\
                 [CREATE_FILE path=\"b\"]\nb\n[/CREATE_FILE]\n\
                 [EDIT_FILE path=\"b\" start_line=\"1\" end_line=\"1\"]\nB\n[/EDIT_FILE]\n\
                 [DELETE_FILE path=\"old\"]\n";
    let run = base.run_with(&["check"], reply).ok();
    for part in [
        "--- a/a\n+++ b/a\n@@ -1,2 +1,3 @@\n-one\n-two\n+ONE\n+more\n+TWO\n",
        "--- /dev/null\n+++ b/b\n@@ -0,0 +1 @@\n+B\n",
        "--- a/old\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n",
    ] {
        assert!(run.stdout.contains(part), "{part}\nin\n{}", run.stdout);
    }
    assert!(
        run.stderr.contains("5 commands, 0 errors, 0 warnings, 3 files would change"),
        "{run:?}"
    );

    let told = json(&base.run_with(&["check", "--json"], reply).ok().stdout);
    let changes: Vec<_> = told["files"].as_array().unwrap().iter().map(|f| &f["change"]).collect();
    assert_eq!(changes, ["changed", "created", "deleted"]);
    assert_eq!((&told["errors"], &told["warnings"]), (&0.into(), &0.into()));
}

#[test]
fn check_finds_what_would_fail() {
    let base = Project::with_session();
    for reply in [
        "[EDIT_FILE path=\"no\" start_line=\"1\" end_line=\"1\"]\nx\n[/EDIT_FILE]\n",
        "[CREATE_FILE path=\"../x\"]\nx\n[/CREATE_FILE]\n",
        "[CREATE_FILE path=\"x\"]\nunclosed\n",
        "[DELETE_FILE path=\"no\"]\n",
        "[READ_FILE path=\"no\"]\n",
        "No command at all.\n",
        "",
    ] {
        let run = base.run_with(&["check"], reply).with_code(1);
        let mark = if reply.contains("../x") { "REFUSED" } else { "FAILED" };
        assert!(run.stdout.contains(mark), "{reply}: {run:?}");
    }
}

#[test]
fn check_looks_at_a_reply_as_apply_would_carry_it_out() {
    const LS: &str = r#"{"protocolVersion": "1.0", "operations": [{"type": "shell", "command": "npm test"}, {"type": "createFile", "path": "a", "content": "x"}]}"#;
    let base = Project::new();
    // Without a session it is the settings' policy, and tags.
    let run = base.run_with(&["check", "--policy", "standard"], LS).ok();
    assert!(run.stdout.contains("would   CREATE_FILE  create 'a'\n"), "{run:?}");
    let start = ["new", "--no-watch", "--dialect", "operations", "--policy", "restrictive", "x"];
    base.run(&start).ok();
    let run = base.run_with(&["check", "--policy", "permissive"], LS).with_code(1);
    assert!(run.stdout.contains("REFUSED shell        "), "{run:?}");
    let run = base.run_with(&["check"], "Hello").with_code(1);
    assert!(run.stdout.contains("contains no operations message"), "{run:?}");
    // Several are open, of which one has to be named.
    base.begin(ID);
    base.run_with(&["check"], LS).with_code(2);
    let run = base.run_with(&["check", "--session", ID], "Hello").with_code(1);
    assert!(!run.stdout.contains("operations message"), "{run:?}");
}

#[test]
fn an_end_that_does_not_count_is_not_told_as_one() {
    let base = Project::new();
    base.run(&["new", "--no-watch", "--id", ID, "--dialect", "operations", "x"]).ok();
    let reply = r#"{"protocolVersion": "1.0", "operations": [
        {"type": "deleteFile", "id": "gone", "path": "no"},
        {"type": "deleteFile", "path": "none"},
        {"type": "message", "id": "done", "content": "All done"}]}"#;
    let told = "not counted: 2 operations before it failed (\"gone\", operation 2), so the session goes on";
    let run = base.run_with(&["apply", "-"], reply).ok();
    assert!(run.stderr.contains(&format!("  --    DONE         {told}\n")), "{run:?}");
    assert!(run.stderr.contains("FAILED  deleteFile   "), "{run:?}");
    assert!(!run.stderr.contains("All done"), "{run:?}");
    let status = base.run(&["status", ID]).ok().stdout;
    assert!(status.contains(told) && !status.contains("ok"), "{status}");
    let outbox = base.run(&["show"]).ok().stdout;
    let events = outbox.split_once("## Events").unwrap().1.replace("\\\"", "'");
    let told = told.replace('"', "'");
    assert!(events.contains(&format!("\"message\":\"{told}\"")), "{events}");
}

#[test]
fn check_is_uncertain_after_a_command() {
    let base = Project::with_session();
    let reply = "[RUN_COMMAND]\nmake b\n[/RUN_COMMAND]\n[READ_FILE path=\"b\"]\n";
    let run = base.run_with(&["check"], reply).ok();
    assert!(run.stdout.contains("would run 'make b'"), "{run:?}");
    assert!(run.stdout.contains("depends on a command"), "{run:?}");
    let reply = format!("{reply}[CREATE_FILE path=\"../x\"]\nx\n[/CREATE_FILE]\n");
    base.run_with(&["check"], reply).with_code(1);

    // What holds as the file is now may not hold then.
    base.write("workspace/a.txt", "one\ntwo\n");
    let edit = "[EDIT_FILE path=\"a.txt\" start_line=\"2\" end_line=\"2\"]\nx\n[/EDIT_FILE]\n\
        [DONE if=\"ok\"]\nall\n[/DONE]\n";
    let run = base.run_with(&["check"], edit).ok();
    assert!(!run.stdout.contains("depends on"), "{run:?}");
    let run =
        base.run_with(&["check"], format!("[RUN_COMMAND]\nmake\n[/RUN_COMMAND]\n{edit}")).ok();
    for told in [
        "would edit line 2 of 'a.txt', which depends on a command",
        "would end the session if all before it succeeds, which depends on a command",
    ] {
        assert!(run.stdout.contains(told), "{told}: {run:?}");
    }
}

#[test]
fn the_same_reply_twice_in_a_row_is_held_and_run_only_when_asked_for() {
    let base = Project::with_session();
    let reply = "[RUN_COMMAND]\necho ran >> log\n[/RUN_COMMAND]\n";
    base.write("r", reply);
    base.run(&["apply", "r"]).ok();
    let run = base.run(&["apply", "r"]).with_code(1);
    assert!(run.stderr.contains("most likely pasted twice"), "{run:?}");
    assert!(run.stderr.contains("again with --again"), "{run:?}");

    let daemon = base.serve(&["resume"]);
    base.write("inbox/r.txt", reply);
    daemon.wait_for("r.txt was moved to inbox/held: ");
    assert!(base.read("inbox/held/r.txt.why.txt").contains("pasted twice"));
    daemon.stop();
    assert_eq!(base.read("workspace/log"), "ran\n");

    base.run(&["apply", "--again", "inbox/held/r.txt"]).ok();
    assert_eq!(base.read("workspace/log"), "ran\nran\n");
    // Another one between them, and it is no repetition.
    base.apply("[MESSAGE]\nhi\n[/MESSAGE]\n");
    base.run(&["apply", "r"]).ok();
    assert_eq!(base.read("workspace/log"), "ran\nran\nran\n");
}

#[test]
fn the_log_has_a_line_a_turn() {
    let base = Project::with_session();
    base.apply("[RUN_COMMAND]\nfalse\n[/RUN_COMMAND]\n[MESSAGE]\nhi\n[/MESSAGE]\n");
    base.run_with(&["apply", "-"], "[DONE]\nx\n[/DONE]\n").ok();
    let run = base.run(&["log", "--session", ID]).ok();
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{run:?}");
    assert!(
        lines[0].contains("1 operation (1 command), 1 failed  (a1b2c3d4_seq0001_reply.txt)"),
        "{run:?}"
    );
    assert!(lines[1].contains("no operation, done"), "{run:?}");
    let json = base.run(&["log", "--session", ID, "--json"]).ok().stdout;
    let entry: serde_json::Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!((&entry["sequence"], &entry["failed"]), (&1.into(), &1.into()));
}
