//! One connection, on one thread. Requests are carried out in order, and several answers may be written together.
//! A request that may take long runs on its own thread, so that an `interrupt` can be read meanwhile. An `interrupt`
//! notification takes effect as soon as it is read, and once more in its turn.

use std::fs::File;
use std::io::{self, Write};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FileType, fstat};
use rustix::io::{Errno, ioctl_fionbio};

use super::Given;
use super::budget::{Share, UNPOOLED_LIMIT, answer_reserve};
use super::server::{Server, spawn};
use crate::client::lines::{CHUNK, LineBuffer};
use crate::protocol::jsonrpc::{self, LINE_LIMIT, Method, RpcError, connected, connects_to};

/// How many bytes are read ahead. More are read only for a long line that is next.
const AHEAD: usize = 4 << 20;
/// The maximum length, in bytes, of an interrupt that overtakes other requests. A longer one is handled in order.
const INTERRUPT_LIMIT: usize = 4096;

/// Serves a connection until its input ends, the client disconnects or the server stops. A request in progress is
/// completed.
pub(super) fn serve(
    server: &Arc<Server>,
    open: Share,
    input: Arc<File>,
    output: Arc<File>,
) -> io::Result<()> {
    for file in [&input, &output] {
        // Other programs that share a terminal or a file would not expect it to become non-blocking.
        if let FileType::Fifo | FileType::Socket = FileType::from_raw_mode(fstat(file)?.st_mode) {
            ioctl_fionbio(file, true)?;
        }
    }
    let server = Arc::clone(server);
    spawn("connection", move || {
        let _open = open;
        let (incoming, answers) = (LineBuffer::default(), Vec::new());
        let mut connection =
            Connection { server: &server, input, output, incoming, long_line: None, answers };
        // An error means that the client is gone, so nobody could be told.
        let _ = connection.serve();
    })
}

struct Connection<'a> {
    server: &'a Server,
    input: Arc<File>,
    output: Arc<File>,
    incoming: LineBuffer,
    /// The memory share of a long line while it is being read.
    long_line: Option<Share>,
    /// Answers that are not written yet.
    answers: Vec<u8>,
}

/// How a line is handled.
enum LineRequest {
    Nothing,
    /// Answered at once, without carrying out anything.
    Answered(String),
    Call(Option<u64>, Method),
}

