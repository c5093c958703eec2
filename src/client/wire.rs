//! Lines there and back: a thread that writes and one that reads, so that neither side can hold the
//! other up and every wait has an end.

use std::convert::Infallible;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

/// So much is written at once, in bytes.
const PIECE: usize = 64 << 10;
/// With so many bytes not written yet, nothing more is taken.
const WAITING_LIMIT: usize = 1 << 20;

/// What comes from the other side.
pub(super) enum Event {
    /// A line, without its end.
    Line(Vec<u8>),
    /// A line that is longer than they may be.
    Long,
    /// No more, after the beginning of a line.
    Ended(Vec<u8>),
    /// It cannot be read from.
    Unread(io::Error),
    /// It cannot be written to; what it wrote before may still come.
    Unwritten(io::Error),
}

/// How far a line has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// Its last piece was not begun, and never will be: nobody can have read all of it.
    Never,
    /// Its last piece was begun.
    Begun,
    /// All was written.
    Written,
}

/// A line that is to be written, with its end.
pub(super) struct Line {
    bytes: Vec<u8>,
    state: AtomicU8,
}

const QUEUED: u8 = 0;
const BEGUN: u8 = 1;
const WRITTEN: u8 = 2;
const STOPPED: u8 = 3;

impl Line {
    /// Sees to it that a line whose last piece was not begun never will be whole. After
    /// [`Progress::Never`] the wire is of no more use: half a line may stand on it.
    pub(super) fn withdraw(&self) -> Progress {
        match self.step(QUEUED, STOPPED) {
            Ok(_) | Err(STOPPED) => Progress::Never,
            Err(WRITTEN) => Progress::Written,
            Err(_) => Progress::Begun,
        }
    }

    fn step(&self, from: u8, to: u8) -> Result<u8, u8> {
        self.state.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst)
    }

    fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let last = self.bytes.len().saturating_sub(1) / PIECE * PIECE;
        let (pieces, mut rest) = self.bytes.split_at(last);
        for piece in pieces.chunks(PIECE) {
            to.write_all(piece)?;
        }
        if self.step(QUEUED, BEGUN).is_err() {
            return Err(io::Error::other("it was withdrawn"));
        }
        let whole = rest.len();
        while !rest.is_empty() {
            match to.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => rest = &rest[n..],
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => {
                    if rest.len() == whole {
                        self.state.store(STOPPED, Ordering::SeqCst);
                    }
                    return Err(e);
                }
            }
        }
        self.state.store(WRITTEN, Ordering::SeqCst);
        to.flush()
    }
}

/// Both directions. Dropped, what was handed over is still written, and then the stream closed.
pub(super) struct Wire {
    lines: Sender<Arc<Line>>,
    events: Receiver<Event>,
    /// How many bytes were handed over and are not written.
    waiting: Arc<AtomicUsize>,
    /// Nothing comes; it closes when nothing more is written.
    done: Receiver<Infallible>,
}

impl Wire {
    /// Begins to read lines of at most `limit` bytes, and is ready to write.
    pub(super) fn new(
        from: impl Read + Send + 'static,
        to: impl Write + Send + 'static,
        limit: usize,
    ) -> io::Result<Self> {
        // One, so that nobody fills our memory with what was not asked for.
        let (sender, events) = mpsc::sync_channel(1);
        let (lines, queue) = mpsc::channel();
        let (running, done) = mpsc::channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let (left, unwritten) = (Arc::clone(&waiting), sender.clone());
        let write = move || {
            write_lines(&queue, to, &left, &unwritten);
            drop::<Sender<Infallible>>(running);
        };
        let read = move || read_lines(from, limit, &sender);
        thread::Builder::new().name("client-out".to_owned()).spawn(write)?;
        thread::Builder::new().name("client-in".to_owned()).spawn(read)?;
        Ok(Self { lines, events, waiting, done })
    }

    /// Has a line written, without waiting for it; None where the other side reads no more.
    pub(super) fn hand(&self, line: String) -> Option<Arc<Line>> {
        if self.waiting.load(Ordering::SeqCst) > WAITING_LIMIT {
            return None;
        }
        let line = Arc::new(Line { bytes: line.into_bytes(), state: AtomicU8::new(QUEUED) });
        self.waiting.fetch_add(line.bytes.len(), Ordering::SeqCst);
        self.lines.send(Arc::clone(&line)).ok()?;
        Some(line)
    }

    /// What comes next, within that time.
    pub(super) fn next(&self, patience: Duration) -> Result<Event, RecvTimeoutError> {
        self.events.recv_timeout(patience)
    }

    /// Closes both directions once all is written, which is waited for until then and no longer.
    pub(super) fn close(self, until: Instant) {
        let Self { lines, events, done, .. } = self;
        // Who cannot get rid of what it writes may not read either.
        drop((lines, events));
        let _ = done.recv_timeout(until.saturating_duration_since(Instant::now()));
    }
}

fn write_lines(
    queue: &Receiver<Arc<Line>>,
    mut to: impl Write,
    waiting: &AtomicUsize,
    unwritten: &SyncSender<Event>,
) {
    for line in queue {
        if let Err(e) = line.write(&mut to) {
            drop(to);
            let _ = unwritten.send(Event::Unwritten(e));
            return;
        }
        waiting.fetch_sub(line.bytes.len(), Ordering::SeqCst);
    }
}

fn read_lines(from: impl Read, limit: usize, events: &SyncSender<Event>) {
    let mut from = BufReader::with_capacity(PIECE, from);
    loop {
        let event = match read_line(&mut from, limit) {
            Ok(event) => event,
            Err(e) => Event::Unread(e),
        };
        let more = matches!(event, Event::Line(_));
        if events.send(event).is_err() || !more {
            return;
        }
    }
}

fn read_line(from: &mut impl BufRead, limit: usize) -> io::Result<Event> {
    let mut line = Vec::new();
    loop {
        let buffer = match from.fill_buf() {
            Ok(buffer) => buffer,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        if buffer.is_empty() {
            return Ok(Event::Ended(line));
        }
        let end = memchr::memchr(b'\n', buffer);
        let taken = end.unwrap_or(buffer.len());
        if line.len() + taken > limit {
            return Ok(Event::Long);
        }
        line.extend_from_slice(&buffer[..taken]);
        from.consume(taken + usize::from(end.is_some()));
        if end.is_some() {
            return Ok(Event::Line(line));
        }
    }
}
