//! How much of checkpoints is kept, and for which turns.

use std::collections::BTreeSet;

use crate::blobs::BlobId;
use crate::clock::Timestamp;
use crate::engine::Engine;
use crate::error::Result;
use crate::session::log;
use crate::session::store::Store as Sessions;
use crate::settings::Config;
use crate::workspace::checkpoint::{
    BlobNeeds, CheckpointStore, IgnoredLimits, NotStored, RecordedTurns, TreeChange, compose,
    unrestorable,
};

/// Of the most that is kept, so many tenths are left when it was too much: else each turn would have to
/// make room.
const TENTHS: u64 = 8;

/// The checkpoint of one turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptTurn {
    /// Its session.
    pub session: String,
    /// The outbox that it answered.
    pub sequence: u32,
    /// When it was decided.
    pub at: Timestamp,
    /// How many files cannot be taken back, since there was no room to keep them.
    pub without_room: usize,
    /// Whether it is still whole, so that the turn can be shown and taken back.
    pub is_whole: bool,
    records: Vec<BlobId>,
    needs: BTreeSet<BlobId>,
}

/// What is kept for the checkpoints of a project.
pub(in crate::engine) fn store(config: &Config) -> CheckpointStore {
    let folder = config.sessions.join("checkpoints");
    let (file, all) = (config.checkpoint_ignored_file_bytes, config.checkpoint_ignored_bytes);
    let (limit, ignored) = (config.checkpoint_max_bytes, IgnoredLimits { file, all });
    let store = CheckpointStore::new(&folder, config.checkpoint_file_bytes, ignored, limit);
    store.with_recorded_turns(Box::new(Logs { config: config.clone() }))
}

/// The turns of a project, as their logs tell them.
#[derive(Debug)]
struct Logs {
    config: Config,
}

impl RecordedTurns for Logs {
    fn needs(&self, store: &CheckpointStore) -> Result<BlobNeeds> {
        let always = waiting(&Sessions::new(&self.config.sessions), store)?;
        let all = all(&self.config, store)?.into_iter().filter(|kept| kept.is_whole);
        Ok(BlobNeeds { always, turns: all.map(|kept| (kept.records, kept.needs)).collect() })
    }
}

/// What waits for a decision: it is needed when the turn goes on.
fn waiting(sessions: &Sessions, store: &CheckpointStore) -> Result<BTreeSet<BlobId>> {
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

/// The checkpoints of all sessions, the oldest first; and how many bytes are kept in all.
pub fn kept_turns(config: &Config) -> Result<(Vec<KeptTurn>, u64)> {
    let store = store(config);
    let kept = all(config, &store)?;
    // Counted: what was noted may be of before a stop.
    Ok((kept, store.blobs.all().iter().map(|(_, length)| length).sum()))
}

fn all(config: &Config, store: &CheckpointStore) -> Result<Vec<KeptTurn>> {
    let mut all = Vec::new();
    for id in Sessions::new(&config.sessions).ids()? {
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
            let is_whole = parts.len() == entry.records.len();
            let changes = compose(parts);
            let without_room =
                unrestorable(&changes).iter().filter(|(_, why)| *why == NotStored::Room).count();
            let (session, sequence, at) = (id.clone(), entry.sequence, entry.at);
            let records = entry.records;
            all.push(KeptTurn { session, sequence, at, without_room, is_whole, records, needs });
        }
    }
    all.sort_by_key(|kept| (kept.at, kept.sequence));
    Ok(all)
}

impl Engine {
    /// Removes what was kept for a session that is gone.
    pub(in crate::engine) fn forget_checkpoints(&mut self) -> Result<()> {
        self.checkpoints.prune(self.checkpoints.limit())
    }

    /// Makes room where more is kept than may be. What goes wrong is told by whoever asks for it.
    pub(in crate::engine) fn prune_if_needed(&mut self) {
        if !self.within_turn && self.config.checkpoints && self.checkpoints.is_full() {
            let limit = self.checkpoints.limit();
            // It is tried again after a later turn. What a forced undo put away is in the last one, and
            // nowhere else.
            let _ = self.checkpoints.prune(limit / 10 * TENTHS);
        }
    }
}
