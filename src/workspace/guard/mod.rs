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

mod look;
mod quarantine;
mod scope;
mod snapshot;
mod told;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use cap_fs_ext::MetadataExt;

use super::Workspace;
use super::names::unescaped;
use super::walk::Walk;
use crate::error::Result;
pub use quarantine::Quarantine;
pub use snapshot::Snapshot;
use snapshot::{Change, Item, Root, What, ancestors};
use told::{Told, sentences};

/// In so many roots protected names are looked for; in more, in those nearest to the root.
const ROOTS: usize = 1_000;
/// So many ignored folders and further repositories are remembered.
const LEFT_ALONE: usize = 10_000;

/// What watches over the protected names while commands run.
#[derive(Debug, Default)]
pub struct Guard {
    /// None: nothing is watched.
    quarantine: Option<Quarantine>,
    /// What stands there, as far as it is to stay; None before the first command.
    known: Option<Snapshot>,
    /// Repositories that are not where they were: moved, or gone.
    missing: Vec<Missing>,
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
        Self { quarantine: Some(quarantine), known: Some(known), missing: Vec::new() }
    }

    /// A command is about to run. Takes the turn's snapshot where there is none yet, and gives it
    /// then, to be kept before the command begins.
    pub fn begin(&mut self, workspace: &Workspace) -> Result<Option<&Snapshot>> {
        if self.quarantine.is_none() || self.known.is_some() {
            return Ok(None);
        }
        let snapshot = Snapshot::take(workspace, &workspace.walk()?);
        Ok(Some(&*self.known.insert(snapshot)))
    }

    /// Whether commands have run under this guard.
    pub fn has_begun(&self) -> bool {
        self.known.is_some()
    }

    /// Where something stands that no command may write: files, folders and links.
    pub fn places(&self, workspace: &Workspace) -> Vec<PathBuf> {
        let roots = self.known.iter().flat_map(|known| &known.roots);
        let entries = roots.flat_map(|root| {
            let entries = root.items.keys().filter(|key| !key.contains('/'));
            entries.map(|key| workspace.path.join(unescaped(&root.path_of(key))))
        });
        entries.collect()
    }

    /// Compares after a command. Returns what was found and done, a sentence each.
    pub fn check(&mut self, workspace: &Workspace) -> Vec<String> {
        let (Some(quarantine), Some(known)) = (&self.quarantine, &mut self.known) else {
            return Vec::new();
        };
        known.meet(workspace.number());
        let mut told = Vec::new();
        for mut root in std::mem::take(&mut known.roots) {
            if let Some(now) = look::again(workspace, &root.path, &root) {
                set_right(workspace, quarantine, &mut root, &now, &mut self.missing, &mut told);
                known.roots.push(root);
            } else {
                self.missing.extend(Missing::of(root));
            }
        }
        sentences(told)
    }

    /// Compares at the end of a turn with what its last walk found: repositories that were not
    /// there before, and those that are nowhere any more.
    pub fn finish(&mut self, workspace: &Workspace, walk: &Walk) -> Vec<String> {
        let (Some(quarantine), Some(known)) = (&self.quarantine, &mut self.known) else {
            return Vec::new();
        };
        let mut told = Vec::new();
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
                    // A repository that goes somewhere else keeps its hooks as they were.
                    if let Some(now) = look::again(workspace, path, &root) {
                        let missing = &mut Vec::new();
                        set_right(workspace, quarantine, &mut root, &now, missing, &mut told);
                    }
                    known.roots.push(root);
                } else if known.is_whole {
                    let went = quarantine.take(&folder, &name);
                    told.push(Told::Quarantined { place, change: Change::Made, went, back: None });
                } else {
                    told.push(Told::Appeared { place });
                }
            }
        }
        told.extend(self.missing.drain(..).map(|missing| Told::Gone { place: missing.path }));
        sentences(told)
    }

    /// What lies in quarantine and none of these warnings names: deaddrop was stopped before it
    /// could be told.
    pub fn untold<'a>(&self, warnings: impl Iterator<Item = &'a String>) -> Vec<String> {
        let Some(quarantine) = &self.quarantine else { return Vec::new() };
        let warnings: Vec<&String> = warnings.collect();
        let untold =
            |path: &String| !warnings.iter().any(|warning| warning.contains(path.as_str()));
        sentences(quarantine.held().into_iter().filter(untold).map(|at| Told::Earlier { at }))
    }
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
        let mut paths: Vec<&str> = walk
            .repositories()
            .filter(|path| !path.is_empty() && !workspace.is_below_one(path))
            .collect();
        paths.sort_by_key(|path| (memchr::memchr_iter(b'/', path.as_bytes()).count(), *path));
        let further = paths.split_off(paths.len().min(ROOTS - 1));
        let is_whole = walk.ignored().len() + further.len() <= LEFT_ALONE;
        let left_alone = walk.ignored().chain(further);
        let left_alone = left_alone.take(LEFT_ALONE).map(str::to_owned).collect();
        let mut room = look::Room::new();
        let roots = [""].into_iter().chain(paths);
        let roots = roots.filter_map(|path| look::all(workspace, path, &mut room)).collect();
        Self { inode: workspace.number(), roots, left_alone, is_whole }
    }

    fn leaves_alone(&self, path: &str) -> bool {
        self.left_alone.contains(path) || ancestors(path).any(|p| self.left_alone.contains(p))
    }
}

