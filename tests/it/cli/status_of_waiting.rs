//! What a person is shown who looks: `status`, `log` and `show` while a decision is pending, replies that
//! are held, and the end of what a failing command wrote.

use serde_json::Value;

use crate::approvals::asked::{ASKS, scene};
use crate::replies::which_outbox::line;
use crate::support::{ID, Project};

const MESSAGE: &str = "[MESSAGE]\nhi\n[/MESSAGE]\n";

fn json(text: &str) -> Value {
    serde_json::from_str(text.trim()).unwrap()
}

#[test]
fn a_turn_that_waits_stands_in_the_log_and_beside_the_outbox() {
    let base = scene();
    let run = base.run(&["log"]).ok();
    assert_eq!(run.stdout, "");
    assert!(run.stderr.contains("No reply to session a1b2c3d4 has been executed yet."), "{run:?}");
    assert_eq!(base.run(&["show"]).ok().stderr, "");

    base.run_with(&["apply", "-"], ASKS).with_code(3);
    let log = base.run(&["log"]).ok().stdout;
    let told = "  1 operation so far, waits for your decision: `deaddrop approve`, or `deaddrop deny --reason TEXT`  (";
    assert!(log.starts_with("   1  ") && log.contains(told) && log.lines().count() == 1, "{log}");
    let entry = json(&base.run(&["log", "--json"]).ok().stdout);
    assert_eq!((&entry["sequence"], &entry["commands"]), (&1.into(), &1.into()));
    assert_eq!(entry["waiting"]["command"], "rm -r temp");
    let run = base.run(&["show"]).ok();
    assert_eq!(run.stdout, base.outbox(1));
    let told = "Outbox 1 has been answered, and its turn waits; the next one follows your decision: `deaddrop approve`";
    assert!(run.stderr.contains(told), "{run:?}");

    base.run(&["approve"]).ok();
    let log = base.run(&["log"]).ok().stdout;
    assert!(log.contains("  3 operations (1 command)  (") && log.lines().count() == 1, "{log}");
    assert_eq!(base.run(&["show"]).ok().stderr, "");
    assert_eq!(base.run(&["show", "1", "--session", ID]).ok().stderr, "");
    let entry = json(&base.run(&["log", "--json"]).ok().stdout);
    assert!(entry.get("waiting").is_none(), "{entry}");
}

#[test]
fn an_outbox_is_shown_as_an_object() {
    let base = Project::with_session();
    let noted = json(&base.read("sessions/a1b2c3d4.json"))["tokens"].clone();
    base.apply(MESSAGE);
    let run = base.run(&["show", "--json"]).ok();
    let told = json(&run.stdout);
    assert_eq!(told["text"], base.outbox(2));
    assert_eq!((&told["session"], &told["sequence"]), (&ID.into(), &2.into()));
    assert_eq!(told["path"], "outbox/a1b2c3d4_seq0002.txt");
    assert_eq!(told["tokens"], json(&base.read("sessions/a1b2c3d4.json"))["tokens"]);
    let first = json(&base.run(&["show", "1", "--session", ID, "--json"]).ok().stdout);
    assert_eq!((&first["text"], &first["tokens"]), (&base.outbox(1).into(), &noted));
    let part = json(&base.run(&["show", "--json", "--part", "1/2"]).ok().stdout);
    let text = part["text"].as_str().unwrap();
    assert!(text.starts_with("=== PART 1 of 2 "), "{text}");
}

#[test]
fn held_replies_are_told_and_go_when_they_are_carried_out() {
    let base = Project::with_session();
    let old = format!("{}{MESSAGE}", line(&base, ID));
    base.run_with(&["apply"], &old).ok();
    assert!(!base.run(&["status", ID]).ok().stdout.contains("Held:"));
    for name in ["b.txt", "a b.txt"] {
        base.write(&format!("inbox/{name}"), &old);
    }
    base.run(&["resume", "--no-watch"]).ok();
    assert_eq!(base.names("inbox/held"), ["a b.txt", "a b.txt.why.txt", "b.txt", "b.txt.why.txt"]);
    let status = base.run(&["status", ID]).ok().stdout;
    let told =
        "Held:     2 replies in inbox/held/; a note beside each says why, and how to execute it\n";
    assert!(status.contains(told), "{status}");
    let status = json(&base.run(&["status", ID, "--json"]).ok().stdout);
    assert_eq!(status["held"], serde_json::json!(["a b.txt", "b.txt"]));

    // Without the flag it is held on, with one note.
    base.run(&["apply", "inbox/held/b.txt"]).with_code(1);
    assert_eq!(base.names("inbox/held").len(), 4, "{:?}", base.names("inbox/held"));
    base.run(&["apply", "--force", "inbox/held/b.txt"]).ok();
    assert_eq!(base.names("inbox/held"), ["a b.txt", "a b.txt.why.txt"]);
    assert_eq!(base.read("inbox/processed/b.txt"), old);
    base.run(&["apply", "--force", "inbox/held/a b.txt"]).ok();
    assert_eq!(base.names("inbox/held"), [""; 0]);
    assert!(!base.run(&["status", ID]).ok().stdout.contains("Held:"));
}

#[test]
fn of_a_command_that_fails_the_last_line_is_told() {
    let base = Project::with_session();
    let reply = "\
[RUN_COMMAND]\necho first; echo 'why \u{1b}[31mit failed' >&2; echo; exit 3\n[/RUN_COMMAND]
[RUN_COMMAND]\necho fine\n[/RUN_COMMAND]
[RUN_COMMAND]\nexit 4\n[/RUN_COMMAND]\n";
    let run = base.run_with(&["apply", "-"], reply).ok();
    let told = "exit 3' (exit code 3)\n          why ␛[31mit failed\n";
    assert!(run.stderr.contains(told), "{run:?}");
    assert!(!run.stderr.contains("\n          fine"), "{run:?}");
    assert!(run.stderr.contains("FAILED  RUN_COMMAND  Ran 'exit 4' (exit code 4)\n"), "{run:?}");
    let status = base.run(&["status", ID]).ok().stdout;
    assert!(status.contains(told), "{status}");
    // All of it is there once where that is asked for.
    let run = base.run_with(&["apply", "-v", "--again", "-"], reply).ok();
    assert_eq!(run.stderr.matches("it failed\n").count(), 1, "{run:?}");
}
