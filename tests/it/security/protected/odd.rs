//! Odd things under protected names: links, FIFOs, closed folders, names of any bytes, very many.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::process::Command;

use super::{QUARANTINE, assert_told, guarded, run, scene, warning_of, warnings};
use crate::support::{ID, Run, program};

#[test]
fn links_are_moved_and_never_followed() {
    let Some(base) = scene() else { return };
    base.write("outside/tasks.json", "mine\n");
    base.sh("rm -r workspace/.vscode");
    let turn = base.turn(&run(
        "ln -s ../outside .vscode; rm -r .git/hooks; ln -s ../../outside .git/hooks; ln -s ../.git/hooks nested/.idea",
    ));
    assert_eq!(warnings(&turn).len(), 3, "{turn:?}");
    assert_eq!(base.names("outside"), ["tasks.json"]);
    for link in base.names(QUARANTINE) {
        assert!(base.at(QUARANTINE).join(&link).is_symlink(), "{link}");
    }
    assert_eq!(base.names(QUARANTINE).len(), 3);
    // What is known of the folder that the link replaced is back.
    assert_eq!(base.read("workspace/.git/hooks/pre-push"), "#!/bin/sh\ntrue\n");
    assert!(!base.at("workspace/.git/hooks").is_symlink());
}

#[test]
fn a_link_in_place_of_a_folder_on_the_way_leads_nowhere() {
    let Some(base) = scene() else { return };
    base.write("outside/.git/hooks/pre-commit", "mine\n");
    base.write("outside/.vscode/x", "mine\n");
    let told = warning_of(&base, "mv nested away; ln -s ../outside nested");
    assert_told(std::slice::from_ref(&told), &[("moved", "nested/.git")]);
    assert!(told.contains("which is protected, to 'away/.git'"), "{told}");
    assert_eq!(base.read("outside/.git/hooks/pre-commit"), "mine\n");
    assert_eq!(base.read("outside/.vscode/x"), "mine\n");
}

#[test]
fn a_fifo_holds_nothing_up() {
    let Some(base) = scene() else { return };
    let told = warning_of(&base, "rm .envrc; mkfifo .envrc");
    assert_told(&[told], &[("changed", ".envrc")]);
    let fifo = fs::symlink_metadata(base.at(QUARANTINE).join("1_.envrc")).unwrap();
    assert!(fifo.file_type().is_fifo());
    assert_eq!(base.read("workspace/.envrc"), "export A=1\n");
    // And one that stood there before is left alone.
    base.sh("rm workspace/.envrc; mkfifo workspace/.envrc workspace/.git/hooks/fifo");
    let turn = base.turn(&run("echo x > y"));
    assert_eq!(turn.warnings(), [""; 0], "{turn:?}");
}

#[test]
fn names_of_any_bytes_and_closed_folders_are_moved_all_the_same() {
    let Some(base) = scene() else { return };
    let turn = base.turn(&run(
        "d=$(printf 'a\\377%%'); mkdir -p \"$d/.git/hooks\" .idea/deep; echo x > .idea/deep/y; chmod 500 .idea/deep .idea; echo x > \".vscode/$d\"; chmod 100 .vscode",
    ));
    assert_eq!(warnings(&turn).len(), 3, "{turn:?}");
    assert_eq!(base.names(QUARANTINE), ["1_.idea", "2_a%FF%25", "3_.git"]);
    assert_eq!(base.names("workspace/.vscode"), ["settings.json"]);
    base.sh("chmod -R u+rwx sessions");
}

#[test]
fn many_findings_are_told_in_short() {
    let Some(base) = scene() else { return };
    let turn = base.turn(&run("for n in $(seq 200); do echo x > .git/hooks/h$n; done"));
    let told = warnings(&turn);
    assert_eq!(told.len(), 11, "{told:#?}");
    assert!(told[10].starts_with("190 more findings like these"), "{told:#?}");
    assert_eq!(base.names(QUARANTINE).len(), 200);
    assert_eq!(base.names("workspace/.git/hooks").len(), 2);
}

