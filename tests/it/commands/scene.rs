//! Ways to run the program, and what its commands leave behind.

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::support::{Base, ID, program};

/// A user and group that own nothing.
pub const NOBODY: u32 = 60_123;

/// Lets no one make a pid namespace.
const REFUSE: &str = "echo 0 > /proc/sys/user/max_pid_namespaces && exec \"$@\"";

/// How the program is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    AsItIs,
    OrdinaryUser,
    /// With all privileges that a user namespace gives.
    NoNamespaces,
    /// And with none of them.
    NoPrivileges,
}

/// A base directory, and a way to run the program in it.
pub struct Scene {
    pub base: Base,
    pub way: Way,
    pub program: PathBuf,
}

impl Scene {
    /// None, and said so, where the program cannot be run that way.
    pub fn new(way: Way) -> Option<Self> {
        let base = Base::new();
        // Without a PATH no tools are found, which takes their time.
        let new = ["new", "--no-watch", "--id", ID, "A task"];
        assert!(base.command(&new).env("PATH", "").output().unwrap().status.success());
        let mut scene = Self { program: program().to_owned(), base, way };
        if way == Way::OrdinaryUser {
            scene.program = scene.base.at("program");
            fs::copy(program(), &scene.program).unwrap();
            for entry in walkdir::WalkDir::new(scene.base.path()) {
                if chown(entry.unwrap().path(), Some(NOBODY), Some(NOBODY)).is_err() {
                    eprintln!("SKIPPED: only root can be somebody else");
                    return None;
                }
            }
        }
        let works = scene.command(Path::new("true"), &[]).stderr(Stdio::null()).status();
        if works.is_ok_and(|status| status.success()) {
            return Some(scene);
        }
        eprintln!("SKIPPED: this machine cannot run a program as {way:?}");
        None
    }

    pub fn all() -> impl Iterator<Item = Self> {
        [Way::AsItIs, Way::OrdinaryUser, Way::NoNamespaces, Way::NoPrivileges]
            .into_iter()
            .filter_map(Self::new)
    }

    pub fn command(&self, program: &Path, arguments: &[&str]) -> Command {
        let user = format!("--reuid={NOBODY}");
        let group = format!("--regid={NOBODY}");
        let prefix: &[&str] = match self.way {
            Way::AsItIs => &["env"],
            Way::OrdinaryUser => &["setpriv", &user, &group, "--clear-groups"],
            Way::NoNamespaces => &["unshare", "-Ur", "sh", "-c", REFUSE, "sh"],
            Way::NoPrivileges => &[
                "unshare",
                "-Ur",
                "sh",
                "-c",
                REFUSE,
                "sh",
                "setpriv",
                "--bounding-set=-all",
                "--inh-caps=-all",
            ],
        };
        let mut command = Command::new(prefix[0]);
        command.args(&prefix[1..]).arg(program).args(arguments).current_dir(self.base.path());
        command.env("XDG_CONFIG_HOME", self.base.at(".no-config"));
        command
    }

    pub fn start(&self, reply: &str, more: &[&str]) -> Child {
        let file = self.base.write("reply.txt", reply);
        let arguments = [&["apply", "--session", ID, file.to_str().unwrap()], more].concat();
        let mut command = self.command(&self.program, &arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env("SECRET_TOKEN", "hunter2").spawn().unwrap()
    }

    pub fn is_subreaper(&self) -> bool {
        matches!(self.way, Way::NoNamespaces | Way::NoPrivileges)
    }

    /// The next outbox after these commands.
    #[track_caller]
    pub fn run(&self, commands: &[&str], more: &[&str]) -> String {
        let output = self.start(&reply(commands), more).wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let outbox = self.base.read(String::from_utf8(output.stdout).unwrap().trim());
        if self.is_subreaper() {
            assert!(outbox.contains("(subreaper)"), "the trick does not work: {outbox}");
        }
        results(&outbox)
    }
}

pub fn reply(commands: &[&str]) -> String {
    commands.iter().flat_map(|c| ["[RUN_COMMAND]\n", c, "\n[/RUN_COMMAND]\n"]).collect()
}

/// What stands below the heading of the results.
pub fn results(outbox: &str) -> String {
    let (_, results) = outbox.split_once("\n## Previous Command Results\n").unwrap();
    results.split_once("\n=== PROMPT ===\n").unwrap().0.to_owned()
}

/// A number of seconds to sleep that marks the processes of one test.
pub fn marker() -> String {
    format!("3{:09}", uuid::Uuid::new_v4().as_u128() % 1_000_000_000)
}

/// The command lines of all processes that carry the mark.
pub fn marked(mark: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains(mark) {
            found.push(line);
        }
    }
    found
}
