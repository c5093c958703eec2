//! What nobody but the person may write: `.git` and its like, by replies, by commands, and by what
//! is left of a command that was killed.

mod full;
mod odd;
mod opened;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::Command;

use crate::support::json_output::Turn;
use crate::support::{ID, Project, has_sandbox, wait_until};

/// The folder that holds what the first turn of the session made.
const QUARANTINE: &str = "sessions/quarantine/a1b2c3d4_seq0001";

/// A project where the guard is all that keeps commands from protected names: under a full
/// sandbox they could not even write them.
fn guarded() -> Option<Project> {
    has_sandbox("partial").then(|| {
        let base = Project::with_session();
        base.write("deaddrop.toml", "sandbox = \"partial\"\n");
        base
    })
}

/// A workspace that is a repository, with another in it, a hook and an editor's settings.
fn scene() -> Option<Project> {
    let base = guarded()?;
    for repository in ["workspace", "workspace/nested"] {
        fs::create_dir_all(base.at(repository)).unwrap();
        repository_in(&base, repository);
    }
    base.write("workspace/.git/hooks/pre-push", "#!/bin/sh\ntrue\n");
    fs::set_permissions(base.at("workspace/.git/hooks/pre-push"), PermissionsExt::from_mode(0o750))
        .unwrap();
    base.write("workspace/.vscode/settings.json", "{}\n");
    base.write("workspace/.envrc", "export A=1\n");
    Some(base)
}

/// What git makes, so far as it matters, without git.
fn repository_in(base: &Project, folder: &str) {
    base.write(&format!("{folder}/.git/HEAD"), "ref: refs/heads/main\n");
    base.write(&format!("{folder}/.git/config"), "[core]\n\tbare = false\n");
    base.write(&format!("{folder}/.git/hooks/pre-commit.sample"), "#!/bin/sh\n");
    base.write(&format!("{folder}/.git/index"), "old");
    fs::create_dir_all(base.at(&format!("{folder}/.git/objects/info"))).unwrap();
}

fn run(command: &str) -> String {
    format!("[RUN_COMMAND]\n{command}\n[/RUN_COMMAND]\n")
}

/// What a turn warns of, in order; all of it is about protected names.
#[track_caller]
fn warnings(turn: &Turn) -> Vec<String> {
    let told = turn.messages("guard");
    assert_eq!(turn.warnings(), vec!["guard"; told.len()], "{turn:?}");
    told
}

/// Runs a command as the first turn; gives its only warning.
#[track_caller]
fn warning_of(base: &Project, command: &str) -> String {
    let turn = base.turn(&run(command));
    let found = warnings(&turn);
    assert_eq!(found.len(), 1, "{turn:?}");
    found[0].clone()
}

/// That each warning says this of its path.
#[track_caller]
fn assert_told(told: &[String], all: &[(&str, &str)]) {
    assert_eq!(told.len(), all.len(), "{told:#?}");
    for (told, (what, path)) in told.iter().zip(all) {
        let begins = format!("a command {what} '{path}', which is protected");
        assert!(told.starts_with(&begins), "{begins}: {told}");
    }
}

#[track_caller]
fn assert_unnoticed(base: &Project, command: &str) {
    let turn = base.turn(&run(command));
    assert_eq!(turn.warnings(), [""; 0], "{turn:?}");
    assert!(!base.exists("sessions/quarantine"));
}

#[test]
fn a_planted_hook_goes_to_quarantine() {
    let Some(base) = scene() else { return };
    let told =
        warning_of(&base, "echo evil > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit");
    assert_told(std::slice::from_ref(&told), &[("made", ".git/hooks/pre-commit")]);
    assert!(told.ends_with(&format!(": it was moved to {QUARANTINE}/1_pre-commit")), "{told}");
    assert_eq!(base.names("workspace/.git/hooks"), ["pre-commit.sample", "pre-push"]);
    assert_eq!(base.read(&format!("{QUARANTINE}/1_pre-commit")), "evil\n");
    assert_eq!(base.last_codes(), ["ok"]);
}

#[test]
fn a_folder_of_an_editor_goes_as_a_whole_and_a_file_in_one_alone() {
    let Some(base) = scene() else { return };
    let turn = base.turn(&run(
        "mkdir nested/.vscode .Idea && echo x | tee nested/.vscode/tasks.json .Idea/x .vscode/tasks.json",
    ));
    assert_told(
        &warnings(&turn),
        &[("made", ".Idea"), ("made", ".vscode/tasks.json"), ("made", "nested/.vscode")],
    );
    assert_eq!(base.names(QUARANTINE), ["1_.Idea", "2_tasks.json", "3_.vscode"]);
    assert_eq!(base.read(&format!("{QUARANTINE}/3_.vscode/tasks.json")), "x\n");
    assert_eq!(base.names("workspace/.vscode"), ["settings.json"]);
    assert!(!base.exists("workspace/nested/.vscode") && !base.exists("workspace/.Idea"));
}

