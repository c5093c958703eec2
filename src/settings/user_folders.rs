//! The person's own folders: for settings, and for deaddrop's state of all projects.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;

use crate::error::{Error, Result};

fn own_folder() -> Option<PathBuf> {
    Some(etcetera::choose_base_strategy().ok()?.config_dir().join("deaddrop"))
}

/// The person's own settings file, for all projects; None without a home folder.
pub fn user_settings_file() -> Option<PathBuf> {
    Some(own_folder()?.join("config.toml"))
}

/// The state folder for all projects: `$XDG_STATE_HOME/deaddrop`, or `~/.local/state/deaddrop`; None without a home
/// folder.
pub fn user_state_folder() -> Option<PathBuf> {
    let strategy = etcetera::choose_base_strategy().ok()?;
    Some(strategy.state_dir().unwrap_or_else(|| strategy.data_dir()).join("deaddrop"))
}

/// The person's own folders, which replies cannot access.
pub(super) fn folders() -> impl Iterator<Item = PathBuf> {
    own_folder().into_iter().chain(user_state_folder())
}

/// Creates the person's own folders if they are missing and inside one of `writable`. The sandbox cannot hide a missing
/// folder, so a command could create it.
///
/// # Errors
/// A folder cannot be created.
pub fn create_user_folders(writable: &[&Path]) -> Result<()> {
    for folder in folders() {
        let is_in = |place: &&Path| super::real_path(&folder).starts_with(super::real_path(place));
        if !folder.exists() && writable.iter().any(is_in) {
            create_private_folder(&folder).map_err(|e| Error::io("make the folder", &folder, e))?;
        }
    }
    Ok(())
}

/// Creates a folder and its missing parents. Only the person can access them.
pub(super) fn create_private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}
