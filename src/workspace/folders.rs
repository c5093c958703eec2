//! Resolves paths that lead to folders. Such a path can resolve to the root, because a link may end in `..`.

use std::path::PathBuf;

use cap_fs_ext::DirExt;
use cap_std::fs::Dir;

use super::Workspace;
use super::facts::path_of;
use super::locate::{FinalLink, LocatedEntry, Resolution, failed, own_state};
use super::missing::Needed;
use super::overlay::Overlay;
use crate::protocol::{Failure, Operation, RelPath};

impl Overlay<'_> {
    /// The path of a file operation or of a command's working directory, with links resolved. None if there is no path,
    /// or if it leads to the root or cannot be resolved.
    pub fn resolved_path(&self, operation: &Operation) -> Option<RelPath> {
        let (path, last) = match operation {
            Operation::Run(run) => (run.cwd.as_ref()?, FinalLink::Follow),
            _ => path_of(operation)?,
        };
        match self.walk_to(path, last).ok()? {
            Resolution::At(location) => Some(location.real),
            Resolution::Folder(names) => RelPath::parse(&names.join("/")).ok(),
        }
    }

    /// Whether `path` leads to a folder, directly or through links.
    pub(super) fn leads_to_folder(&self, path: &RelPath) -> bool {
        match self.walk_to(path, FinalLink::Follow) {
            Ok(Resolution::Folder(_)) => true,
            Ok(Resolution::At(location)) => location.found.is_some_and(|found| found.is_folder()),
            Err(_) => false,
        }
    }
}

impl Workspace {
    /// The absolute path of a folder, without links, for use by other programs.
    pub fn folder(&self, path: &RelPath) -> Result<PathBuf, Failure> {
        let names = self.folder_names(path)?.ok_or_else(|| {
            let guess = self.as_is().guess(path, Needed::Folder);
            let guess = guess.map(|guess| format!(" (did you mean '{guess}'?)"));
            Failure::execution(format!(
                "No folder '{path}' in the workspace{}: create it first, or name one that exists",
                guess.unwrap_or_default()
            ))
        })?;
        Ok(self.path.join(names.join("/")))
    }

    /// The names from the root to a folder, with links resolved; None if nothing exists.
    fn folder_names(&self, path: &RelPath) -> Result<Option<Vec<String>>, Failure> {
        let location = match self.as_is().walk_to(path, FinalLink::Follow)? {
            Resolution::Folder(names) => return Ok(Some(names)),
            Resolution::At(location) => location,
        };
        match &location.found {
            Some(LocatedEntry::OnDisk(found)) if found.is_dir() => {
                Ok(Some(location.real.components().map(str::to_owned).collect()))
            }
            Some(_) => Err(Failure::execution(format!(
                "'{path}' is not a folder: name one, or none for the workspace's root"
            ))),
            None => Ok(None),
        }
    }

    /// Opens a folder (None: the root). Also returns its path from the root without links, with a `/` at the end; the
    /// path of the root is empty.
    pub(super) fn open_folder(&self, path: Option<&RelPath>) -> Result<(Dir, String), Failure> {
        let root = self.root.try_clone();
        let root = root.map_err(|e| Failure::execution(format!("Cannot open the root: {e}")))?;
        let Some(path) = path else { return Ok((root, String::new())) };
        let names = self.folder_names(path)?;
        let names = names.ok_or_else(|| Failure::execution(format!("No folder '{path}'")))?;
        let real = RelPath::parse(&names.join("/"));
        if real.is_ok_and(|real| self.is_in_state(&real)) {
            return Err(own_state(path));
        }
        let mut folder = root;
        for name in &names {
            folder = folder.open_dir_nofollow(name).map_err(|e| failed("open", path, &e))?;
            let opened = folder.dir_metadata().map_err(|e| failed("inspect", path, &e))?;
            self.refuse_opened(&folder, name, &opened, path)?;
        }
        Ok((folder, names.iter().map(|name| format!("{name}/")).collect()))
    }
}
