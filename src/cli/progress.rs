//! Reports turns as they happen, and asks their questions.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::sync::Arc;
use std::time::Duration;

use sd_notify::NotifyState;
use serde_json::{Value, json};

use super::output::{indented_below, operation_name, outcome_json, result, turn_json};
use super::prompt::{Prompt, PromptAnswer};
use super::sessions::words_message;
use super::summary::OutcomeMark;
use super::{CliContext, keyboard, live, notice, output, question, show, summary};
use crate::clipboard::{self, ClipboardSetup};
use crate::daemon::{Answer, Person};
use crate::engine::{Engine, Turn, pasted_outbox};
use crate::event::{ClipboardNews, Event, Observer, QuestionPreview, Waiting};
use crate::program::Programs;
use crate::protocol::{Detail, Kind, Operation, Outcome, Step, StepContent, tags};
use crate::session::store::SessionStore;
use crate::session::{Question, Session};
use crate::terminal::Styled;
use crate::text::{count, named, visible_line};

/// The message if the terminal's input ends without an answer.
pub(super) const NO_ANSWER: &str = "No answer; it still waits for your decision.";

/// While sessions are served, this key and Enter copy the newest outbox in its brief form.
pub(super) const BRIEF_KEY: &str = "b";

/// Reports turns as they happen.
pub(super) struct ProgressReporter<'a> {
    context: &'a CliContext,
    /// Whether questions are asked at the terminal while turns continue.
    asks: bool,
    /// Whether sessions are served. Then `--json` prints events, and the person is notified when a turn ends.
    serves: bool,
    /// The turn of the current events: the stem of its session, and the number of the answered outbox.
    turn: Option<(String, u32)>,
    /// The open questions. The first one is shown.
    open: VecDeque<OpenQuestion>,
    prompt: Option<Prompt>,
    /// Sends events to pages as well.
    page: Option<PageSender>,
}

/// Sends an event to all open pages.
type PageSender = Box<dyn Fn(&Value)>;

/// A question that waits for an answer at the terminal.
struct OpenQuestion {
    stem: String,
    question: Question,
    /// The line that the person answers.
    line: String,
}

impl<'a> ProgressReporter<'a> {
    /// A reporter that asks no questions and prints no events.
    pub(super) fn new(context: &'a CliContext) -> Self {
        let open = VecDeque::new();
        Self { context, asks: false, serves: false, turn: None, open, prompt: None, page: None }
    }

    /// A reporter for serving: `--json` also prints events. With `asks`, questions are asked if there is a terminal.
    pub(super) fn serving(context: &'a CliContext, asks: bool) -> Self {
        let mut reporter = Self::new(context);
        (reporter.serves, reporter.asks) = (true, asks && !output::wants_json());
        reporter
    }

    /// Also sends events to pages.
    #[cfg(feature = "serve")]
    pub(super) fn for_page(mut self, page: PageSender) -> Self {
        self.page = Some(page);
        self
    }

    /// Prints a warning.
    pub(super) fn warn(&self, message: &str) {
        output::warning(message);
        self.emit("warning", || json!({ "message": message }));
    }

