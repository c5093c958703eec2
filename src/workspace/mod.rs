//! The workspace: the one folder whose files replies may touch, and the ONLY toucher of them.
//!
//! Everything goes through one handle on its root, so that confinement does not depend on paths
//! staying what they were. deaddrop's own state is out of reach wherever it lies, also inside.

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
pub mod part;
pub mod picture;
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
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use cap_fs_ext::{FollowSymlinks, MetadataExt, OpenOptionsFollowExt};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, Metadata, OpenOptions, OpenOptionsExt};

use crate::error::{Error, Result};
pub use crate::protocol::Look;
use crate::protocol::{Failure, Lines, Mistake, RelPath, elision};
use crate::secrets;
use crate::text::visible_line;
pub use changing::changed;
pub use list::Entry;
use locate::failed;
pub(crate) use locate::is_folder;
pub use moving::{MOVED_FILES, MovePlan};
pub use names::unescaped;
use overlay::Overlay;
pub use plan::Plan;
use protected::ProtectedNames;
pub use search::{Terms, check};
pub use tree::lines_of;
use walk::Walk;

/// How much of a file an outbox shows, in bytes.
pub const READ_LIMIT: u64 = 200_000;
/// How many bytes of files are given that are read in their place, in one turn.
pub const READ_ROOM: u64 = 1_000_000;
/// The largest file that an edit reads, in bytes.
pub const EDIT_LIMIT: u64 = 64 << 20;

/// A handle on the workspace's root.
#[derive(Debug)]
pub struct Workspace {
    root: Dir,
    /// The root's canonical path.
    path: PathBuf,
    /// deaddrop's own files and folders, where they lie inside the workspace.
    state: Vec<RelPath>,
    /// The same by device and inode, for those that exist.
    state_ids: Vec<(u64, u64)>,
    /// What only the person may write.
    protected: ProtectedNames,
    /// Whether what git obeys outside of `.git` is the person's alone too.
    git_obeys: bool,
    /// The repositories that the last walk found.
    repositories: Mutex<Option<repository::FoundRepositories>>,
}

/// What was read of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    /// Where it really stands: links on the way are resolved.
    pub path: RelPath,
    /// Its bytes, or its first ones where it is longer than was asked for.
    pub bytes: Vec<u8>,
    /// The size of the whole file.
    pub size: u64,
    /// Which lines these are, where a part of it was asked for.
    pub lines: Option<Lines>,
}

impl Workspace {
    /// Opens the folder at `path`. `state` are the files and folders of deaddrop itself, which are
    /// never read, listed or written here; they may lie anywhere and need not exist. What has one
    /// of the `protected` names, at any depth, is read and listed, but never written.
    pub fn open(path: &Path, state: &[PathBuf], protected: &[String]) -> Result<Self> {
        let fail = |e| Error::io("open the workspace", path, e);
        let path = path.canonicalize().map_err(fail)?;
        let root = Dir::open_ambient_dir(&path, ambient_authority()).map_err(fail)?;
        let mut inside = Vec::new();
        let mut state_ids = Vec::new();
        // A place that is a link is state under its own name too: whoever removed the link could
        // put something else there.
        let named = state.iter().map(|place| by_name(place));
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
            // By identity also where no reply could spell the name.
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
        let git_obeys = protected.name_of(".git").is_some();
        let repositories = Mutex::default();
        Ok(Self { repositories, git_obeys, root, path, state: inside, state_ids, protected })
    }

    /// Whether the folder that is open is still the one under that path.
    pub fn is_current(&self) -> bool {
        let there = Dir::open_ambient_dir(&self.path, ambient_authority());
        match (there.and_then(|dir| dir.dir_metadata()), self.root.dir_metadata()) {
            (Ok(there), Ok(here)) => (there.dev(), there.ino()) == (here.dev(), here.ino()),
            _ => false,
        }
    }

    /// The names that only the person may write, as they wrote them.
    pub fn protected_names(&self) -> impl Iterator<Item = &str> {
        self.protected.names()
    }

    /// The root's canonical path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The workspace without any changes that were not made.
    pub fn as_is(&self) -> Overlay<'_> {
        Overlay::new(self)
    }

    /// Reads a regular file, at most its first `limit` bytes. Never blocks.
    pub fn read(&self, path: &RelPath, limit: u64) -> Result<Contents, Failure> {
        self.as_is().read(path, limit)
    }

    /// Lists every file that is not ignored.
    pub fn walk(&self) -> Result<Walk> {
        walk::walk(self, None, None)
    }

    /// Lists every file that holds secrets by its nature, also where it is ignored among others.
    pub fn walk_for_secrets(&self) -> Result<Walk> {
        walk::walk(self, None, Some(secrets::is_secret_text_file))
    }

    /// Counts what is in the folders that a walk left out, up to a bound, and looks at which folders git
    /// tracks files in, of those that may be build products.
    pub fn count_ignored(&self, walk: &mut Walk) {
        walk::count(self, walk);
    }
}

