//! `diff`, `undo` and `redo`: show and undo the changes of turns.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::patch::{Side, coloured, patch, readable, sizes};
use super::{CliContext, SessionFlag, output, sessions, summary};
use crate::engine::{TurnDiffs, TurnSpan, UndoRequest};
use crate::error::Result;
use crate::ipc::Request;
use crate::watch::Stop;
use crate::workspace::checkpoint::{TreeChange, TreeEntry, TreeEntry::Folder};
use crate::workspace::unescaped;

#[derive(Debug, Args)]
pub(super) struct Diff {
    /// The turn, or a range such as 3..7 [default: the last turn]
    #[arg(value_name = "SEQ", value_parser = parse_turns)]
    turns: Option<TurnSpan>,
    /// Show all turns of the session
    #[arg(long, conflicts_with = "turns")]
    all: bool,
    #[command(flatten)]
    session: SessionFlag,
    /// Show only file names and numbers of lines
    #[arg(long)]
    stat: bool,
}

/// Parses `4`, `3..7`, `3..`, `..7` or `..`.
fn parse_turns(text: &str) -> std::result::Result<TurnSpan, String> {
    let parse = |text: &str| {
        text.parse::<u32>()
            .map_err(|_| format!("'{text}' is not the number of a turn; `deaddrop log` lists them"))
    };
    let Some((first, last)) = text.split_once("..") else { return parse(text).map(TurnSpan::One) };
    let first = if first.is_empty() { 0 } else { parse(first)? };
    let last = if last.is_empty() { u32::MAX } else { parse(last)? };
    if first > last {
        return Err(format!("the range is backwards; use {last}..{first}"));
    }
    Ok(TurnSpan::From(first, last))
}

pub(super) fn diff(context: &CliContext, arguments: &Diff) -> Result<ExitCode> {
    let session = sessions::named_or_newest(context, &arguments.session)?;
    let which = if arguments.all { Some(TurnSpan::From(0, u32::MAX)) } else { arguments.turns };
    let turns = TurnDiffs::read(&context.config, &session)?;
    let shown = turns.diff(which.unwrap_or(TurnSpan::Last))?;
    let (told, ignored) = (shown.summary(), shown.ignored());
    let is_piped = output::results_are_piped();
    for change in &shown.changes {
        if !output::wants_json() && arguments.stat {
            continue;
        }
        let (patch, sizes) = match why_unkept(change) {
            // A patch cannot express this change.
            Some(why) => (format!("# {}: {why}\n", change.shown()).into_bytes(), String::new()),
            None => {
                let side = |what: Option<&TreeEntry>| -> Result<Option<Side>> {
                    let executable =
                        matches!(what, Some(TreeEntry::File { mode, .. }) if mode & 0o100 != 0);
                    Ok(shown.content(what)?.and_then(|standing| Side::of(standing, executable)))
                };
                let (before, after) = (side(change.before.as_ref())?, side(change.after.as_ref())?);
                let (before, after) = (before.as_ref(), after.as_ref());
                let name = unescaped(&change.path);
                (patch(name.as_encoded_bytes(), before, after), sizes(before, after))
            }
        };
        if output::wants_json() {
            output::json(&json!({
                "sequence": shown.last,
                "first": shown.first,
                "path": change.shown(),
                "byCommand": change.by_command,
                "before": entry_json(change.before.as_ref()),
                "after": entry_json(change.after.as_ref()),
                "diff": (!arguments.stat).then(|| readable(&patch) + &sizes),
            }));
        } else if is_piped {
            output::data(&[comments(change).as_bytes(), &patch].concat());
        } else {
            let text = comments(change) + &readable(&patch) + &sizes;
            output::result(coloured(&text));
        }
    }
    if output::wants_json() {
        return Ok(ExitCode::SUCCESS);
    }
    let turns = match (shown.first, shown.last) {
        (first, last) if first == last => format!("Turn {last}"),
        (first, last) => format!("Turns {first} to {last}"),
    };
    match (ignored.map(|ignored| ignored.describe()), shown.changes.is_empty()) {
        (Some(ignored), true) => output::say(format!(
            "{turns} changed only ignored files, which are not kept: {ignored}"
        )),
        (Some(ignored), false) => {
            output::say(format!("Ignored files changed too, and are not kept: {ignored}"));
        }
        (None, true) => {
            let verb =
                if shown.first == shown.last { "changed no file" } else { "left no file changed" };
            output::say(format!("{turns} {verb}."));
        }
        (None, false) => {}
    }
    if arguments.stat {
        summary::change_lines(&told).iter().for_each(output::result);
    }
    Ok(ExitCode::SUCCESS)
}

