//! What a person changes between a hard stop within a turn and the next start: an undo of that turn does not take it
//! back unasked. Where commands ran before the stop, nobody knows who changed what, so all of it needs force.

use std::fs;

use crate::scene::{Scene, can_trace};
use crate::support::{ID, Project, wait_until};
use crate::trace::{self, Point};

/// An undo that is refused since these were changed, in the order of paths.
#[track_caller]
fn refused(base: &Project, paths: &[&str]) {
    let undo = base.run(&["undo"]).with_code(1);
    let names: Vec<String> = paths.iter().map(|path| format!("'{path}'")).collect();
    let told = format!("nothing was touched: {}. `--force`", names.join(", "));
    assert!(undo.stderr.contains(&told), "{told}: {}", undo.stderr);
    assert!(undo.stderr.contains("deaddrop was stopped hard in turn 1"), "{}", undo.stderr);
}

#[test]
fn what_the_person_does_after_a_stop_within_a_command_is_not_undone_unasked() {
    let base = Project::with_session();
    base.write("workspace/essay", "draft\n");
    base.write("workspace/old", "old\n");
    let mut daemon = base.serve(&["watch"]);
    let reply = "[CREATE_FILE path=\"a\"]\nv1\n[/CREATE_FILE]\n[CREATE_FILE path=\"b\"]\nb\n[/CREATE_FILE]\n\
        [RUN_COMMAND]\nsleep 0.05; echo $$ > pid; sleep 100\n[/RUN_COMMAND]\n";
    let part = base.write("r.part", reply);
    fs::rename(part, base.at("inbox/r.txt")).unwrap();
    // Its `pid` is later than the journal's last record by more than a tick of the clock of files.
    wait_until("the command", || base.exists("workspace/pid"));
    daemon.signal("KILL");
    daemon.wait();
    base.next_tick();
    base.write("workspace/essay", "final\n");
    base.write("workspace/a", "mine\n");
    base.write("workspace/notes", "mine\n");
    fs::create_dir(base.at("workspace/kept")).unwrap();
    fs::rename(base.at("workspace/old"), base.at("workspace/kept/old")).unwrap();
    base.run(&["resume", "--no-watch"]).ok();
    // What the command did before the stop can be told from none of it.
    refused(&base, &["a", "essay", "kept", "kept/old", "notes", "old", "pid"]);
    assert_eq!(base.names("workspace"), ["a", "b", "essay", "kept", "notes", "pid"]);
    assert_eq!(base.read("workspace/essay"), "final\n");
    base.run(&["undo", "--force"]).ok();
    assert_eq!(base.names("workspace"), ["essay", "old"]);
    assert_eq!(base.read("workspace/essay"), "draft\n");
    base.run(&["redo"]).ok();
    assert_eq!(base.names("workspace"), ["a", "b", "essay", "kept", "notes", "pid"]);
    assert_eq!(base.read("workspace/a") + &base.read("workspace/essay"), "mine\nfinal\n");
}

/// A scene whose turn was cut off at this point of an undisturbed one. What is changed in it from now on has
/// a later time than what the program wrote.
fn cut_off(reply: &str, at: impl Fn(&[Point]) -> Option<&Point>) -> Option<Scene> {
    if !can_trace() {
        return None;
    }
    let scene = || {
        let scene = Scene::new();
        scene.base.write("workspace/essay", "draft\n");
        let part = scene.base.write("r.part", reply);
        fs::rename(part, scene.base.at("inbox/r.txt")).unwrap();
        scene
    };
    let mut undisturbed = scene();
    let trace = undisturbed.go_on_traced();
    let points = trace::points(&trace::read(&trace), undisturbed.base.path());
    if !trace::sees_paths(&points) {
        return None;
    }
    let point = at(&points).unwrap_or_else(|| panic!("{points:#?}")).clone();
    // A slow machine may make a call more before it.
    for _ in 0..5 {
        let mut scene = scene();
        let traced = scene.disturb(&format!("{}:signal=KILL:when={}", point.name, point.n));
        if traced.killed && !scene.base.exists(&format!("outbox/{ID}_seq0002.txt")) {
            scene.base.next_tick();
            return Some(scene);
        }
    }
    panic!("it is never cut off at {point:?}");
}

