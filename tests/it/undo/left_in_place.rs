//! Turns of which nothing can be taken back, and what the person did between turns.

use serde_json::json;

use crate::support::Project;

/// A session of a turn that changed a file, and one whose command changed only what is ignored.
fn scene() -> Project {
    let base = Project::with_session();
    base.write("workspace/.gitignore", "*.log\n__pycache__/\n");
    base.write("workspace/x.log", "old\n");
    base.write("workspace/a", "one\n");
    base.apply("[CREATE_FILE path=\"a\"]\ntwo\n[/CREATE_FILE]\n");
    base.apply("[RUN_COMMAND]\necho more >> x.log; echo n > n.log\n[/RUN_COMMAND]\n");
    base
}

/// A session of a turn that has moved `.vscode/s.json`, whose name is protected, to `s.json`, and did this too.
pub fn moved_out_of_protected(more: &str) -> Project {
    let base = Project::with_session();
    base.write("workspace/.vscode/s.json", "{}\n");
    let reply = format!("[MOVE_FILE path=\".vscode/s.json\" to=\"s.json\"]\n{more}");
    base.run_with(&["apply", "-"], reply).with_code(3);
    base.run(&["approve"]).ok();
    assert_eq!(base.read("workspace/s.json"), "{}\n");
    base
}

#[test]
fn a_turn_that_changed_only_ignored_files_is_passed_over_and_named() {
    let base = scene();
    let only = "urn 2 changed only ignored files, which are not kept: x.log, n.log";
    let diff = base.run(&["diff"]).ok();
    assert!(diff.stdout.is_empty() && diff.stderr.contains(only), "{diff:?}");
    let undo = base.run(&["undo", "--json"]).ok();
    for told in [only, "; skipped", "Turn 1 undone"] {
        assert!(undo.stderr.contains(told), "{told:?} is not in {}", undo.stderr);
    }
    assert_eq!(undo.json()["changed"]["back"]["turns"], json!([1]));
    assert_eq!(base.read("workspace/a"), "one\n");
    assert_eq!(base.read("workspace/x.log"), "old\nmore\n");
    let none = base.fails(&["undo"], "nothing-to-undo").with_code(1);
    for told in ["nothing to take back", only] {
        assert!(none.message().contains(told), "{told:?}: {none:?}");
    }
    base.run(&["redo"]).ok();
    assert_eq!(base.read("workspace/a"), "two\n");
    // What came after the turn that is taken back is told, and nothing before it.
    base.apply("[CREATE_FILE path=\"b\"]\nb\n[/CREATE_FILE]\n");
    let undo = base.run(&["undo"]).ok().stderr;
    assert!(!undo.contains("skipped") && !undo.contains("x.log"), "{undo}");
    base.run(&["redo"]).ok();
    let both = base.run(&["undo", "--last", "2", "--json"]).ok();
    for told in [only, "skipped", "Turns 1, 5 undone"] {
        assert!(both.stderr.contains(told), "{told:?}: {both:?}");
    }
    assert_eq!(both.json()["changed"]["back"]["turns"], json!([1, 5]));
}

#[test]
fn an_undo_names_the_ignored_files_that_it_leaves() {
    let base = scene();
    let reply = "[RUN_COMMAND]\necho three > a; echo x > x.log; echo o > o.log\n[/RUN_COMMAND]\n";
    let applied = base.run_with(&["apply", "-"], reply).ok();
    let lost = "cannot be undone: x.log (ignored)";
    assert!(applied.stderr.contains(&format!("a (+1 −1); {lost}\n")), "{}", applied.stderr);
    let undo = base.run(&["undo", "--json"]).ok();
    assert!(undo.stderr.contains(": x.log, o.log"), "{}", undo.stderr);
    let value = undo.json();
    let ignored = &value["changed"]["back"]["ignored"];
    assert_eq!(ignored["named"], json!(["x.log", "o.log"]), "{value}");
    assert_eq!(ignored["lost"]["named"], json!(["x.log"]));
    let log = base.run(&["log", "-v"]).ok().stdout;
    // Turn 2 had lost it, too.
    for (line, times) in [(lost, 2), ("not taken back (ignored): x.log, o.log", 1)] {
        assert_eq!(log.matches(&format!("        {line}\n")).count(), times, "{log}");
    }
    // A redo is as good as the turn was.
    let redo = base.run(&["redo"]).ok();
    assert!(!redo.stderr.contains("x.log"), "{}", redo.stderr);
}

#[test]
fn what_a_command_lost_of_an_ignored_file_before_an_operation_wrote_there_is_named() {
    let base = scene();
    for (n, script) in ["true", "echo x > x.log", "rm x.log"].into_iter().enumerate() {
        base.write("workspace/x.log", "mine\n");
        let write = format!("[CREATE_FILE path=\"x.log\"]\nnew {n}\n[/CREATE_FILE]\n");
        let reply = format!("[RUN_COMMAND]\n{script}\n[/RUN_COMMAND]\n{write}");
        let applied = base.run_with(&["apply", "-"], reply).ok().stderr;
        let told = "; cannot be undone: x.log (ignored)\n";
        assert!(applied.contains("1 file changed: "), "{applied}");
        assert_eq!(applied.contains(told), script != "true", "{applied}");
        base.run(&["undo"]).ok();
        assert_eq!(base.exists("workspace/x.log"), script != "rm x.log");
    }
}

