//! Folders on Linux: openat, getdents64 and statx, each relative to a handle.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use cap_std::fs::Dir;
pub(in crate::workspace) use rustix::fs::FileType;
use rustix::fs::{AtFlags, Mode, OFlags, RawDir, Statx, StatxFlags, openat, statx};

use super::EntryKind;
use super::close::Facts;
use super::ignoring::SIZE_LIMIT;

/// The entries of a folder, with their type where the file system tells it.
pub(in crate::workspace) type Entries = Vec<(Vec<u8>, FileType)>;

/// An open folder.
pub(in crate::workspace) struct Handle(OwnedFd);

impl Handle {
    pub(in crate::workspace) fn root(root: &Dir) -> io::Result<Self> {
        open(root, c".").map(Self)
    }

    /// A folder in this one; fails on a link.
    pub(in crate::workspace) fn child(&self, name: &[u8]) -> io::Result<Self> {
        open(&self.0, &CString::new(name)?).map(Self)
    }

    pub(in crate::workspace) fn entries(&self, buffer: &mut Vec<u8>) -> io::Result<Entries> {
        let mut entries = Vec::new();
        let mut raw = RawDir::new(&self.0, buffer.spare_capacity_mut());
        while let Some(entry) = raw.next() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if !matches!(name, b"." | b"..") {
                entries.push((name.to_vec(), entry.file_type()));
            }
        }
        Ok(entries)
    }

    /// What an entry is (None: a folder), its size, and the permissions of what is no folder.
    pub(in crate::workspace) fn look(
        &self,
        name: &[u8],
        kind: FileType,
    ) -> io::Result<(Option<EntryKind>, u64, u32)> {
        if kind == FileType::Directory {
            return Ok((None, 0, 0));
        }
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::STATX_DONT_SYNC;
        let wanted = StatxFlags::SIZE | StatxFlags::TYPE | StatxFlags::MODE;
        let found = statx(&self.0, &*CString::new(name)?, flags, wanted)?;
        let mode = u32::from(found.stx_mode);
        Ok(match FileType::from_raw_mode(mode) {
            FileType::Directory => (None, 0, 0),
            FileType::RegularFile => (Some(EntryKind::File), found.stx_size, mode & 0o7777),
            FileType::Symlink => (Some(EntryKind::Link), found.stx_size, 0),
            _ => (Some(EntryKind::Other), 0, 0),
        })
    }

    /// The same with all that tells whether it is as it was.
    pub(in crate::workspace) fn look_closely(
        &self,
        name: &[u8],
    ) -> io::Result<(Option<EntryKind>, u64, Facts)> {
        // What the system remembers of a file on another machine may be old, and this decides whether
        // the file is read again: so it is asked as `stat` asks.
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::STATX_SYNC_AS_STAT;
        let found = statx(&self.0, &*CString::new(name)?, flags, StatxFlags::BASIC_STATS)?;
        let kind = match FileType::from_raw_mode(found.stx_mode.into()) {
            FileType::Directory => None,
            FileType::RegularFile => Some(EntryKind::File),
            FileType::Symlink => Some(EntryKind::Link),
            _ => Some(EntryKind::Other),
        };
        Ok((kind, found.stx_size, facts(&found)))
    }

    /// Opens a regular file.
    pub(in crate::workspace) fn open_regular(&self, name: &[u8]) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(openat(&self.0, &*CString::new(name)?, flags, Mode::empty())?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
    }

    /// Reads a file, a little more than [`SIZE_LIMIT`] where it is longer.
    pub(in crate::workspace) fn read_small(&self, name: &[u8]) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.open_regular(name)?.take(SIZE_LIMIT + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

impl AsFd for Handle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Whether an entry is a folder, or the file system does not tell.
pub(in crate::workspace) fn may_be_folder(kind: FileType) -> bool {
    matches!(kind, FileType::Directory | FileType::Unknown)
}

fn facts(found: &Statx) -> Facts {
    let nanos = |time: &rustix::fs::StatxTimestamp| crate::clock::nanos(time.tv_sec, time.tv_nsec);
    Facts {
        device: rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor),
        inode: found.stx_ino,
        mode: u32::from(found.stx_mode) & 0o7777,
        written: nanos(&found.stx_mtime),
        changed: nanos(&found.stx_ctime),
    }
}

fn open(folder: impl AsFd, name: &std::ffi::CStr) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(folder, name, flags, Mode::empty())?)
}
