//! The command line itself: `new`, `resume`, flags, exit codes, and which stream says what.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::replies::which_outbox;
use crate::support::wrapper::wrap;
use crate::support::{ID, Project, Run, program, wait_until};

const OTHER: &str = "00ff00ff";
const COMMANDS: [&str; 9] =
    ["new", "resume", "watch", "apply", "check", "say", "close", "status", "show"];

/// The PROMPT of the first outbox of the only session.
fn prompt(base: &Project) -> String {
    let names = base.names("outbox");
    let outbox = base.read(&format!("outbox/{}", names[0]));
    which_outbox::prompt(&outbox).to_owned()
}

#[test]
fn new_makes_its_folders_a_session_and_an_outbox() {
    let base = Project::new();
    let run = base.run(&["new", "--no-watch", "Write", "a", "calculator"]).ok();
    assert_eq!(base.names("."), ["approvals", "inbox", "outbox", "sessions", "workspace"]);
    let outbox = run.stdout.trim_end();
    assert!(run.stdout.ends_with("_seq0001.txt\n") && base.exists(outbox), "{run:?}");
    let id = outbox.trim_start_matches("outbox/").trim_end_matches("_seq0001.txt");
    assert!(id.len() == 8 && id.bytes().all(|b| b.is_ascii_hexdigit()), "{id}");
    assert!(base.exists(&format!("sessions/{id}.json")));
    assert!(run.stderr.contains("save the reply as a .txt file in inbox/"), "{}", run.stderr);
    assert_eq!(prompt(&base), "Write a calculator");
}

#[test]
fn a_task_is_read_from_standard_input_or_a_file() {
    let base = Project::new();
    base.run_with(&["new", "--no-watch", "-"], "From\nthere\n").ok();
    assert_eq!(prompt(&base), "From\nthere");
    let base = Project::new();
    base.write(".task.md", "From a file");
    base.run(&["new", "--no-watch", "--task-file", ".task.md"]).ok();
    assert_eq!(prompt(&base), "From a file");
}

#[test]
fn new_needs_a_task() {
    let base = Project::new();
    base.write(".empty", "\n");
    for (arguments, input) in [
        (&["new"][..], ""),
        (&["new", ""], ""),
        (&["new", "-"], " \n"),
        (&["new", "--task-file", ".empty"], ""),
        (&["new", "--task-file", ".empty", "word"], ""),
    ] {
        let run = base.run_with(arguments, input).with_code(2);
        assert!(run.stdout.is_empty() && !run.stderr.is_empty(), "{run:?}");
    }
    assert_eq!(base.names("."), [".empty"], "nothing is made for a task that is none");
    let run = base.fails(&["new", "--task-file", "missing"], "io").with_code(1);
    assert!(run.message().contains("missing"), "{run:?}");
}

#[test]
fn wrong_usage_is_told_from_failure() {
    let base = Project::new();
    for arguments in [&["nwe"][..], &[], &["resume", "--frob"], &["apply", "--session"]] {
        base.run(arguments).with_code(2);
    }
    for arguments in
        [&["resume"][..], &["resume", ID], &["status", ID], &["show", "--session", "nonsense"]]
    {
        let run = base.run(arguments).with_code(5);
        assert!(run.stderr.contains("deaddrop "), "says what to do next: {run:?}");
    }
    base.run(&["apply", "-"]).with_code(5);
    base.run(&["say", "Hello"]).with_code(5);
    base.run(&["check", "--session", ID, "-"]).with_code(5);
    base.run(&["apply", "--session", ID, "-"]).with_code(5);
    base.run(&["-C", "missing", "status"]).with_code(1);
}

#[test]
fn resume_takes_the_newest_open_session() {
    let base = Project::with_session();
    base.begin(OTHER);
    let apply = ["apply", "--session", ID, "--now", "2100-01-01T00:00:00Z"];
    base.run_with(&apply, "[MESSAGE]\nHi\n[/MESSAGE]\n").ok();
    let run = base.run(&["resume", "--no-watch"]).ok();
    assert_eq!(run.stdout.trim(), format!("outbox/{ID}_seq0002.txt"));
    let run = base.run(&["resume", "--no-watch", OTHER]).ok();
    assert_eq!(run.stdout.trim(), format!("outbox/{OTHER}_seq0001.txt"));
}

