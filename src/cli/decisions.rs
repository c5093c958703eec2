//! `approve` and `deny`: what a person decides about operations that wait for it.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::{Context, SessionFlag, WAITS, question};
use crate::error::{Error, Result};
use crate::session::store::Store;
use crate::session::{ApprovalDecision, Session};
use crate::text::visible_line;
use crate::watch::Stop;

#[derive(Debug, Args)]
pub(super) struct Approve {
    #[command(flatten)]
    which: Which,
    /// Never ask about this very command again: the same line, folder and variables
    #[arg(long, conflicts_with = "all")]
    always: bool,
}

#[derive(Debug, Args)]
pub(super) struct Deny {
    #[command(flatten)]
    which: Which,
    /// Why: the model is told
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Deny whatever else of the same reply needs your decision
    #[arg(long)]
    rest: bool,
}

/// Which operations are meant.
#[derive(Debug, Args)]
struct Which {
    /// The operation's id [default: the only one that waits]
    operation: Option<String>,
    #[command(flatten)]
    session: SessionFlag,
    /// Only if this is still asked: `question` in `status --json`
    #[arg(long, value_name = "DIGEST", hide = true)]
    question: Option<String>,
    /// All that wait now, but not the next questions of their replies
    #[arg(long, conflicts_with = "operation")]
    all: bool,
}

pub(super) fn approve(context: &Context, arguments: &Approve) -> Result<ExitCode> {
    decide(context, &arguments.which, true, arguments.always, None)
}

pub(super) fn deny(context: &Context, arguments: &Deny) -> Result<ExitCode> {
    let reason = arguments.reason.as_deref().map(str::trim).filter(|reason| !reason.is_empty());
    decide(context, &arguments.which, false, arguments.rest, reason)
}

fn decide(
    context: &Context,
    which: &Which,
    approved: bool,
    further: bool,
    reason: Option<&str>,
) -> Result<ExitCode> {
    let stop = Stop::on_signals()?;
    let chosen = choose(context, which)?;
    let (mut waits, mut failed) = (false, None);
    for session in &chosen {
        let decision = session.question().map(|question| ApprovalDecision {
            question: question.clone(),
            approved,
            further,
            reason: reason.map(str::to_owned),
        });
        match one(context, session, decision, !which.all, &stop) {
            Ok(code) => waits |= code == ExitCode::from(WAITS),
            // One that somebody else was faster with does not keep the others waiting.
            Err(e) if which.all && e.is_nothing_pending() => failed = Some(e),
            Err(e) => return Err(e),
        }
    }
    match failed {
        Some(error) => Err(error),
        None if waits => Ok(ExitCode::from(WAITS)),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// The sessions and runs whose questions are decided.
fn choose(context: &Context, which: &Which) -> Result<Vec<Session>> {
    let store = Store::new(&context.config.sessions);
    let mut pending = store.pending()?;
    pending.retain(|session| session.question().is_some());
    let named = context.session_id(&which.session)?;
    if let Some(stem) = &named {
        // One that is not there is another matter than one that does not wait.
        store.load_stem(stem)?;
        pending.retain(|session| session.stem() == *stem);
    }
    if let Some(digest) = &which.question {
        pending.retain(|session| session.question().is_some_and(|q| q.digest.as_str() == digest));
    }
    let about = which.operation.as_deref();
    if let Some(id) = about {
        pending.retain(|session| session.question().is_some_and(|asked| asked.id == id));
    }
    match pending.len() {
        0 => Err(Error::nothing_pending(about.or(named.as_deref()).unwrap_or_default())),
        1 => Ok(pending),
        _ if which.all => Ok(pending),
        _ => {
            let list = pending.iter().map(|session| format!("\n  {}", question::summary(session)));
            Err(Error::usage(format!(
                "several operations wait for your decision; name one by its id (and --session ID if needed), or use --all:{}",
                list.collect::<String>()
            )))
        }
    }
}

fn one(
    context: &Context,
    session: &Session,
    decision: Option<ApprovalDecision>,
    asks_on: bool,
    stop: &Stop,
) -> Result<ExitCode> {
    let approved = decision.as_ref().is_some_and(|decision| decision.approved);
    let verb = if approved { "Approved" } else { "Denied" };
    let turn = context.decide(session, decision, stop)?;
    let ui = &context.ui;
    if turn.session.run.is_some() {
        let stem = turn.session.stem();
        if context.json {
            let operation = session.question().map(|question| &question.id);
            Context::print_json(&json!({
                "session": stem, "operation": operation, "approved": approved, "recorded": true,
            }));
        }
        ui.say(format!("{verb}, and recorded; `deaddrop ops run --resume {stem}` continues."));
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(question) = session.question() {
        let id = visible_line(&question.id);
        ui.say(format!("{verb} {id} of session {}.", session.id));
    }
    context.conclude(turn, asks_on, stop)
}
