//! Checks of text that is written to files, shared by all dialects: fences, line numbers and diffs in place of content,
//! and lines that stand for omitted lines. Pure.

pub(in crate::protocol) mod diff;
pub mod elision;
pub(in crate::protocol) mod fence;
pub(in crate::protocol) mod gutter;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use crate::protocol::RelPath;

/// Deserializes a regular expression from a table.
pub(in crate::protocol) fn pattern<'de, D: Deserializer<'de>>(from: D) -> Result<Regex, D::Error> {
    Regex::new(&String::deserialize(from)?).map_err(D::Error::custom)
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
