//! What an undo does with what is not simply a file that is kept: files that nobody may read any more, folders
//! and permissions alone, what there was no room for, and large files that an operation moved.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use serde_json::Value;

use crate::scene::{Asked, Scene, Way};
use crate::support::json_output::left;
use crate::support::{Project, Run};
use crate::undo::only_copies::kept;

fn command(script: &str) -> String {
    format!("[RUN_COMMAND]\n{script}\n[/RUN_COMMAND]\n")
}

#[track_caller]
fn tells(run: &Run, all: &[&str]) {
    for told in all {
        let said = format!("{}{}", run.stdout, run.stderr);
        assert!(said.contains(told), "{told:?} is not in {said}");
    }
}

/// Carries out a reply; what is told of it.
#[track_caller]
fn turn(base: &Project, reply: &str) -> Run {
    base.run_with(&["apply", "-"], reply).ok()
}

/// The permissions of a file of the workspace.
fn mode(base: &Project, path: &str) -> u32 {
    let found = fs::metadata(base.at("workspace").join(path)).unwrap();
    found.permissions().mode() & 0o7777
}

#[test]
fn what_nobody_may_read_any_more_gets_its_permissions_back() {
    let Some(scene) = Scene::with(Way::OrdinaryUser, Asked::Off) else { return };
    let base = &scene.base;
    for name in ["a", "b", "c"] {
        let path = base.write(&format!("workspace/{name}"), "content\n");
        fs::set_permissions(path, Permissions::from_mode(0o640)).unwrap();
    }
    scene.hand_over();
    scene.outbox(&["chmod 000 a; touch -r b time; echo CONTENT > b; touch -r time b; chmod 000 b; echo more >> c; chmod 000 c"], &[]);
    let call = |arguments: &[&str]| {
        let output = scene.command(&scene.program, arguments).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, told) = call(&["undo", "--session", crate::support::ID]);
    assert_eq!(code, Some(0), "{told}");
    assert_eq!((mode(base, "a"), base.read("workspace/a")), (0o640, "content\n".to_owned()));
    // What is another for all that its times say stays, and so does what was surely written to.
    assert!(told.contains("'b' is left as it is: it has changed in the meantime"), "{told}");
    assert!(
        told.contains("'c' is left as it is: its current content is not stored: it could"),
        "{told}"
    );
    assert_eq!((mode(base, "b"), base.read("workspace/b")), (0, "CONTENT\n".to_owned()));
    for (back, then) in [("redo", 0), ("undo", 0o640)] {
        let (code, told) = call(&[back, "--session", crate::support::ID]);
        assert_eq!((code, mode(base, "a")), (Some(0), then), "{back}: {told}");
    }
}

#[test]
fn folders_and_permissions_alone_are_named() {
    let base = Project::with_session();
    base.write("workspace/d/f", "f\n");
    fs::set_permissions(base.at("workspace"), Permissions::from_mode(0o755)).unwrap();
    let told = "4 folders changed: ./ (permissions 0755 -> 0750), new e/, new e/f/, new e/f/g/";
    let done = turn(&base, &command("mkdir -p e/f/g; chmod 750 ."));
    tells(&done, &[told]);
    for call in [&["log", "-v"][..], &["diff", "--stat"]] {
        tells(&base.run(call).ok(), &["./ (permissions 0755 -> 0750)\n", "new e/f/g/\n"]);
    }
    let back = format!(
        "Turn 1 undone in session {}; 4 folders changed: ./ (permissions 0750 -> 0755), deleted e/,",
        crate::support::ID
    );
    tells(&base.run(&["undo"]).ok(), &[&back]);
    assert_eq!(mode(&base, "."), 0o755);
    // A file in a folder that is new or gone tells of it.
    let done = turn(&base, &command("mkdir -p n/m; echo n > n/m/n; rm -r d"));
    tells(&done, &["2 files changed: "]);
    assert!(!done.stderr.contains("folder"), "{done:?}");
}

#[test]
fn what_there_is_no_room_for_is_told_after_the_turn() {
    let base = Project::with_session();
    base.write("deaddrop.toml", "checkpoint_max_bytes = 1000000\n");
    base.write("workspace/big", "x".repeat(900_000));
    base.write("workspace/more", "y".repeat(500_000));
    let well = |base: &Project| {
        let told = base.run(&["doctor", "--json"]).stdout;
        let all = told.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        all.into_iter().find(|row| row["what"] == "checkpoints").unwrap()
    };
    assert_eq!(well(&base)["well"], true);
    let done = turn(&base, &command("echo a > a; echo more >> more"));
    tells(&done, &["; cannot be undone: more (no room within checkpoint_max_bytes)"]);
    let told = "1 file cannot be undone, for lack of room";
    let row = well(&base);
    assert_eq!(row["well"], false);
    let row = row["told"].as_str().unwrap().to_owned();
    assert!(row.contains(told) && row.contains("raise"), "{row}");
    tells(&turn(&base, &command("echo b > b")), &["1 file changed: new b (+1)"]);
    assert_eq!(well(&base)["well"], true);
}

