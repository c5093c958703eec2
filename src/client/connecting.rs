//! How a client comes by its other side: starts a program, or connects to a socket.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use super::peer::Peer;
use super::words::{end_of, quoted};
use super::{Client, Gone, SLICE, Wait};
use crate::program::Programs;
use crate::text::{named, visible_line};

impl Client {
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
