//! A project in a temporary folder, and the real program run in it.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part")]

mod consent;
mod event_checks;
#[cfg(unix)]
pub mod fake_tools;
pub mod file_writer;
pub mod json_output;
pub mod missing_tools;
mod temp_folders;
pub mod wrapper;

use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;

pub use event_checks::check_events;
#[allow(unused_imports, reason = "each test binary uses a part")]
pub use missing_tools::{has_full_sandbox, has_git, has_sandbox};

/// How long a test waits for something that must happen, on a machine that has much else to do.
pub const PATIENCE: Duration = Duration::from_mins(1);
/// The id of sessions that tests make.
pub const ID: &str = "a1b2c3d4";

/// The program under test.
pub fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_deaddrop"))
}

/// A project of its own, removed at the end. All events in it must be as they should then.
pub struct Project {
    folder: tempfile::TempDir,
    /// Of programs; made when it is asked for.
    programs: OnceLock<tempfile::TempDir>,
    agreed: consent::Agreed,
}

/// How a run of the program ended.
#[derive(Debug)]
pub struct Run {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Project {
    pub fn new() -> Self {
        Self {
            folder: temp_folders::folder(),
            programs: OnceLock::new(),
            agreed: consent::Agreed::new(),
        }
    }

    /// With an open session [`ID`] at its first outbox.
    pub fn with_session() -> Self {
        let base = Self::new();
        base.begin(ID);
        base
    }

    /// Puts a session and its first outbox there as `new` makes them, once for all tests.
    pub fn begin(&self, id: &str) {
        static MADE: OnceLock<(String, String, consent::Noted)> = OnceLock::new();
        let (session, outbox, noted) = MADE.get_or_init(|| {
            let base = Self::new();
            base.run(&["new", "--no-watch", "--id", ID, "A task"]).ok();
            let session = base.read(&format!("sessions/{ID}.json"));
            // Tests set another workspace afterwards, which it could not go on in.
            let kept = session.lines().filter(|line| !line.starts_with("  \"workspace\": "));
            (kept.collect::<Vec<_>>().join("\n"), base.outbox(1), base.noted().unwrap())
        });
        self.write(&format!("sessions/{id}.json"), session.replace(ID, id));
        self.write(&format!("outbox/{id}_seq0001.txt"), outbox.replace(ID, id));
        for folder in [
            "workspace",
            "inbox/.claimed",
            "inbox/processed",
            "approvals/.claimed",
            "approvals/processed",
        ] {
            fs::create_dir_all(self.at(folder)).unwrap();
        }
        if !self.is_noted_as(noted) {
            self.is_theirs();
        }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn at(&self, path: &str) -> PathBuf {
        self.path().join(path)
    }

    pub fn write(&self, path: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // What is taken once, if nobody writes it.
        let is_reply = path.extension().is_some_and(|is| is == "part")
            || path.components().any(|part| part.as_os_str() == "inbox");
        if is_reply && cfg!(unix) {
            file_writer::write(&path, text.as_ref());
        } else {
            fs::write(&path, text).unwrap();
        }
        path
    }

    /// Puts a program there.
    #[track_caller]
    pub fn program(&self, path: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        file_writer::write_program(&path, text);
        path
    }

    /// A folder that programs may be taken from: not below one that everybody can write, as the project is.
    pub fn programs(&self) -> &Path {
        let make = || tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        self.programs.get_or_init(make).path()
    }

    /// Puts a program there: a shell script.
    #[track_caller]
    pub fn installs(&self, name: &str, script: &str) {
        file_writer::write_program(&self.programs().join(name), format!("#!/bin/sh\n{script}\n"));
    }

    /// `PATH` with these programs first.
    pub fn path_with_programs(&self) -> String {
        format!("{}:{}", self.programs().display(), std::env::var("PATH").unwrap_or_default())
    }

    /// Waits until what is written from now on has a later time than what was written before.
    #[track_caller]
    pub fn next_tick(&self) {
        file_writer::next_tick(self.path());
    }

    #[track_caller]
    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
    }

    pub fn exists(&self, path: &str) -> bool {
        fs::symlink_metadata(self.at(path)).is_ok()
    }

    /// The names in a folder, sorted; none where there is no folder.
    pub fn names(&self, folder: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.at(folder)) else { return Vec::new() };
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// The outbox of session [`ID`] with this sequence.
    #[track_caller]
    pub fn outbox(&self, sequence: u32) -> String {
        self.read(&format!("outbox/{ID}_seq{sequence:04}.txt"))
    }

    /// A command line of the program in this project, without the machine's own settings.
    pub fn command(&self, arguments: &[&str]) -> Command {
        self.agree();
        let mut command = Command::new(program());
        command.args(arguments).current_dir(self.path());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("DEADDROP_") {
                command.env_remove(name);
            }
        }
        command.env("XDG_CONFIG_HOME", self.at(".no-config")).env("NO_COLOR", "1");
        command.env("XDG_STATE_HOME", self.state());
        #[cfg(unix)]
        fake_tools::activate(&mut command);
        if !has_sandbox("auto") {
            command.env("DEADDROP_SANDBOX", "off");
        }
        command
    }

    /// Runs the program to its end.
    pub fn run(&self, arguments: &[&str]) -> Run {
        self.run_with(arguments, "")
    }

    /// Runs the program to its end, with this text as its standard input.
    pub fn run_with(&self, arguments: &[&str], input: impl AsRef<[u8]>) -> Run {
        Run::of(&mut self.command(arguments), input)
    }

    /// Runs a shell script in the project.
    #[track_caller]
    pub fn sh(&self, script: &str) {
        let status =
            Command::new("/bin/sh").args(["-ec", script]).current_dir(self.path()).status();
        assert!(status.unwrap().success(), "{script}");
    }

