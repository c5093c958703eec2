//! A turn as one transaction, in the order that makes it safe to be stopped anywhere (⟂: on disk before going on):
//!
//! 1. *begin*: Begin ⟂ records the session, the steps, and the file that they came in.
//! 2. *execute*: of each step the Intent ⟂, the effect, and the Result; before the first command Guard.
//! 3. *commit*: the outbox under a temporary name ⟂, then Commit ⟂.
//! 4. *conclude*: what can be repeated. The outbox gets its name, the session its file, the reply its place in the
//!    archive; then End.
//!
//! Replies, messages, decisions, undos and redos are such turns. After a hard stop, `recovery` enters where the turn
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
use crate::session::record::{Begin, Commit, Origin, PreparedOutbox, Record};
use crate::session::{ApprovalDecision, Session, log};
use crate::workspace::checkpoint::CheckpointNote;
use crate::workspace::protected::{Protection, Quarantine};
use crate::workspace::walk::Walk;

/// From this length on, in bytes, the journal is emptied between turns.
const JOURNAL_LIMIT: u64 = 1 << 20;

/// What is known of a turn before its steps are executed.
pub(super) struct Progress {
    /// The outcomes of steps that need not, or must not, be executed again, by step.
    pub(super) outcomes: BTreeMap<usize, Outcome>,
    /// What commands of the turn may have done to protected names.
    pub(super) protection: Protection,
    /// Present if the turn was stopped hard.
    pub(super) stopped: Option<Stopped>,
}

/// What is known of a turn that was stopped hard.
#[derive(Default)]
pub(super) struct Stopped {
    /// What is stored of what it was about to change.
    pub(super) noted: Vec<CheckpointNote>,
    /// The paths that differ from what its operations found or left there.
    pub(super) changed_since: Vec<RelPath>,
}

impl Begin {
    /// The beginning of a turn of `session`, with the file that it begins with, if there is one. Its policy is not
    /// known yet.
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
    /// Carries out a reply for `session`, except the steps that the person left out (see [`super::Selection`]).
    pub fn carry_out(
        &mut self,
        mut session: Session,
        mut claimed: Claimed,
        left_out: &BTreeMap<usize, String>,
        observer: &mut dyn Observer,
    ) -> Result<Turn> {
        session.keep_unread_words(claimed.reply.answers());
        let mut steps = self.steps_of(&mut claimed.reply, &session);
        // It was checked (see [`Self::check_selection`]).
        leave_out(&mut steps, left_out).map_err(|refusal| Error::failed(refusal.why))?;
        self.carry_out_steps(
            Begin::of(session, steps, None, Some((Origin::Inbox, claimed))),
            observer,
        )
    }

    /// Carries out the steps of a turn, or those that are left after a decision.
    pub(super) fn carry_out_steps(
        &mut self,
        mut begin: Begin,
        observer: &mut dyn Observer,
    ) -> Result<Turn> {
        self.ensure_folders()?;
        self.check_workspace(&begin.session)?;
        // Recorded, since the settings may be others after a stop.
        begin.policy = Some(self.policy_of(&begin.session)?);
        begin.guest = match &begin.session.pending {
            // It goes on where it was begun, or not at all.
            Some(pending) => pending.guest.clone(),
            None => self.guest_label(),
        };
        self.record_secrets(&mut begin)?;
        self.transact(&begin, observer)
    }

    /// Carries out a turn from its beginning to its end.
    pub(super) fn transact(&mut self, begin: &Begin, observer: &mut dyn Observer) -> Result<Turn> {
        self.within_turn = true;
        self.note(&Record::Begin(Box::new(begin.clone())))?;
        let progress = self.progress(begin);
        self.resume(begin, progress, observer)
    }

    /// What is known of a turn that begins.
    pub(super) fn progress(&self, begin: &Begin) -> Progress {
        let protection = Protection::new(self.quarantine(&begin.session));
        Progress { outcomes: begin.known(), protection, stopped: None }
    }

