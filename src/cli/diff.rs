//! `diff`: what a turn changed.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::changes::{coloured, unified};
use super::{Context, sessions, talk};
use crate::base::shown;
use crate::error::Result;
use crate::text::count;
use crate::workspace::checkpoint::{Change, What};
use crate::workspace::overlay::Standing;

#[derive(Debug, Args)]
#[command(after_help = "\
A turn is known by the outbox that its reply answered, as `deaddrop log` lists them. What commands
changed is part of it; what rules such as .gitignore leave out is not.

Examples:
  deaddrop diff
  deaddrop diff 4 --stat
  deaddrop diff 4 | patch -R -p1 -d workspace")]
pub(super) struct Diff {
    /// Which turn; the last if none is named
    #[arg(value_name = "SEQ")]
    sequence: Option<u32>,
    /// Of which session; the newest open one if none is named
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Only which files, and how many lines
    #[arg(long)]
    stat: bool,
}

pub(super) fn diff(context: &Context, arguments: &Diff) -> Result<ExitCode> {
    let session = sessions::named_or_newest(context, arguments.session.as_deref())?;
    let shown = shown(&context.config, &session, arguments.sequence)?;
    let told = shown.told();
    let talk = context.talk.for_results();
    for change in &shown.changes {
        if !context.json && arguments.stat {
            continue;
        }
        if let (Some(why), false) = (unkept(change), context.json) {
            let path = change.shown();
            talk::result(&format!("--- a/{path}\n+++ b/{path}\n({why})"));
            continue;
        }
        let (before, after) =
            (shown.standing(change.before.as_ref())?, shown.standing(change.after.as_ref())?);
        let binary = [before.as_ref(), after.as_ref()].into_iter().flatten().any(is_binary);
        let text = if is_same_content(change) {
            String::new()
        } else if binary {
            named(&change.shown(), before.as_ref(), after.as_ref())
        } else {
            unified(&change.shown(), before.as_ref(), after.as_ref())
        };
        if context.json {
            Context::print_json(&json!({
                "sequence": shown.sequence,
                "path": change.shown(),
                "byCommand": change.by_command,
                "before": side(change.before.as_ref()),
                "after": side(change.after.as_ref()),
                "diff": (!arguments.stat).then_some(text),
            }));
        } else {
            let text = format!("{}{text}", beside(change));
            talk::result(&coloured(&talk, &text));
        }
    }
    if context.json {
        return Ok(ExitCode::SUCCESS);
    }
    if shown.changes.is_empty() {
        context.talk.say(&format!("Turn {} changed no file.", shown.sequence));
    }
    if arguments.stat {
        told.named.iter().for_each(|file| talk::result(&file.told_with_lines()));
        match told.files - told.named.len() {
            0 => {}
            n => talk::result(&format!("and {} more", count(n, "file"))),
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether only permissions are others, or a folder.
fn is_same_content(change: &Change) -> bool {
    let folder =
        |what: &Option<What>| what.as_ref().is_none_or(|w| matches!(w, What::Folder { .. }));
    match (&change.before, &change.after) {
        (Some(What::File { blob, .. }), Some(What::File { blob: same, .. })) => blob == same,
        (before, after) => folder(before) && folder(after),
    }
}

/// Whether something is no text, as git tells it.
fn is_binary(standing: &Standing) -> bool {
    match standing {
        Standing::File(bytes) => bytes[..bytes.len().min(8_000)].contains(&0),
        _ => false,
    }
}

/// What is told of a file that is no text.
fn named(path: &str, before: Option<&Standing>, after: Option<&Standing>) -> String {
    let name = |side: &str, standing: Option<&Standing>| match standing {
        Some(_) => format!("{side}/{path}"),
        None => "/dev/null".to_owned(),
    };
    let told = |standing: Option<&Standing>| match standing {
        Some(Standing::File(bytes)) => count(bytes.len(), "byte"),
        Some(_) => "no file".to_owned(),
        None => "nothing".to_owned(),
    };
    let (old, new) = (name("a", before), name("b", after));
    format!("--- {old}\n+++ {new}\n(binary: {} -> {})\n", told(before), told(after))
}

/// Why nothing can be shown of it, if that is so.
fn unkept(change: &Change) -> Option<String> {
    [&change.before, &change.after].into_iter().flatten().find_map(|what| match what {
        What::Unkept { why, .. } => Some(format!("changed, and not kept: {}", why.in_words())),
        _ => None,
    })
}

/// What a diff of lines cannot tell, a line each: which file, and what it is.
fn beside(change: &Change) -> String {
    let path = change.shown();
    let told = |what: &What| match what {
        What::File { mode, .. } => format!("file, mode {mode:04o}"),
        What::Folder { mode } => format!("folder, mode {mode:04o}"),
        What::Link { .. } => "link".to_owned(),
        What::Unkept { why, .. } => format!("not kept: {}", why.in_words()),
    };
    match (&change.before, &change.after) {
        (None, Some(after)) => format!("# new {path} ({})\n", told(after)),
        (Some(before), None) => format!("# deleted {path} ({})\n", told(before)),
        (Some(before), Some(after)) if told(before) != told(after) => {
            format!("# {path} ({} -> {})\n", told(before), told(after))
        }
        _ => String::new(),
    }
}

/// What stood or stands somewhere, as JSON.
fn side(what: Option<&What>) -> serde_json::Value {
    match what {
        None => serde_json::Value::Null,
        Some(What::File { mode, size, .. }) => {
            json!({ "kind": "file", "mode": format!("{mode:04o}"), "size": size })
        }
        Some(What::Folder { mode }) => json!({ "kind": "folder", "mode": format!("{mode:04o}") }),
        Some(What::Link { target }) => json!({ "kind": "link", "target": target }),
        Some(What::Unkept { why, .. }) => json!({ "kind": "unkept", "why": why.in_words() }),
    }
}
