//! What an undo tells of other sessions, of what was put aside and carried out beside it, and whether what
//! the model is told after a redo is so.

use std::process::Stdio;
use std::time::SystemTime;

use serde_json::json;

use crate::support::{ID, Project, Run, wait_until};

const OTHER: &str = "b1b2c3d4";

fn create(path: &str, text: &str) -> String {
    format!("[CREATE_FILE path=\"{path}\"]\n{text}\n[/CREATE_FILE]\n")
}

#[track_caller]
fn tells(text: &str, all: &[&str]) {
    for told in all {
        assert!(text.contains(told), "{told:?} is not in {text}");
    }
}

/// Two sessions in one workspace, of which the first changed `a`, and then the other one.
fn two_sessions() -> Project {
    let base = Project::with_session();
    base.begin(OTHER);
    base.apply(&(create("a", "one") + &create("z", "z")));
    base.run_with(&["apply", "--session", OTHER, "-"], create("a", "two")).ok();
    base
}

fn undo(base: &Project, more: &[&str]) -> Run {
    base.run(&[&["undo", "--session", ID], more].concat())
}

#[test]
fn a_name_that_holds_a_secret_is_not_told_after_a_redo_either() {
    let base = Project::with_session();
    // Made here, so that no file of the project holds what looks like a key.
    let name = format!("{}{}", "AKIA", "Q3EGRAZBXS4JKTPN");
    base.apply(&create(&name, "one"));
    base.write(&format!("workspace/{name}"), "mine\n");
    base.run(&["undo", "--force"]).ok();
    base.run(&["redo"]).ok();
    let outbox = base.outbox(4);
    tells(&outbox, &["with later changes by somebody else: [withheld: AWS key]\n"]);
    assert!(!outbox.contains(&name), "{outbox}");
}

#[test]
fn what_another_session_changed_since_is_a_conflict() {
    let base = two_sessions();
    let refused = undo(&base, &["--json"]).with_code(1);
    assert_eq!(refused.error()["code"], "undo-conflict");
    tells(&refused.message(), &["'a'. `--force` puts it back"]);
    let forced = undo(&base, &["--force"]).ok();
    tells(&forced.stderr, &["what had changed since is overwritten, but kept: 'a'."]);
    base.run(&["redo", "--session", ID]).ok();
    assert_eq!(base.read("workspace/a"), "two\n");
    base.run(&["undo", "--session", OTHER]).ok();
    undo(&base, &[]).ok();
    assert!(!base.exists("workspace/a"));
}

#[test]
fn who_looks_at_one_of_several_sessions_is_told_which() {
    let base = two_sessions();
    for call in [&["diff"][..], &["log"], &["show"], &["diff", "--json"]] {
        let which = "2 sessions are open; this is about the newest, b1b2c3d4";
        tells(&base.run(call).ok().stderr, &[which]);
    }
    for call in [&["diff", "--session", ID][..], &["log", "--session", ID], &["diff", "-q"]] {
        let run = base.run(call).ok();
        assert!(!run.stderr.contains("sessions are open"), "{call:?}: {run:?}");
    }
}

/// A session whose turn made `a` and `b`, and whose person then changed `a`.
fn changed_since() -> Project {
    let base = Project::with_session();
    base.apply(&(create("a", "one") + &create("b", "b")));
    base.write("workspace/a", "mine\n");
    base
}

#[test]
fn the_outbox_after_a_redo_tells_what_does_not_stand_again() {
    let base = changed_since();
    base.run(&["undo", "--force"]).ok();
    let run = base.run(&["redo", "--json"]).ok();
    let redo = &run.json()["changed"]["back"];
    assert_eq!(base.read("workspace/a"), "mine\n");
    assert_eq!((&redo["turns"], &redo["others"]["named"]), (&json!([1]), &json!(["a"])), "{redo}");
    tells(
        &run.stderr,
        &[
            "'a' still contains a later change",
            "Turn 1 put back in session a1b2c3d4, but for 1 place (see above)",
        ],
    );
    tells(
        &base.outbox(4),
        &[
            "reply to message 1.\nFiles changed again: new a, new b\n",
            "Redone, but with later changes by somebody else: a\n",
        ],
    );
    // Where all of it stands again, that is said.
    let base = changed_since();
    base.write("workspace/a", "one\n");
    base.run(&["undo"]).ok();
    base.write("workspace/a", "mine\n");
    base.run(&["redo"]).with_code(1);
    base.run(&["redo", "--force"]).ok();
    assert_eq!(base.read("workspace/a"), "one\n");
    let outbox = base.outbox(4);
    tells(&outbox, &["Files changed again: a, new b\n"]);
    assert!(!outbox.contains("somebody else"), "{outbox}");
    // What it overwrote is kept.
    assert!(base.run(&["diff", "3"]).ok().stdout.contains("-mine\n"));
}

#[test]
fn who_hands_an_undo_over_is_told_what_was_put_aside() {
    let base = changed_since();
    let daemon = base.serve(&["watch"]);
    let undo = base.run(&["undo", "--force"]).ok();
    tells(
        &undo.stderr,
        &[
            "what had changed since is overwritten, but kept: 'a'. `deaddrop diff 2` shows it; `deaddrop redo` brings it back",
        ],
    );
    base.write("workspace/b", "mine\n");
    let redo = base.run(&["redo", "--force", "--json"]).ok();
    tells(
        &redo.stderr,
        &["what had changed since is overwritten, but kept: 'b'. `deaddrop diff 3` shows it"],
    );
    daemon.stop();
}

#[test]
fn who_undoes_while_a_turn_runs_undoes_that_one() {
    let base = Project::with_session();
    base.apply(&create("a", "one"));
    let daemon = base.serve(&["watch"]);
    let reply =
        "[RUN_COMMAND]\necho x > made; until [ -e go ]; do sleep 0.02; done\n[/RUN_COMMAND]\n";
    base.write("inbox/second.txt", reply);
    wait_until("the command", || base.exists("workspace/made"));
    let mut command = base.command(&["undo"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let undo = command.spawn().unwrap();
    wait_until("the request", || {
        base.names("sessions/control").iter().any(|n| n.contains(".request"))
    });
    // Times are told in seconds.
    let second = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let asked = second();
    wait_until("the next second", || second() > asked);
    base.write("workspace/go", "");
    let output = undo.wait_with_output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    tells(&told, &["Turn 2 undone"]);
    assert!(base.exists("workspace/a") && !base.exists("workspace/made"), "{told}");
    daemon.stop();
}