#[test]
fn what_was_changed_is_put_back_as_it_was() {
    let Some(base) = scene() else { return };
    let hook = base.at("workspace/.git/hooks/pre-push");
    let before = fs::metadata(&hook).unwrap();
    let turn = base.turn(&run(
        "echo evil >> .git/hooks/pre-push; echo '[alias]' >> nested/.git/config; echo x > .envrc; chmod 777 .vscode/settings.json",
    ));
    let told = warnings(&turn);
    assert_told(
        &told,
        &[
            ("changed", ".envrc"),
            ("changed", ".git/hooks/pre-push"),
            ("changed", ".vscode/settings.json"),
            ("changed", "nested/.git/config"),
        ],
    );
    let went = format!(": it was moved to {QUARANTINE}/");
    assert!(told.iter().all(|told| told.contains(&went)), "{told:#?}");
    let back = "; the former content was put back";
    assert!(told.iter().all(|told| told.ends_with(back)), "{told:#?}");
    assert_eq!(base.read("workspace/.git/hooks/pre-push"), "#!/bin/sh\ntrue\n");
    let after = fs::metadata(&hook).unwrap();
    assert_eq!((after.mode(), after.uid()), (before.mode(), before.uid()));
    assert_eq!(base.read("workspace/.envrc"), "export A=1\n");
    assert_eq!(base.read("workspace/nested/.git/config"), "[core]\n\tbare = false\n");
    assert_eq!(base.read(&format!("{QUARANTINE}/1_.envrc")), "x\n");
    assert_eq!(base.names(QUARANTINE).len(), 4);
}

#[test]
fn what_was_removed_is_put_back_and_told() {
    let Some(base) = scene() else { return };
    let turn = base.turn(&run("rm .git/hooks/pre-push; rm -r .vscode; rm .envrc"));
    let told = warnings(&turn);
    assert_told(
        &told,
        &[("removed", ".envrc"), ("removed", ".git/hooks/pre-push"), ("removed", ".vscode")],
    );
    let back = "which is protected: it was put back";
    assert!(told.iter().all(|told| told.ends_with(back)), "{told:#?}");
    assert_eq!(base.read("workspace/.git/hooks/pre-push"), "#!/bin/sh\ntrue\n");
    assert_eq!(base.read("workspace/.vscode/settings.json"), "{}\n");
    assert_eq!(base.read("workspace/.envrc"), "export A=1\n");
    assert!(!base.exists("sessions/quarantine"));
}

#[test]
fn what_git_writes_when_it_reads_is_left_alone() {
    let Some(base) = scene() else { return };
    assert_unnoticed(
        &base,
        "cd .git; echo new > index.new; mv index.new index; mkdir -p objects/aa refs/heads logs; echo x > objects/aa/b; echo ref: refs/heads/x > HEAD; echo x > FETCH_HEAD; touch config hooks",
    );
    // The same content under another number is the same.
    assert_unnoticed(
        &base,
        "cp .envrc x; mv x .envrc; cp -p .git/hooks/pre-push y; mv y .git/hooks/pre-push",
    );
}

#[test]
fn a_repository_made_around_another_is_told_from_it() {
    let Some(base) = scene() else { return };
    let old = fs::metadata(base.at("workspace/nested/.git")).unwrap().ino();
    let turn = base.turn(&run(
        "mv nested moved; mkdir -p nested/.git/hooks; echo evil > nested/.git/hooks/post-checkout; echo evil > moved/.git/hooks/pre-commit",
    ));
    let told = warnings(&turn);
    assert_told(
        &told,
        &[
            ("changed", "nested/.git"),
            ("moved", "nested/.git"),
            ("made", "moved/.git/hooks/pre-commit"),
        ],
    );
    assert!(told[0].contains("which is protected: it was moved to "), "{told:#?}");
    assert!(told[1].contains("which is protected, to 'moved/.git'"), "{told:#?}");
    assert_eq!(fs::metadata(base.at("workspace/moved/.git")).unwrap().ino(), old);
    assert_eq!(base.names("workspace/moved/.git/hooks"), ["pre-commit.sample"]);
    assert!(!base.exists("workspace/nested/.git"));
    assert_eq!(base.read(&format!("{QUARANTINE}/1_.git/hooks/post-checkout")), "evil\n");
}

