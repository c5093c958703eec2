//! Writes under protected names that the person approved, after commands have run in the same turn. Their results are
//! not attributed to a command.
//!
//! The snapshot is stored with both possible contents *before* the write is made, and is updated with the actual one
//! as soon as possible. No command runs in between. So after a stop the write was made or not, and neither is
//! attributed to a command; storing only the new content before, or only afterwards, would attribute one of them. The
//! updated snapshot is stored before the next command begins, so a command that restores the former content is
//! detected, even after a stop. With parallel commands, one may run in between: other changes it makes are compared
//! with the former snapshot.

use super::scan::{ProtectedScan, is_bare_repository};
use super::snapshot::{ApprovedWrite, Snapshot, WatchedFolder};
use super::{FOLDERS, Protection};
use crate::protocol::{Effect, FileEffect, MoveEffect, RelPath};
use crate::workspace::Workspace;
use crate::workspace::names::escaped;

impl Protection {
    /// Prepares for the effect of an approved operation. Returns the snapshot that has to be stored before it, if
    /// commands have run to which the change would be attributed.
    pub fn expect(&mut self, workspace: &Workspace, effect: &Effect) -> Option<&Snapshot> {
        let mut all = match effect.clone() {
            Effect::File(effect) => {
                let FileEffect { path, before, after, .. } = *effect;
                vec![ApprovedWrite { path, before, after }]
            }
            // Not of a folder.
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

    /// Updates the snapshot with the results of approved operations, before a command runs again.
    pub fn settle(&mut self, workspace: &Workspace) {
        let Some(known) = self.known.as_mut().filter(|known| !known.approved.is_empty()) else {
            return;
        };
        known.forget_old_inodes(workspace.inode());
        for ApprovedWrite { path, before, after } in std::mem::take(&mut known.approved) {
            // Any other content was written by somebody else, and is compared as usual.
            if let Ok(now) = workspace.digest(&path)
                && (now == after || now == before)
            {
                // Folders on the way are created before the file.
                known.include(workspace, &path, now == after);
            }
        }
        self.is_ahead = true;
    }
}

impl Snapshot {
    /// Includes the folders that lead to a path and, if `is_made`, the entry there, but nothing else.
    fn include(&mut self, workspace: &Workspace, path: &RelPath, is_made: bool) {
        let names: Vec<String> = path.components().map(|name| escaped(name.as_bytes())).collect();
        let is_protected = |name: &str| workspace.protected.name_of(name).is_some();
        let protected = path.components().position(is_protected);
        let git = workspace.git_configuration_around(path);
        let Some(at) = protected.or(git.map(|(at, _)| at)) else { return };
        let is_named = protected.is_none() && git.is_some_and(|(_, is_named)| is_named);
        // Folders above a path that git's settings name are not compared.
        let Some((above, names @ [name, ..])) = names.split_at_checked(at) else { return };
        let (above, key) = (above.join("/"), names.join("/"));
        let was_bare = self.folders.iter().any(|f| f.path == above && f.is_bare == Some(true));
        let is_bare =
            || workspace.folder_at(&above).is_ok_and(|folder| is_bare_repository(&folder));
        // In this case the person approved a repository, including its contents.
        let is_new_repository = protected.is_none() && !is_named && !was_bare && is_bare();
        // Protected names are searched in the folder of a repository, and in that of a path named by git's settings.
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
        // Known entries are not replaced.
        for (key, entry) in now.entries {
            folder.entries.entry(key).or_insert(entry);
        }
    }

    /// The watched folder at a path. With `may_add`, it is added if it is not watched yet.
    fn watched(&mut self, path: String, may_add: bool) -> Option<&mut WatchedFolder> {
        let n = self.folders.iter().position(|folder| folder.path == path);
        if n.is_none() && may_add && self.folders.len() < FOLDERS {
            self.folders.push(WatchedFolder { path, ..WatchedFolder::default() });
            return self.folders.last_mut();
        }
        n.map(|n| &mut self.folders[n])
    }
}
