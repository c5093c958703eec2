//! A session of several turns, carried out by two processes one after the other, either of which
//! can be stopped anywhere.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use crate::support::{ID, PATIENCE, Project, Run, set_time};
use crate::trace::{self, Point};

/// How many commands the replies hold; the n-th adds a line to `ran-n`.
pub(crate) const COMMANDS: usize = 5;
/// The turn that the n-th command belongs to.
pub(crate) const TURN_OF: [usize; COMMANDS] = [1, 2, 3, 3, 4];
/// The files that are made, changed and removed.
pub(crate) const FILES: [&str; 3] = ["a.txt", "deep/b.txt", "c.txt"];
/// Replies by the process that finds them in the inbox.
pub(crate) const LEGS: [[usize; 2]; 2] = [[1, 2], [3, 4]];

const NOW: &str = "2026-01-01T00:00:00Z";

/// The n-th reply, from 1.
pub(crate) fn reply(n: usize) -> &'static str {
    match n {
        1 => {
            "[CREATE_FILE path=\"a.txt\"]\none\ntwo\nthree\n[/CREATE_FILE]\n\
             [CREATE_FILE path=\"deep/b.txt\"]\nfirst\n[/CREATE_FILE]\n\
             [RUN_COMMAND]\necho ran >> ran-1\n[/RUN_COMMAND]\n\
             [READ_FILE path=\"a.txt\"]\n"
        }
        2 => {
            "[EDIT_FILE path=\"a.txt\" start_line=\"2\" end_line=\"2\"]\ntwo and\na half\n[/EDIT_FILE]\n\
             [RUN_COMMAND]\necho ran >> ran-2; echo said-2\n[/RUN_COMMAND]\n\
             [CREATE_FILE path=\"deep/b.txt\"]\nsecond\n[/CREATE_FILE]\n\
             [MESSAGE]\nGood so far\n[/MESSAGE]\n"
        }
        3 => {
            "[DELETE_FILE path=\"deep/b.txt\"]\n\
             [RUN_COMMAND]\necho ran >> ran-3\n[/RUN_COMMAND]\n\
             [EDIT_FILE path=\"a.txt\" start_line=\"1\" end_line=\"1\"]\nzero\none\n[/EDIT_FILE]\n\
             [RUN_COMMAND]\necho ran >> ran-4\n[/RUN_COMMAND]\n\
             [READ_FILE path=\"deep/b.txt\"]\n[READ_FILE path=\"a.txt\"]\n"
        }
        _ => {
            "[CREATE_FILE path=\"c.txt\"]\nlast\n[/CREATE_FILE]\n\
             [RUN_COMMAND]\necho ran >> ran-5\n[/RUN_COMMAND]\n\
             [DONE]\nAll of it\n[/DONE]\n"
        }
    }
}

/// A project on its way through the session.
pub(crate) struct Scene {
    pub(crate) base: Project,
    /// How often it was stopped hard or by an error.
    pub(crate) stops: usize,
    /// All that was said by the starts after that.
    pub(crate) told: String,
    /// What was found wrong on the way.
    pub(crate) wrong: Vec<String>,
    /// What the program is asked to do.
    pub(crate) arguments: Vec<String>,
    /// Outboxes as they were when they were first seen.
    seen: BTreeMap<String, Vec<u8>>,
}

