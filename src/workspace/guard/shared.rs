//! One guard for commands that run side by side. Had each a guard of its own, what one command made
//! under a protected name while another began would belong to the other's snapshot, and be put back
//! for it when the first one's guard had moved it away. So all that overlap are one turn: the first
//! takes the snapshot, the last ends it.
//!
//! What is found is told with the command that ended first after it; whose doing it was cannot be
//! known. What a person changes while commands run counts as theirs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Guard, Quarantine, Snapshot};
use crate::error::Result;
use crate::protocol::Warning;
use crate::workspace::Workspace;
use crate::workspace::walk::Walk;

/// The guard of all commands that run at a time.
#[derive(Debug, Default)]
pub struct Shared(Arc<Mutex<Turn>>);

#[derive(Debug, Default)]
struct Turn {
    guard: Guard,
    /// How many operations began a command and are not at their end.
    members: usize,
}

/// The guard of one operation, or of one turn's operations.
#[derive(Debug)]
pub enum Keeper {
    /// Its own.
    Own(Box<Guard>),
    /// Shared with those that are carried out at the same time.
    Shared(Member),
}

/// One of those that share a guard.
#[derive(Debug)]
pub struct Member {
    shared: Arc<Mutex<Turn>>,
    /// Where things go, should it be the first; None once it has begun.
    quarantine: Option<Quarantine>,
}

impl Shared {
    /// A part in the guard, for one operation. What is found goes to the place of the one that began
    /// first.
    pub fn member(&self, quarantine: Quarantine) -> Keeper {
        Keeper::Shared(Member { shared: Arc::clone(&self.0), quarantine: Some(quarantine) })
    }

    /// Does something while no command runs, and none begins meanwhile; None where one runs.
    pub fn alone<R>(&self, what: impl FnOnce() -> R) -> Option<R> {
        let turn = lock(&self.0);
        (turn.members == 0).then(what)
    }
}

impl Keeper {
    /// As [`Guard::begin`]; `keep` is given what is to be kept before the command begins. Who joins
    /// others is given it too: should all be stopped, each is looked after by itself.
    pub fn begin(
        &mut self,
        workspace: &Workspace,
        walk: Option<&Walk>,
        keep: &mut dyn FnMut(&Snapshot) -> Result<()>,
    ) -> Result<()> {
        let mut joins = false;
        if let Self::Shared(member) = self
            && let Some(quarantine) = member.quarantine.take()
        {
            let mut turn = lock(&member.shared);
            if turn.members == 0 {
                turn.guard = Guard::new(quarantine);
            }
            turn.members += 1;
            joins = true;
        }
        self.with(|guard| {
            let is_ahead = guard.begin(workspace, walk)?.is_some();
            let known = guard.known.as_ref().filter(|_| is_ahead || joins);
            known.map_or(Ok(()), keep)
        })
    }

    /// Does something with the guard; others wait.
    pub fn with<R>(&mut self, what: impl FnOnce(&mut Guard) -> R) -> R {
        match self {
            Self::Own(guard) => what(guard),
            Self::Shared(member) => what(&mut lock(&member.shared).guard),
        }
    }

    /// As [`Guard::has_begun`], of this operation's own commands.
    pub fn has_begun(&self) -> bool {
        match self {
            Self::Own(guard) => guard.has_begun(),
            Self::Shared(member) => member.quarantine.is_none(),
        }
    }

    /// As [`Guard::finish`].
    pub fn finish(&mut self, workspace: &Workspace, walk: &Walk) -> Vec<Warning> {
        self.with(|guard| guard.finish(workspace, walk))
    }
}

impl Default for Keeper {
    fn default() -> Self {
        Guard::default().into()
    }
}

impl From<Guard> for Keeper {
    fn from(guard: Guard) -> Self {
        Self::Own(Box::new(guard))
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if self.quarantine.is_some() {
            return;
        }
        let mut turn = lock(&self.shared);
        turn.members -= 1;
        if turn.members == 0 {
            turn.guard = Guard::default();
        }
    }
}

fn lock(turn: &Mutex<Turn>) -> MutexGuard<'_, Turn> {
    turn.lock().unwrap_or_else(PoisonError::into_inner)
}
