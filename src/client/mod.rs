//! The other end of JSON-RPC (bouvet-jsonrpc): asks an agent in a guest, and hears its answers.
//!
//! The agent is a program that speaks on its standard input and output, as `deaddrop rpc` does here or
//! behind `ssh`, or whoever listens on a Unix socket, as a microVM's host does for the agent within.
//! Every wait has an end; nothing is asked twice by itself.
//!
//! # Examples
//! ```no_run
//! use std::time::Duration;
//!
//! use deaddrop::client::Client;
//!
//! let patience = Duration::from_secs(30);
//! let command = ["ssh", "build-box", "deaddrop", "rpc"].map(str::to_owned);
//! let mut client = Client::spawn(&command, &deaddrop::program::Programs::default())?;
//! client.write_file("greeting.txt", "hello\n", patience)??;
//! let ran = client.exec("cat greeting.txt", patience)??;
//! assert_eq!((ran.exit_code, &*ran.stdout), (0, "hello\n"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod connecting;
mod methods;
mod peer;
mod process;
#[cfg(test)]
mod tests;
mod wire;
mod words;

use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::protocol::jsonrpc::{RpcError, is_blank, response};
use crate::text::{count, indented, visible};
pub use methods::Said;
use peer::Peer;
use wire::{Event, Line, Progress, Wire};
use words::{brief, end_of, id_of, is_crowded, is_object, last_of, line, quoted};

/// No answer is longer, in bytes, its end not counted.
pub const ANSWER_LIMIT: usize = 128 << 20;
/// No answer holds more values, each of which takes more memory than its text: a listing of two million
/// files has as many.
pub const VALUES_LIMIT: usize = 8 << 20;
/// So many lines that are no JSON may come before the first answer: what a login says.
pub const CHATTER_LIMIT: usize = 20;

/// How long the end of something that is over is waited for.
const GRACE: Duration = Duration::from_millis(500);
/// How long a program has to end once its standard input is closed.
const LEAVE: Duration = Duration::from_secs(1);
/// How long an answer is waited for that was asked to come sooner.
const SOONER: Duration = Duration::from_secs(30);
/// How a deaddrop ends that finds another one where it would work, in the words for the end of a program.
const HELD: &str = "exit code 4";
/// How often it is asked what else is to be sent.
const SLICE: Duration = Duration::from_millis(20);

/// The other side cannot be reached, is gone, does not answer, or does not speak the protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Gone {
    /// Who it was and what happened, for a person; with how a program ended and the last that it wrote
    /// on standard error.
    pub reason: String,
    /// Whether the request may have reached the other side, and so may have been carried out.
    pub sent: bool,
    /// Whether it was a deaddrop that ended since another one works where it would have.
    pub held: bool,
}

impl Gone {
    /// The request has not reached anybody.
    fn unsent(reason: String) -> Self {
        Self { reason, sent: false, held: false }
    }
}

/// A connection to an agent, with one request at a time. Dropping it ends the program that was started
/// for it, with its process group: at once, or after a second where it does not end by itself.
pub struct Client {
    /// Or why there is none any more.
    wire: Result<Wire, String>,
    peer: Peer,
    /// As it is named in errors.
    name: String,
    /// The last id that was used.
    last: u64,
    /// Requests that nobody waits for any more and that were not answered yet.
    given_up: Vec<u64>,
    /// Whether there was an answer yet.
    answered: bool,
    /// The lines that came before it.
    chatter: Vec<String>,
}

/// How long is waited, and what is done meanwhile.
struct Wait<'a> {
    method: &'a str,
    patience: Duration,
    until: Instant,
    /// Asked for lines to send.
    meanwhile: Option<&'a mut dyn FnMut() -> Option<String>>,
    /// Why not all could be written.
    unwritten: Option<std::io::Error>,
}

impl Client {
    fn new(wire: Wire, peer: Peer, name: String) -> Self {
        let (given_up, chatter) = (Vec::new(), Vec::new());
        Self { wire: Ok(wire), peer, name, last: 0, given_up, answered: false, chatter }
    }

    /// Whether every further call fails at once. Not so after an answer that did not come in time: it
    /// may come while another is waited for, and is then skipped.
    pub fn is_over(&self) -> bool {
        self.wire.is_err()
    }

