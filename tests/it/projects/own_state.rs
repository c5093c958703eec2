//! deaddrop's own files, where the workspace is the project itself: out of reach of replies
//! by whatever name.

use std::fs;
use std::os::unix::fs::symlink;
use std::thread;
use std::time::Instant;

use crate::support::json_output::codes;
use crate::support::{ID, PATIENCE, Project};

/// A project that is its own workspace.
fn scene() -> Project {
    let base = Project::new();
    base.write("deaddrop.toml", "workspace_dir = \".\"\n");
    base.write(".no-config/deaddrop/config.toml", "max_output_length = 5000\n");
    base.begin(ID);
    base.write("own.txt", "x\n");
    base
}

/// Asserts that creating, editing, deleting and reading each of these is rejected.
#[track_caller]
fn assert_out_of_reach(base: &Project, paths: &[&str]) {
    let mut reply = String::new();
    for path in paths {
        reply.push_str(&format!(
            "[READ_FILE path=\"{path}\"]\n[EDIT_FILE path=\"{path}\" start_line=\"1\" end_line=\"1\"]\n[/EDIT_FILE]\n[CREATE_FILE path=\"{path}\"]\n[/CREATE_FILE]\n"
        ));
        // A link that leads to the state is not state itself.
        if !base.at(path).is_symlink() {
            reply.push_str(&format!("[DELETE_FILE path=\"{path}\"]\n"));
        }
    }
    let asked = reply.matches("path=").count();
    let settings = base.read("deaddrop.toml");
    let turn = base.turn(&reply);
    assert_eq!(turn.codes(), vec!["own-state"; asked]);
    let outbox = turn.outbox;
    assert!(!outbox.contains("## Requested File Contents\n---"), "{outbox}");
    assert_eq!(base.read("deaddrop.toml"), settings);
}

#[test]
fn its_own_state_is_out_of_reach_by_name() {
    let base = scene();
    let session = format!("sessions/{ID}.json");
    let dotted = format!("./x/../sessions/{ID}.json");
    let outbox = format!("outbox/{ID}_seq0001.txt");
    assert_out_of_reach(
        &base,
        &[
            &session,
            &dotted,
            &outbox,
            "deaddrop.toml",
            "a/../deaddrop.toml",
            "inbox/new.txt",
            "inbox/processed/old.txt",
            "sessions/.lock",
            "sessions/new/deep",
            "outbox",
            "sessions",
            ".no-config/deaddrop/config.toml",
        ],
    );
}

#[test]
fn its_own_state_is_out_of_reach_through_links() {
    let base = scene();
    fs::create_dir(base.at("in")).unwrap();
    symlink("sessions", base.at("s")).unwrap();
    symlink("../s/../inbox", base.at("in/i")).unwrap();
    symlink(base.at("deaddrop.toml"), base.at("t")).unwrap();
    fs::hard_link(base.at("deaddrop.toml"), base.at("h")).unwrap();
    let session = format!("s/{ID}.json");
    assert_out_of_reach(&base, &[&session, "s/new", "in/i/new.txt", "t", "h"]);
}

#[test]
fn state_that_is_a_link_cannot_be_removed_or_replaced() {
    let base = scene();
    fs::create_dir(base.at("etc")).unwrap();
    fs::rename(base.at("deaddrop.toml"), base.at("etc/real.toml")).unwrap();
    symlink("etc/real.toml", base.at("deaddrop.toml")).unwrap();
    let codes = base.codes(
        "[DELETE_FILE path=\"deaddrop.toml\"]\n[CREATE_FILE path=\"deaddrop.toml\"]\nx\n[/CREATE_FILE]\n[READ_FILE path=\"etc/real.toml\"]\n",
    );
    assert_eq!(codes, ["own-state"; 3]);
    assert!(base.at("deaddrop.toml").is_symlink());
}

#[test]
fn settings_that_did_not_exist_cannot_be_made() {
    let base = Project::new();
    base.run(&["new", "--no-watch", "--id", ID, "--workspace-dir", ".", "A task"]).ok();
    // A file of deaddrop's own keeps the place.
    let before = base.read("deaddrop.toml");
    let run = base.run_with(
        &["apply", "--json", "--workspace-dir", ".", "-"],
        "[CREATE_FILE path=\"deaddrop.toml\"]\nmax_output_length = 100\n[/CREATE_FILE]\n[RUN_COMMAND]\necho 'workspace_dir = \"/\"' > deaddrop.toml; rm -f deaddrop.toml\n[/RUN_COMMAND]\n",
    );
    assert_eq!(codes(&run.ok().json()["results"])[0], "own-state");
    assert_eq!(base.read("deaddrop.toml"), before);
}

#[test]
fn its_own_state_is_out_of_reach_in_other_letters_where_these_are_the_same() {
    let base = scene();
    if !base.exists("SESSIONS") {
        eprintln!("SKIPPED: this file system tells SESSIONS from sessions");
        return;
    }
    let session = format!("SESSIONS/{ID}.json");
    assert_out_of_reach(&base, &[&session, "Sessions/new", "DeadDrop.toml", "INBOX/x.txt"]);
}

#[test]
fn its_own_state_is_not_listed() {
    let base = scene();
    base.write("inbox/.claimed/x.txt", "x");
    let outbox = base.apply("[MESSAGE]\nx\n[/MESSAGE]\n");
    let (_, listing) = outbox.split_once("\n## Workspace Files\n").unwrap();
    let (listing, _) = listing.split_once("\n\n").unwrap();
    assert_eq!(listing, "  own.txt (2 bytes)");
}

#[test]
fn a_workspace_of_100_000_files_is_listed_within_bounds() {
    // In memory, where there is such.
    let top = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    thread::scope(|scope| {
        for half in 0..2 {
            let top = top.path();
            scope.spawn(move || {
                for folder in (half..100).step_by(2) {
                    let folder = top.join(format!("f{folder:02}"));
                    fs::create_dir(&folder).unwrap();
                    (0..1000).for_each(|n| fs::write(folder.join(n.to_string()), "").unwrap());
                }
            });
        }
    });
    fs::write(top.path().join("z.txt"), "top").unwrap();
    let base = Project::new();
    let begun = Instant::now();
    let workspace = top.path().to_str().unwrap();
    base.run(&["new", "--no-watch", "--id", ID, "--workspace-dir", workspace, "A task"]).ok();
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    let outbox = base.outbox(1);
    assert!(outbox.len() < 100_000, "{} bytes", outbox.len());
    let told = "\n  f99/ (1,000 files, 0 bytes)\n  z.txt (3 bytes)\n  … ";
    assert!(outbox.contains(told), "{outbox}");
}
