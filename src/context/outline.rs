//! The outline of a file that is not shown whole: its definitions that have most to do with the task. Pure.

use super::excerpts::value;
use super::ranking::Scan;
use super::symbols::Definition;

/// Of so many files with excerpts further definitions are named.
pub(super) const EXCERPTED: usize = 5;
/// So many definitions of a file are named.
const NAMED: usize = 4;

/// A file, and some of its definitions in the order of their lines.
#[derive(Debug, PartialEq)]
pub struct Outlined<'a> {
    /// Its path from the root.
    pub path: &'a str,
    /// The definitions.
    pub definitions: Vec<&'a Definition>,
}

impl<'a> Outlined<'a> {
    /// An outline of what these ranges of lines do not show of a file.
    pub(super) fn new(scan: &'a Scan, shown: &[(usize, usize)], rarity: &[f32]) -> Self {
        let is_shown = |found: &&Definition| {
            shown.iter().any(|(first, last)| (first..=last).contains(&&found.line))
        };
        let value = |found: &Definition| {
            let lines = (found.end + 1 - found.start) as f32;
            value(&scan.hits, found.start, found.end, rarity) / lines.sqrt()
        };
        let mut definitions: Vec<(&Definition, f32)> = scan
            .definitions
            .iter()
            .filter(|found| !is_shown(found))
            .map(|found| (found, value(found)))
            .collect();
        definitions.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.depth.cmp(&b.0.depth)));
        if definitions.first().is_some_and(|(_, value)| *value > 0.0) {
            definitions.retain(|(_, value)| *value > 0.0);
        }
        definitions.truncate(NAMED);
        definitions.sort_unstable_by_key(|(found, _)| found.line);
        let definitions = definitions.into_iter().map(|(found, _)| found).collect();
        Self { path: &scan.path, definitions }
    }
}
