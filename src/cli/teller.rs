//! Tells of turns as they happen, and asks what they ask.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::path::Path;

use super::prompt::{Prompt, Said};
use super::talk::{Talk, below, name, not_counted, result, turn_json};
use super::{Context, question, stat};
use crate::base::Turn;
use crate::control::Wish;
use crate::daemon::{Answer, Listener};
use crate::place::Rewritten;
use crate::protocol::{Asks, Detail, Kind, Operation, Outcome, Step, tags};
use crate::session::{Question, Session};
use crate::text::{named, visible_line};
use crate::turn::Observer;

/// Said where the terminal's input ended instead of an answer.
pub(super) const NO_ANSWER: &str = "\nThat is no answer; it still waits for your decision.";

/// Tells of turns as they happen.
pub(super) struct Teller<'a> {
    context: &'a Context,
    /// Whether questions are put at the terminal while other things go on.
    puts: bool,
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
        Self { context, puts: false, open: VecDeque::new(), prompt: None }
    }

    /// Puts questions, too, where there is a terminal.
    pub(super) fn that_asks(context: &'a Context) -> Self {
        Self { puts: !context.json, ..Self::new(context) }
    }

    /// Shows what a session asks.
    pub(super) fn show(&self, session: &Session, changes: &[Rewritten]) {
        let talk = &self.context.talk;
        if talk.quiet {
            talk.warning(&format!("a decision is awaited: {}", question::summary(session)));
        } else {
            let how = question::how(self.context, session);
            talk.say(&format!("\n{}", question::told(talk, session, changes, &how)));
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

impl Observer for Teller<'_> {
    fn recovered(&mut self, told: &str) {
        self.context.talk.warning(told);
    }

    fn noticed(&mut self, told: &str) {
        self.context.talk.warning(told);
    }

    fn begun(&mut self, step: &Step) {
        // Only a command can take a while.
        if let (Kind::Run, Asks::Operation(Operation::Run(run))) = (step.kind(), &step.asks) {
            let name = name(Kind::Run, step.asked.is_some());
            self.context.talk.say(&format!("   ..   {name:<11}  {}", named(&run.command)));
        }
    }

    fn done(&mut self, outcome: &Outcome) {
        let talk = &self.context.talk;
        // What a command did where it may not is no matter of success, nor is an end that is none.
        let minds = outcome.kind == Kind::Run && !outcome.warnings.is_empty()
            || not_counted(outcome).is_some();
        if outcome.success() && !minds {
            talk.say(&talk.outcome(outcome));
        } else {
            Talk::put(&talk.outcome(outcome));
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
    }
}

impl Listener for Teller<'_> {
    fn took(&mut self, name: &OsStr, session: &Session) {
        let talk = &self.context.talk;
        let name = name.to_string_lossy();
        talk.say(&talk.bold(&format!(
            "\n{}, the reply to outbox {} of session {}:",
            visible_line(&name),
            session.sequence,
            session.id
        )));
    }

    fn turned(&mut self, turn: &Turn) {
        self.forget(&turn.session);
        let context = self.context;
        if context.json {
            Context::print_json(&turn_json(context, turn));
        }
        if let Some(line) = turn.session.changed.as_deref().and_then(stat::line) {
            context.talk.say(&line);
        }
        match &turn.outbox {
            None if turn.session.is_complete => context.talk.completed(&turn.session),
            // What it asks is shown by itself.
            None => {}
            Some(path) => {
                let weighed = context.weighed(path, &turn.session);
                context.talk.say(&format!("Next outbox, to paste into the chat{weighed}:"));
                if !context.json {
                    result(&context.display(path));
                }
            }
        }
        if let (Some(_), Some(open)) = (&self.prompt, self.open.front()) {
            // It is far up by now.
            context.talk.prompt(&open.line);
        }
    }

    fn asks(&mut self, session: &Session, changes: &[Rewritten]) {
        self.show(session, changes);
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
            (Said::Yes | Said::No, Some(Open { stem, question, .. })) => {
                Answer::Given { stem, question: Box::new(question), approved: said == Said::Yes }
            }
            _ => {
                self.context.talk.say(NO_ANSWER);
                Answer::None
            }
        }
    }

    fn waits(&mut self, name: &OsStr, session: &Session) {
        let name = name.to_string_lossy();
        self.context.talk.say(&format!(
            "{} waits: session {} goes on with it when you have decided.",
            visible_line(&name),
            session.id
        ));
    }

    fn unheard(&mut self, name: &OsStr, why: &str) {
        self.moved(name, &self.context.config.approvals, "rejected", why);
    }

    fn stuck(&mut self, name: &OsStr, why: &str) {
        let name = name.to_string_lossy();
        self.context.talk.warning(&format!("{} is left where it is: {why}", visible_line(&name)));
    }

    fn fulfilled(&mut self, wish: &Wish, turn: &Turn) {
        let talk = &self.context.talk;
        match wish {
            Wish::Apply { .. } | Wish::Back { .. } => self.turned(turn),
            Wish::Say { .. } => talk.say(&format!(
                "The next outbox of session {} will say what you said elsewhere.",
                turn.session.id
            )),
            Wish::Decide { .. } if turn.session.run.is_none() => self.turned(turn),
            Wish::Decide { .. } => {}
            Wish::Run { .. } | Wish::ResumeRun { .. } if turn.session.pending.is_some() => {
                talk.say(&format!("Run {} waits for a decision.", turn.session.stem()));
            }
            Wish::Run { .. } | Wish::ResumeRun { .. } => {
                talk.say(&format!("Run {} was carried out.", turn.session.stem()));
            }
            Wish::New(_) => talk.say(&format!("Session {} was added.", turn.session.id)),
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
    fn moved(&self, name: &OsStr, from: &Path, folder: &str, why: &str) {
        let name = name.to_string_lossy();
        self.context.talk.warning(&format!(
            "{} was moved to {}: {why}",
            visible_line(&name),
            self.context.display(&from.join(folder))
        ));
    }
}
