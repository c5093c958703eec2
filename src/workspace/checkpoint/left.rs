//! What is left as it is, and what hangs on it: what would stand below it, the folders that hold it, and the
//! copies of what should stand there.

use std::collections::BTreeMap;

use super::copies::Copies;
use super::plan::ancestors;
use super::{Change, Plan, What};
use crate::text::visible_line;
use crate::workspace::Workspace;
use crate::workspace::names::{escaped_os, shown};
use crate::workspace::walk::close::{Texts, ignores};

/// Why something stays that a command took, or may have taken, from among what is not kept.
const BROUGHT: &str = "it was there before the turn, under a name that is not kept";
const PERHAPS: &str = "it may have been there before the turn, under a name that is not kept";

/// What is left as it is.
#[derive(Debug, Default)]
pub(super) struct Left {
    pub(super) copies: Copies,
    /// Where, and whether a folder stands there.
    places: BTreeMap<String, bool>,
    /// Where something was brought from among what is not kept, and whether that is a guess.
    brought: BTreeMap<String, bool>,
}

impl Left {
    /// This is to be planned. What was brought from among what is not kept stays where it was brought, or
    /// comes back there.
    pub(super) fn meet(&mut self, change: &mut Change) {
        self.copies.meet(change);
        let Some(last) = change.brought.pop() else { return };
        for earlier in change.brought.drain(..) {
            self.copies.miss(Some(&earlier));
        }
        self.copies.miss(change.after.as_ref());
        change.after = Some(last);
        self.brought.insert(change.path.clone(), change.perhaps);
    }

    /// What is to stand there does: what was brought there may be in the way of others.
    pub(super) fn stands(&mut self, change: &Change) {
        if self.brought.contains_key(&change.path) {
            let is_folder = matches!(change.after, Some(What::Folder { .. }));
            self.places.insert(change.path.clone(), is_folder);
        }
    }

    /// Whether this is what was brought, and nothing is to become of it: then nobody can have changed what is
    /// to be taken back. What the person has removed since is not told as left.
    pub(super) fn stays_as_brought(&mut self, workspace: &Workspace, change: &Change) -> bool {
        if !self.brought.contains_key(&change.path) || change.before != change.after {
            return false;
        }
        match workspace.stands_at(&change.path) {
            Ok((_, found)) => drop(self.places.insert(change.path.clone(), found.is_dir())),
            Err(e) if workspace.tells_nothing_is_there(&change.path, &e) => {
                self.brought.remove(&change.path);
            }
            Err(_) => self.stands(change),
        }
        true
    }

    /// Whether what stands there is left.
    pub(super) fn stays(&self, path: &str) -> bool {
        self.places.contains_key(path)
    }
}

/// What a folder holds, escaped, and whether that is a folder; nothing where it cannot be listed.
fn held(workspace: &Workspace, path: &str) -> Vec<(String, bool)> {
    let Ok(folder) = workspace.folder_at(path) else { return Vec::new() };
    let entries = folder.entries().into_iter().flatten().flatten();
    let told = |entry: cap_std::fs::DirEntry| {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        (format!("{path}/{}", escaped_os(&entry.file_name())), is_folder)
    };
    let mut held: Vec<_> = entries.map(told).collect();
    held.sort_unstable();
    held
}

/// Whether a folder is to go, or to become something else.
pub(super) fn is_folder_that_goes(change: &Change) -> bool {
    matches!(change.before, Some(What::Folder { .. }))
        && !matches!(change.after, Some(What::Folder { .. }))
}

impl Plan {
    /// This is not done.
    pub(super) fn leave(&mut self, change: &Change, why: String, left: &mut Left) {
        self.left.push((change.shown(), why));
        left.copies.miss(change.after.as_ref());
        let is_folder = matches!(change.before, Some(What::Folder { .. }));
        left.places.insert(change.path.clone(), is_folder);
    }

    /// Leaves what cannot or must not be done since something else is left: until nothing more hangs on
    /// that. `rules` tell why something may not be known.
    pub(super) fn leave_what_hangs_on_it(
        &mut self,
        workspace: &Workspace,
        rules: &Texts,
        mut left: Left,
    ) {
        for (path, perhaps) in &left.brought {
            if !ancestors(path).any(|above| above != path && left.brought.contains_key(above)) {
                let why = if *perhaps { PERHAPS } else { BROUGHT };
                let told = visible_line(&shown(path)).into_owned();
                self.left.push((told.clone(), why.to_owned()));
                self.brought.push(told);
            }
        }
        let going = self.changes.iter().filter(|change| is_folder_that_goes(change));
        let held: BTreeMap<String, Vec<(String, bool)>> =
            going.map(|change| (change.path.clone(), held(workspace, &change.path))).collect();
        loop {
            let mut stay: BTreeMap<String, String> = BTreeMap::new();
            let planned = |path: &str| self.change(path);
            let goes = |path: &str| planned(path).is_some_and(|change| change.after.is_none());
            for change in &self.changes {
                let is_other = |above: &&str| {
                    let what = planned(above).map(|above| &above.after);
                    *above != change.path
                        && what.is_some_and(|what| !matches!(what, Some(What::Folder { .. })))
                };
                let in_the_way =
                    |above: &&str| left.places.get(*above) == Some(&false) || is_other(above);
                if change.after.is_some()
                    && let Some(above) = ancestors(&change.path).find(in_the_way)
                {
                    let above = visible_line(&shown(above)).into_owned();
                    let why = format!("'{above}', on the way there, stays");
                    stay.insert(change.path.clone(), why);
                } else if is_folder_that_goes(change)
                    && let Some(held) = held.get(&change.path)
                    && let Some((first, is_folder)) = held.iter().find(|(path, _)| !goes(path))
                {
                    let why = if left.stays(first) || left.brought.contains_key(first) {
                        "it holds what is left as it is".to_owned()
                    } else {
                        let what = if ignores(rules, first, *is_folder) {
                            "rules such as .gitignore leave out"
                        } else {
                            "is not of what is taken back"
                        };
                        let first = visible_line(&shown(first)).into_owned();
                        format!("the folder holds '{first}', which {what}")
                    };
                    stay.insert(change.path.clone(), why);
                }
            }
            stay.extend(self.not_renamed());
            if stay.is_empty() {
                for (path, surely) in left.copies.kept(&self.changes) {
                    let why = if surely {
                        "where it was moved from, nothing can be put back"
                    } else {
                        "a command may have moved it here, and nothing can be put back where it was"
                    };
                    stay.insert(path.to_owned(), why.to_owned());
                }
            }
            if stay.is_empty() {
                return;
            }
            let stays = |change: &mut Change| stay.contains_key(&change.path);
            for change in self.changes.extract_if(.., stays).collect::<Vec<_>>() {
                let why = stay.remove(&change.path).unwrap_or_default();
                self.leave(&change, why, &mut left);
            }
        }
    }
}
