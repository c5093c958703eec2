//! The helper process. It isolates itself, then does what its argument says:
//!
//! ```text
//! hold   puts its standard input on the clipboard, reports, and stays until another program copies
//! read   reports what is on the clipboard
//! watch  reports each reply that comes to the clipboard, until its standard input is closed
//! ```
#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, Rlimit, chdir, setrlimit, setsid};

use super::LIMIT;
use super::display::Display;
use super::report::{self, Failure};
use crate::protocol::ParsedReply;

/// The first argument of a helper. No subcommand has this name.
pub(super) const MARK: &str = "__clipboard";

/// How often a watching helper reads: a person takes longer to change windows.
const INTERVAL: Duration = Duration::from_millis(400);
/// How much memory a helper may have: nobody knows how long a clipboard is before it is read.
#[cfg(target_os = "linux")]
const MEMORY: u64 = 1 << 30;

/// If this process was started as a helper, be one and never return. Call it first in `main`, before
/// any thread is made.
pub fn dispatch() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_none_or(|first| first != MARK) {
        return;
    }
    let verb = arguments.next().unwrap_or_default();
    let done = isolate().map_err(Failure::from).and_then(|()| match verb.to_str() {
        Some("hold") => hold(),
        Some("read") => read(),
        Some("watch") => watch(),
        _ => std::process::exit(2),
    });
    if let Err(failure) = done {
        let _ = report::send(&Err(failure));
        std::process::exit(1);
    }
    std::process::exit(0)
}

/// Keeps nothing of the parent: no other descriptors, no terminal, no folder. What this process reads stays
/// within it: other processes of the user cannot look into it, and no dump of its memory is written.
fn isolate() -> io::Result<()> {
    close_descriptors();
    crate::runner::sandbox::close_to_commands();
    let limit = |most| Rlimit { current: Some(most), maximum: Some(most) };
    setrlimit(Resource::Core, limit(0))?;
    #[cfg(target_os = "linux")]
    setrlimit(Resource::As, limit(MEMORY))?;
    // It fails for the leader of a session.
    let _ = setsid();
    Ok(chdir("/")?)
}

/// Closes all descriptors but the three standard ones.
fn close_descriptors() {
    // SAFETY: system calls on integers. Nothing in this process has opened anything yet.
    #[cfg(target_os = "linux")]
    unsafe {
        libc::syscall(libc::SYS_close_range, 3, libc::c_int::MAX, 0);
    }
    // SAFETY: as above.
    #[cfg(not(target_os = "linux"))]
    (3..1024).for_each(|descriptor| unsafe {
        libc::close(descriptor);
    });
}

/// Has the system kill this process when its parent ends.
fn end_with_parent() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    Ok(())
}

fn hold() -> Result<(), Failure> {
    let text = io::read_to_string(io::stdin().take(LIMIT as u64))?;
    // A parent that does not hear this does not rely on the text.
    Display::open()?.hold(&text, || {
        report::send(&Ok(None))?;
        let null = File::options().read(true).write(true).open("/dev/null")?;
        rustix::stdio::dup2_stdin(&null)?;
        Ok(rustix::stdio::dup2_stdout(&null)?)
    })
}

fn read() -> Result<(), Failure> {
    end_with_parent()?;
    Ok(report::send(&Display::open()?.read())?)
}

/// Reports after each look, with the text if it is new and names the outbox that it answers. Other texts are
/// forgotten.
fn watch() -> Result<(), Failure> {
    end_with_parent()?;
    let mut display = Display::open()?;
    let mut last = None;
    loop {
        let text = match display.read() {
            // That is no reply.
            Err(Failure::TooLong | Failure::NotUtf8) => None,
            found => found?,
        };
        let digest = text.as_ref().map(|text| blake3::hash(text.as_bytes()));
        let new = text.filter(|_| last != digest).map(ParsedReply::new);
        let reply = new.filter(|reply| reply.answers().is_some());
        report::send(&Ok(reply.map(|reply| reply.text().to_owned())))?;
        last = digest;
        if is_readable(io::stdin(), INTERVAL) {
            return Ok(());
        }
    }
}

/// Waits until something can be read, or the other end is closed.
fn is_readable(input: impl AsFd, wait: Duration) -> bool {
    let wait = Timespec::try_from(wait).ok();
    let mut polled = [PollFd::new(&input, PollFlags::IN)];
    rustix::io::retry_on_intr(|| poll(&mut polled, wait.as_ref())) != Ok(0)
}
