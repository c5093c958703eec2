//! A clipboard that does not answer, or is not there, when the daemon starts; and what is told of copies.

use std::time::{Duration, Instant};

use super::{Desktop, reply, without_clipboard};
use crate::support::{ID, Project, wait_until};

#[test]
fn an_owner_that_does_not_answer_at_the_start_keeps_nobody_waiting() {
    let Some(desktop) = Desktop::start() else { return };
    let base = Project::with_session();
    let owner = desktop.holds("something");
    owner.signal("STOP");
    let begun = Instant::now();
    base.write("inbox/r.txt", reply(&base, 1, "x.txt"));
    let daemon = desktop.serve(&base, &["watch", "--clipboard"]);
    base.wait_for_outbox(2);
    // Who waits for such an owner does so for 24 s: arboard asks for six forms of a text, four each.
    assert!(begun.elapsed() < Duration::from_secs(23), "{:?}", begun.elapsed());
    owner.signal("CONT");
    daemon.wait_for("are also taken from the desktop's clipboard, over X11.");
    desktop.wait_for_outbox(&base, 2);
    let _browser = desktop.holds(&reply(&base, 2, "y.txt"));
    base.wait_for_outbox(3);
    daemon.stop();
}

#[test]
fn a_display_that_comes_later_is_found_and_what_lacks_until_then_is_said_once() {
    let Some(mut desktop) = Desktop::start() else { return };
    let base = Project::with_session();
    desktop.end();
    let daemon = desktop.serve(&base, &["watch", "--clipboard"]);
    daemon.wait_for("the clipboard cannot be read (");
    base.write("inbox/r.txt", reply(&base, 1, "x.txt"));
    base.wait_for_outbox(2);
    let Some(desktop) = Desktop::start_as(&desktop.display) else {
        eprintln!("SKIPPED: somebody else has taken the display");
        return;
    };
    daemon.wait_for("are also taken from the desktop's clipboard, over X11.");
    assert_eq!(
        daemon.said().matches("the clipboard cannot be read").count(),
        1,
        "{}",
        daemon.said()
    );
    let _browser = desktop.holds(&reply(&base, 2, "y.txt"));
    desktop.wait_for_outbox(&base, 3);
    daemon.stop();
}

#[test]
fn a_reply_that_lies_there_at_the_start_is_taken_before_anything_is_copied() {
    let Some(desktop) = Desktop::start() else { return };
    let base = Project::with_session();
    let _browser = desktop.holds(&reply(&base, 1, "x.txt"));
    let daemon = desktop.serve(&base, &["watch", "--clipboard"]);
    desktop.wait_for_outbox(&base, 2);
    assert!(!daemon.said().contains("_seq0001.txt is on"), "{}", daemon.said());
    daemon.stop();
}

#[test]
fn each_copy_is_an_event_that_names_its_way() {
    let base = Project::with_session();
    let told = |said: String| -> Vec<serde_json::Value> {
        let events = said.lines().filter_map(|line| serde_json::from_str(line).ok());
        events.filter(|event: &serde_json::Value| event["event"] == "copied").collect()
    };
    let mut command = base.command(&["watch", "--copy", "--json"]);
    let daemon = base.start_as(without_clipboard(&mut command));
    wait_until("the event", || told(daemon.said()).len() == 1);
    let event = told(daemon.said()).remove(0);
    assert_eq!((&event["session"], &event["sequence"]), (&ID.into(), &1.into()));
    assert_eq!(
        (&event["outbox"], &event["way"]),
        (&format!("outbox/{ID}_seq0001.txt").into(), &"path".into())
    );
    assert!(event["why"].as_str().unwrap().contains("there is no display here"), "{event}");
    // What was warned of is an event, too.
    daemon.wait_for("{\"event\":\"warning\",\"message\":\"outbox/");
    daemon.stop();
    let Some(desktop) = Desktop::start() else { return };
    let daemon = desktop.serve(&base, &["watch", "--copy", "--json"]);
    wait_until("the event", || told(daemon.said()).len() == 1);
    base.run(&["say", "Use tabs"]).ok();
    wait_until("a second one, of the words", || told(daemon.said()).len() == 2);
    desktop.wait_for_outbox(&base, 1);
    assert!(base.outbox(1).contains("Use tabs"));
    let event = told(daemon.said()).remove(1);
    assert_eq!((&event["way"], &event["why"]), (&"x11".into(), &serde_json::Value::Null));
    daemon.stop();
}
