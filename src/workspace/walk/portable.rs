//! Folders on other systems, through cap-std.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use cap_fs_ext::DirExt;
use cap_std::fs::Dir;
pub(in crate::workspace) use cap_std::fs::FileType;

use super::EntryKind;
use super::close::Facts;
use super::ignoring::SIZE_LIMIT;
use crate::workspace::open_regular;

/// The entries of a folder, with their type.
pub(in crate::workspace) type Entries = Vec<(Vec<u8>, FileType)>;

/// Whether an entry is a folder.
pub(in crate::workspace) fn may_be_folder(kind: FileType) -> bool {
    kind.is_dir()
}

/// An open folder.
pub(in crate::workspace) struct Handle(Dir);

impl Handle {
    pub(in crate::workspace) fn root(root: &Dir) -> io::Result<Self> {
        root.try_clone().map(Self)
    }

    /// A folder in this one; fails on a link.
    pub(in crate::workspace) fn child(&self, name: &[u8]) -> io::Result<Self> {
        self.0.open_dir_nofollow(OsStr::from_bytes(name)).map(Self)
    }

    pub(in crate::workspace) fn entries(&self, _: &mut Vec<u8>) -> io::Result<Entries> {
        self.0
            .entries()?
            .map(|entry| {
                let entry = entry?;
                let name = entry.file_name().into_vec();
                Ok((name, entry.file_type()?))
            })
            .collect()
    }

    /// What an entry is (None: a folder), its size and its permissions.
    pub(in crate::workspace) fn look(
        &self,
        name: &[u8],
        _: FileType,
    ) -> io::Result<(Option<EntryKind>, u64, u32)> {
        let found = self.0.symlink_metadata(OsStr::from_bytes(name))?;
        let (kind, size) = if found.is_dir() {
            (None, 0)
        } else if found.is_file() {
            (Some(EntryKind::File), found.len())
        } else if found.is_symlink() {
            (Some(EntryKind::Link), found.len())
        } else {
            (Some(EntryKind::Other), 0)
        };
        Ok((kind, size, Facts::of(&found).mode))
    }

    /// The same with all that tells whether it is as it was.
    pub(in crate::workspace) fn look_closely(
        &self,
        name: &[u8],
    ) -> io::Result<(Option<EntryKind>, u64, Facts)> {
        let found = self.0.symlink_metadata(OsStr::from_bytes(name))?;
        let (kind, size, _) = self.look(name, found.file_type())?;
        Ok((kind, size, Facts::of(&found)))
    }

    /// Opens a regular file.
    pub(in crate::workspace) fn open_regular(&self, name: &[u8]) -> io::Result<File> {
        open_regular(&self.0, OsStr::from_bytes(name)).map(cap_std::fs::File::into_std)
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
