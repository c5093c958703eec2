//! What is out of reach: the person's own, deaddrop's state, and protected names.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::super::client::{Server, rpc};
use super::{Talk, assert_told, of_command, sandboxes};
use crate::support::{ID, Project, has_sandbox};

#[test]
fn a_command_reads_nothing_of_the_persons_home_and_writes_nothing_outside() {
    // Not below /tmp: a command has a /tmp of its own, whatever else is hidden.
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    let home = place.path().join("home");
    fs::create_dir_all(home.join(".ssh")).unwrap();
    for file in ["notes", ".ssh/id", ".netrc"] {
        fs::write(home.join(file), "hunter2").unwrap();
    }
    let outside = place.path().join("made");
    for (sandbox, is_open) in [("off", true), ("auto", false)] {
        if !is_open && !has_sandbox(sandbox) {
            continue;
        }
        let base = Project::new();
        let (_server, mut client) =
            Server::piped(rpc(&base, &["--sandbox", sandbox]).env("HOME", &home));
        let mut exec = |cmd: String| {
            let answer = client.ask(1, "exec", &json!({ "cmd": cmd }));
            of_command(&answer["result"]).1
        };
        for file in ["notes", ".ssh/id", ".netrc"] {
            let read = exec(format!("cat {0}/{file}; cat ~/{file}", home.display()));
            assert_eq!(read.contains("hunter2"), is_open, "{sandbox}: {file}");
        }
        exec(format!("echo owned > {}", outside.display()));
        assert_eq!(outside.exists(), is_open, "{sandbox}");
        let _ = fs::remove_file(&outside);
        let beside = base.path().display().to_string();
        exec(format!("echo owned > {beside}/beside; echo mine > inside"));
        assert_eq!(base.exists("beside"), is_open, "{sandbox}");
        assert_eq!(base.read("workspace/inside"), "mine\n");
    }
}

/// Everything in the folders and files of deaddrop's state, as it stands.
fn state(base: &Project) -> Vec<Option<Vec<u8>>> {
    let session = format!("sessions/{ID}.json");
    let outbox = format!("outbox/{ID}_seq0001.txt");
    let listed = ["inbox", "approvals"].map(|name| Some(base.names(name).join("/").into_bytes()));
    let files = [&*session, &outbox, "deaddrop.toml", ".state/deaddrop/rpc/other/step"];
    files.into_iter().map(|file| fs::read(base.at(file)).ok()).chain(listed).collect()
}

/// A project with a session, settings and what another server keeps.
fn furnished() -> Project {
    let base = Project::with_session();
    base.write("deaddrop.toml", "# settings\n");
    base.write(".state/deaddrop/rpc/other/step", "what a step came to");
    base
}

#[test]
fn deaddrops_state_is_out_of_reach_of_paths_and_lists() {
    for sandbox in sandboxes() {
        // The root is the project itself, so that all of it would be in reach.
        let mut talk = Talk::in_base(furnished(), &["--root", ".", "--sandbox", sandbox]);
        let before = state(&talk.base);
        let root = talk.base.path().canonicalize().unwrap();
        for at in [
            &format!("sessions/{ID}.json"),
            "sessions/new.json",
            "inbox/reply.txt",
            "inbox/.claimed/x",
            "approvals/yes.json",
            &format!("outbox/{ID}_seq0001.txt"),
            "deaddrop.toml",
            ".state/deaddrop/rpc/other/step",
            "workspace/../inbox/reply.txt",
        ] {
            for at in [at.to_owned(), format!("{}/{at}", root.display())] {
                for method in ["read_file", "write_file"] {
                    let told = talk.fails(method, &json!({ "path": at, "content": "forged" }));
                    assert_told(&told, -32603, &[&at, "deaddrop's own state"]);
                }
            }
        }
        for at in ["sessions", "inbox", "outbox", "approvals", ".state/deaddrop"] {
            let told = talk.fails("list_dir", &json!({ "path": at }));
            assert_told(&told, -32603, &[at, "deaddrop's own state"]);
        }
        let listed = talk.gives("list_dir", &json!({ "path": "" }));
        let entries = listed["entries"].as_array().unwrap();
        let names: Vec<&str> = entries.iter().map(|e| e["name"].as_str().unwrap()).collect();
        assert_eq!(names, [".state", "workspace"]);
        let listed = talk.gives("list_dir", &json!({ "path": ".state" }));
        assert_eq!(listed, json!({ "entries": [] }));
        assert_eq!(state(&talk.base), before);
    }
}

