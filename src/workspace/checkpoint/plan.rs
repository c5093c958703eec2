//! What is to be put back, looked at before anything is: what somebody has changed since, and what
//! cannot be put back.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::copies::content;
use super::hidden::is_unknown;
use super::left::{Left, is_folder_that_goes};
use super::look::split;
use super::opened::Opened;
use super::renaming::{is_same, moves};
use super::repositories::remedies;
use super::{Change, Store, What, change_at};
use crate::error::{Error, Result};
use crate::workspace::Workspace;
use crate::workspace::walk::close::Facts;

/// What is to be put back, in the order of paths.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// From what stands there now, which is kept, to what is to stand there.
    pub changes: Vec<Change>,
    /// What the names of temporary files begin with.
    key: String,
    /// Folders that are opened for it while it is done, and the permissions that they are to have in
    /// the end.
    opened: Vec<(String, u32)>,
    /// What is not kept and goes back by a rename: by the place that it goes to, the place where it is.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) moves: BTreeMap<String, String>,
    /// What is left as it is, by its path for people, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<(String, String)>,
    /// What somebody has changed since, by its path for people.
    #[serde(skip)]
    pub conflicts: Vec<String>,
    /// What was there before the turn, or may have been, under a name that is not kept, by its path for
    /// people: it is left, and by force it goes.
    #[serde(skip)]
    pub brought: Vec<String>,
    /// What changed under protected names while commands ran, by its path for people: it is left, and put
    /// back by force.
    #[serde(skip)]
    pub protected: Vec<String>,
}

