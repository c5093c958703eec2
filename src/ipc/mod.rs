//! Requests of a person beside the replies in the inbox: carry out this reply now, say this, begin that session.
//! The process that holds the project handles them; any other hands its request over through the spool
//! `sessions/control/` and waits for the answer. So there is never a second writer.

mod spool;

pub use spool::{Done, answer_all, folder, hand_over, sweep};

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::admission::{self, Admission, Given, Refusal};
use crate::engine::{Engine, NewSession, Selection, Turn, UndoRequest};
use crate::error::{Error, Result};
use crate::event::{Event, Observer};
use crate::inbox::{HELD, REJECTED, Taken};
use crate::protocol::{ParsedReply, Step};
use crate::session::{ApprovalDecision, RunRequest, Session};
use crate::settings::Policy;

const UNFINISHED: &str =
    "it ends within a block and was written just now; try again when it is finished";

/// What a person asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Request {
    /// Carry out one reply now.
    Apply {
        /// The reply.
        reply: GivenReply,
        /// Its name, for the person.
        name: String,
        /// For which session; None for the only open one.
        session: Option<String>,
        /// Also if it is the same text as the one before it.
        again: bool,
        /// Also if it says that it answers another outbox than the newest.
        #[serde(default)]
        force: bool,
        /// What the person chose among its steps.
        #[serde(default)]
        selection: Selection,
    },
    /// Say something in the newest outbox, or in the next one.
    Say {
        /// What.
        text: String,
        /// For which session; None for the only open one.
        session: Option<String>,
    },
    /// Go on with a completed session, with these words for the model.
    Reopen {
        /// Which.
        session: String,
        /// The words.
        text: String,
    },
    /// End a session without a reply.
    Close {
        /// Which.
        session: String,
        /// Whether to remove it.
        delete: bool,
    },
    /// Begin a session.
    New(NewSession),
    /// Write the first outbox that a session would have (see [`Engine::preview_session`]).
    Preview(NewSession),
    /// Do what follows from a decision.
    Decide {
        /// The session or run that waits: the name of its files.
        stem: String,
        /// What was asked, as the person saw it, and what they decided.
        decision: Box<ApprovalDecision>,
    },
    /// Carry out one message as a run of its own.
    Run {
        /// What it asks for.
        steps: Vec<Step>,
        /// Its policy, whole: whoever carries it out may have read other settings.
        policy: Box<Policy>,
        /// The id that it was given already, and what it was asked for with.
        #[serde(default)]
        asked: Option<(String, RunRequest)>,
    },
    /// Undo turns, or redo them.
    Undo {
        /// Which.
        undo: UndoRequest,
        /// Of which session; None for the only open one, or the newest.
        session: Option<String>,
        /// Also what the person has changed since.
        force: bool,
        /// Why, in the person's words.
        #[serde(default)]
        reason: Option<String>,
    },
    /// Go on with a run that waited.
    ResumeRun {
        /// Its name.
        stem: String,
    },
}

/// A reply that is given by hand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum GivenReply {
    /// Its text.
    Text(String),
    /// A file that lies in the inbox, or is held there, and is taken out of it.
    InInbox(PathBuf),
}

/// Handles a request in a project that this process holds.
pub fn handle(engine: &mut Engine, request: Request, observer: &mut dyn Observer) -> Result<Turn> {
    match request {
        Request::New(new) => engine.begin_session(&new, false),
        Request::Preview(new) => engine.preview_session(&new),
        Request::Decide { stem, decision } => engine.decide(&stem, *decision, observer),
        Request::Run { steps, policy, asked } => engine.run(steps, *policy, asked, observer),
        Request::ResumeRun { stem } => engine.resume_run(&stem, observer),
        Request::Undo { undo, session, force, reason } => {
            let session = engine.session_to_undo(session.as_deref())?;
            engine.undo(session, undo, force, reason, observer)
        }
        Request::Reopen { session, text } => engine.reopen(&session, &text),
        Request::Close { session, delete } => engine.close(&session, delete),
        Request::Say { text, session } => {
            let session = engine.store.choose(session.as_deref())?;
            engine.say(session, &text)
        }
        Request::Apply { reply, name, session, again, force, selection } => {
            let given = Given { again, force, ..Given::default() };
            let how = How { name: &name, session: session.as_deref(), given, selection };
            match reply {
                GivenReply::Text(text) => apply_text(engine, ParsedReply::new(text), how, observer),
                GivenReply::InInbox(path) => apply_file(engine, &path, how, observer),
            }
        }
    }
}

