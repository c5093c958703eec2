//! Another machine, or a container: operations are carried out by an agent there, which is asked over
//! JSON-RPC. Journal, sessions, inbox and outbox stay here.
//!
//! A guest is another deaddrop. It carries out each step once, under a key that is journalled before it
//! is asked: whoever goes away in the middle, what it came to can be asked again.
//!
//! What a guest says is looked at before it is believed: it may be the machine that replies run on.

mod sane;
mod steps;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Executor;
use crate::client::{Client, Gone};
use crate::error::{Error, Result};
use crate::program::Programs;
use crate::protocol::jsonrpc::{
    self, About, AboutParams, Key, ReadParams, ReadResult, RpcError, VERSION,
};
use crate::protocol::{Failure, Part, RelPath};
use crate::settings;
use crate::settings::GuestAddress::{Command, Socket};
use crate::workspace::walk::Walk;
use crate::workspace::{self, Contents};
use steps::RemoteExecutor;

/// So long a guest may take for what it does at once.
const PATIENCE: Duration = Duration::from_mins(1);
/// So much longer than its command a step may take.
const GRACE: Duration = Duration::from_secs(30);
/// How often a step is asked about that is still being carried out.
const AGAIN: Duration = Duration::from_millis(200);

/// So long a guest is tried for that was there a moment ago: what it was doing may have to end first.
const RETURN: Duration = Duration::from_secs(10);
/// How often it is tried.
const PAUSE: Duration = Duration::from_millis(250);
/// So long a guest may take to hear that a session is over, which nobody else waits for.
const LEAVE: Duration = Duration::from_secs(2);
/// So long a connection may take to be made and answer.
const HELLO: Duration = Duration::from_secs(30);
/// So long a socket may take to say that it is connected.
const HANDSHAKE: Duration = Duration::from_secs(10);

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
        Ok(sane::walk(self.ask("walk", &serde_json::json!({}))?))
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
        Ok(match self.ask("read", &asked)? {
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

    // The connection: made when it is needed, made again where it broke and nothing can be done twice by that, and given
    // up between turns.

    /// Gives the connection up until it is needed again: a guest that serves its own project
    /// holds the lock of that as long as it lasts.
    pub fn rest(&self) {
        self.leave();
        self.patience.set(Duration::ZERO);
        // By then its owner may have started it anew, with other walls.
        self.about.take();
        let link = self.link.take();
        // Its end may take a moment, for which nobody has to wait; where no thread can be had, we do.
        let end = move || drop(link);
        let _ = thread::Builder::new().name("client-end".to_owned()).spawn(end);
    }

    /// A session is over (see [`Terms::own`]): what its commands had for themselves may go.
    /// That is said over a connection that is there, now or later; else the guest removes it when
    /// nobody has used it for a month.
    pub fn forget(&self, own: String) {
        self.over.borrow_mut().push(own);
        self.leave();
    }

    /// A turn goes on: should another deaddrop be at work where the guest's would be, which may be
    /// carrying out a step of this very turn, it is waited for so long. Until [`Guest::rest`].
    pub fn be_patient(&self, patience: Duration) {
        self.patience.set(patience + GRACE);
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted.as_ref().is_some_and(|interrupted| interrupted())
    }

    /// What its memory of steps is known by.
    fn state(&self) -> Result<Option<String>> {
        Ok(Some(self.about()?.state.clone()).filter(|state| !state.is_empty()))
    }

    fn leave(&self) {
        let mut link = self.link.borrow_mut();
        let (true, Some(client)) = (self.about.borrow().is_some(), link.as_mut()) else { return };
        for key in self.over.take() {
            // One that does not know the method, or does not want to, is not asked again.
            let answer = client.call::<jsonrpc::Written>("leave", &Key { key }, LEAVE);
            if answer.is_err() {
                // What it still has to say is nobody's answer.
                link.take();
                return;
            }
        }
    }

    /// Tools there, with their versions.
    ///
    /// # Errors
    /// It cannot be reached.
    pub fn tools(&self) -> Result<Vec<String>> {
        self.about()?;
        let about: About = self.ask("about", &AboutParams { tools: true })?;
        Ok(sane::about(about).tools)
    }

    /// What was asked of it that cannot be answered so.
    fn nonsense(&self, method: &str, why: &str) -> Error {
        Error::guest(&self.label(), &format!("it does not answer '{method}' as it should: {why}"))
    }

    /// What the guest is.
    ///
    /// # Errors
    /// It cannot be reached, or is no deaddrop of this version.
    pub fn about(&self) -> Result<Rc<About>> {
        if let Some(about) = &*self.about.borrow() {
            return Ok(Rc::clone(about));
        }
        let about = match self.exchange::<About>("about", &AboutParams::default())? {
            Ok(about) if about.version == VERSION => about,
            Ok(About { version, program, .. }) => {
                let why = format!(
                    "{} there speaks version {version} of the methods for guests, and this one version {VERSION}: install the same deaddrop on both machines",
                    sane::line(&program)
                );
                return Err(Error::guest(&self.label(), &why));
            }
            Err(RpcError { code: RpcError::METHOD, .. }) => {
                let why = format!(
                    "the agent in the guest '{}' is not deaddrop: install deaddrop there, and run `deaddrop rpc` instead",
                    self.label()
                );
                return Err(Error::relayed(why, "guest-not-deaddrop", 1));
            }
            Err(fault) => return Err(self.nonsense("about", &fault.to_string())),
        };
        let about = Rc::new(sane::about(about));
        self.about.replace(Some(Rc::clone(&about)));
        self.has_answered.set(true);
        Ok(about)
    }

    /// Asks for what can be asked for twice, and must be given.
    fn ask<T: DeserializeOwned>(&self, method: &str, params: &impl Serialize) -> Result<T> {
        self.given(method, self.exchange(method, params)?)
    }

    /// What must be given.
    fn given<T>(&self, method: &str, said: Result<T, RpcError>) -> Result<T> {
        said.map_err(|fault| self.nonsense(method, &sane::line(&fault.message)))
    }

    /// Asks for what can be asked for twice: once more where the connection broke.
    fn exchange<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<Result<T, RpcError>> {
        self.twice(|client| client.call(method, params, PATIENCE))
    }

    /// Asks for what takes a while and can be asked for twice: a step, which is done once however often it is asked
    /// for, or a look for files. Has what goes by this key ended where the person wants to stop. Tells too whether
    /// the connection broke meanwhile.
    fn ask_until<T: DeserializeOwned>(
        &self,
        method: &str,
        asked: &impl Serialize,
        key: &str,
        patience: Duration,
    ) -> Result<(Result<T, RpcError>, bool)> {
        let (key, mut times) = (Key { key: key.to_owned() }, 0);
        let said = self.twice(|client| {
            times += 1;
            let mut told: Option<Instant> = None;
            let mut tell = || {
                // Said again: the first may overtake what it is to end.
                let tell = self.is_interrupted() && told.is_none_or(|told| told.elapsed() >= AGAIN);
                told = if tell { Some(Instant::now()) } else { told };
                tell.then(|| jsonrpc::request(None, "interrupt", &key))
            };
            client.call_while(method, asked, patience, Some(&mut tell))
        })?;
        Ok((said, times > 1))
    }

    /// Calls again where the connection broke. Who wants to stop is not kept waiting: the key of a step
    /// is journalled.
    fn twice<T>(&self, mut call: impl FnMut(&mut Client) -> Result<T, Gone>) -> Result<T> {
        let knew = self.link.borrow().is_some() || self.has_answered.get();
        let mut had_connection = false;
        let first = self.with(if knew { RETURN } else { Duration::ZERO }, |client| {
            had_connection = true;
            call(client)
        });
        // One that was there may break before anything was written to it, too. Where there was none,
        // it was tried for already.
        let again = first.or_else(|gone| {
            if had_connection && !self.is_interrupted() {
                self.with(RETURN, call)
            } else {
                Err(gone)
            }
        });
        again.map_err(|gone| self.away(&gone))
    }

    /// Calls with the connection that there is, or with a new one, which is tried for so long.
    fn with<T>(
        &self,
        patience: Duration,
        call: impl FnOnce(&mut Client) -> Result<T, Gone>,
    ) -> Result<T, Gone> {
        let mut link = self.link.borrow_mut();
        let client = match link.as_mut() {
            Some(client) => client,
            None => link.insert(self.connect(patience)?),
        };
        let called = call(client);
        if called.is_err() {
            // Nothing more can be said over it.
            link.take();
        }
        called
    }

    /// A connection over which somebody answers.
    fn connect(&self, patience: Duration) -> Result<Client, Gone> {
        let begun = Instant::now();
        loop {
            let tried = match &self.settings {
                Command(command) => Client::spawn(command, &self.programs),
                Socket { path, port } => Client::connect(path, Some(*port), HANDSHAKE),
            };
            let answered = tried.and_then(|mut client| client.ping(HELLO).map(|_| client));
            let patience = match &answered {
                Err(gone) if gone.held => patience.max(self.patience.get()),
                _ => patience,
            };
            match answered {
                Err(_) if begun.elapsed() < patience && !self.is_interrupted() => {
                    thread::sleep(PAUSE);
                }
                Ok(client) => return Ok(client),
                Err(gone) => return Err(gone),
            }
        }
    }

    fn away(&self, gone: &Gone) -> Error {
        Error::guest(&self.label(), &gone.reason)
    }
}
