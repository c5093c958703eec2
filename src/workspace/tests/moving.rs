//! Moves in the workspace: what prevents them, and what they keep.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

use super::path;
use crate::protocol::{Detail, FailureKind};
use crate::workspace::{MOVED_FILES, MovePlan, Workspace};

fn move_it(workspace: &Workspace, from: &str, to: &str) -> Result<Detail, String> {
    let plan = workspace.plan_move(&path(from), &path(to), false);
    plan.and_then(MovePlan::execute).map_err(|failure| failure.reason)
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
        assert!(failure.reason.contains("own state"), "{from} {to}: {failure:?}");
    }
    // State that was moved elsewhere is recognised by its inode.
    fs::rename(root.join("a/deep/state"), root.join("a/elsewhere")).unwrap();
    let failure = workspace.plan_move(&path("a"), &path("c"), true).err().unwrap();
    assert!(failure.reason.contains("own state"), "{failure:?}");
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
    assert!(failure.reason.contains("was replaced while it was moved"), "{failure:?}");
    assert!(root.join("a/.git").exists() && !root.join("b").exists());
    // An entry that appears at the new path after the check is not replaced.
    let plan = workspace.plan_move(&path("kept"), &path("b"), false).unwrap();
    fs::create_dir(root.join("b")).unwrap();
    let failure = plan.execute().unwrap_err();
    assert!(failure.reason.contains("'b' already exists"), "{failure:?}");
    // A folder with too many entries cannot be inspected completely.
    for n in 0..=MOVED_FILES {
        fs::write(root.join(format!("kept/{n}")), "").unwrap();
    }
    let failure = move_it(&workspace, "kept", "c").unwrap_err();
    assert!(failure.contains("more than 5000 files and folders"), "{failure}");
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
