//! Any turns of any operations and commands, taken back, leave the workspace as it was, byte for byte; and
//! done again, as it was then.

use std::process::Command;

use proptest::prelude::*;
use proptest::sample::select;

use super::tests::{Scene, scene};
use super::*;
use crate::protocol::{Existing, RelPath};

/// Where things happen: some of these are folders at times.
const PATHS: [&str; 8] = ["a", "b", "d", "d/x", "d/e", "d/e/y", "n/m/z", "l"];

/// Something that a turn does.
#[derive(Debug, Clone)]
enum Act {
    Create(&'static str, u8),
    Delete(&'static str),
    Move(&'static str, &'static str),
    Command(String),
}

fn act() -> impl Strategy<Value = Act> {
    let path = || select(&PATHS[..]);
    let script = (0_u8..12, path(), path(), any::<u8>()).prop_map(|(sort, p, q, n)| match sort {
        0 => format!("mkdir -p \"$(dirname {p})\"; printf '\\{n:03o}{n}' > {p}"),
        1 => format!("echo {n} >> {p}"),
        2 => format!("rm -rf {p}"),
        3 => format!("mv {p} {q}"),
        4 => format!("ln -sfn {q} {p}"),
        5 => format!("chmod {:o} {p}", 0o400 | (u32::from(n) << 1)),
        6 => format!("mkdir -p {p}; chmod 7{:o} {p}", n % 64),
        7 => format!("cp -a {p} {q}"),
        8 => format!("rm -rf {p}; mkdir -p {p}/deep; echo {n} > {p}/deep/f"),
        9 => format!("ln {p} {q}"),
        10 => format!("touch {p}; sleep 0"),
        _ => format!("truncate -s {n} {p}"),
    });
    prop_oneof![
        (path(), any::<u8>()).prop_map(|(p, n)| Act::Create(p, n)),
        path().prop_map(Act::Delete),
        (path(), path()).prop_map(|(p, q)| Act::Move(p, q)),
        script.prop_map(Act::Command),
    ]
}

impl Scene {
    /// Carries out a turn, as `place::Here` does.
    fn carry_out(&mut self, acts: &[Act]) -> Vec<Change> {
        let Scene { workspace, store, dir } = self;
        let path = |path: &str| RelPath::parse(path).unwrap();
        let mut recorder = Recorder::new(store);
        for act in acts {
            match act {
                Act::Create(at, n) => {
                    let content = vec![*n; usize::from(*n)];
                    let plan = workspace.plan_create(&path(at), &content, Existing::Replace, false);
                    let Ok(plan) = plan else { continue };
                    recorder.before_file(workspace, plan.effect());
                    let _ = plan.execute();
                }
                Act::Delete(at) => {
                    let Ok(plan) = workspace.plan_delete(&path(at), false) else { continue };
                    recorder.before_file(workspace, plan.effect());
                    let _ = plan.execute();
                }
                Act::Move(from, to) => {
                    let plan = workspace.plan_move(&path(from), &path(to), false);
                    let Ok(plan) = plan else { continue };
                    recorder.before_move(workspace, plan.effect());
                    let _ = plan.execute();
                }
                Act::Command(script) => {
                    recorder.before_command(workspace);
                    let mut sh = Command::new("/bin/sh");
                    let sh = sh.args(["-c", script]).current_dir(dir.path().join("w"));
                    let _ = sh.output().unwrap();
                }
            }
        }
        recorder.after_commands(workspace);
        recorder.finish(workspace).changes.unwrap()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]
    #[test]
    fn any_turns_undone_and_redone_give_the_workspace_byte_for_byte(
        begin in prop::collection::vec(act(), 0..6),
        turns in prop::collection::vec(prop::collection::vec(act(), 1..5), 1..5),
        at_once in any::<bool>(),
    ) {
        let mut scene = scene();
        scene.sh("echo a > a; mkdir -p d/e; echo x > d/x; ln -s d/x l");
        scene.carry_out(&begin);
        let mut pictures = vec![scene.all()];
        let mut changes = Vec::new();
        for turn in &turns {
            changes.push(scene.carry_out(turn));
            pictures.push(scene.all());
        }
        let last = pictures.last().cloned().unwrap();
        let back: Vec<Vec<Change>> = if at_once {
            vec![reversed(composed(changes))]
        } else {
            changes.into_iter().rev().map(reversed).collect()
        };
        let mut undone = Vec::new();
        for (n, changes) in back.into_iter().enumerate() {
            let plan = scene.plan(changes, false);
            prop_assert_eq!(&plan.conflicts, &Vec::<String>::new());
            prop_assert_eq!(&plan.left, &Vec::new());
            let left = plan.carry_out(&mut scene.store, &scene.workspace).unwrap().left;
            prop_assert_eq!(left, Vec::new());
            let then = if at_once { 0 } else { turns.len() - n - 1 };
            prop_assert_eq!(scene.all(), pictures[then].clone());
            // Once more does nothing.
            let left = plan.carry_out(&mut scene.store, &scene.workspace).unwrap().left;
            prop_assert_eq!(left, Vec::new());
            prop_assert_eq!(scene.all(), pictures[then].clone());
            undone.push(plan.changes);
        }
        for changes in undone.into_iter().rev() {
            prop_assert_eq!(scene.make(reversed(changes)), []);
        }
        prop_assert_eq!(scene.all(), last);
    }
}
