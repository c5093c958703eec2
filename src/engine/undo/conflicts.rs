//! Whose work stands where a turn is to be taken back: that of other turns, of this session or of another
//! one in the same workspace, is not the person's. And what is not as an undo or a redo says it is.

use std::collections::{BTreeMap, BTreeSet};

use super::select::is_undoable;
use crate::engine::Engine;
use crate::error::Result;
use crate::session::log::{self, LogEntry};
use crate::session::record::Undoing;
use crate::workspace::checkpoint::{TreeChange, compose, reverse};

/// Which of the places that were changed since other turns changed.
#[derive(Debug, Default)]
pub(super) struct ConflictOwners {
    /// A phrase by the place's path for people.
    by: BTreeMap<String, String>,
    /// What takes these turns back.
    calls: Vec<String>,
}

impl ConflictOwners {
    /// ` (by session b1b2c3d4, turn 2)`; nothing where it was the person.
    pub(super) fn whose(&self, path: &str) -> String {
        self.by.get(path).map(|by| format!(" ({by})")).unwrap_or_default()
    }

    /// Whether the person alone has changed them.
    pub(super) fn is_none(&self) -> bool {
        self.by.is_empty()
    }

    /// What can be done instead of forcing it, as a sentence begins; nothing where that is nothing.
    pub(super) fn instead(&self) -> String {
        match self.calls.as_slice() {
            [] => String::new(),
            calls => format!("Undo that first ({}), or ", calls.join(", ")),
        }
    }
}

impl Engine {
    /// Whose work stands in those of these places that were changed since `turns` of session `id`; `changes`
    /// are what is planned. What is not known, such as where a checkpoint is gone, counts as the person's.
    pub(super) fn conflict_owners(
        &mut self,
        id: &str,
        turns: &[&LogEntry],
        changes: &[TreeChange],
        conflicts: &[String],
    ) -> ConflictOwners {
        let mut owners = ConflictOwners::default();
        let (Some(first), Some(last)) = (turns.first(), turns.last()) else { return owners };
        let (begun, newest) = (first.at, last.sequence);
        let wanted: BTreeSet<&String> = conflicts.iter().collect();
        let wanted: BTreeMap<&str, String> = changes
            .iter()
            .map(|change| (change.path.as_str(), change.shown()))
            .filter(|(_, shown)| wanted.contains(shown))
            .collect();
        let sessions = self.store.list().map(|(sessions, _)| sessions).unwrap_or_default();
        for session in sessions {
            let is_own = session.id == id;
            let entries = log::read(&self.config.sessions, &session.id).unwrap_or_default();
            let later = entries
                .iter()
                .rev()
                .filter(|entry| if is_own { entry.sequence > newest } else { entry.at >= begun });
            let mut met = BTreeSet::new();
            let mut oldest = None;
            for entry in later.filter(|entry| !entry.records.is_empty()) {
                let Ok(Some(theirs)) = self.checkpoints.read_composed(&entry.records) else {
                    continue;
                };
                for change in theirs {
                    let Some(shown) = wanted.get(change.path.as_str()) else { continue };
                    if !met.insert(change.path.clone()) {
                        continue;
                    }
                    let after = change.after.as_ref();
                    let stands = self.checkpoints.is_still(&self.workspace, &change.path, after);
                    if !stands.unwrap_or_default() {
                        continue;
                    }
                    let turn = entry.sequence;
                    let by = if is_own {
                        format!("by turn {turn}")
                    } else {
                        format!("by session {}, turn {turn}", session.id)
                    };
                    owners.by.insert(shown.clone(), by);
                    oldest = Some(entry);
                }
            }
            owners.calls.extend(oldest.and_then(|oldest| {
                let of = if is_own { String::new() } else { format!(" --session {}", session.id) };
                call(&entries, oldest, &of)
            }));
        }
        owners
    }

    /// The files that are not as the turns left them which stand again, or not as they were before those
    /// that are undone: by their paths for people. None that are in `left`, or of which nothing is kept.
    /// With `again` what cannot be read is passed over.
    ///
    /// # Errors
    /// They cannot be looked at.
    pub(super) fn mismatches(
        &mut self,
        id: &str,
        undoing: &Undoing,
        left: &[(String, String)],
        again: bool,
    ) -> Result<Vec<String>> {
        let mut parts = Vec::new();
        let entries = match log::read(&self.config.sessions, id) {
            Err(_) if again => Vec::new(),
            entries => entries?,
        };
        for entry in entries.iter().filter(|entry| undoing.turns.contains(&entry.sequence)) {
            match self.checkpoints.read_composed(&entry.records) {
                Err(_) if again => {}
                part => parts.extend(part?),
            }
        }
        let mut changes = compose(parts);
        if undoing.redid.is_none() {
            changes = reverse(changes);
        }
        let mut others = self.checkpoints.changed_since(&self.workspace, &changes, again)?;
        let left: BTreeSet<&String> = left.iter().map(|(path, _)| path).collect();
        others.retain(|path| !left.contains(path));
        Ok(others)
    }
}

/// The call that takes a turn back, with those after it; None where it does not stand.
fn call(entries: &[LogEntry], turn: &LogEntry, of: &str) -> Option<String> {
    if turn.back().is_some() {
        return Some(format!("`deaddrop redo {}{of}`", turn.sequence));
    }
    let later = |done: &&LogEntry| is_undoable(done) && done.sequence >= turn.sequence;
    match log::done(entries).into_iter().filter(later).count() {
        0 => None,
        1 => Some(format!("`deaddrop undo{of}`")),
        n => Some(format!("`deaddrop undo --last {n}{of}`")),
    }
}
