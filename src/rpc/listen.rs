//! Where clients come from, and who of them is here: standard input and output, a Unix socket, or a
//! port of a virtual machine.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::Shutdown;
use rustix::process::Resource;

use super::Service;
use super::budget::Budgets;
use super::connection;
use super::desk::Desk;
use super::door::Door;
use super::outlet::Outlet;
use super::queue::Queue;
use crate::error::{Error, Result};
use crate::terminal::Stream;
use crate::watch::Stop;

/// So many are served at once, where there are open files enough; others wait to be accepted.
const MOST: usize = 256;
/// So many open files one connection may take: its own, and those of a step with a command.
const FILES: u64 = 8;
/// So many are kept for the rest, such as looking after protected names.
const SPARE: u64 = 64;
/// So long after a connection could not be accepted the next is tried.
const AGAIN: Duration = Duration::from_millis(50);
/// How often whether to stop is looked at, where no signal wakes.
const TICK: Duration = Duration::from_secs(2);
/// So long those are waited for at the end who do not read their answers.
const PATIENCE: Duration = Duration::from_secs(3);
/// So long what was begun is waited for at the end. What ends a command takes two seconds at most.
const LAST: Duration = Duration::from_secs(10);

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
    at: At,
    /// None for standard input and output.
    socket: Option<OwnedFd>,
    _door: Option<Door>,
}

impl fmt::Display for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.at {
            At::Stdio => write!(f, "standard input and output"),
            At::Unix(path) => write!(f, "{}", path.display()),
            At::Vsock(port) => write!(f, "vsock port {port}"),
        }
    }
}

impl Listening {
    /// Begins to listen. To be called before other threads make files: a Unix socket is made with an
    /// umask of its own.
    ///
    /// # Errors
    /// Somebody else listens there, something that is no socket stands there, or the system has no
    /// such sockets.
    pub fn open(at: At) -> Result<Self> {
        let (socket, door) = match &at {
            At::Stdio => (None, None),
            At::Unix(path) => {
                let (listener, door) = Door::open(path)?;
                (Some(listener.into()), Some(door))
            }
            #[cfg(target_os = "linux")]
            At::Vsock(port) => (Some(super::vsock::open(*port)?), None),
            #[cfg(not(target_os = "linux"))]
            At::Vsock(_) => return Err(Error::usage("--vsock: only Linux has such sockets")),
        };
        Ok(Self { at, socket, _door: door })
    }

    /// Serves until it is to stop, or standard input ends. What was begun is carried to its end, and
    /// answered where somebody reads.
    ///
    /// # Errors
    /// There are no threads to be had.
    pub fn serve<S: Service + Send + 'static>(self, service: S, stop: &Stop) -> Result<()> {
        let hall = Arc::new(Hall {
            service,
            inside: Mutex::default(),
            changed: Condvar::new(),
            budgets: Budgets::default(),
            stop: stop.clone(),
        });
        let waker = Arc::clone(&hall);
        Stop::wakes(move || waker.wake());
        let fail = |e| Error::io("start a thread in", std::path::Path::new("this process"), e);
        match &self.socket {
            None => {
                // What std gives would gather bytes besides, and look for the ends of lines.
                let own = |fd: io::Result<OwnedFd>| fd.map(|fd| Arc::new(File::from(fd)));
                let input = own(io::stdin().as_fd().try_clone_to_owned()).map_err(fail)?;
                let output = own(Stream::Out.with(|fd| fd.try_clone_to_owned())).map_err(fail)?;
                hall.admit(input, output, || ()).map_err(fail)?;
            }
            Some(socket) => {
                let socket = socket.try_clone().map_err(fail)?;
                let hall = Arc::clone(&hall);
                // It may wait for a client when all is over; nobody waits for it.
                spawn("accept", move || hall.accept(&socket)).map_err(fail)?;
            }
        }
        hall.wait(self.socket.is_none());
        Ok(())
    }
}

/// The connections that are open.
struct Hall<S> {
    service: S,
    inside: Mutex<Inside>,
    changed: Condvar,
    /// What they hold in memory together.
    budgets: Budgets,
    stop: Stop,
}

#[derive(Default)]
struct Inside {
    open: BTreeMap<u64, Arc<Queue>>,
    /// How many there have been.
    count: u64,
    /// In how many something is being carried out.
    calls: usize,
    stopped: bool,
}

impl Inside {
    /// Nothing more is begun.
    fn stop(&mut self) {
        self.stopped = true;
        self.open.values().for_each(|queue| queue.close());
    }
}

