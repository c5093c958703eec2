//! Detects changes to ignored entries by comparing the scans before and after a turn's commands. For a folder, only
//! names that were added or removed directly in it are detected.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::scan::Difference;
use super::stat_cache::StatCache;
use super::tree::{TreeChange, find_change, is_folder, shown_path};
use crate::workspace::Workspace;
use crate::workspace::walk::detailed::{FileStat, WalkEntry};

/// The ignored entries of a scan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct IgnoredSnapshot {
    /// Metadata and size by escaped path. The path of a folder ends in `/`.
    all: BTreeMap<String, (FileStat, u64)>,
    /// Entries that a command had changed before an operation did: the turn's record contains only the operation's change.
    changed_before: BTreeSet<String>,
}

/// An ignored entry that changed while a turn's commands ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoredChange {
    /// The entry's path for messages, with a trailing `/` for folders.
    pub path: String,
    /// What was lost. None if nothing is known to be lost, because the entry is new, renamed or has other permissions.
    pub lost: Option<IgnoredLoss>,
}

/// How an entry whose content is not stored was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IgnoredLoss {
    /// The entry was deleted.
    Deleted,
    /// The entry was written to or replaced.
    Overwritten,
    /// Something in the folder may be lost, because names in it were added or removed.
    Within,
}

/// A path, with a trailing `/` for folders.
fn named(path: &str, is_folder: bool) -> String {
    format!("{path}{}", if is_folder { "/" } else { "" })
}

impl IgnoredSnapshot {
    pub(super) fn of(left_out: Vec<WalkEntry>) -> Self {
        let known =
            |WalkEntry { path, kind, size, facts }| (named(&path, kind.is_none()), (facts, size));
        Self { all: left_out.into_iter().map(known).collect(), ..Self::default() }
    }

