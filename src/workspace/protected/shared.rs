//! One check for parallel commands. With a check each, an entry that one command made under a protected name while
//! another began would be in the other's snapshot, which would put it back after the first check had moved it away. So
//! overlapping commands count as one turn: the first takes the snapshot, and the last ends it.
//!
//! The last walk is kept between commands: if no folder has changed since, the next snapshot uses it.
//!
//! A finding is reported with the command that ends first; which command caused it is unknown. Changes that a person
//! makes while commands run are attributed to the commands.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Protection, Quarantine, Snapshot};
use crate::error::Result;
use crate::workspace::Workspace;
use crate::workspace::walk::Walk;

/// The most files of a walk that is kept between commands, to limit memory.
const KEPT_FILES: usize = 200_000;

/// The check for all commands that run at the same time.
#[derive(Debug, Default)]
pub struct SharedProtection(Arc<Mutex<Protection>>);

/// The share of one operation, or of one turn's operations.
#[derive(Debug)]
pub struct ProtectionHandle {
    shared: Arc<Mutex<Protection>>,
    /// The quarantine that is used if this operation begins first; None once it has begun.
    quarantine: Option<Quarantine>,
}

impl SharedProtection {
    /// A share for one operation. Entries are moved to the quarantine of the operation that began first.
    pub fn handle(&self, quarantine: Quarantine) -> ProtectionHandle {
        ProtectionHandle { shared: Arc::clone(&self.0), quarantine: Some(quarantine) }
    }

    /// Keeps the walk after a command for the snapshot before the next one. If no folder has changed by then, the
    /// snapshot needs no new walk.
    pub fn keep(&self, walk: Walk) {
        lock(&self.0).last_walk = Some(walk).filter(|walk| walk.files().len() <= KEPT_FILES);
    }

    /// Calls a function while no command runs or begins; None if one runs.
    pub fn while_idle<R>(&self, function: impl FnOnce() -> R) -> Option<R> {
        let protection = lock(&self.0);
        (protection.members == 0).then(function)
    }
}

impl ProtectionHandle {
    /// As [`Protection::begin`]. `store` stores the snapshot before the command begins. An operation that joins others
    /// stores it, too, since after a stop each is recovered separately.
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

    /// As [`Protection::has_begun`], but for this operation's own commands.
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
