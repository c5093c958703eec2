//! Accepts clients and limits their number. They connect through standard input and output, a Unix socket, or a
//! vsock port of a virtual machine.

use std::fmt;
use std::fs::File;
use std::io::{self, PipeReader, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::ioctl_fionbio;
use rustix::process::Resource;

use super::budget::{self, Pool};
use super::socket::SocketFile;
use super::{Given, Service, connection};
use crate::error::{Error, Result};
use crate::protocol::jsonrpc::{Method, RpcError};
use crate::terminal::Stream;
use crate::watch::Stop;

/// The maximum number of connections served at once. Further clients wait to be accepted.
const MAX_CONNECTIONS: usize = 256;
/// The number of open files that one connection may need. An `exec` was measured to need six: the socket, the output,
/// and the pidfd and epoll that wait for its helper. A step also needs its record and its scratch directory, and
/// starting a helper needs a few more for a moment.
const FILES_PER_CONNECTION: u64 = 12;
/// The number of open files reserved for other work, such as checking protected names.
const RESERVED_FILES: u64 = 64;
/// How long to wait before the next attempt after accepting a connection failed.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);
/// How often to check for a stop request if no signal wakes the thread.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// How often to check at shutdown whether connections have closed.
const POLL: Duration = Duration::from_millis(20);
/// How long shutdown waits for connections without a running request. A client may not be reading its answers, or a
/// connection may be waiting for memory; a stop request wakes neither.
const IDLE_CLOSE_TIMEOUT: Duration = Duration::from_secs(3);
/// How long shutdown waits for running requests. Ending a command takes at most two seconds.
const CALL_CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Where to listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum At {
    /// Standard input and output are the only connection.
    Stdio,
    /// A Unix socket with this path.
    Unix(PathBuf),
    /// A vsock port, from every address. Only on Linux.
    Vsock(u32),
}

/// An open endpoint that does not accept clients yet. Dropping it removes the Unix socket's file.
#[derive(Debug)]
pub struct Listening {
    /// The endpoint in words, for messages.
    at: String,
    /// None for standard input and output.
    socket: Option<OwnedFd>,
    _file: Option<SocketFile>,
}

impl fmt::Display for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.at)
    }
}

impl Listening {
    /// Starts to listen. Must be called before other threads create files, because the umask of the process changes
    /// while a Unix socket is created.
    ///
    /// # Errors
    /// Another process listens there, the path is not a socket, or the system does not support such
    /// sockets.
    pub fn open(at: At) -> Result<Self> {
        let (at, socket, file) = match at {
            At::Stdio => ("standard input and output".to_owned(), None, None),
            At::Unix(path) => {
                let (listener, file) = SocketFile::open(&path)?;
                (path.display().to_string(), Some(listener.into()), Some(file))
            }
            #[cfg(target_os = "linux")]
            At::Vsock(port) => {
                (format!("vsock port {port}"), Some(super::vsock::open(port)?), None)
            }
            #[cfg(not(target_os = "linux"))]
            At::Vsock(_) => return Err(Error::usage("--vsock: only Linux has such sockets")),
        };
        Ok(Self { at, socket, _file: file })
    }

    /// Serves until a stop is requested or standard input ends. Requests in progress are completed, and answered
    /// if the client still reads.
    ///
    /// # Errors
    /// No more threads or files can be created.
    pub fn serve(self, service: impl Service + Send + 'static, stop: &Stop) -> Result<()> {
        let fail = |e| Error::io("start a thread in", Path::new("this process"), e);
        let (stopping, mut stopped) = io::pipe().map_err(fail)?;
        // The byte written to the pipe is never read, so it wakes every thread that polls the pipe.
        let wake = stopped.try_clone().map_err(fail)?;
        let server =
            Arc::new(Server::new(service, stop.clone(), stopping, budget::LINES, budget::ANSWERS));
        let connections = server.connections.clone();
        Stop::on_signal(move || {
            let _ = (&wake).write_all(&[0]);
            connections.wake();
        });
        match &self.socket {
            None => {
                // The handles of std would buffer bytes and search for line ends.
                let own = |fd: io::Result<OwnedFd>| fd.map(|fd| Arc::new(File::from(fd)));
                let input = own(io::stdin().as_fd().try_clone_to_owned()).map_err(fail)?;
                let output = own(Stream::Out.with(|fd| fd.try_clone_to_owned())).map_err(fail)?;
                server.admit(input, output).map_err(fail)?;
                while !stop.is_asked() && server.connections.wait(POLL_INTERVAL, |open| open > 0) {}
            }
            Some(socket) => {
                // A client may disconnect before it is accepted; then `accept` must not block.
                ioctl_fionbio(socket, true).map_err(|e| fail(e.into()))?;
                while !stop.is_asked() {
                    // Files, threads or memory ran out. Other connections may free some.
                    if server.accept(socket).is_err() {
                        thread::sleep(ACCEPT_RETRY);
                    }
                }
            }
        }
        let _ = stopped.write_all(&[0]);
        server.wait_for_connections();
        Ok(())
    }
}

