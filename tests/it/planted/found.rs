//! What came with a folder of deaddrop's own: sessions, a journal, replies, approvals. It is taken up once
//! the person agreed, and not before.

use std::fs;

use super::{ALLOW, is_refused};
use crate::support::{Base, ID, Run};
use crate::terminal::AtTerminal;

/// A folder as `git clone` brings it, with this in it.
fn brought(files: &[(&str, &str)]) -> Base {
    let base = Base::that_nobody_agrees_to();
    files.iter().for_each(|(path, text)| drop(base.write(path, text)));
    base
}

/// All that lies in it, with what it holds.
fn tree(base: &Base) -> Vec<(String, Vec<u8>)> {
    let entries = walkdir::WalkDir::new(base.path()).sort_by_file_name().into_iter().flatten();
    entries
        .map(|entry| {
            let held = fs::read(entry.path()).unwrap_or_default();
            (entry.path().display().to_string(), held)
        })
        .collect()
}

#[test]
fn what_was_brought_is_not_taken_up_unless_the_person_agrees() {
    let settings = ("deaddrop.toml", "inbox_dir = \".deaddrop/inbox\"\nworkspace_dir = \".\"\n");
    for files in [
        &[("sessions/journal", "nonsense")][..],
        &[("sessions/.lock", "1")],
        &[("inbox/r.txt", "[CREATE_FILE path=\"x\"]\nx\n[/CREATE_FILE]\n")],
        &[("approvals/a.json", "{}")],
        &[("outbox/x/y", "")],
        &[("inbox/.gitkeep/x", "")],
        &[settings, (".deaddrop/inbox/.claimed/x", "")],
    ] {
        let base = brought(files);
        let before = tree(&base);
        for arguments in [
            &["new", "--no-watch", "A task"][..],
            &["resume"],
            &["watch"],
            &["apply", "-"],
            &["next", "-"],
            &["sessions"],
            &["run", "-"],
        ] {
            let run = base.run_with(arguments, "[DONE]\nx\n[/DONE]\n");
            // Without sessions and settings none is found there by itself.
            if run.code != Some(5) || arguments[0] == "new" {
                let told = is_refused(run, &["found here"]);
                assert!(told.contains("came with"), "{told}");
            }
            assert_eq!(tree(&base), before, "{arguments:?}");
        }
        let shown = base.run(&["-C", ".", "config", "allow"]).ok();
        assert!(shown.stdout.starts_with("found here = "), "{shown:?}");
        let told = base.run(&["-C", ".", "sessions"]);
        assert!(!told.stderr.contains(ALLOW), "{told:?}");
    }
}

#[test]
fn what_keeps_a_folder_in_a_repository_is_nobodys_session() {
    let base = brought(&[
        ("inbox/.gitkeep", ""),
        ("sessions/.gitkeep", ""),
        ("outbox/.gitignore", "*\n"),
        ("approvals/README.md", "x"),
    ]);
    base.run(&["new", "--no-watch", "A task"]).ok();
    base.run(&["resume", "--no-watch"]).ok();
}

#[test]
fn another_folder_at_the_same_place_is_another() {
    let base = brought(&[]);
    base.run(&["init", "project"]).ok();
    let there = |arguments: &[&str]| base.run(&[&["-C", "project"], arguments].concat());
    there(&["new", "--no-watch", "A task"]).ok();
    there(&["sessions"]).ok();
    // What a clone that brings the same files would be.
    base.sh("cp -a project kept; rm -r project; mkdir between; cp -a kept project");
    is_refused(there(&["resume", "--no-watch"]), &["found here"]);
    // One that the person has moved is another, too, until they say that it is theirs.
    base.sh("mv kept moved");
    is_refused(base.run(&["-C", "moved", "sessions"]), &["found here"]);
    base.run(&["-C", "moved", "config", "allow"]).ok();
    base.run(&["-C", "moved", "sessions"]).ok();
    is_refused(there(&["sessions"]), &["found here"]);
}

#[test]
fn folders_that_the_person_names_are_theirs() {
    let base = brought(&[("mine/r.txt", "x"), ("elsewhere/.lock", "")]);
    let run = base.run(&[
        "new",
        "--no-watch",
        "--inbox-dir",
        "mine",
        "--sessions-dir",
        "elsewhere",
        "A task",
    ]);
    run.ok();
}

#[test]
fn at_a_terminal_the_person_is_asked() {
    let base = Base::with_session();
    let other = Base::that_nobody_agrees_to();
    other.sh(&format!("cp -a {}/. .", base.path().display()));
    let Some(mut asked) = AtTerminal::start(&other, &["resume", "--no-watch"]) else { return };
    asked.wait_for("[y/N] ", 1);
    assert!(asked.shown().contains("found here = sessions"), "{}", asked.shown());
    asked.types("y\n");
    assert_eq!(asked.ends(), Some(0), "{}", asked.shown());
    assert!(other.run(&["status"]).ok().stdout.contains(ID));
}

#[test]
fn where_nothing_can_be_noted_nothing_is_begun() {
    let base = brought(&[]);
    let file = base.write("a-file", "");
    let mut command = base.command(&["new", "--no-watch", "A task"]);
    let run = Run::of(command.env("XDG_STATE_HOME", &file), "");
    assert!(run.stderr.contains("set XDG_STATE_HOME"), "{run:?}");
    assert_eq!(base.names("."), ["a-file"]);
    run.with_code(2);
}
