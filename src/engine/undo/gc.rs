//! Which checkpoints are kept, within the limit of their total size.

use std::collections::BTreeSet;

use crate::blobs::BlobId;
use crate::clock::Timestamp;
use crate::engine::Engine;
use crate::error::Result;
use crate::session::log;
use crate::session::store::SessionStore;
use crate::settings::Config;
use crate::workspace::checkpoint::{
    BlobNeeds, CheckpointStore, IgnoredLimits, NotStored, RecordedTurns, TreeChange, compose,
    unrestorable,
};

/// Pruning goes down to this many tenths of the limit, so that not every turn has to prune.
const TENTHS_KEPT: u64 = 8;

/// The checkpoint of one turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptTurn {
    /// The session's ID.
    pub session: String,
    /// The outbox that it answered.
    pub sequence: u32,
    /// When the turn was committed.
    pub at: Timestamp,
    /// How many files cannot be restored, since there was no room to store them.
    pub without_room: usize,
    /// Whether it is complete, so that the turn can be shown and undone.
    pub is_complete: bool,
    needs: BTreeSet<BlobId>,
}

/// The checkpoint store of a project.
pub(in crate::engine) fn store(config: &Config) -> CheckpointStore {
    let folder = config.sessions.join("checkpoints");
    let (file, all) = (config.checkpoint_ignored_file_bytes, config.checkpoint_ignored_bytes);
    let (limit, ignored) = (config.checkpoint_max_bytes, IgnoredLimits { file, all });
    let store = CheckpointStore::new(&folder, config.checkpoint_file_bytes, ignored, limit);
    store.with_recorded_turns(Box::new(Logs { config: config.clone() }))
}

/// Finds the turns of a project in the logs of its sessions.
#[derive(Debug)]
struct Logs {
    config: Config,
}

impl RecordedTurns for Logs {
    fn needs(&self, store: &CheckpointStore) -> Result<BlobNeeds> {
        let always = needed_by_waiting(&SessionStore::new(&self.config.sessions), store)?;
        let all = all_turns(&self.config, store)?.into_iter().filter(|kept| kept.is_complete);
        Ok(BlobNeeds { always, turns: all.map(|kept| kept.needs).collect() })
    }
}

/// The blobs of waiting turns, which are needed when they continue.
fn needed_by_waiting(sessions: &SessionStore, store: &CheckpointStore) -> Result<BTreeSet<BlobId>> {
    let waiting = sessions.pending()?;
    let mut needed = BTreeSet::new();
    for changed in waiting.iter().filter_map(|session| session.changed.as_deref()) {
        needed.extend(changed.rules.clone());
        for record in &changed.records {
            needed.insert(record.clone());
            let changes = store.read_changes(record)?.unwrap_or_default();
            needed.extend(changes.iter().flat_map(TreeChange::blobs).cloned());
        }
    }
    Ok(needed)
}

/// The checkpoints of all sessions, the oldest first, and the total size of the stored contents in bytes.
pub fn kept_turns(config: &Config) -> Result<(Vec<KeptTurn>, u64)> {
    let store = store(config);
    let kept = all_turns(config, &store)?;
    store.blobs.check()?;
    Ok((kept, store.blobs.size()))
}

fn all_turns(config: &Config, store: &CheckpointStore) -> Result<Vec<KeptTurn>> {
    let mut all = Vec::new();
    for id in SessionStore::new(&config.sessions).ids()? {
        for entry in log::read(&config.sessions, &id)? {
            if entry.records.is_empty() {
                continue;
            }
            let mut parts = Vec::new();
            let mut needs: BTreeSet<BlobId> = BTreeSet::new();
            for record in &entry.records {
                needs.insert(record.clone());
                if let Some(changes) = store.read_changes(record)? {
                    needs.extend(changes.iter().flat_map(TreeChange::blobs).cloned());
                    parts.push(changes);
                }
            }
            let is_complete = parts.len() == entry.records.len();
            let changes = compose(parts);
            let without_room =
                unrestorable(&changes).iter().filter(|(_, why)| *why == NotStored::Room).count();
            let (session, sequence, at) = (id.clone(), entry.sequence, entry.at);
            all.push(KeptTurn { session, sequence, at, without_room, is_complete, needs });
        }
    }
    all.sort_by_key(|kept| (kept.at, kept.sequence));
    Ok(all)
}

impl Engine {
    /// Removes the checkpoints of deleted sessions.
    pub(in crate::engine) fn forget_checkpoints(&mut self) -> Result<()> {
        self.checkpoints.prune(self.checkpoints.limit())
    }

    /// Prunes checkpoints if they exceed the limit. Ignores errors, since a later turn tries again.
    pub(in crate::engine) fn prune_if_needed(&mut self) {
        if !self.within_turn && self.config.checkpoints && self.checkpoints.is_full() {
            let limit = self.checkpoints.limit();
            // `prune` spares the last checkpoint: what a forced undo overwrote is stored nowhere else.
            let _ = self.checkpoints.prune(limit / 10 * TENTHS_KEPT);
        }
    }
}
