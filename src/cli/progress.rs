//! Reports turns as they happen, and asks their questions.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::sync::Arc;
use std::time::Duration;

use sd_notify::NotifyState;
use serde_json::{Value, json};

use super::output::{Terminal, below, name, outcome_json, result, turn_json};
use super::prompt::{Prompt, Said};
use super::sessions::said;
use super::show::Put;
use super::summary::Mark;
use super::{Context, keyboard, live, notice, question, show, summary};
use crate::daemon::{Answer, Person};
use crate::engine::{Engine, Turn};
use crate::event::{ClipboardNews, Event, Observer, QuestionPreview, Waiting};
use crate::protocol::{Asks, Detail, Kind, Operation, Outcome, Step, tags};
use crate::session::store::SessionStore;
use crate::session::{Question, Session};
use crate::terminal::Styled;
use crate::text::{count, named, visible_line};

/// Said where the terminal's input ended instead of an answer.
pub(super) const NO_ANSWER: &str = "\nNo answer; it still waits for your decision.";

/// Typed with Enter while sessions are served, it copies the newest outbox in its brief form.
pub(super) const BRIEF_KEY: &str = "b";

/// Reports turns as they happen.
pub(super) struct ProgressReporter<'a> {
    context: &'a Context,
    /// Whether questions are asked at the terminal while turns continue.
    puts: bool,
    /// Whether it serves: then each event is printed, and the ends of turns are announced.
    serves: bool,
    /// Of which turn events are: the name of its session's files, and which of its outboxes was answered.
    turn: Option<(String, u32)>,
    /// The open questions; the first one is shown.
    open: VecDeque<Open>,
    prompt: Option<Prompt>,
    /// Sends events to pages, too.
    page: Option<ToPages>,
}

/// Sends an event to the pages that are open.
type ToPages = Box<dyn Fn(&Value)>;

/// What was asked.
struct Open {
    stem: String,
    question: Question,
    /// The line that a person answers.
    line: String,
}

impl<'a> ProgressReporter<'a> {
    /// Only reports.
    pub(super) fn new(context: &'a Context) -> Self {
        let open = VecDeque::new();
        Self { context, puts: false, serves: false, turn: None, open, prompt: None, page: None }
    }

    /// Also asks questions if there is a terminal, and prints events with `--json`.
    pub(super) fn that_serves(context: &'a Context) -> Self {
        let mut reporter = Self::that_serves_once(context);
        reporter.puts = !context.json;
        reporter
    }

    /// The same, and sends events to pages.
    #[cfg(feature = "serve")]
    pub(super) fn for_page(mut self, page: ToPages) -> Self {
        self.page = Some(page);
        self
    }

    /// The same without the questions.
    pub(super) fn that_serves_once(context: &'a Context) -> Self {
        let mut reporter = Self::new(context);
        reporter.serves = true;
        reporter
    }

    /// Prints a warning.
    pub(super) fn warn(&self, told: &str) {
        self.context.ui.warning(told);
        self.emit("warning", || json!({ "message": told }));
    }

    /// Prints as events what happened when the project was opened.
    pub(super) fn repeat(&self, engine: &Engine) {
        for told in &engine.recovery_messages {
            self.emit("warning", || json!({ "message": told }));
        }
        if let Some(turn) = &engine.recovered_turn {
            self.emit_outbox(turn);
            self.emit("end", || {
                let mut value = turn_json(self.context, turn);
                value["recovered"] = true.into();
                value
            });
        }
    }

    /// Prints an event with `--json` while it serves, an object a line, and sends it to pages. docs/scripting.md names
    /// all.
    fn emit(&self, event: &str, value: impl FnOnce() -> Value) {
        if !self.serves || !(self.context.json || self.page.is_some()) {
            return;
        }
        let mut value = value();
        if let (true, Some((session, sequence))) = (value["session"].is_null(), &self.turn) {
            value["session"] = session.as_str().into();
            value["sequence"] = (*sequence).into();
        }
        value["event"] = event.into();
        if self.context.json {
            Context::print_json(&value);
        }
        if let Some(page) = &self.page {
            page(&value);
        }
    }

