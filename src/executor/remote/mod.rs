//! Carries out operations on another machine or in a container, through JSON-RPC requests to an agent there. The
//! journal, sessions, inbox and outbox stay on this machine.
//!
//! A guest is another deaddrop. It carries out each step once, under a key that is journalled before the request: if
//! either side stops, the result can be requested again.
//!
//! The answers of a guest are checked before they are used, since commands of replies run on that machine.

mod sanitize;
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

/// The timeout of a request that the guest can answer at once.
const REQUEST_TIMEOUT: Duration = Duration::from_mins(1);
/// How much longer than its command a step may take.
const GRACE: Duration = Duration::from_secs(30);
/// The interval at which the result of a running step is requested.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// How long to try to reconnect to a guest. The guest may have to finish something first.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The interval between these attempts.
const RECONNECT_INTERVAL: Duration = Duration::from_millis(250);
/// The timeout for reporting the end of a session.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(2);
/// The timeout for the first answer over a new connection.
const PING_TIMEOUT: Duration = Duration::from_secs(30);
/// The timeout for the handshake of a socket.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// A guest and the connection to it, if there is one.
pub struct Guest {
    settings: settings::GuestAddress,
    programs: Programs,
    client: RefCell<Option<Client>>,
    about: RefCell<Option<Rc<About>>>,
    /// Whether the guest has answered before.
    has_answered: Cell<bool>,
    /// Keys of steps whose outcomes are journalled, so the guest may forget these steps.
    settled: RefCell<Vec<String>>,
    /// Ended sessions that have not been reported to the guest yet.
    ended: RefCell<Vec<String>>,
    /// How long to wait while another deaddrop serves the guest's project.
    lock_timeout: Cell<Duration>,
    /// Whether the person wants to stop.
    interrupted: Option<Box<dyn Fn() -> bool + Send>>,
}

/// The parameters of one turn in a guest.
pub struct GuestTurn<'a> {
    /// The prefix of the keys of its steps, unique to the turn.
    pub turn: String,
    /// The name of the session, by which the guest finds the scratch directory of its commands.
    pub own: String,
    /// The timeout of a command, given the one that it requests.
    pub timeout: &'a dyn Fn(Option<Duration>) -> Duration,
    /// Whether commands have network access; None for the guest's setting.
    pub network: Option<bool>,
    /// The maximum number of characters kept of a command's output.
    pub output_limit: usize,
    /// The size of the largest file whose complete content is returned, in bytes.
    pub read_limit: u64,
    /// How many more bytes of such contents may be returned.
    pub read_room: u64,
    /// The policy for files that may be searched.
    pub files: Option<settings::FilePolicy>,
}

impl Guest {
    /// Makes a guest from the settings, without connecting. `programs` finds the program that connects to it.
    pub fn new(settings: settings::GuestAddress, programs: Programs) -> Self {
        Self {
            settings,
            programs,
            client: RefCell::default(),
            about: RefCell::default(),
            has_answered: Cell::default(),
            settled: RefCell::default(),
            ended: RefCell::default(),
            lock_timeout: Cell::default(),
            interrupted: None,
        }
    }

    /// Stops waiting when `interrupted` returns true.
    #[must_use]
    pub fn with_interrupt(self, interrupted: impl Fn() -> bool + Send + 'static) -> Self {
        Self { interrupted: Some(Box::new(interrupted)), ..self }
    }

    /// The name of the guest for people.
    pub fn label(&self) -> String {
        self.settings.label()
    }

    /// Makes the executor of a turn.
    ///
    /// # Errors
    /// The guest cannot be reached.
    pub fn executor<'a>(&'a self, turn: GuestTurn<'a>) -> Result<Box<dyn Executor + 'a>> {
        self.about()?;
        Ok(Box::new(RemoteExecutor::new(self, turn)))
    }

    /// Lists the files.
    pub fn walk(&self) -> Result<Walk> {
        self.about()?;
        Ok(sanitize::walk(self.request("walk", &serde_json::json!({}))?))
    }

