//! Compares with the last walk of a turn: finds new entries that configure git, and missing repositories.
//!
//! New set-user-ID and set-group-ID bits are also removed at the end of a turn. In the sandbox, seccomp prevents
//! setting them; this check covers all files that the walk lists.

use std::collections::{BTreeMap, BTreeSet};

use super::report::{Incident, warnings};
use super::scan::{HEAD, ProtectedScan, is_bare_repository, reopen};
use super::snapshot::{ProtectedEntry, Snapshot, WatchedFolder, above};
use super::{Protection, Repairs, is_git};
use crate::protocol::Warning;
use crate::workspace::Workspace;
use crate::workspace::modes::clear_set_ids;
use crate::workspace::names::{ancestors, split};
use crate::workspace::walk::{PlaceKind, Walk, walk_all};

/// How many levels of nested unreadable folders are opened.
const CLOSED: usize = 16;

impl Protection {
    /// Compares with the turn's last walk: finds new repositories, new files that git's settings name, missing
    /// repositories, and new set-user-ID and set-group-ID bits.
    pub fn finish(&mut self, workspace: &Workspace, walk: &Walk) -> Vec<Warning> {
        let (Some(quarantine), Some(known)) = (&self.quarantine, &mut self.known) else {
            return Vec::new();
        };
        let (missing, incidents) = (&mut self.missing, Vec::new());
        let mut repairs = Repairs { workspace, quarantine, missing, incidents };
        let has_new_rules = known.has_new_rules(walk);
        let listed: BTreeSet<String> = known.git.among(walk).collect();
        let revealed = repairs.reveal(known, walk, has_new_rules);
        let walk = revealed.as_ref().unwrap_or(walk);
        let ignored: BTreeSet<&str> = walk.places(PlaceKind::Ignored).collect();
        for (path, named) in known.unwatched(workspace, walk) {
            let (is_new, is_ignored) = (!known.watches(&path), ignored.contains(&*path));
            // An ignored folder can be large, so only check whether the folder itself has become a repository.
            let is_bare = || workspace.folder_at(&path).is_ok_and(|dir| is_bare_repository(&dir));
            if is_ignored && !is_bare() {
                continue;
            }
            let mut moved = None;
            // Nothing in this folder is known, so all entries count as new.
            let mut folder =
                WatchedFolder { path, named, is_bare: Some(false), ..WatchedFolder::default() };
            let Some(mut now) = ProtectedScan::again(workspace, &folder) else { continue };
            for (key, entry) in std::mem::take(&mut now.entries) {
                let is_named = folder.named.contains(&key);
                if !is_named && !(is_new && (key == HEAD || !is_ignored && is_git(&key))) {
                    continue;
                }
                let place = folder.path_of(&key);
                // The file may have existed before, but hidden by ignore rules.
                let may_be_old = is_named && has_new_rules && !listed.contains(&place);
                if let Some(missing) = repairs.take_missing(&key, &entry) {
                    moved = Some((missing, place));
                } else if known.would_know(&place) && !may_be_old {
                    now.entries.insert(key, entry);
                } else if !is_ignored {
                    repairs.incidents.push(Incident::Appeared { place });
                }
            }
            repairs.folder(&mut folder, now);
            if let Some((missing, to)) = moved {
                known.folders.push(repairs.moved(missing, to, folder.path));
            }
        }
        let Repairs { missing, mut incidents, .. } = repairs;
        let gone = missing.drain(..).filter_map(|missing| missing.git());
        incidents.extend(gone.map(|(place, _)| Incident::Gone { place }));
        incidents.append(&mut clear_new_set_ids(workspace, known, walk));
        warnings(incidents, self.git_may_write)
    }
}

impl Snapshot {
    /// The folders of a walk that may contain entries that configure git and that this snapshot does not contain. Each
    /// folder is listed with the names in it that git's settings contain now, but did not contain before.
    fn unwatched(&self, workspace: &Workspace, walk: &Walk) -> BTreeMap<String, Vec<String>> {
        let mut folders: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let is_compared = |path: &str| !self.leaves_alone(path) && !workspace.is_below_one(path);
        let bare = walk
            .places(PlaceKind::Bare)
            .chain(walk.places(PlaceKind::Ignored))
            .filter(|_| workspace.protects_git);
        let watched: BTreeSet<&str> = self.folders.iter().map(|folder| &*folder.path).collect();
        for path in walk.places(PlaceKind::Repository).chain(bare) {
            if !watched.contains(path) && is_compared(path) {
                folders.entry(path.to_owned()).or_default();
            }
        }
        for place in self.git.among(walk).filter(|place| is_compared(place)) {
            if !self.folders.iter().any(|folder| folder.has_named(&place)) {
                let (folder, name) = split(&place);
                folders.entry(folder.to_owned()).or_default().push(name.to_owned());
            }
        }
        folders
    }

