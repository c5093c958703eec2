//! Names that only the person may change: one check, one repair, one report.
//!
//! What is under protected names is listed before the first command of a turn ([`Snapshot`]) and compared after each
//! command. What a command made or changed there moves to the quarantine, and the former content is put back as far
//! as it is known. Read-only mounts are the first wall ([`ReadOnly`]); this finds what got past them, and repairs it.
//!
//! - Protected names are looked for in the workspace's root and in the roots of the repositories that the turn's walk
//!   found, so not in ignored folders, and in the nearest 1,000 of them.
//! - A command's changes cannot be told from those that a person makes at the same moment. Whatever is moved by
//!   mistake is in the quarantine.
//! - A snapshot is of one turn: what the person changes between turns is theirs.
//!
//! The repair is not the one of checkpoints, which would be weaker here: it deletes what this moves away, it takes
//! contents from a store that need not exist (`rpc`, checkpoints that are off) where these are in the journal, and
//! it leaves temporary files beside their targets after a hard stop, which the next comparison would take for a
//! command's.

mod approved;
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

/// Protected names are looked for in this many folders; of more, in those nearest to the root.
const FOLDERS: usize = 1_000;
/// This many ignored folders and further repositories are remembered.
const LEFT_ALONE: usize = 10_000;

/// Checks protected names while the commands of a turn run.
#[derive(Debug, Default)]
pub struct Protection {
    /// None: nothing is checked.
    quarantine: Option<Quarantine>,
    /// What must stay; None before the first command.
    known: Option<Snapshot>,
    /// Repositories that are not where they were: moved, or gone.
    missing: Vec<MissingRepository>,
    /// `known` is newer than what was stored of it.
    is_ahead: bool,
    /// A command of the turn was allowed to write to repositories.
    git_may_write: bool,
    /// How many operations that share this have begun a command and are not at their end.
    members: usize,
    /// The walk after the last command, while none has run since.
    last_walk: Option<Walk>,
}

/// A `.git` that is not where it was.
#[derive(Debug)]
struct MissingRepository {
    path: String,
    inode: Option<u64>,
    /// Everything that was known there.
    folder: WatchedFolder,
}

impl Protection {
    /// A new one, which moves what it finds to this quarantine.
    pub fn new(quarantine: Quarantine) -> Self {
        Self { quarantine: Some(quarantine), ..Self::default() }
    }

    /// The same in the middle of a turn that has this snapshot.
    pub fn resumed(quarantine: Quarantine, known: Snapshot) -> Self {
        Self { quarantine: Some(quarantine), known: Some(known), ..Self::default() }
    }

    /// A command is about to run. Takes the turn's snapshot if there is none yet, and returns what has to be stored
    /// before the command begins, if that is new. `walk` is what was found in the workspace, if somebody has just
    /// looked.
    pub fn begin(
        &mut self,
        workspace: &Workspace,
        walk: Option<&Walk>,
    ) -> Result<Option<&Snapshot>> {
        if self.quarantine.is_none() {
            return Ok(None);
        }
        self.settle(workspace);
        if self.known.is_none() {
            let kept =
                self.last_walk.take().filter(|last| walk.is_none() && last.is_current(workspace));
            self.known = Some(match walk.or(kept.as_ref()) {
                Some(walk) => Snapshot::take(workspace, walk),
                None => Snapshot::take(workspace, &workspace.walk()?),
            });
            self.is_ahead = true;
        }
        let is_ahead = std::mem::take(&mut self.is_ahead);
        Ok(self.known.as_ref().filter(|_| is_ahead))
    }

    /// Whether commands have run.
    pub fn has_begun(&self) -> bool {
        self.known.is_some()
    }

    /// Compares after a command, and repairs. Returns what was found and done, a sentence each.
    pub fn check(&mut self, workspace: &Workspace) -> Vec<Warning> {
        self.settle(workspace);
        let (Some(quarantine), Some(known)) = (&self.quarantine, &mut self.known) else {
            return Vec::new();
        };
        known.forget_old_inodes(workspace.inode());
        let (missing, incidents) = (&mut self.missing, Vec::new());
        let mut repairs = Repairs { workspace, quarantine, missing, incidents };
        for mut folder in std::mem::take(&mut known.folders) {
            if let Some(now) = ProtectedScan::again(workspace, &folder) {
                self.is_ahead |= repairs.folder(&mut folder, now);
                known.folders.push(folder);
            } else {
                repairs.missing.extend(MissingRepository::of(folder));
            }
        }
        warnings(repairs.incidents, self.git_may_write)
    }

