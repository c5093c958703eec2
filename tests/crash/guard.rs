//! A command that writes where nobody may, stopped with the program at any of its calls: whatever
//! it made is out of the way in the end, and told of, and what it changed is as it was.

use std::fs;

use crate::scene::{Scene, can_trace};
use crate::support::{Base, has_sandbox};
use crate::{Tally, sample, trace};

const REPLY: &str = "[RUN_COMMAND]\necho evil > .git/hooks/pre-commit; echo evil > .envrc; mkdir -p new/.git .vscode; rm .bashrc\n[/RUN_COMMAND]\n[RUN_COMMAND]\nmkdir .idea\n[/RUN_COMMAND]\n";
const QUARANTINE: &str = "sessions/quarantine/a1b2c3d4_seq0001";

fn scene() -> Scene {
    let scene = Scene::new();
    // Where the guard is all that keeps commands from protected names.
    scene.base.write("deaddrop.toml", "sandbox = \"partial\"\n");
    for (name, text) in [
        (".git/config", "[core]\n"),
        (".git/hooks/pre-push", "mine\n"),
        (".envrc", "mine\n"),
        (".bashrc", "mine\n"),
    ] {
        scene.base.write(&format!("workspace/{name}"), text);
    }
    scene.base.write("inbox/r.txt", REPLY);
    scene
}

/// What is not as it must be after the turn.
fn judge(base: &Base, wrong: &mut Vec<String>) -> usize {
    for (folder, expected) in [
        ("workspace/.git/hooks", &["pre-push"][..]),
        ("workspace", &[".bashrc", ".envrc", ".git", "new"]),
        ("workspace/new", &[]),
    ] {
        let mut found = base.names(folder);
        // Where the command was stopped before it began, there is no such folder.
        found.retain(|name| name != "new");
        if !expected.iter().filter(|name| **name != "new").eq(&found) {
            wrong.push(format!("{folder} holds {found:?}"));
        }
    }
    for name in [".envrc", ".bashrc"] {
        let text = fs::read_to_string(base.at("workspace").join(name)).unwrap_or_default();
        if text != "mine\n" {
            wrong.push(format!("{name} is {text:?}"));
        }
    }
    let outbox = base.outbox(2);
    let moved = base.names(QUARANTINE);
    for name in &moved {
        if !outbox.contains(&format!("{QUARANTINE}/{name}\n"))
            && !outbox.contains(&format!("{QUARANTINE}/{name};"))
        {
            wrong.push(format!("nothing is told of {name}"));
        }
    }
    for name in ["pre-commit", ".envrc", ".git", ".vscode", ".idea"] {
        let found = moved.iter().filter(|moved| moved.ends_with(&format!("_{name}"))).count();
        if found > 1 {
            wrong.push(format!("{name} was moved {found} times"));
        }
    }
    moved.len()
}

#[test]
fn what_a_command_may_not_write_is_set_right_wherever_it_is_killed() {
    if !can_trace() || !has_sandbox("partial") {
        return;
    }
    let mut undisturbed = scene();
    let trace = undisturbed.go_on_traced();
    let points = trace::points(&trace::read(&trace), undisturbed.base.path());
    let mut tally = Tally::default();
    let moved = judge(&undisturbed.base, &mut undisturbed.wrong);
    tally.add("undisturbed", &undisturbed);
    assert_eq!(moved, 5, "{:?}", undisturbed.wrong);
    if !points.iter().any(|point| point.what.contains(QUARANTINE)) {
        eprintln!("SKIPPED: strace does not see the paths of open files; it may as root");
        return;
    }
    for point in sample(&points, 5) {
        let mut scene = scene();
        let traced = scene.disturb(&format!("{}:signal=KILL:when={}", point.name, point.n));
        tally.count("killed", usize::from(traced.killed));
        scene.go_on();
        let moved = judge(&scene.base, &mut scene.wrong);
        tally.count("moved", moved);
        tally.add(&format!("{} ({})", point.n, point.what), &scene);
    }
    tally.conclude("kill points of a guarded command");
}