    /// Prints events about what happened when the project was opened.
    pub(super) fn report_opening(&self, engine: &Engine) {
        for message in &engine.recovery_messages {
            self.emit("warning", || json!({ "message": message }));
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

    /// While serving, prints an event with `--json` (one object per line) and sends it to pages. docs/scripting.md
    /// lists all events.
    fn emit(&self, event: &str, value: impl FnOnce() -> Value) {
        if !self.serves || !(output::wants_json() || self.page.is_some()) {
            return;
        }
        let mut value = value();
        if let (true, Some((session, sequence))) = (value["session"].is_null(), &self.turn) {
            value["session"] = session.as_str().into();
            value["sequence"] = (*sequence).into();
        }
        value["event"] = event.into();
        if output::wants_json() {
            output::json(&value);
        }
        if let Some(page) = &self.page {
            page(&value);
        }
    }

    /// Emits that the newest outbox was written, or that a message from the person was added to it.
    fn emit_outbox(&self, turn: &Turn) {
        if turn.outbox.is_some() {
            self.emit("outbox", || {
                let value = turn_json(self.context, turn);
                let keys = ["session", "sequence", "outbox", "tokens", "withheld"];
                keys.iter().map(|key| ((*key).to_owned(), value[*key].clone())).collect()
            });
        }
    }

    /// Shows the question of a session.
    pub(super) fn show(&self, session: &Session, preview: &QuestionPreview) {
        if output::is_quiet() {
            output::warning(&format!("your decision is needed: {}", question::summary(session)));
        } else {
            output::say(Styled::from("\n") + question::describe(self.context, session, preview));
        }
    }

    /// Asks the first open question, unless a question is being asked. Without a terminal, drops all questions.
    fn ask_next(&mut self) {
        let (None, Some(open)) = (&self.prompt, self.open.front()) else { return };
        self.prompt = Prompt::show(&open.line);
        if self.prompt.is_none() {
            self.open.clear();
        }
    }

    /// Drops the questions of a session that were decided elsewhere: all except the question that it asks `now`.
    fn drop_decided(&mut self, stem: &str, now: Option<&Question>) {
        let is_open = |open: &OpenQuestion| open.stem != stem || now == Some(&open.question);
        let was_asked = self.prompt.is_some() && !self.open.front().is_none_or(is_open);
        self.open.retain(is_open);
        if was_asked {
            self.prompt = None;
            output::say("It was decided elsewhere.");
        }
    }
}

impl Drop for ProgressReporter<'_> {
    /// Erases the line that is drawn in place.
    fn drop(&mut self) {
        live::clear();
    }
}

impl Observer for ProgressReporter<'_> {
    fn event(&mut self, event: Event<'_>) {
        let context = self.context;
        match event {
            Event::TurnBegun { session, reply } => {
                self.turn = Some((session.stem(), session.sequence));
                let is_pending = session.pending.is_some();
                self.drop_decided(&session.stem(), None);
                self.emit("begin", || json!({ "reply": reply, "goesOn": is_pending }));
                show_at_work();
            }
            Event::StepBegun(step) => self.step_begun(step),
            Event::StepDone(outcome) => self.step_done(outcome),
            Event::TurnEnded(turn) => self.turn_ended(turn),
            Event::Warning(warning) => self.warn(warning),
            Event::Serving => notify_systemd(&NotifyState::Ready),
            Event::Stopping => notify_systemd(&NotifyState::Stopping),
            Event::Idle(waiting) => live::show_waiting(waiting_for(context, waiting)),
            Event::ReplyTaken { name, session } => self.reply_taken(name, session),
            Event::ReplyWaits { name, session } => output::say(format!(
                "{} waits until you have decided; then session {} continues with it.",
                visible_name(name),
                session.id
            )),
            Event::FileMoved { name, folder, why } => self.warn(&format!(
                "{} was moved to {}: {why}",
                visible_name(name),
                context.display(folder)
            )),
            Event::FileStuck { name, why } => {
                self.warn(&format!("{} is left where it is: {why}", visible_name(name)));
            }
            Event::Question { session, preview } => self.question(session, preview),
            Event::WordsAdded(turn) => self.words_added(turn),
            Event::SessionAdded(session) => {
                self.emit(
                    "session",
                    || json!({ "session": session.id, "sequence": session.sequence }),
                );
                output::say(format!("Session {} was added.", session.id));
            }
            Event::SessionClosed { session, removed } => {
                self.emit("closed", || json!({ "session": session.id, "removed": removed }));
                let done = if removed { "removed" } else { "closed" };
                output::say(format!("Session {} was {done}.", session.id));
            }
            Event::RunEnded(run) => {
                let waits = run.pending.is_some();
                let told = if waits { "waits for a decision" } else { "was executed" };
                output::say(format!("Run {} {told}.", run.stem()));
            }
            Event::Clipboard(news) => self.clipboard(news),
        }
    }
}

