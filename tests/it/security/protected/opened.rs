//! What the person's approval opens, in every tier: protected names for one file operation, and
//! repositories for one command, but for what runs code there.

use std::fs;

use deaddrop::policy::Grant;
use deaddrop::protocol::{
    Change, Detail, Existing, Operation, RelPath, Replacement, ShellCommand, TextOrBytes,
};

use crate::scene::actions::Actions;
use crate::scene::{Asked, Scene, Way};

const CLOSED: Grant = Grant { protected: false, repository: false };
const REPOSITORY: Grant = Grant { protected: false, repository: true };
const FILE: Grant = Grant { protected: true, repository: false };

const COMMIT: &str = "git add -A && git -c user.name=n -c user.email=e commit -qm";

/// A workspace that is a repository with one commit.
fn repository(scene: &Scene) -> bool {
    if !std::process::Command::new("git")
        .arg("--version")
        .output()
        .is_ok_and(|o| o.status.success())
    {
        eprintln!("SKIPPED: there is no git");
        return false;
    }
    scene.base.sh(&format!(
        "chown $(id -u) . workspace; cd workspace; git init -q .; echo a > a; {COMMIT} first"
    ));
    true
}

fn path(text: &str) -> RelPath {
    RelPath::parse(text).unwrap()
}

fn create(at: &str, content: &str) -> Operation {
    Operation::Create {
        path: path(at),
        content: TextOrBytes::from(content),
        existing: Existing::Replace,
    }
}

fn run(command: &str) -> (Operation, Grant) {
    (Operation::Run(ShellCommand::new(command)), CLOSED)
}

#[test]
fn git_writes_to_its_repository_where_that_is_opened() {
    for scene in Scene::confined() {
        if !repository(&scene) {
            return;
        }
        let second = format!("echo b > b; {COMMIT} second");
        let done = scene.perform(Actions::of([
            (&*second, REPOSITORY),
            ("git checkout -q -b side && git tag one && git stash list", REPOSITORY),
            ("git log --oneline | wc -l; git status --short", CLOSED),
        ]));
        assert_eq!(done.succeeded(), [true; 3], "{}: {done:#?}", scene.name());
        assert_eq!(done.told(), [""; 0], "{}", scene.name());
        let said = &done.executions()[2].output.captures()[0].head;
        assert_eq!(said.trim(), "2", "{}", scene.name());
        assert_eq!(scene.base.read("workspace/.git/HEAD"), "ref: refs/heads/side\n");
    }
}

#[test]
fn without_an_opening_it_is_refused_by_the_mounts() {
    for scene in Scene::confined() {
        if !repository(&scene) {
            return;
        }
        scene.base.write("workspace/commit.sh", format!("echo b > b; {COMMIT} x"));
        let commit = format!("echo c > c; {COMMIT} x");
        let done = scene.perform(Actions::of([(&*commit, CLOSED), ("sh commit.sh", CLOSED)]));
        // Landlock cannot keep a folder within one that may be written.
        assert_eq!(done.succeeded(), [scene.is_partial(); 2], "{}: {done:?}", scene.name());
    }
}

