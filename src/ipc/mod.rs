//! What a person wishes done beside their replies: carry out this one now, say this, begin that.
//! The process that holds the project does it; any other hands its wish over through the
//! spool `sessions/control/` and waits for the answer. So there is never a second writer.

mod spool;

pub use crate::admission::{Objection, held, objection};
pub use spool::{Done, answer_all, folder, hand_over, sweep};

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::admission::AGAIN;
use crate::engine::{Back, Beginning, Engine, Turn};
use crate::error::{Error, Result};
use crate::inbox::Taken;
use crate::protocol::{ParsedReply, Step};
use crate::session::{ApprovalDecision, Question, Session};
use crate::settings::Policy;
use crate::text::visible_line;
use crate::turn::Observer;

const UNFINISHED: &str =
    "it ends within a block and was written just now; try again when it is finished";

/// What a person wishes done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Request {
    /// Carry out one reply now.
    Apply {
        /// The reply.
        reply: Given,
        /// For which session; None for the only open one.
        session: Option<String>,
        /// Also if it is the same text as the one before it.
        again: bool,
        /// Also if it says that it answers another outbox than the newest.
        #[serde(default)]
        force: bool,
    },
    /// Say something in the newest outbox, or in the next one.
    Say {
        /// What.
        text: String,
        /// For which session; None for the only open one.
        session: Option<String>,
    },
    /// End a session without a reply.
    Close {
        /// Which.
        session: String,
        /// Whether to remove it.
        delete: bool,
    },
    /// Begin a session.
    New(Beginning),
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
    },
    /// Take turns back, or do that again.
    Back {
        /// What.
        back: Back,
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
pub enum Given {
    /// Its text.
    Text(String),
    /// A file that lies in the inbox, or is held there, and is taken out of it.
    InInbox(PathBuf),
}

/// Does what is wished in a project that is this process's.
pub fn handle(engine: &mut Engine, wish: Request, observer: &mut dyn Observer) -> Result<Turn> {
    match wish {
        Request::New(beginning) => engine.begin(&beginning, false),
        Request::Decide { stem, decision } => engine.decide(&stem, *decision, observer),
        Request::Run { steps, policy } => engine.run(steps, *policy, observer),
        Request::ResumeRun { stem } => engine.resume_run(&stem, observer),
        Request::Back { back, session, force, reason } => {
            let session = engine.to_take_back(session.as_deref())?;
            engine.take_back(session, back, force, reason, observer)
        }
        Request::Close { session, delete } => engine.close(&session, delete),
        Request::Say { text, session } => {
            let session = engine.store.choose(session.as_deref())?;
            engine.say(session, &text)
        }
        Request::Apply { reply, session, again, force } => {
            let chosen = choose(engine, reply, session.as_deref(), force)?;
            apply(engine, chosen, again, force, observer)
        }
    }
}

/// A reply that is given by hand, and the session that it is for.
#[derive(Debug)]
pub struct Chosen {
    /// The session.
    pub session: Session,
    reply: Found,
}

/// Where a reply is.
#[derive(Debug)]
enum Found {
    Here(ParsedReply),
    InInbox(PathBuf),
}

/// Chooses the session that a reply is for: the one that is named, or that it says it answers, or the
/// only open one. Forced, one that it names and that is not there counts for nothing.
///
/// # Errors
/// There is none, or several.
pub fn choose(
    engine: &mut Engine,
    reply: Given,
    named: Option<&str>,
    force: bool,
) -> Result<Chosen> {
    let reply = match reply {
        Given::Text(text) => Found::Here(ParsedReply::new(text)),
        Given::InInbox(path) => Found::InInbox(path),
    };
    if named.is_some() {
        return Ok(Chosen { session: engine.store.choose(named)?, reply });
    }
    let answers = match &reply {
        Found::Here(letter) => letter.answers().cloned(),
        Found::InInbox(path) => engine.inbox.answers(path),
    };
    let meant = answers.filter(|it| !force || engine.store.load(&it.session).is_ok());
    let session = engine.store.choose(meant.as_ref().map(|it| &*it.session))?;
    Ok(Chosen { session, reply })
}

/// Carries out a reply that is given by hand; `again` and `force` as in [`Request::Apply`].
///
/// # Errors
/// Its session waits for the person, or it is most likely a mistake, or cannot be had.
pub fn apply(
    engine: &mut Engine,
    Chosen { session, reply }: Chosen,
    again: bool,
    force: bool,
    observer: &mut dyn Observer,
) -> Result<Turn> {
    // Before the reply is taken: it is to be given again.
    engine.suits(&session)?;
    if let Some(question) = session.question() {
        return Err(Error::waits(waits(&session, question)));
    }
    let why = |letter: &ParsedReply, written| match (force, again) {
        (true, _) => None,
        _ => objection(&session, letter, written).filter(|found| !again || found.flag != AGAIN),
    };
    let claimed = match reply {
        Found::Here(letter) => {
            if letter.text().trim().is_empty() {
                return Err(Error::no_reply(Path::new("this reply"), EMPTY));
            }
            if let Some(Objection { why, flag, code }) = why(&letter, None) {
                let why = format!(
                    "{why}. It was not carried out; give it again with {flag} if you mean it"
                );
                return Err(Error::no_reply(Path::new("this reply"), why).with_code(code));
            }
            let name = format!("{}_seq{:04}_reply.txt", session.id, session.sequence);
            engine.inbox.admit(&name, letter)?
        }
        Found::InInbox(path) => match engine.inbox.take(&path)? {
            Taken::Reply(claimed) => {
                engine.inbox.forget_note(&path);
                if let Some(objection) = why(&claimed.letter, claimed.written()) {
                    let (code, why) = (objection.code, held(objection));
                    engine.inbox.hold(&claimed, &why)?;
                    return Err(Error::no_reply(&path, why).with_code(code));
                }
                claimed
            }
            Taken::Rejected(why) => return Err(Error::no_reply(&path, why)),
            Taken::NotYet => return Err(Error::no_reply(&path, UNFINISHED)),
            Taken::Gone => return Err(Error::no_reply(&path, "it is gone")),
        },
    };
    engine.carry_out(session, claimed, observer)
}

const EMPTY: &str = "it is empty, and the model would be told that it said nothing; nothing was carried out. Copy the reply in the chat window, or save it, and give it again";

/// What is told with a reply that has to wait.
pub fn waits(session: &Session, question: &Question) -> String {
    format!(
        "session {0} waits for your decision about '{1}': `deaddrop approve --session {0}` or `deaddrop deny --session {0}`; the reply was not carried out",
        session.id,
        visible_line(&question.id)
    )
}
