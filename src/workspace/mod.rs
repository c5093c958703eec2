//! The workspace: the only folder whose files replies may access. No other module accesses them.
//!
//! All access goes through one handle on the root, so confinement does not depend on paths that can change. deaddrop's
//! own state cannot be accessed, even if it is inside the workspace.

mod bom;
mod changing;
pub mod checkpoint;
mod closest;
pub mod edit;
mod excerpt;
mod facts;
mod folder_cache;
mod folders;
mod lines;
mod list;
mod locate;
mod missing;
mod modes;
mod moving;
mod names;
pub mod overlay;
pub mod overview;
pub mod part;
mod plan;
mod process;
pub(crate) mod products;
pub mod protected;
pub(crate) mod repository;
mod search;
mod search_edit;
#[cfg(test)]
mod tests;
mod text;
mod tree;
pub mod walk;

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use cap_fs_ext::{FollowSymlinks, MetadataExt, OpenOptionsFollowExt};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, Metadata, OpenOptions, OpenOptionsExt};

use crate::error::{Error, Result};
pub use crate::protocol::PathFacts;
use crate::protocol::{Failure, LineRange, Mistake, RelPath, elision};
use crate::secrets;
use crate::text::visible_line;
pub use changing::changed;
pub use list::FolderEntry;
use locate::failed;
pub(crate) use locate::is_folder;
pub use moving::{MOVED_FILES, MovePlan};
pub use names::unescaped;
use overlay::Overlay;
pub use plan::Plan;
use protected::ProtectedNames;
pub use search::{SearchOptions, check_pattern};
pub use tree::lines_of;
use walk::Walk;

/// The most bytes of a file that an outbox shows.
pub const READ_LIMIT: u64 = 200_000;
/// The most bytes of complete file contents that one turn returns.
pub const READ_ROOM: u64 = 1_000_000;
/// The size of the largest file that can be edited, in bytes.
pub const EDIT_LIMIT: u64 = 64 << 20;

/// A handle on the workspace's root.
#[derive(Debug)]
pub struct Workspace {
    root: Arc<Dir>,
    /// The root's device and inode.
    root_id: (u64, u64),
    /// The root's canonical path.
    path: PathBuf,
    /// deaddrop's own files and folders inside the workspace.
    state: Vec<RelPath>,
    /// The device and inode of each of these that exists.
    state_ids: Vec<(u64, u64)>,
    /// The names that only the person may write.
    protected: ProtectedNames,
    /// Whether files outside `.git` that configure git are protected, too.
    protects_git: bool,
    /// The repositories found by the last walk.
    repositories: Mutex<Option<repository::FoundRepositories>>,
}

/// The bytes read from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    /// The path with all links resolved.
    pub path: RelPath,
    /// All bytes of the file, or its first bytes if it is longer than the limit.
    pub bytes: Vec<u8>,
    /// The size of the whole file.
    pub size: u64,
    /// The range of lines, if a part was requested.
    pub lines: Option<LineRange>,
}

impl Workspace {
    /// Opens the folder at `path`. The files and folders in `state` are deaddrop's own and are never read, listed or
    /// written. They can be outside the workspace and need not exist. Entries with a `protected` name, at any depth,
    /// can be read and listed, but not written without the person's permission.
    pub fn open(path: &Path, state: &[PathBuf], protected: &[String]) -> Result<Self> {
        let fail = |e| Error::io("open the workspace", path, e);
        let path = path.canonicalize().map_err(fail)?;
        let root = Dir::open_ambient_dir(&path, ambient_authority()).map(Arc::new).map_err(fail)?;
        let root_id = root.dir_metadata().map(|root| (root.dev(), root.ino())).map_err(fail)?;
        let mut inside = Vec::new();
        let mut state_ids = Vec::new();
        // If a state path is a link, the link itself also belongs to the state; otherwise it could be replaced.
        let named = state.iter().map(|place| canonical_folder(place));
        for place in state.iter().map(|place| canonical(place)).chain(named) {
            if path.starts_with(&place) {
                return Err(Error::config(
                    place.display().to_string(),
                    format!(
                        "this folder is deaddrop's own state and cannot hold the workspace {}",
                        path.display()
                    ),
                ));
            }
            let Ok(below) = place.strip_prefix(&path) else { continue };
            // The device and inode also cover names that no reply can express.
            if let Ok(found) = root.symlink_metadata(below) {
                state_ids.push((found.dev(), found.ino()));
            }
            if let Some(Ok(below)) = below.to_str().map(RelPath::parse)
                && !inside.contains(&below)
            {
                inside.push(below);
            }
        }
        let protected = ProtectedNames::new(protected);
        let protects_git = protected.name_of(".git").is_some();
        let repositories = Mutex::default();
        let state = inside;
        Ok(Self { root, root_id, path, state, state_ids, protected, protects_git, repositories })
    }

    /// Whether the folder at the workspace's path is still the open one.
    pub fn is_current(&self) -> bool {
        let there = fs::metadata(&self.path);
        there.is_ok_and(|there| (there.dev(), there.ino()) == self.root_id)
    }

    /// The names that only the person may write, as written in the settings.
    pub fn protected_names(&self) -> impl Iterator<Item = &str> {
        self.protected.names()
    }

