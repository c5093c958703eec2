//! The outline of a file that is not shown completely: the definitions that match the task best. Pure.

use super::excerpts::value;
use super::ranking::ScannedFile;
use super::symbols::Definition;

/// For how many files with excerpts further definitions are named.
pub(super) const EXCERPTED: usize = 5;
/// How many definitions of a file are named.
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
    /// An outline of the rest of a file, of which these ranges of lines are shown.
    pub(super) fn new(scan: &'a ScannedFile, shown: &[(usize, usize)], rarity: &[f32]) -> Self {
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
        if !shown.is_empty() || definitions.first().is_some_and(|(_, value)| *value > 0.0) {
            definitions.retain(|(_, value)| *value > 0.0);
        }
        definitions.truncate(NAMED);
        definitions.sort_unstable_by_key(|(found, _)| found.line);
        let definitions = definitions.into_iter().map(|(found, _)| found).collect();
        Self { path: &scan.path, definitions }
    }
}

#[cfg(test)]
mod tests {
    use super::super::query::Query;
    use super::*;

    #[test]
    fn definitions_that_are_not_shown_are_named() {
        let query = Query::new("Let the parser stop");
        let text =
            "def parse():\n    stop()\n\ndef other():\n    x()\n\ndef parse_all():\n    parse()\n";
        let scan = ScannedFile::new("a.py", text.as_bytes(), "", &query);
        let rarity = vec![1.0; query.weights().len()];
        let named = |shown: &[(usize, usize)]| {
            let outlined = Outlined::new(&scan, shown, &rarity);
            outlined.definitions.iter().map(|found| found.line).collect::<Vec<_>>()
        };
        assert_eq!(named(&[]), [1, 7]);
        assert_eq!(named(&[(1, 2)]), [7]);
        assert_eq!(named(&[(1, 2), (7, 8)]), [0; 0]);
    }
}
