//! The project of a command: the one that `-C` names, otherwise the nearest one upwards, otherwise the
//! current folder.

use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::settings;

/// How the project was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// The person named it, with `-C`, or it is the current folder.
    Here,
    /// It is further up.
    Search,
    /// There is none; the current folder would become one.
    Nothing,
}

/// The current folder and the project.
pub(super) struct Location {
    pub(super) project: PathBuf,
    /// The current folder, if it is known.
    pub(super) here: Option<PathBuf>,
    pub(super) by: By,
}

impl Location {
    /// `named` is what `-C` says.
    ///
    /// # Errors
    /// The project may be somebody else's: see [`settings::find`].
    pub(super) fn find(named: Option<PathBuf>) -> Result<Self> {
        let here = std::env::current_dir();
        if let Some(project) = named {
            return Ok(Self { project, here: here.ok(), by: By::Here });
        }
        let here = here.map_err(|e| Error::io("tell where you are, in", ".".as_ref(), e))?;
        let found = settings::find(&here)?;
        let by = match &found {
            Some(project) if here.canonicalize().is_ok_and(|here| here == *project) => By::Here,
            Some(_) => By::Search,
            None => By::Nothing,
        };
        Ok(Self { project: found.unwrap_or_else(|| here.clone()), here: Some(here), by })
    }
}
