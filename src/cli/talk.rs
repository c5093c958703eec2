//! How deaddrop talks: results on standard output, everything else on standard error, in colour
//! where that is wanted.

use std::ffi::OsStr;
use std::io::{self, IsTerminal, Write};

use anstyle::{AnsiColor, Style};

use super::{Color, Global};
use crate::base::Turn;
use crate::control::Wish;
use crate::daemon::Listener;
use crate::protocol::{Detail, Kind, Outcome, Step, tags};
use crate::session::Session;
use crate::text::{indented, named, visible, visible_line};
use crate::turn::Observer;

/// Talks to the person.
#[derive(Debug, Clone)]
pub(super) struct Talk {
    quiet: bool,
    verbose: bool,
    color: bool,
    /// Whether results have colours: they may go elsewhere.
    result_color: bool,
}

/// Prints a result. A reader that has gone away has seen enough.
pub(super) fn result(text: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

impl Talk {
    pub(super) fn new(global: &Global) -> Self {
        let refused = || std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let colored = |is_terminal: bool| match global.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => is_terminal && !refused(),
        };
        Self {
            quiet: global.quiet,
            verbose: global.verbose,
            color: colored(io::stderr().is_terminal()),
            result_color: colored(io::stdout().is_terminal()),
        }
    }

    /// Talks in the colours of standard output.
    pub(super) fn for_results(&self) -> Self {
        Self { color: self.result_color, ..self.clone() }
    }

    /// Says something that `--quiet` silences.
    pub(super) fn say(&self, text: &str) {
        if !self.quiet {
            Self::put(text);
        }
    }

    /// Says what went wrong.
    pub(super) fn error(&self, text: &str) {
        Self::put(&format!("{} {}", self.red("error:"), visible(text)));
    }

    /// Asks the person at the terminal; None where there is none.
    pub(super) fn ask(&self, question: &str) -> Option<String> {
        if self.quiet || !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return None;
        }
        let mut err = io::stderr().lock();
        write!(err, "{question}").and_then(|()| err.flush()).ok()?;
        let mut answer = String::new();
        io::stdin().read_line(&mut answer).ok()?;
        Some(answer)
    }

    /// Says what the person should look at.
    pub(super) fn warning(&self, text: &str) {
        Self::put(&format!("{} {}", self.yellow("warning:"), visible(text)));
    }

    fn put(text: &str) {
        let mut err = io::stderr().lock();
        let _ = writeln!(err, "{text}");
    }

    pub(super) fn red(&self, text: &str) -> String {
        self.paint(text, AnsiColor::Red.on_default().bold())
    }

    pub(super) fn green(&self, text: &str) -> String {
        self.paint(text, AnsiColor::Green.on_default())
    }

    pub(super) fn yellow(&self, text: &str) -> String {
        self.paint(text, AnsiColor::Yellow.on_default())
    }

    pub(super) fn bold(&self, text: &str) -> String {
        self.paint(text, Style::new().bold())
    }

    fn paint(&self, text: &str, style: Style) -> String {
        if self.color { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    /// An outcome in a line, with what belongs to it below.
    pub(super) fn outcome(&self, outcome: &Outcome) -> String {
        let mark = match &outcome.detail {
            Detail::Unknown { .. } => "  ?   ".to_owned(),
            _ if outcome.success() => self.green("  ok  "),
            _ => self.red("FAILED"),
        };
        let name = tags::name(outcome.kind);
        let told = match &outcome.detail {
            Detail::Shown { text } => below(text),
            _ => format!("  {}", tags::summary(outcome)),
        };
        let mut text = if told.starts_with(' ') {
            format!("{mark}  {name:<11}{told}")
        } else {
            format!("{mark}  {name}{told}")
        };
        for warning in &outcome.warnings {
            text.push_str(&format!(
                "\n        {} {}",
                self.yellow("warning:"),
                visible_line(warning)
            ));
        }
        text
    }

    /// What a complete session came to: the summary, and what failed beside it.
    fn completed(&self, session: &Session) {
        let summary = session.summary.as_deref().unwrap_or_default();
        self.say(&format!("{} Session {} is complete.", self.green("Done."), session.id));
        self.say(indented(&visible(summary)).trim_end());
        let failed = session.last_results.iter().filter(|outcome| !outcome.success()).count();
        if failed > 0 {
            let was = if failed == 1 { "was" } else { "were" };
            self.warning(&format!(
                "{} of the last reply failed or {was} not run, see above; `deaddrop resume {} --reopen TEXT` goes on",
                crate::text::count(failed, "command"), session.id
            ));
        }
    }
}

/// A text below the line that it belongs to.
fn below(text: &str) -> String {
    let lines = visible(text);
    let lines = lines.trim_end().lines();
    lines.fold(String::new(), |all, line| {
        format!("{all}\n          {line}").trim_end_matches(' ').to_owned()
    })
}

/// Tells of turns as they happen.
pub(super) struct Teller<'a> {
    pub(super) context: &'a super::Context,
    pub(super) what_next: bool,
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
        if let (Kind::Run, crate::protocol::Asks::Operation(crate::protocol::Operation::Run(run))) =
            (step.kind(), &step.asks)
        {
            self.context.talk.say(&format!("   ..   RUN_COMMAND  {}", named(&run.command)));
        }
    }

    fn done(&mut self, outcome: &Outcome) {
        let talk = &self.context.talk;
        // What a command did where it may not is no matter of success.
        let minds = outcome.kind == Kind::Run && !outcome.warnings.is_empty();
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
        let context = self.context;
        if context.json {
            super::Context::print_json(&turn_json(context, turn));
        }
        match &turn.outbox {
            None => context.talk.completed(&turn.session),
            Some(path) => {
                if self.what_next {
                    context.talk.say("Next outbox, to paste into the chat:");
                }
                if !context.json {
                    result(&context.display(path));
                }
            }
        }
    }

    fn stuck(&mut self, name: &OsStr, why: &str) {
        let name = name.to_string_lossy();
        self.context.talk.warning(&format!("{} is left where it is: {why}", visible_line(&name)));
    }

    fn fulfilled(&mut self, wish: &Wish, turn: &Turn) {
        let talk = &self.context.talk;
        match wish {
            Wish::Apply { .. } => self.turned(turn),
            Wish::Say { .. } => talk.say(&format!(
                "The next outbox of session {} will say what you said elsewhere.",
                turn.session.id
            )),
            Wish::Decide { .. } | Wish::Run { .. } | Wish::ResumeRun { .. } => {
                if turn.session.run.is_none() {
                    self.turned(turn);
                }
            }
            Wish::New(_) => talk.say(&format!("Session {} was added.", turn.session.id)),
        }
    }

    fn held(&mut self, name: &OsStr, why: &str) {
        self.moved(name, "held", why);
    }

    fn rejected(&mut self, name: &OsStr, why: &str) {
        self.moved(name, "rejected", why);
    }
}

