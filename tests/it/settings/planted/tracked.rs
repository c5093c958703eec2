//! What a pull puts into deaddrop's own folders of a project that is in use: it counts once the person has
//! looked at it, and what another pull brings does not.

use super::{as_json, is_refused};
use crate::support::Project;

const REPLY: &str = "[CREATE_FILE path=\"pulled\"]\nx\n[/CREATE_FILE]\n";
/// A git without settings of this machine's, for somebody.
const GIT: &str =
    "git() { GIT_CONFIG_GLOBAL=/dev/null command git -c user.name=x -c user.email=x \"$@\"; };";

/// A project in use, `project`, of a repository in which somebody else is at work, `other`.
fn shared() -> Project {
    let base = Project::that_nobody_agrees_to();
    base.sh(&format!(
        "{GIT} git init -q -b main other; cd other; echo x > a; git add a; git commit -qm a; cd ..; git clone -q other project"
    ));
    base.run(&["init", "project"]).ok();
    base.run(&["-C", "project", "new", "--no-watch", "A task"]).ok();
    base
}

/// Has somebody else do something, and the person pull it.
fn pull(base: &Project, script: &str) {
    base.sh(&format!(
        "{GIT} cd other; {script}; git add -fA; git commit -qm x; cd ../project; git pull -q --ff-only"
    ));
}

#[test]
fn what_a_pull_brings_is_not_taken_up_unless_the_person_agrees() {
    let base = shared();
    let there = |arguments: &[&str]| base.run(&[&["-C", "project", "--json"], arguments].concat());
    pull(&base, &format!("mkdir -p .deaddrop/inbox; echo '{REPLY}' > .deaddrop/inbox/r.txt"));
    for arguments in [&["resume", "--no-watch"][..], &["watch"], &["apply", "-"], &["status"]] {
        let told = is_refused(there(arguments), &["tracked by git"]);
        assert!(told.contains("tracked by git = .deaddrop/inbox/r.txt:"), "{told}");
    }
    assert!(base.exists("project/.deaddrop/inbox/r.txt") && !base.exists("project/pulled"));

    // It is none of the settings, and stands after them all.
    let row = |arguments: &[&str]| {
        let show =
            base.run(&[&["-C", "project", "config", "show"], arguments].concat()).ok().stdout;
        show.lines().last().unwrap_or_default().to_owned()
    };
    let told = row(&["--changed"]);
    assert!(told.starts_with("tracked by git "), "{told}");
    assert!(told.contains(" = \".deaddrop/inbox/r.txt\"  ("), "{told}");
    assert!(told.ends_with(", needs consent)"), "{told}");
    let json: serde_json::Value = serde_json::from_str(&row(&["--json"])).unwrap();
    assert!(json["source"] == "folder" && json["allowed"] == false, "{json}");

    let shown = base.run(&["-C", "project", "config", "allow"]).ok();
    assert!(shown.stdout.contains("tracked by git = .deaddrop/inbox/r.txt"), "{shown:?}");
    let told = row(&[]);
    assert!(told.starts_with("tracked by git ") && !told.contains("not allowed"), "{told}");
    there(&["status"]).ok();
    pull(&base, "echo >> .deaddrop/inbox/r.txt");
    is_refused(there(&["status"]), &["tracked by git"]);
    pull(&base, "git rm -q .deaddrop/inbox/r.txt");
    there(&["status"]).ok();
}

#[test]
fn what_keeps_a_folder_may_be_pulled_and_no_link_of_that_name() {
    let base = shared();
    let sessions = || base.run(&["-C", "project", "status", "--json"]);
    pull(&base, "mkdir -p .deaddrop/approvals; touch .deaddrop/approvals/.gitkeep");
    sessions().ok();
    pull(&base, "ln -s /etc .deaddrop/approvals/.keep");
    let told = is_refused(sessions(), &["tracked by git"]);
    assert!(told.contains(".deaddrop/approvals/.keep"), "{told}");
}

