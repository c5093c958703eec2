//! Prints results on standard output and everything else on standard error, with colours if wanted. [`live`] draws
//! lines in place.

use std::sync::atomic::{AtomicBool, Ordering};

use anstyle::{AnsiColor, Style};
use clap::ColorChoice;

use super::arguments::Global;
use super::prompt::{Prompt, PromptAnswer};
use super::rows::cut_squeezed;
use super::summary::{OutcomeMark, last_output, last_output_line};
use super::{CliContext, live, question, rows};
use crate::engine::Turn;
use crate::error::Error;
use crate::protocol::operations::OPERATION_TYPES;
use crate::protocol::{Detail, Kind, Outcome, Warning, tags};
use crate::session::Session;
use crate::settings::Secrets;
use crate::terminal::{HAS_COLORS, Stream, Styled};
use crate::text::{count, indented, visible_line};

/// The most characters that are shown of the last line of an output.
const MAX_LAST_LINE: usize = 160;

static WANTS_JSON: AtomicBool = AtomicBool::new(false);
static IS_QUIET: AtomicBool = AtomicBool::new(false);
static IS_VERBOSE: AtomicBool = AtomicBool::new(false);

/// Sets how everything is printed from now on.
pub(super) fn begin(global: &Global) {
    WANTS_JSON.store(global.json, Ordering::Relaxed);
    IS_QUIET.store(global.quiet, Ordering::Relaxed);
    IS_VERBOSE.store(global.verbose, Ordering::Relaxed);
    use_colors(global.color);
    if !global.quiet && !global.json && Stream::Err.is_terminal() && can_draw() {
        live::begin();
    }
}

/// Sets whether colours are used.
pub(super) fn use_colors(when: ColorChoice) {
    for stream in [Stream::Out, Stream::Err] {
        let has_colors = match when {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => stream.is_terminal() && can_draw() && !colors_are_refused(),
        };
        HAS_COLORS[stream as usize].store(has_colors, Ordering::Relaxed);
    }
}

/// Whether results are printed as JSON.
pub(super) fn wants_json() -> bool {
    WANTS_JSON.load(Ordering::Relaxed)
}

/// Whether only results, errors and warnings are printed.
pub(super) fn is_quiet() -> bool {
    IS_QUIET.load(Ordering::Relaxed)
}

/// Whether more is printed, such as the output of commands.
pub(super) fn is_verbose() -> bool {
    IS_VERBOSE.load(Ordering::Relaxed)
}

/// Whether results go to a program, not a person: there is no terminal, and colours are not requested.
pub(super) fn results_are_piped() -> bool {
    !HAS_COLORS[Stream::Out as usize].load(Ordering::Relaxed) && !Stream::Out.is_terminal()
}

/// Prints a result. Errors are ignored: if a reader closed the pipe, it needs no more.
pub(super) fn result(text: impl Into<Styled>) {
    let text = text.into();
    live::print_above(|| drop(Stream::Out.line(&text)));
}

/// Prints a result that consists of prose. On a terminal, it is wrapped between words.
pub(super) fn prose(text: impl Into<Styled>) {
    result(wrapped(text.into(), Stream::Out, 0));
}

/// Wraps a text that is printed as a result, with `bar` before each row.
pub(super) fn wrapped_behind(text: &str, bar: &str) -> Styled {
    wrapped(text.into(), Stream::Out, bar.chars().count())
}

/// Wraps a text to the terminal's width minus `indent` columns, if `to` is a terminal that reports its width.
fn wrapped(text: Styled, to: Stream, indent: usize) -> Styled {
    let Some(width) = to.is_terminal().then(rows::reported_width).flatten() else { return text };
    let breaks = rows::wrap(text.as_str(), width.saturating_sub(indent));
    text.with_blanks(&breaks)
}

/// Prints a result for a program without adding a line feed: unchanged, unless it goes to a terminal.
pub(super) fn data(bytes: &[u8]) {
    live::print_above(|| drop(Stream::Out.data(bytes)));
}

/// Prints a result as one line of JSON.
pub(super) fn json(value: &serde_json::Value) {
    json_text(&value.to_string());
}

/// Prints a result that is already JSON.
pub(super) fn json_text(text: &str) {
    live::print_above(|| drop(Stream::Out.json(text)));
}

