//! What a base directory brings of deaddrop's own that deaddrop has not made there.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::Path;

use super::opening::Opening;
use super::{Config, real};

/// Files that only keep a folder in a repository.
const KEEPERS: [&str; 4] = [".gitkeep", ".keep", ".gitignore", "README.md"];

/// What stands in folders of a base directory that are to be deaddrop's own and were not before: whoever
/// put it there can have written it, also where a flag says the name. Those elsewhere are openings
/// themselves.
pub(super) fn found(config: &Config) -> Option<Opening> {
    let Config { base, inbox, outbox, sessions, approvals, .. } = config;
    let holds = [sessions, inbox, approvals, outbox].into_iter().filter(|folder| {
        real(folder).starts_with(base) && !config.is_own(folder) && holds_more_than_keepers(folder)
    });
    let names: Vec<String> = holds
        .map(|folder| folder.strip_prefix(base).unwrap_or(folder).display().to_string())
        .collect();
    (!names.is_empty()).then(|| Opening {
        name: "found here".to_owned(),
        value: names.join(", "),
        origin: None,
        does: "what stands there already is taken for your sessions, replies and approvals",
        exact: String::new(),
    })
}

/// Whether more stands in a folder than what keeps it in a repository. What cannot be looked at does.
fn holds_more_than_keepers(folder: &Path) -> bool {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) => return e.kind() != io::ErrorKind::NotFound,
    };
    let keeps = |entry: fs::DirEntry| {
        is_keeper(&entry.file_name()) && entry.file_type().is_ok_and(|kind| kind.is_file())
    };
    entries.into_iter().any(|entry| !entry.is_ok_and(keeps))
}

/// Whether that is the name of a file that only keeps a folder in a repository.
pub(super) fn is_keeper(name: &OsStr) -> bool {
    KEEPERS.iter().any(|keeper| name == *keeper)
}
