//! Writes under protected names that the person approved, after commands have run in the same turn:
//! they are no command's doing, and what stands there then is to stay.
//!
//! The snapshot is kept with such a write as an either-or *before* the write is made, and says what
//! became of it from the next look on. No command runs in between. So who is stopped there finds it
//! made or not made, and neither is a command's doing; had the new content alone been kept before,
//! or only afterwards, one of the two would be. Before the next command begins the settled snapshot
//! is kept, so a command that brings the former content back is found out, also after a stop. Where
//! commands run side by side one may run all the same: of what was not approved, what it did is
//! compared with what was known before.

use super::layout::is_bare;
use super::snapshot::{Approved, Root, Snapshot};
use super::{Guard, ROOTS, layout, look};
use crate::protocol::{Effect, FileEffect, MoveEffect, RelPath};
use crate::workspace::Workspace;
use crate::workspace::names::escaped;

impl Guard {
    /// An approved operation is about to do this. Gives what is to be kept before it is done, where
    /// commands have run and would be taken for its author.
    pub fn expect(&mut self, workspace: &Workspace, effect: &Effect) -> Option<&Snapshot> {
        let mut all = match effect.clone() {
            Effect::File(effect) => {
                let FileEffect { path, before, after, .. } = *effect;
                vec![Approved { path, before, after }]
            }
            // Of something that is no folder.
            Effect::Move(effect) => {
                let MoveEffect { from, to, digest, .. } = *effect;
                let goes = Approved { path: from, before: digest.clone(), after: None };
                vec![goes, Approved { path: to, before: None, after: digest }]
            }
            Effect::Command | Effect::Guest { .. } => Vec::new(),
        };
        all.retain(|approved| workspace.is_kept(&approved.path));
        if all.is_empty() {
            return None;
        }
        self.settle(workspace);
        let known = self.known.as_mut()?;
        known.approved.extend(all);
        self.is_ahead = false;
        Some(known)
    }

    /// Sees what became of approved operations, before a command runs again.
    pub fn settle(&mut self, workspace: &Workspace) {
        let Some(known) = self.known.as_mut().filter(|known| !known.approved.is_empty()) else {
            return;
        };
        known.meet(workspace.number());
        let approved = std::mem::take(&mut known.approved);
        for root in &mut known.roots {
            let Some(mut layout) = root.layout.take() else { continue };
            // The person may have agreed to one's being deleted. Of all else what was known stays: a
            // command that still runs may be at work there.
            layout
                .parts
                .retain(|key, _| !approved.iter().any(|a| is_at(&a.path, &root.path_of(key))));
            root.layout = Some(layout);
        }
        for Approved { path, before, after } in approved {
            // What is neither was somebody else's doing, and is compared like all else.
            if let Ok(now) = workspace.digest(&path)
                && (now == after || now == before)
            {
                // Folders on the way are made before the file is.
                known.take_in(workspace, &path, now == after);
            }
        }
        for root in &mut known.roots {
            layout::learn(workspace, root);
        }
        self.is_ahead = true;
    }
}

/// Whether a place, its names escaped, is this one or lies in it.
fn is_at(path: &RelPath, place: &str) -> bool {
    let names: Vec<String> = path.components().map(|name| escaped(name.as_bytes())).collect();
    let rest = place.strip_prefix(&names.join("/"));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl Snapshot {
    /// Takes in the folders that lead to a place, and if so what stands there: that and no more.
    fn take_in(&mut self, workspace: &Workspace, path: &RelPath, itself: bool) {
        let names: Vec<String> = path.components().map(|name| escaped(name.as_bytes())).collect();
        let is_protected = |name: &str| workspace.protected.name_of(name).is_some();
        let protected = path.components().position(is_protected);
        let git = workspace.obeyed_around(path);
        let Some(at) = protected.or(git.map(|(at, _)| at)) else { return };
        let is_named = protected.is_none() && git.is_some_and(|(_, is_named)| is_named);
        // What lies above a place that a setting leads to holds nothing to be compared.
        let Some((above, names @ [_, ..])) = names.split_at_checked(at) else { return };
        let above = above.join("/");
        let is_one = |root: &Root| root.layout.as_ref().is_some_and(|layout| layout.bare);
        let is_known = self.roots.iter().any(|root| root.path == above && is_one(root));
        if protected.is_none()
            && !is_known
            && !is_named
            && workspace.folder_at(&above).is_ok_and(|folder| is_bare(&folder))
        {
            // The person agreed to a repository with what is in it.
            self.take_in_repository(workspace, &above);
            return;
        }
        let root = match self.roots.iter().position(|root| root.path == above) {
            Some(n) => &mut self.roots[n],
            // A repository makes its folder one in which protected names are looked for, as does a
            // setting that leads there.
            None if (is_named || names[0].eq_ignore_ascii_case(".git"))
                && self.roots.len() < ROOTS =>
            {
                self.roots.push(Root { path: above, ..Root::default() });
                let last = self.roots.len() - 1;
                &mut self.roots[last]
            }
            None => return,
        };
        if is_named && !root.named.contains(&names[0]) {
            root.named.push(names[0].clone());
        }
        look::one(workspace, root, names, itself);
    }

    /// Takes in all that is compared of a folder that has become a repository.
    fn take_in_repository(&mut self, workspace: &Workspace, path: &str) {
        let room = &mut look::Room::new();
        let Some(mut all) = look::all(workspace, path, Vec::new(), room) else { return };
        match self.roots.iter().position(|root| root.path == path) {
            Some(n) => {
                let known = &mut self.roots[n];
                // What was known before stays so.
                all.items.append(&mut known.items);
                known.items = all.items;
                known.layout.get_or_insert_default().bare = true;
            }
            None if self.roots.len() < ROOTS => self.roots.push(all),
            None => {}
        }
    }
}
