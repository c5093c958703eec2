//! `apply` and `next`: execute one reply from a file, standard input, the terminal or the clipboard.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::input::TextInput;
use super::show::copy_outbox;
use super::{CliContext, SessionFlag, input, output};
use crate::clipboard::{self, ClipboardBackend, ClipboardSetup};
use crate::engine::Selection;
use crate::error::{Error, Result};
use crate::inbox::HELD;
use crate::ipc::{GivenReply, Request};
use crate::outbox::contains_outbox;
use crate::program::Programs;
use crate::protocol::{self, Dialect};
use crate::session::store::SessionStore;
use crate::terminal::Stream;
use crate::text::visible_line;
use crate::watch::Stop;

#[derive(Debug, Args)]
pub(super) struct ApplyReply {
    /// The reply [default: standard input]
    #[arg(default_value = "-", hide_default_value = true)]
    file: PathBuf,
    /// Read the reply from the clipboard
    #[arg(long, conflicts_with = "file")]
    clipboard: bool,
    #[command(flatten)]
    flags: ReplyFlags,
}

#[derive(Debug, Args)]
pub(super) struct Next {
    /// `-` reads the reply from standard input instead of the clipboard
    #[arg(value_name = "-", value_parser = ["-"], hide_possible_values = true)]
    from: Option<String>,
    #[command(flatten)]
    flags: ReplyFlags,
}

/// Flags for a reply that the person gives by hand.
#[derive(Debug, Args)]
struct ReplyFlags {
    #[command(flatten)]
    session: SessionFlag,
    /// Execute it even if it has the same text as the reply before
    #[arg(long)]
    again: bool,
    /// Execute it even if it answers an older outbox, or has no commands
    #[arg(long)]
    force: bool,
    /// Leave out step N of the list of `check` (repeatable); the model reads the reason
    #[arg(long, value_name = "N[=REASON]", value_parser = parse_left_out)]
    leave_out: Vec<(usize, String)>,
    /// Only if the reply and the files are as `check --json` saw them (its `state`)
    #[arg(long, value_name = "STATE")]
    as_checked: Option<String>,
}

/// Parses a step to leave out, with its reason.
pub(super) fn parse_left_out(given: &str) -> Result<(usize, String), String> {
    let (n, reason) = given.split_once('=').unwrap_or((given, ""));
    match n.parse() {
        Ok(n) if n > 0 => Ok((n, reason.trim().to_owned())),
        _ => Err("a number from 1, as in --leave-out \"2=not this file\"".to_owned()),
    }
}

pub(super) fn next(context: &CliContext, arguments: &Next) -> Result<ExitCode> {
    let (text, name) = match &arguments.from {
        Some(from) => read(Path::new(from))?,
        None => from_clipboard(context)?,
    };
    let (code, id) = execute(context, &arguments.flags, GivenReply::Text(text), name, true)?;
    let session = SessionStore::new(&context.config.sessions).load(&id)?;
    // A session that is complete or waits for a decision has no outbox to copy.
    if session.awaits_reply() {
        copy_outbox(context, &session, session.sequence, None)?;
    }
    Ok(code)
}

pub(super) fn apply(context: &CliContext, arguments: &ApplyReply) -> Result<ExitCode> {
    let ApplyReply { file, clipboard: is_copied, flags } = arguments;
    // A reply in the inbox must be removed from it, or it would be executed again. A held reply must also be removed,
    // or it would still wait for the person.
    let in_inbox = in_inbox(file, &context.config.inbox);
    // Do this before taking the lock and handling signals: a person may need time, or press Ctrl-C.
    let (reply, name) = match in_inbox.filter(|_| !*is_copied) {
        Some(there) => {
            (GivenReply::InInbox(there), visible_line(&file.to_string_lossy()).into_owned())
        }
        None => {
            let (text, name) = if *is_copied { from_clipboard(context)? } else { read(file)? };
            (GivenReply::Text(text), name)
        }
    };
    execute(context, flags, reply, name, *is_copied).map(|(code, _)| code)
}

