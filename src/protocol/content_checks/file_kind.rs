//! What kind of file a path names, as far as the checks of its content depend on that.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::protocol::RelPath;

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

#[derive(Deserialize)]
struct Tables {
    documents: Vec<String>,
    texts: Vec<String>,
    outputs: Vec<String>,
    patches: Vec<String>,
    text_names: Vec<String>,
    text_folders: Vec<String>,
    templates: Vec<String>,
}

static TABLES: LazyLock<Tables> = LazyLock::new(|| {
    toml::from_str(include_str!("data/file_kinds.toml")).expect("a constant table")
});

impl FileKind {
    /// The kind of file that a path names.
    pub(in crate::protocol) fn of(path: &RelPath) -> Self {
        let has = |names: &[String], name: &str| names.iter().any(|n| n.eq_ignore_ascii_case(name));
        let name = match path.name().rsplit_once('.') {
            Some((stem, end)) if has(&TABLES.templates, end) => stem,
            _ => path.name(),
        };
        match name.rsplit_once('.') {
            Some((_, end)) if has(&TABLES.documents, end) => Self::Document,
            Some((_, end)) if has(&TABLES.texts, end) => Self::Text,
            Some((_, end)) if has(&TABLES.outputs, end) => Self::Output,
            Some((_, end)) if has(&TABLES.patches, end) => Self::Patch,
            None if has(&TABLES.text_names, name) => Self::Text,
            None if path.components().any(|part| TABLES.text_folders.iter().any(|f| f == part)) => {
                Self::Text
            }
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
