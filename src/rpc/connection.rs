//! One connection, on two threads: one reads requests ahead, the other carries them out in order and writes
//! the answers. An `interrupt` that is a notification overtakes: it is carried out as soon as it is read, and
//! again in its turn.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::Shutdown;

use super::Given;
use super::budget::{Pool, Share, room};
use super::lines::{AHEAD, Line, Lines};
use super::server::{Server, spawn};
use crate::protocol::jsonrpc::{self, LINE_LIMIT, Method, RpcError, connected, connects_to};

/// How much is read at once, in bytes.
const CHUNK: usize = 64 << 10;
/// An interrupt that overtakes is no longer, in bytes; a longer one comes in its order.
const INTERRUPT_LIMIT: usize = 4096;

/// Serves a connection until the end of its input, until whoever connected is gone, or until the server stops.
/// What was begun is carried to its end.
pub(super) fn serve(
    server: &Arc<Server>,
    open: Share,
    input: Arc<File>,
    output: Arc<File>,
) -> io::Result<()> {
    let (sender, lines) = channel();
    let (serving, open) = (Arc::clone(server), Arc::new(open));
    // The socket is open for as long as one of the threads has it.
    let reads = Arc::ptr_eq(&input, &output).then(|| Arc::clone(&open));
    spawn("connection", move || {
        let (_open, _hang_up) = (open, HangUp(&output));
        let mut carrier = Carrier { server: &serving, output: &output, answers: Vec::new() };
        // Whoever is gone reads nothing.
        let _ = carrier.carry_out_all(&lines);
    })?;
    let server = Arc::clone(server);
    spawn("reader", move || {
        let _reads = reads;
        let input = BufReader::with_capacity(CHUNK, Input { file: &input, server: &server });
        let (pool, ahead) = (server.lines.clone(), Pool::new(AHEAD));
        let mut lines = Lines { input, limit: LINE_LIMIT, pool, ahead };
        while let Ok(Some(line)) = lines.next() {
            if let Some(key) = line.bytes.as_deref().and_then(interrupts) {
                server.interrupt(&key);
            }
            if sender.send(line).is_err() {
                break;
            }
        }
    })
}

/// Ends a connection with whoever carries out its requests: nobody is to be read who gets no answer.
struct HangUp<'a>(&'a File);

impl Drop for HangUp<'_> {
    fn drop(&mut self) {
        let _ = rustix::net::shutdown(self.0, Shutdown::Both);
    }
}

/// What a client sends, until the server stops.
struct Input<'a> {
    file: &'a File,
    server: &'a Server,
}

impl Read for Input<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut both = [
                PollFd::new(self.file, PollFlags::IN),
                PollFd::new(&self.server.stopping, PollFlags::IN),
            ];
            match poll(&mut both, None) {
                Ok(_) if !both[1].revents().is_empty() => return Ok(0),
                Ok(_) => match rustix::io::read(self.file, &mut *bytes) {
                    Err(Errno::INTR | Errno::AGAIN) => {}
                    read => return Ok(read?),
                },
                Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
    }
}

/// The key of a line that interrupts, and is not answered.
fn interrupts(line: &[u8]) -> Option<String> {
    if line.len() > INTERRUPT_LIMIT || memchr::memmem::find(line, b"interrupt").is_none() {
        return None;
    }
    let request = jsonrpc::read(line).ok().filter(|request| request.id.is_none())?;
    match Method::of(request) {
        Ok(Method::Interrupt(key)) => Some(key.key),
        _ => None,
    }
}

/// Carries out what the lines of a connection ask for.
struct Carrier<'a> {
    server: &'a Server,
    output: &'a File,
    /// Answers that are not written yet.
    answers: Vec<u8>,
}

impl Carrier<'_> {
    fn carry_out_all(&mut self, lines: &Receiver<Line>) -> io::Result<()> {
        let mut is_first = true;
        loop {
            // Answers wait for one another only while the next request is there already.
            let next = lines.try_recv().ok();
            if next.is_none() {
                self.write()?;
            }
            let Some(Line { bytes, share, ahead }) = next.or_else(|| lines.recv().ok()) else {
                break;
            };
            // The last line may have been cut off then.
            if self.server.stop.is_asked() {
                break;
            }
            match self.carry_out(bytes, share, is_first)? {
                Some((answer, share)) if share.count > 0 => {
                    self.write()?;
                    write_all(self.output, answer.as_bytes())?;
                }
                Some((answer, _)) => self.answers.extend(answer.into_bytes()),
                None => {}
            }
            if self.answers.len() >= CHUNK {
                self.write()?;
            }
            is_first = false;
            drop(ahead);
        }
        self.write()
    }

    /// Carries out what a line asks for. Returns what is answered, if anything is, with its share of the memory.
    fn carry_out(
        &mut self,
        line: Option<Vec<u8>>,
        held: Option<Share>,
        is_first: bool,
    ) -> io::Result<Option<(String, Share)>> {
        let pool = &self.server.answers;
        let free = |answer| Ok(Some((answer, pool.take(0))));
        let refuse = |id, fault: &RpcError| free(jsonrpc::answer::<Given>(id, Err(fault)));
        let Some(line) = line else {
            let told = format!(
                "invalid request: the line is longer than {LINE_LIMIT} bytes (32 MiB), and nothing of it was kept"
            );
            return refuse(None, &RpcError::new(RpcError::REQUEST, told));
        };
        if is_first && let Some(port) = connects_to(&line) {
            return free(connected(port));
        }
        if jsonrpc::is_blank(&line) {
            return Ok(None);
        }
        let request = match jsonrpc::read(&line) {
            Ok(request) => request,
            Err(invalid) => return refuse(invalid.id, &invalid.fault),
        };
        drop(line);
        let id = request.id;
        let method = match Method::of(request) {
            Ok(method) => method,
            Err(fault) => return if id.is_some() { refuse(id, &fault) } else { Ok(None) },
        };
        let (before, after) = room(&method);
        // No answer waits for what may take long, or for room.
        if pool.count() > 0 || !matches!(method, Method::Ping {} | Method::ReadFile { .. }) {
            self.write()?;
        }
        let mut share = pool.take(before);
        let given = self.server.call(method);
        // Lines come before answers: whoever waits for room for what a command came to holds none.
        drop(held);
        if id.is_none() {
            return Ok(None);
        }
        if after > before {
            share = pool.take(after);
        }
        let answer = jsonrpc::answer(id, given.as_ref());
        drop(given);
        share.keep_for(answer.len());
        Ok(Some((answer, share)))
    }

    fn write(&mut self) -> io::Result<()> {
        write_all(self.output, &self.answers)?;
        self.answers.clear();
        self.answers.shrink_to(CHUNK);
        Ok(())
    }
}

/// Writes all, whether or not somebody has made the other side of this one that does not wait.
fn write_all(output: &File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(output, bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => drop(poll(&mut [PollFd::new(output, PollFlags::OUT)], None)),
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
