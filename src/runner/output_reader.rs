//! Reads the output of a command while it runs, because a full pipe would block the command.

use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::{AsFd, BorrowedFd};
#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::live_output::LiveOutput;
use super::output::{BoundedOutput, LimitUnit};
use super::waiting::wait_for;
use crate::protocol::jsonrpc::STREAM_LIMIT;
use crate::protocol::{CommandOutput, Streams};

/// The most bytes that are kept of each stream if the streams are separate.
const APART_LIMIT: usize = STREAM_LIMIT;
/// The most bytes that are read at once.
const PIECE: usize = 256 << 10;

/// Reads everything that a command writes, as one stream or two.
pub(super) struct OutputReader<'a> {
    streams: Vec<StreamReader>,
    /// Also receives the output.
    seen: Option<&'a LiveOutput>,
    piece: Vec<u8>,
}

/// Reads one stream.
struct StreamReader {
    /// None after the end of the stream.
    pipe: Option<(PipeReader, Option<WidenedPipe>)>,
    kept: BoundedOutput,
}

impl<'a> OutputReader<'a> {
    /// Returns a reader and the only write ends for standard output and standard error. `limit` is the most characters
    /// that are kept if both are one stream.
    pub(super) fn begin(
        streams: Streams,
        limit: usize,
        seen: Option<&'a LiveOutput>,
    ) -> io::Result<(Self, PipeWriter, PipeWriter)> {
        let (first, stdout, second, stderr) = match streams {
            Streams::Together => {
                let (output_reader, writer) =
                    StreamReader::begin(BoundedOutput::new(limit, LimitUnit::Characters))?;
                (output_reader, writer.try_clone()?, None, writer)
            }
            Streams::Apart | Streams::First => {
                let bounded = || match streams {
                    Streams::First => BoundedOutput::first(APART_LIMIT, LimitUnit::Bytes),
                    _ => BoundedOutput::new(APART_LIMIT, LimitUnit::Bytes),
                };
                let (stdout, out) = StreamReader::begin(bounded())?;
                let (stderr, err) = StreamReader::begin(bounded())?;
                (stdout, out, Some(stderr), err)
            }
        };
        let streams = [first].into_iter().chain(second).collect();
        Ok((Self { streams, seen, piece: vec![0; PIECE] }, stdout, stderr))
    }

    /// The pipes that have not ended.
    pub(super) fn pipes(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.streams.iter().filter_map(|stream| Some(stream.pipe.as_ref()?.0.as_fd()))
    }

    /// Reads the output that is available now, but at most one piece of each stream.
    pub(super) fn read(&mut self) {
        for (number, stream) in self.streams.iter_mut().enumerate() {
            let Some((pipe, _)) = &mut stream.pipe else { continue };
            match pipe.read(&mut self.piece) {
                Ok(length) if length > 0 => {
                    if let Some(seen) = self.seen {
                        seen.push(number, &self.piece[..length]);
                    }
                    stream.kept.push(&self.piece[..length]);
                }
                Err(e)
                    if matches!(
                        e.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                    ) => {}
                _ => stream.pipe = None,
            }
        }
    }

    /// Returns the output. If a writer still has a pipe open, waits for it for at most `patience`.
    pub(super) fn finish(mut self, patience: Duration) -> CommandOutput {
        let deadline = Instant::now() + patience;
        while self.pipes().next().is_some()
            && Instant::now() < deadline
            && wait_for(self.pipes(), Some(deadline)).is_ok()
        {
            self.read();
        }
        let mut kept = self.streams.into_iter().map(|stream| stream.kept.finish());
        let first = kept.next().unwrap_or_default();
        match kept.next() {
            None => CommandOutput::Together(first),
            Some(stderr) => CommandOutput::Apart { stdout: first, stderr },
        }
    }
}

impl StreamReader {
    fn begin(kept: BoundedOutput) -> io::Result<(Self, PipeWriter)> {
        let (output, writer) = io::pipe()?;
        // A command can read from its own pipe, so a read could block although poll announced data.
        rustix::io::ioctl_fionbio(&output, true)?;
        let wide = WidenedPipe::widen(&output);
        Ok((Self { pipe: Some((output, wide)), kept }, writer))
    }
}

/// A pipe with a larger buffer. Counted until it is closed.
struct WidenedPipe;

#[cfg(target_os = "linux")]
static WIDE: AtomicUsize = AtomicUsize::new(0);

#[cfg(target_os = "linux")]
impl WidenedPipe {
    /// A buffer larger than the usual 64 KiB saves switches between writer and reader.
    const SIZE: usize = 1 << 20;
    /// The most widened pipes of this process at once. A user has 64 MiB for pipe buffers. Above that, new pipes get
    /// only one page.
    const MAX_PIPES: usize = 16;

    /// Enlarges the buffer of a pipe, unless there are too many such pipes.
    fn widen(pipe: &PipeReader) -> Option<Self> {
        let more = |now: usize| (now < Self::MAX_PIPES).then_some(now + 1);
        WIDE.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        // This fails if the user has many pipes. The usual size works, too.
        let _ = rustix::pipe::fcntl_setpipe_size(pipe, Self::SIZE);
        Some(Self)
    }
}

#[cfg(target_os = "linux")]
impl Drop for WidenedPipe {
    fn drop(&mut self) {
        WIDE.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(not(target_os = "linux"))]
impl WidenedPipe {
    fn widen(_: &PipeReader) -> Option<Self> {
        None
    }
}