impl Workspace {
    /// The number of the root's folder on its file system.
    fn number(&self) -> Option<u64> {
        self.root.dir_metadata().ok().map(|found| found.ino())
    }

    /// Whether a place lies below a protected name, so that it is looked at with that.
    fn is_below_one(&self, path: &str) -> bool {
        path.split('/').any(|name| self.protected.name_of(&super::names::shown(name)).is_some())
    }

    /// The folder that holds an item, and its name there.
    fn holder(&self, path: &str) -> io::Result<(cap_std::fs::Dir, OsString)> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        Ok((self.folder_at(folder)?, unescaped(name)))
    }
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
            let root = Root { path: root.path.clone(), items };
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

#[cfg(all(test, unix))]
mod tests {
    use std::fs;

    use super::*;
    use crate::workspace::protected::defaults;

    #[test]
    fn the_places_are_those_that_exist_at_the_roots() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for folder in
            [".git/hooks", "a/b/.git", "a/.vscode", "a/b/.VSCode/x", "out/c/.git", "state"]
        {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::write(root.join(".gitignore"), "out\n").unwrap();
        std::os::unix::fs::symlink("nowhere", root.join(".envrc")).unwrap();
        let workspace = Workspace::open(&root, &[root.join("state")], &defaults()).unwrap();
        let mut guard = Guard::new(Quarantine::new(root.join("state"), "state", "turn"));
        assert!(guard.places(&workspace).is_empty() && !guard.has_begun());
        assert!(guard.begin(&workspace).unwrap().is_some());
        // One snapshot a turn.
        assert!(guard.begin(&workspace).unwrap().is_none());
        let mut places = guard.places(&workspace);
        places.sort();
        let expected = [".envrc", ".git", "a/b/.VSCode", "a/b/.git"];
        assert_eq!(places, expected.map(|path| root.join(path)));
        assert!(guard.check(&workspace).is_empty());
    }

