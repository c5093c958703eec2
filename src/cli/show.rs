//! `show`: prints an outbox, or a part of it.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::sessions::named_or_newest;
use super::{Context, question, talk};
use crate::atomic;
use crate::error::{Error, Result};
use crate::outbox::parts::{self, OutboxPart, PartNumber};
use crate::session::outbox_name;
use crate::text::count;
use crate::tokens;

#[derive(Debug, Args)]
#[command(after_help = "\
A part begins and ends with a line that tells the model what it is and when to answer; send them in
their order, one message each.

Examples:
  deaddrop show | xclip -selection clipboard
  deaddrop show a1b2c3d4 2
  deaddrop show --part 1 | xclip -selection clipboard
  deaddrop show --part 2/3
  deaddrop show --json | jq .tokens")]
pub(super) struct Show {
    /// Which session; the newest open one if none is named
    id: Option<String>,
    /// Which of its outboxes; the newest if none is named
    sequence: Option<u32>,
    /// Only part K, for chats that take no more than so many characters (--part-characters); or part
    /// K of N about equal ones
    #[arg(long, value_name = "K[/N]")]
    part: Option<PartNumber>,
}

pub(super) fn show(context: &Context, arguments: &Show) -> Result<ExitCode> {
    let session = named_or_newest(context, arguments.id.as_deref())?;
    if session.run.is_some() {
        return Err(Error::usage(format!(
            "run {0} has no outbox; `deaddrop status {0}` tells what it came to",
            session.stem()
        )));
    }
    let sequence = arguments.sequence.unwrap_or(session.sequence);
    let path = context.config.outbox.join(outbox_name(&session.id, sequence));
    let text = atomic::read_own(&path).map_err(|e| Error::io("read the outbox", &path, e))?;
    if session.pending.is_some() && sequence == session.sequence {
        let how = match session.question() {
            Some(_) => format!(
                "the next one comes when you have decided: {}",
                question::how(context, &session)
            ),
            None => "the next one comes when its turn is done".to_owned(),
        };
        context.talk.say(format!("Outbox {sequence} was answered, and its turn waits; {how}."));
    }
    let text = match arguments.part {
        None => text,
        Some(asked) => part(context, &path, text, asked)?.into_bytes(),
    };
    if context.json {
        let text = as_text(&path, text)?;
        Context::print_json(&json!({
            "session": session.id,
            "sequence": sequence,
            "path": context.display(&path),
            "tokens": tokens::about(&text, context.config.max_tokens),
            "text": text,
        }));
        return Ok(ExitCode::SUCCESS);
    }
    talk::data(&text);
    Ok(ExitCode::SUCCESS)
}

/// An outbox as text, which it always is unless somebody else wrote there.
fn as_text(path: &Path, outbox: Vec<u8>) -> Result<String> {
    String::from_utf8(outbox).map_err(|e| {
        Error::io("read the outbox", path, io::Error::new(io::ErrorKind::InvalidData, e))
    })
}

/// The part of an outbox that is asked for; says how many there are.
fn part(context: &Context, path: &Path, outbox: Vec<u8>, asked: PartNumber) -> Result<String> {
    let outbox = as_text(path, outbox)?;
    let OutboxPart { text, part, of } = cut(context, &outbox, asked)?;
    let characters = count(parts::length(&text), "character");
    context.talk.say(&match of {
        1 => format!("All of the outbox, {characters}: it needs no parts."),
        _ => format!("Part {part} of {of}, {characters}."),
    });
    Ok(text)
}

/// The part of an outbox that is asked for.
pub(super) fn cut(context: &Context, outbox: &str, asked: PartNumber) -> Result<OutboxPart> {
    parts::part(outbox, asked, context.config.part_characters)
        .map_err(|e| Error::usage(format!("--part: {e}")))
}
