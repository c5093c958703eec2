//! Monitors free space on the disks that a command writes. The command is ended before it fills a disk with bytes or
//! files, because deaddrop must still be able to record what happened.

use std::io;
use std::ops::RangeInclusive;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::text::byte_count;

/// Monitors the file systems of some folders. The default monitors nothing.
#[derive(Default)]
pub(super) struct DiskMonitor {
    least: u64,
    disks: Vec<Disk>,
    next_check: Option<Instant>,
}

struct Disk {
    /// A folder on the monitored disk.
    folder: PathBuf,
    /// How many more files the disk must have room for; 0 if files are not monitored.
    files: u64,
}

/// What runs short: how much is left, and how much must be left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shortage {
    Bytes { left: u64, least: u64 },
    FileCounts { left: u64, least: u64 },
}

/// The free space of a file system.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    pub(crate) bytes: u64,
    /// None if the number of files is limited only by bytes.
    pub(crate) files: Option<FileCounts>,
}

/// How many more files a file system has room for, and how many in total.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileCounts {
    pub(crate) left: u64,
    pub(crate) all: u64,
}

/// If less than the reserve is free at the start, only this fraction is reserved. Otherwise no command could run, not
/// even to remove files.
const EMERGENCY: u64 = 4;
/// A command may create thousands of files between two checks. So room for this many files is reserved, or for this
/// fraction of all files if the file system is small.
const FILES: u64 = 10_000;
const FILES_PART: u64 = 10;
/// An estimate of how many bytes a command can write, and how many files it can create, in a millisecond. The estimate
/// can be too low, so the time between checks is limited, too.
const BYTES_A_MILLISECOND: u64 = 5 << 20;
const FILES_A_MILLISECOND: u64 = 500;
/// The time between two checks, in milliseconds.
const CHECK_INTERVAL: RangeInclusive<u64> = 20..=200;

impl DiskMonitor {
    /// Monitors whether `least` bytes and a number of files stay free. 0 turns monitoring off.
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

    /// The time of the next check; None if nothing is monitored.
    pub(super) fn next_check(&self) -> Option<Instant> {
        self.next_check
    }

    /// Reports what runs short, if anything; otherwise schedules the next check.
    pub(super) fn check(&mut self) -> Option<Shortage> {
        let mut lasts = *CHECK_INTERVAL.end();
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
        let wait = Duration::from_millis(lasts.max(*CHECK_INTERVAL.start()));
        self.next_check = (!self.disks.is_empty()).then(|| Instant::now() + wait);
        None
    }
}

impl FileCounts {
    /// How many more files there must always be room for.
    pub(crate) fn least(self) -> u64 {
        (self.all / FILES_PART).min(FILES)
    }

    /// How many more files there must be room for while a command runs that begins now.
    fn watched_from(self) -> u64 {
        match self.left {
            // Some file systems report 0 because they do not count files. On a full one, a command can only free space.
            0 => 0,
            left if left < self.least() => self.least() / EMERGENCY,
            _ => self.least(),
        }
    }
}

impl Shortage {
    /// Why a command is not started.
    pub(super) fn refusal(self) -> String {
        match self {
            Self::Bytes { left, least } => format!(
                "the disk has only {} free, and {least} are kept free (sandbox.min_free_bytes); the user must make room",
                byte_count(left)
            ),
            Self::FileCounts { left, least } => format!(
                "the disk has room for only {} (inodes), and {least} are kept free; the user must remove files",
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

/// Formats how many more files a disk has room for.
pub(crate) fn more_files(left: u64) -> String {
    if left == 1 { "1 more file".to_owned() } else { format!("{left} more files") }
}

/// The free space of the file system that contains a folder.
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
        // A command that makes room must be able to run.
        assert_eq!(from(200, 4_096), 102);
        assert_eq!(from(0, 4_096), 0);
        assert_eq!(from(5_000, 6_000_000), 2_500);
    }
}