#[test]
fn what_operations_left_before_a_stop_is_theirs_and_what_came_after_it_the_persons() {
    let reply = "[CREATE_FILE path=\"n/a\"]\nv1\n[/CREATE_FILE]\n[CREATE_FILE path=\"b\"]\nv1\n[/CREATE_FILE]\n\
        [MOVE_FILE path=\"essay\" to=\"m/essay\"]\n";
    let renames = |n: usize| {
        move |points: &[Point]| -> Option<usize> {
            let is_one = |p: &Point| p.name.starts_with("rename") && p.what.contains("/workspace/");
            points.iter().enumerate().filter(|(_, p)| is_one(p)).map(|(at, _)| at).nth(n)
        }
    };
    for n in [1, 2] {
        // Nobody has changed anything.
        let at = |points: &[Point]| renames(n)(points);
        let Some(mut scene) = cut_off(reply, |points| at(points).map(|at| &points[at])) else {
            return;
        };
        scene.go_on();
        assert_eq!(scene.base.names("workspace"), ["b", "m", "n"]);
        scene.base.run(&["undo"]).ok();
        assert_eq!(scene.base.names("workspace"), ["essay"], "{n}");

        let Some(mut scene) = cut_off(reply, |points| at(points).map(|at| &points[at])) else {
            return;
        };
        scene.base.write("workspace/n/a", "mine\n");
        scene.base.write("workspace/b", "mine, too\n");
        scene.go_on();
        refused(&scene.base, &["b", "n/a"]);
        assert_eq!(scene.base.read("workspace/n/a"), "mine\n");
        assert_eq!(scene.base.read("workspace/b"), "mine, too\n");
    }
}

#[test]
fn what_commands_did_before_a_stop_after_them_goes_back_by_force() {
    let reply = "[RUN_COMMAND]\necho v1 > made; echo more >> essay; mkdir d; echo x > d/x\n[/RUN_COMMAND]\n\
        [CREATE_FILE path=\"a\"]\nv1\n[/CREATE_FILE]\n";
    let at_the_outbox =
        |points: &[Point]| points.iter().position(|point| point.what.contains("/outbox/"));
    let cut_off = || cut_off(reply, |points| at_the_outbox(points).map(|at| &points[at]));
    let Some(mut scene) = cut_off() else { return };
    scene.base.write("workspace/notes", "mine\n");
    scene.base.write("workspace/d/x", "mine\n");
    scene.go_on();
    let theirs = ["d", "d/x", "essay", "made", "notes"];
    refused(&scene.base, &theirs);
    scene.base.run(&["undo", "--force"]).ok();
    assert_eq!(scene.base.names("workspace"), ["essay"]);
    assert_eq!(scene.base.read("workspace/essay"), "draft\n");
    scene.base.run(&["redo"]).ok();
    assert_eq!(scene.base.read("workspace/notes"), "mine\n");
    // Nor does a stop within the next start make them the turn's.
    let Some(mut other) = cut_off() else { return };
    other.base.write("workspace/notes", "mine\n");
    let points = trace::points(&trace::read(&other.go_on_traced()), other.base.path());
    let point = points[at_the_outbox(&points).unwrap()].clone();
    let Some(mut scene) = cut_off() else { return };
    scene.base.write("workspace/notes", "mine\n");
    let traced = scene.disturb(&format!("{}:signal=KILL:when={}", point.name, point.n));
    assert!(traced.killed, "{:?}", traced.run);
    scene.base.next_tick();
    scene.base.write("workspace/a", "mine\n");
    scene.go_on();
    refused(&scene.base, &["a", "d", "d/x", "essay", "made", "notes"]);
}
