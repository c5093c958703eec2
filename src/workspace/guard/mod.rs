//! The guard around commands: what stands under protected names is remembered before the first
//! command of a turn and compared after each. What a command made or changed there goes to
//! quarantine in deaddrop's state, never deleted, and what is known of the former content is put
//! back. Whatever else keeps a command from writing there, this tells whether it did.
//!
//! - It looks at the workspace's root and at the roots of the repositories that the turn's walk
//!   found, which is outside of ignored folders; at the nearest 1,000 of them.
//! - It cannot tell a command's hand from that of a person who works in the same moment; what it
//!   moved by mistake lies in the quarantine.
//! - The snapshot is of one turn: what the person changes between turns is theirs.

mod approved;
mod layout;
mod look;
mod opening;
mod quarantine;
mod scope;
mod set_ids;
mod shared;
mod snapshot;
#[cfg(all(test, unix))]
mod tests;
mod told;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;

use cap_fs_ext::MetadataExt;

use super::Workspace;
use super::names::{escaped, shown, split, unescaped};
use super::walk::{Walk, walk_all};
use crate::error::Result;
use crate::protocol::{Warning, WarningKind};
pub use opening::Kept;
pub use quarantine::Quarantine;
use scope::{HALF_WAY, Role};
pub use shared::{Keeper, Member, Shared};
pub use snapshot::Snapshot;
use snapshot::{Change, Item, Root, What, above};
use told::{Told, sentences};

/// In so many roots protected names are looked for; in more, in those nearest to the root.
const ROOTS: usize = 1_000;
/// So many closed folders in one another are opened.
const CLOSED: usize = 16;
/// So many ignored folders and further repositories are remembered.
const LEFT_ALONE: usize = 10_000;

/// Said where git was allowed to write, and made a repository.
const NO_NEW_ONE: &str = "git may write to repositories that are there, and a new one is not left in its place: making one (git init, git clone) is for the user";

/// Said where what git has yet to do of something half-way was put away.
const NOT_HALF_WAY: &str = "a rebase, am, cherry-pick or revert that is half-way is not left so: what git keeps of it can name commands, which `git rebase --continue` would run outside the sandbox. What was done of it stays, and HEAD stands where it stopped (`git status`, `git reflog`): do it in one command that ends it, by --abort where it stops, or leave it to the user";

/// What watches over the protected names while commands run.
#[derive(Debug, Default)]
pub struct Guard {
    /// None: nothing is watched.
    quarantine: Option<Quarantine>,
    /// What stands there, as far as it is to stay; None before the first command.
    known: Option<Snapshot>,
    /// Repositories that are not where they were: moved, or gone.
    missing: Vec<Missing>,
    /// `known` is not what was kept of it last.
    is_ahead: bool,
    /// A command of the turn could write to repositories.
    opened: bool,
}

/// A `.git` that is not where it was.
#[derive(Debug)]
struct Missing {
    path: String,
    git: Item,
    /// All that was known there.
    root: Root,
}

impl Guard {
    /// A guard that moves what it finds to this place.
    pub fn new(quarantine: Quarantine) -> Self {
        Self { quarantine: Some(quarantine), ..Self::default() }
    }

    /// The same in the middle of a turn, of which `known` is the snapshot.
    pub fn resumed(quarantine: Quarantine, known: Snapshot) -> Self {
        Self { quarantine: Some(quarantine), known: Some(known), ..Self::default() }
    }

    /// A command is about to run. Takes the turn's snapshot where there is none yet, and gives what
    /// is to be kept before the command begins: it, or what became of it by approved writes. `walk` is
    /// what was found in the workspace, if somebody has just looked.
    pub fn begin(
        &mut self,
        workspace: &Workspace,
        walk: Option<&Walk>,
    ) -> Result<Option<&Snapshot>> {
        if self.quarantine.is_none() {
            return Ok(None);
        }
        self.settle(workspace);
        if self.known.is_none() {
            self.known = Some(match walk {
                Some(walk) => Snapshot::take(workspace, walk),
                None => Snapshot::take(workspace, &workspace.walk()?),
            });
            self.is_ahead = true;
        }
        for root in self.known.iter_mut().flat_map(|known| &mut known.roots) {
            self.is_ahead |= layout::learn(workspace, root);
        }
        let is_ahead = std::mem::take(&mut self.is_ahead);
        Ok(self.known.as_ref().filter(|_| is_ahead))
    }

    /// Whether commands have run under this guard.
    pub fn has_begun(&self) -> bool {
        self.known.is_some()
    }

