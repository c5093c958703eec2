//! What an undo or a redo is told with, what the model may go by after it, and what a session is then.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use serde_json::json;

use crate::support::Project;
use crate::support::json_output::left;

#[test]
fn the_outbox_tells_what_was_undone_what_stands_and_why() {
    let base = Project::with_session();
    base.apply("[CREATE_FILE path=\"a\"]\none\n[/CREATE_FILE]\n");
    base.apply("[CREATE_FILE path=\"b\"]\ntwo\n[/CREATE_FILE]\n");
    base.run(&["undo", "--last", "2", "--reason", "Wrong way:\n\u{1b}[31muse c instead"]).ok();
    let outbox = base.outbox(4);
    for told in [
        "The user has undone what you changed in reply to messages 1, 2.\nFiles restored: deleted a, deleted b\n",
        "other effects of commands remain, such as commits",
        "The user says:\n  Wrong way:\n  ␛[31muse c instead\n",
    ] {
        assert!(outbox.contains(told), "{told:?} is not in {outbox}");
    }
    // What nobody may have pasted is said once more.
    base.run(&["redo", "--reason", "I looked again"]).ok();
    let outbox = base.outbox(5);
    for told in ["No command was run again", "use c instead\n", "  I looked again\n"] {
        assert!(outbox.contains(told), "{told:?} is not in {outbox}");
    }
    base.apply("[MESSAGE]\nGood\n[/MESSAGE]\n");
    assert!(!base.outbox(6).contains("I looked again"));
}

#[test]
fn a_line_edit_after_an_undo_meets_no_lines_that_the_model_has_not_seen() {
    let base = Project::with_session();
    base.write("workspace/a", "1\n2\n3\n");
    base.write("workspace/b", "1\n2\n3\n");
    base.write("workspace/c", "c\n1\n2\n");
    symlink("b", base.at("workspace/link")).unwrap();
    base.apply("[READ_FILE path=\"a\"]\n[READ_FILE path=\"link\"]\n[READ_FILE path=\"c\"]\n");
    // It has seen these otherwise: through its edit, a move, a command, and a link.
    base.apply(
        "[EDIT_FILE path=\"a\" start_line=\"1\" end_line=\"1\"]\n0\n1\n[/EDIT_FILE]\n[MOVE_FILE path=\"a\" to=\"m\"]\n\
         [RUN_COMMAND]\nprintf '0\\n1\\n2\\n3\\n' > b; cat b; ln -sfn c link; cat link\n[/RUN_COMMAND]\n",
    );
    assert_eq!(base.read("workspace/m"), "0\n1\n2\n3\n");
    base.run(&["undo"]).ok();
    assert_eq!(base.read("workspace/a"), "1\n2\n3\n");
    let edits = ["a", "link"].map(|path| {
        format!("[EDIT_FILE path=\"{path}\" start_line=\"3\" end_line=\"3\"]\nX\n[/EDIT_FILE]\n")
    });
    let edits = edits.concat();
    assert_eq!(base.codes(&edits), ["stale-lines", "stale-lines"]);
    assert_eq!(base.read("workspace/a"), "1\n2\n3\n");
    assert_eq!(base.read("workspace/b"), "1\n2\n3\n");
    // Now it has seen them.
    base.run_with(&["apply", "--again", "-"], &edits).ok();
    assert_eq!(base.read("workspace/a"), "1\n2\nX\n");
    assert_eq!(base.read("workspace/b"), "1\n2\nX\n");
}

