//! Resolves a path to a handle on its parent folder, without ever leaving the workspace.
//!
//! Each component is opened relative to the handle of the previous component, without following links. If a component
//! is a link, its target is resolved in the same way; `..` returns to a handle that is already open. No path is checked
//! first and used later, so replacing a folder by a link in between cannot lead outside the workspace.

use std::collections::VecDeque;
use std::io;
use std::path::Component;
use std::sync::Arc;

use cap_fs_ext::{DirExt, MetadataExt};
use cap_std::fs::{Dir, Metadata};

use super::Workspace;
use super::overlay::{Cover, Overlay};
use super::process;
use crate::protocol::{Failure, FailureKind, Mistake, PathFault, RelPath};

/// The most links that are followed, as in Linux.
const LINK_LIMIT: usize = 40;

/// What to do if the last component is a link.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FinalLink {
    /// Follow the link.
    Follow,
    /// Use the link itself.
    Keep,
}

/// A resolved path on disk.
pub(super) struct DiskLocation {
    /// The deepest existing folder of the path.
    pub(super) folder: Arc<Dir>,
    /// Folders below `folder` that do not exist yet.
    pub(super) missing: Vec<String>,
    /// The last component of the path.
    pub(super) name: String,
    /// The path relative to the workspace's root, with links resolved.
    pub(super) real: RelPath,
    /// The metadata of the entry, if it exists.
    pub(super) found: Option<Metadata>,
}

/// A resolved path, possibly in an overlay.
pub(super) struct PathLocation {
    /// The existing folders of the path, the root first; None for a folder that is only in the overlay.
    pub(super) folders: Vec<Option<Arc<Dir>>>,
    missing: Vec<String>,
    name: String,
    pub(super) real: RelPath,
    pub(super) found: Option<LocatedEntry>,
}

/// The result of resolving a path to its end.
pub(super) enum Resolution {
    /// A name in a folder.
    At(Box<PathLocation>),
    /// A folder that a link leads to: the names from the root, with links resolved.
    Folder(Vec<String>),
}

/// What exists at a resolved path.
pub(super) enum LocatedEntry {
    /// An entry on disk.
    OnDisk(Metadata),
    /// A file that the overlay contains.
    File,
    /// A folder that exists only in the overlay.
    Folder,
}

impl LocatedEntry {
    pub(super) fn is_folder(&self) -> bool {
        match self {
            Self::OnDisk(found) => found.is_dir(),
            Self::File => false,
            Self::Folder => true,
        }
    }
}

impl PathLocation {
    /// The deepest existing folder, and the last component. Fails if the folder exists only in the overlay.
    pub(super) fn place(&self, path: &RelPath) -> Result<(&Dir, &str), Failure> {
        let folder = self.folders.last().and_then(Option::as_deref);
        Ok((folder.ok_or_else(|| not_found(path))?, &self.name))
    }

    /// Converts to a location on disk; fails if the location exists only in the overlay.
    pub(super) fn on_disk(self, path: &RelPath) -> Result<DiskLocation, Failure> {
        let Self { folders, missing, name, real, found } = self;
        let found = match found {
            None => None,
            Some(LocatedEntry::OnDisk(found)) => Some(found),
            Some(LocatedEntry::File | LocatedEntry::Folder) => return Err(not_found(path)),
        };
        let folder = folders.into_iter().next_back().flatten().ok_or_else(|| not_found(path))?;
        Ok(DiskLocation { folder, missing, name, real, found })
    }
}

impl Workspace {
    /// Resolves `path` on disk.
    pub(super) fn locate(&self, path: &RelPath, last: FinalLink) -> Result<DiskLocation, Failure> {
        self.as_is().resolve(path, last)?.on_disk(path)
    }

    /// Refuses writes to protected names. Checks both `path` as requested and the resolved path.
    pub(super) fn refuse_protected(&self, path: &RelPath, real: &RelPath) -> Result<(), Failure> {
        // Nobody can approve a change of deaddrop's own state.
        if self.is_in_state(path) {
            return Err(own_state(path));
        }
        self.protected.refuse(path, real)
    }

    fn arrived(
        &self,
        path: &RelPath,
        parents: Vec<(String, Option<Arc<Dir>>)>,
        missing: Vec<String>,
        name: String,
        found: Option<LocatedEntry>,
    ) -> Result<PathLocation, Failure> {
        let names = parents.iter().map(|(name, _)| name).chain(&missing).chain([&name]);
        let real = names.map(String::as_str).collect::<Vec<_>>().join("/");
        // The target of a link can contain names that no reply can express.
        let name_of = RelPath::parse(&real)?;
        if name_of.as_str() != real {
            return Err(Failure::rejected(format!(
                "'{path}' leads to a name that no path can express: '{}'",
                crate::text::visible_line(&real)
            )));
        }
        let real = name_of;
        if self.is_in_state(&real) {
            return Err(own_state(path));
        }
        if let Some(LocatedEntry::OnDisk(found)) = &found {
            self.refuse_state(found, path)?;
        }
        let root = Some(Arc::clone(&self.root));
        let folders = std::iter::once(root).chain(parents.into_iter().map(|(_, dir)| dir));
        Ok(PathLocation { folders: folders.collect(), missing, name, real, found })
    }

