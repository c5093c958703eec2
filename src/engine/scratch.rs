//! The folder that a session's commands have for themselves (their HOME and `/tmp`): removed when
//! the session is over, whatever commands have put there.
//!
//! That can be a lot, so it takes two steps: the folder is put aside at once, by a rename, and what
//! lies aside is removed bit by bit while nothing else is to be done, or at the end. No turn and no
//! start waits for it, and whoever wants to stop does not either: the next start goes on.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use walkdir::WalkDir;

use super::environment::PROBE;
use super::{Engine, remote};
use crate::error::Error;
use crate::runner::removal::{put_aside, remove_aside};
use crate::session::{Session, is_id, run_id};

/// So long what lies aside is removed before somebody looks whether there is something to do: a
/// reply does not notice it.
const BIT: Duration = Duration::from_millis(20);
/// So long the program ends later for it. Some disks remove a thousand folders a second, and a command
/// can make a million.
const LAST: Duration = Duration::from_secs(2);
/// So many entries, or bytes, are much for a session's commands to have.
const MANY: usize = 10_000;
const MUCH: u64 = 64 << 20;

impl Engine {
    /// The folder that the commands of a session have for themselves.
    pub(super) fn scratch_dir(&self, session: &Session) -> PathBuf {
        self.config.sessions.join(session.stem())
    }

    /// Puts aside what commands of a session that is over have left for themselves, in the guest too.
    pub(super) fn discard_scratch(&self, session: &Session) {
        if let Some(guest) = &self.guest {
            guest.forget(remote::scratch_name(session));
        }
        self.put_aside(&self.scratch_dir(session));
    }

    /// The same for all sessions that are over or gone. Little is removed at once, for a start that
    /// finds nothing to do has no other moment for it.
    pub(super) fn discard_all_scratch(&self) {
        self.put_all_aside();
        self.has_trash.set(true);
        self.empty_trash_a_bit();
    }

    /// The probe begins anew: what those before it left would grow.
    pub(super) fn discard_probe(&self) {
        self.put_aside(&self.config.sessions.join(PROBE));
    }

    fn put_all_aside(&self) {
        let Ok(entries) = fs::read_dir(&self.config.sessions) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let known = |name: &&str| is_id(name) || run_id(name).is_some();
            let Some(stem) = name.to_str().filter(known) else { continue };
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let gone = !self.config.sessions.join(format!("{stem}.json")).exists();
            if is_folder && (gone || self.store.load_stem(stem).is_ok_and(|s| s.is_complete)) {
                self.put_aside(&entry.path());
            }
        }
    }

    /// Where that fails it is in nobody's way, and tried again at the next start.
    fn put_aside(&self, folder: &Path) {
        if put_aside(folder).is_ok() {
            self.has_trash.set(true);
        }
    }

    /// Removes a bit of what lies aside. Returns whether there may be more.
    pub fn empty_trash_a_bit(&self) -> bool {
        let begun = Instant::now();
        self.empty_trash(&|| begun.elapsed() > BIT || self.stop.is_asked())
    }

    /// Removes what lies aside, as far as that can be done soon and the person does not want to stop.
    pub(super) fn empty_trash_at_end(&self) {
        let begun = Instant::now();
        self.empty_trash(&|| begun.elapsed() > LAST || self.stop.is_asked());
    }

    fn empty_trash(&self, is_enough: &dyn Fn() -> bool) -> bool {
        // What could not be removed is not tried again and again, but at the next start.
        if self.has_trash.get() && !is_enough() {
            self.has_trash.set(remove_aside(&self.config.sessions, is_enough).unwrap_or(false));
        }
        self.has_trash.get()
    }

    /// Says with an error where room can be made, if that is what is missing and the session's
    /// commands have used much.
    pub(super) fn with_room_hint(&self, error: Error, session: &Session) -> Error {
        let own = self.scratch_dir(session);
        if error.is_disk_full() && is_much(&own) { error.with_room_in(&own) } else { error }
    }
}

/// Whether so much is in a folder that a full disk may come of it. Nobody waits until all of it is
/// counted.
fn is_much(folder: &Path) -> bool {
    let (mut entries, mut bytes) = (0, 0);
    WalkDir::new(folder).into_iter().any(|entry| {
        entries += 1;
        bytes += entry.ok().and_then(|entry| entry.metadata().ok()).map_or(0, |found| found.len());
        entries > MANY || bytes > MUCH
    })
}
