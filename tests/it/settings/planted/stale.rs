//! What is noted of projects that are gone, or that keep something where another one works.

use crate::projects::init::run_in;
use crate::support::json_output::codes;
use crate::support::{ID, Project, Run};

fn new(base: &Project, folder: &str) -> Run {
    base.run(&["-C", folder, "new", "--no-watch", "--id", ID, "A task"])
}

/// A project `a` that writes its outboxes into a folder beside it, `b`.
fn writing_into_b() -> Project {
    let base = Project::that_nobody_agrees_to();
    let outbox = base.path().canonicalize().unwrap().join("b");
    base.write("a/deaddrop.toml", format!("outbox_dir = \"{}\"\n", outbox.display()));
    base.run(&["-C", "a", "config", "allow"]).ok();
    new(&base, "a").ok();
    assert_eq!(base.names("b").len(), 1);
    base
}

#[test]
fn one_that_is_gone_takes_no_workspace() {
    let base = writing_into_b();
    base.sh("rm -r a");
    base.run(&["init", "b"]).ok();
    let doctor = base.run(&["-C", "b", "doctor"]).ok().stdout;
    assert!(doctor.contains("ok  workspace "), "{doctor}");
    new(&base, "b").ok();
}

#[test]
fn of_one_that_is_gone_no_folder_is_hidden() {
    let base = Project::that_nobody_agrees_to();
    base.sh("mkdir -p p/inner");
    new(&base, "p/inner").ok();
    base.sh("cd p/inner; rm -r outbox sessions approvals workspace inbox");
    base.write("p/inner/inbox/main.rs", "fn main() {}\n");
    let told = base.run(&["init", "p"]).ok().stderr;
    assert!(!told.contains("inner"), "{told}");
    new(&base, "p").ok();
    let file = base.write("reply.txt", "[READ_FILE path=\"inner/inbox/main.rs\"]\n");
    let run = base.run(&["-C", "p", "apply", "--session", ID, file.to_str().unwrap()]).ok();
    let outbox = base.read(run.stdout.trim());
    assert!(outbox.contains("fn main() {}"), "{outbox}");
}

#[test]
fn one_that_keeps_its_files_in_the_workspace_is_named_before_anything_begins() {
    let base = writing_into_b();
    let here = base.path().canonicalize().unwrap().display().to_string();
    let notes = base.state().join("deaddrop/bases").display().to_string();
    let names_both = |told: &str| {
        for part in [format!("{here}/b: "), format!("{here}/a "), notes.clone()] {
            assert!(told.contains(&part), "{part}: {told}");
        }
    };
    names_both(&base.run(&["init", "b"]).with_code(2).stderr);
    assert!(!base.exists("b/deaddrop.toml") && !base.exists("b/.deaddrop"));
    let own = ["inbox", "outbox", "sessions", "approvals"];
    let own = own.map(|name| format!("{name}_dir = \".deaddrop/{name}\"\n")).concat();
    base.write("b/deaddrop.toml", format!("workspace_dir = \".\"\n{own}"));
    let doctor = base.run(&["-C", "b", "doctor"]).with_code(1).stdout;
    names_both(doctor.lines().find(|line| line.starts_with("NO  workspace ")).expect(&doctor));
    names_both(&new(&base, "b").with_code(2).stderr);
    assert!(!base.exists("b/.deaddrop/sessions/journal"));
    // Another workspace will do, and so will another folder for outboxes, once that is noted.
    base.run(&["-C", "b", "new", "--workspace-dir", "../c", "--no-watch", "A task"]).ok();
    base.run(&["-C", "a", "config", "unset", "outbox_dir"]).ok();
    names_both(&new(&base, "b").with_code(2).stderr);
    base.run(&["-C", "a", "new", "--no-watch", "A task"]).ok();
    new(&base, "b").ok();
}

#[test]
fn no_workspace_lies_in_what_another_keeps_for_itself() {
    let base = Project::that_nobody_agrees_to();
    base.run(&["init", "a"]).ok();
    new(&base, "a").ok();
    base.sh("mkdir -p a/.deaddrop/inbox/deep b; ln -s a/.deaddrop/approvals led");
    for workspace in ["a/.deaddrop", "a/.deaddrop/inbox", "a/.deaddrop/inbox/deep", "led"] {
        let workspace_dir = format!("../{workspace}");
        let new = ["-C", "b", "new", "--workspace-dir", &workspace_dir, "--no-watch", "x"];
        let told = base.fails(&new, "invalid-setting").with_code(2).message();
        assert!(told.contains("it cannot be the workspace"), "{workspace}: {told}");
    }
    assert!(!base.exists("b/sessions"));
}

