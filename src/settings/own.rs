//! Where the person's own settings are, and what deaddrop notes for them, whatever the project.

use std::fs::DirBuilder;
use std::io;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;

use crate::error::{Error, Result};

/// Where the person's own settings are.
pub(super) fn own_folder() -> Option<PathBuf> {
    Some(etcetera::choose_base_strategy().ok()?.config_dir().join("deaddrop"))
}

/// The person's own settings file, for all projects; None where nobody knows their home.
pub fn own_file() -> Option<PathBuf> {
    Some(own_folder()?.join("config.toml"))
}

/// Where deaddrop keeps what is about no project alone: `$XDG_STATE_HOME/deaddrop`, or
/// `~/.local/state/deaddrop`; None where nobody knows their home.
pub fn state_home() -> Option<PathBuf> {
    let strategy = etcetera::choose_base_strategy().ok()?;
    Some(strategy.state_dir().unwrap_or_else(|| strategy.data_dir()).join("deaddrop"))
}

/// The person's own folders, out of reach of replies as deaddrop's are.
pub(super) fn folders() -> impl Iterator<Item = PathBuf> {
    own_folder().into_iter().chain(state_home())
}

/// Makes those of them that lie in one of `writable` and are not there: where nothing is, nothing is
/// covered, and a command could make them.
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

/// Makes a folder, and those above it, for the person alone.
pub(super) fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// A name for what is noted of one project, and of no other.
pub(super) fn name_of(project: &Path) -> String {
    blake3::hash(project.as_os_str().as_encoded_bytes()).to_hex()[..32].to_owned()
}
