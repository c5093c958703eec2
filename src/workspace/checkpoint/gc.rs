//! Keeps the stored bytes within their limit.
//!
//! The current turn takes precedence over recorded ones: if there is no room for what it needs, as many of the oldest
//! checkpoints as necessary are deleted at once.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use super::CheckpointStore;
use crate::blobs::{BlobId, Blobs};
use crate::error::Result;

/// The blobs that must not be deleted, and those of recorded turns.
#[derive(Debug, Default)]
pub struct BlobNeeds {
    /// Blobs that are needed even if all turns are deleted.
    pub always: BTreeSet<BlobId>,
    /// For each turn, the oldest first: its records, and all blobs that it needs.
    pub turns: Vec<(Vec<BlobId>, BTreeSet<BlobId>)>,
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
    /// Allows deleting the oldest of these turns' checkpoints to make room for a new one.
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

    /// Whether this many more bytes fit within the limit; deletes old checkpoints to make room.
    pub(super) fn has_room_for(&mut self, bytes: u64) -> bool {
        // If checkpoints cannot be read or deleted, there is no room.
        self.size().saturating_add(bytes) <= self.limit || self.make_room(bytes).unwrap_or(false)
    }

    /// Makes room for this many bytes and returns whether there is. Deletes nothing if deleting all checkpoints would
    /// not suffice.
    fn make_room(&mut self, bytes: u64) -> Result<bool> {
        let is_futile = self.no_room_for.is_some_and(|known| bytes >= known);
        let Some(most) = self.limit.checked_sub(bytes).filter(|_| !is_futile) else {
            return Ok(false);
        };
        // Otherwise the next file would have to make room again.
        let target = most.saturating_sub(self.limit / 20);
        let is_room = |present| (present <= most).then_some(target.max(present));
        if self.turns.is_some() && !self.prune_to(0, is_room)? {
            self.no_room_for = Some(bytes);
        }
        Ok(self.size().saturating_add(bytes) <= self.limit)
    }

    /// Deletes unneeded blobs, and the oldest checkpoints until at most `most` bytes are stored. If the current state
    /// of the workspace already takes more than that, the limit applies instead. The last checkpoint is never deleted.
    ///
    /// # Errors
    /// The recorded turns cannot be read, or a blob cannot be deleted.
    pub fn prune(&mut self, most: u64) -> Result<()> {
        self.clear_in_use();
        let limit = self.limit;
        let most = |present| Some(if present > most { limit } else { most });
        self.prune_to(1, most).map(drop)
    }

    /// Deletes unneeded blobs, and the oldest checkpoints except the last `spared` until at most `most` bytes are
    /// stored. `most` gets the number of bytes that are needed in any case. If it returns None, nothing is deleted and
    /// the result is false.
    fn prune_to(&mut self, spared: usize, most: impl FnOnce(u64) -> Option<u64>) -> Result<bool> {
        let Some(turns) = self.turns.take() else { return Ok(false) };
        let needs = turns.needs(self);
        self.turns = Some(turns);
        let BlobNeeds { always: mut needed, turns } = needs?;
        self.cache.load(None)?;
        needed.append(&mut self.cache.blobs());
        needed.extend(self.in_use.iter().cloned());
        let lengths: BTreeMap<BlobId, u64> = self.blobs.all().into_iter().collect();
        let length = |blob: &BlobId| lengths.get(blob).copied().unwrap_or_default();
        let present = self.blobs.waiting_bytes() + needed.iter().map(length).sum::<u64>();
        let Some(most) = most(present) else { return Ok(false) };
        let (mut sum, mut deleted) = (present, turns.len());
        for (nth, (_, needs)) in turns.iter().rev().enumerate() {
            sum += needs.difference(&needed).map(length).sum::<u64>();
            if nth >= spared && sum > most {
                break;
            }
            deleted -= 1;
            needed.extend(needs.iter().cloned());
        }
        // The records go first: a turn that lacks one is reported as deleted.
        let gone = turns[..deleted].iter().flat_map(|(records, _)| records);
        gone.filter(|record| !needed.contains(*record))
            .try_for_each(|record| self.blobs.remove(record))?;
        self.sweep(&needed)?;
        self.save_size();
        Ok(true)
    }

    /// The number of stored bytes.
    pub fn size(&mut self) -> u64 {
        if let Some(size) = self.size {
            return size;
        }
        // Usually an earlier process has counted them.
        let text = crate::atomic::read_own_text(&self.folder.join("size")).unwrap_or_default();
        let mut numbers = text.split_whitespace().map_while(|number| number.parse().ok());
        let size = numbers.next();
        self.size_at_last_sweep = self.size_at_last_sweep.max(numbers.next().unwrap_or_default());
        let count = || self.blobs.all().iter().map(|(_, length)| length).sum();
        *self.size.insert(size.unwrap_or_else(count))
    }

    /// The most bytes that may be stored.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Stores a content; None if there is no room, even after deleting the oldest checkpoints.
    pub(super) fn store_content(&mut self, bytes: &[u8]) -> Result<Option<BlobId>> {
        let length = bytes.len() as u64;
        let has = |blobs: &Blobs| blobs.has(&BlobId::of(bytes), length);
        if !has(&self.blobs) && !self.has_room_for(length) {
            return Ok(None);
        }
        let (id, more) = self.blobs.add(bytes)?;
        self.size = self.size.map(|size| size + more);
        self.in_use.insert(id.clone());
        Ok(Some(id))
    }

    /// Saves the sizes for the next process.
    pub fn save_size(&self) {
        if let Some(size) = self.size {
            let text = format!("{size} {}", self.size_at_last_sweep);
            // If the file is missing, the next process counts again.
            let _ = crate::atomic::write_soon(&self.folder.join("size"), text.as_bytes());
        }
    }

    /// Deletes all blobs except these and those in the cache. Returns the number of bytes that remain.
    pub(super) fn sweep(&mut self, needed: &BTreeSet<BlobId>) -> Result<u64> {
        self.cache.load(None)?;
        let known = self.cache.blobs();
        let mut size = self.blobs.waiting_bytes();
        for (id, length) in self.blobs.all() {
            if needed.contains(&id) || known.contains(&id) {
                size += length;
            } else {
                self.blobs.remove(&id)?;
            }
        }
        (self.size, self.size_at_last_sweep) = (Some(size), size);
        Ok(size)
    }

    /// Whether so much is stored that it is time to delete unneeded blobs.
    pub fn is_full(&mut self) -> bool {
        let (size, limit) = (self.size(), self.limit);
        size > limit / 10 * 9 && size > self.size_at_last_sweep.saturating_add(limit / 20)
    }
}