#[test]
fn a_quarantine_on_another_file_system_is_copied_to() {
    let Some(base) = scene() else { return };
    let Ok(other) = tempfile::tempdir_in("/dev/shm") else {
        eprintln!("SKIPPED: there is no /dev/shm");
        return;
    };
    let device = |path: &std::path::Path| fs::metadata(path).unwrap().dev();
    if device(other.path()) == device(base.path()) {
        eprintln!("SKIPPED: there is only one file system");
        return;
    }
    let sessions = other.path().join("sessions");
    base.sh(&format!(
        "mv sessions {0}; echo 'sessions_dir = \"{0}\"' >> deaddrop.toml",
        sessions.display()
    ));
    base.write("outside/secret", "mine\n");
    let turn = base.turn(&run(
        "mkdir -p .idea/deep; echo x > .idea/deep/y; ln -s ../../outside .idea/out; mkfifo .idea/fifo; echo x > .envrc",
    ));
    let quarantine = sessions.join("quarantine/a1b2c3d4_seq0001");
    let told = warnings(&turn);
    let at = quarantine.display();
    assert_told(&told, &[("changed", ".envrc"), ("made", ".idea")]);
    let back = "; the former content was put back";
    let went = format!("which is protected: it was moved to {at}/1_.envrc{back}");
    assert!(told[0].ends_with(&went), "{told:#?}");
    assert!(told[1].ends_with(&format!("it was moved to {at}/2_.idea")), "{told:#?}");
    assert_eq!(fs::read_to_string(quarantine.join("2_.idea/deep/y")).unwrap(), "x\n");
    assert!(
        quarantine.join("2_.idea/out").is_symlink() && quarantine.join("2_.idea/fifo").is_file()
    );
    assert!(!base.exists("workspace/.idea"));
    assert_eq!(base.read("workspace/.envrc"), "export A=1\n");
    assert_eq!(base.read("outside/secret"), "mine\n");
    assert!(
        fs::read_dir(&sessions).unwrap().all(|e| !e
            .unwrap()
            .path()
            .to_string_lossy()
            .ends_with(".tmp"))
    );
}

#[test]
fn a_user_without_rights_moves_what_was_closed() {
    let Some(base) = scene() else { return };
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root can be somebody else");
        return;
    }
    base.sh("chmod -R a+rwX .; chmod 755 workspace/.git/hooks; chown -R 65534:65534 .");
    base.write("reply.txt", run(
        "mkdir -p .idea/deep; chmod 0 .idea/deep; chmod 500 .idea; echo x > .git/hooks/x; chmod 100 .git/hooks; mkdir nested/.vscode; chmod 0 nested/.git/hooks; chmod 500 nested; chmod 600 .vscode; chmod 100 .",
    ));
    let inner = base.command(&["apply", "--session", ID, "reply.txt"]);
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program());
    command
        .args(inner.get_args())
        .current_dir(base.path())
        .env("XDG_CONFIG_HOME", base.at(".no-config"))
        .env("XDG_STATE_HOME", base.state());
    base.sh(&format!("chown -R 65534:65534 {}", base.state().display()));
    let run = Run::of(&mut command, "");
    if run.code == Some(127) || run.stderr.contains("setpriv") {
        eprintln!("SKIPPED: cannot run the program as another user here");
        return;
    }
    let run = run.ok();
    let outbox = base.outbox(2);
    let told = outbox.lines().filter(|line| line.starts_with("  Warning: "));
    assert_eq!(told.count(), 3, "{outbox}{run:?}");
    assert_eq!(base.names(QUARANTINE), ["1_x", "2_.idea", "3_.vscode"]);
    assert_eq!(base.names("workspace/.git/hooks"), ["pre-commit.sample", "pre-push"]);
    base.sh("chmod -R u+rwx .");
}

#[test]
fn more_repositories_than_are_watched_are_never_taken_for_new() {
    let Some(base) = guarded() else { return };
    base.sh("cd workspace; for n in $(seq -w 1005); do mkdir -p r$n/.git/hooks; done");
    let turn = base.turn(&run(
        "echo x | tee r0001/.git/hooks/x r1005/.git/hooks/x; rm -r r0002; mkdir -p new/.git",
    ));
    let told = warnings(&turn);
    assert_told(
        &told,
        &[("made", "r0001/.git/hooks/x"), ("made", "new/.git"), ("removed", "r0002/.git")],
    );
    assert!(base.exists("workspace/r1005/.git/hooks/x"));
}

#[test]
fn a_file_that_leads_git_elsewhere_is_kept() {
    let Some(base) = scene() else { return };
    base.write("workspace/tree/.git", "gitdir: ../.git/worktrees/tree\n");
    base.write("workspace/.git/worktrees/tree/commondir", "../..\n");
    base.write("workspace/.git/worktrees/tree/index", "x");
    base.write("workspace/.git/modules/lib/HEAD", "x\n");
    base.write("workspace/.git/modules/lib/config", "x\n");
    base.write("workspace/.git/modules/lib/index", "x\n");
    let turn = base.turn(&run(
        "echo 'gitdir: /tmp/evil' > tree/.git; for f in worktrees/tree/commondir worktrees/tree/index modules/lib/config modules/lib/index; do echo evil > .git/$f; done; mkdir -p .git/modules/lib/hooks; echo evil > .git/modules/lib/hooks/x; echo /evil > .git/objects/info/alternates",
    ));
    let told = warnings(&turn);
    assert_eq!(told.len(), 5, "{told:#?}");
    assert_eq!(base.read("workspace/tree/.git"), "gitdir: ../.git/worktrees/tree\n");
    assert_eq!(base.read("workspace/.git/worktrees/tree/commondir"), "../..\n");
    assert_eq!(base.read("workspace/.git/modules/lib/config"), "x\n");
    assert_eq!(base.read("workspace/.git/modules/lib/index"), "evil\n");
    assert_eq!(base.names("workspace/.git/objects/info"), [""; 0]);
    assert_eq!(base.names("workspace/.git/modules/lib"), ["HEAD", "config", "index"]);
}
