//! A base directory looked at although it may not be used: what is amiss with it is told by who asked.

use std::path::{Path, PathBuf};

use super::finding::nearest;
use super::{Config, Consent, Layers, Raw};
use crate::error::{Error, Result};

/// The nearest folder from `here` upwards that looks like a base directory, whoever it belongs to.
pub fn marked(here: &Path) -> Option<PathBuf> {
    nearest(&here.canonicalize().ok()?).map(Path::to_owned)
}

impl Config {
    /// The settings that would be in force in the base directory `base` without its file.
    ///
    /// # Errors
    /// They are wrong, or there is no such folder.
    pub fn look_without_file(base: &Path, flags: Raw) -> Result<(Self, Consent)> {
        let base =
            base.canonicalize().map_err(|e| Error::io("open the base directory", base, e))?;
        Self::looked(base, &Layers::around_the_file(flags)?)
    }
}
