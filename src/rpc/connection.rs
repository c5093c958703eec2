//! One connection, on one thread: it reads requests, carries them out in order and writes the answers.
//! What may take long runs on a thread of its own meanwhile, so that an interrupt can overtake it.
//!
//! Answers are gathered for as long as the next request is there, and are never held back for long.
//! While nobody reads them, or something runs, requests are read ahead.

use std::fs::File;
use std::io::{self, PipeReader};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::Given;
use super::budget::{Pace, Share, cost};
use super::lines::{Line, Lines};
use super::server::Server;
use super::writer::Writer;
use crate::protocol::jsonrpc::{self, LINE_LIMIT, Method, RpcError, connected, connects_to};

/// How many bytes of answers are written though more are to come.
const ENOUGH: usize = 64 << 10;
/// How long an answer waits for those that are to come.
const LONG: Duration = Duration::from_millis(1);
/// An interrupt that overtakes is no longer, in bytes; a longer one comes in its order.
const INTERRUPT_LIMIT: usize = 4096;

/// What a line asks for.
enum Asked {
    /// `CONNECT` and a port, as the first line.
    Port(u32),
    /// It is no request.
    Invalid(Option<u64>, RpcError),
    /// A method; without an ID it is a notification.
    Call(Option<u64>, Result<Method, RpcError>),
}

impl Asked {
    /// Reads a line; None where it asks for nothing.
    fn read(line: Line<'_>, is_first: bool) -> Option<Self> {
        let line = match line {
            Line::Whole(line) => line,
            Line::TooLong => {
                let told = format!(
                    "invalid request: the line is longer than {LINE_LIMIT} bytes (32 MiB), and nothing of it was kept"
                );
                return Some(Self::Invalid(None, RpcError::new(RpcError::REQUEST, told)));
            }
        };
        if let Some(port) = is_first.then(|| connects_to(line)).flatten() {
            return Some(Self::Port(port));
        }
        if jsonrpc::is_blank(line) {
            return None;
        }
        Some(match jsonrpc::read(line) {
            Ok(request) => Self::Call(request.id, Method::of(request)),
            Err(invalid) => Self::Invalid(invalid.id, invalid.fault),
        })
    }

    /// How it is carried out, and how many bytes its answer may take.
    fn cost(&self) -> (Pace, usize) {
        match self {
            Self::Call(_, Ok(method)) => cost(method),
            Self::Port(_) | Self::Invalid(..) | Self::Call(_, Err(_)) => (Pace::Quick, 0),
        }
    }

    /// Carries it out; None where nobody is to be answered.
    fn carry_out(self, server: &Server) -> Option<Answer> {
        match self {
            Self::Port(port) => Some(Answer::Connected(port)),
            Self::Invalid(id, fault) => Some(Answer::Given(id, Err(fault))),
            Self::Call(id, method) => {
                let given = method.and_then(|method| server.call(method));
                id.map(|id| Answer::Given(Some(id), given))
            }
        }
    }
}

/// What is answered.
enum Answer {
    Connected(u32),
    Given(Option<u64>, Result<Given, RpcError>),
}

/// Answers that are not written yet.
#[derive(Default)]
struct Answers {
    bytes: Vec<u8>,
    /// How many of the bytes are written.
    written: usize,
    /// When the first of them came.
    since: Option<Instant>,
    /// What they take of the pool, if they are long.
    share: Option<Share>,
}

impl Answers {
    fn is_empty(&self) -> bool {
        self.written == self.bytes.len()
    }

    fn add(&mut self, answer: Answer) {
        let line = match &answer {
            Answer::Connected(port) => connected(*port),
            Answer::Given(id, given) => jsonrpc::answer(*id, given.as_ref()),
        };
        drop(answer);
        self.bytes.extend(line.into_bytes());
        self.since.get_or_insert_with(Instant::now);
    }

