//! Requests of the person, such as applying a reply, adding words or beginning a session. The process that has the
//! project's lock handles them. Any other process hands its request over through the spool `sessions/control/` and waits
//! for the answer, so there is never a second writer.

mod spool;

pub use spool::{RequestResult, answer_all, folder, hand_over, sweep};

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::admission::{self, Admission, Refusal, ReplyOptions};
use crate::engine::{Engine, NewSession, Selection, Turn, UndoRequest};
use crate::error::{Error, Result};
use crate::event::{Event, Observer};
use crate::inbox::{ClaimOutcome, HELD, REJECTED};
use crate::protocol::{ParsedReply, Step};
use crate::session::{ApprovalDecision, RunRequest, Session};
use crate::settings::Policy;

const UNFINISHED: &str =
    "it ends within a block and was written just now; try again when it is finished";

/// A request of the person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Request {
    /// Carry out a reply now.
    Apply {
        /// The reply.
        reply: GivenReply,
        /// The reply's name, for the person.
        name: String,
        /// The session that it is for; None for the only open one.
        session: Option<String>,
        /// Even if it repeats the previous reply.
        again: bool,
        /// Even if it says that it answers another outbox than the newest.
        #[serde(default)]
        force: bool,
        /// The person's selection among its steps.
        #[serde(default)]
        selection: Selection,
    },
    /// Add words to the newest outbox, or to the next one.
    Say {
        /// The words.
        text: String,
        /// The session; None for the only open one.
        session: Option<String>,
    },
    /// Reopen a completed session, with these words for the model.
    Reopen {
        /// The session's ID.
        session: String,
        /// The words.
        text: String,
    },
    /// Close a session without a reply.
    Close {
        /// The session's ID.
        session: String,
        /// Also delete it.
        delete: bool,
    },
    /// Begin a session.
    New(NewSession),
    /// Write the first outbox that a new session would have (see [`Engine::preview_session`]).
    Preview(NewSession),
    /// Carry out a decision.
    Decide {
        /// The file stem of the waiting session or run.
        stem: String,
        /// The question, as the person saw it, and the decision.
        decision: Box<ApprovalDecision>,
    },
    /// Carry out one message as a new run.
    Run {
        /// The message's steps.
        steps: Vec<Step>,
        /// The complete policy, since the serving process may have other settings.
        policy: Box<Policy>,
        /// The ID and the request of a run that was requested by ID.
        #[serde(default)]
        asked: Option<(String, RunRequest)>,
    },
    /// Undo turns, or redo them.
    Undo {
        /// The turns.
        undo: UndoRequest,
        /// The session; None for the only open one, or the newest.
        session: Option<String>,
        /// Also overwrite later changes.
        force: bool,
        /// The reason, in the person's words.
        #[serde(default)]
        reason: Option<String>,
    },
    /// Continue a waiting run.
    ResumeRun {
        /// The run's file stem.
        stem: String,
    },
}

/// A reply that is given by hand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum GivenReply {
    /// Its text.
    Text(String),
    /// A file in the inbox or among the held replies, which is moved out of there.
    InInbox(PathBuf),
}

/// Handles a request in the process that has the project's lock.
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
            let options = ReplyOptions { again, force, ..ReplyOptions::default() };
            let apply = Apply { name: &name, session: session.as_deref(), options, selection };
            match reply {
                GivenReply::Text(text) => {
                    apply_text(engine, ParsedReply::new(text), apply, observer)
                }
                GivenReply::InInbox(path) => apply_file(engine, &path, apply, observer),
            }
        }
    }
}

/// How to apply a reply that is given by hand.
struct Apply<'a> {
    /// The reply's name, for the person.
    name: &'a str,
    /// The session that the person named.
    session: Option<&'a str>,
    options: ReplyOptions,
    selection: Selection,
}

/// The decision about a reply that is given by hand.
fn admit(
    engine: &Engine,
    reply: &mut ParsedReply,
    session: &Session,
    options: ReplyOptions,
    selection: &Selection,
) -> Result<Admission> {
    Ok(match admission::admit(reply, session, options) {
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
    apply: Apply<'_>,
    observer: &mut dyn Observer,
) -> Result<Turn> {
    let Apply { name, session: named, options, selection } = apply;
    let session = admission::choose_session(&engine.store, reply.answers(), named, options.force)?;
    engine.check_ready(&session)?;
    let options = ReplyOptions { as_text: true, ..options };
    match admit(engine, &mut reply, &session, options, &selection)? {
        Admission::Accepted => {}
        Admission::Held(Refusal { code, why, flag })
        | Admission::Rejected(Refusal { code, why, flag }) => {
            let advice = flag.map(|flag| format!("; give it again with {flag} if you mean it"));
            let message =
                format!("the reply was not executed: {why}{}", advice.unwrap_or_default());
            return Err(Error::relayed(message, code, 1));
        }
    }
    let file = format!("{}_seq{:04}_reply.txt", session.id, session.sequence);
    let claimed = engine.inbox.claim_text(&file, reply)?;
    observer.event(Event::ReplyTaken { name: name.as_ref(), session: &session });
    engine.carry_out(session, claimed, &selection.left_out, observer)
}

/// Carries out a reply from the inbox or the held replies.
fn apply_file(
    engine: &mut Engine,
    path: &Path,
    apply: Apply<'_>,
    observer: &mut dyn Observer,
) -> Result<Turn> {
    let Apply { name, session: named, options, selection } = apply;
    let answers = engine.inbox.answers(path);
    let session = admission::choose_session(&engine.store, answers.as_ref(), named, options.force)?;
    engine.check_ready(&session)?;
    let mut claimed = match engine.inbox.claim(path)? {
        ClaimOutcome::Reply(claimed) => claimed,
        ClaimOutcome::Rejected(why) => return Err(Error::no_reply(path, why)),
        ClaimOutcome::NotYet => return Err(Error::no_reply(path, UNFINISHED)),
        ClaimOutcome::Gone => return Err(Error::no_reply(path, "it is gone")),
    };
    engine.inbox.forget_note(path);
    let options = ReplyOptions { written: claimed.written(), ..options };
    let (folder, refusal) = match admit(engine, &mut claimed.reply, &session, options, &selection)?
    {
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
