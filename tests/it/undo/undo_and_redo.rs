//! What turns change: shown, told, taken back and brought back, by the real program.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::{Value, json};

use crate::support::json_output::left;
use crate::support::{ID, Project, has_full_sandbox, has_sandbox, wait_until};
use crate::undo::left_in_place::moved_out_of_protected;

const REPLY: &str = "[CREATE_FILE path=\"src/a.py\"]\none\ntwo\nthree\n[/CREATE_FILE]\n\
    [RUN_COMMAND]\nprintf '1\\n2\\n' > made.txt; rm old.txt; chmod 755 run.sh; chmod 1751 .; ln -sfn src link; \
    printf 'a\\0b' > bin; mkdir -p build; echo x > build/out; echo more >> src/a.py\n[/RUN_COMMAND]\n";

/// A session in a workspace with some files, and what is in it.
fn scene() -> (Project, String) {
    let base = Project::with_session();
    base.write("workspace/.gitignore", "build/\n");
    base.write("workspace/old.txt", "old\n");
    base.write("workspace/run.sh", "true\n");
    base.write("workspace/bin", b"\0");
    symlink("nowhere", base.at("workspace/link")).unwrap();
    // Whatever the umask of who runs the tests.
    for (path, mode) in [("workspace", 0o755), ("workspace/run.sh", 0o640)] {
        fs::set_permissions(base.at(path), fs::Permissions::from_mode(mode)).unwrap();
    }
    let picture = picture(&base);
    (base, picture)
}

/// All that stands in the workspace but for ignored files, as text.
fn picture(base: &Project) -> String {
    let script = "cd workspace && find . -path ./build -prune -o -printf '%p %y %m %l\\n' | sort; \
        cd workspace; find . -path ./build -prune -o -type f -print | sort | xargs -r sha256sum";
    let mut shell = std::process::Command::new("/bin/sh");
    out_of(shell.args(["-c", script]).current_dir(base.path())).join("\n")
}

fn out_of(command: &mut std::process::Command) -> Vec<String> {
    let out = command.output().unwrap().stdout;
    String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
}

