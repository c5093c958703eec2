//! A JSON-RPC client (bouvet-jsonrpc): sends requests to a server elsewhere, and reads its answers.
//!
//! The server is a program that talks on its standard input and output, such as `deaddrop rpc` here or behind
//! `ssh`. Or it listens on a Unix socket, as the host of a microVM does for the agent inside.
//! Every wait has a time limit, and no request is repeated automatically.
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

/// The maximum length of an answer in bytes, without its line end.
pub const ANSWER_LIMIT: usize = 128 << 20;
/// The maximum number of values in an answer. A listing of two million files has this many. Each value takes more
/// memory than its text. Characters inside strings that could begin a value count, too.
pub const VALUES_LIMIT: usize = 8 << 20;
/// How many lines that are not JSON may precede the first answer, such as messages of a login.
pub const CHATTER_LIMIT: usize = 20;

/// The maximum wait, so that the time when it ends can be computed.
const MAX_WAIT: Duration = Duration::from_hours(365 * 24);
/// The maximum lengths, in characters, of a description of a faulty line and of the quoted line.
const WHY_LENGTH: usize = 500;
const QUOTED_LENGTH: usize = 120;
/// How long to wait for an answer after a failed write, and for a program to end after a failure.
const GRACE: Duration = Duration::from_millis(500);
/// How long to wait for an answer after the server was asked to send it sooner.
const INTERRUPT_TIMEOUT: Duration = Duration::from_secs(30);
/// How a deaddrop ends if another one is already at work there, as `Child::wait` reports it.
const LOCKED_EXIT: &str = "exit code 4";
/// How often to check for another line to send, and whether a program has ended.
const SLICE: Duration = Duration::from_millis(20);

/// The server cannot be reached, is gone, does not answer, or does not speak the protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Gone {
    /// Which server it was and what happened, for a person. For a program this includes how it ended and the end of
    /// its standard error.
    pub reason: String,
    /// Whether the program was a deaddrop that ended because another one was already at work there.
    pub held: bool,
}

impl Gone {
    fn new(reason: String) -> Self {
        Self { reason, held: false }
    }
}

