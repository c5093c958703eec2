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

mod child;
pub(crate) mod lines;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use memchr::memchr3_iter;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::program::Programs;
use crate::protocol::jsonrpc::{Pong, RpcError, is_blank, request, response};
use crate::text::{count, indented, named, visible, visible_line};
use child::Child;
use lines::LineBuffer;

/// No answer is longer, in bytes, without its end.
pub const ANSWER_LIMIT: usize = 128 << 20;
/// No answer holds more values, each of which takes more memory than its text: a listing of two million files has as
/// many. What could begin a value within a text counts, too.
pub const VALUES_LIMIT: usize = 8 << 20;
/// So many lines that are no JSON may come before the first answer: what a login says.
pub const CHATTER_LIMIT: usize = 20;

/// No wait is longer, so that its end is a time that can be told.
const LONGEST: Duration = Duration::from_hours(365 * 24);
/// So much is quoted of what is wrong with a line, and of the line, in characters.
const WHY_LENGTH: usize = 500;
const QUOTED_LENGTH: usize = 120;
/// How long the end of something that is over is waited for.
const GRACE: Duration = Duration::from_millis(500);
/// How long an answer is waited for that was asked to come sooner.
const SOONER: Duration = Duration::from_secs(30);
/// How a deaddrop ends that finds another one where it would work, in the words for the end of a program.
const HELD: &str = "exit code 4";
/// How often it is asked what else is to be sent, and whether a program has ended.
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

/// A connection to a server, with one request at a time. Nothing is read or written but during a call. Dropping it ends
/// the program that was started for it, with its process group: at once, or after a second where it does not end by
/// itself.
pub struct Client {
    /// As it is named in errors.
    name: String,
    /// None when nothing more can be written, or read. They are closed before the program is waited for.
    to: Option<File>,
    from: Option<File>,
    /// The line that is being written, and how much of it is.
    unsent: Vec<u8>,
    sent: usize,
    incoming: LineBuffer,
    program: Option<Child>,
    /// Why every further call fails: there was no answer to one.
    over: Option<String>,
    /// The last id that was used.
    last: u64,
    /// Whether there was an answer yet, and the lines that came before it.
    answered: bool,
    chatter: Vec<String>,
}

