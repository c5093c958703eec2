//! What is noted of base directories that are gone, or that keep something where another one works.

use crate::support::{Base, ID, Run};

fn new(base: &Base, folder: &str) -> Run {
    base.run(&["-C", folder, "new", "--no-watch", "--id", ID, "A task"])
}

/// A base directory `a` that writes its outboxes into a folder beside it, `b`.
fn writing_into_b() -> Base {
    let base = Base::that_nobody_agrees_to();
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
    let base = Base::that_nobody_agrees_to();
    base.sh("mkdir -p p/inner");
    new(&base, "p/inner").ok();
    base.sh("cd p/inner; rm -r outbox sessions approvals workspace inbox");
    base.write("p/inner/inbox/main.rs", "fn main() {}\n");
    let told = base.run(&["init", "p"]).ok().stderr;
    assert!(!told.contains("lies in it"), "{told}");
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
    base.run(&["-C", "b", "--workspace-dir", "../c", "new", "--no-watch", "A task"]).ok();
    base.run(&["-C", "a", "config", "unset", "outbox_dir"]).ok();
    names_both(&new(&base, "b").with_code(2).stderr);
    base.run(&["-C", "a", "new", "--no-watch", "A task"]).ok();
    new(&base, "b").ok();
}
