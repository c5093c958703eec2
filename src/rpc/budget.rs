//! What all connections hold in memory together. Each has a little for itself; who needs more takes a
//! share of what there is for all, and waits while there is too little. Nobody waits who would be the
//! only one to hold a share, so one request always gets through, whatever it takes.
//!
//! Lines and answers have a budget each: a line waits for answers to be read, and would wait for ever if
//! they waited for lines.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::protocol::jsonrpc::Method;

/// So many bytes of lines that are longer than [`FREE`] are held at once: six of the longest.
const LINES: usize = 192 << 20;
/// So many bytes of answers: four of the longest that a file can have.
const ANSWERS: usize = 320 << 20;
/// A line or an answer of so many bytes needs no share.
pub(super) const FREE: usize = 256 << 10;
/// What the answer to a read can take: a file of 10 MiB, and each of its bytes as `\u001b`.
const READ: usize = 72 << 20;
/// The same of a command, with two streams of a megabyte.
const RAN: usize = 16 << 20;

/// The budgets of a server.
#[derive(Clone)]
pub(super) struct Budgets {
    pub(super) lines: Arc<Budget>,
    pub(super) answers: Arc<Budget>,
}

impl Budgets {
    pub(super) fn new(lines: usize, answers: usize) -> Self {
        Self { lines: Budget::new(lines), answers: Budget::new(answers) }
    }
}

impl Default for Budgets {
    fn default() -> Self {
        Self::new(LINES, ANSWERS)
    }
}

/// So many bytes for all.
pub(super) struct Budget {
    total: usize,
    taken: Mutex<Taken>,
    changed: Condvar,
}

#[derive(Default)]
struct Taken {
    bytes: usize,
    /// The most that were taken at once.
    #[cfg(test)]
    most: usize,
    /// How many wait.
    waiting: usize,
}

/// Some of them; given back when it is dropped.
#[must_use]
pub(super) struct Share {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Budget {
    fn new(total: usize) -> Arc<Self> {
        Arc::new(Self { total, taken: Mutex::default(), changed: Condvar::new() })
    }

    /// A share of so many bytes, when there are so many.
    pub(super) fn take(self: &Arc<Self>, bytes: usize) -> Share {
        let mut taken = self.taken();
        while !self.has(&taken, bytes) {
            taken.waiting += 1;
            taken = self.changed.wait(taken).unwrap_or_else(PoisonError::into_inner);
            taken.waiting -= 1;
        }
        self.share(taken, bytes)
    }

    /// The same, if nobody has to wait for it.
    pub(super) fn try_take(self: &Arc<Self>, bytes: usize) -> Option<Share> {
        let taken = self.taken();
        self.has(&taken, bytes).then(|| self.share(taken, bytes))
    }

    fn has(&self, taken: &Taken, bytes: usize) -> bool {
        taken.bytes == 0 || taken.bytes + bytes <= self.total
    }

    fn share(self: &Arc<Self>, mut taken: MutexGuard<'_, Taken>, bytes: usize) -> Share {
        taken.bytes += bytes;
        #[cfg(test)]
        {
            taken.most = taken.most.max(taken.bytes);
        }
        Share { budget: Arc::clone(self), bytes }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
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
        let needed = if bytes <= FREE { 0 } else { bytes.min(self.bytes) };
        self.give_back(self.bytes - needed);
    }

    fn give_back(&mut self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        self.bytes -= bytes;
        let mut taken = self.budget.taken();
        taken.bytes -= bytes;
        if taken.waiting > 0 {
            self.budget.changed.notify_all();
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.give_back(self.bytes);
    }
}

/// How long the answer to a request may take that is not known before it is carried out, and what it
/// takes meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// It is short.
    Nothing,
    /// So many bytes, from when it is begun.
    Before(usize),
    /// So many, from when it is answered: until then it may run for long.
    After(usize),
}

/// What the answer to a request needs.
pub(super) fn need(method: &Method) -> Need {
    match method {
        Method::ReadFile(_)
        | Method::ListDir(_)
        | Method::Walk
        | Method::Read(_)
        | Method::Find(_) => Need::Before(READ),
        Method::Exec(_) | Method::ExecCode(_) | Method::Step(_) | Method::Result(_) => {
            Need::After(RAN)
        }
        _ => Need::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn who_needs_more_than_there_is_waits_for_others_and_gets_it_alone() {
        let budget = Budget::new(10 * FREE);
        let mut first = budget.take(6 * FREE);
        let second = budget.try_take(4 * FREE).unwrap();
        assert!(budget.try_take(1).is_none(), "all is taken");
        drop(second);
        // What is not needed is for others, and a little needs nothing.
        first.keep(2 * FREE);
        assert_eq!(budget.now(), (2 * FREE, 0));
        let (sent, received) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                let large = budget.take(50 * FREE);
                sent.send(()).unwrap();
                drop(large);
            });
            while budget.now().1 == 0 {
                thread::yield_now();
            }
            assert!(received.try_recv().is_err(), "it would be more than there is");
            first.keep(FREE);
            received.recv().unwrap();
        });
        assert_eq!(budget.now(), (0, 0));
        assert_eq!(budget.most(), 50 * FREE);
    }
}
