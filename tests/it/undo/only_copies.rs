//! What an undo does not lose: the only copy of what cannot go back, what came from among ignored files, and
//! what the person put in the way; and the checkpoints that a prune has no reason to remove.

use std::fs::{self, Metadata};
use std::os::unix::fs::{FileTypeExt, symlink};

use serde_json::{Value, json};

use crate::support::json_output::{left, left_sorted, why};
use crate::support::{Project, Run};

fn command(script: &str) -> String {
    format!("[RUN_COMMAND]\n{script}\n[/RUN_COMMAND]\n")
}

#[track_caller]
fn tells(run: &Run, all: &[&str]) {
    for told in all {
        assert!(run.stderr.contains(told), "{told:?} is not in {}", run.stderr);
    }
}

/// That this file of one line is told as deleted.
#[track_caller]
fn deletes(changed: &Value, path: &str) {
    let mut named = changed["named"].as_array().unwrap().iter();
    let file = named.find(|file| file["path"] == path).unwrap_or_else(|| panic!("{changed}"));
    assert_eq!((&file["how"], &file["lines"]), (&"deleted".into(), &json!([0, 1])), "{changed}");
}

/// How many bytes lie there of checkpoints.
pub fn kept(base: &Project) -> u64 {
    let found = walkdir::WalkDir::new(base.at("sessions/checkpoints/packs")).into_iter();
    let files = found.map(|entry| entry.unwrap().metadata().unwrap()).filter(Metadata::is_file);
    files.map(|file| file.len()).sum()
}

#[test]
fn a_file_that_was_moved_stays_where_its_old_place_cannot_be_restored() {
    let big = command("head -c 20000000 /dev/zero > data.csv");
    let moved = "[MOVE_FILE path=\"data.csv\" to=\"data.old\"]\n".to_owned();
    for first in [command("mv data.csv data.old"), moved] {
        let base = Project::with_session();
        base.write("workspace/data.csv", "precious\n");
        base.apply(&format!("{first}{big}[CREATE_FILE path=\"n\"]\nn\n[/CREATE_FILE]\n"));
        let told = base.json(&["undo"])["changed"].clone();
        let undo = &told["back"];
        assert_eq!(left_sorted(undo), ["data.csv", "data.old"]);
        let unkept = why(undo, "data.csv");
        assert!(unkept.starts_with("its current content is not stored: larger"), "{unkept}");
        deletes(&told, "n");
        assert_eq!(base.read("workspace/data.old"), "precious\n");
        assert!(!base.exists("workspace/n"));
        // A turn after it makes the undo final.
        base.apply("[CREATE_FILE path=\"m\"]\nm\n[/CREATE_FILE]\n");
        assert_eq!(base.read("workspace/data.old"), "precious\n");
    }
}

#[test]
fn what_lies_below_a_place_that_is_left_is_left_with_its_copy() {
    let base = Project::with_session();
    base.write("workspace/p/k", "precious\n");
    base.apply(&command("mv p/k k; rmdir p; mkfifo p; echo n > n"));
    let undo = base.back(&["undo"]);
    assert_eq!(left_sorted(&undo), ["k", "p", "p/k"]);
    assert_eq!(why(&undo, "p/k"), "'p', which is in its path, stays");
    assert_eq!(base.read("workspace/k"), "precious\n");
    assert!(!base.exists("workspace/n"));
    let fifo = fs::symlink_metadata(base.at("workspace/p")).unwrap();
    assert!(fifo.file_type().is_fifo());
}

