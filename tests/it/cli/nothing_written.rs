//! A command that is refused, or only tells something, leaves the folder as it found it: each of them is
//! tried where nothing has begun.

use std::collections::BTreeSet;

use crate::cli::init_refused::picture;
use crate::projects::init::{project, run_in};
use crate::support::{ID, Project, Run, has_git};

/// Every command but those that begin something, as it can be said where nothing is.
pub const ASKED: &[&[&str]] = &[
    &["resume"],
    &["resume", ID],
    &["resume", "--no-watch"],
    &["apply"],
    &["apply", "-", "--session", ID],
    &["show", "--copy"],
    &["apply", "--clipboard"],
    &["apply", "-"],
    &["next"],
    &["next", "-"],
    &["check", "-"],
    &["approve"],
    &["approve", "--all"],
    &["deny", "--session", ID],
    &["ops", "run", "--resume", "run_a1b2c3d4"],
    &["say", "words"],
    &["status"],
    &["status", ID],
    &["log"],
    &["diff"],
    &["undo"],
    &["undo", "--last", "2", "--session", ID],
    &["redo"],
    &["close", ID],
    &["close", ID, "--delete"],
    &["doctor"],
    &["policy", "list"],
    &["policy", "show"],
    &["policy", "check", "ls"],
    &["show"],
    &["show", "--open"],
    &["generate", "systemd-unit"],
    &["config", "show"],
    &["config", "get", "policy"],
    &["config", "path"],
    &["config", "set", "max_tokenz", "5"],
    &["config", "unset", "policy"],
    &["config", "allow"],
    &["config", "deny"],
    &["serve", "keys", "list"],
    &["serve", "keys", "revoke", "laptop"],
];
/// Those that are about no project.
const ANYWHERE: &[&[&str]] = &[
    &["ops", "validate"],
    &["ops", "schema"],
    &["policy", "approved"],
    &["policy", "forget", "--all"],
    &["ops", "schema", "events"],
    &["generate", "man"],
    &["generate", "completions", "bash"],
];
/// Those that begin something, said so that they cannot.
const BEGINNING: &[&[&str]] = &[
    &["new", ""],
    &["new", "--id", "nonsense", "A task"],
    &["new", "--policy", "nonsense", "A task"],
    &["watch", "--max-tokens", "none"],
    &["serve", "--max-tokens", "none"],
    &["serve", "keys", "add", ""],
    &["ops", "run", "nowhere.json"],
    &["ops", "run", "--policy", "nonsense"],
    &["rpc", "--root", "nowhere"],
    &["rpc", "--unix", "nowhere/socket"],
    &["init", "--max-tokens", "none"],
];
/// Works in a folder of its own.
const APART: &[&str] = &["demo"];

/// The names of all commands that hold no others.
fn leaves(base: &Project, words: &[&str], found: &mut BTreeSet<String>) {
    let help = base.run(&[words, &["--help"]].concat()).ok().stdout;
    let Some((_, inner)) = help.split_once("\nCommands:\n") else {
        found.insert(words.join(" "));
        return;
    };
    let inner = inner.lines().take_while(|line| !line.is_empty());
    for name in inner.filter_map(|line| line.strip_prefix("  ")?.split(' ').next()) {
        if !name.is_empty() {
            leaves(base, &[words, &[name]].concat(), found);
        }
    }
}

#[test]
fn every_command_is_tried() {
    let (base, mut all) = (Project::new(), BTreeSet::new());
    leaves(&base, &[], &mut all);
    let tried = [ASKED, ANYWHERE, BEGINNING].concat();
    let is_tried = |name: &String| {
        let words: Vec<&str> = name.split(' ').collect();
        APART.contains(&&**name) || tried.iter().any(|line| line.starts_with(&words))
    };
    let missing: Vec<&String> = all.iter().filter(|name| !is_tried(name)).collect();
    assert!(all.len() > 30 && missing.is_empty(), "{missing:?} of {all:?}");
}

/// Runs a command where no systemd and no clipboard is in reach.
fn run(base: &Project, arguments: &[&str]) -> Run {
    let mut command = base.command(arguments);
    for name in ["DISPLAY", "WAYLAND_DISPLAY", "TMUX", "TMUX_PANE", "STY"] {
        command.env_remove(name);
    }
    command.env("PATH", "/nowhere").env("HOME", base.at("home"));
    Run::of(&mut command, "[CREATE_FILE path=\"a\"]\nx\n[/CREATE_FILE]\n")
}