    /// The newest outbox is written, or the person's words were added to it.
    fn emit_outbox(&self, turn: &Turn) {
        if turn.outbox.is_some() {
            self.emit("outbox", || {
                let value = turn_json(self.context, turn);
                let keys = ["session", "sequence", "outbox", "tokens", "withheld"];
                keys.iter().map(|key| ((*key).to_owned(), value[*key].clone())).collect()
            });
        }
    }

    /// Shows what a session asks.
    pub(super) fn show(&self, session: &Session, preview: &QuestionPreview) {
        let ui = &self.context.ui;
        if ui.quiet {
            ui.warning(&format!("your decision is needed: {}", question::summary(session)));
        } else {
            ui.say(Styled::from("\n") + question::told(self.context, ui, session, preview));
        }
    }

    /// Asks the first open question, unless that is done or nobody can answer.
    fn put(&mut self) {
        let (None, Some(open)) = (&self.prompt, self.open.front()) else { return };
        self.prompt = Prompt::put(&self.context.ui, &open.line);
        if self.prompt.is_none() {
            self.open.clear();
        }
    }

    /// Drops questions that were decided elsewhere.
    fn forget(&mut self, session: &Session) {
        let stem = session.stem();
        let stands = |open: &Open| open.stem != stem || session.question() == Some(&open.question);
        let was_put = self.prompt.is_some() && !self.open.front().is_none_or(stands);
        self.open.retain(stands);
        if was_put {
            self.prompt = None;
            self.context.ui.say("\nIt was decided elsewhere.");
        }
    }
}

impl Drop for ProgressReporter<'_> {
    /// Clears what is drawn in place.
    fn drop(&mut self) {
        live::nothing();
    }
}

impl Observer for ProgressReporter<'_> {
    fn event(&mut self, event: Event<'_>) {
        let (context, ui) = (self.context, &self.context.ui);
        match event {
            Event::TurnBegun { session, reply } => {
                self.turn = Some((session.stem(), session.sequence));
                let is_pending = session.pending.is_some();
                self.emit("begin", || json!({ "reply": reply, "goesOn": is_pending }));
                goes_on();
            }
            Event::StepBegun(step) => self.step_begun(step),
            Event::StepDone(outcome) => self.step_done(outcome),
            Event::TurnEnded(turn) => self.turn_ended(turn),
            Event::Warning(warning) => self.warn(warning),
            Event::Serving => notify_systemd(ui, &NotifyState::Ready),
            Event::Stopping => notify_systemd(ui, &NotifyState::Stopping),
            Event::Idle(waiting) => live::still(waiting_for(context, waiting)),
            Event::ReplyTaken { name, session } => self.reply_taken(name, session),
            Event::ReplyWaits { name, session } => ui.say(format!(
                "{} waits until you have decided; then session {} continues with it.",
                shown(name),
                session.id
            )),
            Event::FileMoved { name, folder, why } => self.warn(&format!(
                "{} was moved to {}: {why}",
                shown(name),
                context.display(folder)
            )),
            Event::FileStuck { name, why } => {
                self.warn(&format!("{} is left where it is: {why}", shown(name)));
            }
            Event::Question { session, preview } => self.question(session, preview),
            Event::WordsAdded(turn) => self.words_added(turn),
            Event::SessionAdded(session) => {
                self.emit(
                    "session",
                    || json!({ "session": session.id, "sequence": session.sequence }),
                );
                ui.say(format!("Session {} was added.", session.id));
            }
            Event::SessionClosed { session, removed } => {
                self.emit("closed", || json!({ "session": session.id, "removed": removed }));
                let done = if removed { "removed" } else { "closed" };
                ui.say(format!("Session {} was {done}.", session.id));
            }
            Event::RunEnded(run) => {
                let waits = run.pending.is_some();
                let told = if waits { "waits for a decision" } else { "was executed" };
                ui.say(format!("Run {} {told}.", run.stem()));
            }
            Event::Clipboard(news) => self.clipboard(news),
        }
    }
}

