//! Renders outboxes and the events beside them from the present workspace, and writes them.

use std::path::PathBuf;

use super::Engine;
use crate::atomic;
use crate::error::{Error, Result};
use crate::outbox::{self, OutboxForm, RenderedOutbox, ShownFile};
use crate::protocol::operations::EventsMessage;
use crate::protocol::{Dialect, Digest, operations};
use crate::session::record::PreparedOutbox;
use crate::session::{Session, outbox_name};
use crate::settings::Config;
use crate::tokens;
use crate::workspace::walk::Walk;

/// The text and form of a session's outbox number `sequence`, in brief form if `wants_brief`. Only the newest outbox has
/// a brief form, and only if it follows a reply.
pub fn pasted_outbox(
    config: &Config,
    session: &Session,
    sequence: u32,
    wants_brief: bool,
) -> Result<(String, OutboxForm)> {
    let path = |sequence| config.outbox.join(outbox_name(&session.id, sequence));
    let text = atomic::read_own_text(&path(sequence));
    let mut text = text.map_err(|e| Error::io("read the outbox", &path(sequence), e))?;
    let is_newest = sequence == session.sequence && session.awaits_reply();
    let mut other = session.read.filter(|_| is_newest).and_then(|read| {
        let previous = atomic::read_own_text(&path(read)).ok();
        outbox::brief(session, &text, read, previous.as_deref())
    });
    let is_brief = wants_brief && other.is_some();
    if let (true, Some(brief)) = (is_brief, &mut other) {
        std::mem::swap(&mut text, brief);
    }
    let tokens = |text: &String| tokens::about(text, config.max_tokens);
    let form = OutboxForm { is_brief, tokens: tokens(&text), other: other.as_ref().map(tokens) };
    Ok((text, form))
}

impl Engine {
    /// The path of a session's newest outbox.
    pub fn outbox_path(&self, session: &Session) -> PathBuf {
        self.config.outbox.join(session.outbox_name())
    }

    /// Writes the newest outbox of a session if it is missing. Returns whether it was.
    pub fn restore_outbox(&self, session: &Session) -> Result<bool> {
        let missing = !self.outbox_path(session).exists();
        if missing {
            self.write_outbox(session)?;
        }
        Ok(missing)
    }

    /// Writes the newest outbox of a session, without recording in the session what it shows.
    pub(super) fn write_outbox(&self, session: &Session) -> Result<PathBuf> {
        self.write(session, self.render(session, None)?)
    }

    pub(super) fn write(&self, session: &Session, rendered: RenderedOutbox) -> Result<PathBuf> {
        self.write_events(session, rendered.events)?;
        let path = self.outbox_path(session);
        atomic::write(&path, rendered.text.as_bytes())?;
        Ok(path)
    }

    /// Records in a session what its newest outbox shows and withholds, and its size in tokens.
    pub(super) fn record_shown(session: &mut Session, rendered: &RenderedOutbox) {
        session.withheld.clone_from(&rendered.withheld);
        session.tokens = Some(rendered.tokens);
        if !rendered.excerpts {
            session.seen.forget_excerpts(&session.last_results);
        }
        // The versions of the lines around withheld ones are recorded again below, with what is shown.
        rendered.withheld_from.iter().for_each(|path| session.seen.forget_newer(path));
        for ShownFile { path, version, lines, .. } in &rendered.search_lines {
            version.iter().for_each(|now| session.seen.record_search(path, now.clone(), lines));
        }
        for ShownFile { path, whole, lines, cut, version } in &rendered.shown {
            // Without a version of the whole file, a part says nothing about the present file.
            match version {
                Some(now) if *whole => session.seen.record(path.clone(), now.clone()),
                Some(now) if !lines.is_empty() || cut.is_some() => {
                    session.seen.record_lines(path, now.clone(), lines);
                    cut.iter().for_each(|line| session.seen.record_cut(path, *line));
                }
                _ => {}
            }
        }
    }

    /// Writes the events of a session's newest outbox beside it, for programs. Call it before the outbox is written, so that
    /// a program that sees the outbox finds them. `known` are the events, if they were determined before.
    pub(super) fn write_events(
        &self,
        session: &Session,
        known: Option<EventsMessage>,
    ) -> Result<()> {
        if session.dialect != Dialect::Operations {
            return Ok(());
        }
        let events = known.map_or_else(|| self.events_of(session, None), Ok)?;
        let text = operations::print(&events);
        atomic::write(&self.config.outbox.join(session.events_name()), text.as_bytes())
    }

    /// The events of a session's newest outbox.
    pub(super) fn events_of(&self, session: &Session, walk: Option<Walk>) -> Result<EventsMessage> {
        let (_, files) = self.files(session, walk)?;
        Ok(outbox::screened_events(session, &self.config.secrets, &files))
    }

    /// Writes the next outbox under a temporary name, and records in the session what it shows. Also returns its events.
    pub(super) fn prepare_outbox(
        &self,
        session: &mut Session,
        walk: Option<Walk>,
    ) -> Result<(PreparedOutbox, Option<EventsMessage>)> {
        let rendered = self.render(session, walk)?;
        Self::record_shown(session, &rendered);
        let text = rendered.text.as_bytes();
        let temporary = atomic::write_beside(&self.outbox_path(session), text)?;
        let prepared = PreparedOutbox {
            temporary: temporary.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            digest: Digest::of(text),
        };
        Ok((prepared, rendered.events))
    }

    /// Renders the newest outbox of a session from the present workspace. `walk` lists its files, if they were listed just
    /// now.
    pub(super) fn render(&self, session: &Session, walk: Option<Walk>) -> Result<RenderedOutbox> {
        let (walk, files) = self.files(session, walk)?;
        Ok(outbox::render(session, &self.environment(session)?, &walk, &files))
    }
}
