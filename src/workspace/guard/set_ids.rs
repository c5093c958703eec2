//! Set-user-ID and set-group-ID bits: none that a file did not have before the commands outlasts a turn.
//!
//! In the sandbox no call sets them (see the filter of system calls). This is the look afterwards, at all
//! files that the turn's walk lists.

use super::look;
use super::snapshot::{Item, Snapshot};
use super::told::Told;
use crate::workspace::Workspace;
use crate::workspace::folder_cache::FolderCache;
use crate::workspace::modes::clear_set_ids;
use crate::workspace::names::{split, unescaped};
use crate::workspace::walk::Walk;

/// The files that have such bits before the first command: they are the person's.
pub(super) fn all(workspace: &Workspace, walk: &Walk) -> Vec<Item> {
    let mut folders = FolderCache::new(workspace);
    walk.set_ids().filter_map(|path| look::file(workspace, &mut folders, path)).collect()
}

/// Clears the bits of all other files, and of those whose content is another now.
pub(super) fn clear(workspace: &Workspace, known: &Snapshot, walk: &Walk, told: &mut Vec<Told>) {
    let Some(before) = &known.set_ids else { return };
    let mut folders = FolderCache::new(workspace);
    for path in walk.set_ids().filter(|path| !known.leaves_alone(path)) {
        let is_known = look::file(workspace, &mut folders, path).is_some_and(|now| {
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
            done => told.push(Told::SetId { place: path.to_owned(), went: done.map(drop) }),
        }
    }
}
