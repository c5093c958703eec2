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
pub fn own_file() -> Option<PathBuf> {
    Some(own_folder()?.join("config.toml"))
}

/// The folder of the state for all projects: `$XDG_STATE_HOME/deaddrop`, or `~/.local/state/deaddrop`; None
/// if the person's home is not known.
pub fn state_home() -> Option<PathBuf> {
    let strategy = etcetera::choose_base_strategy().ok()?;
    Some(strategy.state_dir().unwrap_or_else(|| strategy.data_dir()).join("deaddrop"))
}

/// The person's own folders, which replies cannot access.
pub(super) fn folders() -> impl Iterator<Item = PathBuf> {
    own_folder().into_iter().chain(state_home())
}

/// Makes those of them that are in one of `writable` and missing: what does not exist cannot be covered, and a
/// command could make it.
///
/// # Errors
/// One cannot be made.
pub fn make_folders(writable: &[&Path]) -> Result<()> {
    for folder in folders() {
        let lies_in = |place: &&Path| super::real(&folder).starts_with(super::real(place));
        if !folder.exists() && writable.iter().any(lies_in) {
            make_folder(&folder).map_err(|e| Error::io("make the folder", &folder, e))?;
        }
    }
    Ok(())
}

/// Makes a folder, and those above it, readable only by the person.
pub(super) fn make_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}