/// What all connections share.
pub(super) struct Server {
    service: Box<dyn Service + Send>,
    pub(super) stop: Stop,
    /// Becomes readable when the server stops.
    pub(super) stopping: PipeReader,
    /// The memory budgets of all connections together.
    pub(super) lines: Pool,
    pub(super) answers: Pool,
    /// The number of open connections. `most` is its limit.
    pub(super) connections: Pool,
    most: usize,
    /// The number of requests being carried out.
    calls: AtomicUsize,
}

impl Server {
    /// Creates a server whose connections may keep `lines` bytes of lines and `answers` bytes of answers in total.
    pub(super) fn new(
        service: impl Service + Send + 'static,
        stop: Stop,
        stopping: PipeReader,
        lines: usize,
        answers: usize,
    ) -> Self {
        let (lines, answers) = (Pool::new(lines), Pool::new(answers));
        let most = most(rustix::process::getrlimit(Resource::Nofile).current);
        let (service, connections) = (Box::new(service), Pool::new(most));
        let calls = AtomicUsize::new(0);
        Self { service, stop, stopping, lines, answers, connections, most, calls }
    }

    /// Carries out a request.
    pub(super) fn call(&self, method: Method) -> Result<Given, RpcError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let given = self.service.call(method);
        self.calls.fetch_sub(1, Ordering::SeqCst);
        given
    }

    /// Interrupts a step in progress.
    pub(super) fn interrupt(&self, key: &str) {
        self.service.interrupt(key);
    }

    /// Accepts a client, if one connects before the timeout, the limit is not reached and no stop is requested.
    fn accept(self: &Arc<Self>, socket: &OwnedFd) -> io::Result<()> {
        let most = self.most;
        if self.connections.wait(POLL_INTERVAL, |open| open >= most) {
            return Ok(());
        }
        let mut polled = [socket.as_fd(), self.stopping.as_fd()]
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        poll(&mut polled, Timespec::try_from(POLL_INTERVAL).ok().as_ref())?;
        if polled[0].revents().is_empty() {
            return Ok(());
        }
        let client = Arc::new(File::from(accept(socket)?));
        self.admit(Arc::clone(&client), client)
    }

    /// Serves one connection on a thread of its own.
    pub(super) fn admit(self: &Arc<Self>, input: Arc<File>, output: Arc<File>) -> io::Result<()> {
        connection::serve(self, self.connections.take(1), input, output)
    }

    /// Waits for the remaining connections to close when the server stops, up to a time limit.
    fn wait_for_connections(&self) {
        let begun = Instant::now();
        while self.connections.count() > 0 {
            let calls = self.calls.load(Ordering::SeqCst);
            if begun.elapsed() > if calls == 0 { IDLE_CLOSE_TIMEOUT } else { CALL_CLOSE_TIMEOUT } {
                return;
            }
            self.connections.wait(POLL, |open| open > 0);
        }
    }
}

/// The maximum number of connections for a process that may open `files` files; None means no limit.
/// Files must be left over, or what a command created under protected names could not be quarantined.
fn most(files: Option<u64>) -> usize {
    let room =
        files.map_or(u64::MAX, |files| files.saturating_sub(RESERVED_FILES) / FILES_PER_CONNECTION);
    usize::try_from(room).unwrap_or(MAX_CONNECTIONS).clamp(1, MAX_CONNECTIONS)
}

#[cfg(target_os = "linux")]
fn accept(socket: &OwnedFd) -> io::Result<OwnedFd> {
    Ok(rustix::net::accept_with(socket, rustix::net::SocketFlags::CLOEXEC)?)
}

#[cfg(not(target_os = "linux"))]
fn accept(socket: &OwnedFd) -> io::Result<OwnedFd> {
    let client = rustix::net::accept(socket)?;
    rustix::io::fcntl_setfd(&client, rustix::io::FdFlags::CLOEXEC)?;
    Ok(client)
}

pub(super) fn spawn(name: &str, what: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(format!("rpc {name}")).spawn(what).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_are_served_where_few_files_may_be_open() {
        for (files, served) in [
            (None, MAX_CONNECTIONS),
            (Some(1 << 20), MAX_CONNECTIONS),
            (Some(1024), 80),
            (Some(200), 11),
            (Some(64), 1),
            (Some(0), 1),
        ] {
            assert_eq!(most(files), served, "{files:?}");
        }
    }
}
