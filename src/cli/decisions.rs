//! `approve` and `deny`: what a person decides about operations that wait for it.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::{Context, SessionFlag, question};
use crate::error::{Error, Result};
use crate::session::store::SessionStore;
use crate::session::{ApprovalDecision, Question, Session};
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
    let Approve { which, always: further } = arguments;
    decide(context, which, |question| ApprovalDecision {
        question,
        approved: true,
        further: *further,
        reason: None,
    })
}

pub(super) fn deny(context: &Context, arguments: &Deny) -> Result<ExitCode> {
    let Deny { which, reason, rest: further } = arguments;
    let reason = reason.as_deref().map(str::trim).filter(|reason| !reason.is_empty());
    decide(context, which, |question| ApprovalDecision {
        question,
        approved: false,
        further: *further,
        reason: reason.map(str::to_owned),
    })
}

fn decide(
    context: &Context,
    which: &Which,
    decision: impl Fn(Question) -> ApprovalDecision,
) -> Result<ExitCode> {
    let stop = Stop::on_signals()?;
    let (mut code, mut failed) = (ExitCode::SUCCESS, None);
    for session in choose(context, which)? {
        let Some(question) = session.question().cloned() else { continue };
        match one(context, &session, decision(question), !which.all, &stop) {
            Ok(done) if done == ExitCode::SUCCESS => {}
            Ok(waits) => code = waits,
            // One that somebody else was faster with does not keep the others waiting.
            Err(e) if which.all && e.is_nothing_pending() => failed = Some(e),
            Err(e) => return Err(e),
        }
    }
    failed.map_or(Ok(code), Err)
}

/// The sessions and runs whose questions are decided.
fn choose(context: &Context, which: &Which) -> Result<Vec<Session>> {
    let store = SessionStore::new(&context.config.sessions);
    let named = context.session_id(&which.session)?;
    // One that is not there is another matter than one that does not wait.
    named.as_ref().map(|stem| store.load_stem(stem)).transpose()?;
    let about = which.operation.as_deref();
    let mut pending = store.pending()?;
    pending.retain(|session| {
        session.question().is_some_and(|asked| {
            named.as_ref().is_none_or(|stem| session.stem() == *stem)
                && which.question.as_ref().is_none_or(|digest| asked.digest.as_str() == digest)
                && about.is_none_or(|id| asked.id == id)
        })
    });
    match pending.len() {
        0 => Err(Error::nothing_pending(about.or(named.as_deref()).unwrap_or_default())),
        more if more == 1 || which.all => Ok(pending),
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
    decision: ApprovalDecision,
    asks_on: bool,
    stop: &Stop,
) -> Result<ExitCode> {
    let (approved, operation) = (decision.approved, decision.question.id.clone());
    let verb = if approved { "Approved" } else { "Denied" };
    let turn = context.decide(session, decision, stop)?;
    let ui = &context.ui;
    if turn.session.run.is_some() {
        let stem = turn.session.stem();
        if context.json {
            Context::print_json(&json!({
                "session": stem, "operation": operation, "approved": approved, "recorded": true,
            }));
        }
        ui.say(format!("{verb}, and recorded; `deaddrop ops run --resume {stem}` continues."));
        return Ok(ExitCode::SUCCESS);
    }
    ui.say(format!("{verb} {} of session {}.", visible_line(&operation), session.id));
    context.conclude(turn, asks_on, stop)
}
