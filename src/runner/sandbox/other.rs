//! The helper on systems other than Linux, which have no sandbox here: it starts the shell, waits
//! and reports. What the command leaves behind is ended by parentage (see `tree`), which a process
//! can escape.
#![allow(
    clippy::unused_self,
    clippy::unnecessary_wraps,
    reason = "it has the shape of what there is on Linux"
)]

use std::io::{ErrorKind, Write};
use std::process::{Command, Stdio};

use super::order::{Means, Order};
use super::report::{Facts, Report};

/// The shell's arguments before the command.
const SHELL: [&str; 2] = if cfg!(windows) { ["cmd.exe", "/c"] } else { ["/bin/sh", "-c"] };

/// Carries out the order that comes through standard input, and reports.
pub(super) fn helper() -> ! {
    let mut channel = channel();
    let Some(order) = Order::receive(&mut channel) else { std::process::exit(2) };
    let ending = if order.means != Means::Open {
        "error=deaddrop has no sandbox for this system".to_owned()
    } else if order.probe {
        "exit=0".to_owned()
    } else {
        let mut shell = Command::new(SHELL[0]);
        shell.arg(SHELL[1]).arg(&order.command).stdin(Stdio::null()).env_clear();
        shell.envs(order.environment.iter().map(|(key, value)| (key, value)));
        match shell.current_dir(&order.folder).status() {
            Ok(status) => {
                status.code().map_or_else(|| signal(status), |code| format!("exit={code}"))
            }
            Err(e) if e.kind() == ErrorKind::ArgumentListTooLong => {
                format!("error={}", super::too_long(&order))
            }
            Err(e) => format!("error={}: {e}", SHELL[0]),
        }
    };
    let _ = writeln!(channel, "{}", Report::line(Facts::default(), &ending));
    drop(channel);
    super::super::tree::end_descendants(std::process::id());
    std::process::exit(0)
}

/// Nothing is started inside of anything.
pub(super) fn inside(_channel: i32) -> ! {
    std::process::exit(2)
}

/// The channel's end, which came as standard input.
#[cfg(unix)]
fn channel() -> std::fs::File {
    use std::os::fd::AsFd;
    std::io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .map(std::fs::File::from)
        .ok()
        .unwrap_or_else(|| std::process::exit(1))
}

#[cfg(windows)]
fn channel() -> std::fs::File {
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

/// A helper that was started.
pub(crate) struct Started;

impl Started {
    pub(crate) fn by(
        start: impl FnOnce() -> std::io::Result<std::process::Child>,
    ) -> std::io::Result<(std::process::Child, Self)> {
        Ok((start()?, Self))
    }
}

/// Nothing is adopted here.
pub(in crate::runner) struct Orphans;

impl Orphans {
    pub(in crate::runner) fn expect() -> Self {
        Self
    }

    pub(in crate::runner) fn end(&self) {}
}

/// What commands see: all that their user does.
pub(super) mod view {
    use std::path::{Path, PathBuf};

    use super::super::Wanted;
    use super::super::order::{Means, Mount};
    use crate::runner::Errand;

    #[derive(Debug, Clone)]
    pub(in crate::runner) struct View {
        pub(in crate::runner) home: PathBuf,
        pub(in crate::runner) user: Option<(u32, u32)>,
    }

    impl View {
        pub(in crate::runner) fn of(_: &Wanted) -> Result<Self, String> {
            Err("deaddrop has no sandbox for this system".to_owned())
        }

        pub(in crate::runner) fn shows(&self, _path: &Path) -> bool {
            true
        }

        pub(in crate::runner) fn mounts(
            &self,
            _: &Errand,
            _network: bool,
        ) -> std::io::Result<Vec<Mount>> {
            Ok(Vec::new())
        }

        pub(in crate::runner) fn refused(&self) -> Option<&str> {
            None
        }

        pub(in crate::runner) fn variables(
            &self,
            _means: Means,
        ) -> impl Iterator<Item = (&'static str, &Path)> {
            std::iter::empty()
        }

        /// There is no view to confine with.
        pub(in crate::runner) fn obstacle(&self, _means: Means) -> Option<String> {
            None
        }
    }

    pub(in crate::runner) fn make_own(_: &Path, _: Option<(u32, u32)>) -> std::io::Result<()> {
        Ok(())
    }
}
