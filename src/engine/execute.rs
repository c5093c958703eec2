//! Executes the steps of a turn, here or in a guest, up to the session that follows from them.

use super::transaction::TurnProgress;
use super::{ApprovedCommands, Engine, approvals, changes, remote};
use crate::admission;
use crate::error::Result;
use crate::event::{Event, Observer};
use crate::executor::{Executor, GuestTurn, LocalExecutor, WriteAhead};
use crate::policy;
use crate::protocol::{Kind, Operation, Outcome, Step};
use crate::session::journal::Journal;
use crate::session::record::{Begin, JournalRecord};
use crate::session::{Pending, Session};
use crate::settings::SandboxMode;
use crate::turn::{self, Ledger, TurnInput};
use crate::workspace::walk::Walk;
use crate::workspace::{READ_LIMIT, READ_ROOM};

const CANCELLED: &str = "the run was cancelled";
/// The most bytes of files that the events of a run contain.
const RUN_READS: u64 = 100 << 20;

impl Engine {
    /// Executes the steps that have no outcome yet. Returns the session after the turn, and the files of the
    /// workspace if they were listed after the last step.
    pub(super) fn execute(
        &mut self,
        begin: &Begin,
        progress: TurnProgress,
        observer: &mut dyn Observer,
    ) -> Result<(Session, Option<Walk>)> {
        observer.event(Event::TurnBegun { session: &begin.session, reply: begin.reply() });
        self.set_guest_patience(begin)?;
        let TurnProgress { outcomes: known, protection, stopped } = progress;
        let (policy, clock) = (self.policy_of_turn(begin)?, self.clock);
        // Probing the sandbox takes a while, so it is done only if there are commands.
        let runs = |step: &Step| step.kind() == Kind::Run;
        let guarded = begin.steps().iter().any(runs) && self.is_guarded(&begin.session)?;
        let other_machine = self.other_machine(begin);
        let approved = ApprovedCommands::of(&self.config);
        let judge = |operation: &Operation, executor: &dyn Executor| {
            let decision = turn::judge(&policy, guarded, operation, executor)?;
            Ok(approved.relax(decision, operation, guarded))
        };
        let cancellation =
            begin.session.run.as_ref().map(|_| self.store.cancellation(&begin.session.stem()));
        let is_cancelled = || cancellation.as_ref().is_some_and(|path| path.exists());
        let interrupted = || self.stop.is_asked() || is_cancelled();
        let timeout = remote::timeout(&policy, self.runner.timeout);
        let (read_limit, read_room) = match begin.session.run {
            // A program reads its events, so they need not be short.
            Some(_) => (policy.files.max_bytes.unwrap_or(RUN_READS).min(RUN_READS), RUN_READS),
            None => (READ_LIMIT, READ_ROOM),
        };
        let scratch = self.scratch_dir(&begin.session);
        let records = self.records(begin);
        let review = self.review(begin, &known).filter(|_| other_machine.is_none());
        let mut ledger = JournalLedger(&mut self.journal);
        let input = TurnInput {
            steps: begin.steps(),
            known: &known,
            decision: begin.decision.as_ref(),
            session: &begin.session,
            judge: &judge,
            question_id: Some(&|step| approvals::question_id(begin, step)),
            stopped: other_machine.as_deref().or(is_cancelled().then_some(CANCELLED)),
            now: &|| clock.now(),
        };
        let (result, walk, recorded) = if let Some(question) = review {
            (question, None, None)
        } else if let Some(guest) = &self.guest {
            let mut executor = guest.executor(GuestTurn {
                turn: remote::turn_key(begin),
                own: remote::scratch_name(&begin.session),
                timeout: &timeout,
                network: policy.network,
                output_limit: self.config.max_output_length,
                read_limit,
                read_room,
                files: Some(policy.files.clone()),
            })?;
            (turn::run(&input, &mut *executor, &mut ledger, observer)?, None, None)
        } else {
            let open = begin.session.unconfined;
            let executor =
                LocalExecutor::new(&self.workspace, &self.runner, &scratch, open, &interrupted);
            let mut executor = executor.guarded(guarded, protection);
            let timeout = |asked| Some(timeout(asked));
            executor.timeout = &timeout;
            let readable = policy::may_search(&policy.files);
            executor.readable = &readable;
            let mode = if open { SandboxMode::Off } else { self.config.sandbox.mode };
            executor.network = mode.network(policy.network);
            (executor.read_limit, executor.read_room) = (read_limit, read_room);
            executor.seen.clone_from(&self.live_output);
            executor.recorder =
                records.then(|| changes::recorder(&mut self.checkpoints, &begin.session, stopped));
            let result = turn::run(&input, &mut executor, &mut ledger, observer)?;
            let (walk, recorder) = executor.into_parts();
            (result, walk, recorder.map(|recorder| recorder.finish(&self.workspace)))
        };
        let mut session = begin.session.clone();
        let waits = result.question.is_some();
        session.changed = self.finish_recording(&begin.session, recorded, waits, observer);
        let text = admission::reply_identity(begin);
        if let Some(question) = result.question {
            self.refuse_early_approvals(&begin.session, observer)?;
            let pending = Pending {
                reply: begin.reply().to_owned(),
                text,
                steps: begin.steps().to_vec(),
                outcomes: result.outcomes,
                question,
                guest: begin.guest.clone(),
                decision: None,
            };
            session.pause(pending, self.now());
        } else {
            // Not while the turn waits: the files may change until it continues.
            session.held = self.changed_secrets(session.held)?;
            session.seen = result.seen;
            session.advance(result.outcomes, self.now());
            session.last_reply = Some(text);
        }
        Ok((session, walk))
    }
}

/// The journal as the ledger of a turn.
struct JournalLedger<'a>(&'a mut Journal);

impl Ledger for JournalLedger<'_> {
    fn write_ahead(&mut self, step: usize, entry: WriteAhead<'_>) -> Result<()> {
        let record = match entry {
            WriteAhead::Guard(snapshot) => JournalRecord::Guard(Box::new(snapshot.clone())),
            // Its blobs are on disk already.
            WriteAhead::Noted(noted) => JournalRecord::Noted(Box::new(noted.clone())),
            WriteAhead::Effects(effects) => {
                for (step, effect) in (step..).zip(effects) {
                    self.0.append(
                        &JournalRecord::Intent { step, effect: effect.clone() }.to_line(),
                    )?;
                }
                return self.0.sync();
            }
        };
        // The sync of the following Intents makes it durable.
        self.0.append(&record.to_line())
    }

    fn result(&mut self, step: usize, outcome: &Outcome) -> Result<()> {
        // The next record's sync makes it durable. Until then, recovery examines the effect itself.
        self.0.append(&JournalRecord::Result { step, outcome: Box::new(outcome.clone()) }.to_line())
    }
}
