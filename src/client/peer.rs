//! The other end of a connection: a program that was started for it, or whoever listens at a socket. Threads
//! read and write, so that no call waits longer than it is told to. They end with the connection; those of a
//! program whose pipes something else holds as well end with the last that does.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::Child;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use rustix::net::{Shutdown, shutdown};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::ANSWER_LIMIT;

/// How much is read at once, in bytes.
const CHUNK: usize = 64 << 10;
/// How much is kept of the end of what a program writes on standard error, in bytes.
const KEPT: usize = 4 << 10;
/// How many lines wait to be written: nothing more is sent to whoever does not read so much.
const QUEUE: usize = 8;
/// How often it is asked whether a program has ended.
const SLICE: Duration = Duration::from_millis(10);

/// What came.
pub(super) enum Read {
    /// A line, without its end.
    Line(Vec<u8>),
    /// A line that is longer than they may be.
    Long,
    /// No more, after the beginning of a line.
    Ended(Vec<u8>),
    /// It cannot be read.
    Failed(io::Error),
    /// It cannot be written to; what it wrote before may still come.
    Unwritten(io::Error),
}

/// The other end, ended with this.
pub(super) struct Peer {
    /// None when there is nothing more to be said, or heard.
    to: Option<SyncSender<String>>,
    from: Option<Receiver<Read>>,
    /// One more of it, to end what is being read and written.
    socket: Option<OwnedFd>,
    program: Option<Program>,
}

/// A program, in a process group of its own.
struct Program {
    child: Child,
    /// The last that it said on standard error, and what listens to that.
    said: Arc<Mutex<Vec<u8>>>,
    listening: Option<JoinHandle<()>>,
}

impl Peer {
    /// Speaks with whoever listens at this socket.
    pub(super) fn of_socket(socket: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&socket, false)?;
        let peer = Self::new(socket.try_clone()?, socket.try_clone()?)?;
        Ok(Self { socket: Some(socket), ..peer })
    }

    /// Speaks with a program that was started with pipes.
    pub(super) fn of_program(mut child: Child) -> io::Result<Self> {
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        // From here on it is ended whatever happens.
        let mut program = Program { child, said: Arc::default(), listening: None };
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(io::Error::other("it has no pipes"));
        };
        let said = Arc::clone(&program.said);
        program.listening = Some(spawn(move || listen(OwnedFd::from(stderr).into(), &said))?);
        Ok(Self { program: Some(program), ..Self::new(stdin.into(), stdout.into())? })
    }

    fn new(to: OwnedFd, from: OwnedFd) -> io::Result<Self> {
        let (sender, lines) = sync_channel::<String>(QUEUE);
        // It reads no further while nobody wants to hear it.
        let (heard, received) = sync_channel(0);
        let (mut to, failed) = (File::from(to), heard.clone());
        spawn(move || {
            let written = lines.iter().try_for_each(|line| to.write_all(line.as_bytes()));
            written.map_err(|e| failed.send(Read::Unwritten(e)))
        })?;
        let mut from = BufReader::with_capacity(CHUNK, File::from(from));
        spawn(move || {
            loop {
                let read = read(&mut from);
                let is_line = matches!(read, Read::Line(_));
                if heard.send(read).is_err() || !is_line {
                    break;
                }
            }
        })?;
        Ok(Self { to: Some(sender), from: Some(received), socket: None, program: None })
    }

    /// Queues a line. False if too many wait already, or nothing more can be written.
    pub(super) fn send(&self, line: String) -> bool {
        self.to.as_ref().is_some_and(|to| to.try_send(line).is_ok())
    }

    /// What comes next, if it comes within that time.
    pub(super) fn next(&self, patience: Duration) -> Option<Read> {
        let Some(from) = &self.from else { return Some(Read::Ended(Vec::new())) };
        match from.recv_timeout(patience) {
            Ok(read) => Some(read),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Read::Ended(Vec::new())),
        }
    }

    /// Says and hears nothing more.
    pub(super) fn hang_up(&mut self) {
        (self.to, self.from) = (None, None);
        let _ = self.socket.take().map(|socket| shutdown(socket, Shutdown::Both));
    }

    /// How a program ended, in words, if it does within that time, and the last that it wrote on standard
    /// error. It is not reaped.
    pub(super) fn last_words(&self, until: Instant) -> (Option<String>, String) {
        let Some(program) = &self.program else { return (None, String::new()) };
        let ending = program.wait(until, true);
        let said = program.said.lock().unwrap_or_else(PoisonError::into_inner);
        (ending, String::from_utf8_lossy(&said).into_owned())
    }

    /// Lets a program end by itself until then, and ends it with all of its group.
    pub(super) fn close(&mut self, until: Instant) {
        if let Some(program) = self.program.take() {
            program.wait(until, false);
        }
    }

    #[cfg(test)]
    pub(super) fn id(&self) -> Option<u32> {
        self.program.as_ref().map(|program| program.child.id())
    }
}

fn spawn<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().name("client".to_owned()).spawn(work)
}

fn read(from: &mut BufReader<File>) -> Read {
    let mut line = Vec::new();
    match from.take(ANSWER_LIMIT as u64 + 1).read_until(b'\n', &mut line) {
        Err(e) => Read::Failed(e),
        Ok(_) if line.pop_if(|last| *last == b'\n').is_some() => Read::Line(line),
        Ok(_) if line.len() > ANSWER_LIMIT => Read::Long,
        Ok(_) => Read::Ended(line),
    }
}

/// Keeps the end of what is said, while somebody may want to know.
fn listen(mut stderr: File, said: &Arc<Mutex<Vec<u8>>>) {
    let mut buffer = [0; KEPT];
    while let Ok(length @ 1..) = stderr.read(&mut buffer)
        && Arc::strong_count(said) > 1
    {
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        said.extend(&buffer[..length]);
        let over = said.len().saturating_sub(KEPT);
        said.drain(..over);
    }
}

impl Program {
    /// Waits until it has ended, and with `all` until it has said all.
    fn wait(&self, until: Instant, all: bool) -> Option<String> {
        let is_silent = || self.listening.as_ref().is_none_or(JoinHandle::is_finished);
        loop {
            let ending = self.ending();
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || ending.is_some() && (!all || is_silent()) {
                return ending;
            }
            std::thread::sleep(left.min(SLICE));
        }
    }

    fn ending(&self) -> Option<String> {
        let pid = WaitId::Pid(Pid::from_child(&self.child));
        // It stays, so that its number is not given away before its group was ended.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = waitid(pid, options).ok()??;
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Some(format!("exit code {code}")),
            (None, signal) => signal.map(|signal| format!("signal {signal}")),
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Not reaped yet, it holds the number of its group.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        // It may have left its group, and would be waited for without end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
