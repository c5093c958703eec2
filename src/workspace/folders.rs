//! Paths that lead to folders, which need no name of their own: a link may end in `..`.

use std::path::PathBuf;

use cap_fs_ext::DirExt;
use cap_std::fs::Dir;

use super::Workspace;
use super::facts::path_of;
use super::locate::{Arrival, FinalLink, LocatedEntry, failed, own_state};
use super::overlay::Overlay;
use crate::protocol::{Failure, Operation, RelPath};

impl Overlay<'_> {
    /// Where the path of a file operation leads, or that of the folder of a command, links resolved.
    /// None where there is no path, it leads to the root itself, or out of reach.
    pub fn place_of(&self, operation: &Operation) -> Option<RelPath> {
        let (path, last) = match operation {
            Operation::Run(run) => (run.cwd.as_ref()?, FinalLink::Follow),
            _ => path_of(operation)?,
        };
        match self.walk_to(path, last).ok()? {
            Arrival::At(location) => Some(location.real),
            Arrival::Folder(names) => RelPath::parse(&names.join("/")).ok(),
        }
    }

    /// Whether `path` leads to a folder, be it through a link.
    pub(super) fn leads_to_folder(&self, path: &RelPath) -> bool {
        match self.walk_to(path, FinalLink::Follow) {
            Ok(Arrival::Folder(_)) => true,
            Ok(Arrival::At(location)) => location.found.is_some_and(|found| found.is_folder()),
            Err(_) => false,
        }
    }
}

impl Workspace {
    /// The folder that `path` names, free of links: what is handed to somebody else.
    pub fn folder(&self, path: &RelPath) -> Result<PathBuf, Failure> {
        let location = match self.as_is().walk_to(path, FinalLink::Follow)? {
            Arrival::Folder(names) => return Ok(self.path.join(names.join("/"))),
            Arrival::At(location) => location,
        };
        match location.found {
            Some(LocatedEntry::OnDisk(found)) if found.is_dir() => {
                Ok(self.path.join(location.real.as_str()))
            }
            Some(_) => Err(Failure::execution(format!(
                "'{path}' is not a folder: name one, or none for the workspace's root"
            ))),
            None => {
                let meant = self.as_is().guess_folder(path);
                let meant = meant.map(|meant| format!(" (did you mean '{meant}'?)"));
                Err(Failure::execution(format!(
                    "No folder '{path}' in the workspace{}: make it first, or name one that exists",
                    meant.unwrap_or_default()
                )))
            }
        }
    }

    /// The folder that `path` names, or the root, open; and its path from the root, free of links, with a `/` at
    /// the end: that of the root is empty.
    pub(super) fn open_folder(&self, path: Option<&RelPath>) -> Result<(Dir, String), Failure> {
        let root = self.root.try_clone();
        let root = root.map_err(|e| Failure::execution(format!("Cannot open the root: {e}")))?;
        let Some(path) = path else { return Ok((root, String::new())) };
        let names = match self.as_is().walk_to(path, FinalLink::Follow)? {
            Arrival::Folder(names) => names,
            Arrival::At(location) => match &location.found {
                Some(LocatedEntry::OnDisk(found)) if found.is_dir() => {
                    location.real.components().map(str::to_owned).collect()
                }
                Some(_) => {
                    return Err(Failure::execution(format!("'{path}' is not a folder")));
                }
                None => return Err(Failure::execution(format!("No folder '{path}'"))),
            },
        };
        let real = RelPath::parse(&names.join("/"));
        if real.is_ok_and(|real| self.is_in_state(&real)) {
            return Err(own_state(path));
        }
        let mut folder = root;
        for name in &names {
            folder = folder.open_dir_nofollow(name).map_err(|e| failed("open", path, &e))?;
            let opened = folder.dir_metadata().map_err(|e| failed("look at", path, &e))?;
            self.refuse_opened(&folder, name, &opened, path)?;
        }
        Ok((folder, names.iter().map(|name| format!("{name}/")).collect()))
    }
}