    /// Compares after a command. Returns what was found and done, a sentence each.
    pub fn check(&mut self, workspace: &Workspace) -> Vec<Warning> {
        self.settle(workspace);
        let (Some(quarantine), Some(known)) = (&self.quarantine, &mut self.known) else {
            return Vec::new();
        };
        known.meet(workspace.number());
        let mut told = Vec::new();
        for mut root in std::mem::take(&mut known.roots) {
            layout::set_right(workspace, quarantine, &root, &mut told);
            if let Some(now) = look::again(workspace, &root.path, &root) {
                set_right(workspace, quarantine, &mut root, &now, &mut self.missing, &mut told);
                known.roots.push(root);
            } else {
                self.missing.extend(Missing::of(root));
            }
        }
        self.told(told)
    }

    /// Compares at the end of a turn with what its last walk found: repositories that were not
    /// there before, those that are nowhere any more, and set-user-ID and set-group-ID bits.
    pub fn finish(&mut self, workspace: &Workspace, walk: &Walk) -> Vec<Warning> {
        let (Some(quarantine), Some(known)) = (&self.quarantine, &mut self.known) else {
            return Vec::new();
        };
        let mut told = Vec::new();
        let listed: BTreeSet<String> = known.git.among(walk).collect();
        let has_new_rules = known.has_new_rules(walk);
        let again = look_again(workspace, quarantine, known, walk, &mut told);
        let walk = again.as_ref().unwrap_or(walk);
        let before: BTreeSet<String> = known.roots.iter().map(|root| root.path.clone()).collect();
        for path in walk.repositories() {
            if before.contains(path) || known.leaves_alone(path) || workspace.is_below_one(path) {
                continue;
            }
            let Ok(folder) = workspace.folder_at(path) else { continue };
            for name in git_names(workspace, &folder) {
                let Ok(found) = folder.symlink_metadata(&name) else { continue };
                let same = |m: &Missing| m.git.inode == Some(found.ino());
                let place = Root { path: path.to_owned(), ..Root::default() };
                let place = place.path_of(&super::names::escaped_os(&name));
                if let Some(n) = self.missing.iter().position(same) {
                    let Missing { path: from, mut root, .. } = self.missing.swap_remove(n);
                    told.push(Told::Moved { from, to: place });
                    path.clone_into(&mut root.path);
                    layout::set_right(workspace, quarantine, &root, &mut told);
                    // A repository that goes somewhere else keeps its hooks as they were.
                    if let Some(now) = look::again(workspace, path, &root) {
                        let missing = &mut Vec::new();
                        set_right(workspace, quarantine, &mut root, &now, missing, &mut told);
                    }
                    known.roots.push(root);
                } else if known.would_know(path) {
                    let went = quarantine.take(&folder, &name);
                    told.push(Told::Quarantined { place, change: Change::Made, went, back: None });
                } else {
                    told.push(Told::Appeared { place });
                }
            }
        }
        // Of an ignored folder no more is looked at than itself.
        for path in walk.bare().chain(walk.ignored()) {
            let is_known = before.contains(path) || known.leaves_alone(path);
            if is_known || !workspace.git_obeys || workspace.is_below_one(path) {
                continue;
            }
            if known.would_know(path) {
                layout::unmake(workspace, quarantine, path, &mut told);
            } else if walk.bare().any(|bare| bare == path) {
                told.push(Told::Appeared { place: path.to_owned() });
            }
        }
        for place in known.git.among(walk) {
            let is_known = known.roots.iter().any(|root| root.has_named(&place));
            if is_known || known.leaves_alone(&place) || workspace.is_below_one(&place) {
                continue;
            }
            // A file that old rules left out may have been there.
            let was_listed = !has_new_rules || listed.contains(&place);
            if known.would_know(&place) && was_listed {
                let went = workspace.holder(&place);
                let went = went.and_then(|(folder, name)| quarantine.take(&folder, &name));
                told.push(Told::Quarantined { place, change: Change::Made, went, back: None });
            } else {
                told.push(Told::Appeared { place });
            }
        }
        told.extend(self.missing.drain(..).map(|missing| Told::Gone { place: missing.path }));
        set_ids::clear(workspace, known, walk, &mut told);
        self.told(told)
    }

