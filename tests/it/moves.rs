//! Moves: what stands in their way, who is asked, what is told after a stop, and races against them.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

use deaddrop::place::{Left, left_on_disk};
use deaddrop::protocol::{Detail, Effect, FailureKind, RelPath};
use deaddrop::workspace::{MOVED_FILES, MovePlan, Workspace};

use crate::own_state::{quick_folder, while_swapping};
use crate::support::Base;

fn path(text: &str) -> RelPath {
    RelPath::parse(text).unwrap()
}

fn move_it(workspace: &Workspace, from: &str, to: &str) -> Result<Detail, String> {
    let plan = workspace.plan_move(&path(from), &path(to), false);
    plan.and_then(MovePlan::execute).map_err(|failure| failure.reason)
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
fn deaddrops_own_state_is_never_moved_nor_replaced() {
    let top = tempfile::tempdir().unwrap();
    let root = top.path().join("w");
    fs::create_dir_all(root.join("a/deep/state")).unwrap();
    fs::write(root.join("b"), "b").unwrap();
    symlink("a/deep/state", root.join("link")).unwrap();
    let state = [root.join("a/deep/state"), root.join("later/journal")];
    let workspace = Workspace::open(&root, &state, &[]).unwrap();
    for (from, to) in [
        ("a", "c"),
        ("a/deep", "c"),
        ("a/deep/state", "c"),
        ("b", "a/deep/state/b"),
        ("b", "link/b"),
        ("b", "later"),
        ("b", "later/journal"),
        ("b", "later/journal/b"),
    ] {
        let failure = workspace.plan_move(&path(from), &path(to), true).err().unwrap();
        assert_eq!(failure.kind, FailureKind::Rejected, "{from} {to}");
        assert!(failure.reason.contains("deaddrop's own state"), "{from} {to}: {failure:?}");
    }
    // A state that was put elsewhere is known by its number.
    fs::rename(root.join("a/deep/state"), root.join("a/elsewhere")).unwrap();
    let failure = workspace.plan_move(&path("a"), &path("c"), true).err().unwrap();
    assert!(failure.reason.contains("deaddrop's own state"), "{failure:?}");
    assert!(move_it(&workspace, "link", "moved").is_ok(), "a link is no state");
}

#[test]
fn only_what_was_looked_at_is_moved() {
    let top = tempfile::tempdir().unwrap();
    let root = top.path();
    let workspace = Workspace::open(root, &[], &[]).unwrap();
    fs::create_dir(root.join("a")).unwrap();
    let plan = workspace.plan_move(&path("a"), &path("b"), false).unwrap();
    fs::rename(root.join("a"), root.join("kept")).unwrap();
    fs::create_dir_all(root.join("a/.git")).unwrap();
    let failure = plan.execute().unwrap_err();
    assert!(failure.reason.contains("was replaced by something else"), "{failure:?}");
    assert!(root.join("a/.git").exists() && !root.join("b").exists());
    // And nothing is replaced that came there meanwhile.
    let plan = workspace.plan_move(&path("kept"), &path("b"), false).unwrap();
    fs::create_dir(root.join("b")).unwrap();
    let failure = plan.execute().unwrap_err();
    assert!(failure.reason.contains("'b' already exists"), "{failure:?}");
    // Of a folder with very much in it nobody can look at everything.
    for n in 0..=MOVED_FILES {
        fs::write(root.join(format!("kept/{n}")), "").unwrap();
    }
    let failure = move_it(&workspace, "kept", "c").unwrap_err();
    assert!(failure.contains("more than 5000 files and folders in it"), "{failure}");
}

#[test]
fn after_a_stop_both_ends_tell_whether_it_was_moved() {
    let top = tempfile::tempdir().unwrap();
    let root = top.path();
    let workspace = Workspace::open(root, &[], &[]).unwrap();
    let began = |folder: bool| {
        if folder {
            fs::create_dir_all(root.join("a/x"))
        } else {
            fs::write(root.join("a"), "text")
        }
        .unwrap();
        workspace.plan_move(&path("a"), &path("new/b"), false).unwrap()
    };
    for folder in [false, true] {
        let plan = began(folder);
        let effect = plan.effect().clone();
        let left = || left_on_disk(&Effect::Move(Box::new(effect.clone())), &workspace);
        assert!(matches!(left(), Left::Undone));
        plan.execute().unwrap();
        let Left::Done(detail, _) = left() else { panic!("{:?}", left()) };
        assert_eq!(*detail, effect.detail);
        // Something else stands where it stood: somebody was there.
        fs::write(root.join("a"), "another").unwrap();
        let Left::Done(detail, _) = left() else { panic!("{:?}", left()) };
        assert!(matches!(*detail, Detail::Failed(_)), "{detail:?}");
        fs::remove_file(root.join("a")).unwrap();
        fs::rename(root.join("new"), root.join("gone")).unwrap();
        let Left::Done(detail, _) = left() else { panic!("{:?}", left()) };
        let Detail::Failed(failure) = *detail else { panic!("{detail:?}") };
        assert!(failure.reason.contains("look at both"), "{failure:?}");
        fs::remove_dir_all(root.join("gone")).unwrap();
    }
}

#[test]
fn a_moved_file_keeps_its_number_mode_and_links() {
    let top = tempfile::tempdir().unwrap();
    let root = top.path();
    let workspace = Workspace::open(root, &[], &[]).unwrap();
    fs::write(root.join("a"), "x").unwrap();
    let number = fs::metadata(root.join("a")).unwrap().ino();
    symlink("/etc/passwd", root.join("link")).unwrap();
    move_it(&workspace, "a", "b/c/d").unwrap();
    assert_eq!(fs::metadata(root.join("b/c/d")).unwrap().ino(), number);
    move_it(&workspace, "link", "b/link").unwrap();
    assert_eq!(fs::read_link(root.join("b/link")).unwrap().to_str(), Some("/etc/passwd"));
    assert!(move_it(&workspace, "b/link/x", "y").unwrap_err().contains("outside workspace"));
}

#[test]
fn an_approval_of_a_move_is_of_both_ends_and_of_what_is_in_it() {
    for change in ["touch workspace/sub/new", "rm workspace/way && ln -s y workspace/way"] {
        let base = Base::with_session();
        base.sh("mkdir -p workspace/sub workspace/x workspace/y && ln -s x workspace/way && echo a > workspace/sub/.envrc");
        let reply = "[MOVE_FILE path=\"sub\" to=\"way/sub\"]\n";
        base.run_with(&["apply", "-"], reply).with_code(3);
        base.sh(change);
        let run = base.run(&["approve"]).with_code(3);
        assert!(run.stderr.contains("It has changed since it was approved"), "{change}: {run:?}");
        assert!(base.exists("workspace/sub/.envrc"));
        base.run(&["approve"]).ok();
        assert!(!base.exists("workspace/sub") && base.exists("workspace/way/sub/.envrc"));
    }
}

#[test]
fn check_tells_what_a_move_would_do() {
    let base = Base::with_session();
    base.sh("mkdir -p workspace/d && echo a > workspace/a && echo b > workspace/d/b");
    let reply = "[MOVE_FILE path=\"a\" to=\"new/c\"]\n[EDIT_FILE path=\"new/c\" start_line=\"1\" end_line=\"1\"]\nA\n[/EDIT_FILE]\n[DELETE_FILE path=\"a\"]\n[LIST_FILES path=\"new\"]\n[SEARCH pattern=\"(\"]\n[MOVE_FILE path=\"d\" to=\"e\"]\n[DELETE_FILE path=\"e/b\"]\n";
    let run = base.run_with(&["check", "-"], reply).with_code(1);
    let said = format!("{}{}", run.stdout, run.stderr);
    for told in [
        "move 'a' to 'new/c'\n",
        "edit 'new/c' (replace line 1 by 1 line",
        "File 'a' not found",
        "would list 'new'",
        "The pattern is no regular expression",
        "would move 'd' to 'e'",
        "depends on what is moved before",
    ] {
        assert!(said.contains(told), "{told}: {said}");
    }
    assert!(base.exists("workspace/a") && !base.exists("workspace/new"));
}
