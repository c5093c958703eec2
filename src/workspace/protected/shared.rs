//! One check for commands that run side by side. If each had its own, what one command made under a protected name
//! while another began would be in the other's snapshot, and be put back for it after the first one's check had moved
//! it away. So all that overlap are one turn: the first takes the snapshot, the last ends it.
//!
//! What is found is reported with the command that ends first after it; whose doing it was cannot be known. What a
//! person changes while commands run counts as theirs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Protection, Quarantine, Snapshot};
use crate::error::Result;
use crate::workspace::Workspace;
use crate::workspace::walk::Walk;

/// The check of all commands that run at a time.
#[derive(Debug, Default)]
pub struct SharedProtection(Arc<Mutex<Turn>>);

#[derive(Debug, Default)]
struct Turn {
    protection: Protection,
    /// How many operations have begun a command and are not at their end.
    members: usize,
}

/// The share of one operation, or of one turn's operations.
#[derive(Debug)]
pub struct ProtectionHandle {
    turn: Arc<Mutex<Turn>>,
    /// Where things are moved if this is the first to begin; None once it has begun.
    quarantine: Option<Quarantine>,
}

impl SharedProtection {
    /// A share for one operation. What is found moves to the quarantine of the one that began first.
    pub fn handle(&self, quarantine: Quarantine) -> ProtectionHandle {
        ProtectionHandle { turn: Arc::clone(&self.0), quarantine: Some(quarantine) }
    }

    /// Does something while no command runs, and none begins meanwhile; None where one runs.
    pub fn alone<R>(&self, what: impl FnOnce() -> R) -> Option<R> {
        let turn = lock(&self.0);
        (turn.members == 0).then(what)
    }
}

impl ProtectionHandle {
    /// As [`Protection::begin`]; `store` is given what has to be stored before the command begins. One that joins
    /// others is given it, too: if all are stopped, each is looked after by itself.
    pub fn begin(
        &mut self,
        workspace: &Workspace,
        walk: Option<&Walk>,
        store: &mut dyn FnMut(&Snapshot) -> Result<()>,
    ) -> Result<()> {
        let mut turn = lock(&self.turn);
        let joins = self.quarantine.is_some();
        if let Some(quarantine) = self.quarantine.take() {
            if turn.members == 0 {
                turn.protection = Protection::new(quarantine);
            }
            turn.members += 1;
        }
        let is_ahead = turn.protection.begin(workspace, walk)?.is_some();
        let known = turn.protection.known.as_ref().filter(|_| is_ahead || joins);
        known.map_or(Ok(()), store)
    }

    /// Does something with what all share; others wait.
    pub fn with<R>(&mut self, what: impl FnOnce(&mut Protection) -> R) -> R {
        what(&mut lock(&self.turn).protection)
    }

    /// As [`Protection::has_begun`], of this operation's own commands.
    pub fn has_begun(&self) -> bool {
        self.quarantine.is_none() && lock(&self.turn).protection.has_begun()
    }
}

impl Default for ProtectionHandle {
    fn default() -> Self {
        Protection::default().into()
    }
}

impl From<Protection> for ProtectionHandle {
    fn from(protection: Protection) -> Self {
        let turn = Arc::new(Mutex::new(Turn { protection, members: 1 }));
        Self { turn, quarantine: None }
    }
}

impl Drop for ProtectionHandle {
    fn drop(&mut self) {
        if self.quarantine.is_some() {
            return;
        }
        let mut turn = lock(&self.turn);
        turn.members -= 1;
        if turn.members == 0 {
            turn.protection = Protection::default();
        }
    }
}

fn lock(turn: &Mutex<Turn>) -> MutexGuard<'_, Turn> {
    turn.lock().unwrap_or_else(PoisonError::into_inner)
}