impl Person for ProgressReporter<'_> {
    fn answer(&mut self) -> Answer {
        self.ask_next();
        self.copy_on_key();
        let Some(prompt) = &self.prompt else { return Answer::None };
        let Some(answer) = prompt.wait(Duration::ZERO) else { return Answer::Awaited };
        self.prompt = None;
        match (answer, self.open.pop_front()) {
            (PromptAnswer::EndOfInput, _) | (_, None) => {
                output::say(NO_ANSWER);
                Answer::None
            }
            (answer, Some(OpenQuestion { stem, question, .. })) => {
                Answer::Given { stem, decision: Box::new(answer.decision_on(&question)) }
            }
        }
    }
}

impl ProgressReporter<'_> {
    /// Copies the newest outbox in its brief form if the person typed [`BRIEF_KEY`].
    fn copy_on_key(&self) {
        let is_free = self.asks && self.prompt.is_none();
        let Some(line) = is_free.then(keyboard::typed_line).flatten() else { return };
        live::erase_typed();
        if line.trim() != BRIEF_KEY {
            return;
        }
        let config = &self.context.config;
        let open = SessionStore::new(&config.sessions).open_sessions();
        let newest = open.unwrap_or_default().into_iter().find(Session::awaits_reply);
        let Some(session) = newest else { return };
        let copied = pasted_outbox(config, &session, session.sequence, true)
            .map_err(|e| e.to_string())
            .and_then(|(text, form)| {
                let setup = ClipboardSetup::current(Programs::of(config));
                Ok((form, clipboard::copy(&text, &setup)?))
            });
        let path = config.outbox.join(session.outbox_name());
        self.clipboard(&ClipboardNews::Copied(&(path, copied)));
    }

    fn step_begun(&self, step: &Step) {
        let StepContent::Operation(operation) = &step.asks else { return };
        self.context.live_output.clear();
        let name = operation_name(step.kind(), step.asked.is_some());
        self.emit(
            "start",
            || json!({ "line": step.line, "command": name, "what": operation_subject(operation) }),
        );
        if live::is_on() {
            let mut what = operation_subject(operation);
            // A guest sends the output only when the command has ended.
            if matches!(operation, Operation::Run(_)) && self.context.config.guest.is_some() {
                what += " (output comes at the end)";
            }
            live::show_running(&format!("{name:<11}  {what}"), &self.context.live_output);
        } else if let Operation::Run(run) = operation {
            // Only a command can take long.
            output::say(format!("   ..   {name:<11}  {}", named(&run.command)));
        }
    }

    fn step_done(&self, outcome: &Outcome) {
        self.context.live_output.clear();
        self.emit("operation", || {
            let mut value = outcome_json(outcome);
            value["mark"] = json!(OutcomeMark::of(outcome));
            value
        });
        // Warnings about a command, such as changed protected files, matter even if the command succeeded.
        let has_warnings = outcome.kind == Kind::Run && !outcome.warnings.is_empty();
        if outcome.success() && !has_warnings {
            output::say(output::outcome(outcome));
        } else {
            output::message(output::outcome(outcome));
        }
        if let (Detail::Ran(execution), true) = (&outcome.detail, output::is_verbose()) {
            let output = tags::output(&execution.output);
            if !output.is_empty() {
                output::say(indented_below(&output).trim_start_matches('\n'));
            }
        }
        show_at_work();
    }

    fn reply_taken(&self, name: &OsStr, session: &Session) {
        let (name, Session { sequence, id, .. }) = (visible_name(name), session);
        // While serving, a blank line separates turns.
        let gap = if self.serves { "\n" } else { "" };
        let told = format!("{gap}{name}, the reply to outbox {sequence} of session {id}:");
        output::say(output::bold(&told));
    }

    fn turn_ended(&mut self, turn: &Turn) {
        self.drop_decided(&turn.session.stem(), turn.session.question());
        live::clear();
        let context = self.context;
        if self.serves {
            self.turn = None;
            self.emit_outbox(turn);
            self.emit("end", || turn_json(context, turn));
            notice::turn_ended(context, turn);
        } else if output::wants_json() {
            output::json(&turn_json(context, turn));
        }
        let session = &turn.session;
        let changed = session.changed.as_deref();
        if let Some(line) = changed.and_then(|it| summary::changes_line(it, &session.id)) {
            output::say(line);
        }
        match &turn.outbox {
            None if turn.session.is_complete => {
                output::report_completed(&turn.session, &context.config.secrets);
            }
            // `question` shows the question.
            None => {}
            Some(path) => {
                let token_note = context.token_note(&turn.session);
                output::say(format!("Next outbox, to paste into the chat{token_note}:"));
                if !output::wants_json() {
                    result(context.display(path));
                }
            }
        }
        if let (Some(_), Some(open)) = (&self.prompt, self.open.front()) {
            // The question has scrolled away, so repeat it.
            output::prompt(&open.line);
        }
    }

    fn question(&mut self, session: &Session, preview: &QuestionPreview) {
        live::clear();
        self.show(session, preview);
        self.emit("question", || {
            let waiting = question::to_json(self.context, session);
            json!({ "session": session.stem(), "sequence": session.sequence, "waiting": waiting })
        });
        if self.serves {
            notice::decision_needed(self.context, session);
        }
        if let (true, Some(question)) = (self.asks, session.question()) {
            let (stem, question) = (session.stem(), question.clone());
            self.open.push_back(OpenQuestion {
                stem,
                question,
                line: question::line(session, true),
            });
            self.ask_next();
        }
    }

    fn clipboard(&self, news: &ClipboardNews<'_>) {
        if let ClipboardNews::Copied(copied) = news {
            self.emit("copied", || show::copied_json(self.context, copied));
        }
        match show::clipboard_message(self.context, news) {
            Ok(message) => output::say(&message),
            Err(message) => self.warn(&message),
        }
    }

    fn words_added(&self, turn: &Turn) {
        self.emit_outbox(turn);
        let path = turn.outbox.as_ref().map(|path| format!(" {}", self.context.display(path)));
        output::say(words_message(self.context, turn) + &path.unwrap_or_default());
    }
}

