//! What the thread that reads a connection does by itself: requests that are quickly done, while
//! nothing else of the connection is. Answers are gathered for as long as the next request is there,
//! and are never held back for long.

use std::io;
use std::mem;
use std::time::{Duration, Instant};

use super::budget::{Need, Share, need};
use super::outlet::Outlet;
use super::queue::{Queue, Turn};
use super::{Given, Service};
use crate::protocol::jsonrpc::{self, Method, RpcError};

/// So many bytes of answers are handed out though more are to come.
const ENOUGH: usize = 64 << 10;
/// So long an answer waits for those that are to come.
const LONG: Duration = Duration::from_millis(1);

/// Where a request is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// It was carried out.
    Done,
    /// It is for the queue.
    Queue,
    /// No more is wanted.
    Over,
}

/// Answers that are not written yet.
#[derive(Debug, Default)]
pub(super) struct Answers {
    lines: Vec<u8>,
    /// When the first of them came.
    since: Option<Instant>,
}

impl Answers {
    /// Adds what a request came to.
    pub(super) fn add(&mut self, id: u64, given: Result<&Given, &RpcError>) {
        self.lines.extend(jsonrpc::answer(Some(id), given).as_bytes());
        self.since.get_or_insert_with(Instant::now);
    }

    /// Whether they are to be written though more are to come.
    pub(super) fn are_due(&self) -> bool {
        self.lines.len() >= ENOUGH || self.since.is_some_and(|since| since.elapsed() >= LONG)
    }

    /// How long they are, in bytes.
    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Has them written, and forgets them.
    pub(super) fn give<R>(&mut self, write: impl FnOnce(&[u8]) -> R) -> R {
        let written = write(&self.lines);
        self.lines.clear();
        self.lines.shrink_to(2 * ENOUGH);
        self.since = None;
        written
    }
}

/// Carries out requests, and keeps their answers together.
pub(super) struct Desk<'a> {
    outlet: Outlet,
    queue: &'a Queue,
    service: &'a dyn Service,
    /// Told true before each call and false after it.
    within: &'a dyn Fn(bool),
    answers: Answers,
    /// What the answers take of the budget, if they are long.
    share: Option<Share>,
    /// Whether the turn was taken and not given back.
    mine: bool,
}

impl<'a> Desk<'a> {
    pub(super) fn new(
        outlet: Outlet,
        queue: &'a Queue,
        service: &'a dyn Service,
        within: &'a dyn Fn(bool),
    ) -> Self {
        Self {
            outlet,
            queue,
            service,
            within,
            answers: Answers::default(),
            share: None,
            mine: false,
        }
    }

    /// Carries out a request, if it is quickly done and it is the reader's turn.
    ///
    /// # Errors
    /// Nobody reads the answers any more.
    pub(super) fn take(&mut self, line: &[u8]) -> io::Result<Way> {
        match self.turn() {
            Turn::Mine => {}
            other => return self.without_turn(other),
        }
        let Some((id, method)) = quick(line) else {
            self.hand_out()?;
            return Ok(Way::Queue);
        };
        if !self.answers.is_empty() && may_wait(&method) {
            self.hand_out()?;
            match self.turn() {
                Turn::Mine => {}
                other => return self.without_turn(other),
            }
        }
        if let Need::Before(bytes) = need(&method) {
            self.share = self.queue.budgets.answers.try_take(bytes);
            if self.share.is_none() {
                // The other thread may wait for it: who reads is still to see an interrupt.
                self.hand_out()?;
                return Ok(Way::Queue);
            }
        }
        (self.within)(true);
        let given = self.service.call(method);
        self.answers.add(id, given.as_ref());
        (self.within)(false);
        drop(given);
        if let Some(share) = &mut self.share {
            share.keep(self.answers.len());
        }
        if self.answers.are_due() {
            self.hand_out()?;
        }
        Ok(Way::Done)
    }

    fn turn(&mut self) -> Turn {
        let turn = self.queue.take_turn();
        self.mine |= turn == Turn::Mine;
        turn
    }

    fn without_turn(&mut self, turn: Turn) -> io::Result<Way> {
        self.hand_out()?;
        Ok(if turn == Turn::Over { Way::Over } else { Way::Queue })
    }

    /// Writes the answers, and gives back the turn. What nobody has room for waits in the queue.
    ///
    /// # Errors
    /// Nobody reads the answers any more.
    pub(super) fn hand_out(&mut self) -> io::Result<()> {
        if !mem::take(&mut self.mine) {
            return Ok(());
        }
        let (outlet, queue, share) = (&self.outlet, self.queue, self.share.take());
        self.answers.give(|lines| {
            let offered = outlet.offer(lines);
            let rest = offered.as_ref().map_or(&[][..], |written| &lines[*written..]);
            queue.give_back(rest.to_vec(), share);
            offered.map(drop)
        })
    }
}

