//! Sessions that are closed or removed, and how one is named.

use std::fs;

use crate::support::{Base, ID, wait_until};

const OTHER: &str = "a1ffffff";
const CREATES: &str = "[CREATE_FILE path=\"a\"]\none\n[/CREATE_FILE]\n";
const ASKS: &str = "[CREATE_FILE path=\".envrc\"]\nA=1\n[/CREATE_FILE]\n";

#[test]
fn a_closed_session_takes_no_reply_until_it_is_reopened() {
    let base = Base::with_session();
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
    let base = Base::with_session();
    base.run_with(&["apply", "-"], ASKS).with_code(3);
    base.fails(&["close", ID, "--delete"], "waits-for-decision").with_code(2);
    base.run(&["deny", "--session", ID]).ok();
    base.run(&["close", ID]).ok();
}

#[test]
fn of_a_removed_session_nothing_is_left_but_its_work() {
    let base = Base::with_session();
    base.begin(OTHER);
    base.run_with(&["apply", "--session", ID, "-"], CREATES).ok();
    base.run_with(&["apply", "--session", OTHER, "-"], "[DELETE_FILE path=\"a\"]\n").ok();
    let kept = || fs::read_dir(base.at("sessions/checkpoints/blobs")).map_or(0, Iterator::count);
    let before = kept();
    base.run(&["close", ID, "--delete"]).ok();
    let left = |folder: &str| base.names(folder).iter().any(|name| name.starts_with(ID));
    assert!(!left("sessions") && !left("outbox"), "{:?}", base.names("outbox"));
    assert!(kept() <= before);
    base.fails(&["status", ID], "no-session").with_code(5);
    base.fails(&["close", ID], "no-session").with_code(5);
    // The other one goes on, and its turn can be taken back.
    assert!(base.run(&["status"]).ok().stdout.starts_with(OTHER));
    base.run(&["undo", "--session", OTHER]).ok();
    assert_eq!(base.read("workspace/a"), "one\n");
}

#[test]
fn a_session_is_removed_beside_the_process_that_serves_it() {
    let base = Base::with_session();
    let daemon = base.serve(&["watch"]);
    base.run_with(&["apply", "-"], CREATES).ok();
    base.run(&["close", ID, "--delete"]).ok();
    wait_until("its end", || !base.exists(&format!("sessions/{ID}.json")));
    daemon.stop();
    base.run(&["watch", "--json", "--help"]).ok();
    assert_eq!(base.run(&["status"]).ok().stdout, "");
    assert_eq!(base.read("workspace/a"), "one\n");
}

#[test]
fn the_beginning_of_an_id_names_a_session_where_no_other_begins_so() {
    let base = Base::with_session();
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
    let base = Base::with_session();
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
