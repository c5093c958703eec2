//! Which project a command is about: the one that is named, else the nearest one upwards, else
//! the folder where the person is.

use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::settings;

/// How a project was come by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// The person named it, with `-C`.
    Name,
    /// It is the folder where the person is.
    Standing,
    /// It lies further up.
    Search,
    /// There is none; the folder where the person is would be one.
    Nothing,
}

/// Where the person is, and which project they mean.
pub(super) struct Location {
    pub(super) project: PathBuf,
    /// Where the person is, if that can be told.
    pub(super) here: Option<PathBuf>,
    pub(super) by: By,
}

impl Location {
    /// `named` is what `-C` says.
    ///
    /// # Errors
    /// What was found may be somebody else's: see [`settings::find`].
    pub(super) fn find(named: Option<PathBuf>) -> Result<Self> {
        let here = std::env::current_dir();
        if let Some(project) = named {
            return Ok(Self { project, here: here.ok(), by: By::Name });
        }
        let here = here.map_err(|e| Error::io("tell where you are, in", ".".as_ref(), e))?;
        let found = settings::find(&here)?;
        let by = match &found {
            Some(project) if here.canonicalize().is_ok_and(|here| here == *project) => By::Standing,
            Some(_) => By::Search,
            None => By::Nothing,
        };
        Ok(Self { project: found.unwrap_or_else(|| here.clone()), here: Some(here), by })
    }
}
