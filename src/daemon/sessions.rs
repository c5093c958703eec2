//! The sessions that the daemon serves, kept in memory, and the choice of the session for a reply.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;

use super::{Person, Serve};
use crate::admission::{self, Refusal};
use crate::engine::{Engine, Turn};
use crate::error::{Error, Result};
use crate::event::{Event, Waiting};
use crate::protocol::ReplyAddress;
use crate::session::{Question, Session};

/// The sessions in memory. Only this process changes them, but other processes may add some.
pub(super) struct Sessions {
    pub(super) known: HashMap<String, Session>,
    /// The errors of sessions that cannot be read, by ID.
    damaged: BTreeMap<String, String>,
    /// The sessions that existed when serving began.
    initial: Vec<String>,
    /// The files that cannot be claimed, by name, with the reason that was reported.
    pub(super) stuck: HashMap<OsString, String>,
    /// The names of replies that wait for a decision about their session.
    pub(super) waiting: HashSet<OsString>,
    /// The sessions with a reply that was left waiting in this round.
    pub(super) skipped: HashSet<String>,
    /// The names of replies that are still being written.
    pub(super) unfinished: Vec<OsString>,
    /// The last question of each session that was reported here.
    pub(super) asked: HashMap<String, Question>,
}

impl Sessions {
    pub(super) fn of(engine: &Engine) -> Result<Self> {
        let mut sessions = Self {
            known: HashMap::new(),
            damaged: BTreeMap::new(),
            initial: engine.store.ids()?,
            stuck: HashMap::new(),
            waiting: HashSet::new(),
            skipped: HashSet::new(),
            unfinished: Vec::new(),
            asked: HashMap::new(),
        };
        // Some of them may wait for the person.
        sessions.refresh(engine)?;
        Ok(sessions)
    }

    /// Reports that a file cannot be claimed, unless the same reason was reported before.
    pub(super) fn report_stuck(&mut self, name: &OsStr, why: &str, person: &mut dyn Person) {
        if self.stuck.insert(name.to_owned(), why.to_owned()).as_deref() != Some(why) {
            person.event(Event::FileStuck { name, why });
        }
    }

    /// Forgets the reports about files that are gone, since new files may have their names.
    pub(super) fn forget_gone(&mut self, inbox: &Path) {
        let is_there = |name: &OsString| fs::symlink_metadata(inbox.join(name)).is_ok();
        self.stuck.retain(|name, _| is_there(name));
        self.waiting.retain(is_there);
    }

    /// Whether a reply was left waiting although its session does not wait any more.
    pub(super) fn may_continue(&self) -> bool {
        let waits = |id: &String| self.known.get(id).is_some_and(|s| s.pending.is_some());
        self.skipped.iter().any(|id| !waits(id))
    }

    /// What the daemon waits for.
    pub(super) fn waiting(&self) -> Waiting<'_> {
        let mut sessions: Vec<_> = self.known.values().filter(|s| !s.is_complete).collect();
        sessions.sort_by(|a, b| a.id.cmp(&b.id));
        Waiting { sessions, unfinished: self.unfinished.clone() }
    }

    pub(super) fn end_turn(&mut self, turn: Turn, person: &mut dyn Person) {
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

    /// Reads sessions that were added.
    pub(super) fn refresh(&mut self, engine: &Engine) -> Result<()> {
        self.damaged.clear();
        for id in engine.store.ids()? {
            if let Err(e) = self.get(engine, &id) {
                self.damaged.insert(id, e.to_string());
            }
        }
        Ok(())
    }

    /// Whether nothing remains to wait for.
    pub(super) fn are_over(&mut self, engine: &Engine, serve: &Serve) -> Result<bool> {
        let Serve::One(id) = serve else { return Ok(false) };
        if !self.get(engine, id)?.is_complete {
            return Ok(false);
        }
        self.refresh(engine)?;
        let mut added = self.known.values().filter(|session| !self.initial.contains(&session.id));
        Ok(added.all(|session| session.is_complete))
    }

    /// The session that a file of the inbox is for, or why none is.
    pub(super) fn session_for_file(
        &mut self,
        engine: &Engine,
        name: &OsStr,
        answers: Option<&ReplyAddress>,
    ) -> Result<Result<Session, Refusal>> {
        self.refresh(engine)?;
        Ok(admission::session_for_file(self.known.values(), &self.damaged, name, answers).cloned())
    }
}
