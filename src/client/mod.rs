//! The other end of JSON-RPC (bouvet-jsonrpc): asks a server elsewhere, and reads its answers.
//!
//! The server is a program that speaks on its standard input and output, as `deaddrop rpc` does here or
//! behind `ssh`, or whoever listens on a Unix socket, as a microVM's host does for the server within.
//! Every wait has an end; nothing is asked twice by itself.
//!
//! # Examples
//! ```no_run
//! use std::time::Duration;
//!
//! use deaddrop::client::Client;
//! use deaddrop::program::Programs;
//! use deaddrop::protocol::jsonrpc::ExecResult;
//!
//! let command = ["ssh", "build-box", "deaddrop", "rpc"].map(str::to_owned);
//! let mut client = Client::spawn(&command, &Programs::default())?;
//! let asked = serde_json::json!({ "cmd": "echo hello" });
//! let ran: ExecResult = client.call("exec", &asked, Duration::from_secs(30))??;
//! assert_eq!((ran.exit_code, &*ran.stdout), (0, "hello\n"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod peer;
#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::program::Programs;
use crate::protocol::jsonrpc::{Pong, RpcError, is_blank, request, response};
use crate::text::{count, indented, named, visible, visible_line};
use peer::{Peer, Read};

/// No answer is longer, in bytes, without its end.
pub const ANSWER_LIMIT: usize = 128 << 20;
/// No answer holds more values, each of which takes more memory than its text: a listing of two million
/// files has as many.
pub const VALUES_LIMIT: usize = 8 << 20;
/// So many lines that are no JSON may come before the first answer: what a login says.
pub const CHATTER_LIMIT: usize = 20;

/// No wait is longer, so that its end is a time that can be told.
const LONGEST: Duration = Duration::from_hours(365 * 24);
/// So much is quoted of what a program wrote on standard error, in characters.
const SAID_LENGTH: usize = 500;
/// So much is quoted of a line, in characters.
const QUOTED_LENGTH: usize = 120;
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
    /// Whether it was a deaddrop that ended since another one works where it would have.
    pub held: bool,
}

impl Gone {
    fn new(reason: String) -> Self {
        Self { reason, held: false }
    }
}

/// A connection to a server, with one request at a time. Dropping it ends the program that was started
/// for it, with its process group: at once, or after a second where it does not end by itself.
pub struct Client {
    peer: Peer,
    /// Why every further call fails: there was no answer to one.
    over: Option<String>,
    /// As it is named in errors.
    name: String,
    /// The last id that was used.
    last: u64,
    /// Whether there was an answer yet.
    answered: bool,
    /// The lines that came before it.
    chatter: Vec<String>,
}

/// How long is waited for the answer to a request, and what is done meanwhile.
struct Wait<'a> {
    method: &'a str,
    patience: Duration,
    until: Instant,
    /// Asked for lines to send.
    meanwhile: Option<&'a mut dyn FnMut() -> Option<String>>,
    /// Why nothing more can be written.
    unwritten: Option<io::Error>,
}

impl<'a> Wait<'a> {
    fn new(method: &'a str, patience: Duration) -> Self {
        let until = end_of(patience);
        Self { method, patience, until, meanwhile: None, unwritten: None }
    }
}

impl Client {
    fn new(peer: Peer, name: String) -> Self {
        Self { peer, over: None, name, last: 0, answered: false, chatter: Vec::new() }
    }

    /// Starts a program that speaks on its standard input and output, such as
    /// `ssh build-box deaddrop rpc`. It gets the environment of this process, and is taken from
    /// where `programs` may be.
    ///
    /// # Errors
    /// It cannot be started. That it then does not speak is told by the first call.
    pub fn spawn(command: &[String], programs: &Programs) -> Result<Self, Gone> {
        let name = named(&command.join(" "));
        let gone = |e: io::Error| {
            let why = "is it installed and on PATH?";
            Gone::new(format!("{name} cannot be started: {e}; {why}"))
        };
        let [program, arguments @ ..] = command else {
            return Err(gone(io::Error::other("no program is named that could be started")));
        };
        let mut command = programs.user_command(program).map_err(gone)?;
        command.args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A Ctrl-C at the terminal is for deaddrop alone.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let peer = command.spawn().and_then(Peer::of_program).map_err(gone)?;
        Ok(Self::new(peer, name))
    }

