//! `show`: prints an outbox or a part of it, copies it, opens it, or prints the path of its file. Also contains
//! messages about the clipboard.

use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::sessions::named_or_newest;
use super::{CliContext, SessionFlag, editor, output, question};
use crate::clipboard::{self, ClipboardBackend, ClipboardSetup, CopyResult};
use crate::daemon::Clip;
use crate::engine::pasted_outbox;
use crate::error::{Error, Result};
use crate::event::ClipboardNews;
use crate::outbox::OutboxForm;
use crate::outbox::parts::{self, OutboxPart, PartNumber};
use crate::program::Programs;
use crate::session::{Session, outbox_name};
use crate::text::count;
use crate::tokens;

#[derive(Debug, Args)]
pub(super) struct Show {
    /// The outbox's number [default: the newest]
    #[arg(value_name = "N", value_parser = parse_sequence)]
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

fn parse_sequence(text: &str) -> std::result::Result<u32, String> {
    text.parse()
        .map_err(|_| "it is not the number of an outbox (--session ID names a session)".to_owned())
}

pub(super) fn show(context: &CliContext, arguments: &Show) -> Result<ExitCode> {
    let session = named_or_newest(context, &arguments.session)?;
    if session.run.is_some() {
        return Err(Error::usage(format!(
            "run {0} has no outbox; `deaddrop status {0}` shows its result",
            session.stem()
        )));
    }
    let sequence = arguments.sequence.unwrap_or(session.sequence);
    if !(1..=session.sequence).contains(&sequence) {
        return Err(Error::usage(format!(
            "session {} has no outbox {sequence}; the newest is {}",
            session.id, session.sequence
        ))
        .with_code("no-outbox"));
    }
    let path = context.config.outbox.join(outbox_name(&session.id, sequence));
    if arguments.path || arguments.open {
        path.metadata().map_err(|e| Error::io("find the outbox", &path, e))?;
    }
    if arguments.open {
        return editor::open(context, &path);
    }
    if arguments.path {
        let path = context.display(&path);
        let value = json!({ "session": session.id, "sequence": sequence, "path": path });
        output::print(value, || &*path);
        return Ok(ExitCode::SUCCESS);
    }
    let is_answered = sequence == session.sequence && !session.awaits_reply();
    if arguments.copy {
        if !copy_outbox(context, &session, sequence, arguments.part)? && !output::wants_json() {
            output::result(context.display(&path));
        }
        if is_answered {
            let why = if session.is_complete { "is complete" } else { "waits for your decision" };
            output::warning(&format!(
                "session {} {why}: its newest outbox has been answered",
                session.id
            ));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let (text, _) = pasted_outbox(&context.config, &session, sequence, context.config.brief)?;
    if is_answered && !session.is_complete {
        let how = match session.question() {
            Some(_) => {
                format!(
                    "the next one follows your decision: {}",
                    question::how_to_decide(context, &session)
                )
            }
            None => "the next one follows when its turn is done".to_owned(),
        };
        output::say(format!("Outbox {sequence} has been answered, and its turn waits; {how}."));
    }
    let cut = arguments.part.map(|asked| select_part(context, &text, asked)).transpose()?;
    if let Some(OutboxPart { text, part, of }) = &cut {
        let characters = count(parts::length(text), "character");
        output::say(match of {
            1 => format!("The whole outbox, {characters}: it needs no parts."),
            _ => format!("Part {part} of {of}, {characters}."),
        });
    }
    let shown = cut.as_ref().map_or(&text, |cut| &cut.text);
    if output::wants_json() {
        output::json(&json!({
            "session": session.id,
            "sequence": sequence,
            "path": context.display(&path),
            "part": cut.as_ref().map(|cut| cut.part),
            "of": cut.as_ref().map(|cut| cut.of),
            "tokens": tokens::about(shown, context.config.max_tokens),
            "text": shown,
        }));
    } else {
        output::data(shown.as_bytes());
    }
    Ok(ExitCode::SUCCESS)
}

/// The part of an outbox with this number.
fn select_part(context: &CliContext, outbox: &str, asked: PartNumber) -> Result<OutboxPart> {
    parts::part(outbox, asked, context.config.part_characters)
        .map_err(|e| Error::usage(format!("--part: {e}")))
}

/// How the clipboard is used while sessions are served.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct ClipboardFlags {
    /// Copy each new outbox to the clipboard
    #[arg(long)]
    copy: bool,
    /// Also take replies from the clipboard if they have the newest outbox's key; implies --copy
    #[arg(long)]
    clipboard: bool,
}

impl From<ClipboardFlags> for Clip {
    fn from(clips: ClipboardFlags) -> Self {
        Self { copies: clips.copy || clips.clipboard, takes: clips.clipboard }
    }
}

impl ClipboardFlags {
    /// The given flags, as on the command line.
    pub(super) fn flags(self) -> Vec<&'static str> {
        let flags = [("--copy", self.copy), ("--clipboard", self.clipboard)];
        flags.into_iter().filter(|(_, is_given)| *is_given).map(|(flag, _)| flag).collect()
    }

    /// If requested, copies the outbox of a session that this process does not serve.
    pub(super) fn copy_once(self, context: &CliContext, session: &Session) -> Result<()> {
        if Clip::from(self).copies && session.awaits_reply() {
            copy_outbox(context, session, session.sequence, None)?;
        }
        Ok(())
    }
}

/// Copies an outbox or a part of it to the clipboard, and prints what to do next.
///
/// Uses the first backend that works: the desktop's clipboard (Wayland, X11), then the terminal's (OSC 52, also over
/// SSH). Returns whether one worked.
pub(super) fn copy_outbox(
    context: &CliContext,
    session: &Session,
    sequence: u32,
    asked: Option<PartNumber>,
) -> Result<bool> {
    let id = &session.id;
    let path = context.config.outbox.join(outbox_name(id, sequence));
    let (text, form) = pasted_outbox(&context.config, session, sequence, context.config.brief)?;
    let OutboxPart { text, part, of } = match asked {
        None => OutboxPart { text, part: 1, of: 1 },
        Some(asked) => select_part(context, &text, asked)?,
    };
    let done = clipboard::copy(&text, &ClipboardSetup::current(Programs::of(&context.config)));
    let tokens = tokens::about(&text, context.config.max_tokens);
    let brief = if form.is_brief { " --brief" } else { "" };
    let next = asked.filter(|_| part < of).map(|asked| {
        let of = asked.of.map(|of| format!("/{of}")).unwrap_or_default();
        format!("deaddrop show {sequence} --session {id} --copy{brief} --part {}{of}", part + 1)
    });
    let copied = (path, done.map(|backend| (form.clone(), backend)));
    if output::wants_json() {
        let mut value = copied_json(context, &copied);
        value["event"] = "copied".into();
        value["brief"] = form.is_brief.into();
        value["tokens"] = tokens.into();
        value["part"] = part.into();
        value["of"] = of.into();
        value["next"] = json!(next);
        output::json(&value);
    }
    let what = match of {
        1 => format!("Outbox {sequence} of session {id}{}", form_note(&form)),
        _ => format!(
            "Part {part} of {of} of outbox {sequence} of session {id} ({})",
            tokens::rounded(tokens)
        ),
    };
    match &copied.1 {
        Ok((_, backend)) => output::say(on_clipboard(&what, *backend)),
        Err(why) => {
            output::warning(&not_copied(why));
            let part = if of > 1 { format!(" --part {part}/{of}") } else { String::new() };
            output::say(format!(
                "{what}: `deaddrop show {sequence} --session {id}{brief}{part}` prints it; the whole outbox is {}",
                context.display(&copied.0)
            ));
        }
    }
    match next {
        Some(next) => output::say(format!("Send it, then part {} of {of}: `{next}`", part + 1)),
        None => {
            // The terminal's clipboard cannot be read, so the reply must be pasted.
            let reads = copied.1.as_ref().is_ok_and(|(_, backend)| !backend.is_unconfirmed());
            let next = if reads { "`deaddrop next`" } else { "`deaddrop next -`" };
            output::say(format!("Paste it into the chat, copy the reply, then run {next}."));
        }
    }
    Ok(copied.1.is_ok())
}

/// The JSON event that an outbox was copied, or could not be copied.
pub(super) fn copied_json(context: &CliContext, copied: &CopyResult<OutboxForm>) -> Value {
    let (path, done) = copied;
    let form = done.as_ref().ok().map(|(form, _)| form);
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let named = stem.split_once("_seq");
    json!({
        "session": named.map(|(id, _)| id),
        "sequence": named.and_then(|(_, sequence)| sequence.parse::<u32>().ok()),
        "outbox": context.display(path),
        "brief": form.map(|form| form.is_brief),
        "tokens": form.map(|form| form.tokens),
        "way": done.as_ref().map_or("path", |(_, way)| way.name()),
        "why": done.as_ref().err(),
    })
}

/// Describes the form of an outbox, and the numbers of tokens of both forms.
fn form_note(form: &OutboxForm) -> String {
    let tokens = tokens::rounded(form.tokens);
    let Some(other) = form.other.map(tokens::rounded) else { return format!(" ({tokens})") };
    let [this, that] = if form.is_brief { ["brief", "complete"] } else { ["complete", "brief"] };
    format!(" ({this}: {tokens}; {that}: {other})")
}

fn on_clipboard(what: &str, backend: ClipboardBackend) -> String {
    if backend.is_unconfirmed() {
        format!("{what} was sent to {backend}; terminals do not confirm it.")
    } else {
        format!("{what} is on {backend}.")
    }
}

fn not_copied(why: &str) -> String {
    format!("no clipboard accepts it ({why})")
}

/// The message about a clipboard event while sessions are served. An error is a warning for the person.
pub(super) fn clipboard_message(
    context: &CliContext,
    news: &ClipboardNews<'_>,
) -> std::result::Result<String, String> {
    match news {
        ClipboardNews::Copied((path, Ok((form, backend)))) => {
            // If there is only one form, the number of tokens was already reported.
            let form_note = form.other.map(|_| form_note(form)).unwrap_or_default();
            Ok(on_clipboard(&format!("{}{form_note}", context.display(path)), *backend))
        }
        ClipboardNews::Copied((path, Err(why))) => {
            Err(format!("{}: {}", context.display(path), not_copied(why)))
        }
        ClipboardNews::Watched(backend) => {
            Ok(format!("Replies with the newest outbox's key are also taken from {backend}."))
        }
        ClipboardNews::NotTaken(why) => {
            Err(format!("a reply on the clipboard was not taken: {why}"))
        }
        ClipboardNews::Unreadable(why) => {
            Err(format!("the clipboard cannot be read ({why}); the inbox still works"))
        }
        ClipboardNews::Readable => Ok("The clipboard can be read again.".to_owned()),
    }
}
