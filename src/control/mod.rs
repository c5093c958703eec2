//! What a person wishes done beside their replies: carry out this one now, say this, begin that.
//! The process that holds the base directory does it; any other hands its wish over through the
//! spool `sessions/control/` and waits for the answer. So there is never a second writer.

mod spool;

pub use spool::{Done, answer_all, folder, hand_over, hand_over_prune, sweep};

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::base::{Back, Base, Beginning, Turn};
use crate::config::Policy;
use crate::error::{Error, Result};
use crate::inbox::Taken;
use crate::protocol::{Letter, Step};
use crate::session::{Question, Session};
use crate::text::visible_line;
use crate::turn::Observer;

const UNFINISHED: &str =
    "it ends within a block and was written just now; try again when it is finished";
/// Why a reply is held that was there before.
const SAME: &str = "it is the same text as the reply before it, most likely pasted twice";

/// What a person wishes done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Wish {
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
    /// Begin a session.
    New(Beginning),
    /// Do what follows from a decision.
    Decide {
        /// The session or run that waits: the name of its files.
        stem: String,
        /// What was asked, as the person saw it.
        question: Box<Question>,
        /// What they decided.
        approved: bool,
        /// Why.
        reason: Option<String>,
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

/// Does what is wished in a base directory that is this process's.
pub fn fulfil(base: &mut Base, wish: Wish, observer: &mut dyn Observer) -> Result<Turn> {
    match wish {
        Wish::New(beginning) => base.begin(&beginning, false),
        Wish::Decide { stem, question, approved, reason } => {
            base.decide(&stem, &question, approved, reason, observer)
        }
        Wish::Run { steps, policy } => base.run(steps, *policy, observer),
        Wish::ResumeRun { stem } => base.resume_run(&stem, observer),
        Wish::Back { back, session, force, reason } => {
            let session = base.to_take_back(session.as_deref())?;
            base.take_back(session, back, force, reason, observer)
        }
        Wish::Say { text, session } => {
            let session = base.store.choose(session.as_deref())?;
            base.say(session, &text)
        }
        Wish::Apply { reply, session, again, force } => {
            let chosen = choose(base, reply, session.as_deref(), force)?;
            apply(base, chosen, again, force, observer)
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
    Here(Letter),
    InInbox(PathBuf),
}

/// Chooses the session that a reply is for: the one that is named, or that it says it answers, or the
/// only open one. Forced, one that it names and that is not there counts for nothing.
///
/// # Errors
/// There is none, or several.
pub fn choose(base: &mut Base, reply: Given, named: Option<&str>, force: bool) -> Result<Chosen> {
    let reply = match reply {
        Given::Text(text) => Found::Here(Letter::new(text)),
        Given::InInbox(path) => Found::InInbox(path),
    };
    if named.is_some() {
        return Ok(Chosen { session: base.store.choose(named)?, reply });
    }
    let answers = match &reply {
        Found::Here(letter) => letter.answers().cloned(),
        Found::InInbox(path) => base.inbox.answers(path),
    };
    let meant = answers.filter(|it| !force || base.store.load(&it.session).is_ok());
    let session = base.store.choose(meant.as_ref().map(|it| &*it.session))?;
    Ok(Chosen { session, reply })
}

/// Carries out a reply that is given by hand; `again` and `force` as in [`Wish::Apply`].
///
/// # Errors
/// Its session waits for the person, or it is most likely a mistake, or cannot be had.
pub fn apply(
    base: &mut Base,
    Chosen { session, reply }: Chosen,
    again: bool,
    force: bool,
    observer: &mut dyn Observer,
) -> Result<Turn> {
    // Before the reply is taken: it is to be given again.
    base.suits(&session)?;
    if let Some(question) = session.question() {
        return Err(Error::waits(waits(&session, question)));
    }
    let why = |letter: &Letter, written| match (force, again) {
        (true, _) => None,
        _ => objection(&session, letter, written).filter(|found| !again || found.flag != AGAIN),
    };
    let claimed = match reply {
        Found::Here(letter) => {
            if letter.text().trim().is_empty() {
                return Err(Error::no_reply(Path::new("this reply"), EMPTY));
            }
            if let Some(Objection { why, flag }) = why(&letter, None) {
                let why = format!(
                    "{why}. It was not carried out; give it again with {flag} if you mean it"
                );
                return Err(Error::no_reply(Path::new("this reply"), why));
            }
            let name = format!("{}_seq{:04}_reply.txt", session.id, session.sequence);
            base.inbox.admit(&name, letter)?
        }
        Found::InInbox(path) => match base.inbox.take(&path)? {
            Taken::Reply(claimed) => {
                base.inbox.forget_note(&path);
                if let Some(why) = why(&claimed.letter, claimed.written()).map(held) {
                    base.inbox.hold(&claimed, &why)?;
                    return Err(Error::no_reply(&path, why));
                }
                claimed
            }
            Taken::Rejected(why) => return Err(Error::no_reply(&path, why)),
            Taken::NotYet => return Err(Error::no_reply(&path, UNFINISHED)),
            Taken::Gone => return Err(Error::no_reply(&path, "it is gone")),
        },
    };
    base.carry_out(session, claimed, observer)
}

/// What speaks against carrying out a reply.
#[derive(Debug)]
pub struct Objection {
    /// Why it is most likely a mistake, a phrase.
    pub why: String,
    /// The flag with which `apply` carries it out all the same.
    pub flag: &'static str,
}

const AGAIN: &str = "--again";
const EMPTY: &str = "it is empty, and the model would be told that it said nothing; nothing was carried out. Copy the reply in the chat window, or save it, and give it again";

/// Whether a reply is most likely a mistake: it was carried out just now, or was made for an outbox
/// that is not the newest. `written` is when its file was, in nanoseconds since 1970, where it has one.
/// None where nothing speaks against it.
pub fn objection(session: &Session, letter: &Letter, written: Option<i128>) -> Option<Objection> {
    match letter.answers() {
        Some(answers) => session.mismatch(answers).map(|why| Objection { why, flag: "--force" }),
        None => session
            .is_duplicate(letter.text(), written)
            .then(|| Objection { why: SAME.to_owned(), flag: AGAIN }),
    }
}

/// What is told of a reply that is held.
pub fn held(Objection { why, flag }: Objection) -> String {
    format!("{why}. It was not carried out; `deaddrop apply {flag} FILE` does it")
}

/// What is told with a reply that has to wait.
pub fn waits(session: &Session, question: &Question) -> String {
    format!(
        "session {0} waits for your decision about '{1}': `deaddrop approve --session {0}` or `deaddrop deny --session {0}`; the reply was not carried out",
        session.id,
        visible_line(&question.id)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn carries_key(session: &Session, text: &str) -> bool {
        let letter = Letter::new(text.to_owned());
        letter.answers().is_some_and(|answers| session.is_authentic(answers))
    }

    #[test]
    fn only_the_key_of_the_newest_outbox_is_one() {
        let now = "2025-01-15T10:30:00Z".parse().unwrap();
        let mut session = Session::new("a1b2c3d4".to_owned(), "A task", Vec::new(), now);
        let line = |sequence: u32, key: &str| {
            format!(
                "[REPLY session=\"a1b2c3d4\" sequence=\"{sequence}\"{key}]\n[DONE]\nx\n[/DONE]\n"
            )
        };
        let keyed = |key: &str| format!(" key=\"{key}\"");
        let old = keyed(&session.key());
        assert!(carries_key(&session, &line(1, &old)));
        assert!(carries_key(&session, &line(1, &old.to_uppercase().replace("KEY", "key"))));
        for text in [
            line(1, ""),
            line(1, &keyed("00000000")),
            line(2, &old),
            line(1, &old).replace("a1b2", "b1b2"),
            "[DONE]\nx\n[/DONE]\n".to_owned(),
        ] {
            assert!(!carries_key(&session, &text), "{text}");
        }
        // Behind a command it counts, and refuses the whole reply.
        let late = format!("[MESSAGE]\nx\n[/MESSAGE]\n{}", line(1, &old));
        assert!(carries_key(&session, &late));
        session.sequence = 2;
        assert!(!carries_key(&session, &line(1, &old)) && !carries_key(&session, &line(2, &old)));
        let new = keyed(&session.key());
        assert!(carries_key(&session, &line(2, &new)));
        session.is_complete = true;
        assert!(!carries_key(&session, &line(2, &new)));
    }
}
