//! What several turns come to, which files each changed, room made beside a daemon, and runs.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::support::wrapper::wrap;
use crate::support::{ID, Project};

fn turns() -> Project {
    let base = Project::with_session();
    base.write("workspace/a", "one\n");
    base.apply("[CREATE_FILE path=\"a\"]\none\ntwo\n[/CREATE_FILE]\n[CREATE_FILE path=\"gone\"]\nx\n[/CREATE_FILE]\n");
    base.apply("[RUN_COMMAND]\necho three >> a; rm gone; echo n > n\n[/RUN_COMMAND]\n");
    base.apply("[MESSAGE]\nNothing\n[/MESSAGE]\n");
    base.apply("[DELETE_FILE path=\"n\"]\n");
    base
}

#[test]
fn several_turns_come_to_one_diff() {
    let base = turns();
    let net = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1,3 @@\n one\n+two\n+three\n";
    for all in ["--all", "..", "1..", "..4", "1..9"] {
        assert_eq!(base.run(&["diff", all]).ok().stdout, net, "{all}");
    }
    let part = base.run(&["diff", "2..3"]).ok().stdout;
    assert!(part.contains("+three\n") && part.contains("+++ b/n\n"), "{part}");
    assert!(part.contains("--- a/gone\n") && !part.contains("+two"), "{part}");
    assert_eq!(base.run(&["diff", "1..2", "--stat"]).ok().stdout, "a (+2 −0)\nnew n (+1)\n");
    let json: Value =
        serde_json::from_str(&base.run(&["diff", "..", "--json"]).ok().stdout).unwrap();
    assert_eq!((json["first"].as_u64(), json["sequence"].as_u64()), (Some(1), Some(4)));
    // What was taken back is no change, and what others did in between is told.
    base.run(&["undo", "--last", "3"]).ok();
    let none = base.run(&["diff", "--all"]).ok();
    assert_eq!(none.stdout, "");
    assert!(none.stderr.contains("Turns 1 to 5 left no file changed."), "{none:?}");
    base.write("workspace/a", "mine\n");
    base.apply("[CREATE_FILE path=\"a\"]\ntheirs\n[/CREATE_FILE]\n");
    let mixed = base.run(&["diff", "--all"]).ok().stdout;
    assert!(mixed.starts_with("# a was also changed by others in between\n"), "{mixed}");
    for (wrong, told) in
        [("4..2", "the range is backwards"), ("x", "'x' is not the number of a turn")]
    {
        let run = base.run(&["diff", wrong]).with_code(2);
        assert!(run.stderr.contains(told), "{}", run.stderr);
    }
    let none = base.fails(&["diff", "20.."], "no-turn").with_code(1);
    assert!(none.message().contains("has had none of these turns"), "{none:?}");
}

#[test]
fn log_tells_which_files_each_turn_changed() {
    let base = turns();
    base.run(&["undo"]).ok();
    let log = base.run(&["log", "-v"]).ok().stdout;
    for told in
        ["        a (+1 −0)\n        new gone (+1)\n", "        deleted n (−1)\n", ", undone"]
    {
        assert!(log.contains(told), "{told:?} is not in {log}");
    }
    assert!(!base.run(&["log"]).ok().stdout.contains("(+1"));
    let json = base.run(&["log", "-v", "--json"]).ok().stdout;
    let first: Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!(first["files"], serde_json::json!(["a (+1 −0)", "new gone (+1)"]));
}

#[test]
fn the_log_is_read_once_however_many_turns_it_tells_of() {
    let base = turns();
    let mut strace = Command::new("strace");
    let plain = base.command(&["log", "-v"]);
    strace.args(["-f", "-e", "trace=?open,openat", "-o"]).arg(base.at("trace"));
    wrap(&mut strace, &plain);
    let log = match strace.output() {
        Ok(output) if output.status.success() => String::from_utf8(output.stdout).unwrap(),
        other => {
            eprintln!("SKIPPED: how often the log is read; strace traces nothing here: {other:?}");
            return;
        }
    };
    assert_eq!(log.matches("  (").count(), 4, "{log}");
    assert!(log.contains("        deleted n (−1)\n"), "{log}");
    let trace = base.read("trace");
    assert_eq!(trace.matches(&format!("/{ID}.log\"")).count(), 1, "{trace}");
}

#[test]
fn of_several_turns_the_one_is_named_whose_content_is_gone() {
    let base = Project::with_session();
    base.write("workspace/a", "before all\n");
    for (path, content) in [("a", "one"), ("b", "two"), ("c", "three")] {
        base.apply(&format!("[CREATE_FILE path=\"{path}\"]\n{content}\n[/CREATE_FILE]\n"));
    }
    for (content, turn) in [("three\n", 3), ("before all\n", 1)] {
        let packs = fs::read_dir(base.at("sessions/checkpoints/packs")).unwrap();
        let mut packs = packs.map(|pack| pack.unwrap().path()).map(|path| {
            let bytes = fs::read(&path).unwrap();
            let at = bytes.windows(content.len()).position(|there| there == content.as_bytes());
            at.map(|at| (path, bytes, at))
        });
        let (path, mut bytes, at) = packs.find_map(|found| found).expect(content);
        // What a disk has damaged.
        bytes[at] ^= 1;
        fs::write(path, bytes).unwrap();
        let told = base.fails(&["diff", "1..3"], "checkpoint-gone").with_code(1).message();
        assert!(told.contains(&format!("the checkpoint of turn {turn} is gone")), "{told}");
    }
}

#[test]
fn a_run_is_neither_shown_nor_taken_back_and_says_so() {
    let base = Project::new();
    let message = "[CREATE_FILE path=\"a\"]\none\n[/CREATE_FILE]\n";
    base.run_with(&["ops", "run", "-"], message).ok();
    assert!(base.exists("workspace/a"));
    let names = base.names("sessions");
    let run = names.iter().find_map(|name| name.strip_suffix(".json")).unwrap();
    assert!(run.starts_with("run_"), "{names:?}");
    for call in [&["undo"][..], &["redo"], &["undo", "--session", run], &["diff", "--session", run]]
    {
        let told = base.fails(call, "not-recorded").with_code(1);
        let why = told.message();
        assert!(why.contains(run) && why.contains("is a run: nothing is kept"), "{call:?}: {why}");
    }
    base.begin(ID);
    let none = base.fails(&["undo"], "nothing-to-undo").with_code(1);
    assert!(none.message().contains("nothing to take back"), "{none:?}");
}
