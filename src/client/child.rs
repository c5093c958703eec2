//! A program that was started for a connection, in its own process group.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::process;
use std::time::{Duration, Instant};

use rustix::io::{Errno, ioctl_fionbio};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::SLICE;

/// How many bytes are kept of the end of a program's standard error.
const KEPT: usize = 500;
/// How long a program may take to end after its standard input is closed.
pub(super) const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// A program. On drop it gets [`EXIT_TIMEOUT`] to end by itself; then its whole process group is killed.
pub(super) struct Child {
    process: process::Child,
    /// Its standard error; None once it is closed.
    pub(super) stderr: Option<File>,
    /// The end of what it wrote there.
    stderr_tail: Vec<u8>,
}

impl Child {
    /// Takes the pipes of a program. Returns the pipe to write to and the pipe to read from.
    pub(super) fn new(mut process: process::Child) -> io::Result<(Self, OwnedFd, OwnedFd)> {
        let pipes = (process.stdin.take(), process.stdout.take(), process.stderr.take());
        // From here on, dropping `program` ends the process, even after an error.
        let mut program = Self { process, stderr: None, stderr_tail: Vec::new() };
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(io::Error::other("it has no pipes"));
        };
        ioctl_fionbio(&stderr, true)?;
        program.stderr = Some(OwnedFd::from(stderr).into());
        Ok((program, stdin.into(), stdout.into()))
    }

    /// Reads some of its standard error, and keeps the end. Returns false if there was nothing to read.
    pub(super) fn read_stderr(&mut self) -> bool {
        let Some(stderr) = &self.stderr else { return false };
        let mut chunk = [0; 8 * KEPT];
        let read = rustix::io::read(stderr, &mut chunk[..]);
        if !matches!(read, Ok(1..) | Err(Errno::INTR | Errno::AGAIN)) {
            self.stderr = None;
        }
        self.stderr_tail.extend(&chunk[..read.unwrap_or(0)]);
        let over = self.stderr_tail.len().saturating_sub(KEPT);
        self.stderr_tail.drain(..over);
        read.is_ok_and(|length| length > 0)
    }

    /// The end of what it wrote on standard error.
    pub(super) fn stderr_tail(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.stderr_tail)
    }

    /// Waits until it has ended, and with `all`, until its standard error is closed. Returns how it ended, in words.
    pub(super) fn wait(&mut self, patience: Duration, all: bool) -> Option<String> {
        let until = Instant::now() + patience;
        loop {
            let has_said = self.read_stderr();
            let ending = self.ending();
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || ending.is_some() && (!all || self.stderr.is_none()) {
                return ending;
            }
            if !has_said {
                std::thread::sleep(left.min(SLICE));
            }
        }
    }

    fn ending(&self) -> Option<String> {
        let pid = WaitId::Pid(Pid::from_child(&self.process));
        // The process is not reaped, so that its ID is not reused before its group is killed.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = waitid(pid, options).ok()??;
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Some(format!("exit code {code}")),
            (None, signal) => signal.map(|signal| format!("signal {signal}")),
        }
    }

    #[cfg(test)]
    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.wait(EXIT_TIMEOUT, false);
        // The process is not reaped yet, so the ID of its group is not reused.
        let _ = kill_process_group(Pid::from_child(&self.process), Signal::KILL);
        // The process may have left its group. Without this, the wait could last forever.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
