//! What commands are kept from writing: all that is protected, or, where git may write to its
//! repositories, of these what the guard compares. So what the mounts keep and what the guard
//! looks for are one list.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::snapshot::{Item, Root, What, above};
use super::{Guard, Role};
use crate::workspace::Workspace;
use crate::workspace::names::{escaped, unescaped};

/// Where something stands that a command may not write.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kept {
    /// Files, folders and links.
    pub places: Vec<PathBuf>,
    /// Folders that hold some of these and may be written, but not moved away; each before what is
    /// in it.
    pub pinned: Vec<PathBuf>,
}

impl Guard {
    /// What the next command may not write; with `repositories` it may write to those, but for what
    /// runs code there or leads git elsewhere.
    pub fn kept(&mut self, workspace: &Workspace, repositories: bool) -> Kept {
        self.opened |= repositories;
        let mut kept = Kept::default();
        for root in self.known.iter().flat_map(|known| &known.roots) {
            let at = |key: &str| workspace.path.join(unescaped(&root.path_of(key)));
            for (key, item) in root.items.iter().filter(|(key, _)| !key.contains('/')) {
                // A repository without `.git` is there to be pushed to.
                let is_way = matches!(item.what, What::Folder { role: Role::Way, .. });
                if is_way || repositories && is_opened(workspace, &root.path_of(key), item) {
                    let (places, pinned) = within(root, key);
                    kept.places.extend(places.into_iter().map(at));
                    kept.pinned.extend(pinned.into_iter().map(at));
                } else {
                    kept.places.push(at(key));
                }
            }
        }
        kept
    }
}

/// Whether git may write there: to a repository of which all is known that is to be kept, and that
/// holds nothing of deaddrop's own, which such mounts would uncover.
fn is_opened(workspace: &Workspace, place: &str, item: &Item) -> bool {
    let below = format!("{place}/");
    let is_in_it =
        |state: &crate::protocol::RelPath| escaped(state.as_str().as_bytes()).starts_with(&below);
    matches!(item.what, What::Folder { role: Role::Repository, whole: true, .. })
        && !workspace.state.iter().any(is_in_it)
}

/// What is compared in a repository, each as a whole, and the folders that lead there.
fn within<'a>(root: &'a Root, git: &'a str) -> (Vec<&'a str>, BTreeSet<&'a str>) {
    let below = format!("{git}/");
    let (mut places, mut pinned) = (BTreeSet::new(), BTreeSet::from([git]));
    for (key, item) in root.items.range(below.clone()..) {
        if !key.starts_with(&below) {
            break;
        }
        let is_way = matches!(item.what, What::Folder { role: Role::Way, .. });
        if !is_way && !above(key).any(|above| places.contains(above)) {
            pinned.extend(above(key).filter(|above| above.len() > git.len()));
            places.insert(key.as_str());
        }
    }
    (places.into_iter().collect(), pinned)
}
