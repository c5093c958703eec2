//! The file of a Unix socket: for its owner alone from its first moment. One that nobody listens at is
//! replaced, anything else is left alone, and it is removed at the end.

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::Mode;

use super::steps::is_at;
use crate::atomic;
use crate::error::{Error, Result};

/// So long another starter is waited for, and whoever may listen.
const PATIENCE: Duration = Duration::from_secs(3);
const SOON: Duration = Duration::from_millis(5);
/// Only the owner may connect.
const OTHERS: Mode = Mode::from_raw_mode(0o177);

/// A socket's file that is this process's; dropped, it is removed.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    /// Its device and inode.
    identity: (u64, u64),
}

impl SocketFile {
    /// Makes the file and listens there. To be called before other threads make files, for the
    /// process's umask is another one meanwhile.
    pub(super) fn open(path: &Path) -> Result<(UnixListener, Self)> {
        check(path)?;
        let _turn = Turn::take(path)?;
        make_way(path)?;
        let before = rustix::process::umask(OTHERS);
        let listener = UnixListener::bind(path);
        rustix::process::umask(before);
        let listener = listener.map_err(|e| match e.kind() {
            io::ErrorKind::AddrInUse => Error::listens(path.display().to_string()),
            _ => Error::io("listen at", path, e),
        })?;
        let identity = identity(path).map_err(|e| Error::io("look at", path, e))?;
        Ok((listener, Self { path: path.to_owned(), identity }))
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Whoever starts just now could put theirs there between the look and the removal.
        let turn = Turn::take(&self.path);
        if turn.is_ok() && identity(&self.path).is_ok_and(|found| found == self.identity) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn check(path: &Path) -> Result<()> {
    let wrong = |why: &str| Err(Error::usage(format!("--unix '{}': {why}", path.display())));
    if path.file_name().is_none() {
        return wrong("this is no path of a file; name the socket");
    }
    if let Err(e) = SocketAddr::from_pathname(path) {
        return wrong(&format!(
            "a socket cannot have this path ({e}); it may be about a hundred bytes long: choose a shorter one, or one relative to where you are"
        ));
    }
    match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) if !folder.is_dir() => wrong("there is no such folder; make it first"),
        _ => Ok(()),
    }
}

/// Removes a socket that nobody listens at.
fn make_way(path: &Path) -> Result<()> {
    let fail = |doing, e| Err(Error::io(doing, path, e));
    match fs::symlink_metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return fail("look at", e),
        Ok(found) if !found.file_type().is_socket() => {
            return Err(Error::usage(format!(
                "--unix '{}': what stands there is no socket, and was left alone; remove it yourself, or choose another path",
                path.display()
            )));
        }
        Ok(_) => {}
    }
    match connects(path) {
        None | Some(Ok(())) => Err(Error::listens(path.display().to_string())),
        Some(Err(e)) => match e.kind() {
            io::ErrorKind::NotFound => Ok(()),
            io::ErrorKind::ConnectionRefused => match fs::remove_file(path) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => fail("remove", e),
                _ => Ok(()),
            },
            _ => fail("find out who listens at", e),
        },
    }
}

/// Whether somebody can be connected with; None where they take too long for it, as who has too many
/// callers does.
fn connects(path: &Path) -> Option<io::Result<()>> {
    let (sender, told) = mpsc::channel();
    let path = path.to_owned();
    let tried = thread::Builder::new().name("connect".into()).spawn(move || {
        let _ = sender.send(UnixStream::connect(path).map(drop));
    });
    match tried {
        Ok(_) => told.recv_timeout(PATIENCE).ok(),
        Err(e) => Some(Err(e)),
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|found| (found.dev(), found.ino()))
}

/// The right to look at a socket's path and change what is there: a lock on a file beside it, which
/// is gone afterwards. The folder itself cannot be locked for it, since whoever serves a base
/// directory holds that.
struct Turn {
    path: PathBuf,
    _file: File,
}

impl Turn {
    fn take(socket: &Path) -> Result<Self> {
        // Not merely `.lock`: that could be somebody's own.
        let mut name = OsString::from(".");
        name.push(socket.file_name().unwrap_or_default());
        name.push(".deaddrop-lock");
        let path = socket.with_file_name(name);
        let begun = Instant::now();
        loop {
            let mut options = File::options();
            options.read(true).write(true).create(true).truncate(false);
            let file =
                atomic::open_own(&mut options, &path).map_err(|e| Error::io("lock", &path, e))?;
            match file.try_lock() {
                // Who had it before may have removed it meanwhile.
                Ok(()) if is_at(&file, &path).unwrap_or(false) => {
                    return Ok(Self { path, _file: file });
                }
                Ok(()) => continue,
                Err(TryLockError::Error(e)) => return Err(Error::io("lock", &path, e)),
                Err(TryLockError::WouldBlock) => {}
            }
            if begun.elapsed() > PATIENCE {
                let e = io::Error::new(io::ErrorKind::TimedOut, "somebody else holds it");
                return Err(Error::io("lock", &path, e));
            }
            thread::sleep(SOON);
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