    /// What is in the quarantine and in none of these warnings: deaddrop was stopped before it could report it.
    pub fn unreported<'a>(&self, known: impl Iterator<Item = &'a Warning>) -> Vec<Warning> {
        let Some(quarantine) = &self.quarantine else { return Vec::new() };
        let known: Vec<&Warning> = known.collect();
        let is_new = |path: &String| !known.iter().any(|told| told.text.contains(path.as_str()));
        let new = quarantine.contents().into_iter().filter(is_new);
        warnings(new.map(|at| Incident::Earlier { at }).collect(), false)
    }
}

impl MissingRepository {
    /// The repository of a folder that is no longer there, if it had one.
    fn of(folder: WatchedFolder) -> Option<Self> {
        let is_git = |(key, _): &(&String, &ProtectedEntry)| key.eq_ignore_ascii_case(".git");
        let (key, git) = folder.entries.iter().find(is_git)?;
        Some(Self { path: folder.path_of(key), inode: git.inode, folder })
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
            approved: Vec::new(),
            closed: walk.places(PlaceKind::Closed).map(str::to_owned).collect(),
            rules: walk.rules().clone(),
            git,
            set_ids: Some(last_walk::set_ids(workspace, walk)),
        }
    }
}

impl Workspace {
    /// The inode of the root.
    fn inode(&self) -> Option<u64> {
        self.root.dir_metadata().ok().map(|found| found.ino())
    }

    /// Whether a path lies below a protected name, so that it is compared along with that.
    pub(super) fn is_below_one(&self, path: &str) -> bool {
        path.split('/').any(|name| self.protected.name_of(&shown(name)).is_some())
    }
}

/// Whether a path ends in the name of a repository.
fn is_git(path: &str) -> bool {
    split(path).1.eq_ignore_ascii_case(".git")
}

/// Repairs what differs, and notes what was done.
struct Repairs<'a> {
    workspace: &'a Workspace,
    quarantine: &'a Quarantine,
    missing: &'a mut Vec<MissingRepository>,
    incidents: Vec<Incident>,
}

impl Repairs<'_> {
    /// Moves an entry to the quarantine.
    fn move_away(&self, place: &str) -> io::Result<String> {
        let (folder, name) = self.workspace.holder(place)?;
        self.quarantine.take(&folder, &name)
    }

    fn put_back(&self, place: &str, before: &ProtectedKind) -> bool {
        let holder = self.workspace.holder(place);
        holder
            .and_then(|(folder, name)| self.quarantine.put_back(&folder, &name, before))
            .unwrap_or(false)
    }

    /// Moves away what is new or changed in a folder, and puts back what is known. `folder` becomes what has to stay
    /// from here on; returns whether there is something new in it.
    fn folder(&mut self, folder: &mut WatchedFolder, now: WatchedFolder) -> bool {
        let is_completed = folder.is_completed(&now);
        for (key, change) in folder.differences(&now) {
            let place = folder.path_of(&key);
            let moved = (change != EntryChange::Removed).then(|| self.move_away(&place));
            let former = folder.take(&key);
            let before = former.get(&key);
            let what = match before {
                Some(entry) if entry.is_part() => Subject::Part { is_folder: entry.is_folder() },
                _ if is_completed && key == HEAD => Subject::NewHead,
                _ => Subject::Entry,
            };
            if let Some(git) = before.filter(|entry| entry.is_repository()) {
                let (path, inode) = (place.clone(), git.inode);
                let lost =
                    WatchedFolder { path: folder.path.clone(), entries: former, ..<_>::default() };
                self.missing.push(MissingRepository { path, inode, folder: lost });
                if moved.is_some() {
                    let repair = Repair { moved, restored: None };
                    self.incidents.push(Incident::Repaired { place, what, change, repair });
                }
                continue;
            }
            let is_free = moved.as_ref().is_none_or(io::Result::is_ok) && what != Subject::NewHead;
            let (mut put, mut of) = (0, 0);
            for (key, entry) in former {
                let is_back = is_free && self.put_back(&folder.path_of(&key), &entry.kind);
                let counts = !entry.is_folder() || entry.is_part();
                put += usize::from(counts && is_back);
                of += usize::from(counts);
                // Without it git knows no repository there, so that is tried again.
                if is_back || entry.is_part() {
                    folder.entries.insert(key, entry);
                }
            }
            let repair = Repair { moved, restored: Some((put, of)) };
            self.incidents.push(Incident::Repaired { place, what, change, repair });
        }
        folder.update_parts(now)
    }
}