    /// Asks, and waits for the answer at most so long, the time for writing included.
    ///
    /// # Errors
    /// There is no answer, or what came is none. Within it: what the other side says it cannot do.
    pub fn call<T: DeserializeOwned>(
        &mut self,
        method: &str,
        params: &impl Serialize,
        patience: Duration,
    ) -> Result<Result<T, RpcError>, Gone> {
        self.ask(method, params, patience, None)
    }

    /// As [`Client::call`]. While it waits, `meanwhile` is asked every 20 ms for a line to send: a
    /// notification that makes the answer come sooner (see [`crate::protocol::jsonrpc::request`]). From the
    /// first on it is waited for 30 s at most.
    pub fn call_while<T: DeserializeOwned>(
        &mut self,
        method: &str,
        params: &impl Serialize,
        patience: Duration,
        meanwhile: &mut dyn FnMut() -> Option<String>,
    ) -> Result<Result<T, RpcError>, Gone> {
        self.ask(method, params, patience, Some(meanwhile))
    }

    /// Sends what is not answered. It is not waited for until it is written.
    ///
    /// # Errors
    /// The other side reads no more.
    pub fn notify(&mut self, method: &str, params: &impl Serialize) -> Result<(), Gone> {
        let line = line(None, method, params);
        let line = line.map_err(Gone::unsent)?;
        self.hand(line).map(drop).map_err(|what| self.over(&what, None))
    }

