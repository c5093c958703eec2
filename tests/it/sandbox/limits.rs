//! What a command may use up: processes, the size of files, memory and the disk.

use std::process::Command;

use super::python;
use crate::scene::{Asked, Scene, Walls, Way, marked, marker, reply, results};
use crate::support::wait_until;

#[test]
fn a_fork_bomb_is_bounded() {
    for scene in Scene::confined() {
        let is_root = scene.way != Way::OrdinaryUser && rustix::process::geteuid().is_root();
        if is_root && scene.walls() != Walls::Full {
            eprintln!(
                "SKIPPED: {}: there nothing but the pid namespace of ours bounds root",
                scene.name()
            );
            continue;
        }
        scene.base.write("deaddrop.toml", "sandbox.max_processes = 400\n");
        scene.hand_over();
        let n = marker();
        let bomb = format!(
            "i=0; while [ $i -lt 1500 ]; do sleep {n} & i=$((i+1)); done 2>/dev/null; echo unbounded"
        );
        let mut child =
            scene.start(&reply(&[&bomb, "echo next"]), &["--command-timeout-seconds", "20"]);
        let mut most = 0;
        wait_until("the end of the bomb", || {
            most = most.max(marked(&n).len());
            child.try_wait().unwrap().is_some()
        });
        let results = results(&scene.base.outbox(2));
        assert!(!results.contains("Output: unbounded"), "{}: {results}", scene.name());
        assert!(results.contains("Output: next\n"), "{}: {results}", scene.name());
        assert!(most <= 400, "{}: {most} processes", scene.name());
        assert_eq!(marked(&n), [""; 0], "{}", scene.name());
    }
}

#[test]
fn no_file_grows_beyond_its_limit() {
    for scene in Scene::confined() {
        scene.base.write("deaddrop.toml", "sandbox.max_file_bytes = 1000000\n");
        scene.hand_over();
        let results = scene.run(
            &[
                "head -c 2000000 /dev/zero > big; wc -c < big",
                "truncate -s 2000000 other",
                "head -c 900000 /dev/zero > small; wc -c < small",
            ],
            &[],
        );
        assert!(
            results.contains("Output: 1000000\n") || results.contains("\n  1000000\n"),
            "{}: {results}",
            scene.name()
        );
        assert!(
            results.contains("[FAILED] RUN_COMMAND: Ran 'truncate"),
            "{}: {results}",
            scene.name()
        );
        assert!(results.contains("Output: 900000"), "{}: {results}", scene.name());
    }
    let Some(open) = Scene::with(Way::AsItIs, Asked::Off) else { return };
    open.base.write("deaddrop.toml", "sandbox.max_file_bytes = 1000000\n");
    let results = open.run(&["head -c 2000000 /dev/zero > big; wc -c < big"], &[]);
    assert!(results.contains("Output: 2000000\n"), "{results}");
}

#[test]
fn no_process_takes_more_memory_than_is_set() {
    let Some(take) = python("print(len(bytearray(400 << 20)))") else { return };
    for scene in Scene::confined() {
        scene.base.write("deaddrop.toml", "sandbox.max_memory_bytes = 300000000\n");
        scene.hand_over();
        let results = scene.run(&[&take], &[]);
        assert!(results.contains("MemoryError"), "{}: {results}", scene.name());
        scene.base.write("deaddrop.toml", "sandbox.max_memory_bytes = 0\n");
        let results = scene.run(&[&take], &[]);
        assert!(results.contains("Output: 419430400\n"), "{}: {results}", scene.name());
    }
}

#[test]
fn no_command_begins_on_a_full_disk() {
    let Some(scene) = Scene::new(Way::AsItIs) else { return };
    scene.base.write("deaddrop.toml", "sandbox.min_free_bytes = 1_000_000_000_000_000\n");
    let results = scene.run(&["touch ran"], &[]);
    assert!(
        results.starts_with("[FAILED] RUN_COMMAND: Could not run 'touch ran': only "),
        "{results}"
    );
    assert!(results.contains("are kept free (sandbox.min_free_bytes)"), "{results}");
    assert!(!scene.base.exists("workspace/ran"));
}

/// Applies a reply where the base directory lies on a small disk of its own; gives the next outbox.
fn on_a_small_disk(scene: &Scene, asked: &str, commands: &[&str]) -> Option<(String, String)> {
    let script = "mount -t tmpfs -o size=64m none small && cp -a inbox outbox sessions workspace small \
        && chmod 777 small && cd small || exit 77; \
        echo 'sandbox.min_free_bytes = 20000000' > deaddrop.toml; \
        \"$@\"; s=$?; cat outbox/*_seq0002.txt; exit $s";
    scene.base.sh("mkdir small");
    let file = scene.base.write("reply.txt", reply(commands));
    let mut command = Command::new("unshare");
    command.args(["-Urm", "sh", "-c", script, "sh"]).arg(crate::support::program());
    command.args(["apply", "--sandbox", asked]).arg(file).current_dir(scene.base.path());
    let output = command.env("XDG_CONFIG_HOME", scene.base.at(".no-config")).output().unwrap();
    if output.status.code() == Some(77) {
        eprintln!("SKIPPED: no small disk can be had here");
        return None;
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Some((String::from_utf8(output.stdout).unwrap(), said))
}

#[test]
fn a_command_that_fills_the_disk_is_ended_and_what_happened_is_written_down() {
    for asked in ["auto", "bwrap", "partial"] {
        let Some(scene) = Scene::new(Way::AsItIs) else { return };
        let fill = "echo begun; for i in 1 2 3 4 5 6 7 8 9 10 11 12; do for n in 1 2 3 4; do head -c 1000000 /dev/zero >> fill; done; sleep 0.03; done; sleep 1000";
        let Some((outbox, said)) = on_a_small_disk(&scene, asked, &[fill, "rm fill; echo room"])
        else {
            return;
        };
        if asked == "bwrap" && outbox.contains("none to be had") {
            eprintln!("SKIPPED: bwrap does not work in a user namespace here");
            continue;
        }
        assert!(outbox.contains("it filled the disk: "), "{asked}: {said}{outbox}");
        assert!(outbox.contains("Output: begun"), "{asked}: {outbox}");
        // Less than is kept free is left: what makes room runs all the same.
        assert!(outbox.contains("Output: room\n"), "{asked}: {outbox}");
    }
}