/// How a reply is carried out that is given by hand.
struct How<'a> {
    /// Its name, for the person.
    name: &'a str,
    /// The session that was named.
    session: Option<&'a str>,
    given: Given,
    selection: Selection,
}

/// The decision about a reply that is given by hand.
fn admit(
    engine: &Engine,
    reply: &mut ParsedReply,
    session: &Session,
    given: Given,
    selection: &Selection,
) -> Result<Admission> {
    Ok(match admission::admit(reply, session, given) {
        Admission::Accepted if *selection != Selection::default() => {
            let valid = engine.check_selection(reply, session, selection)?;
            valid.map_or_else(Admission::Held, |()| Admission::Accepted)
        }
        decision => decision,
    })
}

/// Carries out a reply that is given as a text.
fn apply_text(
    engine: &mut Engine,
    mut reply: ParsedReply,
    how: How<'_>,
    observer: &mut dyn Observer,
) -> Result<Turn> {
    let How { name, session: named, given, selection } = how;
    let session = admission::choose(&engine.store, reply.answers(), named, given.force)?;
    engine.check_ready(&session)?;
    let given = Given { as_text: true, ..given };
    match admit(engine, &mut reply, &session, given, &selection)? {
        Admission::Accepted => {}
        Admission::Held(Refusal { code, why, flag })
        | Admission::Rejected(Refusal { code, why, flag }) => {
            let advice = flag.map_or_else(String::new, |flag| {
                format!(". It was not carried out; give it again with {flag} if you mean it")
            });
            return Err(Error::no_reply(Path::new("this reply"), why + &advice).with_code(code));
        }
    }
    let file = format!("{}_seq{:04}_reply.txt", session.id, session.sequence);
    let claimed = engine.inbox.admit(&file, reply)?;
    observer.event(Event::ReplyTaken { name: name.as_ref(), session: &session });
    engine.carry_out(session, claimed, &selection.left_out, observer)
}

/// Carries out a reply that is in the inbox, or held there, and takes it out.
fn apply_file(
    engine: &mut Engine,
    path: &Path,
    how: How<'_>,
    observer: &mut dyn Observer,
) -> Result<Turn> {
    let How { name, session: named, given, selection } = how;
    let answers = engine.inbox.answers(path);
    let session = admission::choose(&engine.store, answers.as_ref(), named, given.force)?;
    engine.check_ready(&session)?;
    let mut claimed = match engine.inbox.take(path)? {
        Taken::Reply(claimed) => claimed,
        Taken::Rejected(why) => return Err(Error::no_reply(path, why)),
        Taken::NotYet => return Err(Error::no_reply(path, UNFINISHED)),
        Taken::Gone => return Err(Error::no_reply(path, "it is gone")),
    };
    engine.inbox.forget_note(path);
    let given = Given { written: claimed.written(), ..given };
    let (folder, refusal) = match admit(engine, &mut claimed.reply, &session, given, &selection)? {
        Admission::Accepted => {
            observer.event(Event::ReplyTaken { name: name.as_ref(), session: &session });
            return engine.carry_out(session, claimed, &selection.left_out, observer);
        }
        Admission::Held(refusal) => (HELD, refusal),
        Admission::Rejected(refusal) => (REJECTED, refusal),
    };
    let why = refusal.to_string();
    engine.inbox.put_away(&claimed, folder, &why)?;
    Err(Error::no_reply(path, why).with_code(refusal.code))
}
