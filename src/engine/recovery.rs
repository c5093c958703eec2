//! Recovery, when a project is opened: finishes an interrupted turn, and restores what a power loss may have destroyed.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use super::transaction::StoppedTurn;
use super::{Engine, remote};
use crate::admission;
use crate::atomic;
use crate::error::{Error, Result};
use crate::event::{Event, Observer};
use crate::executor::{LocalExecutor, OpaquePreview};
use crate::protocol::{Detail, Digest, Effect, Outcome, RelPath};
use crate::session::Session;
use crate::session::log::{self, LogEntry};
use crate::session::record::{History, JournalRecord, UnfinishedTurn};
use crate::text::count;
use crate::turn::known_outcomes;
use crate::workspace::protected::{Protection, Snapshot};

/// How long to wait for the command of a killed deaddrop to die.
const PATIENCE: Duration = Duration::from_secs(10);

impl Engine {
    /// Reads the journal and does what remains to be done.
    pub(super) fn recover(
        &mut self,
        payloads: &[String],
        observer: &mut dyn Observer,
    ) -> Result<()> {
        let history = History::read(payloads)
            .map_err(|n| Error::unknown_record(&self.config.sessions.join("journal"), n))?;

        // The journal is at least as new as the session files.
        self.unflushed = history.states;
        self.unflushed.retain(|_, session| !session.is_past());
        for session in self.unflushed.values() {
            self.store.save_soon(session)?;
        }
        self.restore_logs(history.logged, observer)?;
        if let Some(turn) = history.unfinished {
            self.finish(turn, observer).map_err(Error::within_turn)?;
        }
        self.inbox.sweep()?;
        self.approvals.sweep()?;
        self.put_claims_back()?;
        for file in &history.files {
            self.approvals.archive_again(*file)?;
        }
        for file in history.files {
            if let Some(name) = self.inbox.archive_again(file)? {
                let name = name.to_string_lossy();
                self.report(format!("{name} was carried out before, and is archived"), observer);
            }
        }
        let has_outbox = |session: &&Session| {
            !session.is_complete && session.run.is_none() && self.check_workspace(session).is_ok()
        };
        let open: Vec<Session> = self.unflushed.values().filter(has_outbox).cloned().collect();
        for session in open {
            if self.restore_outbox(&session)? {
                let name = session.outbox_name();
                self.report(format!("the outbox {name} was missing, and is restored"), observer);
            }
        }
        self.flush()
    }

    fn finish(&mut self, mut turn: UnfinishedTurn, observer: &mut dyn Observer) -> Result<()> {
        self.wait_for_command()?;
        let name = turn.begin.reply().to_owned();
        // Reported before it is done: if deaddrop is stopped again, nothing reports it later.
        if let Some(mut commit) = turn.commit.take() {
            commit.recovered = true;
            let (extent, outcomes) = match &commit.session.pending {
                Some(pending) => (" up to your decision", &pending.outcomes),
                None => ("", &commit.session.last_results),
            };
            let lost = outcomes.iter().filter(|outcome| outcome.is_lost()).count();
            let message = format!(
                "{name} had been carried out{extent} when deaddrop was stopped{}; the rest of the turn is completed now",
                describe_lost(lost)
            );
            self.report(message, observer);
            self.recovered_turn = Some(self.conclude(&turn.begin, commit, None)?);
            return Ok(());
        }
        let mut progress = self.progress(&turn.begin);
        progress.stopped = Some(StoppedTurn::default());
        if turn.begin.is_decision_alone() {
            let message = format!("the decision about {} is kept", turn.begin.session.stem());
            self.report(message, observer);
            return self.resume(&turn.begin, progress, observer).map(drop);
        }
        // A turn that began in another workspace waits until that workspace is set again.
        admission::check_workspace(&turn.begin.session, self.workspace_name().as_deref(), false)?;
        if turn.begin.undoing.is_some() {
            let message = "deaddrop was stopped while it put files back; the rest is put back now";
            self.report(message.to_owned(), observer);
            self.recovered_turn = Some(self.resume(&turn.begin, progress, observer)?);
            return Ok(());
        }
        self.set_guest_patience(&turn.begin)?;
        let changed_since = self.changed_since_stop(&turn);
        let interrupted = || self.stop.is_asked();
        let mut known = match &self.guest {
            Some(guest) if turn.begin.guest == self.guest_label() => {
                let terms = remote::terms_to_ask(&turn.begin, &self.config);
                known_outcomes(&turn, &mut *guest.executor(terms)?)?
            }
            // The settings name that guest no longer, so nothing here can examine its effects.
            _ if turn.begin.guest.is_some() => known_outcomes(&turn, &mut OpaquePreview::new(&[]))?,
            _ => {
                let scratch = self.scratch_dir(&turn.begin.session);
                let (workspace, runner) = (&self.workspace, &self.runner);
                let mut here = LocalExecutor::new(workspace, runner, &scratch, false, &interrupted);
                known_outcomes(&turn, &mut here)?
            }
        };
        let has_begun_command = turn.intents.values().any(|effect| *effect == Effect::Command);
        let snapshot = turn.guard.take().filter(|_| has_begun_command);
        let done = known.values().filter(|outcome| !outcome.is_lost()).count();
        let lost = known.len() - done;
        let left = turn.begin.steps().len() - known.len();
        let message = format!(
            "deaddrop was stopped while it carried out {name}: {} done before{}; {left} left to do now",
            count(done, "command"),
            describe_lost(lost)
        );
        self.report(message, observer);
        if let Some(snapshot) = snapshot
            && turn.begin.guest.is_none()
            && self.is_guarded_here(&turn.begin.session)
        {
            progress.protection = self.check_protected(&turn, snapshot, &mut known, observer)?;
        }
        progress.outcomes = known;
        progress.stopped =
            Some(StoppedTurn { noted: std::mem::take(&mut turn.noted), changed_since });
        let after = self.resume(&turn.begin, progress, observer)?;
        if after.session.is_complete {
            self.report(format!("session {} is complete", after.session.id), observer);
        }
        self.recovered_turn = Some(after);
        Ok(())
    }

