//! How a client comes by its other side: starts a program, or knocks at a socket.

use std::path::Path;
use std::time::Duration;

#[cfg(unix)]
use super::Wait;
use super::peer::Peer;
use super::process::Process;
use super::wire::Wire;
use super::{ANSWER_LIMIT, Client, Gone};
use crate::program::Programs;
use crate::text::{named, visible_line};

#[cfg(unix)]
use super::words::{LONGEST, end_of, quoted};

impl Client {
    /// Starts a program that speaks on its standard input and output, such as
    /// `ssh build-box deaddrop rpc`. It gets the environment of this process, and is taken from
    /// where `programs` may be.
    ///
    /// # Errors
    /// It cannot be started. That it then does not speak is told by the first call.
    pub fn spawn(command: &[String], programs: &Programs) -> Result<Self, Gone> {
        let name = named(&command.join(" "));
        let gone = |what: String| Gone::unsent(format!("{name} {what}"));
        let (process, stdin, stdout) = Process::start(command, programs).map_err(gone)?;
        let wire = Wire::new(stdout, stdin, ANSWER_LIMIT);
        let wire = wire.map_err(|e| gone(format!("cannot be listened to: {e}")))?;
        Ok(Self::new(wire, Peer::Program(process), name))
    }

    /// Connects to a Unix socket. With a port it first asks to be connected with that one, as a host
    /// does that reaches a microVM's agent: `CONNECT 52`, answered by `OK` and a number.
    ///
    /// # Errors
    /// Nobody listens there, or nothing of that kind is answered within `patience`.
    #[cfg(unix)]
    pub fn connect(socket: &Path, port: Option<u32>, patience: Duration) -> Result<Self, Gone> {
        let name = format!("the agent at {}", visible_line(&socket.to_string_lossy()));
        let gone = |what: String| Gone::unsent(format!("{name} {what}"));
        let refused = |e: std::io::Error| {
            gone(format!("cannot be reached: {e}; see that it runs and listens there"))
        };
        // A thread, since it takes as long as too many others wait to be let in.
        let (sender, connected) = std::sync::mpsc::channel();
        let path = socket.to_owned();
        std::thread::Builder::new()
            .name("client-connect".to_owned())
            .spawn(move || sender.send(std::os::unix::net::UnixStream::connect(path)))
            .map_err(refused)?;
        let late = |_| gone(format!("lets nobody in within {patience:?}"));
        let stream = connected.recv_timeout(patience.min(LONGEST)).map_err(late)?;
        let wire = |stream: &std::os::unix::net::UnixStream| {
            Wire::new(stream.try_clone()?, stream.try_clone()?, ANSWER_LIMIT)
        };
        let stream = stream.map_err(refused)?;
        let wire = wire(&stream).map_err(refused)?;
        let mut client = Self::new(wire, Peer::Socket(stream), name);
        if let Some(port) = port {
            client.ask_for(port, patience)?;
        }
        Ok(client)
    }

    /// Unix sockets are there on Unix alone.
    ///
    /// # Errors
    /// Always.
    #[cfg(not(unix))]
    pub fn connect(socket: &Path, _: Option<u32>, _: Duration) -> Result<Self, Gone> {
        let reason = format!(
            "the agent at {} cannot be reached: there are no Unix sockets on this system; start a program that speaks with it",
            visible_line(&socket.to_string_lossy())
        );
        Err(Gone::unsent(reason))
    }

    /// Begins with `CONNECT` and the port.
    #[cfg(unix)]
    fn ask_for(&mut self, port: u32, patience: Duration) -> Result<(), Gone> {
        let unsent = |gone: Gone| Gone { sent: false, ..gone };
        let request = self.hand(format!("CONNECT {port}\n"));
        let request = request.map_err(|what| unsent(self.over(&what, None)))?;
        let until = end_of(patience);
        let mut wait =
            Wait { method: "CONNECT", patience, until, meanwhile: None, unwritten: None };
        let answer = self.next(&request, &mut wait).map_err(|gone| {
            let reason = format!(
                "{}; it was asked for port {port}: see that an agent listens there",
                gone.reason
            );
            Gone::unsent(reason)
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
        Err(unsent(self.over(&what, None)))
    }
}
