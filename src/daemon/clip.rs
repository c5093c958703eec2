//! The clipboard beside the daemon: each new outbox is put there, and a reply that comes there is put
//! into the inbox. All that takes time is done elsewhere; a turn waits for none of it.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::time::Duration;

use super::Serve;
use super::sessions::Sessions;
use crate::admission::{self, Admission, Given};
use crate::atomic;
use crate::clipboard::{ClipboardEvent, ClipboardSetup, ClipboardWatcher, Copier, CopyResult};
use crate::engine::{Engine, pasted_outbox};
use crate::error::Result;
use crate::event::{ClipboardNews, Event, Observer};
use crate::outbox::{OutboxForm, holds_outbox};
use crate::program::Programs;
use crate::protocol::{Address, ParsedReply};
use crate::session::Session;

/// How long the end waits for what is still to be copied.
const PATIENCE: Duration = Duration::from_secs(3);

/// What is done with the clipboard while a project is served.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Clip {
    /// Each new outbox is copied.
    pub copies: bool,
    /// Replies are taken from there, too.
    pub takes: bool,
}

/// The clipboard's side of the daemon.
pub(super) struct ClipboardSync {
    copier: Option<Copier<OutboxForm>>,
    watcher: Option<ClipboardWatcher>,
    /// What is copied when the first look at the clipboard is taken: a session, and which text its
    /// newest outbox had.
    first: Option<(String, (u32, usize))>,
    /// The newest outbox of each session that needs no copying any more, and how many words had been
    /// added to it.
    copied: HashMap<String, (u32, usize)>,
    /// What came there and was looked at: nothing counts twice.
    seen: HashSet<blake3::Hash>,
}

impl ClipboardSync {
    /// Has a look taken at what lies on the clipboard, and after that the outbox copied that the person is
    /// to paste, unless a reply lay there.
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

    /// Has the outbox copied that stood to be pasted at the start, if that is still to be done.
    fn copy_first(&mut self, engine: &Engine, sessions: &Sessions) {
        if let Some((id, version)) = self.first.take()
            && self.copied.get(&id) == Some(&version)
        {
            self.copied.remove(&id);
            self.copy_new(engine, sessions);
        }
    }

    /// Tells what became of copies, and puts replies that came into the inbox.
    pub(super) fn attend(
        &mut self,
        engine: &Engine,
        sessions: &mut Sessions,
        observer: &mut dyn Observer,
    ) -> Result<()> {
        while let Some(copied) = self.copier.as_ref().and_then(Copier::try_next) {
            tell(&copied, observer);
        }
        while let Some(event) = self.watcher.as_ref().and_then(ClipboardWatcher::try_next) {
            match event {
                ClipboardEvent::Started(way, text) => {
                    observer.event(Event::Clipboard(&ClipboardNews::Watched(way)));
                    let taken = text.map(|text| self.take(engine, sessions, text, observer));
                    if taken.transpose()? == Some(true) {
                        self.first = None;
                    }
                    self.copy_first(engine, sessions);
                }
                ClipboardEvent::Text(text) => drop(self.take(engine, sessions, text, observer)?),
                ClipboardEvent::Unreadable(why) => {
                    observer.event(Event::Clipboard(&ClipboardNews::Unreadable(&why)));
                    self.copy_first(engine, sessions);
                }
                ClipboardEvent::Fixed => observer.event(Event::Clipboard(&ClipboardNews::Readable)),
            }
        }
        Ok(())
    }

    /// Has the newest outboxes copied that were not.
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

    /// Waits for what is still to be copied.
    pub(super) fn close(&mut self, observer: &mut dyn Observer) {
        self.watcher = None;
        let copies = self.copier.take().map(|copier| copier.finish(PATIENCE));
        copies.iter().flatten().for_each(|copied| tell(copied, observer));
    }

    /// Puts a text into the inbox if it is a reply to an open session. Returns whether it was.
    fn take(
        &mut self,
        engine: &Engine,
        sessions: &mut Sessions,
        text: String,
        observer: &mut dyn Observer,
    ) -> Result<bool> {
        let mut reply = ParsedReply::new(text);
        let Some(answers) = reply.answers().cloned() else { return Ok(false) };
        let text = reply.text();
        if !self.seen.insert(blake3::hash(text.as_bytes())) || holds_outbox(text) {
            return Ok(false);
        }
        sessions.refresh(engine)?;
        let session = sessions.known.get(&answers.session).filter(|session| !session.is_complete);
        // What names no open session may be anything.
        let Some(session) = session else { return Ok(false) };
        if let Err(why) = check(session, &answers, &mut reply) {
            observer.event(Event::Clipboard(&ClipboardNews::NotTaken(&why)));
            return Ok(false);
        }
        let name = format!("clipboard_{}_seq{:04}.txt", session.id, session.sequence);
        let written = engine.inbox.make().and_then(|()| {
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

/// Whether a text may be carried out as a reply to this session though nobody said so: only whoever
/// has seen the outbox that it answers can have written it.
fn check(session: &Session, answers: &Address, reply: &mut ParsedReply) -> Result<(), String> {
    if session.pending.is_some() {
        return Err(format!("session {} waits for your decision", session.id));
    }
    match admission::admit(reply, session, Given::default()) {
        Admission::Accepted => {}
        Admission::Held(refusal) | Admission::Rejected(refusal) => return Err(refusal.why),
    }
    if !admission::is_authentic(session, answers) {
        return Err(format!(
            "its [REPLY ...] line does not give the key of outbox {} of session {}",
            answers.sequence, session.id
        ));
    }
    match reply.read(session.dialect).dialect {
        Some(_) => Ok(()),
        None => Err("it holds no command".to_owned()),
    }
}

/// Which text the newest outbox of a session has.
fn version(session: &Session) -> (u32, usize) {
    (session.sequence, session.added)
}

/// The session whose outbox the person is to paste: the one that is served, or the only open one.
fn to_paste(serve: &Serve, sessions: &Sessions) -> Option<String> {
    let mut waiting = sessions.known.values().filter(|session| match serve {
        Serve::One(id) => session.id == *id,
        Serve::All => !session.is_complete,
    });
    let only = waiting.next().filter(|session| session.awaits_reply());
    only.filter(|_| waiting.next().is_none()).map(|session| session.id.clone())
}

fn tell((path, done): &CopyResult<OutboxForm>, observer: &mut dyn Observer) {
    observer.event(Event::Clipboard(&match done {
        Ok((form, way)) => ClipboardNews::Copied(path, form, *way),
        Err(why) => ClipboardNews::NotCopied(path, why),
    }));
}