#[test]
fn what_runs_code_in_an_opened_repository_is_kept_or_put_away() {
    for scene in Scene::confined() {
        for has_hooks in [true, false] {
            if !repository(&scene) {
                return;
            }
            scene.base.sh("cd workspace/.git; mkdir -p hooks info; echo '*.x' > info/exclude");
            if !has_hooks {
                scene.base.sh("rm -rf workspace/.git/hooks workspace/.git/info");
            }
            let config = scene.base.read("workspace/.git/config");
            let plant = "mkdir -p .git/hooks; printf '#!/bin/sh\\ntouch ran\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; true";
            let (second, third) =
                (format!("echo 2 > b; {COMMIT} x"), format!("echo 3 > b; {COMMIT} x"));
            let done = scene.perform(Actions::of([
                (&*format!("{plant}; {second}; rm -f ran"), REPOSITORY),
                (&*third, REPOSITORY),
                ("git config core.hooksPath evil; echo '[alias]' >> .git/config; rm -f .git/config; mv .git/config x; true", REPOSITORY),
                ("echo ../evil > .git/commondir; mkdir -p .git/info .git/objects/info; echo /tmp > .git/objects/info/alternates; echo x > .git/info/attributes; true", REPOSITORY),
                (&*third.replace('3', "4"), REPOSITORY),
            ]));
            assert_eq!(done.succeeded(), [true; 5], "{}: {done:#?}", scene.name());
            assert!(!scene.base.exists("workspace/ran"), "{}", scene.name());
            assert_eq!(scene.base.read("workspace/.git/config"), config, "{}", scene.name());
            let hooks = scene.base.names("workspace/.git/hooks");
            assert!(hooks.iter().all(|name| name.ends_with(".sample")), "{hooks:?}");
            for gone in ["commondir", "objects/info/alternates", "info/attributes"] {
                assert!(!scene.base.exists(&format!("workspace/.git/{gone}")), "{gone}");
            }
            let planted = done.noticed[0].iter().any(|told| told.text.contains(".git/hooks"));
            // What is there is kept by a mount; what is not can only be put away.
            assert_eq!(planted, scene.is_partial() || !has_hooks, "{}: {done:#?}", scene.name());
            fs::remove_dir_all(scene.base.at("workspace/.git")).unwrap();
            let _ = fs::remove_dir_all(scene.base.at("sessions/quarantine"));
        }
    }
}

/// What `git rebase --continue` would run.
const EVIL: &str = "exec touch ran";
/// The person's git, whoever the workspace was handed over to.
const AS_ONE: &str = "GIT_EDITOR=true git -c safe.directory='*' -c user.name=n -c user.email=e";

#[test]
fn what_a_continued_rebase_would_run_is_put_away() {
    for scene in Scene::confined() {
        if !repository(&scene) {
            return;
        }
        let todo = format!(
            "mkdir -p .git/rebase-merge && cd .git/rebase-merge && echo '{EVIL}' > git-rebase-todo && git rev-parse HEAD | tee onto orig-head && echo refs/heads/main > head-name && touch interactive"
        );
        let done = scene.perform(Actions::of([
            (&*todo, REPOSITORY),
            ("mkdir -p .git/sequencer .git/rebase-apply .git/worktrees/w/rebase-merge", REPOSITORY),
            ("git status", CLOSED),
        ]));
        assert_eq!(done.succeeded(), [true; 3], "{}: {done:#?}", scene.name());
        let told = &done.noticed[0];
        assert_eq!(told.len(), 2, "{}: {done:#?}", scene.name());
        assert!(
            told[0].text.contains("made '.git/rebase-merge', which is protected: it was moved to")
        );
        assert!(told[1].text.contains("`--continue` would run their commands"), "{told:?}");
        assert_eq!(done.noticed[1].len(), 4, "{}: {done:#?}", scene.name());
        assert!(done.noticed[2].is_empty(), "{}", scene.name());
        let said = &done.executions()[2].output.captures()[0].head;
        assert!(!said.contains("rebas"), "{}: {said}", scene.name());
        scene
            .base
            .sh(&format!("cd workspace; ! {AS_ONE} rebase --continue 2>/dev/null; test ! -e ran"));
    }
}

