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

impl Aside {
    pub(super) fn of(left_out: Vec<Met>) -> Self {
        let known = |Met { path, kind, size, facts }| {
            let end = if kind.is_none() { "/" } else { "" };
            (format!("{path}{end}"), (facts, size))
        };
        Self(left_out.into_iter().map(known).collect())
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