    /// Returns a function that finds the ignored path of an inode. The function also compares modification time and
    /// size, because a new file can reuse an inode number.
    fn finder<'a>(&'a self) -> impl Fn(&FileStat, u64, bool) -> Option<&'a str> {
        let mut by_number: HashMap<u64, Vec<(&str, &FileStat, u64)>> = HashMap::new();
        for (path, (facts, size)) in &self.all {
            by_number.entry(facts.inode).or_default().push((path, facts, *size));
        }
        move |facts, size, is_folder| {
            let is_it = |(path, was, then): &&(&str, &FileStat, u64)| {
                was.is_number_of(facts)
                    && was.written == facts.written
                    && path.ends_with('/') == is_folder
                    && (is_folder || *then == size)
            };
            Some(by_number.get(&facts.inode)?.iter().find(is_it)?.0)
        }
    }

    /// The new paths of renamed entries that were ignored before, sorted, with a trailing `/` for folders.
    pub(super) fn renamed_to<'a>(
        &self,
        differences: impl Iterator<Item = &'a Difference>,
    ) -> BTreeSet<String> {
        let find = self.finder();
        let renamed = |Difference { change, facts, .. }: &Difference| {
            let is_folder = is_folder(change.after.as_ref());
            let (facts, size) = facts.as_ref()?;
            find(facts, *size, is_folder).map(|_| named(&change.path, is_folder))
        };
        differences.filter_map(renamed).collect()
    }

    /// Must be called before an operation changes a file for the first time.
    pub(super) fn touch(&mut self, workspace: &Workspace, path: &str) {
        let Some((was, size)) = self.all.get(path) else { return };
        let is_it = workspace.entry(path).is_ok_and(|(_, found)| {
            let is = FileStat::of(&found);
            is.is_number_of(was) && (is.written, found.len()) == (was.written, *size)
        });
        if !is_it {
            self.changed_before.insert(path.to_owned());
        }
    }

    /// The entries that have changed since this scan, except recorded entries (`recorded` is sorted by path) and
    /// folders that contain recorded entries. `renamed_to` contains the new paths of renamed entries.
    pub(super) fn changed(
        &self,
        now: &Self,
        recorded: &[TreeChange],
        renamed_to: &BTreeSet<String>,
        cache: &StatCache,
    ) -> Vec<IgnoredChange> {
        let both: BTreeSet<&String> = self.all.keys().chain(now.all.keys()).collect();
        let is_other = |path: &&String| self.all.get(*path) != now.all.get(*path);
        let changed = both.into_iter().filter(is_other);
        let changed = changed.filter(|path| !self.is_recorded(now, path, recorded));
        let met = cache.seen.iter().filter(|(_, known)| known.is_scanned());
        let met = met.map(|(path, known)| (path, &known.facts, known.size, known.what.is_folder()));
        let others = now.all.iter().filter(|(path, it)| self.all.get(*path) != Some(*it));
        let others =
            others.map(|(path, (facts, size))| (&**path, facts, *size, path.ends_with('/')));
        let find = self.finder();
        let renamed: HashSet<&str> = met
            .chain(others)
            .filter_map(|(path, facts, size, is_folder)| {
                find(facts, size, is_folder).filter(|was| was.trim_end_matches('/') != path)
            })
            .collect();
        let changed = changed
            .map(|path| (path, self.lost(now, path).filter(|_| !renamed.contains(&**path))))
            .chain(renamed_to.iter().map(|path| (path, None)));
        let mut changed: Vec<IgnoredChange> =
            changed.map(|(path, lost)| IgnoredChange { path: shown_path(path), lost }).collect();
        changed.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        changed
    }

    /// Whether the turn's record covers the change of an entry. The recorded entry must be of the same kind: if a file
    /// replaced an ignored folder, only the file is recorded.
    fn is_recorded(&self, now: &Self, path: &str, recorded: &[TreeChange]) -> bool {
        let is_of_folder = path.ends_with('/');
        let (was, is) = (self.all.contains_key(path), now.all.contains_key(path));
        // If an ignored folder is not stored, a command's record covers only the files in it that git tracks.
        let tells = |change: &TreeChange| {
            let stands =
                [(was, &change.before), (is, &change.after)].into_iter().all(|(was, what)| {
                    !was || what.as_ref().is_some_and(|what| what.is_folder() == is_of_folder)
                });
            stands && !(is_of_folder && change.by_command && !change.ignored)
        };
        let holds_some = || {
            let below = recorded.partition_point(|change| *change.path < *path);
            let mut below = recorded[below..].iter().take_while(|c| c.path.starts_with(path));
            below.any(|change| !change.by_command)
        };
        let change = find_change(recorded, path.trim_end_matches('/'));
        !self.changed_before.contains(path)
            && (change.is_some_and(tells) || is_of_folder && is && holds_some())
    }

    /// What was lost of an entry since this scan.
    fn lost(&self, now: &Self, path: &str) -> Option<IgnoredLoss> {
        let (was, size) = self.all.get(path)?;
        let Some((is, new_size)) = now.all.get(path) else { return Some(IgnoredLoss::Deleted) };
        let is_written = (was.written, size) != (is.written, new_size);
        match path.ends_with('/') {
            true if !is.is_number_of(was) => Some(IgnoredLoss::Overwritten),
            true => (was.written != is.written).then_some(IgnoredLoss::Within),
            false => (is_written || !is.is_number_of(was)).then_some(IgnoredLoss::Overwritten),
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::Command;

    use super::super::tests::{Scene, scene};
    use super::super::{IgnoredChange, Recorder};

    #[test]
    fn what_was_left_out_and_changed_is_named() {
        let mut scene = scene();
        // No ignored file is stored.
        scene.store.ignored_limits.file = 0;
        scene.sh("printf '*.log\\ndata/\\nlogs/\\n' > .gitignore; mkdir data logs; echo x > x.log; echo y > y.log; echo d > data/d");
        let ignored = |scene: &mut Scene, script: &str| {
            let Scene { workspace, store, dir } = scene;
            let mut recorder = Recorder::new(store);
            recorder.before_command(workspace).unwrap();
            let root = dir.path().join("w");
            let done = Command::new("/bin/sh").args(["-ec", script]).current_dir(root).status();
            assert!(done.unwrap().success(), "{script}");
            recorder.finish(workspace).ignored
        };
        let told = |ignored: Vec<IgnoredChange>| {
            let told = |IgnoredChange { path, lost }: &IgnoredChange| match lost {
                None => path.clone(),
                Some(lost) => format!("{path} {lost:?}"),
            };
            ignored.iter().map(told).collect::<Vec<_>>().join(", ")
        };
        for (script, expected) in [
            ("cat x.log; echo n > n", ""),
            (
                "echo more >> x.log; rm y.log; echo n > n.log; echo e > data/e; echo s >> logs/../n",
                "data/ Within, n.log, x.log Overwritten, y.log Deleted",
            ),
            ("chmod 600 x.log; chmod 700 data; echo y > y.log", "data/, x.log, y.log"),
            // A renamed file is not lost, whatever took its place.
            ("mv x.log z.log; mv n.log plain; mv y.log x.log", "n.log, plain, x.log, y.log, z.log"),
            // A file in place of a folder, and another folder with the same name.
            ("rm -r data; echo d > data", "data/ Deleted"),
            ("mv logs keep; mkdir logs; rm *.log", "keep/, logs/, x.log Deleted, z.log Deleted"),
        ] {
            assert_eq!(told(ignored(&mut scene, script)), expected, "{script}");
        }
    }
}
