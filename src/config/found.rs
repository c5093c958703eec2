//! What a base directory brings of deaddrop's own that deaddrop has not made there.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::Path;

use super::opening::Opening;
use super::{Config, real};

/// So many names of what a folder holds are shown.
const SHOWN: usize = 20;
/// Files that only keep a folder in a repository.
const KEEPERS: [&str; 4] = [".gitkeep", ".keep", ".gitignore", "README.md"];

/// What stands in folders of a base directory that are to be deaddrop's own and were not before: whoever
/// put it there can have written it, also where a flag says the name. Those elsewhere are openings
/// themselves.
pub(super) fn found(config: &Config) -> Option<Opening> {
    let base = &config.base;
    let foreign = config
        .roles()
        .into_iter()
        .filter(|(role, folder)| real(folder).starts_with(base) && !config.is_own(*role, folder));
    let told = foreign.filter_map(|(_, folder)| {
        let held = held(folder)?;
        Some(format!("{} ({held})", folder.strip_prefix(base).unwrap_or(folder).display()))
    });
    let names: Vec<String> = told.collect();
    (!names.is_empty()).then(|| Opening {
        name: "found here".to_owned(),
        value: names.join(", "),
        origin: None,
        does: "what stands there already is taken for your sessions, replies and approvals",
        exact: String::new(),
    })
}

/// What stands in a folder beside what keeps it in a repository, the first of it by name; None where there
/// is nothing else.
fn held(folder: &Path) -> Option<String> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return None,
        Err(e) => return Some(format!("which cannot be looked at: {e}")),
    };
    let keeps = |entry: &fs::DirEntry| {
        is_keeper(&entry.file_name()) && entry.file_type().is_ok_and(|kind| kind.is_file())
    };
    let mut names: Vec<String> = entries
        .filter_map(|entry| match entry {
            Ok(entry) if keeps(&entry) => None,
            Ok(entry) => Some(entry.file_name().to_string_lossy().into_owned()),
            Err(e) => Some(e.to_string()),
        })
        .collect();
    names.sort();
    let more = names.len().saturating_sub(SHOWN);
    names.truncate(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!names.is_empty()).then(|| names.join(", ") + &more)
}

/// Whether that is the name of a file that only keeps a folder in a repository.
pub(super) fn is_keeper(name: &OsStr) -> bool {
    KEEPERS.iter().any(|keeper| name == *keeper)
}
