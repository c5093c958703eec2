//! Limits the memory that all connections use together. Each connection may use a little freely. For more it takes
//! a share of a pool, and waits while the pool has too little left. A request never waits if no other share is
//! taken, so one request always gets through, however large it is.
//!
//! There is one pool for lines and one for answers. A connection takes a share for a line only while it has no other
//! share, and keeps a share for an answer only until its client has read it. So there is no deadlock.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::protocol::jsonrpc::Method;

/// The pool for lines longer than [`UNPOOLED_LIMIT`], in bytes: enough for six of maximum length.
pub(super) const LINES: usize = 192 << 20;
/// The pool for answers, in bytes: enough for four answers with the longest file.
pub(super) const ANSWERS: usize = 320 << 20;
/// The maximum size in bytes of a line or an answer that needs no share.
pub(super) const UNPOOLED_LIMIT: usize = 256 << 10;
/// The maximum answer to a read, in bytes: a file of 10 MiB whose bytes are all written as `\u001b`.
const READ: usize = 72 << 20;
/// The maximum answer to a command, in bytes: two streams of a megabyte, escaped in the same way.
const RAN: usize = 16 << 20;

/// How many bytes to reserve for an answer of unknown length: before the request is carried out, and
/// afterwards. A command needs little memory for its answer until it has ended.
pub(super) fn answer_reserve(method: &Method) -> (usize, usize) {
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

/// A counting semaphore for bytes or other units.
#[derive(Clone)]
pub(super) struct Pool(Arc<PoolState>);

struct PoolState {
    total: usize,
    taken: Mutex<Taken>,
    changed: Condvar,
}

#[derive(Default)]
struct Taken {
    count: usize,
    /// The maximum that was taken at once.
    #[cfg(test)]
    most: usize,
    waiting: usize,
}

/// Units taken from a pool. They are returned on drop.
#[must_use]
pub(super) struct Share {
    pool: Pool,
    pub(super) count: usize,
}

impl Pool {
    pub(super) fn new(total: usize) -> Self {
        Self(Arc::new(PoolState { total, taken: Mutex::default(), changed: Condvar::new() }))
    }

    /// Takes `count` units, and waits until they are available. If nothing else is taken, it does not wait.
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

    /// If `holds` is true for the number of units taken, waits until units are returned or [`Pool::wake`] is called,
    /// but at most `longest`. Returns what `holds` returned.
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
        // Lock once, so that a thread that has checked but is not waiting yet does not miss the wake-up.
        drop(self.taken());
        self.0.changed.notify_all();
    }

    /// The number of units taken.
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
    /// Changes the share to `count` units: returns the surplus, or takes what is missing without waiting.
    pub(super) fn resize(&mut self, count: usize) {
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

    /// Changes the share to what `bytes` bytes need, which is nothing up to [`UNPOOLED_LIMIT`].
    pub(super) fn resize_for(&mut self, bytes: usize) {
        self.resize(if bytes <= UNPOOLED_LIMIT { 0 } else { bytes });
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if self.count > 0 {
            self.resize(0);
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
        let pool = Pool::new(10 * UNPOOLED_LIMIT);
        let mut first = pool.take(6 * UNPOOLED_LIMIT);
        drop(pool.take(4 * UNPOOLED_LIMIT));
        // The surplus is returned, and a small amount needs no share.
        first.resize_for(2 * UNPOOLED_LIMIT);
        assert_eq!(pool.count(), 2 * UNPOOLED_LIMIT);
        let (sent, received) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                let large = pool.take(50 * UNPOOLED_LIMIT);
                sent.send(()).unwrap();
                drop(large);
            });
            while pool.waiting() == 0 {
                thread::yield_now();
            }
            assert!(received.try_recv().is_err(), "it would be more than there is");
            first.resize_for(UNPOOLED_LIMIT);
            received.recv().unwrap();
        });
        assert_eq!((pool.count(), pool.most()), (0, 50 * UNPOOLED_LIMIT));
    }
}
