//! Where answers go, for somebody who must not wait long for their reader: a pipe or a socket takes
//! what it has room for.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;
use rustix::io::Errno;
use rustix::net::{SendFlags, send};

/// So long room is waited for. Whoever reads is faster by far.
const PATIENCE: Duration = Duration::from_millis(5);

/// One end of a connection.
#[derive(Debug)]
pub(super) enum Outlet {
    /// It can be told for each write not to wait.
    Socket(Arc<File>),
    /// A pipe, opened once more so as not to wait: who shares the other opening is not concerned.
    Pipe(OwnedFd),
}

impl Outlet {
    /// Where answers go that could be written to `file`; None where it is nothing that tells of room,
    /// such as a file or a terminal.
    pub(super) fn of(file: &Arc<File>) -> Option<Self> {
        let mode = rustix::fs::fstat(file.as_ref()).ok()?.st_mode;
        match FileType::from_raw_mode(mode) {
            FileType::Socket => Some(Self::Socket(Arc::clone(file))),
            FileType::Fifo => reopened(file.as_fd()).map(Self::Pipe),
            _ => None,
        }
    }

    /// Writes what there is room for now or soon; how much of it is written.
    ///
    /// # Errors
    /// Nobody reads any more.
    pub(super) fn offer(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut written = 0;
        while written < bytes.len() {
            let rest = &bytes[written..];
            let (fd, put) = match self {
                Self::Socket(file) => (file.as_fd(), send(file, rest, SendFlags::DONTWAIT)),
                Self::Pipe(fd) => (fd.as_fd(), rustix::io::write(fd, rest)),
            };
            match put {
                Ok(put) => written += put,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    if !has_room_soon(fd)? {
                        break;
                    }
                }
                Err(e) => return Err(e.into()),
            }
        }
        Ok(written)
    }
}

fn has_room_soon(fd: BorrowedFd<'_>) -> io::Result<bool> {
    let longest = Timespec::try_from(PATIENCE).map_err(io::Error::other)?;
    match poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::OUT)], Some(&longest)) {
        Ok(ready) => Ok(ready > 0),
        // It is tried anew.
        Err(Errno::INTR) => Ok(true),
        Err(e) => Err(e.into()),
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
    use std::io::{Read, Write, pipe};
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
            let outlet = Outlet::of(&file).unwrap();
            let written = outlet.offer(&all).unwrap();
            assert!(written > 0 && written < all.len(), "{written}");
            let rest = all[written..].to_vec();
            // The other opening waits as ever.
            let writer = std::thread::spawn(move || {
                (&*file).write_all(&rest).unwrap();
            });
            let mut told = vec![0; all.len()];
            reader.read_exact(&mut told).unwrap();
            assert!(told == all);
            writer.join().unwrap();
            drop(reader);
            assert!(outlet.offer(b"x").is_err(), "nobody reads");
        }
    }

    #[test]
    fn a_file_tells_of_no_room() {
        assert!(Outlet::of(&Arc::new(tempfile::tempfile().unwrap())).is_none());
    }
}
