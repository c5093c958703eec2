//! What rules leave out: nothing of it is kept. That it changed is known all the same where a look before the
//! commands of a turn and one after them tell it apart: of single files, and of folders as far as names
//! came or went directly in them.

use std::collections::BTreeMap;

use super::Change;
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
    pub(super) fn gone<'a>(&'a self, now: &'a Self) -> impl Iterator<Item = Gone<'a>> + Clone + 'a {
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

    /// Whether a single file was left out that is this, by its number.
    pub(super) fn has(&self, facts: &Facts) -> bool {
        self.0.iter().any(|(path, (of, _))| of.is_number_of(facts) && !path.ends_with('/'))
    }

    /// What is not as it was in this look, by its path for people; but for what is recorded, and folders
    /// that hold something which is.
    pub(super) fn changed(&self, now: &Self, recorded: &[Change]) -> Vec<String> {
        let both = self.0.keys().chain(now.0.keys().filter(|path| !self.0.contains_key(*path)));
        let is_recorded = |path: &str| match path.strip_suffix('/') {
            None => recorded.iter().any(|change| change.path == path),
            Some(folder) => {
                recorded.iter().any(|change| change.path == folder || change.path.starts_with(path))
            }
        };
        let mut changed: Vec<String> = both
            .filter(|path| self.0.get(*path) != now.0.get(*path) && !is_recorded(path))
            .map(|path| visible_line(&shown(path)).into_owned())
            .collect();
        changed.sort_unstable();
        changed
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
