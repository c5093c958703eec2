//! `undo` and `redo`: turns taken back, and that taken back again.

use std::process::ExitCode;

use clap::Args;

use super::{Context, SessionFlag};
use crate::engine::UndoRequest;
use crate::error::Result;
use crate::ipc::Request;
use crate::watch::Stop;

#[derive(Debug, Args)]
pub(super) struct Undo {
    /// Undo the last N turns that changed files
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    last: u32,
    #[command(flatten)]
    how: How,
}

#[derive(Debug, Args)]
pub(super) struct Redo {
    /// The undo or redo to take back, by its number in `deaddrop log` [default: the last undo]
    #[arg(value_name = "SEQ", value_parser = clap::value_parser!(u32).range(1..))]
    sequence: Option<u32>,
    #[command(flatten)]
    how: How,
}

#[derive(Debug, Args)]
struct How {
    #[command(flatten)]
    session: SessionFlag,
    /// Also overwrite later changes, protected files, and files renamed from ignored names
    #[arg(long)]
    force: bool,
    /// Tell the model why, in the next outbox
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
