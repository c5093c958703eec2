//! What a turn that waits asks the person, as they read it and as `--json` has it.

use serde_json::{Value, json};

use super::Context;
use super::changes::{coloured, diff};
use super::talk::{Talk, name};
use crate::place::Rewritten;
use crate::policy::Opens;
use crate::protocol::{Asks, Dialect, Kind, Operation, ShellCommand};
use crate::session::store::Store;
use crate::session::{Question, Session};
use crate::text::{indented, named, visible, visible_line};

/// All that the person should know before they decide: what would be done, why it is asked, and how
/// to decide.
pub(super) fn told(talk: &Talk, session: &Session, changes: &[Rewritten], how: &str) -> String {
    let Some(question) = session.question() else { return String::new() };
    let id = visible_line(&question.id);
    let what = kind(session, question.kind);
    let mut text =
        talk.bold(&format!("{} waits for your decision about {id}: {what}", who(session)));
    text.push('\n');
    match operation(session) {
        Some(Operation::Run(run)) => text.push_str(&command(run)),
        Some(operation) => {
            if let Some(path) = operation.path() {
                text.push_str(&format!("    {}\n", visible_line(path.as_str())));
            }
            for file in changes {
                text.push_str(&indented(&coloured(talk, &diff(file))));
                text.push('\n');
            }
        }
        None => {}
    }
    let ask = &question.ask;
    text.push_str(&format!("  Why:    {} ({})\n", visible_line(&ask.reason), ask.policy));
    if let Some(opens) = opens(ask.opens) {
        text.push_str(&format!("  Opens:  {opens}\n"));
    }
    text.push_str(&format!("  Decide: {how}"));
    text
}

/// A command in full, and all else that is said of it.
fn command(run: &ShellCommand) -> String {
    let mut text = String::new();
    for line in visible(&run.command).lines() {
        text.push_str(&format!("    {line}\n"));
    }
    if let Some(cwd) = &run.cwd {
        text.push_str(&format!("  In:     {}\n", visible_line(cwd.as_str())));
    }
    for (name, value) in &run.env {
        text.push_str(&format!("  With:   {}={}\n", visible_line(name), visible_line(value)));
    }
    text
}

/// How to decide from elsewhere: which question is meant is said where others wait.
pub(super) fn how(context: &Context, session: &Session) -> String {
    let Some(question) = session.question() else { return String::new() };
    let stem = session.stem();
    // What is not known of the others is told when the person decides.
    let mut others = Store::new(&context.config.sessions).pending().unwrap_or_default();
    others.retain(|other| other.question().is_some() && other.stem() != stem);
    if others.is_empty() {
        return "`deaddrop approve`, or `deaddrop deny --reason TEXT`".to_owned();
    }
    let same = |other: &Session| other.question().is_some_and(|asked| asked.id == question.id);
    let of = if others.iter().any(same) { format!(" --session {stem}") } else { String::new() };
    let id = shell_word(&question.id);
    format!("`deaddrop approve{of} {id}`, or `deaddrop deny{of} --reason TEXT {id}`")
}

/// A question in a line, for a list.
pub(super) fn summary(session: &Session) -> String {
    let Some(question) = session.question() else { return String::new() };
    let id = visible_line(&question.id);
    let what = match about(session) {
        Some(("path", path)) => format!(" '{}'", visible_line(path)),
        Some((_, command)) => format!(" {}", named(command)),
        None => String::new(),
    };
    format!(
        "{id} of {}: {}{what}: {}",
        who(session).to_lowercase(),
        kind(session, question.kind),
        visible_line(&question.ask.reason)
    )
}

/// What is asked, as `--json` has it; null where nothing is.
pub(super) fn to_json(session: &Session) -> Value {
    let Some(Question { id, kind: asked, ask, .. }) = session.question() else {
        return Value::Null;
    };
    let mut value = json!({
        "operation": id,
        "kind": kind(session, *asked),
        "reason": ask.reason,
        "policy": ask.policy,
    });
    if let Some((key, about)) = about(session) {
        value[key] = about.into();
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

fn operation(session: &Session) -> Option<&Operation> {
    let pending = session.pending.as_ref()?;
    match &pending.steps.get(pending.question.step)?.asks {
        Asks::Operation(operation) => Some(operation),
        Asks::Invalid(_) => None,
    }
}

/// The command or the path, with the name that it has in JSON.
fn about(session: &Session) -> Option<(&'static str, &str)> {
    match operation(session)? {
        Operation::Run(run) => Some(("command", &run.command)),
        operation => Some(("path", operation.path()?.as_str())),
    }
}

fn opens(opens: Opens) -> Option<String> {
    let Opens { protected, repository } = opens;
    let mut parts = Vec::new();
    if protected {
        parts.push("names that only you write else, for this operation");
    }
    if repository {
        parts.push("the repository, so that git can write to it");
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// A name of an LLM's as a shell takes it, whatever it is.
fn shell_word(id: &str) -> String {
    let options_end = if id.starts_with('-') { "-- " } else { "" };
    format!("{options_end}'{}'", visible_line(id).replace('\'', r"'\''"))
}
