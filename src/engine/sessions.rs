//! Changes of sessions between turns, by the person: begin, say something, reopen, close, delete.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::thread;

use serde::{Deserialize, Serialize};

use super::{Engine, Turn, environment};
use crate::atomic;
use crate::error::{Error, Result};
use crate::outbox::{self, Files, RenderedOutbox};
use crate::protocol::Dialect;
use crate::session::{FilePatterns, Session, new_id};
use crate::settings::Config;
use crate::tokens;
use crate::workspace::walk::Walk;

/// The options of a new session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewSession {
    /// The task.
    pub task: String,
    /// Its ID; None for a random one.
    pub id: Option<String>,
    /// The dialect of its outboxes and replies.
    pub dialect: Dialect,
    /// The file contents that its first outbox shows without a request; None for none.
    #[serde(default)]
    pub offer: Option<FilePatterns>,
    /// The name of its policy.
    pub policy: String,
    /// The workspace in which it must begin (see [`Config::workspace_name`]); None for any.
    #[serde(default)]
    pub workspace: Option<String>,
}

impl Engine {
    /// Begins a session: writes its file and its first outbox. `unconfined` means that the person allows commands with
    /// their own rights if there is no sandbox.
    pub fn begin_session(&mut self, new: &NewSession, unconfined: bool) -> Result<Turn> {
        self.tools.clear();
        let (mut session, rendered) = self.new_session(new, unconfined)?;
        let outbox = self.save_and_write(&mut session, rendered)?;
        Ok(Turn { session, outbox: Some(outbox) })
    }

    /// Writes the outbox that a new session would begin with to a file beside the sessions. The caller removes it.
    pub fn preview_session(&mut self, new: &NewSession) -> Result<Turn> {
        let (mut session, rendered) = self.new_session(new, false)?;
        session.tokens = Some(rendered.tokens);
        // A temporary name, so that the next start removes a file that its caller did not.
        let path = self.config.sessions.join("preview");
        let path = atomic::write_beside(&path, rendered.text.as_bytes())?;
        Ok(Turn { session, outbox: Some(path) })
    }

    fn new_session(
        &mut self,
        new: &NewSession,
        unconfined: bool,
    ) -> Result<(Session, RenderedOutbox)> {
        let NewSession { task, id, dialect, policy, offer, workspace } = new;
        // The request may come from a process with other settings.
        self.config.policy(policy)?;
        let here = self.config.workspace_name();
        if let Some(wanted) = workspace.as_ref().filter(|wanted| **wanted != here) {
            return Err(Error::usage(format!(
                "the deaddrop that runs here works in the workspace '{here}', and the session is to begin in '{wanted}': stop it first, or begin in a project of its own (-C)"
            ))
            .with_code("other-workspace"));
        }
        let id = id.clone().unwrap_or_else(|| self.free_id());
        let mut session = Session::new(id, task, Vec::new(), self.now());
        session.unconfined = unconfined;
        session.dialect = *dialect;
        session.offer.clone_from(offer);
        session.policy.clone_from(policy);
        session.workspace = self.workspace_name();
        let (walk, files) = self.files_and_tools(&session)?;
        session.tools.clone_from(&self.tools);
        session.project = Some(self.project(&session.tools, &walk)?);
        let rendered = outbox::render(&session, &self.environment(&session)?, &walk, &files);
        Ok((session, rendered))
    }

    /// The files for a session's first outbox. Meanwhile looks up the tools, which takes a while, so previews reuse them.
    fn files_and_tools(&mut self, session: &Session) -> Result<(Walk, Files)> {
        let files = || {
            let walk = self.walk()?;
            self.check_patterns(session, &walk)?;
            self.files(session, Some(walk))
        };
        if !self.tools.is_empty() {
            return files();
        }
        if let Some(guest) = &self.guest {
            let (tools, files) = (guest.tools()?, files()?);
            self.tools = tools;
            return Ok(files);
        }
        self.confinement();
        let (runner, probe) = (&self.runner, self.config.sessions.join(environment::PROBE));
        let (tools, files) = thread::scope(|scope| {
            let tools = || runner.tools(&probe);
            let thread = thread::Builder::new().spawn_scoped(scope, tools);
            let files = files();
            (thread.map_or_else(|_| tools(), |tools| tools.join().unwrap_or_default()), files)
        });
        self.tools = tools;
        files
    }

