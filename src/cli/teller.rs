//! Tells of turns as they happen, and asks what they ask.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use sd_notify::NotifyState;

use super::events::Events;
use super::prompt::{Prompt, Said};
use super::talk::{Talk, below, name, outcomes, result, turn_json};
use super::{Context, awaited, clipping, live, notice, question, rows, stat, summary, systemd};
use crate::clipboard;
use crate::daemon::{Answer, Clipped, Listener, Waiting};
use crate::engine::{Engine, Foretold, Turn};
use crate::ipc::Request;
use crate::protocol::{Asks, Detail, Kind, Operation, Outcome, Step, tags};
use crate::runner::Glimpse;
use crate::session::{Question, Session};
use crate::terminal::Styled;
use crate::text::{named, visible_line};
use crate::turn::Observer;

/// Said where the terminal's input ended instead of an answer.
pub(super) const NO_ANSWER: &str = "\nThat is no answer; it still waits for your decision.";

/// Tells of turns as they happen.
pub(super) struct Teller<'a> {
    context: &'a Context,
    /// Whether questions are put at the terminal while other things go on.
    puts: bool,
    /// Whether it serves: then events are told one by one, and the ends of turns are announced.
    serves: bool,
    events: Events,
    /// Shows what a command writes while it runs.
    seen: Arc<Glimpse>,
    /// What was asked here and is not decided, by the name of the session's files: the first of them
    /// is put.
    open: VecDeque<Open>,
    prompt: Option<Prompt>,
}

/// What was asked.
struct Open {
    stem: String,
    question: Question,
    /// The line that a person answers.
    line: String,
}

impl<'a> Teller<'a> {
    /// Tells, and lets others put questions.
    pub(super) fn new(context: &'a Context) -> Self {
        let (events, seen) = (Events::default(), Arc::default());
        Self {
            context,
            puts: false,
            serves: false,
            events,
            seen,
            open: VecDeque::new(),
            prompt: None,
        }
    }

    /// Puts questions, too, where there is a terminal, and tells events where `--json` wants them.
    pub(super) fn that_serves(context: &'a Context) -> Self {
        let mut teller = Self::that_serves_once(context);
        teller.puts = !context.json;
        teller
    }

    /// The same without the questions.
    pub(super) fn that_serves_once(context: &'a Context) -> Self {
        let mut teller = Self::new(context);
        (teller.serves, teller.events) = (true, Events::told(context.json));
        teller
    }

    /// Says what the person should look at.
    pub(super) fn warn(&self, told: &str) {
        self.context.talk.warning(told);
        self.events.warning(told);
    }

    /// Tells as events what was said and done when the project was opened.
    pub(super) fn tell_again(&self, engine: &Engine) {
        engine.recovered.iter().for_each(|told| self.events.warning(told));
        if let Some(turn) = &engine.taken_up {
            self.events.taken_up(self.context, turn);
        }
    }

    /// Shows what a session asks.
    pub(super) fn show(&self, session: &Session, foretold: &Foretold) {
        let talk = &self.context.talk;
        if talk.quiet {
            talk.warning(&format!("a decision is awaited: {}", question::summary(session)));
        } else {
            let how = question::how(self.context, session);
            talk.say(Styled::from("\n") + question::told(talk, session, foretold, &how));
        }
    }

    /// Puts the first open question, unless that is done or nobody can answer.
    fn put(&mut self) {
        let (None, Some(open)) = (&self.prompt, self.open.front()) else { return };
        self.prompt = Prompt::put(&self.context.talk, &open.line);
        if self.prompt.is_none() {
            self.open.clear();
        }
    }

    /// What was decided elsewhere is not to be answered here.
    fn forget(&mut self, session: &Session) {
        let stem = session.stem();
        let stands = |open: &Open| open.stem != stem || session.question() == Some(&open.question);
        let was_put = self.prompt.is_some() && !self.open.front().is_none_or(stands);
        self.open.retain(stands);
        if was_put {
            self.prompt = None;
            self.context.talk.say("\nIt was decided elsewhere.");
        }
    }
}

impl Drop for Teller<'_> {
    /// Who tells nothing more leaves nothing on the terminal that is drawn anew.
    fn drop(&mut self) {
        live::nothing();
    }
}

