//! Commands that try to outlive, outgrow or spy on deaddrop, run by the real program in each of the
//! ways it can be run: as it is, as an ordinary user, and where namespaces are refused; with the
//! sandbox that the machine has, through bwrap, and with none.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use deaddrop::protocol::{Ending, Execution};
use deaddrop::runner::{CommandSpec, LiveOutput, Runner, interrupt};
use deaddrop::settings::{Sandbox, SandboxMode};

use crate::scene::{NOBODY, Scene, Walls, Way, marked, marker, printed, reply, results};
use crate::support::{PATIENCE, Project, program, wait_until};

mod attacks;
mod errands;
mod here;

/// What these commands came to, run as it is; None, and said so, where that cannot be.
#[track_caller]
fn run(commands: &[&str]) -> Option<String> {
    Some(Scene::new(Way::AsItIs)?.run(commands, &[]))
}

fn unconfined(helper: PathBuf, base: &Project) -> Runner {
    let settings = Sandbox { mode: SandboxMode::Off, ..Sandbox::default() };
    Runner::new(helper, base.path().to_owned(), settings)
}

/// Runs a command through a helper, as a user of the library does.
fn run_by(helper: PathBuf, base: &Project, command: &str) -> Execution {
    let (runner, own) = (unconfined(helper, base), base.at("own"));
    let spec = CommandSpec::new(command, base.path(), &own);
    runner.run(&spec, &|| false)
}

#[test]
fn whatever_a_command_leaves_behind_ends_with_it() {
    for scene in Scene::all() {
        let n = marker();
        let trees = [
            format!("(setsid sh -c 'sleep {n} & exec sleep {n}' &); echo double fork"),
            format!("sleep {n} & sh -c 'sleep {n} & exit 0'; echo the pipe is held; exit 0"),
            format!("(trap '' TERM HUP INT; setsid sleep {n}; sleep {n}) & echo deaf"),
            format!(
                "setsid sh -c 'while :; do setsid sleep {n} & sleep 0.01; done' & sleep 0.2; echo again"
            ),
            format!("nohup setsid sh -c '(exec >/dev/null 2>&1; sleep {n}) &' & echo nohup"),
        ];
        let begun = Instant::now();
        let results = scene.run(&trees.each_ref().map(String::as_str), &[]);
        assert_eq!(scene.codes(), vec!["ok"; trees.len()], "{results}");
        for said in ["double fork", "the pipe is held", "deaf", "again", "nohup"] {
            assert!(results.contains(&format!("  Output: {said}\n")), "{results}");
        }
        // A command may take 30 s.
        assert!(begun.elapsed() < Duration::from_secs(28), "{}", scene.name());
        assert_eq!(marked(&n), [""; 0], "{}", scene.name());
    }
}

#[test]
fn the_deadline_ends_the_whole_tree() {
    for scene in Scene::all() {
        let n = marker();
        let tree = format!(
            "echo begun; trap '' TERM; (setsid sh -c 'trap \"\" TERM; sleep {n} & sleep {n}' &); sleep {n}; sleep {n}"
        );
        let begun = Instant::now();
        let results = scene.run(&[&tree], &["--command-timeout-seconds", "3"]);
        assert!(begun.elapsed() < PATIENCE, "{}", scene.name());
        assert_eq!(scene.codes(), ["timed-out"], "{results}");
        assert!(results.contains("  Output: begun\n"), "{results}");
        assert_eq!(marked(&n), [""; 0], "{}", scene.name());
    }
}

#[test]
fn when_deaddrop_is_killed_its_command_ends_too() {
    for scene in Scene::all() {
        let n = marker();
        let ready = scene.base.at("workspace/ready");
        let tree = format!("(setsid sleep {n} &); touch ready; sleep {n}");
        let mut child = scene.start(&reply(&[&tree]), &[]);
        wait_until("the command", || ready.exists() && marked(&n).len() >= 3);
        child.kill().unwrap();
        child.wait().unwrap();
        wait_until("the end of its processes", || marked(&n).is_empty());
    }
}

