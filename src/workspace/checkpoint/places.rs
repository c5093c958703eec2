//! What stands in a place of the workspace, and what is told of it without a look into it.

use std::io;

use cap_std::fs::{Dir, Metadata};

use super::numbers::Identity;
use crate::error::{Error, Result};
use crate::workspace::Workspace;
use crate::workspace::folder_cache::FolderCache;
use crate::workspace::walk::EntryKind;
use crate::workspace::walk::detailed::{FileStat, WalkEntry};

/// What was looked at under a path.
pub(super) fn met(path: String, found: &Metadata) -> WalkEntry {
    let kind = match () {
        () if found.is_dir() => None,
        () if found.is_file() => Some(EntryKind::File),
        () if found.is_symlink() => Some(EntryKind::Link),
        () => Some(EntryKind::Other),
    };
    WalkEntry { path, kind, size: found.len(), facts: FileStat::of(found) }
}

impl Workspace {
    /// What stands at a path, and the folder that holds it; the root holds itself.
    pub(super) fn stands_at(&self, path: &str) -> io::Result<(Dir, Metadata)> {
        let mut folders = FolderCache::new(self);
        let (_, found) = folders.stands_at(path)?;
        Ok((folders.into_last()?, found))
    }

    /// The root, which no folder of a walk lists.
    pub(super) fn met_root(&self) -> Result<WalkEntry> {
        let found = self.root.dir_metadata();
        let found = found.map_err(|e| Error::io("look at", &self.path, e))?;
        Ok(met(String::new(), &found))
    }

    /// What tells whether what stands at a path is the same.
    pub(super) fn identity_at(&self, path: &str) -> io::Result<Identity> {
        let (_, found) = self.stands_at(path)?;
        Ok(Identity::of(&FileStat::of(&found), found.len()))
    }
}

impl FolderCache<'_> {
    /// Whether this error of a look at a path says that nothing stands there: it is gone, or a folder on the
    /// way is gone or is something else now, or no such name can be.
    pub(super) fn tells_nothing_is_there(&mut self, path: &str, error: &io::Error) -> bool {
        use io::ErrorKind::{InvalidFilename, InvalidInput, NotADirectory, NotFound};
        matches!(error.kind(), NotFound | NotADirectory | InvalidFilename | InvalidInput)
            || self.is_behind_link(path)
    }
}
