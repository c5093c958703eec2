//! The workspace: the one folder whose files replies may touch, and the ONLY toucher of them.
//!
//! Everything goes through one handle on its root, so that confinement does not depend on paths
//! staying what they were. deaddrop's own state is out of reach wherever it lies, also inside.

pub mod edit;
mod locate;
pub mod walk;

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use cap_fs_ext::{FollowSymlinks, MetadataExt, OpenOptionsFollowExt};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, Metadata, OpenOptions};

use crate::error::{Error, Result};
use crate::protocol::{Change, Detail, Existing, Failure, RelPath};
use locate::{Last, Spot, failed, is_folder, not_found};
use walk::Walk;

/// The largest file that an edit reads, in bytes.
const EDIT_LIMIT: u64 = 64 << 20;

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
}

impl Workspace {
    /// Opens the folder at `path`. `state` are the files and folders of deaddrop itself, which are
    /// never read, listed or written here; they may lie anywhere and need not exist.
    pub fn open(path: &Path, state: &[PathBuf]) -> Result<Self> {
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
        Ok(Self { root, path, state: inside, state_ids })
    }

    /// The root's canonical path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a file of `content`, or replaces the one that stands there.
    pub fn create(
        &self,
        path: &RelPath,
        content: &[u8],
        existing: Existing,
    ) -> Result<Detail, Failure> {
        let spot = self.locate(path, Last::Follow)?;
        let old = match &spot.found {
            Some(_) if existing == Existing::Fail => {
                return Err(Failure::execution(format!("File '{path}' already exists")));
            }
            found => found.as_ref().map(|found| regular(path, found)).transpose()?,
        };
        let replaced = old.is_some();
        let real = write(path, spot, content)?;
        Ok(Detail::Created { path: real, bytes: content.len() as u64, replaced })
    }

    /// Changes part of a file.
    pub fn edit(&self, path: &RelPath, change: &Change) -> Result<Detail, Failure> {
        let spot = self.locate(path, Last::Follow)?;
        let found = regular(path, spot.found.as_ref().ok_or_else(|| not_found(path))?)?;
        if found.len() > EDIT_LIMIT {
            return Err(Failure::execution(format!(
                "'{path}' is {} bytes long; files up to {EDIT_LIMIT} bytes can be edited",
                found.len()
            )));
        }
        let old = read_up_to(path, &spot, EDIT_LIMIT)?;
        let (bytes, detail) = changed(&spot.real, &old.bytes, change)?;
        write(path, spot, &bytes)?;
        Ok(detail)
    }

    /// Removes a file, or a link itself rather than what it leads to. Never a folder.
    pub fn delete(&self, path: &RelPath) -> Result<Detail, Failure> {
        let spot = self.locate(path, Last::Keep)?;
        let found = spot.found.as_ref().ok_or_else(|| not_found(path))?;
        if !found.is_symlink() {
            regular(path, found)?;
        }
        spot.folder.remove_file(&spot.name).map_err(|e| failed("delete", path, &e))?;
        sync(&spot.folder).map_err(|e| failed("sync the folder of", path, &e))?;
        Ok(Detail::Deleted { path: spot.real })
    }

    /// Reads a regular file, at most its first `limit` bytes. Never blocks.
    pub fn read(&self, path: &RelPath, limit: u64) -> Result<Contents, Failure> {
        let spot = self.locate(path, Last::Follow)?;
        regular(path, spot.found.as_ref().ok_or_else(|| not_found(path))?)?;
        read_up_to(path, &spot, limit)
    }

    /// Whether a file could be deleted, and its real path; changes nothing.
    pub fn find(&self, path: &RelPath) -> Result<RelPath, Failure> {
        let spot = self.locate(path, Last::Keep)?;
        let found = spot.found.as_ref().ok_or_else(|| not_found(path))?;
        if !found.is_symlink() {
            regular(path, found)?;
        }
        Ok(spot.real)
    }

    /// Where a file would be made, links resolved, and whether one stands there; changes nothing.
    pub fn place_for(&self, path: &RelPath) -> Result<(RelPath, bool), Failure> {
        let spot = self.locate(path, Last::Follow)?;
        if let Some(found) = &spot.found {
            regular(path, found)?;
        }
        Ok((spot.real, spot.found.is_some()))
    }

