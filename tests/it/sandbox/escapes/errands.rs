//! What one command is given by itself: a timeout, variables, streams, the network.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use deaddrop::policy::Grant;
use deaddrop::protocol::{CommandOutput, Ending, Execution, Operation, ShellCommand, Streams};
use deaddrop::runner::{CommandSpec, Runner};
use deaddrop::settings::{Sandbox, SandboxMode};

use crate::sandbox::python;
use crate::scene::actions::Actions;
use crate::scene::{Scene, Walls};
use crate::support::{PATIENCE, Project, has_sandbox, program};

/// Runs a command in whatever sandbox there is, or in none.
fn run(run: &ShellCommand) -> Execution {
    let base = Project::new();
    std::fs::create_dir(base.at("workspace")).unwrap();
    let workspace = base.at("workspace").canonicalize().unwrap();
    let mode = if has_sandbox("auto") { SandboxMode::Auto } else { SandboxMode::Off };
    let settings = Sandbox { mode, ..Sandbox::default() };
    let runner = Runner::new(program().to_owned(), workspace.clone(), settings);
    let own = base.at("own");
    let ShellCommand { command, timeout, env, streams, .. } = run;
    let spec = CommandSpec {
        timeout: *timeout,
        environment: env,
        streams: *streams,
        ..CommandSpec::new(command, &workspace, &own)
    };
    runner.run(&spec, &|| false)
}

fn apart(command: &str) -> Execution {
    let timeout = Some(2 * PATIENCE);
    run(&ShellCommand { streams: Streams::Apart, timeout, ..ShellCommand::new(command) })
}

/// What stands before the cut, how much was left out, and what stands after it, of each stream.
fn streams(execution: &Execution) -> [(&str, u64, &str); 2] {
    let CommandOutput::Apart { stdout, stderr } = &execution.output else {
        panic!("{:?}", execution.output);
    };
    [stdout, stderr].map(|kept| (&*kept.head, kept.left_out, &*kept.tail))
}

#[test]
fn streams_are_kept_apart() {
    let execution = apart("for n in 1 2; do echo out $n; echo err $n >&2; done");
    assert_eq!(execution.ending, Ending::Exited(0), "{execution:?}");
    assert_eq!(streams(&execution), [("out 1\nout 2\n", 0, ""), ("err 1\nerr 2\n", 0, "")]);
    let empty = apart("true");
    assert_eq!(streams(&empty), [("", 0, ""); 2]);
    let nul = apart("a\0b");
    assert!(matches!(nul.ending, Ending::NotStarted(_)), "{nul:?}");
    assert_eq!(streams(&nul), [("", 0, ""); 2]);
}

#[test]
fn two_full_streams_do_not_hold_each_other_up() {
    let both = "head -c 300000 /dev/zero | tr '\\0' o; head -c 300000 /dev/zero | tr '\\0' e >&2; head -c 300000 /dev/zero | tr '\\0' o";
    let execution = apart(both);
    assert_eq!(execution.ending, Ending::Exited(0), "{:?}", execution.ending);
    let [(out, _, _), (err, _, _)] = streams(&execution);
    assert_eq!((out, err), (&*"o".repeat(600_000), &*"e".repeat(300_000)));
}

#[test]
fn of_a_hundred_megabytes_on_each_stream_a_megabyte_is_kept() {
    let execution = apart(
        "(printf first; yes | head -c 100000000 ; printf last) & (printf 1st; yes é | head -c 100000002; printf end) >&2; wait",
    );
    assert_eq!(execution.ending, Ending::Exited(0), "{:?}", execution.ending);
    let [(out, out_left, out_end), (err, err_left, err_end)] = streams(&execution);
    assert!(out.starts_with("firsty\ny") && out_end.ends_with("y\nlast"));
    assert_eq!((out.len(), out_end.len(), out_left), (500_000, 500_000, 99_000_009));
    assert!(err.starts_with("1sté\n") && err_end.ends_with("é\nend"));
    // No character is cut: `é` takes two bytes.
    assert!(err.len() >= 499_999 && err_end.len() >= 499_999);
    let bytes = (err.len() + err_end.len()) as u64 + err_left / 2 * 3;
    assert!(bytes.abs_diff(100_000_008) < 4, "{bytes}");
}

#[test]
fn a_timeout_of_its_own_ends_a_command() {
    let timeout = Duration::from_millis(300);
    let begun = Instant::now();
    let execution = run(&ShellCommand { timeout: Some(timeout), ..ShellCommand::new("sleep 60") });
    assert_eq!(execution.ending, Ending::TimedOut(timeout));
    assert!(begun.elapsed() < Duration::from_secs(55));
    for timeout in [Duration::MAX, Duration::from_secs(u64::MAX)] {
        let execution = run(&ShellCommand { timeout: Some(timeout), ..ShellCommand::new("true") });
        assert_eq!(execution.ending, Ending::Exited(0));
    }
}