    /// Reads the beginning of a text file, or the requested lines.
    pub fn read_part(&self, path: &RelPath, part: Part) -> Result<Result<Contents, Failure>> {
        if part.is_whole() {
            let text = self.read(path, workspace::READ_LIMIT)?.and_then(Contents::text);
            if !text.as_ref().is_ok_and(Contents::is_within_a_line) {
                return Ok(text);
            }
            return self.read_part(path, Part { start: Some(1), ..part });
        }
        let read = self.request_read(path, workspace::READ_LIMIT, part)?;
        if let Ok(Contents { lines: None, .. }) = read {
            return Err(self.invalid_answer("read", "the line numbers are missing"));
        }
        Ok(read.and_then(Contents::text))
    }

    /// Reads up to `limit` bytes of a file.
    pub fn read(&self, path: &RelPath, limit: u64) -> Result<Result<Contents, Failure>> {
        let read = self.request_read(path, limit, Part::default())?;
        Ok(read.map(|contents| Contents { lines: None, ..contents }))
    }

    fn request_read(
        &self,
        path: &RelPath,
        limit: u64,
        part: Part,
    ) -> Result<Result<Contents, Failure>> {
        self.about()?;
        let params = ReadParams { path: path.clone(), limit, part };
        Ok(match self.request("read", &params)? {
            ReadResult::Failed(failure) => Err(sanitize::failure(failure)),
            ReadResult::File { path, bytes, size, lines } => {
                let mut bytes = bytes.into_bytes();
                bytes.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
                let size = sanitize::size(size.max(bytes.len() as u64));
                let lines = lines.map(|lines| sanitize::lines(lines, &bytes, part));
                Ok(Contents { path, bytes, size, lines })
            }
        })
    }

    // A connection is made when it is needed, made again if it broke and repeating the request is safe, and closed
    // between turns.

    /// Closes the connection until it is needed again. A guest that serves its own project holds the project's lock
    /// while it is connected.
    pub fn disconnect(&self) {
        self.report_ended_sessions();
        self.lock_timeout.set(Duration::ZERO);
        // The guest may be restarted with other settings before the next connection.
        self.about.take();
        let client = self.client.take();
        // Closing may take a moment, so a thread does it; if none can be created, this one does.
        let end = move || drop(client);
        let _ = thread::Builder::new().name("client-end".to_owned()).spawn(end);
    }

    /// Ends a session (see [`GuestTurn::own`]), so that the guest may remove its scratch directory. This is reported
    /// over an existing connection, now or later. Otherwise the guest removes the directory after a month.
    pub fn end_session(&self, own: String) {
        self.ended.borrow_mut().push(own);
        self.report_ended_sessions();
    }

    /// Sets how long to wait if another deaddrop serves the guest's project, since that one may be carrying out a
    /// step of this turn. Valid until [`Guest::disconnect`].
    pub fn wait_for_lock(&self, timeout: Duration) {
        self.lock_timeout.set(timeout + GRACE);
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted.as_ref().is_some_and(|interrupted| interrupted())
    }

    /// The name of the guest's record of steps.
    fn state(&self) -> Result<Option<String>> {
        Ok(Some(self.about()?.state.clone()).filter(|state| !state.is_empty()))
    }

    fn report_ended_sessions(&self) {
        let mut client = self.client.borrow_mut();
        let (true, Some(connected)) = (self.about.borrow().is_some(), client.as_mut()) else {
            return;
        };
        for key in self.ended.take() {
            // A guest that refuses the method is not asked again.
            let answer = connected.call::<jsonrpc::Written>("leave", &Key { key }, LEAVE_TIMEOUT);
            if answer.is_err() {
                // A late answer could be mistaken for that of another request.
                client.take();
                return;
            }
        }
    }

    /// The tools of the guest, with their versions.
    ///
    /// # Errors
    /// The guest cannot be reached.
    pub fn tools(&self) -> Result<Vec<String>> {
        self.about()?;
        let about: About = self.request("about", &AboutParams { tools: true })?;
        Ok(sanitize::about(about).tools)
    }

    /// The error for an invalid answer to a request.
    fn invalid_answer(&self, method: &str, why: &str) -> Error {
        Error::guest(&self.label(), &format!("invalid answer to '{method}': {why}"))
    }

