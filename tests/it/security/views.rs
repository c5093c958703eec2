//! What a command is shown is held by handle: a folder that is replaced by a link shows nothing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::sandbox::{SECRET, furnish};
use crate::scene::{Asked, Scene, Way, printed, reply, results};
use crate::support::PATIENCE;

/// The last command of each reply, run in the workspace: it reads and writes what it can reach.
const TAKE: &str =
    "cat ENTRY/id_ed25519 ENTRY/.ssh/id_ed25519; echo evil >> ENTRY/authorized_keys; echo alive";

/// What a person set, and how a reply changes it.
struct Swap {
    name: &'static str,
    settings: &'static str,
    /// From the workspace.
    entry: &'static str,
    /// Lines of a reply; those that begin with `[` as they are, others are commands.
    steps: &'static [&'static str],
    /// Where the settings then name what is no plain folder, so that no command is run at the next
    /// start.
    refused: fn(&Scene) -> bool,
}

const SWAPS: [Swap; 14] = [
    Swap {
        name: "writable, by MOVE_FILE",
        settings: "sandbox.writable = [\"workspace/build\"]",
        entry: "build",
        steps: &["ln -s KEYS link", MOVE_AWAY, "[MOVE_FILE path=\"link\" to=\"build\"]"],
        refused: |_| true,
    },
    Swap {
        name: "readable, by MOVE_FILE",
        settings: "sandbox.readable = [\"workspace/build\"]",
        entry: "build",
        steps: &["ln -s KEYS link", MOVE_AWAY, "[MOVE_FILE path=\"link\" to=\"build\"]"],
        refused: |_| true,
    },
    Swap {
        name: "writable below readable, by MOVE_FILE",
        settings: "sandbox.readable = [\"workspace/build\"]\nsandbox.writable = [\"workspace/build/in\"]",
        entry: "build/in",
        steps: &["mkdir b; ln -s KEYS b/in", MOVE_AWAY, "[MOVE_FILE path=\"b\" to=\"build\"]"],
        refused: |_| true,
    },
    Swap {
        name: "writable, by a command",
        settings: "sandbox.writable = [\"workspace/build\"]",
        entry: "build",
        steps: &["mv build old; ln -s KEYS build"],
        refused: |_| true,
    },
    Swap {
        name: "writable, its parent, by MOVE_FILE",
        settings: "sandbox.writable = [\"workspace/a/.ssh\"]",
        entry: "a/.ssh",
        steps: &[
            "ln -s HOME link",
            "[MOVE_FILE path=\"a\" to=\"old\"]",
            "[MOVE_FILE path=\"link\" to=\"a\"]",
        ],
        refused: |_| true,
    },
    Swap {
        name: "readable, its parent, by MOVE_FILE",
        settings: "sandbox.readable = [\"workspace/a/.ssh\"]",
        entry: "a/.ssh",
        steps: &[
            "ln -s HOME link",
            "[MOVE_FILE path=\"a\" to=\"old\"]",
            "[MOVE_FILE path=\"link\" to=\"a\"]",
        ],
        refused: |_| true,
    },
    Swap {
        name: "removed, and a link",
        settings: "sandbox.writable = [\"workspace/build\"]",
        entry: "build",
        steps: &["ln -s KEYS link", MOVE_AWAY, "true", "ln -s KEYS build"],
        refused: |_| true,
    },
    Swap {
        name: "a link by way of another",
        settings: "sandbox.writable = [\"workspace/build\"]",
        entry: "build",
        steps: &[
            "ln -s KEYS second; ln -s second link",
            MOVE_AWAY,
            "[MOVE_FILE path=\"link\" to=\"build\"]",
        ],
        refused: |_| true,
    },
    Swap {
        name: "not there at first",
        settings: "sandbox.writable = [\"workspace/later\"]",
        entry: "later",
        steps: &["ln -s KEYS later"],
        refused: |_| true,
    },
    Swap {
        name: "another folder",
        settings: "sandbox.readable = [\"workspace/build\"]",
        entry: "build",
        steps: &["mkdir other", MOVE_AWAY, "[MOVE_FILE path=\"other\" to=\"build\"]"],
        refused: |_| false,
    },
    Swap {
        name: "a file",
        settings: "sandbox.readable = [\"workspace/build\"]",
        entry: "build",
        steps: &["echo x > other", MOVE_AWAY, "[MOVE_FILE path=\"other\" to=\"build\"]"],
        refused: |_| true,
    },
    Swap {
        name: "beside the workspace, by a command",
        settings: "sandbox.writable = [\"more\", \"more/build\"]",
        entry: "../more/build",
        steps: &["cd ../more && mv build old; ln -sn KEYS build"],
        refused: Scene::is_partial,
    },
    Swap {
        name: "beside the workspace and readable, by a command",
        settings: "sandbox.writable = [\"more\"]\nsandbox.readable = [\"more/build\"]",
        entry: "../more/build",
        steps: &["cd ../more && mv build old; ln -sn KEYS build"],
        refused: Scene::is_partial,
    },
    Swap {
        name: "beside the workspace, its parent",
        settings: "sandbox.writable = [\"more\", \"more/a/.ssh\"]",
        entry: "../more/a/.ssh",
        steps: &["cd ../more && mv a old; ln -sn HOME a"],
        refused: |_| true,
    },
];
const MOVE_AWAY: &str = "[MOVE_FILE path=\"build\" to=\"old\"]";

