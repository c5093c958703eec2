//! A program that is spoken with over its standard input and output: started, listened to, ended.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::Read;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::program::Programs;

/// So much is kept of the end of what it writes on standard error, in bytes.
const KEPT: usize = 4 << 10;
/// How often it is asked whether it has ended.
const SLICE: Duration = Duration::from_millis(10);

/// The program, in a process group of its own. It is gone when this is dropped.
pub(super) struct Process {
    child: Child,
    said: Arc<Mutex<VecDeque<u8>>>,
    /// Nothing comes; it closes at the end of standard error.
    silent: Receiver<Infallible>,
}

impl Process {
    /// Starts it, or tells why not.
    pub(super) fn start(
        command: &[String],
        programs: &Programs,
    ) -> Result<(Self, ChildStdin, ChildStdout), String> {
        let [program, arguments @ ..] = command else {
            return Err("no program is named that could be started".to_owned());
        };
        let command = programs.named(program);
        let mut command =
            command.map_err(|e| format!("cannot be started: {e}; is it installed and on PATH?"))?;
        command.args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A Ctrl-C at the terminal is for deaddrop alone.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command
            .spawn()
            .map_err(|e| format!("cannot be started: {e}; is it installed and on PATH?"))?;
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let said = Arc::default();
        let (running, silent) = mpsc::channel();
        // From here on it is ended whatever happens.
        let process = Self { child, said: Arc::clone(&said), silent };
        let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
            return Err("has no pipes".to_owned());
        };
        let listen = move || {
            keep_last(stderr, &said);
            drop::<Sender<Infallible>>(running);
        };
        thread::Builder::new()
            .name("client-err".to_owned())
            .spawn(listen)
            .map_err(|e| format!("cannot be listened to: {e}"))?;
        Ok((process, stdin, stdout))
    }

    /// How it ended, in words, if it does within that time; it is not reaped.
    pub(super) fn ended(&mut self, until: Instant) -> Option<String> {
        loop {
            if let Some(ending) = self.ending() {
                return Some(ending);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            thread::sleep(left.min(SLICE));
        }
    }

    /// The last that it wrote on standard error, all of it if that closes within that time.
    pub(super) fn said(&self, until: Instant) -> String {
        let _ = self.silent.recv_timeout(until.saturating_duration_since(Instant::now()));
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let (a, b) = said.as_slices();
        String::from_utf8_lossy(&[a, b].concat()).into_owned()
    }

    /// Lets it end by itself until then, and ends it with all of its group.
    pub(super) fn close(&mut self, until: Instant) {
        let _ = self.ended(until);
        // Not reaped yet, it holds the number of its group.
        self.kill();
        let _ = self.child.wait();
    }

    #[cfg(unix)]
    fn ending(&self) -> Option<String> {
        use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
        let pid = WaitId::Pid(Pid::from_child(&self.child));
        // It stays, so that its number is not given away before its group was ended.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = waitid(pid, options).ok()??;
        Some(match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => return None,
        })
    }

    #[cfg(not(unix))]
    fn ending(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok()??;
        Some(status.code().map_or_else(|| status.to_string(), |code| format!("exit code {code}")))
    }

    #[cfg(unix)]
    fn kill(&mut self) {
        use rustix::process::{Pid, Signal, kill_process_group};
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        // It may have left its group, and would be waited for without end.
        let _ = self.child.kill();
    }

    #[cfg(not(unix))]
    fn kill(&mut self) {
        let _ = self.child.kill();
    }

    #[cfg(test)]
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // After `close` there is nothing left: neither a group nor somebody to wait for.
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            self.kill();
            let _ = self.child.wait();
        }
    }
}

fn keep_last(mut stderr: ChildStderr, said: &Mutex<VecDeque<u8>>) {
    let mut buffer = [0; KEPT];
    loop {
        match stderr.read(&mut buffer) {
            Ok(0) => return,
            Ok(n) => {
                let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
                said.extend(&buffer[..n]);
                let over = said.len().saturating_sub(KEPT);
                said.drain(..over);
            }
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}
