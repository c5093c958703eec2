//! Any turns, including entries that cannot be stored or are ignored, and any actions of a person at the same time: no
//! undo or redo loses existing content.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::sample::select;

use super::property::Act;
use super::tests::{Scene, scene};
use super::*;

/// The paths that are used. Some of them are folders at times.
const PATHS: [&str; 7] = ["a", "b", "d", "d/x", "d/e", "n/m/z", "l"];
/// Paths that rules ignore. Commands also take files from them.
const IGNORED: [&str; 5] = ["x.log", "d/y.log", "out/x", "out/deep", "out"];

type Picture = BTreeMap<String, (u32, Vec<u8>)>;

/// Scripts that change files without taking them from other paths. Writing to a pipe would wait for a reader.
fn writing() -> impl Strategy<Value = String> {
    let path = || select([&PATHS[..], &IGNORED[..3]].concat());
    (0_u8..8, path(), any::<u8>()).prop_map(|(sort, p, n)| match sort {
        0 | 1 => format!("mkdir -p \"$(dirname {p})\"; [ -p {p} ] || echo {n} > {p}"),
        // Too large to be stored.
        2 => format!(
            "mkdir -p \"$(dirname {p})\"; [ -p {p} ] || {{ head -c {} /dev/zero; echo {n}; }} > {p}",
            2000 + u32::from(n)
        ),
        3 => format!("rm -rf {p}; mkfifo {p}"),
        4 => format!("rm -rf {p}; mkdir -p {p}/f; echo {n} > {p}/f/g"),
        5 => format!("rm -rf {p}; echo {n} > {p}"),
        6 => format!("rm -rf {p}"),
        _ => format!("rm -rf {p}; ln -sfn ../w/d {p}"),
    })
}

/// Scripts that take files from other paths.
fn taking() -> impl Strategy<Value = String> {
    let path = || select(&PATHS[..]);
    let any_path = || select([&PATHS[..], &IGNORED[..]].concat());
    (0_u8..9, any_path(), path()).prop_map(|(sort, p, q)| match sort {
        0..=2 => format!("mkdir -p \"$(dirname {q})\"; mv {p} {q}"),
        3 => format!("rm -rf {q}; mv {p} {q}"),
        4 => format!("mv {p} {q} && head -c 3000 /dev/zero > {p}"),
        5 => format!("mv {p} {q}; mkfifo {p}"),
        6 => format!("mv -T {p} {q}; mkdir -p {p}; echo {p} > {p}/in"),
        7 => format!("cp -a --remove-destination {p} {q}"),
        _ => format!("ln {p} {q}"),
    })
}

fn act() -> impl Strategy<Value = Act> {
    let path = || select([&PATHS[..], &IGNORED[..3]].concat());
    prop_oneof![
        1 => (path(), any::<u8>()).prop_map(|(p, n)| Act::Create(p, n)),
        1 => path().prop_map(Act::Delete),
        2 => (path(), path()).prop_map(|(p, q)| Act::Move(p, q)),
        3 => writing().prop_map(Act::Command),
        4 => taking().prop_map(Act::Command),
        1 => Just(Act::Ask),
    ]
}

/// The contents of all files that are not empty.
fn contents(picture: &Picture) -> BTreeSet<Vec<u8>> {
    let files = picture.values().filter(|(mode, _)| mode & 0o170_000 == 0o100_000);
    files.map(|(_, bytes)| bytes.clone()).filter(|bytes| !bytes.is_empty()).collect()
}

impl Scene {
    fn person(&self, script: &str) {
        let mut sh = std::process::Command::new("/bin/sh");
        sh.args(["-c", script]).current_dir(self.dir.path().join("w")).output().unwrap();
    }
}

/// Contents whose absence is no loss: those that the turns' own operations wrote again, copies that commands made of
/// ignored files (another turn may remove them), and files that commands took out of an ignored folder (its contents
/// were not scanned, so they count as new).
fn exempt(turns: &[Vec<Act>], first: &Picture) -> BTreeSet<Vec<u8>> {
    let mut exempt = BTreeSet::new();
    let mut copies = false;
    for act in turns.iter().flatten() {
        match act {
            Act::Create(_, n) => drop(exempt.insert(vec![*n; usize::from(*n)])),
            Act::Command(script) => copies |= script.starts_with("cp "),
            _ => {}
        }
    }
    if copies {
        exempt.extend(only_in(first, is_ignored));
    }
    exempt.extend(only_in(first, |path| path.starts_with("out/")));
    exempt
}

