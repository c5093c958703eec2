//! What the person does with sessions between turns: begin one, add words to it, close or remove it.

use std::fs;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Engine, Turn, environment};
use crate::atomic;
use crate::error::{Error, Result};
use crate::outbox;
use crate::protocol::Dialect;
use crate::session::{Offer, Session, new_id};
use crate::settings::Config;
use crate::tokens;
use crate::workspace::walk::Walk;

/// How a session begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewSession {
    /// The task.
    pub task: String,
    /// Its id; None for a random one.
    pub id: Option<String>,
    /// The dialect that its outboxes teach.
    pub dialect: Dialect,
    /// Which file contents its first outbox shows unasked; None for none.
    #[serde(default)]
    pub offer: Option<Offer>,
    /// The name of its policy.
    pub policy: String,
    /// The workspace (see [`Config::workspace_name`]); None for that of whoever begins it.
    #[serde(default)]
    pub workspace: Option<String>,
}

impl Engine {
    /// Begins a session: its file and its first outbox. `unconfined`: the person allowed commands with their own
    /// rights if there is no sandbox.
    pub fn begin_session(&mut self, new: &NewSession, unconfined: bool) -> Result<Turn> {
        self.tools.clear();
        let (mut session, walk) = self.new_session(new, unconfined)?;
        let outbox = self.save_and_write(&mut session, Some(walk))?;
        Ok(Turn { session, outbox: Some(outbox) })
    }

    /// Writes the first outbox of a session that is not begun into a file among the sessions. Whoever asked removes it.
    pub fn preview_session(&mut self, new: &NewSession) -> Result<Turn> {
        let (mut session, walk) = self.new_session(new, false)?;
        let rendered = self.render(&session, Some(walk))?;
        session.tokens = Some(rendered.tokens);
        // A temporary name, so that the next start removes what nobody has.
        let path = self.config.sessions.join("preview");
        let path = atomic::write_beside(&path, rendered.text.as_bytes())?;
        Ok(Turn { session, outbox: Some(path) })
    }

    fn new_session(&mut self, new: &NewSession, unconfined: bool) -> Result<(Session, Walk)> {
        let NewSession { task, id, dialect, policy, offer, workspace } = new;
        // Whoever hands it over may have other settings.
        self.config.policy(policy)?;
        let here = self.config.workspace_name();
        if let Some(meant) = workspace.as_ref().filter(|meant| **meant != here) {
            return Err(Error::usage(format!(
                "the deaddrop that runs here works in the workspace '{here}', and the session is to begin in '{meant}': stop it first, or begin in a project of its own (-C)"
            ))
            .with_code("other-workspace"));
        }
        let id = id.clone().unwrap_or_else(|| self.free_id());
        // It takes a while, and previews come one after the other.
        if self.tools.is_empty() {
            self.tools = match &self.guest {
                Some(guest) => guest.tools()?,
                None => {
                    self.confinement();
                    self.runner.tools(&self.config.sessions.join(environment::PROBE))
                }
            };
        }
        let mut session = Session::new(id, task, self.tools.clone(), self.now());
        session.unconfined = unconfined;
        session.dialect = *dialect;
        session.offer.clone_from(offer);
        session.policy.clone_from(policy);
        session.workspace = self.workspace_name();
        let walk = self.walk()?;
        self.check_patterns(&session, &walk)?;
        session.project = Some(self.project(&session.tools, &walk)?);
        Ok((session, walk))
    }

    /// An id that nothing has.
    pub(super) fn free_id(&self) -> String {
        loop {
            let id = new_id();
            if self.store.is_free(&id) {
                return id;
            }
        }
    }

    /// Goes on with a completed session, with the person's words in its next outbox.
    ///
    /// # Errors
    /// There is none, it is not complete, it began in another workspace, or it cannot be written.
    pub fn reopen(&mut self, id: &str, text: &str) -> Result<Turn> {
        let mut session = self.store.load(id)?;
        self.check_workspace(&session)?;
        if !session.is_complete {
            return Err(Error::usage(format!(
                "session {id} is not complete; `deaddrop say --session {id} TEXT` adds words to its newest outbox"
            )));
        }
        session.reopen(text, self.now());
        let outbox = self.save_and_write(&mut session, None)?;
        Ok(Turn { session, outbox: Some(outbox) })
    }

    /// Saves a session that the person changed, and writes its newest outbox. `walk` lists the files of the workspace,
    /// if they were listed just now.
    pub fn save_and_write(&mut self, session: &mut Session, walk: Option<Walk>) -> Result<PathBuf> {
        let rendered = self.render(session, walk)?;
        Self::note_shown(session, &rendered);
        self.save(session)?;
        self.write(session, rendered)
    }