#[test]
fn one_that_was_moved_behind_a_link_is_kept_from_replies_where_it_is_now() {
    for (moved, link) in [("old/p", "old/p"), ("old", "old")] {
        let base = Project::that_nobody_agrees_to();
        base.sh("mkdir -p old/p w");
        base.run(&["init", "old/p"]).ok();
        new(&base, "old/p").ok();
        base.sh(&format!("mv {moved} w/it; ln -s \"$PWD/w/it\" {link}"));
        base.run(&["-C", ".", "new", "--workspace-dir", "w", "--no-watch", "--id", ID, "x"]).ok();
        let within = if moved == "old" { "it/p" } else { "it" };
        let path = format!("{within}/.deaddrop/inbox/r.txt");
        let reply = format!("[CREATE_FILE path=\"{path}\"]\nx\n[/CREATE_FILE]\n");
        let file = base.write("reply.txt", reply);
        let apply = ["-C", ".", "apply", "--workspace-dir", "w", file.to_str().unwrap()];
        assert_eq!(codes(&base.json(&apply)["results"]), ["own-state"], "{moved}");
        assert!(!base.exists(&format!("w/{path}")));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn those_that_are_nowhere_near_cost_a_call_each() {
    use std::process::Command;

    let base = Project::that_nobody_agrees_to();
    let trace = base.at("trace");
    if !Command::new("strace")
        .args(["-qq", "-o", "/dev/null", "true"])
        .output()
        .is_ok_and(|o| o.status.success())
    {
        eprintln!("SKIPPED: there is no strace that may watch");
        return;
    }
    let here = base.path().canonicalize().unwrap();
    let mut bytes = Vec::new();
    for n in 0..200 {
        let place = here.join(format!(".far/{n}")).display().to_string();
        base.sh(&format!("mkdir -p {place}/.deaddrop/inbox; touch {place}/deaddrop.toml"));
        bytes.extend(format!(
            "b{place}\0i1.2\0w{place}\0o{place}/.deaddrop\0o{place}/deaddrop.toml\0fi1.2 {place}/.deaddrop/inbox\0fs1.2 {place}/.deaddrop/sessions\0"
        ).into_bytes());
    }
    let file = base.state().join("deaddrop/bases");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, bytes).unwrap();
    new(&base, ".").ok();
    let command = base.command(&["-C", ".", "status"]);
    let mut strace = Command::new("strace");
    strace
        .args(["-qq", "-f", "-o"])
        .arg(&trace)
        .arg(command.get_program())
        .args(command.get_args());
    strace.current_dir(&here).env("XDG_STATE_HOME", base.state());
    Run::of(&mut strace, "").ok();
    let calls = base.read("trace");
    let far = calls.lines().filter(|line| line.contains("/.far/")).count();
    assert!((200..=210).contains(&far), "{far} calls for 200 projects");
}

#[test]
fn the_replies_of_one_that_is_gone_write_nowhere() {
    let base = Project::that_nobody_agrees_to();
    base.sh("mkdir -p p/src p/lib");
    base.run(&["init", "p"]).ok();
    new(&base, "p").ok();
    // Without its settings it is there still, and so are its replies.
    base.sh("rm p/deaddrop.toml");
    let told = base.fails(&["init", "p/src"], "usage").with_code(2).message();
    assert!(told.contains("/p can write here; with --force"), "{told}");
    base.sh("rm -r p/.deaddrop");
    base.run(&["init", "p/src"]).ok();
    let found = run_in(&base, "p/src", &["log", "--json"]).with_code(5);
    assert_eq!(found.error()["code"], "no-open-session");
    // Nor is one that was made there before kept from being found.
    base.run(&["init", "p"]).ok();
    new(&base, "p").ok();
    base.write("p/lib/deaddrop.toml", "max_tokens = 5000\n");
    let told = run_in(&base, "p/lib", &["status", ID, "--json"]).with_code(2).message();
    assert!(told.contains("where replies and commands write; name a project with -C"), "{told}");
    base.sh("rm -r p/.deaddrop p/deaddrop.toml");
    run_in(&base, "p/lib", &["status", ID]).with_code(5);
    // What somebody left there opens nothing unasked.
    base.write("p/lib/deaddrop.toml", "sandbox = \"off\"\n");
    let refused = run_in(&base, "p/lib", &["status", "--json"]).with_code(2);
    assert_eq!(refused.error()["code"], "consent-needed");
    assert!(refused.message().contains("sandbox = \"off\""), "{refused:?}");
}