    #[test]
    fn deaddrops_own_files_under_such_a_name_change_as_they_please() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join(".idea/state")).unwrap();
        let state = root.join(".idea/state");
        let workspace = Workspace::open(&root, std::slice::from_ref(&state), &defaults()).unwrap();
        let mut guard = Guard::new(Quarantine::new(state.clone(), "state", "turn"));
        guard.begin(&workspace).unwrap();
        fs::write(state.join("journal"), "x").unwrap();
        assert!(guard.check(&workspace).is_empty());
        fs::write(root.join(".idea/x"), "x").unwrap();
        assert_eq!(guard.check(&workspace).len(), 1);
        assert!(state.join("quarantine/turn/1_x").exists() && state.join("journal").exists());
    }

    /// A guard over a repository as the journal gives it after a new start of the machine, altered.
    fn after_a_new_start(alter: impl Fn(&mut serde_json::Value)) -> (tempfile::TempDir, Guard) {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join(".git/hooks")).unwrap();
        fs::write(dir.path().join(".git/config"), "[core]\n").unwrap();
        // Too large to have a digest: its time and number are compared.
        let large = fs::File::create(dir.path().join(".git/hooks/large")).unwrap();
        large.set_len(5 << 20).unwrap();
        let workspace = Workspace::open(dir.path(), &[], &defaults()).unwrap();
        let place = || Quarantine::new(dir.path().join(".."), "..", "never-made");
        let mut guard = Guard::new(place());
        let mut kept = serde_json::to_value(guard.begin(&workspace).unwrap().unwrap()).unwrap();
        alter(&mut kept);
        let guard = Guard::resumed(place(), serde_json::from_value(kept).unwrap());
        (dir, guard)
    }

    fn each_item(kept: &mut serde_json::Value, alter: impl Fn(&mut serde_json::Value)) {
        kept["roots"][0]["items"].as_object_mut().unwrap().values_mut().for_each(alter);
    }

    #[test]
    fn a_machine_that_numbers_its_devices_anew_makes_nobodys_repository_another() {
        // As journals were before, with devices in them.
        let (dir, mut guard) = after_a_new_start(|kept| {
            kept.as_object_mut().unwrap().remove("inode");
            each_item(kept, |item| item["device"] = 99_999.into());
        });
        let workspace = Workspace::open(dir.path(), &[], &defaults()).unwrap();
        assert_eq!(guard.check(&workspace), [""; 0]);
        assert_eq!(guard.finish(&workspace, &workspace.walk().unwrap()), [""; 0]);
        assert!(dir.path().join(".git/config").exists());
    }

    #[test]
    fn where_files_are_numbered_anew_contents_are_compared() {
        let renumbered = |kept: &mut serde_json::Value| {
            kept["inode"] = 1.into();
            each_item(kept, |item| item["inode"] = 2.into());
        };
        let (dir, mut guard) = after_a_new_start(renumbered);
        let workspace = Workspace::open(dir.path(), &[], &defaults()).unwrap();
        assert_eq!(guard.check(&workspace), [""; 0]);
        // Another number where those of the root hold is another folder.
        let (dir, mut guard) = after_a_new_start(|kept| each_item(kept, |i| i["inode"] = 2.into()));
        let workspace = Workspace::open(dir.path(), &[], &defaults()).unwrap();
        let found = guard.untouched(&workspace);
        assert!(found.iter().any(|(key, change)| key == ".git" && *change == Change::Changed));
        // What a command wrote is found by its content all the same.
        let (dir, mut guard) = after_a_new_start(renumbered);
        fs::write(dir.path().join(".git/config"), "[evil]\n").unwrap();
        let workspace = Workspace::open(dir.path(), &[], &defaults()).unwrap();
        let found = guard.untouched(&workspace);
        assert_eq!(found, [(".git/config".to_owned(), Change::Changed)]);
    }

    impl Guard {
        /// What a check would find at the root, without doing anything about it.
        fn untouched(&mut self, workspace: &Workspace) -> Vec<(String, Change)> {
            let known = self.known.as_mut().unwrap();
            known.meet(workspace.number());
            let now = look::again(workspace, "", &known.roots[0]).unwrap();
            known.roots[0].differences(&now)
        }
    }

    #[test]
    fn without_a_place_for_it_nothing_is_watched() {
        let dir = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(dir.path(), &[], &defaults()).unwrap();
        let mut guard = Guard::default();
        assert!(guard.begin(&workspace).unwrap().is_none() && !guard.has_begun());
        fs::create_dir(dir.path().join(".git")).unwrap();
        assert!(guard.check(&workspace).is_empty() && dir.path().join(".git").exists());
    }
}
