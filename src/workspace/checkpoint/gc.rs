//! Room for what is kept: how much there is, and what goes when it is too little.
//!
//! A turn that is carried out comes before those that are recorded: where there is no room for what it needs,
//! the oldest checkpoints go at once, as many as it takes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use super::Store;
use crate::blobs::{BlobId, Blobs};
use crate::error::Result;

/// What the recorded turns need of what is kept.
#[derive(Debug, Default)]
pub struct Needs {
    /// What is needed whatever goes.
    pub always: BTreeSet<BlobId>,
    /// Of each turn, the oldest first: its records, and all that it needs.
    pub turns: Vec<(Vec<BlobId>, BTreeSet<BlobId>)>,
}

/// Knows the turns that are recorded.
pub trait Turns: Debug + Send + Sync {
    /// What they need.
    ///
    /// # Errors
    /// It cannot be read which there are.
    fn needs(&self, store: &Store) -> Result<Needs>;
}

impl Store {
    /// The same, where the oldest of these turns go when there is no room for what a new one needs.
    #[must_use]
    pub fn with_turns(self, turns: Box<dyn Turns>) -> Self {
        Self { turns: Some(turns), ..self }
    }

    /// A turn begins, or an undo is planned: only what it needs from here on is held for it.
    pub(super) fn hold_anew(&mut self) {
        self.held.clear();
        self.lacks = None;
    }

    /// The turn needs the contents of these.
    pub(super) fn hold<'a>(&mut self, blobs: impl Iterator<Item = &'a BlobId>) {
        self.held.extend(blobs.cloned());
    }

    /// Whether so many bytes more may be kept, when what need not be kept for that is gone.
    pub(super) fn has_room_for(&mut self, bytes: u64) -> bool {
        // What cannot be looked through or removed makes no room.
        self.size().saturating_add(bytes) <= self.limit || self.make_room(bytes).unwrap_or(false)
    }

    /// Makes room for so many bytes; removes nothing where there would be none without all checkpoints either. Tells
    /// whether there is.
    fn make_room(&mut self, bytes: u64) -> Result<bool> {
        let is_known = self.lacks.is_some_and(|lacks| bytes >= lacks);
        let Some(most) = self.limit.checked_sub(bytes).filter(|_| !is_known) else {
            return Ok(false);
        };
        // Else the next file would have to make room, too.
        let less = most.saturating_sub(self.limit / 20);
        let is_room = |present| (present <= most).then_some(less.max(present));
        if self.turns.is_some() && !self.prune_to(0, is_room)? {
            self.lacks = Some(bytes);
        }
        Ok(self.size().saturating_add(bytes) <= self.limit)
    }

    /// Removes what nobody needs, and the oldest checkpoints until no more than `most` bytes are kept; where what
    /// the workspace is like now takes that already, until the limit is kept. The last checkpoint stays.
    ///
    /// # Errors
    /// It cannot be read what is needed, or something cannot be removed.
    pub fn prune(&mut self, most: u64) -> Result<()> {
        self.hold_anew();
        let limit = self.limit;
        let most = |present| Some(if present > most { limit } else { most });
        self.prune_to(1, most).map(drop)
    }

    /// Removes what nobody needs, and of the checkpoints before the last `spared` the oldest until no more is kept
    /// than `most` says, which is told how much is needed whatever goes. Nothing, where it says none: false.
    fn prune_to(&mut self, spared: usize, most: impl FnOnce(u64) -> Option<u64>) -> Result<bool> {
        let Some(turns) = self.turns.take() else { return Ok(false) };
        let needs = turns.needs(self);
        self.turns = Some(turns);
        let Needs { always: mut needed, turns } = needs?;
        self.cache.load(None)?;
        needed.append(&mut self.cache.blobs());
        needed.extend(self.held.iter().cloned());
        let lengths: BTreeMap<BlobId, u64> = self.blobs.all().into_iter().collect();
        let length = |blob: &BlobId| lengths.get(blob).copied().unwrap_or_default();
        let present = self.blobs.waiting_bytes() + needed.iter().map(length).sum::<u64>();
        let Some(most) = most(present) else { return Ok(false) };
        let (mut sum, mut went) = (present, turns.len());
        for (nth, (_, needs)) in turns.iter().rev().enumerate() {
            sum += needs.difference(&needed).map(length).sum::<u64>();
            if nth >= spared && sum > most {
                break;
            }
            went -= 1;
            needed.extend(needs.iter().cloned());
        }
        // The records of turns whose checkpoints go, before anything else of them: what lacks one is said to be gone.
        let gone = turns[..went].iter().flat_map(|(records, _)| records);
        gone.filter(|record| !needed.contains(*record))
            .try_for_each(|record| self.blobs.remove(record))?;
        self.sweep(&needed)?;
        self.note_size();
        Ok(true)
    }

    /// How many bytes are kept.
    pub fn size(&mut self) -> u64 {
        if let Some(size) = self.size {
            return size;
        }
        // It was counted before, most likely.
        let told = crate::atomic::read_own_text(&self.folder.join("size")).unwrap_or_default();
        let mut numbers = told.split_whitespace().map_while(|number| number.parse().ok());
        let size = numbers.next();
        self.swept = self.swept.max(numbers.next().unwrap_or_default());
        let count = || self.blobs.all().iter().map(|(_, length)| length).sum();
        *self.size.insert(size.unwrap_or_else(count))
    }

    /// How many bytes may be kept in all.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Adds a content; nothing where there is no room for it, also without the oldest checkpoints.
    pub(super) fn keep(&mut self, bytes: &[u8]) -> Result<Option<BlobId>> {
        let length = bytes.len() as u64;
        let has = |blobs: &Blobs| blobs.has(&BlobId::of(bytes), length);
        if !has(&self.blobs) && !self.has_room_for(length) {
            return Ok(None);
        }
        let (id, more) = self.blobs.add(bytes)?;
        self.size = self.size.map(|size| size + more);
        self.held.insert(id.clone());
        Ok(Some(id))
    }

    /// Notes how much is kept, and was when it was last looked, for the next process.
    pub fn note_size(&self) {
        if let Some(size) = self.size {
            let text = format!("{size} {}", self.swept);
            // It is counted anew where it is missing.
            let _ = crate::atomic::write_soon(&self.folder.join("size"), text.as_bytes());
        }
    }

    /// Removes the blobs that neither these are, nor the cache needs. Gives how many bytes are kept
    /// then.
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
        (self.size, self.swept) = (Some(size), size);
        Ok(size)
    }

    /// Whether so much is kept that it is time to look which of it is needed.
    pub fn is_full(&mut self) -> bool {
        let (size, limit) = (self.size(), self.limit);
        size > limit / 10 * 9 && size > self.swept.saturating_add(limit / 20)
    }
}
