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
            _ if scene.is_partial() => "off: nothing can be fetched or installed, and no command gets a socket",
            _ => "off: nothing can be fetched or installed; a command reaches only servers that it starts itself, on localhost",
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
