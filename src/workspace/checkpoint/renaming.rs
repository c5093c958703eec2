//! Files that an operation moved and that are not kept, such as large ones: they go back by a rename, as they
//! came, while they are what the move left: the same file, of the same size and time of writing.
//!
//! A place that one goes back to is as it was, with the file where the move left it; or as it is to become,
//! with that very file in it; or neither, and then it is left alone.

use std::collections::{BTreeMap, BTreeSet};

use super::look::split;
use super::numbers::Lasting;
use super::plan::ancestors;
use super::restore::{Hand, Step, Unmade, sort};
use super::{Change, Plan, Store, What, Why};
use crate::atomic::rename_new;
use crate::error::Result;
use crate::workspace::Workspace;
use crate::workspace::names::unescaped;

/// What tells a file that is not kept from others, as far as a rename leaves that. None of what is kept, or
/// cannot be looked at.
fn lasting(what: Option<&What>) -> Option<Lasting> {
    let What::Unkept { is, .. } = what? else { return None };
    is.lasting()
}

/// Whether that is the same, where a rename of what is not kept makes no other of it.
pub(super) fn is_same(one: Option<&What>, other: Option<&What>) -> bool {
    one == other || lasting(one).is_some() && lasting(one) == lasting(other)
}

/// From where to where files go back that an operation moved, and that are not kept: by the place that they
/// go back to, the place where they stand.
pub(super) fn moves(changes: &[Change]) -> BTreeMap<String, String> {
    let mut homes: BTreeMap<Lasting, &str> = BTreeMap::new();
    for change in changes.iter().filter(|c| c.before.is_none() && !c.mixed) {
        if let Some(is) = lasting(change.after.as_ref()) {
            homes.insert(is, &change.path);
        }
    }
    let mut moves = BTreeMap::new();
    for change in changes.iter().filter(|c| c.moved && c.after.is_none() && !c.mixed) {
        if let Some(home) = lasting(change.before.as_ref()).and_then(|is| homes.remove(&is)) {
            moves.insert(home.to_owned(), change.path.clone());
        }
    }
    moves
}

/// Which of these changes cannot be taken back, and why: what stood or stands there is not kept.
pub fn unrestorable(changes: &[Change]) -> Vec<(&Change, Why)> {
    let reversed = super::reversed(changes.to_vec());
    let homes = moves(&reversed);
    let ends: BTreeSet<&String> = homes.iter().flat_map(|(home, now)| [home, now]).collect();
    let why = |change: &Change| {
        let mut sides = [&change.before, &change.after].into_iter().flatten();
        sides.find_map(What::unkept)
    };
    let changes = changes.iter().filter(|change| !ends.contains(&change.path));
    changes.filter_map(|change| Some((change, why(change)?))).collect()
}

impl Plan {
    /// Why a file that is not kept cannot go back by a rename, of those that are planned: the other place is
    /// not, or a folder on the way is to become something else.
    pub(super) fn not_renamed(&self) -> Vec<(String, String)> {
        let planned = |path: &str| self.change(path);
        let is_other = |path: &str| {
            planned(path).is_some_and(|c| {
                let (before, after) = (sort(c.before.as_ref()), sort(c.after.as_ref()));
                before != after && before != 0 && after != 0
            })
        };
        let mut not = Vec::new();
        for (home, now) in &self.moves {
            let way = ancestors(split(home).0).chain(ancestors(split(now).0));
            let why = match (planned(home), planned(now)) {
                (Some(_), Some(_)) if !way.into_iter().any(is_other) => continue,
                (None, None) => continue,
                _ => "it is not kept, and cannot be moved back",
            };
            let both = [home, now].into_iter().filter(|path| planned(path).is_some());
            not.extend(both.map(|path| (path.clone(), why.to_owned())));
        }
        not
    }
}

impl Store {
    /// What stands at the end of such a move, as one of these says it where it is that and not kept.
    pub(super) fn look_for_moved(
        &mut self,
        workspace: &Workspace,
        path: &str,
        known: [Option<&What>; 2],
    ) -> Result<Option<What>> {
        let all = workspace.as_unkept(path, known);
        match all.into_iter().find(|(what, now)| is_same(Some(now), Some(what))) {
            Some((_, now)) => Ok(Some(now)),
            None => self.look_at(workspace, path, false),
        }
    }
}

impl Workspace {
    /// Those of these that are not kept, each with what stands at a path now, said in its words. None where
    /// nothing stands there.
    pub(super) fn as_unkept<'a>(
        &self,
        path: &str,
        known: [Option<&'a What>; 2],
    ) -> Vec<(&'a What, What)> {
        let unkept = |what: &'a What| Some((what, what.unkept()?));
        let unkept: Vec<_> = known.into_iter().flatten().filter_map(unkept).collect();
        if unkept.is_empty() {
            return Vec::new();
        }
        let Ok(is) = self.identity_at(path) else { return Vec::new() };
        let now = |(what, why)| (what, What::Unkept { why, is: is.clone() });
        unkept.into_iter().map(now).collect()
    }
}

impl Hand<'_> {
    /// A file that is not kept is to stand there again.
    pub(super) fn move_back(&mut self, change: &Change) -> Step {
        let Some(from) = self.plan.moves.get(&change.path) else { return Ok(Some(Unmade::Gone)) };
        let was = self.plan.change(from).and_then(|planned| planned.before.as_ref());
        let Some(What::Unkept { is, .. }) = was else { return Ok(Some(Unmade::Gone)) };
        if self.workspace.stands_at(&change.path).is_ok() {
            let now = self.workspace.identity_at(&change.path)?;
            let is_there = now.lasting().is_some() && now.lasting() == is.lasting();
            return Ok((!is_there).then_some(Unmade::Meanwhile));
        }
        if self.workspace.identity_at(from)? != *is {
            return Ok(Some(Unmade::Meanwhile));
        }
        let folder = self.workspace.folder_at(split(from).0)?;
        let [name, new] = [from, &change.path].map(|path| unescaped(split(path).1));
        rename_new(&folder, &name, &self.folder(change)?, &new)?;
        self.folders.insert(split(from).0.to_owned());
        self.touched(change);
        Ok(None)
    }
}
