//! The other end of a connection: a program that was started for it, or whoever listens at a socket. No
//! call waits longer than it is told to.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::mem;
use std::os::fd::OwnedFd;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// How much is read at once, in bytes.
const CHUNK: usize = 64 << 10;
/// How much is kept of the end of what a program writes on standard error, in bytes.
const KEPT: usize = 4 << 10;
/// How often standard error is read at once, at most: whoever writes to it without end is not all that
/// is waited for.
const READS: usize = 16;
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
    /// Nothing in that time.
    Nothing,
    /// It cannot be written to; what it wrote before may still come.
    Unwritten(io::Error),
}

/// The other end, ended with this.
pub(super) struct Peer {
    /// None when there is nothing more to be said, or heard. Neither waits.
    to: Option<File>,
    from: Option<File>,
    /// What is to be written.
    queue: Vec<u8>,
    /// How many bytes of the queue are written, and how many of all before it.
    written: usize,
    before: u64,
    /// What was read: where the next line begins, and up to where none ends.
    read: Vec<u8>,
    start: usize,
    searched: usize,
    program: Option<Program>,
}

/// A program, in a process group of its own.
struct Program {
    child: Child,
    stderr: Option<File>,
    said: VecDeque<u8>,
}

impl Peer {
    /// Speaks with whoever reads and writes these.
    pub(super) fn new(to: OwnedFd, from: OwnedFd) -> io::Result<Self> {
        for fd in [&to, &from] {
            rustix::io::ioctl_fionbio(fd, true)?;
        }
        Ok(Self {
            to: Some(to.into()),
            from: Some(from.into()),
            queue: Vec::new(),
            written: 0,
            before: 0,
            read: Vec::new(),
            start: 0,
            searched: 0,
            program: None,
        })
    }

    /// Speaks with a program that was started with pipes.
    pub(super) fn of_program(mut child: Child) -> io::Result<Self> {
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        // From here on it is ended whatever happens.
        let mut program = Program { child, stderr: None, said: VecDeque::new() };
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(io::Error::other("it has no pipes"));
        };
        rustix::io::ioctl_fionbio(&stderr, true)?;
        program.stderr = Some(OwnedFd::from(stderr).into());
        Ok(Self { program: Some(program), ..Self::new(stdin.into(), stdout.into())? })
    }

    /// Queues a line; how many bytes are written of all when it is.
    pub(super) fn send(&mut self, line: String) -> u64 {
        self.queue.extend(line.into_bytes());
        self.before + self.queue.len() as u64
    }

    /// How many bytes are queued that come after so many of all.
    pub(super) fn queued_after(&self, bytes: u64) -> u64 {
        (self.before + self.queue.len() as u64).saturating_sub(bytes.max(self.before))
    }

    /// Whether so many bytes are written.
    pub(super) fn has_written(&self, bytes: u64) -> bool {
        self.before + self.written as u64 >= bytes
    }

    /// Writes what is queued and reads what comes, until a line is there, but no longer than that.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn exchange(&mut self, patience: Duration, limit: usize) -> io::Result<Read> {
        let until = Instant::now() + patience;
        let mut is_over = false;
        loop {
            if let Err(e) = self.write() {
                (self.to, self.queue, self.written) = (None, Vec::new(), 0);
                return Ok(Read::Unwritten(e));
            }
            let found = memchr::memchr(b'\n', &self.read[self.searched..]);
            let end = found.map(|end| self.searched + end);
            self.searched = end.unwrap_or(self.read.len());
            if self.searched - self.start > limit {
                return Ok(Read::Long);
            }
            if let Some(end) = end {
                let line = self.read[self.start..end].to_vec();
                (self.start, self.searched) = (end + 1, end + 1);
                return Ok(Read::Line(line));
            }
            if is_over {
                return Ok(Read::Nothing);
            }
            self.read.drain(..self.start);
            if self.read.is_empty() {
                self.read.shrink_to(2 * CHUNK);
            }
            (self.start, self.searched) = (0, self.read.len());
            let left = until.saturating_duration_since(Instant::now());
            // What is there is read once more, and no more is waited for.
            is_over = left.is_zero();
            let Some(from) = &self.from else { return Ok(Read::Ended(Vec::new())) };
            let to = self.to.as_ref().filter(|_| self.written < self.queue.len());
            let stderr = self.program.as_ref().and_then(|program| program.stderr.as_ref());
            let wanted = [
                Some(PollFd::new(from, PollFlags::IN)),
                to.map(|to| PollFd::new(to, PollFlags::OUT)),
                stderr.map(|stderr| PollFd::new(stderr, PollFlags::IN)),
            ];
            let mut all: Vec<PollFd<'_>> = wanted.into_iter().flatten().collect();
            let longest = Timespec::try_from(left).map_err(io::Error::other)?;
            match poll(&mut all, Some(&longest)) {
                Ok(0) => return Ok(Read::Nothing),
                Ok(_) | Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
            if let Some(program) = &mut self.program {
                program.listen();
            }
            self.read.reserve(CHUNK);
            match rustix::io::read(from, spare_capacity(&mut self.read)) {
                Ok(0) => return Ok(Read::Ended(mem::take(&mut self.read))),
                Ok(_) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
    }

    fn write(&mut self) -> io::Result<()> {
        let Some(to) = &mut self.to else { return Ok(()) };
        while self.written < self.queue.len() {
            match to.write(&self.queue[self.written..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => self.written += written,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        self.before += self.written as u64;
        (self.queue, self.written) = (Vec::new(), 0);
        Ok(())
    }

    /// Says and hears nothing more.
    pub(super) fn hang_up(&mut self) {
        (self.to, self.from) = (None, None);
    }

    /// How a program ended, in words, if it does within that time, and the last that it wrote on standard
    /// error. It is not reaped.
    pub(super) fn last_words(&mut self, until: Instant) -> (Option<String>, String) {
        let Some(program) = &mut self.program else { return (None, String::new()) };
        let ending = program.wait(until, true);
        program.said.make_contiguous();
        let said = String::from_utf8_lossy(program.said.as_slices().0).into_owned();
        (ending, said)
    }

    /// Lets a program end by itself until then, and ends it with all of its group.
    pub(super) fn close(&mut self, until: Instant) {
        if let Some(program) = &mut self.program {
            program.wait(until, false);
        }
    }

    #[cfg(test)]
    pub(super) fn id(&self) -> Option<u32> {
        self.program.as_ref().map(|program| program.child.id())
    }
}

impl Program {
    /// Waits until it has ended, and with `all` until it has said all.
    fn wait(&mut self, until: Instant, all: bool) -> Option<String> {
        loop {
            self.listen();
            let ending = self.ending();
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || ending.is_some() && (!all || self.stderr.is_none()) {
                return ending;
            }
            std::thread::sleep(left.min(SLICE));
        }
    }

    fn listen(&mut self) {
        let mut buffer = [0; KEPT];
        for _ in 0..READS {
            let Some(stderr) = &mut self.stderr else { return };
            match stderr.read(&mut buffer) {
                Ok(0) => self.stderr = None,
                Ok(length) => {
                    self.said.extend(&buffer[..length]);
                    let over = self.said.len().saturating_sub(KEPT);
                    self.said.drain(..over);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => self.stderr = None,
            }
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