impl<S: Service + Send + 'static> Hall<S> {
    /// Accepts clients for as long as the process lives.
    fn accept(self: &Arc<Self>, socket: &OwnedFd) {
        let most = most(rustix::process::getrlimit(Resource::Nofile).current);
        loop {
            drop(self.until(|inside| inside.open.len() < most));
            let admitted = match accept(socket) {
                Ok(client) => self.receive(client),
                // It has thought better of it.
                Err(e) if matches!(e.kind(), io::ErrorKind::Interrupted) => Ok(()),
                Err(e) => Err(e),
            };
            // No files, no threads or no memory: others may give some back.
            if admitted.is_err() {
                thread::sleep(AGAIN);
            }
        }
    }

    fn receive(self: &Arc<Self>, client: OwnedFd) -> io::Result<()> {
        let client = Arc::new(File::from(client));
        // The thread that reads would else wait for more. Where the client is gone it fails.
        let end = |client: &File| rustix::net::shutdown(client, Shutdown::Both).unwrap_or(());
        let (input, output, ending) =
            (Arc::clone(&client), Arc::clone(&client), Arc::clone(&client));
        let admitted = self.admit(input, output, move || end(&ending));
        if admitted.is_err() {
            end(&client);
        }
        admitted
    }

    /// Serves one connection on threads of its own; `end` is called when all is answered.
    fn admit(
        self: &Arc<Self>,
        input: Arc<File>,
        output: Arc<File>,
        end: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        let queue = Arc::new(Queue::of(self.budgets.clone()));
        let number = {
            let mut inside = self.inside();
            if inside.stopped {
                return Ok(());
            }
            inside.count += 1;
            let number = inside.count;
            inside.open.insert(number, Arc::clone(&queue));
            number
        };
        let (hall, asked) = (Arc::clone(self), Arc::clone(&queue));
        let outlet = Outlet::of(&output);
        let reader = spawn("read", move || {
            let within = |within| hall.calls(within);
            let desk = outlet.map(|outlet| Desk::new(outlet, &asked, &hall.service, &within));
            connection::read(input, &asked, &hall.service, desk);
        });
        let (hall, asked) = (Arc::clone(self), Arc::clone(&queue));
        let worker = reader.and_then(|()| {
            spawn("answer", move || {
                // Whoever is gone is not told why.
                let _ =
                    connection::work(&asked, output, &hall.service, &|within| hall.calls(within));
                asked.leave();
                end();
                hall.left(number);
            })
        });
        if worker.is_err() {
            queue.close();
            self.left(number);
        }
        worker
    }

    fn left(&self, number: u64) {
        self.inside().open.remove(&number);
        self.wake();
    }

    fn calls(&self, within: bool) {
        let mut inside = self.inside();
        if within {
            inside.calls += 1;
        } else {
            inside.calls -= 1;
            // What was ended by the stop is over before who waits for that has woken.
            if self.stop.is_asked() && !inside.stopped {
                inside.stop();
            }
            if inside.stopped {
                self.changed.notify_all();
            }
        }
    }

    /// Waits until it is to stop, or, with `once`, until everybody has left; then until what was begun
    /// is done.
    fn wait(&self, once: bool) {
        let mut inside = self.inside();
        while !(self.stop.is_asked() || (once && inside.open.is_empty())) {
            inside = self.sleep(inside, TICK);
        }
        inside.stop();
        let begun = Instant::now();
        while !inside.open.is_empty() {
            let end = if inside.calls == 0 { PATIENCE } else { LAST };
            let Some(left) = end.checked_sub(begun.elapsed()).filter(|left| !left.is_zero()) else {
                return;
            };
            inside = self.sleep(inside, left);
        }
    }

    fn until(&self, holds: impl Fn(&Inside) -> bool) -> MutexGuard<'_, Inside> {
        let mut inside = self.inside();
        while !holds(&inside) {
            inside = self.sleep(inside, TICK);
        }
        inside
    }

    fn sleep<'a>(
        &self,
        inside: MutexGuard<'a, Inside>,
        longest: Duration,
    ) -> MutexGuard<'a, Inside> {
        self.changed.wait_timeout(inside, longest).unwrap_or_else(PoisonError::into_inner).0
    }

    fn wake(&self) {
        // Whoever has looked and does not sleep yet would miss it.
        drop(self.inside());
        self.changed.notify_all();
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
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

fn spawn(name: &str, what: impl FnOnce() + Send + 'static) -> io::Result<()> {
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
            (Some(1024), 120),
            (Some(200), 17),
            (Some(64), 1),
            (Some(0), 1),
        ] {
            assert_eq!(most(files), served, "{files:?}");
        }
    }
}
