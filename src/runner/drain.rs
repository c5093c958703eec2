//! What a command writes, drained as it comes on a thread for each stream: a pipe that nobody reads
//! would hold the command up.

use std::convert::Infallible;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::ops::DerefMut;
#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use super::glimpse::Glimpse;
use super::output::{Bounded, Unit};
use crate::protocol::jsonrpc::STREAM_LIMIT;
use crate::protocol::{Capture, Output, Streams};

/// How many bytes are kept of each of two streams.
const APART_LIMIT: usize = STREAM_LIMIT;
/// More than one pipe buffer of the usual 64 KiB spares switches between writer and reader.
#[cfg(target_os = "linux")]
const PIPE_SIZE: usize = 1 << 20;
/// So many pipes of this process are that wide at once: a user has 64 MiB of them, and whoever is
/// beyond gets pipes of a page.
#[cfg(target_os = "linux")]
const WIDE_PIPES: usize = 16;

/// All that a command writes.
pub(super) enum Drains {
    Together(Drain),
    Apart { stdout: Drain, stderr: Drain },
}

/// Who looks on, and as which stream this one is seen.
struct View(Arc<Glimpse>, usize);

fn view(seen: Option<&Arc<Glimpse>>, stream: usize) -> Option<View> {
    seen.map(|seen| View(Arc::clone(seen), stream))
}

/// One stream of it.
pub(super) struct Drain {
    kept: Arc<Mutex<Bounded>>,
    /// Nothing comes; it closes at the end of the stream.
    ended: mpsc::Receiver<Infallible>,
}

impl Drains {
    /// Begins to drain; gives the only ends to write to, for standard output and standard error.
    /// `limit` is how many characters are kept of both together; `seen` is shown what comes.
    pub(super) fn begin(
        streams: Streams,
        limit: usize,
        seen: Option<&Arc<Glimpse>>,
    ) -> io::Result<(Self, PipeWriter, PipeWriter)> {
        match streams {
            Streams::Together => {
                let (drain, writer) =
                    Drain::begin(Bounded::new(limit, Unit::Characters), view(seen, 0))?;
                let same = writer.try_clone()?;
                Ok((Self::Together(drain), writer, same))
            }
            Streams::Apart | Streams::First => {
                let bounded = || match streams {
                    Streams::First => Bounded::first(APART_LIMIT, Unit::Bytes),
                    _ => Bounded::new(APART_LIMIT, Unit::Bytes),
                };
                let (stdout, out) = Drain::begin(bounded(), view(seen, 0))?;
                let (stderr, err) = Drain::begin(bounded(), view(seen, 1))?;
                Ok((Self::Apart { stdout, stderr }, out, err))
            }
        }
    }

    /// What was written. Should a writer be left, it is waited for so long and no longer.
    pub(super) fn finish(self, patience: Duration) -> Output {
        let deadline = Instant::now() + patience;
        match self {
            Self::Together(drain) => Output::Together(drain.finish(deadline)),
            Self::Apart { stdout, stderr } => {
                Output::Apart { stdout: stdout.finish(deadline), stderr: stderr.finish(deadline) }
            }
        }
    }
}

impl Drain {
    fn begin(bounded: Bounded, view: Option<View>) -> io::Result<(Self, PipeWriter)> {
        let (output, writer) = io::pipe()?;
        let wide = Wide::widen(&output);
        let kept = Arc::new(Mutex::new(bounded));
        let ended = drain(output, wide, Arc::clone(&kept), view)?;
        Ok((Self { kept, ended }, writer))
    }

    fn finish(self, deadline: Instant) -> Capture {
        let _ = self.ended.recv_timeout(deadline.saturating_duration_since(Instant::now()));
        std::mem::replace(&mut *lock(&self.kept), Bounded::new(0, Unit::Bytes)).finish()
    }
}

fn drain(
    mut output: PipeReader,
    wide: Option<Wide>,
    kept: Arc<Mutex<Bounded>>,
    view: Option<View>,
) -> io::Result<mpsc::Receiver<Infallible>> {
    let (sender, ended) = mpsc::channel();
    let run = move || {
        let (_sender, _wide) = (sender, wide);
        let mut buffer = vec![0; 256 << 10];
        loop {
            match output.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => {
                    if let Some(View(seen, stream)) = &view {
                        seen.push(*stream, &buffer[..n]);
                    }
                    lock(&kept).push(&buffer[..n]);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
    };
    thread::Builder::new()
        .name("output".to_owned())
        .spawn(run)
        .map_err(|e| io::Error::other(format!("cannot start a thread for its output: {e}")))?;
    Ok(ended)
}

fn lock(kept: &Mutex<Bounded>) -> impl DerefMut<Target = Bounded> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A pipe that was made wide, until it is closed.
struct Wide;

#[cfg(target_os = "linux")]
static WIDE: AtomicUsize = AtomicUsize::new(0);

#[cfg(target_os = "linux")]
impl Wide {
    /// Widens a pipe, unless there are enough of these.
    fn widen(pipe: &PipeReader) -> Option<Self> {
        let more = |now: usize| (now < WIDE_PIPES).then_some(now + 1);
        WIDE.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        // Refused where a user has many pipes; the usual size does too.
        let _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE_SIZE);
        Some(Self)
    }
}

#[cfg(target_os = "linux")]
impl Drop for Wide {
    fn drop(&mut self) {
        WIDE.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(not(target_os = "linux"))]
impl Wide {
    fn widen(_: &PipeReader) -> Option<Self> {
        None
    }
}