#[test]
fn a_ctrl_c_ends_the_command_and_is_reported() {
    let Some(scene) = Scene::new(Way::AsItIs) else { return };
    let n = marker();
    let ready = scene.base.at("workspace/ready");
    let tree = format!("(setsid sleep {n} &); touch ready; sleep {n}");
    let mut child = scene.start(&reply(&[&tree, "echo never"]), &[]);
    wait_until("the command", || ready.exists());
    assert!(
        Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success()
    );
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(marked(&n), [""; 0]);
    assert_eq!(scene.codes(), ["interrupted", "not-run"]);
}

#[test]
fn files_that_a_user_makes_are_his() {
    let Some(scene) = Scene::new(Way::OrdinaryUser) else { return };
    let results = scene.run(&["touch mine; id -u; stat -c %u mine"], &[]);
    assert!(results.contains(&format!("  Output: {NOBODY}\n  {NOBODY}\n")), "{results}");
    assert_eq!(fs::metadata(scene.base.at("workspace/mine")).unwrap().uid(), NOBODY);
}

#[test]
fn standard_input_is_empty() {
    for scene in Scene::all() {
        let results = scene.run(&["cat; echo \"cat gave $?\"; readlink /proc/self/fd/0"], &[]);
        assert!(results.contains("  Output: cat gave 0\n  /dev/null\n"), "{results}");
    }
}

#[test]
fn a_command_cannot_write_its_own_report() {
    for scene in Scene::all() {
        let results = scene.run(
            &["for p in self 1 $PPID; do for n in 0 3; do (echo exit=0 > /proc/$p/fd/$n); done; done; exit 5"],
            &[],
        );
        assert!(results.contains("(exit code 5)"), "{results}");
    }
}

#[test]
fn no_secret_of_deaddrops_environment_reaches_a_command() {
    for scene in Scene::all() {
        let results = scene.run(
            &["env", "for p in 1 $PPID self; do (tr '\\0' '\\n' < /proc/$p/environ); done"],
            &[],
        );
        assert!(results.contains("PATH="), "{results}");
        assert!(!results.contains("SECRET_TOKEN") && !results.contains("hunter2"), "{results}");
    }
}

#[test]
fn no_descriptor_is_inherited() {
    let Some(scene) = Scene::new(Way::AsItIs) else { return };
    let file = scene.base.write("reply.txt", reply(&["ls -l /proc/self/fd"]));
    let status = Command::new("sh")
        .args(["-c", "exec 7</dev/zero 9>>leak; exec \"$0\" apply \"$1\""])
        .args([program(), &file])
        .current_dir(scene.base.path())
        .env("XDG_STATE_HOME", scene.base.state())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    let results = results(&scene.base.outbox(2));
    let mut open: Vec<(&str, &str)> = results
        .lines()
        .filter_map(|line| line.split_once(" -> "))
        .map(|(left, target)| (left.rsplit(' ').next().unwrap(), target))
        .collect();
    open.sort_unstable();
    assert_eq!(open.len(), 4, "{results}");
    assert_eq!(open[0], ("0", "/dev/null"));
    assert!(open[1].1.starts_with("pipe:") && open[1].1 == open[2].1, "{results}");
    assert!(open[3].0 == "3" && open[3].1.ends_with("/fd"), "{results}");
}

#[test]
fn ps_shows_only_what_the_command_started() {
    for scene in Scene::full() {
        let results = scene.run(&["ps -e -o args= || echo no ps"], &[]);
        if printed(&results, "no ps") {
            eprintln!("SKIPPED: there is no ps");
            return;
        }
        let shown = results.lines().filter(|line| line.starts_with("  ")).count();
        assert!((3..=5).contains(&shown), "{}: {results}", scene.name());
    }
}

#[test]
fn exit_codes_and_signals_are_told() {
    for scene in Scene::all() {
        let results = scene
            .run(&["exit 3", "kill -9 $$", "kill -TERM $$", "false | true", "nosuchtool"], &[]);
        // bwrap tells of a signal as shells do.
        let (killed, [kill, term]) = match scene.walls() {
            Walls::Bwrap => ("exit-status", ["code 137)", "code 143)"]),
            _ => ("killed", ["signal 9)", "signal 15)"]),
        };
        let codes = ["exit-status", killed, killed, "ok", "exit-status"];
        assert_eq!(scene.codes(), codes, "{}: {results}", scene.name());
        for told in ["'exit 3' (exit code 3)", kill, term, "'nosuchtool' (exit code 127)"] {
            assert!(results.contains(told), "{}: {results}", scene.name());
        }
    }
}

