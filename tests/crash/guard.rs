//! A command that writes where nobody may, stopped with the program at any of its calls: whatever
//! it made is out of the way in the end, and told of, and what it changed is as it was.

use std::fs;

use crate::scene::{Scene, can_trace};
use crate::support::{Project, has_git, has_sandbox};
use crate::verdict::LOST;
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
fn judge(base: &Project, wrong: &mut Vec<String>) -> usize {
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
        scene.must_be_killed(&traced, &point);
        scene.go_on();
        let moved = judge(&scene.base, &mut scene.wrong);
        tally.count("moved", moved);
        tally.add(&format!("{} ({})", point.n, point.what), &scene);
    }
    tally.conclude("kill points of a guarded command");
}

const ASKS: &str = "[RUN_COMMAND]\necho evil > .envrc; mkdir .vscode; echo evil > .vscode/tasks.json\n[/RUN_COMMAND]\n[CREATE_FILE path=\".vscode/settings.json\"]\nmine\n[/CREATE_FILE]\n[RUN_COMMAND]\necho evil > .vscode/settings.json; echo evil > .vscode/tasks.json; echo evil > .bashrc\n[/RUN_COMMAND]\n";
const APPROVED: &str = "{\"type\": \"userMessage\", \"content\": \"approved\"}";

/// A reply that writes under a protected name as the person approves, between two commands that do
/// so as nobody does; it is at the first or the second of its processes.
fn asking(stage: usize) -> Scene {
    let mut scene = Scene::new();
    scene.base.write("deaddrop.toml", "sandbox = \"partial\"\n");
    scene.base.write("workspace/.envrc", "mine\n");
    scene.base.write("inbox/r.txt", ASKS);
    if stage > 0 {
        scene.go_on();
        scene.base.write("approvals/yes.json", APPROVED);
    }
    scene
}

/// What is not as it must be in the middle, and at the end.
fn judge_asking(scene: &mut Scene, stage: usize) -> usize {
    let base = &scene.base;
    let mut wrong = Vec::new();
    let text = |name: &str| fs::read_to_string(base.at("workspace").join(name)).ok();
    let settings = (stage > 0).then(|| "mine\n".to_owned());
    for (name, expected) in [
        (".envrc", Some("mine\n".to_owned())),
        (".vscode/settings.json", settings),
        (".vscode/tasks.json", None),
        (".bashrc", None),
    ] {
        if text(name) != expected {
            wrong.push(format!("in stage {stage} {name} is {:?}", text(name)));
        }
    }
    let moved = base.names(QUARANTINE);
    if stage > 0 {
        let outbox = base.outbox(2);
        for name in &moved {
            let told = format!("{QUARANTINE}/{name}");
            if ["\n", ";"].iter().all(|end| !outbox.contains(&format!("{told}{end}"))) {
                wrong.push(format!("nothing is told of {name}"));
            }
        }
        if base.names("approvals/processed") != ["yes.json"] || base.names("approvals").len() != 2 {
            wrong.push(format!("the approvals are {:?}", base.names("approvals/processed")));
        }
    }
    for name in [".envrc", ".vscode", "settings.json", "tasks.json", ".bashrc"] {
        let found = moved.iter().filter(|moved| moved.ends_with(&format!("_{name}"))).count();
        if found > 1 {
            wrong.push(format!("{name} was moved {found} times"));
        }
    }
    let moved = moved.len();
    scene.wrong.append(&mut wrong);
    moved
}

