//! Set-user-ID and set-group-ID bits: none that a file did not have before the commands outlasts a turn.
//!
//! In the sandbox no call sets them (see the filter of system calls). This is the look afterwards, at all
//! files that the turn's walk lists.

use super::look;
use super::snapshot::Item;
use super::told::Told;
use crate::workspace::Workspace;
use crate::workspace::modes::clear_set_ids;
use crate::workspace::walk::Walk;

/// The files that have such bits before the first command: they are the person's.
pub(super) fn all(workspace: &Workspace, walk: &Walk) -> Vec<Item> {
    walk.set_ids().filter_map(|path| look::file(workspace, path)).collect()
}

/// Clears the bits of all other files, and of those whose content is another now.
pub(super) fn clear(workspace: &Workspace, before: &[Item], walk: &Walk, told: &mut Vec<Told>) {
    for path in walk.set_ids() {
        let is_known = look::file(workspace, path).is_some_and(|now| {
            before.iter().any(|before| before.is_itself(&now) && before.is_same(&now))
        });
        if is_known {
            continue;
        }
        let cleared = workspace.holder(path).and_then(|(dir, name)| clear_set_ids(&dir, &name));
        match cleared {
            // It is gone, or something else by now.
            Ok(false) => {}
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            done => told.push(Told::SetId { place: path.to_owned(), went: done.map(drop) }),
        }
    }
}
