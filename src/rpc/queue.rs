//! What a connection has asked for and what is not carried out yet, bounded in bytes: the reader waits
//! where it is full.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::line::Line;

/// So much may wait, in bytes; one line may be longer, if it waits alone.
pub(super) const LIMIT: usize = 4 << 20;
/// What a line costs beside its bytes.
const EACH: usize = size_of::<Line>();

/// The lines that wait.
#[derive(Default)]
pub(super) struct Queue {
    inside: Mutex<Inside>,
    changed: Condvar,
}

#[derive(Default)]
struct Inside {
    lines: VecDeque<Line>,
    bytes: usize,
    /// No more comes.
    ended: bool,
    /// No more is wanted.
    closed: bool,
}

impl Queue {
    /// Adds a line where there is room, and waits until then. Returns false where no more is wanted.
    pub(super) fn push(&self, line: Line) -> bool {
        let cost = cost(&line);
        let mut inside = self.inside();
        while !inside.closed && !inside.lines.is_empty() && inside.bytes + cost > LIMIT {
            inside = self.changed.wait(inside).unwrap_or_else(PoisonError::into_inner);
        }
        if inside.closed {
            return false;
        }
        inside.bytes += cost;
        inside.lines.push_back(line);
        self.changed.notify_all();
        true
    }

    /// The next line, when it is there; None where none comes, or no more is wanted.
    pub(super) fn pop(&self) -> Option<Line> {
        let mut inside = self.inside();
        loop {
            if inside.closed {
                return None;
            }
            if let Some(line) = inside.lines.pop_front() {
                inside.bytes -= cost(&line);
                self.changed.notify_all();
                return Some(line);
            }
            if inside.ended {
                return None;
            }
            inside = self.changed.wait(inside).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// No more comes.
    pub(super) fn end(&self) {
        self.inside().ended = true;
        self.changed.notify_all();
    }

    /// No more is wanted: what waits is dropped.
    pub(super) fn close(&self) {
        let mut inside = self.inside();
        inside.closed = true;
        inside.lines = VecDeque::new();
        inside.bytes = 0;
        self.changed.notify_all();
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn cost(line: &Line) -> usize {
    EACH + match line {
        Line::Whole(line) => line.len(),
        Line::TooLong => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    fn of(length: usize) -> Line {
        Line::Whole(vec![b'x'; length])
    }

    #[test]
    fn a_line_over_the_limit_waits_alone_and_others_together_within_it() {
        let queue = Queue::default();
        assert!(queue.push(of(2 * LIMIT)));
        let (sent, received) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..4 {
                    assert!(queue.push(of(LIMIT / 2 - EACH)));
                    sent.send(()).unwrap();
                }
                assert!(!queue.push(of(1)), "what is closed takes nothing");
                sent.send(()).unwrap();
            });
            assert!(received.try_recv().is_err());
            assert_eq!(queue.pop(), Some(of(2 * LIMIT)));
            received.recv().unwrap();
            received.recv().unwrap();
            let waiting = queue.inside().bytes;
            assert_eq!(waiting, LIMIT, "the third waits for room");
            assert!(queue.pop().is_some());
            received.recv().unwrap();
            assert!(queue.pop().is_some());
            received.recv().unwrap();
            queue.close();
            received.recv().unwrap();
        });
        assert_eq!(queue.pop(), None);
    }

    #[test]
    fn what_waits_is_given_after_the_end() {
        let queue = Queue::default();
        assert!(queue.push(of(1)) && queue.push(Line::TooLong));
        queue.end();
        assert_eq!(queue.pop(), Some(of(1)));
        assert_eq!(queue.pop(), Some(Line::TooLong));
        assert_eq!(queue.pop(), None);
    }
}
