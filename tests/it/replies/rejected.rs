//! Files in the inbox that cannot be replies or belong to no session: put aside with a note that
//! says why and what to do.

use std::fs;
use std::os::unix::fs::symlink;

use crate::support::{ID, Project, wait_until};

const OTHER: &str = "00ff00ff";
const MESSAGE: &str = "[MESSAGE]\nHello\n[/MESSAGE]\n";
const DONE: &str = "[DONE]\nAll well\n[/DONE]\n";

/// The note for what `put` puts into `inbox/x.txt`; the daemon must go on after it.
#[track_caller]
fn note_for(put: impl FnOnce(&Project)) -> String {
    let base = Project::with_session();
    let daemon = base.serve(&["resume"]);
    put(&base);
    let note = base.rejected("x.txt");
    assert!(!base.exists("inbox/x.txt"));
    daemon.wait_for("x.txt was moved to inbox/rejected: ");
    base.write("inbox/y.txt", MESSAGE);
    base.wait_for_outbox(2);
    note
}

#[test]
fn a_link_is_no_reply() {
    let note = note_for(|base| {
        base.write("elsewhere", MESSAGE);
        symlink(base.at("elsewhere"), base.at("inbox/x.txt")).unwrap();
    });
    assert_eq!(note, "x.txt: it is not a regular file\n");
}

#[test]
fn a_dangling_link_is_no_reply() {
    let note = note_for(|base| symlink("nowhere", base.at("inbox/x.txt")).unwrap());
    assert_eq!(
        note,
        "x.txt: it is not a regular file
"
    );
}

#[test]
fn a_fifo_is_no_reply() {
    let note = note_for(|base| base.sh("mkfifo inbox/x.txt"));
    assert_eq!(
        note,
        "x.txt: it is not a regular file
"
    );
}

#[test]
fn a_folder_is_no_reply() {
    let note = note_for(|base| fs::create_dir(base.at("inbox/x.txt")).unwrap());
    assert_eq!(
        note,
        "x.txt: it is not a regular file
"
    );
}

#[test]
fn a_huge_file_is_no_reply() {
    let note = note_for(|base| base.sh("truncate -s 40M big; mv big inbox/x.txt"));
    assert!(note.contains("41943040") && note.contains("33554432"), "{note}");
}

#[test]
fn binary_data_is_no_reply() {
    let note = note_for(|base| drop(base.write("inbox/x.txt", "[MESSAGE]\na\0b\n[/MESSAGE]\n")));
    assert!(note.contains("NUL"), "{note}");
    let note = note_for(|base| drop(base.write("inbox/x.txt", b"\xff\xd8\xe0 [DONE]\n")));
    assert!(note.contains("UTF-8"), "{note}");
}

#[test]
fn text_of_an_old_editor_is_a_reply() {
    let base = Project::with_session();
    let text = |n| format!("\u{feff}{n}\n[CREATE_FILE path=\"a\"]\nä€\n[/CREATE_FILE]\n");
    let wide = |n, unit: fn(u16) -> [u8; 2]| -> Vec<u8> {
        text(n).encode_utf16().flat_map(unit).collect()
    };
    base.write("inbox/le.txt", wide(1, u16::to_le_bytes));
    base.write("inbox/be.txt", wide(2, u16::to_be_bytes));
    base.write("inbox/mark.txt", text(3));
    base.run(&["resume", "--no-watch"]).ok();
    assert_eq!(base.read("workspace/a"), "ä€\n");
    assert_eq!(base.names("inbox/processed"), ["be.txt", "le.txt", "mark.txt"]);
    assert_eq!(base.last_codes(), ["ok"]);
}

#[test]
fn notes_of_files_of_one_name_lie_side_by_side() {
    let base = Project::with_session();
    let _daemon = base.serve(&["resume"]);
    base.write("inbox/x.txt", "\0");
    base.rejected("x.txt");
    base.write("inbox/x.txt", b"\xff\xfe\x00\xd8");
    assert!(base.rejected("x-2.txt").contains("UTF-16"));
    assert!(base.rejected("x.txt").contains("NUL"));
}

