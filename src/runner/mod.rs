//! Runs a shell command to its end, or to its deadline, and takes every process it started with it.
//!
//! A command is started through the helper in [`sandbox`]: this same program, single-threaded, so
//! that it can enter namespaces. The thread that waits for it reads its output into bounded memory.

mod confinement;
pub(crate) mod disk_space;
mod environment;
mod live_output;
mod output;
mod output_reader;
pub mod removal;
pub mod sandbox;
mod tree;
mod waiting;

use std::collections::BTreeMap;
use std::io::{self, PipeWriter};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::protocol::{Capture, Ending, Execution, Output, Streams};
use crate::settings;
use confinement::{ProbeResult, Restrictions};
use disk_space::DiskMonitor;
pub use environment::fault as environment_fault;
pub use live_output::{LastLine, LiveOutput, last_line};
use output_reader::OutputReader;
use sandbox::{HelperGuard, HelperReport, MechanismSet, Orphans, SandboxRequest};
pub use waiting::interrupt;
use waiting::{GRACE, HelperProcess};

/// Where and how commands are run.
#[derive(Debug, Clone)]
pub struct Runner {
    /// The program whose `main` begins with [`sandbox::dispatch`]; usually this one.
    pub helper: PathBuf,
    /// How long a command may take.
    pub timeout: Duration,
    /// How many characters of its output are kept.
    pub output_limit: usize,
    /// What commands may write.
    pub workspace: PathBuf,
    /// deaddrop's own files and folders, which commands are not to see.
    pub hidden: Vec<PathBuf>,
    /// A file of these that commands can read all the same, and not change: the settings at the root of
    /// the workspace. None hides it, too.
    pub shown: Option<PathBuf>,
    /// A file that is locked while a command runs, so that after a crash one can wait for its end;
    /// empty for none.
    pub lock: PathBuf,
    /// How commands are to be confined.
    pub settings: settings::Sandbox,
    probe_result: OnceLock<ProbeResult>,
    /// Whether the network can be kept from a command where the settings open it; if not, why.
    offline: OnceLock<Result<(), String>>,
}

/// One command.
#[derive(Debug, Clone, Copy)]
pub struct CommandSpec<'a> {
    /// For the shell.
    pub command: &'a str,
    /// Where it runs: the workspace, or a folder in it.
    pub folder: &'a Path,
    /// A folder that commands of this session have for themselves, for their HOME and `/tmp`; made
    /// if it is not there. Its parent must be.
    pub own: &'a Path,
    /// Files and folders of the workspace that the command may not write.
    pub protected: &'a [PathBuf],
    /// Folders that hold some of these, which it may write and not rename; each before what is in it.
    pub pinned: &'a [PathBuf],
    /// Whether it may run with the user's own rights where no sandbox is to be had.
    pub open: bool,
    /// How long it may take; None for as long as the runner allows.
    pub timeout: Option<Duration>,
    /// Variables over those that every command has. They reach the command and no process outside of
    /// its sandbox.
    pub environment: &'a BTreeMap<String, String>,
    /// How its output is kept.
    pub streams: Streams,
    /// How many characters of it are kept, where both streams are one; None for what the runner says.
    pub output_limit: Option<usize>,
    /// Whether it reaches the network; None for what the settings say. Where nothing can keep it off,
    /// `Some(false)` is refused.
    pub network: Option<bool>,
    /// As [`Runner::lock`], for this command alone; None for that.
    pub lock: Option<&'a Path>,
    /// Whether it only looks: the workspace, and what else commands may write, it cannot.
    pub read_only: bool,
    /// Is shown what it writes while it runs.
    pub seen: Option<&'a LiveOutput>,
}

impl<'a> CommandSpec<'a> {
    /// A command with nothing special about it.
    pub fn new(command: &'a str, folder: &'a Path, own: &'a Path) -> Self {
        static NO_VARIABLES: BTreeMap<String, String> = BTreeMap::new();
        Self {
            command,
            folder,
            own,
            protected: &[],
            pinned: &[],
            open: false,
            timeout: None,
            environment: &NO_VARIABLES,
            streams: Streams::Together,
            output_limit: None,
            network: None,
            lock: None,
            read_only: false,
            seen: None,
        }
    }
}

