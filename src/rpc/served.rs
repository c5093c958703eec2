//! What is served: a root folder, the commands that run in it, and whether a policy rules them.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::{Given, Service};
use crate::config::Policy;
use crate::error::Result;
use crate::place::Here;
use crate::protocol::rpc::{Fault, Method, Pong};
use crate::runner::Runner;
use crate::watch::Stop;
use crate::workspace::Workspace;
use crate::workspace::guard::{Guard, Quarantine};

/// What is to be served, and how.
pub struct Serving {
    /// The files.
    pub workspace: Workspace,
    /// The commands. It holds no lock: there are many at once.
    pub runner: Runner,
    /// How long a command may take that `exec` or `exec_code` asks for.
    pub timeout: Duration,
    /// What rules operations, if anything does.
    pub policy: Option<Policy>,
    /// The folder that commands have for themselves. Its parent must be there.
    pub own: PathBuf,
    /// deaddrop's own folder for this root, which is there: what steps came to, and what is put away
    /// of protected names.
    pub state: PathBuf,
    /// Says when to stop.
    pub stop: Stop,
}

/// A folder that is served.
pub struct Served {
    serving: Serving,
    /// Whether commands are kept from protected names: not where they have all the user's rights.
    guarded: bool,
    /// How many operations were carried out, for the names of what is put away.
    count: AtomicU64,
}

impl Served {
    /// Finds out what confines commands, and is ready for requests.
    pub fn new(serving: Serving) -> Result<Self> {
        let tier = serving.runner.confinement(&serving.own).tier;
        // Where none is to be had, commands are refused; so nothing gets around the names.
        let guarded = tier != crate::runner::sandbox::Tier::Off;
        Ok(Self { serving, guarded, count: AtomicU64::new(0) })
    }

    /// The place where one operation is carried out; it gets a guard of its own, since many are
    /// carried out at once.
    fn place<'a>(&'a self, interrupted: &'a dyn Fn() -> bool) -> Here<'a> {
        let Serving { workspace, runner, own, state, .. } = &self.serving;
        let n = self.count.fetch_add(1, Ordering::Relaxed);
        let name = format!("rpc_{}_{n:04}", std::process::id());
        let quarantine = Quarantine::new(state.clone(), &state.to_string_lossy(), &name);
        let here = Here::new(workspace, runner, own, false, interrupted);
        here.guarded(self.guarded, Guard::new(quarantine))
    }
}

impl Service for Served {
    fn call(&self, method: Method) -> Result<Given, Fault> {
        match method {
            Method::Ping => Ok(Given::Pong(Pong { pong: true })),
            _ => Err(Fault::internal("not built")),
        }
    }

    fn interrupt(&self, _: &str) {}
}
