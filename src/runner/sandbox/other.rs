//! The helper on systems other than Linux: it starts the shell, waits and reports. What the command
//! leaves behind is ended by parentage (see `tree`), which a process can escape.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::process::{Command, Stdio};

/// The shell's arguments before the command.
const SHELL: [&str; 2] = if cfg!(windows) { ["cmd.exe", "/c"] } else { ["/bin/sh", "-c"] };

pub(super) fn helper(_parent: u32, command: &OsStr, _lock: &OsStr, _hidden: &[OsString]) -> ! {
    let mut report = report();
    let mut shell = Command::new(SHELL[0]);
    shell.arg(SHELL[1]).arg(command).stdin(Stdio::null());
    let ending = match shell.status() {
        Ok(status) => status.code().map_or_else(|| signal(status), |code| format!("exit={code}")),
        Err(e) => format!("error={}: {e}", SHELL[0]),
    };
    let _ = write!(report, "contained=tree;hidden=no;{ending}\n");
    drop(report);
    super::super::tree::end_descendants(std::process::id());
    std::process::exit(0)
}

/// The report's end, which came as standard input.
#[cfg(unix)]
fn report() -> impl Write {
    use std::os::fd::AsFd;
    std::io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .map(std::fs::File::from)
        .ok()
        .unwrap_or_else(|| std::process::exit(1))
}

#[cfg(windows)]
fn report() -> impl Write {
    use std::os::windows::io::AsHandle;
    std::io::stdin()
        .as_handle()
        .try_clone_to_owned()
        .map(std::fs::File::from)
        .ok()
        .unwrap_or_else(|| std::process::exit(1))
}

#[cfg(unix)]
fn signal(status: std::process::ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    format!("signal={}", status.signal().unwrap_or_default())
}

#[cfg(windows)]
fn signal(_: std::process::ExitStatus) -> String {
    "exit=1".to_owned()
}

pub(in crate::runner) fn ask_to_end(_helper: u32) {}

pub(in crate::runner) fn close_to_others() {}

/// Nothing is adopted here.
pub(in crate::runner) struct Orphans;

impl Orphans {
    pub(in crate::runner) fn expect() -> Self {
        Self
    }

    pub(in crate::runner) fn end(&self) {}
}
