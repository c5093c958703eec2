//! What a connection has asked for and what is not carried out yet, bounded in bytes: the reader waits
//! where it is full. And whose turn it is: while nothing waits and nothing is being carried out, the
//! reader may carry out by itself what is quickly done.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::budget::{Budgets, Share};
use super::line::Line;

/// So much may wait, in bytes; one line may be longer, if it waits alone.
pub(super) const LIMIT: usize = 4 << 20;
/// So many lines that wait are carried out together, their answers written at once.
const MANY: usize = 16;
/// What a line costs beside its bytes.
const EACH: usize = size_of::<Line>();

/// Who carries out the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// The reader may.
    Mine,
    /// Whoever pops: it has something to do.
    Theirs,
    /// Nobody: no more is wanted.
    Over,
}

/// The lines that wait.
#[derive(Default)]
pub(super) struct Queue {
    inside: Mutex<Inside>,
    changed: Condvar,
    /// What this connection holds is held within these, with all others.
    pub(super) budgets: Budgets,
}

#[derive(Default)]
struct Inside {
    /// Each with what it takes of the budget.
    lines: VecDeque<(Line, Option<Share>)>,
    bytes: usize,
    /// Answers of the reader that nobody had room for; they come before all lines, also when no more
    /// is wanted.
    answers: Option<(Vec<u8>, Option<Share>)>,
    /// What that takes of the budget which was popped last.
    held: Option<Share>,
    /// What was popped last is being carried out.
    working: bool,
    /// The reader has the turn.
    aside: bool,
    /// How many wait for a change: nobody else is told of it.
    waiting: usize,
    /// No more comes.
    ended: bool,
    /// No more is wanted.
    closed: bool,
    /// Nobody pops any more.
    left: bool,
}

impl Queue {
    /// An empty one of a connection that shares these with others.
    pub(super) fn of(budgets: Budgets) -> Self {
        Self { budgets, ..Self::default() }
    }

    /// Adds a line, and what it takes of the budget, where there is room, and waits until then. Returns
    /// false where no more is wanted.
    pub(super) fn push(&self, line: Line, share: Option<Share>) -> bool {
        let cost = cost(&line);
        let mut inside = self.inside();
        while !inside.closed && !inside.lines.is_empty() && inside.bytes + cost > LIMIT {
            inside = self.wait(inside);
        }
        if inside.closed {
            return false;
        }
        inside.bytes += cost;
        inside.lines.push_back((line, share));
        self.tell(&inside);
        true
    }

    /// The next line, when it is there; None where none comes, or no more is wanted and the reader has
    /// given back its turn. What was popped before counts as carried out.
    pub(super) fn pop(&self) -> Option<Line> {
        let mut inside = self.inside();
        inside.working = false;
        inside.held = None;
        loop {
            if let Some((answers, share)) = inside.answers.take() {
                inside.working = true;
                inside.held = share;
                return Some(Line::Answers(answers));
            }
            if inside.closed {
                if !inside.aside {
                    return None;
                }
            } else if let Some((line, share)) = inside.lines.pop_front() {
                inside.bytes -= cost(&line);
                inside.working = true;
                inside.held = share;
                self.tell(&inside);
                return Some(line);
            } else if inside.ended {
                return None;
            }
            inside = self.wait(inside);
        }
    }

    /// Whether so much waits that answers are better written together.
    pub(super) fn has_many(&self) -> bool {
        let inside = self.inside();
        !inside.closed && inside.lines.len() >= MANY
    }

    /// Takes the turn for the reader, which alone may ask, where nothing waits and nothing is being
    /// carried out; asked again, it keeps it. Whoever has it gives it back before it waits for more.
    pub(super) fn take_turn(&self) -> Turn {
        let mut inside = self.inside();
        if inside.closed {
            return Turn::Over;
        }
        if inside.working || inside.answers.is_some() || !inside.lines.is_empty() {
            return Turn::Theirs;
        }
        inside.aside = true;
        Turn::Mine
    }

    /// Gives the turn back, with answers that could not be written, if there are any, and what they take
    /// of the budget.
    pub(super) fn give_back(&self, answers: Vec<u8>, share: Option<Share>) {
        let mut inside = self.inside();
        inside.aside = false;
        if inside.left {
            return;
        }
        inside.answers = Some((answers, share)).filter(|(answers, _)| !answers.is_empty());
        if inside.answers.is_some() || inside.closed {
            self.tell(&inside);
        }
    }

    /// No more comes.
    pub(super) fn end(&self) {
        let mut inside = self.inside();
        inside.ended = true;
        self.tell(&inside);
    }

