//! How deaddrop talks: results on standard output, everything else on standard error, in colour
//! where that is wanted. Nothing is drawn in place but on a terminal that can, by [`live`].

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

use anstyle::{AnsiColor, Style};

use super::arguments::{Color, Global};
use super::rows::cut;
use super::summary::{Mark, last_of};
use super::{Context, flow, hints, live, question, rows};
use crate::base::Turn;
use crate::protocol::{Detail, Kind, Outcome, Warning, WarningSort, tags};
use crate::session::Session;
use crate::text::{byte_count, count, indented, visible, visible_line};

/// So many characters of the last line of an output are shown.
const LAST_LINE: usize = 160;

/// Talks to the person.
#[derive(Debug, Clone)]
pub(super) struct Talk {
    pub(super) quiet: bool,
    pub(super) verbose: bool,
    color: bool,
    /// Whether results have colours: they may go elsewhere.
    result_color: bool,
    /// What `-C` says, as it is typed.
    base: Option<String>,
}

/// Prints a result. A reader that has gone away has seen enough.
pub(super) fn result(text: &str) {
    live::above(|| {
        let mut out = io::stdout().lock();
        let _ = writeln!(out, "{text}").and_then(|()| out.flush());
    });
}

/// Prints a result that is prose: on a terminal its rows end between words.
pub(super) fn prose(text: &str) {
    result(&in_rows(text, &io::stdout(), 0));
}

/// The rows of a text that is to be printed behind `bar`, as a result.
pub(super) fn rows_of(text: &str, bar: &str) -> String {
    in_rows(text, &io::stdout(), bar.chars().count())
}

/// A text as it is written there, `less` columns in: in rows where that is a terminal that says how
/// wide it is.
fn in_rows(text: &str, to: &impl IsTerminal, less: usize) -> String {
    let width = to.is_terminal().then(rows::terminal).flatten();
    width.map_or_else(|| text.to_owned(), |width| flow::flowed(text, width.saturating_sub(less)))
}

/// Prints a result byte for byte, with no line feed of its own.
pub(super) fn exact(bytes: &[u8]) {
    live::above(|| {
        let mut out = io::stdout().lock();
        let _ = out.write_all(bytes).and_then(|()| out.flush());
    });
}

impl Talk {
    /// Without colours.
    #[cfg(test)]
    pub(super) fn plain() -> Self {
        Self { quiet: false, verbose: false, color: false, result_color: false, base: None }
    }