    /// Waits until these replies, and no others, have been archived: an outbox comes first.
    #[track_caller]
    pub fn wait_for_archive(&self, names: &[&str]) {
        wait_until(&format!("{names:?}"), || self.names("inbox/processed") == names);
    }

    /// Waits until a file has been put into `rejected/`; gives the note beside it.
    #[track_caller]
    pub fn rejected(&self, name: &str) -> String {
        let note = format!("inbox/rejected/{name}.why.txt");
        wait_until(&note, || fs::read_to_string(self.at(&note)).is_ok_and(|t| t.ends_with('\n')));
        assert!(self.exists(&format!("inbox/rejected/{name}")));
        self.read(&note)
    }

    /// Applies a reply to session [`ID`]; gives its next outbox.
    #[track_caller]
    pub fn apply(&self, reply: &str) -> String {
        let run = self.run_with(&["apply", "--session", ID, "-"], reply).ok();
        self.read(run.stdout.trim())
    }

    /// Puts a session there as [`Base::begin`] does, that asks before `rm -r`.
    pub fn begin_asking(&self, id: &str) {
        self.begin(id);
        let path = format!("sessions/{id}.json");
        let mut session: serde_json::Value = serde_json::from_str(&self.read(&path)).unwrap();
        session["policy"] = "standard".into();
        // Names of operations are made from it.
        session["secret"] = format!("the secret of {id}").into();
        self.write(&path, session.to_string());
    }

    /// What session `id` waits for, as `status --json` tells it.
    #[track_caller]
    pub fn waiting(&self, id: &str) -> serde_json::Value {
        let told = self.run(&["status", id, "--json"]).ok().stdout;
        serde_json::from_str::<serde_json::Value>(&told).unwrap()["waiting"].clone()
    }

    /// Starts the program and lets it run; it is stopped at the end of the test.
    pub fn start(&self, arguments: &[&str]) -> Daemon {
        self.start_as(&mut self.command(arguments))
    }

    /// The same of a command line that was made here.
    pub fn start_as(&self, command: &mut Command) -> Daemon {
        let log = self.at("daemon.log");
        let out = fs::File::options().append(true).create(true).open(&log).unwrap();
        let begin = out.metadata().unwrap().len();
        let child = command
            .stdin(Stdio::null())
            .stdout(out.try_clone().unwrap())
            .stderr(out)
            .spawn()
            .unwrap();
        Daemon { child, log, begin }
    }

    /// Starts the program and waits until it listens to the inbox.
    #[track_caller]
    pub fn serve(&self, arguments: &[&str]) -> Daemon {
        let daemon = self.start(arguments);
        daemon.wait_for("Waiting for replies");
        daemon
    }

    /// Waits until session [`ID`] has an outbox of this sequence.
    #[track_caller]
    pub fn wait_for_outbox(&self, sequence: u32) -> String {
        let path = format!("outbox/{ID}_seq{sequence:04}.txt");
        wait_until(&path, || self.exists(&path));
        self.read(&path)
    }
}

impl Run {
    /// Runs a command to its end, with this text as its standard input.
    pub fn of(command: &mut Command, input: impl AsRef<[u8]>) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A program that does not read its input closes the pipe.
        let _ = child.stdin.take().unwrap().write_all(input.as_ref());
        let output = child.wait_with_output().unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        let told: Value = serde_json::from_str(&stdout).unwrap_or_default();
        if told.get("runId").is_some() {
            check_events(&stdout).unwrap_or_else(|problem| panic!("{problem}"));
        }
        Self {
            code: output.status.code(),
            stdout,
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Asserts that it succeeded.
    #[track_caller]
    pub fn ok(self) -> Self {
        self.with_code(0)
    }

    /// Asserts its exit code.
    #[track_caller]
    pub fn with_code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }
}

/// A program that runs beside the test.
pub struct Daemon {
    child: Child,
    log: PathBuf,
    /// Where in the log this one begins: an earlier one may have written there.
    begin: u64,
}

impl Daemon {
    /// All it has said so far, on both streams.
    pub fn said(&self) -> String {
        let mut text = Vec::new();
        let mut log = fs::File::open(&self.log).unwrap();
        log.seek(SeekFrom::Start(self.begin)).unwrap();
        log.read_to_end(&mut text).unwrap();
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Waits until it has said `text`.
    #[track_caller]
    pub fn wait_for(&self, text: &str) {
        wait_until(&format!("'{text}' in what it says"), || self.said().contains(text));
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal by name, as in "INT".
    pub fn signal(&self, name: &str) {
        let pid = self.pid().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    /// Waits until it has ended.
    #[track_caller]
    pub fn wait(&mut self) -> ExitStatus {
        let mut status = None;
        wait_until("the end of the program", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    /// Stops it as Ctrl-C does.
    #[track_caller]
    pub fn stop(mut self) {
        self.signal("INT");
        assert_eq!(self.wait().code(), Some(130));
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("What the program said:\n{}", self.said());
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        if thread::panicking() {
            return;
        }
        for name in self.names("outbox") {
            if name.ends_with(".events.json")
                && let Ok(text) = fs::read_to_string(self.at("outbox").join(&name))
            {
                check_events(&text).unwrap_or_else(|problem| panic!("{name}: {problem}"));
            }
        }
    }
}

/// Waits until `condition` holds, and fails the test if it never does.
#[track_caller]
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain for {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Gives a file another time of its last change.
pub fn set_time(path: &Path, time: SystemTime) {
    // It is not opened for writing: a reply would be busy then (see `file_writer`).
    fs::File::open(path).unwrap().set_modified(time).unwrap();
}
