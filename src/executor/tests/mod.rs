//! Results of previews, and of moves that were interrupted.

mod preview;

use std::fs;

use super::{InterruptedStep, inspect_on_disk};
use crate::protocol::{Detail, Effect, RelPath};
use crate::workspace::Workspace;

fn path(text: &str) -> RelPath {
    RelPath::parse(text).unwrap()
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
        let left = || inspect_on_disk(&Effect::Move(Box::new(effect.clone())), &workspace);
        assert!(matches!(left(), InterruptedStep::NotDone));
        plan.execute().unwrap();
        let InterruptedStep::Done(done) = left() else { panic!("{:?}", left()) };
        assert_eq!(done.detail, effect.detail);
        // Another file is at the old path, so somebody else has changed something.
        fs::write(root.join("a"), "another").unwrap();
        let InterruptedStep::Done(done) = left() else { panic!("{:?}", left()) };
        assert!(matches!(done.detail, Detail::Failed(_)), "{done:?}");
        fs::remove_file(root.join("a")).unwrap();
        fs::rename(root.join("new"), root.join("gone")).unwrap();
        let InterruptedStep::Done(done) = left() else { panic!("{:?}", left()) };
        let Detail::Failed(failure) = done.detail else { panic!("{done:?}") };
        assert!(failure.reason.contains("check both paths"), "{failure:?}");
        fs::remove_dir_all(root.join("gone")).unwrap();
    }
}