    /// Connects to a Unix socket. With a port it first asks to be connected with that one, as a host
    /// does that reaches a microVM's agent: `CONNECT 52`, answered by `OK` and a number.
    ///
    /// # Errors
    /// Nobody listens there, or nothing of that kind is answered within `patience`.
    pub fn connect(socket: &Path, port: Option<u32>, patience: Duration) -> Result<Self, Gone> {
        let name = format!("the agent at {}", visible_line(&socket.to_string_lossy()));
        let refused = |e: io::Error| {
            Gone::new(format!("{name} cannot be reached: {e}; see that it runs and listens there"))
        };
        let Some(stream) = connected(socket, end_of(patience)).map_err(refused)? else {
            return Err(Gone::new(format!("{name} lets nobody in within {patience:?}")));
        };
        let peer = Peer::of_socket(stream).map_err(refused)?;
        let mut client = Self::new(peer, name);
        if let Some(port) = port {
            client.ask_for(port, patience)?;
        }
        Ok(client)
    }

    /// Begins with `CONNECT` and the port.
    fn ask_for(&mut self, port: u32, patience: Duration) -> Result<(), Gone> {
        self.send(format!("CONNECT {port}\n"))?;
        let mut wait = Wait::new("CONNECT", patience);
        let answer = self.next(&mut wait).map_err(|gone| {
            let why = format!("it was asked for port {port}: see that an agent listens there");
            Gone::new(format!("{}; {why}", gone.reason))
        })?;
        let told = std::str::from_utf8(&answer).ok().map(str::trim_ascii_end);
        let number = told.and_then(|told| told.strip_prefix("OK "));
        if number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit())) {
            return Ok(());
        }
        let what = format!(
            "answered CONNECT {port} with {} and not with OK and a number",
            quoted(&answer)
        );
        Err(self.over(&what))
    }

    /// Whether somebody is there.
    ///
    /// # Errors
    /// See [`Client::call`].
    pub fn ping(&mut self, patience: Duration) -> Result<Result<Pong, RpcError>, Gone> {
        self.call("ping", &serde_json::json!({}), patience)
    }

    /// Asks, and waits for the answer at most so long, the time for writing included.
    ///
    /// # Errors
    /// There is no answer, or what came is none: then every further call fails, too. Within it: what the
    /// other side says it cannot do.
    pub fn call<T: DeserializeOwned>(
        &mut self,
        method: &str,
        params: &impl Serialize,
        patience: Duration,
    ) -> Result<Result<T, RpcError>, Gone> {
        self.call_while(method, params, patience, None)
    }

    /// As [`Client::call`]. While it waits, `meanwhile`, if it is given, is asked every 20 ms for a line to send: a
    /// notification that makes the answer come sooner (see [`crate::protocol::jsonrpc::request`]). From the
    /// first on it is waited for 30 s at most.
    pub fn call_while<'a, T: DeserializeOwned>(
        &mut self,
        method: &'a str,
        params: &impl Serialize,
        patience: Duration,
        meanwhile: Option<&'a mut dyn FnMut() -> Option<String>>,
    ) -> Result<Result<T, RpcError>, Gone> {
        let line = match line(self.last + 1, method, params) {
            Ok(line) => line,
            Err(why) => return Ok(Err(RpcError::new(RpcError::PARAMS, why))),
        };
        self.last += 1;
        let mut wait = Wait { meanwhile, ..Wait::new(method, patience) };
        self.send(line)?;
        loop {
            let line = self.next(&mut wait)?;
            match self.judge(&line) {
                Ok(Some(answer)) => return Ok(answer),
                // Who writes without end does not make us wait without end.
                Ok(None) if Instant::now() >= wait.until => return Err(self.late(&wait)),
                Ok(None) => {}
                Err(what) => return Err(self.over(&what)),
            }
        }
    }

    /// Has a line written, as far as that goes.
    fn send(&mut self, line: String) -> Result<(), Gone> {
        if let Some(reason) = &self.over {
            return Err(Gone::new(reason.clone()));
        }
        if self.peer.send(line) { Ok(()) } else { Err(self.over("reads no more of what is sent")) }
    }

    /// The next line that comes.
    fn next(&mut self, wait: &mut Wait) -> Result<Vec<u8>, Gone> {
        loop {
            if let Some(line) = wait.meanwhile.as_mut().and_then(|ask| ask()) {
                wait.patience = wait.patience.min(SOONER);
                wait.until = wait.until.min(end_of(SOONER));
                self.peer.send(format!("{}\n", line.trim_end()));
            }
            let left = wait.until.saturating_duration_since(Instant::now());
            let slice = if wait.meanwhile.is_some() { left.min(SLICE) } else { left };
            let what = match self.peer.next(slice) {
                Some(Read::Line(line)) => return Ok(line),
                None if left > slice => continue,
                None => return Err(self.late(wait)),
                Some(Read::Long) => format!("sent a line of more than {} MiB", ANSWER_LIMIT >> 20),
                Some(Read::Ended(rest)) if is_blank(&rest) => "is gone".to_owned(),
                Some(Read::Ended(rest)) => format!("is gone, after half a line: {}", quoted(&rest)),
                Some(Read::Failed(e)) => format!("is gone: {e}"),
                Some(Read::Unwritten(e)) => {
                    // It may have answered before it stopped reading.
                    wait.until = wait.until.min(Instant::now() + GRACE);
                    wait.unwritten = Some(e);
                    continue;
                }
            };
            return Err(self.over(&what));
        }
    }

    /// What a line is: the answer to the last request, or nothing of interest; or why it is neither.
    fn judge<T: DeserializeOwned>(
        &mut self,
        line: &[u8],
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
            response(line, self.last)
        };
        let answer = answer.map_err(|why| format!("sent {}: {}", quoted(line), brief(&why)))?;
        self.answered = true;
        Ok(Some(answer))
    }

    /// The answer did not come in time.
    fn late(&mut self, wait: &Wait) -> Gone {
        self.over(&match &wait.unwritten {
            Some(e) => format!("cannot be written to: {e}"),
            None => format!("did not answer '{}' within {:?}", wait.method, wait.patience),
        })
    }

    /// It is of no more use: of this and every further call.
    fn over(&mut self, what: &str) -> Gone {
        // So that it ends if it has not.
        self.peer.hang_up();
        let (reason, held) = self.told(what, Instant::now() + GRACE);
        self.over = Some(reason.clone());
        Gone { reason, held }
    }

    /// That for a person, with what a program left behind; and whether another deaddrop held it.
    fn told(&self, what: &str, until: Instant) -> (String, bool) {
        let mut told = format!("{} {}", self.name, what.trim_end());
        let (ended, said) = self.peer.last_words(until);
        let held = ended.as_deref() == Some(HELD);
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
        (told, held)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.peer.hang_up();
        self.peer.close(Instant::now() + LEAVE);
    }
}

