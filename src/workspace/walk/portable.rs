//! Folders on other systems, through cap-std.

use std::io::{self, Read};

use cap_fs_ext::{DirExt, FollowSymlinks, OpenOptionsFollowExt};
use cap_std::fs::{Dir, FileType, OpenOptions};

use super::EntryKind;
use super::close::Facts;
use super::ignoring::SIZE_LIMIT;

/// The entries of a folder, with their type.
pub(super) type Entries = Vec<(Vec<u8>, FileType)>;

/// Whether an entry is a folder.
pub(super) fn may_be_folder(kind: FileType) -> bool {
    kind.is_dir()
}

/// An open folder.
pub(super) struct Handle(Dir);

impl Handle {
    pub(super) fn root(root: &Dir) -> io::Result<Self> {
        root.try_clone().map(Self)
    }

    /// A folder in this one; fails on a link.
    pub(super) fn child(&self, name: &[u8]) -> io::Result<Self> {
        self.0.open_dir_nofollow(&*String::from_utf8_lossy(name)).map(Self)
    }

    pub(super) fn entries(&self, _: &mut Vec<u8>) -> io::Result<Entries> {
        self.0
            .entries()?
            .map(|entry| {
                let entry = entry?;
                let name = entry.file_name().to_string_lossy().into_owned().into_bytes();
                Ok((name, entry.file_type()?))
            })
            .collect()
    }

    /// What an entry is (None: a folder), its size and its permissions.
    pub(super) fn look(
        &self,
        name: &[u8],
        _: FileType,
    ) -> io::Result<(Option<EntryKind>, u64, u32)> {
        let found = self.0.symlink_metadata(&*String::from_utf8_lossy(name))?;
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
    pub(super) fn look_closely(&self, name: &[u8]) -> io::Result<(Option<EntryKind>, u64, Facts)> {
        let found = self.0.symlink_metadata(&*String::from_utf8_lossy(name))?;
        let (kind, size, _) = self.look(name, found.file_type())?;
        Ok((kind, size, Facts::of(&found)))
    }

    /// Reads a file, a little more than [`SIZE_LIMIT`] where it is longer.
    pub(super) fn read_small(&self, name: &[u8]) -> io::Result<Vec<u8>> {
        let name = String::from_utf8_lossy(name);
        let mut bytes = Vec::new();
        // Opening a FIFO for reading would wait for a writer.
        if !self.0.symlink_metadata(&*name)?.is_file() {
            return Ok(bytes);
        }
        let mut options = OpenOptions::new();
        options.read(true).follow(FollowSymlinks::No);
        let file = self.0.open_with(&*name, &options)?;
        file.take(SIZE_LIMIT + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}