    /// The paths whose contents differ from those before and after the turn's operations. Somebody has changed them since,
    /// so an undo does not overwrite them without `--force`.
    fn changed_since_stop(&self, turn: &UnfinishedTurn) -> Vec<RelPath> {
        let mut expected: BTreeMap<&RelPath, Vec<Option<&Digest>>> = BTreeMap::new();
        for effect in turn.intents.values() {
            let ends = match effect {
                Effect::File(effect) => vec![(&effect.path, [&effect.before, &effect.after])],
                Effect::Move(effect) => {
                    let ends = [&effect.from, &effect.to].into_iter();
                    ends.map(|end| (end, [&effect.digest, &None])).collect()
                }
                Effect::Command | Effect::Guest { .. } => continue,
            };
            for (path, digests) in ends {
                expected.entry(path).or_default().extend(digests.map(Option::as_ref));
            }
        }
        let differs = |(path, digests): &(&RelPath, Vec<Option<&Digest>>)| {
            let now = self.workspace.digest(path);
            !now.is_ok_and(|now| digests.contains(&now.as_ref()))
        };
        expected.into_iter().filter(differs).map(|(path, _)| path.clone()).collect()
    }

    /// Finds what the turn's commands did to protected names, and adds the warnings to the outcome of the interrupted
    /// command, or of the last one.
    fn check_protected(
        &mut self,
        turn: &UnfinishedTurn,
        snapshot: Snapshot,
        known: &mut BTreeMap<usize, Outcome>,
        observer: &mut dyn Observer,
    ) -> Result<Protection> {
        let mut protection = Protection::resumed(self.quarantine(&turn.begin.session), snapshot);
        let warnings = known.values().flat_map(|outcome| &outcome.warnings);
        let mut noticed = protection.unreported(warnings);
        noticed.extend(protection.check(&self.workspace));
        if self.guest.is_some() {
            // The rest of the turn is not carried out here, so this is its last check.
            noticed.extend(protection.finish(&self.workspace, &self.workspace.walk()?));
        }
        let ran = |outcome: &&Outcome| matches!(outcome.detail, Detail::Ran(_));
        let step = known.iter().rfind(|(_, outcome)| outcome.is_lost());
        let step = step.or_else(|| known.iter().rfind(|(_, outcome)| ran(outcome)));
        if let Some(step) = step.map(|(step, _)| *step).filter(|_| !noticed.is_empty())
            && let Some(outcome) = known.get_mut(&step)
        {
            noticed.iter().for_each(|warning| observer.event(Event::Warning(&warning.text)));
            outcome.warnings.append(&mut noticed);
            self.append_durably(&JournalRecord::Result {
                step,
                outcome: Box::new(outcome.clone()),
            })?;
        }
        Ok(protection)
    }

    fn report(&mut self, message: String, observer: &mut dyn Observer) {
        observer.event(Event::Warning(&message));
        self.recovery_messages.push(message);
    }

    /// Adds the lines that a power loss may have destroyed to the logs, which are synced only when the journal is emptied.
    /// Each line that can be missing is of a turn that is still in the journal.
    fn restore_logs(
        &mut self,
        logged: BTreeMap<String, Vec<LogEntry>>,
        observer: &mut dyn Observer,
    ) -> Result<()> {
        for (id, entries) in logged {
            let missing = log::restore(&self.config.sessions, &id, entries)?;
            if missing > 0 {
                let message = format!(
                    "the log of session {id} lacked {}, restored from the journal",
                    count(missing, "turn")
                );
                self.report(message, observer);
            }
        }
        Ok(())
    }

    /// Waits for the command of a killed deaddrop, which dies with it, but not at the same moment.
    fn wait_for_command(&self) -> Result<()> {
        let path = &self.runner.lock;
        let fail = |e| Error::io("lock", path, e);
        let mut options = File::options();
        options.write(true).create(true).truncate(false);
        let file = atomic::open_own(&mut options, path).map_err(fail)?;
        let begun = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(()),
                Err(TryLockError::WouldBlock) if begun.elapsed() < PATIENCE => {
                    thread::sleep(Duration::from_millis(5));
                }
                Err(TryLockError::WouldBlock) => return Err(Error::command_runs(path)),
                Err(TryLockError::Error(e)) => return Err(fail(e)),
            }
        }
    }

    /// Returns replies that were claimed but not begun to their folders; they count as new.
    fn put_claims_back(&mut self) -> Result<()> {
        for folder in [&self.inbox, &self.approvals] {
            for path in folder.leftover_claims()? {
                folder.put_back(&path)?;
            }
        }
        Ok(())
    }
}

fn describe_lost(lost: usize) -> String {
    match lost {
        0 => String::new(),
        n => format!(", {n} interrupted (it may have run in part, and is not run again)"),
    }
}
