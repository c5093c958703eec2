//! A three-way merge for undo and redo: compares the trees before and after a turn with the current workspace, and
//! plans changes and conflicts. It does not change the workspace.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::tree::{StableStat, find_change, is_folder, is_same};
use super::{CheckpointStore, NotStored, TreeChange, TreeEntry};
use crate::blobs::BlobId;
use crate::error::{Error, Result};
use crate::workspace::Workspace;
use crate::workspace::names::{ancestors, shown, split};

/// Why a file is kept instead of being removed.
pub(super) const ONLY_COPY: &str =
    "it is the only copy of content that could not be restored elsewhere";

/// The changes that restore the workspace, sorted by path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UndoPlan {
    /// The changes from the current state, which is stored, to the desired state.
    pub changes: Vec<TreeChange>,
    /// The prefix of temporary file names.
    key: String,
    /// Files whose contents are not stored and that a rename restores: from the restored path to the current path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) moves: BTreeMap<String, String>,
    /// What cannot be restored: the path for messages, and the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<(String, String)>,
    /// The paths, for messages, that somebody has changed since the turn.
    #[serde(skip)]
    pub conflicts: Vec<String>,
    /// Paths under protected names that changed while commands ran, for messages. Only `force` undoes these changes.
    #[serde(skip)]
    pub protected: Vec<String>,
}

/// A plan under construction.
struct PlanDraft {
    plan: UndoPlan,
    /// The paths that have been considered already.
    known: BTreeSet<String>,
    /// The changes that cannot be undone, and the reasons.
    left: Vec<(TreeChange, String)>,
}

impl CheckpointStore {
    /// Plans these changes, whose `before` is the expected current state. `force` also overwrites protected names, as
    /// well as conflicts whose current state can be stored.
    ///
    /// # Errors
    /// A path cannot be read, or nothing can be stored.
    pub fn plan(
        &mut self,
        workspace: &Workspace,
        changes: Vec<TreeChange>,
        force: bool,
    ) -> Result<UndoPlan> {
        self.clear_in_use();
        self.mark_in_use(changes.iter().flat_map(TreeChange::blobs));
        let key = format!(".deaddrop-{}", uuid::Uuid::new_v4().simple());
        let plan = UndoPlan { key, moves: moves(&changes), ..UndoPlan::default() };
        let known = changes.iter().map(|change| change.path.clone()).collect();
        let mut draft = PlanDraft { plan, known, left: Vec::new() };
        let ends = draft.plan.moves.iter().flat_map(|(to, from)| [to, from]);
        let ends: BTreeSet<String> = ends.cloned().collect();
        for change in changes {
            // The person approved what an operation wrote here. While a command ran, it is unknown who wrote here.
            if change.by_command && !force && workspace.is_below_one(&change.path) {
                let why = "its name is protected, and it changed while a command ran";
                draft.plan.protected.push(change.shown());
                draft.leave(change, why);
                continue;
            }
            let is_end = ends.contains(&change.path);
            let known = [change.before.as_ref(), change.after.as_ref()];
            let mut now = self.inspect_as(workspace, &change.path, force && !is_end, known)?;
            let is = |what: &Option<TreeEntry>| is_same(now.as_ref(), what.as_ref());
            // The state of an unreadable entry is unknown, so it cannot be restored, whatever exists now.
            let is_unknown =
                change.after.as_ref().is_some_and(|after| after.is_unknown_at(&change.path));
            let is_done = !is_unknown && is(&change.after);
            let is_conflict =
                !is_unknown && (change.mixed && !change.ignored || !is_done && !is(&change.before));
            if is_conflict && change.ignored {
                draft.leave(change, "it is ignored, and its path is in use now");
                continue;
            }
            if is_conflict {
                draft.plan.conflicts.push(change.shown());
                if force {
                    now = self.inspect(workspace, &change.path, true)?;
                }
            }
            if is_done || is_conflict && !force {
                continue;
            }
            let ends_alone = match (&now, &change.after) {
                (Some(what), None) | (None, Some(what)) => what.not_stored().is_some(),
                _ => false,
            };
            let cannot = if is_end && !is_conflict && ends_alone {
                None
            } else {
                self.why_impossible(now.as_ref(), change.after.as_ref())?
            };
            match cannot {
                Some(why) => draft.leave(change, &why),
                None => draft.plan.changes.push(TreeChange::of(change.path, now, change.after)),
            }
        }
        // Leaving out one change can make others impossible.
        loop {
            let before = draft.left.len();
            draft.exclude_half_moves();
            self.plan_missing_folders(workspace, force, &mut draft)?;
            draft.exclude_copies();
            draft.exclude_nonempty_folders();
            if draft.left.len() == before {
                break;
            }
        }
        let PlanDraft { mut plan, left, .. } = draft;
        plan.left = left.into_iter().map(|(change, why)| (change.shown(), why)).collect();
        Ok(plan)
    }

