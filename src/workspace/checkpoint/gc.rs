//! Keeps the number of stored bytes within the limit.
//!
//! The current turn takes precedence over recorded turns: if it needs more room, as many of the oldest checkpoints as
//! necessary are deleted at once.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::PathBuf;

use super::CheckpointStore;
use crate::atomic;
use crate::blobs::BlobId;
use crate::error::Result;

/// The blobs that must never be deleted, and those that recorded turns need.
#[derive(Debug, Default)]
pub struct BlobNeeds {
    /// Blobs that are needed even if all turns are deleted.
    pub always: BTreeSet<BlobId>,
    /// The blobs that each turn needs, the oldest turn first.
    pub turns: Vec<BTreeSet<BlobId>>,
}

/// A source of the recorded turns.
pub trait RecordedTurns: Debug + Send + Sync {
    /// The blobs that the recorded turns need.
    ///
    /// # Errors
    /// The turns cannot be read.
    fn needs(&self, store: &CheckpointStore) -> Result<BlobNeeds>;
}

impl CheckpointStore {
    /// Allows the store to delete the oldest of these turns' checkpoints to make room for a new one.
    #[must_use]
    pub fn with_recorded_turns(self, turns: Box<dyn RecordedTurns>) -> Self {
        Self { turns: Some(turns), ..self }
    }

    /// Forgets which blobs are in use; called when a turn begins or an undo is planned.
    pub(super) fn clear_in_use(&mut self) {
        self.in_use.clear();
        self.no_room_for = None;
    }

    /// Protects these blobs from deletion during the current turn.
    pub(super) fn mark_in_use<'a>(&mut self, blobs: impl Iterator<Item = &'a BlobId>) {
        self.in_use.extend(blobs.cloned());
    }

    /// Whether this many more bytes fit within the limit. Deletes old checkpoints to make room.
    pub(super) fn has_room_for(&mut self, bytes: u64) -> bool {
        // If checkpoints cannot be read or deleted, there is no room.
        self.size().saturating_add(bytes) <= self.limit || self.make_room(bytes).unwrap_or(false)
    }

    /// Makes room for this many bytes, and returns whether there is enough. Deletes nothing if deleting all checkpoints
    /// would not be enough.
    fn make_room(&mut self, bytes: u64) -> Result<bool> {
        let is_futile = self.no_room_for.is_some_and(|known| bytes >= known);
        let Some(most) = self.limit.checked_sub(bytes).filter(|_| !is_futile) else {
            return Ok(false);
        };
        // Make more room than necessary, so that the next file does not have to make room again.
        let target = most.saturating_sub(self.limit / 20);
        let is_room = |present| (present <= most).then_some(target.max(present));
        if self.turns.is_some() && !self.prune_to(0, is_room)? {
            self.no_room_for = Some(bytes);
        }
        Ok(self.size().saturating_add(bytes) <= self.limit)
    }

    /// Deletes unneeded blobs, and the oldest checkpoints until at most `most` bytes are stored. If the current state of
    /// the workspace needs more than `most`, the limit applies instead. The last checkpoint is never deleted.
    ///
    /// # Errors
    /// The recorded turns cannot be read, or a blob cannot be deleted.
    pub fn prune(&mut self, most: u64) -> Result<()> {
        self.clear_in_use();
        let limit = self.limit;
        let most = |present| Some(if present > most { limit } else { most });
        self.prune_to(1, most).map(drop)
    }

    /// Deletes unneeded blobs, and the oldest checkpoints until at most `most` bytes are stored; the last `spared`
    /// checkpoints are never deleted. `most` receives the number of bytes that are needed in any case. If it returns
    /// None, nothing is deleted and the result is false.
    fn prune_to(&mut self, spared: usize, most: impl FnOnce(u64) -> Option<u64>) -> Result<bool> {
        let Some(turns) = self.turns.take() else { return Ok(false) };
        let needs = turns.needs(self);
        self.turns = Some(turns);
        let BlobNeeds { always: mut needed, turns } = needs?;
        self.cache.load()?;
        needed.append(&mut self.cache.blobs());
        needed.extend(self.in_use.iter().cloned());
        let size_of = |blob: &BlobId| self.blobs.size_of(blob).unwrap_or_default();
        let present = needed.iter().map(size_of).sum::<u64>();
        let Some(most) = most(present) else { return Ok(false) };
        let mut sum = present;
        for (nth, needs) in turns.iter().rev().enumerate() {
            sum += needs.difference(&needed).map(size_of).sum::<u64>();
            if nth >= spared && sum > most {
                break;
            }
            needed.extend(needs.iter().cloned());
        }
        self.retain(&needed)?;
        Ok(true)
    }

    /// Deletes all contents except the needed ones.
    pub(super) fn retain(&mut self, needed: &BTreeSet<BlobId>) -> Result<()> {
        self.size = None;
        self.blobs.retain(|id| needed.contains(id))?;
        // If the file is missing, the next turn may search for unneeded contents again.
        let _ = atomic::write_soon(&self.size_after_gc(), self.size().to_string().as_bytes());
        Ok(())
    }

    fn size_after_gc(&self) -> PathBuf {
        self.folder.join("size-after-gc")
    }

    /// The number of stored bytes.
    pub fn size(&mut self) -> u64 {
        *self.size.get_or_insert_with(|| self.blobs.size())
    }

    /// The most bytes that may be stored.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Stores a content. None if there is no room for it, even after deleting the oldest checkpoints.
    pub(super) fn store_content(&mut self, bytes: &[u8]) -> Result<Option<BlobId>> {
        let id = BlobId::of(bytes);
        if self.blobs.size_of(&id).is_none() && !self.has_room_for(bytes.len() as u64) {
            return Ok(None);
        }
        self.add(&id, bytes)?;
        Ok(Some(id))
    }

    /// Stores a content regardless of the limit.
    pub(super) fn add(&mut self, id: &BlobId, bytes: &[u8]) -> Result<()> {
        let more = self.blobs.add(id, bytes)?;
        self.size = self.size.map(|size| size + more);
        Ok(())
    }

    /// Whether so many bytes are stored that unneeded contents should be deleted.
    pub fn is_full(&mut self) -> bool {
        let (size, limit) = (self.size(), self.limit);
        let after_gc = || atomic::read_own_text(&self.size_after_gc()).ok()?.parse().ok();
        size > limit / 10 * 9 && size > after_gc().unwrap_or(0_u64).saturating_add(limit / 20)
    }
}
