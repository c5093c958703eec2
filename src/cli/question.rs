//! What a turn that waits asks the person, as they read it and as `--json` has it.

use serde_json::{Value, json};

use super::Context;
use super::output::{Terminal, name, preview_json};
use super::patch::{self, diff, rows as diff_rows};
use super::rows::{barred, cut, field, squeezed, width};
use crate::event::QuestionPreview;
use crate::policy::Opens;
use crate::protocol::{Asks, Change, Dialect, Kind, Operation, RelPath, Replacement, ShellCommand};
use crate::session::store::SessionStore;
use crate::session::{Question, Session};
use crate::terminal::Styled;
use crate::text::{count, named, shell_word, visible, visible_line};

/// All that the person should know before they decide: what would be done, why it is asked, and how
/// to decide.
pub(super) fn told(
    context: &Context,
    ui: &Terminal,
    session: &Session,
    preview: &QuestionPreview,
) -> Styled {
    let Some(question) = session.question() else { return Styled::default() };
    let id = visible_line(&question.id);
    let what = kind(session, question.kind);
    let mut text = ui.bold(&format!("{} waits for your decision about {id}: {what}", who(session)));
    text.push("\n");
    let width = width();
    match session.asked_operation() {
        Some(Operation::Run(run)) => text.push(command(run, width)),
        Some(operation) => {
            if let Some(path) = operation.path() {
                push(&mut text, barred(&visible_line(path.as_str()), width));
            }
            if preview.rewritten.is_empty() {
                push(&mut text, written(operation, width));
            }
        }
        None => text.push(whole(ui, session, preview, width)),
    }
    for file in &preview.rewritten {
        push(&mut text, diff_rows(ui, &diff(file), width));
    }
    let ask = &question.ask;
    let why = format!("{} ({})", visible_line(&ask.reason), ask.policy);
    text.push(field("Why", &why, width));
    if let Some(opens) = opens(ask.opens) {
        text.push(field("Opens", &opens, width));
    }
    text.push(begin(session, width));
    text.push(format!("  Decide: {}", how(context, session)));
    text
}

fn push<T: Into<Styled>>(text: &mut Styled, rows: Vec<T>) {
    for row in rows {
        text.push(row);
        text.push("\n");
    }
}

/// What each step of a reply would do, with its commands in full.
fn whole(ui: &Terminal, session: &Session, preview: &QuestionPreview, width: usize) -> Styled {
    let mut text = Styled::default();
    let steps = session.pending.iter().flat_map(|pending| &pending.steps);
    for (step, outcome) in steps.zip(&preview.outcomes) {
        push(&mut text, barred(ui.preview(outcome).as_str(), width));
        if let Asks::Operation(Operation::Run(run)) = &step.asks {
            text.push(command(run, width));
        }
    }
    text
}

/// What an operation brings to write, where it cannot be shown as a change of what is there.
fn written(operation: &Operation, width: usize) -> Vec<String> {
    let mut rows = Vec::new();
    let mut part = |what: &str, text: &str| {
        rows.push(format!("  {what}"));
        if !text.is_empty() {
            rows.extend(barred(visible(text).trim_end_matches('\n'), width));
        }
    };
    match operation {
        Operation::Create { content, .. } => part("becomes", &content.to_text()),
        Operation::Edit { change: Change::Lines { start, end, with, .. }, .. } => {
            part(&format!("its lines {start} to {end} become"), with);
        }
        Operation::Edit {
            change: Change::First(replacements) | Change::Once(replacements),
            ..
        } => {
            for Replacement { old, new } in replacements {
                part("in it", old);
                part("becomes", new);
            }
        }
        Operation::Delete { .. } => part("is deleted", ""),
        Operation::Move { to, .. } => part("becomes", to.as_str()),
        _ => {}
    }
    rows
}

/// How what takes several rows begins: its first may have left the screen.
fn begin(session: &Session, width: usize) -> String {
    let Some((key, about)) = about(session) else { return String::new() };
    let shown = if key == "path" { visible_line(about) } else { visible(about) };
    if barred(shown.trim_end(), width).len() < 2 {
        return String::new();
    }
    let label = if key == "path" { "Path" } else { "Command" };
    let length = count(about.chars().count(), "character");
    let told = format!("  {label}: {length}, begins '");
    let first = cut(&visible_line(about.trim_start()), width - told.len() - 1);
    format!("{told}{first}'\n")
}

/// What is asked in so few words that the line which a person answers has room for it.
pub(super) fn asked(session: &Session, room: usize) -> String {
    let Some(question) = session.question() else { return String::new() };
    let kind = kind(session, question.kind);
    match what(session) {
        Some(what) => format!("{kind} {}", cut(&what, room.saturating_sub(kind.len() + 1).max(16))),
        None => kind.to_owned(),
    }
}

/// The command or the path, in quotes.
fn what(session: &Session) -> Option<String> {
    Some(match about(session)? {
        ("path", path) => format!("'{}'", visible_line(path)),
        (_, command) => named(command),
    })
}