/// A scene with the person's home folder and keys, and the folders that settings name.
fn furnished(scene: &mut Scene, settings: &str) {
    furnish(scene);
    scene.base.sh(
        "mkdir -p workspace/build/in workspace/a/.ssh more/build more/a/.ssh; chmod 755 home/.ssh",
    );
    set(scene, settings);
    scene.hand_over();
}

/// Sets these lines by variables: a file would be asked about again once an entry of it leads elsewhere.
fn set(scene: &mut Scene, settings: &str) {
    for (setting, variable) in [
        ("sandbox.readable", "DEADDROP_SANDBOX_READABLE"),
        ("sandbox.writable", "DEADDROP_SANDBOX_WRITABLE"),
    ] {
        let value =
            settings.lines().find_map(|line| line.strip_prefix(setting)).unwrap_or_default();
        let value = value.trim_matches([' ', '=', '[', ']']).replace(", ", ":").replace('"', "");
        scene.environment.retain(|(name, _)| *name != variable);
        scene.environment.push((variable, value.into()));
    }
}

/// The results of a reply; `HOME` and `KEYS` in it are the person's home folder and keys.
#[track_caller]
fn applied(scene: &Scene, reply: &str) -> String {
    let home = scene.base.at("home").display().to_string();
    let reply = reply.replace("KEYS", &format!("{home}/.ssh")).replace("HOME", &home);
    let output = scene.start(&reply, &[]).wait_with_output().unwrap();
    let outbox = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(!outbox.is_empty(), "{}: {output:?}", scene.name());
    results(&scene.base.read(outbox.trim()))
}

fn written(steps: &[&str]) -> String {
    let step =
        |step: &&str| if step.starts_with('[') { format!("{step}\n") } else { reply(&[step]) };
    steps.iter().map(step).collect()
}

/// The keys are as they were, and no command saw them.
#[track_caller]
fn assert_kept(scene: &Scene, what: &str, told: &str) {
    let name = scene.name();
    assert!(!told.contains(SECRET), "{name}: {what}: {told}");
    assert_eq!(scene.base.names("home/.ssh"), ["id_ed25519"], "{name}: {what}: {told}");
    assert_eq!(scene.base.read("home/.ssh/id_ed25519"), format!("{SECRET}\n"), "{name}: {what}");
}

/// Every sandbox, and the one without namespaces as a user too.
fn scenes() -> impl Iterator<Item = Scene> {
    const SCENES: [(Way, Asked); 5] = [
        (Way::AsItIs, Asked::Auto),
        (Way::AsItIs, Asked::Bwrap),
        (Way::AsItIs, Asked::Partial),
        (Way::OrdinaryUser, Asked::Auto),
        (Way::OrdinaryUser, Asked::Partial),
    ];
    SCENES.into_iter().filter_map(|(way, asked)| Scene::with(way, asked))
}