/// How a run under strace ended.
pub(crate) struct Traced {
    pub(crate) run: Run,
    pub(crate) killed: bool,
    pub(crate) trace: String,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let base = Project::with_session();
        let (told, wrong, seen) = (String::new(), Vec::new(), BTreeMap::new());
        let arguments = ["resume", "--no-watch"].map(str::to_owned).into();
        Self { base, stops: 0, told, wrong, arguments, seen }
    }

    /// Another that is where this one is.
    pub(crate) fn again(&self) -> Self {
        let base = Project::new();
        let from = self.base.at(".");
        let copied = Command::new("cp").arg("-a").arg(from).arg(base.path()).status().unwrap();
        assert!(copied.success());
        base.is_known_as(&self.base);
        let (told, wrong) = (String::new(), self.wrong.clone());
        let (arguments, seen) = (self.arguments.clone(), self.seen.clone());
        Self { base, stops: 0, told, wrong, arguments, seen }
    }

    /// Puts the replies of a leg into the inbox.
    pub(crate) fn drop_replies(&self, leg: usize) {
        for n in LEGS[leg] {
            let path = self.base.write(&format!("r{n}.part"), reply(n));
            set_time(&path, SystemTime::UNIX_EPOCH + Duration::from_secs(n as u64));
            fs::rename(path, self.base.at(&format!("inbox/r{n}.txt"))).unwrap();
        }
    }

    /// Lets the program carry out what lies there, undisturbed.
    pub(crate) fn go_on(&mut self) {
        let run = Run::of(&mut self.command(), "");
        self.note(&run);
    }

    /// The same, watched.
    pub(crate) fn go_on_traced(&mut self) -> String {
        let traced = self.traced(None);
        self.note(&traced.run);
        traced.trace
    }

    /// The same; gives the places that such a run can be stopped at. None, and said so, where they cannot be seen.
    pub(crate) fn points(&mut self) -> Option<Vec<Point>> {
        let points = trace::points(&trace::read(&self.go_on_traced()), self.base.path());
        trace::sees_paths(&points).then_some(points)
    }

    fn note(&mut self, run: &Run) {
        let over = run.code == Some(5) && run.stderr.contains("no open session");
        if !run.went_well() && !over {
            self.wrong.push(format!("a start ended with {run:?}"));
        }
        self.told.push_str(&run.stderr);
        self.look();
    }

    /// Lets it go on with this done to it; looks at what it leaves.
    pub(crate) fn disturb(&mut self, injection: &str) -> Traced {
        let traced = self.traced(Some(injection));
        if traced.killed || !traced.run.went_well() {
            self.stops += 1;
        }
        self.look();
        traced
    }

    /// Notes it where what was to kill the program at a point did not. How often a command is waited
    /// for is a matter of time.
    pub(crate) fn must_be_killed(&mut self, traced: &Traced, point: &Point) {
        // What the commands before left is removed as time allows, so the calls that make it again vary.
        let certain = point.touches && !point.is_harmless() && !point.is_for_commands();
        if !traced.killed && (certain || !traced.run.went_well()) {
            self.wrong.push(format!("was not killed: {:?}", traced.run));
        }
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = self.base.command(&["--now", NOW]);
        command.args(&self.arguments);
        command
    }

    pub(crate) fn traced(&self, injection: Option<&str>) -> Traced {
        let file = tempfile::NamedTempFile::new().unwrap();
        let injection = injection.map(|injection| format!("--inject={injection}"));
        let mut command = trace::under_strace(&self.command(), injection.as_deref(), file.path());
        let output = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Traced {
            killed: output.status.signal() == Some(9),
            run: Run {
                code: output.status.code(),
                stdout: text(output.stdout),
                stderr: text(output.stderr),
            },
            trace: text(fs::read(file.path()).unwrap()),
        }
    }

    /// Serves the inbox until the session is complete, with all threads and processes watched.
    pub(crate) fn serve_traced(&self) -> String {
        let file = tempfile::NamedTempFile::new().unwrap();
        let plain = self.base.command(&["resume", "--now", NOW]);
        let mut command = trace::under_strace(&plain, Some("-f"), file.path());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let begun = Instant::now();
        while child.try_wait().unwrap().is_none() {
            if begun.elapsed() > PATIENCE {
                let pid = self.base.read("sessions/.lock");
                let pid = pid.split(' ').next().unwrap_or_default();
                let _ = Command::new("kill").args(["-s", "KILL", pid]).status();
                let _ = child.wait();
                panic!("it did not end with its session");
            }
            thread::sleep(Duration::from_millis(5));
        }
        fs::read_to_string(file.path()).unwrap()
    }

    /// What must hold at any moment: outboxes stay what they were, the session's file is whole.
    pub(crate) fn look(&mut self) {
        for name in self.base.names("outbox") {
            if name.starts_with('.') {
                continue;
            }
            let now = fs::read(self.base.at(&format!("outbox/{name}"))).unwrap();
            let first = self.seen.entry(name.clone()).or_insert_with(|| now.clone());
            if *first != now {
                self.wrong.push(format!("{name} changed after it was visible"));
            }
        }
        for name in self.seen.keys() {
            if !self.base.exists(&format!("outbox/{name}")) {
                self.wrong.push(format!("{name} is gone"));
            }
        }
        let session = self.base.read(&format!("sessions/{ID}.json"));
        if serde_json::from_str::<serde_json::Value>(&session).is_err() {
            self.wrong.push("the session's file is torn".to_owned());
        }
    }

    /// All files below a folder with their bytes; folders that hold nothing end in `/`.
    pub(crate) fn files(&self, folder: &str) -> BTreeMap<String, Vec<u8>> {
        let mut found = BTreeMap::new();
        collect(&self.base.at(folder), "", &mut found);
        found
    }
}

impl Run {
    /// Whether it did what there was to do, up to its end or to a question.
    pub(crate) fn went_well(&self) -> bool {
        self.code == Some(0)
            || self.code == Some(3) && self.stderr.contains(" waits for your decision")
    }
}

fn collect(folder: &Path, prefix: &str, found: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type().unwrap().is_dir() {
            found.insert(format!("{path}/"), Vec::new());
            collect(&entry.path(), &format!("{path}/"), found);
        } else {
            found.insert(path, fs::read(entry.path()).unwrap());
        }
    }
}

/// Whether runs can be watched here; says so if not.
pub(crate) fn can_trace() -> bool {
    let tried = Command::new("strace").args(["-qq", "-o", "/dev/null", "true"]).output();
    let can = tried.as_ref().is_ok_and(|output| output.status.success());
    if !can {
        eprintln!("SKIPPED: strace is missing here, or may not trace: {tried:?}");
    }
    can
}
