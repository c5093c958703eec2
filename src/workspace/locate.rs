//! From a path to the handle of the folder that holds it, without ever leaving the workspace.
//!
//! Each component is opened by itself, without following links, relative to the handle of the one
//! before. A link is read and its target walked in the same way, `..` going up the handles already
//! held. So no swap of a folder for a link between a check and its use can lead out: there is no
//! path that is checked first and used later.

use std::collections::VecDeque;
use std::io;
use std::path::Component;

use cap_fs_ext::{DirExt, MetadataExt};
use cap_std::fs::{Dir, Metadata};

use super::Workspace;
use super::overlay::{Cover, Overlay};
use super::process;
use crate::protocol::{Failure, FailureKind, Mistake, PathFault, RelPath};

/// As many links as Linux follows.
const LINK_LIMIT: usize = 40;

/// What to do with a link that is the last component.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    /// Go where it leads.
    Follow,
    /// It is what is meant.
    Keep,
}

/// Where a path leads.
pub(super) struct Spot {
    /// The deepest folder on the way that exists.
    pub(super) folder: Dir,
    /// Folders that would have to be made below it.
    pub(super) missing: Vec<String>,
    /// The name within the last of them.
    pub(super) name: String,
    /// The same place from the workspace's root, free of links.
    pub(super) real: RelPath,
    /// What stands there.
    pub(super) found: Option<Metadata>,
}

/// Where a path leads, perhaps through an overlay.
pub(super) struct Way {
    /// The folders on the way that exist, the root first; None of one that is only in the overlay.
    pub(super) folders: Vec<Option<Dir>>,
    missing: Vec<String>,
    name: String,
    pub(super) real: RelPath,
    pub(super) found: Option<Found>,
}

/// Where a walk ends.
pub(super) enum Arrival {
    /// At a name in a folder.
    At(Box<Way>),
    /// In a folder that a link leads to: its names from the root, free of links.
    Folder(Vec<String>),
}

/// What stands somewhere.
pub(super) enum Found {
    /// This, on disk.
    OnDisk(Metadata),
    /// A file of the overlay.
    File,
    /// A folder that is only in the overlay.
    Folder,
}

impl Found {
    pub(super) fn is_folder(&self) -> bool {
        match self {
            Self::OnDisk(found) => found.is_dir(),
            Self::File => false,
            Self::Folder => true,
        }
    }
}

impl Way {
    /// The deepest folder on the way, and the name in it, where that is no folder of the overlay.
    pub(super) fn place(&self, path: &RelPath) -> Result<(&Dir, &str), Failure> {
        let folder = self.folders.last().and_then(Option::as_ref);
        Ok((folder.ok_or_else(|| not_found(path))?, &self.name))
    }

    /// The same without the overlay.
    pub(super) fn on_disk(self, path: &RelPath) -> Result<Spot, Failure> {
        let Self { folders, missing, name, real, found } = self;
        let found = match found {
            None => None,
            Some(Found::OnDisk(found)) => Some(found),
            Some(Found::File | Found::Folder) => return Err(not_found(path)),
        };
        let folder = folders.into_iter().next_back().flatten().ok_or_else(|| not_found(path))?;
        Ok(Spot { folder, missing, name, real, found })
    }
}

impl Workspace {
    /// Finds the place that `path` names.
    pub(super) fn locate(&self, path: &RelPath, last: Last) -> Result<Spot, Failure> {
        self.as_is().way(path, last)?.on_disk(path)
    }

    /// Refuses to write what only the person may. `path` is asked for before it is located, and the
    /// real path once that is known.
    pub(super) fn refuse_protected(&self, path: &RelPath, real: &RelPath) -> Result<(), Failure> {
        // Of deaddrop's own nobody can be asked to change it.
        if self.is_in_state(path) {
            return Err(own_state(path));
        }
        self.protected.refuse(path, real)
    }

