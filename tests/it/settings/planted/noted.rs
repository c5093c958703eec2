//! What the person agreed to, and which projects they use, is noted out of reach of replies.

use std::fs;

use serde_json::Value;

use crate::scene::{Scene, printed, reply};
use crate::support::{ID, Project, Run, has_sandbox};

/// A project whose workspace holds the folder of notes, as the home folder of a person does.
fn around_the_notes(is_there: bool) -> Project {
    let base = Project::with_session();
    if is_there {
        base.write("workspace/.local/state/deaddrop/allowed/x", "noted\n");
    }
    base
}

fn apply(base: &Project, reply: &str) -> Run {
    let file = base.write("reply.txt", reply);
    base.agree_in(&base.at("workspace/.local/state"));
    let mut command = base.command(&["apply", "--again", "--session", ID, file.to_str().unwrap()]);
    Run::of(command.env("XDG_STATE_HOME", base.at("workspace/.local/state")), "")
}

#[test]
fn replies_reach_no_note() {
    for is_there in [true, false] {
        let base = around_the_notes(is_there);
        let run = apply(
            &base,
            "[CREATE_FILE path=\".local/state/deaddrop/allowed/y\"]\nforged\n[/CREATE_FILE]\n\
             [DELETE_FILE path=\".local/state/deaddrop/bases\"]\n\
             [READ_FILE path=\".local/state/deaddrop/allowed/x\"]\n\
             [MOVE_FILE path=\".local\" to=\"elsewhere\"]\n[LIST_FILES]\n",
        );
        let outbox = base.read(run.ok().stdout.trim());
        assert_eq!(outbox.matches("is part of deaddrop's own state").count(), 4, "{outbox}");
        assert!(!outbox.contains("noted") && !outbox.contains("(0 bytes)"), "{outbox}");
        assert!(!base.exists("workspace/.local/state/deaddrop/allowed/y"));
        assert!(base.exists("workspace/.local") && !base.exists("workspace/elsewhere"));
    }
}

#[test]
fn commands_reach_no_note() {
    if !has_sandbox("auto") {
        return;
    }
    let mut tried = 0;
    for is_there in [true, false] {
        let base = around_the_notes(is_there);
        let run = apply(
            &base,
            &reply(&[
                "cat .local/state/deaddrop/allowed/x || echo unseen",
                "mkdir -p .local/state/deaddrop/allowed; echo forged > .local/state/deaddrop/allowed/y; \
                 rm -rf .local/state/deaddrop/bases; mv .local local; mv .local/state state; echo tried",
            ]),
        );
        let outbox = base.read(run.ok().stdout.trim());
        if !outbox.contains("Sandbox: full") {
            eprintln!("SKIPPED: commands are not confined to a root of their own here");
            return;
        }
        tried += 1;
        assert!(printed(&outbox, "unseen") && printed(&outbox, "tried"), "{outbox}");
        let home = "workspace/.local/state/deaddrop";
        assert!(!base.exists(&format!("{home}/allowed/y")), "is_there: {is_there}");
        assert!(base.exists(&format!("{home}/bases")), "is_there: {is_there}");
        assert_eq!(base.exists(&format!("{home}/allowed/x")), is_there);
    }
    assert_eq!(tried, 2);
}

#[test]
fn the_persons_own_settings_cannot_be_made_by_commands() {
    for scene in Scene::full() {
        let mut scene = scene;
        let home = scene.base.at("workspace/config");
        scene.environment.push(("XDG_CONFIG_HOME", home.clone()));
        let run = "mkdir -p config/deaddrop; echo 'sandbox = \"off\"' > config/deaddrop/config.toml; echo tried";
        let results = scene.run(&[run], &[]);
        assert!(printed(&results, "tried"), "{}: {results}", scene.name());
        assert!(!home.join("deaddrop/config.toml").exists(), "{}", scene.name());
    }
}

#[test]
fn base_directories_are_noted_at_their_first_session() {
    let base = Project::new();
    let noted = || {
        let bytes = fs::read(base.state().join("deaddrop/bases")).unwrap_or_default();
        let begins = bytes.split(|byte| *byte == 0).filter(|field| field.first() == Some(&b'b'));
        let paths: Vec<String> =
            begins.map(|field| String::from_utf8(field[1..].to_vec()).unwrap()).collect();
        let here = base.path().canonicalize().unwrap().display().to_string();
        let inside = paths.iter().map(|path| path.strip_prefix(&here).unwrap().to_owned());
        inside.collect::<Vec<_>>()
    };
    base.run(&["init", "a"]).ok();
    base.run(&["-C", "a", "status"]).ok();
    base.run(&["-C", "a", "doctor"]).ok();
    assert_eq!(noted(), [""; 0]);
    for folder in ["a", "b", "a"] {
        base.sh(&format!("mkdir -p {folder}"));
        base.run(&["-C", folder, "new", "--no-watch", "A task"]).ok();
    }
    assert_eq!(noted(), ["/a", "/b"]);
    // One that is gone is forgotten; what cannot be read stops it.
    base.sh("rm -r a; mkdir c d");
    base.run(&["-C", "c", "new", "--no-watch", "A task"]).ok();
    assert_eq!(noted(), ["/b", "/c"]);
    fs::write(base.state().join("deaddrop/bases"), "\u{1}nonsense").unwrap();
    base.run(&["-C", "d", "new", "--no-watch", "A task"]).with_code(2);
    fs::remove_file(base.state().join("deaddrop/bases")).unwrap();
    base.run(&["-C", "d", "new", "--no-watch", "A task"]).ok();
    assert_eq!(noted(), ["/d"]);

    let file = base.write("a-file", "");
    let mut command = base.command(&["-C", "b", "doctor", "--json"]);
    let told = Run::of(command.env("XDG_STATE_HOME", &file), "").stdout;
    let told: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told = told.iter().find(|finding| finding["what"] == "notes").unwrap();
    assert_eq!(told["well"], false, "{told}");
}

#[test]
fn so_many_base_directories_are_remembered_and_no_more() {
    let base = Project::new();
    let here = base.path().canonicalize().unwrap();
    let mut bytes = Vec::new();
    for n in 0..1_003 {
        let folder = here.join(format!(".old/{n}"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("deaddrop.toml"), "").unwrap();
        bytes.extend(format!("b{0}\0o{0}/inbox\0", folder.display()).into_bytes());
    }
    let file = base.state().join("deaddrop/bases");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, bytes).unwrap();
    base.run(&["new", "--no-watch", "A task"]).ok();
    let text = fs::read_to_string(&file).unwrap();
    let bases: Vec<&str> = text.split('\0').filter(|field| field.starts_with('b')).collect();
    assert_eq!(bases.len(), 1_000);
    assert!(bases[0].ends_with("/.old/4"), "{}", bases[0]);
    assert_eq!(bases[999][1..], here.display().to_string());
}