impl Runner {
    /// A runner for commands in `workspace` that hides nothing and holds no lock.
    pub fn new(helper: PathBuf, workspace: PathBuf, settings: settings::Sandbox) -> Self {
        Self {
            helper,
            timeout: Duration::from_secs(30),
            output_limit: 4000,
            shown: Some(workspace.join(settings::FILE)),
            workspace,
            hidden: Vec::new(),
            lock: PathBuf::new(),
            settings,
            probe_result: OnceLock::new(),
            offline: OnceLock::new(),
        }
    }

    /// The runner of a project, for commands in `workspace`.
    pub fn of(config: &settings::Config, workspace: &Path, helper: PathBuf) -> Self {
        Self {
            timeout: config.command_timeout,
            output_limit: config.max_output_length,
            hidden: config.state(),
            lock: config.sessions.join("run.lock"),
            ..Self::new(helper, workspace.to_owned(), config.sandbox.clone())
        }
    }

    /// Runs a command. Standard input is empty. `interrupted` is asked at the start and after each
    /// [`interrupt::check`]. Many threads may run commands at once.
    pub fn run(&self, spec: &CommandSpec, interrupted: &dyn Fn() -> bool) -> Execution {
        let begun = Instant::now();
        let (ending, output) = self.try_run(spec, interrupted).unwrap_or_else(|e| {
            let output = match spec.streams {
                Streams::Together => Output::default(),
                Streams::Apart | Streams::First => {
                    Output::Apart { stdout: Capture::default(), stderr: Capture::default() }
                }
            };
            (Ending::NotStarted(e.to_string()), output)
        });
        let command = spec.command.to_owned();
        Execution { command, ending, output, duration: begun.elapsed() }
    }

    fn try_run(
        &self,
        spec: &CommandSpec,
        interrupted: &dyn Fn() -> bool,
    ) -> io::Result<(Ending, Output)> {
        let Restrictions { backend, view } = self.walls(spec)?;
        let request = self.request(spec, backend, view)?;
        let written = [spec.folder, spec.own].into_iter();
        let written = written.chain(self.settings.writable.iter().map(PathBuf::as_path));
        let mut space = DiskMonitor::new(self.settings.min_free_bytes, written);
        if let Some(shortage) = space.check() {
            return Err(io::Error::other(shortage.refusal()));
        }
        let limit = spec.output_limit.unwrap_or(self.output_limit);
        let output = OutputReader::begin(spec.streams, limit, spec.seen)?;
        let timeout = spec.timeout.unwrap_or(self.timeout);
        let (report, output) =
            self.carry_out(&request, output, timeout, &mut space, interrupted)?;
        Ok((report.ending, output))
    }

    /// Has a helper carry out a request, and ends it and all that it started.
    fn carry_out(
        &self,
        request: &SandboxRequest,
        (mut output, stdout, stderr): (OutputReader, PipeWriter, PipeWriter),
        timeout: Duration,
        space: &mut DiskMonitor,
        interrupted: &dyn Fn() -> bool,
    ) -> io::Result<(HelperReport, Output)> {
        let orphans = Orphans::expect();
        let (ours, theirs) = UnixStream::pair()?;
        let mut helper = Command::new(&self.helper);
        helper
            .arg(sandbox::MARK)
            // What the command gets stands in the request: nothing of it reaches the helper.
            .env_clear()
            // The helper takes its end of the channel from there and gives the command an empty input.
            .stdin(OwnedFd::from(theirs))
            .stdout(stdout)
            .stderr(stderr)
            // A Ctrl-C at the terminal is for deaddrop alone.
            .process_group(0);
        let (child, started) = HelperGuard::start(|| helper.spawn())?;
        // Else this process would hold the helper's ends too.
        drop(helper);
        let mut helper = HelperProcess::new(child, started);
        let report = sandbox::send(request, ours).inspect_err(|_| helper.end(&mut output))?;
        let waited = helper.wait(&mut output, timeout, space, interrupted);
        let cut_off = waited.unwrap_or(Some(Ending::Lost));
        if cut_off.is_some() {
            helper.end(&mut output);
        }
        drop(helper);
        let HelperReport { facts, ending } = HelperReport::read(report).unwrap_or_else(|| {
            // The helper was killed, and what it had adopted came to us.
            orphans.end();
            HelperReport { facts: MechanismSet::default(), ending: Ending::Lost }
        });
        let report = HelperReport { facts, ending: cut_off.unwrap_or(ending) };
        // All writers are gone with the tree; should one be left all the same, it is not waited for.
        Ok((report, output.finish(GRACE)))
    }
}
