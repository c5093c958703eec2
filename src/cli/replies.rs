//! `apply`: one reply, carried out now.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::Context;
use super::input::Input;
use crate::control::{Given, Wish};
use crate::error::{Error, Result};
use crate::inbox::HELD;
use crate::text::visible_line;
use crate::watch::Stop;

#[derive(Debug, Args)]
#[command(after_help = "\
Prints the path of the next outbox. Exit code 0 says that the reply was carried out, even if a
command in it failed; 3 that it waits for your decision, see `deaddrop approve --help`.

Examples:
  deaddrop apply reply.txt
  xclip -selection clipboard -o | deaddrop apply --session a1b2c3d4")]
pub(super) struct Apply {
    /// The reply; `-` or nothing reads it from standard input
    file: Option<PathBuf>,
    #[command(flatten)]
    meant: Meant,
    /// Carry it out even if it says that it answers another message than the newest
    #[arg(long)]
    force: bool,
}

/// What the person says of a reply that they give by hand.
#[derive(Debug, Args)]
pub(super) struct Meant {
    /// For which session, where several are open
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Carry it out even if it is the same text as the reply before it
    #[arg(long)]
    again: bool,
}

impl Meant {
    /// Has the reply carried out so; `force`: whatever message it answers.
    pub(super) fn wish(&self, reply: Given, force: bool) -> Wish {
        Wish::Apply { reply, session: self.session.clone(), again: self.again, force }
    }
}

pub(super) fn apply(context: &Context, arguments: &Apply) -> Result<ExitCode> {
    // A reply that lies in the inbox is taken out of it, or it would be carried out once more; so is one
    // that is held there, or it would go on waiting for the person.
    let in_inbox = arguments.file.as_ref().and_then(|file| in_inbox(file, &context.config.inbox));
    // Before the lock and the handlers of signals: a person may take their time, or press Ctrl-C.
    let (reply, name) = match in_inbox {
        Some(there) => {
            let file = arguments.file.as_deref().unwrap_or(&there);
            let name = visible_line(&file.to_string_lossy()).into_owned();
            (Given::InInbox(there), name)
        }
        None => {
            let (text, name) = read(arguments.file.as_deref())?;
            (Given::Text(text), name)
        }
    };
    let wish = arguments.meant.wish(reply, arguments.force);
    let stop = Stop::on_signals()?;
    let turn = context.wish(wish, &stop, Some(&name), 0)?;
    context.conclude(turn, true, &stop)
}

/// The text of a reply from a file or standard input, and what to call it.
pub(super) fn read(file: Option<&Path>) -> Result<(String, String)> {
    let Input { path, name, text } = Input::read(file, "read the reply from")?;
    Ok((text.map_err(|why| Error::no_reply(&path, why))?, name))
}

/// Where `file` lies in the inbox, if it does: to be taken, or held.
fn in_inbox(file: &Path, inbox: &Path) -> Option<PathBuf> {
    let folders = [inbox.to_owned(), inbox.join(HELD)];
    let folder = folders.into_iter().find(|folder| lies_in(file, folder))?;
    Some(folder.join(file.file_name()?))
}

/// Whether `file` lies directly in `folder`.
fn lies_in(file: &Path, folder: &Path) -> bool {
    let parent = fs::canonicalize(file).ok().and_then(|file| Some(file.parent()?.to_owned()));
    parent.is_some() && parent == fs::canonicalize(folder).ok()
}
