//! Moves entries that a command made under a protected name to one of deaddrop's folders, where they are never deleted
//! or overwritten. Restores former entries from the snapshot.

use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;

use cap_fs_ext::DirExt;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};

use super::scan::grant_owner;
use super::snapshot::{FileRecord, ProtectedKind};
use crate::atomic::{rename_new, shortened};
use crate::workspace::modes::set_mode;
use crate::workspace::names::{escaped_os, unescaped};
use crate::workspace::plan::write_new;
use crate::workspace::{open_regular, sync};

/// The name of the folder that contains all quarantines.
const FOLDER: &str = "quarantine";
/// The deepest nesting of folders that is copied if a rename cannot move them.
const DEPTH: usize = 100;

/// The quarantine of one turn.
#[derive(Debug, Clone)]
pub struct Quarantine {
    /// The folder of deaddrop's sessions.
    state: PathBuf,
    /// The turn's folder.
    turn: String,
    /// The path of the turn's folder, for display.
    shown: String,
    /// The next number to try; 0 if unknown.
    next: Cell<usize>,
}

impl Quarantine {
    /// The quarantine of a turn. `state` is the folder of the sessions, and `shown` is its path for display.
    pub fn new(state: PathBuf, shown: &str, turn: &str) -> Self {
        let shown = format!("{}/{FOLDER}/{turn}", shown.replace('\\', "/"));
        Self { state, turn: turn.to_owned(), shown, next: Cell::new(0) }
    }

    /// The paths of the quarantine's entries, for display.
    pub(super) fn contents(&self) -> Vec<String> {
        let state = Dir::open_ambient_dir(&self.state, ambient_authority());
        let folder = state
            .and_then(|state| state.open_dir_nofollow(FOLDER))
            .and_then(|folder| folder.open_dir_nofollow(&self.turn));
        let Ok(entries) = folder.and_then(|folder| folder.entries()) else { return Vec::new() };
        let names = entries.filter_map(|entry| Some(escaped_os(&entry.ok()?.file_name())));
        let mut names: Vec<String> = names.map(|name| format!("{}/{name}", self.shown)).collect();
        names.sort();
        names
    }

    /// Moves an entry of `parent`, or a link itself, to the quarantine. Returns the new path, for display.
    pub(super) fn take(&self, parent: &Dir, name: &OsStr) -> io::Result<String> {
        let folder = self.folder()?;
        if self.next.get() == 0 {
            // An earlier run of this turn may have moved entries before deaddrop was stopped.
            self.next.set(folder.entries()?.count() + 1);
        }
        let (mut moved, mut opened) = (self.move_into(&folder, parent, name), false);
        if let Err(e) = &moved
            && e.kind() == io::ErrorKind::PermissionDenied
        {
            // A command may have removed permissions so that the entry cannot be moved.
            opened = grant_owner(parent, OsStr::new(".")).is_ok();
            if parent.symlink_metadata(name)?.is_dir() {
                opened |= grant_owner(parent, name).is_ok();
            }
        }
        if opened {
            moved = self.move_into(&folder, parent, name);
        }
        let number_and_name = moved?;
        self.next.set(self.next.get() + 1);
        // The move must survive a power failure.
        sync(&folder)?;
        sync(parent)?;
        Ok(format!("{}/{number_and_name}", self.shown))
    }

    /// Restores an entry of `parent` if its content is known. Never overwrites an entry. Returns whether it is known.
    pub(super) fn put_back(
        &self,
        parent: &Dir,
        name: &OsStr,
        before: &ProtectedKind,
    ) -> io::Result<bool> {
        match before {
            ProtectedKind::Folder { mode, .. } => {
                parent.create_dir(name)?;
                set_mode(parent, name, *mode)?;
            }
            ProtectedKind::Link { target } => parent.symlink_contents(unescaped(target), name)?,
            ProtectedKind::File(file) => {
                let Some(text) = &file.text else { return Ok(false) };
                // Write the file among deaddrop's own files first, where leftovers are removed. A partial file in the
                // workspace would be attributed to a command.
                let state = Dir::open_ambient_dir(&self.state, ambient_authority())?;
                let temporary = OsString::from(format!("{}.tmp", uuid::Uuid::new_v4().simple()));
                let moved = write(&state, &temporary, text, file)
                    .and_then(|()| rename_new(&state, &temporary, parent, name));
                if let Err(e) = moved {
                    // Only the first error is reported.
                    let _ = state.remove_file(&temporary);
                    if e.kind() != io::ErrorKind::CrossesDevices {
                        return Err(e);
                    }
                    write(parent, name, text, file)?;
                }
            }
            ProtectedKind::Head(Some(head)) => return self.put_back(parent, name, head),
            ProtectedKind::Head(None) | ProtectedKind::Other => return Ok(false),
        }
        sync(parent)?;
        Ok(true)
    }

    fn folder(&self) -> io::Result<Dir> {
        let mut folder = Dir::open_ambient_dir(&self.state, ambient_authority())?;
        for name in [FOLDER, &self.turn] {
            match folder.create_dir(name) {
                Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
                Err(_) => {}
                Ok(()) => sync(&folder)?,
            }
            folder = folder.open_dir_nofollow(name)?;
        }
        Ok(folder)
    }

    fn move_into(&self, folder: &Dir, parent: &Dir, name: &OsStr) -> io::Result<String> {
        let text = escaped_os(name);
        loop {
            let to = format!("{}_{}", self.next.get(), shortened(&text, 200));
            match rename_new(parent, name, folder, OsStr::new(&to)) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) if e.kind() == io::ErrorKind::CrossesDevices => {
                    if folder.symlink_metadata(&to).is_err() {
                        copy(parent, name, folder, OsStr::new(&to), 0)?;
                        remove(parent, name)?;
                        return Ok(to);
                    }
                }
                moved => return moved.map(|()| to),
            }
            self.next.set(self.next.get() + 1);
        }
    }
}

/// Copies an entry without following links. Special files become empty files.
fn copy(from: &Dir, name: &OsStr, to: &Dir, new: &OsStr, depth: usize) -> io::Result<()> {
    let found = from.symlink_metadata(name)?;
    if found.is_dir() {
        if depth > DEPTH {
            return Err(io::Error::other("its folders are nested too deeply to be copied"));
        }
        to.create_dir(new)?;
        let (from, into) = (from.open_dir_nofollow(name)?, to.open_dir_nofollow(new)?);
        for entry in from.entries()? {
            let name = entry?.file_name();
            copy(&from, &name, &into, &name, depth + 1)?;
        }
        sync(&into)
    } else if found.is_symlink() {
        to.symlink_contents(from.read_link_contents(name)?, new)
    } else {
        let mut options = OpenOptions::new();
        let mut into = to.open_with(new, options.write(true).create_new(true).mode(0o600))?;
        if found.is_file() {
            io::copy(&mut open_regular(from, name)?, &mut into)?;
        }
        into.sync_all()
    }
}

fn remove(parent: &Dir, name: &OsStr) -> io::Result<()> {
    if parent.symlink_metadata(name)?.is_dir() {
        parent.remove_dir_all(name)
    } else {
        parent.remove_file(name)
    }
}

/// Writes a file with its former content and metadata, and syncs it.
fn write(folder: &Dir, name: &OsStr, text: &str, before: &FileRecord) -> io::Result<()> {
    write_new(folder, name, text.as_bytes(), Some(before.owner), Some(before.mode))?.sync_all()
}