/// Prints a result, as JSON if requested, otherwise as prose.
#[expect(clippy::needless_pass_by_value, reason = "callers build the value in place")]
pub(super) fn print<T: Into<Styled>>(value: serde_json::Value, text: impl FnOnce() -> T) {
    if wants_json() {
        json(&value);
    } else {
        prose(text());
    }
}

/// Prints an error as JSON, with its stable code.
pub(super) fn json_error(error: &Error) {
    let value =
        serde_json::json!({ "error": { "code": error.code(), "message": error.to_string() } });
    live::print_above(|| drop(Stream::Err.json(&value.to_string())));
}

/// Prints the help or a command line error. An error may quote arguments, so its own styles are removed.
pub(super) fn usage(error: &clap::Error) {
    let text = error.render();
    if !error.use_stderr() {
        let _ = Stream::Out.help(&text);
        return;
    }
    let text = text.to_string();
    let _ = Stream::Err.text(&match text.strip_prefix("error:") {
        Some(rest) => red("error:") + rest,
        None => Styled::from(text),
    });
}

/// Prints a message that `--quiet` silences.
pub(super) fn say(text: impl Into<Styled>) {
    if !is_quiet() {
        message(text);
    }
}

/// Prints an error.
pub(super) fn error(text: &str) {
    message(red("error:") + " " + text);
}

/// Prints a warning.
pub(super) fn warning(text: &str) {
    message(yellow("warning:") + " " + text);
}

/// Prints a message even with `--quiet`.
pub(super) fn message(text: impl Into<Styled>) {
    let text = wrapped(text.into(), Stream::Err, 0);
    live::print_above(|| drop(Stream::Err.line(&text)));
}

/// Asks a yes/no question; None if there is no terminal.
pub(super) fn confirm(question: impl Into<Styled>) -> Option<bool> {
    Prompt::show(question).map(|prompt| prompt.answer() == PromptAnswer::Yes)
}

/// Writes a question and leaves the cursor behind it. Nothing is drawn in place until [`live::release`]. Returns
/// whether the question was written.
pub(super) fn prompt(question: impl Into<Styled>) -> bool {
    // Leave room for the answer.
    let question = wrapped(question.into(), Stream::Err, 2);
    !is_quiet() && live::hold(|| Stream::Err.text(&question).is_ok())
}

pub(super) fn red(text: &str) -> Styled {
    Styled::new(AnsiColor::Red.on_default().bold(), text)
}

pub(super) fn green(text: &str) -> Styled {
    Styled::new(AnsiColor::Green.on_default(), text)
}

fn yellow(text: &str) -> Styled {
    Styled::new(AnsiColor::Yellow.on_default(), text)
}

pub(super) fn bold(text: &str) -> Styled {
    Styled::new(Style::new().bold(), text)
}

/// An outcome as one line. Its last line of output and its warnings follow below.
pub(super) fn outcome(outcome: &Outcome) -> Styled {
    outcome_line(outcome, "  ok  ", &tags::summary(outcome))
}

/// Like [`outcome`], for an operation that is only previewed.
pub(super) fn preview(outcome: &Outcome) -> Styled {
    outcome_line(outcome, "would ", &preview_summary(outcome))
}

/// An outcome as one line. `done` is the mark for success.
fn outcome_line(outcome: &Outcome, done: &str, summary: &str) -> Styled {
    let mark = match &outcome.detail {
        Detail::Unknown { .. } => "  ?     ".into(),
        Detail::Ineffective { .. } => yellow("  --  ") + "  ",
        _ => match OutcomeMark::of(outcome) {
            OutcomeMark::Done => green(&format!("{done}  ")),
            OutcomeMark::Failed => red("FAILED") + "  ",
            OutcomeMark::Refused => red("REFUSED") + " ",
        },
    };
    let name = operation_name(outcome.kind, outcome.asked.is_some());
    let text_after = match &outcome.detail {
        Detail::Shown { text } => indented_below(text),
        _ => format!("  {summary}"),
    };
    let mut text = if text_after.starts_with(' ') {
        mark + format!("{name:<11}{text_after}")
    } else {
        mark + name + text_after
    };
    // With --verbose, the whole output is shown elsewhere.
    let failed = !outcome.success() && !is_verbose();
    if let Some(last) = failed.then(|| last_output_line(outcome)).flatten() {
        text.push(format!("\n          {}", cut_squeezed(&visible_line(&last), MAX_LAST_LINE)));
    }
    for warning in &outcome.warnings {
        text.push("\n        ");
        text.push(yellow("warning:") + " " + &*visible_line(&warning.text));
    }
    text
}