#[test]
fn a_file_or_a_link_of_the_persons_in_place_of_a_folder_is_only_put_aside_by_force() {
    for is_link in [false, true] {
        let base = Project::with_session();
        base.write("workspace/src/f", "precious\n");
        base.write("outside/f", "theirs\n");
        base.apply(&command("mv src/f g; mkdir new; echo a > new/a"));
        fs::remove_dir_all(base.at("workspace/src")).unwrap();
        if is_link {
            symlink("../outside", base.at("workspace/src")).unwrap();
        } else {
            base.write("workspace/src", "mine\n");
        }
        let undo = base.fails(&["undo"], "undo-conflict").with_code(1).message();
        let told = "1 file was changed since, and nothing was touched: 'src'";
        assert!(undo.contains(told), "{undo}");
        assert_eq!(base.read("workspace/g"), "precious\n");
        tells(&base.run(&["undo", "--force"]).ok(), &["deleted src", "moved g -> src/f"]);
        assert_eq!(base.read("workspace/src/f"), "precious\n");
        assert!(!base.exists("workspace/g") && !base.exists("workspace/new"));
        base.run(&["redo"]).ok();
        assert_eq!(base.read("workspace/g"), "precious\n");
        if is_link {
            let target = fs::read_link(base.at("workspace/src")).unwrap();
            assert_eq!(target.to_str(), Some("../outside"));
        } else {
            assert_eq!(base.read("workspace/src"), "mine\n");
        }
        assert_eq!(base.names("outside"), ["f"]);
        assert_eq!(base.read("outside/f"), "theirs\n");
    }
}

#[test]
fn a_folder_that_the_person_has_replaced_by_a_link_is_named_by_its_files() {
    let base = Project::with_session();
    base.write("workspace/src/f", "1\n");
    base.write("outside/f", "theirs\n");
    base.apply(&command("echo 2 > src/f; mkdir new; echo a > new/a"));
    fs::remove_dir_all(base.at("workspace/src")).unwrap();
    symlink("../outside", base.at("workspace/src")).unwrap();
    let undo = base.fails(&["undo"], "undo-conflict").with_code(1);
    let told = "nothing was touched: 'src/f'. `--force`";
    assert!(undo.message().contains(told), "{undo:?}");
    assert_eq!(left(&base.back(&["undo", "--force"])), [""; 0]);
    assert_eq!(base.read("workspace/src/f"), "1\n");
    assert_eq!(base.read("outside/f"), "theirs\n");
}

#[test]
fn a_file_of_the_persons_where_a_turn_put_one_for_a_folder_is_named_once() {
    let base = Project::with_session();
    base.write("workspace/d/x", "precious\n");
    base.apply(&command("rm -r d; echo file > d"));
    base.write("workspace/d", "file\nmine\n");
    let undo = base.fails(&["undo"], "undo-conflict").with_code(1);
    let told = "1 file was changed since, and nothing was touched: 'd'. `--force`";
    assert!(undo.message().contains(told), "{undo:?}");
    base.run(&["undo", "--force"]).ok();
    assert_eq!(base.read("workspace/d/x"), "precious\n");
    base.run(&["redo"]).ok();
    assert_eq!(base.read("workspace/d"), "file\nmine\n");
}

#[test]
fn what_is_ignored_and_renamed_by_a_command_stays() {
    let base = Project::with_session();
    base.write("workspace/.gitignore", ".envx\nbuild/\n");
    base.write("workspace/.envx", "secret\n");
    base.write("workspace/build/data", "data\n");
    let reply = command("mv .envx env.bak; mv build out; echo n > n");
    let turn = base.run_with(&["apply", "--json", "-"], reply).ok().json();
    let ignored = json!(["env.bak", "build/", "out/"]);
    assert_eq!(turn["changed"]["ignored"]["named"], ignored, "{turn}");
    let told = base.json(&["undo"])["changed"].clone();
    assert_eq!(left(&told["back"]), [""; 0]);
    deletes(&told, "n");
    assert!(!base.exists("workspace/n"));
    base.apply("[CREATE_FILE path=\"m\"]\nm\n[/CREATE_FILE]\n");
    assert_eq!(base.read("workspace/env.bak"), "secret\n");
    assert_eq!(base.read("workspace/out/data"), "data\n");
    // Where that was all of the turn, nothing is done.
    let base = Project::with_session();
    base.write("workspace/.gitignore", ".envx\n");
    base.write("workspace/.envx", "secret\n");
    base.write("deaddrop.toml", "checkpoint_ignored_bytes = 0\n");
    base.apply(&command("mv .envx env.bak"));
    base.fails(&["undo"], "nothing-to-undo").with_code(1);
    assert_eq!(base.read("workspace/env.bak"), "secret\n");
}

