//! A three-way merge for undo and redo: of what a turn left, what was there before it, and what stands there now,
//! into changes to make and conflicts. Nothing is touched here.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::hidden::is_unknown;
use super::numbers::Lasting;
use super::{Change, Store, What, Why, change_at};
use crate::blobs::BlobId;
use crate::error::{Error, Result};
use crate::workspace::Workspace;
use crate::workspace::names::{ancestors, shown, split};

/// The changes that put the workspace back, in the order of paths.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// From what stands there now, which is stored, to what is to stand there.
    pub changes: Vec<Change>,
    /// What the names of temporary files begin with.
    key: String,
    /// Files that are not stored and go back by a rename: where they go, and where they are.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) moves: BTreeMap<String, String>,
    /// What cannot be put back, by its path for people, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<(String, String)>,
    /// What somebody has changed since, by its path for people.
    #[serde(skip)]
    pub conflicts: Vec<String>,
    /// What changed under protected names while commands ran, by its path for people: it stays unless forced.
    #[serde(skip)]
    pub protected: Vec<String>,
    /// What should go, and stays.
    #[serde(skip)]
    staying: BTreeSet<String>,
    /// The contents that cannot be put back where they were.
    #[serde(skip)]
    lacking: BTreeSet<BlobId>,
}

impl Store {
    /// Plans to make these changes, of which `before` is what should stand there. With `force` also conflicts are
    /// overwritten, if what stands there now can be stored, and protected names.
    ///
    /// # Errors
    /// A place cannot be read, or nothing can be stored.
    pub fn plan(
        &mut self,
        workspace: &Workspace,
        changes: Vec<Change>,
        force: bool,
    ) -> Result<Plan> {
        self.hold_anew();
        self.hold_all(&changes);
        let key = format!(".deaddrop-{}", uuid::Uuid::new_v4().simple());
        let mut plan = Plan { key, moves: moves(&changes), ..Plan::default() };
        let ends: BTreeSet<String> =
            plan.moves.iter().flat_map(|(to, from)| [to.clone(), from.clone()]).collect();
        let given: BTreeSet<String> = changes.iter().map(|change| change.path.clone()).collect();
        for change in changes {
            // What an operation wrote there was approved. Nobody knows who wrote there while a command ran.
            if change.by_command && !force && workspace.is_below_one(&change.path) {
                let why =
                    "its name is protected, only you write it; it changed while a command ran";
                plan.leave(&change, why.to_owned());
                plan.protected.push(change.shown());
                continue;
            }
            let is_end = ends.contains(&change.path);
            let known = [change.before.as_ref(), change.after.as_ref()];
            let mut now = self.look_for(workspace, &change.path, force && !is_end, known)?;
            let is = |what: &Option<What>| is_same(now.as_ref(), what.as_ref());
            // What was unreadable cannot come back, whatever stands there.
            let is_unknown = is_unknown(&change.path, change.after.as_ref());
            let is_done = !is_unknown && is(&change.after);
            let is_conflict =
                !is_unknown && (change.mixed && !change.ignored || !is_done && !is(&change.before));
            if is_conflict && change.ignored {
                plan.leave(
                    &change,
                    "it is ignored, and something else stands there now".to_owned(),
                );
                continue;
            }
            if is_conflict {
                plan.conflicts.push(change.shown());
                if force {
                    now = self.look_at(workspace, &change.path, true)?;
                }
            }
            if is_done || is_conflict && !force {
                continue;
            }
            let unkept = |what: Option<&What>| what.is_some_and(What::is_unkept);
            let ends_alone = match (&now, &change.after) {
                (what, None) | (None, what) => unkept(what.as_ref()),
                _ => false,
            };
            let cannot = if is_end && !is_conflict && ends_alone {
                None
            } else {
                self.cannot(now.as_ref(), change.after.as_ref())?
            };
            match cannot {
                Some(why) => plan.leave(&change, why),
                None => plan.changes.push(Change::of(change.path, now, change.after)),
            }
        }
        plan.drop_half_moves();
        self.plan_missing_folders(workspace, force, &given, &mut plan)?;
        plan.leave_only_copies();
        Ok(plan)
    }

