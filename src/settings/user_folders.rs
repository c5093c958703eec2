//! The person's own folders: their settings, and the state that deaddrop keeps for all projects.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;

use crate::error::{Error, Result};

fn own_folder() -> Option<PathBuf> {
    Some(etcetera::choose_base_strategy().ok()?.config_dir().join("deaddrop"))
}

/// The person's own settings file, for all projects; None if their home is not known.
pub fn user_settings_file() -> Option<PathBuf> {
    Some(own_folder()?.join("config.toml"))
}

/// The folder of the state for all projects: `$XDG_STATE_HOME/deaddrop`, or `~/.local/state/deaddrop`; None
/// if the person's home is not known.
pub fn user_state_folder() -> Option<PathBuf> {
    let strategy = etcetera::choose_base_strategy().ok()?;
    Some(strategy.state_dir().unwrap_or_else(|| strategy.data_dir()).join("deaddrop"))
}

/// The person's own folders, which replies cannot access.
pub(super) fn folders() -> impl Iterator<Item = PathBuf> {
    own_folder().into_iter().chain(user_state_folder())
}

/// Makes those of them that are in one of `writable` and missing: what does not exist cannot be covered, and a
/// command could make it.
///
/// # Errors
/// One cannot be made.
pub fn create_user_folders(writable: &[&Path]) -> Result<()> {
    for folder in folders() {
        let lies_in =
            |place: &&Path| super::real_path(&folder).starts_with(super::real_path(place));
        if !folder.exists() && writable.iter().any(lies_in) {
            create_private_folder(&folder).map_err(|e| Error::io("make the folder", &folder, e))?;
        }
    }
    Ok(())
}

/// Makes a folder, and those above it, readable only by the person.
pub(super) fn create_private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}
