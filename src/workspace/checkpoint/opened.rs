//! The folders that are opened so that a plan can look below them. They are closed again in the end, and by the
//! next start where deaddrop is stopped before: their permissions are noted before they are changed.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use super::look::split;
use super::plan::ancestors;
use super::{Store, What};
use crate::atomic;
use crate::error::Result;
use crate::workspace::Workspace;
use crate::workspace::modes::set_mode;
use crate::workspace::names::unescaped;
use crate::workspace::walk::close::Facts;

/// What is added to the permissions of a folder that is looked into.
const OPEN: u32 = 0o500;

impl Store {
    /// Closes the folders that were opened for a plan when deaddrop was stopped. Only for whoever may write
    /// here.
    pub fn close_again(&self, workspace: &Workspace) {
        let note = note(&self.folder);
        let folders = crate::atomic::read_own(&note).ok();
        let folders = folders.and_then(|text| serde_json::from_slice(&text).ok());
        if let Some(folders) = folders {
            drop(Opened { workspace, note, folders });
        }
    }
}

/// Where the folders of `Opened` are noted, in that of the checkpoints.
fn note(checkpoints: &Path) -> PathBuf {
    checkpoints.join("opened")
}

/// Folders that were opened; they get their permissions back in the end.
pub(super) struct Opened<'a> {
    workspace: &'a Workspace,
    note: PathBuf,
    /// What they were before, by their escaped paths.
    folders: BTreeMap<String, Facts>,
}

impl<'a> Opened<'a> {
    /// Opens the folders above these paths that nobody could search as they are; `checkpoints` is where they
    /// are noted.
    pub(super) fn above<'p>(
        workspace: &'a Workspace,
        checkpoints: &Path,
        paths: impl Iterator<Item = &'p str>,
    ) -> Result<Self> {
        let note = note(checkpoints);
        let mut opened = Self { workspace, note, folders: BTreeMap::new() };
        let above: BTreeSet<&str> = paths.flat_map(|path| ancestors(split(path).0)).collect();
        for folder in above {
            if let Some(facts) = closed(workspace, folder) {
                opened.folders.insert(folder.to_owned(), facts);
                let text = serde_json::to_vec(&opened.folders).unwrap_or_default();
                atomic::write_private(&opened.note, &text)?;
                // One that stays closed is not closed in the end.
                let _ = set(workspace, folder, facts.mode | OPEN);
            }
        }
        Ok(opened)
    }

    /// The permissions that a folder had before, where it was opened.
    pub(super) fn mode(&self, path: &str) -> Option<u32> {
        self.folders.get(path).map(|facts| facts.mode)
    }

    /// What stands at a path, as it was before.
    pub(super) fn as_before(&self, path: &str, now: Option<What>) -> Option<What> {
        match (now, self.mode(path)) {
            (Some(What::Folder { .. }), Some(mode)) => Some(What::Folder { mode }),
            (now, _) => now,
        }
    }

    /// Whether a folder is still as it was opened: it may be another by now, or somebody has set its
    /// permissions.
    fn is_open(&self, path: &str, before: &Facts) -> bool {
        self.workspace.stands_at(path).is_ok_and(|(_, found)| {
            let now = Facts::of(&found);
            found.is_dir() && now.is_number_of(before) && now.mode == before.mode | OPEN
        })
    }
}

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        // The lowest first: what lies in one that is closed cannot be reached.
        for (folder, before) in self.folders.iter().rev() {
            if self.is_open(folder, before) {
                // It was ours a moment ago.
                let _ = set(self.workspace, folder, before.mode);
            }
        }
        if !self.folders.is_empty() {
            let _ = std::fs::remove_file(&self.note);
        }
    }
}

/// What a folder is like that nothing can be looked up in; None where something can, or there is none.
fn closed(workspace: &Workspace, path: &str) -> Option<Facts> {
    let (_, found) = workspace.stands_at(path).ok()?;
    let facts = Facts::of(&found);
    if !found.is_dir() || facts.mode & 0o100 != 0 {
        return None;
    }
    // For some users permissions do not count.
    let folder = workspace.folder_at(path).ok()?;
    let tried = folder.symlink_metadata(".deaddrop-looks").err()?;
    (tried.kind() == io::ErrorKind::PermissionDenied).then_some(facts)
}

fn set(workspace: &Workspace, path: &str, mode: u32) -> io::Result<()> {
    let (folder, name) = split(path);
    set_mode(&workspace.folder_at(folder)?, &unescaped(name), mode)
}