#[test]
fn a_command_that_is_refused_leaves_nothing() {
    let prepared: [(&str, &[&str]); 3] = [("", &[]), ("", &["-C", "."]), ("deaddrop.toml", &[])];
    for (file, named) in prepared {
        let base = Project::that_nobody_agrees_to();
        if !file.is_empty() {
            base.write(file, "max_tokens = 5000\n");
        }
        let before = picture(&base);
        for words in [ASKED, ANYWHERE, BEGINNING].concat() {
            let words = [named, words].concat();
            let run = run(&base, &words);
            assert_eq!(picture(&base), before, "{words:?}: {run:?}");
            assert_ne!(run.code, None, "{words:?}: {run:?}");
        }
        for words in BEGINNING {
            let run = run(&base, &[named, words].concat());
            assert!(matches!(run.code, Some(1 | 2)), "{words:?}: {run:?}");
        }
    }
}

/// A project with a session whose settings `git clean` has taken.
fn without_settings() -> Project {
    let base = Project::that_nobody_agrees_to();
    base.sh("git init -q .; mkdir src; echo 'fn main() {}' > src/main.rs; git add src");
    base.run(&["init"]).ok();
    base.run(&["new", "--no-watch", "--id", ID, "A task"]).ok();
    base.sh("git clean -qfx");
    assert!(!base.exists("deaddrop.toml") && base.exists(".deaddrop/sessions"));
    base
}

#[test]
fn without_its_settings_every_command_says_how_they_come_back() {
    if !has_git() {
        return;
    }
    let base = without_settings();
    let before = picture(&base);
    let begins: &[&[&str]] =
        &[&["new", "--no-watch", "A task"], &["watch"], &["ops", "run"], &["rpc"]];
    let init = format!("`deaddrop init '{}'`", base.path().canonicalize().unwrap().display());
    for words in [ASKED, begins].concat() {
        for named in [&[][..], &["-C", "."]] {
            let run = run(&base, &[named, words].concat());
            let told = [&*run.stdout, &*run.stderr].concat();
            // One setting is wrong whatever the folder is.
            if !words.contains(&"max_tokenz") {
                assert!(told.contains(&init), "{words:?}: {run:?}");
            }
            assert_eq!(
                run.code,
                Some(if words == ["doctor"] { 1 } else { 2 }),
                "{words:?}: {run:?}"
            );
            assert_eq!(picture(&base), before, "{words:?}: {run:?}");
        }
    }
    // From below it, and from within its own folder.
    for folder in ["src", ".deaddrop/inbox"] {
        let run = run_in(&base, folder, &["new", "--no-watch", "A task"]).with_code(2);
        assert!(run.stderr.contains(&init), "{run:?}");
    }
    // Where settings say that its own are there, nothing is amiss.
    base.run(&["log", "--sessions-dir", ".deaddrop/sessions", "--session", ID]).ok();
    assert_eq!(picture(&base), before);

    let run = base.run(&["init"]).ok();
    assert!(run.stderr.contains("is set up."), "{run:?}");
    let status = base.run(&["status", ID, "--json"]).ok().stdout;
    assert_eq!(serde_json::from_str::<serde_json::Value>(&status).unwrap()["session"], ID);
    let reply = base.write("reply.txt", "[CREATE_FILE path=\"made\"]\nx\n[/CREATE_FILE]\n");
    let run = base.run(&["apply", reply.to_str().unwrap()]).ok();
    assert_eq!(run.stdout, format!(".deaddrop/outbox/{ID}_seq0002.txt\n"));
    assert_eq!(base.read("made"), "x\n");
    let again = base.run(&["init"]).ok().stderr;
    assert!(again.contains("already") && !again.contains("written again"), "{again}");
}

#[test]
fn what_was_begun_beside_lost_settings_needs_a_word_of_the_person() {
    if !has_git() {
        return;
    }
    let base = without_settings();
    // As another deaddrop did that did not see them.
    base.sh("mkdir inbox outbox sessions; touch sessions/journal");
    base.run(&["new", "--no-watch", "A task"]).with_code(2);
    let told = base.run(&["init"]).with_code(2).stderr;
    assert!(told.contains("with --force, deaddrop's files are in .deaddrop/"), "{told}");
    base.run(&["init", "--force"]).ok();
    assert!(base.run(&["status"]).ok().stdout.starts_with(ID));
}

#[test]
fn a_base_directory_that_is_called_as_the_folder_of_projects_is_one() {
    let base = project();
    base.sh("mkdir -p p/.deaddrop");
    run_in(&base, "p/.deaddrop", &["-C", ".", "new", "--no-watch", "--id", ID, "A task"]).ok();
    let run = run_in(&base, "p", &["-C", ".", "status"]).ok();
    assert!(run.stderr.contains("There are no sessions here yet"), "{run:?}");
    assert!(run_in(&base, "p/.deaddrop", &["-C", ".", "status"]).ok().stdout.starts_with(ID));
}
