//! What a daemon must go on through: folders that vanish, files that cannot be taken, replies that
//! ask for too much, a second writer.

use std::fs;
use std::process::Command;

use crate::support::{ID, Project, wait_until};

const MESSAGE: &str = "[MESSAGE]\nhi\n[/MESSAGE]\n";

#[test]
fn with_several_open_sessions_an_unnamed_reply_is_rejected_also_beside_the_one_just_begun() {
    let base = Project::with_session();
    let daemon = base.serve(&["new", "--id", "0000beef", "Another task"]);
    assert!(daemon.said().contains("0000beef_reply.txt"), "{}", daemon.said());
    base.write("inbox/r.txt", MESSAGE);
    wait_until("the note", || base.exists("inbox/rejected/r.txt.why.txt"));
    let note = base.read("inbox/rejected/r.txt.why.txt");
    assert!(note.contains("0000beef") && note.contains(ID), "{note}");
    base.write("inbox/0000beef_reply.txt", MESSAGE);
    wait_until("its outbox", || base.exists("outbox/0000beef_seq0002.txt"));
    assert!(!base.exists("outbox/a1b2c3d4_seq0002.txt"));
}

#[test]
fn a_damaged_session_may_be_open_too_so_an_unnamed_reply_is_rejected() {
    let base = Project::with_session();
    base.write("sessions/0000beef.json", "{");
    let _daemon = base.serve(&["watch"]);
    base.write("inbox/r.txt", MESSAGE);
    wait_until("the note", || base.exists("inbox/rejected/r.txt.why.txt"));
    assert!(base.read("inbox/rejected/r.txt.why.txt").contains("damaged: 0000beef"));
}

#[test]
fn a_daemon_goes_on_for_a_session_that_was_added_beside_it() {
    let base = Project::new();
    let mut daemon = base.serve(&["new", "--id", ID, "A task"]);
    base.run(&["new", "--id", "0000beef", "Another task"]).ok();
    base.write("inbox/a1b2c3d4.txt", "[DONE]\nFirst\n[/DONE]\n");
    daemon.wait_for("Session a1b2c3d4 is complete");
    base.write("inbox/r.txt", "[DONE]\nSecond\n[/DONE]\n");
    assert_eq!(daemon.wait().code(), Some(0));
    assert!(daemon.said().contains("Session 0000beef is complete"));
}

#[test]
fn folders_that_are_removed_are_made_again_before_a_reply_is_carried_out() {
    let base = Project::with_session();
    let _daemon = base.serve(&["resume"]);
    fs::remove_dir_all(base.at("outbox")).unwrap();
    fs::remove_dir_all(base.at("workspace")).unwrap();
    base.write(
        "inbox/r.txt",
        "[CREATE_FILE path=\"a\"]\nx\n[/CREATE_FILE]\n[RUN_COMMAND]\ncat a\n[/RUN_COMMAND]\n",
    );
    let outbox = base.wait_for_outbox(2);
    assert!(outbox.contains("[OK] CREATE_FILE") && outbox.contains("  Output: x\n"), "{outbox}");
    assert!(outbox.contains("  a (2 bytes)\n"), "{outbox}");
    assert_eq!(base.read("workspace/a"), "x\n");
}

#[test]
fn a_file_that_cannot_be_moved_does_not_stop_the_others() {
    let base = Project::with_session();
    let stuck = base.write("inbox/a.txt", MESSAGE);
    let set = |flag: &str| Command::new("chattr").arg(flag).arg(&stuck).output();
    if !set("+i").is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: chattr cannot make a file immovable here");
        return;
    }
    let daemon = base.serve(&["resume"]);
    daemon.wait_for("a.txt is left where it is");
    base.write("inbox/b.txt", MESSAGE.repeat(2));
    base.wait_for_outbox(2);
    set("-i").unwrap();
    base.wait_for_outbox(3);
    assert_eq!(daemon.said().matches("is left where it is").count(), 1);
}

