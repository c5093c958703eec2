//! HOME and TMPDIR, which a session's commands have for themselves, and the caches of tools, whose
//! changes are forgotten. A command can leave a trap there for the next one.

use std::fs;

use super::{Attack, SECRET, furnish};
use crate::scene::{Asked, Scene, Way, printed, reply};
use crate::support::ID;

#[test]
fn home_and_tmp_are_kept_within_a_session_and_forgotten_between_sessions() {
    for mut scene in Scene::confined() {
        furnish(&mut scene);
        let results = scene.run(
            &["echo h > ~/mine; echo t > $TMPDIR/mine; echo in:$TMPDIR", "cat ~/mine $TMPDIR/mine"],
            &[],
        );
        assert!(results.contains("  Output: h\n  t"), "{}: {results}", scene.name());
        assert_eq!(results.contains("in:/tmp\n"), scene.is_full(), "{}: {results}", scene.name());
        assert!(!scene.base.exists("home/mine") && !std::path::Path::new("/tmp/mine").exists());

        scene.base.begin("00ff00ff");
        scene.hand_over();
        let look = reply(&["ls -A ~ $TMPDIR | grep mine; ls ../sessions; echo looked"]);
        let file = scene.base.write("second.txt", look);
        let sandbox = format!("{:?}", scene.asked).to_lowercase();
        let arguments = ["apply", "--session", "00ff00ff", "--sandbox", &sandbox];
        let output = scene.command(&scene.program, &arguments).arg(file).output().unwrap();
        let outbox = scene.base.read(String::from_utf8(output.stdout).unwrap().trim());
        assert!(printed(&outbox, "looked") && !outbox.contains("mine\n"), "{outbox}");
        assert!(!outbox.contains(&format!("{ID}.json")), "{}: {outbox}", scene.name());
    }
}

#[test]
fn what_is_written_into_a_cache_is_forgotten() {
    for mut scene in Scene::confined() {
        furnish(&mut scene);
        let write =
            "cd ../home/.cargo/registry && echo evil > cached && echo evil > new && mkdir sub";
        let write = write.replace("..", &scene.base.path().display().to_string());
        let overlays = scene.asked == Asked::Auto && scene.is_full();
        let results = scene.run(
            &[
                &format!("{write} && cat cached new"),
                &format!("cd {}; cat cached; ls", scene.base.at("home/.cargo/registry").display()),
            ],
            &[],
        );
        // bwrap has no overlays and Landlock knows none: there the cache is to be read alone.
        assert_eq!(
            results.contains("Output: evil\n  evil"),
            overlays,
            "{}: {results}",
            scene.name()
        );
        assert!(results.contains("  Output: cached\n  cached"), "{}: {results}", scene.name());
        assert_eq!(scene.base.read("home/.cargo/registry/cached"), "cached\n");
        assert_eq!(scene.base.names("home/.cargo/registry"), ["cached"]);
    }
}

/// Traps in HOME, where the next command's root is built.
const TRAPS: [&str; 17] = [
    "mv ~/.cargo ~/.away; ln -s /oldroot$OUT ~/.cargo",
    "mv ~/.local ~/.away; ln -s /oldroot$OUT ~/.local",
    "rm -rf ~/.cargo; ln -s /etc ~/.cargo",
    "rm -rf ~/.cargo; ln -s ../outside ~/.cargo",
    "rm -rf ~/.local; ln -s \"$OUT\" ~/.local",
    "rm -rf ~/.cargo; mkdir ~/.cargo; ln -s \"$OUT\" ~/.cargo/registry",
    "rm -rf ~/.cargo; ln -s .cargo ~/.cargo",
    "rm -rf ~/.cargo; echo file > ~/.cargo",
    "rm -rf ~/.cargo; mkfifo ~/.cargo",
    "rm -rf ~/.local; mkdir -p ~/.local/bin; chmod 0 ~/.local/bin ~/.local",
    "rm -rf ~/.cargo; ln -s /proc/1/root/tmp ~/.cargo",
    "chmod 0 ~ /tmp",
    "d=$(dirname $PWD); mv $d /tmp/away; ln -s /etc $d",
    "mv ~/.cargo ~/.away; mkdir -p ~/.cargo/config.toml/x",
    "mv ~/.cargo ~/.away; mkdir -p ~/.cargo/config.toml/x ~/.cargo/config.toml.aside1",
    "d=$(dirname $PWD); mv $d /tmp/away; echo file > $d",
    "d=$(dirname $PWD); mv $d /tmp/away; ln -s away $d",
];

