//! The question of a turn that waits for a decision, as text and as JSON.

use serde_json::{Value, json};

use super::CliContext;
use super::output::{self, operation_name, preview_json};
use super::patch::{self, diff, diff_rows};
use super::rows::{behind_bar, cut_squeezed, field, squeeze_blanks, text_width};
use crate::event::QuestionPreview;
use crate::policy::Grant;
use crate::protocol::{
    Change, Dialect, Kind, Operation, RelPath, Replacement, ShellCommand, StepContent,
};
use crate::session::store::SessionStore;
use crate::session::{Question, Session};
use crate::terminal::Styled;
use crate::text::{count, named, shell_word, visible, visible_line};

/// Everything that the person should know before the decision: the operation, the reason, and how to decide.
pub(super) fn describe(
    context: &CliContext,
    session: &Session,
    preview: &QuestionPreview,
) -> Styled {
    let Some(question) = session.question() else { return Styled::default() };
    let id = visible_line(&question.id);
    let what = operation_kind(session, question.kind);
    let mut text = output::bold(&format!(
        "{} waits for your decision about {id}: {what}",
        session_label(session)
    ));
    text.push("\n");
    let width = text_width();
    match session.asked_operation() {
        Some(Operation::Run(run)) => text.push(command_rows(run, width)),
        Some(operation) => {
            if let Some(path) = operation.path() {
                text.push(behind_bar(&visible_line(path.as_str()), width));
            }
            if preview.rewritten.is_empty() {
                text.push(new_content(operation, width));
            }
        }
        None => text.push(steps(session, preview, width)),
    }
    for file in &preview.rewritten {
        text.push(diff_rows(&diff(file), width));
    }
    let ask = &question.ask;
    let why = format!("{} ({})", visible_line(&ask.reason), ask.policy);
    text.push(field("Why", &why, width));
    if let Some(opens) = describe_grants(ask.opens) {
        text.push(field("Opens", &opens, width));
    }
    text.push(long_subject(session, width));
    text.push(format!("  Decide: {}", how_to_decide(context, session)));
    text
}

/// The effects of each step of a reply, with complete commands.
fn steps(session: &Session, preview: &QuestionPreview, width: usize) -> Styled {
    let mut text = Styled::default();
    let steps = session.pending.iter().flat_map(|pending| &pending.steps);
    for (step, outcome) in steps.zip(&preview.outcomes) {
        text.push(behind_bar(output::preview(outcome).as_str(), width));
        if let StepContent::Operation(Operation::Run(run)) = &step.asks {
            text.push(command_rows(run, width));
        }
    }
    text
}

