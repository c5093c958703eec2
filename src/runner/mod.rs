//! Runs a shell command to its end, or to its deadline, and takes every process it started with it.
//!
//! A command is started through the helper in [`sandbox`]: this same program, single-threaded, so
//! that it can enter namespaces. Output is drained on a thread of its own into bounded memory.

mod output;
pub mod sandbox;
mod tree;

use std::convert::Infallible;
use std::ffi::OsString;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::ops::DerefMut;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use wait_timeout::ChildExt;

use crate::protocol::{Capture, Ending, Execution};
use output::Bounded;
use sandbox::{Containment, Orphans, Report};

/// How often a running command is interrupted by a look at whether the person wants to stop.
const SLICE: Duration = Duration::from_millis(100);
/// How long ending a process tree may take before its output is given up.
const GRACE: Duration = Duration::from_secs(2);
/// More than one pipe buffer of the usual 64 KiB spares switches between writer and reader.
#[cfg(target_os = "linux")]
const PIPE_SIZE: usize = 1 << 20;

/// What every command gets.
#[derive(Debug, Clone)]
pub struct Runner {
    /// The program whose `main` begins with [`sandbox::dispatch`]; usually this one.
    pub helper: PathBuf,
    /// How long a command may take.
    pub timeout: Duration,
    /// How many characters of its output are kept.
    pub output_limit: usize,
    /// deaddrop's own files and folders, which commands are not to see where that can be had.
    pub hidden: Vec<PathBuf>,
    /// A file that is locked while a command runs, so that after a crash one can wait for its end;
    /// empty for none.
    pub lock: PathBuf,
}

/// Why a wait for a command ended.
enum Waited {
    Exited,
    Late,
    Interrupted,
}

impl Runner {
    /// A runner that hides nothing.
    pub fn new(helper: PathBuf, timeout: Duration, output_limit: usize) -> Self {
        Self { helper, timeout, output_limit, hidden: Vec::new(), lock: PathBuf::new() }
    }

    /// Runs `command` with `folder` as its working directory. Standard input is empty; both output
    /// streams are kept in the order written. `interrupted` is asked now and then.
    pub fn run(&self, command: &str, folder: &Path, interrupted: &dyn Fn() -> bool) -> Execution {
        let begun = Instant::now();
        let (ending, output) = self
            .try_run(command, folder, interrupted)
            .unwrap_or_else(|e| (Ending::NotStarted(cause(&e, command)), Capture::default()));
        Execution { command: command.to_owned(), ending, output, duration: begun.elapsed() }
    }

    /// How commands are contained on this machine, and whether `hidden` is hidden from them; found
    /// by running one that does nothing.
    pub fn containment(&self, folder: &Path) -> (Containment, bool) {
        let unknown = (Containment::Unknown, false);
        let Ok((output, writer)) = io::pipe() else { return unknown };
        let Ok((mut child, report)) = self.start(":", folder, writer) else { return unknown };
        drop(output);
        match child.wait_timeout(self.timeout.max(GRACE)) {
            Ok(Some(_)) => {
                Report::read(report).map_or(unknown, |report| (report.containment, report.hidden))
            }
            _ => {
                end(&mut child);
                unknown
            }
        }
    }

    fn try_run(
        &self,
        command: &str,
        folder: &Path,
        interrupted: &dyn Fn() -> bool,
    ) -> io::Result<(Ending, Capture)> {
        let (output, writer) = io::pipe()?;
        widen(&output);
        let kept = Arc::new(Mutex::new(Bounded::new(self.output_limit)));
        // The thread comes first: without one, nothing has been begun.
        let drained = drain(output, Arc::clone(&kept))?;
        let orphans = Orphans::expect();
        let (mut child, report) = self.start(command, folder, writer)?;

        let waited = self.wait(&mut child, interrupted);
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
            Ok(Waited::Exited) => report.map_or(Ending::Lost, |report| report.ending),
            Err(_) => Ending::Lost,
        };
        Ok((ending, kept.finish()))
    }

    /// Starts the helper, which takes the only end to write output to; gives its report to read.
    fn start(
        &self,
        command: &str,
        folder: &Path,
        output: PipeWriter,
    ) -> io::Result<(Child, impl Read)> {
        let (report, report_writer) = sandbox::report_channel()?;
        let mut helper = Command::new(&self.helper);
        helper
            .args(sandbox::arguments(command, &self.lock, &self.hidden))
            .current_dir(folder)
            .env_clear()
            .envs(environment())
            // The helper takes its report's end from there and gives the command an empty input.
            .stdin(report_writer)
            .stdout(Stdio::from(output.try_clone()?))
            .stderr(Stdio::from(output));
        // A Ctrl-C at the terminal is for deaddrop alone.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut helper, 0);
        Ok((helper.spawn()?, report))
    }

    fn wait(&self, child: &mut Child, interrupted: &dyn Fn() -> bool) -> io::Result<Waited> {
        let deadline = Instant::now() + self.timeout;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if child.wait_timeout(left.min(SLICE))?.is_some() {
                return Ok(Waited::Exited);
            }
            if interrupted() {
                return Ok(Waited::Interrupted);
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

/// A failed start, in words the LLM can act on.
fn cause(error: &io::Error, command: &str) -> String {
    match error.kind() {
        io::ErrorKind::ArgumentListTooLong => format!(
            "the command is {} bytes long, more than this system takes; put it into a file with CREATE_FILE and run that",
            command.len()
        ),
        _ => error.to_string(),
    }
}

/// What a command sees of deaddrop's own environment: no secrets, no settings of deaddrop.
fn environment() -> impl Iterator<Item = (OsString, OsString)> {
    const KEPT: [&str; 40] = [
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TMPDIR",
        "CARGO_HOME",
        "RUSTUP_HOME",
        "GOPATH",
        "GOROOT",
        "GOCACHE",
        "GOMODCACHE",
        "NVM_DIR",
        "NVM_BIN",
        "VOLTA_HOME",
        "FNM_DIR",
        "PNPM_HOME",
        "BUN_INSTALL",
        "DENO_DIR",
        "PYENV_ROOT",
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
        "JAVA_HOME",
        "GRADLE_USER_HOME",
        "M2_HOME",
        "MAVEN_HOME",
        "SDKMAN_DIR",
        "ASDF_DIR",
        "ASDF_DATA_DIR",
        "RBENV_ROOT",
        "GEM_HOME",
        "DOTNET_ROOT",
        // What Windows cannot do without.
        "SystemRoot",
        "ComSpec",
        "PATHEXT",
        "TEMP",
        "TMP",
    ];
    std::env::vars_os()
        .filter(|(key, _)| {
            key.to_str().is_some_and(|key| KEPT.contains(&key) || key.starts_with("LC_"))
        })
        .chain([("TERM".into(), "dumb".into()), ("NO_COLOR".into(), "1".into())])
}

#[cfg(target_os = "linux")]
fn widen(pipe: &PipeReader) {
    // Refused where a user has many pipes; the usual size does too.
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE_SIZE);
}

#[cfg(not(target_os = "linux"))]
fn widen(_: &PipeReader) {}
