//! If any turns of any operations and commands are undone, the workspace is as before, byte for byte. If they are
//! redone, it is as after them.

use std::collections::BTreeMap;
use std::process::Command;

use proptest::prelude::*;
use proptest::sample::select;

use super::tests::{Scene, scene};
use super::*;
use crate::protocol::{Existing, RelPath};

/// The paths that are used. Some of them are folders at times.
const PATHS: [&str; 8] = ["a", "b", "d", "d/x", "d/e", "d/e/y", "n/m/z", "l"];

/// Paths that rules ignore. Only operations use them here, because changes by commands there are not undone.
const IGNORED: [&str; 2] = ["out/x", "out/deep/y"];

/// An action of a turn.
#[derive(Debug, Clone)]
pub(super) enum Act {
    Create(&'static str, u8),
    Delete(&'static str),
    Move(&'static str, &'static str),
    Command(String),
    /// The turn stops to ask a question, and continues.
    Ask,
}

fn act() -> impl Strategy<Value = Act> {
    let path = || select(&PATHS[..]);
    let any_path = || select([&PATHS[..], &IGNORED[..]].concat());
    let script = (0_u8..16, path(), path(), any::<u8>()).prop_map(|(sort, p, q, n)| match sort {
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
        11 => format!("rmdir d/e n/m n empty {p}"),
        12 => format!("mkdir -p empty/{n} {p}/empty"),
        13 => format!("chmod 1{:o} $(dirname {p})", 0o700 + u32::from(n % 64)),
        14 => format!("chmod {:o} .", 0o500 | (u32::from(n) << 3) | u32::from(n % 8)),
        _ => format!("truncate -s {n} {p}"),
    });
    prop_oneof![
        2 => (any_path(), any::<u8>()).prop_map(|(p, n)| Act::Create(p, n)),
        2 => any_path().prop_map(Act::Delete),
        2 => (any_path(), path()).prop_map(|(p, q)| Act::Move(p, q)),
        3 => script.prop_map(Act::Command),
        1 => Just(Act::Ask),
    ]
}

/// Actions on protected and other names, with contents that are often equal.
fn near_protected() -> impl Strategy<Value = Act> {
    let path = || select(&["a", "n/m/z", "p/s", ".vscode/e", ".vscode/s"][..]);
    let script = select(&["rm -rf n a", "printf '\\1' > a", "mkdir -p n/m; touch n/m/z"][..]);
    prop_oneof![
        4 => (path(), 0_u8..3).prop_map(|(p, n)| Act::Create(p, n)),
        3 => path().prop_map(Act::Delete),
        2 => (path(), path()).prop_map(|(p, q)| Act::Move(p, q)),
        1 => script.prop_map(|script| Act::Command(script.to_owned())),
        1 => Just(Act::Ask),
    ]
}

/// Marks the changes under a protected name as made by commands, so that they are not undone.
pub(super) fn by_commands(mut changes: Vec<TreeChange>) -> Vec<TreeChange> {
    for change in changes.iter_mut().filter(|change| change.path.starts_with(".vscode")) {
        change.by_command = true;
    }
    changes
}

impl Scene {
    /// Carries out a turn, as `LocalExecutor` does.
    pub(super) fn carry_out(&mut self, acts: &[Act]) -> Vec<TreeChange> {
        let mut rules = None;
        let mut parts = Vec::new();
        for part in acts.split(|act| matches!(act, Act::Ask)) {
            let done = self.carry_out_part(part, rules.take());
            rules = done.rules;
            parts.push(done.changes.unwrap());
        }
        compose(parts)
    }

    fn carry_out_part(&mut self, acts: &[Act], rules: Option<KeptRules>) -> RecordedChanges {
        let Scene { workspace, store, dir } = self;
        let path = |path: &str| RelPath::parse(path).unwrap();
        // Writes to such names were approved.
        let permit = |path: &str| path.starts_with(".vscode");
        let mut recorder = Recorder::new(store).with_rules(Ok(rules.unwrap_or_default()));
        for act in acts {
            match act {
                Act::Create(at, n) => {
                    let content = vec![*n; usize::from(*n)];
                    let plan =
                        workspace.plan_create(&path(at), &content, Existing::Replace, permit(at));
                    let Ok(plan) = plan else { continue };
                    recorder.before_files(workspace, [plan.effect()]);
                    let _ = plan.execute(workspace);
                }
                Act::Delete(at) => {
                    let Ok(plan) = workspace.plan_delete(&path(at), permit(at)) else { continue };
                    recorder.before_files(workspace, [plan.effect()]);
                    let _ = plan.execute(workspace);
                }
                Act::Move(from, to) => {
                    let plan =
                        workspace.plan_move(&path(from), &path(to), permit(from) || permit(to));
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
                Act::Ask => {}
            }
        }
        recorder.after_commands(workspace);
        recorder.finish(workspace)
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
        scene.sh("echo a > a; mkdir -p d/e empty; echo x > d/x; ln -s d/x l; echo /out/ > .gitignore");
        scene.carry_out(&begin);
        let mut pictures = vec![scene.all()];
        let mut changes = Vec::new();
        for turn in &turns {
            changes.push(scene.carry_out(turn));
            pictures.push(scene.all());
        }
        let last = pictures.last().cloned().unwrap();
        let back: Vec<Vec<TreeChange>> = if at_once {
            vec![reverse(compose(changes))]
        } else {
            changes.into_iter().rev().map(reverse).collect()
        };
        let mut undone = Vec::new();
        for (n, changes) in back.into_iter().enumerate() {
            let plan = scene.plan(changes, false);
            prop_assert_eq!(&plan.conflicts, &Vec::<String>::new());
            prop_assert_eq!(&plan.left, &Vec::new());
            let left = plan.carry_out(&mut scene.store, &scene.workspace, false).unwrap().left;
            prop_assert_eq!(left, Vec::new());
            let then = if at_once { 0 } else { turns.len() - n - 1 };
            prop_assert_eq!(scene.all(), pictures[then].clone());
            // Carrying out the plan again has no effect.
            let left = plan.carry_out(&mut scene.store, &scene.workspace, false).unwrap().left;
            prop_assert_eq!(left, Vec::new());
            prop_assert_eq!(scene.all(), pictures[then].clone());
            undone.push(plan.changes);
        }
        for changes in undone.into_iter().rev() {
            prop_assert_eq!(scene.make(reverse(changes)), []);
        }
        prop_assert_eq!(scene.all(), last);
    }

    #[test]
    fn of_a_turn_that_took_from_protected_names_only_copies_stay(
        begin in prop::collection::vec(near_protected(), 0..6),
        turn in prop::collection::vec(near_protected(), 1..6),
    ) {
        let mut scene = scene();
        scene.sh("mkdir .vscode; touch .vscode/e; printf '\\1' > .vscode/s");
        scene.carry_out(&begin);
        let before = scene.all();
        let changes = by_commands(scene.carry_out(&turn));
        let plan = scene.plan(reverse(changes), false);
        prop_assert_eq!(&plan.conflicts, &Vec::<String>::new());
        let left = plan.carry_out(&mut scene.store, &scene.workspace, false).unwrap().left;
        prop_assert_eq!(left, Vec::new());
        let mut after = scene.all();
        let is_protected = |path: &str| path.starts_with(".vscode");
        // The contents that could not be moved back.
        let mut missing: Vec<&[u8]> = before
            .iter()
            .filter(|(path, was)| {
                let may_stay = is_protected(path) || plan.left.iter().any(|(left, _)| left == *path);
                may_stay && after.get(*path) != Some(was)
            })
            .map(|(_, was)| &*was.1)
            .collect();
        for (path, why) in plan.left.iter().filter(|(path, _)| !is_protected(path)) {
            // The file takes the place of another, if a command changed both.
            let stood = before.get(path).is_none_or(|was| was.1 != b"no file");
            prop_assert!(stood, "{path}: {why}");
            let stays = after.remove(path).unwrap();
            if stays.1 != b"no file" {
                let found = missing.iter().position(|was| *was == stays.1);
                prop_assert!(found.is_some(), "{path}: {why}");
                missing.swap_remove(found.unwrap());
            }
        }
        let rest = |all: BTreeMap<String, _>| -> BTreeMap<String, _> {
            all.into_iter().filter(|(path, _)| !is_protected(path)).collect()
        };
        let mut before = rest(before.clone());
        before.retain(|path, _| !plan.left.iter().any(|(left, _)| left == path));
        prop_assert_eq!(rest(after), before);
    }
}
