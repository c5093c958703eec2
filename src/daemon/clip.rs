//! The daemon's use of the clipboard: copies each new outbox to it, and moves replies from it into the inbox. Other threads
//! access the clipboard, so that no turn waits for it.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::time::Duration;

use super::Serve;
use super::sessions::Sessions;
use crate::admission::{self, Admission, ReplyOptions};
use crate::atomic;
use crate::clipboard::{ClipboardEvent, ClipboardSetup, ClipboardWatcher, Copier};
use crate::engine::{Engine, pasted_outbox};
use crate::error::Result;
use crate::event::{ClipboardNews, Event, Observer};
use crate::outbox::{OutboxForm, contains_outbox};
use crate::program::Programs;
use crate::protocol::{ParsedReply, ReplyAddress};
use crate::session::Session;

/// How long the end waits for copies that are not finished.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// How the clipboard is used while a project is served.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Clip {
    /// Copy each new outbox.
    pub copies: bool,
    /// Take replies from it.
    pub takes: bool,
}

/// The clipboard's side of the daemon.
pub(super) struct ClipboardSync {
    copier: Option<Copier<OutboxForm>>,
    watcher: Option<ClipboardWatcher>,
    /// The outbox to copy after the first look at the clipboard: its session and its version.
    first: Option<(String, (u32, usize))>,
    /// The version of the newest outbox of each session that need not be copied any more.
    copied: HashMap<String, (u32, usize)>,
    /// The texts that were examined, so that none counts twice.
    seen: HashSet<blake3::Hash>,
}

impl ClipboardSync {
    /// Starts to watch the clipboard. After the first look at it, the outbox that the person is to paste is copied, unless
    /// the clipboard contained a reply.
    pub(super) fn open(
        clip: Clip,
        engine: &Engine,
        serve: &Serve,
        sessions: &Sessions,
        wake: impl Fn() + Send + Clone + 'static,
    ) -> Self {
        let programs = Programs::of(&engine.config);
        let known = sessions.known.values().map(|known| (known.id.clone(), version(known)));
        let mut sync = Self {
            copier: None,
            watcher: None,
            first: None,
            copied: known.collect(),
            seen: HashSet::new(),
        };
        if clip.copies {
            sync.copier = Copier::start(programs.clone(), wake.clone());
            let id = to_paste(serve, sessions);
            sync.first = id.and_then(|id| Some((id.clone(), *sync.copied.get(&id)?)));
        }
        if clip.takes {
            sync.watcher = ClipboardWatcher::start(ClipboardSetup::current(programs), wake);
        }
        if sync.watcher.is_none() {
            sync.copy_first(engine, sessions);
        }
        sync
    }

    /// Copies the outbox that the person was to paste at the start, if it is still the newest and not copied.
    fn copy_first(&mut self, engine: &Engine, sessions: &Sessions) {
        if let Some((id, version)) = self.first.take()
            && self.copied.get(&id) == Some(&version)
        {
            self.copied.remove(&id);
            self.copy_new(engine, sessions);
        }
    }

    /// Reports finished copies, and moves new replies into the inbox.
    pub(super) fn handle_events(
        &mut self,
        engine: &Engine,
        sessions: &mut Sessions,
        observer: &mut dyn Observer,
    ) -> Result<()> {
        while let Some(copied) = self.copier.as_ref().and_then(Copier::try_next) {
            observer.event(Event::Clipboard(&ClipboardNews::Copied(&copied)));
        }
        while let Some(event) = self.watcher.as_ref().and_then(ClipboardWatcher::try_next) {
            match event {
                ClipboardEvent::Started(way, text) => {
                    observer.event(Event::Clipboard(&ClipboardNews::Watched(way)));
                    let accepted = text.map(|text| self.accept(engine, sessions, text, observer));
                    if accepted.transpose()? == Some(true) {
                        self.first = None;
                    }
                    self.copy_first(engine, sessions);
                }
                ClipboardEvent::Text(text) => {
                    self.accept(engine, sessions, text, observer)?;
                }
                ClipboardEvent::Unreadable(why) => {
                    observer.event(Event::Clipboard(&ClipboardNews::Unreadable(&why)));
                    self.copy_first(engine, sessions);
                }
                ClipboardEvent::Fixed => observer.event(Event::Clipboard(&ClipboardNews::Readable)),
            }
        }
        Ok(())
    }