#[test]
fn a_folder_of_the_settings_that_is_replaced_shows_nothing() {
    for swap in &SWAPS {
        for mut scene in scenes().take(3) {
            furnished(&mut scene, swap.settings);
            let take = TAKE.replace("ENTRY", swap.entry);
            let told = applied(&scene, &(written(swap.steps) + &reply(&[&take])));
            assert_kept(&scene, swap.name, &told);
            // And at the next start.
            let told = applied(&scene, &reply(&[&take]));
            assert_kept(&scene, swap.name, &told);
            let name = format!("{}: {}: {told}", scene.name(), swap.name);
            let refused = (swap.refused)(&scene);
            assert_eq!(printed(&told, "alive"), !refused, "{name}");
            assert_eq!(told.contains("sandbox."), refused, "{name}");
            if !refused {
                continue;
            }
            // Until the person has put a folder there again.
            let put = "cd workspace; rm -rf ENTRY PARENT 2> /dev/null; mkdir -p ENTRY";
            let parent = swap.entry.strip_suffix("/.ssh").unwrap_or_default();
            scene.base.sh(&put.replace("ENTRY", swap.entry).replace("PARENT", parent));
            scene.hand_over();
            let told = applied(&scene, &reply(&[&take]));
            assert!(printed(&told, "alive"), "{}: {}: {told}", scene.name(), swap.name);
        }
    }
}

#[test]
fn what_is_another_by_now_is_not_shown_to_a_later_command() {
    // What the person does while deaddrop runs; whether a command is run then.
    let changes = [
        ("another folder", "mkdir new && mv more old && mv new more", false),
        ("a link", "mv more old && ln -s home/.ssh more", false),
        ("a file", "mv more old && echo x > more", false),
        (
            "its parent a link",
            "mv above old && mkdir other && cp -r old/below other/ && ln -s other above",
            false,
        ),
        ("gone", "rm -r more above", true),
        ("as it was", "mv more old && mv old more", true),
        ("more in it", "echo x > more/new", true),
    ];
    for setting in ["sandbox.readable", "sandbox.writable"] {
        for (change, script, alive) in changes {
            for scene in scenes() {
                let mut scene = scene;
                furnished(&mut scene, &format!("{setting} = [\"more\", \"above/below\"]"));
                scene.base.sh("mkdir -p above/below");
                scene.hand_over();
                // It waits until the person has changed that.
                let wait = "touch began; while ! test -e go; do sleep 0.01; done";
                let home = scene.base.at("home").display().to_string();
                let take = TAKE.replace("ENTRY", "../more");
                let child = scene.start(&reply(&[wait, &take]), &[]);
                wait_for(|| scene.base.exists("workspace/began"));
                scene.base.sh(script);
                scene.base.write("workspace/go", "");
                let output = child.wait_with_output().unwrap();
                let told =
                    results(&scene.base.read(String::from_utf8(output.stdout).unwrap().trim()));
                assert_kept(&scene, change, &told);
                let name = format!("{}: {setting}: {change}: {home}: {told}", scene.name());
                let alive = alive && !(change == "gone" && setting == "sandbox.writable");
                assert_eq!(printed(&told, "alive"), alive, "{name}");
                assert_eq!(told.contains(setting), !alive, "{name}");
            }
        }
    }
}

#[test]
fn a_folder_that_is_swapped_all_the_time_shows_nothing() {
    for mut scene in scenes() {
        furnished(&mut scene, "sandbox.writable = [\"more\", \"more/build\"]");
        scene.base.sh("ln -s ../home/.ssh more/link");
        scene.hand_over();
        let [build, link] = ["more/build", "more/link"].map(|path| scene.base.at(path));
        let take = TAKE.replace("ENTRY", "../more/build");
        let commands = ["touch began"].into_iter().chain([&*take; 30]).collect::<Vec<_>>();
        let child = scene.start(&reply(&commands), &[]);
        wait_for(|| scene.base.exists("workspace/began"));
        let ended = AtomicBool::new(false);
        let output = thread::scope(|scope| {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    renameat_with(CWD, &build, CWD, &link, RenameFlags::EXCHANGE).unwrap();
                }
            });
            let output = child.wait_with_output();
            ended.store(true, Ordering::Relaxed);
            output.unwrap()
        });
        let told = scene.base.read(String::from_utf8(output.stdout).unwrap().trim());
        assert_kept(&scene, "swapped", &told);
    }
}

