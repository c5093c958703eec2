//! Sessions that are closed or removed, and how one is named.

use std::fs;

use crate::support::{ID, Project, wait_until};

const OTHER: &str = "a1ffffff";
const CREATES: &str = "[CREATE_FILE path=\"a\"]\none\n[/CREATE_FILE]\n";
const ASKS: &str = "[CREATE_FILE path=\".envrc\"]\nA=1\n[/CREATE_FILE]\n";

#[test]
fn a_closed_session_takes_no_reply_until_it_is_reopened() {
    let base = Project::with_session();
    base.run(&["close", ID]).ok();
    assert_eq!(base.json(&["status", ID])["isComplete"], true);
    base.run_with(&["apply", "--session", ID, "-"], CREATES).with_code(2);
    base.run_with(&["apply", "-"], CREATES).with_code(5);
    assert!(!base.exists("workspace/a"));
    // Once more changes nothing.
    let told = base.json(&["close", ID]);
    assert_eq!((&told["session"], &told["isComplete"]), (&ID.into(), &true.into()));
    base.run(&["resume", ID, "--no-watch", "--reopen", "Go on"]).ok();
    base.run_with(&["apply", "-"], CREATES).ok();
    assert!(base.exists("workspace/a"));
}

#[test]
fn a_session_that_waits_is_not_closed() {
    let base = Project::with_session();
    base.run_with(&["apply", "-"], ASKS).with_code(3);
    base.fails(&["close", ID, "--delete"], "waits-for-decision").with_code(2);
    base.run(&["deny", "--session", ID]).ok();
    base.run(&["close", "--session", "a1b2"]).ok();
    base.fails(&["close"], "usage").with_code(2);
}

#[test]
fn of_a_removed_session_nothing_is_left_but_its_work() {
    let base = Project::with_session();
    base.begin(OTHER);
    base.run_with(&["apply", "--session", ID, "-"], CREATES).ok();
    base.write("workspace/a", "mine\n");
    base.run_with(&["apply", "--session", ID, "-"], "[DELETE_FILE path=\"a\"]\n").ok();
    base.run_with(&["apply", "--session", OTHER, "-"], CREATES).ok();
    let is_kept = |text: &str| {
        let folder = walkdir::WalkDir::new(base.at("sessions/checkpoints"));
        let files = folder.into_iter().flatten().filter(|entry| entry.file_type().is_file());
        let mut packs = files.filter_map(|entry| fs::read(entry.path()).ok());
        packs.any(|pack| pack.windows(text.len()).any(|part| part == text.as_bytes()))
    };
    assert!(is_kept("mine\n"), "what the session deleted");
    // Somebody's file that was in the way of an outbox was put aside under such a name.
    let aside = base.write(&format!("outbox/{ID}_seq0002-2.txt"), "theirs\n");
    base.run(&["close", ID, "--delete"]).ok();
    let left = |folder: &str| {
        base.names(folder).into_iter().filter(|name| name.starts_with(ID)).collect::<Vec<_>>()
    };
    assert_eq!(left("sessions"), [""; 0]);
    assert_eq!(left("outbox"), [format!("{ID}_seq0002-2.txt")]);
    assert_eq!(fs::read_to_string(aside).unwrap(), "theirs\n");
    assert!(!is_kept("mine\n"), "nothing can be undone with it");
    base.fails(&["status", ID], "no-session").with_code(5);
    base.fails(&["close", ID], "no-session").with_code(5);
    // The other one goes on, and its turn can be taken back.
    assert!(base.run(&["status"]).ok().stdout.starts_with(OTHER));
    base.run(&["undo", "--session", OTHER]).ok();
    assert!(!base.exists("workspace/a"));
}

#[test]
fn a_session_is_removed_where_a_stop_had_left_a_part_of_it() {
    let base = Project::with_session();
    base.run_with(&["apply", "-"], CREATES).ok();
    base.run(&["close", ID]).ok();
    base.sh("rm outbox/* sessions/*.log");
    base.run(&["close", ID, "--delete"]).ok();
    assert_eq!(base.run(&["status"]).ok().stdout, "");
}

#[test]
fn a_session_is_removed_beside_the_process_that_serves_it() {
    let base = Project::with_session();
    let daemon = base.serve(&["watch"]);
    base.run_with(&["apply", "-"], CREATES).ok();
    base.run(&["close", ID, "--delete"]).ok();
    wait_until("its end", || !base.exists(&format!("sessions/{ID}.json")));
    // It is not known any more, so it is not offered either.
    base.write(&format!("inbox/{ID}_reply.txt"), CREATES);
    let note = format!("inbox/rejected/{ID}_reply.txt.why.txt");
    wait_until("the note", || base.exists(&note));
    assert!(!base.read(&note).contains("--reopen"));
    daemon.stop();
    assert_eq!(base.run(&["status"]).ok().stdout, "");
    assert_eq!(base.read("workspace/a"), "one\n");
}

#[test]
fn a_reply_from_before_a_session_was_closed_is_outdated() {
    let base = Project::with_session();
    let outbox = base.outbox(1);
    let line = outbox.lines().rev().find_map(|line| Some(&line[line.find("[REPLY ")?..])).unwrap();
    // Cut off, so that the whole reply would still count.
    base.run_with(&["apply", "-"], format!("{line}\n[CREATE_FILE path=\"a\"]\none\n")).ok();
    base.run(&["close", ID]).ok();
    base.run(&["resume", ID, "--no-watch", "--reopen", "Do something else"]).ok();
    let whole = format!("{line}\n{CREATES}");
    let run = base.run_with(&["--json", "apply", "-"], whole).with_code(1);
    assert_eq!(run.error()["code"], "outdated-reply");
    assert!(!base.exists("workspace/a"));
}

#[test]
fn a_run_is_not_closed() {
    let base = Project::new();
    base.run_with(&["ops", "run"], CREATES).ok();
    let run = base.names("sessions").into_iter().find(|name| name.starts_with("run_")).unwrap();
    base.fails(&["close", run.trim_end_matches(".json")], "usage").with_code(2);
}

#[test]
fn the_beginning_of_an_id_names_a_session_where_no_other_begins_so() {
    let base = Project::with_session();
    base.begin(OTHER);
    for (begins, code) in [("a1b", 0), (ID, 0), ("a1", 2), ("", 5), ("b", 5), ("A1B", 5)] {
        for command in ["log", "show", "status"] {
            base.run(&[command, "--session", begins]).with_code(code);
        }
    }
    base.run_with(&["apply", "--session", "a1f", "-"], CREATES).ok();
    assert!(base.exists(&format!("outbox/{OTHER}_seq0002.txt")));
    base.run(&["say", "--session", "a1b", "Hello"]).ok();
    assert!(base.outbox(1).contains("Hello"));
    base.run(&["status", "a1b", "--session", "a1b"]).with_code(2);
}

#[test]
fn a_former_name_says_the_present_one() {
    let base = Project::with_session();
    for (former, now) in [
        ("checkpoints", "log"),
        ("completions", "generate completions"),
        ("copy", "show --copy"),
        ("daemon", "generate systemd-unit"),
        ("man", "generate man"),
        ("open", "show --open"),
        ("paste", "apply --clipboard"),
        ("run", "ops run"),
        ("schema", "ops schema"),
        ("sessions", "status"),
        ("validate", "ops validate"),
    ] {
        let run = base.run(&[former, "x"]).with_code(2);
        assert!(run.stderr.contains(&format!("`deaddrop {now}` now")), "{run:?}");
    }
}