    /// Copies the newest outboxes that have not been copied.
    pub(super) fn copy_new(&mut self, engine: &Engine, sessions: &Sessions) {
        let Some(copier) = &self.copier else { return };
        let mut new: Vec<&Session> = sessions
            .known
            .values()
            .filter(|known| self.copied.get(&known.id).is_none_or(|done| *done < version(known)))
            .collect();
        new.sort_by_key(|session| (session.updated_at, &session.id));
        for session in new {
            self.copied.insert(session.id.clone(), version(session));
            if session.awaits_reply() {
                let config = &engine.config;
                let outbox = pasted_outbox(config, session, session.sequence, config.brief);
                copier.copy(engine.outbox_path(session), outbox.map_err(|e| e.to_string()));
            }
        }
    }

    /// Stops watching, and waits for copies that are not finished.
    pub(super) fn close(&mut self, observer: &mut dyn Observer) {
        self.watcher = None;
        let copies = self.copier.take().map(|copier| copier.finish(CLOSE_TIMEOUT));
        for copied in copies.iter().flatten() {
            observer.event(Event::Clipboard(&ClipboardNews::Copied(copied)));
        }
    }

    /// Moves a text into the inbox if it is an authentic reply to an open session. Returns whether it was.
    fn accept(
        &mut self,
        engine: &Engine,
        sessions: &mut Sessions,
        text: String,
        observer: &mut dyn Observer,
    ) -> Result<bool> {
        let mut reply = ParsedReply::new(text);
        let Some(answers) = reply.answers().cloned() else { return Ok(false) };
        let text = reply.text();
        if !self.seen.insert(blake3::hash(text.as_bytes())) || contains_outbox(text) {
            return Ok(false);
        }
        sessions.refresh(engine)?;
        let session = sessions.known.get(&answers.session).filter(|session| !session.is_complete);
        // A text that names no open session may be anything, so it is ignored silently.
        let Some(session) = session else { return Ok(false) };
        if let Err(why) = check(session, &answers, &mut reply) {
            observer.event(Event::Clipboard(&ClipboardNews::NotTaken(&why)));
            return Ok(false);
        }
        let name = format!("clipboard_{}_seq{:04}.txt", session.id, session.sequence);
        let written = engine.inbox.create_folders().and_then(|()| {
            atomic::write_into(engine.inbox.folder(), OsStr::new(&name), reply.text().as_bytes())
        });
        match written {
            Ok(_) => Ok(true),
            Err(e) if e.is_disk_failure() => Err(e),
            Err(e) => {
                observer.event(Event::Clipboard(&ClipboardNews::Unreadable(&e.to_string())));
                Ok(false)
            }
        }
    }
}

/// Checks that a text may be carried out as a reply to this session without a confirmation: it has the key of the
/// outbox that it answers, so only somebody who read that outbox can have written it.
fn check(session: &Session, answers: &ReplyAddress, reply: &mut ParsedReply) -> Result<(), String> {
    if session.pending.is_some() {
        return Err(format!("session {} waits for your decision", session.id));
    }
    match admission::admit(reply, session, ReplyOptions::default()) {
        Admission::Accepted => {}
        Admission::Held(refusal) | Admission::Rejected(refusal) => return Err(refusal.why),
    }
    if !admission::is_authentic(session, answers) {
        return Err(format!(
            "its [REPLY ...] line does not give the key of outbox {} of session {}",
            answers.sequence, session.id
        ));
    }
    match reply.read_in(session.dialect, None).dialect {
        Some(_) => Ok(()),
        None => Err("it contains no command".to_owned()),
    }
}

/// The version of the newest outbox of a session: its number, and how often words were added to it.
fn version(session: &Session) -> (u32, usize) {
    (session.sequence, session.added)
}

/// The session whose outbox the person is to paste: the served one, or the only open one.
fn to_paste(serve: &Serve, sessions: &Sessions) -> Option<String> {
    let mut waiting = sessions.known.values().filter(|session| match serve {
        Serve::One(id) => session.id == *id,
        Serve::All => !session.is_complete,
    });
    let only = waiting.next().filter(|session| session.awaits_reply());
    only.filter(|_| waiting.next().is_none()).map(|session| session.id.clone())
}