fn is_ignored(path: &str) -> bool {
    path.starts_with("out/") || IGNORED.contains(&path)
}

/// The contents that exist only at these paths.
fn only_in(picture: &Picture, places: impl Fn(&str) -> bool) -> BTreeSet<Vec<u8>> {
    let all = |within: bool| {
        let part = picture.iter().filter(|(path, _)| places(path) == within);
        contents(&part.map(|(path, was)| (path.clone(), was.clone())).collect())
    };
    all(true).difference(&all(false)).cloned().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn no_undo_and_no_redo_loses_what_was_there(
        begin in prop::collection::vec(prop_oneof![writing(), taking()], 0..3),
        turns in prop::collection::vec(prop::collection::vec(act(), 1..5), 1..4),
        moved in prop::collection::vec(taking(), 0..2),
        written in prop::collection::vec(writing(), 0..3),
        how in 0_u8..8,
    ) {
        // Half of the cases have a person's changes, half use force, and half undo all turns instead of the last.
        let (force, last_only, alone) = (how & 1 == 1, how & 2 == 2, how & 4 == 4);
        let mut scene = scene();
        scene.sh("echo a > a; mkdir -p d/e out/deep; echo x > d/x; echo y > d/y.log; echo log > x.log; \
            echo ox > out/x; echo od > out/deep/d; ln -s d/x l; printf '/out/\\n*.log\\n' > .gitignore");
        for script in &begin {
            scene.person(script);
        }
        let mut pictures = vec![scene.all()];
        let mut changes = Vec::new();
        for turn in &turns {
            changes.push(scene.carry_out(turn));
            pictures.push(scene.all());
        }
        let first = if last_only { turns.len() - 1 } else { 0 };
        let mut persons: Vec<&String> = moved.iter().chain(&written).collect();
        if alone {
            persons.clear();
        }
        for script in &persons {
            scene.person(script);
        }
        let (before, left, now) = (&pictures[first], &pictures[turns.len()], scene.all());
        let back = reverse(compose(changes.split_off(first)));
        let plan = scene.plan(back, force);
        if !force && !plan.conflicts.is_empty() {
            return Ok(());
        }
        let restored = plan.carry_out(&mut scene.store, &scene.workspace, false).unwrap();
        let after = scene.all();
        // Contents that existed before the turns and before the undo must still exist.
        if !force || alone || moved.is_empty() {
            let mut exempt = exempt(&turns[first..], before);
            // If the person has removed one copy since, the other copies may be removed.
            let changed = left.iter().filter(|(path, was)| now.get(*path) != Some(was));
            exempt.extend(contents(&changed.map(|(p, was)| (p.clone(), was.clone())).collect()));
            // With force, files that commands took from ignored paths are removed. A redo restores them.
            if force {
                exempt.extend(only_in(before, is_ignored));
            }
            let there = contents(&after);
            for content in contents(before).intersection(&contents(&now)) {
                prop_assert!(
                    there.contains(content) || exempt.contains(content),
                    "{:?} is lost: {plan:#?} {restored:?} {now:?} {after:?}",
                    String::from_utf8_lossy(&content[content.len().saturating_sub(9)..])
                );
            }
        }
        // Whatever the person has changed must stay.
        if !force {
            for (path, now) in now.iter().filter(|(path, now)| left.get(*path) != Some(now)) {
                let is_folder = now.0 & 0o170_000 == 0o040_000;
                prop_assert!(is_folder || after.get(path) == Some(now), "{path} is the person's: {plan:#?}");
            }
        }
        // Carrying out the plan again has no effect.
        plan.carry_out(&mut scene.store, &scene.workspace, false).unwrap();
        prop_assert_eq!(scene.all(), after.clone());
        // A redo restores what is missing now.
        let redo = scene.plan(reverse(restored.changes_made(plan.changes, false)), false);
        prop_assert_eq!(&redo.conflicts, &Vec::<String>::new());
        redo.carry_out(&mut scene.store, &scene.workspace, false).unwrap();
        let (redone, after) = (contents(&scene.all()), contents(&after));
        for content in contents(&now) {
            prop_assert!(
                redone.contains(&content) || after.contains(&content),
                "{:?} is gone", String::from_utf8_lossy(&content)
            );
        }
    }
}
