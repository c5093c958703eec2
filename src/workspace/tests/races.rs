//! Races against the workspace: swapping a folder for a link never leads outside.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::{path, quick_folder};
use crate::protocol::{Detail, Existing, FailureKind};
use crate::workspace::{MovePlan, SearchOptions, Workspace};

/// Runs `work` while `workspace/flip` alternates between a folder and a link to the folder `outside`.
fn while_swapping(top: &Path, work: impl FnOnce(&Workspace)) {
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
        // Stops the swapping even if `work` panics.
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
                .and_then(|plan| plan.execute(workspace))
            {
                Ok(_) => written += 1,
                Err(failure) if failure.kind == FailureKind::Rejected => rejected += 1,
                Err(_) => {}
            }
        }
    });
    let escaped: Vec<_> = fs::read_dir(top.path().join("outside")).unwrap().collect();
    assert!(escaped.is_empty(), "{} escaped, as {:?}", escaped.len(), escaped[0]);
    assert!(written > 100 && rejected > 100, "no race: {written} written, {rejected} rejected");
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
                // The path is in the real folder, in which no file exists yet.
                Err(failure) if failure.kind == FailureKind::Execution => {
                    let _ = workspace
                        .plan_create(&path("flip/x"), b"mine", Existing::Replace, false)
                        .and_then(|plan| plan.execute(workspace));
                }
                Err(_) => rejected += 1,
            }
            if rejected % 7 == 0 {
                let _ = workspace
                    .plan_delete(&path("flip/x"), false)
                    .and_then(|plan| plan.execute(workspace));
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
fn of_5_000_moves_none_escapes_through_a_swapped_link() {
    let top = quick_folder();
    let (mut moved, mut rejected) = (0, 0);
    while_swapping(top.path(), |workspace| {
        for n in 0..5_000 {
            let own = top.path().join(format!("workspace/own{n}"));
            fs::write(&own, "mine").unwrap();
            let to = if n % 4 == 0 { format!("flip/new{n}/x") } else { format!("flip/x{n}") };
            match workspace
                .plan_move(&path(&format!("own{n}")), &path(&to), false)
                .and_then(MovePlan::execute)
            {
                Ok(_) => moved += 1,
                Err(failure) if failure.kind == FailureKind::Rejected => rejected += 1,
                Err(_) => {}
            }
        }
    });
    let escaped: Vec<_> = fs::read_dir(top.path().join("outside")).unwrap().collect();
    assert!(escaped.is_empty(), "{} escaped, as {:?}", escaped.len(), escaped[0]);
    assert!(moved > 100 && rejected > 100, "no race: {moved} moved, {rejected} rejected");
}

#[test]
fn nothing_comes_in_through_a_swapped_link() {
    let top = quick_folder();
    while_swapping(top.path(), |workspace| {
        fs::write(top.path().join("outside/x"), "secret").unwrap();
        let mut rejected = 0;
        for n in 0..5_000 {
            let plan = workspace.plan_move(&path("flip/x"), &path(&format!("in{n}")), false);
            match plan.and_then(MovePlan::execute) {
                Ok(detail) => panic!("{detail:?}"),
                Err(failure) => rejected += usize::from(failure.kind == FailureKind::Rejected),
            }
        }
        assert!(rejected > 100, "no race: {rejected} rejected");
    });
    assert_eq!(fs::read_to_string(top.path().join("outside/x")).unwrap(), "secret");
}

#[test]
fn a_search_in_a_swapped_folder_finds_nothing_outside() {
    let top = quick_folder();
    while_swapping(top.path(), |workspace| {
        fs::write(top.path().join("outside/secret"), "needle outside\n").unwrap();
        let options = SearchOptions::new(&|_, _| true, &|| false);
        let flip = path("flip");
        let mut refused = 0;
        for n in 0..3_000 {
            let path = (n % 2 == 0).then_some(&flip);
            match workspace.search("needle", path, &options) {
                Ok((Detail::Found { lines: 0, .. }, _)) => {}
                Err(_) => refused += 1,
                other => panic!("{other:?}"),
            }
            match workspace.list_below(path, &options) {
                Ok((Detail::Listed { shown, .. }, _)) => {
                    assert!(!shown.contains("secret"), "{shown}");
                }
                other => assert!(other.is_err(), "{other:?}"),
            }
        }
        assert!(refused > 100, "no race: {refused} refused");
    });
}