    /// Whether they are to be written though more are to come.
    fn are_due(&self) -> bool {
        self.bytes.len() >= ENOUGH || self.since.is_some_and(|since| since.elapsed() >= LONG)
    }
}

/// A request that is being carried out on a thread of its own.
struct Running {
    thread: JoinHandle<Answers>,
    /// Closed when it is done.
    done: PipeReader,
}

impl Running {
    fn start(server: &Arc<Server>, asked: Asked, line: Option<Share>) -> io::Result<Self> {
        let (done, open) = io::pipe()?;
        let server = Arc::clone(server);
        let work = move || {
            let (_open, mut answers, (pace, size)) = (open, Answers::default(), asked.cost());
            // Its line may be held meanwhile: lines come before answers.
            let reserve = || server.budgets.answers.take(size);
            let reserved = (pace != Pace::Command).then(reserve);
            let answer = asked.carry_out(&server);
            drop(line);
            if let Some(answer) = answer {
                let mut share = reserved.unwrap_or_else(reserve);
                answers.add(answer);
                share.keep(answers.bytes.len());
                answers.share = Some(share);
            }
            answers
        };
        let thread = Builder::new().name("rpc call".to_owned()).spawn(work)?;
        Ok(Self { thread, done })
    }
}

/// A connection.
pub(super) struct Connection {
    server: Arc<Server>,
    input: Arc<File>,
    writer: Writer,
    lines: Lines,
    /// A request that cannot be begun yet, and what its line takes of the pool.
    next: Option<(Asked, Option<Share>)>,
    is_first: bool,
    running: Option<Running>,
    answers: Answers,
}

impl Connection {
    pub(super) fn new(server: Arc<Server>, input: Arc<File>, output: Arc<File>) -> Self {
        Self {
            lines: Lines::new(LINE_LIMIT, &server.budgets.lines),
            server,
            input,
            writer: Writer::new(output),
            next: None,
            is_first: true,
            running: None,
            answers: Answers::default(),
        }
    }

    /// Serves until the end of the input, until whoever connected is gone, or until the server stops.
    /// What was begun is carried to its end.
    pub(super) fn serve(mut self) {
        loop {
            let mut served = self.serve_what_is_there();
            let stops = self.server.stop.is_asked();
            if stops {
                (self.next, served) = (None, served.and(self.write()));
                self.lines.close();
            }
            if served.is_err() {
                self.leave();
            }
            let is_idle = self.is_idle();
            if is_idle && self.lines.has_ended() {
                return;
            }
            if self.wait(is_idle, stops).is_err() {
                self.leave();
            }
        }
    }

    /// Nobody is there to be answered.
    fn leave(&mut self) {
        self.lines.close();
        (self.next, self.answers) = (None, Answers::default());
    }

    /// Whether nothing is to be done before more is read.
    fn is_idle(&self) -> bool {
        self.running.is_none() && self.next.is_none() && self.answers.is_empty()
    }

    /// Carries out what can be carried out now, and writes the answers as far as there is room.
    fn serve_what_is_there(&mut self) -> io::Result<()> {
        self.write()?;
        while self.running.is_none() && !self.server.stop.is_asked() {
            let Some((asked, line)) = self.next.take().or_else(|| self.read_next()) else { break };
            if let Some(waiting) = self.begin(asked, line)? {
                self.next = Some(waiting);
                self.write()?;
                // Otherwise nothing would end the wait for it.
                if !self.answers.is_empty() {
                    return Ok(());
                }
            }
        }
        self.write()
    }

    fn read_next(&mut self) -> Option<(Asked, Option<Share>)> {
        loop {
            let is_first = self.is_first;
            let (asked, share) = self.lines.next(|line| Asked::read(line, is_first))?;
            self.is_first = false;
            if let Some(asked) = asked {
                return Some((asked, share));
            }
        }
    }