#[test]
fn a_large_file_that_an_operation_moved_goes_back_by_a_rename() {
    let base = Project::with_session();
    base.write("deaddrop.toml", "checkpoint_file_bytes = 1000\n");
    let number = |path: &str| fs::metadata(base.at("workspace").join(path)).unwrap().ino();
    let big = "x".repeat(2000);
    base.write("workspace/d/big", &big);
    base.write("workspace/d/small", "small\n");
    let first = number("d/big");
    let moved = "[MOVE_FILE path=\"d\" to=\"p/e\"]\n[CREATE_FILE path=\"d\"]\nd\n[/CREATE_FILE]\n";
    // Also where a folder on the way became another thing.
    base.apply(moved);
    assert_eq!(left(&base.back(&["undo"])), [""; 0]);
    assert_eq!((number("d/big"), base.exists("workspace/p")), (first, false));
    base.run(&["redo"]).ok();
    assert_eq!(base.read("workspace/p/e/big"), big);
    base.apply("[DELETE_FILE path=\"d\"]\n[MOVE_FILE path=\"p/e/big\" to=\"d/big\"]\n");
    assert_eq!(number("d/big"), first);
    let done = turn(&base, "[MOVE_FILE path=\"d/big\" to=\"q/r/big\"]\n");
    assert!(!done.stderr.contains("cannot be undone"), "{done:?}");
    assert!(!base.exists("workspace/d/big"));
    for _ in 0..2 {
        assert_eq!(left(&base.back(&["undo"])), [""; 0]);
        assert_eq!(number("d/big"), first);
        assert!(!base.exists("workspace/q"));
        base.run(&["redo"]).ok();
        assert_eq!(number("q/r/big"), first);
    }
    // What somebody has changed since is theirs.
    base.write("workspace/q/r/big", "y".repeat(2000));
    tells(&base.run(&["undo"]).with_code(1), &["changed since", "q/r/big"]);
    tells(
        &base.run(&["undo", "--force"]).with_code(1),
        &["'q/r/big' (its current content is not stored"],
    );
    assert_eq!(base.read("workspace/q/r/big"), "y".repeat(2000));
}

#[test]
fn the_newest_turn_is_kept_and_the_oldest_go_for_it() {
    let base = Project::with_session();
    base.write("deaddrop.toml", "checkpoint_max_bytes = 1000000\n");
    // Each as large as it may be without making room after the turn, and no two alike.
    let write = |n: u32| command(&format!("yes {n}{n} | head -c 280000 > big; echo {n} > n"));
    let whole = |turns: u32| {
        let is_whole = |n: u32| base.run(&["diff", &n.to_string()]).code == Some(0);
        (1..=turns).map(is_whole).collect::<Vec<_>>()
    };
    for n in 1..4 {
        turn(&base, &write(n));
    }
    assert_eq!(whole(3), [true; 3]);
    let fourth = turn(&base, &write(4));
    assert!(!fourth.stderr.contains("cannot be undone"), "{fourth:?}");
    assert_eq!(whole(4), [false, false, true, true]);
    // What an operation changes, and what a forced undo puts aside, finds room in the same way.
    let mine = "z".repeat(300_000);
    base.write("workspace/big", &mine);
    let fifth = turn(&base, "[CREATE_FILE path=\"big\"]\nsmall\n[/CREATE_FILE]\n");
    assert!(!fifth.stderr.contains("cannot be undone"), "{fifth:?}");
    base.run(&["undo"]).ok();
    assert_eq!(base.read("workspace/big"), mine);
    base.run(&["redo"]).ok();
    let mine = "y".repeat(350_000);
    base.write("workspace/big", &mine);
    base.run(&["undo", "--force"]).ok();
    assert_eq!(base.read("workspace/big"), "z".repeat(300_000));
    base.run(&["redo"]).ok();
    assert_eq!(base.read("workspace/big"), mine);
    // What does not fit by itself costs no checkpoint.
    let before = whole(4);
    turn(&base, &command("head -c 990000 /dev/zero > more; echo 9 > n"));
    assert_eq!(whole(4), before);
    base.run(&["undo"]).ok();
    assert_eq!(base.read("workspace/n"), "4\n");
    assert!(kept(&base) <= 1_000_000, "{}", kept(&base));
}
