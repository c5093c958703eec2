//! Lists the paths that commands cannot write: all protected entries or, if git may write to its repositories, only the
//! entries in them that are compared. So the read-only mounts and the comparison are based on the same list.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::Protection;
use super::snapshot::{ProtectedEntry, ProtectedKind, WatchedFolder, above};
use crate::protocol::RelPath;
use crate::workspace::Workspace;
use crate::workspace::names::{escaped, unescaped};

/// The paths that a command cannot write.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadOnly {
    /// The files, folders and links that cannot be written.
    pub places: Vec<PathBuf>,
    /// Writable folders that contain some of `places` and cannot be moved away. Each comes before the entries in it.
    pub pinned: Vec<PathBuf>,
}

impl Protection {
    /// The paths that the next command cannot write. With `repositories`, the command can write to repositories, except
    /// for entries that run code or redirect git.
    pub fn read_only(&mut self, workspace: &Workspace, repositories: bool) -> ReadOnly {
        self.git_may_write |= repositories;
        let mut read_only = ReadOnly::default();
        for folder in self.known.iter().flat_map(|known| &known.folders) {
            let at = |key: &str| workspace.path.join(unescaped(&folder.path_of(key)));
            for (key, entry) in folder.entries.iter().filter(|(key, _)| !key.contains('/')) {
                // A bare repository must stay writable, because its purpose is to be pushed to.
                let is_open = entry.is_way() || entry.is_part();
                if is_open || repositories && can_open(workspace, &folder.path_of(key), entry) {
                    let (places, pinned) = within(folder, key);
                    read_only.places.extend(places.into_iter().map(at));
                    read_only.pinned.extend(pinned.into_iter().map(at));
                } else {
                    read_only.places.push(at(key));
                }
            }
        }
        read_only
    }
}

/// Whether a repository can be made writable: all entries that must not change are known, and it does not contain
/// deaddrop's own state, which the mounts would uncover.
fn can_open(workspace: &Workspace, place: &str, entry: &ProtectedEntry) -> bool {
    let below = format!("{place}/");
    let is_inside = |state: &RelPath| escaped(state.as_str().as_bytes()).starts_with(&below);
    entry.is_repository()
        && matches!(entry.kind, ProtectedKind::Folder { whole: true, .. })
        && !workspace.state.iter().any(is_inside)
}

/// The compared entries in a folder, without those that are below other compared entries, and the folders that contain
/// them, beginning with the folder itself.
fn within<'a>(folder: &'a WatchedFolder, top: &'a str) -> (BTreeSet<&'a str>, BTreeSet<&'a str>) {
    let below = format!("{top}/");
    let (mut places, mut pinned) = (BTreeSet::new(), BTreeSet::new());
    if folder.entries.get(top).is_some_and(ProtectedEntry::is_folder) {
        pinned.insert(top);
    }
    let inside = folder.entries.range(below.clone()..);
    for (key, entry) in inside.take_while(|(key, _)| key.starts_with(&below)) {
        let is_compared = !entry.is_way() && !entry.is_part();
        if is_compared && !above(key).any(|above| places.contains(above)) {
            pinned.extend(above(key).filter(|above| above.len() > top.len()));
            places.insert(key.as_str());
        }
    }
    (places, pinned)
}