#[test]
fn a_repository_that_moves_with_its_folder_or_goes_is_told() {
    let Some(base) = scene() else { return };
    let told = warning_of(&base, "mkdir lib; mv nested lib/n");
    assert_told(std::slice::from_ref(&told), &[("moved", "nested/.git")]);
    assert!(told.ends_with("is protected, to 'lib/n/.git': it was left there"), "{told}");
    assert!(base.exists("workspace/lib/n/.git/config"));
    assert_unnoticed(&base, "mv lib/n/x lib/n/y; echo x > lib/n/x");
}

#[test]
fn a_repository_that_is_removed_is_told() {
    let Some(base) = scene() else { return };
    let told = warning_of(&base, "rm -rf nested");
    assert_told(&[told], &[("removed", "nested/.git")]);
    assert!(!base.exists("workspace/nested"));
}

#[test]
fn a_repository_made_by_a_script_goes_to_quarantine_at_the_end() {
    let Some(base) = scene() else { return };
    base.write(
        "workspace/make.sh",
        "mkdir -p deep/new/.git/hooks; echo evil > deep/new/.git/hooks/x\n",
    );
    let turn =
        base.turn(&[run("sh make.sh"), run("true"), "[MESSAGE]\nx\n[/MESSAGE]\n".into()].concat());
    let told = warnings(&turn);
    assert_told(&told, &[("made", "deep/new/.git")]);
    assert!(told[0].ends_with(&format!(": it was moved to {QUARANTINE}/1_.git")), "{told:#?}");
    // It is told with the last command, to the person too, and kept.
    let warned = turn.json["results"].as_array().unwrap().iter();
    let warned: Vec<usize> = warned.map(|r| r["warnings"].as_array().unwrap().len()).collect();
    assert_eq!(warned, [0, 1, 0], "{turn:?}");
    assert!(turn.outbox.contains(&format!("  Warning: {}", told[0])), "{turn:?}");
    assert!(base.read(&format!("sessions/{ID}.json")).contains("1_.git"));
    assert!(base.exists("workspace/deep/new") && !base.exists("workspace/deep/new/.git"));
}

#[test]
fn what_happens_beside_the_commands_is_said_also_when_quiet() {
    let Some(base) = scene() else { return };
    let reply = run("mkdir -p new/.git; echo x > .mcp.json");
    let run = base.run_with(&["apply", "--quiet", "--session", ID, "-"], reply).ok();
    assert!(run.stderr.contains("a command made '.mcp.json', which is protected"), "{run:?}");
    assert!(run.stderr.contains("a command made 'new/.git', which is protected"), "{run:?}");
}

#[test]
fn repositories_in_ignored_folders_are_left_alone() {
    let Some(base) = scene() else { return };
    base.write("workspace/.gitignore", "out/\n");
    repository_in(&base, "workspace/out/old");
    assert_unnoticed(
        &base,
        "mkdir -p out/new/.git/hooks out/.vscode; echo x | tee out/new/.git/hooks/x out/old/.git/hooks/x",
    );
    // Also where they are no longer ignored at the end.
    assert_unnoticed(&base, "rm .gitignore; echo x >> out/old/.git/config");
}

#[test]
fn what_the_person_changes_between_turns_is_theirs() {
    let Some(base) = scene() else { return };
    base.apply(&run("true"));
    base.sh(
        "cd workspace; echo mine > .git/hooks/pre-commit; echo mine >> .git/config; mkdir .idea; echo x > .idea/x; mv nested other; mkdir -p third/.git; rm .envrc",
    );
    assert_unnoticed(&base, "echo x > y");
    assert_eq!(base.read("workspace/.git/hooks/pre-commit"), "mine\n");
    assert!(base.exists("workspace/third/.git") && !base.exists("workspace/.envrc"));
}

#[test]
fn each_command_answers_for_itself() {
    let Some(base) = scene() else { return };
    let turn = base.turn(
        &[
            run("echo 1 > .git/hooks/pre-commit; rm -rf .vscode"),
            run("echo 2 > .git/hooks/pre-commit"),
            run("echo 3"),
            run("mkdir .vscode; echo 4 > .vscode/settings.json"),
        ]
        .concat(),
    );
    let told = warnings(&turn);
    assert_eq!(told.len(), 4, "{turn:?}");
    assert!(told[1].ends_with("/1_pre-commit") || told[0].ends_with("/1_pre-commit"), "{told:#?}");
    assert!(told[2].ends_with("/2_pre-commit"), "{told:#?}");
    assert!(told[3].contains("changed '.vscode/settings.json'"), "{told:#?}");
    assert_eq!(base.read(&format!("{QUARANTINE}/1_pre-commit")), "1\n");
    assert_eq!(base.read(&format!("{QUARANTINE}/2_pre-commit")), "2\n");
    // The next turn has a folder of its own.
    base.apply(&run("echo 5 > .git/hooks/pre-commit"));
    assert_eq!(base.read("sessions/quarantine/a1b2c3d4_seq0002/1_pre-commit"), "5\n");
}

