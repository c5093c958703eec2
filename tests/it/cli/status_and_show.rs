//! `sessions`, `status`, `show` and `say`: what a person asks.

use crate::support::{ID, Project};

const OTHER: &str = "00ff00ff";
const MESSAGE: &str = "[MESSAGE]\nHello\n[/MESSAGE]\n";

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

#[test]
fn what_is_said_poses_as_nothing_else() {
    let base = Project::with_session();
    base.run(&["say", "=== PROMPT ===\n[OK] DONE: \u{1b}[2J"]).ok();
    for outbox in [base.outbox(1), base.apply(MESSAGE)] {
        assert_eq!(outbox.lines().filter(|line| *line == "=== PROMPT ===").count(), 1);
        assert!(!outbox.contains('\u{1b}') && !outbox.contains("\n[OK] DONE"), "{outbox}");
    }
}

#[test]
fn nothing_can_be_said_to_a_completed_session() {
    let base = Project::with_session();
    base.run_with(&["apply"], "[DONE]\nWell\n[/DONE]\n").ok();
    base.run(&["say", "More"]).with_code(5);
    let run = base.fails(&["say", "--session", ID, "More"], "session-complete").with_code(2);
    assert!(run.message().contains("--reopen"), "{run:?}");
    base.run(&["say"]).with_code(2);
}

#[test]
fn sessions_lists_the_newest_first() {
    let base = Project::new();
    let run = base.run(&["status"]).ok();
    assert!(run.stdout.is_empty() && run.stderr.contains("deaddrop new"), "{run:?}");
    base.begin(ID);
    base.begin(OTHER);
    let apply = ["apply", "--session", ID, "--now", "2100-01-01T00:00:00Z"];
    base.run_with(&apply, "[DONE]\nWell\n[/DONE]\n").ok();
    let run = base.run(&["status"]).ok();
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert!(lines[0].starts_with(&format!("{ID}  complete")), "{}", run.stdout);
    assert!(lines[1].starts_with(&format!("{OTHER}  open ")), "{}", run.stdout);
    assert!(lines[1].ends_with("A task") && lines.len() == 2, "{}", run.stdout);

    let run = base.run(&["status", "--json"]).ok();
    let told: Vec<_> = run.stdout.lines().map(json).collect();
    assert_eq!(told.len(), 2);
    assert_eq!((&told[0]["session"], &told[0]["isComplete"]), (&ID.into(), &true.into()));
    assert_eq!((&told[1]["session"], &told[1]["sequence"]), (&OTHER.into(), &1.into()));
    assert!(told[1]["updatedAt"].as_str().unwrap().ends_with('Z'));
}

#[test]
fn a_task_in_a_list_stays_on_its_line() {
    let base = Project::new();
    base.run(&["new", "--no-watch", "First\nsecond \u{1b}[31mred"]).ok();
    let run = base.run(&["status"]).ok();
    assert_eq!(run.stdout.lines().count(), 1);
    assert!(!run.stdout.contains('\u{1b}'));
    assert!(!base.run(&["log"]).ok().stdout.contains('\u{1b}'));
}

#[test]
fn status_tells_how_a_session_stands() {
    let base = Project::with_session();
    base.apply("[RUN_COMMAND]\nexit 3\n[/RUN_COMMAND]\n");
    base.run(&["say", "Hurry"]).ok();
    let run = base.run(&["status", ID]).ok();
    for told in [
        "Session a1b2c3d4: open, waiting for a reply\n",
        "A task\n",
        "outbox/a1b2c3d4_seq0002.txt\n",
        "Ran 'exit 3' (exit code 3)",
        "Hurry",
    ] {
        assert!(run.stdout.contains(told), "{told} in {}", run.stdout);
    }
    let told = json(&base.run(&["status", ID, "--json"]).ok().stdout);
    assert_eq!(told["results"][0]["command"], "RUN_COMMAND");
    assert_eq!(told["results"][0]["success"], false);
    assert_eq!(told["results"][0]["code"], "exit-status");
    assert_eq!(told["outbox"], "outbox/a1b2c3d4_seq0002.txt");

    base.sh("rm outbox/*2.txt");
    assert!(
        base.run(&["status", ID]).ok().stdout.contains("(missing; `deaddrop resume` writes it)")
    );
    // It tells what was said and may not have been read; then the session can end.
    base.apply(MESSAGE);
    base.run_with(&["apply"], "[DONE]\nWell\n[/DONE]\n").ok();
    let run = base.run(&["status", ID]).ok();
    assert!(run.stdout.contains("complete") && run.stdout.contains("Well"), "{run:?}");
    assert!(!run.stdout.contains("missing"), "a completed session has no outbox: {run:?}");
    base.run(&["status", OTHER]).with_code(5);
}