/// Reports a complete session: the end of the last output, the summary, and the number of failed commands.
pub(super) fn report_completed(session: &Session, secrets: &Secrets) {
    if let Some(output) = last_output(&session.last_results, secrets) {
        say(output.trim_end());
    }
    let summary = session.summary.as_deref().unwrap_or_default();
    say(green("Done.") + format!(" Session {} is complete.", session.id));
    say(indented(summary).trim_end());
    let failed = session.last_results.iter().filter(|outcome| !outcome.success()).count();
    if failed > 0 {
        let was = if failed == 1 { "was" } else { "were" };
        warning(&format!(
            "{} of the last reply failed or {was} not run, see above; `deaddrop resume {} --reopen TEXT` continues",
            count(failed, "command"),
            session.id
        ));
    }
}

/// Whether TERM names a terminal that can do more than append text.
fn can_draw() -> bool {
    std::env::var("TERM").is_ok_and(|term| !term.is_empty() && term != "dumb")
}

fn colors_are_refused() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

/// The name of an operation in the dialect of its session.
pub(super) fn operation_name(kind: Kind, in_operations: bool) -> &'static str {
    let mut types = OPERATION_TYPES.into_iter().filter(|_| in_operations);
    types.find(|(_, known)| *known == kind).map_or_else(|| tags::name(kind), |(name, _)| name)
}

/// The effect of a previewed operation, as a phrase after "would".
fn preview_summary(outcome: &Outcome) -> String {
    match &outcome.detail {
        Detail::Shown { .. } => "show it to the user".to_owned(),
        Detail::Created { path, replaced, .. } => {
            format!("{} '{path}'", if *replaced { "replace" } else { "create" })
        }
        Detail::Edited { path, .. } | Detail::Replaced { path, .. } => format!("edit '{path}'"),
        Detail::Read { path, .. } => format!("read '{path}'"),
        Detail::Deleted { path } => format!("delete '{path}'"),
        Detail::Moved { path, to, .. } => format!("move '{path}' to '{to}'"),
        Detail::Listed { .. } => "list files".to_owned(),
        Detail::Found { pattern, .. } => format!("search for {}", crate::text::named(pattern)),
        Detail::ReadLater { path, .. } => format!("show '{path}' in the next outbox"),
        Detail::Completed { .. } => "complete the session".to_owned(),
        Detail::Ran(_)
        | Detail::Ineffective { .. }
        | Detail::Unknown { .. }
        | Detail::Failed(_) => tags::summary(outcome),
    }
}

/// Indents a text below its line. The result begins with a line feed.
pub(super) fn indented_below(text: &str) -> String {
    text.trim_end().lines().fold(String::new(), |all, line| {
        format!("{all}\n          {line}").trim_end_matches(' ').to_owned()
    })
}

/// The outcomes of the newest turn, so far.
pub(super) fn outcomes(session: &Session) -> &[Outcome] {
    session.pending.as_ref().map_or(&session.last_results, |pending| &pending.outcomes)
}

/// A turn as printed by `--json`. docs/scripting.md lists the fields. They may be added, but never renamed or removed.
pub(super) fn turn_json(context: &CliContext, turn: &Turn) -> serde_json::Value {
    let session = &turn.session;
    serde_json::json!({
        "session": session.stem(),
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

/// Like [`outcome_json`], for an operation that is only previewed.
pub(super) fn preview_json(outcome: &Outcome) -> serde_json::Value {
    let mut value = outcome_json(outcome);
    value["summary"] = preview_summary(outcome).into();
    value
}

/// An outcome as printed by `--json`.
pub(super) fn outcome_json(outcome: &Outcome) -> serde_json::Value {
    let output = match &outcome.detail {
        Detail::Ran(execution) => Some(tags::output(&execution.output)),
        Detail::Shown { text } | Detail::Ineffective { summary: text, .. } => Some(text.clone()),
        _ => None,
    };
    let warning = |it: &Warning| serde_json::json!({ "code": it.kind, "message": it.text });
    serde_json::json!({
        "line": outcome.line,
        "command": tags::name(outcome.kind),
        "success": outcome.success(),
        "code": outcome.code(),
        "summary": tags::summary(outcome),
        "output": output,
        "warnings": outcome.warnings.iter().map(warning).collect::<Vec<_>>(),
    })
}
