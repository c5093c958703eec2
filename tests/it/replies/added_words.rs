//! `say`: words that are added to an outbox, and what becomes of them whatever reply comes.

use crate::replies::which_outbox::prompt;
use crate::support::json_output::{codes, text};
use crate::support::{ID, Project, Run};

const MESSAGE: &str = "[MESSAGE]\nHello\n[/MESSAGE]\n";
const DONE: &str = "[DONE]\nWell\n[/DONE]\n";
const ADDS: &str = "The user adds:\n  Use tabs\n";
const AGAIN: &str = "The user has said, and you may have read it already:\n  Use tabs\n";

/// A reply that begins with the line that this outbox asks for.
fn keyed(outbox: &str, reply: &str) -> String {
    let line = outbox.rsplit("block").next().and_then(|end| end.split_once(": "));
    format!("{}{reply}", line.expect("it asks for one").1)
}

fn apply(base: &Project, reply: &str) -> Run {
    base.run_with(&["apply", "-"], reply).ok()
}

fn status(base: &Project) -> serde_json::Value {
    let run = base.run(&["status", ID, "--json"]).ok();
    serde_json::from_str(&run.stdout).unwrap_or_else(|e| panic!("{e}: {run:?}"))
}

#[test]
fn words_stand_at_the_end_of_the_newest_outbox_which_is_as_it_was_before_them() {
    let base = Project::with_session();
    let first = base.outbox(1);
    base.write("workspace/new.txt", "made after the outbox\n");
    let run = base.run(&["say", "Use", "tabs"]).ok();
    assert_eq!(run.stdout, format!("outbox/{ID}_seq0001.txt\n"));
    assert!(run.stderr.contains("If you have already pasted it, copy it again"), "{run:?}");
    let second = base.outbox(1);
    let kept = first.rsplit_once("\nFirst line of your reply").unwrap().0;
    assert!(second.starts_with(kept) && second.contains(ADDS), "{second}");
    base.run(&["say", "--session", ID, "And\ntests"]).ok();
    let third = base.outbox(1);
    assert!(third.contains("The user adds:\n  Use tabs\n  And\n  tests\n\nFirst line"));
    let key = |outbox: &str| keyed(outbox, "");
    assert!(key(&first) != key(&second) && key(&second) != key(&third));

    // What was in the text that is answered is not said again.
    apply(&base, &keyed(&third, MESSAGE));
    assert!(
        !base.outbox(2).contains("Use tabs") && base.exists(&format!("outbox/{ID}_seq0002.txt"))
    );
}

#[test]
fn a_reply_to_an_older_text_counts_and_the_next_outbox_says_what_that_did_not() {
    let base = Project::with_session();
    let first = base.outbox(1);
    base.run(&["say", "Use tabs"]).ok();
    let second = base.outbox(1);
    base.run(&["say", "And tests"]).ok();
    apply(&base, &keyed(&second, MESSAGE));
    let outbox = base.outbox(2);
    assert!(prompt(&outbox).contains("The user says:\n  And tests\n"), "{outbox}");
    assert!(!outbox.contains("Use tabs"));
    let old = keyed(&first, &MESSAGE.repeat(2));
    let held = base.fails_with(&["apply", "-"], old, "outdated-reply").with_code(1);
    assert!(held.message().contains("answers outbox 1"), "{held:?}");
}

#[test]
fn words_that_no_key_tells_to_be_read_are_said_again_once() {
    let base = Project::with_session();
    base.run(&["say", "Use tabs"]).ok();
    assert!(prompt(&base.apply(MESSAGE)).contains(AGAIN));
    assert!(!base.apply(&MESSAGE.repeat(2)).contains("Use tabs"));
}

#[test]
fn a_reply_that_does_not_know_the_words_ends_no_session() {
    for (condition, keeps) in [("", false), ("", true), (" if=\"ok\"", false)] {
        let base = Project::with_session();
        let first = base.outbox(1);
        base.run(&["say", "Use tabs"]).ok();
        let done = DONE.replace("[DONE]", &format!("[DONE{condition}]"));
        let reply = if keeps { keyed(&first, &done) } else { done };
        let looked = base.check(&reply, 0);
        assert_eq!(codes(&looked["commands"]), ["ineffective-done"]);
        let told = text(&looked["commands"][0]["summary"]);
        assert!(told.contains("the user has said more"), "{told}");
        let turn = base.turn(&reply);
        assert_eq!(turn.codes(), ["ineffective-done"]);
        let told = text(&turn.json["results"][0]["summary"]);
        assert!(told.contains("the user has said more than this reply answers"), "{told}");
        assert_eq!(status(&base)["isComplete"], false);
        let outbox = turn.outbox;
        assert!(outbox.contains("[FAILED] DONE: not counted: the user has said more"), "{outbox}");
        let told = if keeps { "The user says:\n  Use tabs\n" } else { AGAIN };
        assert!(prompt(&outbox).contains(told), "{outbox}");
        apply(&base, &keyed(&outbox, DONE));
        assert_eq!(status(&base)["isComplete"], true);
    }
}

#[test]
fn a_reply_that_knows_the_words_ends_the_session() {
    let base = Project::with_session();
    base.run(&["say", "Use tabs"]).ok();
    apply(&base, &keyed(&base.outbox(1), DONE));
    assert_eq!(status(&base)["isComplete"], true);
}

#[test]
fn words_said_while_a_turn_waits_keep_its_session_open() {
    let base = Project::new();
    base.begin_asking(ID);
    base.write("workspace/temp/a", "x\n");
    let asks = format!("[RUN_COMMAND]\nrm -r temp\n[/RUN_COMMAND]\n{DONE}");
    base.run_with(&["apply", "-"], asks).with_code(3);
    let run = base.run(&["say", "Use tabs"]).ok();
    let told = "Outbox 2 of session a1b2c3d4 will contain your words, after your decision";
    assert!(run.stderr.contains(told), "{run:?}");
    assert_eq!(status(&base)["toSay"], serde_json::json!(["Use tabs"]));
    base.run(&["approve"]).ok();
    assert!(prompt(&base.outbox(2)).contains("The user says:\n  Use tabs\n"));
}

