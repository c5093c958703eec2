//! Snapshots of the workspace before and after a turn, used to show the turn's changes and to undo them. Every access
//! goes through the workspace's handle, and no link is followed.
//!
//! - Contents are stored in packs, under their digests. The contents of regular files are stored up to a size limit,
//!   as long as there is room. Other files are identified by inode number and times, and reported as not restorable.
//! - Ignored files are not scanned; the ignore rules from before the turn apply. Entries named `.git` and deaddrop's
//!   own state are not scanned either. A file that an operation itself changes is stored even if it is ignored.
//! - An unchanged file (same inode number, size and times as in the cache of the last scan) is not read again. This
//!   requires a ctime that nobody can set (`trusted_times`) and that is old enough that a further change would alter
//!   it.
//! - Times, owners and extended attributes are not stored.
//! - Small ignored files that are neither build products nor secret are stored (`ignored`), only to undo deletions.
//! - A file that was ignored before the turn and has been renamed since is left alone.
//!
//! | module | what it does |
//! |---|---|
//! | `tree` | entries of the tree and changes to them |
//! | `stat_cache` | the results of the last scan, so that an unchanged file is not read again |
//! | `scan` | compares the workspace with the cache; `tracked` finds ignored files that git tracks, `trusted_times` decides whether a file system's times can be trusted |
//! | `record` | scans before and after the operations of a turn; `rules` are the ignore rules from before the turn, `ignored_changes` finds changes to ignored files |
//! | `merge`, `apply` | undo and redo: plan the changes, then make them |
//! | `gc` | limits the stored bytes by deleting the oldest checkpoints |

mod apply;
mod gc;
mod ignored;
mod ignored_changes;
mod merge;
mod record;
mod rules;
mod scan;
mod stat_cache;
#[cfg(all(test, target_os = "linux"))]
mod tests;
mod tracked;
mod tree;
mod trusted_times;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::blobs::{BlobId, Blobs};
use crate::error::Result;
pub use apply::RestoreReport;
pub use gc::{BlobNeeds, RecordedTurns};
pub use ignored::IgnoredLimits;
pub use ignored_changes::{IgnoredChange, IgnoredLoss};
pub use merge::{UndoPlan, moved, unrestorable};
pub use record::{CheckpointNote, RecordedChanges, Recorder};
pub use rules::KeptRules;
pub use stat_cache::CachePosition;
use stat_cache::StatCache;
pub use tree::{Identity, NotStored, TreeChange, TreeEntry, compose, reverse};

/// The checkpoints of one project's workspace.
#[derive(Debug)]
pub struct CheckpointStore {
    /// The stored contents.
    pub blobs: Blobs,
    cache: StatCache,
    folder: PathBuf,
    /// The largest file that is stored, in bytes.
    file_limit: u64,
    ignored_limits: IgnoredLimits,
    /// The most bytes that are stored in all.
    limit: u64,
    /// The bytes stored now; None until they are counted.
    size: Option<u64>,
    /// The recorded turns; None if they must not be deleted to make room.
    turns: Option<Box<dyn RecordedTurns>>,
    /// Blobs that the current turn needs, beside those in the cache.
    in_use: BTreeSet<BlobId>,
    /// Room for this many bytes could not be made in this turn, even by deleting all old checkpoints.
    no_room_for: Option<u64>,
}

impl CheckpointStore {
    /// The store in this folder, which is created when something is stored.
    pub fn new(folder: &Path, file_limit: u64, ignored_limits: IgnoredLimits, limit: u64) -> Self {
        Self {
            blobs: Blobs::new(folder.join("packs")),
            cache: StatCache::new(folder.join("scanned")),
            folder: folder.to_owned(),
            file_limit,
            ignored_limits,
            limit,
            size: None,
            turns: None,
            in_use: BTreeSet::new(),
            no_room_for: None,
        }
    }

    /// Adds a value as JSON, such as the record of a turn's changes, regardless of the limit. It is on disk after the
    /// next [`CheckpointStore::sync`].
    ///
    /// # Panics
    /// Never: strings and numbers always become JSON.
    pub fn add_json(&mut self, value: &(impl Serialize + ?Sized)) -> Result<BlobId> {
        let text = serde_json::to_vec(value).expect("strings and numbers become JSON");
        let id = BlobId::of(&text);
        self.add(&id, &text)?;
        self.mark_in_use([&id].into_iter());
        Ok(id)
    }

    /// Reads the record of a turn's changes; None if it was deleted.
    pub fn read_changes(&self, id: &BlobId) -> Result<Option<Vec<TreeChange>>> {
        let bytes = self.blobs.read(id)?;
        Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }

    /// Reads these records and combines their changes; None if one of them was deleted.
    pub fn read_composed(&self, records: &[BlobId]) -> Result<Option<Vec<TreeChange>>> {
        let mut parts = Vec::new();
        for record in records {
            let Some(changes) = self.read_changes(record)? else { return Ok(None) };
            parts.push(changes);
        }
        Ok(Some(compose(parts)))
    }

    /// Brings everything that was added to disk.
    pub fn sync(&mut self) -> Result<()> {
        let synced = self.blobs.sync();
        if synced.is_err() {
            self.discard_unsynced();
        }
        synced
    }

    /// Discards what was added and is not on disk yet.
    fn discard_unsynced(&mut self) {
        self.blobs.discard_unsynced();
        self.cache.unload();
        self.size = None;
    }

    /// Deletes what interrupted writes left. The caller must hold the project's lock.
    pub fn remove_leftovers(&self) {
        self.blobs.remove_leftovers();
        let _ = crate::atomic::sweep(&self.folder);
    }
}
