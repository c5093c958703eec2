//! Settings that open something without leading out of the project.

use std::os::unix::fs::symlink;

use super::{as_json, is_refused};
use crate::support::Project;

const NEW: [&str; 4] = ["new", "--no-watch", "--no-contents", "A task"];

#[test]
fn a_folder_under_a_protected_name_is_asked_about() {
    for (setting, folder) in [
        ("workspace_dir", ".git"),
        ("workspace_dir", ".git/hooks"),
        ("workspace_dir", ".vscode"),
        ("workspace_dir", ".husky"),
        ("workspace_dir", "sub/.git"),
        ("workspace_dir", "sub/.Git"),
        ("workspace_dir", ".deaddrop"),
        ("outbox_dir", ".git/hooks"),
        ("inbox_dir", ".git/refs"),
        ("sessions_dir", ".git/objects"),
        ("approvals_dir", ".idea"),
    ] {
        let base = Project::that_nobody_agrees_to();
        base.sh(&format!("mkdir -p {folder}"));
        base.write("deaddrop.toml", format!("{setting} = \"{folder}\"\n"));
        // What replies write there git would run, whoever agrees: nobody is asked.
        if setting == "workspace_dir" && folder.to_lowercase().contains(".git") {
            let told = base.fails(&NEW, "invalid-setting").with_code(2).message();
            assert!(told.contains("it cannot be the workspace: it is a git directory"), "{told}");
            assert!(base.names(folder).is_empty() && !base.exists("sessions"), "{folder}");
            continue;
        }
        is_refused(base.run(&as_json(&NEW)), &[setting]);
        assert!(base.names(folder).is_empty() && !base.exists("sessions"), "{setting} {folder}");
        base.run(&["config", "allow"]).ok();
        base.run(&NEW).ok();
    }
}

#[test]
fn a_link_to_a_protected_name_is_asked_about_without_any_setting() {
    let base = Project::that_nobody_agrees_to();
    base.sh("mkdir -p .vscode/tasks");
    symlink(".vscode/tasks", base.at("workspace")).unwrap();
    let told =
        is_refused(base.run(&["--json", "-C", ".", "new", "--no-watch", "x"]), &["workspace_dir"]);
    assert!(told.contains("/.vscode/tasks: replies can read and change"), "{told}");
}

#[test]
fn the_folder_of_its_own_is_right_for_what_is_its_own() {
    let base = Project::that_nobody_agrees_to();
    let folders = ["inbox", "outbox", "sessions", "approvals"];
    let settings: String =
        folders.map(|name| format!("{name}_dir = \".deaddrop/{name}\"\n")).concat();
    base.write("deaddrop.toml", format!("workspace_dir = \".\"\n{settings}"));
    base.run(&NEW).ok();
    assert!(base.exists(".deaddrop/outbox"));
}

#[test]
fn a_sandbox_that_may_be_missing_is_asked_about() {
    let base = Project::that_nobody_agrees_to();
    base.write("deaddrop.toml", "sandbox = \"bwrap\"\n");
    is_refused(base.run(&as_json(&NEW)), &["sandbox"]);
    base.write(".no-config/deaddrop/config.toml", "sandbox = \"bwrap\"\n");
    base.run(&NEW).ok();
}

#[test]
fn an_empty_policy_over_a_strict_one_is_asked_about() {
    let base = Project::that_nobody_agrees_to();
    base.write("deaddrop.toml", "policy = \"\"\n");
    base.run(&NEW).ok();
    base.write(".no-config/deaddrop/config.toml", "policy = \"restrictive\"\n");
    let told = is_refused(base.run(&as_json(&NEW)), &["policy"]);
    assert!(told.contains("\n  policy = \"\" (line 1): "), "{told}");
    base.run(&["config", "allow"]).ok();
    base.run(&NEW).ok();
}