    /// Whether a resolved path is part of deaddrop's own state.
    pub(super) fn is_in_state(&self, real: &RelPath) -> bool {
        self.state.iter().any(|own| real.is_within(own))
    }

    /// Refuses access to deaddrop's own state, whatever name was used to reach it.
    fn refuse_state(&self, found: &Metadata, path: &RelPath) -> Result<(), Failure> {
        let id = (found.dev(), found.ino());
        if self.state_ids.contains(&id) { Err(own_state(path)) } else { Ok(()) }
    }

    /// Like [`Self::refuse_state`] for an opened folder; also refuses this process's own folders in `/proc`.
    pub(super) fn refuse_opened(
        &self,
        folder: &Dir,
        name: &str,
        found: &Metadata,
        path: &RelPath,
    ) -> Result<(), Failure> {
        if process::is_own(folder, name) {
            Err(own_state(path))
        } else {
            self.refuse_state(found, path)
        }
    }
}

impl Overlay<'_> {
    /// Resolves `path` in the overlay.
    pub(super) fn resolve(&self, path: &RelPath, last: FinalLink) -> Result<PathLocation, Failure> {
        match self.walk_to(path, last)? {
            Resolution::At(location) => Ok(*location),
            Resolution::Folder(_) => Err(is_folder(path)),
        }
    }

    /// Resolves `path` for a write. A path with a protected name is refused unless the person permits it (`permit`).
    pub(super) fn resolve_for_write(
        &self,
        path: &RelPath,
        last: FinalLink,
        permit: bool,
    ) -> Result<PathLocation, Failure> {
        if !permit {
            self.workspace.refuse_protected(path, path)?;
        }
        let location = self.resolve(path, last)?;
        if !permit {
            self.workspace.refuse_protected(path, &location.real)?;
            self.refuse_git_configuration(path, &location)?;
        }
        Ok(location)
    }

    /// Resolves `path` component by component.
    pub(super) fn walk_to(&self, path: &RelPath, last: FinalLink) -> Result<Resolution, Failure> {
        let workspace = self.workspace;
        let arrived = |location: Result<PathLocation, Failure>| {
            location.map(|location| Resolution::At(Box::new(location)))
        };
        let mut todo: VecDeque<String> = path.components().map(str::to_owned).collect();
        let mut parents: Vec<(String, Option<Arc<Dir>>)> = Vec::new();
        let mut links = 0;
        while let Some(name) = todo.pop_front() {
            if name == ".." {
                parents.pop().ok_or_else(|| outside(path))?;
                continue;
            }
            let here = parents.last().map_or(Some(&*workspace.root), |(_, dir)| dir.as_deref());
            let at_end = todo.is_empty();
            let cover = self.cover(|| joined(&parents, &name));
            let Some(found) =
                inspect(here, &name, cover).map_err(|e| failed("inspect", path, &e))?
            else {
                let mut missing: Vec<String> = std::iter::once(name).chain(todo).collect();
                if missing.iter().any(|part| part == "..") {
                    return Err(not_found(path));
                }
                let name = missing.pop().unwrap_or_default();
                return arrived(workspace.arrived(path, parents, missing, name, None));
            };
            let (LocatedEntry::OnDisk(found), Some(here)) = (&found, here) else {
                match found {
                    _ if at_end => {
                        return arrived(workspace.arrived(
                            path,
                            parents,
                            Vec::new(),
                            name,
                            Some(found),
                        ));
                    }
                    LocatedEntry::Folder => parents.push((name, None)),
                    _ => return Err(no_folder(path, &name)),
                }
                continue;
            };
            if found.is_symlink() && !(at_end && last == FinalLink::Keep) {
                links += 1;
                if links > LINK_LIMIT {
                    return Err(Failure::rejected(format!(
                        "Path runs in a circle of links: '{path}'"
                    )));
                }
                let target = here
                    .read_link_contents(&name)
                    .map_err(|e| failed("read the link", path, &e))?;
                let inside = match target.strip_prefix(&workspace.path) {
                    Ok(inside) => {
                        parents.clear();
                        inside
                    }
                    Err(_) => &target,
                };
                for part in inside.components().rev() {
                    match part {
                        Component::Normal(part) => {
                            let part = part.to_str().ok_or_else(|| {
                                Failure::rejected(format!(
                                    "'{path}' leads through a link to a name that is not UTF-8"
                                ))
                            })?;
                            todo.push_front(part.to_owned());
                        }
                        Component::ParentDir => todo.push_front("..".to_owned()),
                        Component::CurDir => {}
                        Component::RootDir | Component::Prefix(_) => return Err(outside(path)),
                    }
                }
            } else if at_end {
                let found = LocatedEntry::OnDisk(found.clone());
                return arrived(workspace.arrived(path, parents, Vec::new(), name, Some(found)));
            } else if found.is_dir() {
                let dir = here.open_dir_nofollow(&name).map_err(|e| failed("open", path, &e))?;
                let opened = dir.dir_metadata().map_err(|e| failed("look at", path, &e))?;
                workspace.refuse_opened(&dir, &name, &opened, path)?;
                parents.push((name, Some(Arc::new(dir))));
            } else {
                return Err(no_folder(path, &name));
            }
        }
        // Only a path whose last component is a link to a folder gets here.
        Ok(Resolution::Folder(parents.into_iter().map(|(name, _)| name).collect()))
    }
}