    pub(super) fn new(global: &Global) -> Self {
        let refused = || std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let colored = |is_terminal: bool| match global.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => is_terminal && !refused(),
        };
        let color = colored(io::stderr().is_terminal());
        if !global.quiet && !global.json && io::stderr().is_terminal() && can_draw() {
            live::begin(color);
        }
        Self {
            quiet: global.quiet,
            verbose: global.verbose,
            color,
            result_color: colored(io::stdout().is_terminal()),
            base: global.base.as_deref().map(hints::typed),
        }
    }

    /// Whether results go to a program and not to a reader: no terminal, and no colours wanted.
    pub(super) fn results_are_piped(&self) -> bool {
        !self.result_color && !io::stdout().is_terminal()
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

    /// The same of words of deaddrop's own that name commands to be typed.
    pub(super) fn hint(&self, text: &str) {
        self.say(&self.in_base(text));
    }

    /// A text with what `-C` says in each command that it names in backquotes.
    pub(super) fn in_base<'a>(&self, text: &'a str) -> Cow<'a, str> {
        hints::in_base(text, self.base.as_deref())
    }

    /// `deaddrop` as it is to be typed before the name of a command.
    pub(super) fn program(&self) -> String {
        self.base.as_ref().map_or_else(|| "deaddrop".into(), |base| format!("deaddrop -C {base}"))
    }

    /// Says what went wrong.
    pub(super) fn error(&self, text: &str) {
        let text = self.in_base(text);
        Self::put(&format!("{} {}", self.red("error:"), visible(&text)));
    }

    /// Asks the person at the terminal; None where there is none.
    pub(super) fn ask(&self, question: &str) -> Option<String> {
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() || !self.prompt(question) {
            return None;
        }
        let mut answer = String::new();
        let read = io::stdin().read_line(&mut answer);
        live::release();
        read.ok().map(|_| answer)
    }

    /// Asks whether the person agrees; None where there is no terminal.
    pub(super) fn agreement(&self, question: &str) -> Option<bool> {
        let answer = self.ask(question)?;
        Some(matches!(answer.trim(), "y" | "Y" | "yes" | "Yes"))
    }

    /// The same where nobody to ask means no.
    pub(super) fn agrees(&self, question: &str) -> bool {
        self.agreement(question) == Some(true)
    }

    /// Writes a question, and leaves the cursor behind it: nothing is drawn in place until
    /// [`live::release`]. Returns whether that could be done.
    pub(super) fn prompt(&self, question: &str) -> bool {
        !self.quiet
            && live::hold(|| {
                // An answer has room behind it.
                let question = in_rows(question, &io::stderr(), 2);
                let mut err = io::stderr().lock();
                write!(err, "{question}").and_then(|()| err.flush()).is_ok()
            })
    }

    /// Says what the person should look at.
    pub(super) fn warning(&self, text: &str) {
        let text = self.in_base(text);
        Self::put(&format!("{} {}", self.yellow("warning:"), visible(&text)));
    }

    pub(super) fn put(text: &str) {
        let text = in_rows(text, &io::stderr(), 0);
        live::above(|| {
            let mut err = io::stderr().lock();
            let _ = writeln!(err, "{text}");
        });
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
        self.line(outcome, "  ok  ", &tags::summary(outcome))
    }

    /// The same of what was not done, but would be.
    pub(super) fn foretold(&self, outcome: &Outcome) -> String {
        self.line(outcome, "would ", &foretold(outcome))
    }

    /// An outcome in a line with this mark and summary.
    fn line(&self, outcome: &Outcome, done: &str, summary: &str) -> String {
        let not_counted = not_counted(outcome);
        let mark = match &outcome.detail {
            Detail::Unknown { .. } => "  ?     ".to_owned(),
            _ if not_counted.is_some() => self.yellow("  --  ") + "  ",
            _ => match Mark::of(outcome) {
                Mark::Done => self.green(&format!("{done}  ")),
                Mark::Failed => self.red("FAILED") + "  ",
                Mark::Refused => self.red("REFUSED") + " ",
            },
        };
        let name = name(outcome.kind, outcome.asked.is_some());
        let told = match (&outcome.detail, not_counted) {
            (_, Some(why)) => format!("  {}", visible_line(why)),
            (Detail::Shown { text }, _) => below(text),
            _ => format!("  {summary}"),
        };
        let mut text = if told.starts_with(' ') {
            format!("{mark}{name:<11}{told}")
        } else {
            format!("{mark}{name}{told}")
        };
        // All of it is shown where the person asked for that, and on a terminal a summary has it.
        let failed = !outcome.success() && !self.verbose && !live::is_on();
        if let Some(last) = failed.then(|| last_of(outcome)).flatten() {
            text.push_str(&format!("\n          {}", cut(&visible_line(&last), LAST_LINE)));
        }
        let beside = |warning: &&Warning| warning.sort != WarningSort::Done;
        for warning in outcome.warnings.iter().filter(beside) {
            text.push_str(&format!(
                "\n        {} {}",
                self.yellow("warning:"),
                visible_line(warning)
            ));
        }
        text
    }

    /// What a complete session came to: the summary, and what failed beside it.
    pub(super) fn completed(&self, session: &Session) {
        let summary = session.summary.as_deref().unwrap_or_default();
        self.say(&format!("{} Session {} is complete.", self.green("Done."), session.id));
        self.say(indented(&visible(summary)).trim_end());
        let failed = session.last_results.iter().filter(|outcome| !outcome.success()).count();
        if failed > 0 {
            let was = if failed == 1 { "was" } else { "were" };
            self.warning(&format!(
                "{} of the last reply failed or {was} not run, see above; `deaddrop resume {} --reopen TEXT` goes on",
                count(failed, "command"), session.id
            ));
        }
    }
}