    /// The root's canonical path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The workspace as an overlay without planned changes.
    pub fn as_is(&self) -> Overlay<'_> {
        Overlay::new(self)
    }

    /// Reads up to `limit` bytes of a regular file. Never blocks.
    pub fn read(&self, path: &RelPath, limit: u64) -> Result<Contents, Failure> {
        self.as_is().read(path, limit)
    }

    /// Lists every file that is not ignored.
    pub fn walk(&self) -> Result<Walk> {
        walk::walk(self, None, None)
    }

    /// Lists every file whose name suggests that it contains secrets, including ignored ones.
    pub fn walk_for_secrets(&self) -> Result<Walk> {
        walk::walk(self, None, Some(secrets::is_secret_text_file))
    }
}

/// Fails if a line of the new content is a placeholder for lines that would be lost from the file.
pub(crate) fn refuse_elided_content(path: &RelPath, new: &[u8], old: &[u8]) -> Result<(), Failure> {
    let Ok(new) = std::str::from_utf8(new) else { return Ok(()) };
    let Some((_, line, text)) = elision::left_out([(new, old)], old, path) else { return Ok(()) };
    let instead = "Send all of the file, or an edit of the lines that change (if it is meant literally, write it with a command)";
    Err(lines_left_out(path, &format!("Line {line} of the new content"), text, instead))
}

/// The failure for an edit that contains a placeholder for lines that would be lost from the file. `which` describes
/// the line, `text` is the line itself, and `instead` tells the model what to send instead.
fn lines_left_out(path: &RelPath, which: &str, text: &str, instead: &str) -> Failure {
    let explain_loss = elision::explain_loss(text, path.as_str(), instead);
    Failure::execution(format!("{which}, `{}`, {explain_loss}", visible_line(text)))
        .as_a(Mistake::LinesLeftOut)
}

/// Fails if a file is too large to be edited.
pub(crate) fn check_edit_size(path: &RelPath, size: u64) -> Result<(), Failure> {
    if size <= EDIT_LIMIT {
        return Ok(());
    }
    Err(Failure::execution(format!(
        "'{path}' is {size} bytes long; files up to {EDIT_LIMIT} bytes can be edited"
    )))
}

/// Returns the size of a regular file; fails if the metadata is not that of a regular file.
fn regular_size(path: &RelPath, found: &Metadata) -> Result<u64, Failure> {
    if found.is_file() {
        Ok(found.len())
    } else if found.is_dir() {
        Err(is_folder(path))
    } else {
        Err(Failure::rejected(format!("'{path}' is not a regular file")))
    }
}

/// Reads up to `limit` bytes of a regular file. Returns the bytes and the size of the whole file.
fn read_up_to(
    path: &RelPath,
    folder: &Dir,
    name: &str,
    limit: u64,
) -> Result<(Vec<u8>, u64), Failure> {
    let (file, size) = open_file(path, folder, name)?;
    // Reserve at most 1 MiB: a sparse file can be larger than memory.
    let expected = size.min(limit).min(1 << 20);
    let mut bytes = Vec::with_capacity(usize::try_from(expected).unwrap_or_default());
    let read = file.take(limit).read_to_end(&mut bytes);
    read.map_err(|e| failed("read", path, &e))?;
    let size = size.max(bytes.len() as u64);
    Ok((bytes, size))
}

/// Opens a regular file, and returns it with its size. Never blocks.
fn open_file(path: &RelPath, folder: &Dir, name: &str) -> Result<(File, u64), Failure> {
    let opened = open_nofollow(folder, OsStr::new(name));
    let (file, found) = opened.map_err(|e| failed("read", path, &e))?;
    // The file may have been replaced since an earlier check.
    let size = regular_size(path, &found)?;
    Ok((file, size))
}

/// Opens a regular file. Never blocks.
fn open_regular(folder: &Dir, name: &OsStr) -> io::Result<File> {
    let (file, found) = open_nofollow(folder, name)?;
    if found.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

/// Opens an entry of any type except a link. Never blocks.
fn open_nofollow(folder: &Dir, name: &OsStr) -> io::Result<(File, Metadata)> {
    let mut options = OpenOptions::new();
    // Without O_NONBLOCK, opening a FIFO waits for a writer.
    options.read(true).follow(FollowSymlinks::No).custom_flags(libc::O_NONBLOCK);
    let file = folder.open_with(name, &options)?;
    let found = file.metadata()?;
    Ok((file, found))
}

/// Syncs the entries of a folder. An `O_PATH` handle cannot be synced, so the folder is opened again.
fn sync(folder: &Dir) -> io::Result<()> {
    folder.open(".")?.sync_all()
}

/// The canonical form of a path that may not exist: its deepest existing ancestor is made canonical, and the
/// rest is appended.
fn canonical(path: &Path) -> PathBuf {
    match (path.canonicalize(), path.parent(), path.file_name()) {
        (Ok(path), _, _) => path,
        (Err(_), Some(parent), Some(name)) => canonical(parent).join(name),
        _ => path.to_owned(),
    }
}

/// Like [`canonical`], but resolves only the parent folder: a link at the end of the path is kept.
fn canonical_folder(path: &Path) -> PathBuf {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => canonical(parent).join(name),
        _ => canonical(path),
    }
}
