//! What the workspace was like before a turn and after it, so that the turn can be shown and taken
//! back: beneath the workspace's handle, following no link.
//!
//! - Contents are kept as blobs, under their digests; of regular files up to a size, and while there is
//!   room. What is not kept is known by its number and times, and named as not restorable.
//! - What rules leave out is not scanned, by the rules from before the turn; what is called `.git`
//!   never is, nor is deaddrop's own state. A file that an operation itself changed is kept whatever
//!   the rules say.
//! - An unchanged file (number, size, times) is not read again: the cache remembers it from the last
//!   scan, where its `changed` time is one that nobody can set (`trusted_times`), and not so young that the file
//!   could change once more within it: else it is.
//! - Times, owners and extended attributes are not kept.
//! - Of what rules leave out, small files are kept that are neither build products nor secret (`ignored`): only
//!   so that a deletion can be taken back.
//! - What was ignored before the turn and has another name since is left alone.
//!
//! | module | what it does |
//! |---|---|
//! | `tree` | what stands somewhere, and how that changed |
//! | `stat_cache` | remembers what was seen, so that an unchanged file is not read again |
//! | `scan` | compares the workspace with it; `tracked` what git tracks although ignored, `trusted_times` says whether times can be trusted |
//! | `record` | scans around the operations of a turn; `rules` are the ignore rules from before the turn, `ignored_changes` what changed of what they leave out |
//! | `merge`, `apply` | undo and redo: what is to change, and changing it |
//! | `gc` | what is kept, and what goes when there is too much |

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
pub use apply::Restored;
pub use gc::{Needs, Turns};
pub use ignored::IgnoredLimits;
pub use ignored_changes::{IgnoredChange, Loss};
pub use merge::{UndoPlan, moved, unrestorable};
pub use record::{Noted, Recorded, Recorder};
pub use rules::KeptRules;
pub use stat_cache::Mark;
use stat_cache::StatCache;
pub use tree::{Change, Identity, NotStored, TreeEntry, composed, reversed};

/// What is kept of the workspace of one project.
#[derive(Debug)]
pub struct Store {
    /// The contents.
    pub blobs: Blobs,
    cache: StatCache,
    folder: PathBuf,
    /// The largest file that is kept, in bytes.
    file_limit: u64,
    ignored_limits: IgnoredLimits,
    /// How many bytes are kept in all.
    limit: u64,
    /// How many there are; None where nobody has counted.
    size: Option<u64>,
    /// How many there were when it was last looked which of them are needed.
    swept: u64,
    /// The turns that are recorded, where they may go for a new one.
    turns: Option<Box<dyn Turns>>,
    /// What the turn needs that is carried out, beside what the cache knows.
    held: BTreeSet<BlobId>,
    /// For so many bytes there was no room in this turn, whatever had gone.
    lacks: Option<u64>,
}

impl Store {
    /// What is kept in this folder, which is made when there is something.
    pub fn new(folder: &Path, file_limit: u64, ignored_limits: IgnoredLimits, limit: u64) -> Self {
        Self {
            blobs: Blobs::new(folder.to_owned()),
            cache: StatCache::new(folder.join("index")),
            folder: folder.to_owned(),
            file_limit,
            ignored_limits,
            limit,
            size: None,
            swept: 0,
            turns: None,
            held: BTreeSet::new(),
            lacks: None,
        }
    }

    /// Adds what a turn needs, such as the record of what it changed, whatever room there is. It is on disk after the
    /// next [`Store::settle`].
    ///
    /// # Panics
    /// Never: strings and numbers always become JSON.
    pub fn note(&mut self, noted: &(impl Serialize + ?Sized)) -> Result<BlobId> {
        let text = serde_json::to_vec(noted).expect("strings and numbers become JSON");
        let (id, more) = self.blobs.add(&text)?;
        self.size = Some(self.size() + more);
        Ok(id)
    }

    /// The record of a turn; None where it is gone.
    pub fn recorded(&self, id: &BlobId) -> Result<Option<Vec<Change>>> {
        let bytes = self.blobs.read(id)?;
        Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }

    /// All that these records say, as one list; None where one of them is gone.
    pub fn composed(&self, records: &[BlobId]) -> Result<Option<Vec<Change>>> {
        let mut parts = Vec::new();
        for record in records {
            let Some(changes) = self.recorded(record)? else { return Ok(None) };
            parts.push(changes);
        }
        Ok(Some(composed(parts)))
    }

    /// Brings all that was added to disk.
    pub fn settle(&mut self) -> Result<()> {
        let settled = self.blobs.settle();
        if settled.is_err() {
            self.forget();
        }
        settled
    }

    /// Takes back what was added and is not on disk.
    fn forget(&mut self) {
        self.blobs.forget();
        self.cache.unload();
        (self.size, _) = (None, std::fs::remove_file(self.folder.join("size")));
    }

    /// Clears away what an interrupted write left. Only for whoever may write here.
    pub fn clear(&self) {
        self.blobs.sweep();
        let _ = crate::atomic::sweep(&self.folder);
    }
}
