//! The sessions that the daemon serves, as it knows them, and which of them a reply is for.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;

use super::{Person, Serve};
use crate::admission::{self, Refusal};
use crate::engine::{Engine, Turn};
use crate::error::{Error, Result};
use crate::event::{Event, Waiting};
use crate::protocol::Address;
use crate::session::{Question, Session};

/// The sessions as this process left them; it alone changes them, but others may be added.
pub(super) struct Sessions {
    pub(super) known: HashMap<String, Session>,
    /// What is wrong with the files of others, by their ids.
    damaged: BTreeMap<String, String>,
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
            damaged: BTreeMap::new(),
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
    pub(super) fn is_stuck(&mut self, name: &OsStr, why: &str, person: &mut dyn Person) {
        if self.stuck.insert(name.to_owned(), why.to_owned()).as_deref() != Some(why) {
            person.event(Event::FileStuck { name, why });
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
    pub(super) fn waiting(&self) -> Waiting<'_> {
        let mut sessions: Vec<_> = self.known.values().filter(|s| !s.is_complete).collect();
        sessions.sort_by(|a, b| a.id.cmp(&b.id));
        Waiting { sessions, unfinished: self.unfinished.clone() }
    }

    pub(super) fn turned(&mut self, turn: Turn, person: &mut dyn Person) {
        person.event(Event::TurnEnded(&turn));
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

    /// The session that a file of the inbox is for, or why there is none.
    pub(super) fn addressed(
        &mut self,
        engine: &Engine,
        name: &OsStr,
        answers: Option<&Address>,
    ) -> Result<Result<Session, Refusal>> {
        self.refresh(engine)?;
        Ok(admission::address(self.known.values(), &self.damaged, name, answers).cloned())
    }
}
