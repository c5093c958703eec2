//! What git keeps of the repositories in the workspace, their `.git`: nothing of it is looked at, but by its
//! number it is known where it went with a folder that a command renamed. So an undo takes it back by a
//! rename, where the same stands in the new place and nothing in the old one; else it says what is left.

use std::collections::BTreeMap;

use cap_std::fs::Metadata;

use super::brought::made;
use super::look::{Difference, split};
use super::numbers::Identity;
use super::renaming::is_same;
use super::{Change, What, Why};
use crate::text::{shell_word, visible_line};
use crate::workspace::Workspace;
use crate::workspace::folder_cache::FolderCache;
use crate::workspace::names::unescaped;
use crate::workspace::walk::Walk;
use crate::workspace::walk::close::Facts;

/// What git's own is called.
const GIT: &str = ".git";

/// Where the `.git` of each repository stands, by its escaped path, with what tells it from others.
pub(super) type Repositories = BTreeMap<String, Facts>;

/// What tells one `.git` from another, whatever git does in it: its number, and where that is known, when it was
/// made, since a number is given anew. `written` stands for that here.
fn facts(found: &Metadata) -> Facts {
    let Facts { device, inode, .. } = Facts::of(found);
    Facts { device, inode, written: made(found).unwrap_or_default(), ..Facts::default() }
}

fn number(Facts { inode, written, .. }: &Facts) -> Identity {
    let (inode, written) = (*inode, *written);
    Identity::of(&Facts { inode, written, changed: 1, ..Facts::default() }, 0)
}

/// The same, as [`Identity::of`] has it of others.
pub(super) fn identity(found: &Metadata) -> Identity {
    number(&facts(found))
}

fn is_same_one(one: &Facts, other: &Facts) -> bool {
    one.is_number_of(other) && one.written == other.written
}

/// Whether this is the place of a `.git`.
pub(super) fn is_gits(path: &str) -> bool {
    split(path).1 == GIT
}

/// The repositories that a walk met.
pub(super) fn met(workspace: &Workspace, walk: &Walk) -> Repositories {
    let mut folders = FolderCache::new(workspace);
    let number = |folder: &str| {
        let path = if folder.is_empty() { GIT.to_owned() } else { format!("{folder}/{GIT}") };
        let facts = facts(&folders.stands_at(&path).ok()?.1);
        // Some systems tell no number.
        (facts.inode != 0).then_some((path, facts))
    };
    walk.repositories().filter_map(number).collect()
}

/// What came of those that an earlier look met: those that are gone, are others, or stand elsewhere.
pub(super) fn differences(
    workspace: &Workspace,
    before: &Repositories,
    now: &Repositories,
) -> Vec<Difference> {
    let what = |facts: &Facts| What::Unkept { why: Why::Repository, is: number(facts) };
    let difference = |path: &String, before, after| Difference {
        path: path.clone(),
        before,
        after,
        stranger: None,
    };
    let (mut differences, mut folders) = (Vec::new(), FolderCache::new(workspace));
    let mut gone: Vec<&Facts> = Vec::new();
    for (path, was) in before {
        match now.get(path) {
            Some(is) if is_same_one(is, was) => {}
            Some(is) => differences.push(difference(path, Some(what(was)), Some(what(is)))),
            None => match folders.stands_at(path).map(drop) {
                Err(e) if folders.tells_nothing_is_there(path, &e) => {
                    gone.push(was);
                    differences.push(difference(path, Some(what(was)), None));
                }
                // It cannot be seen, or is not where a walk looks.
                _ => {}
            },
        }
    }
    for (path, is) in now.iter().filter(|(path, _)| !before.contains_key(*path)) {
        if gone.iter().any(|was| is_same_one(is, was)) {
            differences.push(difference(path, None, Some(what(is))));
        }
    }
    differences
}

impl Change {
    /// Whether it is of what git keeps of a repository.
    pub fn is_of_a_repository(&self) -> bool {
        let mut sides = [&self.before, &self.after].into_iter().flatten();
        sides.any(|what| what.unkept() == Some(Why::Repository))
    }
}

/// The command that brings each `.git` back that goes with these changes, by the place for people where it
/// was; of those that stand elsewhere.
pub(super) fn remedies(workspace: &Workspace, changes: &[Change]) -> BTreeMap<String, String> {
    let of_one = || changes.iter().filter(|change| change.is_of_a_repository());
    let remedy = |home: &Change| {
        let is_it = |now: &&Change| {
            let was = [now.before.as_ref(), None];
            now.path != home.path
                && home.after.is_some()
                && is_same(was[0], home.after.as_ref())
                && workspace.as_unkept(&now.path, was).iter().any(|(was, is)| *was == is)
        };
        let now = of_one().find(is_it)?;
        Some((home.shown(), format!("mv {} {}", word(&now.path)?, word(&home.path)?)))
    };
    of_one().filter_map(remedy).collect()
}

/// A path as a word of a command; None where that cannot be shown as it is.
fn word(path: &str) -> Option<String> {
    let name = unescaped(path).into_string().ok()?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._/-".contains(c);
    match visible_line(&name) {
        shown if *shown != *name => None,
        _ if name.chars().all(is_plain) && !name.starts_with('-') => Some(name),
        _ => Some(shell_word(&name)),
    }
}
