//! One turn through the journal, in the order that makes it safe to be stopped anywhere:
//!
//! Begin ⟂, then for each step (before the first command: Guard and) Intent ⟂, its effect and Result, then the outbox under a temporary
//! name ⟂, Commit ⟂, and last what can be done again: the outbox gets its name, the session its
//! file, the reply its place in the archive, End. (⟂: on disk before going on.)

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;

use super::notes::Notes;
use super::{ApprovedCommands, Engine, Turn, asking, elsewhere};
use crate::admission;
use crate::atomic;
use crate::error::{Error, Result};
use crate::executor::{Executor, LocalExecutor, Terms};
use crate::inbox::Claimed;
use crate::protocol::{Digest, Kind, Operation, Outcome, RelPath, Step};
use crate::session::record::{Begin, Commit, FileId, Origin, PreparedOutbox, Record};
use crate::session::{ApprovalDecision, Pending, Session, log};
use crate::settings::Mode;
use crate::turn::{self, Observer, TurnInput};
use crate::workspace::checkpoint::Noted;
use crate::workspace::protected::Protection;
use crate::workspace::walk::Walk;
use crate::workspace::{READ_LIMIT, READ_ROOM};

/// From this length on, in bytes, the journal is emptied between turns.
const JOURNAL_LIMIT: u64 = 1 << 20;

/// So many bytes of files the events of a run can hold.
const RUN_READS: u64 = 100 << 20;

/// What is known of a turn before it goes on.
pub(super) struct Known {
    /// The steps that need not, or must not, be tried again, by number.
    pub(super) outcomes: BTreeMap<usize, Outcome>,
    /// What is known of a turn that was stopped hard; None where it begins.
    pub(super) stopped: Option<Stopped>,
}

/// A turn that was stopped hard.
#[derive(Default)]
pub(super) struct Stopped {
    /// What is stored of what it was about to change.
    pub(super) noted: Vec<Noted>,
    /// Where something else stands than its operations found or left.
    pub(super) changed_since: Vec<RelPath>,
}

impl Begin {
    /// How a turn of `session` begins, with the file that it begins with, if there is one. Its policy
    /// is not settled yet.
    pub(super) fn of(
        session: Session,
        steps: Vec<Step>,
        decision: Option<ApprovalDecision>,
        claimed: Option<(Origin, Claimed)>,
    ) -> Self {
        let (folder, name, claim, file, text) = match claimed {
            Some((folder, claimed)) => {
                let name = claimed.name.to_string_lossy().into_owned();
                let claim = claimed.claim().to_string_lossy().into_owned();
                (folder, name, claim, claimed.file, claimed.letter.into_text())
            }
            None => {
                let (none, file) = (String::new(), FileId::default());
                (Origin::Nowhere, session.stem(), none.clone(), file, none)
            }
        };
        let (policy, guest, undoing) = (None, None, None);
        Self { session, name, claim, file, text, steps, policy, folder, guest, decision, undoing }
    }
}

impl Engine {
    /// Carries out a reply for `session` and writes what follows from it.
    pub fn carry_out(
        &mut self,
        mut session: Session,
        mut claimed: Claimed,
        observer: &mut dyn Observer,
    ) -> Result<Turn> {
        self.stand_firm()?;
        session.keep_unread_words(claimed.letter.answers());
        let workspace = self.guest.is_none().then(|| self.workspace.path());
        let steps = claimed.letter.read_in(session.dialect, workspace).steps;
        self.begin_turn(Begin::of(session, steps, None, Some((Origin::Inbox, claimed))), observer)
    }

    /// Carries out one message for a run that begins with it.
    pub fn carry_out_run(
        &mut self,
        run: Session,
        steps: Vec<Step>,
        observer: &mut dyn Observer,
    ) -> Result<Turn> {
        self.stand_firm()?;
        self.begin_turn(Begin::of(run, steps, None, None), observer)
    }

    /// Goes on with a turn that waited, now that the person has decided; `claimed` is the file that
    /// says so, if one does, and where it was.
    pub fn go_on(
        &mut self,
        mut session: Session,
        decision: ApprovalDecision,
        claimed: Option<(Origin, Claimed)>,
        observer: &mut dyn Observer,
    ) -> Result<Turn> {
        self.stand_firm()?;
        let Some(pending) = &session.pending else {
            return Err(Error::nothing_pending(&session.stem()));
        };
        let told = pending.outcomes.len();
        if let Some(run) = &mut session.run {
            run.told = told;
        }
        self.begin_turn(Begin::of(session, Vec::new(), Some(decision), claimed), observer)
    }

