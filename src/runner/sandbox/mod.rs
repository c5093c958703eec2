//! What confines commands. A command is started by a helper: this same program, started anew for
//! each command and dispatched before anything else in `main`. It is small and single-threaded, so
//! it may enter namespaces, and it stays to end what the command leaves behind.
//!
//! ```text
//! order    what a helper is told          view     what a command sees of this machine
//! held     what is shown, by identity     report   what a helper says at its end
//! tier     which walls this machine has   other    the helper elsewhere
//! linux    the helper on Linux
//! ```

#[cfg(target_os = "linux")]
mod identified_path;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;
mod report;
mod request;
mod tier;
#[cfg(target_os = "linux")]
mod view;

use std::io::{self, Read};
use std::os::unix::net::UnixStream;

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(not(target_os = "linux"))]
use other as system;
#[cfg(not(target_os = "linux"))]
use other::view;

pub(super) use report::HelperReport;
pub use report::{Mechanism, MechanismSet};
pub(super) use request::{Backend, CommandLimits, Mount, MountKind, SandboxRequest, Variable};
pub(crate) use system::HelperGuard;
pub use system::adopt_orphans;
pub(super) use system::{Orphans, ask_to_end};
pub use tier::{Confinement, Tier};
pub(super) use view::{View, make_own};

/// How long a helper may take to take its request.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);

/// The first argument of a helper; no subcommand is named so.
pub(super) const MARK: &str = "__command";

/// If this process was started as a helper, be one and never return. Call it first in `main`,
/// before any thread is made. A program that uses this library and wants to run commands calls it
/// too, and gives its own path as [`super::Runner::helper`].
pub fn dispatch() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_none_or(|first| first != MARK) {
        return;
    }
    match arguments.next().map(|channel| channel.to_str()?.parse().ok()) {
        None => system::helper(),
        Some(Some(channel)) => system::inside(channel),
        Some(None) => std::process::exit(2),
    }
}

/// Closes this process to the commands that it runs: its environment, memory and open files. Call it
/// once where commands are run. Does nothing on systems other than Linux, and does not bind root.
pub fn close_to_commands() {
    system::close_to_others();
}

/// Sends a request; what is read afterwards never waits for anyone.
pub(super) fn send(request: &SandboxRequest, channel: UnixStream) -> io::Result<impl Read> {
    // A helper that does not read is no helper.
    channel.set_write_timeout(Some(PATIENCE))?;
    request.send(&channel)?;
    // The report is read when the helper has ended.
    channel.set_nonblocking(true)?;
    Ok(channel)
}

/// Why a command cannot be given to a shell, with what can be done instead.
pub(super) fn too_long(request: &SandboxRequest) -> String {
    let length = |variable: &Variable| variable.name.len() + variable.value.len();
    let longest = request.environment.iter().max_by_key(|variable| length(variable));
    match longest.filter(|variable| length(variable) > request.command.len()) {
        Some(variable) => format!(
            "the variable {} of its environment is {} bytes long, more than this system takes; put it into a file and have the command read that",
            crate::text::named(&variable.name.to_string_lossy()),
            length(variable)
        ),
        None => format!(
            "the command is {} bytes long, more than this system takes; put it into a file and run that",
            request.command.len()
        ),
    }
}
