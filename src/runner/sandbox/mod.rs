//! The helper between deaddrop and a command: this same program, started anew for each command and
//! dispatched before anything else in `main`. It is small and single-threaded, so it may enter
//! namespaces, and it stays to end what the command leaves behind.
//!
//! Started as `deaddrop __command <pid of deaddrop> <command> <lock> <path to hide>…`. Its standard input
//! is where its [`Report`] goes.

#[cfg(target_os = "linux")]
mod children;
#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "other.rs"]
mod system;

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::protocol::Ending;
pub(super) use system::{Orphans, ask_to_end};

/// The first argument of a helper; no subcommand is named so.
const MARK: &str = "__command";

/// More than a helper ever says; what a command with root's rights might send is not read on and on.
const REPORT_LIMIT: u64 = 1 << 20;

/// How a command and what it starts are held together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Containment {
    /// In a pid namespace: when the shell ends, the kernel ends all the others.
    PidNamespace,
    /// The helper adopts what loses its parent and ends it; a command can kill the helper.
    Subreaper,
    /// By parentage alone.
    ProcessTree,
    /// No command could be started to find out.
    Unknown,
}

impl fmt::Display for Containment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PidNamespace => "whatever a command starts ends with it (pid namespace)",
            Self::Subreaper => {
                "what a command starts ends with it, unless it kills deaddrop's own processes (subreaper)"
            },
            Self::ProcessTree => "what a command starts is ended with it as far as it can be found",
            Self::Unknown => "commands cannot be started",
        })
    }
}

/// If this process was started as a helper, be one and never return. Call it first in `main`,
/// before any thread is made. A program that uses this library and wants to run commands calls it
/// too, and gives its own path as [`super::Runner::helper`].
pub fn dispatch() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == MARK) {
        let parent = arguments.next().and_then(|pid| pid.to_str()?.parse().ok());
        let command = arguments.next().unwrap_or_default();
        let lock = arguments.next().unwrap_or_default();
        let hidden: Vec<OsString> = arguments.collect();
        system::helper(parent.unwrap_or_default(), &command, &lock, &hidden);
    }
}

/// Closes this process to the commands that it runs: its environment, memory and open files. Call it
/// once where commands are run. Does nothing on systems other than Linux, and does not bind root.
pub fn close_to_commands() {
    system::close_to_others();
}

/// The arguments that make this program a helper for `command`, which holds `lock` while it runs
/// (empty: none) and is not to see `hidden`.
pub(super) fn arguments(
    command: &str,
    lock: &Path,
    hidden: &[PathBuf],
) -> impl Iterator<Item = OsString> {
    [MARK.into(), std::process::id().to_string().into(), command.into(), lock.into()]
        .into_iter()
        .chain(hidden.iter().map(|path| path.clone().into_os_string()))
}

/// Where a helper's report is read, and what becomes its standard input.
#[cfg(unix)]
pub(super) fn report_channel() -> io::Result<(impl Read, Stdio)> {
    // Unlike a pipe, nobody can open a socket through `/proc/<pid>/fd`.
    let (reader, writer) = std::os::unix::net::UnixStream::pair()?;
    // It is read when the helper has ended, and then no one is waited for.
    reader.set_nonblocking(true)?;
    Ok((reader, std::os::fd::OwnedFd::from(writer).into()))
}

/// Where a helper's report is read, and what becomes its standard input.
#[cfg(not(unix))]
pub(super) fn report_channel() -> io::Result<(impl Read, Stdio)> {
    let (reader, writer) = io::pipe()?;
    Ok((reader, writer.into()))
}

/// What a helper says as its last word, in one line: `contained=pidns;hidden=yes;exit=0`, or
/// `signal=9`, `error=…` or `lost` in the place of `exit=0`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) containment: Containment,
    /// Whether deaddrop's own files were out of the command's sight.
    pub(super) hidden: bool,
    pub(super) ending: Ending,
}

impl Report {
    /// None where the helper ended without a word.
    pub(super) fn read(from: impl Read) -> Option<Self> {
        let mut text = Vec::new();
        // What cannot be read was not said.
        let _ = from.take(REPORT_LIMIT).read_to_end(&mut text);
        let text = String::from_utf8_lossy(&text);
        let (whole, _) = text.rsplit_once('\n')?;
        Self::parse(whole.lines().next_back()?)
    }

    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.splitn(3, ';');
        let containment = match fields.next()?.strip_prefix("contained=")? {
            "pidns" => Containment::PidNamespace,
            "subreaper" => Containment::Subreaper,
            "tree" => Containment::ProcessTree,
            _ => Containment::Unknown,
        };
        let hidden = fields.next()? == "hidden=yes";
        let ending = match fields.next()?.split_once('=') {
            Some(("exit", code)) => Ending::Exited(code.parse().ok()?),
            Some(("signal", n)) => Ending::Signalled(n.parse().ok()?),
            Some(("error", why)) => Ending::NotStarted(why.to_owned()),
            _ => Ending::Lost,
        };
        Some(Self { containment, hidden, ending })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Report> {
        Report::read(text.as_bytes())
    }

    #[test]
    fn the_last_whole_line_is_the_report() {
        let report = Report {
            containment: Containment::PidNamespace,
            hidden: true,
            ending: Ending::Exited(5),
        };
        let said = "contained=pidns;hidden=yes;exit=5\n";
        assert_eq!(read(said).as_ref(), Some(&report));
        let forged = "error=forged\ncontained=tree;hidden=no;error=forged\n";
        assert_eq!(read(&format!("{forged}{said}contained=tree;hid")), Some(report));
        assert_eq!(read(&format!("{said}y\n")), None);
        assert_eq!(read("contained=pidns;hidden=yes;exit=5"), None);
        assert_eq!(read(""), None);
    }
}
