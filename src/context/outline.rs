//! The outline of a file that is not shown completely: the definitions that best match the task. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::value::RawValue;

use super::excerpts::value;
use super::ranking::ScannedFile;
use super::symbols::Definition;
use crate::text::{count, first_of};

/// The most files with excerpts for which further definitions are listed.
pub(super) const EXCERPTED: usize = 5;
/// The most definitions that are listed per file.
const NAMED: usize = 4;
/// The most keys of a JSON file that are listed, and the length of the longest one in bytes.
const KEYS: usize = 30;
const KEY: usize = 60;

/// A file, with lines that describe its contents: the keys of a JSON file that the task names, and some definitions
/// with their lines, in order.
#[derive(Debug, PartialEq)]
pub struct Outlined<'a> {
    /// The path from the root.
    pub path: &'a str,
    /// Descriptions of the contents, one per line.
    pub entries: Vec<String>,
}

impl<'a> Outlined<'a> {
    /// An outline of the rest of a file, given the ranges of lines that are shown.
    pub(super) fn new(scan: &'a ScannedFile, shown: &[(usize, usize)], rarity: &[f32]) -> Self {
        let is_shown = |found: &&Definition| {
            shown.iter().any(|(first, last)| (first..=last).contains(&&found.line))
        };
        let value = |found: &Definition| {
            let lines = (found.end + 1 - found.start) as f32;
            value(&scan.hits, found.start, found.end, rarity) / lines.sqrt()
        };
        let further = scan.definitions.iter().filter(|found| !is_shown(found));
        let mut definitions: Vec<(&Definition, f32)> =
            further.map(|found| (found, value(found))).collect();
        definitions.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.depth.cmp(&b.0.depth)));
        if !shown.is_empty() || definitions.first().is_some_and(|(_, value)| *value > 0.0) {
            definitions.retain(|(_, value)| *value > 0.0);
        }
        definitions.truncate(NAMED);
        definitions.sort_unstable_by_key(|(found, _)| found.line);
        let entry = |(found, _): (&Definition, _)| format!("{} {}", found.line, found.name);
        let entries = scan.shape.iter().cloned().chain(definitions.into_iter().map(entry));
        Self { path: &scan.path, entries: entries.collect() }
    }
}

/// Describes the keys of a JSON object, or of the objects in an array.
pub(super) fn shape(json: &[u8]) -> Option<String> {
    type Object<'a> = BTreeMap<String, &'a RawValue>;
    let object = serde_json::from_slice(json).map(|object| vec![object]);
    let objects: Vec<Object<'_>> = object.or_else(|_| serde_json::from_slice(json)).ok()?;
    let number = count(objects.len(), "object");
    let keys: BTreeSet<String> = objects.into_iter().flat_map(Object::into_keys).collect();
    let named = keys.iter().filter(|key| key.len() <= KEY);
    Some(format!("{number} with the keys {}", first_of(named, KEYS, keys.len())))
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
            outlined.entries
        };
        assert_eq!(named(&[]), ["1 parse", "7 parse_all"]);
        assert_eq!(named(&[(1, 2)]), ["7 parse_all"]);
        assert_eq!(named(&[(1, 2), (7, 8)]), [""; 0]);
    }
}