#[test]
fn deaddrops_state_is_out_of_reach_of_commands() {
    if !has_sandbox("auto") {
        return;
    }
    // Paths below the root, and whole ones.
    for root in [".", "workspace"] {
        let mut talk = Talk::in_base(furnished(), &["--root", root]);
        let before = state(&talk.base);
        let base = talk.base.path().canonicalize().unwrap();
        for at in [
            &format!("sessions/{ID}.json"),
            &format!("outbox/{ID}_seq0001.txt"),
            "inbox/forged.txt",
            "approvals/forged.json",
            "deaddrop.toml",
            ".state/deaddrop/rpc/other/step",
        ] {
            let at = base.join(at);
            let at = at.display();
            let (_, read, _) = talk.exec(&format!("cat {at}; echo forged > {at}; rm -f {at}"));
            assert!(!read.contains("sett") && !read.contains(ID) && !read.contains("step"));
            for folder in ["sessions", "inbox", "outbox", "approvals", ".state/deaddrop/rpc"] {
                let folder = base.join(folder);
                let (_, names, _) = talk.exec(&format!("ls -A {}", folder.display()));
                assert!(!names.contains(ID) && !names.contains("other"), "{names}");
            }
        }
        assert_eq!(state(&talk.base), before, "{root}");
    }
}

#[test]
fn what_will_be_state_cannot_be_written_beforehand() {
    let mut talk = Talk::new(&["--root", "."]);
    for at in ["inbox/x", "approvals/x", "sessions/x", "outbox/x", "deaddrop.toml"] {
        let told = talk.fails("write_file", &json!({ "path": at, "content": "forged" }));
        assert_told(&told, -32603, &[at, "deaddrop's own state"]);
    }
    assert_eq!(talk.base.names("."), [".state"]);
}

#[test]
fn protected_names_are_read_and_never_written() {
    if !has_sandbox("auto") {
        return;
    }
    let base = Project::new();
    base.write("deaddrop.toml", "protected_names = [\".git\", \"secret.key\"]\n");
    base.write("workspace/.git/config", "[core]\n");
    let mut talk = Talk::in_base(base, &[]);
    assert_eq!(talk.gives("read_file", &json!({ "path": ".git/config" }))["content"], "[core]\n");
    let root = talk.root();
    for at in [".git/config", ".git/hooks/pre-commit", "deep/.git/config", "deep/secret.key"] {
        for at in [at.to_owned(), format!("{root}/{at}")] {
            let told = talk.fails("write_file", &json!({ "path": at, "content": "evil" }));
            assert_told(&told, -32603, &[&at, "protected_names"]);
        }
    }
    // What a command makes under such a name is put away, and told.
    let (_, _, stderr) = talk.exec("echo evil > secret.key");
    assert!(stderr.contains("deaddrop: ") && stderr.contains("secret.key"), "{stderr}");
    talk.exec("echo evil > .git/config");
    assert_eq!(talk.base.read("workspace/.git/config"), "[core]\n");
    assert!(!talk.base.exists("workspace/secret.key"));
    // Other names are free, also those that are protected by default.
    talk.gives("write_file", &json!({ "path": ".bashrc", "content": "mine" }));
    drop(talk);
    // Where commands have all rights there is nothing to keep.
    let mut talk = Talk::new(&["--sandbox", "off"]);
    talk.gives("write_file", &json!({ "path": ".git/config", "content": "mine" }));
    assert_eq!(talk.base.read("workspace/.git/config"), "mine");
}

#[test]
fn settings_of_the_base_directory_hold_for_a_root_elsewhere() {
    let base = Project::new();
    base.write("deaddrop.toml", "protected_names = [\"mine\"]\n[sandbox]\nenv = [\"TOLD=so\"]\n");
    let root = tempfile::tempdir().unwrap();
    let mut talk = Talk::in_base(base, &["--root", root.path().to_str().unwrap()]);
    assert_eq!(talk.exec("echo $TOLD").1, "so\n");
    if !has_sandbox("auto") {
        return;
    }
    let told = talk.fails("write_file", &json!({ "path": "a/mine", "content": "x" }));
    assert_told(&told, -32603, &["'a/mine'", "protected_names"]);
    talk.gives("write_file", &json!({ "path": ".git/config", "content": "x" }));
}

#[test]
fn commands_of_a_root_elsewhere_leave_nothing_beside_it() {
    // Without walls a command has the machine's own /tmp.
    if !has_sandbox("auto") {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let mut talk = Talk::new(&["--root", root.path().to_str().unwrap()]);
    talk.exec("echo x > made; echo y > \"${TMPDIR:-/nowhere}/left\"; exit 0");
    assert_eq!(fs::read_to_string(root.path().join("made")).unwrap(), "x\n");
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
    assert_eq!(talk.base.names("."), [".state"]);
    talk.client.close();
    assert_eq!(talk.server.wait().code(), Some(0));
    let own = talk.base.names(".state/deaddrop/rpc");
    let left = talk.base.names(&format!(".state/deaddrop/rpc/{}", own[0]));
    assert_eq!(left, [""; 0]);
    assert!(!Path::new("/nowhere").exists());
}
