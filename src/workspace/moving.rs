//! Moves a file or a folder. A move is planned first, so that the journal can record it. It is then made by one rename
//! that replaces nothing.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io;
use std::ops::ControlFlow;

use cap_fs_ext::MetadataExt;

use super::list::{EntryFilter, Visited};
use super::locate::{DiskLocation, FinalLink, LocatedEntry, PathLocation, failed, is_own_state};
use super::overlay::Overlay;
use super::plan::{digest, make_folders, not_durable};
use super::repository::configures_git;
use super::{Workspace, sync};
use crate::atomic::rename_new;
use crate::protocol::{
    Detail, Digest, Failure, FailureKind, Mistake, MoveEffect, MoveFacts, PathFacts, RelPath,
};
use crate::settings::is_repository;
use crate::text::visible_line;

/// The most files in a folder that can be moved, because each file is inspected before the move.
pub const MOVED_FILES: usize = 5_000;

/// A move that can be executed.
pub struct MovePlan {
    requested: (RelPath, RelPath),
    from: DiskLocation,
    to: DiskLocation,
    effect: MoveEffect,
    /// Whether a folder is moved.
    pub is_folder: bool,
}

/// The files and folders below a folder, by their paths relative to it.
pub(super) struct FolderContents {
    /// The files, with their sizes.
    pub(super) files: Vec<(RelPath, u64)>,
    pub(super) folders: Vec<RelPath>,
    /// Why the folder cannot be moved.
    obstacle: Option<String>,
    /// A digest of the folder's identity and all paths and sizes.
    pub(super) digest: Digest,
}

impl Workspace {
    /// Plans to move a file, a folder, or a link itself to a path that does not exist yet. With `permit`, protected
    /// names may be moved.
    ///
    /// # Errors
    /// The move is not possible.
    pub fn plan_move(
        &self,
        path: &RelPath,
        to: &RelPath,
        permit: bool,
    ) -> Result<MovePlan, Failure> {
        let [from, target] = self.as_is().resolve_move(path, to, permit)?;
        let (from, target) = (from.on_disk(path)?, target.on_disk(to)?);
        let Some(found) = &from.found else { return Err(self.as_is().nothing_at(path)) };
        let is_folder = found.is_dir();
        let mut files = None;
        if is_folder {
            let below = self.folder_contents(&from.real)?;
            if let Some(why) = below.obstacle {
                return Err(Failure::rejected(format!("'{path}' is not moved: {why}")));
            }
            if !permit {
                let all = below.files.iter().map(|(rest, _)| rest).chain(&below.folders);
                for rest in all {
                    self.refuse_protected(path, &joined(&from.real, rest)?)?;
                }
                if self.contains_git_configuration(&below, [Some(&from.real), Some(&target.real)]) {
                    return Err(configures_git(path, path.as_str()));
                }
            }
            files = Some(below.files.len());
        }
        let detail = Detail::Moved { path: from.real.clone(), to: target.real.clone(), files };
        let effect = MoveEffect {
            from: from.real.clone(),
            to: target.real.clone(),
            inode: found.ino(),
            digest: if is_folder { None } else { digest(path, &from.folder, &from.name, found)? },
            detail,
        };
        let requested = (path.clone(), to.clone());
        Ok(MovePlan { requested, from, to: target, effect, is_folder })
    }

