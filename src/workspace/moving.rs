//! Giving a file or a folder another name: planned first, so that the journal can note it, and then one
//! rename that replaces nothing.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io;
use std::ops::ControlFlow;

use cap_fs_ext::MetadataExt;

use super::list::{EntryFilter, Visited};
use super::locate::{DiskLocation, FinalLink, LocatedEntry, Location, failed, is_own_state};
use super::overlay::Overlay;
use super::plan::{digest, make_folders, not_durable};
use super::repository::obeyed;
use super::{Workspace, sync};
use crate::atomic::rename_new;
use crate::protocol::{
    Detail, Digest, Failure, FailureKind, Look, Mistake, MoveEffect, MoveLook, RelPath,
};
use crate::settings::is_repository;
use crate::text::visible_line;

/// A folder of more files is not moved: each is looked at before.
pub const MOVED_FILES: usize = 5_000;

/// A move, ready to be made.
pub struct MovePlan {
    asked: (RelPath, RelPath),
    from: DiskLocation,
    to: DiskLocation,
    effect: MoveEffect,
    /// Whether it is a folder.
    pub is_folder: bool,
}

/// What lies below a folder that is to be moved.
pub(super) struct FolderContents {
    /// By the rest of their paths.
    pub(super) files: Vec<(RelPath, u64)>,
    pub(super) folders: Vec<RelPath>,
    /// Why it cannot be moved.
    against: Option<String>,
    /// Of all there is, how it is known again.
    pub(super) digest: Digest,
}

