//! The helper process. It isolates itself, then acts according to its verb:
//!
//! ```text
//! hold   copies its standard input to the clipboard, reports, and stays until another program copies
//! read   reports what is on the clipboard
//! watch  reports each reply that appears on the clipboard, until its standard input is closed
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
use super::report::{self, HelperError};
use crate::protocol::ParsedReply;

/// The first argument of a helper. No command has this name.
pub(super) const MARK: &str = "__clipboard";

/// How often a watching helper reads the clipboard. A person takes longer to switch windows.
const INTERVAL: Duration = Duration::from_millis(400);
/// The most memory of a helper, in bytes. The length of a clipboard text is unknown before it is read.
#[cfg(target_os = "linux")]
const MEMORY: u64 = 1 << 30;

/// If this process was started as a helper, acts as one and never returns. Call it in `main` before any thread exists.
pub fn dispatch() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_none_or(|first| first != MARK) {
        return;
    }
    let verb = arguments.next().unwrap_or_default();
    let done = isolate().map_err(HelperError::from).and_then(|()| match verb.to_str() {
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

/// Closes the parent's other descriptors, and leaves its terminal and working directory. The data that this process
/// reads stays private: other processes of the user cannot inspect it, and no core dump is written.
fn isolate() -> io::Result<()> {
    close_descriptors();
    crate::runner::sandbox::close_to_commands();
    let limit = |most| Rlimit { current: Some(most), maximum: Some(most) };
    setrlimit(Resource::Core, limit(0))?;
    #[cfg(target_os = "linux")]
    setrlimit(Resource::As, limit(MEMORY))?;
    // This fails if the process already leads a session.
    let _ = setsid();
    Ok(chdir("/")?)
}

/// Closes all descriptors except the three standard ones.
fn close_descriptors() {
    // SAFETY: system calls on integers. This process has not opened any descriptor yet.
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

/// Makes the system kill this process when its parent ends.
fn end_with_parent() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    Ok(())
}

fn hold() -> Result<(), HelperError> {
    let text = io::read_to_string(io::stdin().take(LIMIT as u64))?;
    // If the report fails, the parent counts the text as not copied.
    Display::open()?.hold(&text, || {
        report::send(&Ok(None))?;
        let null = File::options().read(true).write(true).open("/dev/null")?;
        rustix::stdio::dup2_stdin(&null)?;
        Ok(rustix::stdio::dup2_stdout(&null)?)
    })
}

fn read() -> Result<(), HelperError> {
    end_with_parent()?;
    Ok(report::send(&Display::open()?.read())?)
}

/// Reports after each reading. The report contains the text if it is new and names the outbox that it answers. Other
/// texts are discarded.
fn watch() -> Result<(), HelperError> {
    end_with_parent()?;
    let mut display = Display::open()?;
    let mut last = None;
    loop {
        let text = match display.read() {
            // Such a text cannot be a reply.
            Err(HelperError::TooLong | HelperError::NotUtf8) => None,
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

/// Waits until there is input or the other end is closed. Returns false after `wait`.
fn is_readable(input: impl AsFd, wait: Duration) -> bool {
    let wait = Timespec::try_from(wait).ok();
    let mut polled = [PollFd::new(&input, PollFlags::IN)];
    rustix::io::retry_on_intr(|| poll(&mut polled, wait.as_ref())) != Ok(0)
}