#[test]
fn an_approved_rebase_that_stops_is_put_away_and_one_that_ends_is_not() {
    for scene in Scene::confined() {
        if !repository(&scene) {
            return;
        }
        scene.base.sh(&format!(
            "cd workspace; git branch -m main; git checkout -qb side; echo side > a; {COMMIT} side; git checkout -q main; echo main > a; {COMMIT} main; git checkout -q side"
        ));
        let rebase = format!("{AS_ONE} rebase main");
        let ended =
            format!("{rebase} || {{ echo both > a; git add a; {AS_ONE} rebase --continue; }}");
        let done = scene.perform(Actions::of([
            (&*rebase, REPOSITORY),
            ("git checkout -qf side && git status --short --branch", REPOSITORY),
            (&*ended, REPOSITORY),
            ("git log --format=%s side; git show side:a; git status --short", CLOSED),
        ]));
        assert_eq!(done.succeeded(), [false, true, true, true], "{}: {done:#?}", scene.name());
        let told = &done.noticed[0];
        assert_eq!(told.len(), 2, "{}: {done:#?}", scene.name());
        assert!(told[0].text.contains("'.git/rebase-merge'"), "{told:?}");
        assert!(told[1].text.contains("`--continue` would run their commands outside the sandbox"));
        assert_eq!(done.told().len(), 2, "{}: {done:#?}", scene.name());
        let said = |n: usize| &*done.executions()[n].output.captures()[0].head;
        assert_eq!(said(1), "## side\n", "{}", scene.name());
        assert_eq!(said(3), "side\nmain\nfirst\nboth\n", "{}", scene.name());
    }
}

#[test]
fn a_rebase_of_the_persons_own_stays_as_it_is() {
    for scene in Scene::confined() {
        if !repository(&scene) {
            return;
        }
        scene.base.sh(&format!(
            "cd workspace; echo 2 > a; {COMMIT} two; GIT_SEQUENCE_EDITOR='sed -i s/^pick/edit/' {AS_ONE} rebase -q -i HEAD~1 2>/dev/null"
        ));
        let todo = "workspace/.git/rebase-merge/git-rebase-todo";
        scene.base.write(todo, "exec true\n");
        let plant = format!("echo '{EVIL}' >> .git/rebase-merge/git-rebase-todo");
        let anew = format!("rm -rf .git/rebase-merge; mkdir -p .git/rebase-merge; {plant}");
        let done = scene.perform(Actions::of([
            (&*plant, REPOSITORY),
            (&*anew, REPOSITORY),
            ("echo b > b; git status", REPOSITORY),
        ]));
        let planted = scene.is_partial();
        assert_eq!(done.succeeded(), [planted, planted, true], "{}: {done:#?}", scene.name());
        // Elsewhere the mounts keep it.
        assert_eq!(done.told().is_empty(), !planted, "{}: {done:#?}", scene.name());
        let said = &done.executions()[2].output.captures()[0].head;
        assert!(said.contains("git rebase --continue"), "{}: {said}", scene.name());
        assert_eq!(scene.base.read(todo), "exec true\n", "{}: {done:#?}", scene.name());
        scene.base.sh(&format!("cd workspace; {AS_ONE} rebase --continue; test ! -e ran"));
    }
}

#[test]
fn an_opened_repository_cannot_be_moved_away() {
    for scene in Scene::full() {
        if !repository(&scene) {
            return;
        }
        scene.base.sh("cd workspace/.git; echo /nowhere > objects/info/alternates");
        let done = scene.perform(Actions::of([
            ("mv .git other", REPOSITORY),
            ("mv .git/objects o || mv .git/objects/info i", REPOSITORY),
            ("rm -f .git/objects/info/alternates", REPOSITORY),
        ]));
        assert_eq!(done.succeeded(), [false; 3], "{}: {done:#?}", scene.name());
        assert_eq!(done.told(), [""; 0], "{}", scene.name());
        assert_eq!(scene.base.read("workspace/.git/objects/info/alternates"), "/nowhere\n");
    }
}

