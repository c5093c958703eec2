//! Moves: who is asked, and what is told of them.

use crate::support::Project;
use crate::support::json_output::codes;

#[test]
fn an_approval_of_a_move_is_of_both_ends_and_of_what_is_in_it() {
    for change in ["touch workspace/sub/new", "rm workspace/way && ln -s y workspace/way"] {
        let base = Project::with_session();
        base.sh("mkdir -p workspace/sub workspace/x workspace/y && ln -s x workspace/way && echo a > workspace/sub/.envrc");
        let reply = "[MOVE_FILE path=\"sub\" to=\"way/sub\"]\n";
        base.run_with(&["apply", "-"], reply).with_code(3);
        base.sh(change);
        let run = base.run(&["approve"]).with_code(3);
        assert!(run.stderr.contains("It has changed since it was approved"), "{change}: {run:?}");
        let why = base.asked_why();
        assert!(why.starts_with("It has changed since it was approved: "), "{change}: {why}");
        assert!(base.exists("workspace/sub/.envrc"));
        base.run(&["approve"]).ok();
        assert!(!base.exists("workspace/sub") && base.exists("workspace/way/sub/.envrc"));
    }
}

#[test]
fn check_tells_what_a_move_would_do() {
    let base = Project::with_session();
    base.sh("mkdir -p workspace/d && echo a > workspace/a && echo b > workspace/d/b");
    let reply = "[MOVE_FILE path=\"a\" to=\"new/c\"]\n[EDIT_FILE path=\"new/c\" start_line=\"1\" end_line=\"1\"]\nA\n[/EDIT_FILE]\n[DELETE_FILE path=\"a\"]\n[LIST_FILES path=\"new\"]\n[SEARCH pattern=\"(\"]\n[MOVE_FILE path=\"d\" to=\"e\"]\n[DELETE_FILE path=\"e/b\"]\n";
    let run = base.run_with(&["check", "-"], reply).with_code(1);
    let said = format!("{}{}", run.stdout, run.stderr);
    let codes = codes(&base.check(reply, 1)["commands"]);
    assert_eq!(codes, ["ok", "ok", "file-not-found", "ok", "failed", "ok", "ok"]);
    for told in [
        "move 'a' to 'new/c'\n",
        "edit 'new/c'",
        "File 'a' not found",
        "would list 'new'",
        "The pattern is not a valid regular expression",
        "would move 'd' to 'e'",
        "depends on an earlier move",
    ] {
        assert!(said.contains(told), "{told}: {said}");
    }
    assert!(base.exists("workspace/a") && !base.exists("workspace/new"));
}
