//! Checks of text that is written to files, shared by all dialects: fences, line numbers and diffs in place of content,
//! and lines that stand for omitted lines. Pure.

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

/// A regular expression from a table. It is compiled when it is first used, since most are not used.
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
    /// A file written for people. Fences, line numbers and markers may be its content.
    Document,
    /// Any other text or table. Fences, line numbers and markers may be its content, too.
    Text,
    /// The output of a program, which may also contain dots.
    Output,
    /// A diff.
    Patch,
    /// Everything else.
    Code,
}

/// The structure of `data/file_kinds.toml`: extensions and file names.
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
    /// The kind of the file at a path, based on its name.
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

/// Whether the file at a path is code, in which fences, signs and dots are hardly ever intended.
pub(crate) fn is_code(path: &RelPath) -> bool {
    FileKind::of(path) == FileKind::Code
}

/// Whether a file may contain a diff regardless of its extension, because it is in a folder named `patches`.
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
                "text_after_tag",
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
