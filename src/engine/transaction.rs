//! A turn as one transaction, in the order that makes it safe to be stopped anywhere (⟂: on disk before going on):
//!
//! 1. *begin*: Begin ⟂ records the session, the steps, and the file that contained them.
//! 2. *execute*: for each step the Intent ⟂, the effect, and the Result; before the first command Guard.
//! 3. *commit*: the outbox under a temporary name ⟂, then Commit ⟂.
//! 4. *conclude*: what can be repeated safely. Renames the outbox, saves the session, archives the reply; then End.
//!
//! Replies, messages, decisions, undos and redos are such turns. After a hard stop, `recovery` continues where the turn
//! was stopped. A session that the person begins or changes between turns is one record, State ⟂.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;

use super::{Engine, Turn, leave_out};
use crate::atomic;
use crate::error::{Error, Result};
use crate::event::{Event, Observer};
use crate::inbox::Claimed;
use crate::protocol::operations::EventsMessage;
use crate::protocol::{Dialect, Digest, Outcome, RelPath, Step};
use crate::session::record::{Begin, Commit, JournalRecord, Origin, PreparedOutbox};
use crate::session::{ApprovalDecision, Session, log};
use crate::workspace::checkpoint::CheckpointNote;
use crate::workspace::protected::{Protection, Quarantine};
use crate::workspace::walk::Walk;

/// The journal is emptied between turns when it is longer than this, in bytes.
const JOURNAL_LIMIT: u64 = 1 << 20;

/// What is known about a turn before its remaining steps are executed.
pub(super) struct TurnProgress {
    /// The outcomes of steps that need not, or must not, be executed again, by step.
    pub(super) outcomes: BTreeMap<usize, Outcome>,
    /// Checks what the turn's commands do to protected names.
    pub(super) protection: Protection,
    /// Present if the turn was stopped hard.
    pub(super) stopped: Option<StoppedTurn>,
}

/// What is known about a turn that was stopped hard.
#[derive(Default)]
pub(super) struct StoppedTurn {
    /// The stored contents of what it was about to change.
    pub(super) noted: Vec<CheckpointNote>,
    /// The paths whose contents differ from those before and after the turn's operations.
    pub(super) changed_since: Vec<RelPath>,
}

impl Begin {
    /// The Begin record of a turn of `session`, with the claimed file if there is one. The policy is set later.
    pub(super) fn of(
        session: Session,
        steps: Vec<Step>,
        decision: Option<ApprovalDecision>,
        claimed: Option<(Origin, Claimed)>,
    ) -> Self {
        let mut begin = Self { name: session.stem(), session, steps, decision, ..Self::default() };
        match claimed {
            Some((folder, claimed)) => {
                begin.folder = folder;
                begin.name = claimed.name.to_string_lossy().into_owned();
                begin.claim = claimed.claim().to_string_lossy().into_owned();
                begin.file = claimed.file;
                begin.text = claimed.reply.into_text();
            }
            None => begin.folder = Origin::Nowhere,
        }
        begin
    }
}

impl Engine {
    /// Carries out a reply to `session`, except the steps that the person left out (see [`super::Selection`]).
    pub fn carry_out(
        &mut self,
        mut session: Session,
        mut claimed: Claimed,
        left_out: &BTreeMap<usize, String>,
        observer: &mut dyn Observer,
    ) -> Result<Turn> {
        session.keep_unread_words(claimed.reply.answers());
        let mut steps = self.steps_of(&mut claimed.reply, &session);
        // `check_selection` has checked it.
        leave_out(&mut steps, left_out).map_err(|refusal| Error::failed(refusal.why))?;
        self.carry_out_steps(
            Begin::of(session, steps, None, Some((Origin::Inbox, claimed))),
            observer,
        )
    }

