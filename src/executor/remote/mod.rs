//! Another machine, or a container: operations are carried out by an agent there, which is asked over
//! JSON-RPC. Journal, sessions, inbox and outbox stay here.
//!
//! A guest is another deaddrop. It carries out each step once, under a key that is journalled before it
//! is asked: whoever goes away in the middle, what it came to can be asked again.
//!
//! What a guest says is looked at before it is believed: it may be the machine that replies run on.

mod link;
mod sane;
mod steps;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use super::Executor;
use crate::client::Client;
use crate::error::Result;
use crate::program::Programs;
use crate::protocol::jsonrpc::{About, ReadParams, ReadResult};
use crate::protocol::{Failure, Part, RelPath};
use crate::settings;
use crate::workspace::walk::Walk;
use crate::workspace::{self, Contents};
use steps::RemoteExecutor;

/// So long a guest may take for what it does at once.
const PATIENCE: Duration = Duration::from_mins(1);
/// So much longer than its command a step may take.
const GRACE: Duration = Duration::from_secs(30);
/// How often a step is asked about that is still being carried out.
const AGAIN: Duration = Duration::from_millis(200);

/// A guest, whether it can be reached or not.
pub struct Guest {
    settings: settings::GuestAddress,
    programs: Programs,
    link: RefCell<Option<Client>>,
    about: RefCell<Option<Rc<About>>>,
    /// Whether it was there once.
    has_answered: Cell<bool>,
    /// Keys of steps whose outcomes are journalled: the guest may forget them.
    settled: RefCell<Vec<String>>,
    /// Sessions that are over, of which it is not told yet.
    over: RefCell<Vec<String>>,
    /// What its memory of steps is known by.
    state: RefCell<Option<String>>,
    /// How long it is waited for while another deaddrop is at work there.
    patience: Cell<Duration>,
    /// Says whether the person wants to stop.
    interrupted: Option<Box<dyn Fn() -> bool + Send>>,
}

/// How operations of one turn are carried out in a guest.
pub struct Terms<'a> {
    /// What the keys of its steps begin with: the same for the same turn, and of no other.
    pub turn: String,
    /// What the session is called that its commands are of: what they have for themselves there is
    /// found by it.
    pub own: String,
    /// How long a command gets that asks for so much.
    pub timeout: &'a dyn Fn(Option<Duration>) -> Duration,
    /// Whether commands reach the network; None for what the guest's settings say.
    pub network: Option<bool>,
    /// How many characters of a command's output are kept.
    pub output_limit: usize,
    /// The largest file, in bytes, that is given where it is read in its place.
    pub read_limit: u64,
    /// How many bytes of such files may be given yet.
    pub read_room: u64,
    /// Which files may be searched.
    pub files: Option<settings::FilePolicy>,
}

impl Guest {
    /// The guest of these settings, reached by a program from there. Nothing is done yet.
    pub fn new(settings: settings::GuestAddress, programs: Programs) -> Self {
        Self {
            settings,
            programs,
            link: RefCell::default(),
            about: RefCell::default(),
            has_answered: Cell::default(),
            settled: RefCell::default(),
            over: RefCell::default(),
            state: RefCell::default(),
            patience: Cell::default(),
            interrupted: None,
        }
    }

    /// The same, not waited for any longer when that says that the person wants to stop.
    #[must_use]
    pub fn until(self, interrupted: impl Fn() -> bool + Send + 'static) -> Self {
        Self { interrupted: Some(Box::new(interrupted)), ..self }
    }

    /// Which guest it is, for people.
    pub fn label(&self) -> String {
        self.settings.label()
    }

    /// Returns what carries out the operations of a turn there.
    ///
    /// # Errors
    /// It cannot be reached.
    pub fn executor<'a>(&'a self, terms: Terms<'a>) -> Result<Box<dyn Executor + 'a>> {
        self.about()?;
        Ok(Box::new(RemoteExecutor::new(self, terms)))
    }

    /// Lists the files there.
    pub fn walk(&self) -> Result<Walk> {
        self.about()?;
        Ok(sane::walk(self.ask("walk", &serde_json::json!({}), PATIENCE)?))
    }

    /// Reads a text there: its beginning, or the lines that were asked for.
    pub fn read_part(&self, path: &RelPath, part: Part) -> Result<Result<Contents, Failure>> {
        if part.is_whole() {
            let text = self.read(path, workspace::READ_LIMIT)?.and_then(Contents::text);
            if !text.as_ref().is_ok_and(Contents::is_within_a_line) {
                return Ok(text);
            }
            return self.read_part(path, Part { start: Some(1), ..part });
        }
        let read = self.read_of(path, workspace::READ_LIMIT, part)?;
        if let Ok(Contents { lines: None, .. }) = read {
            return Err(self.nonsense("read", "it does not say which lines it gives"));
        }
        Ok(read.and_then(Contents::text))
    }

    /// Reads a file there, at most its first `limit` bytes.
    pub fn read(&self, path: &RelPath, limit: u64) -> Result<Result<Contents, Failure>> {
        let read = self.read_of(path, limit, Part::default())?;
        Ok(read.map(|contents| Contents { lines: None, ..contents }))
    }

    fn read_of(&self, path: &RelPath, limit: u64, part: Part) -> Result<Result<Contents, Failure>> {
        self.about()?;
        let asked = ReadParams { path: path.clone(), limit, part };
        Ok(match self.ask("read", &asked, PATIENCE)? {
            ReadResult::Failed(failure) => Err(sane::failure(failure)),
            ReadResult::File { path, bytes, size, lines } => {
                let mut bytes = bytes.into_bytes();
                bytes.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
                let size = sane::size(size.max(bytes.len() as u64));
                let lines = lines.map(|lines| sane::lines(lines, &bytes, part));
                Ok(Contents { path, bytes, size, lines })
            }
        })
    }
}