#[test]
fn both_streams_come_in_the_order_written() {
    let Some(results) = run(&["for i in 1 2 3; do echo out$i; echo err$i >&2; done"]) else {
        return;
    };
    assert!(
        results.contains("  Output: out1\n  err1\n  out2\n  err2\n  out3\n  err3"),
        "{results}"
    );
}

#[test]
fn output_cut_within_a_character_is_valid_text() {
    let Some(results) =
        run(&["yes é | tr -d '\\n' | head -c 20001", "head -c 90000 /dev/zero | tr '\\0' '\\200'"])
    else {
        return;
    };
    let kept = format!("  Output: {}\n  [... 6001 ", "é".repeat(2000));
    assert!(results.contains(&kept), "{results}");
    let tail = format!("]\n  {}\u{fffd}", "é".repeat(1999));
    assert!(results.contains(&tail), "{results}");
    assert_eq!(results.matches("\n  [... ").count(), 2, "{results}");
}

#[test]
fn endless_output_takes_bounded_memory_and_keeps_head_and_tail() {
    let Some(scene) = Scene::new(Way::AsItIs) else { return };
    let daemon = scene.base.serve(&["watch", "--command-timeout-seconds", "5"]);
    let peak = || {
        let status = fs::read_to_string(format!("/proc/{}/status", daemon.pid())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    scene.base.write(
        "inbox/r.txt",
        reply(&["echo first; yes | head -c 10000000; echo last", "echo begun; yes"]),
    );
    let results = results(&scene.base.wait_for_outbox(2));
    assert!(results.contains("  Output: first\n  y\n"), "{results}");
    assert!(results.contains("  y\n  last\n"), "{results}");
    assert!(results.contains("  Output: begun\n  y\n"), "{results}");
    assert_eq!(scene.codes(), ["ok", "timed-out"]);
    assert_eq!(results.matches("\n  [... ").count(), 2, "{results}");
    assert!(results.len() < 30_000, "{}", results.len());
    assert!(peak() < 64 << 10, "{} kB", peak());
    daemon.stop();
}

#[test]
fn a_command_longer_than_the_system_takes_fails_clearly() {
    let long = format!(": {}", "x".repeat(200_000));
    let Some(scene) = Scene::new(Way::AsItIs) else { return };
    let results = scene.run(&[&long, "echo next"], &[]);
    assert_eq!(scene.codes(), ["not-started", "ok"]);
    assert!(results.contains("200002 bytes"), "{results}");
    assert!(results.contains("  Output: next\n"), "{results}");
}

#[test]
fn no_command_can_hold_a_nul() {
    let base = Project::with_session();
    let run = base.run_with(&["apply", "-"], "[RUN_COMMAND]\ntouch a\0b\n[/RUN_COMMAND]\n");
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(!base.exists("outbox/a1b2c3d4_seq0002.txt"));

    let execution = run_by(program().to_owned(), &base, "touch a\0b");
    assert!(matches!(execution.ending, Ending::NotStarted(_)), "{execution:?}");
}

#[test]
fn after_many_commands_a_daemon_holds_no_more_than_before() {
    for asked in ["auto", "bwrap", "partial", "off"] {
        let Some(scene) = Scene::new(Way::AsItIs) else { return };
        holds_no_more(&scene, asked);
    }
}

fn holds_no_more(scene: &Scene, asked: &str) {
    let daemon = scene.base.serve(&["watch", "--sandbox", asked]);
    let proc = PathBuf::from(format!("/proc/{}", daemon.pid()));
    let holds = || {
        // Only root may look at the open files.
        let count = |folder: &str| fs::read_dir(proc.join(folder)).map_or(0, Iterator::count);
        let tasks = fs::read_dir(proc.join("task")).unwrap().flatten();
        let children: String = tasks
            .map(|task| fs::read_to_string(task.path().join("children")).unwrap_or_default())
            .collect();
        (count("fd"), count("task"), children)
    };
    scene.base.write("inbox/r.txt", reply(&["true"]));
    scene.base.wait_for_outbox(2);
    let mut before = (0, 0, String::new());
    wait_until("a daemon at rest", || {
        let now = holds();
        let still = now == before;
        before = now;
        still && before.2.is_empty()
    });
    scene.base.write("inbox/r.txt", reply(&["sleep 1000 & echo x; exit 1"; 50]));
    scene.base.wait_for_outbox(3);
    // Fewer too: it may not have been quite at rest before.
    wait_until("the daemon to let go of all", || {
        let now = holds();
        now.0 <= before.0 && now.1 <= before.1 && now.2.is_empty()
    });
    daemon.stop();
}

/// How often this thread has waited for something.
fn waits() -> u64 {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap();
    let waits = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    waits.unwrap().trim().parse().unwrap()
}

#[test]
fn a_command_that_does_nothing_wakes_nobody() {
    let base = Project::new();
    let (runner, own) = (unconfined(program().to_owned(), &base), base.at("own"));
    let waits_for = |command: &str| {
        let before = waits();
        let execution = runner.run(&CommandSpec::new(command, base.path(), &own), &|| false);
        assert_eq!(execution.ending, Ending::Exited(0), "{execution:?}");
        waits() - before
    };
    waits_for("true");
    let (short, long) = (waits_for("true"), waits_for("sleep 1"));
    assert!(long < short + 10, "{short} and {long}");
}

#[test]
fn an_interruption_ends_a_command_that_does_nothing() {
    let base = Project::new();
    let (runner, own) = (unconfined(program().to_owned(), &base), base.at("own"));
    let live_output = LiveOutput::default();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..4)
            .map(|_| {
                let spec = CommandSpec {
                    timeout: Some(Duration::MAX),
                    seen: Some(&live_output),
                    ..CommandSpec::new("echo begun; exec sleep 1000", base.path(), &own)
                };
                let (runner, stop) = (&runner, &stop);
                scope.spawn(move || runner.run(&spec, &|| stop.load(Ordering::Relaxed)))
            })
            .collect();
        wait_until("the commands", || live_output.last_line().is_some());
        // Nothing has changed yet.
        interrupt::check();
        assert!(running.iter().all(|running| !running.is_finished()));
        stop.store(true, Ordering::Relaxed);
        interrupt::check();
        for running in running {
            assert_eq!(running.join().unwrap().ending, Ending::Interrupted);
        }
    });
}

