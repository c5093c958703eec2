//! Checks of what is written to files, shared by all dialects: fences, line numbers and diffs where
//! content belongs, and lines that stand for others. Pure.

pub(in crate::protocol) mod diff;
pub mod elision;
pub(in crate::protocol) mod fence;
pub(in crate::protocol) mod gutter;

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{LazyLock, OnceLock};

use regex::Regex;
use serde::{Deserialize, Deserializer};

use crate::protocol::RelPath;

/// A regex, read from a table. It is compiled when it is needed, since most are not.
pub(in crate::protocol) struct TablePattern(String, OnceLock<Regex>);

impl Deref for TablePattern {
    type Target = Regex;

    fn deref(&self) -> &Regex {
        self.1.get_or_init(|| Regex::new(&self.0).expect("a constant pattern"))
    }
}

impl<'de> Deserialize<'de> for TablePattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(String::deserialize(deserializer)?, OnceLock::new()))
    }
}

/// A kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::protocol) enum FileKind {
    /// Written for people: fences, line numbers and markers may be content.
    Document,
    /// Any other text or table, where the same holds.
    Text,
    /// Output of a program, which may also contain dots.
    Output,
    /// A diff.
    Patch,
    /// Everything else.
    Code,
}

/// Extensions and names; see `data/file_kinds.toml`.
#[derive(Deserialize)]
struct Table {
    text_names: Vec<String>,
    text_folders: Vec<String>,
    templates: Vec<String>,
    extensions: BTreeMap<FileKind, Vec<String>>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    toml::from_str(include_str!("data/file_kinds.toml")).expect("a constant table")
});

impl FileKind {
    /// The kind of file that a path names.
    pub(in crate::protocol) fn of(path: &RelPath) -> Self {
        let has = |list: &[String], name: &str| list.iter().any(|known| known == name);
        let name = path.name().to_ascii_lowercase();
        let name = match name.rsplit_once('.') {
            Some((stem, end)) if has(&TABLE.templates, end) => stem,
            _ => &name,
        };
        match name.rsplit_once('.') {
            Some((_, end)) => {
                let kind = TABLE.extensions.iter().find(|(_, ends)| has(ends, end));
                kind.map_or(Self::Code, |(kind, _)| *kind)
            }
            None if has(&TABLE.text_names, name) => Self::Text,
            None if path.components().any(|part| has(&TABLE.text_folders, part)) => Self::Text,
            None => Self::Code,
        }
    }
}

/// Whether a path names code, in which fences, signs and dots are hardly ever meant.
pub(crate) fn is_code(path: &RelPath) -> bool {
    FileKind::of(path) == FileKind::Code
}

/// Whether a file may contain a diff whatever its extension says: it is in a folder of patches.
pub(crate) fn may_be_patch(path: &RelPath) -> bool {
    path.components().any(|part| part == "patches")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// They are compiled when they are needed, so a fault in one might be met by a person.
    #[test]
    fn every_pattern_of_a_table_can_be_compiled() {
        fn patterns_in(value: &toml::Value, is_pattern: bool, found: &mut Vec<String>) {
            const KEYS: [&str; 13] = [
                "anchors",
                "attribute",
                "behind_tag",
                "between",
                "blanks",
                "blanks_and_commas",
                "citation",
                "comment",
                "end",
                "may_be_placeholder",
                "pattern",
                "placeholder_name",
                "scene",
            ];
            match value {
                toml::Value::String(text) if is_pattern => found.push(text.clone()),
                toml::Value::Array(all) => {
                    all.iter().for_each(|value| patterns_in(value, false, found));
                }
                toml::Value::Table(table) => {
                    for (key, value) in table {
                        patterns_in(value, KEYS.contains(&key.as_str()), found);
                    }
                }
                _ => {}
            }
        }
        for (table, number) in [
            (include_str!("data/elision.toml"), 13),
            (include_str!("../tags/data/attributes.toml"), 9),
            (include_str!("../tags/data/page.toml"), 2),
            (include_str!("../tags/data/paths.toml"), 5),
        ] {
            let mut found = Vec::new();
            patterns_in(&toml::from_str(table).unwrap(), false, &mut found);
            assert_eq!(found.len(), number, "{found:#?}");
            found.iter().for_each(|text| _ = Regex::new(text).unwrap());
        }
    }
}
