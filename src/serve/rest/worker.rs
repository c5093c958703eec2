//! The work queue of a space, processed by a thread that owns the space while there is work.
//!
//! This thread opens a space with its own workspace as a project. Requests for a space on the project's workspace are
//! handed over to the process that serves the project, as by the command line. Each request has a [`Ticket`] with its
//! progress; nobody has to wait for it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::ApiError;
use super::spaces::RestSpace;
use crate::clock::Timestamp;
use crate::engine::{Clock, Engine};
use crate::error::{Error, Result};
use crate::event::{Event, Observer};
use crate::ipc::{self, Request};
use crate::protocol::Outcome;
use crate::session::{ApprovalDecision, RunRequest, Session};

/// A space without work for this long is closed until there is work again.
const IDLE: Duration = Duration::from_mins(1);
/// How many requests of a space may wait.
const WAITING: usize = 64;
/// How long an answer that could not be delivered is kept.
const KEPT: Duration = Duration::from_mins(1);
/// How long closing a space waits for its running work.
const PATIENCE: Duration = Duration::from_secs(20);

/// A run that clients may wait for, and its progress.
pub(super) struct Ticket {
    /// The stem of the run.
    pub(super) stem: String,
    /// The request that began it; None if the run is only continued.
    pub(super) request: Option<RunRequest>,
    progress: Mutex<TicketProgress>,
    /// The final result, once there is one.
    pub(super) done: watch::Sender<Option<RunResult>>,
}

/// The result of a request: the run in its new state.
pub(super) type RunResult = Result<Arc<Session>, ApiError>;

struct TicketProgress {
    began: Timestamp,
    /// The run at its beginning, or when it was continued.
    run: Option<Session>,
    outcomes: Vec<Outcome>,
    /// When the client that should get the answer was lost.
    lost: Option<Instant>,
}

impl Ticket {
    /// A ticket for work that has not begun.
    pub(super) fn new(stem: String, request: Option<RunRequest>) -> Arc<Self> {
        let progress =
            TicketProgress { began: Timestamp::now(), run: None, outcomes: Vec::new(), lost: None };
        Arc::new(Self {
            stem,
            request,
            progress: Mutex::new(progress),
            done: watch::Sender::new(None),
        })
    }

    fn progress(&self) -> MutexGuard<'_, TicketProgress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_done(&self) -> bool {
        self.done.borrow().is_some()
    }

    /// Whether its answer could not be delivered.
    pub(super) fn is_lost(&self) -> bool {
        self.progress().lost.is_some()
    }

    /// Whether a client may still ask for it.
    fn is_kept(&self) -> bool {
        !self.is_done() || self.progress().lost.is_some_and(|since| since.elapsed() < KEPT)
    }

    /// Records whether a client got the answer.
    pub(super) fn delivered(&self, is_delivered: bool) {
        self.progress().lost = (!is_delivered).then(Instant::now);
    }

    /// When the work began, the run at its beginning, and its outcomes so far.
    pub(super) fn so_far(&self) -> (Timestamp, Option<Session>, Vec<Outcome>) {
        let progress = self.progress();
        (progress.began, progress.run.clone(), progress.outcomes.clone())
    }

    fn begin(&self, run: &Session) {
        let mut progress = self.progress();
        progress.began = run.created_at;
        progress.outcomes = run.pending.as_ref().map_or_else(Vec::new, |it| it.outcomes.clone());
        progress.run = Some(Session { pending: None, ..run.clone() });
    }

    fn finish(&self, done: RunResult) {
        let mut progress = self.progress();
        // The time for which the answer is kept starts now.
        progress.lost = progress.lost.map(|_| Instant::now());
        drop(progress);
        self.done.send_replace(Some(done));
    }
}

/// The requests of a ticket. The last one returns the result.
pub(super) struct SpaceJob {
    ticket: Arc<Ticket>,
    requests: Vec<Request>,
}

/// The work of a space.
#[derive(Default)]
pub(super) struct Work {
    /// Waiting jobs.
    queue: VecDeque<SpaceJob>,
    /// All tickets that a client may ask for.
    pub(super) tickets: Vec<Arc<Ticket>>,
    /// Whether the worker thread runs.
    has_worker: bool,
    /// Whether recovery may still find a run in which the last process was stopped.
    pub(super) recovering: bool,
    /// Whether no more work may begin.
    ending: bool,
}

