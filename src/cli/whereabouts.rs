//! Which base directory a command is about: the one that is named, else the nearest one upwards, else
//! the folder where the person is.

use std::path::PathBuf;

use crate::config;
use crate::error::{Error, Result};

/// How a base directory was come by.
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

/// Where the person is, and which base directory they mean.
pub(super) struct Whereabouts {
    pub(super) base: PathBuf,
    /// Where the person is, if that can be told.
    pub(super) here: Option<PathBuf>,
    pub(super) by: By,
}

impl Whereabouts {
    /// `named` is what `-C` says.
    ///
    /// # Errors
    /// What was found may be somebody else's: see [`config::find`].
    pub(super) fn find(named: Option<PathBuf>) -> Result<Self> {
        let here = std::env::current_dir();
        if let Some(base) = named {
            return Ok(Self { base, here: here.ok(), by: By::Name });
        }
        let here = here.map_err(|e| Error::io("tell where you are, in", ".".as_ref(), e))?;
        let found = config::find(&here)?;
        let by = match &found {
            Some(base) if here.canonicalize().is_ok_and(|here| here == *base) => By::Standing,
            Some(_) => By::Search,
            None => By::Nothing,
        };
        Ok(Self { base: found.unwrap_or_else(|| here.clone()), here: Some(here), by })
    }
}
