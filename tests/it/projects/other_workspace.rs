//! A session goes on in the workspace that it began in.

use serde_json::{Value, json};

use crate::support::{ID, Project};

const MAKE: &str = "[CREATE_FILE path=\"made\"]\nx\n[/CREATE_FILE]\n";

/// With a session in the folder `mine`.
fn begun() -> Project {
    let base = Project::new();
    base.run(&["new", "--no-watch", "--id", ID, "--workspace-dir", "mine", "A task"]).ok();
    base
}

#[test]
fn what_is_not_the_sessions_workspace_is_refused_by_name() {
    let base = begun();
    for arguments in [&["resume", "--no-watch"][..], &["apply", "-"]] {
        let run = base.run_with(arguments, MAKE).with_code(2);
        for told in [
            &format!("{ID} began in the workspace 'mine', but the workspace is now 'workspace'"),
            "`--workspace-dir 'mine'`",
            &format!("`deaddrop resume {ID} --here`"),
        ] {
            assert!(run.stderr.contains(told), "{told}: {run:?}");
        }
    }
    // The reply was not taken, nor is it found later.
    base.run(&["resume", "--no-watch", "--workspace-dir", "mine"]).ok();
    assert!(!base.exists("mine/made") && !base.exists("workspace/made"));
    // Where it lies, not how it is written.
    let whole = base.at("mine/../mine").display().to_string();
    base.run_with(&["apply", "--workspace-dir", &whole, "-"], MAKE).ok();
    assert!(base.exists("mine/made") && !base.exists("workspace/made"));
}

#[test]
fn a_session_is_moved_on_purpose() {
    let base = begun();
    base.run(&["resume", ID, "--here", "--no-watch"]).ok();
    let outbox = base.apply(MAKE);
    assert!(outbox.contains("The session continues in another folder than before"), "{outbox}");
    assert!(base.exists("workspace/made") && !base.exists("mine/made"));
    base.run(&["resume", "--no-watch", "--workspace-dir", "mine"]).with_code(2);
}

#[test]
fn a_session_that_noted_none_goes_on_anywhere() {
    let base = begun();
    let path = format!("sessions/{ID}.json");
    let mut session: Value = serde_json::from_str(&base.read(&path)).unwrap();
    let noted = session.as_object_mut().unwrap().remove("workspace");
    assert_eq!(noted, Some(json!("mine")));
    base.write(&path, session.to_string());
    base.run_with(&["apply", "-"], MAKE).ok();
    assert!(base.exists("workspace/made"));
}

#[test]
fn a_reply_in_the_inbox_and_a_decision_wait_for_the_workspace() {
    let base = begun();
    let reply = "[CREATE_FILE path=\".envrc\"]\nx\n[/CREATE_FILE]\n";
    let of = |path: &str| ["--workspace-dir".to_owned(), path.to_owned()];
    let [flag, mine] = of("mine");
    base.run_with(&["apply", &flag, &mine, "-"], reply).with_code(3);
    // Another session is served meanwhile, and asks nothing on behalf of this one.
    base.run(&["new", "--no-watch", "--id", "00000002", "Another"]).ok();
    let run = base.fails(&["approve", "--session", ID], "other-workspace").with_code(2);
    assert!(run.message().contains("'mine'"), "{run:?}");
    base.write(
        "approvals/yes.json",
        json!({"protocolVersion": "1.0", "decision": "approved"}).to_string(),
    );
    base.write("inbox/00000002_reply.txt", MAKE);
    base.run(&["resume", "00000002", "--no-watch"]).ok();
    assert!(base.exists("workspace/made") && !base.exists("workspace/.envrc"));
    assert!(!base.exists("mine/.envrc"));
    base.run(&["approve", &flag, &mine, "--session", ID]).ok();
    assert_eq!(base.read("mine/.envrc"), "x\n");
    base.write(&format!("inbox/{ID}_reply.txt"), MAKE);
    let run = base.run(&["resume", "00000002", "--no-watch"]).ok();
    assert!(run.stderr.contains("'mine'"), "{run:?}");
    assert!(base.exists(&format!("inbox/{ID}_reply.txt")) && !base.exists("mine/made"));
    base.run(&["resume", ID, "--no-watch", &flag, &mine]).ok();
    assert!(base.exists("mine/made"));
}

#[test]
fn a_turn_that_was_cut_off_goes_on_where_it_was_begun() {
    let base = begun();
    let flag = ["--workspace-dir", "mine"];
    let reply =
        "[RUN_COMMAND]\ntouch half; while test ! -e go; do sleep 0.02; done\n[/RUN_COMMAND]\n"
            .to_owned()
            + MAKE;
    base.write(&format!("inbox/{ID}_reply.txt"), reply);
    let daemon = base.start(&["resume", ID, flag[0], flag[1]]);
    crate::support::wait_until("half", || base.exists("mine/half"));
    daemon.signal("KILL");
    drop(daemon);
    let run = base.fails(&["resume", "--no-watch"], "other-workspace").with_code(2);
    assert!(run.message().contains("'mine'"), "{run:?}");
    assert!(!run.message().contains("--here"), "it would not help: {run:?}");
    assert!(!base.exists("workspace/made"), "nothing of it is carried out there");
    base.write("mine/go", "");
    base.run(&["resume", "--no-watch", flag[0], flag[1]]).ok();
    assert!(base.exists("mine/made") && !base.exists("workspace/made"));
}

#[test]
fn a_session_is_not_handed_over_to_another_workspace() {
    let base = begun();
    let daemon = base.serve(&["watch", "--workspace-dir", "mine"]);
    let run = base.fails(&["new", "--no-watch", "Another"], "other-workspace").with_code(2);
    assert!(run.message().contains("'mine'"), "{run:?}");
    daemon.stop();
}

#[test]
fn a_reply_that_is_only_looked_at_tells_that_it_would_be_refused() {
    let base = begun();
    let told = base.check(MAKE, 0);
    assert_eq!(told["heldCode"], "other-workspace");
    let why = told["held"].as_str().unwrap();
    assert!(why.contains("'mine'") && why.contains("'workspace'"), "{why}");
    let there = ["check", "--workspace-dir", "mine", "-", "--json"];
    assert!(base.run_with(&there, MAKE).ok().json()["heldCode"].is_null());
}

#[test]
fn each_reply_that_cannot_be_taken_is_named_also_under_the_same_name() {
    let base = begun();
    base.run(&["new", "--no-watch", "--id", "00ff00ff", "A task"]).ok();
    let daemon = base.serve(&["watch"]);
    let path = format!("inbox/{ID}_reply.txt");
    let told = |count| daemon.said().matches("_reply.txt is left where it is").count() == count;
    base.write(&path, MAKE);
    crate::support::wait_until("the first is named", || told(1));
    std::fs::remove_file(base.at(&path)).unwrap();
    base.write("inbox/00ff00ff.txt", "[MESSAGE]\nx\n[/MESSAGE]\n");
    daemon.wait_for("00ff00ff_seq0002.txt");
    base.write(&path, MAKE);
    crate::support::wait_until("the second is named", || told(2));
}
