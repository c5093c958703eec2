//! What a command brought from among ignored files, and large files that were moved, in turns that are taken
//! back one by one and together.

use crate::support::Project;
use crate::support::json_output::{left, left_sorted, why};

fn command(script: &str) -> String {
    format!("[RUN_COMMAND]\n{script}\n[/RUN_COMMAND]\n")
}

fn moved(from: &str, to: &str) -> String {
    format!("[MOVE_FILE path=\"{from}\" to=\"{to}\"]\n")
}

/// A session where `.envx` is ignored, files beyond a kilobyte are not kept, and a turn did this.
fn scene(script: &str) -> Project {
    let base = Project::with_session();
    base.write("deaddrop.toml", "checkpoint_file_bytes = 1000\n");
    base.write("workspace/.gitignore", ".envx\n*.log\n");
    base.write("workspace/.envx", "secret\n");
    base.write("workspace/z.bin", "z".repeat(2000));
    base.write("workspace/a", "one\n");
    base.apply(&command(script));
    base
}

#[test]
fn a_large_file_that_was_moved_over_another_stays() {
    let base = scene("mv .envx e");
    base.apply(&format!("[DELETE_FILE path=\"e\"]\n{}", moved("z.bin", "e")));
    for force in [None, Some("--force")] {
        let undo: Vec<&str> = ["undo"].into_iter().chain(force).collect();
        let told = base.fails(&undo, "nothing-to-undo").with_code(1).message();
        assert!(told.contains("'e' (") && told.contains("'z.bin' ("), "{told}");
        assert_eq!(base.read("workspace/e").len(), 2000);
        assert!(!base.exists("workspace/z.bin"));
    }
}

#[test]
fn what_was_brought_stays_however_it_was_changed() {
    let base = scene("mv .envx env.bak; echo two > a");
    base.write("workspace/env.bak", "mine\n");
    let both = || base.read("workspace/a") + &base.read("workspace/env.bak");
    for force in [None, Some("--force")] {
        let undo: Vec<&str> = ["undo"].into_iter().chain(force).collect();
        assert_eq!(left(&base.back(&undo)), [""; 0]);
        assert_eq!(both(), "one\nmine\n");
        base.run(&["redo"]).ok();
        assert_eq!(both(), "two\nmine\n");
    }
}

#[test]
fn the_time_that_a_rename_sets_is_no_change_of_a_large_file() {
    let made = "head -c 2000 /dev/zero > big; echo two > a";
    let one_by_one = scene(made);
    one_by_one.apply(&moved("big", "b2"));
    one_by_one.run(&["undo"]).ok();
    let undo = one_by_one.back(&["undo"]);
    assert_eq!(left(&undo), ["big"]);
    assert!(why(&undo, "big").starts_with("its current content is not stored"), "{undo}");
    let together = scene(made);
    together.apply(&moved("big", "b2"));
    together.run(&["undo"]).ok();
    together.run(&["redo"]).ok();
    let undo = together.back(&["undo", "--last", "2"]);
    assert_eq!(left_sorted(&undo), ["b2"]);
    assert!(why(&undo, "b2").starts_with("its current content is not stored"), "{undo}");
    let with_another = scene(made);
    with_another.apply(&moved("big", "b2"));
    with_another.run(&["undo"]).ok();
    with_another.apply(&moved("big", "b3"));
    let undo = with_another.back(&["undo", "--last", "2"]);
    assert_eq!(left_sorted(&undo), ["b3"]);
    assert!(why(&undo, "b3").starts_with("its current content is not stored"), "{undo}");
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
    assert_eq!(left(&base.back(&["undo"])), [""; 0]);
    assert_eq!(base.names("workspace"), [".envx", ".gitignore", "a", "e", "z.bin"]);
    base.run(&["redo"]).ok();
    assert_eq!(base.read("workspace/n") + &base.read("workspace/out/o"), "n\no\n");
    assert_eq!(base.read("workspace/e"), "secret\n");
}