impl Store {
    /// Plans to make these changes, of which `before` is what should stand there. What somebody has
    /// changed since, and what was there before under a name that is not kept, is changed all the same
    /// where `force` says so, if what stands there now can be kept.
    pub fn plan(
        &mut self,
        workspace: &Workspace,
        changes: Vec<Change>,
        force: bool,
    ) -> Result<Plan> {
        self.hold_anew();
        self.hold_all(&changes);
        let key = format!(".deaddrop-{}", uuid::Uuid::new_v4().simple());
        let mut plan = Plan { key, ..Plan::default() };
        let mut left = Left::default();
        let (mut all, mut forced) = (Vec::new(), BTreeSet::new());
        for mut change in changes {
            // What an operation did there, the person had agreed to. Of what was done while a command ran
            // nobody can tell whose it is.
            if change.by_command
                && !force
                && workspace.is_below_one(&change.path)
                && !change.is_of_a_repository()
            {
                let why =
                    "its name is protected, only you write it; it changed while a command ran";
                plan.left.push((change.shown(), why.to_owned()));
                plan.protected.push(change.shown());
                left.copies.miss(change.after.as_ref());
                continue;
            }
            if force && !change.brought.is_empty() {
                change.brought.clear();
                forced.insert(change.path.clone());
            }
            left.meet(&mut change);
            all.push(change);
        }
        let remedies = remedies(workspace, &all);
        // Where something brought comes back, nothing is moved away from.
        plan.moves = moves(&all);
        let ends: BTreeSet<String> =
            plan.moves.iter().flat_map(|(a, b)| [a.clone(), b.clone()]).collect();
        let paths = all.iter().map(|change| change.path.as_str());
        let opened = Opened::above(workspace, &self.folder, paths)?;
        for change in all {
            if left.stays_as_brought(workspace, &change) {
                continue;
            }
            let told = change.shown();
            let known = [change.before.as_ref(), change.after.as_ref()];
            let is_end = ends.contains(&change.path);
            let mut now = if is_end {
                self.look_for_moved(workspace, &change.path, known)?
            } else {
                self.look_for(workspace, &change.path, force, known)?
            };
            now = opened.as_before(&change.path, now);
            // What was unknown cannot come back, whatever stands there.
            let is_unknown = is_unknown(&change.path, change.after.as_ref());
            // What somebody did in between may also be what a later turn moved on, or removed.
            let is = |what: &Option<What>| is_same(now.as_ref(), what.as_ref());
            // A turn may have written something else into it, and given it its time back.
            let is_moved = is_end || change.moved;
            let is_so = now == change.after || is_moved && is(&change.after);
            let is_so = is_so && !is_unknown;
            let is_other = (change.mixed || !is_so && !is(&change.before)) && !is_unknown;
            if is_other && change.is_of_a_repository() {
                plan.leave(&change, "something else stands there".to_owned(), &mut left);
                continue;
            }
            if is_end && is_other && force {
                now = self.look_at(workspace, &change.path, force)?;
            }
            if is_other {
                plan.conflicts.push(told);
                left.copies.meet_other(&change);
            }
            if is_so {
                left.stands(&change);
            }
            if is_so || is_other && !force {
                continue;
            }
            // Only where it stands by itself: else it would go with what takes its place.
            let ends_alone = matches!(
                (&now, &change.after),
                (Some(What::Unkept { .. }), None) | (None, Some(What::Unkept { .. }))
            );
            let is_renamed = is_end && !is_other && ends_alone;
            let cannot =
                if is_renamed { None } else { self.cannot(now.as_ref(), change.after.as_ref())? };
            // What is written came from elsewhere, as far as taking this back goes.
            let moved = change.after.as_ref();
            let moved = moved.is_some_and(|what| is_renamed || content(what).is_some());
            let change = Change { moved, ..Change::of(change.path, now, change.after) };
            match cannot {
                Some(why) => plan.leave(&change, why, &mut left),
                None => plan.changes.push(change),
            }
        }
        let ways = self.plan_ways(workspace, force, &mut plan, &mut left)?;
        if plan.changes.iter().any(is_folder_that_goes) {
            // Why it may hold something is told by the rules.
            self.index.load(None)?;
        }
        plan.leave_what_hangs_on_it(workspace, &self.index.rules, left);
        for (path, why) in &mut plan.left {
            if let Some(remedy) = remedies.get(path) {
                why.push_str(&format!("; `{remedy}` brings it back, once nothing stands there"));
            }
        }
        plan.drop_ways(&ways);
        let is_below = |path: &str| ancestors(split(path).0).any(|above| forced.contains(above));
        let taken = plan.changes.iter().filter(|c| forced.contains(&c.path) && !is_below(&c.path));
        let taken: Vec<String> = taken.map(Change::shown).collect();
        plan.brought.extend(taken);
        plan.open(workspace, &opened);
        Ok(plan)
    }

    /// Plans the folders on the way that somebody has removed since, or put something else in place of:
    /// that is a conflict, and put away where `force` says so. Gives where they are.
    fn plan_ways(
        &mut self,
        workspace: &Workspace,
        force: bool,
        plan: &mut Plan,
        left: &mut Left,
    ) -> Result<BTreeSet<String>> {
        let mut ways = BTreeSet::new();
        let all = plan.folders(|change| change.after.is_some());
        let planned: BTreeSet<&str> = plan.changes.iter().map(|c| c.path.as_str()).collect();
        let all = all.into_iter().filter(|folder| {
            !folder.is_empty() && !planned.contains(folder) && !left.stays(folder)
        });
        for folder in all.map(str::to_owned).collect::<Vec<_>>() {
            if workspace.mode_of(&folder).is_some() {
                continue;
            }
            self.index.load(None)?;
            let mode = match self.index.seen.get(&folder).map(|known| &known.what) {
                Some(What::Folder { mode }) => *mode,
                _ => 0o755,
            };
            let now = self.look_at(workspace, &folder, force)?;
            let way = Change::of(folder, now, Some(What::Folder { mode }));
            if way.before.is_some() {
                let told = way.shown();
                let below = format!("{told}/");
                let tells = |other: &String| *other == told || other.starts_with(&below);
                if !plan.conflicts.iter().any(tells) {
                    plan.conflicts.push(told);
                }
                if let Some(why) = self.cannot(way.before.as_ref(), None)? {
                    plan.leave(&way, why, left);
                    continue;
                }
            }
            ways.insert(way.path.clone());
            plan.changes.push(way);
        }
        plan.changes.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok(ways)
    }