    fn told(&self, told: Vec<Told>) -> Vec<Warning> {
        let is_repository = |told: &Told| match told {
            Told::Quarantined { place, change: Change::Made, .. } => is_git(place),
            _ => false,
        };
        let is_half_way = |told: &Told| match told {
            Told::Quarantined { place, change: Change::Made, .. } => is_half_way(place),
            _ => false,
        };
        let made = self.opened && told.iter().any(is_repository);
        let stopped = told.iter().any(is_half_way);
        let mut told = sentences(told);
        told.extend(made.then(|| NO_NEW_ONE.to_owned()));
        told.extend(stopped.then(|| NOT_HALF_WAY.to_owned()));
        warnings(told)
    }

    /// What lies in quarantine and none of these warnings names: deaddrop was stopped before it
    /// could be told.
    pub fn untold<'a>(&self, known: impl Iterator<Item = &'a Warning>) -> Vec<Warning> {
        let Some(quarantine) = &self.quarantine else { return Vec::new() };
        let known: Vec<&Warning> = known.collect();
        let untold = |path: &String| !known.iter().any(|told| told.text.contains(path.as_str()));
        let untold = quarantine.held().into_iter().filter(untold);
        warnings(sentences(untold.map(|at| Told::Earlier { at })))
    }
}

fn warnings(told: Vec<String>) -> Vec<Warning> {
    told.into_iter().map(|told| Warning::new(WarningKind::Guard, told)).collect()
}

impl Missing {
    /// A root that is no longer there, where a repository was.
    fn of(root: Root) -> Option<Self> {
        let git = |(key, _): &(&String, &Item)| key.eq_ignore_ascii_case(".git");
        let (key, git) = root.items.iter().find(git)?;
        Some(Self { path: root.path_of(key), git: git.clone(), root })
    }
}

impl Snapshot {
    fn take(workspace: &Workspace, walk: &Walk) -> Self {
        let bare = walk.bare().filter(|_| workspace.git_obeys);
        let paths: BTreeSet<&str> = walk.repositories().chain(bare).collect();
        let mut paths: Vec<&str> = paths
            .into_iter()
            .filter(|path| !path.is_empty() && !workspace.is_below_one(path))
            .collect();
        paths.sort_by_key(|path| (memchr::memchr_iter(b'/', path.as_bytes()).count(), *path));
        let further = paths.split_off(paths.len().min(ROOTS - 1));
        let is_whole = walk.ignored().len() + further.len() <= LEFT_ALONE;
        let left_alone = walk.ignored().chain(further);
        let left_alone = left_alone.take(LEFT_ALONE).map(str::to_owned).collect();
        let mut named: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let git = workspace.named_by_git(walk.repositories().chain(walk.bare()).map(shown));
        let places = git.places.iter().map(|path| escaped(path.as_bytes()));
        for path in places.chain(git.among(walk)).filter(|path| !workspace.is_below_one(path)) {
            let (folder, name) = split(&path);
            let here = named.entry(folder.to_owned()).or_default();
            if !here.iter().any(|known| known == name) {
                here.push(name.to_owned());
            }
        }
        let further: Vec<String> = named.keys().cloned().collect();
        let further = further
            .iter()
            .map(String::as_str)
            .filter(|path| !path.is_empty() && !paths.contains(path))
            .take(ROOTS);
        let mut room = look::Room::new();
        let roots: Vec<&str> =
            [""].into_iter().chain(paths.iter().copied()).chain(further).collect();
        let roots = roots.into_iter().filter_map(|path| {
            look::all(workspace, path, named.remove(path).unwrap_or_default(), &mut room)
        });
        let roots = roots.collect();
        let (inode, set_ids) = (workspace.number(), Some(set_ids::all(workspace, walk)));
        let closed = walk.closed().map(str::to_owned).collect();
        let (rules, approved) = (walk.rules().clone(), Vec::new());
        Self { inode, roots, left_alone, is_whole, approved, closed, rules, git, set_ids }
    }

    /// Whether rules that are others than before could hide something.
    fn has_new_rules(&self, walk: &Walk) -> bool {
        let hides = || {
            walk.ignored_files().files > 0 || walk.ignored().any(|path| !self.leaves_alone(path))
        };
        walk.rules() != &self.rules && hides()
    }

    /// Whether what was at a place before the commands would be known.
    fn would_know(&self, path: &str) -> bool {
        let was_closed = |place: &str| self.closed.contains(place);
        self.is_whole && !was_closed(path) && !above(path).any(was_closed)
    }

    fn leaves_alone(&self, path: &str) -> bool {
        self.left_alone.contains(path) || above(path).any(|p| self.left_alone.contains(p))
    }
}

impl Workspace {
    /// The number of the root's folder on its file system.
    fn number(&self) -> Option<u64> {
        self.root.dir_metadata().ok().map(|found| found.ino())
    }