impl Observer for Teller<'_> {
    fn turn(&mut self, session: &Session, reply: &str) {
        self.events.begin(session, reply);
        self.goes_on();
    }

    fn looks_on(&self) -> Option<Arc<Glimpse>> {
        live::is_on().then(|| Arc::clone(&self.seen))
    }

    fn recovered(&mut self, told: &str) {
        self.warn(told);
    }

    fn noticed(&mut self, told: &str) {
        self.warn(told);
    }

    fn begun(&mut self, step: &Step) {
        let Asks::Operation(operation) = &step.asks else { return };
        let name = name(step.kind(), step.asked.is_some());
        if live::is_on() {
            let what = match operation {
                // A guest gives it as a whole.
                Operation::Run(run) if self.context.config.guest.is_some() => {
                    format!("{} (output comes at the end)", named(&run.command))
                }
                Operation::Run(run) => named(&run.command),
                Operation::Search { pattern, .. } => named(pattern),
                operation => operation.path().map(|p| format!("'{p}'")).unwrap_or_default(),
            };
            self.seen.clear();
            live::running(name, &what, &self.seen);
        } else if let Operation::Run(run) = operation {
            // Only a command can take a while.
            self.context.talk.say(format!("   ..   {name:<11}  {}", named(&run.command)));
        }
    }

    fn done(&mut self, outcome: &Outcome) {
        let talk = &self.context.talk;
        self.events.operation(outcome);
        // What a command did where it may not is no matter of success.
        let minds = outcome.kind == Kind::Run && !outcome.warnings.is_empty();
        if outcome.success() && !minds {
            talk.say(talk.outcome(outcome));
        } else {
            Talk::put(talk.outcome(outcome));
        }
        match &outcome.detail {
            Detail::Ran(execution) if talk.verbose => {
                let output = tags::output(&execution.output);
                if !output.is_empty() {
                    talk.say(below(&output).trim_start_matches('\n'));
                }
            }
            _ => {}
        }
        self.goes_on();
    }
}

