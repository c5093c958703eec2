//! How commands find the project that is meant.

use std::os::unix::fs::chown;
use std::path::Path;
use std::process::Command;

use crate::projects::init::{project, run_in};
use crate::support::{ID, Project, Run};

#[test]
fn the_nearest_base_directory_upwards_is_meant() {
    let base = project();
    let run = run_in(&base, "src/deep", &["new", "--no-watch", "--id", ID, "A task"]).ok();
    let folder = base.path().canonicalize().unwrap();
    assert_eq!(
        run.stdout.trim(),
        folder.join(format!(".deaddrop/outbox/{ID}_seq0001.txt")).to_str().unwrap()
    );
    let first = run.stderr.lines().next().unwrap();
    assert_eq!(first, format!("In the project {}:", folder.display()), "{run:?}");
    // What the person types is relative to where they are.
    base.write("src/reply.txt", "[CREATE_FILE path=\"made\"]\nx\n[/CREATE_FILE]\n");
    let run = run_in(&base, "src/deep", &["apply", "../reply.txt"]).ok();
    assert!(!run.stderr.contains("In the project"), "{run:?}");
    assert_eq!(base.read("made"), "x\n");
    run_in(&base, "src", &["-C", "deep/../..", "status", ID]).ok();
    let run = run_in(&base, "src", &["-C", ".", "status", ID, "--json"]).with_code(5);
    assert_eq!(run.error()["code"], "no-session");
    assert!(run.message().contains("no session"), "{run:?}");
    assert!(!base.exists("src/sessions") && !base.exists("src/inbox"));

    // One that a session made, without settings.
    let base = Project::new();
    base.run(&["new", "--no-watch", "--id", ID, "A task"]).ok();
    let run = run_in(&base, "workspace", &["status", ID, "--json"]).ok();
    assert_eq!(run.json()["session"], ID);
    base.write("reply.txt", "[RUN_COMMAND]\nmkdir -p w/inbox w/outbox w/sessions; touch w/sessions/journal w/deaddrop.toml\n[/RUN_COMMAND]\n");
    base.run(&["apply", "reply.txt"]).ok();
    assert!(
        base.exists("workspace/w/sessions/journal") && base.exists("workspace/w/deaddrop.toml")
    );
    base.sh("mkdir -p workspace/f/inbox workspace/f/outbox workspace/f/sessions; touch workspace/f/sessions/.lock");
    for made in ["workspace/w", "workspace/f"] {
        let run = run_in(&base, made, &["status", ID, "--json"]).with_code(2);
        assert_eq!(run.error()["code"], "invalid-setting", "{run:?}");
        assert!(run.message().contains("where replies and commands write"), "{run:?}");
    }
}

#[test]
fn where_there_is_none_commands_say_so() {
    let base = Project::new();
    for command in [
        &["status", ID][..],
        &["resume"],
        &["show"],
        &["log"],
        &["say", "x"],
        &["apply", "-"],
        &["approve"],
        &["deny"],
        &["show", "--open"],
        &["config", "path"],
        &["config", "set", "max_tokens", "5000"],
        &["generate", "systemd-unit"],
    ] {
        let run = base.fails(command, "no-project").with_code(5);
        let told = run.message();
        assert!(told.contains("there is no project here ("), "{command:?}: {told}");
        assert!(told.contains("`deaddrop init`"), "{command:?}: {told}");
    }
    let run = base.run(&["status"]).ok();
    assert!(run.stdout.is_empty(), "{run:?}");
    assert!(run.stderr.contains("There is no project here or above"), "{run:?}");
    base.run(&["config", "show"]).ok();
    assert_eq!(base.names("."), [] as [&str; 0]);
}

#[test]
fn a_base_directory_of_somebody_else_is_refused() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: files of another user, which only root can make");
        return;
    }
    let base = project();
    base.write("deaddrop.toml", "workspace_dir = \".\"\n[guest]\ncommand = [\"touch\", \"ran\"]\n");
    let give = |path: &Path, user: u32| chown(path, Some(user), None).unwrap();
    give(&base.at("deaddrop.toml"), 60_123);
    for (folder, command) in [("src", "doctor"), (".", "doctor"), ("src/deep", "status")] {
        let run = run_in(&base, folder, &[command, "--json"]);
        // The doctor looks on.
        if command == "doctor" {
            let found = run.with_code(1).json_lines();
            let well =
                |what: &str| &found.iter().find(|line| line["what"] == what).unwrap()["well"];
            assert_eq!(found[0]["what"], "project");
            let told = found[0]["told"].as_str().unwrap();
            assert!(told.contains("belongs to another user (60123)"), "{found:?}");
            assert_eq!(found[0]["well"], false, "{found:?}");
            assert_eq!([well("workspace"), well("guest")], [true, false], "{found:?}");
            let guest = found.iter().find(|line| line["what"] == "guest").unwrap()["told"].clone();
            let unasked = " was not asked, because of the faults above";
            assert!(guest.as_str().unwrap().ends_with(unasked), "{guest}");
        } else {
            let told = run.with_code(2).message();
            assert!(told.contains("belongs to another user (60123)"), "{told}");
        }
        assert!(!base.exists("ran") && !base.exists("src/ran"));
    }
    // In deaddrop's own folder the project around it is meant, as everywhere.
    let told = run_in(&base, ".deaddrop/inbox", &["doctor"]).with_code(1).stdout;
    assert!(told.contains("\nok  workspace "), "{told}");
    let here = base.path().canonicalize().unwrap();
    assert!(told.contains(&format!("{}", here.join("deaddrop.toml").display())), "{told}");
    let sudo = Run::of(base.command(&["status"]).env("SUDO_UID", "60123"), "");
    sudo.ok();
    base.run(&["-C", ".", "status"]).ok();
    base.sh("rm -r deaddrop.toml .deaddrop");
    base.run(&["-C", ".", "status"]).ok();
}

#[test]
fn a_search_ends_with_the_file_system() {
    let base = project();
    // In a mount namespace of its own, so that nothing of it is left.
    let script = "mount -t tmpfs none src && mkdir -p src/deep && cd src/deep && exec \"$@\"";
    let run = |arguments: &[&str]| {
        let mut command = base.command(&[]);
        let program = command.get_program().to_owned();
        command = {
            let mut wrapped = Command::new("unshare");
            wrapped.args(["-m", "sh", "-ec", script, "sh"]).arg(program).args(arguments);
            wrapped.current_dir(base.path()).env("XDG_CONFIG_HOME", base.at(".no-config"));
            wrapped.env("XDG_STATE_HOME", base.state());
            wrapped
        };
        command.output()
    };
    match run(&["--version"]) {
        Ok(output) if output.status.success() => {}
        other => {
            eprintln!(
                "SKIPPED: a file system of its own, which cannot be mounted here ({other:?})"
            );
            return;
        }
    }
    let said = String::from_utf8(run(&["status"]).unwrap().stderr).unwrap();
    assert!(said.contains("no project here or above"), "{said}");
    let run = run_in(&base, "src/deep", &["status"]).ok();
    assert!(!run.stderr.contains("no project"), "{run:?}");
}