#[test]
fn what_a_turn_made_or_changed_goes_back_whatever_became_of_ignored_files() {
    // Of the size of an ignored file that was written to.
    let base = Project::with_session();
    base.write("workspace/.gitignore", "*.log\nbuild/\n");
    base.write("workspace/run.log", "12345678\n");
    base.write("workspace/m.c", "keep me1");
    base.apply(&command("echo more >> run.log; sed -i s/me/ME/ m.c; echo 87654321 > n.c"));
    assert_eq!(left(&base.back(&["undo"])), [""; 0]);
    assert_eq!(base.read("workspace/m.c"), "keep me1");
    assert!(!base.exists("workspace/n.c"));
    // With old times beside an ignored folder that is gone.
    base.write("workspace/build/o", "o\n");
    base.write("workspace/src/m.c", "int v1;\n");
    base.apply(&command("touch -d 2024-01-01 src/m.c; tar cf old.tar src"));
    base.write("workspace/src/m.c", "int v2; // mine\n");
    base.apply(&command("rm -rf build; tar xf old.tar; cp -a src two"));
    assert_eq!(base.read("workspace/src/m.c"), "int v1;\n");
    assert_eq!(left(&base.back(&["undo"])), [""; 0]);
    assert_eq!(base.read("workspace/src/m.c"), "int v2; // mine\n");
    assert!(!base.exists("workspace/two"));
}

#[test]
fn what_was_renamed_from_an_ignored_name_gives_its_place_back_by_force() {
    let base = Project::with_session();
    base.write("workspace/.gitignore", ".envx\n");
    base.write("workspace/.envx", "secret\n");
    base.write("workspace/a", "a\n");
    base.apply(&command("mv .envx a"));
    let refused = base.fails(&["undo"], "undo-conflict").with_code(1).message();
    assert!(refused.contains("nothing was touched: 'a'"), "{refused}");
    assert_eq!(base.read("workspace/a"), "secret\n");
    base.run(&["undo", "--force"]).ok();
    assert_eq!(base.read("workspace/a"), "a\n");
    base.run(&["redo"]).ok();
    assert_eq!(base.read("workspace/a"), "secret\n");
}

#[test]
fn what_keeps_a_folder_is_named() {
    let base = Project::with_session();
    base.write("workspace/.gitignore", "*.log\n");
    base.apply(&command("mkdir new logs; echo a > new/a; echo x > logs/x.log"));
    base.write("workspace/new/mine", "mine\n");
    let undo = base.back(&["undo"]);
    for (folder, held) in
        [("new", "it is not empty: 'mine' stays"), ("logs", "it is not empty: 'x.log' stays")]
    {
        let why = why(&undo, folder);
        assert!(why.starts_with(held), "{why}");
    }
    assert_eq!(base.names("workspace/new"), ["mine"]);
}

#[test]
fn what_force_overwrote_comes_back_until_a_later_turn_and_is_shown_after_it() {
    let base = Project::with_session();
    let create = |name: &str, text: &str| {
        base.apply(&format!("[CREATE_FILE path=\"{name}\"]\n{text}\n[/CREATE_FILE]\n"));
    };
    create("a", "one");
    base.write("workspace/a", "mine\n");
    let undo = base.run(&["undo", "--force"]).ok();
    tells(&undo, &["overwritten, but kept: 'a'. `deaddrop diff 2` shows it; `deaddrop redo`"]);
    base.run(&["redo"]).ok();
    assert_eq!(base.read("workspace/a"), "mine\n");
    base.fails(&["redo"], "nothing-to-undo").with_code(1);
    base.run(&["undo", "--force"]).ok();
    create("b", "later");
    base.fails(&["redo"], "nothing-to-undo").with_code(1);
    let patch = base.run(&["diff", "4"]).ok().stdout;
    assert!(patch.contains("-mine\n"), "{patch}");
    // The turn stands no more, and a later one can be undone and redone.
    base.run(&["undo"]).ok();
    base.run(&["redo"]).ok();
    assert_eq!((base.exists("workspace/a"), base.read("workspace/b")), (false, "later\n".into()));
    let log = base.run(&["log", "--json"]).ok().json_lines();
    assert!(log.iter().any(|entry| entry["redid"] == 2), "{log:?}");
    let log = base.run(&["log"]).ok().stdout;
    assert!(log.contains("took undo 2 back") && log.contains("undid 1"), "{log}");
}