/// Whether the terminal says that it can do more than print a line after the other.
fn can_draw() -> bool {
    std::env::var("TERM").is_ok_and(|term| !term.is_empty() && term != "dumb")
}

/// What an operation is called in a session of tags, or of operations.
pub(super) fn name(kind: Kind, in_operations: bool) -> &'static str {
    match kind {
        Kind::Message if in_operations => "message",
        Kind::Create if in_operations => "createFile",
        Kind::Edit if in_operations => "editFile",
        Kind::Delete if in_operations => "deleteFile",
        Kind::Read if in_operations => "readFile",
        Kind::Run if in_operations => "shell",
        kind => tags::name(kind),
    }
}

/// Why an end of the session does not count, if it is one that does not.
pub(super) fn not_counted(outcome: &Outcome) -> Option<&str> {
    let found = outcome.warnings.iter().find(|warning| warning.sort == WarningSort::Done);
    found.map(|warning| &**warning)
}

/// What would be done, as it follows "would".
fn foretold(outcome: &Outcome) -> String {
    match &outcome.detail {
        Detail::Shown { .. } => "show it to the user".to_owned(),
        Detail::Created { path, replaced, .. } => {
            format!("{} '{path}'", if *replaced { "replace" } else { "create" })
        }
        Detail::Edited { path, lines: (start, end), inserted, total, .. } => {
            let lines =
                if start == end { format!("line {start}") } else { format!("lines {start}-{end}") };
            let change = match inserted {
                0 => format!("remove {lines}"),
                n => format!("replace {lines} by {}", count(*n, "line")),
            };
            format!("edit '{path}' ({change}; the file has {} then)", count(*total, "line"))
        }
        Detail::Replaced { path, edits, .. } => {
            format!("edit '{path}' ({})", count(*edits, "replacement"))
        }
        Detail::Read { path, size, .. } => format!("read '{path}' ({})", byte_count(*size)),
        Detail::Deleted { path } => format!("delete '{path}'"),
        Detail::Moved { path, to, .. } => format!("move '{path}' to '{to}'"),
        Detail::Listed { .. } => "list files".to_owned(),
        Detail::Found { pattern, .. } => format!("search for {}", crate::text::named(pattern)),
        Detail::ReadLater { path, .. } => format!("show '{path}' in the next outbox"),
        Detail::Completed { .. } => "complete the session".to_owned(),
        Detail::Ran(_) | Detail::Unknown { .. } | Detail::Failed(_) => tags::summary(outcome),
    }
}

/// A text below the line that it belongs to.
pub(super) fn below(text: &str) -> String {
    let lines = visible(text);
    let lines = lines.trim_end().lines();
    lines.fold(String::new(), |all, line| {
        format!("{all}\n          {line}").trim_end_matches(' ').to_owned()
    })
}

/// What came of the newest turn, as far as it is.
pub(super) fn outcomes(session: &Session) -> &[Outcome] {
    session.pending.as_ref().map_or(&session.last_results, |pending| &pending.outcomes)
}

/// A turn as `--json` gives it.
pub(super) fn turn_json(context: &Context, turn: &Turn) -> serde_json::Value {
    let session = &turn.session;
    serde_json::json!({
        "session": session.id,
        "sequence": session.sequence,
        "outbox": turn.outbox.as_ref().map(|path| context.display(path)),
        "tokens": turn.outbox.as_ref().and(session.tokens),
        "withheld": turn.outbox.as_ref().map(|_| &session.withheld),
        "isComplete": session.is_complete,
        "changed": session.changed,
        "summary": session.summary,
        "waiting": question::to_json(context, session),
        "results": outcomes(session).iter().map(outcome_json).collect::<Vec<_>>(),
    })
}

/// The same of what was not done, but would be.
pub(super) fn foretold_json(outcome: &Outcome) -> serde_json::Value {
    let mut value = outcome_json(outcome);
    value["summary"] = foretold(outcome).into();
    value
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
        "warnings": outcome.warnings.iter().map(|warning| &**warning).collect::<Vec<_>>(),
    })
}