impl Listener for Teller<'_> {
    fn serves(&mut self) {
        systemd::notify(&self.context.talk, &NotifyState::Ready);
    }

    fn stops(&mut self) {
        systemd::notify(&self.context.talk, &NotifyState::Stopping);
    }

    fn took(&mut self, name: &OsStr, session: &Session) {
        let talk = &self.context.talk;
        let name = name.to_string_lossy();
        // Beside others it stands apart from them.
        let gap = if self.serves { "\n" } else { "" };
        talk.say(talk.bold(&format!(
            "{gap}{}, the reply to outbox {} of session {}:",
            visible_line(&name),
            session.sequence,
            session.id
        )));
    }

    fn turned(&mut self, turn: &Turn) {
        self.forget(&turn.session);
        live::nothing();
        let context = self.context;
        if self.serves {
            self.events.end(context, turn);
            notice::turned(context, turn);
        } else if context.json {
            Context::print_json(&turn_json(context, turn));
        }
        self.sum_up(turn);
        if let Some(line) = turn.session.changed.as_deref().and_then(stat::line) {
            context.talk.hint(&if live::is_on() { format!("  {line}") } else { line });
        }
        match &turn.outbox {
            None if turn.session.is_complete => {
                context.talk.completed(&turn.session, &context.config.secrets);
            }
            // What it asks is shown by itself.
            None => {}
            Some(path) => {
                let weighed = context.weighed(&turn.session);
                let begins = format!("Next outbox, to paste into the chat{weighed}");
                if live::is_on() {
                    let inbox = context.display(&context.config.inbox);
                    context.talk.say(format!("{begins}; the reply goes to {inbox}/:"));
                } else {
                    context.talk.say(format!("{begins}:"));
                }
                if !context.json {
                    result(context.display(path));
                }
            }
        }
        if let (Some(_), Some(open)) = (&self.prompt, self.open.front()) {
            // It is far up by now.
            context.talk.prompt(&open.line);
        }
    }

    fn asks(&mut self, session: &Session, foretold: &Foretold) {
        live::nothing();
        self.show(session, foretold);
        self.events.question(self.context, session);
        if self.serves {
            notice::asks(self.context, session);
        }
        if let (true, Some(question)) = (self.puts, session.question()) {
            let (stem, question) = (session.stem(), question.clone());
            self.open.push_back(Open { stem, question, line: question::line(session, true) });
            self.put();
        }
    }

    fn answer(&mut self) -> Answer {
        self.put();
        let Some(prompt) = &self.prompt else { return Answer::None };
        let Some(said) = prompt.said() else { return Answer::Awaited };
        self.prompt = None;
        match (said, self.open.pop_front()) {
            (Said::Nothing, _) | (_, None) => {
                self.context.talk.say(NO_ANSWER);
                Answer::None
            }
            (said, Some(Open { stem, question, .. })) => {
                Answer::Given { stem, decision: Box::new(said.about(&question)) }
            }
        }
    }

    fn idle(&mut self, waiting: &Waiting<'_>) {
        if live::is_on() {
            live::still(awaited::lines(self.context, waiting));
        }
    }

    fn waits(&mut self, name: &OsStr, session: &Session) {
        let name = name.to_string_lossy();
        self.context.talk.say(format!(
            "{} waits: session {} goes on with it when you have decided.",
            visible_line(&name),
            session.id
        ));
    }

    fn unheard(&mut self, name: &OsStr, why: &str) {
        self.moved(name, &self.context.config.approvals, "rejected", why);
    }

    fn clipped(&mut self, news: &Clipped<'_>) {
        match news {
            Clipped::Copied(path, way) => self.events.copied(self.context, path, Ok(*way)),
            Clipped::NotCopied(path, passed) => {
                let why = clipboard::told(passed);
                self.events.copied(self.context, path, Err(&why));
            }
            _ => {}
        }
        match clipping::told(self.context, news) {
            Ok(told) => self.context.talk.say(&told),
            Err(told) => self.warn(&told),
        }
    }

    fn stuck(&mut self, name: &OsStr, why: &str) {
        let name = name.to_string_lossy();
        self.warn(&format!("{} is left where it is: {why}", visible_line(&name)));
    }

    fn fulfilled(&mut self, wish: &Request, turn: &Turn) {
        let talk = &self.context.talk;
        match wish {
            Request::Apply { .. } | Request::Back { .. } => self.turned(turn),
            Request::Say { .. } => {
                self.events.outbox(self.context, turn);
                talk.say(&match &turn.outbox {
                    Some(path) => format!(
                        "What you said elsewhere is at the end of {} now: copy it again if you have pasted it already.",
                        self.context.display(path)
                    ),
                    None => format!(
                        "The next outbox of session {} will say what you said elsewhere.",
                        turn.session.id
                    ),
                });
            }
            Request::Decide { .. } if turn.session.run.is_none() => self.turned(turn),
            Request::Decide { .. } => {}
            Request::Close { session, delete } => {
                let done = if *delete { "removed" } else { "closed" };
                talk.say(format!("Session {session} was {done}."));
            }
            Request::Run { .. } | Request::ResumeRun { .. } if turn.session.pending.is_some() => {
                talk.say(format!("Run {} waits for a decision.", turn.session.stem()));
            }
            Request::Run { .. } | Request::ResumeRun { .. } => {
                talk.say(format!("Run {} was carried out.", turn.session.stem()));
            }
            Request::New(_) => talk.say(format!("Session {} was added.", turn.session.id)),
        }
    }

    fn held(&mut self, name: &OsStr, why: &str) {
        self.moved(name, &self.context.config.inbox, "held", why);
    }

    fn rejected(&mut self, name: &OsStr, why: &str) {
        self.moved(name, &self.context.config.inbox, "rejected", why);
    }
}

impl Teller<'_> {
    /// What comes between operations and after them takes a while in a large workspace, or in a guest.
    fn goes_on(&self) {
        self.seen.clear();
        live::running("", "at work", &self.seen);
    }

    /// What a turn came to in a few rows, on a terminal.
    fn sum_up(&self, turn: &Turn) {
        if live::is_on() && turn.session.pending.is_none() {
            let talk = &self.context.talk;
            let rows = summary::rows(
                talk,
                outcomes(&turn.session),
                turn.session.changed.as_deref().and_then(stat::line).is_some(),
                rows::own_width(),
            );
            rows.into_iter().for_each(|row| talk.say(row));
        }
    }

    fn moved(&self, name: &OsStr, from: &Path, folder: &str, why: &str) {
        let name = name.to_string_lossy();
        self.warn(&format!(
            "{} was moved to {}: {why}",
            visible_line(&name),
            self.context.display(&from.join(folder))
        ));
    }
}