    fn begin_turn(&mut self, mut begin: Begin, observer: &mut dyn Observer) -> Result<Turn> {
        self.suits(&begin.session)?;
        // Known before anything is begun, and kept: the settings may be others after a stop.
        begin.policy = Some(self.policy_of(&begin.session)?);
        begin.guest = match &begin.session.pending {
            // It goes on where it was begun, or not at all.
            Some(pending) => pending.guest.clone(),
            None => self.guest_label(),
        };
        // Kept with the turn, too: after a stop they may be others already.
        self.hold_secrets(&mut begin)?;
        let begin = Record::Begin(Box::new(begin));
        self.within_turn = true;
        self.note(&begin)?;
        let Record::Begin(begin) = begin else { unreachable!("made above") };
        let protection = Protection::new(self.quarantine(&begin.session));
        let known = Known { outcomes: begin.known(), stopped: None };
        self.go_through(&begin, known, protection, observer)
    }

    /// Carries out the steps that have no outcome yet, and concludes the turn.
    pub(super) fn go_through(
        &mut self,
        begin: &Begin,
        known: Known,
        protection: Protection,
        observer: &mut dyn Observer,
    ) -> Result<Turn> {
        let gone = self.go(begin, known, protection, observer);
        gone.map_err(|error| self.tell_room(error, &begin.session).within_turn())
    }

    fn go(
        &mut self,
        begin: &Begin,
        known: Known,
        protection: Protection,
        observer: &mut dyn Observer,
    ) -> Result<Turn> {
        observer.turn(&begin.session, begin.reply());
        self.be_patient(begin)?;
        let Known { outcomes: known, stopped: recovery } = known;
        let recovered = recovery.is_some();
        let (policy, clock) =
            (begin.policy.clone().map_or_else(|| self.policy_of(&begin.session), Ok)?, self.clock);
        // What confines commands takes a while to find out, and may never be asked.
        let runs = |step: &Step| step.kind() == Kind::Run;
        let guarded = begin.steps().iter().any(runs) && self.is_guarded(&begin.session)?;
        let stopped = self.is_meant_for_another(begin);
        let approved = ApprovedCommands::of(&self.config);
        let judge = |operation: &Operation, place: &dyn Executor| {
            let decision = turn::judge(&policy, guarded, operation, place)?;
            Ok(approved.settle(decision, operation, guarded))
        };
        let interrupted = || self.stop.is_asked();
        let timeout = elsewhere::timeout(&policy, self.runner.timeout);
        let (read_limit, read_room) = match begin.session.run {
            // Its events go to a program, not through somebody's hands.
            Some(_) => (policy.files.max_bytes.unwrap_or(RUN_READS).min(RUN_READS), RUN_READS),
            None => (READ_LIMIT, READ_ROOM),
        };
        let own = self.own_folder(&begin.session);
        let records = self.records(begin);
        let review = self.review(begin, &known).filter(|_| stopped.is_none());
        let mut notes = Notes(&mut self.journal);
        let input = TurnInput {
            steps: begin.steps(),
            known: &known,
            decision: begin.decision.as_ref(),
            session: &begin.session,
            judge: &judge,
            name_question: Some(&|step| asking::name(begin, step)),
            stopped: stopped.as_deref(),
            now: &|| clock.now(),
        };
        let (carried, walk, recorded) = if let Some(asking) = review {
            (asking, None, None)
        } else if let Some(guest) = &self.guest {
            let mut place = guest.executor(Terms {
                turn: elsewhere::turn_key(begin),
                own: elsewhere::own(&begin.session),
                timeout: &timeout,
                network: policy.network,
                output_limit: self.config.max_output_length,
                read_limit,
                read_room,
                files: Some(policy.files.clone()),
            })?;
            (turn::run(&input, &mut *place, &mut notes, observer)?, None, None)
        } else {
            let open = begin.session.unconfined;
            let place = LocalExecutor::new(&self.workspace, &self.runner, &own, open, &interrupted);
            let mut place = place.guarded(guarded, protection);
            let timeout = |asked| Some(timeout(asked));
            place.timeout = &timeout;
            let readable = crate::policy::may_search(&policy.files);
            place.readable = &readable;
            let mode = if open { Mode::Off } else { self.config.sandbox.mode };
            place.network = mode.network(policy.network);
            (place.read_limit, place.read_room) = (read_limit, read_room);
            place.seen = observer.looks_on();
            place.recorder = records
                .then(|| super::recording::begin(&mut self.checkpoints, &begin.session, recovery));
            let carried = turn::run(&input, &mut place, &mut notes, observer)?;
            let (walk, recorder) = place.into_parts();
            (carried, walk, recorder.map(|recorder| recorder.finish(&self.workspace)))
        };
        let mut session = begin.session.clone();
        let waits = carried.question.is_some();
        session.changed = self.changed(&begin.session, recorded, waits, observer);
        let (reply, text) = (begin.reply(), admission::reply_identity(begin));
        match carried.question {
            Some(question) => {
                self.refuse_early_approvals(&begin.session, observer)?;
                let pending = Pending {
                    reply: reply.to_owned(),
                    text,
                    steps: begin.steps().to_vec(),
                    outcomes: carried.outcomes,
                    question,
                    guest: begin.guest.clone(),
                    decision: None,
                };
                session.pause(pending, self.now());
            }
            None => {
                // While a turn waits, anybody may change them.
                session.held = self.changed_since(session.held)?;
                session.seen = carried.seen;
                session.advance(carried.outcomes, self.now());
                session.last_reply = Some(text);
            }
        }
        let outbox = if session.awaits_reply() {
            self.make_way(&session, observer)?;
            Some(self.prepare_outbox(&mut session, walk)?)
        } else {
            self.keep_last_events(&session, walk)?;
            None
        };
        self.commit(begin, Commit { session, outbox, recovered })
    }