    /// Carries out the steps of a turn, or the remaining ones after a decision.
    pub(super) fn carry_out_steps(
        &mut self,
        mut begin: Begin,
        observer: &mut dyn Observer,
    ) -> Result<Turn> {
        self.ensure_folders()?;
        self.check_workspace(&begin.session)?;
        // Recorded, since the settings may have changed after a stop.
        begin.policy = Some(self.policy_of(&begin.session)?);
        begin.guest = match &begin.session.pending {
            // It continues on the machine where it began, or not at all.
            Some(pending) => pending.guest.clone(),
            None => self.guest_label(),
        };
        self.record_secrets(&mut begin)?;
        self.transact(&begin, observer)
    }

    /// Carries out a turn from its beginning to its end.
    pub(super) fn transact(&mut self, begin: &Begin, observer: &mut dyn Observer) -> Result<Turn> {
        self.within_turn = true;
        self.append_durably(&JournalRecord::Begin(Box::new(begin.clone())))?;
        let progress = self.progress(begin);
        self.resume(begin, progress, observer)
    }

    /// What is known about a turn that begins.
    pub(super) fn progress(&self, begin: &Begin) -> TurnProgress {
        let protection = Protection::new(self.quarantine(&begin.session));
        TurnProgress { outcomes: begin.known(), protection, stopped: None }
    }

    /// Carries out the rest of a turn that has begun.
    pub(super) fn resume(
        &mut self,
        begin: &Begin,
        progress: TurnProgress,
        observer: &mut dyn Observer,
    ) -> Result<Turn> {
        let recovered = progress.stopped.is_some();
        let executed = if begin.is_decision_alone() {
            Ok((self.with_decision(begin), None))
        } else if let Some(undoing) = &begin.undoing {
            self.restore(begin, undoing, recovered, observer).map(|session| (session, None))
        } else {
            self.execute(begin, progress, observer)
        };
        executed
            .and_then(|(session, walk)| self.commit(begin, session, walk, recovered, observer))
            .map_err(|error| self.with_room_hint(error, &begin.session).within_turn())
    }

    /// Commits the turn: from here on it counts, whatever happens.
    fn commit(
        &mut self,
        begin: &Begin,
        mut session: Session,
        walk: Option<Walk>,
        recovered: bool,
        observer: &mut dyn Observer,
    ) -> Result<Turn> {
        let (outbox, events) = if session.awaits_reply() {
            self.move_outbox_aside(&session, observer)?;
            let (outbox, events) = self.prepare_outbox(&mut session, walk)?;
            (Some(outbox), events)
        } else if ends_with_events(&session) {
            // Before the commit, since afterwards the guest may be unreachable.
            (None, Some(self.events_of(&session, walk)?))
        } else {
            (None, None)
        };
        let commit = Commit { session, outbox, recovered };
        self.append_durably(&JournalRecord::Commit(Box::new(commit.clone())))?;
        self.conclude(begin, commit, events)
    }

    /// Completes a committed turn. Each action can be repeated safely. `events` are those of the next outbox, if they are
    /// known.
    pub(super) fn conclude(
        &mut self,
        begin: &Begin,
        commit: Commit,
        events: Option<EventsMessage>,
    ) -> Result<Turn> {
        let Commit { session, outbox, recovered } = commit;
        let path = outbox.is_some().then(|| self.outbox_path(&session));
        match outbox {
            Some(prepared) => self.publish_outbox(&session, &prepared, events)?,
            None if ends_with_events(&session) => self.write_events(&session, events)?,
            None => {}
        }
        if session.is_past() {
            // A run has a file only if it had to wait.
            let _ = self.store.remove(&session.stem());
            self.unflushed.remove(&session.id);
        } else {
            self.store.save_soon(&session)?;
            self.unflushed.insert(session.id.clone(), session.clone());
        }
        if let Some(entry) = log::LogEntry::of(begin, &session, recovered) {
            log::add(&self.config.sessions, &session.id, entry)?;
        }
        self.archive(begin)?;
        if session.is_complete {
            self.discard_scratch(&session);
        }
        self.journal.append(&JournalRecord::End.to_line())?;
        self.within_turn = false;
        if self.journal.size() > JOURNAL_LIMIT {
            self.empty_journal()?;
        }
        self.prune_if_needed();
        Ok(Turn { session, outbox: path })
    }