impl Work {
    /// The ticket of an unfinished run.
    pub(super) fn running(&self, stem: &str) -> Option<&Arc<Ticket>> {
        self.tickets.iter().find(|ticket| ticket.stem == stem && !ticket.is_done())
    }

    /// Drops tickets that no client will ask for.
    pub(super) fn tidy(&mut self) {
        self.tickets.retain(|ticket| ticket.is_kept());
    }
}

impl RestSpace {
    /// Queues requests for a ticket.
    ///
    /// # Errors
    /// The space is closed, or its queue is full.
    pub(super) fn order(
        self: &Arc<Self>,
        work: &mut Work,
        ticket: &Arc<Ticket>,
        requests: Vec<Request>,
    ) -> Result<(), ApiError> {
        if work.ending {
            return Err(self.ended());
        }
        if work.queue.len() >= WAITING {
            return Err(ApiError::busy());
        }
        work.tidy();
        work.tickets.push(Arc::clone(ticket));
        work.queue.push_back(SpaceJob { ticket: Arc::clone(ticket), requests });
        self.wake(work);
        Ok(())
    }

    /// Starts recovery of a space in which the last process was stopped.
    pub(super) fn recover(self: &Arc<Self>) {
        let mut work = self.work();
        work.recovering = true;
        self.wake(&mut work);
    }

    fn wake(self: &Arc<Self>, work: &mut Work) {
        if !work.has_worker {
            let space = Arc::clone(self);
            let run = move || space.run_worker();
            work.has_worker = thread::Builder::new().name("space".into()).spawn(run).is_ok();
        }
        if !work.has_worker {
            work.recovering = false;
            for job in work.queue.drain(..) {
                job.ticket.finish(Err(ApiError::busy()));
            }
        }
        self.changed.notify_all();
    }

    /// Lets no more work begin.
    pub(super) fn end(&self) {
        self.work().ending = true;
    }