impl Connection<'_> {
    fn serve(&mut self) -> io::Result<()> {
        let mut is_first = true;
        while let Some((share, is_too_long)) = self.await_line()? {
            let line = self.incoming.take_line().unwrap_or_else(|| self.incoming.take_rest());
            match parse_line((!is_too_long).then_some(line), is_first) {
                LineRequest::Nothing => {}
                LineRequest::Answered(answer) => self.answers.extend(answer.into_bytes()),
                LineRequest::Call(id, method) => self.call(id, method, share)?,
            }
            if self.answers.len() >= CHUNK {
                self.write()?;
            }
            is_first = false;
        }
        self.write()
    }

    /// Waits for a line. Returns its memory share, and whether it was too long and therefore discarded; None when no
    /// more lines are carried out.
    fn await_line(&mut self) -> io::Result<Option<(Share, bool)>> {
        let (server, mut is_too_long) = (self.server, false);
        loop {
            let length = self.incoming.first_length();
            if length > UNPOOLED_LIMIT && self.long_line.is_none() {
                self.write()?;
                // Reserve the maximum now, while this connection has no other share, which prevents a deadlock.
                self.long_line = Some(server.lines.take(LINE_LIMIT));
            }
            if length > LINE_LIMIT {
                // Release the share now, because the rest of the line may arrive slowly.
                self.long_line = Some(server.lines.take(0));
                self.incoming.drop_first();
                is_too_long = true;
            }
            let has_line = self.incoming.has_line() || self.incoming.has_ended;
            let is_over = has_line && self.incoming.length() == 0 && !is_too_long;
            // At a stop, the last line may be incomplete.
            if is_over || server.stop.is_asked() {
                return Ok(None);
            }
            if has_line {
                let mut share = self.long_line.take().unwrap_or_else(|| server.lines.take(0));
                share.resize_for(self.incoming.first_length());
                return Ok(Some((share, is_too_long)));
            }
            // Answers are collected only while the next request is already here. It may arrive during the write.
            if self.answers.is_empty() {
                self.wait(PollFd::new(&server.stopping, PollFlags::IN))?;
            } else {
                self.write()?;
            }
        }
    }

    /// Carries out a request, and answers it if it has an id.
    fn call(&mut self, id: Option<u64>, method: Method, held: Share) -> io::Result<()> {
        let pool = &self.server.answers;
        let (before, after) = answer_reserve(&method);
        // Write earlier answers first if this request may take long or must wait for memory.
        if pool.count() > 0 || !matches!(method, Method::Ping {} | Method::ReadFile { .. }) {
            self.write()?;
        }
        let mut share = pool.take(before);
        let given = match method {
            Method::Exec { .. } | Method::ExecCode { .. } | Method::Step(_) | Method::Find(_) => {
                self.call_in_worker(method)
            }
            _ => self.server.call(method),
        };
        // Release the line's share first: no connection waits for an answer's share while it has a line's.
        drop(held);
        if id.is_none() {
            return Ok(());
        }
        if after > before {
            share = pool.take(after);
        }
        let answer = jsonrpc::answer(id, given.as_ref());
        drop(given);
        share.resize_for(answer.len());
        if share.count > 0 {
            self.write()?;
        }
        self.answers.extend(answer.into_bytes());
        if share.count > 0 { self.write() } else { Ok(()) }
    }

    /// Carries out a request on its own thread, and reads ahead meanwhile.
    fn call_in_worker(&mut self, method: Method) -> Result<Given, RpcError> {
        let server = self.server;
        let called = thread::scope(|scope| {
            let (has_ended, mut ended) = io::pipe()?;
            let work = move || {
                let given = server.call(method);
                let _ = ended.write_all(&[0]);
                given
            };
            let worker = thread::Builder::new().name("rpc call".to_owned());
            let worker = worker.spawn_scoped(scope, work)?;
            // A client that is gone is noticed when the answer is written.
            while !self.wait(PollFd::new(&has_ended, PollFlags::IN)).unwrap_or(true) {}
            Ok(worker.join().unwrap_or_else(|panic| resume_unwind(panic)))
        });
        called.unwrap_or_else(|e: io::Error| {
            Err(RpcError::internal(format!("nothing was done: {e}")))
        })
    }

    /// Writes the answers, and reads ahead meanwhile.
    fn write(&mut self) -> io::Result<()> {
        let (answers, output) = (std::mem::take(&mut self.answers), Arc::clone(&self.output));
        let mut rest = answers.as_slice();
        while !rest.is_empty() {
            match rustix::io::write(&output, rest) {
                Ok(written) => rest = &rest[written..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => drop(self.wait(PollFd::new(&output, PollFlags::OUT))?),
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }

    /// Waits until `awaited` is ready or input has arrived, and reads the input. Returns whether `awaited` is ready.
    fn wait(&mut self, awaited: PollFd) -> io::Result<bool> {
        let Self { incoming, input, .. } = self;
        let has_room =
            !incoming.has_ended && (incoming.length() < AHEAD || self.long_line.is_some());
        let mut polled = vec![awaited];
        polled.extend(has_room.then(|| PollFd::new(&**input, PollFlags::IN)));
        match poll(&mut polled, None) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(false),
            Err(e) => return Err(e.into()),
        }
        let is_ready = |polled: &PollFd| !polled.revents().is_empty();
        let (is_awaited, has_more) = (is_ready(&polled[0]), polled.get(1).is_some_and(is_ready));
        if has_more {
            interrupts(incoming.read(input)?).for_each(|key| self.server.interrupt(&key));
        }
        Ok(is_awaited)
    }
}

/// The keys of the `interrupt` notifications among the lines. Notifications are not answered.
fn interrupts(lines: &[u8]) -> impl Iterator<Item = String> {
    let lines = if memchr::memmem::find(lines, b"interrupt").is_some() { lines } else { &[] };
    lines.split(|byte| *byte == b'\n').filter_map(|line| {
        if line.len() > INTERRUPT_LIMIT || memchr::memmem::find(line, b"interrupt").is_none() {
            return None;
        }
        let request = jsonrpc::read(line).ok().filter(|request| request.id.is_none())?;
        match Method::of(request) {
            Ok(Method::Interrupt(key)) => Some(key.key),
            _ => None,
        }
    })
}

/// Parses a line; None stands for a line that is too long.
fn parse_line(line: Option<Vec<u8>>, is_first: bool) -> LineRequest {
    let refuse =
        |id, fault: &RpcError| LineRequest::Answered(jsonrpc::answer::<Given>(id, Err(fault)));
    let Some(line) = line else {
        let told = format!(
            "invalid request: the line is longer than {LINE_LIMIT} bytes (32 MiB), and nothing of it was kept"
        );
        return refuse(None, &RpcError::new(RpcError::REQUEST, told));
    };
    if is_first && let Some(port) = connects_to(&line) {
        return LineRequest::Answered(connected(port));
    }
    if jsonrpc::is_blank(&line) {
        return LineRequest::Nothing;
    }
    let request = match jsonrpc::read(&line) {
        Ok(request) => request,
        Err(invalid) => return refuse(invalid.id, &invalid.fault),
    };
    drop(line);
    let id = request.id;
    match Method::of(request) {
        Ok(method) => LineRequest::Call(id, method),
        Err(fault) if id.is_some() => refuse(id, &fault),
        Err(_) => LineRequest::Nothing,
    }
}

#[cfg(test)]
mod tests;
