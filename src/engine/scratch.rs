//! The scratch directory of a session's commands (their HOME and `/tmp`), which is removed when the session is complete.
//!
//! It can be large, so it is removed in two steps: a rename puts it aside at once, and what was put aside is removed
//! gradually while deaddrop is idle, or at the end. No turn, start or shutdown waits for the removal; the next start
//! continues it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use walkdir::WalkDir;

use super::environment::PROBE;
use super::{Engine, remote};
use crate::error::Error;
use crate::runner::removal::{put_aside, remove_aside};
use crate::session::{Session, is_id, run_id};

/// How long one removal lasts while deaddrop is idle: too short to delay a reply noticeably.
const IDLE_TIME: Duration = Duration::from_millis(20);
/// How long the removal may delay the end of the program. Some disks remove a thousand folders a second, and a command
/// can create a million.
const TIME_AT_END: Duration = Duration::from_secs(2);
/// A scratch directory with more entries or bytes than this counts as large.
const MANY_ENTRIES: usize = 10_000;
const MANY_BYTES: u64 = 64 << 20;

impl Engine {
    /// The scratch directory of a session's commands.
    pub(super) fn scratch_dir(&self, session: &Session) -> PathBuf {
        self.config.sessions.join(session.stem())
    }

    /// Puts the scratch directory of a completed session aside, also in the guest.
    pub(super) fn discard_scratch(&self, session: &Session) {
        if let Some(guest) = &self.guest {
            guest.end_session(remote::scratch_name(session));
        }
        self.put_aside(&self.scratch_dir(session));
    }

    /// Puts the scratch directories of all completed or deleted sessions aside, and removes a little at once: a start that
    /// finds nothing to do is never idle.
    pub(super) fn discard_all_scratch(&self) {
        self.put_all_aside();
        self.has_trash.set(true);
        self.empty_trash_partly();
    }

    /// Puts the scratch directory of earlier probes aside; otherwise it would grow.
    pub(super) fn discard_probe(&self) {
        self.put_aside(&self.config.sessions.join(PROBE));
    }

    fn put_all_aside(&self) {
        let Ok(entries) = fs::read_dir(&self.config.sessions) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let is_stem = |name: &&str| is_id(name) || run_id(name).is_some();
            let Some(stem) = name.to_str().filter(is_stem) else { continue };
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let gone = !self.config.sessions.join(format!("{stem}.json")).exists();
            if is_folder && (gone || self.store.load_stem(stem).is_ok_and(|s| s.is_complete)) {
                self.put_aside(&entry.path());
            }
        }
    }

    /// Puts a folder aside. A failure does no harm: the next start tries again.
    fn put_aside(&self, folder: &Path) {
        if put_aside(folder).is_ok() {
            self.has_trash.set(true);
        }
    }

    /// Removes a part of what was put aside. Returns whether there may be more.
    pub fn empty_trash_partly(&self) -> bool {
        let begun = Instant::now();
        self.empty_trash(&|| begun.elapsed() > IDLE_TIME || self.stop.is_asked())
    }

    /// Removes what was put aside, until the time is over or the person stops deaddrop.
    pub(super) fn empty_trash_at_end(&self) {
        let begun = Instant::now();
        self.empty_trash(&|| begun.elapsed() > TIME_AT_END || self.stop.is_asked());
    }

    fn empty_trash(&self, is_enough: &dyn Fn() -> bool) -> bool {
        // What could not be removed is tried again only at the next start.
        if self.has_trash.get() && !is_enough() {
            self.has_trash.set(remove_aside(&self.config.sessions, is_enough).unwrap_or(false));
        }
        self.has_trash.get()
    }

    /// Adds to the error of a full disk where to make room, if the session's scratch directory is large.
    pub(super) fn with_room_hint(&self, error: Error, session: &Session) -> Error {
        let own = self.scratch_dir(session);
        if !error.is_disk_full() || !is_large(&own) {
            return error;
        }
        let own = own.display();
        error.with_advice(&format!(
            "the session's commands left much in {own}, which you can remove"
        ))
    }
}

/// Whether a folder is large enough to fill a disk. Stops counting when it is.
fn is_large(folder: &Path) -> bool {
    let (mut entries, mut bytes) = (0, 0);
    WalkDir::new(folder).into_iter().any(|entry| {
        entries += 1;
        bytes += entry.ok().and_then(|entry| entry.metadata().ok()).map_or(0, |found| found.len());
        entries > MANY_ENTRIES || bytes > MANY_BYTES
    })
}
