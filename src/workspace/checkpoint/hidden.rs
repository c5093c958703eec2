//! What no look could meet, since a folder above it cannot be listed or searched: what stands there is
//! unknown, which is not the same as nothing. And the folders that are opened for a plan's look below them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use serde::{Deserialize, Serialize};

use super::look::{Difference, split};
use super::plan::ancestors;
use super::{What, Why};
use crate::workspace::Workspace;
use crate::workspace::modes::set_mode;
use crate::workspace::names::unescaped;
use crate::workspace::walk::close::Facts;

/// Where a look could not see: folders with a `/` at their end (the root is empty), all below which is
/// hidden, and single entries with all below them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Hidden(BTreeSet<String>);

impl Hidden {
    pub(super) fn of(unreadable: Vec<String>) -> Self {
        Self(unreadable.into_iter().collect())
    }

    /// Whether what stands at an escaped path could not be met.
    pub(super) fn hides(&self, path: &str) -> bool {
        !self.0.is_empty()
            && (self.0.contains("")
                || ancestors(path).any(|above| {
                    self.0.contains(above) || above != path && self.0.contains(&format!("{above}/"))
                }))
    }
}

/// Of what cannot be looked at nothing is known but where it is.
pub(super) fn unreadable_at(path: &str) -> What {
    What::Unkept { why: Why::Unreadable, is: path.to_owned() }
}

/// Whether that is all that is known of what stood at this path.
pub(super) fn is_unknown(path: &str, what: Option<&What>) -> bool {
    matches!(what, Some(What::Unkept { why: Why::Unreadable, is }) if is == path)
}

impl Difference {
    /// Whether it could not be met before.
    pub(super) fn was_hidden(&self) -> bool {
        is_unknown(&self.path, self.before.as_ref())
    }

    /// Whether it was hidden before, and is unchanged since then: all that a command did is to let it be
    /// seen.
    pub(super) fn was_only_hidden(&self, since: i64) -> bool {
        let is_old = |facts: &Facts| facts.changed != 0 && facts.changed < since.into();
        self.was_hidden() && self.stranger.as_ref().is_some_and(|(facts, _)| is_old(facts))
    }
}

/// Folders that were opened so that what lies below them can be looked at; they get their permissions back
/// in the end.
pub(super) struct Opened<'a> {
    workspace: &'a Workspace,
    modes: BTreeMap<String, u32>,
}

impl<'a> Opened<'a> {
    /// Opens the folders above these paths that nobody could search as they are.
    pub(super) fn above<'p>(
        workspace: &'a Workspace,
        paths: impl Iterator<Item = &'p str>,
    ) -> Self {
        let mut opened = Self { workspace, modes: BTreeMap::new() };
        let folders: BTreeSet<&str> = paths.flat_map(|path| ancestors(split(path).0)).collect();
        for folder in folders {
            if let Some(mode) = closed(workspace, folder)
                && set(workspace, folder, mode | 0o500).is_ok()
            {
                opened.modes.insert(folder.to_owned(), mode);
            }
        }
        opened
    }

    /// The permissions that a folder had before, where it was opened.
    pub(super) fn mode(&self, path: &str) -> Option<u32> {
        self.modes.get(path).copied()
    }

    /// What stands at a path, as it was before.
    pub(super) fn as_before(&self, path: &str, now: Option<What>) -> Option<What> {
        match (now, self.mode(path)) {
            (Some(What::Folder { .. }), Some(mode)) => Some(What::Folder { mode }),
            (now, _) => now,
        }
    }
}

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        for (folder, mode) in self.modes.iter().rev() {
            // It was ours a moment ago.
            let _ = set(self.workspace, folder, *mode);
        }
    }
}

/// The permissions of a folder that nothing can be looked up in; None where something can, or there is none.
fn closed(workspace: &Workspace, path: &str) -> Option<u32> {
    let (_, found) = workspace.stands_at(path).ok()?;
    let mode = Facts::of(&found).mode;
    if !found.is_dir() || mode & 0o100 != 0 {
        return None;
    }
    // For some users permissions do not count.
    let folder = workspace.folder_at(path).ok()?;
    let tried = folder.symlink_metadata(".deaddrop-looks").err()?;
    (tried.kind() == io::ErrorKind::PermissionDenied).then_some(mode)
}

fn set(workspace: &Workspace, path: &str, mode: u32) -> io::Result<()> {
    let (folder, name) = split(path);
    set_mode(&workspace.folder_at(folder)?, &unescaped(name), mode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_below_a_folder_is_hidden_with_it_and_an_entry_by_itself() {
        let hidden = Hidden::of(vec!["d/".to_owned(), "e/f".to_owned()]);
        for (path, is_hidden) in [
            ("d", false),
            ("d/x", true),
            ("d/e/x", true),
            ("dx", false),
            ("e/f", true),
            ("e/f/g", true),
            ("e/fg", false),
            ("", false),
        ] {
            assert_eq!(hidden.hides(path), is_hidden, "{path}");
        }
        assert!(Hidden::of(vec![String::new()]).hides("x"));
        assert!(!Hidden::default().hides("x"));
    }
}
