//! What sort of file a name promises, as far as reading its content depends on that.

use crate::protocol::RelPath;

/// A sort of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    /// Texts and tables, in which fences, numbers and markers may be content.
    Prose,
    /// Diffs.
    Patch,
    /// All else.
    Code,
}

const PROSE: [&str; 26] = [
    "md", "markdown", "mdown", "mkd", "mdx", "mdc", "rmd", "qmd", "rst", "txt", "text", "adoc",
    "asciidoc", "org", "textile", "wiki", "tex", "log", "out", "snap", "golden", "expected", "csv",
    "tsv", "psv", "ipynb",
];
const PATCH: [&str; 3] = ["diff", "patch", "rej"];
/// Names without an extension that texts have.
const NAMES: [&str; 12] = [
    "readme",
    "changelog",
    "changes",
    "license",
    "licence",
    "copying",
    "notice",
    "authors",
    "contributing",
    "todo",
    "notes",
    "install",
];

/// Folders of what programs read or tell: what has no extension there may hold anything.
const SAMPLES: [&str; 6] =
    ["fixtures", "testdata", "golden", "expected", "snapshots", "__snapshots__"];
/// Endings of what another file is made from: its own ending stands before.
const MADE_FROM: [&str; 9] =
    ["j2", "jinja", "jinja2", "tmpl", "tpl", "erb", "hbs", "template", "bak"];

/// Whether a file of that name is none in which marks, signs and dots may be content.
pub(crate) fn is_code(path: &RelPath) -> bool {
    sort(path) == Sort::Code
}

/// Whether a file lies in a folder of patches, so that it may be one without an ending that says so.
pub(crate) fn is_patch(path: &RelPath) -> bool {
    path.as_str().split('/').any(|part| part == "patches")
}

/// Whether a file of that name is written to be read by people, and no record of what a program tells.
pub(super) fn is_document(path: &RelPath) -> bool {
    const DOCUMENTS: [&str; 14] = [
        "md", "markdown", "mdown", "mkd", "mdx", "mdc", "rmd", "qmd", "rst", "adoc", "asciidoc",
        "org", "textile", "tex",
    ];
    let name = path.name().to_ascii_lowercase();
    name.rsplit_once('.').is_some_and(|(_, end)| DOCUMENTS.contains(&end))
}

/// What sort of file has that name.
pub(super) fn sort(path: &RelPath) -> Sort {
    let name = path.name().to_ascii_lowercase();
    let name = match name.rsplit_once('.') {
        Some((made, end)) if MADE_FROM.contains(&end) => made.to_owned(),
        _ => name,
    };
    match name.rsplit_once('.') {
        Some((_, end)) if PROSE.contains(&end) => Sort::Prose,
        Some((_, end)) if PATCH.contains(&end) => Sort::Patch,
        None if NAMES.contains(&name.as_str()) => Sort::Prose,
        None if path.as_str().split('/').any(|part| SAMPLES.contains(&part)) => Sort::Prose,
        _ => Sort::Code,
    }
}
