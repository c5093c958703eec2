//! Waits for a running command: for its end, its output, an interruption or its deadline. The system wakes the waiting
//! thread. Only free disk space is polled.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::disk_space::DiskMonitor;
use super::output_reader::OutputReader;
use super::sandbox::{self, HelperGuard};
use super::tree;
use crate::protocol::Ending;

/// The polling interval on systems that do not report the end of a child process.
const SLICE: Duration = Duration::from_millis(20);
/// How long ending a process tree may take. After that, the rest of its output is abandoned.
pub(super) const GRACE: Duration = Duration::from_secs(2);

/// A helper that is running.
pub(super) struct HelperProcess {
    child: Child,
    /// Descriptors that become readable when the helper ends, and when [`interrupt::check`] is called. None if the
    /// system does not provide them.
    wakeups: Option<[OwnedFd; 2]>,
    /// Prevents other commands from treating the helper as an orphan.
    _started: HelperGuard,
}

impl HelperProcess {
    pub(super) fn new(child: Child, started: HelperGuard) -> Self {
        let wakeups = interrupt::wakeups(&child).ok();
        Self { child, wakeups, _started: started }
    }

    /// Reads the output until the helper ends (None), or until there is a reason to end it.
    pub(super) fn wait(
        &mut self,
        output: &mut OutputReader,
        timeout: Duration,
        space: &mut DiskMonitor,
        interrupted: &dyn Fn() -> bool,
    ) -> io::Result<Option<Ending>> {
        let deadline = Instant::now().checked_add(timeout);
        loop {
            if interrupted() {
                return Ok(Some(Ending::Interrupted));
            }
            let now = Instant::now();
            if deadline.is_some_and(|deadline| deadline <= now) {
                return Ok(Some(Ending::TimedOut(timeout)));
            }
            if space.next_check().is_some_and(|next| next <= now)
                && let Some(shortage) = space.check()
            {
                return Ok(Some(Ending::Stopped(shortage.ended())));
            }
            if self.wait_once(output, deadline.into_iter().chain(space.next_check()).min())? {
                return Ok(None);
            }
        }
    }

    /// Waits until something happens, or until the given time. Returns whether the helper has ended.
    fn wait_once(&mut self, output: &mut OutputReader, until: Option<Instant>) -> io::Result<bool> {
        let slice = || Instant::now() + SLICE;
        let until = match (&self.wakeups, until) {
            (Some(_), until) => until,
            (None, until) => Some(until.map_or_else(slice, |until| until.min(slice()))),
        };
        let pipes = output.pipes();
        let wakeups = self.wakeups.iter().flatten().map(AsFd::as_fd);
        let ready = wait_for(pipes.chain(wakeups), until)?;
        output.read();
        if ready && let Some([_, notifier]) = &self.wakeups {
            interrupt::take(notifier);
        }
        Ok(self.child.try_wait()?.is_some())
    }

    /// Ends the helper and the command's whole process tree.
    pub(super) fn end(&mut self, output: &mut OutputReader) {
        sandbox::ask_to_end(self.child.id());
        let deadline = Instant::now() + GRACE;
        while Instant::now() < deadline {
            match self.wait_once(output, Some(deadline)) {
                Ok(true) => return,
                Ok(false) => {}
                Err(_) => break,
            }
        }
        tree::end(self.child.id());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until one of the descriptors is readable or closed, or until the given time. Returns whether one is.
pub(super) fn wait_for<'a>(
    these: impl Iterator<Item = BorrowedFd<'a>>,
    until: Option<Instant>,
) -> io::Result<bool> {
    let mut polled: Vec<_> = these.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    // A time that the system cannot represent counts as no limit.
    let left = left.and_then(|left| Timespec::try_from(left).ok());
    match poll(&mut polled, left.as_ref()) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(true),
        Err(e) => Err(e.into()),
    }
}

/// Wakes all waits in this process, so that each checks whether it is interrupted.
#[cfg(target_os = "linux")]
pub mod interrupt {
    use std::io::{self, Read, Write};
    use std::os::fd::{AsFd, OwnedFd};
    use std::os::unix::net::UnixStream;
    use std::process::Child;
    use std::sync::LazyLock;

    use rustix::event::{Timespec, epoll};
    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    /// A byte written to the first socket can be read from the second. Each wait watches the second socket with its own
    /// edge-triggered watch, which reports each byte once, even if the byte is not read.
    static NOTIFIER: LazyLock<io::Result<[UnixStream; 2]>> = LazyLock::new(|| {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        theirs.set_nonblocking(true)?;
        Ok([ours, theirs])
    });

    fn notifier() -> io::Result<[&'static UnixStream; 2]> {
        match &*NOTIFIER {
            Ok(both) => Ok(both.each_ref()),
            Err(e) => Err(e.kind().into()),
        }
    }

    /// Makes each wait check again whether it is interrupted. Must be called after an interruption was requested.
    pub fn check() {
        let Ok([mut sender, mut receiver]) = notifier() else { return };
        while receiver.read(&mut [0; 64]).is_ok_and(|length| length > 0) {}
        let _ = sender.write(&[0]);
    }

    /// Calls [`check`] whenever this signal arrives, after the handlers that are already registered for the signal.
    ///
    /// # Errors
    /// No handler can be registered for the signal.
    pub fn check_on(signal: i32) -> io::Result<()> {
        let [sender, _] = notifier()?;
        signal_hook::low_level::pipe::register(signal, sender.try_clone()?).map(drop)
    }

    /// Returns descriptors that become readable when this child ends, and when [`check`] is called.
    pub(super) fn wakeups(child: &Child) -> io::Result<[OwnedFd; 2]> {
        let [_, receiver] = notifier()?;
        let watch = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let once = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&watch, receiver, epoll::EventData::new_u64(0), once)?;
        Ok([pidfd_open(Pid::from_child(child), PidfdFlags::empty())?, watch])
    }

    /// Clears a notification.
    pub(super) fn take(watch: impl AsFd) {
        let none =
            epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) };
        let _ = epoll::wait(watch, &mut [none], Some(&Timespec::default()));
    }
}

/// Without these descriptors, each wait polls.
#[cfg(not(target_os = "linux"))]
pub mod interrupt {
    /// Does nothing.
    pub fn check() {}

    /// Does nothing.
    ///
    /// # Errors
    /// Never.
    pub fn check_on(_signal: i32) -> std::io::Result<()> {
        Ok(())
    }

    pub(super) fn wakeups(_: &std::process::Child) -> std::io::Result<[std::os::fd::OwnedFd; 2]> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    pub(super) fn take(_: impl std::os::fd::AsFd) {}
}
