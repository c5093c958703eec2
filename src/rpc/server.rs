//! Where clients come from, and how many of them are here: standard input and output, a Unix socket, or a
//! port of a virtual machine.

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

/// How many are served at once, where there are open files enough; others wait to be accepted.
const MOST: usize = 256;
/// How many open files one connection may take. Six were measured while an `exec` runs: the socket, output, and
/// the pidfd and the epoll that its helper is waited for with. A step has its record and its scratch directory besides, and a
/// helper that is started needs some more for a moment.
const FILES: u64 = 12;
/// How many are kept for the rest, such as looking after protected names.
const SPARE: u64 = 64;
/// How long after a connection could not be accepted the next is tried.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);
/// How often whether to stop is looked at, if no signal wakes.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// The same at the end, when what was begun is waited for.
const POLL: Duration = Duration::from_millis(20);
/// How long connections are waited for at the end whose client does not read its answers, or that wait for memory:
/// no stop wakes them.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long what was begun is waited for at the end. What ends a command takes two seconds at most.
const CALL_PATIENCE: Duration = Duration::from_secs(10);

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

/// What listens already and accepts nobody yet. Dropped, the Unix socket's file is removed.
#[derive(Debug)]
pub struct Listening {
    /// Where, for people.
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
    /// Begins to listen. To be called before other threads make files: a Unix socket is made with an
    /// umask of its own.
    ///
    /// # Errors
    /// Somebody else listens there, something that is no socket is there, or the system has no such
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

    /// Serves until it is to stop, or standard input ends. What was begun is carried to its end, and
    /// answered where somebody reads.
    ///
    /// # Errors
    /// There are no threads or files to be had.
    pub fn serve(self, service: impl Service + Send + 'static, stop: &Stop) -> Result<()> {
        let fail = |e| Error::io("start a thread in", Path::new("this process"), e);
        let (stopping, mut stopped) = io::pipe().map_err(fail)?;
        // It is not read, so that it wakes all.
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
                // What std gives would gather bytes besides, and look for the ends of lines.
                let own = |fd: io::Result<OwnedFd>| fd.map(|fd| Arc::new(File::from(fd)));
                let input = own(io::stdin().as_fd().try_clone_to_owned()).map_err(fail)?;
                let output = own(Stream::Out.with(|fd| fd.try_clone_to_owned())).map_err(fail)?;
                server.admit(input, output).map_err(fail)?;
                while !stop.is_asked() && server.connections.wait(POLL_INTERVAL, |open| open > 0) {}
            }
            Some(socket) => {
                // Whoever came can be gone again.
                ioctl_fionbio(socket, true).map_err(|e| fail(e.into()))?;
                while !stop.is_asked() {
                    // No files, no threads or no memory: others may give some back.
                    if server.accept(socket).is_err() {
                        thread::sleep(ACCEPT_RETRY);
                    }
                }
            }
        }
        let _ = stopped.write_all(&[0]);
        server.wait_for_the_last();
        Ok(())
    }
}

/// What all connections share.
pub(super) struct Server {
    service: Box<dyn Service + Send>,
    pub(super) stop: Stop,
    /// There is something to be read from it when the server stops.
    pub(super) stopping: PipeReader,
    /// What they hold in memory together.
    pub(super) lines: Pool,
    pub(super) answers: Pool,
    /// How many are open, and how many may be.
    pub(super) connections: Pool,
    most: usize,
    /// How many requests are being carried out.
    calls: AtomicUsize,
}

impl Server {
    /// One whose connections hold so many bytes of lines and of answers together.
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

    /// Ends a step that is being carried out.
    pub(super) fn interrupt(&self, key: &str) {
        self.service.interrupt(key);
    }

    /// Accepts a client, if one comes while there is room for it and the server is not to stop.
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

    /// Waits until those have left that are served when the server stops, but not for ever.
    fn wait_for_the_last(&self) {
        let begun = Instant::now();
        while self.connections.count() > 0 {
            let calls = self.calls.load(Ordering::SeqCst);
            if begun.elapsed() > if calls == 0 { PATIENCE } else { CALL_PATIENCE } {
                return;
            }
            self.connections.wait(POLL, |open| open > 0);
        }
    }
}

/// How many connections are served at once by a process that may open so many files; None is as many as
/// it likes. Without files, what a command made under protected names could not be put away.
fn most(files: Option<u64>) -> usize {
    let room = files.map_or(u64::MAX, |files| files.saturating_sub(SPARE) / FILES);
    usize::try_from(room).unwrap_or(MOST).clamp(1, MOST)
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
            (None, MOST),
            (Some(1 << 20), MOST),
            (Some(1024), 80),
            (Some(200), 11),
            (Some(64), 1),
            (Some(0), 1),
        ] {
            assert_eq!(most(files), served, "{files:?}");
        }
    }
}
