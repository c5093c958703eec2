//! What happens while turns are executed and a project is served, as one enum.
//!
//! Code that reports events matches on [`Event`] without a wildcard, so that a new event cannot be overlooked.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::clipboard::{ClipboardBackend, CopyResult};
use crate::executor::PreviewedChange;
use crate::outbox::OutboxForm;
use crate::protocol::{Outcome, Step};
use crate::session::Session;

/// One event.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "the fields are named after what they are")]
pub enum Event<'a> {
    /// A turn of this session begins, or continues, with the reply of this name.
    TurnBegun { session: &'a Session, reply: &'a str },
    /// A step is about to be executed.
    StepBegun(&'a Step),
    /// A step has this outcome.
    StepDone(&'a Outcome),
    /// A turn has ended, or waits for the person.
    TurnEnded(&'a Turn),
    /// A sentence that the person should read.
    Warning(&'a str),
    /// The daemon accepts replies from now on.
    Serving,
    /// The daemon accepts no more replies.
    Stopping,
    /// The daemon has nothing to do, and waits for these sessions and replies. Reported repeatedly.
    Idle(&'a Waiting<'a>),
    /// A reply for this session was taken from the inbox.
    ReplyTaken { name: &'a OsStr, session: &'a Session },
    /// A reply stays in the inbox until the person has decided what its session asks. Reported once.
    ReplyWaits { name: &'a OsStr, session: &'a Session },
    /// A file of the inbox or the approvals was moved to this folder.
    FileMoved { name: &'a OsStr, folder: &'a Path, why: &'a str },
    /// A file of the inbox cannot be claimed. It is tried again, and reported once for each reason.
    FileStuck { name: &'a OsStr, why: &'a str },
    /// A session asks the person. `preview` shows what an approval would do. Reported once for each question.
    Question { session: &'a Session, preview: &'a QuestionPreview },
    /// The person's words were added to the newest outbox of a session, or wait for the next.
    WordsAdded(&'a Turn),
    /// A session was begun by another process.
    SessionAdded(&'a Session),
    /// A session was closed by another process, or removed.
    SessionClosed { session: &'a Session, removed: bool },
    /// A run of another process has ended, or waits for the person.
    RunEnded(&'a Session),
    /// Something changed about the clipboard.
    Clipboard(&'a ClipboardNews<'a>),
}

/// Receives events.
pub trait Observer {
    /// Receives one event.
    fn event(&mut self, event: Event<'_>);
}

impl<F: FnMut(Event<'_>)> Observer for F {
    fn event(&mut self, event: Event<'_>) {
        self(event);
    }
}

/// Ignores all events.
impl Observer for () {
    fn event(&mut self, _: Event<'_>) {}
}

/// A turn that has ended, or waits for the person.
#[derive(Debug, Serialize, Deserialize)]
pub struct Turn {
    /// Its session, as it is now.
    pub session: Session,
    /// The newest outbox; None if the session is complete or waits for the person.
    pub outbox: Option<PathBuf>,
}

/// What the daemon waits for while it has nothing to do.
#[derive(Debug, Clone)]
pub struct Waiting<'a> {
    /// The open sessions, ordered by id.
    pub sessions: Vec<&'a Session>,
    /// The names of replies that are still being written.
    pub unfinished: Vec<OsString>,
}

/// What changed about the clipboard.
#[derive(Debug)]
pub enum ClipboardNews<'a> {
    /// An outbox was copied in this form, or could not be copied.
    Copied(&'a CopyResult<OutboxForm>),
    /// Replies are taken from the clipboard, in this way.
    Watched(ClipboardBackend),
    /// A reply on the clipboard was not taken, for this reason.
    NotTaken(&'a str),
    /// The clipboard cannot be read, for this reason.
    Unreadable(&'a str),
    /// The clipboard can be read again.
    Readable,
}

/// A preview of what an approval would do.
#[derive(Debug, Default)]
pub struct QuestionPreview {
    /// The outcomes of all steps, if the question is about the whole reply.
    pub outcomes: Vec<Outcome>,
    /// The files that would change.
    pub rewritten: Vec<PreviewedChange>,
}
