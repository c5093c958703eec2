//! Names that only the person may change: checks them, repairs changes and reports them.
//!
//! The entries under protected names are recorded before the first command of a turn ([`Snapshot`]) and compared after
//! each command. Entries that a command made or changed are moved to the quarantine, and the former content is restored
//! if it is known. Read-only mounts ([`ReadOnly`]) prevent most changes; this check finds and repairs all others.
//!
//! - Protected names are searched in the workspace's root and in the roots of the nearest 1,000 repositories that the
//!   turn's walk found. Ignored folders are therefore not searched.
//! - A change by a command cannot be distinguished from a change that a person makes at the same time. Anything moved
//!   by mistake is in the quarantine.
//! - A snapshot is valid for one turn: changes between turns are the person's.
//!
//! The repair code of checkpoints would be weaker here. It deletes entries, while this code moves them away. It takes
//! contents from a store that may not exist (`rpc`, or checkpoints turned off) instead of the journal. After a hard
//! stop it leaves temporary files beside their targets, and the next comparison would attribute those to a command.

mod last_walk;
mod names;
mod quarantine;
mod read_only;
mod report;
mod scan;
mod scope;
mod shared;
mod snapshot;
#[cfg(all(test, unix))]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use cap_fs_ext::MetadataExt;

use super::Workspace;
use super::names::{escaped, shown, split};
use super::walk::{PlaceKind, Walk};
use crate::error::Result;
use crate::protocol::Warning;
pub use names::ProtectedNames;
#[cfg(test)]
pub(crate) use names::defaults;
pub use quarantine::Quarantine;
pub use read_only::ReadOnly;
use report::{Incident, Repair, Subject, warnings};
use scan::{HEAD, ProtectedScan};
pub use shared::{ProtectionHandle, SharedProtection};
pub use snapshot::Snapshot;
use snapshot::{EntryChange, ProtectedEntry, ProtectedKind, WatchedFolder};

/// The most folders in which protected names are searched, beginning with those nearest to the root.
const FOLDERS: usize = 1_000;
/// The most ignored folders and further repositories that are recorded.
const LEFT_ALONE: usize = 10_000;

/// Checks protected names while the commands of a turn run.
#[derive(Debug, Default)]
pub struct Protection {
    /// Where changed entries are moved; None if nothing is checked.
    quarantine: Option<Quarantine>,
    /// The entries that must not change; None before the first command.
    known: Option<Snapshot>,
    /// Repositories that were moved or removed, each with its recorded entries.
    missing: Vec<WatchedFolder>,
    /// Whether a command of the turn was allowed to write to repositories.
    git_may_write: bool,
    /// How many operations that share this check have begun, but not ended.
    members: usize,
    /// The walk after the last command, if no command has run since.
    last_walk: Option<Walk>,
}

impl Protection {
    /// Makes a check that moves changed entries to this quarantine.
    pub fn new(quarantine: Quarantine) -> Self {
        Self { quarantine: Some(quarantine), ..Self::default() }
    }

    /// Resumes the check of a turn whose snapshot was already taken.
    pub fn resumed(quarantine: Quarantine, known: Snapshot) -> Self {
        Self { quarantine: Some(quarantine), known: Some(known), ..Self::default() }
    }

    /// Prepares for a command. Before the turn's first command, takes the snapshot and returns it, so that the caller
    /// can store it before the command begins. `walk` is a current walk of the workspace, if there is one.
    pub fn begin(
        &mut self,
        workspace: &Workspace,
        walk: Option<&Walk>,
    ) -> Result<Option<&Snapshot>> {
        if self.quarantine.is_none() || self.known.is_some() {
            return Ok(None);
        }
        let kept =
            self.last_walk.take().filter(|last| walk.is_none() && last.is_current(workspace));
        let snapshot = match walk.or(kept.as_ref()) {
            Some(walk) => Snapshot::take(workspace, walk),
            None => Snapshot::take(workspace, &workspace.walk()?),
        };
        Ok(Some(self.known.insert(snapshot)))
    }

    /// Whether the snapshot was taken: commands of this turn may have run.
    pub fn has_begun(&self) -> bool {
        self.known.is_some()
    }

    /// Compares the entries after a command, and repairs changes. Returns a warning for each finding.
    pub fn check(&mut self, workspace: &Workspace) -> Vec<Warning> {
        let (Some(quarantine), Some(known)) = (&self.quarantine, &mut self.known) else {
            return Vec::new();
        };
        known.drop_inodes_if_renumbered(workspace.inode());
        let (missing, incidents) = (&mut self.missing, Vec::new());
        let mut repairs = Repairs { workspace, quarantine, missing, incidents };
        for mut folder in std::mem::take(&mut known.folders) {
            if let Some(now) = ProtectedScan::again(workspace, &folder) {
                repairs.folder(&mut folder, now);
                known.folders.push(folder);
            } else {
                repairs.missing.extend(Some(folder).filter(|folder| folder.git().is_some()));
            }
        }
        warnings(repairs.incidents, self.git_may_write)
    }

    /// Warnings about entries in the quarantine that no known warning mentions, because deaddrop was stopped before it
    /// could report them.
    pub fn unreported<'a>(&self, known: impl Iterator<Item = &'a Warning>) -> Vec<Warning> {
        let Some(quarantine) = &self.quarantine else { return Vec::new() };
        let known: Vec<&Warning> = known.collect();
        let is_new =
            |path: &String| !known.iter().any(|warning| warning.text.contains(path.as_str()));
        let new = quarantine.contents().into_iter().filter(is_new);
        warnings(new.map(|at| Incident::Earlier { at }).collect(), false)
    }
}

