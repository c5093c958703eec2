//! How a request is handled, here or by the process that serves the folder, and how what it asks is
//! answered.

use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::progress::NO_ANSWER;
use super::prompt::{Prompt, Said};
use super::{Context, Opened, ProgressReporter, WAITS, live, output, question};
use crate::engine::{self, Turn};
use crate::error::{Error, Result};
use crate::event::{Event, Observer, QuestionPreview};
use crate::ipc::{self, Request, RequestResult};
use crate::lock::Lock;
use crate::session::store::SessionStore;
use crate::session::{ApprovalDecision, Session};
use crate::watch::Stop;
use crate::workspace::Workspace;

/// How long to wait for a process that carries out a single reply.
const PATIENCE: Duration = Duration::from_secs(10);

impl Context {
    /// Whether deaddrop has been at work here, or a session or a run lies here; also where that cannot be
    /// looked at.
    pub(super) fn has_begun(&self) -> bool {
        let store = SessionStore::new(&self.config.sessions);
        let has = |found: Result<Vec<String>>| found.map_or(true, |found| !found.is_empty());
        self.config.has_begun() || has(store.ids()) || has(store.runs())
    }

    /// Opens the project, or hands `request` to the process that serves it and gives what came of
    /// that.
    pub(super) fn open_or_hand_over(&self, request: &Request, stop: &Stop) -> Result<Opened> {
        let begun = Instant::now();
        live::heed(stop);
        loop {
            match self.open(stop.clone()) {
                Ok(engine) => return Ok(Opened::Here(Box::new(engine))),
                Err(e) if e.is_locked() && Lock::holder_serves(&self.config) => {
                    live::running("", "the running deaddrop does it", &Arc::default());
                    // Otherwise it ended and left the request alone.
                    let done = ipc::hand_over(&self.config, request, stop);
                    live::nothing();
                    if let Some(done) = done? {
                        return Ok(Opened::Elsewhere(Box::new(done)));
                    }
                }
                // Whoever carries out one reply will soon be done.
                Err(e) if e.is_locked() && begun.elapsed() < PATIENCE && !stop.is_asked() => {
                    thread::sleep(Duration::from_millis(20));
                }
                Err(e) => return Err(e),
            }
        }
    }

    /// Has a request handled: here, or by the process that serves the folder. So many outcomes of the turn are `known`
    /// to the person.
    pub(super) fn request(&self, request: Request, stop: &Stop, known: usize) -> Result<Turn> {
        let mut reporter = ProgressReporter::new(self);
        let mut warn = |event: Event<'_>| {
            if let Event::Warning(warning) = event {
                self.ui.warning(warning);
            }
        };
        // What happens in a run is told in its events, and beside them only where more is wanted.
        let is_run = matches!(request, Request::Run { .. } | Request::ResumeRun { .. });
        let observer: &mut dyn Observer =
            if is_run && !self.ui.verbose { &mut warn } else { &mut reporter };
        match self.open_or_hand_over(&request, stop)? {
            Opened::Here(mut engine) => {
                let says = matches!(request, Request::Say { .. });
                let turn = ipc::handle(&mut engine, request, observer)?;
                match engine.shut_down() {
                    // Who is told that it failed would say it again.
                    Err(e) if says => self.ui.say(format!(
                        "{e}. Your words are kept; the next start continues from the journal."
                    )),
                    result => result?,
                }
                Ok(turn)
            }
            Opened::Elsewhere(done) => {
                report(&request, &done, known, observer);
                Ok(done.turn)
            }
        }
    }

    /// Tells what a turn came to. Where it waits, shows what it asks, and goes on with what the
    /// person answers at the terminal, if they are to be asked there.
    pub(super) fn conclude(&self, mut turn: Turn, asks: bool, stop: &Stop) -> Result<ExitCode> {
        let mut reporter = ProgressReporter::new(self);
        loop {
            reporter.event(Event::TurnEnded(&turn));
            if stop.is_asked() {
                return Err(Error::interrupted());
            }
            if turn.session.question().is_none() {
                return Ok(ExitCode::SUCCESS);
            }
            reporter.show(&turn.session, &self.preview_question(&turn.session));
            let next = if asks { self.ask(&turn.session, stop)? } else { None };
            match next {
                Some(next) => turn = next,
                None => return Ok(ExitCode::from(WAITS)),
            }
        }
    }

    /// Asks at the terminal about what was shown, and gives what came of the answer, or of a
    /// decision elsewhere. None where there is no answer.
    pub(super) fn ask(&self, session: &Session, stop: &Stop) -> Result<Option<Turn>> {
        let Some(question) = session.question().filter(|_| !self.json) else { return Ok(None) };
        let Some(prompt) = Prompt::put(&self.ui, question::line(session, false)) else {
            return Ok(None);
        };
        let store = SessionStore::new(&self.config.sessions);
        loop {
            match prompt.wait(Duration::from_millis(100)) {
                Some(Said::Nothing) => {
                    self.ui.say(NO_ANSWER);
                    return Ok(None);
                }
                Some(said) => {
                    drop(prompt);
                    return self.decide(session, said.about(question), stop).map(Some);
                }
                None if stop.is_asked() => return Err(Error::interrupted()),
                None => {}
            }
            let now = store.load_stem(&session.stem())?;
            if now.question() != Some(question) {
                self.ui.say("\nIt was decided elsewhere.");
                let outbox = now.awaits_reply().then(|| self.config.outbox.join(now.outbox_name()));
                return Ok(Some(Turn { session: now, outbox }));
            }
        }
    }

    /// Has done what follows from a decision about what `session` asks.
    pub(super) fn decide(
        &self,
        session: &Session,
        decision: ApprovalDecision,
        stop: &Stop,
    ) -> Result<Turn> {
        let request = Request::Decide { stem: session.stem(), decision: Box::new(decision) };
        self.request(request, stop, output::outcomes(session).len())
    }

    /// What would come of what a session asks about.
    pub(super) fn preview_question(&self, session: &Session) -> QuestionPreview {
        let config = &self.config;
        if !config.workspace.exists() {
            return QuestionPreview::default();
        }
        // It is only shown: what is wrong with the workspace is told when something is done there.
        Workspace::open(&config.workspace, &config.state(), &config.protected_names)
            .map(|workspace| engine::preview_question(config, &workspace, session))
            .unwrap_or_default()
    }
}

/// Reports what another process has done as if it had been done here.
fn report(request: &Request, done: &RequestResult, known: usize, observer: &mut dyn Observer) {
    let RequestResult { turn: Turn { session, .. }, warnings } = done;
    if let Request::Apply { name, .. } = request {
        let mut answered = session.clone();
        answered.sequence -= u32::from(session.awaits_reply());
        observer.event(Event::ReplyTaken { name: name.as_ref(), session: &answered });
    }
    let tells = matches!(request, Request::Apply { .. } | Request::Decide { .. });
    let outcomes = if tells { output::outcomes(session) } else { &[] };
    outcomes.iter().skip(known).for_each(|outcome| observer.event(Event::StepDone(outcome)));
    // Those of outcomes are reported with them.
    let is_reported = |warning: &String| {
        outcomes.iter().flat_map(|outcome| &outcome.warnings).any(|w| w.text == *warning)
    };
    for warning in warnings.iter().filter(|warning| !is_reported(warning)) {
        observer.event(Event::Warning(warning));
    }
}
