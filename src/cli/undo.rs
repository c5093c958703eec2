//! `undo` and `redo`: turns taken back, and that taken back again.

use std::process::ExitCode;

use clap::Args;

use super::{Context, SessionFlag};
use crate::engine::UndoRequest;
use crate::error::Result;
use crate::ipc::Request;
use crate::watch::Stop;

#[derive(Debug, Args)]
#[command(after_help = "\
Files are as they were before the turn: contents, permissions and links, what is gone is back, and what
was made is gone; permissions also of the workspace's own folder. Ignored files are left alone, and named
where turns had changed them; a turn that changed only such is passed over and named. What you agreed to
under names that only you write goes back; what changed there while a command ran stays, and is named, and
so does what a command renamed from an ignored name. Where something cannot be put back, it is named, and
stays with what may be its only copy. What you or another session have changed since, or in between, is
refused and named; nothing is touched then. --force does all of these. The next outbox tells the LLM, with
your --reason. A session that is complete is taken up again by it. What commands did beside files of the
workspace stands, such as commits.

Examples:
  deaddrop undo
  deaddrop undo --last 3
  deaddrop undo --reason \"Leave the public interface as it is\"
  deaddrop undo --force
      puts files back that you have changed since; `redo` brings yours back")]
pub(super) struct Undo {
    /// Take back the last N turns that changed files
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    last: u32,
    #[command(flatten)]
    how: How,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Takes the last undo back, while no turn has come after it that changed files. With a number, it takes
back the undo or the redo of that number in `deaddrop log`, also after later turns: so what a --force put
aside comes back, as long as its checkpoint is kept. What has changed since is refused and named, as ever.
A session that the turn had completed is complete again, unless you have something to say.

Examples:
  deaddrop redo
  deaddrop redo --reason \"I looked again: it was right\"
  deaddrop redo 7
      brings back what undo 7 took away, such as what you had changed, though the session has gone on
  deaddrop redo --session a1b2c3d4")]
pub(super) struct Redo {
    /// Which undo or redo, by its number in `deaddrop log`; else the last undo
    #[arg(value_name = "SEQ", value_parser = clap::value_parser!(u32).range(1..))]
    sequence: Option<u32>,
    #[command(flatten)]
    how: How,
}

#[derive(Debug, Args)]
struct How {
    #[command(flatten)]
    session: SessionFlag,
    /// Also restore files that have changed since, were renamed from ignored names, or are protected
    #[arg(long)]
    force: bool,
    /// Why: your words for the LLM, in the next outbox
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

pub(super) fn undo(context: &Context, arguments: &Undo) -> Result<ExitCode> {
    let turns = usize::try_from(arguments.last).unwrap_or(usize::MAX);
    request(context, UndoRequest::Turns(turns), &arguments.how)
}

pub(super) fn redo(context: &Context, arguments: &Redo) -> Result<ExitCode> {
    request(
        context,
        arguments.sequence.map_or(UndoRequest::LastUndo, UndoRequest::Step),
        &arguments.how,
    )
}

fn request(context: &Context, undo: UndoRequest, how: &How) -> Result<ExitCode> {
    let (session, reason) = (context.session_id(&how.session)?, how.reason.clone());
    let reason = reason.filter(|reason| !reason.trim().is_empty());
    let request = Request::Undo { undo, session, force: how.force, reason };
    let stop = Stop::on_signals()?;
    let turn = context.request(request, &stop, 0)?;
    context.conclude(turn, false, &stop)
}
