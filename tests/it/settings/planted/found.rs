//! What came with a folder of deaddrop's own: sessions, a journal, replies, approvals. It is taken up once
//! the person agreed, and not before.

use std::fs;

use super::{ALLOW, as_json, is_refused};
use crate::approvals::at_terminal::AtTerminal;
use crate::support::json_output::codes;
use crate::support::{ID, Project, Run};

/// A folder as `git clone` brings it, with this in it.
fn brought(files: &[(&str, &str)]) -> Project {
    let base = Project::that_nobody_agrees_to();
    files.iter().for_each(|(path, text)| drop(base.write(path, text)));
    base
}

/// All that lies in it, with what it holds.
fn tree(base: &Project) -> Vec<(String, Vec<u8>)> {
    let entries = walkdir::WalkDir::new(base.path()).sort_by_file_name().into_iter();
    entries
        .map(|entry| {
            let entry = entry.unwrap();
            let is_file = entry.file_type().is_file();
            let held = if is_file { fs::read(entry.path()).unwrap() } else { Vec::new() };
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
            &["status"],
            &["ops", "run", "-"],
        ] {
            // Without sessions and settings none is found there by itself.
            let there = [&["-C", ".", "--json"], arguments].concat();
            let told = is_refused(base.run_with(&there, "[DONE]\nx\n[/DONE]\n"), &["found here"]);
            assert!(told.contains("moved or copied"), "{told}");
            assert_eq!(tree(&base), before, "{arguments:?}");
        }
        is_refused(base.run(&["--json", "new", "--no-watch", "A task"]), &["found here"]);
        assert_eq!(tree(&base), before);
        let show = base.run(&["-C", ".", "config", "show"]).ok();
        let row = show.stdout.lines().find(|row| row.starts_with("found here "));
        assert!(row.is_some_and(|row| row.ends_with(", needs consent)")), "{show:?}");
        assert!(show.stderr.contains(ALLOW), "{show:?}");
        let shown = base.run(&["-C", ".", "config", "allow"]).ok();
        assert!(shown.stdout.starts_with("found here = "), "{shown:?}");
        let show = base.run(&["-C", ".", "config", "show"]).ok();
        assert!(!show.stdout.contains("found here") && show.stderr.is_empty(), "{show:?}");
        let told = base.run(&["-C", ".", "status"]).ok();
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
    let there = |arguments: &[&str]| base.run(&[&["-C", "project", "--json"], arguments].concat());
    there(&["new", "--no-watch", "A task"]).ok();
    there(&["status"]).ok();
    // What a clone that brings the same files would be.
    base.sh("cp -a project kept; rm -r project; mkdir between; cp -a kept project");
    is_refused(there(&["resume", "--no-watch"]), &["found here"]);
    // One that the person has moved is another, too, until they say that it is theirs.
    base.sh("mv kept moved");
    is_refused(base.run(&["--json", "-C", "moved", "status"]), &["found here"]);
    base.run(&["-C", "moved", "config", "allow"]).ok();
    base.run(&["-C", "moved", "status"]).ok();
    is_refused(there(&["status"]), &["found here"]);
}

#[test]
fn folders_of_the_base_directory_that_a_flag_names_are_looked_at_too() {
    let base = brought(&[("mine/r.txt", "x"), ("elsewhere/.lock", "")]);
    let named = ["--inbox-dir", "mine", "--sessions-dir", "elsewhere"];
    let new = [&["new", "--no-watch", "A task"], &named[..]].concat();
    let told = is_refused(base.run(&as_json(&new)), &["found here"]);
    assert!(told.contains("found here = elsewhere (.lock), mine (r.txt): "), "{told}");
    base.run(&["init"]).ok();
    base.run(&["new", "--no-watch", "A task"]).ok();
    // What it has made for these is none of those.
    is_refused(base.run(&as_json(&new)), &["found here"]);
}

#[test]
fn each_folder_is_known_by_itself() {
    let base = brought(&[("inbox/reply.txt", "[CREATE_FILE path=\"x\"]\nx\n[/CREATE_FILE]\n")]);
    base.run(&["init"]).ok();
    base.run(&["new", "--no-watch", "A task"]).ok();
    // As `git clean -xdff` does it; the usual folders are others than those of `init`.
    base.sh("rm -r deaddrop.toml .deaddrop");
    let told = is_refused(base.run(&["--json", "new", "--no-watch", "A task"]), &["found here"]);
    assert!(told.contains("found here = inbox (reply.txt): "), "{told}");
    assert!(!base.exists("workspace/x") && !base.exists("x"));
}

#[test]
fn a_setting_goes_over_folders_that_were_used() {
    let base = brought(&[(".brought/journal", "nonsense")]);
    base.run(&["new", "--no-watch", "A task"]).ok();
    base.write("deaddrop.toml", "sessions_dir = \".brought\"\n");
    let own = base.write("config/deaddrop/config.toml", "sessions_dir = \".brought\"\n");
    is_refused(base.run(&["--json", "status"]), &["found here"]);
    // Nor is it theirs where the person's own file has a path that leads there.
    base.sh("rm deaddrop.toml");
    let mut command = base.command(&["status", "--json"]);
    command.env("XDG_CONFIG_HOME", own.parent().unwrap().parent().unwrap());
    is_refused(Run::of(&mut command, ""), &["found here"]);
}

#[test]
fn what_was_used_is_another_where_it_is_moved_and_forgotten_on_request() {
    let base = brought(&[]);
    base.run(&["init", "p"]).ok();
    base.run(&["-C", "p", "new", "--no-watch", "A task"]).ok();
    // Replies of one around it could write at the new place.
    base.sh("mv p q");
    is_refused(base.run(&["--json", "-C", "q", "status"]), &["found here"]);
    base.sh("mv q p");
    base.run(&["-C", "p", "status"]).ok();
    base.run(&["-C", "p", "config", "deny"]).ok();
    is_refused(base.run(&["--json", "-C", "p", "status"]), &["found here"]);
    base.run(&["-C", "p", "config", "allow"]).ok();
    base.run(&["-C", "p", "status"]).ok();
}

#[test]
fn a_folder_is_known_for_what_it_was_used() {
    let base = brought(&[]);
    base.run(&["new", "--no-watch", "A task"]).ok();
    base.write("inbox/r.txt", "approved");
    // Replies that wait would be approvals.
    base.write("deaddrop.toml", "inbox_dir = \"approvals\"\napprovals_dir = \"inbox\"\n");
    let told = is_refused(base.run(&["--json", "status"]), &["found here"]);
    assert!(told.contains("inbox (.claimed, processed, r.txt)"), "{told}");
}

#[test]
fn folders_that_were_its_own_stay_out_of_reach_of_its_replies() {
    let base = brought(&[("deaddrop.toml", "workspace_dir = \".\"\n")]);
    base.run(&["-C", ".", "new", "--no-watch", "A task"]).ok();
    let elsewhere = tempfile::tempdir().unwrap();
    let place = |name: &str| elsewhere.path().join(name).display().to_string();
    let folders = [
        ["--sessions-dir".to_owned(), place("s")],
        ["--inbox-dir".to_owned(), place("i")],
        ["--outbox-dir".to_owned(), place("o")],
    ];
    let flags: Vec<&str> = folders.iter().flatten().map(String::as_str).collect();
    let run = |arguments: &[&str], text: &str| {
        base.run_with(&[&["-C", "."], arguments, &flags[..]].concat(), text)
    };
    run(&["new", "--no-watch", "--id", ID, "A task"], "").ok();
    let reply = "[CREATE_FILE path=\"approvals/a.json\"]\nx\n[/CREATE_FILE]\n[CREATE_FILE path=\"inbox/r.txt\"]\nx\n[/CREATE_FILE]\n[RUN_COMMAND]\ncp deaddrop.toml sessions/journal; cp deaddrop.toml approvals/b.json\n[/RUN_COMMAND]\n";
    let turn = run(&["apply", "--json", "-"], reply).ok().json();
    assert_eq!(codes(&turn["results"])[..2], ["own-state", "own-state"]);
    assert_ne!(codes(&turn["results"])[2], "not-started");
    let ran = turn["results"][2]["summary"].as_str().unwrap();
    assert!(ran.starts_with("Ran 'cp deaddrop.toml sessions/journal; "), "{ran}");
    assert!(base.read("sessions/journal").trim_matches('\0').is_empty());
    for name in ["approvals/a.json", "approvals/b.json", "inbox/r.txt"] {
        assert!(!base.exists(name), "{name}");
    }
}

#[test]
fn init_agrees_to_nothing_that_is_found() {
    let base = brought(&[(".deaddrop/sessions/journal", "nonsense"), ("a", "x")]);
    base.run(&["init"]).ok();
    is_refused(base.run(&["--json", "new", "--no-watch", "A task"]), &["found here"]);
}

#[test]
fn a_folder_that_was_a_base_directory_is_kept_from_the_replies_around_it() {
    let base = brought(&[]);
    base.run(&["-C", "ws/sub", "new", "--no-watch", "A task"]).with_code(1);
    base.sh("mkdir -p ws/sub");
    base.run(&["-C", "ws/sub", "new", "--no-watch", "A task"]).ok();
    base.sh("rm -r ws/sub/sessions ws/sub/inbox/* ws/sub/inbox/.claimed");
    base.write("deaddrop.toml", "workspace_dir = \"ws\"\n");
    base.run(&["-C", ".", "new", "--no-watch", "--id", ID, "A task"]).ok();
    let reply = "[CREATE_FILE path=\"sub/inbox/r.txt\"]\nx\n[/CREATE_FILE]\n";
    let turn = base.run_with(&["-C", ".", "apply", "--json", "-"], reply).ok().json();
    assert_eq!(codes(&turn["results"]), ["own-state"]);
    assert!(!base.exists("ws/sub/inbox/r.txt"));
}

#[test]
fn a_server_of_operations_takes_nothing_up_either() {
    for link in ["a-file", "nothing-there"] {
        let base = brought(&[("a-file", "mine")]);
        base.sh(&format!("mkdir sessions; ln -s ../{link} sessions/.lock"));
        is_refused(base.run_with(&["--json", "rpc"], ""), &["found here"]);
        // Nor does anything follow the link of one who agreed.
        base.run(&["-C", ".", "config", "allow"]).ok();
        for arguments in [&["rpc"][..], &["new", "--no-watch", "A task"]] {
            let told = base.fails(arguments, "io").with_code(1).message();
            assert!(told.contains("it is not a regular file"), "{told}");
        }
        assert_eq!(base.read("a-file"), "mine");
        assert!(!base.exists("nothing-there"));
    }
    let base = brought(&[]);
    base.run_with(&["rpc"], "").ok();
    base.run_with(&["rpc"], "").ok();
    base.run(&["new", "--no-watch", "A task"]).ok();
}

#[test]
fn files_and_folders_of_sessions_are_no_links() {
    let base = Project::with_session();
    base.sh(&format!("mkdir private; touch log; ln -s ../log sessions/{ID}.log"));
    let reply = "[CREATE_FILE path=\"x\"]\nx\n[/CREATE_FILE]\n";
    let told = base.fails_with(&["apply", "-"], reply, "io").with_code(1).message();
    assert!(told.contains("it is not a regular file"), "{told}");
    assert_eq!(base.read("log"), "");

    let base = Project::with_session();
    base.sh(&format!("mkdir private; touch private/key; ln -s ../private sessions/{ID}"));
    let is_a_link = "is a link, but deaddrop's own folders are never links";
    let turn = base.turn("[RUN_COMMAND]\nls ~; touch ~/pwned\n[/RUN_COMMAND]\n");
    assert_eq!(turn.codes(), ["not-started"]);
    assert!(turn.outbox.contains(&format!("/sessions/{ID} {is_a_link}")), "{turn:?}");
    assert_eq!(base.names("private"), ["key"]);
    base.sh(&format!(
        "rm sessions/{ID}; mkdir sessions/{ID}; ln -s ../../private sessions/{ID}/home"
    ));
    let turn = base.turn("[RUN_COMMAND]\nls ~; touch ~/pwned2\n[/RUN_COMMAND]\n");
    assert_eq!(turn.codes(), ["not-started"]);
    let told = format!("/sessions/{ID}/home {is_a_link}");
    assert!(turn.outbox.contains(&told), "{turn:?}");
    assert_eq!(base.names("private"), ["key"]);

    let base = brought(&[]);
    base.sh(
        "mkdir sessions; ln -s /dev/zero sessions/journal; ln -s /dev/zero sessions/a1b2c3d4.json",
    );
    let told = base.run(&["-C", ".", "doctor"]).with_code(1).stdout;
    assert_eq!(told.matches("it is not a regular file").count(), 2, "{told}");
}

#[test]
fn at_a_terminal_the_person_is_asked() {
    let base = Project::with_session();
    let other = Project::that_nobody_agrees_to();
    other.sh(&format!("cp -a {}/. .", base.path().display()));
    let Some(mut asked) = AtTerminal::start(&other, &["resume", "--no-watch"]) else { return };
    asked.wait_for("[y/N] ", 1);
    assert!(asked.shown().contains("found here = sessions"), "{}", asked.shown());
    asked.types("y\n");
    assert_eq!(asked.ends(), Some(0), "{}", asked.shown());
    assert!(other.run(&["status", ID]).ok().stdout.contains(ID));
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