    /// Whether a place lies below a protected name, so that it is looked at with that.
    pub(super) fn is_below_one(&self, path: &str) -> bool {
        path.split('/').any(|name| self.protected.name_of(&super::names::shown(name)).is_some())
    }

    /// The folder that holds an item, and its name there.
    fn holder(&self, path: &str) -> io::Result<(cap_std::fs::Dir, OsString)> {
        let (folder, name) = split(path);
        Ok((self.folder_at(folder)?, unescaped(name)))
    }
}

/// Looks again where commands could have hidden something from the last walk: in folders that rules leave out
/// which are others than before, and in folders that are closed now, which are opened. What stays closed is
/// put away. None where nothing is hidden.
fn look_again(
    workspace: &Workspace,
    quarantine: &Quarantine,
    known: &Snapshot,
    walk: &Walk,
    told: &mut Vec<Told>,
) -> Option<Walk> {
    let all = known.has_new_rules(walk);
    let look = || if all { walk_all(workspace).ok() } else { workspace.walk().ok() };
    let mut again = if all { look() } else { None };
    for round in 0..=CLOSED {
        let closed = again.as_ref().unwrap_or(walk).closed();
        let closed: Vec<String> = closed
            .filter(|path| !known.closed.contains(*path) && !known.leaves_alone(path))
            .map(str::to_owned)
            .collect();
        if closed.is_empty() {
            break;
        }
        for place in closed {
            if round < CLOSED {
                let mut way: Vec<&str> = above(&place).chain([&*place]).collect();
                way.sort_unstable_by_key(|path| path.len());
                for path in way {
                    let _ = workspace.holder(path).map(|(dir, name)| look::let_in(&dir, &name));
                }
            } else {
                let holder = workspace.holder(&place);
                let went = holder.and_then(|(folder, name)| quarantine.take(&folder, &name));
                told.push(Told::Closed { place, went });
            }
        }
        again = look();
    }
    again
}

/// Whether a path ends in the name of a repository.
fn is_git(path: &str) -> bool {
    split(path).1.eq_ignore_ascii_case(".git")
}

/// Whether a path is where git keeps what it has yet to do.
fn is_half_way(path: &str) -> bool {
    let (folder, name) = path.rsplit_once('/').unwrap_or_default();
    HALF_WAY.contains(&name) && folder.split('/').any(is_git)
}

fn git_names(workspace: &Workspace, folder: &cap_std::fs::Dir) -> Vec<OsString> {
    let Ok(entries) = folder.entries() else { return Vec::new() };
    let names = entries.filter_map(|entry| Some(entry.ok()?.file_name()));
    let is_git = |name: &OsString| {
        name.eq_ignore_ascii_case(".git") && workspace.protected.name_of(".git").is_some()
    };
    names.filter(is_git).collect()
}

/// Moves what is new or changed in a root to quarantine and puts back what is known; `root` becomes
/// what is to be compared with from here on.
fn set_right(
    workspace: &Workspace,
    quarantine: &Quarantine,
    root: &mut Root,
    now: &Root,
    missing: &mut Vec<Missing>,
    told: &mut Vec<Told>,
) {
    for (key, change) in root.differences(now) {
        let place = root.path_of(&key);
        let taken = (change != Change::Removed).then(|| {
            let (folder, name) = workspace.holder(&place)?;
            quarantine.take(&folder, &name)
        });
        let former = root.take(&key);
        if let Some(git) = former.get(&key).filter(|item| item.is_repository()) {
            let (git, items) = (git.clone(), former.clone());
            let root = Root { path: root.path.clone(), items, ..Root::default() };
            missing.push(Missing { path: place.clone(), git, root });
            told.extend(taken.map(|went| Told::Quarantined { place, change, went, back: None }));
            continue;
        }
        let is_free = taken.as_ref().is_none_or(Result::is_ok);
        let mut back = (0, 0);
        for (key, item) in former {
            let is_back = is_free
                && workspace
                    .holder(&root.path_of(&key))
                    .and_then(|(folder, name)| quarantine.put_back(&folder, &name, &item.what))
                    .unwrap_or(false);
            let counts = !matches!(item.what, What::Folder { .. });
            back.0 += usize::from(counts && is_back);
            back.1 += usize::from(counts);
            if is_back {
                root.items.insert(key, item);
            }
        }
        told.push(match taken {
            Some(went) => Told::Quarantined { place, change, went, back: Some(back) },
            None => Told::Removed { place, back },
        });
    }
}