#[test]
fn variables_go_over_those_that_a_command_has_and_what_cannot_be_one_is_refused() {
    let with = |name: &str, value: &str, command: &str| {
        let env = [(name.to_owned(), value.to_owned())].into();
        run(&ShellCommand { env, ..ShellCommand::new(command) })
    };
    for (name, value) in [("A", "b=c\nd"), ("HOME", "/tmp/x"), ("TERM", ""), ("PATH", "/usr/bin")] {
        let execution = with(name, value, &format!("printf %s \"${name}\""));
        assert_eq!(execution.output.captures()[0].head, value, "{name}");
    }
    for (name, value) in [("", "x"), ("A=B", "x"), ("A\0", "x"), ("A", "x\0y")] {
        let Ending::NotStarted(reason) = with(name, value, "true").ending else {
            panic!("{name:?}");
        };
        assert!(reason.contains("variable"), "{reason}");
    }
    let Ending::NotStarted(reason) = with("LONG", &"x".repeat(200_000), "true").ending else {
        panic!("too long a variable");
    };
    assert!(
        reason.contains("the variable 'LONG' of its environment is 200004 bytes long"),
        "{reason}"
    );
}

#[test]
fn a_library_that_a_variable_preloads_comes_into_no_process_outside_of_the_sandbox() {
    const SOURCE: &str = "#include <fcntl.h>\n#include <unistd.h>\n#include <stdlib.h>\n__attribute__((constructor)) static void trace(void) { char name[4096]; ssize_t n = readlink(\"/proc/self/exe\", name, 4095); int file = open(TRACE, O_WRONLY | O_APPEND | O_CREAT, 0666); if (n > 0 && file >= 0) { name[n++] = '\\n'; if (write(file, name, n)) {} close(file); } }\n";
    for scene in Scene::everywhere() {
        let base = scene.base.path().canonicalize().unwrap();
        let (library, trace) = (base.join("workspace/trace.so"), base.join("workspace/trace"));
        let source = scene.base.write("trace.c", SOURCE);
        let made = std::process::Command::new("cc")
            .args(["-shared", "-fPIC", "-o"])
            .args([&library, &source])
            .arg(format!("-DTRACE=\"{}\"", trace.display()))
            .status();
        if !made.is_ok_and(|status| status.success()) {
            eprintln!("SKIPPED: there is no C compiler");
            return;
        }
        let library = library.to_str().unwrap().to_owned();
        let env = ["LD_PRELOAD", "LD_AUDIT"].map(|name| (name.to_owned(), library.clone()));
        let command = ShellCommand { env: env.into(), ..ShellCommand::new("/usr/bin/env true") };
        let operations = vec![(Operation::Run(command), Grant::default())];
        let done = scene.perform(Actions { operations, ..Actions::default() });
        assert_eq!(done.succeeded(), [true], "{}: {done:?}", scene.name());
        let traces = scene.base.read("workspace/trace");
        let shell = std::path::Path::new("/bin/sh").canonicalize().unwrap();
        assert!(traces.lines().any(|line| line == shell.to_str().unwrap()), "{traces}");
        let known = |line: &str| !line.contains("deaddrop") && !line.contains("bwrap");
        let inside = |line: &str| known(line) && !line.starts_with(base.to_str().unwrap());
        assert!(traces.lines().all(inside), "{}: {traces}", scene.name());
    }
}

#[test]
fn the_network_is_opened_and_closed_for_one_command() {
    for scene in Scene::everywhere() {
        for (settings, network) in [
            (true, Some(false)),
            (false, Some(true)),
            (true, None),
            (false, None),
            (false, Some(false)),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            listener.set_nonblocking(true).unwrap();
            let port = listener.local_addr().unwrap().port();
            let Some(connect) = python(&format!(
                "import socket; socket.create_connection((\"127.0.0.1\",{port}),2)"
            )) else {
                return;
            };
            let commands = [
                (&*connect, Grant::default()),
                ("env | grep -i -E 'offline|NO_INDEX|GOPROXY'", Grant::default()),
                ("cat /etc/resolv.conf", Grant::default()),
            ];
            let done = scene.perform(Actions { settings, network, ..Actions::of(commands) });
            let is_open = matches!(scene.walls(), Walls::OpenNamespace | Walls::OpenSubreaper);
            let what = format!("{}, {settings} {network:?}: {done:?}", scene.name());
            if is_open && network == Some(false) {
                for execution in done.executions() {
                    let Ending::NotStarted(reason) = &execution.ending else { panic!("{what}") };
                    assert!(reason.contains("without the network"), "{what}");
                }
                continue;
            }
            let reaches = is_open || network.unwrap_or(settings);
            assert_eq!(listener.accept().is_ok(), reaches, "{what}");
            let names = scene.is_partial() || std::fs::read("/etc/resolv.conf").is_ok();
            let is_told = done.succeeded()[2];
            assert!(!reaches || scene.is_partial() || is_told == names, "{what}");
            assert_eq!(done.succeeded()[..2], [reaches, !reaches], "{what}");
        }
    }
}
