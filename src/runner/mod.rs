//! Runs a shell command to its end, or to its deadline, and takes every process it started with it.
//!
//! A command is started through the helper in [`sandbox`]: this same program, single-threaded, so
//! that it can enter namespaces. Output is drained on a thread of its own into bounded memory.

mod output;
pub mod sandbox;
mod tree;

use std::ffi::OsString;
use std::io::{self, PipeReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use wait_timeout::ChildExt;

use crate::protocol::{Capture, Ending, Execution};
use output::Bounded;
use sandbox::Containment;

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
}

/// Why a wait for a command ended.
enum Waited {
    Exited(ExitStatus),
    Late,
    Interrupted,
}

impl Runner {
    /// A runner that hides nothing.
    pub fn new(helper: PathBuf, timeout: Duration, output_limit: usize) -> Self {
        Self { helper, timeout, output_limit, hidden: Vec::new() }
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
        let Ok((mut child, report, output)) = self.start(":", folder) else {
            return (Containment::Unknown, false);
        };
        drop(output);
        match child.wait_timeout(self.timeout.max(GRACE)) {
            Ok(Some(_)) => {
                let report = sandbox::Report::read(report);
                (report.containment, report.hidden)
            }
            _ => {
                tree::end(child.id());
                let _ = child.wait();
                (Containment::Unknown, false)
            }
        }
    }

    fn try_run(
        &self,
        command: &str,
        folder: &Path,
        interrupted: &dyn Fn() -> bool,
    ) -> io::Result<(Ending, Capture)> {
        let (mut child, report, output) = self.start(command, folder)?;
        let limit = self.output_limit;
        let (sender, drained) = mpsc::channel();
        thread::spawn(move || sender.send(drain(output, limit)));

        let waited = self.wait(&mut child, interrupted)?;
        if !matches!(waited, Waited::Exited(_)) {
            end(&mut child);
        }
        // All writers are gone with the tree; should one be left all the same, it is not waited for.
        let capture = drained.recv_timeout(GRACE).unwrap_or_default();
        let ending = match waited {
            Waited::Late => Ending::TimedOut(self.timeout),
            Waited::Interrupted => Ending::Interrupted,
            Waited::Exited(status) => sandbox::Report::read(report).ending.unwrap_or_else(|| {
                Ending::NotStarted(format!("the process that starts commands failed ({status})"))
            }),
        };
        Ok((ending, capture))
    }

    /// Starts the helper; gives its report and the command's output to read.
    fn start(&self, command: &str, folder: &Path) -> io::Result<(Child, PipeReader, PipeReader)> {
        let (output, output_writer) = io::pipe()?;
        let (report, report_writer) = io::pipe()?;
        widen(&output);
        let mut helper = Command::new(&self.helper);
        helper
            .args(sandbox::arguments(command, &self.hidden))
            .current_dir(folder)
            .env_clear()
            .envs(environment())
            // The helper takes its report's end from there and gives the command an empty input.
            .stdin(Stdio::from(report_writer))
            .stdout(Stdio::from(output_writer.try_clone()?))
            .stderr(Stdio::from(output_writer));
        // A Ctrl-C at the terminal is for deaddrop alone.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut helper, 0);
        Ok((helper.spawn()?, report, output))
    }

    fn wait(&self, child: &mut Child, interrupted: &dyn Fn() -> bool) -> io::Result<Waited> {
        let deadline = Instant::now() + self.timeout;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if let Some(status) = child.wait_timeout(left.min(SLICE))? {
                return Ok(Waited::Exited(status));
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

fn drain(mut output: PipeReader, limit: usize) -> Capture {
    let mut kept = Bounded::new(limit);
    let mut buffer = vec![0; 256 << 10];
    loop {
        match output.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => kept.push(&buffer[..n]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    kept.finish()
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
