//! `copy`, `paste` and `next` on a desktop.

use super::{Desktop, key_line, reply};
use crate::support::{ID, Project, Run};
use crate::tmux::Tmux;

#[test]
fn a_part_is_copied_and_what_is_next_is_said() {
    let Some(desktop) = Desktop::start() else { return };
    let base = Project::with_session();
    let first = desktop.run(&base, &["show", "--copy", "--part", "1/3"]).ok();
    assert!(first.stderr.contains("Part 1 of 3 of outbox 1 of session a1b2c3d4 (≈ "), "{first:?}");
    assert!(
        first
            .stderr
            .contains("then part 2 of 3: `deaddrop show 1 --session a1b2c3d4 --copy --part 2/3`\n"),
        "{first:?}"
    );
    assert!(desktop.shows().unwrap().starts_with("=== PART 1 of 3 of one message: "));

    let second =
        desktop.run(&base, &["show", "--session", ID, "--copy", "--part", "2/3", "--json"]).ok();
    let told: serde_json::Value = serde_json::from_str(&second.stdout).unwrap();
    assert_eq!(told["way"], "x11");
    assert_eq!(told["part"], 2);
    assert_eq!(told["next"], format!("deaddrop show 1 --session {ID} --copy --part 3/3"));
    assert!(told["tokens"].as_u64().unwrap() > 100, "{told}");
    assert!(desktop.shows().unwrap().starts_with("=== PART 2 of 3 of one message: "));

    let last = desktop.run(&base, &["show", "--copy", "--part", "3/3"]).ok();
    assert!(last.stderr.ends_with("then run `deaddrop next`.\n"), "{last:?}");
    // Nothing is said that only the eye would need, and no result.
    let quiet = desktop.run(&base, &["show", "--copy", "--quiet"]).ok();
    assert_eq!((&*quiet.stdout, &*quiet.stderr), ("", ""));
    assert_eq!(desktop.shows(), Some(base.outbox(1)));
    desktop.run(&base, &["show", "--copy", "--part", "4/3"]).with_code(2);
}

#[test]
fn large_texts_come_whole_both_ways() {
    let Some(desktop) = Desktop::start() else { return };
    let base = Project::with_session();
    let large = "Zeile für Zeile ☂\n".repeat(60_000);
    base.write(&format!("outbox/{ID}_seq0001.txt"), &large);
    desktop.run(&base, &["show", "--copy"]).ok();
    assert!(desktop.shows().unwrap() == large);
    let text = format!("[CREATE_FILE path=\"large.txt\"]\n{large}[/CREATE_FILE]\n");
    let _owner = desktop.holds(&text);
    desktop.run(&base, &["apply", "--clipboard"]).ok();
    assert!(base.read("workspace/large.txt") == large);
}

#[test]
fn paste_carries_out_what_is_on_the_clipboard_as_apply_does() {
    let Some(desktop) = Desktop::start() else { return };
    let base = Project::with_session();
    let _first = desktop.holds(&reply(&base, 1, "a.txt"));
    let run = desktop.run(&base, &["apply", "--clipboard"]).ok();
    assert_eq!(run.stdout, format!("outbox/{ID}_seq0002.txt\n"));
    assert!(run.stderr.contains("the clipboard (x11), the reply to outbox 1 of"), "{run:?}");
    assert!(base.exists("workspace/a.txt"));
    let again = desktop.run(&base, &["apply", "--clipboard"]).with_code(1);
    assert!(again.stderr.contains("again with --again"), "{again:?}");
    desktop.run(&base, &["apply", "--clipboard", "--force"]).ok();
    // From standard input, without any clipboard.
    let piped = Run::of(&mut desktop.command(&base, &["apply", "-"]), reply(&base, 3, "b.txt"));
    piped.ok();
    assert!(base.exists("workspace/b.txt"));
}