    /// No more is wanted: what waits is dropped.
    pub(super) fn close(&self) {
        let mut inside = self.inside();
        inside.closed = true;
        inside.lines = VecDeque::new();
        inside.bytes = 0;
        self.tell(&inside);
    }

    /// What was popped last takes nothing of the budget any more.
    pub(super) fn release(&self) {
        self.inside().held = None;
    }

    /// Nobody pops any more: nothing is held for it.
    pub(super) fn leave(&self) {
        self.close();
        let mut inside = self.inside();
        inside.left = true;
        (inside.held, inside.answers) = (None, None);
    }

    /// Wakes who waits, if anybody does: it costs a call of the system.
    fn tell(&self, inside: &Inside) {
        if inside.waiting > 0 {
            self.changed.notify_all();
        }
    }

    fn wait<'a>(&self, mut inside: MutexGuard<'a, Inside>) -> MutexGuard<'a, Inside> {
        inside.waiting += 1;
        let mut inside = self.changed.wait(inside).unwrap_or_else(PoisonError::into_inner);
        inside.waiting -= 1;
        inside
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn cost(line: &Line) -> usize {
    EACH + match line {
        Line::Whole(line) | Line::Answers(line) => line.len(),
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
        assert!(queue.push(of(2 * LIMIT), None));
        let (sent, received) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..4 {
                    assert!(queue.push(of(LIMIT / 2 - EACH), None));
                    sent.send(()).unwrap();
                }
                assert!(!queue.push(of(1), None), "what is closed takes nothing");
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
    fn who_is_gone_holds_nothing_of_the_budget() {
        let queue = Queue::default();
        let lines = &queue.budgets.lines;
        let share = || Some(lines.take(LIMIT));
        assert!(queue.push(of(1), share()) && queue.push(of(1), share()));
        assert_eq!(queue.pop(), Some(of(1)));
        assert_eq!(lines.now().0, 2 * LIMIT, "it is being carried out");
        queue.release();
        assert_eq!(lines.now().0, LIMIT);
        assert_eq!(queue.pop(), Some(of(1)));
        queue.give_back(b"a\n".to_vec(), share());
        assert_eq!(lines.now().0, 2 * LIMIT);
        queue.leave();
        assert_eq!(lines.now().0, 0);
        queue.give_back(b"a\n".to_vec(), share());
        assert_eq!(lines.now().0, 0);
    }

    #[test]
    fn what_waits_is_given_after_the_end() {
        let queue = Queue::default();
        assert!(queue.push(of(1), None) && queue.push(Line::TooLong, None));
        queue.end();
        assert_eq!(queue.pop(), Some(of(1)));
        assert_eq!(queue.pop(), Some(Line::TooLong));
        assert_eq!(queue.pop(), None);
    }

    #[test]
    fn the_reader_has_its_turn_where_nothing_is_to_be_done() {
        let queue = Queue::default();
        assert_eq!((queue.take_turn(), queue.take_turn()), (Turn::Mine, Turn::Mine));
        queue.give_back(Vec::new(), None);
        assert!(queue.push(of(1), None));
        assert_eq!(queue.take_turn(), Turn::Theirs, "it waits");
        assert_eq!(queue.pop(), Some(of(1)));
        assert_eq!(queue.take_turn(), Turn::Theirs, "it is being carried out");
        thread::scope(|scope| {
            let popping = scope.spawn(|| queue.pop());
            while queue.take_turn() != Turn::Mine {
                thread::yield_now();
            }
            queue.give_back(b"a\n".to_vec(), None);
            assert_eq!(popping.join().unwrap(), Some(Line::Answers(b"a\n".to_vec())));
        });
        assert_eq!(queue.take_turn(), Turn::Theirs, "they are being written");
        queue.close();
        assert_eq!(queue.take_turn(), Turn::Over);
    }

    #[test]
    fn who_pops_waits_for_what_the_reader_has_begun_though_no_more_is_wanted() {
        let queue = Queue::default();
        assert_eq!(queue.take_turn(), Turn::Mine);
        queue.close();
        thread::scope(|scope| {
            let popping = scope.spawn(|| (queue.pop(), queue.pop()));
            while queue.inside().waiting == 0 {
                thread::yield_now();
            }
            assert_eq!(queue.take_turn(), Turn::Over);
            queue.give_back(b"a\n".to_vec(), None);
            assert_eq!(popping.join().unwrap(), (Some(Line::Answers(b"a\n".to_vec())), None));
        });
    }
}