#[test]
fn an_entry_that_is_a_link_at_the_start_counts_only_where_commands_could_not_have_made_it() {
    for mut scene in scenes() {
        // Outside of what commands write it is the person's, and resolved once.
        furnished(&mut scene, "sandbox.readable = [\"seen\"]\nsandbox.writable = [\"used\"]");
        scene.base.sh("ln -s outside seen; ln -s more/build used");
        scene.hand_over();
        let base = scene.base.path().display().to_string();
        let use_them = format!("cat {base}/outside/secret && echo new > {base}/more/build/new");
        let told = applied(&scene, &reply(&[&use_them]));
        assert!(told.contains(SECRET), "{}: {told}", scene.name());
        assert_eq!(scene.base.read("more/build/new"), "new\n", "{}: {told}", scene.name());

        for (setting, script) in [
            ("sandbox.writable = [\"workspace/out\"]", "ln -s ../outside workspace/out"),
            ("sandbox.readable = [\"workspace/out\"]", "ln -s ../outside workspace/out"),
            ("sandbox.readable = [\"workspace/file\"]", "echo x > workspace/file"),
            ("sandbox.readable = [\"by\"]", "ln -s workspace/out by"),
            ("sandbox.writable = [\"more\", \"more/out\"]", "ln -s ../outside more/out"),
            (
                "sandbox.writable = [\"used\", \"more/build/out\"]",
                "ln -s ../../outside more/build/out",
            ),
        ] {
            set(&mut scene, setting);
            scene.base.sh(&format!("{script} 2> /dev/null || true"));
            scene.hand_over();
            let told = applied(&scene, &reply(&["cat out/secret ../by/secret; echo alive"]));
            let name = format!("{}: {setting}: {told}", scene.name());
            assert!(!told.contains(SECRET) && !printed(&told, "alive"), "{name}");
            assert!(told.contains(setting.split_once(' ').unwrap().0), "{name}");
        }
    }
}

#[test]
fn toolchains_are_not_reached_through_links_that_commands_could_have_made() {
    // Settings, what commands did in an earlier session, and where the keys could be seen then.
    let planted = [
        ("", "mkdir -p home/.cache; ln -s ../.ssh home/.cache/pip", "home/.cache/pip"),
        (
            "",
            "mkdir -p home/.cache; ln -s second home/.cache/uv; ln -s ../.ssh home/.cache/second",
            "home/.cache/uv",
        ),
        (
            "sandbox.writable = [\"home/.cache\"]",
            "mkdir -p home/.cache; ln -s ../.ssh home/.cache/go-build",
            "home/.cache/go-build",
        ),
        (
            "sandbox.writable = [\"home/.bun\"]",
            "mkdir home/.bun; ln -s ../.ssh home/.bun/bin",
            "home/.bun/bin",
        ),
        (
            "sandbox.writable = [\"more\"]",
            "mv home/.local/bin more/; ln -s ../../more/bin home/.local/bin; mv more/bin more/old; ln -s ../home/.ssh more/bin",
            "home/.local/bin",
        ),
        ("", "ln -s ../workspace/env home/.pyenv; ln -s ../home/.ssh workspace/env", "home/.pyenv"),
        (
            "sandbox.writable = [\"more\"]",
            "ln -s ../more home/.volta; ln -s ../home/.ssh more/bin",
            "home/.volta/bin",
        ),
        (
            "sandbox.writable = [\"more\"]",
            "ln -s ../more home/.bun; mkdir more/install; ln -s ../../home/.ssh more/install/cache",
            "home/.bun/install/cache",
        ),
    ];
    for (settings, script, place) in planted {
        for mut scene in scenes() {
            furnished(&mut scene, settings);
            scene.base.sh(script);
            scene.hand_over();
            let base = scene.base.path().display();
            let look = format!(
                "cat {base}/{place}/id_ed25519 {base}/home/.ssh/id_ed25519; echo evil >> {base}/{place}/authorized_keys; echo alive"
            );
            let told = applied(&scene, &reply(&[&look]));
            assert_kept(&scene, place, &told);
            assert!(printed(&told, "alive"), "{}: {script}: {told}", scene.name());
        }
    }
}

