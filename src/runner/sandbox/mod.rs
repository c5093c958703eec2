//! The helper between deaddrop and a command: this same program, started anew for each command and
//! dispatched before anything else in `main`. It is small and single-threaded, so it may enter
//! namespaces, and it stays to end what the command leaves behind.
//!
//! Started as `deaddrop __command <pid of deaddrop> <command> <path to hide>…`. Its standard input
//! is the write end of a pipe for its [`Report`].

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "other.rs"]
mod system;

use std::ffi::OsString;
use std::fmt;
use std::io::Read;
use std::path::PathBuf;

use crate::protocol::Ending;
pub(super) use system::ask_to_end;

/// The first argument of a helper; no subcommand is named so.
const MARK: &str = "__command";

/// How a command and what it starts are held together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Containment {
    /// In a pid namespace: when the shell ends, the kernel ends all the others.
    PidNamespace,
    /// The helper adopts what loses its parent and ends it.
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
            Self::Subreaper => "whatever a command starts ends with it (subreaper)",
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
        let hidden: Vec<OsString> = arguments.collect();
        system::helper(parent.unwrap_or_default(), &command, &hidden);
    }
}

/// The arguments that make this program a helper for `command`, which is not to see `hidden`.
pub(super) fn arguments(command: &str, hidden: &[PathBuf]) -> impl Iterator<Item = OsString> {
    [MARK.into(), std::process::id().to_string().into(), command.into()]
        .into_iter()
        .chain(hidden.iter().map(|path| path.clone().into_os_string()))
}

/// What a helper says when it ends: `hidden=yes`, `contained=pidns` and `exit=0`, `signal=9` or
/// `error=…`, a line each.
pub(super) struct Report {
    pub(super) containment: Containment,
    /// Whether deaddrop's own files were out of the command's sight.
    pub(super) hidden: bool,
    pub(super) ending: Option<Ending>,
}

impl Report {
    pub(super) fn read(mut pipe: impl Read) -> Self {
        let mut text = Vec::new();
        // What cannot be read was not said.
        let _ = pipe.read_to_end(&mut text);
        let mut report = Self { containment: Containment::Unknown, hidden: false, ending: None };
        for line in String::from_utf8_lossy(&text).lines() {
            match line.split_once('=') {
                Some(("hidden", "yes")) => report.hidden = true,
                Some(("contained", how)) => {
                    report.containment = match how {
                        "pidns" => Containment::PidNamespace,
                        "subreaper" => Containment::Subreaper,
                        _ => Containment::ProcessTree,
                    }
                }
                // The shell could not be started: how its process ended then says nothing.
                _ if matches!(report.ending, Some(Ending::NotStarted(_))) => {}
                // The last word counts: the helper's own, when the command is at its end.
                Some(("exit", code)) => report.ending = code.parse().ok().map(Ending::Exited),
                Some(("signal", n)) => report.ending = n.parse().ok().map(Ending::Signalled),
                Some(("error", why)) => report.ending = Some(Ending::NotStarted(why.to_owned())),
                _ => {}
            }
        }
        report
    }
}