/// The new content in an operation that cannot be shown as a change of a file.
fn new_content(operation: &Operation, width: usize) -> String {
    let mut rows = String::new();
    let mut part = |what: &str, text: &str| {
        rows.push_str(&format!("  {what}\n"));
        if !text.is_empty() {
            rows.push_str(&behind_bar(visible(text).trim_end_matches('\n'), width));
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

/// Repeats the beginning of a command or path of several rows, since its first row may have left the screen.
fn long_subject(session: &Session, width: usize) -> String {
    let Some((key, subject)) = subject(session) else { return String::new() };
    let shown = if key == "path" { visible_line(subject) } else { visible(subject) };
    if behind_bar(shown.trim_end(), width).lines().count() < 2 {
        return String::new();
    }
    let label = if key == "path" { "Path" } else { "Command" };
    let length = count(subject.chars().count(), "character");
    let lead = format!("  {label}: {length}, begins '");
    let first = cut_squeezed(&visible_line(subject.trim_start()), width - lead.len() - 1);
    format!("{lead}{first}'\n")
}

/// The command or path, in quotes.
fn quoted_subject(session: &Session) -> Option<String> {
    Some(match subject(session)? {
        ("path", path) => format!("'{}'", visible_line(path)),
        (_, command) => named(command),
    })
}

/// The line that the person answers, in one row.
pub(super) fn line(session: &Session, with_id: bool) -> String {
    let Some(question) = session.question() else { return String::new() };
    let id = cut_squeezed(&visible_line(&question.id), 24);
    let of = if with_id { format!("{id} of {}: ", session.stem()) } else { String::new() };
    let begin = of + operation_kind(session, question.kind);
    let end = match question {
        Question { step: None, .. } => ": do it? [y/N] ",
        Question { ask, .. } if ask.always => ": do it? [y/N/always/rest] ",
        _ => ": do it? [y/N/rest] ",
    };
    // Leave room for the answer.
    let room = text_width().saturating_sub(begin.len() + end.len() + 4).max(16);
    let what = quoted_subject(session).map(|what| format!(" {}", cut_squeezed(&what, room)));
    format!("{begin}{}{end}", what.unwrap_or_default())
}

/// The complete command, with its folder, variables and timeout.
fn command_rows(run: &ShellCommand, width: usize) -> String {
    let mut text = behind_bar(visible(&run.command).trim_end_matches('\n'), width);
    if let Some(cwd) = &run.cwd {
        text += &field("In", &visible_line(cwd.as_str()), width);
    }
    for (name, value) in &run.env {
        let set = format!("{}={}", visible_line(name), visible_line(value));
        text += &field("With", &set, width);
    }
    if let Some(timeout) = run.timeout {
        let asked = format!("asks for a timeout of {} s", timeout.as_secs_f64());
        text += &field("Time", &asked, width);
    }
    text
}

/// Describes how to decide by a command. It names the question if other questions also wait.
pub(super) fn how_to_decide(context: &CliContext, session: &Session) -> String {
    let Some(question) = session.question() else { return String::new() };
    let stem = session.stem();
    // Errors in reading the other questions are reported when the person decides.
    let mut others = SessionStore::new(&context.config.sessions).pending().unwrap_or_default();
    others.retain(|other| other.question().is_some() && other.stem() != stem);
    if others.is_empty() {
        return "`deaddrop approve`, or `deaddrop deny --reason TEXT`".to_owned();
    }
    let same = |other: &Session| other.question().is_some_and(|asked| asked.id == question.id);
    let of = if others.iter().any(same) { format!(" --session {stem}") } else { String::new() };
    let id = shell_operand(&question.id);
    format!("`deaddrop approve{of} {id}`, or `deaddrop deny{of} --reason TEXT {id}`")
}

/// A question as one line of a list.
pub(super) fn summary(session: &Session) -> String {
    let Some(question) = session.question() else { return String::new() };
    let id = visible_line(&question.id);
    let what = quoted_subject(session)
        .map(|what| format!(" {}", squeeze_blanks(&what)))
        .unwrap_or_default();
    format!(
        "{id} of {}: {}{what}: {}",
        session_label(session).to_lowercase(),
        operation_kind(session, question.kind),
        visible_line(&question.ask.reason)
    )
}

/// The question as printed by `--json`; null if there is none.
pub(super) fn to_json(context: &CliContext, session: &Session) -> Value {
    let Some(Question { id, kind: asked, ask, digest, .. }) = session.question() else {
        return Value::Null;
    };
    let mut value = json!({
        "operation": id,
        "kind": operation_kind(session, *asked),
        "reason": ask.reason,
        "policy": ask.policy,
        "opens": ask.opens,
    });
    if let Some((key, subject)) = subject(session) {
        value[key] = subject.into();
    }
    value["always"] = ask.always.into();
    value["question"] = digest.as_str().into();
    match session.asked_operation() {
        Some(Operation::Run(run)) => {
            value["cwd"] = run.cwd.as_ref().map(RelPath::as_str).into();
            value["env"] = json!(run.env);
            // In milliseconds, as in the operations dialect.
            let timeout = run.timeout.map(|timeout| u64::try_from(timeout.as_millis()));
            value["timeout"] = timeout.and_then(Result::ok).into();
        }
        Some(_) => {
            // The path with links resolved.
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

/// `Session a1b2c3d4` or `Run run_a1b2c3d4`, to begin a sentence.
pub(super) fn session_label(session: &Session) -> String {
    match session.run {
        None => format!("Session {}", session.id),
        Some(_) => format!("Run {}", session.stem()),
    }
}

/// The name of an operation in the dialect of its session.
pub(super) fn operation_kind(session: &Session, kind: Kind) -> &'static str {
    operation_name(kind, session.dialect == Dialect::Operations)
}

/// The command or path of the operation in question, with its JSON field name.
fn subject(session: &Session) -> Option<(&'static str, &str)> {
    match session.asked_operation()? {
        Operation::Run(run) => Some(("command", &run.command)),
        operation => Some(("path", operation.path()?.as_str())),
    }
}

fn describe_grants(opens: Grant) -> Option<String> {
    let Grant { protected, repository } = opens;
    let parts = [
        (protected, "names that otherwise only you can change, for this operation"),
        (repository, "the repository, so that git can write to it"),
    ];
    let parts: Vec<_> = parts.iter().filter(|(opens, _)| *opens).map(|(_, text)| *text).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// An ID that the model chose, quoted as an operand for a shell.
fn shell_operand(id: &str) -> String {
    let options_end = if id.starts_with('-') { "-- " } else { "" };
    format!("{options_end}{}", shell_word(&visible_line(id)))
}