#[test]
fn a_new_repository_is_put_away_also_where_git_may_write() {
    for scene in Scene::confined() {
        let done = scene.perform(Actions::of([
            ("git init -q .", REPOSITORY),
            ("mkdir deep && git init -q deep", REPOSITORY),
        ]));
        assert_eq!(done.succeeded(), [true; 2], "{done:#?}");
        assert!(!scene.base.exists("workspace/.git") && !scene.base.exists("workspace/deep/.git"));
        for told in [&done.noticed[0], &done.noticed[2]] {
            assert_eq!(told.len(), 2, "{}: {done:#?}", scene.name());
            assert!(
                told[0].text.contains("which is protected: it was moved to sessions/quarantine")
            );
            assert!(
                told[1].text.contains("git may write to existing repositories only"),
                "{told:?}"
            );
        }
    }
}

#[test]
fn approved_writes_are_no_commands_doing_and_commands_writes_still_are() {
    for scene in Scene::confined() {
        scene.base.sh("cd workspace; mkdir -p .git/hooks lib .idea; echo '[core]' > .git/config; echo a > .envrc; echo a > .idea/old");
        let change = Change::First(vec![Replacement { old: "1".into(), new: "2".into() }]);
        let approved = |operation| (operation, FILE);
        let operations = vec![
            approved(create(".vscode/deep/settings.json", "1\n")),
            approved(Operation::Edit { path: path(".vscode/deep/settings.json"), change }),
            approved(create(".git/hooks/pre-commit", "mine\n")),
            approved(Operation::Delete { path: path(".envrc") }),
            approved(create("lib/.git/config", "[mine]\n")),
            approved(create(".git/description", "what is not compared\n")),
            run("true"),
            run("echo x > new"),
            // Not approved.
            (create(".envrc", "x\n"), CLOSED),
            // It could not be told from what commands do.
            approved(create(".idea/new", "x\n")),
        ];
        let done = scene.perform(Actions { operations, ..Actions::default() });
        assert_eq!(done.told(), [""; 0], "{}: {done:#?}", scene.name());
        let failed = |detail: &Detail| matches!(detail, Detail::Failed(_));
        let fails: Vec<bool> = done.details.iter().map(failed).collect();
        assert_eq!(fails, [[false; 8].as_slice(), &[true; 2]].concat(), "{done:#?}");
        assert_eq!(scene.base.names("workspace/.idea"), ["old"]);
        assert_eq!(scene.base.read("workspace/.vscode/deep/settings.json"), "2\n");
        assert_eq!(scene.base.read("workspace/.git/hooks/pre-commit"), "mine\n");
        assert_eq!(scene.base.read("workspace/lib/.git/config"), "[mine]\n");
        assert!(!scene.base.exists("workspace/.envrc"));
    }
    let Some(scene) = Scene::with(Way::AsItIs, Asked::Partial) else { return };
    let operations = vec![
        (create(".vscode/settings.json", "mine\n"), FILE),
        (create("lib/.git/config", "[mine]\n"), FILE),
        run("true"),
        run("echo evil | tee .vscode/settings.json .vscode/tasks.json lib/.git/config"),
        run("mkdir lib/.git/hooks && echo evil > lib/.git/hooks/x; rm -r .vscode"),
    ];
    let done = scene.perform(Actions { operations, ..Actions::default() });
    assert_eq!(done.noticed[3].len(), 3, "{done:#?}");
    assert_eq!(done.noticed[4].len(), 2, "{done:#?}");
    assert_eq!(scene.base.names("workspace/.vscode"), ["settings.json"]);
    assert_eq!(scene.base.read("workspace/.vscode/settings.json"), "mine\n");
    assert_eq!(scene.base.names("workspace/lib/.git"), ["config"]);
    assert_eq!(scene.base.read("workspace/lib/.git/config"), "[mine]\n");
}

/// Makes the folder a repository whose config runs something.
const BARE: &str = r#"mkdir -p objects refs; echo 'ref: refs/heads/master' > HEAD; printf '[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\tfsmonitor = "touch ran; false"\n' > config; true"#;

