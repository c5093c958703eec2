//! `apply` and `next`: one reply, carried out now, from a file, standard input, the terminal or the clipboard.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::input::Input;
use super::show::{Put, put};
use super::{Context, SessionFlag, input};
use crate::clipboard::{self, Environment, Way};
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
pub(super) struct Apply {
    /// The reply [default: standard input]
    #[arg(default_value = "-", hide_default_value = true)]
    file: PathBuf,
    /// Read the reply from the clipboard
    #[arg(long, conflicts_with = "file")]
    clipboard: bool,
    #[command(flatten)]
    how: How,
}

#[derive(Debug, Args)]
pub(super) struct Next {
    /// `-` reads the reply from standard input instead of the clipboard
    #[arg(value_name = "-", value_parser = ["-"], hide_possible_values = true)]
    from: Option<String>,
    #[command(flatten)]
    how: How,
}

/// What the person says of a reply that they give by hand.
#[derive(Debug, Args)]
struct How {
    #[command(flatten)]
    session: SessionFlag,
    /// Execute it even if it has the same text as the reply before
    #[arg(long)]
    again: bool,
    /// Execute it even if it answers an older outbox, or has no commands
    #[arg(long)]
    force: bool,
    /// Leave out a step, by its place in the list of `check` (repeatable); the model reads the reason
    #[arg(long, value_name = "N[=REASON]", value_parser = left_out)]
    leave_out: Vec<(usize, String)>,
    /// Only if the reply and the files are as `check --json` saw them (its `state`)
    #[arg(long, value_name = "STATE")]
    as_checked: Option<String>,
}

/// A step that is left out, with the reason.
pub(super) fn left_out(given: &str) -> Result<(usize, String), String> {
    let (n, reason) = given.split_once('=').unwrap_or((given, ""));
    match n.parse() {
        Ok(n) if n > 0 => Ok((n, reason.trim().to_owned())),
        _ => Err("a number from 1, as in --leave-out \"2=not this file\"".to_owned()),
    }
}

pub(super) fn next(context: &Context, arguments: &Next) -> Result<ExitCode> {
    let (text, name) = match &arguments.from {
        Some(from) => read(context, Path::new(from))?,
        None => from_clipboard(context)?,
    };
    let (code, id) = carry_out(context, &arguments.how, GivenReply::Text(text), name, true)?;
    let session = SessionStore::new(&context.config.sessions).load(&id)?;
    // What was said of it is all there is where it is complete or waits.
    if session.awaits_reply() {
        put(context, &session, session.sequence, &Put::Whole)?;
    }
    Ok(code)
}

pub(super) fn apply(context: &Context, arguments: &Apply) -> Result<ExitCode> {
    let Apply { file, clipboard: is_copied, how } = arguments;
    // A reply that lies in the inbox is taken out of it, or it would be carried out once more; so is one
    // that is held there, or it would go on waiting for the person.
    let in_inbox = in_inbox(file, &context.config.inbox);
    // Before the lock and the handlers of signals: a person may take their time, or press Ctrl-C.
    let (reply, name) = match in_inbox {
        _ if *is_copied => {
            let (text, name) = from_clipboard(context)?;
            (GivenReply::Text(text), name)
        }
        Some(there) => {
            (GivenReply::InInbox(there), visible_line(&file.to_string_lossy()).into_owned())
        }
        None => {
            let (text, name) = read(context, file)?;
            (GivenReply::Text(text), name)
        }
    };
    carry_out(context, how, reply, name, *is_copied).map(|(code, _)| code)
}

/// Carries out a reply, and what the person decides about it; gives the id of its session, too. A text that was copied is
/// refused where it does not look like a reply.
fn carry_out(
    context: &Context,
    how: &How,
    reply: GivenReply,
    name: String,
    is_copied: bool,
) -> Result<(ExitCode, String)> {
    if let (GivenReply::Text(text), true) = (&reply, is_copied && !how.force)
        && let Some(why) = no_reply(text)
    {
        return Err(Error::no_reply(Path::new(&name), why));
    }
    let session = context.session_id(&how.session)?;
    let (again, force, state) = (how.again, how.force, how.as_checked.clone());
    let selection = Selection { state, left_out: how.leave_out.iter().cloned().collect() };
    let request = Request::Apply { reply, name, session, again, force, selection };
    let stop = Stop::on_signals()?;
    let turn = context.request(request, &stop, 0)?;
    let id = turn.session.id.clone();
    Ok((context.conclude(turn, true, &stop)?, id))
}

/// The text of a reply from a file, standard input or a terminal, and what to call it.
pub(super) fn read(context: &Context, file: &Path) -> Result<(String, String)> {
    if file == Path::new("-") && input::can_paste() {
        let name = "the terminal";
        let text = input::read_paste(&context.ui)?;
        return Ok((text.map_err(|why| Error::no_reply(Path::new(name), why))?, name.to_owned()));
    }
    let Input { name, text } = Input::read(file, "read the reply from")?;
    let text = text.map_err(|why| Error::no_reply(Path::new(&name), why))?;
    Ok((text, name))
}

/// Where `file` lies in the inbox, if it does: to be taken, or held.
fn in_inbox(file: &Path, inbox: &Path) -> Option<PathBuf> {
    // That is standard input.
    let file = Some(file).filter(|file| *file != Path::new("-"))?;
    let file_itself = fs::canonicalize(file).ok()?;
    let mut folders = [inbox.to_owned(), inbox.join(HELD)].into_iter();
    let folder = folders.find(|folder| {
        fs::canonicalize(folder).is_ok_and(|folder| file_itself.parent() == Some(&*folder))
    })?;
    Some(folder.join(file.file_name()?))
}

/// What `--force` does to a text that is no reply at a glance.
const FORCED: &str = "--force executes it all the same";

fn from_clipboard(context: &Context) -> Result<(String, String)> {
    let fail = |name: &str, why: String| Err(Error::no_reply(Path::new(name), why));
    let waits = |way: Way| {
        if Stream::Err.is_terminal() {
            context.ui.say(format!("Waiting for the clipboard ({}) …", way.name()));
        }
    };
    match clipboard::read(&Environment::here(Programs::of(&context.config)), &waits) {
        Ok((way, Some(text))) => Ok((text, format!("the clipboard ({})", way.name()))),
        Ok((way, None)) => fail(
            &format!("the clipboard ({})", way.name()),
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

/// Why a text is most likely not the reply that was to be copied.
fn no_reply(text: &str) -> Option<String> {
    if text.trim().is_empty() {
        return Some("it is empty; copy the reply in the chat window, and try again".to_owned());
    }
    if contains_outbox(text) {
        return Some(format!(
            "this is (or contains) one of deaddrop's outboxes, not a reply; copy only the reply in the chat window ({FORCED})"
        ));
    }
    // In which dialect the session is does not matter: it is understood in either.
    let holds_none = protocol::read(text, Dialect::Tags).dialect.is_none();
    holds_none.then(|| {
        format!("it contains no commands, so it is not a reply; copy the whole reply in the chat window ({FORCED}, and the model is told)")
    })
}
