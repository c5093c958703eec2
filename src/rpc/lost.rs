//! What became of steps that were begun and that nobody carries out any more: the process that did has
//! died. Of a file the disk tells; a command is lost, and what it did to protected names is put right.
//!
//! That is done before anything else is served, so that no command takes it for what was there before.
//! Where the lost command still runs by then, it is done when the step is asked for, and at a time when
//! no command runs here, whose check would put it back.

use std::thread;
use std::time::{Duration, Instant};

use super::Served;
use super::guest::{name_of, unknown};
use super::record::{Begun, Held};
use super::served::unseen;
use super::steps::SLICE;
use crate::error::Result;
use crate::executor::{Left, left_on_disk, lost_command};
use crate::protocol::jsonrpc::{Done, RpcError, State};
use crate::protocol::{Effect, Warning};
use crate::workspace::protected::{Protection, Snapshot};

/// How long the commands of a process that was killed may take to die, before others are served.
const PATIENCE: Duration = Duration::from_secs(10);

impl Served {
    /// What is known of a step whose file is held here, and which is not being carried out. It runs where only
    /// whoever ran it has died, or where others do, beside which it cannot be looked after.
    ///
    /// # Errors
    /// That cannot be said.
    pub(super) fn found(&self, key: &str, held: &mut Held) -> Result<State, RpcError> {
        let Some(begun) = &held.begun else { return Ok(State::Unknown) };
        if let Some(done) = &held.done {
            return Ok(State::Done(done.clone()));
        }
        let done = match &begun.effect {
            Some(effect @ (Effect::File(_) | Effect::Move(_))) => {
                match left_on_disk(effect, &self.serving.workspace) {
                    Left::Done(done) => *done,
                    Left::Undone | Left::Lost => return Ok(State::Unknown),
                }
            }
            Some(Effect::Command) => match self.lost(key, begun).map_err(|e| unknown(&e))? {
                Some(done) => done,
                None => return Ok(State::Running),
            },
            Some(Effect::Guest { .. }) | None => return Ok(State::Unknown),
        };
        self.conclude(key, held, &done);
        Ok(State::Done(done))
    }

    /// What there is to tell of a command that was begun by a process that died; None where that
    /// cannot be looked after now.
    fn lost(&self, key: &str, begun: &Begun) -> Result<Option<Done>> {
        if !self.steps.has_ended(key)? {
            return Ok(None);
        }
        let kept = if self.guarded { self.steps.kept_guard(key)? } else { None };
        let snapshot = kept.or_else(|| begun.guard.clone()).filter(|_| self.guarded);
        let put_right = |snapshot| self.protection.alone(|| self.put_right(key, snapshot));
        let Some(warnings) = snapshot.map_or(Some(Vec::new()), put_right) else { return Ok(None) };
        let command = begun.command.as_deref().unwrap_or_default();
        Ok(Some(Done { detail: lost_command(command), warnings }))
    }

    /// Puts right what a lost command did to what stood under protected names.
    fn put_right(&self, key: &str, snapshot: Snapshot) -> Vec<Warning> {
        let workspace = &self.serving.workspace;
        let mut protection = Protection::resumed(self.quarantine(&name_of(key)), snapshot);
        let mut warnings = protection.unreported(std::iter::empty());
        warnings.extend(protection.check(workspace));
        match workspace.walk() {
            Ok(walk) => warnings.extend(protection.finish(workspace, &walk)),
            Err(e) => warnings.push(unseen(&e)),
        }
        warnings
    }

    /// Looks after the commands of processes that died.
    pub(super) fn find_lost(&self) {
        let begun = Instant::now();
        self.steps.each(&mut |key, held| {
            let is_command = |begun: &Begun| matches!(begun.effect, Some(Effect::Command));
            if held.done.is_some() || !held.begun.as_ref().is_some_and(is_command) {
                return;
            }
            // What fails here is told to whoever asks for the step.
            while let Ok(State::Running) = self.found(key, held)
                && begun.elapsed() < PATIENCE
                && !self.serving.stop.is_asked()
            {
                thread::sleep(SLICE);
            }
        });
    }
}