    /// Says something on the person's behalf: at the end of the newest outbox, if that is still to be
    /// answered, otherwise in the next one. The turn's outbox is the one that says it now.
    ///
    /// # Errors
    /// It could not be written, and is not said: who says it again says it once.
    pub fn say(&mut self, mut session: Session, text: &str) -> Result<Turn> {
        let Some((added, outbox)) = self.with_words(&session, text) else {
            session.say(text, self.now());
            self.save_or_not(&session, || Ok(()))?;
            return Ok(Turn { session, outbox: None });
        };
        let path = self.outbox_path(&added);
        // Written first, so that a full disk is met while nothing is noted, and named last, since a
        // key has to be known before anybody can see it. Whichever of the two outboxes a power loss
        // leaves, its key is known: so that waits for no disk.
        let temporary = atomic::write_beside(&path, outbox.as_bytes())?;
        let name = || fs::rename(&temporary, &path).map_err(|e| Error::io("write", &path, e));
        if let Err(e) = self.save_or_not(&added, name) {
            let _ = fs::remove_file(&temporary);
            return Err(e);
        }
        Ok(Turn { session: added, outbox: Some(path) })
    }

    /// Saves a session that the person changed, and does what follows from that. Where either fails, it is
    /// saved as it was, since otherwise the journal would contain what is reported to have failed.
    fn save_or_not(&mut self, session: &Session, then: impl FnOnce() -> Result<()>) -> Result<()> {
        let before = self.store.load_stem(&session.stem())?;
        let Err(failed) = self.save(session).and_then(|()| then()) else { return Ok(()) };
        match self.save(&before) {
            Ok(()) => Err(failed),
            Err(_) => Err(failed.with_uncertain_outcome()),
        }
    }

    /// The session with words added to its newest outbox, and the text of that; None if they have to
    /// wait for the next: nothing is to be pasted, it is not as it was written, or it is full.
    fn with_words(&self, session: &Session, text: &str) -> Option<(Session, String)> {
        if !session.awaits_reply() || session.run.is_some() {
            return None;
        }
        let outbox = atomic::read_own_text(&self.outbox_path(session)).ok()?;
        let mut session = session.clone();
        session.add(text);
        let outbox = outbox::with_words(&outbox, &session)?;
        let tokens = tokens::about(&outbox, self.config.max_tokens);
        session.tokens = Some(tokens);
        session.withheld.extend(outbox::words_messages(text, &self.config.secrets));
        (tokens <= self.config.max_tokens).then_some((session, outbox))
    }

    /// Ends a session without a reply; with `delete` removes its outboxes, its log and its file as well.
    ///
    /// # Errors
    /// There is none, it waits for a decision, or something cannot be written or removed.
    pub fn close(&mut self, id: &str, delete: bool) -> Result<Turn> {
        let mut session = self.store.load(id)?;
        if session.pending.is_some() {
            return Err(Error::usage(format!(
                "session {id} waits for your decision; `deaddrop deny --session {id}` refuses the operation, then close the session"
            ))
            .with_code("waits-for-decision"));
        }
        if !session.is_complete {
            session.is_complete = true;
            session.updated_at = self.now();
            self.save(&session)?;
        }
        self.discard_scratch(&session);
        if delete {
            self.delete(&session)?;
        }
        Ok(Turn { session, outbox: None })
    }

    fn delete(&mut self, session: &Session) -> Result<()> {
        // From then on the journal says nothing of it, so no recovery brings it back.
        self.flush()?;
        let Config { outbox, sessions, .. } = &self.config;
        // Only what has deaddrop's own names: another file was put aside there for the person.
        let names = (1..=session.sequence + 1).flat_map(|sequence| {
            let of = Session { sequence, ..session.clone() };
            [outbox.join(of.outbox_name()), outbox.join(of.events_name())]
        });
        for path in names.chain([sessions.join(format!("{}.log", session.id))]) {
            if let Err(e) = fs::remove_file(&path)
                && e.kind() != io::ErrorKind::NotFound
            {
                return Err(Error::io("remove", &path, e));
            }
        }
        atomic::sync_folder(outbox)?;
        self.forget_checkpoints()?;
        // Last: as long as it is there, `close --delete` can be given again.
        self.store.remove(&session.id)?;
        atomic::sync_folder(&self.config.sessions)
    }
}