impl Person for ProgressReporter<'_> {
    fn answer(&mut self) -> Answer {
        self.put();
        self.copy_on_key();
        let Some(prompt) = &self.prompt else { return Answer::None };
        let Some(said) = prompt.wait(Duration::ZERO) else { return Answer::Awaited };
        self.prompt = None;
        match (said, self.open.pop_front()) {
            (Said::Nothing, _) | (_, None) => {
                self.context.ui.say(NO_ANSWER);
                Answer::None
            }
            (said, Some(Open { stem, question, .. })) => {
                Answer::Given { stem, decision: Box::new(said.about(&question)) }
            }
        }
    }
}

impl ProgressReporter<'_> {
    /// Copies the newest outbox in its brief form if the person typed the key for that.
    fn copy_on_key(&self) {
        let is_free = self.puts && self.prompt.is_none();
        if !is_free || keyboard::typed_line().is_none_or(|line| line.trim() != BRIEF_KEY) {
            return;
        }
        live::nothing();
        let open = SessionStore::new(&self.context.config.sessions).open_sessions();
        let newest = open.unwrap_or_default().into_iter().find(Session::awaits_reply);
        let put = |it: Session| show::put(self.context, &it, it.sequence, &Put::Brief);
        if let Some(Err(e)) = newest.map(put) {
            self.warn(&e.to_string());
        }
    }

    fn step_begun(&self, step: &Step) {
        let Asks::Operation(operation) = &step.asks else { return };
        self.context.glimpse.clear();
        let name = name(step.kind(), step.asked.is_some());
        self.emit(
            "start",
            || json!({ "line": step.line, "command": name, "what": what(operation) }),
        );
        if live::is_on() {
            let mut what = what(operation);
            // A guest gives it as a whole.
            if matches!(operation, Operation::Run(_)) && self.context.config.guest.is_some() {
                what += " (output comes at the end)";
            }
            live::running(name, &what, &self.context.glimpse);
        } else if let Operation::Run(run) = operation {
            // Only a command can take a while.
            self.context.ui.say(format!("   ..   {name:<11}  {}", named(&run.command)));
        }
    }

    fn step_done(&self, outcome: &Outcome) {
        self.context.glimpse.clear();
        let ui = &self.context.ui;
        self.emit("operation", || {
            let mut value = outcome_json(outcome);
            value["mark"] = json!(Mark::of(outcome));
            value
        });
        // What a command did where it may not is no matter of success.
        let minds = outcome.kind == Kind::Run && !outcome.warnings.is_empty();
        if outcome.success() && !minds {
            ui.say(ui.outcome(outcome));
        } else {
            Terminal::put(ui.outcome(outcome));
        }
        if let (Detail::Ran(execution), true) = (&outcome.detail, ui.verbose) {
            let output = tags::output(&execution.output);
            if !output.is_empty() {
                ui.say(below(&output).trim_start_matches('\n'));
            }
        }
        goes_on();
    }

    fn reply_taken(&self, name: &OsStr, session: &Session) {
        let ui = &self.context.ui;
        let (name, Session { sequence, id, .. }) = (shown(name), session);
        // Beside others it stands apart from them.
        let gap = if self.serves { "\n" } else { "" };
        let told = format!("{gap}{name}, the reply to outbox {sequence} of session {id}:");
        ui.say(ui.bold(&told));
    }

    fn turn_ended(&mut self, turn: &Turn) {
        self.forget(&turn.session);
        live::nothing();
        let context = self.context;
        if self.serves {
            self.turn = None;
            self.emit_outbox(turn);
            self.emit("end", || turn_json(context, turn));
            notice::turned(context, turn);
        } else if context.json {
            Context::print_json(&turn_json(context, turn));
        }
        if let Some(line) = turn.session.changed.as_deref().and_then(summary::line) {
            context.ui.say(line);
        }
        match &turn.outbox {
            None if turn.session.is_complete => {
                context.ui.completed(&turn.session, &context.config.secrets);
            }
            // What it asks is shown by itself.
            None => {}
            Some(path) => {
                let weighed = context.weighed(&turn.session);
                context.ui.say(format!("Next outbox, to paste into the chat{weighed}:"));
                if !context.json {
                    result(context.display(path));
                }
            }
        }
        if let (Some(_), Some(open)) = (&self.prompt, self.open.front()) {
            // It is far up by now.
            context.ui.prompt(&open.line);
        }
    }

    fn question(&mut self, session: &Session, preview: &QuestionPreview) {
        live::nothing();
        self.show(session, preview);
        self.emit("question", || {
            let waiting = question::to_json(self.context, session);
            json!({ "session": session.stem(), "sequence": session.sequence, "waiting": waiting })
        });
        if self.serves {
            notice::asks(self.context, session);
        }
        if let (true, Some(question)) = (self.puts, session.question()) {
            let (stem, question) = (session.stem(), question.clone());
            self.open.push_back(Open { stem, question, line: question::line(session, true) });
            self.put();
        }
    }

    fn clipboard(&self, news: &ClipboardNews<'_>) {
        let copied = match news {
            ClipboardNews::Copied(path, form, way) => Some((*path, Ok((*form, *way)))),
            ClipboardNews::NotCopied(path, why) => Some((*path, Err(*why))),
            _ => None,
        };
        if let Some((path, done)) = copied {
            self.emit("copied", || show::copied_json(self.context, path, done));
        }
        match show::told(self.context, news) {
            Ok(told) => self.context.ui.say(&told),
            Err(told) => self.warn(&told),
        }
    }

    fn words_added(&self, turn: &Turn) {
        self.emit_outbox(turn);
        let path = turn.outbox.as_ref().map(|path| format!(" {}", self.context.display(path)));
        self.context.ui.say(said(self.context, turn) + &path.unwrap_or_default());
    }
}

