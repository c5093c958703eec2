//! Set-user-ID and set-group-ID bits: none that a file did not have before the commands outlasts a turn.
//!
//! In the sandbox no system call sets them (seccomp). This check afterwards covers all files that the turn's walk
//! lists.

use cap_std::fs::MetadataExt;

use super::report::Incident;
use super::scan::Scan;
use super::snapshot::{ProtectedEntry, Snapshot};
use crate::workspace::Workspace;
use crate::workspace::folder_cache::FolderCache;
use crate::workspace::modes::clear_set_ids;
use crate::workspace::names::{split, unescaped};
use crate::workspace::walk::{PlaceKind, Walk};

/// The files that have such bits before the first command: they are the person's.
pub(super) fn all(workspace: &Workspace, walk: &Walk) -> Vec<ProtectedEntry> {
    let mut folders = FolderCache::new(workspace);
    walk.places(PlaceKind::SetId).filter_map(|path| file(workspace, &mut folders, path)).collect()
}

/// Clears the bits of all other files, and of those whose content has changed.
pub(super) fn clear(workspace: &Workspace, known: &Snapshot, walk: &Walk) -> Vec<Incident> {
    let Some(before) = &known.set_ids else { return Vec::new() };
    let mut folders = FolderCache::new(workspace);
    let mut incidents = Vec::new();
    for path in walk.places(PlaceKind::SetId).filter(|path| !known.leaves_alone(path)) {
        let is_known = file(workspace, &mut folders, path).is_some_and(|now| {
            before.iter().any(|before| before.is_itself(&now) && before.is_same(&now))
        });
        if is_known {
            continue;
        }
        let (folder, name) = split(path);
        let cleared = folders.folder(folder).and_then(|dir| clear_set_ids(dir, &unescaped(name)));
        match cleared {
            // It is gone, or something else by now.
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

/// A regular file at an escaped path; None if there is none.
fn file(workspace: &Workspace, folders: &mut FolderCache, path: &str) -> Option<ProtectedEntry> {
    let (dir, found) = folders.stands_at(path).ok()?;
    let name = unescaped(split(path).1);
    let kind = |found| Scan::new(workspace).without_texts().no_folder(dir, &name, found, None);
    found.is_file().then(|| ProtectedEntry { inode: Some(found.ino()), kind: kind(&found) })
}
