//! Free space on the disks that a command writes to: it is ended before it fills them, since
//! deaddrop must still be able to write down what happened.

use std::io;
use std::path::{Path, PathBuf};

/// A watch over the file systems of some folders.
pub(super) struct Space {
    least: u64,
    folders: Vec<PathBuf>,
}

/// Where less than `least` is free to begin with, this part of it is kept: else nobody could remove
/// anything either.
const EMERGENCY: u64 = 4;

impl Space {
    /// Watches that `least` bytes stay free; 0 for no watch.
    pub(super) fn new<'a>(least: u64, folders: impl Iterator<Item = &'a Path>) -> Self {
        let folders = folders.filter(|_| least > 0).map(Path::to_owned).collect();
        let mut space = Self { least, folders };
        if space.is_short().is_some() {
            space.least /= EMERGENCY;
        }
        space
    }

    /// How many bytes are free, if those are too few.
    pub(super) fn is_short(&self) -> Option<u64> {
        self.folders.iter().filter_map(|folder| free(folder).ok()).find(|free| *free < self.least)
    }

    /// Why a command is not begun.
    pub(super) fn refusal(&self, free: u64) -> String {
        format!(
            "only {free} bytes are free on the disk, and {} are kept free (sandbox.min_free_bytes); the user is to make room",
            self.least
        )
    }

    /// Why a command was ended.
    pub(super) fn ended(&self, free: u64) -> String {
        format!(
            "it filled the disk: {free} bytes were left of the {} that are kept free (sandbox.min_free_bytes)",
            self.least
        )
    }
}

#[cfg(unix)]
fn free(folder: &Path) -> io::Result<u64> {
    let found = rustix::fs::statvfs(folder)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(not(unix))]
fn free(_: &Path) -> io::Result<u64> {
    Err(io::ErrorKind::Unsupported.into())
}