#[test]
fn an_approved_write_stays_and_what_commands_wrote_beside_it_does_not() {
    if !can_trace() || !has_sandbox("partial") {
        return;
    }
    let mut tally = Tally::default();
    for stage in 0..2 {
        let mut undisturbed = asking(stage);
        let trace = undisturbed.go_on_traced();
        let points = trace::points(&trace::read(&trace), undisturbed.base.path());
        let moved = judge_asking(&mut undisturbed, stage);
        tally.add("undisturbed", &undisturbed);
        assert_eq!(moved, [2, 5][stage], "{:?}", undisturbed.wrong);
        if !points.iter().any(|point| point.what.contains(QUARANTINE)) {
            eprintln!("SKIPPED: strace does not see the paths of open files; it may as root");
            return;
        }
        for point in sample(&trace::own(points, stage == 0), 19) {
            let mut scene = asking(stage);
            let kill = format!("{}:signal=KILL:when={}", point.name, point.n);
            let traced = scene.disturb(&kill);
            tally.count("killed", usize::from(traced.killed));
            scene.must_be_killed(&traced, &point);
            scene.go_on();
            let moved = judge_asking(&mut scene, stage);
            tally.count("moved", moved);
            if stage == 0 {
                scene.base.write("approvals/yes.json", APPROVED);
                scene.go_on();
                judge_asking(&mut scene, 1);
            }
            tally.add(&format!("stage {stage}, {} ({})", point.n, point.what), &scene);
        }
    }
    tally.conclude("kill points of an approved write");
}

const COMMITS: &str = "[RUN_COMMAND]\necho a > a; git add a && git -c user.name=x -c user.email=x commit -qm one\n[/RUN_COMMAND]\n[RUN_COMMAND]\ngit log --oneline; echo evil > .git/hooks/pre-commit\n[/RUN_COMMAND]\n";

/// A reply that waits with a commit to the workspace's repository, approved and not begun.
fn committing() -> Scene {
    let mut scene = Scene::new();
    scene
        .base
        .sh("git init -q workspace && rm -rf workspace/.git/hooks && mkdir workspace/.git/hooks");
    scene.base.write("inbox/r.txt", COMMITS);
    scene.go_on();
    scene.base.write("approvals/yes.json", APPROVED);
    scene
}

/// How many commits there are, of those that are told.
fn judge_commits(scene: &mut Scene) -> usize {
    let base = &scene.base;
    let mut wrong = Vec::new();
    let log = base.at("workspace/.git/logs/HEAD");
    let commits = fs::read_to_string(log).unwrap_or_default().lines().count();
    let outbox = base.outbox(2);
    let is = |line: &&str| line.starts_with('[') && line.contains("RUN_COMMAND: Ran 'echo a");
    let told: Vec<&str> = outbox.lines().filter(is).collect();
    match told.as_slice() {
        [told] if told.contains("(exit code 0)") && commits == 1 => {}
        [told] if told.contains(LOST) && commits < 2 && scene.stops > 0 => {}
        told => wrong.push(format!("{commits} commits, and told {told:?}")),
    }
    if base.names("workspace/.git/hooks") != [""; 0] {
        wrong.push(format!("there are {:?}", base.names("workspace/.git/hooks")));
    }
    scene.wrong.append(&mut wrong);
    commits
}

#[test]
fn an_approved_commit_is_made_once_or_told_as_interrupted() {
    if !can_trace() || !has_sandbox("auto") || !has_git() {
        return;
    }
    let mut undisturbed = committing();
    let trace = undisturbed.go_on_traced();
    let points = trace::points(&trace::read(&trace), undisturbed.base.path());
    let mut tally = Tally::default();
    assert_eq!(judge_commits(&mut undisturbed), 1, "{:?}", undisturbed.wrong);
    tally.add("undisturbed", &undisturbed);
    for point in sample(&trace::own(points, false), 23) {
        let mut scene = committing();
        let kill = format!("{}:signal=KILL:when={}", point.name, point.n);
        let traced = scene.disturb(&kill);
        tally.count("killed", usize::from(traced.killed));
        scene.must_be_killed(&traced, &point);
        scene.go_on();
        let commits = judge_commits(&mut scene);
        tally.count("commits", commits);
        tally.add(&format!("{} ({})", point.n, point.what), &scene);
    }
    tally.conclude("kill points of an approved commit");
}
