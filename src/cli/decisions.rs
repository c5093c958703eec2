//! `approve` and `deny`: the person's decisions about waiting operations.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::{CliContext, SessionFlag, output, question};
use crate::error::{Error, Result};
use crate::session::store::SessionStore;
use crate::session::{ApprovalDecision, Session};
use crate::text::visible_line;
use crate::watch::Stop;

#[derive(Debug, Args)]
pub(super) struct Approve {
    #[command(flatten)]
    flags: OperationFlags,
    /// Never ask about this very command again: the same line, folder and variables
    #[arg(long, conflicts_with = "all")]
    always: bool,
}

#[derive(Debug, Args)]
pub(super) struct Deny {
    #[command(flatten)]
    flags: OperationFlags,
    /// The reason, which the model reads
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Also deny everything else in the reply that needs your decision
    #[arg(long)]
    rest: bool,
}

/// Flags that select operations.
#[derive(Debug, Args)]
struct OperationFlags {
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

pub(super) fn approve(context: &CliContext, arguments: &Approve) -> Result<ExitCode> {
    decide(context, &arguments.flags, true, arguments.always, None)
}

pub(super) fn deny(context: &CliContext, arguments: &Deny) -> Result<ExitCode> {
    let reason = arguments.reason.as_deref().map(str::trim).filter(|reason| !reason.is_empty());
    decide(context, &arguments.flags, false, arguments.rest, reason)
}

fn decide(
    context: &CliContext,
    flags: &OperationFlags,
    approved: bool,
    further: bool,
    reason: Option<&str>,
) -> Result<ExitCode> {
    let stop = Stop::on_signals()?;
    let (mut code, mut failed) = (ExitCode::SUCCESS, None);
    for session in choose(context, flags)? {
        let Some(question) = session.question().cloned() else { continue };
        let reason = reason.map(str::to_owned);
        let decision = ApprovalDecision { question, approved, further, reason };
        match decide_one(context, &session, decision, !flags.all, &stop) {
            Ok(done) if done == ExitCode::SUCCESS => {}
            Ok(waits) => code = waits,
            // If another process has already decided about this question, still decide the others.
            Err(e) if flags.all && e.is_nothing_pending() => failed = Some(e),
            Err(e) => return Err(e),
        }
    }
    failed.map_or(Ok(code), Err)
}

/// The sessions and runs whose questions the flags select.
fn choose(context: &CliContext, flags: &OperationFlags) -> Result<Vec<Session>> {
    let store = SessionStore::new(&context.config.sessions);
    let named = context.session_id(&flags.session)?;
    // A session that does not exist gives a different error from a session that does not wait.
    named.as_ref().map(|stem| store.load_stem(stem)).transpose()?;
    let about = flags.operation.as_deref();
    let mut pending = store.pending()?;
    pending.retain(|session| {
        session.question().is_some_and(|asked| {
            named.as_ref().is_none_or(|stem| session.stem() == *stem)
                && flags.question.as_ref().is_none_or(|digest| asked.digest.as_str() == digest)
                && about.is_none_or(|id| asked.id == id)
        })
    });
    match pending.len() {
        0 => Err(Error::nothing_pending(about.or(named.as_deref()).unwrap_or_default())),
        more if more == 1 || flags.all => Ok(pending),
        _ => {
            let list = pending.iter().map(|session| format!("\n  {}", question::summary(session)));
            Err(Error::usage(format!(
                "several operations wait for your decision; name one by its id (and --session ID if needed), or use --all:{}",
                list.collect::<String>()
            )))
        }
    }
}

fn decide_one(
    context: &CliContext,
    session: &Session,
    decision: ApprovalDecision,
    asks: bool,
    stop: &Stop,
) -> Result<ExitCode> {
    let (approved, operation) = (decision.approved, decision.question.id.clone());
    let verb = if approved { "Approved" } else { "Denied" };
    let turn = context.decide(session, decision, stop)?;
    if turn.session.run.is_some() {
        let stem = turn.session.stem();
        if output::wants_json() {
            output::json(&json!({
                "session": stem, "operation": operation, "approved": approved, "recorded": true,
            }));
        }
        output::say(format!("{verb}, and recorded; `deaddrop ops run --resume {stem}` continues."));
        return Ok(ExitCode::SUCCESS);
    }
    output::say(format!("{verb} {} of session {}.", visible_line(&operation), session.id));
    context.conclude(turn, asks, stop)
}
