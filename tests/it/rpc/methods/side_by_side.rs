//! Many commands at once from one runner.

use std::fs;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use deaddrop::protocol::{Capture, CommandOutput, Ending, Execution, Streams};
use deaddrop::runner::{CommandSpec, Runner};
use deaddrop::settings::{Sandbox, SandboxMode};

use super::{Scene, Setup};
use crate::scene::{marked, marker};
use crate::support::{Project, has_sandbox, program, wait_until};

const MANY: usize = 32;

/// What each of so many commands comes to that begin at the same time.
fn at_once<T: Send>(run: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let barrier = Barrier::new(MANY);
    thread::scope(|scope| {
        let started: Vec<_> = (0..MANY)
            .map(|n| {
                let (barrier, run) = (&barrier, &run);
                scope.spawn(move || {
                    barrier.wait();
                    run(n)
                })
            })
            .collect();
        started.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn runner(base: &Project, mode: SandboxMode, helper: std::path::PathBuf) -> Runner {
    let root = base.at("root");
    fs::create_dir_all(&root).unwrap();
    let settings = Sandbox { mode, ..Sandbox::default() };
    Runner::new(helper, root.canonicalize().unwrap(), settings)
}

fn stdout(execution: &Execution) -> &str {
    match &execution.output {
        CommandOutput::Apart { stdout: Capture { head, .. }, .. } => head,
        CommandOutput::Together(_) => panic!("they are kept apart"),
    }
}

/// The modes that this machine has.
fn modes() -> impl Iterator<Item = SandboxMode> {
    [
        (SandboxMode::Off, "off"),
        (SandboxMode::Auto, "auto"),
        (SandboxMode::Bwrap, "bwrap"),
        (SandboxMode::Partial, "partial"),
    ]
    .into_iter()
    .filter_map(|(mode, name)| has_sandbox(name).then_some(mode))
}

#[test]
fn first_commands_may_begin_at_once() {
    for mode in modes() {
        let base = Project::new();
        let runner = runner(&base, mode, program().to_owned());
        // Nothing is known of the machine yet; then nothing of the commands' own folder is there.
        for own in ["one", "two"] {
            let own = base.at(own);
            let run = |n: usize| {
                // Without a sandbox these folders are the person's, and nothing is left there.
                let command = match mode {
                    SandboxMode::Off => format!("echo {n}"),
                    _ => format!("echo {n} > ~/{n} && echo {n} > $TMPDIR/{n} && echo {n}"),
                };
                runner.run(
                    &CommandSpec {
                        streams: Streams::First,
                        ..CommandSpec::new(&command, &runner.workspace, &own)
                    },
                    &|| false,
                )
            };
            for (n, execution) in at_once(run).iter().enumerate() {
                assert_eq!(execution.ending, Ending::Exited(0), "{mode:?}: {execution:?}");
                assert_eq!(stdout(execution), format!("{n}\n"));
            }
        }
    }
}

/// A helper that is refused namespaces, so that what it leaves behind comes to this process.
fn without_namespaces(base: &Project) -> std::path::PathBuf {
    let script = format!(
        "#!/bin/sh\nexec unshare -Ur sh -c 'echo 0 > /proc/sys/user/max_pid_namespaces && exec \"$@\"' sh {} \"$@\"\n",
        program().display()
    );
    base.program("helper", script)
}

#[test]
fn a_helper_that_is_killed_takes_its_own_processes_along_and_no_others() {
    let base = Project::new();
    let runner = runner(&base, SandboxMode::Off, without_namespaces(&base));
    let own = base.at("own");
    let (lost, kept) = (marker(), marker());
    let tier = runner.confinement(&own);
    let is_killable = runner
        .run(&CommandSpec::new("test \"$PPID\" -gt 2", &runner.workspace, &own), &|| false)
        .ending;
    if is_killable != Ending::Exited(0) {
        eprintln!("SKIPPED: namespaces cannot be refused here ({tier:?}, {is_killable:?})");
        return;
    }
    // Another child of this process, which is nobody's orphan.
    let mut other = std::process::Command::new("sleep").arg(&kept).spawn().unwrap();
    let until = |for_: &str| format!("until test -e {for_}; do sleep 0.05; done");
    let lost_so_far = AtomicUsize::new(0);
    let run = |n: usize| {
        let is_killed = n.is_multiple_of(4);
        let command = if is_killed {
            let below =
                |own: &str| format!("(setsid sh -c 'touch {own}-{n}; exec sleep {lost}' &)");
            format!(
                "{}; {}; {}; {}; kill -9 $PPID; sleep {lost}",
                below("a"),
                below("b"),
                until(&format!("a-{n}")),
                until(&format!("b-{n}"))
            )
        } else {
            // What is below it outlives all that is killed, and is heard of.
            format!(
                "(setsid sh -c '{}; echo below {n}; touch said-{n}' &); seq 20000; {}; echo end {n}",
                until("go"),
                until(&format!("said-{n}"))
            )
        };
        let execution = runner.run(
            &CommandSpec {
                streams: Streams::First,
                timeout: Some(Duration::from_mins(2)),
                ..CommandSpec::new(&command, &runner.workspace, &own)
            },
            &|| false,
        );
        if is_killed && lost_so_far.fetch_add(1, Ordering::Relaxed) + 1 == MANY.div_ceil(4) {
            base.write("root/go", "");
        }
        execution
    };
    let numbers: String = (1..=20_000).map(|n| format!("{n}\n")).collect();
    for (n, execution) in at_once(run).into_iter().enumerate() {
        if n.is_multiple_of(4) {
            assert_eq!(execution.ending, Ending::Lost, "{n}");
            continue;
        }
        assert_eq!(execution.ending, Ending::Exited(0), "{n}: {}", stdout(&execution));
        let below = format!("below {n}\n");
        let said = stdout(&execution);
        assert_eq!(said.matches(&below).count(), 1, "{n}");
        assert_eq!(said.replace(&below, ""), format!("{numbers}end {n}\n"), "{n}");
    }
    assert_eq!(marked(&lost), [""; 0]);
    assert_eq!(other.try_wait().unwrap(), None, "it was taken for an orphan");
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn many_requests_at_once_keep_their_output_and_processes_apart() {
    for setup in [Some(Setup::default()), Setup::confined()].into_iter().flatten() {
        let scene = Setup { timeout: Duration::from_mins(1), ..setup }.serve();
        let left = marker();
        let results = at_once(|n| {
            scene.write(&format!("files/{n}/x"), &format!("{n}")).unwrap();
            let said = scene.exec(&format!(
                "(setsid sleep {left} &); seq {n} 5000; cat files/{n}/x >&2; exit {n}"
            ));
            assert_eq!(scene.read(&format!("files/{n}/x")).unwrap(), format!("{n}"));
            said
        });
        for (n, result) in results.into_iter().enumerate() {
            assert_eq!(result.exit_code, i32::try_from(n).unwrap(), "{}", result.stderr);
            let numbers: String = (n..=5_000).map(|n| format!("{n}\n")).collect();
            assert_eq!((result.stdout, result.stderr), (numbers, format!("{n}")));
        }
        assert_eq!(marked(&left), [""; 0]);
    }
}

#[test]
fn what_one_command_makes_is_not_put_back_for_another() {
    let Some(setup) = Setup::confined() else { return };
    let scene: Scene = setup.serve();
    let waits = |for_: &str| format!("while ! test -e {for_}; do sleep 0.01; done");
    let one = format!(
        "mkdir -p .git/hooks; echo evil | tee .git/hooks/x .bashrc; touch made; {}",
        waits("go")
    );
    let two = format!("touch begun; {}", waits("end"));
    thread::scope(|scope| {
        let first = scope.spawn(|| scene.exec(&one));
        wait_until("the first command", || scene.base.exists("root/made"));
        let second = scope.spawn(|| scene.exec(&two));
        wait_until("the second command", || scene.base.exists("root/begun"));
        scene.base.write("root/go", "");
        let first = first.join().unwrap();
        for name in [".git", ".bashrc"] {
            assert!(first.stderr.contains(&format!("a command made '{name}'")), "{first:?}");
        }
        assert!(!scene.base.exists("root/.git"));
        scene.base.write("root/end", "");
        let second = second.join().unwrap();
        assert_eq!((second.exit_code, &*second.stderr), (0, ""));
    });
    assert_eq!(scene.base.names("root"), ["begun", "end", "go", "made"]);
    // What the person makes when nothing runs is theirs.
    scene.base.write("root/.git/hooks/mine", "");
    assert_eq!(scene.exec("echo").stderr, "");
    assert!(scene.base.exists("root/.git/hooks/mine"));
}
