//! What a command may use up: processes, the size of files, memory and the disk.

use std::process::Command;

use super::python;
use crate::scene::{Asked, Scene, Walls, Way, marked, marker, reply, results};
use crate::support::{ID, wait_until};

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
        if !scene.bounds_processes() {
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
        results.starts_with("[FAILED] RUN_COMMAND: Could not run 'touch ran': the disk has only "),
        "{results}"
    );
    assert!(results.contains("are kept free (sandbox.min_free_bytes)"), "{results}");
    assert_eq!(scene.codes(), ["not-started"]);
    assert!(!scene.base.exists("workspace/ran"));
}

/// Does something where the project lies on a small disk of its own; gives what was printed.
fn on_a_small_disk(scene: &Scene, options: &str, script: &str) -> Option<(String, String)> {
    let script = format!(
        "mount -t tmpfs -o {options} none small && cp -a inbox outbox sessions workspace small \
        && chmod 777 small && cd small || exit 77; \"$@\" -C . config allow > allowed; {script}"
    );
    scene.base.sh("mkdir -p small");
    let mut command = Command::new("unshare");
    command.args(["-Urm", "sh", "-c", &script, "sh"]).arg(crate::support::program());
    command.current_dir(scene.base.path()).env("XDG_CONFIG_HOME", scene.base.at(".no-config"));
    command.env("XDG_STATE_HOME", scene.base.state());
    let output = command.output().unwrap();
    if output.status.code() == Some(77) {
        eprintln!("SKIPPED: no small disk can be had here");
        return None;
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Some((String::from_utf8_lossy(&output.stdout).into_owned(), said))
}

#[test]
fn a_command_that_fills_the_disk_is_ended_and_what_happened_is_written_down() {
    for asked in ["auto", "bwrap", "partial"] {
        let Some(scene) = Scene::new(Way::AsItIs) else { return };
        let fill = "echo begun; for i in 1 2 3 4 5 6 7 8 9 10 11 12; do for n in 1 2 3 4; do head -c 1000000 /dev/zero >> fill; done; sleep 0.03; done; sleep 1000";
        let dropped = scene.base.write("reply.txt", reply(&[fill, "rm fill; echo room"]));
        let script = format!(
            "echo 'sandbox.min_free_bytes = 20000000' > deaddrop.toml; \"$@\" apply --json --sandbox {asked} {}; cat outbox/*_seq0002.txt",
            dropped.display()
        );
        let Some((outbox, said)) = on_a_small_disk(&scene, "size=64m", &script) else { return };
        if asked == "bwrap" && outbox.contains("none to be had") {
            eprintln!("SKIPPED: bwrap does not work in a user namespace here");
            continue;
        }
        assert!(outbox.contains("\"code\":\"stopped\""), "{asked}: {said}{outbox}");
        assert!(outbox.contains("it filled the disk, "), "{asked}: {said}{outbox}");
        assert!(outbox.contains("Output: begun"), "{asked}: {outbox}");
        // Less than is kept free is left: what makes room runs all the same.
        assert!(outbox.contains("Output: room\n"), "{asked}: {outbox}");
    }
}

/// Makes empty files until fewer can be made than are kept free, but more than a command needs that
/// removes them: however late the watch comes to look, it finds this.
const MANY_FILES: &str = "mkdir $TMPDIR/many; cd $TMPDIR/many; i=0; \
    while [ $(stat -f -c %d .) -gt 200 ]; do touch $(seq $i $((i+9))); i=$((i+10)); done; sleep 1000";

#[test]
fn a_command_that_makes_too_many_files_is_ended_and_what_happened_is_written_down() {
    let Some(scene) = Scene::new(Way::AsItIs) else { return };
    let file = scene.base.write("reply.txt", reply(&[MANY_FILES, "rm -r $TMPDIR/many; echo room"]));
    let script = format!(
        "\"$@\" apply --json --sandbox partial {}; cat outbox/*_seq0002.txt",
        file.display()
    );
    let options = "size=512m,nr_inodes=3000";
    let Some((outbox, said)) = on_a_small_disk(&scene, options, &script) else { return };
    assert!(outbox.contains("\"code\":\"stopped\""), "{said}{outbox}");
    assert!(outbox.contains("it made too many files: the disk had room for "), "{said}{outbox}");
    assert!(outbox.contains("Output: room\n"), "{said}{outbox}");
}

#[test]
fn where_no_file_can_be_made_any_more_it_says_where_room_is() {
    let Some(scene) = Scene::new(Way::AsItIs) else { return };
    // Without the watch, and without a loop in the shell that is cut off by the deadline.
    let many =
        "mkdir $TMPDIR/many; cd $TMPDIR/many; seq 1 30000 | xargs touch 2>/dev/null; echo made";
    let file = scene.base.write("reply.txt", reply(&[many]));
    let script = format!(
        "echo 'sandbox.min_free_bytes = 0' > deaddrop.toml; \"$@\" apply --sandbox partial {}; \"$@\" doctor; \
        rm -r sessions/{ID}; \"$@\" resume --no-watch; cat outbox/*_seq0002.txt",
        file.display()
    );
    let options = "size=512m,nr_inodes=15000";
    let Some((told, said)) = on_a_small_disk(&scene, options, &script) else { return };
    let room = format!("/small/sessions/{ID}, which you can remove");
    assert!(said.contains("No space left on device"), "{said}{told}");
    assert!(said.contains("`df -i`") && said.contains(&room), "{said}{told}");
    assert!(told.contains(" has room for only 0 more files (inodes); "), "{told}");
    assert!(told.contains("NO  sessions ") && !told.contains("check its owner"), "{told}");
    assert!(told.contains("Output: made\n"), "{said}{told}");
}

#[test]
fn the_doctor_asks_the_file_system_itself_how_much_is_free() {
    let Some(scene) = Scene::new(Way::AsItIs) else { return };
    let Some((told, _)) = on_a_small_disk(&scene, "size=20m", "\"$@\" doctor") else { return };
    assert!(told.contains(" has only 19 MiB free; make room"), "{told}");
}

#[test]
fn what_commands_left_is_gone_after_the_session() {
    for scene in Scene::confined() {
        scene
            .run(&["mkdir -p ~/a/b && touch ~/a/b/c && chmod 0 ~/a && echo kept > $TMPDIR/x"], &[]);
        assert!(scene.base.exists(&format!("sessions/{ID}/home")), "{}", scene.name());
        let done = scene.base.write("done.txt", "[DONE]\nAll of it.\n[/DONE]\n");
        let sandbox = format!("{:?}", scene.asked).to_lowercase();
        let arguments = ["apply", "--sandbox", &sandbox];
        let output = scene.command(&scene.program, &arguments).arg(done).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let names = scene.base.names("sessions");
        let left = |name: &&String| name.starts_with(ID) && !name.contains('.');
        assert_eq!(names.iter().find(left), None, "{}", scene.name());
        assert!(!names.iter().any(|name| name.starts_with(".gone-")), "{names:?}");
    }
}