#[test]
fn a_trap_in_home_neither_stops_the_next_command_nor_leads_it_out() {
    for asked in [Asked::Auto, Asked::Bwrap] {
        for way in [Way::AsItIs, Way::OrdinaryUser] {
            let Some(mut scene) = Scene::with(way, asked) else { continue };
            furnish(&mut scene);
            let out = scene.base.at("outside");
            let before = scene.base.names("outside");
            for trap in TRAPS {
                let trap = format!("OUT={}; {trap}; echo set", out.display());
                let results = scene.run(
                    &[&trap, "cat ~/.cargo/registry/cached; ~/.local/bin/tool; echo alive"],
                    &[],
                );
                let expected = "  Output: cached\n  a tool\n  alive";
                assert!(results.contains(expected), "{}: {trap}: {results}", scene.name());
                assert!(!results.contains(SECRET));
                assert_eq!(scene.base.names("outside"), before, "{trap}");
                scene.base.sh(&format!("chmod -R u+rwX sessions/{ID}/home sessions/{ID}/tmp; rm -rf sessions/{ID}/home/.??*"));
            }
        }
    }
}

#[test]
fn a_toolchain_elsewhere_is_seen_without_its_credentials() {
    for mut scene in Scene::confined() {
        furnish(&mut scene);
        scene.base.write("tools/cargo/credentials.toml", SECRET);
        scene.base.write("tools/cargo/config.toml", format!("token = \"{SECRET}\"\n"));
        scene.base.write("tools/cargo/bin/tool", "elsewhere\n");
        scene.base.write("tools/cargo/registry/cached", "kept\n");
        scene.environment.push(("CARGO_HOME", scene.base.at("tools/cargo")));
        scene.hand_over();
        Attack::new()
            .by("credentials", format!("grep '{SECRET}' $CARGO_HOME/credentials.toml"))
            .by("settings", format!("grep '{SECRET}' $CARGO_HOME/config.toml"))
            .by("by their path", format!("grep -r '{SECRET}' ../tools"))
            .fails_in(&scene);
        let results = scene.run(&["echo $CARGO_HOME; cat $CARGO_HOME/bin/tool $CARGO_HOME/registry/cached; echo x > $CARGO_HOME/bin/tool"], &[]);
        let expected =
            format!("  Output: {}\n  elsewhere\n  kept", scene.base.at("tools/cargo").display());
        assert!(results.contains(&expected), "{}: {results}", scene.name());
        assert_eq!(scene.base.read("tools/cargo/bin/tool"), "elsewhere\n");
    }
}

#[test]
fn a_variable_that_names_the_home_opens_nothing() {
    for mut scene in Scene::confined() {
        furnish(&mut scene);
        for variable in ["CARGO_HOME", "GOPATH", "PYENV_ROOT", "VIRTUAL_ENV"] {
            scene.environment.push((variable, scene.base.at("home")));
        }
        let home = fs::canonicalize(scene.base.at("home")).unwrap();
        Attack::new()
            .by("diary", format!("grep '{SECRET}' {}/diary", home.display()))
            .by("key", format!("grep '{SECRET}' {}/.ssh/id_ed25519", home.display()))
            .fails_in(&scene);
    }
}