/// If systemd started this process, reports to it that the process is ready or about to stop.
fn notify_systemd(state: &NotifyState<'_>) {
    if let Err(e) = sd_notify::notify(std::slice::from_ref(state)) {
        output::warning(&format!("systemd's socket (NOTIFY_SOCKET) takes no message: {e}"));
    }
}

/// The subject of an operation: its command, pattern or path.
fn operation_subject(operation: &Operation) -> String {
    match operation {
        Operation::Run(run) => named(&run.command),
        Operation::Search { pattern, .. } => named(pattern),
        operation => operation.path().map(|p| format!("'{p}'")).unwrap_or_default(),
    }
}

/// Shows that deaddrop is working. Between and after operations, a large workspace or a guest may take long.
fn show_at_work() {
    live::show_running("at work", &Arc::default());
}

/// Describes in one line what the process waits for.
fn waiting_for(context: &CliContext, Waiting { sessions, unfinished }: &Waiting) -> String {
    let inbox = context.display(&context.config.inbox);
    let asking = sessions.iter().filter(|session| session.question().is_some()).count();
    let open = sessions.len() - asking;
    let mut what = match (unfinished.first(), open, asking) {
        (Some(first), ..) => {
            format!("{} is not finished yet: a program is still writing it", visible_name(first))
        }
        (None, 0, 0) => {
            format!("No session is open; waiting for `deaddrop new` or files in {inbox}/")
        }
        (None, 0, n) => {
            format!("Waiting for {}: `deaddrop approve` or `deny`", count(n, "decision"))
        }
        (None, 1, 0) => format!("Waiting for a reply in {inbox}/"),
        (None, ..) => format!("Waiting for replies in {inbox}/"),
    };
    if unfinished.is_empty() && open > 0 && asking > 0 {
        what += &format!(" · {}", count(asking, "decision"));
    }
    format!("{what} · Ctrl-C stops")
}

/// A file name with all characters visible.
fn visible_name(name: &OsStr) -> String {
    visible_line(&name.to_string_lossy()).into_owned()
}