#[test]
fn a_completed_session_is_taken_up_again_with_reopen_only() {
    let base = Project::with_session();
    let run = base.run(&["resume", ID, "--reopen", "More"]).with_code(2);
    assert!(run.stderr.contains("deaddrop say"), "{run:?}");
    let run = base.run_with(&["apply", "-"], "[DONE]\nAll well\n[/DONE]\n").ok();
    assert_eq!(run.stdout, "");
    assert!(run.stderr.contains("All well"), "{run:?}");

    for command in [&["resume"][..], &["apply", "-"]] {
        let run = base.fails(command, "no-open-session").with_code(5);
        let told = format!("`deaddrop resume {ID} --reopen TEXT`");
        assert!(run.message().contains(&told), "{run:?}");
    }
    let run = base.fails(&["resume", ID], "session-complete").with_code(2);
    assert!(run.message().contains("--reopen"), "{run:?}");
    base.run(&["resume", "--reopen", "More"]).with_code(2);
    let run = base.run(&["resume", ID, "--no-watch", "--reopen", "Now add division"]).ok();
    assert_eq!(run.stdout.trim(), format!("outbox/{ID}_seq0002.txt"));
    let prompt = base.outbox(2).split_once("=== PROMPT ===").unwrap().1.to_owned();
    assert!(prompt.contains("The user says:\n  Now add division\n"), "{prompt}");
    base.run(&["resume", "--no-watch"]).ok();
}

#[test]
fn global_flags_stand_before_and_after_the_command() {
    let base = Project::with_session();
    let path = base.path().to_str().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    for arguments in [["-C", path, "status", "--json"], ["--json", "status", "-C", path]] {
        let run = Run::of(base.command(&arguments).current_dir(elsewhere.path()), "").ok();
        let json: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(json["session"], ID);
        assert_eq!(json["outbox"], format!("{path}/outbox/{ID}_seq0001.txt"));
    }
    assert_eq!(elsewhere.path().read_dir().unwrap().count(), 0);
}

#[test]
fn quiet_leaves_results_and_what_went_wrong() {
    let base = Project::new();
    let run = base.run(&["-q", "new", "--no-watch", "--id", ID, "A task"]).ok();
    assert_eq!(run.stdout, format!("outbox/{ID}_seq0001.txt\n"));
    assert_eq!(run.stderr, "");
    let reply = "[RUN_COMMAND]\nfalse\n[/RUN_COMMAND]\n";
    let run = base.run_with(&["apply", "-q", "-"], reply).ok();
    assert_eq!(run.stdout, format!("outbox/{ID}_seq0002.txt\n"));
    assert!(run.stderr.starts_with("FAILED  RUN_COMMAND  ") && run.stderr.lines().count() == 1);
    let run = base.run(&["-q", "status", OTHER]).with_code(5);
    assert!(run.stderr.starts_with("error: ") && run.stderr.contains(OTHER), "{run:?}");
    base.run(&["-q", "-v", "status"]).with_code(2);
}

#[test]
fn verbose_shows_the_output_of_commands() {
    let base = Project::with_session();
    let reply = "[RUN_COMMAND]\necho $((40 + 2))\n[/RUN_COMMAND]\n";
    assert!(!base.run_with(&["apply", "-"], reply).ok().stderr.contains("42"));
    assert!(
        base.run_with(&["apply", "-", "-v", "--again"], reply)
            .ok()
            .stderr
            .contains("\n          42\n")
    );
}

#[test]
fn colours_are_used_where_they_are_wanted() {
    let base = Project::with_session();
    let coloured = |arguments: &[&str], no_color: &str| {
        let run = Run::of(base.command(arguments).env("NO_COLOR", no_color), "").ok();
        run.stdout.contains('\x1b') || run.stderr.contains('\x1b')
    };
    base.write("r", "[CREATE_FILE path=\"a\"]\nx\n[/CREATE_FILE]\n");
    assert!(coloured(&["check", "r", "--color", "always"], ""));
    assert!(coloured(&["--color=always", "check", "r"], "1"), "a flag goes over a variable");
    for arguments in [&["check", "r"][..], &["check", "r", "--color", "never"]] {
        assert!(!coloured(arguments, "") && !coloured(arguments, "1"), "{arguments:?}");
    }
    base.run(&["check", "r", "--color", "sometimes"]).with_code(2);
}