    /// The contents of a folder. The list is incomplete if the folder cannot be moved.
    pub(super) fn folder_contents(&self, real: &RelPath) -> Result<FolderContents, Failure> {
        let (folder, prefix) = self.open_folder(Some(real))?;
        let (mut files, mut folders, mut obstacle) = (Vec::new(), Vec::new(), None);
        let mut all = String::new();
        self.visit_below(&folder, &prefix, EntryFilter::All, &mut |visited| {
            let (path, size) = match &visited {
                Visited::File(file) => (file.path, Some(file.size)),
                Visited::Folder(path) => (*path, None),
                Visited::OwnState => {
                    obstacle = Some("it contains deaddrop's own state".to_owned());
                    return ControlFlow::Break(());
                }
                Visited::Unreadable(path) => {
                    obstacle = Some(format!("'{}' in it cannot be read", visible_line(path)));
                    return ControlFlow::Break(());
                }
            };
            let rest = path.get(prefix.len()..).unwrap_or_default();
            let Some(rest) = RelPath::parse(rest).ok().filter(|parsed| parsed.as_str() == rest) else {
                obstacle = Some(format!("'{}' in it has a path that operations cannot name; RUN_COMMAND with mv moves it", visible_line(path)));
                return ControlFlow::Break(());
            };
            all.push_str(&format!("{rest}\0{size:?}\0"));
            match size {
                Some(size) => files.push((rest, size)),
                None => folders.push(rest),
            }
            if files.len() + folders.len() > MOVED_FILES {
                obstacle = Some(format!("it contains more than {MOVED_FILES} files and folders, which are too many to check; RUN_COMMAND with mv moves it"));
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        let inode = folder.dir_metadata().map_err(|e| failed("inspect", real, &e))?.ino();
        let digest = Digest::of_link(format!("{inode}\0{all}").as_bytes());
        Ok(FolderContents { files, folders, obstacle, digest })
    }

    /// Whether a folder at one end of a move contains files that configure git.
    fn contains_git_configuration(
        &self,
        below: &FolderContents,
        ends: [Option<&RelPath>; 2],
    ) -> bool {
        let files = ends
            .into_iter()
            .flatten()
            .flat_map(|end| below.files.iter().map(move |(rest, _)| format!("{end}/{rest}")));
        self.protects_git && (below.contains_repository() || self.git_names_any(files))
    }

    pub(super) fn has_protected_name(&self, path: &RelPath) -> bool {
        self.protected.name_in(path).is_some()
    }

    /// The inode of the entry at a resolved path, and the entry's digest unless it is a folder.
    fn identity(&self, real: &RelPath) -> Result<Option<(u64, Option<Digest>)>, Failure> {
        let spot = match self.locate(real, FinalLink::Keep) {
            // A parent folder is gone or is no longer a folder.
            Err(failure) if failure.kind == FailureKind::Execution => return Ok(None),
            spot => spot?,
        };
        let Some(found) = &spot.found else { return Ok(None) };
        let digest =
            if found.is_dir() { None } else { digest(real, &spot.folder, &spot.name, found)? };
        Ok(Some((found.ino(), digest)))
    }

    /// Whether a move was made. None if the entries at the two paths do not show whether it was.
    ///
    /// # Errors
    /// The entries cannot be inspected.
    pub fn was_moved(&self, effect: &MoveEffect) -> Result<Option<bool>, Failure> {
        let is_it = |found: &Option<(u64, Option<Digest>)>| {
            found.as_ref().is_some_and(|(inode, digest)| {
                *inode == effect.inode || digest.is_some() && *digest == effect.digest
            })
        };
        let (from, to) = (self.identity(&effect.from)?, self.identity(&effect.to)?);
        Ok(match (is_it(&from), is_it(&to)) {
            (true, false) => Some(false),
            (false, true) if from.is_none() => Some(true),
            _ => None,
        })
    }
}

impl FolderContents {
    /// Whether git could treat the folder, or a folder in it, as a repository.
    fn contains_repository(&self) -> bool {
        let all = self.files.iter().map(|(rest, _)| rest).chain(&self.folders);
        let all: HashSet<String> = all.map(|rest| rest.as_str().to_lowercase()).collect();
        let folders = all.iter().filter_map(|rest| rest.strip_suffix("head"));
        let mut folders = folders.filter(|folder| folder.is_empty() || folder.ends_with('/'));
        folders.any(|folder| {
            is_repository(|name| all.contains(&format!("{folder}{}", name.to_lowercase())))
        })
    }
}

impl Overlay<'_> {
    /// Resolves both paths of a move, and checks that it is possible.
    fn resolve_move(
        &self,
        path: &RelPath,
        to: &RelPath,
        permit: bool,
    ) -> Result<[PathLocation; 2], Failure> {
        let from = self.resolve_for_write(path, FinalLink::Keep, permit)?;
        if from.found.is_none() {
            return Err(self.nothing_at(path));
        }
        let target =
            self.resolve_for_write(to, FinalLink::Keep, permit).map_err(|failure| match failure
                .mistake
            {
                // The path is a link to a folder that has no path of its own, such as the root.
                Some(Mistake::FolderNotFile) => exists(path, to, true),
                _ => failure,
            })?;
        if from.real == target.real {
            let reason = format!("'{path}' is '{to}' already: nothing was moved");
            return Err(Failure::execution(reason));
        }
        if target.real.is_within(&from.real) {
            let reason = format!("'{path}' cannot be moved into itself, to '{to}'");
            return Err(Failure::execution(reason));
        }
        if target.found.is_some() {
            // For the error message, a link to a folder counts as a folder.
            return Err(exists(path, to, self.leads_to_folder(to)));
        }
        let is_in =
            |state: &&RelPath| [&from, &target].into_iter().any(|end| state.is_within(&end.real));
        match self.workspace.state.iter().find(is_in) {
            None => Ok([from, target]),
            Some(state) => Err(Failure::rejected(format!(
                "'{path}' is not moved to '{to}': '{state}' is part of deaddrop's own state"
            ))),
        }
    }

    /// Facts about a move before it is made. The contents of a folder are read from disk.
    pub(super) fn move_facts(&self, path: &RelPath, to: &RelPath) -> PathFacts {
        let workspace = self.workspace;
        let resolved = |path: &RelPath| {
            let location = self.resolve(path, FinalLink::Keep);
            // Nobody can approve access to deaddrop's own state.
            let is_own = location.as_ref().is_err_and(is_own_state);
            (location.ok(), is_own)
        };
        let ((target, to_own), (from, of_own)) = (resolved(to), resolved(path));
        let configures_git = [&target, &from]
            .into_iter()
            .flatten()
            .any(|location| self.git_configuration_at(location).is_some());
        let mut moved =
            MoveFacts { to: target.map(|location| location.real), ..MoveFacts::default() };
        let (mut real, mut size, mut inside) = (None, None, false);
        if let Some(from) = from {
            if let Some(LocatedEntry::OnDisk(found)) = &from.found
                && found.is_dir()
                && let Ok(below) = workspace.folder_contents(&from.real)
            {
                let mut all = below.files.iter().map(|(rest, _)| rest).chain(&below.folders);
                let ends = [Some(&from.real), moved.to.as_ref()];
                inside = all.any(|rest| workspace.has_protected_name(rest))
                    || workspace.contains_git_configuration(&below, ends);
                moved.files = below.files;
            }
            size = self.size_at(&from);
            real = Some(from.real);
        }
        let ends = [Some(path), Some(to), real.as_ref(), moved.to.as_ref()];
        let needs_permit = inside
            || configures_git
            || ends.into_iter().flatten().any(|path| workspace.has_protected_name(path));
        let protected = needs_permit && !to_own && !of_own;
        PathFacts { real, size, protected, moved: Some(Box::new(moved)) }
    }

    /// Moves a file in the overlay, as [`Workspace::plan_move`] would. None for an entry that the overlay cannot
    /// contain: a folder, a link, or a file larger than [`EDIT_LIMIT`](super::EDIT_LIMIT).
    ///
    /// # Errors
    /// The move is not possible.
    pub fn rename(
        &mut self,
        path: &RelPath,
        to: &RelPath,
        permit: bool,
    ) -> Result<Option<Detail>, Failure> {
        let [from, target] = self.resolve_move(path, to, permit)?;
        let (real, target) = (from.real.clone(), target.real);
        let Some(bytes) = self.bytes_in_memory(path, &from)? else { return Ok(None) };
        self.put(&real, None);
        self.put(&target, Some(bytes));
        Ok(Some(Detail::Moved { path: real, to: target, files: None }))
    }
}

impl MovePlan {
    /// The effect, for the journal.
    pub fn effect(&self) -> &MoveEffect {
        &self.effect
    }

    /// Makes the move.
    ///
    /// # Errors
    /// The move failed, or was made but may be lost after a power failure.
    pub fn execute(self) -> Result<Detail, Failure> {
        let Self { requested: (path, to), from, to: target, effect, .. } = self;
        let fail = |e: io::Error| match e.kind() {
            io::ErrorKind::AlreadyExists => exists(&path, &to, false),
            io::ErrorKind::CrossesDevices => Failure::execution(format!(
                "Cannot move '{path}' to '{to}', which is on another file system; RUN_COMMAND with mv copies it there"
            )),
            _ => failed("move", &path, &e),
        };
        let folder = make_folders(target.folder, &target.missing).map_err(fail)?;
        let (name, new) = (OsStr::new(&from.name), OsStr::new(&target.name));
        rename_new(&from.folder, name, &folder, new).map_err(fail)?;
        let moved = folder.symlink_metadata(&target.name).map(|found| found.ino());
        if moved.as_ref().is_ok_and(|inode| *inode != effect.inode) {
            // Another entry has replaced this one since the check, so nobody agreed to this move.
            let back = rename_new(&folder, new, &from.folder, name);
            let undone =
                if back.is_ok() { "the move was undone" } else { "the move could not be undone" };
            return Err(Failure::execution(format!(
                "'{path}' was replaced while it was moved to '{to}', and {undone}: check both paths"
            )));
        }
        sync(&folder)
            .and_then(|()| sync(&from.folder))
            .map_err(|e| not_durable("moved", &path, &e))?;
        Ok(effect.detail)
    }
}

fn exists(path: &RelPath, to: &RelPath, is_folder: bool) -> Failure {
    Failure::execution(if is_folder {
        format!(
            "'{to}' already exists and is a folder: give the complete new path, as in to=\"{to}/{}\"",
            path.name()
        )
    } else {
        format!(
            "'{to}' already exists, and a move replaces nothing: DELETE_FILE it first, or name another path"
        )
    })
}

fn joined(folder: &RelPath, rest: &RelPath) -> Result<RelPath, Failure> {
    Ok(RelPath::parse(&format!("{folder}/{rest}"))?)
}
