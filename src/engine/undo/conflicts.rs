//! Who made the changes that conflict with an undo: other turns, of this session or of another one in the same workspace,
//! or the person. Also finds files that are not as an undo or a redo says.

use std::collections::{BTreeMap, BTreeSet};

use super::select::is_undoable;
use crate::engine::Engine;
use crate::error::Result;
use crate::session::log::{self, LogEntry};
use crate::session::record::Undoing;
use crate::workspace::checkpoint::{TreeChange, compose, reverse};

/// The turns that made conflicting changes.
#[derive(Debug, Default)]
pub(super) struct ConflictOwners {
    /// A phrase for each place that a turn changed, by the place's path for people.
    by: BTreeMap<String, String>,
    /// The commands that undo these turns.
    calls: Vec<String>,
}

impl ConflictOwners {
    /// ` (by session b1b2c3d4, turn 2)`; empty if it was the person.
    pub(super) fn whose(&self, path: &str) -> String {
        self.by.get(path).map(|by| format!(" ({by})")).unwrap_or_default()
    }

    /// Whether all conflicting changes are the person's.
    pub(super) fn is_none(&self) -> bool {
        self.by.is_empty()
    }

    /// The alternative to `--force`, as the beginning of a sentence; empty if there is none.
    pub(super) fn instead(&self) -> String {
        match self.calls.as_slice() {
            [] => String::new(),
            calls => format!("Undo that first ({}), or ", calls.join(", ")),
        }
    }
}

impl Engine {
    /// Finds who made the changes since `turns` of session `id` in the places `conflicts`; `changes` are the planned ones.
    /// A change of unknown origin, for example because a checkpoint is gone, counts as the person's.
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
            let mut examined = BTreeSet::new();
            let mut oldest = None;
            for entry in later.filter(|entry| !entry.records.is_empty()) {
                let Ok(Some(theirs)) = self.checkpoints.read_composed(&entry.records) else {
                    continue;
                };
                for change in theirs {
                    let Some(shown) = wanted.get(change.path.as_str()) else { continue };
                    if !examined.insert(change.path.clone()) {
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
                undo_command(&entries, oldest, &of)
            }));
        }
        owners
    }

    /// The files, by their paths for people, that are not as they were before the undone turns, or after the redone ones.
    /// Without those in `left`, and those that are not stored. With `again`, unreadable records and files are skipped.
    ///
    /// # Errors
    /// A record or a file cannot be read.
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

/// The command that undoes a turn and those after it; None if it is undone already.
fn undo_command(entries: &[LogEntry], turn: &LogEntry, of: &str) -> Option<String> {
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