#[test]
fn all_are_named_and_nothing_of_the_repositorys_settings_is_started() {
    let base = shared();
    base.sh(
        "cd project; printf '#!/bin/sh\\ntouch started\\n' > hook; chmod +x hook; command git config core.fsmonitor ./hook",
    );
    pull(
        &base,
        "mkdir .deaddrop; cd .deaddrop; mkdir outbox; touch outbox/1 outbox/2 outbox/3 outbox/4 outbox/5; cd ..",
    );
    // A git that is not kept from it starts it.
    base.sh("rm project/started");
    let told = is_refused(base.run(&["--json", "-C", "project", "status"]), &["tracked by git"]);
    assert!(told.contains(".deaddrop/outbox/1, ") && told.contains("/outbox/5: "), "{told}");
    assert!(!base.exists("project/started"));
}

#[test]
fn a_submodule_in_its_place_is_tracked_and_a_repository_without_a_folder_is_none() {
    let base = shared();
    pull(
        &base,
        "git init -q -b main ../sub; mkdir ../sub/inbox; touch ../sub/inbox/x; git -C ../sub add inbox; git -C ../sub commit -qm x; git -c protocol.file.allow=always submodule add -q ../sub .deaddrop",
    );
    // git does not put it over what is there; who clones both has it.
    base.run(&["-C", "project", "status"]).ok();
    base.sh(&format!(
        "{GIT} git -c protocol.file.allow=always clone -q --recurse-submodules other both"
    ));
    let new = ["-C", "both", "new", "--no-watch", "A task"];
    assert!(base.exists("both/.deaddrop/inbox/x"));
    base.sh("cp project/deaddrop.toml both");
    let told = is_refused(base.run(&as_json(&new)), &["tracked by git", "found here"]);
    assert!(told.contains("tracked by git = .deaddrop/inbox/x: "), "{told}");

    // A repository that is made of another's files names programs, and a place for its rules.
    let base = Project::that_nobody_agrees_to();
    base.sh(&format!(
        "{GIT} git init -q -b main c; cd c; git init -q --bare sub; touch ../rules; \
         printf '#!/bin/sh\\ntouch started\\n' > sub/hook; chmod +x sub/hook; rm -r sub/info; mkdir sub/info; ln -s ../../../rules sub/info/exclude; \
         printf '[core]\\nrepositoryformatversion = 0\\nbare = false\\nworktree = .\\nfsmonitor = ./hook\\n' > sub/config"
    ));
    base.run(&["init", "c/sub"]).with_code(2);
    base.run(&["-C", "c/sub", "new", "--no-watch", "A task"]).with_code(2);
    base.sh("test ! -e c/sub/started; test ! -e started; test ! -s rules");
    // Nor is one taken for a rule of a repository's own that a link leads to.
    base.sh(&format!("{GIT} git init -q d; rm -r d/.git/info; mkdir d/.git/info; ln -s ../../../rules d/.git/info/exclude"));
    let told = base.run(&["init", "d"]).ok();
    base.sh("test ! -s rules");
    let told = told.stdout + &told.stderr;
    assert!(told.contains("info/exclude") && told.contains("is a link"), "{told}");
}

#[test]
fn what_looks_like_a_repository_hides_nothing_and_one_that_git_cannot_read_is_told() {
    let base = Project::that_nobody_agrees_to();
    let look_alike = "mkdir -p p/objects p/refs; touch p/objects/.keep p/refs/.keep; echo 'ref: refs/heads/main' > p/HEAD";
    base.sh(&format!(
        "{GIT} git init -q -b main other; cd other; {look_alike}; echo 'max_tokens = 9000' > p/deaddrop.toml; git add -A; git commit -qm a; cd ..; git clone -q other project"
    ));
    base.run(&["-C", "project/p", "new", "--no-watch", "A task"]).ok();
    let sessions = || base.run(&["-C", "project/p", "status", "--json"]);
    sessions().ok();
    pull(&base, &format!("mkdir p/inbox; echo '{REPLY}' > p/inbox/r.txt"));
    let told = is_refused(sessions(), &["tracked by git"]);
    assert!(told.contains("tracked by git = inbox/r.txt: "), "{told}");

    let base = shared();
    let sessions = || base.run(&["-C", "project", "status", "--json"]);
    sessions().ok();
    base.sh("cd project; printf '[extensions]\n\tunheard = of\n[core]\n\trepositoryformatversion = 1\n' >> .git/config");
    let told = is_refused(sessions(), &["tracked by git"]);
    assert!(told.contains("git does not list "), "{told}");
}