impl Snapshot {
    fn take(workspace: &Workspace, walk: &Walk) -> Self {
        let bare = walk.places(PlaceKind::Bare).filter(|_| workspace.protects_git);
        let repositories: BTreeSet<&str> = walk.places(PlaceKind::Repository).chain(bare).collect();
        let is_further = |path: &&str| !path.is_empty() && !workspace.is_below_one(path);
        let mut repositories: Vec<&str> = repositories.into_iter().filter(is_further).collect();
        repositories
            .sort_by_key(|path| (memchr::memchr_iter(b'/', path.as_bytes()).count(), *path));
        let further = repositories.split_off(repositories.len().min(FOLDERS - 1));
        let is_whole = walk.places(PlaceKind::Ignored).count() + further.len() <= LEFT_ALONE;
        let left_alone = walk.places(PlaceKind::Ignored).chain(further);
        let left_alone = left_alone.take(LEFT_ALONE).map(str::to_owned).collect();

        let mut named: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let git = workspace.git_references(walk.git_folders().map(shown));
        let places = git.places.iter().map(|path| escaped(path.as_bytes()));
        for path in places.chain(git.among(walk)).filter(|path| !workspace.is_below_one(path)) {
            let (folder, name) = split(&path);
            named.entry(folder.to_owned()).or_default().insert(name.to_owned());
        }
        let others = named.keys().map(String::as_str);
        let others = others.filter(|path| !path.is_empty() && !repositories.contains(path));
        let paths = [""].into_iter().chain(repositories.iter().copied());
        let mut scan = ProtectedScan::new(workspace);
        let folders = paths.chain(others.take(FOLDERS)).filter_map(|path| {
            let named = named.get(path).into_iter().flatten().cloned().collect();
            scan.folder(path, named, None)
        });
        Self {
            folders: folders.collect(),
            inode: workspace.inode(),
            left_alone,
            is_whole,
            closed: walk.places(PlaceKind::Closed).map(str::to_owned).collect(),
            rules: walk.rules.clone(),
            git,
            set_ids: Some(last_walk::set_ids(workspace, walk)),
        }
    }
}

impl Workspace {
    /// The inode of the workspace's root.
    fn inode(&self) -> Option<u64> {
        self.root.dir_metadata().ok().map(|found| found.ino())
    }

    /// Whether a path is at or below a protected name. If so, it is compared along with the entry of that name.
    pub(super) fn is_below_one(&self, path: &str) -> bool {
        path.split('/').any(|name| self.protected.name_of(&shown(name)).is_some())
    }
}

/// Whether a path ends in the name of a repository folder, `.git`.
fn is_git(path: &str) -> bool {
    split(path).1.eq_ignore_ascii_case(".git")
}

/// Repairs differences, and records incidents.
struct Repairs<'a> {
    workspace: &'a Workspace,
    quarantine: &'a Quarantine,
    missing: &'a mut Vec<WatchedFolder>,
    incidents: Vec<Incident>,
}

impl Repairs<'_> {
    /// Moves an entry to the quarantine. Returns its new path, for display.
    fn move_away(&self, place: &str) -> io::Result<String> {
        let (folder, name) = self.workspace.parent_of(place)?;
        self.quarantine.take(&folder, &name)
    }

    fn put_back(&self, place: &str, before: &ProtectedKind) -> bool {
        let parent = self.workspace.parent_of(place);
        parent
            .and_then(|(folder, name)| self.quarantine.put_back(&folder, &name, before))
            .unwrap_or(false)
    }

    /// Moves new and changed entries of a folder away, and restores known contents. Updates `folder` to the entries
    /// that must not change from now on.
    fn folder(&mut self, folder: &mut WatchedFolder, now: WatchedFolder) {
        let is_completed = folder.is_completed(&now);
        for (key, change) in folder.differences(&now) {
            let place = folder.path_of(&key);
            let moved = (change != EntryChange::Removed).then(|| self.move_away(&place));
            let former = folder.take(&key);
            let before = former.get(&key);
            let subject = match before {
                Some(entry) if entry.is_part() => Subject::Part { is_folder: entry.is_folder() },
                _ if is_completed && key == HEAD => Subject::NewHead,
                _ => Subject::Entry,
            };
            if before.is_some_and(ProtectedEntry::is_repository) {
                let path = folder.path.clone();
                self.missing.push(WatchedFolder { path, entries: former, ..<_>::default() });
                if moved.is_some() {
                    let repair = Repair { moved, restored: None };
                    self.incidents.push(Incident::Repaired { place, subject, change, repair });
                }
                continue;
            }
            let is_free =
                moved.as_ref().is_none_or(io::Result::is_ok) && subject != Subject::NewHead;
            let (mut restored, mut of) = (0, 0);
            for (key, entry) in former {
                let is_back = is_free && self.put_back(&folder.path_of(&key), &entry.kind);
                let counts = !entry.is_folder() || entry.is_part();
                restored += usize::from(counts && is_back);
                of += usize::from(counts);
                // Without this part, git does not recognise the repository, so the next check tries again.
                if is_back || entry.is_part() {
                    folder.entries.insert(key, entry);
                }
            }
            let repair = Repair { moved, restored: Some((restored, of)) };
            self.incidents.push(Incident::Repaired { place, subject, change, repair });
        }
        folder.update_parts(now);
    }
}
