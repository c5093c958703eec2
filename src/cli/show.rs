//! `show`: prints an outbox or a part of it, copies it, opens it, or names its file.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::clipping::{Put, put};
use super::sessions::named_or_newest;
use super::{Context, SessionFlag, opening, output, question};
use crate::atomic;
use crate::engine::pasted_outbox;
use crate::error::{Error, Result};
use crate::outbox::parts::{self, OutboxPart, PartNumber};
use crate::session::outbox_name;
use crate::text::count;
use crate::tokens;

#[derive(Debug, Args)]
pub(super) struct Show {
    /// The outbox's number [default: the newest]
    #[arg(value_name = "N")]
    sequence: Option<u32>,
    #[command(flatten)]
    session: SessionFlag,
    /// Only part K, of at most --part-characters; or part K of N equal ones
    #[arg(long, value_name = "K[/N]")]
    part: Option<PartNumber>,
    /// Copy it to the clipboard
    #[arg(long)]
    copy: bool,
    /// Open it in your editor
    #[arg(long, conflicts_with_all = ["part", "copy"])]
    open: bool,
    /// Print the path of its file
    #[arg(long, conflicts_with_all = ["part", "copy", "open"])]
    path: bool,
}

pub(super) fn show(context: &Context, arguments: &Show) -> Result<ExitCode> {
    let session = named_or_newest(context, &arguments.session)?;
    if session.run.is_some() {
        return Err(Error::usage(format!(
            "run {0} has no outbox; `deaddrop status {0}` shows its result",
            session.stem()
        )));
    }
    let sequence = arguments.sequence.unwrap_or(session.sequence);
    let path = context.config.outbox.join(outbox_name(&session.id, sequence));
    if arguments.path || arguments.open {
        path.metadata().map_err(|e| Error::io("find the outbox", &path, e))?;
    }
    if arguments.open {
        return opening::open(context, &path);
    }
    if arguments.path {
        let path = context.display(&path);
        let value = json!({ "session": session.id, "sequence": sequence, "path": path });
        output::told(context.json, value, || &*path);
        return Ok(ExitCode::SUCCESS);
    }
    let is_answered = sequence == session.sequence && !session.awaits_reply();
    if arguments.copy {
        let how = arguments.part.map_or(Put::Whole, Put::Part);
        if !put(context, &session, sequence, &how)? && !context.json {
            output::result(context.display(&path));
        }
        if is_answered {
            let why = if session.is_complete { "is complete" } else { "waits for your decision" };
            context.ui.warning(&format!(
                "session {} {why}: its newest outbox has been answered",
                session.id
            ));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let text = if context.config.brief {
        pasted_outbox(&context.config, &session, sequence, true)?.0.into_bytes()
    } else {
        atomic::read_own(&path).map_err(|e| Error::io("read the outbox", &path, e))?
    };
    if is_answered && !session.is_complete {
        let how = match session.question() {
            Some(_) => {
                format!("the next one follows your decision: {}", question::how(context, &session))
            }
            None => "the next one follows when its turn is done".to_owned(),
        };
        context.ui.say(format!("Outbox {sequence} has been answered, and its turn waits; {how}."));
    }
    let (text, part, of) = match arguments.part {
        None => (text, None, None),
        Some(asked) => {
            let OutboxPart { text, part, of } = part(context, &path, text, asked)?;
            (text.into_bytes(), Some(part), Some(of))
        }
    };
    if context.json {
        let text = as_text(&path, text)?;
        Context::print_json(&json!({
            "session": session.id,
            "sequence": sequence,
            "path": context.display(&path),
            "part": part,
            "of": of,
            "tokens": tokens::about(&text, context.config.max_tokens),
            "text": text,
        }));
        return Ok(ExitCode::SUCCESS);
    }
    output::data(&text);
    Ok(ExitCode::SUCCESS)
}

/// An outbox as text, which it always is unless somebody else wrote there.
fn as_text(path: &Path, outbox: Vec<u8>) -> Result<String> {
    String::from_utf8(outbox).map_err(|e| {
        Error::io("read the outbox", path, io::Error::new(io::ErrorKind::InvalidData, e))
    })
}

/// The part of an outbox that is asked for; says how many there are.
fn part(context: &Context, path: &Path, outbox: Vec<u8>, asked: PartNumber) -> Result<OutboxPart> {
    let outbox = as_text(path, outbox)?;
    let cut = cut(context, &outbox, asked)?;
    let OutboxPart { text, part, of } = &cut;
    let characters = count(parts::length(text), "character");
    context.ui.say(&match of {
        1 => format!("The whole outbox, {characters}: it needs no parts."),
        _ => format!("Part {part} of {of}, {characters}."),
    });
    Ok(cut)
}

/// The part of an outbox that is asked for.
pub(super) fn cut(context: &Context, outbox: &str, asked: PartNumber) -> Result<OutboxPart> {
    parts::part(outbox, asked, context.config.part_characters)
        .map_err(|e| Error::usage(format!("--part: {e}")))
}
