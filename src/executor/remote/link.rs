//! The connection to a guest: made when it is needed, made again where it broke and nothing can be
//! done twice by that, and given up between turns.

use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{AGAIN, GRACE, Guest, PATIENCE, sane};
use crate::client::{Client, Gone};
use crate::error::{Error, Result};
use crate::protocol::jsonrpc::{
    self, About, AboutParams, FindParams, FindResult, Key, RpcError, State, StepParams, VERSION,
};
use crate::settings::GuestAddress::{Command, Socket};

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

impl Guest {
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

    /// A session is over (see [`super::Terms::own`]): what its commands had for themselves may go.
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

    pub(super) fn is_interrupted(&self) -> bool {
        self.interrupted.as_ref().is_some_and(|interrupted| interrupted())
    }

    /// What its memory of steps is known by, once it was asked what it is.
    pub(super) fn state(&self) -> Option<String> {
        self.state.borrow().clone()
    }

    /// Asks for that anew.
    pub(super) fn learn_state(&self) -> Result<()> {
        let about: About = self.ask("about", &AboutParams::default(), PATIENCE)?;
        self.keep_state(&about);
        Ok(())
    }

    fn keep_state(&self, about: &About) {
        let state = sane::line(&about.state);
        self.state.replace(Some(state).filter(|state| !state.is_empty()));
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
        let about: About = self.ask("about", &AboutParams { tools: true }, PATIENCE)?;
        Ok(sane::about(about).tools)
    }

    /// What was asked of it that cannot be answered so.
    pub(super) fn nonsense(&self, method: &str, why: &str) -> Error {
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
        let about = match self.exchange::<About>("about", &AboutParams::default(), PATIENCE)? {
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
        self.keep_state(&about);
        let about = Rc::new(sane::about(about));
        self.about.replace(Some(Rc::clone(&about)));
        self.has_answered.set(true);
        Ok(about)
    }

    /// Asks for what can be asked for twice, and must be given.
    pub(super) fn ask<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
        patience: Duration,
    ) -> Result<T> {
        self.exchange(method, params, patience)?
            .map_err(|fault| self.nonsense(method, &sane::line(&fault.message)))
    }

    /// Asks for what can be asked for twice: once more where the connection broke.
    pub(super) fn exchange<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
        patience: Duration,
    ) -> Result<Result<T, RpcError>> {
        self.twice(|client| client.call(method, params, patience))
    }

    /// Asks for a step, which is done once, however often it is asked for. Ends it where the person
    /// wants to stop. Tells too whether the connection broke meanwhile.
    pub(super) fn step(
        &self,
        asked: &StepParams,
        patience: Duration,
    ) -> Result<(Result<State, RpcError>, bool)> {
        let mut times = 0;
        let state = self.twice(|client| {
            times += 1;
            self.call_until(client, "step", asked, &asked.key, patience)
        })?;
        Ok((state, times > 1))
    }

    /// Lists or searches, which may be asked for twice; ends it where the person wants to stop.
    pub(super) fn find(&self, asked: &FindParams, patience: Duration) -> Result<FindResult> {
        let key = asked.key.clone().unwrap_or_default();
        self.twice(|client| self.call_until(client, "find", asked, &key, patience))?
            .map_err(|fault| self.nonsense("find", &sane::line(&fault.message)))
    }

    /// Calls a method that takes a while, and has what goes by this key ended where the person wants to
    /// stop.
    fn call_until<T: DeserializeOwned>(
        &self,
        client: &mut Client,
        method: &str,
        asked: &impl Serialize,
        key: &str,
        patience: Duration,
    ) -> Result<Result<T, RpcError>, Gone> {
        let key = Key { key: key.to_owned() };
        let mut told: Option<Instant> = None;
        client.call_while(method, asked, patience, &mut || {
            // Said again: the first may overtake what it is to end.
            let tell = self.is_interrupted() && told.is_none_or(|told| told.elapsed() >= AGAIN);
            told = if tell { Some(Instant::now()) } else { told };
            tell.then(|| jsonrpc::request(None, "interrupt", &key))
        })
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