/// A request that takes no longer than its file does: everything that may run, wait or walk, and all
/// that is not plain to see, is for the other thread.
pub(super) fn quick(line: &[u8]) -> Option<(u64, Method)> {
    jsonrpc::quick(line).filter(|(_, method)| {
        matches!(
            method,
            Method::Ping | Method::ReadFile(_) | Method::WriteFile(_) | Method::ListDir(_)
        )
    })
}

/// Whether answers had better not wait for it: a write waits for the disk, and a folder can be large.
pub(super) fn may_wait(method: &Method) -> bool {
    matches!(method, Method::WriteFile(_) | Method::ListDir(_))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs::File;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixDatagram;
    use std::sync::{Arc, Mutex};
    use std::thread;

    use super::super::line::Line;
    use super::*;
    use crate::protocol::jsonrpc::{Pong, Written};

    const PING: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    const PONG: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"pong\":true}}\n";
    const EXEC: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"exec","params":{"cmd":"true"}}"#;
    const WRITE: &[u8] =
        br#"{"jsonrpc":"2.0","id":1,"method":"write_file","params":{"path":"a","content":""}}"#;

    struct Easy;

    impl Service for Easy {
        fn call(&self, method: Method) -> Result<Given, RpcError> {
            Ok(match method {
                Method::Ping => Given::Pong(Pong { pong: true }),
                _ => Given::Written(Written { success: true }),
            })
        }

        fn interrupt(&self, _: &str) {}
    }

    /// An outlet where each write is received for itself.
    fn outlet() -> (Outlet, UnixDatagram) {
        let (ours, theirs) = UnixDatagram::pair().unwrap();
        theirs.set_nonblocking(true).unwrap();
        (Outlet::Socket(Arc::new(File::from(OwnedFd::from(ours)))), theirs)
    }

    /// What was written until now, in one piece for each write.
    fn written(theirs: &UnixDatagram) -> Vec<String> {
        let mut bytes = vec![0; 1 << 18];
        let mut all = Vec::new();
        while let Ok(length) = theirs.recv(&mut bytes) {
            all.push(String::from_utf8(bytes[..length].to_vec()).unwrap());
        }
        all
    }

    #[test]
    fn answers_are_written_together_and_before_what_may_take_long() {
        let (queue, (outlet, theirs)) = (Queue::default(), outlet());
        let calls = Mutex::new(Vec::new());
        let within = |within| calls.lock().unwrap().push(within);
        let mut desk = Desk::new(outlet, &queue, &Easy, &within);
        let mut pings = 0;
        // Where the machine is slow they are due one by one.
        for _ in 0..200 {
            assert_eq!(desk.take(PING).unwrap(), Way::Done);
            pings += 1;
            if pings % 4 == 0 {
                desk.hand_out().unwrap();
                let all = written(&theirs);
                assert_eq!(all.concat(), PONG.repeat(4));
                if all.len() == 1 {
                    break;
                }
            }
        }
        assert!(pings < 200, "they are never together");
        assert_eq!(*calls.lock().unwrap(), [true, false].repeat(pings));
        assert_eq!(desk.take(PING).unwrap(), Way::Done);
        assert_eq!(desk.take(WRITE).unwrap(), Way::Done);
        assert_eq!(written(&theirs)[0], PONG);
        assert_eq!(desk.take(EXEC).unwrap(), Way::Queue);
        desk.hand_out().unwrap();
        assert!(desk.answers.is_empty());
    }

    #[test]
    fn while_the_queue_is_at_work_all_goes_there() {
        let (queue, (outlet, theirs)) = (Queue::default(), outlet());
        let mut desk = Desk::new(outlet, &queue, &Easy, &|_| ());
        assert!(queue.push(Line::Whole(EXEC.to_vec()), None));
        assert_eq!(desk.take(PING).unwrap(), Way::Queue);
        assert!(queue.pop().is_some());
        assert_eq!(desk.take(PING).unwrap(), Way::Queue);
        queue.close();
        assert_eq!(desk.take(PING).unwrap(), Way::Over);
        assert_eq!(written(&theirs), [""; 0]);
    }

    #[test]
    fn what_nobody_has_room_for_is_written_by_whoever_can_wait() {
        let (queue, (outlet, theirs)) = (Queue::default(), outlet());
        let mut desk = Desk::new(outlet, &queue, &Easy, &|_| ());
        let mut taken = 0;
        while desk.take(PING).unwrap() == Way::Done {
            desk.hand_out().unwrap();
            taken += 1;
            assert!(taken < 100_000, "nobody takes so many");
        }
        thread::scope(|scope| {
            // What is left over comes first, also where no more is wanted.
            queue.close();
            let popped = scope.spawn(|| queue.pop()).join().unwrap();
            assert_eq!(popped, Some(Line::Answers(PONG.into())));
        });
        assert_eq!(written(&theirs).len(), taken - 1);
        drop(theirs);
        assert_eq!(desk.take(PING).unwrap(), Way::Over);
    }
}