    /// Plans the folders above what comes back that somebody has removed or replaced since: each is a conflict.
    /// What lies below one that is left is left, too.
    fn plan_missing_folders(
        &mut self,
        workspace: &Workspace,
        force: bool,
        given: &BTreeSet<String>,
        plan: &mut Plan,
    ) -> Result<()> {
        let coming = plan.changes.iter().filter(|change| change.after.is_some());
        let above: BTreeSet<&str> = coming.flat_map(|c| ancestors(split(&c.path).0)).collect();
        let is_missing = |folder: &&str| {
            plan.change(folder).is_none()
                && !workspace.stands_at(folder).is_ok_and(|(_, found)| found.is_dir())
        };
        let missing: Vec<String> =
            above.into_iter().filter(is_missing).map(str::to_owned).collect();
        for folder in missing {
            if given.contains(&folder) {
                plan.leave_below(&folder);
                continue;
            }
            self.index.load(None)?;
            let known = self.index.seen.get(&folder).and_then(|known| known.what.mode());
            let now = self.look_at(workspace, &folder, force)?;
            let mode = known.unwrap_or(0o755);
            let change = Change::of(folder, now, Some(What::Folder { mode }));
            plan.conflicts.push(change.shown());
            match self.cannot(change.before.as_ref(), None)? {
                Some(why) => plan.leave(&change, why),
                None => plan.changes.push(change),
            }
        }
        plan.changes.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok(())
    }

    /// Why what stands somewhere cannot become that. The content it is to get is read, so that a failing disk is
    /// found before anything is touched.
    fn cannot(&self, now: Option<&What>, after: Option<&What>) -> Result<Option<String>> {
        if let Some(blob) = after.and_then(What::blob) {
            let content = self.blobs.read(blob);
            let content = content.map_err(|e| Error::undo(format!("{e}; nothing was touched")))?;
            if content.is_none() {
                return Ok(Some("what it was is not kept".to_owned()));
            }
        }
        if let Some(What::File { blob, size, .. }) = now
            && !self.blobs.has(blob, *size)
        {
            return Ok(Some("what it is now is not kept".to_owned()));
        }
        let why = |what: Option<&What>, is: &str| {
            Some(format!("{is} is not kept: {}", what?.unkept()?.in_words()))
        };
        Ok(why(after, "what it was").or_else(|| why(now, "what it is now")))
    }
}

impl Plan {
    fn leave(&mut self, change: &Change, why: String) {
        match &change.after {
            Some(after) => self.lacking.extend(after.blob().cloned()),
            None => drop(self.staying.insert(change.path.clone())),
        }
        self.left.push((change.shown(), why));
    }

    fn leave_all(&mut self, which: impl Fn(&Change) -> bool, why: &str) {
        let (leaving, staying) = std::mem::take(&mut self.changes).into_iter().partition(which);
        self.changes = staying;
        let leaving: Vec<Change> = leaving;
        leaving.iter().for_each(|change| self.leave(change, why.to_owned()));
    }

    fn leave_below(&mut self, folder: &str) {
        let below = format!("{folder}/");
        let why = format!("'{}', on the way there, stays", shown(folder));
        self.leave_all(|change| change.after.is_some() && change.path.starts_with(&below), &why);
    }

    /// Leaves a file that was moved where its content cannot be put back in its old place, and the folders above
    /// all that stays.
    fn leave_only_copies(&mut self) {
        let lacking = std::mem::take(&mut self.lacking);
        let is_copy = |change: &Change| {
            let is_it = |what: &What| matches!(what, What::File { blob, size: 1.., .. } if lacking.contains(blob));
            change.after.is_none() && change.before.as_ref().is_some_and(is_it)
        };
        self.leave_all(is_copy, "it holds what could not be put back elsewhere");
        let staying = std::mem::take(&mut self.staying);
        let is_above = |change: &Change| {
            let below = format!("{}/", change.path);
            let first = staying.range(below.clone()..).next();
            change.after.is_none() && first.is_some_and(|first| first.starts_with(&below))
        };
        self.leave_all(is_above, "it holds what is left as it is");
    }

