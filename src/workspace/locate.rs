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
use crate::protocol::{Failure, PathFault, RelPath};

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

impl Workspace {
    /// Finds the place that `path` names.
    pub(super) fn locate(&self, path: &RelPath, last: Last) -> Result<Spot, Failure> {
        let mut todo: VecDeque<String> = path.components().map(str::to_owned).collect();
        let mut held: Vec<(String, Dir)> = Vec::new();
        let mut links = 0;
        while let Some(name) = todo.pop_front() {
            if name == ".." {
                held.pop().ok_or_else(|| outside(path))?;
                continue;
            }
            let here = held.last().map_or(&self.root, |(_, dir)| dir);
            let at_end = todo.is_empty();
            let found = match here.symlink_metadata(&name) {
                Ok(found) => found,
                Err(e) if e.kind() == io::ErrorKind::NotFound => {
                    let mut missing: Vec<String> = std::iter::once(name).chain(todo).collect();
                    if missing.iter().any(|part| part == "..") {
                        return Err(not_found(path));
                    }
                    let name = missing.pop().unwrap_or_default();
                    return self.spot(path, held, missing, name, None);
                }
                Err(e) => return Err(failed("look at", path, &e)),
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
                let inside = match target.strip_prefix(&self.path) {
                    Ok(inside) => {
                        held.clear();
                        inside
                    }
                    Err(_) => &target,
                };
                for part in inside.components().rev() {
                    match part {
                        Component::Normal(part) => {
                            todo.push_front(part.to_string_lossy().into_owned());
                        }
                        Component::ParentDir => todo.push_front("..".to_owned()),
                        Component::CurDir => {}
                        Component::RootDir | Component::Prefix(_) => return Err(outside(path)),
                    }
                }
            } else if at_end {
                return self.spot(path, held, Vec::new(), name, Some(found));
            } else if found.is_dir() {
                let dir = here.open_dir_nofollow(&name).map_err(|e| failed("open", path, &e))?;
                let opened = dir.dir_metadata().map_err(|e| failed("look at", path, &e))?;
                self.refuse_state(&opened, path)?;
                held.push((name, dir));
            } else {
                return Err(Failure::execution(format!(
                    "'{path}' cannot be there: '{name}' is a file, not a folder"
                )));
            }
        }
        // Only a link to a folder ends here.
        Err(is_folder(path))
    }

    fn spot(
        &self,
        path: &RelPath,
        held: Vec<(String, Dir)>,
        missing: Vec<String>,
        name: String,
        found: Option<Metadata>,
    ) -> Result<Spot, Failure> {
        let names = held.iter().map(|(name, _)| name).chain(&missing).chain([&name]);
        let real = names.map(String::as_str).collect::<Vec<_>>().join("/");
        // A link's target may hold names that no reply could ask for.
        let real = RelPath::parse(&real).map_err(|fault| Failure::rejected(fault.to_string()))?;
        if self.state.iter().any(|folder| real.is_within(folder)) {
            return Err(own_state(path));
        }
        if let Some(found) = &found {
            self.refuse_state(found, path)?;
        }
        let folder = match held.into_iter().next_back() {
            Some((_, dir)) => dir,
            None => self.root.try_clone().map_err(|e| failed("open", path, &e))?,
        };
        Ok(Spot { folder, missing, name, real, found })
    }

    /// Refuses what is deaddrop's own, under whatever name it was reached.
    fn refuse_state(&self, found: &Metadata, path: &RelPath) -> Result<(), Failure> {
        let id = (found.dev(), found.ino());
        if self.state_ids.contains(&id) { Err(own_state(path)) } else { Ok(()) }
    }
}

/// The one refusal of what leads out.
pub(super) fn outside(path: &RelPath) -> Failure {
    Failure::rejected(PathFault::Outside(path.to_string()).to_string())
}

fn own_state(path: &RelPath) -> Failure {
    Failure::rejected(format!("Path is part of deaddrop's own state: '{path}'"))
}

pub(super) fn not_found(path: &RelPath) -> Failure {
    Failure::execution(format!("File '{path}' not found"))
}

pub(super) fn is_folder(path: &RelPath) -> Failure {
    Failure::execution(format!("'{path}' is a folder, not a file"))
}

/// A call of the system that failed while `doing` something to `path`.
pub(super) fn failed(doing: &str, path: &RelPath, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::NotFound => not_found(path),
        _ => Failure::execution(format!("Cannot {doing} '{path}': {error}")),
    }
}