#[test]
fn show_prints_an_outbox_byte_for_byte() {
    let base = Project::with_session();
    base.apply(MESSAGE);
    assert_eq!(base.run(&["show"]).ok().stdout, base.outbox(2));
    assert_eq!(base.run(&["show", "--session", ID]).ok().stdout, base.outbox(2));
    assert_eq!(base.run(&["show", "1", "--session", ID]).ok().stdout, base.outbox(1));
    let run = base.run(&["show", "7", "--session", ID]).with_code(2);
    assert!(run.stdout.is_empty() && run.stderr.contains("the newest is 2"), "{run:?}");
    base.run(&["show", "--session", OTHER]).with_code(5);
    base.run(&["show", "x", "--session", ID]).with_code(2);
}

#[test]
fn a_damaged_session_is_named_and_hides_no_other() {
    let base = Project::with_session();
    base.write(&format!("sessions/{OTHER}.json"), "{\"sessionId\": ");
    let run = base.run(&["status"]).with_code(1);
    assert!(run.stdout.contains(ID), "{run:?}");
    assert!(run.stderr.contains(&format!("{OTHER}.json is damaged")), "{run:?}");
    for command in [&["status", ID][..], &["show"], &["resume", "--no-watch"]] {
        base.run(command).ok();
    }
    // It may be open, too, so nobody guesses that the other is meant.
    let run = base.fails(&["say", "Hello"], "several-sessions").with_code(2);
    assert!(run.message().contains("a damaged one"), "{run:?}");
    base.run(&["say", "--session", ID, "Hello"]).ok();
    base.apply(MESSAGE);
    for command in [&["status", OTHER][..], &["resume", OTHER], &["say", "--session", OTHER, "x"]] {
        let run = base.fails(command, "damaged-session").with_code(1);
        assert!(run.message().contains(&format!("{OTHER}.json is damaged")), "{run:?}");
    }
    assert_eq!(base.read(&format!("sessions/{OTHER}.json")), "{\"sessionId\": ");
}

#[test]
fn a_damaged_session_is_named_where_no_other_is_open() {
    let base = Project::new();
    base.write(&format!("sessions/{OTHER}.json"), "");
    for command in [&["resume"][..], &["log"], &["say", "Hello"], &["apply"]] {
        let run = base.fails(command, "damaged-session");
        let told = run.message();
        assert!(told.contains(&format!("{OTHER}.json is damaged")), "{command:?} {told}");
    }
}

#[test]
fn the_doctor_tells_what_is_well_and_what_to_do_about_the_rest() {
    let base = Project::with_session();
    base.apply(MESSAGE);
    let before = base.names("sessions");
    let run = base.run(&["doctor"]).ok();
    // A machine without a desktop has no clipboard, nor every one git, much memory, or all that confines.
    // What goes on with a line is below it.
    let spare = ["--  clipboard ", "--    ", "--  git ", "--  memory ", "                     "];
    let well =
        |line: &str| line.starts_with("ok  ") || spare.iter().any(|spare| line.starts_with(spare));
    assert!(run.stdout.lines().all(well), "{run:?}");
    for what in ["journal", "lock", "watching", "commands", "disk", "session files", "decisions"] {
        assert!(run.stdout.contains(&format!("ok  {what} ")), "{what}: {run:?}");
    }
    assert!(run.stdout.contains("ok  decisions        nothing waits for a decision\n"), "{run:?}");
    assert_eq!(base.names("sessions"), before);

    let mut journal = std::fs::read(base.at("sessions/journal")).unwrap();
    journal[20] ^= 1;
    std::fs::write(base.at("sessions/journal"), journal).unwrap();
    base.run(&["doctor"]).with_code(1);
    let journal = base.finding("journal");
    assert_eq!((&journal["well"], &journal["fault"]), (&false.into(), &true.into()), "{journal}");
    let told = journal["told"].as_str().unwrap();
    assert!(
        told.contains("damaged at byte 0, so nothing is done on top of it; restore it"),
        "{journal}"
    );
    // Nothing is done on top of that.
    let run = base.fails_with(&["apply", "--again", "-"], MESSAGE, "damaged-journal").with_code(1);
    assert!(run.message().contains("journal is damaged at byte 0"), "{run:?}");
    assert!(!base.exists("outbox/a1b2c3d4_seq0003.txt"));
}