    /// Decides a turn, and does what follows from it.
    pub(super) fn commit(&mut self, begin: &Begin, commit: Commit) -> Result<Turn> {
        let record = Record::Commit(Box::new(commit));
        self.note(&record)?;
        let Record::Commit(commit) = record else { unreachable!("made above") };
        self.conclude(begin, *commit)
    }

    /// Does what follows from a turn that is decided. All of it can be done again.
    pub(super) fn conclude(&mut self, begin: &Begin, commit: Commit) -> Result<Turn> {
        let Commit { session, outbox, recovered } = commit;
        let outbox = match outbox {
            Some(prepared) => {
                let path = self.outbox_path(&session);
                let temporary = self.config.outbox.join(&prepared.temporary);
                let is_it = |bytes: Vec<u8>| Digest::of(&bytes) == prepared.digest;
                // An outbox that can be seen may have been pasted, so it is never replaced.
                if path.exists() {
                    let _ = fs::remove_file(&temporary);
                } else if atomic::read_own(&temporary).is_ok_and(is_it) {
                    self.write_events(&session)?;
                    fs::rename(&temporary, &path).map_err(|e| Error::io("write", &path, e))?;
                } else {
                    self.write_outbox(&session)?;
                }
                atomic::sync_folder(&self.config.outbox)?;
                Some(path)
            }
            None if session.is_complete && session.run.is_none() => {
                self.write_events(&session)?;
                None
            }
            None => None,
        };
        self.store.save_soon(&session)?;
        self.log(begin, &session, recovered)?;
        self.archive(begin)?;
        if session.is_complete {
            self.forget(&session);
        }
        self.changed.insert(session.id.clone(), session.clone());
        self.journal.append(&Record::End.to_line())?;
        self.within_turn = false;
        if self.journal.size() > JOURNAL_LIMIT {
            self.empty_journal()?;
        }
        self.prune_if_needed();
        Ok(Turn { session, outbox })
    }

    /// Puts away the file that began a turn.
    fn archive(&self, begin: &Begin) -> Result<()> {
        let (claim, name) = (OsStr::new(&begin.claim), OsStr::new(&begin.name));
        match begin.folder {
            Origin::Inbox => self.inbox.archive(claim, name, begin.file, &begin.text),
            Origin::Approvals => self.approvals.archive(claim, name, begin.file, &begin.text),
            Origin::Nowhere => Ok(()),
        }
    }

    /// Puts on disk what the journal stands for, and begins it anew.
    pub(super) fn empty_journal(&mut self) -> Result<()> {
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

    /// Moves a file aside that stands where an outbox of ours is to be: it cannot be ours, since the
    /// turn is not decided, and it may be all that somebody has of something.
    pub(super) fn make_way(&self, session: &Session, observer: &mut dyn Observer) -> Result<()> {
        let path = self.outbox_path(session);
        if fs::symlink_metadata(&path).is_ok() {
            let aside =
                atomic::move_into(&path, &self.config.outbox, session.outbox_name().as_ref())?;
            observer.recovered(&format!(
                "there was an outbox {} already, of another session perhaps; it is {} now",
                path.display(),
                aside.display()
            ));
        }
        Ok(())
    }

    /// An orderly end: puts on disk what the journal stands for, and removes what sessions that are
    /// over have left. That comes last, when all that anybody waits for is done.
    pub fn settle(&mut self) -> Result<()> {
        self.write_down()?;
        self.tidy_up();
        Ok(())
    }

    /// Puts on disk what the journal stands for, if anything does.
    pub(super) fn write_down(&mut self) -> Result<()> {
        if self.changed.is_empty() || self.within_turn {
            return Ok(());
        }
        self.empty_journal()
    }

    /// Writes the next outbox under a temporary name; the session notes which files it shows.
    pub(super) fn prepare_outbox(
        &self,
        session: &mut Session,
        walk: Option<Walk>,
    ) -> Result<PreparedOutbox> {
        let rendered = self.render(session, walk)?;
        let text = Self::note_shown(session, rendered);
        let path = self.outbox_path(session);
        let temporary = atomic::write_beside(&path, text.as_bytes())?;
        Ok(PreparedOutbox {
            temporary: temporary.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            digest: Digest::of(text.as_bytes()),
        })
    }

    pub(super) fn note(&mut self, record: &Record) -> Result<()> {
        self.journal.append(&record.to_line())?;
        self.journal.sync()
    }
}