/// Why a change cannot be shown; None if it can.
fn why_unkept(change: &TreeChange) -> Option<String> {
    [&change.before, &change.after].into_iter().flatten().find_map(|what| match what {
        TreeEntry::NotStored { reason, .. } => {
            Some(format!("changed, and not kept: {}", reason.describe()))
        }
        _ => None,
    })
}

/// Comment lines with facts that a patch cannot express: kinds and modes of entries.
fn comments(change: &TreeChange) -> String {
    let path = change.shown();
    let mixed = if change.mixed {
        format!("# {path} was also changed by others in between\n")
    } else {
        String::new()
    };
    let describe = |what: &TreeEntry| match what {
        TreeEntry::File { mode, .. } => format!("file, mode {mode:04o}"),
        Folder { mode } => format!("folder, mode {mode:04o}"),
        TreeEntry::Link { .. } => "link".to_owned(),
        TreeEntry::NotStored { reason, .. } => format!("not kept: {}", reason.describe()),
    };
    let comment = match (&change.before, &change.after) {
        (None, Some(after)) => format!("# new {path} ({})\n", describe(after)),
        (Some(before), None) => format!("# deleted {path} ({})\n", describe(before)),
        (Some(before), Some(after)) if describe(before) != describe(after) => {
            format!("# {path} ({} -> {})\n", describe(before), describe(after))
        }
        _ => String::new(),
    };
    mixed + &comment
}

/// An entry as JSON.
fn entry_json(what: Option<&TreeEntry>) -> serde_json::Value {
    match what {
        None => serde_json::Value::Null,
        Some(TreeEntry::File { mode, size, .. }) => {
            json!({ "kind": "file", "mode": format!("{mode:04o}"), "size": size })
        }
        Some(Folder { mode }) => json!({ "kind": "folder", "mode": format!("{mode:04o}") }),
        Some(TreeEntry::Link { target }) => json!({ "kind": "link", "target": target }),
        Some(TreeEntry::NotStored { reason, .. }) => {
            json!({ "kind": "unkept", "why": reason.describe() })
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct Undo {
    /// Undo the last N turns that changed files
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    last: u32,
    #[command(flatten)]
    flags: UndoFlags,
}

#[derive(Debug, Args)]
pub(super) struct UndoFlags {
    #[command(flatten)]
    session: SessionFlag,
    /// Also overwrite later changes, protected files, and files renamed from ignored names
    #[arg(long)]
    force: bool,
    /// Tell the model why, in the next outbox
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

pub(super) fn undo(context: &CliContext, arguments: &Undo) -> Result<ExitCode> {
    let turns = usize::try_from(arguments.last).unwrap_or(usize::MAX);
    run_request(context, UndoRequest::Turns(turns), &arguments.flags)
}

pub(super) fn redo(context: &CliContext, flags: &UndoFlags) -> Result<ExitCode> {
    run_request(context, UndoRequest::LastUndo, flags)
}

fn run_request(context: &CliContext, undo: UndoRequest, flags: &UndoFlags) -> Result<ExitCode> {
    let (session, reason) = (context.session_id(&flags.session)?, flags.reason.clone());
    let reason = reason.filter(|reason| !reason.trim().is_empty());
    let request = Request::Undo { undo, session, force: flags.force, reason };
    let stop = Stop::on_signals()?;
    let turn = context.request(request, &stop, 0)?;
    context.conclude(turn, false, &stop)
}