    fn ask<'a, T: DeserializeOwned>(
        &mut self,
        method: &'a str,
        params: &impl Serialize,
        patience: Duration,
        meanwhile: Option<&'a mut dyn FnMut() -> Option<String>>,
    ) -> Result<Result<T, RpcError>, Gone> {
        let until = end_of(patience);
        let id = self.last + 1;
        let line = match line(Some(id), method, params) {
            Ok(line) => line,
            Err(told) => return Ok(Err(RpcError::new(RpcError::PARAMS, told))),
        };
        self.last = id;
        let request = self.hand(line).map_err(|what| self.over(&what, None))?;
        let mut wait = Wait { method, patience, until, meanwhile, unwritten: None };
        loop {
            let line = self.next(&request, &mut wait)?;
            match self.judge(&line, id) {
                Ok(Some(answer)) => return Ok(answer),
                // Who writes without end does not make us wait without end.
                Ok(None) if Instant::now() >= wait.until => return Err(self.late(&request, &wait)),
                Ok(None) => {}
                Err(what) => return Err(self.over(&what, Some(&request))),
            }
        }
    }

    /// Has a line written, or tells why not.
    fn hand(&self, line: String) -> Result<Arc<Line>, String> {
        // Whoever is over has its reason already.
        let wire = self.wire.as_ref().map_err(String::clone)?;
        wire.hand(line).ok_or_else(|| "does not read what is sent".to_owned())
    }

    /// The next line that comes.
    fn next(&mut self, request: &Line, wait: &mut Wait) -> Result<Vec<u8>, Gone> {
        loop {
            if let Some(mut line) = wait.meanwhile.as_mut().and_then(|ask| ask()) {
                wait.patience = wait.patience.min(SOONER);
                wait.until = wait.until.min(end_of(SOONER));
                if !line.ends_with('\n') {
                    line.push('\n');
                }
                self.hand(line).map_err(|what| self.over(&what, Some(request)))?;
            }
            let left = wait.until.saturating_duration_since(Instant::now());
            let slice = if wait.meanwhile.is_some() { left.min(SLICE) } else { left };
            let what = match self.wire.as_ref().map(|wire| wire.next(slice)) {
                Ok(Ok(Event::Line(line))) => return Ok(line),
                Ok(Ok(Event::Unwritten(e))) => {
                    // It may have answered before it stopped reading.
                    wait.until = wait.until.min(Instant::now() + GRACE);
                    wait.unwritten = Some(e);
                    continue;
                }
                Ok(Err(RecvTimeoutError::Timeout)) if left > slice => continue,
                Ok(Err(RecvTimeoutError::Timeout)) => return Err(self.late(request, wait)),
                Ok(Ok(Event::Long)) => {
                    format!("sent a line of more than {} MiB", ANSWER_LIMIT >> 20)
                }
                Ok(Ok(Event::Ended(rest))) if is_blank(&rest) => "is gone".to_owned(),
                Ok(Ok(Event::Ended(rest))) => {
                    format!("is gone, after half a line: {}", quoted(&rest))
                }
                Ok(Ok(Event::Unread(e))) => format!("is gone: {e}"),
                Ok(Err(RecvTimeoutError::Disconnected)) | Err(_) => "is gone".to_owned(),
            };
            return Err(self.over(&what, Some(request)));
        }
    }

    /// What a line is: the answer to the request `id`, or nothing of interest; or why it is neither.
    fn judge<T: DeserializeOwned>(
        &mut self,
        line: &[u8],
        id: u64,
    ) -> Result<Option<Result<T, RpcError>>, String> {
        if is_blank(line) {
            return Ok(None);
        }
        if !self.answered && !is_object(line) {
            if self.chatter.len() == CHATTER_LIMIT {
                let lines = count(CHATTER_LIMIT + 1, "line");
                return Err(format!("sent {lines} that are no JSON, the last: {}", quoted(line)));
            }
            self.chatter.push(quoted(line));
            return Ok(None);
        }
        let answer = if is_crowded(line, VALUES_LIMIT) {
            Err(format!("it holds more than {VALUES_LIMIT} values"))
        } else {
            response(line, id)
        };
        let other = match &answer {
            Ok(Ok(_)) => None,
            // Without an id it may be of one that was given up.
            Ok(Err(_)) if self.given_up.is_empty() || id_of(line).is_some() => None,
            Ok(Err(fault)) => Some(format!("it does not say which request failed: {fault}")),
            Err(why) => Some(why.clone()),
        };
        if let Some(why) = other {
            let old = id_of(line).and_then(|old| self.given_up.iter().position(|id| *id == old));
            let old = old.ok_or_else(|| format!("sent {}: {}", quoted(line), brief(&why)))?;
            self.given_up.swap_remove(old);
            self.answered = true;
            return Ok(None);
        }
        self.answered = true;
        answer.map(Some)
    }

    /// The answer did not come in time.
    fn late(&mut self, request: &Line, wait: &Wait) -> Gone {
        if let Some(e) = &wait.unwritten {
            return self.over(&format!("cannot be written to: {e}"), Some(request));
        }
        let Wait { method, patience, .. } = wait;
        if request.withdraw() != Progress::Written {
            let what = format!("did not read all of the request '{method}' within {patience:?}");
            return self.over(&what, Some(request));
        }
        self.given_up.push(self.last);
        let now = Instant::now();
        let what = format!("did not answer '{method}' within {patience:?}");
        Gone { reason: self.told(&what, now), sent: true, held: false }
    }

    /// It is of no more use: of this and every further call.
    fn over(&mut self, what: &str, request: Option<&Line>) -> Gone {
        let sent = request.is_some_and(|request| request.withdraw() != Progress::Never);
        if let Err(reason) = &self.wire {
            return Gone { reason: reason.clone(), sent, held: false };
        }
        // Closes its standard input, so that it ends if it has not.
        self.wire = Err(String::new());
        self.peer.hang_up();
        let reason = self.told(what, Instant::now() + GRACE);
        self.wire = Err(reason.clone());
        let held = self.peer.told(Instant::now()).0.as_deref() == Some(HELD);
        Gone { reason, sent, held }
    }

    /// That for a person, with what a program left behind.
    fn told(&mut self, what: &str, until: Instant) -> String {
        let mut told = format!("{} {}", self.name, what.trim_end());
        let (ended, said) = self.peer.told(until);
        if let Some(ended) = ended {
            told.push_str(&format!(" (it ended with {ended})"));
        }
        let said = visible(said.trim());
        if !said.is_empty() {
            told.push_str(&format!(
                "; on standard error it wrote:\n{}",
                indented(last_of(&said).trim_end()).trim_end()
            ));
        }
        if !self.answered && !self.chatter.is_empty() {
            let last = self.chatter.iter().rev().take(3).rev().cloned().collect::<Vec<_>>();
            told.push_str(&format!("\nBefore any answer it sent {}", last.join(", ")));
        }
        told
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let until = Instant::now() + LEAVE;
        if let Ok(wire) = std::mem::replace(&mut self.wire, Err(String::new())) {
            wire.close(until);
        }
        self.peer.close(until);
    }
}