#[test]
fn a_folder_of_path_is_not_replaced_by_way_of_the_workspace() {
    for mut scene in scenes() {
        furnished(&mut scene, "");
        scene.base.sh("mkdir workspace/bin; ln -s ../workspace/bin home/bin");
        scene.base.write("workspace/bin/mine", "#!/bin/sh\necho mine\n");
        scene.base.sh("chmod 755 workspace/bin/mine");
        let bin = scene.base.at("home/bin");
        scene.environment.push(("PATH", format!("{}:/usr/bin:/bin", bin.display()).into()));
        scene.hand_over();
        let look = format!(
            "cat {0}/id_ed25519; echo evil >> {0}/authorized_keys; echo alive",
            bin.display()
        );
        let told = applied(
            &scene,
            &written(&[
                "mine",
                "ln -s KEYS link",
                "[MOVE_FILE path=\"bin\" to=\"old\"]",
                "[MOVE_FILE path=\"link\" to=\"bin\"]",
                &look,
            ]),
        );
        assert_kept(&scene, "PATH", &told);
        assert!(printed(&told, "mine") && printed(&told, "alive"), "{}: {told}", scene.name());
    }
}

#[test]
fn secret_files_in_the_folders_of_toolchains_are_covered() {
    const HIDDEN: [&str; 6] = [
        "home/.local/bin/.env",
        "home/.asdf/.env",
        "home/.pyenv/secret.key",
        "home/.pyenv/versions/one/.env.production",
        "home/.nvm/own.pem",
        "home/.cargo/bin/.netrc",
    ];
    const SEEN: [&str; 4] = [
        "home/.local/bin/tool",
        "home/.pyenv/versions/one/.env.example",
        "home/.pyenv/versions/one/ssl/cert.pem",
        "home/.cargo/bin/env.sh",
    ];
    for mut scene in scenes() {
        furnished(&mut scene, "");
        for file in HIDDEN {
            let text = format!("-----BEGIN PRIVATE KEY-----\n{SECRET}\n");
            scene
                .base
                .write(file, if file.contains("own.pem") { text } else { format!("A={SECRET}\n") });
        }
        for file in SEEN {
            scene.base.write(file, "-----BEGIN CERTIFICATE-----\nseen\n");
        }
        scene.hand_over();
        let base = scene.base.path().display();
        let path = |file: &&str| format!("{base}/{file}");
        let [hidden, seen] =
            [&HIDDEN[..], &SEEN].map(|files| files.iter().map(path).collect::<Vec<_>>().join(" "));
        let told = applied(
            &scene,
            &reply(&[&format!("grep -h '{}' {hidden}; cat {seen} | grep -c seen", &SECRET[4..])]),
        );
        assert!(
            !told.replace(&format!("grep -h '{}'", &SECRET[4..]), "").contains(&SECRET[4..]),
            "{}: {told}",
            scene.name()
        );
        assert!(printed(&told, "4"), "{}: {told}", scene.name());
    }
}

#[test]
fn what_settings_name_is_used_as_before() {
    for mut scene in scenes() {
        furnished(
            &mut scene,
            "sandbox.readable = [\"outside\", \"home/diary\", \"workspace/a\", \"nowhere\"]\nsandbox.writable = [\"more\", \"workspace/build\"]",
        );
        let base = scene.base.path().display().to_string();
        // A folder of the workspace may be made anew, and a file be replaced as editors do it.
        let told = applied(
            &scene,
            &reply(&[
                &format!("cat {base}/outside/secret {base}/home/diary | grep -c secret"),
                "rm -rf build && mkdir build && echo x > build/new && echo built",
                "cat build/new && echo again",
                &format!(
                    "mkdir {base}/more/deep && echo x > {base}/more/deep/new && rm -r {base}/more/build; echo written"
                ),
            ]),
        );
        for line in ["2", "built", "again", "written"] {
            assert!(printed(&told, line), "{}: {line}: {told}", scene.name());
        }
        assert_eq!(scene.base.read("more/deep/new"), "x\n");
        scene.base.sh("echo newer > home/new; mv home/new home/diary");
        scene.hand_over();
        let told = applied(&scene, &reply(&[&format!("cat {base}/home/diary")]));
        assert!(printed(&told, "newer"), "{}: {told}", scene.name());
    }
}

#[track_caller]
fn wait_for(condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < PATIENCE, "it never came");
        thread::sleep(Duration::from_millis(5));
    }
}
