//! Writes answers without waiting for whoever reads them: a pipe or a socket takes what it has room for.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::FileType;
use rustix::io::Errno;
use rustix::net::{SendFlags, send};

/// One end of a connection.
#[derive(Debug)]
pub(super) enum Writer {
    /// It can be told for each write not to wait.
    Socket(Arc<File>),
    /// A pipe, opened once more so as not to wait: whoever shares the other opening is not concerned.
    Pipe(OwnedFd),
    /// Something that does not say whether it has room, such as a file or a terminal.
    Other(Arc<File>),
}

impl Writer {
    pub(super) fn new(file: Arc<File>) -> Self {
        let kind = rustix::fs::fstat(&file).map(|found| FileType::from_raw_mode(found.st_mode));
        match kind {
            Ok(FileType::Socket) => Self::Socket(file),
            Ok(FileType::Fifo) => reopened(file.as_fd()).map_or(Self::Other(file), Self::Pipe),
            _ => Self::Other(file),
        }
    }

    /// Writes what there is room for now; how much that was.
    ///
    /// # Errors
    /// Nobody reads any more.
    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut written = 0;
        while written < bytes.len() {
            let rest = &bytes[written..];
            let put = match self {
                Self::Socket(file) => send(file, rest, SendFlags::DONTWAIT),
                Self::Pipe(fd) => rustix::io::write(fd, rest),
                Self::Other(file) => return file.as_ref().write_all(rest).map(|()| bytes.len()),
            };
            match put {
                Ok(put) => written += put,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(e) => return Err(e.into()),
            }
        }
        Ok(written)
    }
}

impl AsFd for Writer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Socket(file) | Self::Other(file) => file.as_fd(),
            Self::Pipe(fd) => fd.as_fd(),
        }
    }
}

/// The pipe once more; None where there is no `/proc`, or it is somebody else's.
#[cfg(target_os = "linux")]
fn reopened(fd: BorrowedFd<'_>) -> Option<OwnedFd> {
    use std::os::fd::AsRawFd;

    use rustix::fs::{Mode, OFlags};

    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).ok()
}

#[cfg(not(target_os = "linux"))]
fn reopened(_: BorrowedFd<'_>) -> Option<OwnedFd> {
    None
}

#[cfg(test)]
mod tests {
    use std::io::{Read, pipe};
    use std::os::unix::net::UnixStream;

    use super::*;

    /// What takes bytes, and what gives them again.
    fn pairs() -> Vec<(Arc<File>, Box<dyn Read + Send>)> {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut pairs: Vec<(Arc<File>, Box<dyn Read + Send>)> =
            vec![(Arc::new(File::from(OwnedFd::from(ours))), Box::new(theirs))];
        if cfg!(target_os = "linux") {
            let (reader, writer) = pipe().unwrap();
            pairs.push((Arc::new(File::from(OwnedFd::from(writer))), Box::new(reader)));
        }
        pairs
    }

    #[test]
    fn as_much_is_written_as_there_is_room_for() {
        let all: Vec<u8> = (0..4_000_000u32).map(|n| (n % 251) as u8).collect();
        for (file, mut reader) in pairs() {
            let writer = Writer::new(Arc::clone(&file));
            let written = writer.write(&all).unwrap();
            assert!(written > 0 && written < all.len(), "{written}");
            let rest = all[written..].to_vec();
            // The other opening waits as ever.
            let waiting = std::thread::spawn(move || {
                (&*file).write_all(&rest).unwrap();
            });
            let mut told = vec![0; all.len()];
            reader.read_exact(&mut told).unwrap();
            assert!(told == all);
            waiting.join().unwrap();
            drop(reader);
            assert!(writer.write(b"x").is_err(), "nobody reads");
        }
    }

    #[test]
    fn a_file_does_not_say_whether_it_has_room() {
        let writer = Writer::new(Arc::new(tempfile::tempfile().unwrap()));
        assert!(matches!(writer, Writer::Other(_)));
        assert_eq!(writer.write(&vec![0; 1 << 20]).unwrap(), 1 << 20);
    }
}
