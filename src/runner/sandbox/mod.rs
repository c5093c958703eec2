//! Confines commands. A helper starts each command. The helper is this same program, dispatched before anything else in
//! `main`: small and single-threaded, so that it can enter namespaces. It stays to end what the command leaves behind.
//!
//! ```text
//! request           the request for a helper     view     what a command sees of this machine
//! identified_path   what is shown, by identity   report   the final report of a helper
//! tier              the sandbox tiers            other    the helper on other systems
//! linux             the helper on Linux
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

/// How long a helper may take to receive its request.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);

/// The first argument that makes this program a helper. No subcommand has this name.
pub(super) const MARK: &str = "__command";

/// If this process was started as a helper, acts as one and never returns. Must be called first in `main`, before any
/// thread starts. A program that uses this library to run commands must call it too, and set its own path as
/// [`super::Runner::helper`].
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

/// Protects the environment, memory and open files of this process from the commands that it runs. Must be called once
/// in a process that runs commands. Has no effect for root, or on systems other than Linux.
pub fn close_to_commands() {
    system::close_to_others();
}

/// Sends a request. Reading from the returned channel never blocks.
pub(super) fn send(request: &SandboxRequest, channel: UnixStream) -> io::Result<impl Read> {
    // The program may not be a helper. In that case it never reads.
    channel.set_write_timeout(Some(PATIENCE))?;
    request.send(&channel)?;
    // The report is read after the helper has ended.
    channel.set_nonblocking(true)?;
    Ok(channel)
}

/// Explains that a command is too long for the shell, and what to do instead.
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
