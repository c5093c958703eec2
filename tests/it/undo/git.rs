//! What git has to do with an undo: files that it tracks though they are ignored, and repositories that a
//! command moves.

use std::process::Command;

use crate::support::json_output::why;
use crate::support::{Project, has_git};

fn git(base: &Project, folder: &str, script: &str) -> String {
    let mut sh = Command::new("/bin/sh");
    sh.args(["-ec", script]).current_dir(base.at(folder));
    for (key, value) in [
        ("GIT_AUTHOR_NAME", "a"),
        ("GIT_AUTHOR_EMAIL", "a@example.org"),
        ("GIT_COMMITTER_NAME", "a"),
        ("GIT_COMMITTER_EMAIL", "a@example.org"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        // Those who run the tests need not own the folder.
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "safe.directory"),
        ("GIT_CONFIG_VALUE_0", "*"),
    ] {
        sh.env(key, value);
    }
    let output = sh.output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn command(script: &str) -> String {
    format!("[RUN_COMMAND]\n{script}\n[/RUN_COMMAND]\n")
}

/// A session in a repository that tracks some files which `.gitignore` names.
fn tracking() -> Project {
    let base = Project::with_session();
    base.write("workspace/.gitignore", "*.cfg\ndata/\n");
    for (path, text) in [
        ("keep.cfg", "kept\n"),
        ("mine.cfg", "mine\n"),
        ("data/deep/keep", "kept\n"),
        ("data/deep/made", "made\n"),
        ("sub/n.cfg", "n\n"),
        ("a", "one\n"),
    ] {
        base.write(&format!("workspace/{path}"), text);
    }
    let tracks = "git init -q; git add .gitignore a; git add -f keep.cfg data/deep/keep sub/n.cfg; git commit -qm first";
    git(&base, "workspace", tracks);
    base
}

#[test]
fn what_git_tracks_is_kept_though_it_is_ignored() {
    if !has_git() {
        return;
    }
    let base = tracking();
    // Its first look is by the index, the second by what is known of it.
    for text in ["two", "three"] {
        let script = format!(
            "echo {text} > keep.cfg; echo {text} >> mine.cfg; rm -r data; rm sub/n.cfg; echo n > {text}.cfg"
        );
        let applied = base.run_with(&["apply", "-"], command(&script)).ok().stderr;
        for told in [
            "4 files changed: keep.cfg (+1 −1), deleted data/deep/keep (−1), deleted data/deep/made (−1), deleted sub/n.cfg (−1)",
            "; cannot be undone: mine.cfg (ignored)\n",
        ] {
            assert!(applied.contains(told), "{told:?} is not in {applied}");
        }
        base.run(&["undo"]).ok();
        assert_eq!(base.read("workspace/keep.cfg"), "kept\n");
        assert_eq!(base.read("workspace/data/deep/keep"), "kept\n");
        assert_eq!(base.read("workspace/sub/n.cfg"), "n\n");
        assert!(base.exists(&format!("workspace/{text}.cfg")));
        assert_eq!(base.read("workspace/data/deep/made"), "made\n");
        let status = git(&base, "workspace", "git status --short");
        assert_eq!(status, "");
    }
    base.run(&["redo"]).ok();
    assert_eq!(base.read("workspace/keep.cfg"), "three\n");
    assert!(!base.exists("workspace/sub/n.cfg"));
}

#[test]
fn what_git_comes_to_track_is_known_from_the_next_turn_on() {
    if !has_git() {
        return;
    }
    let base = tracking();
    base.apply(&command("echo two > a"));
    git(&base, "workspace", "git add -f mine.cfg; git rm -q --cached keep.cfg");
    let applied = base.run_with(&["apply", "-"], command("echo two | tee mine.cfg keep.cfg")).ok();
    let told = "1 file changed: mine.cfg (+1 −1); cannot be undone: keep.cfg (ignored)\n";
    assert!(applied.stderr.contains(told), "{}", applied.stderr);
    // The same index by other rules.
    base.write("workspace/.gitignore", "*.cfg\n*.md\ndata/\n/a\n");
    base.apply(&command("echo three > a; echo more > b.md"));
    base.run(&["undo"]).ok();
    assert_eq!(base.read("workspace/a"), "two\n");
    assert!(base.exists("workspace/b.md"));
}

/// A session with a repository within the workspace, and what git says of it.
fn nested() -> (Project, String) {
    let base = Project::with_session();
    base.write("workspace/sub/nest/a", "one\n");
    base.write("workspace/other", "o\n");
    git(&base, "workspace/sub/nest", "git init -q; git add a; git commit -qm first");
    let log = git(&base, "workspace/sub/nest", "git log --format=%H");
    (base, log)
}

/// What undo says of a repository that was moved to `to`: its files are back, and its `.git` is brought by the
/// command that is named.
#[track_caller]
fn goes_back_by_hand(base: &Project, undo: &[&str], to: &str, log: &str) {
    let undo = base.back(undo);
    let home = "it contains the repository's .git: ";
    let why = why(&undo, to);
    let (_, by) = why.split_once(home).unwrap_or_else(|| panic!("{undo}"));
    let by = by.trim_matches('`');
    assert_eq!(by, format!("mv '{to}/.git' 'sub/nest/.git'"));
    git(base, "workspace", by);
    let all = "git log --format=%H; git status --short";
    assert_eq!(git(base, "workspace/sub/nest", all), log);
}

#[test]
fn a_repository_that_a_command_moved_is_named_with_what_brings_it_back() {
    if !has_git() {
        return;
    }
    for (script, to) in [
        ("mv sub/nest n2", "n2"),
        ("mv sub/nest n2; echo b > n2/b", "n2"),
        ("mv sub n2; mv n2/nest 'n 3'", "n 3"),
    ] {
        let (base, log) = nested();
        let turn = base.run_with(&["apply", "-"], command(script)).ok();
        let told = "cannot be undone: sub/nest/.git";
        assert!(turn.stderr.contains(told), "{script}: {turn:?}");
        goes_back_by_hand(&base, &["undo"], to, &log);
    }
    // Turns that move it on.
    let (base, log) = nested();
    base.apply(&command("mv sub/nest n2"));
    base.apply(&command("mkdir deep; mv n2 deep/n3"));
    goes_back_by_hand(&base, &["undo", "--last", "2"], "deep/n3", &log);
}

#[test]
fn a_repository_that_an_operation_moved_is_named_with_what_brings_it_back() {
    if !has_git() {
        return;
    }
    for more in ["", "echo two > n2/b", "rm other"] {
        let (base, log) = nested();
        let moved = "[MOVE_FILE path=\"sub/nest\" to=\"n2\"]\n";
        let reply = match more {
            "" => moved.to_owned(),
            "rm other" => format!("{}{moved}", command(more)),
            more => format!("{moved}{}", command(more)),
        };
        base.run_with(&["apply", "-"], reply).with_code(3);
        base.run(&["approve"]).ok();
        goes_back_by_hand(&base, &["undo"], "n2", &log);
    }
}