impl Workspace {
    /// Plans to move what stands at `path`, or a link itself, to where nothing stands; from or to a
    /// protected name, and with one below, only where the person permits it.
    ///
    /// # Errors
    /// It cannot be moved there: why.
    pub fn plan_move(
        &self,
        path: &RelPath,
        to: &RelPath,
        permit: bool,
    ) -> Result<MovePlan, Failure> {
        let [from, target] = self.as_is().ends(path, to, permit)?;
        let (from, target) = (from.on_disk(path)?, target.on_disk(to)?);
        let Some(found) = &from.found else { return Err(self.as_is().nothing_at(path)) };
        let is_folder = found.is_dir();
        let mut files = None;
        if is_folder {
            let below = self.below(&from.real)?;
            if let Some(why) = below.against {
                return Err(Failure::rejected(format!("'{path}' is not moved: {why}")));
            }
            if !permit {
                let all = below.files.iter().map(|(rest, _)| rest).chain(&below.folders);
                for rest in all {
                    self.refuse_protected(path, &joined(&from.real, rest)?)?;
                }
                if self.git_obeys_below(&below, [Some(&from.real), Some(&target.real)]) {
                    return Err(obeyed(path, path.as_str()));
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
        Ok(MovePlan { asked: (path.clone(), to.clone()), from, to: target, effect, is_folder })
    }

    pub(super) fn below(&self, real: &RelPath) -> Result<FolderContents, Failure> {
        let (folder, prefix) = self.open_folder(Some(real))?;
        let (mut files, mut folders, mut against) = (Vec::new(), Vec::new(), None);
        let mut all = String::new();
        self.visit_below(&folder, &prefix, EntryFilter::All, &mut |visited| {
            let (path, size) = match &visited {
                Visited::File(file) => (file.path, Some(file.size)),
                Visited::Folder(path) => (*path, None),
                Visited::OwnState => {
                    against = Some("deaddrop's own state lies in it".to_owned());
                    return ControlFlow::Break(());
                }
                Visited::Unreadable(path) => {
                    against = Some(format!("'{}' in it cannot be looked at", visible_line(path)));
                    return ControlFlow::Break(());
                }
            };
            let rest = path.get(prefix.len()..).unwrap_or_default();
            let Some(rest) = RelPath::parse(rest).ok().filter(|parsed| parsed.as_str() == rest) else {
                against = Some(format!("'{}' in it has a name that no path can say; RUN_COMMAND with mv moves it", visible_line(path)));
                return ControlFlow::Break(());
            };
            all.push_str(&format!("{rest}\0{size:?}\0"));
            match size {
                Some(size) => files.push((rest, size)),
                None => folders.push(rest),
            }
            if files.len() + folders.len() > MOVED_FILES {
                against = Some(format!("there are more than {MOVED_FILES} files and folders in it, and each is looked at before; RUN_COMMAND with mv moves it"));
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        let number = folder.dir_metadata().map_err(|e| failed("look at", real, &e))?.ino();
        let digest = Digest::of_link(format!("{number}\0{all}").as_bytes());
        Ok(FolderContents { files, folders, against, digest })
    }

    /// Whether git obeys something of what is moved from one folder to another.
    fn git_obeys_below(&self, below: &FolderContents, ends: [Option<&RelPath>; 2]) -> bool {
        let files = ends
            .into_iter()
            .flatten()
            .flat_map(|end| below.files.iter().map(move |(rest, _)| format!("{end}/{rest}")));
        self.git_obeys && (below.holds_repository() || self.git_names_one(files))
    }

    fn is_protected(&self, path: &RelPath) -> bool {
        self.protected.name_in(path).is_some()
    }

    /// What stands at a real path: its number, and its digest if it is no folder.
    fn identity(&self, real: &RelPath) -> Result<Option<(u64, Option<Digest>)>, Failure> {
        let spot = match self.locate(real, FinalLink::Keep) {
            // A folder on the way is gone, or is none any more.
            Err(failure) if failure.kind == FailureKind::Execution => return Ok(None),
            spot => spot?,
        };
        let Some(found) = &spot.found else { return Ok(None) };
        let digest =
            if found.is_dir() { None } else { digest(real, &spot.folder, &spot.name, found)? };
        Ok(Some((found.ino(), digest)))
    }

    /// Whether a move was made; None where what stands there tells neither.
    ///
    /// # Errors
    /// That cannot be looked at.
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
    /// Whether a folder in it, or the folder itself, is one that git could take for a repository.
    fn holds_repository(&self) -> bool {
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
    /// Where something is moved from and to: it stands at the one, and may
    /// stand at the other.
    fn ends(&self, path: &RelPath, to: &RelPath, permit: bool) -> Result<[Location; 2], Failure> {
        let from = self.resolve_for_write(path, FinalLink::Keep, permit)?;
        if from.found.is_none() {
            return Err(self.nothing_at(path));
        }
        let target = self
            .resolve_for_write(to, FinalLink::Keep, permit)
            .map_err(|failure| is_to_be_whole(failure, path, to))?;
        // A link to a folder is one to whoever names it.
        let stands = target.found.as_ref().map(|_| self.leads_to_folder(to));
        may_move([path, to], [&from.real, &target.real], stands)?;
        let is_in =
            |state: &&RelPath| [&from, &target].into_iter().any(|end| state.is_within(&end.real));
        match self.workspace.state.iter().find(is_in) {
            None => Ok([from, target]),
            Some(state) => Err(Failure::rejected(format!(
                "'{path}' is not moved to '{to}': '{state}' is part of deaddrop's own state"
            ))),
        }
    }

    /// What can be told of a move before it is made; what is below a folder is as on disk.
    pub(super) fn look_at_move(&self, path: &RelPath, to: &RelPath) -> Look {
        let workspace = self.workspace;
        let resolved = |path: &RelPath| {
            let location = self.resolve(path, FinalLink::Keep);
            // Nobody can approve access to deaddrop's own state.
            let is_own = location.as_ref().is_err_and(is_own_state);
            (location.ok(), is_own)
        };
        let ((target, to_own), (from, of_own)) = (resolved(to), resolved(path));
        let is_obeyed =
            [&target, &from].into_iter().flatten().any(|location| self.is_obeyed(location));
        let mut moved =
            MoveLook { to: target.map(|location| location.real), ..MoveLook::default() };
        let (mut real, mut size, mut inside) = (None, None, false);
        if let Some(from) = from {
            if let Some(LocatedEntry::OnDisk(found)) = &from.found
                && found.is_dir()
                && let Ok(below) = workspace.below(&from.real)
            {
                let all = below.files.iter().map(|(rest, _)| rest).chain(&below.folders);
                inside = all.into_iter().any(|rest| workspace.is_protected(rest))
                    || workspace.git_obeys_below(&below, [Some(&from.real), moved.to.as_ref()]);
                moved.files = below.files;
            }
            size = self.size_at(&from);
            real = Some(from.real);
        }
        let ends = [Some(path), Some(to), real.as_ref(), moved.to.as_ref()];
        let named = inside
            || is_obeyed
            || ends.into_iter().flatten().any(|path| workspace.is_protected(path));
        let protected = named && !to_own && !of_own;
        Look { real, size, protected, moved: Some(Box::new(moved)) }
    }

    /// Moves a file as [`Workspace::plan_move`] would. None where what would be moved cannot be held
    /// in memory: a folder, a link, a large file.
    ///
    /// # Errors
    /// It cannot be moved there: why.
    pub fn rename(
        &mut self,
        path: &RelPath,
        to: &RelPath,
        permit: bool,
    ) -> Result<Option<Detail>, Failure> {
        let [from, target] = self.ends(path, to, permit)?;
        let (real, target) = (from.real.clone(), target.real);
        let Some(bytes) = self.bytes_in_memory(path, &from)? else { return Ok(None) };
        self.put(&real, None);
        self.put(&target, Some(bytes));
        Ok(Some(Detail::Moved { path: real, to: target, files: None }))
    }
}

impl MovePlan {
    /// What will be done.
    pub fn effect(&self) -> &MoveEffect {
        &self.effect
    }

    /// Does it.
    ///
    /// # Errors
    /// It was not done, or is not known to be on disk: why.
    pub fn execute(self) -> Result<Detail, Failure> {
        let Self { asked: (path, to), from, to: target, effect, .. } = self;
        let fail = |e: io::Error| match e.kind() {
            io::ErrorKind::AlreadyExists => exists(&path, &to, false),
            io::ErrorKind::CrossesDevices => Failure::execution(format!(
                "Cannot move '{path}' to '{to}': that lies on another file system; RUN_COMMAND with mv copies it there"
            )),
            _ => failed("move", &path, &e),
        };
        let folder = make_folders(target.folder, &target.missing).map_err(fail)?;
        let (name, new) = (OsStr::new(&from.name), OsStr::new(&target.name));
        rename_new(&from.folder, name, &folder, new).map_err(fail)?;
        let moved = folder.symlink_metadata(&target.name).map(|found| found.ino());
        if moved.as_ref().is_ok_and(|inode| *inode != effect.inode) {
            // Somebody put something else there after it was looked at, which nobody agreed to.
            let back = rename_new(&folder, new, &from.folder, name);
            let where_now =
                if back.is_ok() { "it was put back" } else { "it could not be put back" };
            return Err(Failure::execution(format!(
                "'{path}' was replaced by something else while it was moved to '{to}', and {where_now}: look at both"
            )));
        }
        sync(&folder)
            .and_then(|()| sync(&from.folder))
            .map_err(|e| not_durable("moved", &path, &e))?;
        Ok(effect.detail)
    }
}

/// Whether something may stand at its new place, as far as the places tell; `stands`: something does
/// already, and whether that is a folder.
fn may_move(
    [path, to]: [&RelPath; 2],
    [from, target]: [&RelPath; 2],
    stands: Option<bool>,
) -> Result<(), Failure> {
    if from == target {
        return Err(Failure::execution(format!("'{path}' is '{to}' already: nothing was moved")));
    }
    if target.is_within(from) {
        return Err(Failure::execution(format!("'{path}' cannot be moved into itself, to '{to}'")));
    }
    match stands {
        Some(is_folder) => Err(exists(path, to, is_folder)),
        None => Ok(()),
    }
}

fn exists(path: &RelPath, to: &RelPath, is_folder: bool) -> Failure {
    Failure::execution(if is_folder {
        format!(
            "'{to}' already exists and is a folder: give the whole new name, as in to=\"{to}/{}\"",
            path.name()
        )
    } else {
        format!(
            "'{to}' already exists, and nothing is replaced by a move: DELETE_FILE it first, or name another place"
        )
    })
}

/// A link to a folder that has no name of its own is a folder that stands there.
fn is_to_be_whole(failure: Failure, path: &RelPath, to: &RelPath) -> Failure {
    let is_folder = failure.mistake == Some(Mistake::FolderNotFile);
    if is_folder { exists(path, to, true) } else { failure }
}

fn joined(folder: &RelPath, rest: &RelPath) -> Result<RelPath, Failure> {
    Ok(RelPath::parse(&format!("{folder}/{rest}"))?)
}