    /// Plans to create the parent folders of restored entries if somebody has removed or replaced them since. Each such
    /// folder is a conflict. If it is left out, so is everything below it.
    fn plan_missing_folders(
        &mut self,
        workspace: &Workspace,
        force: bool,
        draft: &mut PlanDraft,
    ) -> Result<()> {
        let coming = draft.plan.changes.iter().filter(|change| change.after.is_some());
        let above: BTreeSet<&str> = coming.flat_map(|c| ancestors(split(&c.path).0)).collect();
        let is_missing = |folder: &&str| match draft.plan.change(folder) {
            Some(change) => !is_folder(change.after.as_ref()),
            None => !workspace.entry(folder).is_ok_and(|(_, found)| found.is_dir()),
        };
        let missing: Vec<String> =
            above.into_iter().filter(is_missing).map(str::to_owned).collect();
        for folder in missing {
            if !draft.known.insert(folder.clone()) {
                draft.exclude_below(&folder);
                continue;
            }
            self.cache.load()?;
            let known = self.cache.get(&folder).and_then(|known| known.what.mode());
            let now = self.inspect(workspace, &folder, force)?;
            let mode = known.unwrap_or(0o755);
            let change = TreeChange::of(folder, now, Some(TreeEntry::Folder { mode }));
            draft.plan.conflicts.push(change.shown());
            match self.why_impossible(change.before.as_ref(), None)? {
                Some(why) => draft.leave(change, &why),
                None => draft.plan.changes.push(change),
            }
        }
        draft.plan.changes.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok(())
    }

    /// The files and links that differ from the state that these changes left, as paths for messages. Unreadable
    /// entries are left out. `again` ignores disk errors; otherwise a damaged disk would block the project forever.
    ///
    /// # Errors
    /// An entry cannot be read.
    pub fn changed_since(
        &mut self,
        workspace: &Workspace,
        changes: &[TreeChange],
        again: bool,
    ) -> Result<Vec<String>> {
        let is_file =
            |what: &Option<TreeEntry>| what.as_ref().is_some_and(|what| !what.is_folder());
        let mut others = Vec::new();
        for change in changes.iter().filter(|one| is_file(&one.before) || is_file(&one.after)) {
            let after = change.after.as_ref();
            match self.inspect_as(workspace, &change.path, false, [after, None]) {
                Ok(Some(now)) if now.is_unreadable() => {}
                Ok(now) if is_same(now.as_ref(), after) => {}
                Ok(_) => others.push(change.shown()),
                Err(_) if again => {}
                Err(e) => return Err(e),
            }
        }
        Ok(others)
    }

    /// Why the current entry cannot be replaced by `after`; None if it can. Reads the new content, so that a failing
    /// disk is detected before anything is changed.
    fn why_impossible(
        &self,
        now: Option<&TreeEntry>,
        after: Option<&TreeEntry>,
    ) -> Result<Option<String>> {
        if let Some(blob) = after.and_then(TreeEntry::blob) {
            let content = self.blobs.read(blob);
            let content = content.map_err(|e| Error::undo(format!("{e}; nothing was touched")))?;
            if content.is_none() {
                return Ok(Some("its earlier content is not stored".to_owned()));
            }
        }
        // An entry may only be replaced if its stored content can be read again.
        if let Some(blob) = now.and_then(TreeEntry::blob)
            && !matches!(self.blobs.read(blob), Ok(Some(_)))
        {
            return Ok(Some("its current content is not stored".to_owned()));
        }
        let why = |what: Option<&TreeEntry>, is: &str| {
            Some(format!("{is} is not stored: {}", what?.not_stored()?.describe()))
        };
        Ok(why(after, "its earlier content").or_else(|| why(now, "its current content")))
    }
}

impl PlanDraft {
    fn leave(&mut self, change: TreeChange, why: &str) {
        self.left.push((change, why.to_owned()));
    }

    fn exclude_all(&mut self, mut which: impl FnMut(&TreeChange) -> bool, why: &str) {
        for change in self.plan.changes.extract_if(.., |change| which(change)) {
            self.left.push((change, why.to_owned()));
        }
    }

    fn exclude_below(&mut self, folder: &str) {
        let below = format!("{folder}/");
        let why = format!("'{}', which is in its path, stays", shown(folder));
        self.exclude_all(|change| change.after.is_some() && change.path.starts_with(&below), &why);
    }

    /// Leaves out the moves of files whose contents are not stored if only one end of the move is planned.
    fn exclude_half_moves(&mut self) {
        let is_half = |(to, from): &(&String, &String)| {
            self.plan.change(to).is_none() || self.plan.change(from).is_none()
        };
        let half = self.plan.moves.iter().filter(is_half).flat_map(|(to, from)| [to, from]);
        let half: BTreeSet<String> = half.cloned().collect();
        let why = "it is not stored, and cannot be moved back";
        self.exclude_all(|change| half.contains(&change.path), why);
    }

