//! A failure of the machine halts a run: an `error` of category `system`, the status `error`, and
//! nothing after it is tried ("Graceful Degradation").

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

use super::message;
use crate::scene::{Scene, Way};
use crate::support::{Project, check_events, program};

/// Asserts that a run was halted by its second operation.
#[track_caller]
fn halted(told: &Value) -> &str {
    assert_eq!(told["status"], "error", "{told}");
    let events = told["events"].as_array().unwrap();
    assert_eq!(events[0]["success"], true, "what was done before it stays done: {told}");
    assert_eq!(events[1]["type"], "error", "{told}");
    assert_eq!(events[1]["category"], "system", "{told}");
    assert_eq!(events[1]["operationId"], "halts", "{told}");
    for event in &events[2..] {
        assert_eq!((&event["type"], &event["category"]), (&json!("error"), &json!("execution")));
        assert!(event["message"].as_str().unwrap().starts_with("not carried out: "), "{told}");
    }
    assert_eq!(events.len(), 4);
    events[1]["message"].as_str().unwrap()
}

#[test]
fn where_no_sandbox_is_to_be_had_a_command_halts_the_run() {
    let Some(scene) = Scene::new(Way::NoNamespaces) else { return };
    if !Path::new("/usr/bin/bwrap").exists() {
        eprintln!("SKIPPED: there is no /usr/bin/bwrap");
        return;
    }
    let operations = json!([
        {"type": "createFile", "path": "before", "content": "x"},
        {"type": "shell", "id": "halts", "command": "touch ran"},
        {"type": "createFile", "path": "after", "content": "x"},
        {"type": "shell", "command": "touch ran"},
    ]);
    let file = scene.base.write("m.json", message(&operations));
    let arguments = ["ops", "run", "--policy=workspace", "--sandbox=bwrap", file.to_str().unwrap()];
    let output = scene.command(&scene.program, &arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let told = check_events(&String::from_utf8(output.stdout).unwrap()).unwrap();
    let why = halted(&told);
    assert!(why.contains("sandbox"), "{why}");
    assert!(scene.base.exists("workspace/before"));
    assert!(!scene.base.exists("workspace/after") && !scene.base.exists("workspace/ran"));
}

#[test]
fn a_full_disk_halts_the_run() {
    let base = Project::new();
    fs::create_dir_all(base.at("workspace/small")).unwrap();
    let large = "x".repeat(300_000);
    let operations = json!([
        {"type": "createFile", "path": "small/old", "content": "old\n"},
        {"type": "createFile", "id": "halts", "path": "small/old", "content": large,
         "overwrite": true},
        {"type": "createFile", "path": "after", "content": "x"},
        {"type": "message", "content": "x"},
    ]);
    let file = base.write("m.json", message(&operations));
    let script = "mount -t tmpfs -o size=64k none workspace/small || exit 77; \
                  \"$@\"; code=$?; cp workspace/small/* .; ls -A workspace/small > names; exit $code";
    let output = Command::new("unshare")
        .args(["-m", "sh", "-c", script, "sh"])
        .args([program(), Path::new("run"), Path::new("--policy=workspace"), &file])
        .current_dir(base.path())
        .env("XDG_CONFIG_HOME", base.at(".no-config"))
        .env("XDG_STATE_HOME", base.state())
        .output();
    // What makes the mount fails with this code too, and then there are no names.
    let ran = |output: &Output| output.status.code() == Some(1) && base.exists("names");
    let Some(output) = output.ok().filter(ran) else {
        eprintln!("SKIPPED: only root can mount a small file system");
        return;
    };
    let told = check_events(&String::from_utf8(output.stdout).unwrap()).unwrap();
    let why = halted(&told);
    assert!(why.starts_with("Cannot write 'small/old': "), "{why}");
    assert_eq!((base.read("old"), base.read("names")), ("old\n".into(), "old\n".into()));
    assert!(!base.exists("workspace/after"));
}