    /// Carries out what is left of a turn that has begun.
    pub(super) fn resume(
        &mut self,
        begin: &Begin,
        progress: Progress,
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

    /// Decides the turn: from here on it counts, whatever happens.
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
            // Before it is decided, while a guest can be asked.
            (None, Some(self.events_of(&session, walk)?))
        } else {
            (None, None)
        };
        let commit = Commit { session, outbox, recovered };
        self.note(&Record::Commit(Box::new(commit.clone())))?;
        self.conclude(begin, commit, events)
    }

    /// Does what follows from a turn that is decided. All of it can be repeated. `events` are those of the next outbox,
    /// if they are known.
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
            // It has a file only if it had to wait.
            let _ = self.store.remove(&session.stem());
            self.changed.remove(&session.id);
        } else {
            self.store.save_soon(&session)?;
            self.changed.insert(session.id.clone(), session.clone());
        }
        if let Some(entry) = log::LogEntry::of(begin, &session, recovered) {
            log::add(&self.config.sessions, &session.id, entry)?;
        }
        self.archive(begin)?;
        if session.is_complete {
            self.discard_scratch(&session);
        }
        self.journal.append(&Record::End.to_line())?;
        self.within_turn = false;
        if self.journal.size() > JOURNAL_LIMIT {
            self.empty_journal()?;
        }
        self.prune_if_needed();
        Ok(Turn { session, outbox: path })
    }

    /// Puts away the file that began a turn.
    fn archive(&self, begin: &Begin) -> Result<()> {
        let folder = match begin.folder {
            Origin::Inbox => &self.inbox,
            Origin::Approvals => &self.approvals,
            Origin::Nowhere => return Ok(()),
        };
        folder.archive(OsStr::new(&begin.claim), OsStr::new(&begin.name), begin.file, &begin.text)
    }

    /// Gives the outbox of a decided turn its name. One that can be seen may have been pasted, so it is never replaced.
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

    /// Moves a file aside that has the name of the next outbox. It is not ours, since the turn is not decided, and it
    /// may be the only copy of something.
    fn move_outbox_aside(&self, session: &Session, observer: &mut dyn Observer) -> Result<()> {
        let path = self.outbox_path(session);
        if fs::symlink_metadata(&path).is_ok() {
            let aside =
                atomic::move_into(&path, &self.config.outbox, session.outbox_name().as_ref())?;
            observer.event(Event::Warning(&format!(
                "there was an outbox {} already, of another session perhaps; it is {} now",
                path.display(),
                aside.display()
            )));
        }
        Ok(())
    }

    /// The place for what commands make under protected names in the turn that begins from here.
    pub(super) fn quarantine(&self, session: &Session) -> Quarantine {
        let sessions = &self.config.sessions;
        let shown = sessions.strip_prefix(&self.config.project).unwrap_or(sessions);
        let turn = format!("{}_seq{:04}", session.stem(), session.sequence);
        Quarantine::new(sessions.clone(), &shown.to_string_lossy(), &turn)
    }

    /// Saves a session that the person began or changed.
    pub fn save(&mut self, session: &Session) -> Result<()> {
        self.note(&Record::State(Box::new(session.clone())))?;
        self.changed.insert(session.id.clone(), session.clone());
        self.store.save_soon(session)
    }

    /// Adds a record to the journal, durably.
    pub(super) fn note(&mut self, record: &Record) -> Result<()> {
        self.journal.append(&record.to_line())?;
        self.journal.sync()
    }

    /// Makes durable what the journal stands for, if it stands for anything.
    pub(super) fn flush(&mut self) -> Result<()> {
        if self.changed.is_empty() || self.within_turn { Ok(()) } else { self.empty_journal() }
    }

    fn empty_journal(&mut self) -> Result<()> {
        // Where one of them fails, all are still to be done before the journal may go.
        for session in self.changed.values() {
            self.store.save(session)?;
            log::sync(&self.config.sessions, &session.id)?;
        }
        self.inbox.sync()?;
        self.approvals.sync()?;
        atomic::sync_folder(&self.config.outbox)?;
        self.journal.clear()?;
        self.changed.clear();
        Ok(())
    }
}

/// Whether a session is complete and has events, with no outbox beside them.
fn ends_with_events(session: &Session) -> bool {
    session.is_complete && session.run.is_none() && session.dialect == Dialect::Operations
}