    /// Keeps an existing copy for each copy that cannot be restored elsewhere, first the copies that would be deleted.
    fn exclude_copies(&mut self) {
        let content = |what: &Option<TreeEntry>| match what {
            Some(TreeEntry::File { blob, size: 1.., .. }) => Some(blob.clone()),
            _ => None,
        };
        let mut lacking: BTreeMap<BlobId, isize> = BTreeMap::new();
        for (change, _) in &self.left {
            for (side, one) in [(&change.after, 1), (&change.before, -1)] {
                if let Some(content) = content(side) {
                    *lacking.entry(content).or_default() += one;
                }
            }
        }
        for goes in [true, false] {
            let is_copy = |change: &TreeChange| {
                let Some(now) = content(&change.before) else { return false };
                let is_taken =
                    change.after.is_none() == goes && content(&change.after).as_ref() != Some(&now);
                let Some(lacking) = lacking.get_mut(&now).filter(|n| is_taken && **n > 0) else {
                    return false;
                };
                *lacking -= 1;
                true
            };
            self.exclude_all(is_copy, ONLY_COPY);
        }
    }

    /// Leaves out the removal of folders that contain an entry that stays.
    fn exclude_nonempty_folders(&mut self) {
        let staying = self.left.iter().filter(|(change, _)| change.after.is_none());
        let above = staying.flat_map(|(change, _)| ancestors(split(&change.path).0));
        let above: BTreeSet<String> = above.map(str::to_owned).collect();
        let is_above = |change: &TreeChange| change.after.is_none() && above.contains(&change.path);
        self.exclude_all(is_above, "it contains files that are left as they are");
    }
}

impl UndoPlan {
    /// Whether an entry of another kind will be at the change's path or at a parent's path.
    pub(super) fn makes_room(&self, change: &TreeChange) -> bool {
        ancestors(&change.path).filter_map(|path| self.change(path)).any(|change| {
            change.after.is_some()
                && is_folder(change.before.as_ref()) != is_folder(change.after.as_ref())
        })
    }

    /// The change planned for a path.
    pub(super) fn change(&self, path: &str) -> Option<&TreeChange> {
        find_change(&self.changes, path)
    }

    /// The temporary name for the new content of change `n`. The file is in the same folder as the changed entry.
    pub(super) fn temporary(&self, n: usize) -> String {
        format!("{}-{n}.tmp", self.key)
    }
}

/// Pairs the files that were moved unchanged: maps the new path to the removal of the old one. Empty files cannot be
/// told apart, so they count as new.
pub fn moved<'a>(
    changes: impl Iterator<Item = &'a TreeChange> + Clone,
) -> BTreeMap<&'a str, &'a TreeChange> {
    fn is(what: Option<&TreeEntry>) -> Option<(Option<&BlobId>, Option<StableStat>)> {
        match what? {
            TreeEntry::File { blob, size: 1.., .. } => Some((Some(blob), None)),
            what => Some((None, Some(what.stable()?))),
        }
    }
    let mut gone: BTreeMap<_, Vec<&TreeChange>> = BTreeMap::new();
    for change in changes.clone().filter(|change| change.after.is_none()) {
        if let Some(key) = is(change.before.as_ref()) {
            gone.entry(key).or_default().push(change);
        }
    }
    let new = changes.filter(|change| change.before.is_none());
    new.filter_map(|new| {
        let from = gone.get_mut(&is(new.after.as_ref())?)?.pop()?;
        Some((&*new.path, from))
    })
    .collect()
}

/// Files whose contents are not stored and that a rename can restore: from the restored path to the current path.
fn moves(changes: &[TreeChange]) -> BTreeMap<String, String> {
    moved(changes.iter().filter(|change| !change.mixed))
        .into_iter()
        .filter(|(_, from)| from.before.as_ref().is_some_and(|was| was.not_stored().is_some()))
        .map(|(to, from)| (to.to_owned(), from.path.clone()))
        .collect()
}

/// The changes that cannot be undone because the content before or after is not stored, and the reasons.
pub fn unrestorable(changes: &[TreeChange]) -> Vec<(&TreeChange, NotStored)> {
    let moves = moves(&super::reverse(changes.to_vec()));
    let ends: BTreeSet<&String> = moves.iter().flat_map(|(to, from)| [to, from]).collect();
    let why = |change: &TreeChange| {
        let mut sides = [&change.before, &change.after].into_iter().flatten();
        sides.find_map(TreeEntry::not_stored)
    };
    let changes = changes.iter().filter(|change| !ends.contains(&change.path));
    changes.filter_map(|change| Some((change, why(change)?))).collect()
}