    /// Carries out a request, or begins to; gives it back where that has to wait until the answers before
    /// it are written.
    fn begin(
        &mut self,
        asked: Asked,
        line: Option<Share>,
    ) -> io::Result<Option<(Asked, Option<Share>)>> {
        let (pace, size) = asked.cost();
        if pace != Pace::Quick || self.answers.are_due() {
            self.write()?;
            if !self.answers.is_empty() {
                return Ok(Some((asked, line)));
            }
        }
        if matches!(pace, Pace::Long | Pace::Command) {
            let id = if let Asked::Call(id, _) = &asked { *id } else { None };
            match Running::start(&self.server, asked, line) {
                Ok(running) => self.running = Some(running),
                Err(e) => {
                    let fault = RpcError::internal(format!("no thread can be had for it: {e}"));
                    self.answers.add(Answer::Given(id, Err(fault)));
                }
            }
            self.lines.rescan();
            self.forward_interrupts();
            return Ok(None);
        }
        if size > 0 {
            // What few bytes there are yet need none.
            self.answers.share = None;
            self.answers.share = self.server.budgets.answers.try_take(size);
            if self.answers.share.is_none() {
                // Whoever waits for it holds nothing that others wait for.
                self.write()?;
                if !self.answers.is_empty() {
                    return Ok(Some((asked, line)));
                }
                self.answers.share = Some(self.server.budgets.answers.take(size));
            }
        }
        if let Some(answer) = asked.carry_out(&self.server) {
            self.answers.add(answer);
        }
        let length = self.answers.bytes.len();
        if let Some(share) = self.answers.share.as_mut().filter(|_| size > 0) {
            share.keep(length);
        }
        Ok(None)
    }

    /// Writes the answers as far as there is room for them.
    fn write(&mut self) -> io::Result<()> {
        let answers = &mut self.answers;
        answers.written += self.writer.write(&answers.bytes[answers.written..])?;
        if answers.is_empty() {
            answers.bytes.clear();
            answers.bytes.shrink_to(2 * ENOUGH);
            (answers.written, answers.since, answers.share) = (0, None, None);
        }
        Ok(())
    }

    /// Waits until something can be done, and reads what came. `stops`: what is to be done when the server
    /// stops was done; otherwise its stop wakes.
    fn wait(&mut self, is_idle: bool, stops: bool) -> io::Result<()> {
        let (reads, running) = (self.lines.has_room(is_idle), self.running.as_ref());
        let wanted = [
            reads.then(|| PollFd::new(&self.input, PollFlags::IN)),
            (!self.answers.is_empty()).then(|| PollFd::new(&self.writer, PollFlags::OUT)),
            (!stops).then(|| PollFd::new(&self.server.stopping, PollFlags::IN)),
            running.map(|running| PollFd::new(&running.done, PollFlags::IN)),
        ];
        let mut all: Vec<PollFd<'_>> = wanted.into_iter().flatten().collect();
        match poll(&mut all, None) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(()),
            Err(e) => return Err(e.into()),
        }
        let has_come = reads && !all[0].revents().is_empty();
        let is_done = running.is_some() && all.last().is_some_and(|fd| !fd.revents().is_empty());
        if has_come {
            self.lines.fill(&self.input)?;
            self.forward_interrupts();
        }
        if is_done && let Some(running) = self.running.take() {
            let died = |_| io::Error::other("the thread of a request died");
            self.answers = running.thread.join().map_err(died)?;
        }
        Ok(())
    }

    /// Lets the interrupts overtake that came while something runs.
    fn forward_interrupts(&mut self) {
        if self.running.is_none() {
            return;
        }
        for line in self.lines.unscanned() {
            if line.len() <= INTERRUPT_LIMIT && memchr::memmem::find(line, b"interrupt").is_some() {
                let asked = Asked::read(Line::Whole(line), false);
                if let Some(Asked::Call(None, Ok(Method::Interrupt(key)))) = asked {
                    self.server.interrupt(&key.key);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