#[test]
fn a_redo_goes_past_turns_that_changed_nothing_and_completes_again() {
    let base = Project::with_session();
    base.apply("[CREATE_FILE path=\"a\"]\none\n[/CREATE_FILE]\n");
    base.run(&["undo"]).ok();
    base.apply("[RUN_COMMAND]\ntrue\n[/RUN_COMMAND]\n");
    base.run(&["redo"]).ok();
    assert_eq!(base.read("workspace/a"), "one\n");
    // It can be undone as the last turn that changed something.
    assert_eq!(base.back(&["undo"])["turns"], json!([1]));
    base.run(&["redo"]).ok();

    let reply = "[CREATE_FILE path=\"b\"]\ntwo\n[/CREATE_FILE]\n[DONE]\nAll of it\n[/DONE]\n";
    base.run_with(&["apply", "-"], reply).ok();
    let is_complete = || {
        let status = base.status();
        let is_complete = status["isComplete"] == true;
        assert_eq!(status["summary"] == "All of it", is_complete, "{status}");
        is_complete
    };
    assert!(is_complete());
    base.run(&["undo"]).ok();
    assert!(!is_complete() && !base.exists("workspace/b"));
    let redo = base.json(&["redo"]);
    assert!(redo["changed"]["back"]["redid"].is_u64() && redo["outbox"].is_null(), "{redo}");
    assert!(is_complete() && base.exists("workspace/b"));
    // Back and forth once more; where it has gone on, or somebody has something to say, it is open.
    base.run(&["undo"]).ok();
    base.run(&["redo"]).ok();
    assert!(is_complete());
    base.run(&["undo"]).ok();
    base.run(&["redo", "--reason", "One thing more"]).ok();
    assert!(!is_complete());
    let sequence = base.status()["sequence"].as_u64().unwrap();
    let outbox = base.outbox(u32::try_from(sequence).unwrap());
    assert!(outbox.contains("  One thing more\n"), "{outbox}");
    base.run(&["undo"]).ok();
    base.apply("[MESSAGE]\nWhat now?\n[/MESSAGE]\n");
    base.run(&["redo"]).ok();
    assert!(!is_complete() && base.exists("workspace/b"));
}

#[test]
fn what_is_kept_and_cannot_be_read_is_an_error_before_anything_is_touched() {
    let base = Project::with_session();
    base.write("workspace/a", "one\n");
    base.apply("[RUN_COMMAND]\ntrue\n[/RUN_COMMAND]\n");
    base.write("workspace/z", "two\n");
    base.apply("[RUN_COMMAND]\necho A > a; echo Z > z\n[/RUN_COMMAND]\n");
    // A folder can no more be read than what a disk has lost.
    let packs = fs::read_dir(base.at("sessions/checkpoints/packs")).unwrap();
    let mut packs = packs.map(|pack| pack.unwrap().path());
    let is_before = |pack: &PathBuf| fs::read(pack).unwrap().starts_with(b"two\n");
    let pack = packs.find(is_before).unwrap();
    fs::remove_file(&pack).unwrap();
    fs::create_dir(&pack).unwrap();
    let told = base.fails(&["undo"], "cannot-undo").with_code(1).message();
    assert!(told.contains("cannot read") && told.contains("nothing was touched"), "{told}");
    assert_eq!((base.read("workspace/a"), base.read("workspace/z")), ("A\n".into(), "Z\n".into()));
    let rows = base.run(&["doctor", "--json"]).json_lines();
    let row = rows.iter().find(|row| row["what"] == "checkpoints").unwrap();
    assert_eq!(row["well"], false, "{row}");
    // It is only gone where it is known to be.
    fs::remove_dir(&pack).unwrap();
    assert_eq!(left(&base.back(&["undo"])), ["z"]);
    assert_eq!(base.read("workspace/a"), "one\n");
}

#[test]
fn an_edit_after_a_command_is_not_told_as_the_commands() {
    let base = Project::with_session();
    base.write("workspace/a", "one\n");
    base.apply(
        "[RUN_COMMAND]\necho x > made\n[/RUN_COMMAND]\n[EDIT_FILE path=\"a\" start_line=\"1\" end_line=\"1\"]\nuno\n[/EDIT_FILE]\n",
    );
    let outbox = base.outbox(2);
    assert!(outbox.contains(" 1 file: new made\n"), "{outbox}");
    let diff = base.run(&["diff", "--json"]).ok().json_lines();
    let by_command = |path: &str| {
        let line = diff.iter().find(|line| line["path"] == path);
        line.unwrap()["byCommand"] == true
    };
    assert!(by_command("made") && !by_command("a"), "{diff:?}");
}
