//! An open folder. Its entries are listed and inspected relative to its handle, and never through a link.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use cap_std::fs::Dir;
pub(in crate::workspace) use rustix::fs::FileType;
use rustix::fs::{Mode, OFlags, openat};

use super::EntryKind;
use super::detailed::FileStat;
use super::ignoring::SIZE_LIMIT;

/// The entries of a folder, with their types if the file system reports them.
pub(in crate::workspace) type Entries = Vec<(Vec<u8>, FileType)>;

/// An open folder.
pub(in crate::workspace) struct Handle(OwnedFd);

impl Handle {
    pub(in crate::workspace) fn root(root: &Dir) -> io::Result<Self> {
        open(root, c".").map(Self)
    }

    /// Opens a folder in this folder. Fails for a link.
    pub(in crate::workspace) fn child(&self, name: &[u8]) -> io::Result<Self> {
        open(&self.0, &CString::new(name)?).map(Self)
    }

    /// Opens a regular file.
    pub(in crate::workspace) fn open_regular(&self, name: &[u8]) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(openat(&self.0, &*CString::new(name)?, flags, Mode::empty())?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
    }

    /// Reads up to [`SIZE_LIMIT`] bytes of a file, and one byte more to detect longer files.
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

fn open(folder: impl AsFd, name: &std::ffi::CStr) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(folder, name, flags, Mode::empty())?)
}

/// Whether an entry is a folder, or its type is unknown because the file system does not report it.
pub(in crate::workspace) fn may_be_folder(kind: FileType) -> bool {
    matches!(kind, FileType::Directory | FileType::Unknown)
}

impl Handle {
    /// Lists up to `limit` entries. Linux fills the spare capacity of the buffer; other systems do not use it.
    #[cfg_attr(not(target_os = "linux"), allow(unused_variables))]
    pub(in crate::workspace) fn entries(
        &self,
        buffer: &mut Vec<u8>,
        limit: usize,
    ) -> io::Result<Entries> {
        #[cfg(target_os = "linux")]
        let mut folder = rustix::fs::RawDir::new(&self.0, buffer.spare_capacity_mut());
        #[cfg(not(target_os = "linux"))]
        let mut folder = rustix::fs::Dir::read_from(&self.0)?;
        let mut entries = Vec::new();
        while let Some(entry) = folder.next() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if entries.len() == limit {
                break;
            }
            if !matches!(name, b"." | b"..") {
                entries.push((name.to_vec(), entry.file_type()));
            }
        }
        Ok(entries)
    }

    /// The type of an entry (None: a folder), its size and its metadata. For a file on a network file system, cached
    /// metadata is cheap but may be outdated. If the metadata decides whether the file is read again, use `is_fresh`,
    /// which asks the file system as `stat` does.
    #[cfg(target_os = "linux")]
    pub(in crate::workspace) fn stat(
        &self,
        name: &[u8],
        is_fresh: bool,
    ) -> io::Result<(Option<EntryKind>, u64, FileStat)> {
        use rustix::fs::{AtFlags, StatxFlags, makedev, statx};
        let sync = if is_fresh { AtFlags::STATX_SYNC_AS_STAT } else { AtFlags::STATX_DONT_SYNC };
        let flags = AtFlags::SYMLINK_NOFOLLOW | sync;
        let found = statx(&self.0, &*CString::new(name)?, flags, StatxFlags::BASIC_STATS)?;
        let nanos =
            |time: &rustix::fs::StatxTimestamp| crate::clock::nanos(time.tv_sec, time.tv_nsec);
        let facts = FileStat {
            device: makedev(found.stx_dev_major, found.stx_dev_minor),
            inode: found.stx_ino,
            mode: u32::from(found.stx_mode) & 0o7777,
            written: nanos(&found.stx_mtime),
            changed: nanos(&found.stx_ctime),
        };
        let kind = match FileType::from_raw_mode(found.stx_mode.into()) {
            FileType::Directory => None,
            FileType::RegularFile => Some(EntryKind::File),
            FileType::Symlink => Some(EntryKind::Link),
            _ => Some(EntryKind::Other),
        };
        Ok((kind, found.stx_size, facts))
    }

    /// The version of this function for other systems.
    #[cfg(not(target_os = "linux"))]
    pub(in crate::workspace) fn stat(
        &self,
        name: &[u8],
        _: bool,
    ) -> io::Result<(Option<EntryKind>, u64, FileStat)> {
        use std::os::unix::ffi::OsStrExt;
        let name = std::ffi::OsStr::from_bytes(name);
        let found = Dir::reopen_dir(&self.0)?.symlink_metadata(name)?;
        let super::WalkEntry { kind, size, facts, .. } =
            super::WalkEntry::of(String::new(), &found);
        Ok((kind, size, facts))
    }
}
