//! The logs of sessions after a power loss: what it took of them is in the journal, and comes back.

use std::fs;

use crate::support::{ID, Project};

/// Four turns carried out, and the program killed; the log as it is then.
fn killed() -> (Project, String) {
    let base = Project::with_session();
    let mut daemon = base.serve(&["watch"]);
    for n in 1..=4 {
        let part =
            base.write("r.part", format!("[CREATE_FILE path=\"f{n}\"]\n{n}\n[/CREATE_FILE]\n"));
        fs::rename(part, base.at(&format!("inbox/r{n}.txt"))).unwrap();
        base.wait_for_outbox(n + 1);
        // All that follows from a turn is told after it.
        daemon.wait_for(&format!("{ID}_seq{:04}.txt", n + 1));
    }
    daemon.signal("KILL");
    daemon.wait();
    let log = base.read(&format!("sessions/{ID}.log"));
    assert_eq!(log.lines().count(), 4, "{log}");
    (base, log)
}

#[test]
fn what_a_power_loss_took_of_a_log_comes_back_and_undo_takes_the_last_turn() {
    let (origin, log) = killed();
    let lines: Vec<&str> = log.split_inclusive('\n').collect();
    let torn = |n: usize| format!("{}{}", lines[..n].concat(), &lines[n][..lines[n].len() / 2]);
    // Of what was not synced, any sectors may be zeros.
    let hole = format!("{}{}\n{}", lines[0], "\0".repeat(lines[1].len() - 1), lines[2..].concat());
    for (left, lacks) in [
        (Some(lines[..3].concat()), 1),
        (Some(lines[..1].concat()), 3),
        (Some(String::new()), 4),
        (None, 4),
        (Some(torn(3)), 1),
        (Some(torn(1)), 3),
        (Some(hole), 1),
        (Some(log.trim_end().to_owned()), 0),
        (Some(log.clone()), 0),
    ] {
        let base = Project::new();
        base.sh(&format!("cp -a {}/. .", origin.path().display()));
        base.is_known_as(&origin);
        let path = format!("sessions/{ID}.log");
        match &left {
            Some(text) => drop(base.write(&path, text)),
            None => fs::remove_file(base.at(&path)).unwrap(),
        }
        let undo = base.run(&["undo"]).ok();
        let s = if lacks == 1 { "" } else { "s" };
        let told = format!("the log of session {ID} lacked {lacks} turn{s}");
        assert_eq!(undo.stderr.contains(&told), lacks > 0, "{left:?}: {}", undo.stderr);
        assert!(undo.stderr.contains("Turn 4 undone"), "{left:?}: {}", undo.stderr);
        assert_eq!(base.names("workspace"), ["f1", "f2", "f3"], "{left:?}");
        let now = base.read(&path);
        let same = |(now, was): (&str, &str)| {
            // The last turn may have been told before its end was noted.
            now == was || now == was.replace("\"recovered\":false", "\"recovered\":true")
        };
        assert!(now.lines().zip(log.lines()).all(same), "{left:?}: {now}");
        assert_eq!(now.lines().count(), 5, "{left:?}: {now}");
    }
}
