//! What is to be done in a space, one after the other, by a thread that owns it while there is something to do.
//!
//! A space of its own is a project that this thread opens. One on the project's workspace is served by the process that
//! holds the project, to which requests are handed over as by the command line. Each request has a [`Ticket`], which
//! tells how far it is; nobody has to wait for it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::Fault;
use super::spaces::Space;
use crate::clock::Timestamp;
use crate::engine::{Clock, Engine};
use crate::error::{Error, Result};
use crate::event::{Event, Observer};
use crate::ipc::{self, Request};
use crate::protocol::Outcome;
use crate::session::{ApprovalDecision, RunRequest, Session};

/// A space in which nothing happens for so long is closed until something does.
const IDLE: Duration = Duration::from_mins(1);
/// So many requests of a space may wait.
const WAITING: usize = 64;
/// For so long the answer is kept that could not be delivered.
const KEPT: Duration = Duration::from_mins(1);
/// How long the end of what runs is waited for when a space is closed.
const PATIENCE: Duration = Duration::from_secs(20);

/// A run that somebody may wait for, and how far it is.
pub(super) struct Ticket {
    /// The name of the run.
    pub(super) stem: String,
    /// What it was asked for with; None where it is only gone on with.
    pub(super) request: Option<RunRequest>,
    progress: Mutex<Progress>,
    /// What came of it in the end.
    pub(super) done: watch::Sender<Option<Done>>,
}

/// What came of a request: the run as it is then.
pub(super) type Done = Result<Arc<Session>, Fault>;

struct Progress {
    began: Timestamp,
    /// The run as it began, or was gone on with.
    run: Option<Session>,
    outcomes: Vec<Outcome>,
    /// Since when nobody who was to get the answer is there any more.
    lost: Option<Instant>,
}

impl Ticket {
    /// One that nobody has begun with.
    pub(super) fn new(stem: String, request: Option<RunRequest>) -> Arc<Self> {
        let progress =
            Progress { began: Timestamp::now(), run: None, outcomes: Vec::new(), lost: None };
        Arc::new(Self {
            stem,
            request,
            progress: Mutex::new(progress),
            done: watch::Sender::new(None),
        })
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_done(&self) -> bool {
        self.done.borrow().is_some()
    }

    /// Whether its answer could not be delivered.
    pub(super) fn is_lost(&self) -> bool {
        self.progress().lost.is_some()
    }

    /// Whether somebody may still ask for it here.
    fn is_kept(&self) -> bool {
        !self.is_done() || self.progress().lost.is_some_and(|since| since.elapsed() < KEPT)
    }

    /// Notes whether somebody got the answer.
    pub(super) fn delivered(&self, is_delivered: bool) {
        self.progress().lost = (!is_delivered).then(Instant::now);
    }

    /// When it was asked for, the run as it began, and its outcomes so far.
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

    fn finish(&self, done: Done) {
        let mut progress = self.progress();
        // From now on it counts for how long it is kept.
        progress.lost = progress.lost.map(|_| Instant::now());
        drop(progress);
        self.done.send_replace(Some(done));
    }
}

/// What is to be done for a ticket: requests, of which the last one gives what came of it.
pub(super) struct Job {
    ticket: Arc<Ticket>,
    requests: Vec<Request>,
}

/// What is done in a space, and by whom.
#[derive(Default)]
pub(super) struct Work {
    /// What waits.
    queue: VecDeque<Job>,
    /// All of which somebody may ask.
    pub(super) tickets: Vec<Arc<Ticket>>,
    /// Whether there is a thread for it.
    has_worker: bool,
    /// Whether it may be found yet that a run goes on which the last process was stopped in.
    pub(super) recovering: bool,
    /// Whether nothing is begun any more.
    ending: bool,
}

impl Work {
    /// The ticket of a run that is not done.
    pub(super) fn running(&self, stem: &str) -> Option<&Arc<Ticket>> {
        self.tickets.iter().find(|ticket| ticket.stem == stem && !ticket.is_done())
    }

    /// Forgets what nobody asks for any more.
    pub(super) fn tidy(&mut self) {
        self.tickets.retain(|ticket| ticket.is_kept());
    }
}

impl Space {
    /// Has something done, after what waits already.
    ///
    /// # Errors
    /// The space is closed, or too much waits.
    pub(super) fn order(
        self: &Arc<Self>,
        work: &mut Work,
        ticket: &Arc<Ticket>,
        requests: Vec<Request>,
    ) -> Result<(), Fault> {
        if work.ending {
            return Err(self.ended());
        }
        if work.queue.len() >= WAITING {
            return Err(Fault::busy());
        }
        work.tidy();
        work.tickets.push(Arc::clone(ticket));
        work.queue.push_back(Job { ticket: Arc::clone(ticket), requests });
        self.wake(work);
        Ok(())
    }

    /// Has a space looked after in which the last process was stopped.
    pub(super) fn recover(self: &Arc<Self>) {
        let mut work = self.work();
        work.recovering = true;
        self.wake(&mut work);
    }

