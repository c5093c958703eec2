//! Opens many folders of the workspace by their paths.
//!
//! Opening each path from the root would take quadratic time in a chain of nested folders. A [`FolderCache`] continues
//! from the nearest parent folder that is still open.
//!
//! Use a cache for only one pass over the workspace, during which deaddrop moves no folders: a handle stays valid when
//! its folder is moved.

use std::io;

use cap_fs_ext::DirExt;
use cap_std::fs::{Dir, Metadata};

use super::Workspace;
use super::names::{split, unescaped};

/// The most folders that are kept open.
const MAX_OPEN: usize = 64;
/// The longest part of a path that is opened at once, in bytes. The system's limit is 4,096 bytes.
#[cfg(target_os = "linux")]
const AT_ONCE: usize = 3_072;

/// Opens folders by their paths without following links, and keeps some parents of the last folder open.
pub(super) struct FolderCache<'a> {
    root: &'a Dir,
    /// The path of the deepest open folder.
    path: String,
    /// Open folders on this path, the deepest last: where the path of each ends, and its handle.
    open: Vec<(usize, Dir)>,
    #[cfg(test)]
    opened: usize,
}

impl<'a> FolderCache<'a> {
    pub(super) fn new(workspace: &'a Workspace) -> Self {
        Self {
            root: &workspace.root,
            path: String::new(),
            open: Vec::new(),
            #[cfg(test)]
            opened: 0,
        }
    }

    /// The folder at an escaped path.
    ///
    /// # Errors
    /// There is no such folder, or a component is a link.
    pub(super) fn folder(&mut self, path: &str) -> io::Result<&Dir> {
        let is_above = |above: &str| {
            path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        while self.open.last().is_some_and(|(end, _)| !is_above(&self.path[..*end])) {
            self.open.pop();
        }
        let known = self.open.last().map_or(0, |(end, _)| *end);
        self.path.truncate(known);
        self.path.push_str(&path[known..]);
        let opened = self.open_rest();
        let known = self.open.last().map_or(0, |(end, _)| *end);
        self.path.truncate(known);
        opened.map(|()| self.last())
    }

    /// The metadata of the entry at an escaped path, and the entry's folder. The root's folder is the root itself.
    ///
    /// # Errors
    /// There is no entry, or it cannot be inspected.
    pub(super) fn entry(&mut self, path: &str) -> io::Result<(&Dir, Metadata)> {
        let (folder, name) = split(path);
        let folder = self.folder(folder)?;
        let found = match path {
            "" => folder.dir_metadata()?,
            _ => folder.symlink_metadata(unescaped(name))?,
        };
        Ok((folder, found))
    }

    /// Whether an error for a path proves that no entry exists there: the entry or a parent folder is gone, a parent is
    /// no longer a folder, or the name is impossible.
    pub(super) fn proves_absence(&mut self, path: &str, error: &io::Error) -> bool {
        use io::ErrorKind::{InvalidFilename, InvalidInput, NotADirectory, NotFound};
        matches!(error.kind(), NotFound | NotADirectory | InvalidFilename | InvalidInput)
            || self.is_behind_link(path)
    }

    /// Whether a parent folder in an escaped path is a link.
    fn is_behind_link(&mut self, path: &str) -> bool {
        let Some((folder, _)) = path.rsplit_once('/') else { return false };
        if self.folder(folder).is_ok() {
            return false;
        }
        // The folders before the link were opened, and the last of them is still open.
        let rest = folder[self.path.len()..].trim_start_matches('/');
        let name = rest.split('/').next().unwrap_or_default();
        let found = self.last().symlink_metadata(unescaped(name));
        found.is_ok_and(|found| found.is_symlink())
    }

    /// Returns the folder that was opened last.
    ///
    /// # Errors
    /// Too many files are open.
    pub(super) fn into_last(mut self) -> io::Result<Dir> {
        self.open.pop().map_or_else(|| self.root.try_clone(), |(_, folder)| Ok(folder))
    }

    /// The folder that was opened last, or the root.
    pub(super) fn last(&self) -> &Dir {
        self.open.last().map_or(self.root, |(_, folder)| folder)
    }

    /// Opens the rest of the path: half of it at once, then half of what remains, and so on. In this way some parents
    /// stay open, too, and more of them near the end of the path.
    fn open_rest(&mut self) -> io::Result<()> {
        loop {
            let known = self.open.last().map_or(0, |(end, _)| *end);
            let from = known + usize::from(known > 0);
            if from >= self.path.len() {
                return Ok(());
            }
            #[cfg(target_os = "linux")]
            {
                let rest = self.path.len() - from;
                let least = from + (rest / 2).min(AT_ONCE);
                let end = self.end_of_name(least);
                if let Ok(folder) = linux::open_below(self.last(), &self.path[from..end]) {
                    self.keep_open(end, folder);
                    continue;
                }
            }
            // Open one name at a time, so that an error refers to that name.
            let end = self.end_of_name(from);
            let folder = self.last().open_dir_nofollow(unescaped(&self.path[from..end]))?;
            self.keep_open(end, folder);
        }
    }

    fn end_of_name(&self, within: usize) -> usize {
        let end = memchr::memchr(b'/', &self.path.as_bytes()[within..]);
        end.map_or(self.path.len(), |length| within + length)
    }

    /// Keeps a folder open. If too many are open, closes every other one in the half nearer to the root.
    fn keep_open(&mut self, end: usize, folder: Dir) {
        if self.open.len() >= MAX_OPEN {
            let mut n = 0;
            self.open.retain(|_| {
                n += 1;
                n > MAX_OPEN / 2 || n % 2 == 0
            });
        }
        self.open.push((end, folder));
        #[cfg(test)]
        {
            self.opened += 1;
        }
    }
}

impl Workspace {
    /// The folder at an escaped path, opened without following links. For many paths, use a [`FolderCache`].
    pub(super) fn folder_at(&self, path: &str) -> io::Result<Dir> {
        let mut folders = FolderCache::new(self);
        folders.folder(path)?;
        folders.into_last()
    }