/// Two open sessions and a daemon that serves both.
fn two() -> (Project, crate::support::Daemon) {
    let base = Project::with_session();
    base.begin(OTHER);
    let daemon = base.serve(&["watch"]);
    (base, daemon)
}

fn outbox_of(id: &str, sequence: u32) -> String {
    format!("outbox/{id}_seq{sequence:04}.txt")
}

#[test]
fn of_several_sessions_the_one_named_by_the_file_is_served() {
    let (base, daemon) = two();
    base.write(&format!("inbox/{OTHER}_seq0001 (1).txt"), MESSAGE);
    daemon.wait_for(&outbox_of(OTHER, 2));
    base.write(&format!("inbox/reply-{}.txt", ID.to_uppercase()), MESSAGE);
    daemon.wait_for(&outbox_of(ID, 2));
    assert!(!base.exists(&outbox_of(OTHER, 3)) && !base.exists(&outbox_of(ID, 3)));
}

#[test]
fn of_several_sessions_none_is_guessed() {
    let (base, _daemon) = two();
    base.write("inbox/x.txt", MESSAGE);
    let note = base.rejected("x.txt");
    assert!(note.contains(&format!("({OTHER}, {ID})")), "{note}");
    assert!(note.contains(&format!("{OTHER}_reply.txt")), "{note}");
    base.write(&format!("inbox/{ID}_{OTHER}.txt"), MESSAGE);
    base.rejected(&format!("{ID}_{OTHER}.txt"));
    assert_eq!(base.names("outbox").len(), 2);
}

#[test]
fn the_only_open_session_needs_no_name() {
    let (base, daemon) = two();
    base.write(&format!("inbox/{OTHER}.txt"), DONE);
    daemon.wait_for(&format!("Session {OTHER} is complete"));
    base.write("inbox/x.txt", MESSAGE);
    base.wait_for_outbox(2);
}

#[test]
fn a_completed_session_takes_no_reply() {
    let (base, daemon) = two();
    base.write(&format!("inbox/{OTHER}.txt"), DONE);
    daemon.wait_for(&format!("Session {OTHER} is complete"));
    base.write(&format!("inbox/again_{OTHER}.txt"), MESSAGE);
    let note = base.rejected(&format!("again_{OTHER}.txt"));
    assert!(note.contains(&format!("deaddrop resume {OTHER} --reopen")), "{note}");
}

#[test]
fn without_an_open_session_the_note_tells_how_to_start_one() {
    let base = Project::new();
    let _daemon = base.serve(&["watch"]);
    base.write("inbox/x.txt", MESSAGE);
    assert!(base.rejected("x.txt").contains("deaddrop new"));
}

#[test]
fn a_session_made_beside_a_daemon_is_served_by_it() {
    let base = Project::with_session();
    let daemon = base.serve(&["watch"]);
    let run = base.run(&["new", "--id", OTHER, "Another task"]).ok();
    assert_eq!(run.stdout.trim(), outbox_of(OTHER, 1));
    assert!(base.read(&outbox_of(OTHER, 1)).contains("Task: Another task\n"));
    assert!(run.stderr.contains("The running deaddrop"), "{}", run.stderr);
    base.write(&format!("inbox/{OTHER}.txt"), MESSAGE);
    daemon.wait_for(&outbox_of(OTHER, 2));
}

#[test]
fn a_daemon_of_one_session_serves_another_that_is_named() {
    let base = Project::with_session();
    let mut daemon = base.serve(&["resume", ID]);
    let run = base.run(&["new", "--id", OTHER, "Another task"]).ok();
    assert!(run.stderr.contains(&format!("{OTHER}_reply.txt")), "{}", run.stderr);
    base.write(&format!("inbox/{OTHER}_reply.txt"), DONE);
    daemon.wait_for(&format!("Session {OTHER} is complete"));
    base.write("inbox/x.txt", DONE);
    assert_eq!(daemon.wait().code(), Some(0));
}