    /// Archives the file that began a turn.
    fn archive(&self, begin: &Begin) -> Result<()> {
        let folder = match begin.folder {
            Origin::Inbox => &self.inbox,
            Origin::Approvals => &self.approvals,
            Origin::Nowhere => return Ok(()),
        };
        folder.archive(OsStr::new(&begin.claim), OsStr::new(&begin.name), begin.file, &begin.text)
    }

    /// Renames the outbox of a committed turn into place. A visible one may have been pasted, so it is never replaced.
    fn publish_outbox(
        &self,
        session: &Session,
        prepared: &PreparedOutbox,
        events: Option<EventsMessage>,
    ) -> Result<()> {
        let path = self.outbox_path(session);
        let temporary = self.config.outbox.join(&prepared.temporary);
        let is_it = |bytes: Vec<u8>| Digest::of(&bytes) == prepared.digest;
        if path.exists() {
            let _ = fs::remove_file(&temporary);
        } else if atomic::read_own(&temporary).is_ok_and(is_it) {
            self.write_events(session, events)?;
            fs::rename(&temporary, &path).map_err(|e| Error::io("write", &path, e))?;
        } else {
            self.write_outbox(session)?;
        }
        atomic::sync_folder(&self.config.outbox)
    }

    /// Moves a file that has the name of the next outbox aside. It is not this turn's, since the turn is not committed, and
    /// may be the only copy of something.
    fn move_outbox_aside(&self, session: &Session, observer: &mut dyn Observer) -> Result<()> {
        let path = self.outbox_path(session);
        if fs::symlink_metadata(&path).is_ok() {
            let aside =
                atomic::move_into(&path, &self.config.outbox, session.outbox_name().as_ref())?;
            observer.event(Event::Warning(&format!(
                "an outbox {} existed already, perhaps of another session; it was moved to {}",
                path.display(),
                aside.display()
            )));
        }
        Ok(())
    }

    /// The quarantine for what commands create under protected names in the next turn of `session`.
    pub(super) fn quarantine(&self, session: &Session) -> Quarantine {
        let sessions = &self.config.sessions;
        let shown = sessions.strip_prefix(&self.config.project).unwrap_or(sessions);
        let turn = format!("{}_seq{:04}", session.stem(), session.sequence);
        Quarantine::new(sessions.clone(), &shown.to_string_lossy(), &turn)
    }

    /// Saves a session that the person began or changed.
    pub fn save(&mut self, session: &Session) -> Result<()> {
        self.append_durably(&JournalRecord::State(Box::new(session.clone())))?;
        self.unflushed.insert(session.id.clone(), session.clone());
        self.store.save_soon(session)
    }

    /// Adds a record to the journal, durably.
    pub(super) fn append_durably(&mut self, record: &JournalRecord) -> Result<()> {
        self.journal.append(&record.to_line())?;
        self.journal.sync()
    }

    /// Makes all state durable outside the journal, then empties the journal, if it contains anything.
    pub(super) fn flush(&mut self) -> Result<()> {
        if self.unflushed.is_empty() || self.within_turn { Ok(()) } else { self.empty_journal() }
    }

    fn empty_journal(&mut self) -> Result<()> {
        // If one of them fails, the journal is kept, and all are done again before it is emptied.
        for session in self.unflushed.values() {
            self.store.save(session)?;
            log::sync(&self.config.sessions, &session.id)?;
        }
        self.inbox.sync()?;
        self.approvals.sync()?;
        atomic::sync_folder(&self.config.outbox)?;
        self.journal.clear()?;
        self.unflushed.clear();
        Ok(())
    }
}

/// Whether a session is complete and has events, without an outbox beside them.
fn ends_with_events(session: &Session) -> bool {
    session.is_complete && session.run.is_none() && session.dialect == Dialect::Operations
}