/// The line that a person answers, on one row.
pub(super) fn line(session: &Session, with_id: bool) -> String {
    let end = match session.question() {
        Some(Question { step: None, .. }) => ": do it? [y/N] ",
        Some(Question { ask, .. }) if ask.always => ": do it? [y/N/always/rest] ",
        _ => ": do it? [y/N/rest] ",
    };
    let begin = match session.question() {
        Some(question) if with_id => {
            format!("{} of {}: ", cut(&visible_line(&question.id), 24), session.stem())
        }
        _ => String::new(),
    };
    // The answer has room, too.
    let room = width().saturating_sub(begin.len() + end.len() + 3);
    format!("{begin}{}{end}", asked(session, room))
}

/// A command in full, and all else that is said of it.
fn command(run: &ShellCommand, width: usize) -> Styled {
    let mut text = Styled::default();
    push(&mut text, barred(visible(&run.command).trim_end_matches('\n'), width));
    if let Some(cwd) = &run.cwd {
        text.push(field("In", &visible_line(cwd.as_str()), width));
    }
    for (name, value) in &run.env {
        let set = format!("{}={}", visible_line(name), visible_line(value));
        text.push(field("With", &set, width));
    }
    if let Some(timeout) = run.timeout {
        let asked = format!("asks for a timeout of {} s", timeout.as_secs_f64());
        text.push(field("Time", &asked, width));
    }
    text
}

/// How to decide from elsewhere: which question is meant is said where others wait.
pub(super) fn how(context: &Context, session: &Session) -> String {
    let Some(question) = session.question() else { return String::new() };
    let stem = session.stem();
    // What is not known of the others is told when the person decides.
    let mut others = SessionStore::new(&context.config.sessions).pending().unwrap_or_default();
    others.retain(|other| other.question().is_some() && other.stem() != stem);
    if others.is_empty() {
        return "`deaddrop approve`, or `deaddrop deny --reason TEXT`".to_owned();
    }
    let same = |other: &Session| other.question().is_some_and(|asked| asked.id == question.id);
    let of = if others.iter().any(same) { format!(" --session {stem}") } else { String::new() };
    let id = operand(&question.id);
    format!("`deaddrop approve{of} {id}`, or `deaddrop deny{of} --reason TEXT {id}`")
}

/// A question in a line, for a list.
pub(super) fn summary(session: &Session) -> String {
    let Some(question) = session.question() else { return String::new() };
    let id = visible_line(&question.id);
    let what = what(session).map(|what| format!(" {}", squeezed(&what))).unwrap_or_default();
    format!(
        "{id} of {}: {}{what}: {}",
        who(session).to_lowercase(),
        kind(session, question.kind),
        visible_line(&question.ask.reason)
    )
}

/// What is asked, as `--json` has it; null where nothing is.
pub(super) fn to_json(context: &Context, session: &Session) -> Value {
    let Some(Question { id, kind: asked, ask, digest, .. }) = session.question() else {
        return Value::Null;
    };
    let mut value = json!({
        "operation": id,
        "kind": kind(session, *asked),
        "reason": ask.reason,
        "policy": ask.policy,
        "opens": ask.opens,
    });
    if let Some((key, about)) = about(session) {
        value[key] = about.into();
    }
    value["always"] = ask.always.into();
    value["question"] = digest.as_str().into();
    match session.asked_operation() {
        Some(Operation::Run(run)) => {
            value["cwd"] = run.cwd.as_ref().map(RelPath::as_str).into();
            value["env"] = json!(run.env);
            // In milliseconds, as operations have it.
            let timeout = run.timeout.map(|timeout| u64::try_from(timeout.as_millis()));
            value["timeout"] = timeout.and_then(Result::ok).into();
        }
        Some(_) => {
            // Where the links on the way lead to.
            let preview = context.preview_question(session);
            let real = preview
                .rewritten
                .first()
                .map(|file| context.config.workspace.join(file.path.as_str()));
            value["realPath"] = real.map(|path| path.to_string_lossy().into_owned()).into();
            value["files"] = preview.rewritten.iter().map(patch::to_json).collect();
        }
        None => {
            let QuestionPreview { outcomes, rewritten } = context.preview_question(session);
            value["commands"] = outcomes.iter().map(preview_json).collect();
            value["files"] = rewritten.iter().map(patch::to_json).collect();
        }
    }
    value
}

/// The session or the run, as a sentence begins with it.
pub(super) fn who(session: &Session) -> String {
    match session.run {
        None => format!("Session {}", session.id),
        Some(_) => format!("Run {}", session.stem()),
    }
}

/// What an operation is called in the language of its session.
pub(super) fn kind(session: &Session, kind: Kind) -> &'static str {
    name(kind, session.dialect == Dialect::Operations)
}

/// The command or the path, with the name that it has in JSON.
fn about(session: &Session) -> Option<(&'static str, &str)> {
    match session.asked_operation()? {
        Operation::Run(run) => Some(("command", &run.command)),
        operation => Some(("path", operation.path()?.as_str())),
    }
}

fn opens(opens: Opens) -> Option<String> {
    let Opens { protected, repository } = opens;
    let parts = [
        (protected, "names that otherwise only you can change, for this operation"),
        (repository, "the repository, so that git can write to it"),
    ];
    let parts: Vec<_> = parts.iter().filter(|(opens, _)| *opens).map(|(_, told)| *told).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// A name of a model's as a shell takes it, whatever it is.
fn operand(id: &str) -> String {
    let options_end = if id.starts_with('-') { "-- " } else { "" };
    format!("{options_end}{}", shell_word(&visible_line(id)))
}
