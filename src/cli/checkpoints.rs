//! `checkpoints`: which turns can be shown and taken back, and how much is kept for that.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::json;

use super::{Context, Opened, talk};
use crate::base::{Pruned, kept};
use crate::control;
use crate::error::Result;
use crate::text::{count, size};
use crate::watch::Stop;

#[derive(Debug, Args)]
#[command(after_help = "\
Each line is a turn: its session, its number, when, how many files it changed (or folders, where it
changed no file), and how many bytes are kept for it, of which some may be kept for other turns too. How
many files cannot be undone, since they are not kept, stands behind it. checkpoint_max_bytes bounds all of it; the
oldest go first, by themselves.

Examples:
  deaddrop checkpoints
  deaddrop checkpoints prune
  deaddrop checkpoints prune --max-bytes 0")]
pub(super) struct Checkpoints {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Remove the oldest until no more is kept than may be
    #[command(after_help = "\
What the workspace is like now is always kept, and so is the last checkpoint unless N is 0. Where that is
more than N, only checkpoints that take room go.

Examples:
  deaddrop checkpoints prune
  deaddrop checkpoints prune --max-bytes 100000000")]
    Prune(Prune),
}

#[derive(Debug, Args)]
struct Prune {
    /// How many bytes may be kept
    #[arg(long, value_name = "N", help = "How many bytes may be kept [checkpoint_max_bytes]")]
    max_bytes: Option<u64>,
}

pub(super) fn checkpoints(context: &Context, arguments: &Checkpoints) -> Result<ExitCode> {
    match &arguments.command {
        None => list(context),
        Some(Command::Prune(prune)) => {
            let (stop, most) = (Stop::on_signals()?, prune.max_bytes);
            let hand_over = || control::hand_over_prune(&context.config, most, &stop);
            let pruned = if context.has_begun() {
                match context.open_or(&stop, hand_over)? {
                    Opened::Elsewhere(pruned) => *pruned,
                    Opened::Here(mut base) => {
                        let pruned = base.prune(most)?;
                        base.settle()?;
                        pruned
                    }
                }
            } else {
                // Where nothing is kept, nothing is to be made.
                Pruned { removed: 0, before: 0, after: 0, present: 0 }
            };
            let Pruned { removed, before, after, present } = pruned;
            if context.json {
                Context::print_json(&json!(pruned));
            } else {
                let most = most.unwrap_or(context.config.checkpoint_max_bytes);
                let rest = if after <= most || after == 0 {
                    "What the workspace is like now stays known.".to_owned()
                } else if most == 0 {
                    format!(
                        "That is what the workspace is like now ({}), which stays known.",
                        size(present)
                    )
                } else {
                    format!(
                        "That is more than {}: what the workspace is like now takes {} of it and stays known, so that the next turn can be taken back; so do the last checkpoint and those that take hardly any room beside it. `--max-bytes 0` removes all checkpoints, which frees {}.",
                        size(most),
                        size(present),
                        size(after.saturating_sub(present))
                    )
                };
                context.talk.say(format!(
                    "{} removed. Kept: {} (before: {}). {rest}",
                    count(removed, "checkpoint"),
                    size(after),
                    size(before)
                ));
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn list(context: &Context) -> Result<ExitCode> {
    let (all, bytes) = kept(&context.config)?;
    for kept in &all {
        if context.json {
            Context::print_json(&json!({
                "session": kept.session,
                "sequence": kept.sequence,
                "at": kept.at,
                "files": kept.files,
                "folders": kept.folders,
                "unrestorable": kept.unrestorable,
                "bytes": kept.bytes,
                "isWhole": kept.is_whole,
            }));
            continue;
        }
        let state = match kept.unrestorable {
            _ if !kept.is_whole => "  gone".to_owned(),
            0 => String::new(),
            n if kept.without_room > 0 => {
                format!("  {} cannot be undone, for lack of room", count(n, "file"))
            }
            n => format!("  {} cannot be undone", count(n, "file")),
        };
        let what = match (kept.files, kept.folders) {
            (0, folders) if folders > 0 => count(folders, "folder"),
            (files, _) => count(files, "file"),
        };
        talk::prose(format!(
            "{}  {:>4}  {}  {:>9}  {:>12}{state}",
            kept.session,
            kept.sequence,
            kept.at,
            what,
            size(kept.bytes)
        ));
    }
    if !context.json {
        let limit = context.config.checkpoint_max_bytes;
        context.talk.say(format!("Kept in all: {}, of at most {}.", size(bytes), size(limit)));
    }
    Ok(ExitCode::SUCCESS)
}
