//! How files are looked at for a checkpoint, as the system is asked; and what a look that fails comes to.

use std::fs;
use std::process::Command;

use crate::scene::{Scene, can_trace};
use crate::support::wrapper::wrap;
use crate::support::{Project, Run};

/// Runs the program under strace with these options, and gives how it went and what strace saw.
fn traced(base: &Project, options: &[&str], arguments: &[&str], input: &str) -> (Run, String) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let plain = base.command(arguments);
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o"]).arg(file.path()).args(options);
    wrap(&mut command, &plain);
    let run = Run::of(&mut command, input);
    (run, fs::read_to_string(file.path()).unwrap())
}

/// What is remembered of a file on another machine may be old: an undo would put back what was there before
/// the person's last change.
#[test]
fn files_are_looked_at_closely_as_they_are_now() {
    if !can_trace() {
        return;
    }
    let scene = Scene::new();
    scene.base.write("workspace/looked-at", "x\n");
    let reply = "[RUN_COMMAND]\ntrue\n[/RUN_COMMAND]\n";
    let arguments = ["apply", "--session", crate::support::ID, "-"];
    let (run, trace) = traced(&scene.base, &["-e", "trace=statx"], &arguments, reply);
    run.ok();
    // Whoever asks for times goes by them.
    let of_file = trace.lines().filter(|line| line.contains("\"looked-at\""));
    let closely: Vec<&str> = of_file
        .filter(|line| line.contains("STATX_BASIC_STATS") || line.contains("STATX_ALL"))
        .collect();
    assert!(!closely.is_empty(), "{trace}");
    let remembered: Vec<_> =
        closely.iter().filter(|line| line.contains("AT_STATX_DONT_SYNC")).collect();
    assert!(remembered.is_empty(), "{remembered:#?}");
}

#[test]
fn a_disk_that_fails_does_not_tell_that_nothing_stands_there() {
    if !can_trace() {
        return;
    }
    let scene = Scene::new();
    scene.base.write("workspace/d/x", "one\n");
    scene.base.apply("[RUN_COMMAND]\nrm d/x\n[/RUN_COMMAND]\n");
    scene.base.write("workspace/d/x", "mine\n");
    let folder = scene.base.at("workspace/d");
    let options =
        ["-P", folder.to_str().unwrap(), "-e", "inject=statx,newfstatat,openat2:error=EIO"];
    let (run, trace) = traced(&scene.base, &options, &["undo"], "");
    if !trace.contains("INJECTED") {
        eprintln!("SKIPPED: strace does not see the paths of open files; it may as root");
        return;
    }
    let run = run.with_code(1);
    assert!(run.stderr.contains("cannot look at d/x: Input/output error"), "{}", run.stderr);
    assert_eq!(scene.base.read("workspace/d/x"), "mine\n");
}

/// How often the workspace is walked for the commands of one connection.
fn walks(base: &Project, commands: &[&str]) -> usize {
    let request = |(id, cmd): (usize, &&str)| {
        let params = serde_json::json!({ "cmd": cmd });
        let line =
            serde_json::json!({ "jsonrpc": "2.0", "id": id, "method": "exec", "params": params });
        format!("{line}\n")
    };
    let input: String = commands.iter().enumerate().map(request).collect();
    let (run, trace) = traced(base, &["-e", "trace=openat"], &["rpc"], &input);
    assert_eq!(run.ok().stdout.lines().count(), commands.len());
    // Nobody else opens a folder of that name.
    trace.lines().filter(|line| line.contains("\"walked-folder\"")).count()
}

#[test]
fn a_command_of_a_program_takes_one_walk() {
    if !can_trace() || !crate::support::has_sandbox("auto") {
        return;
    }
    let base = Project::new();
    base.write("workspace/walked-folder/x", "x\n");
    base.write("workspace/.git/config", "[core]\n");
    // Whoever comes first finds no walk.
    assert_eq!(walks(&base, &["true"]), 2);
    assert_eq!(walks(&base, &["true"; 5]), 6);
    // What was written just before the last walk may have been written after it, too.
    let written = walks(&base, &["true", "echo > walked-folder/y", "true", "true"]);
    assert!((5..=6).contains(&written), "{written}");
}
