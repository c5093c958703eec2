//! Free space on the disks that a command writes to: it is ended before it fills them, with bytes or
//! with files, since deaddrop must still be able to write down what happened.

use std::io;
use std::ops::RangeInclusive;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::text::byte_count;

/// A watch over the file systems of some folders; none by default.
#[derive(Default)]
pub(super) struct DiskMonitor {
    least: u64,
    disks: Vec<Disk>,
    next_check: Option<Instant>,
}

struct Disk {
    /// A folder on it.
    folder: PathBuf,
    /// How many more files are to be possible; 0 where that is not watched.
    files: u64,
}

/// What there is too little of, and how much of it was to be left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shortage {
    Bytes { left: u64, least: u64 },
    FileCounts { left: u64, least: u64 },
}

/// What a file system still has room for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    pub(crate) bytes: u64,
    /// None where it makes files as long as there are bytes.
    pub(crate) files: Option<FileCounts>,
}

/// How many files a file system can have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileCounts {
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
/// How many bytes a command may write, and how many files it may make, in a millisecond. That is an
/// estimate: what is free beyond what is kept may last less long, so it is never relied on for long.
const BYTES_A_MILLISECOND: u64 = 5 << 20;
const FILES_A_MILLISECOND: u64 = 500;
/// How long it is between two looks at the disk, in milliseconds.
const LOOKS: RangeInclusive<u64> = 20..=200;

impl DiskMonitor {
    /// Watches that `least` bytes stay free, and some files; 0 for no watch.
    pub(super) fn new<'a>(least: u64, folders: impl Iterator<Item = &'a Path>) -> Self {
        let mut known = Vec::new();
        let mut is_new = |folder: &&Path| {
            let disk = folder.metadata().ok().map(|found| found.dev());
            let is_new = !known.contains(&disk);
            known.push(disk);
            is_new
        };
        let watched = |folder: &Path| {
            let files = room(folder).ok().and_then(|room| room.files);
            Disk { folder: folder.to_owned(), files: files.map_or(0, FileCounts::watched_from) }
        };
        let folders = folders.filter(|_| least > 0).filter(|folder| is_new(folder));
        let mut space = Self { least, disks: folders.map(watched).collect(), next_check: None };
        if matches!(space.check(), Some(Shortage::Bytes { .. })) {
            space.least /= EMERGENCY;
        }
        space
    }

    /// When the disks are to be looked at again; None where nothing is watched.
    pub(super) fn next_check(&self) -> Option<Instant> {
        self.next_check
    }

    /// What there is too little of, if there is. Decides when the next look is due.
    pub(super) fn check(&mut self) -> Option<Shortage> {
        let mut lasts = *LOOKS.end();
        for Disk { folder, files } in &self.disks {
            let Ok(room) = room(folder) else { continue };
            if room.bytes < self.least {
                return Some(Shortage::Bytes { left: room.bytes, least: self.least });
            }
            lasts = lasts.min((room.bytes - self.least) / BYTES_A_MILLISECOND);
            if let Some(FileCounts { left, .. }) = room.files.filter(|_| *files > 0) {
                if left < *files {
                    return Some(Shortage::FileCounts { left, least: *files });
                }
                lasts = lasts.min((left - files) / FILES_A_MILLISECOND);
            }
        }
        let wait = Duration::from_millis(lasts.max(*LOOKS.start()));
        self.next_check = (!self.disks.is_empty()).then(|| Instant::now() + wait);
        None
    }
}

impl FileCounts {
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
            Self::FileCounts { left, least } => format!(
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
            Self::FileCounts { left, least } => format!(
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
pub(crate) fn room(folder: &Path) -> io::Result<Room> {
    let found = rustix::fs::statvfs(folder)?;
    let files = FileCounts { left: found.f_favail, all: found.f_files };
    Ok(Room {
        bytes: found.f_bavail.saturating_mul(found.f_frsize),
        files: (files.all > 0).then_some(files),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_files_are_kept_back_as_deaddrop_needs() {
        let from = |left, all| FileCounts { left, all }.watched_from();
        assert_eq!(from(1_000_000, 6_000_000), 10_000);
        assert_eq!(from(4_000, 4_096), 409);
        // What makes room is to run.
        assert_eq!(from(200, 4_096), 102);
        assert_eq!(from(0, 4_096), 0);
        assert_eq!(from(5_000, 6_000_000), 2_500);
    }
}