#[test]
fn a_reply_for_a_damaged_session_is_not_given_to_another() {
    let base = Project::with_session();
    base.write(&format!("sessions/{OTHER}.json"), "{");
    let _daemon = base.serve(&["watch"]);
    base.write(&format!("inbox/{OTHER}.txt"), MESSAGE);
    let note = base.rejected(&format!("{OTHER}.txt"));
    assert!(note.contains(&format!("{OTHER}.json is damaged")), "{note}");
    base.fails(&["status", OTHER], "damaged-session");
}

#[test]
fn a_name_as_long_as_names_can_be_is_no_hindrance() {
    let base = Project::with_session();
    let _daemon = base.serve(&["resume"]);
    let name = format!("{}.txt", "é".repeat(125));
    for (n, bytes) in [MESSAGE, &MESSAGE.repeat(2), "\0", "\0"].into_iter().enumerate() {
        base.write(&format!("inbox/{name}"), bytes);
        wait_until("the reply to be put away", || {
            let (archived, rejected) =
                (base.names("inbox/processed"), base.names("inbox/rejected"));
            archived.len() == (n + 1).min(2) && rejected.len() == [0, 0, 2, 4][n]
        });
    }
    assert_eq!(base.names("inbox"), [".claimed", "processed", "rejected"]);
}

#[test]
fn a_name_that_is_not_text_is_no_hindrance() {
    let base = Project::with_session();
    let _daemon = base.serve(&["resume"]);
    for n in 0..2 {
        base.sh(&format!(
            "printf '[MESSAGE]\\n{n}\\n[/MESSAGE]\\n' > \"inbox/$(printf 'a\\377\\nb').txt\""
        ));
        wait_until("the reply to be taken", || base.names("inbox") == [".claimed", "processed"]);
    }
    base.wait_for_outbox(3);
    wait_until("the archive", || base.names("inbox/processed").len() == 2);
}

#[test]
fn a_name_cannot_steer_the_terminal() {
    let base = Project::with_session();
    let daemon = base.serve(&["resume"]);
    let name = "x\n\x1b[31m.txt";
    base.write("y", b"\xff");
    fs::rename(base.at("y"), base.at("inbox").join(name)).unwrap();
    assert!(base.rejected(name).starts_with("x␊␛[31m.txt: "));
    daemon.wait_for("x␊␛[31m.txt was moved to inbox/rejected: ");
    assert!(!daemon.said().contains("\x1b[31m"));

    // One that was claimed and not begun is a new reply.
    fs::write(base.at("inbox/.claimed").join(name), MESSAGE).unwrap();
    daemon.stop();
    let daemon = base.serve(&["resume"]);
    daemon.wait_for("x␊␛[31m.txt, the reply to outbox 1");
}

#[test]
fn a_longer_file_is_not_replaced_by_what_stands_for_it() {
    let base = Project::with_session();
    let long = "import os\n\n\ndef f():\n    return 1\n\n\ndef g():\n    return 2\n";
    for line in [
        "# The rest of your code here",
        "# Existing code...",
        "# --- existing code ---",
        "# keep the rest as is",
        "# code omitted for brevity",
        "[rest of file unchanged]",
        "...",
        "…",
    ] {
        base.write("workspace/a.py", long);
        let create = format!("[CREATE_FILE path=\"a.py\"]\nimport sys\n{line}\n[/CREATE_FILE]\n");
        assert_eq!(base.codes(&create), ["lines-left-out"], "{line}");
        assert_eq!(base.read("workspace/a.py"), long, "{line}");
    }
    // What a shorter file becomes may hold such a line.
    base.write("workspace/a.py", "import os\n");
    base.apply("[CREATE_FILE path=\"a.py\"]\nimport sys\n# existing methods\n[/CREATE_FILE]\n");
    assert_eq!(base.read("workspace/a.py"), "import sys\n# existing methods\n");
}