    /// Lists every file that is not ignored.
    pub fn walk(&self) -> Result<Walk> {
        walk::walk(self)
    }
}

/// What a change makes of a file's bytes, and how that is told. Pure.
pub fn changed(real: &RelPath, old: &[u8], change: &Change) -> Result<(Vec<u8>, Detail), Failure> {
    let Change::Lines { start, end, with } = change;
    match edit::replace_lines(old, *start, *end, with) {
        Ok(edited) => {
            let detail = Detail::Edited {
                path: real.clone(),
                lines: (*start, *end),
                inserted: edited.inserted,
                total: edited.total,
            };
            Ok((edited.bytes, detail))
        }
        Err(total) => Err(Failure::execution(format!(
            "Invalid line range {start}-{end}: '{real}' has {}",
            crate::text::count(total, "line")
        ))),
    }
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

fn read_up_to(path: &RelPath, spot: &Spot, limit: u64) -> Result<Contents, Failure> {
    let fail = |e: io::Error| failed("read", path, &e);
    let mut options = OpenOptions::new();
    options.read(true).follow(FollowSymlinks::No);
    without_blocking(&mut options);
    let file = spot.folder.open_with(&spot.name, &options).map_err(fail)?;
    // What stands there now need not be what was looked at before.
    let size = regular(path, &file.metadata().map_err(fail)?)?.len();
    let mut bytes = Vec::with_capacity(usize::try_from(size.min(limit)).unwrap_or_default());
    file.take(limit).read_to_end(&mut bytes).map_err(fail)?;
    let size = size.max(bytes.len() as u64);
    Ok(Contents { path: spot.real.clone(), bytes, size })
}

/// Opening a FIFO for reading would wait for a writer.
#[cfg(unix)]
fn without_blocking(options: &mut OpenOptions) {
    use cap_std::fs::OpenOptionsExt;
    options.custom_flags(libc::O_NONBLOCK);
}

#[cfg(not(unix))]
fn without_blocking(_: &mut OpenOptions) {}

/// Writes through a temporary file beside the target, which is then renamed: never in place, so
/// never through a hard link, and never half. Returns the real path.
fn write(path: &RelPath, spot: Spot, bytes: &[u8]) -> Result<RelPath, Failure> {
    let fail = |e: io::Error| failed("write", path, &e);
    let mut folder = spot.folder;
    for name in &spot.missing {
        match folder.create_dir(name) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(fail(e)),
            _ => sync(&folder).map_err(fail)?,
        }
        folder = cap_fs_ext::DirExt::open_dir_nofollow(&folder, name).map_err(fail)?;
    }
    let temporary = format!(".deaddrop-{}.tmp", uuid::Uuid::new_v4().simple());
    let written = put(&folder, &temporary, bytes, spot.found.as_ref())
        .and_then(|()| folder.rename(&temporary, &folder, &spot.name))
        .and_then(|()| sync(&folder));
    if let Err(e) = written {
        // Only what this call made; the error that counts is the first.
        let _ = folder.remove_file(&temporary);
        return Err(fail(e));
    }
    Ok(spot.real)
}

fn put(folder: &Dir, name: &str, bytes: &[u8], like: Option<&Metadata>) -> io::Result<()> {
    let mut file: File = folder.open_with(name, OpenOptions::new().write(true).create_new(true))?;
    file.write_all(bytes)?;
    if let Some(like) = like {
        keep_owner(&file, like)?;
        file.set_permissions(like.permissions())?;
    }
    file.sync_data()
}

#[cfg(unix)]
fn keep_owner(file: &File, like: &Metadata) -> io::Result<()> {
    use cap_std::fs::MetadataExt;
    let now = file.metadata()?;
    if (now.uid(), now.gid()) == (like.uid(), like.gid()) {
        return Ok(());
    }
    // Whoever may not give a file away keeps it: its content matters more.
    match std::os::unix::fs::fchown(file, Some(like.uid()), Some(like.gid())) {
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        other => other,
    }
}

#[cfg(not(unix))]
fn keep_owner(_: &File, _: &Metadata) -> io::Result<()> {
    Ok(())
}

/// Makes the entries of a folder durable; its handle itself cannot be synced.
fn sync(folder: &Dir) -> io::Result<()> {
    if cfg!(unix) { folder.open(".")?.sync_all() } else { Ok(()) }
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
