//! Commands that turn against the processes of deaddrop that run them.

use std::time::{Duration, Instant};

use deaddrop::protocol::Ending;

use super::run_by;
use crate::scene::{Asked, Scene, Walls, Way, landlock_knows_signals, marked, marker, reply};
use crate::support::Project;

/// Writes `$1` to every open file of the processes that stand between the command and deaddrop.
const FORGE: &str = r#"for p in 1 $PPID $(cut -d' ' -f4 /proc/$PPID/stat); do
    for n in /proc/$p/fd/*; do [ -e $n ] && [ ! -f $n ] && (printf "$1" > $n) 2>/dev/null; done
done"#;

#[test]
fn a_report_cannot_be_forged() {
    for scene in Scene::all() {
        scene.base.write("workspace/forge", FORGE);
        for forged in ["error=forged", "exit=0", "contained=none;hidden=yes;error=forged"] {
            let results = scene
                .run(&[&format!("sh ./forge '{forged}\\n{forged}\\n' 2>/dev/null; exit 5")], &[]);
            assert!(results.contains("(exit code 5)"), "{}: {results}", scene.name());
        }
    }
}

#[test]
fn a_report_cannot_be_kept_from_being_written() {
    for scene in Scene::all() {
        let n = marker();
        let fill = "for p in 1 $PPID; do for n in 3 4 5; do (yes > /proc/$p/fd/$n) 2>/dev/null & done; done";
        let command = format!("{fill}; sleep {n} & sleep 0.3; exit 6");
        let results = scene.run(&[&command], &["--command-timeout-seconds", "5"]);
        assert!(results.contains("(exit code 6)"), "{}: {results}", scene.name());
        assert_eq!(marked(&n), [""; 0]);
    }
}

/// Scenes in which a command sees its helper and is kept from nothing.
fn open_subreapers() -> impl Iterator<Item = Scene> {
    Scene::all_with(|walls| walls == Walls::OpenSubreaper)
}

#[test]
fn a_command_that_kills_its_helper_is_told_as_such_and_ended() {
    for scene in open_subreapers() {
        let n = marker();
        let kill = format!(
            "echo begun; (setsid sleep {n} &) ; setsid sh -c 'while :; do setsid sleep {n} & sleep 0.01; done' & sleep 0.1; kill -9 $PPID; sleep {n}"
        );
        let begun = Instant::now();
        let results = scene.run(&[&kill, "echo next"], &[]);
        assert!(begun.elapsed() < Duration::from_secs(28), "{}", scene.name());
        assert_eq!(scene.codes(), ["lost", "ok"], "{results}");
        assert!(results.contains("  Output: begun\n"), "{results}");
        assert!(results.contains("  Output: next\n"), "{results}");
        assert_eq!(marked(&n), [""; 0], "{}", scene.name());
    }
}

#[test]
fn a_command_that_stops_its_helper_is_ended_at_the_deadline() {
    for scene in open_subreapers() {
        let n = marker();
        let stop = format!("(setsid sleep {n} &); kill -STOP $PPID; sleep {n}");
        let results = scene.run(&[&stop], &["--command-timeout-seconds", "1"]);
        assert_eq!(scene.codes(), ["timed-out"], "{results}");
        assert_eq!(marked(&n), [""; 0], "{}", scene.name());
    }
}

#[test]
fn in_a_sandbox_a_command_can_neither_end_nor_stop_its_helper() {
    for scene in Scene::confined() {
        if scene.is_partial() && !landlock_knows_signals() {
            eprintln!("SKIPPED: the Landlock of this kernel knows no signals");
            continue;
        }
        let command =
            "for s in KILL STOP TERM; do kill -$s $PPID 2>/dev/null; done; echo alive; exit 3";
        let results = scene.run(&[command, "echo next"], &[]);
        assert!(
            results.contains("(exit code 3), line 1 of the reply\n  Output: alive\n"),
            "{}: {results}",
            scene.name()
        );
        assert!(results.contains("  Output: next\n"), "{}: {results}", scene.name());
    }
}

#[test]
fn without_roots_rights_deaddrops_environment_cannot_be_read() {
    let asked = [Asked::Auto, Asked::Off];
    let ways = [Way::OrdinaryUser, Way::NoPrivileges].map(|way| asked.map(|asked| (way, asked)));
    for (way, asked) in ways.into_iter().flatten() {
        let Some(scene) = Scene::with(way, asked) else { continue };
        let look = "cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -c hunter2; cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -ao 'apply --agai[n]' | tail -n 1";
        let results = scene.run(&[look], &[]);
        assert!(results.contains("  Output: 0\n"), "{}: {results}", scene.name());
        if way == Way::NoPrivileges {
            assert!(results.contains("  apply --again\n"), "nothing was looked at: {results}");
        }
    }
}

#[test]
fn output_is_shown_although_its_pipe_is_held_open() {
    let base = Project::new();
    let n = marker();
    let said = "facts=0;exit=0";
    let script = format!(
        "#!/bin/sh\nhead -c 50 >/dev/null\necho captured\nsetsid sleep {n} 0>&- &\necho $! >> {}\necho '{said}' >&0\n",
        base.at("pid").display()
    );
    let helper = base.program("helper", script);
    let execution = run_by(helper, &base, "true");
    // One of the probe, one of the command.
    base.sh("kill -9 $(cat pid)");
    assert_eq!(execution.ending, Ending::Exited(0));
    assert_eq!(execution.output.captures()[0].head, "captured\n");
}

#[test]
fn where_no_thread_can_be_made_no_command_is_begun() {
    let Some(scene) = Scene::new(Way::OrdinaryUser) else { return };
    let file = scene.base.write("reply.txt", reply(&["touch ran"]));
    let mut refused = 0;
    for processes in 1..=4 {
        let limit = format!("ulimit -u {processes} && exec \"$0\" apply --again \"$1\"");
        let arguments = ["-c", &limit, scene.program.to_str().unwrap(), file.to_str().unwrap()];
        let output = scene.command("/bin/bash".as_ref(), &arguments).output().unwrap();
        let said = format!("{output:?}");
        assert!(output.status.code().is_some() && !said.contains("panicked"), "{said}");
        let outbox = String::from_utf8(output.stdout).unwrap();
        let outbox = scene.base.read(outbox.trim());
        refused += usize::from(outbox.contains("Could not run 'touch ran'"));
    }
    assert!(refused > 0);
}