#[test]
fn turns_that_read_or_build_are_passed_over_and_what_a_file_operation_did_is_kept() {
    let base = scene();
    base.run(&["undo"]).ok();
    base.apply("[CREATE_FILE path=\"a\"]\nthree\n[/CREATE_FILE]\n");
    base.apply("[RUN_COMMAND]\nmkdir __pycache__; echo x > __pycache__/x\n[/RUN_COMMAND]\n");
    let diff = base.run(&["diff"]).ok();
    assert!(diff.stderr.contains(": __pycache__/"), "{diff:?}");
    base.apply("[RUN_COMMAND]\ncat a\n[/RUN_COMMAND]\n");
    assert!(base.run(&["diff"]).ok().stderr.contains("Turn 6 changed no file."));
    assert_eq!(base.back(&["undo"])["turns"], json!([4]));
    assert_eq!(base.read("workspace/a"), "one\n");
    // An operation's own file is recorded whatever the rules say, also beside what a command did.
    base.apply("[CREATE_FILE path=\"x.log\"]\nnew\n[/CREATE_FILE]\n[RUN_COMMAND]\necho m > m.log\n[/RUN_COMMAND]\n");
    let diff = base.run(&["diff"]).ok();
    assert!(diff.stdout.contains("+++ b/x.log\n"), "{diff:?}");
    assert!(diff.stderr.contains(": m.log"), "{diff:?}");
    base.run(&["undo"]).ok();
    assert_eq!(base.read("workspace/x.log"), "old\nmore\n");
    let entries = base.run(&["log", "--json"]).ok().json_lines();
    assert_eq!(entries[1]["ignored"]["named"], json!(["x.log", "n.log"]));
}

#[test]
fn a_turn_of_which_nothing_is_restorable_is_refused_with_the_reason() {
    let base = Project::with_session();
    base.write("deaddrop.toml", "checkpoint_file_bytes = 1000\n");
    base.apply("[CREATE_FILE path=\"a\"]\none\n[/CREATE_FILE]\n");
    base.apply("[RUN_COMMAND]\nhead -c 2000 /dev/zero > big\n[/RUN_COMMAND]\n");
    let undo = base.fails(&["undo"], "nothing-to-undo").with_code(1).message();
    for told in ["turn 2", "'big'", "checkpoint_file_bytes", "`deaddrop undo --last 2`"] {
        assert!(undo.contains(told), "{told:?} is not in {undo}");
    }
    assert!(base.exists("workspace/a") && base.exists("workspace/big"));
    base.run(&["undo", "--last", "2"]).ok();
    assert!(!base.exists("workspace/a") && base.exists("workspace/big"));
    let base = Project::with_session();
    base.write("workspace/.ignore", "x\n");
    base.apply("[RUN_COMMAND]\necho x > x\n[/RUN_COMMAND]\n");
    let undo = base.fails(&["undo"], "nothing-to-undo").with_code(1);
    assert!(undo.message().ends_with(": x"), "{undo:?}");
}

#[test]
fn what_the_person_made_of_a_moved_file_is_only_lost_by_force() {
    let moved = |from: &str, to: &str| format!("[MOVE_FILE path=\"{from}\" to=\"{to}\"]\n");
    let base = Project::with_session();
    base.write("workspace/a", "one\n");
    base.apply(&moved("a", "b"));
    base.write("workspace/b", "mine\n");
    let undo = base.fails(&["undo"], "undo-conflict").with_code(1);
    assert!(undo.message().contains("'b'"), "{undo:?}");
    // The next turn moves it on: it is theirs all the same.
    base.apply(&moved("b", "c"));
    let undo = base.fails(&["undo", "--last", "2"], "undo-conflict").with_code(1);
    assert!(undo.message().contains("'b'"), "{undo:?}");
    assert_eq!(base.read("workspace/c"), "mine\n");
    // Of the last turn alone nothing is theirs.
    base.run(&["undo"]).ok();
    assert_eq!(base.read("workspace/b"), "mine\n");
    base.run(&["redo"]).ok();
    base.run(&["undo", "--last", "2", "--force"]).ok();
    assert_eq!(base.read("workspace/a"), "one\n");
    assert!(!base.exists("workspace/c"));
    base.run(&["redo"]).ok();
    assert_eq!(base.read("workspace/c"), "mine\n");
}

#[test]
fn what_was_moved_from_a_protected_name_and_edited_since_goes_back_by_force() {
    let base = moved_out_of_protected("[CREATE_FILE path=\"n\"]\nn\n[/CREATE_FILE]\n");
    assert!(base.exists("workspace/n"));
    base.write("workspace/s.json", "{ \"mine\": 1 }\n");
    base.fails(&["undo"], "undo-conflict").with_code(1);
    base.run(&["undo", "--force"]).ok();
    assert_eq!(base.read("workspace/.vscode/s.json"), "{}\n");
    assert!(!base.exists("workspace/s.json") && !base.exists("workspace/n"));
    base.run(&["redo"]).ok();
    assert_eq!(base.read("workspace/s.json"), "{ \"mine\": 1 }\n");
    assert!(!base.exists("workspace/.vscode/s.json"));
}