/// The entry `name` in the folder `here`, as seen through the overlay's `cover`.
fn inspect(
    here: Option<&Dir>,
    name: &str,
    cover: Option<Cover>,
) -> io::Result<Option<LocatedEntry>> {
    let on_disk = match (here, cover) {
        (_, Some(Cover::File)) => return Ok(Some(LocatedEntry::File)),
        (_, Some(Cover::Gone)) | (None, None) => return Ok(None),
        (None, Some(Cover::Folder)) => return Ok(Some(LocatedEntry::Folder)),
        (Some(here), _) => match here.symlink_metadata(name) {
            Ok(found) => Some(found),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => return Err(e),
        },
    };
    Ok(match (on_disk, cover) {
        // The overlay has replaced whatever existed here on disk.
        (on_disk, Some(Cover::Folder)) if !on_disk.as_ref().is_some_and(Metadata::is_dir) => {
            Some(LocatedEntry::Folder)
        }
        (on_disk, _) => on_disk.map(LocatedEntry::OnDisk),
    })
}

fn joined(parents: &[(String, Option<Arc<Dir>>)], name: &str) -> String {
    let names = parents.iter().map(|(name, _)| name.as_str()).chain([name]);
    names.collect::<Vec<_>>().join("/")
}

/// The error for a path that leads outside the workspace.
pub(super) fn outside(path: &RelPath) -> Failure {
    Failure::rejected(PathFault::Outside(path.to_string()).to_string()).as_a(Mistake::PathRefused)
}

pub(super) fn own_state(path: &RelPath) -> Failure {
    Failure::rejected(format!("Path is part of deaddrop's own state: '{path}'"))
        .as_a(Mistake::OwnState)
}

/// Whether a failure says that the path is part of deaddrop's own state.
pub(super) fn is_own_state(failure: &Failure) -> bool {
    failure.mistake == Some(Mistake::OwnState)
}

pub(crate) fn not_found(path: &RelPath) -> Failure {
    Failure::execution(format!("File '{path}' not found")).as_a(Mistake::FileNotFound)
}

/// The error for a missing path at which either a folder or a file would have been accepted.
pub(crate) fn nothing_found(path: &RelPath) -> Failure {
    let what = if path.name().contains('.') { "File (or folder)" } else { "Folder (or file)" };
    Failure::execution(format!("{what} '{path}' not found")).as_a(Mistake::FileNotFound)
}

/// The error for creating a file that already exists. Only the operations dialect can ask for this check.
pub(crate) fn already_exists(path: &RelPath, is_folder: bool) -> Failure {
    let what = if is_folder {
        "it is a folder"
    } else {
        "editFile changes it, \"overwrite\": true replaces it"
    };
    Failure::execution(format!("File '{path}' already exists ({what})")).as_a(Mistake::FileExists)
}

pub(crate) fn is_folder(path: &RelPath) -> Failure {
    Failure::execution(format!("'{path}' is a folder, not a file")).as_a(Mistake::FolderNotFile)
}

fn no_folder(path: &RelPath, name: &str) -> Failure {
    Failure::execution(format!("'{path}' cannot be there: '{name}' is a file, not a folder"))
}

/// The error for a system call that failed while `doing` something to `path`.
pub(super) fn failed(doing: &str, path: &RelPath, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::NotFound => not_found(path),
        // These errors would also make all later operations fail.
        io::ErrorKind::StorageFull
        | io::ErrorKind::QuotaExceeded
        | io::ErrorKind::ReadOnlyFilesystem => {
            Failure::new(FailureKind::System, format!("Cannot {doing} '{path}': {error}"))
        }
        _ => Failure::execution(format!("Cannot {doing} '{path}': {error}")),
    }
}