    /// The guest's description of itself.
    ///
    /// # Errors
    /// The guest cannot be reached, or is not a compatible deaddrop.
    pub fn about(&self) -> Result<Rc<About>> {
        if let Some(about) = &*self.about.borrow() {
            return Ok(Rc::clone(about));
        }
        let (about, _) = self.ask("about", &AboutParams::default(), REQUEST_TIMEOUT, None)?;
        let about: About = match about {
            Ok(about @ About { version: VERSION, .. }) => about,
            Ok(About { version, program, .. }) => {
                let why = format!(
                    "{} there uses version {version} of the guest protocol, and this one version {VERSION}: install the same deaddrop on both machines",
                    sanitize::line(&program)
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
            Err(fault) => return Err(self.invalid_answer("about", &fault.to_string())),
        };
        let about = Rc::new(sanitize::about(about));
        self.about.replace(Some(Rc::clone(&about)));
        self.has_answered.set(true);
        Ok(about)
    }

    /// Makes a request that can be repeated and must succeed.
    fn request<T: DeserializeOwned>(&self, method: &str, params: &impl Serialize) -> Result<T> {
        let (answer, _) = self.ask(method, params, REQUEST_TIMEOUT, None)?;
        self.require_success(method, answer)
    }

    /// Converts an RPC error of a request that must succeed.
    fn require_success<T>(&self, method: &str, answer: Result<T, RpcError>) -> Result<T> {
        answer.map_err(|fault| self.invalid_answer(method, &sanitize::line(&fault.message)))
    }

    /// Makes a request that can be repeated, and repeats it once if the connection broke. Such a request has no effect,
    /// or is a step, which is carried out once however often it is requested. If the person wants to stop, interrupts
    /// the request with this key, and does not repeat it; the journalled key of a step still leads to its result. Also
    /// returns whether the connection broke in between.
    fn ask<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
        timeout: Duration,
        key: Option<&str>,
    ) -> Result<(Result<T, RpcError>, bool)> {
        let mut connected = self.client.borrow_mut();
        let was_reachable = connected.is_some() || self.has_answered.get();
        let mut patience = if was_reachable { RECONNECT_TIMEOUT } else { Duration::ZERO };
        let mut is_retry = false;
        loop {
            let client = connected.take().map_or_else(|| self.connect(patience), Ok);
            // A connection can break before anything was sent. If connecting failed, it was tried long enough already.
            let may_repeat = client.is_ok() && !is_retry;
            let mut sent: Option<Instant> = None;
            let mut interrupt = || {
                // Sent repeatedly, since the guest may receive the first one before the request that it interrupts.
                let is_due = sent.is_none_or(|sent| sent.elapsed() >= POLL_INTERVAL);
                let key = key.filter(|_| is_due && self.is_interrupted())?.to_owned();
                sent = Some(Instant::now());
                Some(jsonrpc::request(None, "interrupt", &Key { key }))
            };
            let meanwhile = key.map(|_| &mut interrupt as &mut dyn FnMut() -> Option<String>);
            let answer = client.and_then(|mut client| {
                let answer = client.call_while(method, params, timeout, meanwhile)?;
                *connected = Some(client);
                Ok(answer)
            });
            match answer {
                Ok(answer) => return Ok((answer, is_retry)),
                Err(_) if may_repeat && !self.is_interrupted() => {
                    (patience, is_retry) = (RECONNECT_TIMEOUT, true);
                }
                Err(gone) => return Err(Error::guest(&self.label(), &gone.reason)),
            }
        }
    }

    /// Connects, and waits for the first answer.
    fn connect(&self, timeout: Duration) -> Result<Client, Gone> {
        let begun = Instant::now();
        loop {
            let connected = match &self.settings {
                Command(command) => Client::spawn(command, &self.programs),
                Socket { path, port } => Client::connect(path, Some(*port), HANDSHAKE_TIMEOUT),
            };
            let answered =
                connected.and_then(|mut client| client.ping(PING_TIMEOUT).map(|_| client));
            let timeout = match &answered {
                Err(gone) if gone.held => timeout.max(self.lock_timeout.get()),
                _ => timeout,
            };
            match answered {
                Err(_) if begun.elapsed() < timeout && !self.is_interrupted() => {
                    thread::sleep(RECONNECT_INTERVAL);
                }
                Ok(client) => return Ok(client),
                Err(gone) => return Err(gone),
            }
        }
    }
}
