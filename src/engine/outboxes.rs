//! Outboxes and the events beside them: rendered as the workspace is now, and written.

use std::fs;
use std::io;
use std::path::PathBuf;

use super::{Engine, Turn};
use crate::atomic;
use crate::error::{Error, Result};
use crate::outbox::{self, Files};
use crate::protocol::{Dialect, operations};
use crate::session::Session;
use crate::settings::Config;
use crate::tokens;
use crate::workspace::walk::Walk;

/// What the newest outbox of a session tells as events, as it may be shown.
pub(super) struct Events {
    session: String,
    sequence: u32,
    is_complete: bool,
    text: String,
}

impl Engine {
    /// Where the newest outbox of a session is.
    pub fn outbox_path(&self, session: &Session) -> PathBuf {
        self.config.outbox.join(session.outbox_name())
    }

    /// Writes the newest outbox of a session where it is missing. Returns whether it was.
    pub fn restore_outbox(&self, session: &Session) -> Result<bool> {
        let missing = !self.outbox_path(session).exists();
        if missing {
            self.write_outbox(session)?;
        }
        Ok(missing)
    }

    /// Saves a session that the person changed, and writes its newest outbox.
    pub fn save_and_write(&mut self, session: &mut Session) -> Result<PathBuf> {
        self.save_and_write_over(session, None)
    }

    /// The same; `walk` is what was found in the workspace, if somebody has just looked.
    pub(super) fn save_and_write_over(
        &mut self,
        session: &mut Session,
        walk: Option<Walk>,
    ) -> Result<PathBuf> {
        let rendered = self.render(session, walk)?;
        let text = Self::note_shown(session, rendered);
        self.save(session)?;
        self.write(session, &text)
    }

    /// Says something on the person's behalf: at the end of the newest outbox, if that is still to be
    /// answered, else in the next one. The turn's outbox is the one that says it now.
    ///
    /// # Errors
    /// It could not be written, and is not said: who says it again says it once.
    pub fn say(&mut self, session: Session, text: &str) -> Result<Turn> {
        if let Some((added, outbox)) = self.added(&session, text) {
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
            return Ok(Turn { session: added, outbox: Some(path) });
        }
        let mut session = session;
        session.say(text, self.now());
        self.save_or_not(&session, || Ok(()))?;
        Ok(Turn { session, outbox: None })
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
        self.forget(&session);
        if delete {
            self.delete(&session)?;
        }
        Ok(Turn { session, outbox: None })
    }

    fn delete(&mut self, session: &Session) -> Result<()> {
        // From then on the journal says nothing of it, so no recovery brings it back.
        self.write_down()?;
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

    /// Saves a session that the person changed, and does what follows from that. Where either fails, it is
    /// saved as it was, since else the journal would hold what is told to have failed.
    fn save_or_not(&mut self, session: &Session, then: impl FnOnce() -> Result<()>) -> Result<()> {
        let before = self.store.load_stem(&session.stem())?;
        let Err(failed) = self.save(session).and_then(|()| then()) else { return Ok(()) };
        match self.save(&before) {
            Ok(()) => Err(failed),
            Err(_) => Err(failed.in_doubt()),
        }
    }

    /// The session with words added to its newest outbox, and the text of that; None where they have to
    /// wait for the next: nothing stands to be pasted, it is not as it was written, or it is full.
    fn added(&self, session: &Session, text: &str) -> Option<(Session, String)> {
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

    /// Writes the newest outbox of a session, of which nobody notes what it shows.
    pub(super) fn write_outbox(&self, session: &Session) -> Result<PathBuf> {
        self.write(session, &self.render(session, None)?.text)
    }

    pub(super) fn write(&self, session: &Session, text: &str) -> Result<PathBuf> {
        self.write_events(session)?;
        let path = self.outbox_path(session);
        atomic::write(&path, text.as_bytes())?;
        Ok(path)
    }

    /// Notes in a session what its newest outbox shows and what it does not, and how much it is. Returns
    /// its text.
    pub(super) fn note_shown(session: &mut Session, rendered: outbox::RenderedOutbox) -> String {
        (session.withheld, session.tokens) = (rendered.withheld, Some(rendered.tokens));
        if !rendered.excerpts {
            session.seen.forget_excerpts(&session.last_results);
        }
        // What is known of the lines around those that were withheld is noted anew with what is shown.
        rendered.withheld_from.iter().for_each(|path| session.seen.forget_newer(path));
        for outbox::Shown { path, version, lines, .. } in rendered.search_lines {
            version.into_iter().for_each(|now| session.seen.record_search(&path, now, &lines));
        }
        for outbox::Shown { path, whole, lines, cut, version } in rendered.shown {
            // A part of which the whole is not known tells nothing of how that is now.
            match version {
                Some(now) if whole => session.seen.record(path, now),
                Some(now) if !lines.is_empty() || cut.is_some() => {
                    session.seen.record_lines(&path, now, &lines);
                    cut.into_iter().for_each(|line| session.seen.record_cut(&path, line));
                }
                _ => {}
            }
        }
        rendered.text
    }

    /// Writes what the newest outbox of a session tells as events, for programs, beside it: first,
    /// so that whoever sees the outbox finds them.
    pub(super) fn write_events(&self, session: &Session) -> Result<()> {
        if session.dialect != Dialect::Operations {
            return Ok(());
        }
        let are_kept = |kept: &Events| {
            (&kept.session, kept.sequence, kept.is_complete)
                == (&session.id, session.sequence, session.is_complete)
        };
        let kept = self.events.borrow_mut().take().filter(are_kept);
        let events = match kept {
            Some(kept) => kept.text,
            None => self.events_of(session, &self.files(session, None)?.1),
        };
        atomic::write(&self.config.outbox.join(session.events_name()), events.as_bytes())
    }

    pub(super) fn events_of(&self, session: &Session, files: &Files) -> String {
        operations::print(&outbox::screened_events(session, &self.config.secrets, files))
    }

    /// Keeps the events of a session until they are written.
    fn keep_events(&self, session: &Session, text: String) {
        let (id, sequence) = (session.id.clone(), session.sequence);
        let is_complete = session.is_complete;
        self.events.replace(Some(Events { session: id, sequence, is_complete, text }));
    }

    /// Keeps them of a session that is complete, and has no outbox with them: before it is decided, while
    /// the place of its operations can be asked.
    pub(super) fn keep_last_events(&self, session: &Session, walk: Option<Walk>) -> Result<()> {
        let are_written = session.is_complete && session.run.is_none();
        if are_written && session.dialect == Dialect::Operations {
            let (_, files) = self.files(session, walk)?;
            self.keep_events(session, self.events_of(session, &files));
        }
        Ok(())
    }

    /// The newest outbox of a session, as the workspace is now; `walk` is what was found there, if
    /// somebody has just looked.
    pub(super) fn render(
        &self,
        session: &Session,
        walk: Option<Walk>,
    ) -> Result<outbox::RenderedOutbox> {
        let (walk, files) = self.files(session, walk)?;
        let rendered = outbox::render(session, &self.environment(session)?, &walk, &files);
        if let Some(events) = &rendered.events {
            self.keep_events(session, operations::print(events));
        }
        Ok(rendered)
    }
}