/// Tells systemd, if it started this process, that it is ready or about to stop.
fn notify_systemd(ui: &Terminal, state: &NotifyState<'_>) {
    if let Err(e) = sd_notify::notify(std::slice::from_ref(state)) {
        ui.warning(&format!("systemd's socket (NOTIFY_SOCKET) takes no message: {e}"));
    }
}

/// What an operation is about, in a few words.
fn what(operation: &Operation) -> String {
    match operation {
        Operation::Run(run) => named(&run.command),
        Operation::Search { pattern, .. } => named(pattern),
        operation => operation.path().map(|p| format!("'{p}'")).unwrap_or_default(),
    }
}

/// What comes between operations and after them takes a while in a large workspace, or in a guest.
fn goes_on() {
    live::running("", "at work", &Arc::default());
}

/// What is waited for, in a line.
fn waiting_for(context: &Context, Waiting { sessions, unfinished }: &Waiting) -> String {
    let inbox = context.display(&context.config.inbox);
    let asking = sessions.iter().filter(|session| session.question().is_some()).count();
    let open = sessions.len() - asking;
    let mut what = match (unfinished.first(), open, asking) {
        (Some(first), ..) => {
            format!("{} is not finished yet: a program is still writing it", shown(first))
        }
        (None, 0, 0) => {
            format!("No session is open; waiting for `deaddrop new` or files in {inbox}/")
        }
        (None, 0, n) => {
            format!("Waiting for {}: `deaddrop approve` or `deny`", count(n, "decision"))
        }
        (None, 1, 0) => format!("Waiting for a reply in {inbox}/"),
        (None, open, _) => format!("Waiting for replies in {inbox}/ · {}", count(open, "session")),
    };
    if unfinished.is_empty() && open > 0 && asking > 0 {
        what += &format!(" · {}", count(asking, "decision"));
    }
    format!("{what} · Ctrl-C stops")
}

/// The name of a file, for a person.
fn shown(name: &OsStr) -> String {
    visible_line(&name.to_string_lossy()).into_owned()
}
