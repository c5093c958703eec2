//! The helper on systems other than Linux, which have no sandbox. It starts the shell, waits and reports. Processes
//! that the command leaves behind are found through their parents (see `tree`), but a process can escape from that.
#![allow(
    clippy::unused_self,
    clippy::unnecessary_wraps,
    reason = "it has the same interface as on Linux"
)]

use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio, exit};

use super::report::{HelperReport, MechanismSet};
use super::request::{Backend, SandboxRequest};

const SHELL: &str = "/bin/sh";

/// Carries out the request that comes through standard input, and reports the result.
pub(super) fn helper() -> ! {
    let channel = io::stdin().as_fd().try_clone_to_owned();
    let Ok(mut channel) = channel.map(UnixStream::from) else { exit(1) };
    let Some(request) = SandboxRequest::receive(&channel) else { exit(2) };
    let ending = if request.backend != Backend::Open {
        "error=deaddrop has no sandbox for this system".to_owned()
    } else if request.probe {
        "exit=0".to_owned()
    } else {
        let mut shell = Command::new(SHELL);
        shell.arg("-c").arg(&request.command).stdin(Stdio::null()).env_clear();
        shell.envs(request.environment.iter().map(|variable| (&variable.name, &variable.value)));
        match shell.current_dir(&request.folder).status() {
            Ok(status) => match status.code() {
                Some(code) => format!("exit={code}"),
                None => format!("signal={}", status.signal().unwrap_or_default()),
            },
            Err(e) if e.kind() == ErrorKind::ArgumentListTooLong => {
                format!("error={}", super::too_long(&request))
            }
            Err(e) => format!("error={SHELL}: {e}"),
        }
    };
    let _ = writeln!(channel, "{}", HelperReport::line(MechanismSet::default(), &ending));
    drop(OwnedFd::from(channel));
    super::super::tree::end_descendants(std::process::id());
    exit(0)
}

/// There is no inner helper on these systems.
pub(super) fn inside(_channel: i32) -> ! {
    exit(2)
}

pub(in crate::runner) fn ask_to_end(_helper: u32) {}

pub(in crate::runner) fn close_to_others() {}

/// Represents a helper that was started.
pub(crate) struct HelperGuard;

impl HelperGuard {
    pub(crate) fn start(start: impl FnOnce() -> io::Result<Child>) -> io::Result<(Child, Self)> {
        Ok((start()?, Self))
    }
}

/// Does nothing: orphans are not adopted on these systems.
pub fn adopt_orphans() {}

/// Contains nothing: orphans are not adopted on these systems.
pub(in crate::runner) struct Orphans;

impl Orphans {
    pub(in crate::runner) fn expect() -> Self {
        Self
    }

    pub(in crate::runner) fn end(&self) {}
}

/// What commands see: everything that their user sees. There is no view to confine them.
pub(super) mod view {
    use std::io;
    use std::path::{Path, PathBuf};

    use super::super::request::{Backend, Mount};
    use crate::runner::{CommandSpec, Runner};

    #[derive(Debug, Clone)]
    pub(in crate::runner) struct View {
        pub(in crate::runner) home: PathBuf,
        pub(in crate::runner) user: Option<(u32, u32)>,
    }

    impl View {
        pub(in crate::runner) fn of(_: &Runner) -> Result<Self, String> {
            Err("deaddrop has no sandbox for this system".to_owned())
        }

        pub(in crate::runner) fn shows(&self, _: &Path) -> bool {
            true
        }

        pub(in crate::runner) fn mounts(&self, _: &CommandSpec, _: bool) -> io::Result<Vec<Mount>> {
            Ok(Vec::new())
        }

        pub(in crate::runner) fn refused(&self) -> Option<&str> {
            None
        }

        pub(in crate::runner) fn variables(
            &self,
            _: Backend,
        ) -> impl Iterator<Item = (&'static str, &Path)> {
            std::iter::empty()
        }

        pub(in crate::runner) fn obstacle(&self, _: Backend) -> Option<String> {
            None
        }
    }

    pub(in crate::runner) fn make_own(_: &Path, _: Option<(u32, u32)>) -> io::Result<()> {
        Ok(())
    }
}