    /// Why what stands somewhere cannot become that. What it is to become is read: a disk that fails
    /// should do so before anything is touched.
    fn cannot(&self, now: Option<&What>, after: Option<&What>) -> Result<Option<String>> {
        let unkept = |what: Option<&What>, is: &str| match what {
            Some(What::Unkept { why, .. }) => Some(format!("{is} not kept: {}", why.in_words())),
            _ => None,
        };
        if let Some(blob) = after.and_then(What::blob) {
            match self.blobs.read(blob) {
                Ok(Some(_)) => {}
                Ok(None) => return Ok(Some("what it was is not kept".to_owned())),
                Err(e) => return Err(Error::undo(format!("{e}; nothing was touched"))),
            }
        }
        if let Some(What::File { blob, size, .. }) = now
            && !self.blobs.has(blob, *size)
        {
            return Ok(Some("what it is now is not kept".to_owned()));
        }
        Ok(unkept(after, "what it was is").or_else(|| unkept(now, "what it is now is")))
    }
}

impl Plan {
    /// Forgets those of these folders that nothing is to be put into.
    fn drop_ways(&mut self, ways: &BTreeSet<String>) {
        let needed = self.changes.iter().filter(|change| !ways.contains(&change.path));
        let needed = needed.filter(|change| change.after.is_some());
        let needed: BTreeSet<String> =
            needed.flat_map(|change| ancestors(split(&change.path).0)).map(str::to_owned).collect();
        self.changes.retain(|way| !ways.contains(&way.path) || needed.contains(&way.path));
    }

    /// Finds the folders that nobody could write to as they are.
    fn open(&mut self, workspace: &Workspace, looked_below: &Opened<'_>) {
        let mut opened = Vec::new();
        for folder in self.folders(|_| true) {
            let (now, then) = match self.change(folder) {
                Some(Change { before: Some(What::Folder { mode }), after, .. }) => {
                    let then = match after {
                        Some(What::Folder { mode }) => *mode,
                        _ => *mode,
                    };
                    (*mode, then)
                }
                // It is to be made.
                Some(_) => continue,
                None => match looked_below.mode(folder).or_else(|| workspace.mode_of(folder)) {
                    Some(mode) => (mode, mode),
                    None => continue,
                },
            };
            if now & 0o700 != 0o700 {
                opened.push((folder.to_owned(), then));
            }
        }
        self.opened = opened;
    }

    /// The folders that hold what changes, and those above them, the highest first: the root is empty.
    fn folders(&self, which: impl Fn(&Change) -> bool) -> BTreeSet<&str> {
        let changes = self.changes.iter().filter(|change| which(change));
        let direct: BTreeSet<&str> = changes.map(|change| split(&change.path).0).collect();
        let root = direct.first().map(|_| "");
        root.into_iter().chain(direct.iter().copied().flat_map(ancestors)).collect()
    }

    /// What is planned for a place.
    pub(super) fn change(&self, path: &str) -> Option<&Change> {
        change_at(&self.changes, path)
    }

    /// The name that the new content of change `n` is written under first, in the same folder.
    pub(super) fn temporary(&self, n: usize) -> String {
        format!("{}-{n}.tmp", self.key)
    }

    /// The folders that are opened, and the permissions that they get back.
    pub(super) fn opened(&self) -> &[(String, u32)] {
        &self.opened
    }
}

/// A folder and all above it but the root, the highest first.
pub(super) fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
    ends.map(|end| &path[..end]).filter(|path| !path.is_empty())
}

impl Workspace {
    /// The permissions of a folder; None where there is none.
    fn mode_of(&self, path: &str) -> Option<u32> {
        let (_, found) = self.stands_at(path).ok()?;
        found.is_dir().then(|| Facts::of(&found).mode)
    }
}
