//! Ways to run the program, what confines its commands in each, and what these leave behind.

pub mod actions;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};

pub use crate::support::file_writer::put;
use crate::support::missing_tools::findings;
use crate::support::{ID, Project, program};

/// A user and group that own nothing.
pub const NOBODY: u32 = 60_123;

/// Lets no one make a pid namespace.
const REFUSE: &str = "echo 0 > /proc/sys/user/max_pid_namespaces && exec \"$@\"";

/// How the program is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    AsItIs,
    OrdinaryUser,
    /// With all privileges that a user namespace gives.
    NoNamespaces,
    /// And with none of them.
    NoPrivileges,
}

/// What `--sandbox` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Asked {
    Auto,
    Bwrap,
    Partial,
    Off,
}

/// What is to confine commands, told by the way and by what is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Walls {
    Full,
    Bwrap,
    Partial,
    /// None; a pid namespace ends the tree.
    OpenNamespace,
    /// None; a subreaper ends the tree.
    OpenSubreaper,
}

/// A project, and a way to run the program in it.
pub struct Scene {
    pub base: Project,
    pub way: Way,
    pub asked: Asked,
    pub program: PathBuf,
    /// Set for the program.
    pub environment: Vec<(&'static str, PathBuf)>,
}

impl Walls {
    fn of(way: Way, asked: Asked) -> Self {
        let namespaces = matches!(way, Way::AsItIs | Way::OrdinaryUser);
        match asked {
            Asked::Auto if namespaces => Self::Full,
            Asked::Bwrap => Self::Bwrap,
            Asked::Auto | Asked::Partial => Self::Partial,
            Asked::Off if namespaces => Self::OpenNamespace,
            Asked::Off => Self::OpenSubreaper,
        }
    }

    /// Whether commands see a root of their own.
    pub fn are_full(self) -> bool {
        matches!(self, Self::Full | Self::Bwrap)
    }

    /// A part of the outbox that tells of them.
    fn told(self) -> &'static str {
        match self {
            Self::Full => "\n  Sandbox: full: ",
            Self::Bwrap => "\n  Sandbox: full (bwrap): ",
            Self::Partial => "\n  Sandbox: partial (Landlock and seccomp): ",
            Self::OpenNamespace => "ends with it (pid namespace)",
            Self::OpenSubreaper => "processes (subreaper)",
        }
    }

    /// How the doctor begins to tell of them.
    fn tier(self) -> &'static str {
        let told = self.told();
        told.strip_prefix("\n  Sandbox: ").unwrap_or(told)
    }
}

impl Scene {
    /// As the program runs by itself; None, and said so, where the machine has not what it takes.
    pub fn new(way: Way) -> Option<Self> {
        Self::with(way, Asked::Auto)
    }

    pub fn with(way: Way, asked: Asked) -> Option<Self> {
        static MISSING: Mutex<BTreeMap<(Way, Asked), Option<String>>> = Mutex::new(BTreeMap::new());
        let scene = Self::prepare(way, asked);
        let mut known = MISSING.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = known.entry((way, asked)).or_insert_with(|| scene.missing());
        if let Some(missing) = missing {
            eprintln!("SKIPPED: {way:?} with {asked:?}: {missing}");
            return None;
        }
        Some(scene)
    }

    fn prepare(way: Way, asked: Asked) -> Self {
        let base = Project::new();
        base.begin(ID);
        let mut scene =
            Self { program: program().to_owned(), base, way, asked, environment: Vec::new() };
        if way == Way::OrdinaryUser {
            scene.program = scene.base.at("program");
            put("program", program(), &scene.program);
            scene.hand_over();
        }
        scene
    }

    /// Makes it a project of what a script puts there, with deaddrop's files in `.deaddrop/` and a session.
    /// Where it is to be handed over, that is left to be done.
    #[track_caller]
    pub fn becomes_a_project(&self, script: &str) {
        self.base.sh("rm -rf inbox outbox sessions approvals workspace deaddrop.toml");
        self.base.sh(script);
        self.base.run(&["init"]).ok();
        self.base.run(&["-C", ".", "new", "--no-watch", "--id", ID, "A task"]).ok();
    }

    /// Applies a reply with these commands to the session of a project; what it prints.
    pub fn applies_in_project(&self, commands: &[&str]) -> Output {
        let reply = self.base.write("reply.txt", reply(commands));
        let sandbox = format!("{:?}", self.asked).to_lowercase();
        let mut command = self.command(&self.program, &["apply", "--sandbox", &sandbox]);
        command.arg(reply).output().unwrap()
    }