impl Client {
    fn new(name: String, to: OwnedFd, from: OwnedFd, program: Option<Child>) -> io::Result<Self> {
        ioctl_fionbio(&to, true)?;
        ioctl_fionbio(&from, true)?;
        Ok(Self {
            name,
            to: Some(to.into()),
            from: Some(from.into()),
            unsent: Vec::new(),
            sent: 0,
            incoming: LineBuffer::default(),
            program,
            over: None,
            last: 0,
            answered: false,
            chatter: Vec::new(),
        })
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
        let started = command.spawn().and_then(Child::new);
        let client = started.and_then(|(program, stdin, stdout)| {
            Self::new(name.clone(), stdin, stdout, Some(program))
        });
        client.map_err(gone)
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
        let stream = connected(socket, Instant::now() + patience.min(LONGEST));
        let client =
            stream.and_then(|stream| Self::new(name.clone(), stream.try_clone()?, stream, None));
        let mut client = client.map_err(refused)?;
        let Some(port) = port else { return Ok(client) };
        let is_let_in = |_: &mut Self, answer: &[u8]| {
            let told = std::str::from_utf8(answer).ok().map(str::trim_ascii_end);
            let number = told.and_then(|told| told.strip_prefix("OK "));
            if number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit())) {
                return Ok(Some(()));
            }
            let answer = quoted(answer);
            Err(format!("answered CONNECT {port} with {answer} and not with OK and a number"))
        };
        let asked = format!("CONNECT {port}\n");
        let let_in = client.exchange("CONNECT", asked, patience, None, is_let_in);
        let_in.map(|()| client).map_err(|gone| {
            let why = format!("it was asked for port {port}: see that an agent listens there");
            Gone::new(format!("{}; {why}", gone.reason))
        })
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
    /// notification that makes the answer come sooner (see [`crate::protocol::jsonrpc::request`]). It is not sent while
    /// another line is. From the first on it is waited for 30 s at most.
    pub fn call_while<T: DeserializeOwned>(
        &mut self,
        method: &str,
        params: &impl Serialize,
        patience: Duration,
        meanwhile: Option<&mut dyn FnMut() -> Option<String>>,
    ) -> Result<Result<T, RpcError>, Gone> {
        self.last += 1;
        match line(self.last, method, params) {
            Ok(line) => self.exchange(method, line, patience, meanwhile, Self::judge),
            Err(why) => Ok(Err(RpcError::new(RpcError::PARAMS, why))),
        }
    }

    /// Sends a line, and waits for one that is accepted. What is not, and why, ends the connection.
    fn exchange<T>(
        &mut self,
        method: &str,
        line: String,
        mut patience: Duration,
        mut meanwhile: Option<&mut dyn FnMut() -> Option<String>>,
        accept: impl Fn(&mut Self, &[u8]) -> Result<Option<T>, String>,
    ) -> Result<T, Gone> {
        if let Some(reason) = &self.over {
            return Err(Gone::new(reason.clone()));
        }
        if !self.send(line) {
            return Err(self.end("reads no more of what is sent"));
        }
        let (mut until, mut unwritten) = (Instant::now() + patience.min(LONGEST), None);
        loop {
            if let Some(line) = meanwhile.as_mut().and_then(|ask| ask()) {
                patience = patience.min(SOONER);
                until = until.min(Instant::now() + SOONER);
                self.send(format!("{}\n", line.trim_end()));
            }
            if let Err(e) = self.write() {
                // It may have answered before it stopped reading.
                until = until.min(Instant::now() + GRACE);
                (self.to, self.unsent, unwritten) = (None, Vec::new(), Some(e));
            }
            while let Some(line) = self.incoming.take_line() {
                match accept(self, &line) {
                    Ok(Some(answer)) => return Ok(answer),
                    Ok(None) => {}
                    Err(what) => return Err(self.end(&what)),
                }
            }
            let left = until.saturating_duration_since(Instant::now());
            let problem = if self.incoming.length() > ANSWER_LIMIT {
                format!("sent a line of more than {} MiB", ANSWER_LIMIT >> 20)
            } else if self.incoming.has_ended {
                match self.incoming.take_rest() {
                    rest if is_blank(&rest) => "is gone".to_owned(),
                    rest => format!("is gone, after half a line: {}", quoted(&rest)),
                }
            } else if !left.is_zero() {
                let slice = if meanwhile.is_some() { left.min(SLICE) } else { left };
                match self.read(slice) {
                    Ok(()) => continue,
                    Err(e) => format!("is gone: {e}"),
                }
            } else if let Some(e) = unwritten {
                format!("cannot be written to: {e}")
            } else {
                format!("did not answer '{method}' within {patience:?}")
            };
            return Err(self.end(&problem));
        }
    }

    /// Has a line written. False if the one before was not read, or nothing more can be written.
    fn send(&mut self, line: String) -> bool {
        let can_send = self.to.is_some() && self.unsent.is_empty();
        if can_send {
            (self.unsent, self.sent) = (line.into_bytes(), 0);
        }
        can_send
    }

    /// Writes as much of the line as is taken.
    fn write(&mut self) -> io::Result<()> {
        while let Some(to) = self.to.as_ref().filter(|_| !self.unsent.is_empty()) {
            match rustix::io::write(to, &self.unsent[self.sent..]) {
                Ok(length) => self.sent += length,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(e) => return Err(e.into()),
            }
            if self.sent == self.unsent.len() {
                self.unsent = Vec::new();
            }
        }
        Ok(())
    }

    /// Waits until something can be read, which it is, or written.
    fn read(&mut self, patience: Duration) -> io::Result<()> {
        let to = self.to.as_ref().filter(|_| !self.unsent.is_empty());
        let stderr = self.program.as_ref().and_then(|program| program.stderr.as_ref());
        let read = self.from.iter().chain(stderr).map(|file| PollFd::new(file, PollFlags::IN));
        let written = to.into_iter().map(|file| PollFd::new(file, PollFlags::OUT));
        let mut files: Vec<PollFd> = read.chain(written).collect();
        // What fails is seen by whoever reads or writes.
        let _ = poll(&mut files, Timespec::try_from(patience).ok().as_ref());
        if let Some(program) = &mut self.program {
            program.listen();
        }
        self.from.as_ref().map_or(Ok(()), |from| self.incoming.read(from).map(drop))
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
            self.chatter.push(quoted(line));
            if self.chatter.len() <= CHATTER_LIMIT {
                return Ok(None);
            }
            let lines = count(self.chatter.len(), "line");
            return Err(format!("sent {lines} that are no JSON, the last: {}", quoted(line)));
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

    /// The connection is of no more use, to this and every further call: why, for a person, with what a program left
    /// behind.
    fn end(&mut self, what: &str) -> Gone {
        // So that it ends if it has not.
        (self.to, self.from) = (None, None);
        let mut reason = format!("{} {}", self.name, what.trim_end());
        let ended = self.program.as_mut().and_then(|program| program.wait(GRACE, true));
        if let Some(ended) = &ended {
            reason.push_str(&format!(" (it ended with {ended})"));
        }
        if let Some(said) = self.program.as_ref().map(Child::said)
            && !said.trim().is_empty()
        {
            let said = indented(&visible(said.trim()));
            reason.push_str(&format!("; on standard error it wrote:\n{}", said.trim_end()));
        }
        if !self.answered && !self.chatter.is_empty() {
            let last = &self.chatter[self.chatter.len().saturating_sub(3)..];
            reason.push_str(&format!("\nBefore any answer it sent {}", last.join(", ")));
        }
        self.over = Some(reason.clone());
        Gone { reason, held: ended.as_deref() == Some(HELD) }
    }
}

/// A connection to a socket. It times out if too many others wait to be let in until then.
pub(crate) fn connected(path: &Path, until: Instant) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let stream = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let address = SocketAddrUnix::new(path)?;
    loop {
        match connect(&stream, &address) {
            Ok(()) => return Ok(stream),
            Err(Errno::AGAIN) if Instant::now() < until => std::thread::sleep(SLICE),
            Err(Errno::AGAIN) => return Err(Errno::TIMEDOUT.into()),
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

/// Whether a line may hold more than so many values, each of which takes many times the room of its text.
fn is_crowded(line: &[u8], limit: usize) -> bool {
    line.len() > limit && memchr3_iter(b',', b'[', b'{', line).nth(limit).is_some()
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
    match why.char_indices().nth(WHY_LENGTH) {
        None => visible_line(why).into_owned(),
        Some((end, _)) => format!("{}…", visible_line(&why[..end])),
    }
}