    /// An ID that is not in use.
    pub(super) fn free_id(&self) -> String {
        loop {
            let id = new_id();
            if self.store.is_free(&id) {
                return id;
            }
        }
    }

    /// Reopens a completed session, with the person's words in its next outbox.
    ///
    /// # Errors
    /// It does not exist, is not complete, began in another workspace, or cannot be written.
    pub fn reopen(&mut self, id: &str, text: &str) -> Result<Turn> {
        let mut session = self.store.load(id)?;
        self.check_workspace(&session)?;
        if !session.is_complete {
            return Err(Error::usage(format!(
                "session {id} is not complete; `deaddrop say --session {id} TEXT` adds words to its newest outbox"
            )));
        }
        session.reopen(text, self.now());
        let rendered = self.render(&session, None)?;
        let outbox = self.save_and_write(&mut session, rendered)?;
        Ok(Turn { session, outbox: Some(outbox) })
    }

    /// Saves a session that the person changed, and writes its newest outbox.
    fn save_and_write(
        &mut self,
        session: &mut Session,
        rendered: RenderedOutbox,
    ) -> Result<PathBuf> {
        Self::record_shown(session, &rendered);
        self.save(session)?;
        self.write(session, rendered)
    }

    /// Adds the person's words to the end of the newest outbox if it awaits a reply; otherwise the next outbox contains
    /// them. The returned turn has an outbox only in the first case.
    ///
    /// # Errors
    /// It could not be written. Then the words are not added, so they can be said again.
    pub fn say(&mut self, mut session: Session, text: &str) -> Result<Turn> {
        let Some((changed, outbox)) = self.with_words(&session, text) else {
            session.say(text, self.now());
            self.save_then(&session, || Ok(()))?;
            return Ok(Turn { session, outbox: None });
        };
        let path = self.outbox_path(&changed);
        // The outbox is written first, so that a full disk is noticed while nothing is recorded. It is renamed
        // last, since its key must be known before anybody can see it. After a power loss either outbox may be
        // there; the keys of both are known, so the rename need not be synced.
        let temporary = atomic::write_beside(&path, outbox.as_bytes())?;
        let rename = || fs::rename(&temporary, &path).map_err(|e| Error::io("write", &path, e));
        if let Err(e) = self.save_then(&changed, rename) {
            let _ = fs::remove_file(&temporary);
            return Err(e);
        }
        Ok(Turn { session: changed, outbox: Some(path) })
    }

    /// Saves a session that the person changed, then calls `then`. If either fails, saves the previous state again;
    /// otherwise the journal would contain a change that is reported as failed.
    fn save_then(&mut self, session: &Session, then: impl FnOnce() -> Result<()>) -> Result<()> {
        let before = self.store.load_stem(&session.stem())?;
        let Err(failed) = self.save(session).and_then(|()| then()) else { return Ok(()) };
        match self.save(&before) {
            Ok(()) => Err(failed),
            Err(_) => Err(failed.with_uncertain_outcome()),
        }
    }

    /// The session with words added to its newest outbox, and the outbox's text. None if the words have to wait for the
    /// next outbox: the session awaits no reply, or its outbox was changed or is full.
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

    /// Closes a session without a reply; with `delete` also removes its outboxes, log and file.
    ///
    /// # Errors
    /// It does not exist, it waits for a decision, or something cannot be written or removed.
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
        // Empties the journal, so that recovery does not bring the session back.
        self.flush()?;
        let Config { outbox, sessions, .. } = &self.config;
        // Only files with deaddrop's own names: others there were moved aside for the person.
        let names = (1..=session.sequence + 1).flat_map(|sequence| {
            let session = Session { sequence, ..session.clone() };
            [outbox.join(session.outbox_name()), outbox.join(session.events_name())]
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
        // Last, so that `close --delete` can be repeated until then.
        self.store.remove(&session.id)?;
        atomic::sync_folder(&self.config.sessions)
    }
}