    /// Gives all that is in the project to whom the program runs as.
    pub fn hand_over(&self) {
        self.hand_over_folder(self.base.path());
    }

    /// Agrees to the settings that stand there, as whom the program runs as.
    pub fn agree(&self) {
        self.base.agree_with(&self.environment);
        self.hand_over_folder(self.base.state());
    }

    fn hand_over_folder(&self, folder: &Path) {
        if self.way == Way::OrdinaryUser {
            for entry in walkdir::WalkDir::new(folder) {
                let _ =
                    std::os::unix::fs::lchown(entry.unwrap().path(), Some(NOBODY), Some(NOBODY));
            }
        }
    }

    /// What the machine lacks for this, found without deaddrop.
    fn missing(&self) -> Option<String> {
        let works = |program: &str, arguments: &[&str]| {
            let mut command = self.command(Path::new(program), arguments);
            command.stdout(Stdio::null()).stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        if self.way == Way::OrdinaryUser && chown(self.base.path(), Some(NOBODY), None).is_err() {
            return Some("only root can be somebody else".to_owned());
        }
        if !works("true", &[]) {
            return Some("this machine cannot run a program so".to_owned());
        }
        let namespaces = || works("unshare", &["-Urmpfn", "true"]);
        let missing = match self.walls() {
            Walls::Full | Walls::OpenNamespace if !namespaces() => "no namespaces are to be had",
            Walls::Bwrap if !Path::new("/usr/bin/bwrap").exists() => "there is no /usr/bin/bwrap",
            Walls::Bwrap
                if !works("/usr/bin/bwrap", &["--unshare-all", "--bind", "/", "/", "true"]) =>
            {
                "bwrap cannot make namespaces"
            }
            Walls::Partial if !has_landlock() => "this kernel has no Landlock",
            // There may be namespaces, and mounts or a seccomp filter be refused in them.
            Walls::Full | Walls::Bwrap | Walls::Partial => return self.another_tier(),
            _ => return None,
        };
        Some(missing.to_owned())
    }

    /// What the doctor finds instead of the walls that were asked for.
    fn another_tier(&self) -> Option<String> {
        let sandbox = format!("{:?}", self.asked).to_lowercase();
        let found = findings(self.command(&self.program, &[]), &sandbox).remove("commands");
        let found = found.and_then(|found| found["told"].as_str().map(str::to_owned));
        let found = found.unwrap_or_else(|| "nothing of it".to_owned());
        let is_meant = found.starts_with(self.walls().tier());
        (!is_meant).then(|| format!("the doctor finds another sandbox here: {found}"))
    }

    /// Whether the number of a command's processes is bounded in it.
    pub fn bounds_processes(&self) -> bool {
        let sandbox = format!("{:?}", self.asked).to_lowercase();
        let found = findings(self.command(&self.program, &[]), &sandbox).remove("processes");
        let is_bounded = found.as_ref().is_some_and(|found| found["well"] == true);
        if !is_bounded {
            eprintln!("SKIPPED: {}: the doctor tells of processes: {found:?}", self.name());
        }
        is_bounded
    }

    /// Every way, by itself and with the sandbox off; and bwrap where namespaces are.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::all_with(|_| true)
    }

    /// Those of them with such walls.
    pub fn all_with(is_meant: fn(Walls) -> bool) -> impl Iterator<Item = Self> {
        const ALL: [(Way, Asked); 10] = [
            (Way::AsItIs, Asked::Auto),
            (Way::OrdinaryUser, Asked::Auto),
            (Way::NoNamespaces, Asked::Auto),
            (Way::NoPrivileges, Asked::Auto),
            (Way::AsItIs, Asked::Bwrap),
            (Way::OrdinaryUser, Asked::Bwrap),
            (Way::AsItIs, Asked::Off),
            (Way::OrdinaryUser, Asked::Off),
            (Way::NoNamespaces, Asked::Off),
            (Way::NoPrivileges, Asked::Off),
        ];
        Self::each_of(ALL.into_iter(), is_meant)
    }

    /// Every sandbox, as root and as an ordinary user.
    pub fn confined() -> impl Iterator<Item = Self> {
        Self::confined_with(|_| true)
    }

