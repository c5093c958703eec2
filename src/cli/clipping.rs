//! `copy`, `paste` and `next`: one turn by way of the clipboard; and what is told of it elsewhere.

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::{Context, pasting, replies, sessions, show, talk};
use crate::atomic;
use crate::base::Turn;
use crate::clipboard::{self, Found, Passed, Surroundings, Way};
use crate::control::Given;
use crate::daemon::{Clip, Clipped};
use crate::error::{Error, Result};
use crate::outbox::{holds_outbox, parts};
use crate::program::Programs;
use crate::protocol::{self, Dialect};
use crate::session::store::Store;
use crate::session::{Session, outbox_name};
use crate::terminal::Stream;
use crate::tokens;
use crate::watch::Stop;

/// What `--force` does to a text that is no reply at a glance.
const FORCED: &str = "--force carries it out all the same";

#[derive(Debug, Args)]
#[command(after_help = "\
It takes the first way there is, and says which: the desktop's clipboard (Wayland, X11), wl-copy,
xclip or xsel, the terminal's clipboard (OSC 52, also over SSH). Where there is none, it prints the
file's path. The text stays on the clipboard when deaddrop has ended.

Examples:
  deaddrop copy
  deaddrop copy --part 1
  deaddrop copy a1b2c3d4 2 --part 2/3")]
pub(super) struct Copy {
    /// Which session; the newest open one if none is named
    id: Option<String>,
    /// Which of its outboxes; the newest if none is named
    sequence: Option<u32>,
    /// Only part K, for chats that take no more than so many characters (--part-characters); or part
    /// K of N about equal ones
    #[arg(long, value_name = "K[/N]")]
    part: Option<parts::PartNumber>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
It does what `deaddrop apply` does, and ends as that does. A text that is deaddrop's own outbox, or
holds no command, is refused: most likely the reply was not copied.

Examples:
  deaddrop paste
  deaddrop paste --session a1b2c3d4
  pbpaste | deaddrop paste -")]
pub(super) struct Paste {
    #[command(flatten)]
    reply: Reply,
}

#[derive(Debug, Args)]
#[command(after_help = "\
One turn: copy the reply in the chat window, run this, and paste into the chat. Exit code 3: the
reply waits for your decision, and nothing was copied; after it `deaddrop copy` does.

Examples:
  deaddrop next
  deaddrop next -
      over SSH: paste the reply into the terminal")]
pub(super) struct Next {
    #[command(flatten)]
    reply: Reply,
}

/// Which reply is taken, and for what.
#[derive(Debug, Args)]
struct Reply {
    /// `-` takes the reply from standard input instead of the clipboard
    #[arg(value_name = "-", value_parser = ["-"], hide_possible_values = true)]
    from: Option<String>,
    #[command(flatten)]
    meant: replies::Meant,
    /// Carry it out even if it answers another message than the newest, or looks like no reply
    #[arg(long)]
    force: bool,
}

/// What is done with the clipboard while sessions are served.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct Clips {
    /// Put each new outbox on the clipboard
    #[arg(long)]
    copy: bool,
    /// Take replies from the clipboard, too, if they carry the key of the newest outbox; and --copy
    #[arg(long)]
    clipboard: bool,
}

impl From<Clips> for Clip {
    fn from(clips: Clips) -> Self {
        Self { copies: clips.copy || clips.clipboard, takes: clips.clipboard }
    }
}

impl Clips {
    /// The flags of a command line that say the same.
    pub(super) fn flags(self) -> Vec<&'static str> {
        let flags = [("--copy", self.copy), ("--clipboard", self.clipboard)];
        flags.into_iter().filter(|(_, is_given)| *is_given).map(|(flag, _)| flag).collect()
    }

    /// Copies the outbox of a session that is not served any longer, if that is wished.
    pub(super) fn copy_once(self, context: &Context, session: &Session) -> Result<()> {
        if Clip::from(self).copies && session.awaits_reply() {
            put(context, session, session.sequence, &Put::Again)?;
        }
        Ok(())
    }

    /// The same where another process serves it.
    pub(super) fn copy_elsewhere(self, context: &Context, session: &Session) -> Result<()> {
        if self.clipboard {
            context.talk.warning(
                "the deaddrop that runs here takes no replies from the clipboard unless it was started with --clipboard; `deaddrop next` does",
            );
        }
        self.copy_once(context, session)
    }
}

