//! What a person sets about the sandbox, as commands meet it.

use super::{Attack, SECRET, furnish};
use crate::scene::{Scene, Way, results};

#[test]
fn what_is_made_readable_is_read_and_no_more() {
    for mut scene in Scene::confined() {
        furnish(&mut scene);
        scene
            .base
            .write("deaddrop.toml", "sandbox.readable = [\"outside\", \"nowhere\", \"~/diary\"]\n");
        scene.hand_over();
        let base = scene.base.path().display();
        let read = format!("cat {base}/outside/secret {base}/home/diary | grep -c '{SECRET}'");
        let results = scene.run(&[&read], &[]);
        assert!(results.contains("Output: 2\n"), "{}: {results}", scene.name());
        Attack::new()
            .by("write", format!("echo x > {base}/outside/secret"))
            .by("make", format!("touch {base}/outside/new"))
            .by("remove", format!("rm {base}/outside/secret"))
            .by(
                "beside",
                format!("grep '{SECRET}' {base}/workspace-evil/secret {base}/home/.netrc"),
            )
            .fails_in(&scene);
    }
}

#[test]
fn what_is_made_writable_is_written_and_deaddrops_files_in_it_are_not() {
    for mut scene in Scene::confined() {
        furnish(&mut scene);
        scene.base.write("deaddrop.toml", "sandbox.writable = [\"outside\"]\n");
        scene.hand_over();
        let base = scene.base.path().display();
        scene.run(&[&format!("echo new > {base}/outside/new; rm {base}/outside/secret")], &[]);
        assert_eq!(scene.base.names("outside"), ["new"], "{}", scene.name());
        assert_eq!(scene.base.read("outside/new"), "new\n");
    }
    for mut scene in Scene::full() {
        furnish(&mut scene);
        let base = scene.base.path().canonicalize().unwrap();
        let base = base.display();
        scene.base.write("deaddrop.toml", format!("sandbox.writable = [\"{base}\"]\n"));
        scene.hand_over();
        Attack::new()
            .by("settings", format!("echo x >> {base}/deaddrop.toml || rm {base}/deaddrop.toml"))
            .by("the inbox", format!("echo x > {base}/inbox/x.txt"))
            .by("sessions", format!("ls -A {base}/sessions | grep ."))
            .fails_in(&scene);
        let results = scene.run(&[&format!("echo x > {base}/beside && echo made")], &[]);
        assert!(results.contains("Output: made") && scene.base.exists("beside"), "{results}");
    }
}

#[test]
fn the_environment_is_an_allow_list_and_what_is_added_to_it() {
    for scene in Scene::confined() {
        scene.base.write(
            "deaddrop.toml",
            "sandbox.env = [\"SECRET_TOKEN\", \"ADDED=some thing\", \"MISSING\"]\n",
        );
        scene.hand_over();
        let results = scene.run(&["env | sort"], &[]);
        for set in [
            "SECRET_TOKEN=hunter2",
            "ADDED=some thing",
            "TERM=dumb",
            "CARGO_NET_OFFLINE=true",
            "npm_config_offline=true",
            "PIP_NO_INDEX=1",
            "HOME=",
            "PATH=",
        ] {
            assert!(results.contains(set), "{}: {set}: {results}", scene.name());
        }
        for unset in
            ["MISSING", "XDG_CONFIG_HOME", "CARGO_BIN_EXE", "CARGO_MANIFEST_DIR", "LD_LIBRARY_PATH"]
        {
            assert!(!results.contains(unset), "{}: {unset}: {results}", scene.name());
        }
    }
}

#[test]
fn the_daemon_runs_commands_as_one_reply_does() {
    let Some(scene) = Scene::new(Way::AsItIs) else { return };
    let daemon = scene.base.serve(&["watch"]);
    let attack = crate::scene::reply(&[
        "cat ../deaddrop.toml ../sessions/*.json /etc/shadow; touch ../x; echo in > in",
    ]);
    scene.base.write("inbox/r.txt", attack);
    let outbox = scene.base.wait_for_outbox(2);
    assert!(outbox.contains("\n  Sandbox: full: "), "{outbox}");
    assert!(!results(&outbox).contains("root:"), "{outbox}");
    assert_eq!(scene.base.read("workspace/in"), "in\n");
    assert!(!scene.base.exists("x"));
    daemon.stop();
}
