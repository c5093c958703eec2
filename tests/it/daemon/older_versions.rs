//! State that an earlier version of the program left, in its own files: `stored/`.

use serde_json::Value;

use crate::support::Project;

const ID: &str = "308d0b68";

/// A project with these sessions, whose workspace is the folder itself, as theirs was.
fn left(session: &str, journal: &[u8]) -> Project {
    let base = Project::new();
    base.run(&["init", "-q"]).ok();
    base.write("a.txt", "one\nTWO\nTHREE\n");
    base.write(&format!(".deaddrop/sessions/{ID}.json"), session);
    base.write(
        &format!(".deaddrop/sessions/{ID}.log"),
        include_bytes!("older_versions/session.log"),
    );
    base.write(".deaddrop/sessions/journal", journal);
    base.is_theirs();
    base
}

fn status(base: &Project) -> Value {
    serde_json::from_str(&base.run(&["status", ID, "--json"]).ok().stdout).unwrap()
}

#[test]
fn a_turn_that_an_earlier_version_was_killed_in_is_recovered() {
    let base =
        left(include_str!("older_versions/session.json"), include_bytes!("older_versions/journal"));
    let run = base.run(&["status", ID]).ok();
    assert!(run.stdout.contains("open, stopped within a turn"), "{run:?}");
    assert!(run.stdout.contains("  --    DONE         not counted: 1 operation"), "{run:?}");

    let run = base.run(&["say", "Go on"]).ok();
    assert!(run.stderr.contains("1 command done before, 1 interrupted"), "{run:?}");
    let outbox = base.read(&format!(".deaddrop/outbox/{ID}_seq0010.txt"));
    assert!(outbox.contains("[OK] CREATE_FILE: Replaced 'g.txt'\n[FAILED] RUN_COMMAND: "));
    assert!(outbox.contains("Go on\n"), "{outbox}");
    let status = status(&base);
    assert_eq!((&status["sequence"], &status["isComplete"]), (&10.into(), &false.into()));
    let log = base.run(&["log", "--json"]).ok().stdout;
    let turns: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let sequences: Vec<u64> = turns.iter().map(|turn| turn["sequence"].as_u64().unwrap()).collect();
    assert_eq!(sequences, (1..=9).collect::<Vec<u64>>());
    assert_eq!(turns[8]["recovered"], true);
}

#[test]
fn a_turn_that_waits_since_an_earlier_version_can_be_decided() {
    let base = left(include_str!("older_versions/waiting.json"), b"");
    assert_eq!(status(&base)["waiting"]["operation"], "op-43622497");
    base.run(&["deny", "--reason", "Not today"]).ok();
    assert_eq!(base.read("f.txt"), "f\n");
    let outbox = base.read(&format!(".deaddrop/outbox/{ID}_seq0007.txt"));
    assert!(outbox.contains("The user denied 'git push --force': Not today"), "{outbox}");
}
