//! Files and folders that are shown to commands. They are opened without following links, and their identity is
//! compared with the one that was recorded when they were chosen.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

use super::request::IdentifiedPath;

const HANDLE: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl IdentifiedPath {
    /// Records the identity of the file or folder that is at a path now.
    ///
    /// # Errors
    /// A component of the path is a link, or the path does not exist.
    pub(in crate::runner) fn at(path: &Path, setting: &str) -> io::Result<Self> {
        let (_, mut found) = open(path)?;
        let is_folder = found.is_dir();
        if !is_folder {
            (_, found) = open(path.parent().unwrap_or(path))?;
        }
        let (path, setting) = (path.to_owned(), setting.to_owned());
        Ok(Self { path, device: found.dev(), inode: found.ino(), is_folder, setting })
    }

    /// Opens the file or folder. None if it cannot be shown any more and a command can run without it.
    ///
    /// # Errors
    /// A setting names the path, and something else is at the path now.
    pub(in crate::runner) fn open(&self, writable: bool) -> io::Result<Option<File>> {
        match self.try_open() {
            Ok(handle) => Ok(Some(handle)),
            // The user that commands run as may have access to fewer files than this process.
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Ok(None),
            Err(e) if !writable && e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(_) if self.setting.is_empty() => Ok(None),
            Err(_) => Err(io::Error::other(format!(
                "it is not the {} that {} named when deaddrop started; look at what is there now, then start deaddrop again",
                if self.is_folder { "folder" } else { "file" },
                self.setting
            ))),
        }
    }

    fn try_open(&self) -> io::Result<File> {
        let (folder, name) = match (self.path.parent(), self.path.file_name()) {
            (Some(parent), Some(name)) if !self.is_folder => (parent, Some(name)),
            _ => (&*self.path, None),
        };
        let (handle, found) = open(folder)?;
        if (found.dev(), found.ino()) != (self.device, self.inode) {
            return Err(Errno::STALE.into());
        }
        let Some(name) = name else { return Ok(handle) };
        let file = File::from(openat(&handle, name, HANDLE, Mode::empty())?);
        let kind = file.metadata()?.file_type();
        if kind.is_symlink() || kind.is_dir() { Err(Errno::STALE.into()) } else { Ok(file) }
    }
}

/// Opens a path as a handle (`O_PATH`). No component may be a link.
pub(in crate::runner) fn open(path: &Path) -> io::Result<(File, Metadata)> {
    let opened = match openat2(CWD, path, HANDLE, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        // openat2 is not available before Linux 5.6, and in some containers.
        Err(Errno::NOSYS | Errno::PERM) => {
            let names = path.components().filter(|part| matches!(part, Component::Normal(_)));
            let root = openat(CWD, "/", HANDLE, Mode::empty());
            names.fold(root, |here, name| openat(&here?, name.as_os_str(), HANDLE, Mode::empty()))
        }
        opened => opened,
    };
    let file = File::from(opened?);
    let found = file.metadata()?;
    if found.is_symlink() { Err(Errno::LOOP.into()) } else { Ok((file, found)) }
}

/// The error for a mount that failed.
pub(in crate::runner) fn cannot_show(at: &Path, why: impl std::fmt::Display) -> String {
    format!("cannot show {} to the command: {why}", at.display())
}
