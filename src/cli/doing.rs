//! How a wish is done, here or by the process that serves the folder, and how what it asks is
//! answered.

use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::prompt::{Prompt, Said};
use super::teller::NO_ANSWER;
use super::{Context, Opened, Teller, WAITS, live, question, talk};
use crate::clock::Timestamp;
use crate::daemon::Listener;
use crate::engine::{self, Foretold, Turn};
use crate::error::{Error, Result};
use crate::ipc::{self, Done, Request};
use crate::lock::Lock;
use crate::session::store::Store;
use crate::session::{ApprovalDecision, Session, log};
use crate::text::visible_line;
use crate::turn::Observer;
use crate::watch::Stop;
use crate::workspace::Workspace;

/// How long to wait for a process that carries out a single reply.
const PATIENCE: Duration = Duration::from_secs(10);

impl Context {
    /// Whether deaddrop has been at work here, or a session or a run lies here; also where that cannot be
    /// looked at.
    pub(super) fn has_begun(&self) -> bool {
        let store = Store::new(&self.config.sessions);
        let has = |found: Result<Vec<String>>| found.map_or(true, |found| !found.is_empty());
        self.config.has_begun() || has(store.ids()) || has(store.runs())
    }

    /// Opens the project, or hands `wish` to the process that serves it and gives what came of
    /// that.
    pub(super) fn open_or_hand_over(&self, wish: &Request, stop: &Stop) -> Result<Opened<Done>> {
        self.open_or(stop, || ipc::hand_over(&self.config, wish, stop))
    }