    /// Leaves a file that is not stored where only one end of its move is planned.
    fn drop_half_moves(&mut self) {
        let is_half = |(to, from): &(&String, &String)| {
            self.change(to).is_none() || self.change(from).is_none()
        };
        let half = self.moves.iter().filter(is_half).flat_map(|(to, from)| [to, from]);
        let half: BTreeSet<String> = half.cloned().collect();
        let why = "it is not kept, and cannot be moved back";
        self.leave_all(|change| half.contains(&change.path), why);
    }

    /// The change that is planned for a path.
    pub(super) fn change(&self, path: &str) -> Option<&Change> {
        change_at(&self.changes, path)
    }

    /// The temporary name of the new content of change `n`, in the same folder.
    pub(super) fn temporary(&self, n: usize) -> String {
        format!("{}-{n}.tmp", self.key)
    }
}

/// What tells a file that is not stored from others, also after a rename.
fn lasting(what: Option<&What>) -> Option<Lasting> {
    let What::Unkept { is, .. } = what? else { return None };
    is.lasting()
}

/// Whether both are the same; a rename makes no other file of one that is not stored.
pub(super) fn is_same(one: Option<&What>, other: Option<&What>) -> bool {
    one == other || lasting(one).is_some() && lasting(one) == lasting(other)
}

/// The files that were moved unchanged, by their new paths: each as it was in the old place. Empty files are all
/// alike, and count as new.
pub fn moved<'a>(
    changes: impl Iterator<Item = &'a Change> + Clone,
) -> BTreeMap<&'a str, &'a Change> {
    fn is(what: Option<&What>) -> Option<(Option<&BlobId>, Option<Lasting>)> {
        match what? {
            What::File { blob, size: 1.., .. } => Some((Some(blob), None)),
            what => Some((None, Some(lasting(Some(what))?))),
        }
    }
    let mut gone: BTreeMap<_, Vec<&Change>> = BTreeMap::new();
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

/// Where files that are not stored can go back by a rename: where they go, and where they are.
fn moves(changes: &[Change]) -> BTreeMap<String, String> {
    moved(changes.iter().filter(|change| !change.mixed))
        .into_iter()
        .filter(|(_, from)| from.before.as_ref().is_some_and(What::is_unkept))
        .map(|(to, from)| (to.to_owned(), from.path.clone()))
        .collect()
}

/// Which of these changes cannot be taken back, and why: what stood or stands there is not stored.
pub fn unrestorable(changes: &[Change]) -> Vec<(&Change, Why)> {
    let moves = moves(&super::reversed(changes.to_vec()));
    let ends: BTreeSet<&String> = moves.iter().flat_map(|(to, from)| [to, from]).collect();
    let why = |change: &Change| {
        let mut sides = [&change.before, &change.after].into_iter().flatten();
        sides.find_map(What::unkept)
    };
    let changes = changes.iter().filter(|change| !ends.contains(&change.path));
    changes.filter_map(|change| Some((change, why(change)?))).collect()
}

impl Workspace {
    /// Those of these that are not stored, each with what stands at a path now, said in its words. None where
    /// nothing stands there.
    pub(super) fn as_unkept<'a>(
        &self,
        path: &str,
        known: [Option<&'a What>; 2],
    ) -> Vec<(&'a What, What)> {
        let unkept = |what: &'a What| Some((what, what.unkept()?));
        let unkept: Vec<_> = known.into_iter().flatten().filter_map(unkept).collect();
        if unkept.is_empty() {
            return Vec::new();
        }
        let Ok(is) = self.identity_at(path) else { return Vec::new() };
        let now = |(what, why)| (what, What::Unkept { why, is: is.clone() });
        unkept.into_iter().map(now).collect()
    }
}