    /// Stops running work and lets no more begin. Returns when the worker has ended, or after [`PATIENCE`].
    pub(super) fn close(&self) {
        self.end();
        self.stop.ask();
        self.changed.notify_all();
        let mut work = self.work();
        let begun = Instant::now();
        while work.has_worker && begun.elapsed() < PATIENCE {
            let waited = self.changed.wait_timeout(work, Duration::from_millis(100));
            work = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Whether the worker thread runs, which may have the space open.
    pub(super) fn is_at_work(&self) -> bool {
        self.work().has_worker
    }

    /// Waits until recovery has found all running runs.
    pub(super) fn settled(&self) -> MutexGuard<'_, Work> {
        let mut work = self.work();
        while work.recovering {
            work = self.changed.wait(work).unwrap_or_else(PoisonError::into_inner);
        }
        work
    }

    /// Processes the queue until it stays empty for [`IDLE`].
    fn run_worker(self: Arc<Self>) {
        let mut engine = None;
        if self.is_own() {
            // If this fails, the next request reports the error.
            engine = self.open().ok();
        }
        self.is_recovered();
        while let Some(SpaceJob { ticket, requests }) = self.next(&mut engine) {
            let mut observer = TicketObserver { space: &self, ticket: Some(Arc::clone(&ticket)) };
            let mut run = self.carry_out(&mut engine, requests, &mut observer);
            let is_passing = ticket.request.as_ref().is_some_and(|request| request.is_passing);
            if let Some(denied) = run.as_ref().ok().filter(|_| is_passing).and_then(denied) {
                run = self.carry_out(&mut engine, denied, &mut observer);
            }
            // An interrupted turn can continue only after the project is opened again.
            if engine.as_ref().is_some_and(Engine::is_within_turn) {
                engine = None;
            }
            let fault =
                |e: Error| if e.is_interrupted() { self.ended() } else { ApiError::failed(&e) };
            ticket.finish(run.map(Arc::new).map_err(fault));
        }
    }

    /// The next job. None if there is none for a while: then the space is closed.
    fn next(&self, engine: &mut Option<Engine>) -> Option<SpaceJob> {
        let mut work = self.work();
        let begun = Instant::now();
        while !work.ending {
            if let Some(job) = work.queue.pop_front() {
                return Some(job);
            }
            let left = IDLE.checked_sub(begun.elapsed());
            let Some(left) = left else { break };
            let waited = self.changed.wait_timeout(work, left);
            work = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        for job in work.queue.drain(..) {
            job.ticket.finish(Err(self.ended()));
        }
        // Close it while `work` is locked, so that no new worker opens it at the same time.
        if let Some(mut engine) = engine.take() {
            // If this fails, the next start completes it from the journal.
            let _ = engine.shut_down();
        }
        work.has_worker = false;
        self.changed.notify_all();
        None
    }

    fn carry_out(
        &self,
        engine: &mut Option<Engine>,
        requests: Vec<Request>,
        observer: &mut TicketObserver<'_>,
    ) -> Result<Session> {
        let mut run = Err(Error::failed("there is nothing to do".to_owned()));
        for request in requests {
            let is_decision = matches!(request, Request::Decide { .. });
            run = if self.is_own() {
                if engine.is_none() {
                    *engine = Some(self.open()?);
                }
                let engine = engine.as_mut().expect("just opened");
                ipc::handle(engine, request, observer).map(|turn| turn.session)
            } else {
                let done = ipc::hand_over(&self.config, &request, &self.stop)?;
                done.map(|done| done.turn.session).ok_or_else(Error::interrupted)
            };
            match &run {
                // The person at the terminal has already decided.
                Err(e) if is_decision && e.code() == "nothing-pending" => {}
                Err(_) => return run,
                Ok(_) => {}
            }
        }
        run
    }

    /// Opens the space, and finishes the turn in which the last process was stopped.
    fn open(&self) -> Result<Engine> {
        let mut observer = TicketObserver { space: self, ticket: None };
        let config = self.config.clone();
        let mut engine =
            Engine::open(config, Clock::default(), self.stop.clone(), None, &mut observer)?;
        if let Some(turn) = engine.recovered_turn.take() {
            match observer.ticket {
                Some(ticket) => ticket.finish(Ok(Arc::new(turn.session))),
                None => self.keep_recovered(turn.session),
            }
        }
        Ok(engine)
    }

    /// Why no more work may begin.
    fn ended(&self) -> ApiError {
        let is_over = self.record().ended().is_some();
        if is_over { ApiError::no_space(&self.id) } else { ApiError::stopping() }
    }

    /// Keeps the result of a run in which the last process was stopped.
    pub(super) fn keep_recovered(&self, run: Session) {
        self.recovered(&run).finish(Ok(Arc::new(run)));
    }

    /// A ticket for a run in which the last process was stopped. Its client did not get the answer.
    fn recovered(&self, run: &Session) -> Arc<Ticket> {
        let request = run.run.as_ref().and_then(|run| run.request.clone());
        let ticket = Ticket::new(run.stem(), request);
        ticket.delivered(false);
        self.work().tickets.push(Arc::clone(&ticket));
        ticket
    }

    fn is_recovered(&self) {
        self.work().recovering = false;
        self.changed.notify_all();
    }
}

/// Requests that deny and end a run that waits for a decision that nobody can make.
fn denied(run: &Session) -> Option<Vec<Request>> {
    let stem = run.stem();
    let question = run.question()?.clone();
    let decision =
        Box::new(ApprovalDecision { question, approved: false, further: false, reason: None });
    Some(vec![Request::Decide { stem: stem.clone(), decision }, Request::ResumeRun { stem }])
}

/// Records progress in a ticket.
struct TicketObserver<'a> {
    space: &'a RestSpace,
    ticket: Option<Arc<Ticket>>,
}

impl Observer for TicketObserver<'_> {
    fn event(&mut self, event: Event<'_>) {
        match (event, &self.ticket) {
            (Event::TurnBegun { session, .. }, Some(ticket)) => ticket.begin(session),
            (Event::TurnBegun { session, .. }, None) => {
                let ticket = self.space.recovered(session);
                ticket.begin(session);
                self.ticket = Some(ticket);
                self.space.is_recovered();
            }
            (Event::StepDone(outcome), Some(ticket)) => {
                ticket.progress().outcomes.push(outcome.clone());
            }
            _ => {}
        }
    }
}