fn log(base: &Project) -> Vec<Value> {
    let told = base.run(&["log", "--json"]).ok().stdout;
    told.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_turn_is_told_shown_undone_and_redone() {
    let (base, before) = scene();
    let run = base.run_with(&["apply", "-"], REPLY).ok();
    let told = "6 files changed: bin, link, new made.txt (+2), run.sh (permissions), new src/a.py (+4), deleted old.txt (−1); 1 folder changed: ./ (permissions 0755 -> 1751)\n";
    assert!(run.stderr.contains(told), "{}", run.stderr);
    let outbox = base.outbox(2);
    let told = "\nCommands changed 6 files: bin, link, new made.txt, run.sh (permissions), new src/a.py, deleted old.txt\n";
    assert!(outbox.contains(told), "{outbox}");
    let after = picture(&base);
    assert_ne!(before, after);

    // Of a new one by the umask.
    let mode = fs::metadata(base.at("workspace/src")).unwrap().permissions().mode() & 0o7777;
    let new = format!("# new src (folder, mode {mode:04o})\n");
    let diff = base.run(&["diff"]).ok().stdout;
    for told in [
        "--- a/old.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-old\n",
        "# run.sh (file, mode 0640 -> file, mode 0755)\n",
        "--- /dev/null\n+++ b/src/a.py\n@@ -0,0 +1,4 @@\n+one\n+two\n+three\n+more\n",
        "diff --git a/bin b/bin\nBinary files a/bin and b/bin differ\n",
        "-nowhere\n\\ No newline at end of file\n+src\n\\ No newline at end of file\n",
        &new,
        "# . (folder, mode 0755 -> folder, mode 1751)\n",
    ] {
        assert!(diff.contains(told), "{told:?} is not in {diff}");
    }
    assert!(!diff.contains("build"), "{diff}");
    let stat = base.run(&["diff", "1", "--stat"]).ok().stdout;
    assert!(stat.contains("new src/a.py (+4)\n"), "{stat}");
    let json = base.run(&["diff", "1", "--json"]).ok().stdout;
    let first: Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!((first["path"].as_str(), first["sequence"].as_u64()), (Some("."), Some(1)));

    let undo = base.json(&["undo"]);
    assert_eq!(undo["changed"]["back"]["turns"], json!([1]));
    assert_eq!(undo["changed"]["files"], 6);
    assert_eq!(undo["outbox"], format!("outbox/{ID}_seq0003.txt"));
    assert_eq!(picture(&base), before);
    assert_eq!(base.read("workspace/build/out"), "x\n");
    let outbox = base.outbox(3);
    let told = "The user has undone what you changed in reply to message 1.\nFiles restored: bin, link, new old.txt, run.sh (permissions), deleted made.txt, deleted src/a.py\n";
    assert!(outbox.contains(told), "{outbox}");
    let turns = log(&base);
    assert_eq!((turns[0]["isUndone"].as_bool(), turns.len()), (Some(true), 2));
    assert!(base.run(&["log"]).ok().stdout.contains("undid 1"));
    base.fails(&["undo"], "nothing-to-undo").with_code(1);

    let redo = base.back(&["redo"]);
    assert_eq!((&redo["turns"], &redo["redid"]), (&json!([1]), &json!(2)));
    assert_eq!(picture(&base), after);
    assert!(base.outbox(4).contains("The user has redone what you changed in reply to message 1."));
    assert_eq!(log(&base)[0]["isUndone"], false);
    base.fails(&["redo"], "nothing-to-undo").with_code(1);
    base.run(&["undo"]).ok();
    assert_eq!(picture(&base), before);
    // A turn after it makes it final, and is undone by itself.
    base.apply("[CREATE_FILE path=\"x\"]\nx\n[/CREATE_FILE]\n[MESSAGE]\nhello\n[/MESSAGE]\n");
    base.apply("[MESSAGE]\nNothing to undo here\n[/MESSAGE]\n");
    base.fails(&["redo"], "nothing-to-undo").with_code(1);
    base.fails(&["undo", "--last", "2"], "no-turn").with_code(1);
    base.run(&["undo"]).ok();
    assert_eq!(picture(&base), before);
}

#[test]
fn several_turns_go_back_at_once_also_through_a_daemon_and_after_the_end() {
    let (base, before) = scene();
    base.apply(REPLY);
    base.write("workspace/own.txt", "the person's\n");
    let daemon = base.serve(&["watch"]);
    base.run_with(&["apply", "-"], "[RUN_COMMAND]\nsed -i s/one/uno/ src/a.py\n[/RUN_COMMAND]\n[MOVE_FILE path=\"src\" to=\"lib\"]\n[DONE]\nAll\n[/DONE]\n").ok();
    assert!(base.exists("workspace/lib/a.py"));
    assert_eq!(base.back(&["undo", "--last", "2"])["turns"], json!([1, 2]));
    daemon.wait_for("Turns 1, 2 undone");
    fs::remove_file(base.at("workspace/own.txt")).unwrap();
    assert_eq!(picture(&base), before);
    // It is open again.
    let outbox = base.wait_for_outbox(4);
    assert!(outbox.contains("what you changed in reply to messages 1, 2."), "{outbox}");
    base.run(&["redo"]).ok();
    assert_eq!(base.read("workspace/lib/a.py"), "uno\ntwo\nthree\nmore\n");
    assert_eq!(base.status()["isComplete"], true);
    daemon.stop();
}

#[test]
fn what_the_person_changed_since_is_named_and_only_overwritten_by_force() {
    let (base, before) = scene();
    base.apply(REPLY);
    base.write("workspace/old.txt", "mine\n");
    let changed = picture(&base);
    let undo = base.fails(&["undo"], "undo-conflict").with_code(1);
    assert!(undo.message().contains("'old.txt'"), "{undo:?}");
    assert_eq!(picture(&base), changed);
    assert!(!base.exists(&format!("outbox/{ID}_seq0003.txt")));
    base.run(&["undo", "--force"]).ok();
    assert_eq!(picture(&base), before);
    base.run(&["redo"]).ok();
    assert_eq!(picture(&base), changed);
}

#[test]
fn what_cannot_be_put_back_is_named() {
    let (base, _) = scene();
    base.write("deaddrop.toml", "checkpoint_file_bytes = 1000\n");
    base.apply("[RUN_COMMAND]\nhead -c 2000 /dev/zero > big; echo x > small\n[/RUN_COMMAND]\n");
    let undo = base.back(&["undo"]);
    assert_eq!(left(&undo), ["big"]);
    assert!(undo["left"][0][1].as_str().unwrap().contains("checkpoint_file_bytes"), "{undo}");
    assert!(base.exists("workspace/big") && !base.exists("workspace/small"));
    assert!(base.outbox(3).contains("Left as they are: big\n"));
    base.write("deaddrop.toml", "checkpoints = false\n");
    base.apply("[CREATE_FILE path=\"x\"]\nx\n[/CREATE_FILE]\n");
    for command in ["undo", "diff"] {
        base.fails(&[command], "not-recorded").with_code(1);
    }
}

#[test]
fn a_checkpoint_that_is_gone_is_said_to_be() {
    let (base, _) = scene();
    for n in 0..3 {
        base.apply(&format!("[CREATE_FILE path=\"f{n}\"]\n{n}\n[/CREATE_FILE]\n"));
    }
    fs::remove_dir_all(base.at("sessions/checkpoints")).unwrap();
    let undo = base.fails(&["undo"], "checkpoint-gone").with_code(1);
    assert!(undo.message().contains("turn 3"), "{undo:?}");
    base.fails(&["diff", "2"], "checkpoint-gone").with_code(1);
}

#[test]
fn a_turn_that_waited_is_one_and_what_the_person_did_meanwhile_is_theirs() {
    if !has_sandbox("auto") {
        return;
    }
    let base = Project::new();
    base.begin_asking(ID);
    base.write("workspace/a", "1\n");
    base.write("workspace/gone/x", "x\n");
    let before = picture(&base);
    let reply = "[RUN_COMMAND]\necho 2 > a; echo n > n\n[/RUN_COMMAND]\n[RUN_COMMAND]\nrm -r gone; echo 3 > a\n[/RUN_COMMAND]\n";
    base.run_with(&["apply", "--session", ID, "-"], reply).with_code(3);
    base.fails(&["undo"], "decision-needed").with_code(3);
    assert!(base.run(&["diff"]).ok().stdout.contains("+++ b/n"));
    base.write("workspace/own", "mine\n");
    base.run(&["approve"]).ok();
    let diff = base.run(&["diff", "1", "--stat"]).ok().stdout;
    assert_eq!(diff, "a (+1 −1)\nnew n (+1)\ndeleted gone/x (−1)\n");
    base.run(&["undo"]).ok();
    assert_eq!(base.read("workspace/own"), "mine\n");
    fs::remove_file(base.at("workspace/own")).unwrap();
    assert_eq!(picture(&base), before);
}

#[test]
fn where_nothing_can_be_kept_the_turn_goes_on_and_says_so() {
    let (base, _) = scene();
    base.write("sessions/checkpoints", "no folder");
    let run = base.run_with(&["apply", "-"], REPLY).ok();
    assert!(run.stderr.contains("this turn cannot be undone: cannot "), "{}", run.stderr);
    assert!(base.exists("workspace/made.txt"));
    let undo = base.fails(&["undo"], "not-recorded").with_code(1);
    assert!(undo.message().contains("turn 1"), "{undo:?}");
}

#[test]
fn a_guest_is_not_undone() {
    let base = Project::with_session();
    base.write("deaddrop.toml", "[guest]\ncommand = [\"false\"]\n");
    for command in ["undo", "redo", "diff"] {
        let run = base.fails(&[command], "not-recorded");
        assert!(run.message().contains("guest 'false'"), "{run:?}");
    }
}

#[test]
fn the_state_is_never_part_of_it_also_where_it_lies_in_the_workspace() {
    let base = Project::with_session();
    base.write("deaddrop.toml", "workspace_dir = \".\"\n");
    // Partial is not offered where deaddrop's own files lie in the workspace.
    if !has_full_sandbox() {
        return;
    }
    base.run_with(&["apply", "-"], "[RUN_COMMAND]\necho x > x\n[/RUN_COMMAND]\n").ok();
    let json = base.run(&["diff", "--json"]).ok().stdout;
    assert_eq!(json.lines().count(), 1, "{json}");
    base.run(&["undo"]).ok();
    wait_until("the end of x", || !base.exists("x"));
    assert!(base.exists(&format!("sessions/{ID}.json")));
}

#[test]
fn what_a_forced_undo_puts_away_is_not_pruned() {
    let base = Project::with_session();
    base.write("deaddrop.toml", "checkpoint_max_bytes = 1000000\n");
    base.apply("[CREATE_FILE path=\"f\"]\none\n[/CREATE_FILE]\n");
    let mine = vec![b'x'; 950_000];
    base.write("workspace/f", &mine);
    base.run(&["undo", "--force"]).ok();
    assert!(!base.exists("workspace/f"));
    base.run(&["redo"]).ok();
    assert_eq!(fs::read(base.at("workspace/f")).unwrap(), mine);
}

#[test]
fn nothing_is_taken_back_in_another_workspace() {
    let base = Project::new();
    base.run(&["new", "--no-watch", "--id", ID, "A task"]).ok();
    base.apply("[CREATE_FILE path=\"a\"]\none\n[/CREATE_FILE]\n");
    base.write("other/a", "one\n");
    let run = base.run(&["undo", "--workspace-dir", "other"]);
    assert_ne!(run.code, Some(0), "{run:?}");
    assert!(run.stderr.contains("other"), "{run:?}");
    assert_eq!(base.read("other/a"), "one\n");
    assert_eq!(base.read("workspace/a"), "one\n");
}

#[test]
fn what_was_moved_out_of_a_protected_folder_goes_back() {
    let base = moved_out_of_protected("");
    base.run(&["undo"]).ok();
    assert_eq!(base.read("workspace/.vscode/s.json"), "{}\n");
    assert!(!base.exists("workspace/s.json"));
}

#[test]
fn what_tools_leave_beside_sources_is_no_change_unless_git_tracks_it() {
    if !has_sandbox("auto") {
        return;
    }
    let base = Project::with_session();
    base.write("workspace/kept.pyc", "old\n");
    base.sh("cd workspace; git init -q; git add kept.pyc");
    let script = "mkdir -p src/__pycache__ .pytest_cache/v node_modules; \
        echo new | tee src/__pycache__/m.pyc .pytest_cache/v/x node_modules/x lone.pyc kept.pyc src/m.py";
    let outbox = base.apply(&format!("[RUN_COMMAND]\n{script}\n[/RUN_COMMAND]\n"));
    let json = base.run(&["diff", "--json"]).ok().stdout;
    let of = |line: &str| serde_json::from_str::<Value>(line).unwrap()["path"].clone();
    let paths: Vec<Value> = json.lines().map(of).collect();
    assert_eq!(paths, ["kept.pyc", "node_modules", "node_modules/x", "src", "src/m.py"], "{json}");
    assert!(!outbox.contains("new src/__pycache__/m.pyc"), "{outbox}");
    base.run(&["undo"]).ok();
    assert_eq!(base.read("workspace/kept.pyc"), "old\n");
    assert!(!base.exists("workspace/src/m.py") && base.exists("workspace/lone.pyc"));
}

#[test]
fn the_new_places_of_many_files_are_named_before_what_is_gone() {
    if !has_sandbox("auto") {
        return;
    }
    let base = Project::with_session();
    (0..30).for_each(|n| drop(base.write(&format!("workspace/a/{n}"), format!("{n}\n"))));
    let script = "mkdir z; for f in a/*; do echo more >> $f; mv $f z/new_${f#a/}; done";
    let reply = format!("[RUN_COMMAND]\n{script}\n[/RUN_COMMAND]\n");
    let told = base.run_with(&["apply"], reply).ok().stderr;
    assert!(told.contains("60 files changed: new z/new_0 (+2), "), "{told}");
    let outbox = base.outbox(2);
    assert!(outbox.contains("new z/new_9 and 30 more"), "{outbox}");
}