/// Fails where a line of the new content stands for others that the file would lose.
pub(crate) fn nothing_left_out(path: &RelPath, new: &[u8], old: &[u8]) -> Result<(), Failure> {
    let Ok(new) = std::str::from_utf8(new) else { return Ok(()) };
    let Some((_, line, text)) = elision::left_out([(new, old)], old, path) else { return Ok(()) };
    let instead = "Send all of the file, or an edit of the lines that change (where it is meant as it is, write it with a command)";
    Err(lines_left_out(path, &format!("Line {line} of the new content"), text, instead))
}

/// What is said where `which` line, of this text, stands for others that the file at `path` would lose;
/// `instead`: what to do.
fn lines_left_out(path: &RelPath, which: &str, text: &str, instead: &str) -> Failure {
    let loses = elision::loses(text, path.as_str(), instead);
    Failure::execution(format!("{which}, `{}`, {loses}", visible_line(text)))
        .as_a(Mistake::LinesLeftOut)
}

/// Fails where a file of this size is too large to be edited.
pub(crate) fn editable(path: &RelPath, size: u64) -> Result<(), Failure> {
    if size <= EDIT_LIMIT {
        return Ok(());
    }
    Err(Failure::execution(format!(
        "'{path}' is {size} bytes long; files up to {EDIT_LIMIT} bytes can be edited"
    )))
}

fn regular<'a>(path: &RelPath, found: &'a Metadata) -> Result<&'a Metadata, Failure> {
    if found.is_file() {
        Ok(found)
    } else if found.is_dir() {
        Err(is_folder(path))
    } else {
        Err(Failure::rejected(format!("'{path}' is not a regular file")))
    }
}

/// The first bytes of a regular file, and its size.
fn read_up_to(
    path: &RelPath,
    folder: &Dir,
    name: &str,
    limit: u64,
) -> Result<(Vec<u8>, u64), Failure> {
    let (file, size) = open_to_read(path, folder, name)?;
    // A sparse file may claim more than there is memory.
    let expected = size.min(limit).min(1 << 20);
    let mut bytes = Vec::with_capacity(usize::try_from(expected).unwrap_or_default());
    let read = file.take(limit).read_to_end(&mut bytes);
    read.map_err(|e| failed("read", path, &e))?;
    let size = size.max(bytes.len() as u64);
    Ok((bytes, size))
}

/// Opens what stands in a folder under a name, if that is a regular file; tells its size. Never blocks.
fn open_to_read(path: &RelPath, folder: &Dir, name: &str) -> Result<(File, u64), Failure> {
    let opened = open_to_look(folder, OsStr::new(name));
    let (file, found) = opened.map_err(|e| failed("read", path, &e))?;
    // What stands there now need not be what was looked at before.
    let size = regular(path, &found)?.len();
    Ok((file, size))
}

/// Opens what stands in a folder under a name, if that is a regular file. Never blocks.
fn open_regular(folder: &Dir, name: &OsStr) -> io::Result<File> {
    let (file, found) = open_to_look(folder, name)?;
    if found.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

/// Opens what stands in a folder under a name, whatever it is but a link. Never blocks.
fn open_to_look(folder: &Dir, name: &OsStr) -> io::Result<(File, Metadata)> {
    let mut options = OpenOptions::new();
    options.read(true).follow(FollowSymlinks::No);
    without_blocking(&mut options);
    let file = folder.open_with(name, &options)?;
    let found = file.metadata()?;
    Ok((file, found))
}

/// Opening a FIFO for reading would wait for a writer.
fn without_blocking(options: &mut OpenOptions) {
    options.custom_flags(libc::O_NONBLOCK);
}

/// Makes the entries of a folder durable; its handle itself cannot be synced.
fn sync(folder: &Dir) -> io::Result<()> {
    folder.open(".")?.sync_all()
}

/// The canonical form of a path that may not exist: of its deepest ancestor that does, and the
/// rest as it is.
fn canonical(path: &Path) -> PathBuf {
    match (path.canonicalize(), path.parent(), path.file_name()) {
        (Ok(path), _, _) => path,
        (Err(_), Some(parent), Some(name)) => canonical(parent).join(name),
        _ => path.to_owned(),
    }
}

/// A path as it is named, in the canonical form of the folder that holds it.
fn by_name(path: &Path) -> PathBuf {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => canonical(parent).join(name),
        _ => canonical(path),
    }
}
