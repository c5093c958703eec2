//! What all connections hold in memory together. Each has a little for itself; whoever needs more takes a
//! share of a pool, and waits while there is too little. The only one to hold a share never waits, so one
//! request always gets through, whatever it takes.
//!
//! Lines and answers have a pool each, and lines come first: whoever holds one waits for answers to be
//! read, and would wait for ever if whoever holds answers waited for lines.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::protocol::jsonrpc::Method;

/// How many bytes of lines longer than [`FREE`] are held at once: six of the longest.
const LINES: usize = 192 << 20;
/// How many bytes of answers: four of the longest that a file can have.
const ANSWERS: usize = 320 << 20;
/// A line or an answer of so many bytes needs no share.
pub(super) const FREE: usize = 256 << 10;
/// What the answer to a read can take: a file of 10 MiB, and each of its bytes as `\u001b`.
const READ: usize = 72 << 20;
/// The same of a command, with two streams of a megabyte.
const RAN: usize = 16 << 20;

/// The pools of a server.
#[derive(Clone)]
pub(super) struct Budgets {
    pub(super) lines: Pool,
    pub(super) answers: Pool,
}

impl Budgets {
    pub(super) fn new(lines: usize, answers: usize) -> Self {
        Self { lines: Pool::new(lines), answers: Pool::new(answers) }
    }
}

impl Default for Budgets {
    fn default() -> Self {
        Self::new(LINES, ANSWERS)
    }
}

/// A number of bytes for all.
#[derive(Clone)]
pub(super) struct Pool(Arc<Inside>);

struct Inside {
    total: usize,
    taken: Mutex<Taken>,
    given_back: Condvar,
}

#[derive(Default)]
struct Taken {
    bytes: usize,
    /// The most that were taken at once.
    #[cfg(test)]
    most: usize,
    waiting: usize,
}

/// Some of them; given back when it is dropped.
#[must_use]
pub(super) struct Share {
    pool: Pool,
    bytes: usize,
}

impl Pool {
    fn new(total: usize) -> Self {
        Self(Arc::new(Inside { total, taken: Mutex::default(), given_back: Condvar::new() }))
    }

    /// Takes a share of so many bytes, when there are so many.
    pub(super) fn take(&self, bytes: usize) -> Share {
        let mut taken = self.taken();
        while !self.has(&taken, bytes) {
            taken.waiting += 1;
            taken = self.0.given_back.wait(taken).unwrap_or_else(PoisonError::into_inner);
            taken.waiting -= 1;
        }
        self.share(taken, bytes)
    }

    /// The same, if nobody has to wait for it.
    pub(super) fn try_take(&self, bytes: usize) -> Option<Share> {
        let taken = self.taken();
        self.has(&taken, bytes).then(|| self.share(taken, bytes))
    }

    fn has(&self, taken: &Taken, bytes: usize) -> bool {
        taken.bytes == 0 || taken.bytes + bytes <= self.0.total
    }

    fn share(&self, mut taken: MutexGuard<'_, Taken>, bytes: usize) -> Share {
        taken.bytes += bytes;
        #[cfg(test)]
        {
            taken.most = taken.most.max(taken.bytes);
        }
        Share { pool: self.clone(), bytes }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.0.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(super) fn most(&self) -> usize {
        self.taken().most
    }

    #[cfg(test)]
    pub(super) fn now(&self) -> (usize, usize) {
        let taken = self.taken();
        (taken.bytes, taken.waiting)
    }
}

impl Share {
    /// Gives back what is not needed for so many bytes; all, where they need none.
    pub(super) fn keep(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.bytes.max(FREE), "{bytes} bytes and not {}", self.bytes);
        let needed = if bytes <= FREE { 0 } else { bytes.min(self.bytes) };
        let spare = self.bytes - needed;
        self.bytes = needed;
        let mut taken = self.pool.taken();
        taken.bytes -= spare;
        if taken.waiting > 0 {
            self.pool.0.given_back.notify_all();
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.keep(0);
        }
    }
}

/// How a request is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// At once.
    Quick,
    /// It may wait for the disk, or walk: the answers before it had better not wait for it.
    Blocking,
    /// It may run for as long as it likes, on a thread of its own.
    Long,
    /// The same, and holds little of its answer until it has ended.
    Command,
}

/// How a request is carried out, and how many bytes its answer may take while its length is not known.
pub(super) fn cost(method: &Method) -> (Pace, usize) {
    match method {
        Method::Ping => (Pace::Quick, 0),
        Method::ReadFile(_) => (Pace::Quick, READ),
        Method::ListDir(_) | Method::Walk | Method::Read(_) => (Pace::Blocking, READ),
        Method::Result(_) => (Pace::Blocking, RAN),
        Method::WriteFile(_)
        | Method::About(_)
        | Method::Look(_)
        | Method::Leave(_)
        | Method::Interrupt(_) => (Pace::Blocking, 0),
        Method::Find(_) => (Pace::Long, READ),
        Method::Exec(_) | Method::ExecCode(_) | Method::Step(_) => (Pace::Command, RAN),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn who_needs_more_than_there_is_waits_for_others_and_gets_it_alone() {
        let pool = Pool::new(10 * FREE);
        let mut first = pool.take(6 * FREE);
        let second = pool.try_take(4 * FREE).unwrap();
        assert!(pool.try_take(1).is_none(), "all is taken");
        drop(second);
        // What is not needed is for others, and a little needs nothing.
        first.keep(2 * FREE);
        assert_eq!(pool.now(), (2 * FREE, 0));
        let (sent, received) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                let large = pool.take(50 * FREE);
                sent.send(()).unwrap();
                drop(large);
            });
            while pool.now().1 == 0 {
                thread::yield_now();
            }
            assert!(received.try_recv().is_err(), "it would be more than there is");
            first.keep(FREE);
            received.recv().unwrap();
        });
        assert_eq!(pool.now(), (0, 0));
        assert_eq!(pool.most(), 50 * FREE);
    }
}
