//! One check for parallel commands. If each had its own check, an entry that one command made under a protected name
//! could be in the snapshot of a command that began later, and that command's check would restore the entry after it
//! was moved away. So overlapping commands count as one turn: the first takes the snapshot, the last ends it.
//!
//! The last walk is kept between commands. If no folder has changed since, the next snapshot uses that walk.
//!
//! A finding is reported with the command that ends first, because it is unknown which command caused it. Changes that
//! a person makes while commands run are attributed to the commands.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Protection, Quarantine, Snapshot};
use crate::error::Result;
use crate::workspace::Workspace;
use crate::workspace::walk::Walk;

/// The most files of a walk that is kept between commands. This limits memory use.
const KEPT_FILES: usize = 200_000;

/// The check that all commands running at the same time share.
#[derive(Debug, Default)]
pub struct SharedProtection(Arc<Mutex<Protection>>);

/// The share that one operation, or all operations of one turn, have in the check.
#[derive(Debug)]
pub struct ProtectionHandle {
    shared: Arc<Mutex<Protection>>,
    /// The quarantine for the check if this operation begins first. None once the operation has begun.
    quarantine: Option<Quarantine>,
}

impl SharedProtection {
    /// Creates the share of one operation. Entries are moved to the quarantine of the operation that began first.
    pub fn handle(&self, quarantine: Quarantine) -> ProtectionHandle {
        ProtectionHandle { shared: Arc::clone(&self.0), quarantine: Some(quarantine) }
    }

    /// Keeps the walk after a command for the snapshot before the next command. If no folder has changed by then, that
    /// snapshot needs no new walk.
    pub fn keep(&self, walk: Walk) {
        lock(&self.0).last_walk = Some(walk).filter(|walk| walk.files().len() <= KEPT_FILES);
    }

    /// Calls a function while no command runs, and prevents commands from beginning. None if a command runs.
    pub fn while_idle<R>(&self, function: impl FnOnce() -> R) -> Option<R> {
        let protection = lock(&self.0);
        (protection.members == 0).then(function)
    }
}

impl ProtectionHandle {
    /// Like [`Protection::begin`]. `store` stores the snapshot before the command begins. An operation that joins
    /// others also stores the snapshot, because after a stop each operation is recovered separately.
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
        let is_new = protection.begin(workspace, walk)?.is_some();
        let known = protection.known.as_ref().filter(|_| is_new || joins);
        known.map_or(Ok(()), store)
    }

    /// Locks the shared check.
    pub fn lock(&self) -> MutexGuard<'_, Protection> {
        lock(&self.shared)
    }

    /// Like [`Protection::has_begun`], but only for this operation's own commands.
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