#[test]
fn a_reply_cut_within_a_character_waits_for_the_rest() {
    let base = Project::with_session();
    let _daemon = base.serve(&["resume"]);
    let text = "[MESSAGE]\né\n[/MESSAGE]\n".as_bytes();
    let cut = text.iter().position(|b| *b == 0xc3).unwrap() + 1;
    base.write("inbox/r.txt", &text[..cut]);
    let mut file = fs::File::options().append(true).open(base.at("inbox/r.txt")).unwrap();
    std::io::Write::write_all(&mut file, &text[cut..]).unwrap();
    drop(file);
    let outbox = base.wait_for_outbox(2);
    assert!(outbox.contains("[OK] MESSAGE"), "{outbox}");
    assert_eq!(base.names("inbox/rejected"), [""; 0]);
}

#[test]
fn of_very_many_commands_the_first_thousand_are_carried_out() {
    let base = Project::with_session();
    base.write("workspace/a.txt", "x\n");
    let turn = base.turn(&"[READ_FILE path=\"a.txt\"]\n".repeat(1_500));
    let (last, first) = turn.json["results"].as_array().unwrap().split_last().unwrap();
    assert!(first.len() == 1_000 && first.iter().all(|result| result["success"] == true));
    assert_eq!((&last["command"], &last["code"]), (&"REPLY".into(), &"not-run".into()));
    let told = last["summary"].as_str().unwrap();
    assert!(told.starts_with("500 ") && told.contains(" line 1001 "), "{told}");
    let outbox = turn.outbox;
    assert_eq!(outbox.matches("--- a.txt ---").count(), 1);
}

#[test]
fn one_outbox_shows_a_megabyte_of_files_at_most() {
    let base = Project::with_session();
    let mut reply = String::new();
    for n in 0..8 {
        base.write(&format!("workspace/{n}.txt"), "0123456789abcde\n".repeat(12_000));
        reply.push_str(&format!("[READ_FILE path=\"{n}.txt\"]\n"));
    }
    let outbox = base.apply(&reply);
    assert!(outbox.len() < 1_100_000, "{}", outbox.len());
    assert_eq!(outbox.matches("\n[OK] READ_FILE: ").count(), 5);
    assert!(outbox.contains(
        "[FAILED] READ_FILE: '7.txt' is not shown: this reply asks for more than 1000000 bytes of files"
    ));
}

#[test]
fn a_read_that_fails_is_a_failure_everywhere() {
    let base = Project::with_session();
    let run = base.run_with(&["apply", "--json", "-"], "[READ_FILE path=\"nope\"]\n").ok();
    let turn: serde_json::Value = serde_json::from_str(run.stdout.trim()).unwrap();
    assert_eq!(turn["results"][0]["success"], false);
    assert_eq!(turn["results"][0]["code"], "file-not-found");
    assert!(run.stderr.contains("FAILED  READ_FILE "), "{run:?}");
    assert!(base.read("sessions/a1b2c3d4.json").contains("\"success\": false"));
}

#[test]
fn another_sessions_folder_does_not_let_a_second_writer_in() {
    let base = Project::with_session();
    let daemon = base.serve(&["watch"]);
    base.run(&["watch", "--sessions-dir", "other"]).with_code(4);
    daemon.stop();
}

#[test]
fn an_outbox_that_stands_there_already_is_moved_aside_and_never_lost() {
    let base = Project::with_session();
    base.write("outbox/a1b2c3d4_seq0002.txt", "of somebody else\n");
    let run = base.run_with(&["apply", "-"], MESSAGE).ok();
    assert!(run.stderr.contains("existed already"), "{run:?}");
    assert!(run.stderr.contains("_seq0002-2.txt"), "{run:?}");
    assert_eq!(base.last_codes(), ["ok"]);
    assert_eq!(base.read("outbox/a1b2c3d4_seq0002-2.txt"), "of somebody else\n");
}

#[test]
fn a_torn_log_stops_nobody_and_swallows_nothing() {
    let base = Project::with_session();
    base.apply(MESSAGE);
    let whole = fs::read(base.at("sessions/a1b2c3d4.log")).unwrap();
    base.write("sessions/a1b2c3d4.log", [&whole[..40], b"\xc3"].concat());
    base.apply(&MESSAGE.repeat(2));
    let log = base.run(&["log"]).ok().stdout;
    assert!(log.contains("   2  ") && log.lines().count() == 1, "{log}");
}
