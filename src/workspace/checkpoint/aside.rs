//! What rules leave out: nothing of it is kept. That it changed is known all the same where a look before the
//! commands of a turn and one after them tell it apart: of single files, and of folders as far as names
//! came or went directly in them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use cap_std::fs::Metadata;

use super::numbers::Numbers;
use super::{Change, What, change_at};
use crate::text::visible_line;
use crate::workspace::Workspace;
use crate::workspace::names::shown;
use crate::workspace::walk::close::{Facts, Met};

/// What was left out of a look.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Aside {
    /// By its escaped path, that of a folder with a `/` at its end.
    all: BTreeMap<String, (Facts, u64)>,
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
        Self { all: left_out.into_iter().map(known).collect(), spoilt: BTreeSet::new() }
    }

    #[cfg(all(test, target_os = "linux"))]
    pub(super) fn for_tests<'a>(all: impl Iterator<Item = (&'a str, Facts, u64)>) -> Self {
        let all = all.map(|(path, facts, size)| (path.to_owned(), (facts, size)));
        Self { all: all.collect(), spoilt: BTreeSet::new() }
    }

    /// An operation is about to change a file for the first time.
    pub(super) fn touch(&mut self, workspace: &Workspace, path: &str) {
        let Some((was, size)) = self.all.get(path) else { return };
        let is_it = |found: &Metadata| {
            let is = Facts::of(found);
            is.is_number_of(was) && (is.written, found.len()) == (was.written, *size)
        };
        if !workspace.stands_at(path).is_ok_and(|(_, found)| is_it(&found)) {
            self.spoilt.insert(path.to_owned());
        }
    }

    /// What a later look did not find any more, or another file in its place.
    fn gone<'a>(&'a self, now: &'a Self) -> impl Iterator<Item = Gone<'a>> + 'a {
        let is_gone = |path: &String, was: &Facts| {
            let is_another = |facts: &Facts| !path.ends_with('/') && !facts.is_number_of(was);
            now.all.get(path).is_none_or(|(facts, _)| is_another(facts))
        };
        let gone = self.all.iter().filter(move |(path, (facts, _))| is_gone(path, facts));
        gone.map(|(path, (facts, size))| Gone {
            path,
            facts: *facts,
            size: (!path.ends_with('/')).then_some(*size),
        })
    }

    /// What is not as it was in this look; but for what is recorded, in the order of paths, and folders that
    /// hold something which is. What the later look `met` beside it tells what has another name now.
    pub(super) fn changed<'a>(
        &'a self,
        now: &'a Self,
        recorded: &[Change],
        met: impl Iterator<Item = (&'a Facts, u64)>,
    ) -> Vec<LeftAside> {
        let both =
            self.all.keys().chain(now.all.keys().filter(|path| !self.all.contains_key(*path)));
        let changed = both.filter(|path| {
            self.all.get(*path) != now.all.get(*path) && !self.is_recorded(now, path, recorded)
        });
        let renamed = self.renamed(now, met);
        let mut changed: Vec<LeftAside> = changed
            .map(|path| {
                let lost = self.lost(now, path).filter(|_| !renamed.contains(&**path));
                LeftAside { path: visible_line(&shown(path)).into_owned(), lost }
            })
            .collect();
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
        // Of such a folder a command's record tells only what git tracks in it.
        let tells = |change: &Change| {
            !(is_folder && change.by_command)
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

    /// What is gone from its place and stands in another, as it was: a number alone may be that of a new
    /// file.
    fn renamed<'a>(
        &'a self,
        now: &'a Self,
        met: impl Iterator<Item = (&'a Facts, u64)>,
    ) -> HashSet<&'a str> {
        let gone: WhatIsGone<'_> = self.gone(now).collect();
        if gone.by_number.is_empty() {
            return HashSet::new();
        }
        let is = |gone: &&Gone<'_>, facts: &Facts, size: u64| {
            gone.facts.written == facts.written && gone.size.is_none_or(|was| was == size)
        };
        let all = met.chain(now.all.values().map(|(facts, size)| (facts, *size)));
        let of = |(facts, size)| {
            gone.of_number(facts).filter(move |gone| is(gone, facts, size)).map(|gone| gone.path)
        };
        all.flat_map(of).collect()
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
                .all
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

    use super::super::tests::{Scene, scene};
    use super::super::{LeftAside, Recorder};

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
            ("mv x.log z.log; mv n.log plain; mv y.log x.log", "n.log, x.log, y.log, z.log"),
            // A file in the place of a folder, and another of the same name.
            ("rm -r data; echo d > data", "data/ Deleted"),
            (
                "mv logs keep; mkdir logs; rm *.log",
                "logs/ Overwritten, x.log Deleted, z.log Deleted",
            ),
        ] {
            assert_eq!(told(ignored(&mut scene, script)), expected, "{script}");
        }
    }
}
