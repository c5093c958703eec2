//! The file of a Unix socket. Only its owner can access it, from the moment it exists. A socket without a listener is
//! replaced, anything else at the path is left alone, and the file is removed at the end.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::Mode;

use super::steps::try_lock;
use crate::client::connected;
use crate::error::{Error, Result};

/// How long to wait for an answer from a possible listener.
const PATIENCE: Duration = Duration::from_secs(3);
/// Only the owner may connect.
const OTHERS: Mode = Mode::from_raw_mode(0o177);

/// A socket file that this process owns. It is removed on drop.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    /// Device and inode of the file.
    identity: (u64, u64),
    /// Removed after the socket's file.
    _lock: LockFile,
}

impl SocketFile {
    /// Creates the file and listens there. Must be called before other threads create files, because the
    /// umask of the process is changed meanwhile.
    pub(super) fn open(path: &Path) -> Result<(UnixListener, Self)> {
        check(path)?;
        let lock = LockFile::take(path)?;
        make_way(path)?;
        let before = rustix::process::umask(OTHERS);
        let listener = UnixListener::bind(path);
        rustix::process::umask(before);
        let listener = listener.map_err(|e| match e.kind() {
            io::ErrorKind::AddrInUse => Error::listens(path.display().to_string()),
            _ => Error::io("listen at", path, e),
        })?;
        let identity = identity(path).map_err(|e| Error::io("look at", path, e))?;
        Ok((listener, Self { path: path.to_owned(), identity, _lock: lock }))
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|found| found == self.identity) {
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

/// Removes a socket that has no listener.
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
    match connected(path, Instant::now() + PATIENCE) {
        Ok(_) => Err(Error::listens(path.display().to_string())),
        // A listener with a full queue of clients is a listener, too.
        Err(e) if e.kind() == io::ErrorKind::TimedOut => {
            Err(Error::listens(path.display().to_string()))
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => match fs::remove_file(path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => fail("remove", e),
            _ => Ok(()),
        },
        Err(e) => fail("find out who listens at", e),
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|found| (found.dev(), found.ino()))
}

/// A lock on the socket's path: whoever has it may check and change what is there. It is a file beside the socket,
/// removed on drop. The folder itself cannot be locked, because a running project may have locked it.
#[derive(Debug)]
struct LockFile {
    path: PathBuf,
    _file: File,
}

impl LockFile {
    fn take(socket: &Path) -> Result<Self> {
        // Not just `NAME.lock`, because another program could use that name.
        let mut name = OsString::from(".");
        name.push(socket.file_name().unwrap_or_default());
        name.push(".deaddrop-lock");
        let path = socket.with_file_name(name);
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        match try_lock(&mut options, &path) {
            Ok(Some(file)) => Ok(Self { path, _file: file }),
            Ok(None) => Err(Error::listens(socket.display().to_string())),
            Err(e) => Err(Error::io("lock", &path, e)),
        }
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
