//! Checks of what is written to files, shared by all dialects: fences, line numbers and diffs where
//! content belongs, and lines that stand for others. Pure.

pub(in crate::protocol) mod diff;
pub mod elision;
pub(in crate::protocol) mod fence;
pub(in crate::protocol) mod gutter;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;
use serde::de::{Deserialize, Deserializer, Error};

use crate::protocol::RelPath;

/// Reads a pattern of a table.
pub(in crate::protocol) fn pattern<'de, D: Deserializer<'de>>(from: D) -> Result<Regex, D::Error> {
    Regex::new(&String::deserialize(from)?).map_err(D::Error::custom)
}

/// A kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// Lists of extensions and names; see `data/file_kinds.toml`.
static LISTS: LazyLock<BTreeMap<String, Vec<String>>> = LazyLock::new(|| {
    toml::from_str(include_str!("data/file_kinds.toml")).expect("a constant table")
});

impl FileKind {
    /// The kind of file that a path names.
    pub(in crate::protocol) fn of(path: &RelPath) -> Self {
        let has = |list: &str, name: &str| LISTS[list].iter().any(|n| n.eq_ignore_ascii_case(name));
        let name = match path.name().rsplit_once('.') {
            Some((stem, end)) if has("templates", end) => stem,
            _ => path.name(),
        };
        let is_text_folder = |part: &str| LISTS["text_folders"].iter().any(|name| name == part);
        match name.rsplit_once('.') {
            Some((_, end)) if has("documents", end) => Self::Document,
            Some((_, end)) if has("texts", end) => Self::Text,
            Some((_, end)) if has("outputs", end) => Self::Output,
            Some((_, end)) if has("patches", end) => Self::Patch,
            None if has("text_names", name) => Self::Text,
            None if path.components().any(is_text_folder) => Self::Text,
            _ => Self::Code,
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