    /// The same; `hand_over` hands what is wished to that process.
    pub(super) fn open_or<T>(
        &self,
        stop: &Stop,
        hand_over: impl Fn() -> Result<Option<T>>,
    ) -> Result<Opened<T>> {
        let begun = Instant::now();
        live::heed(stop);
        loop {
            match self.open(stop.clone()) {
                Ok(engine) => return Ok(Opened::Here(Box::new(engine))),
                Err(e) if e.is_locked() && Lock::holder_serves(&self.config) => {
                    live::running("", "the deaddrop that runs here does it", &Arc::default());
                    // Else it ended and left the wish alone.
                    let done = hand_over();
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

    /// Does what is wished: here, or through the process that serves the folder. `reply` is the
    /// name of the reply that is carried out, if one is; so many of its outcomes are `known`.
    pub(super) fn wish(
        &self,
        wish: Request,
        stop: &Stop,
        reply: Option<&str>,
        known: usize,
    ) -> Result<Turn> {
        let (mut teller, asked) = (Teller::new(self), Timestamp::now());
        let goes_back = matches!(wish, Request::Back { .. });
        match self.open_or_hand_over(&wish, stop)? {
            Opened::Here(mut engine) => {
                let says = matches!(wish, Request::Say { .. });
                let turn = match (reply, wish) {
                    (Some(name), Request::Apply { reply, session, again, force }) => {
                        let chosen = ipc::choose(&mut engine, reply, session.as_deref(), force)?;
                        teller.took(name.as_ref(), &chosen.session);
                        ipc::apply(&mut engine, chosen, again, force, &mut teller)?
                    }
                    (_, wish) => ipc::handle(&mut engine, wish, &mut teller)?,
                };
                match engine.settle() {
                    // Who is told that it failed would say it again.
                    Err(e) if says => self.talk.say(format!(
                        "{e}. What you said is kept all the same; the next start goes on from the journal."
                    )),
                    settled => settled?,
                }
                if goes_back {
                    self.say_which(&turn, asked, false);
                }
                Ok(turn)
            }
            Opened::Elsewhere(done) => {
                let Done { turn, told } = *done;
                let session = &turn.session;
                if let Some(name) = reply {
                    let mut answered = session.clone();
                    answered.sequence -= u32::from(session.awaits_reply());
                    teller.took(name.as_ref(), &answered);
                }
                if matches!(wish, Request::Apply { .. } | Request::Decide { .. }) {
                    let new = talk::outcomes(session).iter().skip(known);
                    new.for_each(|outcome| teller.done(outcome));
                }
                // What was told there is told here, once.
                let outcomes = talk::outcomes(session).iter();
                let beside = outcomes.flat_map(|outcome| &outcome.warnings).map(|told| &*told.text);
                let with_outcomes: Vec<&str> = beside.collect();
                let told = told.iter().filter(|told| !with_outcomes.contains(&told.as_str()));
                told.for_each(|told| teller.noticed(told));
                if goes_back {
                    self.say_which(&turn, asked, true);
                }
                Ok(turn)
            }
        }
    }

    /// Says which replies the turns were that a turn took back, or had stand again, where whoever asked for
    /// it may not know that: another process carried them out meanwhile.
    fn say_which(&self, turn: &Turn, asked: Timestamp, elsewhere: bool) {
        let Some(back) = turn.session.changed.as_deref().and_then(|c| c.back.as_deref()) else {
            return;
        };
        // It is done: what the log cannot tell is only not said.
        let entries = log::read(&self.config.sessions, &turn.session.id).unwrap_or_default();
        for entry in entries.iter().filter(|entry| back.turns.contains(&entry.sequence)) {
            let late = entry.at > asked;
            if elsewhere || late {
                let late = if late { ", which was being carried out when you asked" } else { "" };
                self.talk.say(format!(
                    "Turn {} was the reply {} ({}){late}",
                    entry.sequence,
                    visible_line(&entry.reply),
                    entry.work()
                ));
            }
        }
    }

    /// Tells what a turn came to. Where it waits, shows what it asks, and goes on with what the
    /// person answers at the terminal, if they are to be asked there.
    pub(super) fn conclude(&self, mut turn: Turn, asks: bool, stop: &Stop) -> Result<ExitCode> {
        let mut teller = Teller::new(self);
        loop {
            teller.turned(&turn);
            if stop.is_asked() {
                return Err(Error::interrupted());
            }
            if turn.session.question().is_none() {
                return Ok(ExitCode::SUCCESS);
            }
            teller.show(&turn.session, &self.foretell(&turn.session));
            let next = if asks { self.ask(&turn.session, stop)? } else { None };
            match next {
                Some(next) => turn = next,
                None => return Ok(ExitCode::from(WAITS)),
            }
        }
    }

    /// Goes on with what the person answers at the terminal to a question that was shown.
    pub(super) fn answer(&self, session: &Session, stop: &Stop) -> Result<ExitCode> {
        match self.ask(session, stop)? {
            Some(turn) => self.conclude(turn, true, stop),
            None => Ok(ExitCode::from(WAITS)),
        }
    }

    /// Asks at the terminal about what was shown, and gives what came of the answer, or of a
    /// decision elsewhere. None where there is no answer.
    pub(super) fn ask(&self, session: &Session, stop: &Stop) -> Result<Option<Turn>> {
        if self.json {
            return Ok(None);
        }
        let Some(prompt) = Prompt::put(&self.talk, question::line(session, false)) else {
            return Ok(None);
        };
        let store = Store::new(&self.config.sessions);
        loop {
            match prompt.wait(Duration::from_millis(100)) {
                Some(Said::Nothing) => {
                    self.talk.say(NO_ANSWER);
                    return Ok(None);
                }
                Some(said) => {
                    drop(prompt);
                    let question = session.question();
                    let decision = question.map(|question| said.about(question));
                    return self.decide(session, decision, stop).map(Some);
                }
                None if stop.is_asked() => return Err(Error::interrupted()),
                None => {}
            }
            let now = store.load_stem(&session.stem())?;
            if now.question() != session.question() {
                self.talk.say("\nIt was decided elsewhere.");
                let outbox = now.awaits_reply().then(|| self.config.outbox.join(now.outbox_name()));
                return Ok(Some(Turn { session: now, outbox }));
            }
        }
    }

    /// Has done what follows from a decision about what `session` asks, if it asks anything.
    pub(super) fn decide(
        &self,
        session: &Session,
        decision: Option<ApprovalDecision>,
        stop: &Stop,
    ) -> Result<Turn> {
        let stem = session.stem();
        let decision = decision.ok_or_else(|| Error::nothing_pending(&stem))?;
        let wish = Request::Decide { stem, decision: Box::new(decision) };
        self.wish(wish, stop, None, talk::outcomes(session).len())
    }

    /// What would come of what a session asks about.
    pub(super) fn foretell(&self, session: &Session) -> Foretold {
        let config = &self.config;
        if !config.workspace.exists() {
            return Foretold::default();
        }
        // It is only shown: what is wrong with the workspace is told when something is done there.
        Workspace::open(&config.workspace, &config.state(), &config.protected_names)
            .map(|workspace| engine::foretell(config, &workspace, session))
            .unwrap_or_default()
    }
}
