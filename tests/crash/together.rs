//! A reply that changes many files, which is done together: stopped hard at its system calls, each change is
//! made once and told as if nothing had happened; and the disk is waited for a few times.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use crate::scene::{Scene, can_trace};
use crate::support::ID;
use crate::support::wrapper::wrap;
use crate::trace::{self, Act};
use crate::{Tally, order, sample};

/// As many syncs as a start, a reply with twenty edits, and an orderly end may take.
const SYNCS: usize = 30;

/// A scene with twenty files whose inbox holds this reply.
fn scene(reply: &str) -> Scene {
    let scene = Scene::new();
    for n in 1..=20 {
        scene.base.write(&format!("workspace/f{n}"), format!("one\n{n}\nthree\n"));
    }
    fs::rename(scene.base.write("r.part", reply), scene.base.at("inbox/r.txt")).unwrap();
    scene
}

fn edit(file: &str, line: usize, new: &str) -> String {
    format!(
        "[EDIT_FILE path=\"{file}\" start_line=\"{line}\" end_line=\"{line}\"]\n{new}\n[/EDIT_FILE]\n"
    )
}

fn create(file: &str) -> String {
    format!("[CREATE_FILE path=\"{file}\"]\nnew\n[/CREATE_FILE]\n")
}

/// The outbox that follows, and all files.
fn seen(scene: &Scene) -> (String, BTreeMap<String, Vec<u8>>) {
    (scene.base.read(&format!("outbox/{ID}_seq0002.txt")), scene.files("workspace"))
}

#[test]
fn twenty_edits_wait_for_the_disk_a_few_times() {
    if !can_trace() {
        return;
    }
    let edits: String = (1..=20).map(|n| edit(&format!("f{n}"), 2, &format!("new {n}"))).collect();
    let mut scene = scene(&edits);
    let calls = trace::read(&scene.go_on_traced());
    let syncs = calls.iter().filter(|call| matches!(call.act, Act::Sync(_) | Act::SyncAll));
    let syncs = syncs.count();
    eprintln!("twenty edits: {syncs} syncs");
    assert!(syncs <= SYNCS, "{syncs}");
    let (outbox, files) = seen(&scene);
    assert_eq!(outbox.matches("\n[OK] EDIT_FILE").count(), 20, "{outbox}");
    let expected = |n: usize| (format!("f{n}"), format!("one\nnew {n}\nthree\n").into_bytes());
    assert_eq!(files, (1..=20).map(expected).collect());
    let base = scene.base.path().to_string_lossy().into_owned();
    let mut counts = BTreeMap::new();
    scene.wrong.extend(order::check(&calls, &base, &mut counts));
    assert!(scene.wrong.is_empty(), "{:#?}", scene.wrong);
    assert!(counts["effects"] >= 40, "{counts:?}");
}

#[test]
fn many_files_need_few_that_are_open() {
    let create = |n: usize| create(&format!("d{n}/f"));
    let scene = scene(&(1..=300).map(create).collect::<String>());
    let mut few = Command::new("sh");
    few.args(["-c", "ulimit -n 200; exec \"$@\"", "sh"]);
    wrap(&mut few, &scene.command());
    let output = few.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(seen(&scene).0.matches("\n[OK] CREATE_FILE").count(), 300, "{output:?}");
}

#[test]
fn killed_at_any_call_each_change_is_made_once() {
    if !can_trace() {
        return;
    }
    // The second edit of f1, and what lies below another new file, cannot be done with what comes before it.
    let reply = [
        edit("f1", 1, "new"),
        edit("f2", 1, "new"),
        create("new/deep/a"),
        create("new/b"),
        create("f3"),
        "[DELETE_FILE path=\"f4\"]\n".to_owned(),
        "[DELETE_FILE path=\"f0\"]\n".to_owned(),
        edit("f5", 1, "new"),
        edit("f1", 2, "newer"),
        create("c"),
        create("c/d"),
        "[DELETE_FILE path=\"f2\"]\n".to_owned(),
        create("f2"),
    ]
    .concat();
    let mut undisturbed = scene(&reply);
    let Some(points) = undisturbed.points() else { return };
    let expected = seen(&undisturbed);
    assert!(undisturbed.wrong.is_empty(), "{:#?}", undisturbed.wrong);
    let count = |what: &str| expected.0.matches(what).count();
    assert_eq!((count("\n[OK] "), count("\n[FAILED] ")), (11, 2), "{}", expected.0);
    assert_eq!(expected.1["f1"], b"new\nnewer\nthree\n");
    let mut tally = Tally::default();
    tally.side_by_side(&sample(&points, 6), |_, point, tally| {
        let mut scene = scene(&reply);
        let traced = scene.disturb(&format!("{}:signal=KILL:when={}", point.name, point.n));
        tally.count("killed", usize::from(traced.killed));
        scene.must_be_killed(&traced, point);
        scene.go_on();
        if seen(&scene) != expected {
            scene.wrong.push(format!("it came to something else: {:#?}", seen(&scene)));
        }
        tally.add(&format!("{} ({})", point.n, point.what), &scene);
    });
    tally.conclude("kill points of changes made together");
}