#[test]
fn a_failure_names_the_setting_that_helps() {
    if !crate::support::has_sandbox("auto") {
        return;
    }
    let base = Project::with_session();
    let run = |script: &str, options: &[&str]| {
        let reply = format!("[RUN_COMMAND]\n{script}\n[/RUN_COMMAND]\n");
        let run = base.run_with(&[&["apply", "--again", "--json"], options].concat(), reply).ok();
        let turn: serde_json::Value =
            serde_json::from_str(run.stdout.lines().last().unwrap()).unwrap();
        let warnings = turn["results"][0]["warnings"].as_array().cloned().unwrap_or_default();
        let codes: Vec<_> = warnings.iter().map(|it| it["code"].as_str().unwrap()).collect();
        let texts: Vec<_> = warnings.iter().map(|it| it["message"].as_str().unwrap()).collect();
        (codes.join(" "), texts.join("\n"))
    };
    let missed = "echo \"curl: (6) Could not resolve host: example.org\" >&2; exit 6";
    let (code, text) = run(missed, &[]);
    assert!(code == "network" && text.contains("`sandbox.network`"), "{code}: {text}");
    let (code, text) = run("sleep 9", &["--command-timeout-seconds", "1"]);
    assert!(code == "timeout" && text.contains("`command_timeout_seconds`"), "{code}: {text}");
    // Where the network is open, or nothing failed, it is not what was missed.
    base.write("deaddrop.toml", "[sandbox]\nnetwork = true\n");
    base.run(&["config", "allow"]).ok();
    for script in [missed, "echo network is unreachable"] {
        assert_eq!(run(script, &[]), Default::default(), "{script}");
        base.write("deaddrop.toml", "");
    }
}