    fn arrived(
        &self,
        path: &RelPath,
        held: Vec<(String, Option<Dir>)>,
        missing: Vec<String>,
        name: String,
        found: Option<Found>,
    ) -> Result<Way, Failure> {
        let names = held.iter().map(|(name, _)| name).chain(&missing).chain([&name]);
        let real = names.map(String::as_str).collect::<Vec<_>>().join("/");
        // A link's target may hold names that no reply could ask for.
        let name_of = RelPath::parse(&real)?;
        if name_of.as_str() != real {
            return Err(Failure::rejected(format!(
                "'{path}' leads to a name that no path can say: '{}'",
                crate::text::visible_line(&real)
            )));
        }
        let real = name_of;
        if self.is_in_state(&real) {
            return Err(own_state(path));
        }
        if let Some(Found::OnDisk(found)) = &found {
            self.refuse_state(found, path)?;
        }
        let root = self.root.try_clone().map_err(|e| failed("open", path, &e))?;
        let folders = std::iter::once(Some(root)).chain(held.into_iter().map(|(_, dir)| dir));
        Ok(Way { folders: folders.collect(), missing, name, real, found })
    }

    /// Whether a real path is one of deaddrop's own, or lies in it.
    pub(super) fn is_in_state(&self, real: &RelPath) -> bool {
        self.state.iter().any(|own| real.is_within(own))
    }

    /// Refuses what is deaddrop's own, under whatever name it was reached.
    fn refuse_state(&self, found: &Metadata, path: &RelPath) -> Result<(), Failure> {
        let id = (found.dev(), found.ino());
        if self.state_ids.contains(&id) { Err(own_state(path)) } else { Ok(()) }
    }

    /// The same of a folder that was opened, which may also be one of this process.
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
    /// Finds the place that `path` would name.
    pub(super) fn way(&self, path: &RelPath, last: Last) -> Result<Way, Failure> {
        match self.walk_to(path, last)? {
            Arrival::At(way) => Ok(*way),
            Arrival::Folder(_) => Err(is_folder(path)),
        }
    }

    /// Finds the place that `path` would name, to change something there: under a protected
    /// name only where the person permits it.
    pub(super) fn way_to_write(
        &self,
        path: &RelPath,
        last: Last,
        permit: bool,
    ) -> Result<Way, Failure> {
        if !permit {
            self.workspace.refuse_protected(path, path)?;
        }
        let way = self.way(path, last)?;
        if !permit {
            self.workspace.refuse_protected(path, &way.real)?;
            self.refuse_obeyed(path, &way)?;
        }
        Ok(way)
    }

