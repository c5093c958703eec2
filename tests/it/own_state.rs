//! deaddrop's own files, where the workspace is the base directory itself: out of reach of replies
//! by whatever name. And races against the workspace: what is swapped in a moment leads nowhere.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use deaddrop::protocol::{Existing, FailureKind, RelPath};
use deaddrop::workspace::{Plan, Workspace};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::support::{Base, ID, PATIENCE};

/// A base directory that is its own workspace.
fn scene() -> Base {
    let base = Base::new();
    base.write("deaddrop.toml", "workspace_dir = \".\"\n");
    base.write(".no-config/deaddrop/config.toml", "max_output_length = 5000\n");
    base.begin(ID);
    base.write("own.txt", "x\n");
    base
}

/// Asserts that creating, editing, deleting and reading each of these is rejected.
#[track_caller]
fn assert_out_of_reach(base: &Base, paths: &[&str]) {
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
    let outbox = base.apply(&reply);
    let refused = outbox
        .lines()
        .filter(|line| line.starts_with("[FAILED] "))
        .filter(|line| line.contains("REJECTED: Path is part of deaddrop's own state: '"))
        .count();
    assert_eq!(refused, asked, "{outbox}");
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
    let outbox = base.apply(
        "[DELETE_FILE path=\"deaddrop.toml\"]\n[CREATE_FILE path=\"deaddrop.toml\"]\nx\n[/CREATE_FILE]\n[READ_FILE path=\"etc/real.toml\"]\n",
    );
    assert_eq!(outbox.matches("\n[FAILED] ").count(), 3, "{outbox}");
    assert!(base.at("deaddrop.toml").is_symlink());
}

#[test]
fn settings_that_did_not_exist_cannot_be_made() {
    let base = Base::new();
    base.run(&["new", "--no-watch", "--id", ID, "--workspace-dir", ".", "A task"]).ok();
    // A file of deaddrop's own keeps the place.
    let before = base.read("deaddrop.toml");
    let run = base.run_with(
        &["apply", "--workspace-dir", ".", "-"],
        "[CREATE_FILE path=\"deaddrop.toml\"]\nmax_output_length = 100\n[/CREATE_FILE]\n[RUN_COMMAND]\necho 'workspace_dir = \"/\"' > deaddrop.toml; rm -f deaddrop.toml\n[/RUN_COMMAND]\n",
    );
    assert!(base.read(run.ok().stdout.trim()).contains("[FAILED] CREATE_FILE: REJECTED: "));
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

/// A folder for many files: in memory, where there is such.
pub(crate) fn quick_folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

fn path(text: &str) -> RelPath {
    RelPath::parse(text).unwrap()
}

/// Runs `work` while `workspace/flip` is now a folder, now a link to the folder `outside`.
pub(crate) fn while_swapping(top: &Path, work: impl FnOnce(&Workspace)) {
    for folder in ["workspace/flip", "outside"] {
        fs::create_dir_all(top.join(folder)).unwrap();
    }
    let (flip, other) = (top.join("workspace/flip"), top.join("workspace/other"));
    symlink(top.join("outside"), &other).unwrap();
    let workspace = Workspace::open(&top.join("workspace"), &[], &[]).unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                renameat_with(CWD, &flip, CWD, &other, RenameFlags::EXCHANGE).unwrap();
            }
        });
        // Stops the swapping also where `work` panics.
        struct Stop<'a>(&'a AtomicBool);
        impl Drop for Stop<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let _stop = Stop(&stop);
        work(&workspace);
    });
}

#[test]
fn of_20_000_writes_none_escapes_through_a_swapped_link() {
    let top = quick_folder();
    let (mut written, mut rejected) = (0, 0);
    while_swapping(top.path(), |workspace| {
        for n in 0..20_000 {
            let to = match n % 4 {
                0 => format!("flip/new{n}/x"),
                _ => format!("flip/x{}", n % 50),
            };
            match workspace
                .plan_create(&path(&to), b"x", Existing::Replace, false)
                .and_then(Plan::execute)
            {
                Ok(_) => written += 1,
                Err(failure) if failure.kind == FailureKind::Rejected => rejected += 1,
                Err(_) => {}
            }
        }
    });
    let escaped: Vec<_> = fs::read_dir(top.path().join("outside")).unwrap().collect();
    assert!(escaped.is_empty(), "{} escaped, as {:?}", escaped.len(), escaped[0]);
    assert!(written > 500 && rejected > 500, "no race: {written} written, {rejected} rejected");
}

#[test]
fn of_20_000_reads_and_deletions_none_escapes_through_a_swapped_link() {
    let top = quick_folder();
    let read = AtomicUsize::new(0);
    while_swapping(top.path(), |workspace| {
        fs::write(top.path().join("outside/x"), "secret").unwrap();
        let mut rejected = 0;
        for _ in 0..20_000 {
            match workspace.read(&path("flip/x"), 100) {
                Ok(contents) => {
                    assert_eq!(contents.bytes, b"mine");
                    read.fetch_add(1, Ordering::Relaxed);
                }
                // In the folder, where nothing stands yet.
                Err(failure) if failure.kind == FailureKind::Execution => {
                    let _ = workspace
                        .plan_create(&path("flip/x"), b"mine", Existing::Replace, false)
                        .and_then(Plan::execute);
                }
                Err(_) => rejected += 1,
            }
            if rejected % 7 == 0 {
                let _ = workspace.plan_delete(&path("flip/x"), false).and_then(Plan::execute);
            }
        }
        assert!(rejected > 500, "no race: {rejected} rejected");
    });
    assert_eq!(fs::read_to_string(top.path().join("outside/x")).unwrap(), "secret");
    assert!(read.into_inner() > 500, "no race");
}

#[test]
fn a_listing_never_shows_what_a_swapped_link_leads_to() {
    let top = quick_folder();
    while_swapping(top.path(), |workspace| {
        fs::write(top.path().join("outside/secret"), "x").unwrap();
        for _ in 0..2_000 {
            let walk = workspace.walk().unwrap();
            assert!(walk.files().all(|file| !file.path.contains("secret")));
        }
    });
}

#[test]
fn a_workspace_of_100_000_files_is_listed_within_bounds() {
    let top = quick_folder();
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
    let base = Base::new();
    let begun = Instant::now();
    let workspace = top.path().to_str().unwrap();
    base.run(&["new", "--no-watch", "--id", ID, "--workspace-dir", workspace, "A task"]).ok();
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    let outbox = base.outbox(1);
    assert!(outbox.len() < 100_000, "{} bytes", outbox.len());
    assert!(
        outbox.contains(
            "\n  f99/ (1,000 files, 0 bytes)\n  z.txt (3 bytes)\n  … folders with a count"
        ),
        "{outbox}"
    );
}
