//! Folders that hold far more than a project, and that nobody means as a workspace.

use std::path::{Path, PathBuf};

/// What a folder is, by its canonical path, that replies should not have as a whole; None of others.
pub(super) fn told(folder: &Path) -> Option<&'static str> {
    let home = std::env::var_os("HOME").and_then(|home| PathBuf::from(home).canonicalize().ok());
    if folder.parent().is_none() {
        return Some("this is the whole machine, and replies could change all of it");
    }
    let is_home = home.is_some_and(|home| home == folder);
    is_home
        .then_some("this is your home folder, and replies could read and change everything in it")
}