#[test]
fn a_repository_that_git_no_longer_knows_is_set_right_and_one_in_its_place_put_away() {
    for scene in Scene::confined() {
        for (breaking, part) in [
            ("rm -f .git/HEAD", "HEAD"),
            ("rm -f .git/HEAD; mkdir .git/HEAD", "HEAD"),
            ("echo x > .git/HEAD", "HEAD"),
            ("chmod 000 .git/HEAD", "HEAD"),
            ("ln -sf ../a .git/HEAD", "HEAD"),
            ("rm -rf .git/refs", "refs"),
            ("rm -rf .git/refs; ln -s nowhere .git/refs", "refs"),
            ("mv .git/objects o; echo x > .git/objects", "objects"),
        ] {
            if !repository(&scene) {
                return;
            }
            let head = scene.base.read("workspace/.git/HEAD");
            scene.base.write("workspace/t.sh", format!("{breaking}; {BARE}"));
            let done = scene.perform(Actions::of([("sh t.sh", REPOSITORY), ("true", CLOSED)]));
            let name = scene.name();
            assert_eq!(done.succeeded(), [true; 2], "{name}: {done:#?}");
            let told = &done.noticed[0];
            assert_eq!(told.len(), 2, "{name}, {breaking}: {done:#?}");
            let place = format!("git recognises the repository by '.git/{part}'");
            assert!(told[0].text.contains(&place), "{name}, {breaking}: {told:?}");
            assert!(
                told[1].text.contains("'HEAD' makes its folder look like a repository"),
                "{told:?}"
            );
            assert!(done.noticed[1].is_empty(), "{name}, {breaking}: {done:#?}");
            assert_eq!(scene.base.read("workspace/.git/HEAD"), head, "{name}, {breaking}");
            assert!(!scene.base.exists("workspace/HEAD"), "{name}, {breaking}");
            scene.base.sh(
                "cd workspace; git -c safe.directory='*' status >/dev/null 2>&1 || true; test ! -e ran; test $(git -c safe.directory='*' rev-parse --git-dir) = .git",
            );
            scene.base.sh("cd workspace; rm -rf .git HEAD objects refs config o t.sh");
            let _ = fs::remove_dir_all(scene.base.at("sessions/quarantine"));
        }
    }
}

#[test]
fn a_head_that_git_moves_stays_where_it_is() {
    for scene in Scene::confined() {
        if !repository(&scene) {
            return;
        }
        let second = format!("echo b > b; {COMMIT} second");
        let third = format!("echo c > c; {COMMIT} third");
        let done = scene.perform(Actions::of([
            (&*second, REPOSITORY),
            ("git checkout -q -b x && git pack-refs --all", REPOSITORY),
            ("git switch -q --detach", REPOSITORY),
            (&*third, REPOSITORY),
            ("git rev-parse HEAD; rm -f .git/HEAD", REPOSITORY),
        ]));
        assert_eq!(done.succeeded(), [true; 5], "{}: {done:#?}", scene.name());
        // What is put back is where the last command found it.
        assert_eq!(done.told().len(), 1, "{}: {done:#?}", scene.name());
        assert_eq!(done.noticed[4].len(), 1, "{}: {done:#?}", scene.name());
        let said = &done.executions()[4].output.captures()[0].head;
        assert_eq!(&scene.base.read("workspace/.git/HEAD"), said, "{}", scene.name());
    }
}

#[test]
fn a_head_that_the_person_agrees_to_delete_is_not_put_back() {
    for scene in Scene::confined() {
        if !repository(&scene) {
            return;
        }
        let operations =
            vec![(Operation::Delete { path: path(".git/HEAD") }, FILE), run("true"), run("true")];
        let done = scene.perform(Actions { operations, ..Actions::default() });
        assert_eq!(done.told(), [""; 0], "{}: {done:#?}", scene.name());
        assert!(!scene.base.exists("workspace/.git/HEAD"), "{}", scene.name());
    }
}