#[test]
fn what_is_no_reply_is_refused_and_nothing_is_done() {
    let Some(desktop) = Desktop::start() else { return };
    let base = Project::with_session();
    let refused = |why: &str| {
        for command in [&["apply", "--clipboard"][..], &["next"]] {
            let run = desktop.run(&base, command).with_code(1);
            assert!(run.stderr.contains(why), "{why}: {run:?}");
        }
        assert_eq!(base.names("outbox"), [format!("{ID}_seq0001.txt")]);
        assert!(base.names("inbox/processed").is_empty());
    };
    refused("it is empty, or contains no text; copy the reply");
    desktop.run(&base, &["show", "--copy"]).ok();
    refused("this is (or contains) one of deaddrop's outboxes");
    desktop.run(&base, &["show", "--copy", "--part", "2/3"]).ok();
    refused("this is (or contains) one of deaddrop's outboxes");
    // A page that was copied whole: what the protocol explains would be carried out.
    let page = format!("You said:\n{}\nIt said:\n{}", base.outbox(1), reply(&base, 1, "x"));
    let _page = desktop.holds(&page);
    refused("this is (or contains) one of deaddrop's outboxes");
    let _words = desktop.holds("https://example.org/");
    refused("it contains no commands, so it is not a reply");
    let run = Run::of(&mut desktop.command(&base, &["next", "-"]), base.outbox(1)).with_code(1);
    assert!(
        run.stderr.contains("standard input: this is (or contains) one of deaddrop's outboxes"),
        "{run:?}"
    );
    // But whoever insists has it as with `apply`.
    desktop.run(&base, &["apply", "--clipboard", "--force"]).ok();
    assert!(base.outbox(2).contains("[FAILED] REPLY: The reply contains no command"));
}

#[test]
fn next_is_one_command_for_one_turn() {
    let Some(desktop) = Desktop::start() else { return };
    let base = Project::with_session();
    let _first = desktop.holds(&reply(&base, 1, "a.txt"));
    let run = desktop.run(&base, &["next"]).ok();
    assert_eq!(run.stdout, format!("outbox/{ID}_seq0002.txt\n"));
    assert!(run.stderr.contains("Outbox 2 of session a1b2c3d4 (complete: ≈ "), "{run:?}");
    assert_eq!(desktop.shows(), Some(base.outbox(2)));

    // By the daemon, if there is one; the turn is done when `next` ends.
    let daemon = base.serve(&["watch"]);
    let _second = desktop.holds(&reply(&base, 2, "b.txt"));
    desktop.run(&base, &["next"]).ok();
    daemon.wait_for("_seq0003.txt");
    assert_eq!(desktop.shows(), Some(base.outbox(3)));
    daemon.stop();

    let done = format!("{}\n[DONE]\nAll is well.\n[/DONE]\n", key_line(&base, 3));
    let _third = desktop.holds(&done);
    let run = desktop.run(&base, &["next"]).ok();
    assert!(run.stderr.contains("Session a1b2c3d4 is complete."), "{run:?}");
    // There is nothing to paste.
    assert_eq!(desktop.shows(), Some(done));
    assert!(
        desktop
            .run(&base, &["show", "--copy"])
            .ok()
            .stderr
            .contains("its newest outbox has been answered")
    );
}

#[test]
fn next_stops_where_a_decision_is_needed() {
    let Some(desktop) = Desktop::start() else { return };
    let base = Project::new();
    base.begin_asking(ID);
    base.write("workspace/temp/a", "x\n");
    let asks = "[RUN_COMMAND]\nrm -r temp\n[/RUN_COMMAND]\n";
    let _owner = desktop.holds(asks);
    let run = desktop.run(&base, &["next"]).with_code(3);
    assert!(run.stderr.contains("rm -r temp"), "{run:?}");
    assert_eq!(desktop.shows().as_deref(), Some(asks));
    // Once more is not a yes.
    let run = desktop.run(&base, &["next"]).with_code(3);
    assert!(run.stderr.contains("waits for your decision"), "{run:?}");
    assert!(base.exists("workspace/temp/a"));
    base.run(&["approve"]).ok();
    desktop.run(&base, &["show", "--copy"]).ok();
    assert_eq!(desktop.shows(), Some(base.outbox(2)));
}

#[test]
fn who_holds_the_clipboard_and_does_not_answer_is_waited_for_once() {
    let Some(desktop) = Desktop::start() else { return };
    let base = Project::with_session();
    let Some(tmux) = Tmux::start(&base, 100) else { return };
    let owner = desktop.holds("Hello");
    owner.signal("STOP");
    tmux.types(&format!("DISPLAY={} deaddrop apply --clipboard", desktop.display));
    let screen = tmux.shows("Waiting for the clipboard (x11)");
    assert!(!screen.contains("no answer within"), "it is told before it is over: {screen}");
    tmux.shows("no answer within 8 seconds");
    owner.signal("CONT");
}

#[test]
fn a_paste_of_nothing_is_told_to_be_empty() {
    let base = Project::with_session();
    for text in ["", " \n"] {
        let run = base.run_with(&["next", "-"], text).with_code(1);
        assert!(run.stderr.contains("it is empty; copy the reply"), "{run:?}");
    }
}
