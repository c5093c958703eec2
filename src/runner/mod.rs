//! Runs a shell command to its end, or to its deadline, and takes every process it started with it.
//!
//! A command is started through the helper in [`sandbox`]: this same program, single-threaded, so
//! that it can enter namespaces. Output is drained on a thread of its own into bounded memory.

mod confining;
mod environment;
mod output;
pub mod sandbox;
pub(crate) mod space;
mod tree;

use std::convert::Infallible;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::ops::DerefMut;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use wait_timeout::ChildExt;

use crate::config;
use crate::protocol::{Capture, Ending, Execution, Output};
use confining::Found;
use output::Bounded;
use sandbox::{Means, Order, Orphans, Report};
use space::{Shortage, Space};

/// How often a running command is interrupted by a look at whether the person wants to stop, and at
/// the disk: short enough that a fast one cannot fill what is kept free.
const SLICE: Duration = Duration::from_millis(20);
/// How long ending a process tree may take before its output is given up.
const GRACE: Duration = Duration::from_secs(2);
/// More than one pipe buffer of the usual 64 KiB spares switches between writer and reader.
#[cfg(target_os = "linux")]
const PIPE_SIZE: usize = 1 << 20;

/// Why a command is refused where it cannot be confined.
const NO_SANDBOX: &str = "there is no sandbox on this machine, and the user has not allowed commands without one; the files of the workspace can be changed all the same";

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
    /// A file that is locked while a command runs, so that after a crash one can wait for its end;
    /// empty for none.
    pub lock: PathBuf,
    /// How commands are to be confined.
    pub settings: config::Sandbox,
    found: OnceLock<Found>,
}

/// One command.
#[derive(Debug, Clone, Copy)]
pub struct Errand<'a> {
    /// For the shell.
    pub command: &'a str,
    /// Where it runs: the workspace, or a folder in it.
    pub folder: &'a Path,
    /// A folder that commands of this session have for themselves, for their HOME and `/tmp`; made
    /// if it is not there. Its parent must be.
    pub own: &'a Path,
    /// Files and folders of the workspace that the command may not write.
    pub protected: &'a [PathBuf],
    /// Whether it may run with the user's own rights where no sandbox is to be had.
    pub open: bool,
}

/// Why a wait for a command ended.
enum Waited {
    Exited,
    Late,
    Interrupted,
    /// The disk is nearly full.
    Full(Shortage),
}

impl Runner {
    /// A runner for commands in `workspace` that hides nothing and holds no lock.
    pub fn new(helper: PathBuf, workspace: PathBuf, settings: config::Sandbox) -> Self {
        Self {
            helper,
            timeout: Duration::from_secs(30),
            output_limit: 4000,
            workspace,
            hidden: Vec::new(),
            lock: PathBuf::new(),
            settings,
            found: OnceLock::new(),
        }
    }

    /// The runner of a base directory, for commands in `workspace`.
    pub fn of(config: &config::Config, workspace: &Path, helper: PathBuf) -> Self {
        Self {
            timeout: config.command_timeout,
            output_limit: config.max_output_length,
            hidden: config.state(),
            lock: config.sessions.join("run.lock"),
            ..Self::new(helper, workspace.to_owned(), config.sandbox.clone())
        }
    }

    /// Runs a command. Standard input is empty; both output streams are kept in the order written.
    /// `interrupted` is asked now and then.
    pub fn run(&self, errand: &Errand, interrupted: &dyn Fn() -> bool) -> Execution {
        let begun = Instant::now();
        let (ending, output) = self
            .try_run(errand, interrupted)
            .unwrap_or_else(|e| (Ending::NotStarted(e.to_string()), Capture::default()));
        let output = Output::Together(output);
        let command = errand.command.to_owned();
        Execution { command, ending, output, duration: begun.elapsed() }
    }