    /// Those of them with such walls.
    pub fn confined_with(is_meant: fn(Walls) -> bool) -> impl Iterator<Item = Self> {
        const CONFINED: [(Way, Asked); 7] = [
            (Way::AsItIs, Asked::Auto),
            (Way::OrdinaryUser, Asked::Auto),
            (Way::AsItIs, Asked::Bwrap),
            (Way::OrdinaryUser, Asked::Bwrap),
            (Way::AsItIs, Asked::Partial),
            (Way::OrdinaryUser, Asked::Partial),
            (Way::NoPrivileges, Asked::Auto),
        ];
        Self::each_of(CONFINED.into_iter(), is_meant)
    }

    /// Those in which commands see a root of their own.
    pub fn full() -> impl Iterator<Item = Self> {
        Self::confined_with(Walls::are_full)
    }

    fn each_of(
        ways: impl Iterator<Item = (Way, Asked)>,
        is_meant: fn(Walls) -> bool,
    ) -> impl Iterator<Item = Self> {
        let meant = ways.filter(move |(way, asked)| is_meant(Walls::of(*way, *asked)));
        meant.filter_map(|(way, asked)| Self::with(way, asked))
    }

    pub fn walls(&self) -> Walls {
        Walls::of(self.way, self.asked)
    }

    pub fn is_full(&self) -> bool {
        self.walls().are_full()
    }

    pub fn is_partial(&self) -> bool {
        self.walls() == Walls::Partial
    }

    /// The words of a test that fails.
    pub fn name(&self) -> String {
        format!("{:?}, {:?}", self.way, self.asked)
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
        self.agree();
        command.env("XDG_STATE_HOME", self.base.state());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    pub fn start(&self, reply: &str, more: &[&str]) -> Child {
        let file = self.base.write("reply.txt", reply);
        let sandbox = format!("{:?}", self.asked).to_lowercase();
        // The same commands again are not a reply pasted twice.
        let begin =
            ["apply", "--again", "--session", ID, "--sandbox", &sandbox, file.to_str().unwrap()];
        let mut command = self.command(&self.program, &[&begin, more].concat());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env("SECRET_TOKEN", "hunter2").spawn().unwrap()
    }

    /// The next outbox after these commands.
    #[track_caller]
    pub fn run(&self, commands: &[&str], more: &[&str]) -> String {
        results(&self.outbox(commands, more))
    }

    /// The same, the whole outbox.
    #[track_caller]
    pub fn outbox(&self, commands: &[&str], more: &[&str]) -> String {
        let output = self.start(&reply(commands), more).wait_with_output().unwrap();
        assert!(output.status.success(), "{}: {output:?}", self.name());
        let outbox = self.base.read(String::from_utf8(output.stdout).unwrap().trim());
        let told = self.walls().told();
        assert!(outbox.contains(told), "{}: no '{told}' in {outbox}", self.name());
        outbox
    }
}

impl Scene {
    /// What became of the operations of the newest turn, as `status --json` tells it.
    #[track_caller]
    pub fn codes(&self) -> Vec<String> {
        let told = self.command(&self.program, &["status", ID, "--json"]).output().unwrap();
        let told: serde_json::Value = serde_json::from_slice(&told.stdout).unwrap();
        crate::support::json_output::codes(&told["results"])
    }
}

/// Whether this kernel lets a process give up files, found by asking for what is needed.
fn has_landlock() -> bool {
    use landlock::{AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr};
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::Execute)
        .and_then(Ruleset::create)
        .is_ok()
}

/// Whether it keeps signals from others too.
pub fn landlock_knows_signals() -> bool {
    use landlock::{CompatLevel, Compatible, Ruleset, RulesetAttr, Scope};
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .scope(Scope::Signal)
        .and_then(Ruleset::create)
        .is_ok()
}

pub fn reply(commands: &[&str]) -> String {
    commands.iter().flat_map(|c| ["[RUN_COMMAND]\n", c, "\n[/RUN_COMMAND]\n"]).collect()
}

/// What stands below the heading of the results.
pub fn results(outbox: &str) -> String {
    let (_, results) = outbox.split_once("\n## Previous Command Results\n").unwrap();
    results.split_once("\n=== PROMPT ===\n").unwrap().0.to_owned()
}

/// Whether a command printed this line; the command itself is told beside it, with all words in it.
pub fn printed(told: &str, line: &str) -> bool {
    let own = |told: &str| told.strip_prefix("  ").map(|told| told.replacen("Output: ", "", 1));
    told.lines().any(|told| own(told).as_deref() == Some(line))
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
