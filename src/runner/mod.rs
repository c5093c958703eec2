//! Runs a shell command until it ends or reaches its time limit, and ends every process that it started.
//!
//! The helper in [`sandbox`] starts the command. The helper is this same program, but single-threaded, so that it can
//! enter namespaces. The thread that waits for the helper reads the output into bounded memory.

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

use crate::protocol::{Capture, CommandOutput, Ending, Execution, Streams};
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
    /// The program to start as a helper, usually this one. Its `main` must begin with [`sandbox::dispatch`].
    pub helper: PathBuf,
    /// The default time limit of a command.
    pub timeout: Duration,
    /// The most characters of output that are kept.
    pub output_limit: usize,
    /// The folder that commands may write.
    pub workspace: PathBuf,
    /// deaddrop's own files and folders, which are hidden from commands.
    pub hidden: Vec<PathBuf>,
    /// The hidden file that commands can read but not change: the settings file at the root of the workspace. With
    /// None, no file is readable.
    pub shown: Option<PathBuf>,
    /// A file that is locked while a command runs, so that after a crash another process can wait for the command to
    /// end. An empty path means no lock.
    pub lock: PathBuf,
    /// How to confine commands.
    pub settings: settings::Sandbox,
    probe_result: OnceLock<ProbeResult>,
    /// Whether a command can be cut off from the network although the settings allow it; otherwise, why not.
    offline: OnceLock<Result<(), String>>,
}

/// One command.
#[derive(Debug, Clone, Copy)]
pub struct CommandSpec<'a> {
    /// The command line for the shell.
    pub command: &'a str,
    /// The working directory: the workspace, or a folder in it.
    pub folder: &'a Path,
    /// The session's own folder, which contains the HOME and `/tmp` of its commands. It is created if missing, but its
    /// parent must exist.
    pub own: &'a Path,
    /// Files and folders in the workspace that the command may not write.
    pub protected: &'a [PathBuf],
    /// Folders that contain some of these entries. The command may write but not rename them. Parents come first.
    pub pinned: &'a [PathBuf],
    /// Whether the command may run with the user's own rights if there is no sandbox.
    pub open: bool,
    /// The time limit; None for the runner's default.
    pub timeout: Option<Duration>,
    /// Additional variables. Only the command gets them; processes outside its sandbox do not.
    pub environment: &'a BTreeMap<String, String>,
    /// How the command's output is kept.
    pub streams: Streams,
    /// The most characters of output that are kept if both streams are one. None for the runner's limit.
    pub output_limit: Option<usize>,
    /// Whether the command has network access; None for the setting. Fails if `Some(false)` cannot be enforced.
    pub network: Option<bool>,
    /// The lock file of this command; None for [`Runner::lock`].
    pub lock: Option<&'a Path>,
    /// Whether the command may write neither the workspace nor anything else that other commands may write.
    pub read_only: bool,
    /// Receives the output while the command runs.
    pub seen: Option<&'a LiveOutput>,
}

impl<'a> CommandSpec<'a> {
    /// A command with defaults for all other fields.
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
    /// A runner for commands in `workspace` that hides nothing and locks no file.
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

    /// Runs a command with empty standard input. `interrupted` is called at the start and after each
    /// [`interrupt::check`]. Several threads may run commands at the same time.
    pub fn run(&self, spec: &CommandSpec, interrupted: &dyn Fn() -> bool) -> Execution {
        let begun = Instant::now();
        let (ending, output) = self.try_run(spec, interrupted).unwrap_or_else(|e| {
            let output = match spec.streams {
                Streams::Together => CommandOutput::default(),
                Streams::Apart | Streams::First => {
                    CommandOutput::Apart { stdout: Capture::default(), stderr: Capture::default() }
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
    ) -> io::Result<(Ending, CommandOutput)> {
        let Restrictions { backend, view } = self.restrictions(spec)?;
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

    /// Lets a helper carry out a request. Then ends the helper and everything that it started.
    fn carry_out(
        &self,
        request: &SandboxRequest,
        (mut output, stdout, stderr): (OutputReader, PipeWriter, PipeWriter),
        timeout: Duration,
        space: &mut DiskMonitor,
        interrupted: &dyn Fn() -> bool,
    ) -> io::Result<(HelperReport, CommandOutput)> {
        let orphans = Orphans::expect();
        let (ours, theirs) = UnixStream::pair()?;
        let mut helper = Command::new(&self.helper);
        helper
            .arg(sandbox::MARK)
            // The command's environment is in the request, so none of it reaches the helper's own environment.
            .env_clear()
            // The helper takes its end of the channel from standard input. The command gets an empty input.
            .stdin(OwnedFd::from(theirs))
            .stdout(stdout)
            .stderr(stderr)
            // In a process group of its own, the helper does not get a Ctrl-C at the terminal.
            .process_group(0);
        let (child, started) = HelperGuard::start(|| helper.spawn())?;
        // If this were kept, this process would keep the helper's ends of the pipes open.
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
            // The helper was killed, so this process has adopted its orphans.
            orphans.end();
            HelperReport { facts: MechanismSet::default(), ending: Ending::Lost }
        });
        let report = HelperReport { facts, ending: cut_off.unwrap_or(ending) };
        // All writers have ended with the process tree. If one is left, wait for it only for the grace period.
        Ok((report, output.finish(GRACE)))
    }
}
