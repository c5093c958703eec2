//! Writes under protected names that the person approved, after commands have run in the same turn: what they leave
//! is not a command's doing, and stays.
//!
//! The snapshot is stored with such a write as an either-or *before* the write is made, and gets what became of it at
//! the next opportunity. No command runs in between. So a stop there leaves it made or not made, and neither counts as
//! a command's doing; if the new content alone had been stored before, or only afterwards, one of the two would. The
//! settled snapshot is stored before the next command begins, so a command that brings the former content back is
//! found out, also after a stop. Where commands run side by side, one may run all the same: what it did elsewhere is
//! compared with what was known before.

use super::scan::{ProtectedScan, is_bare_repository};
use super::snapshot::{ApprovedWrite, Snapshot, WatchedFolder};
use super::{FOLDERS, Protection};
use crate::protocol::{Effect, FileEffect, MoveEffect, RelPath};
use crate::workspace::Workspace;
use crate::workspace::names::escaped;

impl Protection {
    /// An approved operation is about to do this. Returns what has to be stored before it does, if commands have run
    /// and would be taken for its author.
    pub fn expect(&mut self, workspace: &Workspace, effect: &Effect) -> Option<&Snapshot> {
        let mut all = match effect.clone() {
            Effect::File(effect) => {
                let FileEffect { path, before, after, .. } = *effect;
                vec![ApprovedWrite { path, before, after }]
            }
            // Of something that is no folder.
            Effect::Move(effect) => {
                let MoveEffect { from, to, digest, .. } = *effect;
                let goes = ApprovedWrite { path: from, before: digest.clone(), after: None };
                vec![goes, ApprovedWrite { path: to, before: None, after: digest }]
            }
            Effect::Command | Effect::Guest { .. } => Vec::new(),
        };
        all.retain(|approved| workspace.is_protected(&approved.path));
        if all.is_empty() {
            return None;
        }
        self.settle(workspace);
        let known = self.known.as_mut()?;
        known.approved.extend(all);
        self.is_ahead = false;
        Some(known)
    }

    /// Takes in what became of approved operations, before a command runs again.
    pub fn settle(&mut self, workspace: &Workspace) {
        let Some(known) = self.known.as_mut().filter(|known| !known.approved.is_empty()) else {
            return;
        };
        known.forget_old_inodes(workspace.inode());
        for ApprovedWrite { path, before, after } in std::mem::take(&mut known.approved) {
            // Anything else is somebody else's doing, and is compared like the rest.
            if let Ok(now) = workspace.digest(&path)
                && (now == after || now == before)
            {
                // Folders on the way are made before the file is.
                known.take_in(workspace, &path, now == after);
            }
        }
        self.is_ahead = true;
    }
}

impl Snapshot {
    /// Takes in the folders that lead to a place, and if `is_made` what is there: that and no more.
    fn take_in(&mut self, workspace: &Workspace, path: &RelPath, is_made: bool) {
        let names: Vec<String> = path.components().map(|name| escaped(name.as_bytes())).collect();
        let is_protected = |name: &str| workspace.protected.name_of(name).is_some();
        let protected = path.components().position(is_protected);
        let git = workspace.git_configuration_around(path);
        let Some(at) = protected.or(git.map(|(at, _)| at)) else { return };
        let is_named = protected.is_none() && git.is_some_and(|(_, is_named)| is_named);
        // What lies above a place that a setting leads to is not compared.
        let Some((above, names @ [name, ..])) = names.split_at_checked(at) else { return };
        let (above, key) = (above.join("/"), names.join("/"));
        let was_bare = self.folders.iter().any(|f| f.path == above && f.is_bare == Some(true));
        let is_bare =
            || workspace.folder_at(&above).is_ok_and(|folder| is_bare_repository(&folder));
        // Then the person agreed to a repository, along with what is in it.
        let is_new_repository = protected.is_none() && !is_named && !was_bare && is_bare();
        // A repository makes its folder one in which protected names are looked for, as does a setting that leads
        // there.
        let may_add = is_named || is_new_repository || name.eq_ignore_ascii_case(".git");
        let Some(folder) = self.watched(above, may_add) else { return };
        if is_named && !folder.named.contains(name) {
            folder.named.push(name.clone());
        }
        if is_new_repository {
            folder.is_bare = Some(true);
        }
        let scan = ProtectedScan::new(workspace);
        let mut scan = if is_new_repository { scan } else { scan.only(&key) };
        let now = scan.folder(&folder.path, folder.named.clone(), folder.is_bare);
        let Some(mut now) = now else { return };
        folder.is_bare = folder.is_bare.or(now.is_bare);
        if is_made {
            folder.take(&key);
        }
        let itself = now.entries.remove(&key).filter(|entry| is_made && !entry.is_folder());
        folder.entries.extend(itself.map(|entry| (key, entry)));
        // What was known before stays so.
        for (key, entry) in now.entries {
            folder.entries.entry(key).or_insert(entry);
        }
    }

    /// The folder at a path, if protected names are looked for there; with `may_add` also from now on.
    fn watched(&mut self, path: String, may_add: bool) -> Option<&mut WatchedFolder> {
        let n = self.folders.iter().position(|folder| folder.path == path);
        if n.is_none() && may_add && self.folders.len() < FOLDERS {
            self.folders.push(WatchedFolder { path, ..WatchedFolder::default() });
            return self.folders.last_mut();
        }
        n.map(|n| &mut self.folders[n])
    }
}
