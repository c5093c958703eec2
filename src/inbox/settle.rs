//! Finds out whether a file is still being written. On Linux the kernel grants a read lease only if no process has the
//! file open for writing. Without leases, a file is finished after a close event, or after a while without a change.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::Metadata;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

/// How long a file must stay unchanged, without leases and a close event, to count as finished.
const STABLE_FOR: Duration = Duration::from_millis(300);

/// Whether a process is writing to a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Writer {
    /// No process is writing: the file is finished.
    Gone,
    /// A process is writing. An event will report when it closes the file.
    Busy,
    /// Unknown. The file is finished when it stays unchanged.
    Unknown,
}

/// Remembers sizes and times of files, for systems without leases.
#[derive(Debug, Default)]
pub(super) struct Settler {
    seen: HashMap<OsString, (u64, SystemTime, Instant)>,
}

impl Settler {
    /// Whether `path` is still being written. `closed` means that a close event was reported for it.
    pub(super) fn writer(&mut self, path: &Path, found: &Metadata, closed: bool) -> Writer {
        match lease(path) {
            Writer::Unknown if closed => Writer::Gone,
            Writer::Unknown => self.writer_by_changes(path, found),
            known => known,
        }
    }

    /// Forgets all files but these.
    pub(super) fn forget_others(&mut self, names: &[OsString]) {
        self.seen.retain(|name, _| names.contains(name));
    }

    fn writer_by_changes(&mut self, path: &Path, found: &Metadata) -> Writer {
        let name = path.file_name().unwrap_or_default().to_owned();
        let state = (found.len(), found.modified().unwrap_or(SystemTime::UNIX_EPOCH));
        match self.seen.get(&name) {
            Some((size, time, since)) if (*size, *time) == state => {
                if since.elapsed() >= STABLE_FOR { Writer::Gone } else { Writer::Unknown }
            }
            _ => {
                self.seen.insert(name, (state.0, state.1, Instant::now()));
                Writer::Unknown
            }
        }
    }
}

/// Requests a read lease and releases it at once. If a process opens the file for writing in between, the kernel
/// sends SIGIO. `watch` installs a handler for it.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn lease(path: &Path) -> Writer {
    use std::os::fd::AsRawFd;
    let Ok(file) = super::files::open(path) else { return Writer::Unknown };
    // SAFETY: fcntl with integers on a descriptor that is open.
    let (taken, error) = unsafe {
        let taken = libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_RDLCK);
        let error = std::io::Error::last_os_error();
        if taken == 0 {
            libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_UNLCK);
        }
        (taken, error)
    };
    match error.raw_os_error() {
        _ if taken == 0 => Writer::Gone,
        Some(libc::EAGAIN) => Writer::Busy,
        _ => Writer::Unknown,
    }
}

#[cfg(not(target_os = "linux"))]
fn lease(_: &Path) -> Writer {
    Writer::Unknown
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_file_is_busy_while_it_is_open_for_writing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.txt");
        let mut file = std::fs::File::create(&path).unwrap();
        file.write_all(b"half").unwrap();
        if lease(&path) == Writer::Unknown {
            eprintln!("SKIPPED: no leases on this file system");
            return;
        }
        assert_eq!(lease(&path), Writer::Busy);
        drop(file);
        assert_eq!(lease(&path), Writer::Gone);
    }

    #[test]
    fn without_leases_a_close_or_time_tells() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.txt");
        std::fs::write(&path, "x").unwrap();
        let found = path.metadata().unwrap();
        let mut settler = Settler::default();
        assert_eq!(settler.writer_by_changes(&path, &found), Writer::Unknown);
        assert_eq!(settler.writer_by_changes(&path, &found), Writer::Unknown);
        let long_ago = Instant::now().checked_sub(STABLE_FOR).unwrap();
        settler.seen.values_mut().for_each(|seen| seen.2 = long_ago);
        assert_eq!(settler.writer_by_changes(&path, &found), Writer::Gone);
        settler.forget_others(&[]);
        assert_eq!(settler.writer_by_changes(&path, &found), Writer::Unknown);
    }
}
