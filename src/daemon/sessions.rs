//! The sessions that the daemon serves, as it knows them, and which of them a reply is for.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;

use super::{Listener, Serve, Waiting};
use crate::engine::{Engine, Turn};
use crate::error::{Error, Result};
use crate::protocol::Address;
use crate::session::{Question, Session};
use crate::text::visible_line;

/// The sessions as this process left them; it alone changes them, but others may be added.
pub(super) struct Sessions {
    pub(super) known: HashMap<String, Session>,
    /// What is wrong with the files of others, by their ids.
    damaged: HashMap<String, String>,
    /// The sessions that there were when serving began.
    at_first: Vec<String>,
    /// Files that cannot be taken, by name, and why.
    pub(super) stuck: HashMap<OsString, String>,
    /// Replies that wait with their sessions, by name.
    pub(super) waiting: HashSet<OsString>,
    /// Sessions of which a reply was left waiting in this look into the inbox.
    pub(super) passed_over: HashSet<String>,
    /// Replies that somebody still writes, by name.
    pub(super) unfinished: Vec<OsString>,
    /// What was asked here last, by each session.
    pub(super) asked: HashMap<String, Question>,
}

impl Sessions {
    pub(super) fn of(engine: &Engine) -> Result<Self> {
        let mut sessions = Self {
            known: HashMap::new(),
            damaged: HashMap::new(),
            at_first: engine.store.ids()?,
            stuck: HashMap::new(),
            waiting: HashSet::new(),
            passed_over: HashSet::new(),
            unfinished: Vec::new(),
            asked: HashMap::new(),
        };
        // Some of them may wait for the person.
        sessions.refresh(engine)?;
        Ok(sessions)
    }

    /// Tells that a file cannot be taken, unless that was told for this reason.
    pub(super) fn is_stuck(&mut self, name: &OsStr, why: &str, listener: &mut dyn Listener) {
        if self.stuck.insert(name.to_owned(), why.to_owned()).as_deref() != Some(why) {
            listener.stuck(name, why);
        }
    }

    /// Forgets what was told of files that are gone: others may come under their names.
    pub(super) fn forget_gone(&mut self, inbox: &Path) {
        let is_there = |name: &OsString| fs::symlink_metadata(inbox.join(name)).is_ok();
        self.stuck.retain(|name, _| is_there(name));
        self.waiting.retain(is_there);
    }

    /// Whether a reply was left waiting whose session does not wait any more.
    pub(super) fn may_go_on(&self) -> bool {
        let waits = |id: &String| self.known.get(id).is_some_and(|s| s.pending.is_some());
        self.passed_over.iter().any(|id| !waits(id))
    }

    /// What is waited for.
    pub(super) fn waits_for(&self) -> Waiting<'_> {
        let mut sessions: Vec<_> = self.known.values().filter(|s| !s.is_complete).collect();
        sessions.sort_by(|a, b| a.id.cmp(&b.id));
        Waiting { sessions, unfinished: self.unfinished.clone() }
    }

    pub(super) fn turned(&mut self, turn: Turn, listener: &mut dyn Listener) {
        listener.turned(&turn);
        if turn.session.run.is_none() {
            self.known.insert(turn.session.id.clone(), turn.session);
        }
    }

    fn get(&mut self, engine: &Engine, id: &str) -> Result<&Session> {
        if !self.known.contains_key(id) {
            self.known.insert(id.to_owned(), engine.store.load(id)?);
        }
        self.known.get(id).ok_or_else(|| Error::no_session(id, &engine.config.sessions))
    }

    /// Reads the sessions that were added since.
    pub(super) fn refresh(&mut self, engine: &Engine) -> Result<()> {
        self.damaged.clear();
        for id in engine.store.ids()? {
            if let Err(e) = self.get(engine, &id) {
                self.damaged.insert(id, e.to_string());
            }
        }
        Ok(())
    }

    /// Whether there is nothing more to wait for.
    pub(super) fn are_over(&mut self, engine: &Engine, serve: &Serve) -> Result<bool> {
        let Serve::One(id) = serve else { return Ok(false) };
        if !self.get(engine, id)?.is_complete {
            return Ok(false);
        }
        self.refresh(engine)?;
        let mut added = self.known.values().filter(|session| !self.at_first.contains(&session.id));
        Ok(added.all(|session| session.is_complete))
    }

    /// The session that a reply is for, or why there is none: the open one that it says it answers, or
    /// whose id stands in the file's name, or else the only open one.
    pub(super) fn addressed(
        &mut self,
        engine: &Engine,
        name: &OsStr,
        answers: Option<&Address>,
    ) -> Result<Result<Session, String>> {
        self.refresh(engine)?;
        let name = name.to_string_lossy().to_lowercase();
        if let Some(answers) = answers {
            return Ok(self.answered(&name, &answers.session));
        }
        let mut open: Vec<&Session> =
            self.known.values().filter(|session| !session.is_complete).collect();
        open.sort_by(|a, b| a.id.cmp(&b.id));
        let named: Vec<&Session> =
            open.iter().copied().filter(|session| name.contains(&session.id)).collect();
        if let [session] = named.as_slice() {
            return Ok(Ok((*session).clone()));
        }
        if named.is_empty() {
            if let Some(session) = self.known.values().find(|session| name.contains(&session.id)) {
                return Ok(Err(is_complete(&session.id)));
            }
            if let Some((_, why)) = self.damaged.iter().find(|(id, _)| name.contains(*id)) {
                return Ok(Err(why.clone()));
            }
            match open.as_slice() {
                // A damaged one may be open, too.
                [only] if self.damaged.is_empty() => return Ok(Ok((*only).clone())),
                [] => {
                    return Ok(Err(
                        "no session is open; `deaddrop new \"your task\"` starts one".to_owned()
                    ));
                }
                _ => {}
            }
        }
        let ids: Vec<&str> = open.iter().map(|session| session.id.as_str()).collect();
        let damaged: Vec<&str> = self.damaged.keys().map(String::as_str).collect();
        let damaged = match damaged.join(", ") {
            ids if ids.is_empty() => ids,
            ids => format!(", damaged: {ids}"),
        };
        Ok(Err(format!(
            "several sessions are open ({}{damaged}), and neither the reply nor the file's name says which one it is for; put the session's id into the name, as in {}_reply.txt, and move it back into the inbox",
            ids.join(", "),
            ids[0]
        )))
    }

    /// The session that a reply says it answers, where the file's name says no other.
    fn answered(&self, name: &str, id: &str) -> Result<Session, String> {
        if let Some(why) = self.damaged.get(id) {
            return Err(why.clone());
        }
        let Some(session) = self.known.get(id) else {
            return Err(format!(
                "it says that it answers session {}, and there is none of that name; `deaddrop apply --force FILE` carries it out for the open one",
                visible_line(id)
            ));
        };
        let other = |other: &&Session| other.id != id && name.contains(&other.id);
        if let Some(other) = self.known.values().find(other).filter(|_| !name.contains(id)) {
            return Err(format!(
                "it says that it answers session {id}, and its name that it is for {}; `deaddrop apply --session ID --force FILE` decides it",
                other.id
            ));
        }
        if session.is_complete { Err(is_complete(id)) } else { Ok(session.clone()) }
    }
}

fn is_complete(id: &str) -> String {
    format!("session {id} is complete; `deaddrop resume {id} --reopen TEXT` takes it up again")
}
