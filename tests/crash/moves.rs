//! A reply that moves files and folders, stopped hard at its system calls: each is moved once, and
//! told as if nothing had happened.

use std::fs;

use crate::scene::{Scene, can_trace};
use crate::support::ID;
use crate::{Tally, sample};

const REPLY: &str = "[MOVE_FILE path=\"a.txt\" to=\"new/deep/a.txt\"]\n\
    [MOVE_FILE path=\"old\" to=\"new/old\"]\n\
    [MOVE_FILE path=\"link\" to=\"old\"]\n\
    [CREATE_FILE path=\"a.txt\"]\nanother\n[/CREATE_FILE]\n\
    [MOVE_FILE path=\"new/old/x\" to=\"link\"]\n";

/// A scene whose inbox holds the reply.
fn scene() -> Scene {
    let scene = Scene::new();
    scene.base.sh("cd workspace && echo a > a.txt && mkdir old && echo x > old/x && echo y > old/y && ln -s a.txt link");
    let path = scene.base.write("moves.part", REPLY);
    fs::rename(path, scene.base.at("inbox/moves.txt")).unwrap();
    scene
}

/// What there is to be seen at the end.
fn seen(scene: &Scene) -> (String, Vec<(String, Vec<u8>)>) {
    let outbox = scene.base.read(&format!("outbox/{ID}_seq0002.txt"));
    let link = fs::read_link(scene.base.at("workspace/old")).unwrap_or_default();
    let mut files = scene.files("workspace");
    files.insert("old".to_owned(), link.to_string_lossy().into_owned().into_bytes());
    (outbox, files.into_iter().collect())
}

#[test]
fn killed_at_any_call_each_is_moved_once() {
    if !can_trace() {
        return;
    }
    let mut undisturbed = scene();
    let Some(points) = undisturbed.points() else { return };
    let expected = seen(&undisturbed);
    assert!(undisturbed.wrong.is_empty(), "{:#?}", undisturbed.wrong);
    assert_eq!(expected.0.matches("\n[OK] MOVE_FILE: Moved ").count(), 4, "{}", expected.0);
    assert!(points.iter().any(|point| point.name == "renameat2"), "{points:#?}");
    let mut tally = Tally::default();
    let (of_moves, others): (Vec<_>, Vec<_>) =
        points.into_iter().partition(|point| point.name == "renameat2");
    for point in of_moves.into_iter().chain(sample(&others, 8)) {
        let mut scene = scene();
        let traced = scene.disturb(&format!("{}:signal=KILL:when={}", point.name, point.n));
        tally.count("killed", usize::from(traced.killed));
        scene.must_be_killed(&traced, &point);
        scene.go_on();
        if seen(&scene) != expected {
            scene.wrong.push(format!("it came to something else: {:#?}", seen(&scene)));
        }
        tally.add(&format!("{} ({})", point.n, point.what), &scene);
    }
    tally.conclude("kill points of moves");
}
