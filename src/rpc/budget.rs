//! What all connections hold in memory together. Each has a little for itself; whoever needs more takes a
//! share of a pool, and waits while there is too little. The only one to hold a share never waits, so one
//! request always gets through, whatever it takes.
//!
//! Lines and answers have a pool each. A line's share is taken only when nothing else of its connection is
//! held, and an answer's is held only until its client has read it. So nobody waits in a circle.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::protocol::jsonrpc::Method;

/// How many bytes of lines longer than [`FREE`] are held at once: six of the longest.
pub(super) const LINES: usize = 192 << 20;
/// How many bytes of answers: four of the longest that a file can have.
pub(super) const ANSWERS: usize = 320 << 20;
/// A line or an answer of so many bytes needs no share.
pub(super) const FREE: usize = 256 << 10;
/// What the answer to a read can take: a file of 10 MiB, and each of its bytes as `\u001b`.
const READ: usize = 72 << 20;
/// The same of a command, with two streams of a megabyte.
const RAN: usize = 16 << 20;

/// How many bytes an answer may take while its length is not known: before the request is carried out, and
/// afterwards. A command holds little of its answer until it has ended.
pub(super) fn room(method: &Method) -> (usize, usize) {
    match method {
        Method::ReadFile { .. }
        | Method::ListDir { .. }
        | Method::Walk {}
        | Method::Read(_)
        | Method::Find(_) => (READ, READ),
        Method::Exec { .. } | Method::ExecCode { .. } | Method::Step(_) | Method::Result(_) => {
            (0, RAN)
        }
        Method::Ping {}
        | Method::WriteFile { .. }
        | Method::About(_)
        | Method::PathFacts(_)
        | Method::Leave(_)
        | Method::Interrupt(_) => (0, 0),
    }
}

/// A counting semaphore, of bytes or of something else.
#[derive(Clone)]
pub(super) struct Pool(Arc<Inside>);

struct Inside {
    total: usize,
    taken: Mutex<Taken>,
    changed: Condvar,
}

#[derive(Default)]
struct Taken {
    count: usize,
    /// The most that were taken at once.
    #[cfg(test)]
    most: usize,
    waiting: usize,
}

/// Some of them; given back when it is dropped.
#[must_use]
pub(super) struct Share {
    pool: Pool,
    pub(super) count: usize,
}

impl Pool {
    pub(super) fn new(total: usize) -> Self {
        Self(Arc::new(Inside { total, taken: Mutex::default(), changed: Condvar::new() }))
    }

    /// Takes so many, when there are so many.
    pub(super) fn take(&self, count: usize) -> Share {
        let mut taken = self.taken();
        while count > 0 && taken.count > 0 && taken.count + count > self.0.total {
            taken.waiting += 1;
            taken = self.0.changed.wait(taken).unwrap_or_else(PoisonError::into_inner);
            taken.waiting -= 1;
        }
        taken.count += count;
        #[cfg(test)]
        {
            taken.most = taken.most.max(taken.count);
        }
        Share { pool: self.clone(), count }
    }

    /// Waits until some are given back or [`Pool::wake`] is called, at most `longest`, if `holds` is true of how many are
    /// taken. Returns whether it was.
    pub(super) fn wait(&self, longest: Duration, holds: impl FnOnce(usize) -> bool) -> bool {
        let mut taken = self.taken();
        let waits = holds(taken.count);
        if waits {
            taken.waiting += 1;
            let waited = self.0.changed.wait_timeout(taken, longest);
            waited.unwrap_or_else(PoisonError::into_inner).0.waiting -= 1;
        }
        waits
    }

    pub(super) fn wake(&self) {
        // Whoever has looked and does not sleep yet would miss it.
        drop(self.taken());
        self.0.changed.notify_all();
    }

    /// How many are taken.
    pub(super) fn count(&self) -> usize {
        self.taken().count
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.0.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(super) fn most(&self) -> usize {
        self.taken().most
    }

    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.taken().waiting
    }
}

impl Share {
    /// Holds so many from now on: gives back the others, or takes what is missing without waiting for it.
    pub(super) fn keep(&mut self, count: usize) {
        let mut taken = self.pool.taken();
        taken.count = taken.count - self.count + count;
        #[cfg(test)]
        {
            taken.most = taken.most.max(taken.count);
        }
        self.count = count;
        if taken.waiting > 0 {
            self.pool.0.changed.notify_all();
        }
    }

    /// Holds what so many bytes need: nothing, if they are few.
    pub(super) fn keep_for(&mut self, bytes: usize) {
        self.keep(if bytes <= FREE { 0 } else { bytes });
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if self.count > 0 {
            self.keep(0);
        }
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
        drop(pool.take(4 * FREE));
        // What is not needed is for others, and a little needs nothing.
        first.keep_for(2 * FREE);
        assert_eq!(pool.count(), 2 * FREE);
        let (sent, received) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                let large = pool.take(50 * FREE);
                sent.send(()).unwrap();
                drop(large);
            });
            while pool.waiting() == 0 {
                thread::yield_now();
            }
            assert!(received.try_recv().is_err(), "it would be more than there is");
            first.keep_for(FREE);
            received.recv().unwrap();
        });
        assert_eq!((pool.count(), pool.most()), (0, 50 * FREE));
    }
}
