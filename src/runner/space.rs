//! Free space on the disks that a command writes to: it is ended before it fills them, with bytes or
//! with files, since deaddrop must still be able to write down what happened.

use std::io;
use std::path::{Path, PathBuf};

use crate::text::byte_count;

/// A watch over the file systems of some folders.
pub(super) struct Space {
    least: u64,
    folders: Vec<Watched>,
}

struct Watched {
    folder: PathBuf,
    /// How many more files are to be possible; 0 where that is not watched.
    files: u64,
}

/// What there is too little of, and how much of it was to be left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shortage {
    Bytes { left: u64, least: u64 },
    Files { left: u64, least: u64 },
}

/// What a file system still has room for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    pub(crate) bytes: u64,
    /// None where it makes files as long as there are bytes.
    pub(crate) files: Option<Files>,
}

/// How many files a file system can have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Files {
    pub(crate) left: u64,
    pub(crate) all: u64,
}

/// Where less is free to begin with than is to be kept, this part of it is kept: else nobody could
/// remove anything either.
const EMERGENCY: u64 = 4;
/// A command may make some thousand files between two looks at the disk, so this many are kept back;
/// on a small file system this part of all.
const FILES: u64 = 10_000;
const FILES_PART: u64 = 10;

impl Space {
    /// Watches that `least` bytes stay free, and some files; 0 for no watch.
    pub(super) fn new<'a>(least: u64, folders: impl Iterator<Item = &'a Path>) -> Self {
        let watched = |folder: &Path| {
            let files = room(folder).ok().and_then(|room| room.files);
            Watched { folder: folder.to_owned(), files: files.map_or(0, Files::watched_from) }
        };
        let mut space =
            Self { least, folders: folders.filter(|_| least > 0).map(watched).collect() };
        if matches!(space.is_short(), Some(Shortage::Bytes { .. })) {
            space.least /= EMERGENCY;
        }
        space
    }

    /// What there is too little of, if there is.
    pub(super) fn is_short(&self) -> Option<Shortage> {
        self.folders.iter().find_map(|watched| {
            let room = room(&watched.folder).ok()?;
            if room.bytes < self.least {
                return Some(Shortage::Bytes { left: room.bytes, least: self.least });
            }
            let files = room.files.filter(|files| files.left < watched.files)?;
            Some(Shortage::Files { left: files.left, least: watched.files })
        })
    }
}

impl Files {
    /// How many are to be left.
    pub(crate) fn least(self) -> u64 {
        (self.all / FILES_PART).min(FILES)
    }

    /// The same for a command that begins now.
    fn watched_from(self) -> u64 {
        match self.left {
            // Some file systems say so and mean that they do not count; and on one that is full a
            // command can only make it better.
            0 => 0,
            left if left < self.least() => self.least() / EMERGENCY,
            _ => self.least(),
        }
    }
}

impl Shortage {
    /// Why a command is not begun.
    pub(super) fn refusal(self) -> String {
        match self {
            Self::Bytes { left, least } => format!(
                "the disk has only {} free, and {least} are kept free (sandbox.min_free_bytes); the user is to make room",
                byte_count(left)
            ),
            Self::Files { left, least } => format!(
                "the disk has room for only {} (inodes), and {least} are kept free; the user is to remove files",
                more_files(left)
            ),
        }
    }

    /// Why a command was ended.
    pub(super) fn ended(self) -> String {
        match self {
            Self::Bytes { left, least } => format!(
                "it filled the disk, which has only {} left of the {least} that are kept free (sandbox.min_free_bytes)",
                byte_count(left)
            ),
            Self::Files { left, least } => format!(
                "it made too many files: the disk had room for {left} more, and {least} are kept free (inodes)"
            ),
        }
    }
}

/// How many files a disk still has room for, in words.
pub(crate) fn more_files(left: u64) -> String {
    if left == 1 { "1 more file".to_owned() } else { format!("{left} more files") }
}

/// What the file system that holds a folder still has room for.
#[cfg(unix)]
pub(crate) fn room(folder: &Path) -> io::Result<Room> {
    let found = rustix::fs::statvfs(folder)?;
    let files = Files { left: found.f_favail, all: found.f_files };
    Ok(Room {
        bytes: found.f_bavail.saturating_mul(found.f_frsize),
        files: (files.all > 0).then_some(files),
    })
}

#[cfg(not(unix))]
pub(crate) fn room(_: &Path) -> io::Result<Room> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_files_are_kept_back_as_deaddrop_needs() {
        let from = |left, all| Files { left, all }.watched_from();
        assert_eq!(from(1_000_000, 6_000_000), 10_000);
        assert_eq!(from(4_000, 4_096), 409);
        // What makes room is to run.
        assert_eq!(from(200, 4_096), 102);
        assert_eq!(from(0, 4_096), 0);
        assert_eq!(from(5_000, 6_000_000), 2_500);
    }
}