pub(super) fn copy(context: &Context, arguments: &Copy) -> Result<ExitCode> {
    let session = sessions::named_or_newest(context, arguments.id.as_deref())?;
    let sequence = arguments.sequence.unwrap_or(session.sequence);
    let how = match arguments.part {
        None => Put::Whole,
        Some(asked) => Put::Part { asked, named: arguments.id.is_some() },
    };
    put(context, &session, sequence, &how)?;
    if sequence == session.sequence && !session.awaits_reply() {
        let why = if session.is_complete { "is complete" } else { "waits for your decision" };
        context.talk.warning(&format!("session {} {why}: that outbox was answered", session.id));
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn paste(context: &Context, arguments: &Paste) -> Result<ExitCode> {
    let (turn, stop) = take(context, &arguments.reply)?;
    context.conclude(turn, true, &stop)
}

pub(super) fn next(context: &Context, arguments: &Next) -> Result<ExitCode> {
    let (turn, stop) = take(context, &arguments.reply)?;
    let id = turn.session.id.clone();
    let code = context.conclude(turn, true, &stop)?;
    let session = Store::new(&context.config.sessions).load(&id)?;
    // What was said of it is all there is where it is complete or waits.
    if session.awaits_reply() {
        put(context, &session, session.sequence, &Put::Again)?;
    }
    Ok(code)
}

/// Carries out the reply that is meant.
fn take(context: &Context, reply: &Reply) -> Result<(Turn, Stop)> {
    let (text, name) = match &reply.from {
        Some(_) if pasting::is_possible() => {
            let text = pasting::read(&context.talk)?;
            let name = "the terminal".to_owned();
            (text.map_err(|why| Error::no_reply(Path::new(&name), why))?, name)
        }
        Some(_) => replies::read(None)?,
        None => from_clipboard(context)?,
    };
    if !reply.force
        && let Some(why) = no_reply(&text)
    {
        return Err(Error::no_reply(Path::new(&name), why));
    }
    let wish = reply.meant.wish(Given::Text(text), reply.force);
    let stop = Stop::on_signals()?;
    let turn = context.wish(wish, &stop, Some(&name), 0)?;
    Ok((turn, stop))
}

fn from_clipboard(context: &Context) -> Result<(String, String)> {
    let fail = |name: &str, why: String| Err(Error::no_reply(Path::new(name), why));
    let waits = |way: Way| {
        if Stream::Err.is_terminal() {
            context.talk.say(format!(
                "Waiting for the program that holds the clipboard ({}) to give the text …",
                way.name()
            ));
        }
    };
    match clipboard::read(&Surroundings::here(Programs::of(&context.config)), &waits) {
        Ok((way, Found::Text(text))) => Ok((text, format!("the clipboard ({})", way.name()))),
        Ok((way, Found::Empty)) => fail(
            &format!("the clipboard ({})", way.name()),
            "it is empty, or holds no text; copy the reply in the chat window first".to_owned(),
        ),
        Err(passed) => fail(
            "the clipboard",
            format!(
                "it cannot be read here ({}); `deaddrop next -` and `deaddrop paste -` take the reply from standard input: you can paste it into the terminal",
                clipboard::told(&passed)
            ),
        ),
    }
}

/// Why a text is most likely not the reply that was to be copied.
fn no_reply(text: &str) -> Option<String> {
    if text.trim().is_empty() {
        return Some(
            "it is empty: nothing came; copy the reply in the chat window, and give it again"
                .to_owned(),
        );
    }
    if holds_outbox(text) {
        return Some(format!(
            "this is deaddrop's own outbox, or holds it, and no reply to it; copy only the reply in the chat window ({FORCED})"
        ));
    }
    // In which dialect the session is does not matter: it is understood in either.
    let holds_none = protocol::read(text, Dialect::Tags).dialect.is_none();
    holds_none.then(|| {
        format!("it holds no command, so it is no reply; copy the whole reply in the chat window ({FORCED}, and the LLM is told so)")
    })
}

/// What of an outbox is put on the clipboard.
enum Put {
    /// All of it.
    Whole,
    /// All of it, once its path was printed.
    Again,
    /// A part; `named`: whether the session was.
    Part { asked: parts::PartNumber, named: bool },
}

/// Puts an outbox of a session on the clipboard, or a part of it, and says what is next.
fn put(context: &Context, session: &Session, sequence: u32, how: &Put) -> Result<()> {
    let path = context.config.outbox.join(outbox_name(&session.id, sequence));
    let whole = atomic::read_own_text(&path).map_err(|e| Error::io("read the outbox", &path, e))?;
    let asked = match how {
        Put::Part { asked, named } => Some((*asked, *named)),
        Put::Whole | Put::Again => None,
    };
    let parts::OutboxPart { text, part, of } = match asked {
        None => parts::OutboxPart { text: whole, part: 1, of: 1 },
        Some((asked, _)) => show::cut(context, &whole, asked)?,
    };
    let done = clipboard::copy(&text, &Surroundings::here(Programs::of(&context.config)));
    let tokens = tokens::about(&text, context.config.max_tokens);
    let next = asked.filter(|_| part < of).map(|(asked, named)| {
        let named = match (named, sequence == session.sequence) {
            (_, false) => format!(" {} {sequence}", session.id),
            (true, true) => format!(" {}", session.id),
            (false, true) => String::new(),
        };
        let of = asked.of.map(|of| format!("/{of}")).unwrap_or_default();
        format!("{} copy{named} --part {}{of}", context.talk.program(), part + 1)
    });
    if context.json {
        Context::print_json(&json!({
            "event": "copied",
            "session": session.id,
            "sequence": sequence,
            "outbox": context.display(&path),
            "way": done.as_ref().map_or("path", |way| way.name()),
            "part": part,
            "of": of,
            "tokens": tokens,
            "next": next,
            "why": done.as_ref().err().map(|passed| clipboard::told(passed)),
        }));
    }
    let what = match of {
        1 => format!("Outbox {sequence} of session {}", session.id),
        _ => format!("Part {part} of {of} of outbox {sequence} of session {}", session.id),
    };
    let what = format!("{what} ({})", tokens::told(tokens));
    match &done {
        Ok(way) => context.talk.say(on_clipboard(&what, *way)),
        Err(passed) => {
            context.talk.warning(&not_copied(passed));
            context.talk.hint(&match (how, of) {
                (Put::Again, _) => format!("{what} is the file that is named above."),
                (_, 1) => format!("{what} is this file:"),
                _ => format!(
                    "{what}: `deaddrop show {} {sequence} --part {part}/{of}` prints it. All of it is this file:",
                    session.id
                ),
            });
            if !context.json && !matches!(how, Put::Again) {
                talk::result(context.display(&path));
            }
        }
    }
    context.talk.say(&match next {
        Some(next) => format!("Send it, then part {} of {of}: {next}", part + 1),
        None => {
            // A terminal gives nothing back: there the reply is pasted.
            let reads = done.is_ok_and(|way| !way.is_unanswered());
            let from = if reads { "" } else { " -" };
            format!(
                "Paste it into the chat and copy the reply there; then: {} next{from}",
                context.talk.program()
            )
        }
    });
    Ok(())
}

fn on_clipboard(what: &str, way: Way) -> String {
    if way.is_unanswered() {
        format!("{what} was sent to {way}; a terminal does not say whether it took it.")
    } else {
        format!("{what} is on {way}.")
    }
}

fn not_copied(passed: &[Passed]) -> String {
    format!("no clipboard takes it ({})", clipboard::told(passed))
}

/// What is said of news of the clipboard while sessions are served; as an error what the person should
/// look at.
pub(super) fn told(context: &Context, news: &Clipped<'_>) -> std::result::Result<String, String> {
    match news {
        Clipped::Copied(path, way) => Ok(on_clipboard(&context.display(path), *way)),
        Clipped::NotCopied(path, passed) => {
            Err(format!("{}: {}", context.display(path), not_copied(passed)))
        }
        Clipped::Watched(way) => Ok(format!(
            "Replies that carry the key of the newest outbox are taken from {way}, too."
        )),
        Clipped::Left(why) => Err(format!("a reply on the clipboard was not taken: {why}")),
        Clipped::Trouble(why) => Err(format!(
            "no replies come from the clipboard ({why}); the inbox is served all the same"
        )),
        Clipped::Well => Ok("The clipboard can be looked at again.".to_owned()),
    }
}