/// A connection to a socket; None where too many others wait to be let in until then.
pub(crate) fn connected(path: &Path, until: Instant) -> io::Result<Option<OwnedFd>> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let stream = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let address = SocketAddrUnix::new(path)?;
    loop {
        match connect(&stream, &address) {
            Ok(()) => return Ok(Some(stream)),
            Err(Errno::AGAIN) if Instant::now() < until => std::thread::sleep(SLICE),
            Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

/// The line of a request, or why there is none. JSON that is handed through may stand on many lines; within
/// strings there are no line ends.
fn line(id: u64, method: &str, params: &impl Serialize) -> Result<String, String> {
    let fail = |e| format!("the parameters of '{method}' make no JSON: {e}");
    let params = serde_json::to_string(params).map_err(fail)?.replace('\n', " ");
    let params = serde_json::value::RawValue::from_string(params).map_err(fail)?;
    Ok(request(Some(id), method, &params))
}

/// Whether a line is an object of JSON, as every answer is.
fn is_object(line: &[u8]) -> bool {
    line.trim_ascii_start().starts_with(b"{") && serde_json::from_slice::<IgnoredAny>(line).is_ok()
}

/// When so long a wait ends.
fn end_of(patience: Duration) -> Instant {
    Instant::now() + patience.min(LONGEST)
}

/// Whether a line holds more than so many values, each of which takes many times the room of its text.
fn is_crowded(line: &[u8], limit: usize) -> bool {
    let (mut values, mut in_text, mut escaped) = (0_usize, false, false);
    line.len() > limit
        && line.iter().any(|byte| {
            match (in_text, byte) {
                (true, _) if escaped => escaped = false,
                (true, b'\\') => escaped = true,
                (_, b'"') => in_text = !in_text,
                (false, b',' | b'[' | b'{') => values += 1,
                _ => {}
            }
            values > limit
        })
}

/// The beginning of a line, to be read by a person.
fn quoted(line: &[u8]) -> String {
    // A character has four bytes at most.
    let cut = &line[..line.len().min(4 * (QUOTED_LENGTH + 1))];
    let text = String::from_utf8_lossy(cut);
    let text = text.trim_end();
    match text.char_indices().nth(QUOTED_LENGTH) {
        None => format!("'{}'", visible_line(text)),
        Some((end, _)) => format!("'{}…' ({} bytes)", visible_line(&text[..end]), line.len()),
    }
}

/// What is wrong with a line, which may quote the line itself: in one line of bounded length.
fn brief(why: &str) -> String {
    match why.char_indices().nth(SAID_LENGTH) {
        None => visible_line(why).into_owned(),
        Some((end, _)) => format!("{}…", visible_line(&why[..end])),
    }
}

/// The end of what was written on standard error.
fn last_of(said: &str) -> String {
    match said.char_indices().rev().nth(SAID_LENGTH - 1) {
        None | Some((0, _)) => said.to_owned(),
        Some((start, _)) => format!("…{}", &said[start..]),
    }
}
