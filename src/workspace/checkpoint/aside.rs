//! What rules leave out: nothing of it is kept. That it changed is known all the same where a look before the
//! commands of a turn and one after them tell it apart: of single files, and of folders as far as names
//! came or went directly in them.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::numbers::Numbers;
use super::{Change, change_at};
use crate::text::visible_line;
use crate::workspace::names::shown;
use crate::workspace::walk::close::{Facts, Met};

/// What was left out of a look, by its escaped path, that of a folder with a `/` at its end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Aside(BTreeMap<String, (Facts, u64)>);

/// Something that was left out of a look and is gone.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gone<'a> {
    /// Where it was, escaped; of a folder with a `/` at the end.
    pub(super) path: &'a str,
    pub(super) facts: Facts,
    /// Its size in bytes; None where it was a folder.
    pub(super) size: Option<u64>,
}

impl Aside {
    pub(super) fn of(left_out: Vec<Met>) -> Self {
        let known = |Met { path, kind, size, facts }| {
            let end = if kind.is_none() { "/" } else { "" };
            (format!("{path}{end}"), (facts, size))
        };
        Self(left_out.into_iter().map(known).collect())
    }

    #[cfg(all(test, target_os = "linux"))]
    pub(super) fn for_tests<'a>(all: impl Iterator<Item = (&'a str, Facts, u64)>) -> Self {
        Self(all.map(|(path, facts, size)| (path.to_owned(), (facts, size))).collect())
    }

    /// What a later look did not find any more, or another file in its place.
    fn gone<'a>(&'a self, now: &'a Self) -> impl Iterator<Item = Gone<'a>> + 'a {
        let is_gone = |path: &String, was: &Facts| {
            let is_another = |facts: &Facts| !path.ends_with('/') && !facts.is_number_of(was);
            now.0.get(path).is_none_or(|(facts, _)| is_another(facts))
        };
        let gone = self.0.iter().filter(move |(path, (facts, _))| is_gone(path, facts));
        gone.map(|(path, (facts, size))| Gone {
            path,
            facts: *facts,
            size: (!path.ends_with('/')).then_some(*size),
        })
    }

    /// What is not as it was in this look, by its path for people; but for what is recorded, in the order of
    /// paths, and folders that hold something which is.
    pub(super) fn changed(&self, now: &Self, recorded: &[Change]) -> Vec<String> {
        let both = self.0.keys().chain(now.0.keys().filter(|path| !self.0.contains_key(*path)));
        let is_there = |path: &str| change_at(recorded, path).is_some();
        let holds_some = |folder: &str| {
            let below = recorded.partition_point(|change| *change.path < *folder);
            recorded.get(below).is_some_and(|change| change.path.starts_with(folder))
        };
        let is_recorded = |path: &str| match path.strip_suffix('/') {
            None => is_there(path),
            Some(folder) => is_there(folder) || holds_some(path),
        };
        let mut changed: Vec<String> = both
            .filter(|path| self.0.get(*path) != now.0.get(*path) && !is_recorded(path))
            .map(|path| visible_line(&shown(path)).into_owned())
            .collect();
        changed.sort_unstable();
        changed
    }
}

/// What became of what was left out before the commands of a turn, as far as both looks are known.
#[derive(Debug, Default)]
pub(super) struct LeftOut<'a> {
    still: Option<Numbers>,
    gone: Option<WhatIsGone<'a>>,
}

/// What is gone of it, found by what tells one file from others.
#[derive(Debug, Default)]
pub(super) struct WhatIsGone<'a> {
    by_number: HashMap<u64, Vec<Gone<'a>>>,
    /// Sizes of single files with the times at which they were written, and sizes alone.
    written: HashSet<(u64, i128)>,
    sizes: HashSet<u64>,
    /// The paths of folders, each with a `/` at its end.
    pub(super) folders: Vec<&'a str>,
}

impl<'a> LeftOut<'a> {
    pub(super) fn between([before, after]: [Option<&'a Aside>; 2]) -> Self {
        let files = |aside: &Aside| {
            aside
                .0
                .iter()
                .filter(|(path, _)| !path.ends_with('/'))
                .map(|(_, (facts, _))| facts)
                .collect()
        };
        let gone = before.zip(after).map(|(before, after)| before.gone(after).collect());
        Self { still: after.map(files), gone }
    }

    /// Whether a single file is still left out that is this, by its number.
    pub(super) fn still_has(&self, facts: &Facts) -> bool {
        self.still.as_ref().is_some_and(|still| still.has(facts))
    }

    /// What is gone of it; None where that is not known.
    pub(super) fn gone(&self) -> Option<&WhatIsGone<'a>> {
        self.gone.as_ref()
    }
}

impl<'a> FromIterator<Gone<'a>> for WhatIsGone<'a> {
    fn from_iter<I: IntoIterator<Item = Gone<'a>>>(all: I) -> Self {
        let mut found = Self::default();
        for gone in all {
            match gone.size {
                None => found.folders.push(gone.path),
                Some(size) => {
                    found.sizes.insert(size);
                    found.written.insert((size, gone.facts.written));
                }
            }
            found.by_number.entry(gone.facts.inode).or_default().push(gone);
        }
        found
    }
}

impl<'a> WhatIsGone<'a> {
    /// What may be this, by its number.
    pub(super) fn of_number(&self, facts: &Facts) -> impl Iterator<Item = &Gone<'a>> {
        let all = self.by_number.get(&facts.inode).into_iter().flatten();
        all.filter(|gone| gone.facts.is_number_of(facts))
    }

    /// Whether a single file of this size, which is not empty, was last written then.
    pub(super) fn was_written(&self, size: u64, written: i128) -> bool {
        size > 0 && self.written.contains(&(size, written))
    }

    /// Whether a single file had this size, and was not empty.
    pub(super) fn had_size(&self, size: u64) -> bool {
        size > 0 && self.sizes.contains(&size)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::Command;

    use super::super::Recorder;
    use super::super::tests::{Scene, scene};

    #[test]
    fn what_was_left_out_and_changed_is_named() {
        let mut scene = scene();
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
        assert_eq!(ignored(&mut scene, "cat x.log; echo n > n"), Vec::<String>::new());
        let all =
            "echo more >> x.log; rm y.log; echo n > n.log; echo e > data/e; echo s >> logs/../n";
        assert_eq!(ignored(&mut scene, all), ["data/", "n.log", "x.log", "y.log"]);
    }
}
