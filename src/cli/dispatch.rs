//! Handles requests in this process or through the serving process, and asks the person for decisions.

use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::progress::NO_ANSWER;
use super::prompt::{Prompt, PromptAnswer};
use super::{CliContext, EXIT_WAITS, Opened, ProgressReporter, live, output, question};
use crate::engine::{self, Turn};
use crate::error::{Error, Result};
use crate::event::{Event, Observer, QuestionPreview};
use crate::ipc::{self, Request, RequestResult};
use crate::lock::Lock;
use crate::session::store::SessionStore;
use crate::session::{ApprovalDecision, Session};
use crate::watch::Stop;
use crate::workspace::Workspace;

/// The most time to wait for a process that executes a single reply.
const PATIENCE: Duration = Duration::from_secs(10);

impl CliContext {
    /// Whether deaddrop was used here, or there are sessions or runs. Also true if they cannot be listed.
    pub(super) fn has_begun(&self) -> bool {
        let store = SessionStore::new(&self.config.sessions);
        let has = |found: Result<Vec<String>>| found.map_or(true, |found| !found.is_empty());
        self.config.has_begun() || has(store.ids()) || has(store.runs())
    }

    /// Opens the project, or hands `request` to the process that serves it and returns the result.
    pub(super) fn open_or_hand_over(&self, request: &Request, stop: &Stop) -> Result<Opened> {
        let begun = Instant::now();
        live::stop_drawing_on(stop);
        loop {
            match self.open(stop.clone()) {
                Ok(engine) => return Ok(Opened::Local(Box::new(engine))),
                Err(e) if e.is_locked() && Lock::holder_serves(&self.config) => {
                    live::show_running("the running deaddrop does it", &Arc::default());
                    // None means that the process ended without handling the request.
                    let done = ipc::hand_over(&self.config, request, stop);
                    live::clear();
                    if let Some(done) = done? {
                        return Ok(Opened::HandedOver(Box::new(done)));
                    }
                }
                // A process that executes a single reply will soon end.
                Err(e) if e.is_locked() && begun.elapsed() < PATIENCE && !stop.is_asked() => {
                    thread::sleep(Duration::from_millis(20));
                }
                Err(e) => return Err(e),
            }
        }
    }

    /// Handles a request in this process, or through the process that serves the project. The first `known` outcomes of
    /// the turn are not reported again.
    pub(super) fn request(&self, request: Request, stop: &Stop, known: usize) -> Result<Turn> {
        let mut reporter = ProgressReporter::new(self);
        let mut warn = |event: Event<'_>| {
            if let Event::Warning(warning) = event {
                output::warning(warning);
            }
        };
        // A run prints its events. Its progress is reported only with --verbose.
        let is_run = matches!(request, Request::Run { .. } | Request::ResumeRun { .. });
        let observer: &mut dyn Observer =
            if is_run && !output::is_verbose() { &mut warn } else { &mut reporter };
        match self.open_or_hand_over(&request, stop)? {
            Opened::Local(mut engine) => {
                let is_message = matches!(request, Request::Say { .. });
                let turn = ipc::handle(&mut engine, request, observer)?;
                match engine.shut_down() {
                    // After an error, the person would say it again.
                    Err(e) if is_message => output::say(format!(
                        "{e}. Your words are kept; the next start continues from the journal."
                    )),
                    result => result?,
                }
                Ok(turn)
            }
            Opened::HandedOver(done) => {
                report(&request, &done, known, observer);
                Ok(done.turn)
            }
        }
    }

    /// Reports how a turn ended. If it waits for a decision, shows the question. With `asks`, also asks at the terminal
    /// and continues with the answer.
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
                None => return Ok(ExitCode::from(EXIT_WAITS)),
            }
        }
    }

    /// Asks at the terminal for the decision that a session waits for. Returns the turn that follows from the answer,
    /// or from a decision made elsewhere; None without an answer.
    pub(super) fn ask(&self, session: &Session, stop: &Stop) -> Result<Option<Turn>> {
        let Some(question) = session.question().filter(|_| !output::wants_json()) else {
            return Ok(None);
        };
        let Some(prompt) = Prompt::show(question::line(session, false)) else {
            return Ok(None);
        };
        let store = SessionStore::new(&self.config.sessions);
        let answer = loop {
            let answer = prompt.wait(Duration::from_millis(100));
            if answer.is_some() || stop.is_asked() {
                break answer;
            }
            let now = store.load_stem(&session.stem())?;
            if now.question() != Some(question) {
                drop(prompt);
                output::say("It was decided elsewhere.");
                let outbox = now.awaits_reply().then(|| self.config.outbox.join(now.outbox_name()));
                return Ok(Some(Turn { session: now, outbox }));
            }
        };
        drop(prompt);
        match answer {
            Some(answer) if answer != PromptAnswer::EndOfInput => {
                return self.decide(session, answer.decision_on(question), stop).map(Some);
            }
            _ => output::say(NO_ANSWER),
        }
        if answer.is_none() { Err(Error::interrupted()) } else { Ok(None) }
    }

    /// Carries out a decision about the question of `session`.
    pub(super) fn decide(
        &self,
        session: &Session,
        decision: ApprovalDecision,
        stop: &Stop,
    ) -> Result<Turn> {
        let request = Request::Decide { stem: session.stem(), decision: Box::new(decision) };
        self.request(request, stop, output::outcomes(session).len())
    }

    /// Previews the effects of the operation that a session asks about.
    pub(super) fn preview_question(&self, session: &Session) -> QuestionPreview {
        let config = &self.config;
        if !config.workspace.exists() {
            return QuestionPreview::default();
        }
        // This is only a preview. Problems of the workspace are reported when something is executed there.
        Workspace::open(&config.workspace, &config.state(), &config.protected_names)
            .map(|workspace| engine::preview_question(config, &workspace, session))
            .unwrap_or_default()
    }
}

/// Reports the work of another process as if this process had done it.
fn report(request: &Request, done: &RequestResult, known: usize, observer: &mut dyn Observer) {
    let RequestResult { turn: Turn { session, .. }, warnings } = done;
    if let Request::Apply { name, .. } = request {
        let mut answered = session.clone();
        answered.sequence -= u32::from(session.awaits_reply());
        observer.event(Event::ReplyTaken { name: name.as_ref(), session: &answered });
    }
    let reports_outcomes = matches!(request, Request::Apply { .. } | Request::Decide { .. });
    let outcomes = if reports_outcomes { output::outcomes(session) } else { &[] };
    outcomes.iter().skip(known).for_each(|outcome| observer.event(Event::StepDone(outcome)));
    // Warnings of outcomes are reported together with the outcomes.
    let is_reported = |warning: &String| {
        outcomes.iter().flat_map(|outcome| &outcome.warnings).any(|w| w.text == *warning)
    };
    for warning in warnings.iter().filter(|warning| !is_reported(warning)) {
        observer.event(Event::Warning(warning));
    }
}