    /// The metadata of the entry at an escaped path, and the entry's folder. The root's folder is the root itself.
    ///
    /// # Errors
    /// There is no entry, or it cannot be inspected.
    pub(super) fn entry(&self, path: &str) -> io::Result<(Dir, Metadata)> {
        let mut folders = FolderCache::new(self);
        let (_, found) = folders.entry(path)?;
        Ok((folders.into_last()?, found))
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;
    use std::io;

    use cap_std::fs::Dir;
    use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};

    use super::unescaped;

    /// Opens a folder several levels below another. Fails if the system does not support this or the path is unusable.
    pub(super) fn open_below(folder: &Dir, path: &str) -> io::Result<Dir> {
        if path.split('/').any(|name| matches!(name, "" | "." | "..")) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // O_PATH, like cap-std, so that search permission is enough to pass through a folder.
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let stays = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let opened = openat2(folder, unescaped(path), flags, Mode::empty(), stays)?;
        Ok(Dir::from_std_file(File::from(opened)))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, symlink};

    use cap_std::fs::MetadataExt as _;

    use super::*;

    /// A chain of this many nested folders, and a workspace at its top.
    fn chain(levels: usize) -> (tempfile::TempDir, Workspace) {
        let dir = tempfile::tempdir().unwrap();
        let root = Dir::open_ambient_dir(dir.path(), cap_std::ambient_authority()).unwrap();
        let mut folder = root;
        for _ in 0..levels {
            folder.create_dir("d").unwrap();
            folder = folder.open_dir("d").unwrap();
        }
        let workspace = Workspace::open(dir.path(), &[], &[]).unwrap();
        (dir, workspace)
    }

    fn path(levels: usize) -> String {
        vec!["d"; levels].join("/")
    }

    #[test]
    fn any_depth_is_reached_and_few_folders_are_held() {
        // Longer than any path that the system accepts.
        let (_dir, workspace) = chain(5_000);
        let mut folders = FolderCache::new(&workspace);
        let numbers: Vec<u64> = (0..=5_000)
            .map(|n| {
                let found = folders.folder(&path(n)).unwrap().dir_metadata().unwrap();
                assert!(folders.open.len() <= MAX_OPEN);
                found.ino()
            })
            .collect();
        for n in (0..=5_000).rev() {
            let found = folders.folder(&path(n)).unwrap().dir_metadata().unwrap();
            assert_eq!(found.ino(), numbers[n], "{n}");
            assert!(folders.open.len() <= MAX_OPEN);
        }
        assert!(folders.opened <= 5_000 * 4, "{}", folders.opened);
        let there = workspace.folder_at(&path(5_000)).unwrap().dir_metadata().unwrap();
        assert_eq!(there.ino(), numbers[5_000]);
    }

    #[test]
    fn no_link_is_followed_and_nothing_leads_out() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("w");
        fs::create_dir_all(root.join("a/b/c")).unwrap();
        fs::create_dir(dir.path().join("out")).unwrap();
        symlink("a", root.join("link")).unwrap();
        symlink("../../out", root.join("a/out")).unwrap();
        fs::write(root.join("a/file"), "").unwrap();
        let workspace = Workspace::open(&root, &[], &[]).unwrap();
        let mut folders = FolderCache::new(&workspace);
        for none in ["link", "link/b", "link/b/c", "a/out", "a/file", "a/file/x", "a/none/x/y"] {
            assert!(folders.folder(none).is_err(), "{none}");
            assert!(workspace.folder_at(none).is_err(), "{none}");
        }
        for out in ["..", "a/../..", "a/b/../../..", "%2E%2E", "a/%2E%2E/%2E%2E", "%2Ftmp"] {
            assert!(folders.folder(out).is_err(), "{out}");
        }
        assert!(folders.is_behind_link("link/b/c"));
        assert!(folders.is_behind_link("a/out/x"));
        assert!(!folders.is_behind_link("a/none/x"));
        assert!(!folders.is_behind_link("a/b/c"));
        assert!(!folders.is_behind_link("link"));
        let is = folders.folder("a/b").unwrap().dir_metadata().unwrap().ino();
        assert_eq!(is, fs::metadata(root.join("a/b")).unwrap().ino());
        // A folder whose name only begins with the same name is a different folder.
        fs::create_dir(root.join("a/bb")).unwrap();
        let is = folders.folder("a/bb").unwrap().dir_metadata().unwrap().ino();
        assert_eq!(is, fs::metadata(root.join("a/bb")).unwrap().ino());
    }
}