#[test]
fn an_undo_says_once_more_what_may_not_have_been_read_and_nothing_that_was() {
    let base = Project::with_session();
    base.run(&["say", "Be quick"]).ok();
    let first = base.outbox(1);
    apply(&base, &keyed(&first, "[CREATE_FILE path=\"a\"]\nx\n[/CREATE_FILE]\n"));
    base.run(&["say", "Use tabs"]).ok();
    base.run(&["undo"]).ok();
    let third = base.outbox(3);
    assert!(prompt(&third).contains(AGAIN) && !third.contains("Be quick"), "{third}");
    apply(&base, &keyed(&third, "[CREATE_FILE path=\"b\"]\nx\n[/CREATE_FILE]\n"));
    base.run(&["undo"]).ok();
    assert!(!base.outbox(5).contains("Use tabs"), "{}", base.outbox(5));
}

/// The newest outbox of the session, which is open.
fn newest(base: &Project) -> String {
    let status = status(base);
    assert_eq!(status["isComplete"], false, "{status}");
    base.outbox(u32::try_from(status["sequence"].as_u64().unwrap()).unwrap())
}

#[test]
fn a_redo_loses_nothing_that_was_said_since_the_undo() {
    let create = |path: &str| format!("[CREATE_FILE path=\"{path}\"]\nx\n[/CREATE_FILE]\n");
    let says: &[&str] = &["say", "Use tabs"];
    let reason: &[&str] = &["undo", "--reason", "Use tabs"];
    let (undo, redo): (&[&str], &[&str]) = (&["undo"], &["redo"]);
    for steps in [
        &[undo, says, redo][..],
        &[undo, says, redo, undo],
        &[undo, says, redo, undo, redo],
        // In an outbox after the one that they were added to.
        &[undo, says, undo, redo, redo],
        &[reason, redo],
    ] {
        let base = Project::with_session();
        base.apply(&create("a"));
        apply(&base, &format!("{}{DONE}", create("b")));
        assert_eq!(status(&base)["isComplete"], true);
        for step in steps {
            base.run(step).ok();
        }
        let outbox = newest(&base);
        assert!(prompt(&outbox).contains(AGAIN), "{steps:?}: {outbox}");
        assert_eq!(outbox.matches("Use tabs").count(), 1, "{steps:?}: {outbox}");
        assert_eq!(base.exists("workspace/b"), steps.last() == Some(&redo), "{steps:?}");
        // What is answered is not said again.
        apply(&base, &keyed(&outbox, DONE));
        assert_eq!(status(&base)["isComplete"], true, "{steps:?}");
        base.run(undo).ok();
        assert!(!newest(&base).contains("Use tabs"), "{steps:?}");
    }
}

#[test]
fn an_outbox_that_is_full_or_not_as_it_was_written_stays_and_the_next_one_says_it() {
    for (task, change) in [("word ".repeat(10_000), ""), ("A task".to_owned(), "edited\n")] {
        let base = Project::new();
        base.run(&["new", "--no-watch", "--id", ID, &task]).ok();
        let path = format!("outbox/{ID}_seq0001.txt");
        base.write(&path, format!("{}{change}", base.outbox(1)));
        let before = base.outbox(1);
        let run = base.run(&["say", "Use tabs", "--max-tokens", "6000"]).ok();
        assert!(
            run.stderr.contains("Outbox 2 of session a1b2c3d4 will contain your words"),
            "{run:?}"
        );
        assert_eq!(base.outbox(1), before);
        assert_eq!(status(&base)["toSay"], serde_json::json!(["Use tabs"]));
        assert!(prompt(&base.apply(MESSAGE)).contains("The user says:\n  Use tabs\n"));
    }
}

#[test]
fn words_that_were_noted_and_not_written_are_written_with_the_next() {
    let base = Project::with_session();
    let first = base.outbox(1);
    base.run(&["say", "Use tabs"]).ok();
    // As a hard stop between the two leaves it.
    base.write(&format!("outbox/{ID}_seq0001.txt"), &first);
    base.run(&["say", "And tests"]).ok();
    assert!(base.outbox(1).contains("The user adds:\n  Use tabs\n  And tests\n"));
}

#[test]
fn a_secret_in_the_persons_own_words_goes_out_and_is_warned_of() {
    let base = Project::new();
    // Made here, so that no file of the project holds what looks like a key.
    let key = format!("{}{}", "AKIA", "Q3EGRAZBXS4JKTPN");
    let told = "shown in the outbox, as you wrote it: AWS key in";
    let task = format!("Find out why\n{key} is refused");
    let run = base.run(&["new", "--no-watch", "--id", ID, &task]).ok();
    assert!(run.stderr.contains(&format!("{told} your task, line 2")), "{run:?}");
    assert!(base.outbox(1).contains(&key));
    // What was told is not told with each outbox.
    let run = base.run_with(&["apply", "-"], "[LIST_FILES]\n").ok();
    assert!(!run.stderr.contains(told), "{run:?}");
    let run = base.run(&["say", &format!("use {key}")]).ok();
    assert!(run.stderr.contains(&format!("{told} what you said, line 1")), "{run:?}");
    assert!(base.outbox(2).contains(&key));
    let run = base.run_with(&["apply", "-"], "[MESSAGE]\nx\n[/MESSAGE]\n").ok();
    assert!(!run.stderr.contains(told), "{run:?}");
}
