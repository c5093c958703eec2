//! The tiers: told where they hold, never lowered silently, and no command where there is none.

use std::path::Path;

use crate::scene::{Asked, Scene, Way, reply};

/// What the outbox and `doctor` say after a reply with one command.
fn told(scene: &Scene, sandbox: &str) -> (String, String) {
    let file = scene.base.write("reply.txt", reply(&["echo ran | tee ran"]));
    let arguments = ["apply", "--again", "--sandbox", sandbox];
    let output = scene.command(&scene.program, &arguments).arg(file).output().unwrap();
    let outbox = scene.base.read(String::from_utf8(output.stdout).unwrap().trim());
    let doctor = scene.command(&scene.program, &["doctor", "--sandbox", sandbox]).output();
    (outbox, String::from_utf8(doctor.unwrap().stdout).unwrap())
}

#[test]
fn where_what_is_asked_for_cannot_be_had_commands_are_refused_and_the_reason_is_told() {
    if !Path::new("/usr/bin/bwrap").exists() {
        eprintln!("SKIPPED: there is no /usr/bin/bwrap");
        return;
    }
    for way in [Way::NoNamespaces, Way::NoPrivileges] {
        let Some(scene) = Scene::new(way) else { continue };
        let (outbox, doctor) = told(&scene, "bwrap");
        for said in [
            "  Sandbox: none to be had here, so RUN_COMMAND is refused\n",
            "  Network: off: no command runs\n",
            "[FAILED] RUN_COMMAND: Could not run 'echo ran | tee ran': there is no sandbox on this machine",
            "the files of the workspace can be changed all the same",
        ] {
            assert!(outbox.contains(said), "{way:?}: no '{said}' in {outbox}");
        }
        assert!(!scene.base.exists("workspace/ran"));
        // By its own words.
        assert!(
            doctor.contains("full (bwrap): bwrap could not make the sandbox: bwrap: "),
            "{doctor}"
        );
    }
}

#[test]
fn a_weaker_tier_says_what_it_does_not_cover_and_why_it_is_not_a_stronger_one() {
    let Some(scene) = Scene::new(Way::NoPrivileges) else { return };
    let (outbox, doctor) = told(&scene, "auto");
    for said in [
        "not covered: metadata (chmod, utime)",
        "UNIX sockets are refused",
        "protected files are watched, not locked",
    ] {
        assert!(outbox.contains(said), "no '{said}' in {outbox}");
    }
    assert!(outbox.contains("and no command gets a socket"), "{outbox}");
    assert!(doctor.contains("full: no more namespaces may be made"), "{doctor}");
}

#[test]
fn each_tier_is_told_with_the_network_that_it_leaves() {
    for (scene, network) in Scene::all().map(|scene| {
        let network = match scene.asked {
            Asked::Off => "open to commands, as it is on this machine",
            _ if scene.is_partial() => "off: nothing can be fetched or installed unless the user opens it (sandbox.network), and no command gets a socket",
            _ => "off: nothing can be fetched or installed unless the user opens it (sandbox.network); a command reaches only servers that it starts itself, on localhost",
        };
        (scene, network)
    }) {
        // The tier itself is looked at whenever a scene runs something.
        let outbox = scene.outbox(&["true"], &[]);
        assert!(outbox.contains(&format!("\n  Network: {network}")), "{}: {outbox}", scene.name());
        assert_eq!(outbox.matches("\n  Sandbox: ").count(), 1);
    }
}

#[test]
fn a_probe_leaves_nothing_behind() {
    if Path::new("/deaddrop-probe").exists() {
        eprintln!("SKIPPED: an older version left /deaddrop-probe here");
        return;
    }
    for scene in Scene::all() {
        scene.run(&["true"], &[]);
        assert!(!Path::new("/deaddrop-probe").exists(), "{}", scene.name());
        assert_eq!(scene.base.names("workspace"), [""; 0], "{}", scene.name());
    }
}

/// Runs `new` at a terminal where nothing confines commands, and types this answer.
fn asked(scene: &Scene, answer: &str) -> String {
    use std::io::{Read, Write};

    let (ours, theirs) = super::terminal().unwrap();
    let arguments = ["new", "--no-watch", "--id", "b1b2b3b4", "--sandbox", "bwrap", "A task"];
    let mut command = scene.command(&scene.program, &arguments);
    command.stdin(theirs.try_clone().unwrap()).stderr(theirs).stdout(std::process::Stdio::null());
    command.env("PATH", "/usr/bin:/bin");
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut terminal = std::fs::File::from(ours);
    let mut said = String::new();
    let mut buffer = [0; 4096];
    // At the end of the other side the system answers with an error.
    while let Ok(n @ 1..) = terminal.read(&mut buffer) {
        said.push_str(&String::from_utf8_lossy(&buffer[..n]));
        if said.ends_with("[y/N] ") {
            terminal.write_all(answer.as_bytes()).unwrap();
        }
    }
    assert!(child.wait().unwrap().success(), "{said}");
    said
}

#[test]
fn at_a_terminal_a_person_is_asked_once_whether_commands_may_run_without_a_sandbox() {
    for (answer, sandbox, ran) in [
        ("y\n", "none to be had here; the user allowed commands with their own rights", true),
        ("\n", "none to be had here, so RUN_COMMAND is refused", false),
        ("n\n", "none to be had here, so RUN_COMMAND is refused", false),
    ] {
        let Some(scene) = Scene::new(Way::NoNamespaces) else { return };
        let said = asked(&scene, answer);
        assert_eq!(said.matches("[y/N]").count(), 1, "{said}");
        assert!(said.contains("this machine has no sandbox"), "{said}");
        let outbox = scene.base.read("outbox/b1b2b3b4_seq0001.txt");
        assert!(outbox.contains(&format!("\n  Sandbox: {sandbox}\n")), "{outbox}");
        // The answer holds for this session, and for no other.
        for (session, runs) in [("b1b2b3b4", ran), ("a1b2c3d4", false)] {
            let file = scene.base.write("r.txt", crate::scene::reply(&["touch ran"]));
            let file = file.to_str().unwrap();
            let arguments = ["apply", "--session", session, "--sandbox", "bwrap", file];
            let output = scene.command(&scene.program, &arguments).output().unwrap();
            assert!(output.status.success(), "{output:?}");
            assert_eq!(scene.base.exists("workspace/ran"), runs, "{answer:?} {session}");
            let _ = std::fs::remove_file(scene.base.at("workspace/ran"));
        }
    }
}