/// A connection to a server, with one request at a time. Data is read and written only during a call. Dropping the
/// client ends the program that was started for it, with its process group. A program that does not end by itself is
/// killed after a second.
pub struct Client {
    /// The server's name in errors.
    name: String,
    /// None when nothing more can be written, or read. Both are closed before waiting for the program.
    to: Option<File>,
    from: Option<File>,
    /// The line that is being written, and how many of its bytes are written.
    unsent: Vec<u8>,
    sent: usize,
    incoming: LineBuffer,
    program: Option<Child>,
    /// Why every further call fails, once a call got no answer.
    failure: Option<String>,
    /// The ID of the last request.
    last: u64,
    /// Whether an answer has arrived, and the lines before the first answer.
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
            failure: None,
            last: 0,
            answered: false,
            chatter: Vec::new(),
        })
    }

    /// Starts a program that talks on its standard input and output, such as
    /// `ssh build-box deaddrop rpc`. It gets the environment of this process. `programs` says where it
    /// may be found.
    ///
    /// # Errors
    /// The program cannot be started. If it does not speak the protocol, only the first call fails.
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
        // Ctrl-C at the terminal must reach only deaddrop.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let started = command.spawn().and_then(Child::new);
        let client = started.and_then(|(program, stdin, stdout)| {
            Self::new(name.clone(), stdin, stdout, Some(program))
        });
        client.map_err(gone)
    }

    /// Connects to a Unix socket. With a port, first asks to be connected to that port, as a host does to
    /// reach the agent in a microVM: `CONNECT 52`, answered by `OK` and a number.
    ///
    /// # Errors
    /// Nobody listens there, or the expected answer does not arrive within `patience`.
    pub fn connect(socket: &Path, port: Option<u32>, patience: Duration) -> Result<Self, Gone> {
        let name = format!("the agent at {}", visible_line(&socket.to_string_lossy()));
        let refused = |e: io::Error| {
            Gone::new(format!("{name} cannot be reached: {e}; see that it runs and listens there"))
        };
        let stream = connected(socket, Instant::now() + patience.min(MAX_WAIT));
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

    /// Checks that the server answers.
    ///
    /// # Errors
    /// See [`Client::call`].
    pub fn ping(&mut self, patience: Duration) -> Result<Result<Pong, RpcError>, Gone> {
        self.call("ping", &serde_json::json!({}), patience)
    }

    /// Sends a request and waits for the answer, at most for `patience`, including the time for writing.
    ///
    /// # Errors
    /// There is no answer, or it is invalid. Then every further call fails, too. The inner error is the
    /// server's: it could not carry out the request.
    pub fn call<T: DeserializeOwned>(
        &mut self,
        method: &str,
        params: &impl Serialize,
        patience: Duration,
    ) -> Result<Result<T, RpcError>, Gone> {
        self.call_while(method, params, patience, None)
    }

    /// Like [`Client::call`]. During the wait, `meanwhile` is called every 20 ms and may return a line to send: a
    /// notification that makes the answer come sooner (see [`crate::protocol::jsonrpc::request`]). The line is dropped
    /// while another one is being written. After the first such line, the wait lasts at most 30 s.
    pub fn call_while<T: DeserializeOwned>(
        &mut self,
        method: &str,
        params: &impl Serialize,
        patience: Duration,
        meanwhile: Option<&mut dyn FnMut() -> Option<String>>,
    ) -> Result<Result<T, RpcError>, Gone> {
        self.last += 1;
        match line(self.last, method, params) {
            Ok(line) => self.exchange(method, line, patience, meanwhile, Self::classify),
            Err(why) => Ok(Err(RpcError::new(RpcError::PARAMS, why))),
        }
    }

    /// Sends a line, and waits until `accept` returns an answer for a received line. Its error ends the connection.
    fn exchange<T>(
        &mut self,
        method: &str,
        line: String,
        mut patience: Duration,
        mut meanwhile: Option<&mut dyn FnMut() -> Option<String>>,
        accept: impl Fn(&mut Self, &[u8]) -> Result<Option<T>, String>,
    ) -> Result<T, Gone> {
        if let Some(reason) = &self.failure {
            return Err(Gone::new(reason.clone()));
        }
        if !self.send(line) {
            return Err(self.end("reads no more of what is sent"));
        }
        let (mut until, mut unwritten) = (Instant::now() + patience.min(MAX_WAIT), None);
        loop {
            if let Some(line) = meanwhile.as_mut().and_then(|ask| ask()) {
                patience = patience.min(INTERRUPT_TIMEOUT);
                until = until.min(Instant::now() + INTERRUPT_TIMEOUT);
                self.send(format!("{}\n", line.trim_end()));
            }
            if let Err(e) = self.write() {
                // The server may have answered before it stopped reading.
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

    /// Starts to write a line. Returns false if the previous line is not written yet, or nothing more can be written.
    fn send(&mut self, line: String) -> bool {
        let can_send = self.to.is_some() && self.unsent.is_empty();
        if can_send {
            (self.unsent, self.sent) = (line.into_bytes(), 0);
        }
        can_send
    }

    /// Writes as much of the line as the connection accepts.
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

    /// Waits until something can be read or written, and reads what is there.
    fn read(&mut self, patience: Duration) -> io::Result<()> {
        let to = self.to.as_ref().filter(|_| !self.unsent.is_empty());
        let stderr = self.program.as_ref().and_then(|program| program.stderr.as_ref());
        let read = self.from.iter().chain(stderr).map(|file| PollFd::new(file, PollFlags::IN));
        let written = to.into_iter().map(|file| PollFd::new(file, PollFlags::OUT));
        let mut files: Vec<PollFd> = read.chain(written).collect();
        // The next read or write reports an error.
        let _ = poll(&mut files, Timespec::try_from(patience).ok().as_ref());
        if let Some(program) = &mut self.program {
            program.read_stderr();
        }
        self.from.as_ref().map_or(Ok(()), |from| self.incoming.read(from).map(drop))
    }

    /// Judges a received line: the answer to the last request, or None if it is ignored. The error says what is wrong.
    fn classify<T: DeserializeOwned>(
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

    /// Ends the connection, so that every further call fails. Returns the reason for a person, with how a program ended
    /// and what it wrote.
    fn end(&mut self, what: &str) -> Gone {
        // Closing the pipes makes the program end.
        (self.to, self.from) = (None, None);
        let mut reason = format!("{} {}", self.name, what.trim_end());
        let ended = self.program.as_mut().and_then(|program| program.wait(GRACE, true));
        if let Some(ended) = &ended {
            reason.push_str(&format!(" (it ended with {ended})"));
        }
        if let Some(said) = self.program.as_ref().map(Child::stderr_tail)
            && !said.trim().is_empty()
        {
            let said = indented(&visible(said.trim()));
            reason.push_str(&format!("; on standard error it wrote:\n{}", said.trim_end()));
        }
        if !self.answered && !self.chatter.is_empty() {
            let last = &self.chatter[self.chatter.len().saturating_sub(3)..];
            reason.push_str(&format!("\nBefore any answer it sent {}", last.join(", ")));
        }
        self.failure = Some(reason.clone());
        Gone { reason, held: ended.as_deref() == Some(LOCKED_EXIT) }
    }
}

/// Connects to a Unix socket. Times out at `until` if too many other clients are waiting to be accepted.
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

/// Formats a request as a line. Raw JSON in the parameters may span several lines, so line ends become spaces;
/// JSON strings contain none.
fn line(id: u64, method: &str, params: &impl Serialize) -> Result<String, String> {
    let fail = |e| format!("the parameters of '{method}' make no JSON: {e}");
    let params = serde_json::to_string(params).map_err(fail)?.replace('\n', " ");
    let params = serde_json::value::RawValue::from_string(params).map_err(fail)?;
    Ok(request(Some(id), method, &params))
}

/// Whether a line is a JSON object, as every answer is.
fn is_object(line: &[u8]) -> bool {
    line.trim_ascii_start().starts_with(b"{") && serde_json::from_slice::<IgnoredAny>(line).is_ok()
}

/// Whether a line may contain more than `limit` values, each of which takes much more memory than its text.
fn is_crowded(line: &[u8], limit: usize) -> bool {
    line.len() > limit && memchr3_iter(b',', b'[', b'{', line).nth(limit).is_some()
}

/// The beginning of a line, for a person.
fn quoted(line: &[u8]) -> String {
    // A character has at most four bytes.
    let cut = &line[..line.len().min(4 * (QUOTED_LENGTH + 1))];
    let text = String::from_utf8_lossy(cut);
    let text = text.trim_end();
    match text.char_indices().nth(QUOTED_LENGTH) {
        None => format!("'{}'", visible_line(text)),
        Some((end, _)) => format!("'{}…' ({} bytes)", visible_line(&text[..end]), line.len()),
    }
}

/// Shortens the description of a faulty line, which may quote the line, to one line of limited length.
fn brief(why: &str) -> String {
    match why.char_indices().nth(WHY_LENGTH) {
        None => visible_line(why).into_owned(),
        Some((end, _)) => format!("{}…", visible_line(&why[..end])),
    }
}