    fn wake(self: &Arc<Self>, work: &mut Work) {
        if !work.has_worker {
            let space = Arc::clone(self);
            let run = move || space.work_off();
            work.has_worker = thread::Builder::new().name("space".into()).spawn(run).is_ok();
        }
        if !work.has_worker {
            work.recovering = false;
            for job in work.queue.drain(..) {
                job.ticket.finish(Err(Fault::busy()));
            }
        }
        self.changed.notify_all();
    }

    /// Begins nothing any more.
    pub(super) fn end(&self) {
        self.work().ending = true;
    }

    /// Ends what runs, and begins nothing any more. Returns when nothing happens in the space.
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

    /// Whether a thread is at work, which may hold the space open.
    pub(super) fn is_at_work(&self) -> bool {
        self.work().has_worker
    }

    /// Waits until all runs are known that go on.
    pub(super) fn settled(&self) -> MutexGuard<'_, Work> {
        let mut work = self.work();
        while work.recovering {
            work = self.changed.wait(work).unwrap_or_else(PoisonError::into_inner);
        }
        work
    }

    /// Does what there is to do, until there is nothing for a while.
    fn work_off(self: Arc<Self>) {
        let mut engine = None;
        if self.is_own() {
            // Should that fail, whoever wants something is told.
            engine = self.open().ok();
        }
        self.is_recovered();
        while let Some(Job { ticket, requests }) = self.next(&mut engine) {
            let mut watcher = Watcher { space: &self, ticket: Some(Arc::clone(&ticket)) };
            let mut run = self.carry_out(&mut engine, requests, &mut watcher);
            let is_passing = ticket.request.as_ref().is_some_and(|request| request.is_passing);
            if let Some(denied) = run.as_ref().ok().filter(|_| is_passing).and_then(denied) {
                run = self.carry_out(&mut engine, denied, &mut watcher);
            }
            // It goes on with a new start only.
            if engine.as_ref().is_some_and(Engine::is_within_turn) {
                engine = None;
            }
            let fault =
                |e: Error| if e.is_interrupted() { self.ended() } else { Fault::failed(&e) };
            ticket.finish(run.map(Arc::new).map_err(fault));
        }
    }

    /// What is to be done next. None where there is nothing for a while: then the space is closed.
    fn next(&self, engine: &mut Option<Engine>) -> Option<Job> {
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
        // While nobody can begin to open it again.
        if let Some(mut engine) = engine.take() {
            // What the journal stands for is made durable by the next start.
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
        watcher: &mut Watcher<'_>,
    ) -> Result<Session> {
        let mut run = Err(Error::failed("there is nothing to do".to_owned()));
        for request in requests {
            let is_decision = matches!(request, Request::Decide { .. });
            run = if self.is_own() {
                if engine.is_none() {
                    *engine = Some(self.open()?);
                }
                let engine = engine.as_mut().expect("just opened");
                ipc::handle(engine, request, watcher).map(|turn| turn.session)
            } else {
                let done = ipc::hand_over(&self.config, &request, &self.stop)?;
                done.map(|done| done.turn.session).ok_or_else(Error::interrupted)
            };
            match &run {
                // The person at the terminal was faster.
                Err(e) if is_decision && e.code() == "nothing-pending" => {}
                Err(_) => return run,
                Ok(_) => {}
            }
        }
        run
    }

    /// Opens the space, and finishes what the last process was stopped in.
    fn open(&self) -> Result<Engine> {
        let mut watcher = Watcher { space: self, ticket: None };
        let config = self.config.clone();
        let mut engine =
            Engine::open(config, Clock::default(), self.stop.clone(), None, &mut watcher)?;
        if let Some(turn) = engine.recovered_turn.take() {
            match watcher.ticket {
                Some(ticket) => ticket.finish(Ok(Arc::new(turn.session))),
                None => self.took_up(turn.session),
            }
        }
        Ok(engine)
    }

    /// Why nothing is begun any more.
    fn ended(&self) -> Fault {
        let is_over = self.record().ended().is_some();
        if is_over { Fault::no_space(&self.id) } else { Fault::stopping() }
    }

    /// A run was finished that the last process was stopped in.
    pub(super) fn took_up(&self, run: Session) {
        self.recovered(&run).finish(Ok(Arc::new(run)));
    }

    /// A ticket for a run that the last process was stopped in. Whoever had asked for it did not get the answer.
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

/// What ends a run that waits, although nobody can be asked about it.
fn denied(run: &Session) -> Option<Vec<Request>> {
    let stem = run.stem();
    let question = run.question()?.clone();
    let decision =
        Box::new(ApprovalDecision { question, approved: false, further: false, reason: None });
    Some(vec![Request::Decide { stem: stem.clone(), decision }, Request::ResumeRun { stem }])
}

/// Keeps what happens for whoever asks.
struct Watcher<'a> {
    space: &'a Space,
    ticket: Option<Arc<Ticket>>,
}

impl Observer for Watcher<'_> {
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
