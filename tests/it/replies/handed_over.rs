//! Commands given beside a running daemon: handed over, waited for, answered with its result.

use std::fs;
use std::time::Instant;

use crate::support::{ID, Project, wait_until};

#[test]
fn a_reply_applied_beside_a_daemon_is_carried_out_by_it() {
    let base = Project::with_session();
    let daemon = base.serve(&["watch"]);
    let run = base.run_with(&["apply", "-"], "[RUN_COMMAND]\necho hi > a\n[/RUN_COMMAND]\n").ok();
    assert_eq!(run.stdout, format!("outbox/{ID}_seq0002.txt\n"));
    assert!(run.stderr.contains("the reply to outbox 1 of session a1b2c3d4"), "{run:?}");
    assert!(run.stderr.contains("Ran 'echo hi > a' (exit code 0)"), "{run:?}");
    assert_eq!(base.read("workspace/a"), "hi\n");
    daemon.wait_for(&format!("outbox/{ID}_seq0002.txt"));
    assert_eq!(base.names("sessions/control"), [""; 0]);
}

#[test]
fn words_said_beside_a_daemon_are_added_to_its_outbox() {
    let base = Project::with_session();
    let daemon = base.serve(&["watch"]);
    base.run(&["say", "Please use tabs"]).ok();
    assert!(base.outbox(1).contains("The user adds:\n  Please use tabs\n"));
    daemon.wait_for("Your words are now at the end of");
    daemon.stop();
    let daemon = base.serve(&["watch", "--json"]);
    base.run(&["say", "And tests"]).ok();
    daemon.wait_for("\"event\":\"outbox\"");
}

#[test]
fn a_session_begun_beside_a_daemon_is_served_by_it() {
    let base = Project::new();
    let daemon = base.serve(&["watch"]);
    let run = base.run(&["new", "--id", ID, "A task"]).ok();
    assert_eq!(run.stdout, format!("outbox/{ID}_seq0001.txt\n"));
    assert!(run.stderr.contains("The running deaddrop"), "{run:?}");
    daemon.wait_for("Session a1b2c3d4 was added");
    base.write("inbox/r.txt", "[MESSAGE]\nhi\n[/MESSAGE]\n");
    base.wait_for_outbox(2);
}

#[test]
fn a_session_is_reopened_beside_a_daemon() {
    let base = Project::with_session();
    let daemon = base.serve(&["watch"]);
    let reopen = ["resume", ID, "--reopen", "Now add division"];
    base.fails(&reopen, "usage").with_code(2);
    base.run_with(&["apply", "-"], "[DONE]\nx\n[/DONE]\n").ok();
    let run = base.run(&reopen).ok();
    assert_eq!(run.stdout, format!("outbox/{ID}_seq0002.txt\n"));
    assert!(base.outbox(2).contains("Now add division"));
    base.run_with(&["apply", "-"], "[MESSAGE]\nhi\n[/MESSAGE]\n").ok();
    base.wait_for_outbox(3);
    daemon.stop();
}

#[test]
fn what_the_daemon_refuses_is_told_with_its_exit_code() {
    let base = Project::with_session();
    let _daemon = base.serve(&["watch"]);
    let reply = "[MESSAGE]\nhi\n[/MESSAGE]\n";
    base.run_with(&["apply", "-"], reply).ok();
    base.fails_with(&["apply", "-"], reply, "duplicate-reply").with_code(1);
    base.fails_with(&["apply", "--session", "00000000", "-"], reply, "no-session").with_code(5);
    base.fails(&["say", "--session", "00000000", "x"], "no-session").with_code(5);
    base.run_with(&["apply", "--again", "-"], reply).ok();
    base.run_with(&["apply", "-"], "[DONE]\nx\n[/DONE]\n").ok();
    let named = ["apply", "--session", ID, "-"];
    base.fails_with(&named, reply, "session-complete").with_code(2);
}

#[test]
fn a_file_in_the_inbox_is_carried_out_once_whoever_gets_it() {
    let base = Project::with_session();
    let _daemon = base.serve(&["watch"]);
    base.write("inbox/r.txt", "[RUN_COMMAND]\necho ran >> log\n[/RUN_COMMAND]\n");
    let run = base.run(&["apply", "inbox/r.txt"]);
    base.wait_for_outbox(2);
    assert!(matches!(run.code, Some(0 | 1)), "{run:?}");
    assert_eq!(base.read("workspace/log"), "ran\n");
}

#[test]
fn a_wish_that_waits_is_done_here_when_the_daemon_ends_first() {
    let base = Project::with_session();
    let mut daemon = base.serve(&["watch"]);
    base.write("inbox/r.txt", "[RUN_COMMAND]\ntouch begun; sleep 300\n[/RUN_COMMAND]\n");
    wait_until("the command", || base.exists("workspace/begun"));
    let said = base.command(&["say", "Please"]).spawn().unwrap();
    wait_until("the wish", || {
        base.names("sessions/control").iter().any(|name| name.contains("request"))
    });
    daemon.signal("KILL");
    daemon.wait();
    assert!(said.wait_with_output().unwrap().status.success());
    assert_eq!(base.status()["added"], serde_json::json!(["Please"]));
}

#[test]
fn wishes_are_answered_at_once() {
    let base = Project::with_session();
    let _daemon = base.serve(&["watch"]);
    let begun = Instant::now();
    for n in 0..20 {
        base.run(&["say", &format!("word {n}")]).ok();
    }
    // A tick is two seconds: twenty of them would take forty.
    assert!(begun.elapsed().as_secs() < 38, "{:?}", begun.elapsed());
    let words: Vec<String> = (0..20).map(|n| format!("word {n}")).collect();
    assert_eq!(base.status()["added"], serde_json::json!(words));
    assert!(fs::read_dir(base.at("sessions/control")).unwrap().next().is_none());
}

#[test]
fn a_wish_that_nobody_waits_for_is_not_carried_out() {
    let base = Project::with_session();
    base.write("sessions/control/old.request", "{\"say\":{\"text\":\"stale\",\"session\":null}}");
    base.run(&["resume", "--no-watch"]).ok();
    assert!(!base.run(&["status", ID]).ok().stdout.contains("stale"));
    assert_eq!(base.names("sessions/control"), [""; 0]);
}

#[test]
fn a_wish_that_cannot_be_fulfilled_does_not_stop_the_daemon() {
    let base = Project::with_session();
    fs::create_dir(base.at("sessions/0000dead.json")).unwrap();
    let daemon = base.serve(&["watch"]);
    base.run(&["say", "--session", "0000dead", "x"]).with_code(1);
    base.run(&["say", "--session", ID, "y"]).ok();
    daemon.stop();
}

#[test]
fn the_same_reply_by_another_way_is_held() {
    let base = Project::with_session();
    let reply = "[RUN_COMMAND]\necho a >> log\n[/RUN_COMMAND]\n";
    base.run_with(&["apply", "-"], reply).ok();
    for again in [
        reply.trim_end().to_owned(),
        reply.replace('\n', "\r\n"),
        format!("\n{reply}"),
        reply.replace('\n', "  \n"),
        format!("```\n{reply}```\n"),
        format!("Copy code\n{reply}"),
    ] {
        base.fails_with(&["apply", "-"], &again, "duplicate-reply").with_code(1);
    }
    assert_eq!(base.read("workspace/log"), "a\n");
    base.run_with(&["apply", "--again", "-"], reply.trim_end()).ok();
    assert_eq!(base.read("workspace/log"), "a\na\n");
}
