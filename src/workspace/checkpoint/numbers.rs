//! What a file's number tells: whether it is one that was seen, and whether that is as it was.

use std::collections::HashSet;

use super::index::Known;
use super::{What, Why};
use crate::workspace::Workspace;
use crate::workspace::walk::EntryKind;
use crate::workspace::walk::close::{Facts, Met};

/// The numbers of files, by their file systems as far as those are known.
#[derive(Debug, Default)]
pub(super) struct Numbers(HashSet<(u64, u64)>);

impl<'a> FromIterator<&'a Facts> for Numbers {
    fn from_iter<I: IntoIterator<Item = &'a Facts>>(all: I) -> Self {
        let mut numbers = Self::default();
        numbers.add(all.into_iter());
        numbers
    }
}

impl Numbers {
    /// Adds those of what stands in these places.
    pub(super) fn add_of<'p>(
        &mut self,
        workspace: &Workspace,
        places: impl Iterator<Item = &'p String>,
    ) {
        let standing = places.filter_map(|place| workspace.stands_at(place).ok());
        standing.for_each(|(_, found)| self.add([&Facts::of(&found)].into_iter()));
    }

    /// Adds those of these files.
    pub(super) fn add<'f>(&mut self, all: impl Iterator<Item = &'f Facts>) {
        self.0.extend(all.map(|facts| (facts.device, facts.inode)));
    }

    /// Whether one of these files may be this.
    pub(super) fn has(&self, facts: &Facts) -> bool {
        [facts.device, 0].iter().any(|device| self.0.contains(&(*device, facts.inode)))
    }
}

impl Known {
    /// Whether it is known to be as it was.
    pub(super) fn holds_for(&self, met: &Met) -> bool {
        let same_sort = match (&self.what, met.kind) {
            (What::Folder { .. }, None)
            | (What::Link { .. }, Some(EntryKind::Link))
            | (What::File { .. }, Some(EntryKind::File)) => true,
            (What::Unkept { why, .. }, Some(_)) => *why != Why::Unreadable,
            _ => false,
        };
        let same = self.facts == met.facts && self.facts.is_number_of(&met.facts);
        self.sure && same_sort && same && self.size == met.size
    }
}

/// What tells whether something is the same that cannot be compared otherwise.
pub(super) fn identity(facts: &Facts, size: u64) -> String {
    let Facts { inode, mode, written, changed, .. } = facts;
    format!("{inode} {mode:o} {size} {written} {changed}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_counts_on_its_own_file_system() {
        let at = |device, inode| Facts { device, inode, ..Facts::default() };
        let numbers: Numbers = [at(1, 7), at(0, 8)].iter().collect();
        assert!(numbers.has(&at(1, 7)) && !numbers.has(&at(2, 7)));
        // What an earlier start noted may be any.
        assert!(numbers.has(&at(2, 8)) && !numbers.has(&at(2, 9)));
        let (what, path, size) = (What::Link { target: "x".into() }, "l".to_owned(), 1);
        let known = |device| Known { what: what.clone(), facts: at(device, 7), size, sure: true };
        let met = |device| {
            let (path, kind, facts) = (path.clone(), Some(EntryKind::Link), at(device, 7));
            Met { path, kind, size, facts }
        };
        assert!(known(1).holds_for(&met(1)) && known(0).holds_for(&met(1)));
        assert!(!known(1).holds_for(&met(2)));
    }
}