    /// Walks along `path` to its end.
    pub(super) fn walk_to(&self, path: &RelPath, last: Last) -> Result<Arrival, Failure> {
        let workspace = self.workspace;
        let arrived = |way: Result<Way, Failure>| way.map(|way| Arrival::At(Box::new(way)));
        let mut todo: VecDeque<String> = path.components().map(str::to_owned).collect();
        let mut held: Vec<(String, Option<Dir>)> = Vec::new();
        let mut links = 0;
        while let Some(name) = todo.pop_front() {
            if name == ".." {
                held.pop().ok_or_else(|| outside(path))?;
                continue;
            }
            let here = held.last().map_or(Some(&workspace.root), |(_, dir)| dir.as_ref());
            let at_end = todo.is_empty();
            let cover = self.cover(|| joined(&held, &name));
            let Some(found) = look(here, &name, cover).map_err(|e| failed("look at", path, &e))?
            else {
                let mut missing: Vec<String> = std::iter::once(name).chain(todo).collect();
                if missing.iter().any(|part| part == "..") {
                    return Err(not_found(path));
                }
                let name = missing.pop().unwrap_or_default();
                return arrived(workspace.arrived(path, held, missing, name, None));
            };
            let (Found::OnDisk(found), Some(here)) = (&found, here) else {
                match found {
                    _ if at_end => {
                        return arrived(workspace.arrived(
                            path,
                            held,
                            Vec::new(),
                            name,
                            Some(found),
                        ));
                    }
                    Found::Folder => held.push((name, None)),
                    _ => return Err(no_folder(path, &name)),
                }
                continue;
            };
            if found.is_symlink() && !(at_end && last == Last::Keep) {
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
                        held.clear();
                        inside
                    }
                    Err(_) => &target,
                };
                for part in inside.components().rev() {
                    match part {
                        Component::Normal(part) => {
                            let part = part.to_str().ok_or_else(|| {
                                Failure::rejected(format!(
                                    "'{path}' leads through a link to a name that is no text"
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
                let found = Found::OnDisk(found.clone());
                return arrived(workspace.arrived(path, held, Vec::new(), name, Some(found)));
            } else if found.is_dir() {
                let dir = here.open_dir_nofollow(&name).map_err(|e| failed("open", path, &e))?;
                let opened = dir.dir_metadata().map_err(|e| failed("look at", path, &e))?;
                workspace.refuse_opened(&dir, &name, &opened, path)?;
                held.push((name, Some(dir)));
            } else {
                return Err(no_folder(path, &name));
            }
        }
        // Only a link to a folder ends here.
        Ok(Arrival::Folder(held.into_iter().map(|(name, _)| name).collect()))
    }
}

/// What stands under `name` in the folder `here`, for someone who sees it through `cover`.
fn look(here: Option<&Dir>, name: &str, cover: Option<Cover>) -> io::Result<Option<Found>> {
    let on_disk = match (here, cover) {
        (_, Some(Cover::File)) => return Ok(Some(Found::File)),
        (_, Some(Cover::Gone)) | (None, None) => return Ok(None),
        (None, Some(Cover::Folder)) => return Ok(Some(Found::Folder)),
        (Some(here), _) => match here.symlink_metadata(name) {
            Ok(found) => Some(found),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => return Err(e),
        },
    };
    Ok(match (on_disk, cover) {
        // What else stood there is gone, or nothing could have been made below it.
        (on_disk, Some(Cover::Folder)) if !on_disk.as_ref().is_some_and(Metadata::is_dir) => {
            Some(Found::Folder)
        }
        (on_disk, _) => on_disk.map(Found::OnDisk),
    })
}

fn joined(held: &[(String, Option<Dir>)], name: &str) -> String {
    let names = held.iter().map(|(name, _)| name.as_str()).chain([name]);
    names.collect::<Vec<_>>().join("/")
}

/// The one refusal of what leads out.
pub(super) fn outside(path: &RelPath) -> Failure {
    Failure::rejected(PathFault::Outside(path.to_string()).to_string()).as_a(Mistake::PathRefused)
}

pub(super) fn own_state(path: &RelPath) -> Failure {
    Failure::rejected(format!("Path is part of deaddrop's own state: '{path}'"))
        .as_a(Mistake::OwnState)
}

/// Whether that is why somebody cannot get there.
pub(super) fn is_own_state(failure: &Failure) -> bool {
    failure.mistake == Some(Mistake::OwnState)
}

pub(crate) fn not_found(path: &RelPath) -> Failure {
    Failure::execution(format!("File '{path}' not found")).as_a(Mistake::FileNotFound)
}

/// Said where a folder is needed, or a file is taken as well.
pub(crate) fn nothing_found(path: &RelPath) -> Failure {
    let what = if path.name().contains('.') { "File (or folder)" } else { "Folder (or file)" };
    Failure::execution(format!("{what} '{path}' not found")).as_a(Mistake::FileNotFound)
}

/// Said where a file is to be made anew: only the dialect of operations asks for that.
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

/// A call of the system that failed while `doing` something to `path`.
pub(super) fn failed(doing: &str, path: &RelPath, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::NotFound => not_found(path),
        // Whatever comes after it fares no better.
        io::ErrorKind::StorageFull
        | io::ErrorKind::QuotaExceeded
        | io::ErrorKind::ReadOnlyFilesystem => {
            Failure::new(FailureKind::System, format!("Cannot {doing} '{path}': {error}"))
        }
        _ => Failure::execution(format!("Cannot {doing} '{path}': {error}")),
    }
}