#[test]
fn the_colour_of_a_result_depends_on_where_it_goes() {
    let base = Project::with_session();
    base.write("r", "[CREATE_FILE path=\"a\"]\nx\n[/CREATE_FILE]\n");
    if !Command::new("script").arg("--version").output().is_ok_and(|o| o.status.success()) {
        eprintln!("SKIPPED: no `script` to make a terminal with");
        return;
    }
    let check = format!("'{}' check r > out", program().display());
    let mut terminal = Command::new("script");
    terminal.args(["-qec", &check, "log"]).current_dir(base.path()).env_remove("NO_COLOR");
    terminal.env("XDG_STATE_HOME", base.state());
    Run::of(&mut terminal, "").ok();
    assert!(base.read("out").contains("+x") && !base.read("out").contains('\x1b'));
}

#[test]
fn every_command_explains_itself_with_an_example() {
    let base = Project::new();
    for command in COMMANDS {
        let run = base.run(&[command, "--help"]).ok();
        assert!(run.stdout.contains("Example"), "{command}: {}", run.stdout);
        assert!(run.stdout.contains(&format!("\n  deaddrop {command}")) || command == "watch");
    }
    let run = base.run(&["--help"]).ok();
    for told in COMMANDS.into_iter().chain(["Exit codes", "130"]) {
        assert!(run.stdout.contains(told), "{told}");
    }
    let version = format!("deaddrop {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(base.run(&["--version"]).ok().stdout, version);
    assert_eq!(base.names("."), Vec::<String>::new());
}

#[test]
fn the_exit_code_of_a_stopped_daemon_is_130() {
    let base = Project::new();
    let daemon = base.serve(&["new", "--id", ID, "A task"]);
    wait_until("an outbox", || base.exists(&format!("outbox/{ID}_seq0001.txt")));
    daemon.stop();
}

/// A command line run as one who may not write everywhere: as another user where this one is root. None, and
/// said so, where that cannot be had.
pub fn not_as_root(base: &Project, arguments: &[&str]) -> Option<Command> {
    if rustix::process::geteuid().is_root() {
        return unprivileged(base, arguments);
    }
    Some(base.command(arguments))
}

/// A command line run as a user without rights, where that can be had.
fn unprivileged(base: &Project, arguments: &[&str]) -> Option<Command> {
    use std::os::unix::fs::PermissionsExt;
    let open = |path: &Path, mode| {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    };
    open(base.path(), 0o755);
    // What that one has agreed to, nobody else has.
    let state = base.at(".nobody");
    std::fs::create_dir_all(&state).unwrap();
    open(&state, 0o777);
    let program_as_them = |arguments: &[&str]| {
        let inner = base.command(arguments);
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        wrap(&mut command, &inner);
        command.env("XDG_STATE_HOME", &state);
        command
    };
    let can = program_as_them(&["--version"]).output();
    if !can.as_ref().is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: cannot run the program as another user here: {can:?}");
        return None;
    }
    Run::of(&mut program_as_them(&["-C", ".", "config", "allow"]), "").ok();
    Some(program_as_them(arguments))
}

#[test]
fn a_base_directory_that_may_not_be_written_is_a_clear_error() {
    let base = Project::new();
    let Some(mut new) = unprivileged(&base, &["new", "--no-watch", "A task"]) else { return };
    let run = Run::of(&mut new, "").with_code(1);
    let told = format!("cannot make the folder {}", base.path().display());
    assert!(run.stderr.contains(&told), "{run:?}");
    assert!(
        run.stderr.contains("Permission denied") && run.stderr.contains("permissions"),
        "{run:?}"
    );
    assert_eq!(run.stdout, "");

    base.begin(ID);
    for arguments in [["status"], ["log"], ["show"]] {
        Run::of(&mut unprivileged(&base, &arguments).unwrap(), "").ok();
    }
    let run = Run::of(&mut unprivileged(&base, &["resume"]).unwrap(), "").with_code(1);
    assert!(run.stderr.contains("Permission denied"), "{run:?}");
}

#[test]
fn a_reply_that_may_not_be_read_is_put_aside() {
    let base = Project::with_session();
    base.sh("chmod -R a+rwX .; umask 077; echo '[DONE]' > inbox/x.txt");
    let Some(mut watch) = unprivileged(&base, &["watch", "--color", "never"]) else { return };
    let mut child = watch.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let note = base.rejected("x.txt");
    assert!(note.contains("may not be read"), "{note}");
    assert!(child.try_wait().unwrap().is_none(), "it goes on");
    child.kill().unwrap();
    child.wait().unwrap();
}