    fn watches(&self, path: &str) -> bool {
        self.folders.iter().any(|folder| folder.path == path)
    }

    /// Whether the ignore rules changed, and there are ignored entries that the change may hide.
    fn has_new_rules(&self, walk: &Walk) -> bool {
        let hides = || {
            walk.ignored_files().files > 0
                || walk.places(PlaceKind::Ignored).any(|path| !self.leaves_alone(path))
        };
        walk.rules != self.rules && hides()
    }

    /// Whether the snapshot would contain the entry at this path if the entry had existed before the commands.
    fn would_know(&self, path: &str) -> bool {
        let was_closed = |place: &str| self.closed.contains(place);
        self.is_whole && !was_closed(path) && !above(path).any(was_closed)
    }

    pub(super) fn leaves_alone(&self, path: &str) -> bool {
        self.left_alone.contains(path) || above(path).any(|path| self.left_alone.contains(path))
    }
}

impl Repairs<'_> {
    /// Takes the missing repository that has the same inode as this entry.
    fn take_missing(&mut self, key: &str, now: &ProtectedEntry) -> Option<WatchedFolder> {
        let inode_of = |missing: &WatchedFolder| missing.git().and_then(|(_, inode)| inode);
        let is_it = |missing: &WatchedFolder| now.inode.is_some() && inode_of(missing) == now.inode;
        let n = self.missing.iter().position(is_it).filter(|_| is_git(key))?;
        Some(self.missing.swap_remove(n))
    }

    /// Compares a repository that was moved to another folder, so that its hooks stay unchanged.
    fn moved(&mut self, missing: WatchedFolder, to: String, path: String) -> WatchedFolder {
        let from = missing.git().map(|(from, _)| from).unwrap_or_default();
        self.incidents.push(Incident::Moved { from, to });
        let mut folder = WatchedFolder { path, is_bare: Some(false), ..missing };
        if let Some(now) = ProtectedScan::again(self.workspace, &folder) {
            self.folder(&mut folder, now);
        }
        folder
    }

    /// Walks again if commands may have hidden entries from the last walk: in ignored folders, if the rules changed,
    /// and in folders that are unreadable now. Opens unreadable folders; those that stay unreadable are moved to the
    /// quarantine. None if nothing is hidden.
    fn reveal(&mut self, known: &Snapshot, walk: &Walk, has_new_rules: bool) -> Option<Walk> {
        let workspace = self.workspace;
        let walk_again =
            || if has_new_rules { walk_all(workspace).ok() } else { workspace.walk().ok() };
        let mut again = if has_new_rules { walk_again() } else { None };
        for round in 0..=CLOSED {
            let closed = again.as_ref().unwrap_or(walk).places(PlaceKind::Closed);
            // If the root is unreadable, somebody has replaced it, so it is left alone.
            let is_new = |path: &&str| {
                !path.is_empty() && !known.closed.contains(*path) && !known.leaves_alone(path)
            };
            let closed: Vec<String> = closed.filter(is_new).map(str::to_owned).collect();
            if closed.is_empty() {
                break;
            }
            for place in closed {
                if round == CLOSED {
                    let moved = self.move_away(&place);
                    self.incidents.push(Incident::Closed { place, moved });
                    continue;
                }
                for path in ancestors(&place) {
                    if let Ok((parent, name)) = workspace.parent_of(path) {
                        reopen(&parent, &name);
                    }
                }
            }
            again = walk_again();
        }
        again
    }
}

/// The files that have a set-user-ID or set-group-ID bit before the first command. They may keep it.
pub(super) fn set_ids(workspace: &Workspace, walk: &Walk) -> Vec<ProtectedEntry> {
    let now = |path| ProtectedScan::file(workspace, path);
    walk.places(PlaceKind::SetId).filter_map(now).collect()
}

/// Clears the set-user-ID and set-group-ID bits of all other files, and of files whose content has changed.
fn clear_new_set_ids(workspace: &Workspace, known: &Snapshot, walk: &Walk) -> Vec<Incident> {
    let Some(before) = &known.set_ids else { return Vec::new() };
    let mut incidents = Vec::new();
    for path in walk.places(PlaceKind::SetId).filter(|path| !known.leaves_alone(path)) {
        let is_known = ProtectedScan::file(workspace, path).is_some_and(|now| {
            before.iter().any(|before| before.is_itself(&now) && before.is_same(&now))
        });
        if is_known {
            continue;
        }
        let cleared = workspace.parent_of(path).and_then(|(dir, name)| clear_set_ids(&dir, &name));
        match cleared {
            // The file is gone, or has been replaced.
            Ok(false) => {}
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            done => {
                let (place, cleared) = (path.to_owned(), done.map(drop));
                incidents.push(Incident::SetId { place, cleared });
            }
        }
    }
    incidents
}