    fn try_run(
        &self,
        errand: &Errand,
        interrupted: &dyn Fn() -> bool,
    ) -> io::Result<(Ending, Capture)> {
        let Found { confinement, view } = self.found(errand.own);
        let (means, view) = match confinement.tier.means() {
            Some(Means::Open) => (Means::Open, None),
            Some(means) => (means, view.as_ref()),
            None if errand.open => (Means::Open, None),
            None => return Err(io::Error::other(NO_SANDBOX)),
        };
        let order = self.order(errand, means, view)?;
        let written = [errand.folder, errand.own].into_iter();
        let written = written.chain(self.settings.writable.iter().map(PathBuf::as_path));
        let space = Space::new(self.settings.min_free_bytes, written);
        if let Some(shortage) = space.is_short() {
            return Err(io::Error::other(shortage.refusal()));
        }
        let (output, writer) = io::pipe()?;
        widen(&output);
        let kept = Arc::new(Mutex::new(Bounded::new(self.output_limit)));
        // The thread comes first: without one, nothing has been begun.
        let drained = drain(output, Arc::clone(&kept))?;
        let orphans = Orphans::expect();
        let (mut child, report) = self.start(&order, writer)?;

        let waited = self.wait(&mut child, &space, interrupted);
        if !matches!(waited, Ok(Waited::Exited)) {
            end(&mut child);
        }
        let report = Report::read(report);
        if report.is_none() {
            // The helper was killed, and what it had adopted came to us.
            orphans.end();
        }
        // All writers are gone with the tree; should one be left all the same, it is not waited for.
        let _ = drained.recv_timeout(GRACE);
        let kept = std::mem::replace(&mut *lock(&kept), Bounded::new(0));
        let ending = match waited {
            Ok(Waited::Late) => Ending::TimedOut(self.timeout),
            Ok(Waited::Interrupted) => Ending::Interrupted,
            Ok(Waited::Full(shortage)) => Ending::Stopped(shortage.ended()),
            Ok(Waited::Exited) => report.map_or(Ending::Lost, |report| report.ending),
            Err(_) => Ending::Lost,
        };
        Ok((ending, kept.finish()))
    }

    /// Starts the helper, which takes the only end to write output to; gives its report to read.
    fn start(&self, order: &Order, output: PipeWriter) -> io::Result<(Child, impl Read)> {
        let (channel, theirs) = sandbox::channel()?;
        let mut helper = Command::new(&self.helper);
        helper
            .arg(sandbox::MARK)
            // What the command gets stands in the order: nothing of it reaches the helper.
            .env_clear()
            // The helper takes its end of the channel from there and gives the command an empty input.
            .stdin(theirs)
            .stdout(Stdio::from(output.try_clone()?))
            .stderr(Stdio::from(output));
        // A Ctrl-C at the terminal is for deaddrop alone.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut helper, 0);
        let mut child = helper.spawn()?;
        // Else this process would hold the helper's end too.
        drop(helper);
        match sandbox::send(order, channel) {
            Ok(report) => Ok((child, report)),
            Err(e) => {
                end(&mut child);
                Err(e)
            }
        }
    }

    fn wait(
        &self,
        child: &mut Child,
        space: &Space,
        interrupted: &dyn Fn() -> bool,
    ) -> io::Result<Waited> {
        let deadline = Instant::now() + self.timeout;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if child.wait_timeout(left.min(SLICE))?.is_some() {
                return Ok(Waited::Exited);
            }
            if interrupted() {
                return Ok(Waited::Interrupted);
            }
            if let Some(shortage) = space.is_short() {
                return Ok(Waited::Full(shortage));
            }
            if left <= SLICE && Instant::now() >= deadline {
                return Ok(Waited::Late);
            }
        }
    }
}

/// Ends the helper and with it the command's whole tree.
fn end(child: &mut Child) {
    sandbox::ask_to_end(child.id());
    if !matches!(child.wait_timeout(GRACE), Ok(Some(_))) {
        tree::end(child.id());
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Keeps all output as it comes, on a thread of its own; nothing is sent, the channel closes at the
/// end of it.
fn drain(
    mut output: PipeReader,
    kept: Arc<Mutex<Bounded>>,
) -> io::Result<mpsc::Receiver<Infallible>> {
    let (sender, drained) = mpsc::channel();
    let run = move || {
        let _sender = sender;
        let mut buffer = vec![0; 256 << 10];
        loop {
            match output.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => lock(&kept).push(&buffer[..n]),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
    };
    thread::Builder::new()
        .name("output".to_owned())
        .spawn(run)
        .map_err(|e| io::Error::other(format!("cannot start a thread for its output: {e}")))?;
    Ok(drained)
}

fn lock(kept: &Mutex<Bounded>) -> impl DerefMut<Target = Bounded> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(target_os = "linux")]
fn widen(pipe: &PipeReader) {
    // Refused where a user has many pipes; the usual size does too.
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE_SIZE);
}

#[cfg(not(target_os = "linux"))]
fn widen(_: &PipeReader) {}
