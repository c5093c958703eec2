//! Any turns, with what cannot be kept and what is ignored, and any person beside them: no undo and no redo
//! loses what was there.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::sample::select;

use super::property::Act;
use super::tests::{Scene, scene};
use super::*;

/// Where things happen: some of these are folders at times.
const PATHS: [&str; 7] = ["a", "b", "d", "d/x", "d/e", "n/m/z", "l"];
/// What is left out by rules, of which commands take as well.
const IGNORED: [&str; 5] = ["x.log", "d/y.log", "out/x", "out/deep", "out"];

type Picture = BTreeMap<String, (u32, Vec<u8>)>;

/// What changes files without taking from others. Who writes to a pipe would wait for a reader.
fn writing() -> impl Strategy<Value = String> {
    let path = || select([&PATHS[..], &IGNORED[..3]].concat());
    (0_u8..8, path(), any::<u8>()).prop_map(|(sort, p, n)| match sort {
        0 | 1 => format!("mkdir -p \"$(dirname {p})\"; [ -p {p} ] || echo {n} > {p}"),
        // Too large to be kept.
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

/// What takes from others.
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

/// All contents of files that have one.
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

/// Contents that are no sign of loss: what the turns' own operations wrote once more, what commands have copied from
/// what is ignored, which may go by another turn, and what they took out of an ignored folder, which nobody looked
/// into: it counts as new.
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

/// The contents that stand only in these places.
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
        // A person beside it in half of the cases, force in half, all turns or the last.
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
        // What was there before the turns and before the undo is there.
        if !force || alone || moved.is_empty() {
            let mut exempt = exempt(&turns[first..], before);
            // Of what the person themselves has removed since a copy may go.
            let changed = left.iter().filter(|(path, was)| now.get(*path) != Some(was));
            exempt.extend(contents(&changed.map(|(p, was)| (p.clone(), was.clone())).collect()));
            // What commands brought from there goes by force, and comes back by a redo.
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
        // What the person made of something stays.
        if !force {
            for (path, now) in now.iter().filter(|(path, now)| left.get(*path) != Some(now)) {
                let is_folder = now.0 & 0o170_000 == 0o040_000;
                prop_assert!(is_folder || after.get(path) == Some(now), "{path} is the person's: {plan:#?}");
            }
        }
        // Once more does nothing.
        plan.carry_out(&mut scene.store, &scene.workspace, false).unwrap();
        prop_assert_eq!(scene.all(), after.clone());
        // What is not there any more comes back.
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
