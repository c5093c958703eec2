//! One check for commands that run side by side. If each had its own, what one command made under a protected name
//! while another began would be in the other's snapshot, and be put back for it after the first one's check had moved
//! it away. So all that overlap are one turn: the first takes the snapshot, the last ends it.
//!
//! Between commands the last walk is kept: where no folder has changed since, the next snapshot is taken by it.
//!
//! What is found is reported with the command that ends first after it; whose doing it was cannot be known. What a
//! person changes while commands run counts as theirs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Protection, Quarantine, Snapshot};
use crate::error::Result;
use crate::workspace::Workspace;
use crate::workspace::walk::Walk;

/// No walk of more files is kept between commands, for the memory that it takes.
const KEPT_FILES: usize = 200_000;

/// The check of all commands that run at a time.
#[derive(Debug, Default)]
pub struct SharedProtection(Arc<Mutex<Protection>>);

/// The share of one operation, or of one turn's operations.
#[derive(Debug)]
pub struct ProtectionHandle {
    shared: Arc<Mutex<Protection>>,
    /// Where things are moved if this is the first to begin; None once it has begun.
    quarantine: Option<Quarantine>,
}

impl SharedProtection {
    /// A share for one operation. What is found moves to the quarantine of the one that began first.
    pub fn handle(&self, quarantine: Quarantine) -> ProtectionHandle {
        ProtectionHandle { shared: Arc::clone(&self.0), quarantine: Some(quarantine) }
    }

    /// Keeps the walk after a command for the snapshot before the next one. That is taken anew all the same: where no
    /// folder has changed meanwhile, the walk alone is spared.
    pub fn keep(&self, walk: Walk) {
        lock(&self.0).last_walk = Some(walk).filter(|walk| walk.files().len() <= KEPT_FILES);
    }

    /// Does something while no command runs, and none begins meanwhile; None where one runs.
    pub fn alone<R>(&self, what: impl FnOnce() -> R) -> Option<R> {
        let protection = lock(&self.0);
        (protection.members == 0).then(what)
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
        let mut protection = lock(&self.shared);
        let joins = self.quarantine.is_some();
        if let Some(quarantine) = self.quarantine.take() {
            if protection.members == 0 {
                let last_walk = protection.last_walk.take();
                *protection = Protection { last_walk, ..Protection::new(quarantine) };
            }
            protection.members += 1;
        }
        let is_ahead = protection.begin(workspace, walk)?.is_some();
        let known = protection.known.as_ref().filter(|_| is_ahead || joins);
        known.map_or(Ok(()), store)
    }

    /// What all share; others wait until it is released.
    pub fn lock(&self) -> MutexGuard<'_, Protection> {
        lock(&self.shared)
    }

    /// As [`Protection::has_begun`], of this operation's own commands.
    pub fn has_begun(&self) -> bool {
        self.quarantine.is_none() && self.lock().has_begun()
    }
}

impl Default for ProtectionHandle {
    fn default() -> Self {
        Protection::default().into()
    }
}

impl From<Protection> for ProtectionHandle {
    fn from(protection: Protection) -> Self {
        let shared = Arc::new(Mutex::new(Protection { members: 1, ..protection }));
        Self { shared, quarantine: None }
    }
}

impl Drop for ProtectionHandle {
    fn drop(&mut self) {
        if self.quarantine.is_some() {
            return;
        }
        let mut protection = self.lock();
        protection.members -= 1;
        if protection.members == 0 {
            *protection = Protection::default();
        }
    }
}

fn lock(protection: &Mutex<Protection>) -> MutexGuard<'_, Protection> {
    protection.lock().unwrap_or_else(PoisonError::into_inner)
}