impl Teller<'_> {
    fn moved(&self, name: &OsStr, folder: &str, why: &str) {
        let name = name.to_string_lossy();
        self.context.talk.warning(&format!(
            "{} was moved to {}: {why}",
            visible_line(&name),
            self.context.display(&self.context.config.inbox.join(folder))
        ));
    }
}

/// A turn as `--json` gives it.
pub(super) fn turn_json(context: &super::Context, turn: &Turn) -> serde_json::Value {
    let session = &turn.session;
    serde_json::json!({
        "session": session.id,
        "sequence": session.sequence,
        "outbox": turn.outbox.as_ref().map(|path| context.display(path)),
        "isComplete": session.is_complete,
        "summary": session.summary,
        "results": session.last_results.iter().map(outcome_json).collect::<Vec<_>>(),
    })
}

/// An outcome as `--json` gives it.
pub(super) fn outcome_json(outcome: &Outcome) -> serde_json::Value {
    let output = match &outcome.detail {
        Detail::Ran(execution) => Some(tags::output(&execution.output)),
        Detail::Shown { text } => Some(text.clone()),
        _ => None,
    };
    serde_json::json!({
        "line": outcome.line,
        "command": tags::name(outcome.kind),
        "success": outcome.success(),
        "summary": tags::summary(outcome),
        "output": output,
        "warnings": outcome.warnings,
    })
}