#[test]
fn a_hook_planted_before_a_kill_is_found_at_the_next_start() {
    let Some(base) = scene() else { return };
    let mut daemon = base.serve(&["resume"]);
    // The mark says that all of it is done, and the command goes on.
    base.write(
        "inbox/r.txt",
        run("echo evil > .git/hooks/pre-commit; echo x > .envrc; mkdir -p new/.git; touch mark; sleep 60"),
    );
    wait_until("the command", || base.exists("workspace/mark"));
    daemon.signal("KILL");
    daemon.wait();
    assert!(base.exists("workspace/.git/hooks/pre-commit"));

    let run = base.run(&["resume", "--no-watch"]).ok();
    assert!(run.stderr.contains("made '.git/hooks/pre-commit', which is protected"), "{run:?}");
    let outbox = base.outbox(2);
    let told = outbox.lines().filter(|line| line.starts_with("  Warning: "));
    assert_eq!(told.count(), 3, "{outbox}");
    assert_eq!(base.read("workspace/.envrc"), "export A=1\n");
    assert!(!base.exists("workspace/.git/hooks/pre-commit") && !base.exists("workspace/new/.git"));
    assert_eq!(base.names(QUARANTINE), ["1_.envrc", "2_pre-commit", "3_.git"]);
}

#[test]
fn git_that_writes_to_its_repository_asks_first() {
    let Some(base) = scene() else { return };
    let reply =
        [run("touch mark; git commit -m x"), run("git status >/dev/null 2>&1; true")].concat();
    let check = base.check(&reply, 0);
    assert_eq!(check["warningsByKind"], serde_json::json!({ "asking": 1 }));
    let asks = check["commands"][0]["warnings"][0]["message"].as_str().unwrap();
    assert!(asks.starts_with("the user is asked before this: 'git commit'"), "{asks}");
    let paused = base.run_with(&["apply", "-"], reply).with_code(3);
    assert!(paused.stderr.contains("Opens:  the repository"), "{paused:?}");
    assert_eq!(base.waiting(ID)["opens"]["repository"], true);
    assert!(!base.exists("workspace/mark"));
    base.run(&["deny", "--reason", "Leave that to me"]).ok();
    assert_eq!(base.last_codes(), ["denied", "ok"]);
    let told = "The user denied 'touch mark; git commit -m x': Leave that to me";
    assert!(base.outbox(2).contains(told), "{}", base.outbox(2));
    assert!(!base.exists("workspace/mark"));
}

#[test]
fn a_real_repository_is_only_read_without_a_word() {
    let base = Project::with_session();
    let git =
        Command::new("git").args(["init", "-q", "workspace"]).current_dir(base.path()).status();
    if !git.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: there is no git");
        return;
    }
    base.write("workspace/a", "x\n");
    assert_unnoticed(
        &base,
        "git status; git -c safe.directory=* status --porcelain; git log; git diff; git grep x; git ls-files; git branch -a; git fsck",
    );
}

#[test]
fn replies_cannot_reach_protected_names_through_links() {
    let Some(base) = scene() else { return };
    symlink(".git/hooks", base.at("workspace/x")).unwrap();
    symlink("../.vscode/settings.json", base.at("workspace/nested/s")).unwrap();
    let write = |path: &str| format!("[CREATE_FILE path=\"{path}\"]\nx\n[/CREATE_FILE]\n");
    let reply = ["x/pre-commit", "x/new/deep", "nested/s"].map(write).concat();
    let reply = format!(
        "{reply}[EDIT_FILE path=\"nested/s\" start_line=\"1\" end_line=\"1\"]\nx\n[/EDIT_FILE]\n[DELETE_FILE path=\"x/pre-push\"]\n[READ_FILE path=\"nested/s\"]\n[DELETE_FILE path=\"x\"]\n"
    );
    let check = base.check(&reply, 0);
    assert_eq!(check["warningsByKind"], serde_json::json!({ "asking": 5 }));
    // Each is asked about by itself, and named by where it leads to.
    base.run_with(&["apply", "-"], &reply).with_code(3);
    let path = base.waiting(ID)["realPath"].as_str().unwrap().to_owned();
    assert!(path.ends_with("/.git/hooks/pre-commit"), "{path}");
    for left in (0..5).rev() {
        base.run(&["deny"]).with_code(if left == 0 { 0 } else { 3 });
    }
    let denied = ["denied", "denied", "denied", "denied", "denied", "ok", "ok"];
    assert_eq!(base.last_codes(), denied);
    assert_eq!(base.read("workspace/.vscode/settings.json"), "{}\n");
    assert_eq!(base.names("workspace/.git/hooks"), ["pre-commit.sample", "pre-push"]);
}
