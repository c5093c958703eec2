//! What a command brought from among ignored files, and large files that were moved, in turns that are taken
//! back one by one and together.

use std::fs;

use crate::support::told::{left, left_sorted, why};
use crate::support::{Base, Run};

fn command(script: &str) -> String {
    format!("[RUN_COMMAND]\n{script}\n[/RUN_COMMAND]\n")
}

fn moved(from: &str, to: &str) -> String {
    format!("[MOVE_FILE path=\"{from}\" to=\"{to}\"]\n")
}

#[track_caller]
fn tells(run: &Run, all: &[&str]) {
    for told in all {
        assert!(run.stderr.contains(told), "{told:?} is not in {}", run.stderr);
    }
}

/// A session where `.envx` is ignored, files beyond a kilobyte are not kept, and a turn did this.
fn scene(script: &str) -> Base {
    let base = Base::with_session();
    base.write("deaddrop.toml", "checkpoint_file_bytes = 1000\n");
    base.write("workspace/.gitignore", ".envx\n*.log\n");
    base.write("workspace/.envx", "secret\n");
    base.write("workspace/z.bin", "z".repeat(2000));
    base.write("workspace/a", "one\n");
    base.apply(&command(script));
    base
}

#[test]
fn a_large_file_that_was_moved_to_where_something_had_been_brought_is_not_lost() {
    let base = scene("mv .envx e");
    base.apply(&format!("[DELETE_FILE path=\"e\"]\n{}", moved("z.bin", "e")));
    let big = "z".repeat(2000);
    let undo = base.fails(&["undo", "2"], "nothing-to-undo").with_code(1).message();
    assert!(undo.contains("'e' (") && undo.contains("'z.bin' ("), "{undo}");
    assert_eq!(base.read("workspace/e"), big);
    assert!(!base.exists("workspace/z.bin"));
    // By force it goes back, and what was brought is gone with it.
    base.run(&["undo", "2", "--force"]).ok();
    assert_eq!(base.read("workspace/z.bin"), big);
    assert!(!base.exists("workspace/e"));
    base.run(&["redo"]).ok();
    assert_eq!(base.read("workspace/e"), big);
}

#[test]
fn what_was_brought_and_stays_is_no_conflict_however_it_was_changed() {
    let base = scene("mv .envx env.bak; echo two > a");
    base.write("workspace/env.bak", "mine\n");
    let undo = base.back(&["undo"]);
    assert_eq!(left(&undo), ["env.bak"]);
    assert!(why(&undo, "env.bak").starts_with("it was there before"), "{undo}");
    assert_eq!(base.read("workspace/a") + &base.read("workspace/env.bak"), "one\nmine\n");
    base.run(&["redo"]).ok();
    assert_eq!(base.read("workspace/a") + &base.read("workspace/env.bak"), "two\nmine\n");
    // Where force is needed, what it takes away besides is told, and once more when it does.
    base.write("workspace/a", "three\n");
    let refused = base.fails(&["undo"], "undo-conflict").with_code(1).message();
    for told in ["1 file was changed since", "nothing was touched: 'a'", "takes away 'env.bak'"] {
        assert!(refused.contains(told), "{told}: {refused}");
    }
    let forced = base.run(&["undo", "--force"]).ok();
    tells(&forced, &["'env.bak' was there before", "is taken away"]);
    assert_eq!(base.read("workspace/a"), "one\n");
    assert!(!base.exists("workspace/env.bak"));
    base.run(&["redo"]).ok();
    assert_eq!(base.read("workspace/a") + &base.read("workspace/env.bak"), "three\nmine\n");
}

#[test]
fn what_the_person_removed_of_what_was_brought_is_not_said_to_stand() {
    let base = scene("mv .envx env.bak; echo two > a");
    fs::remove_file(base.at("workspace/env.bak")).unwrap();
    let undo = base.run(&["undo"]).ok();
    assert!(!undo.stderr.contains("env.bak"), "{undo:?}");
    assert_eq!(base.read("workspace/a"), "one\n");
}

#[test]
fn the_time_that_a_rename_sets_is_no_change_of_a_large_file() {
    let made = "head -c 2000 /dev/zero > big; echo two > a";
    let one_by_one = scene(made);
    one_by_one.apply(&moved("big", "b2"));
    one_by_one.run(&["undo"]).ok();
    let undo = one_by_one.back(&["undo"]);
    assert_eq!(left(&undo), ["big"]);
    assert!(why(&undo, "big").starts_with("what it is now is not kept"), "{undo}");
    let together = scene(made);
    together.apply(&moved("big", "b2"));
    together.run(&["undo"]).ok();
    together.run(&["redo"]).ok();
    let undo = together.back(&["undo", "2"]);
    assert_eq!(left_sorted(&undo), ["b2"]);
    assert!(why(&undo, "b2").starts_with("what it is now is not kept"), "{undo}");
    let with_another = scene(made);
    with_another.apply(&moved("big", "b2"));
    with_another.run(&["undo"]).ok();
    with_another.apply(&moved("big", "b3"));
    let undo = with_another.back(&["undo", "2"]);
    assert_eq!(left_sorted(&undo), ["b3"]);
    assert!(why(&undo, "b3").starts_with("what it is now is not kept"), "{undo}");
    for base in [one_by_one, together, with_another] {
        assert_eq!(base.read("workspace/a"), "one\n");
    }
}

#[test]
fn what_an_operation_made_under_an_ignored_name_is_the_turns_wherever_it_goes() {
    let base = scene("true");
    let made = "[CREATE_FILE path=\"new.log\"]\nn\n[/CREATE_FILE]\n[CREATE_FILE path=\"d/o.log\"]\no\n[/CREATE_FILE]\n";
    base.apply(&format!(
        "{made}{}{}{}",
        command("mv .envx e"),
        moved("new.log", "n"),
        moved("d/o.log", "out/o")
    ));
    // Only what the command brought had been there before.
    let undo = base.back(&["undo"]);
    assert_eq!(left(&undo), ["e"]);
    assert!(why(&undo, "e").starts_with("it was there before"), "{undo}");
    assert_eq!(base.names("workspace"), [".gitignore", "a", "e", "z.bin"]);
    base.run(&["redo"]).ok();
    assert_eq!(base.read("workspace/n") + &base.read("workspace/out/o"), "n\no\n");
    assert_eq!(base.read("workspace/e"), "secret\n");
}
