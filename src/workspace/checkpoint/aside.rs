//! What rules leave out: nothing of it is kept. That it changed is known all the same where a look before the
//! commands of a turn and one after them tell it apart: of single files, and of folders as far as names
//! came or went directly in them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use cap_std::fs::Metadata;

use super::index::Known;
use super::look::Difference;
use super::{Change, What, change_at};
use crate::text::visible_line;
use crate::workspace::Workspace;
use crate::workspace::names::shown;
use crate::workspace::walk::detailed::{FileStat, WalkEntry};

/// What was left out of a look.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Aside {
    /// By its escaped path, that of a folder with a `/` at its end.
    all: BTreeMap<String, (FileStat, u64)>,
    /// What a command had changed of it before an operation did, so that the record tells of that alone.
    spoilt: BTreeSet<String>,
}

/// Something that rules leave out and that changed while commands of a turn ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftAside {
    /// Its path for people, of a folder with a `/` at the end.
    pub path: String,
    /// What is lost of what was there before; None where nothing is, as far as that is known: it is new, has
    /// another name or other permissions.
    pub lost: Option<Loss>,
}

/// What is lost of something that is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// It is gone.
    Deleted,
    /// It was written to, or another is in its place.
    Overwritten,
    /// Something in the folder may be: names came or went in it.
    Within,
}

impl Aside {
    pub(super) fn of(left_out: Vec<WalkEntry>) -> Self {
        let known = |WalkEntry { path, kind, size, facts }| {
            let end = if kind.is_none() { "/" } else { "" };
            (format!("{path}{end}"), (facts, size))
        };
        Self { all: left_out.into_iter().map(known).collect(), spoilt: BTreeSet::new() }
    }

    /// Where something is left out that is this: by its number, time of writing and size, since a number may be
    /// that of a new file.
    fn same<'a>(&'a self) -> impl Fn(&FileStat, u64, bool) -> Option<&'a str> {
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

    /// The new names of what was left out before, in the order of paths; of a folder with a `/` at the end.
    pub(super) fn renamed_to<'a>(
        &self,
        differences: impl Iterator<Item = &'a Difference>,
    ) -> BTreeSet<String> {
        let same = self.same();
        let is_renamed = |one: &&Difference| {
            let is_folder = matches!(one.after, Some(What::Folder { .. }));
            one.facts.is_some_and(|(facts, size)| same(&facts, size, is_folder).is_some())
        };
        let name = |one: &Difference| match one.after {
            Some(What::Folder { .. }) => format!("{}/", one.path),
            _ => one.path.clone(),
        };
        differences.filter(is_renamed).map(name).collect()
    }

    /// An operation is about to change a file for the first time.
    pub(super) fn touch(&mut self, workspace: &Workspace, path: &str) {
        let Some((was, size)) = self.all.get(path) else { return };
        let is_it = |found: &Metadata| {
            let is = FileStat::of(found);
            is.is_number_of(was) && (is.written, found.len()) == (was.written, *size)
        };
        if !workspace.stands_at(path).is_ok_and(|(_, found)| is_it(&found)) {
            self.spoilt.insert(path.to_owned());
        }
    }

    /// What is not as it was in this look; but for what is recorded, in the order of paths, and folders that
    /// hold something which is. `renamed_to` are the names that some of it has now elsewhere.
    pub(super) fn changed(
        &self,
        now: &Self,
        recorded: &[Change],
        renamed_to: &BTreeSet<String>,
        met: &BTreeMap<String, Known>,
    ) -> Vec<LeftAside> {
        let both =
            self.all.keys().chain(now.all.keys().filter(|path| !self.all.contains_key(*path)));
        let changed = both.filter(|path| {
            self.all.get(*path) != now.all.get(*path) && !self.is_recorded(now, path, recorded)
        });
        let same = self.same();
        let is_elsewhere = met.iter().map(|(path, known)| {
            (path, &known.facts, known.size, matches!(known.what, What::Folder { .. }))
        });
        let others = now.all.iter().filter(|(path, it)| self.all.get(*path) != Some(*it));
        let others = others.map(|(path, (facts, size))| (path, facts, *size, path.ends_with('/')));
        let found = is_elsewhere.chain(others);
        let renamed: HashSet<&str> = found
            .filter_map(|(path, facts, size, is_folder)| {
                same(facts, size, is_folder).filter(|was| was.trim_end_matches('/') != path)
            })
            .collect();
        let mut changed: Vec<LeftAside> = changed
            .map(|path| {
                let lost = self.lost(now, path).filter(|_| !renamed.contains(&**path));
                LeftAside { path: visible_line(&shown(path)).into_owned(), lost }
            })
            .collect();
        let renamed = renamed_to
            .iter()
            .map(|path| LeftAside { path: visible_line(&shown(path)).into_owned(), lost: None });
        changed.extend(renamed);
        changed.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        changed
    }

    /// Whether a record tells of it: of what stood there, too, since where a file took the place of a folder
    /// that was left out, only the file is recorded.
    fn is_recorded(&self, now: &Self, path: &str, recorded: &[Change]) -> bool {
        let (plain, is_folder) = match path.strip_suffix('/') {
            Some(folder) => (folder, true),
            None => (path, false),
        };
        let stands = |what: &Option<What>| {
            what.as_ref().is_some_and(|what| matches!(what, What::Folder { .. }) == is_folder)
        };
        let was = self.all.contains_key(path);
        let is = now.all.contains_key(path);
        // Of such a folder that is not kept a command's record tells only what git tracks in it.
        let tells = |change: &Change| {
            !(is_folder && change.by_command && !change.ignored)
                && (!was || stands(&change.before))
                && (!is || stands(&change.after))
        };
        let holds_some = || {
            let below = recorded.partition_point(|change| *change.path < *path);
            let mut below = recorded[below..].iter().take_while(|c| c.path.starts_with(path));
            below.any(|change| !change.by_command)
        };
        !self.spoilt.contains(path)
            && (change_at(recorded, plain).is_some_and(tells) || is_folder && is && holds_some())
    }

    /// What is lost of what was there in this look.
    fn lost(&self, now: &Self, path: &str) -> Option<Loss> {
        let (was, size) = self.all.get(path)?;
        let Some((is, new_size)) = now.all.get(path) else { return Some(Loss::Deleted) };
        let is_written = (was.written, size) != (is.written, new_size);
        match path.ends_with('/') {
            true if !is.is_number_of(was) => Some(Loss::Overwritten),
            true => (was.written != is.written).then_some(Loss::Within),
            false => (is_written || !is.is_number_of(was)).then_some(Loss::Overwritten),
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::Command;

    use super::super::tests::{Scene, scene};
    use super::super::{LeftAside, Recorder};

    #[test]
    fn what_was_left_out_and_changed_is_named() {
        let mut scene = scene();
        // Nothing of it is kept.
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
        let told = |ignored: Vec<LeftAside>| {
            let told = |LeftAside { path, lost }: &LeftAside| match lost {
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
            // What has another name is not lost, whatever took its place.
            ("mv x.log z.log; mv n.log plain; mv y.log x.log", "n.log, plain, x.log, y.log, z.log"),
            // A file in the place of a folder, and another of the same name.
            ("rm -r data; echo d > data", "data/ Deleted"),
            ("mv logs keep; mkdir logs; rm *.log", "keep/, logs/, x.log Deleted, z.log Deleted"),
        ] {
            assert_eq!(told(ignored(&mut scene, script)), expected, "{script}");
        }
    }
}