/// Executes a reply and the operations that the person approves. Also returns the ID of its session. A text from the
/// clipboard (`is_copied`) is refused if it does not look like a reply.
fn execute(
    context: &CliContext,
    flags: &ReplyFlags,
    reply: GivenReply,
    name: String,
    is_copied: bool,
) -> Result<(ExitCode, String)> {
    if let (GivenReply::Text(text), true) = (&reply, is_copied && !flags.force)
        && let Some(why) = why_no_reply(text)
    {
        return Err(Error::no_reply(Path::new(&name), why));
    }
    let session = context.session_id(&flags.session)?;
    let (again, force, state) = (flags.again, flags.force, flags.as_checked.clone());
    let selection = Selection { state, left_out: flags.leave_out.iter().cloned().collect() };
    let request = Request::Apply { reply, name, session, again, force, selection };
    let stop = Stop::on_signals()?;
    let turn = context.request(request, &stop, 0)?;
    let id = turn.session.id.clone();
    Ok((context.conclude(turn, true, &stop)?, id))
}

/// Reads a reply from a file, standard input or the terminal. Returns its text, and its name for messages.
pub(super) fn read(file: &Path) -> Result<(String, String)> {
    if file == Path::new("-") && input::can_paste() {
        let name = "the terminal";
        let text = input::read_paste()?;
        return Ok((text.map_err(|why| Error::no_reply(Path::new(name), why))?, name.to_owned()));
    }
    let TextInput { name, text } = TextInput::read(file, "read the reply from")?;
    let text = text.map_err(|why| Error::no_reply(Path::new(&name), why))?;
    Ok((text, name))
}

/// The path of `file` in the inbox or among its held replies; None if it is in neither.
fn in_inbox(file: &Path, inbox: &Path) -> Option<PathBuf> {
    // `-` is standard input.
    let file = Some(file).filter(|file| *file != Path::new("-"))?;
    let file_itself = fs::canonicalize(file).ok()?;
    let mut folders = [inbox.to_owned(), inbox.join(HELD)].into_iter();
    let folder = folders.find(|folder| {
        fs::canonicalize(folder).is_ok_and(|folder| file_itself.parent() == Some(&*folder))
    })?;
    Some(folder.join(file.file_name()?))
}

fn from_clipboard(context: &CliContext) -> Result<(String, String)> {
    let fail = |name: &str, why: String| Err(Error::no_reply(Path::new(name), why));
    let waits = |backend: ClipboardBackend| {
        if Stream::Err.is_terminal() {
            output::say(format!("Waiting for the clipboard ({}) …", backend.name()));
        }
    };
    match clipboard::read(&ClipboardSetup::current(Programs::of(&context.config)), &waits) {
        Ok((backend, Some(text))) => Ok((text, format!("the clipboard ({})", backend.name()))),
        Ok((backend, None)) => fail(
            &format!("the clipboard ({})", backend.name()),
            "it is empty, or contains no text; copy the reply in the chat window first".to_owned(),
        ),
        Err(why) => fail(
            "the clipboard",
            format!(
                "it cannot be read here ({why}); `deaddrop next -` and `deaddrop apply -` take the reply from standard input: you can paste it into the terminal"
            ),
        ),
    }
}

/// Why a text on the clipboard is probably not a reply; None if it may be one.
fn why_no_reply(text: &str) -> Option<String> {
    if text.trim().is_empty() {
        return Some("it is empty; copy the reply in the chat window, and try again".to_owned());
    }
    if contains_outbox(text) {
        return Some(
            "this is (or contains) one of deaddrop's outboxes, not a reply; copy only the reply in the chat window"
                .to_owned(),
        );
    }
    // Both dialects are recognised, regardless of the session's dialect.
    let holds_none = protocol::read(text, Dialect::Tags).dialect.is_none();
    holds_none.then(|| {
        "it contains no commands, so it is not a reply; copy the whole reply in the chat window (--force executes it anyway, and the model is told)".to_owned()
    })
}
