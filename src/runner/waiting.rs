//! Waits for what happens to a running command: its end, its output, an interruption, a deadline. The
//! system wakes the thread that waits; only free space is looked at in between.

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

/// How often a helper is looked at where the system cannot tell of its end.
const SLICE: Duration = Duration::from_millis(20);
/// How long ending a process tree may take before its output is given up.
pub(super) const GRACE: Duration = Duration::from_secs(2);

/// A helper that was started and is to be waited for.
pub(super) struct HelperProcess {
    child: Child,
    /// What becomes readable when it ends, and when [`interrupt::check`] is called; None where the
    /// system has no such thing.
    wakeups: Option<[OwnedFd; 2]>,
    /// Other commands leave it alone.
    _started: HelperGuard,
}

impl HelperProcess {
    pub(super) fn new(child: Child, started: HelperGuard) -> Self {
        let wakeups = interrupt::wakeups(&child).ok();
        Self { child, wakeups, _started: started }
    }

    /// Waits until it ends or there is a reason to end it, which is returned; reads its output meanwhile.
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

    /// Waits until something happens, or until then. Returns whether it has ended.
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

    /// Ends it, and with it the command's whole tree.
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

/// Waits until one of these can be read or is closed, or until then. Returns whether one is.
pub(super) fn wait_for<'a>(
    these: impl Iterator<Item = BorrowedFd<'a>>,
    until: Option<Instant>,
) -> io::Result<bool> {
    let mut polled: Vec<_> = these.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    // What is too long for the system is never over.
    let left = left.and_then(|left| Timespec::try_from(left).ok());
    match poll(&mut polled, left.as_ref()) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(true),
        Err(e) => Err(e.into()),
    }
}

/// What wakes all waits of this process, so that each asks again whether it is interrupted.
#[cfg(target_os = "linux")]
pub mod interrupt {
    use std::io::{self, Read, Write};
    use std::os::fd::{AsFd, OwnedFd};
    use std::os::unix::net::UnixStream;
    use std::process::Child;
    use std::sync::LazyLock;

    use rustix::event::{Timespec, epoll};
    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    /// What is written to the first comes out of the second, where each wait has a watch of its own that
    /// hears of each byte once, whether or not somebody takes it out.
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

    /// Has each running command's wait ask again whether it is interrupted. Call it after that has changed.
    pub fn check() {
        let Ok([mut sender, mut receiver]) = notifier() else { return };
        while receiver.read(&mut [0; 64]).is_ok_and(|length| length > 0) {}
        let _ = sender.write(&[0]);
    }

    /// The same each time that this signal comes, after what was registered for it before.
    ///
    /// # Errors
    /// The signal cannot be listened to.
    pub fn check_on(signal: i32) -> io::Result<()> {
        let [sender, _] = notifier()?;
        signal_hook::low_level::pipe::register(signal, sender.try_clone()?).map(drop)
    }

    /// What becomes readable when this child ends, and when [`check`] is called.
    pub(super) fn wakeups(child: &Child) -> io::Result<[OwnedFd; 2]> {
        let [_, receiver] = notifier()?;
        let watch = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let once = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&watch, receiver, epoll::EventData::new_u64(0), once)?;
        Ok([pidfd_open(Pid::from_child(child), PidfdFlags::empty())?, watch])
    }

    /// Forgets that it was notified.
    pub(super) fn take(watch: impl AsFd) {
        let none =
            epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) };
        let _ = epoll::wait(watch, &mut [none], Some(&Timespec::default()));
    }
}

/// The system cannot tell: each wait looks every now and then.
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
