//! Carries out an [`UndoPlan`]. Each path is checked again just before it is changed, and skipped if it is not as the
//! plan expects. The workspace itself shows which changes are done, so the work can be repeated after a hard stop.
//!
//! Each file is written to disk under a temporary name before it is renamed to its path. If there are only a few files,
//! each is synced separately; otherwise files are written in batches, and each batch is synced with its file system.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io;

use cap_std::fs::{Dir, Metadata, MetadataExt};

use super::merge::ONLY_COPY;
use super::scan::is_unreadable_mode;
use super::tree::{Identity, is_folder, is_same};
use super::{CheckpointStore, TreeChange, TreeEntry, UndoPlan};
use crate::atomic::{self, rename_new};
use crate::blobs::BlobId;
use crate::error::{Error, Result};
use crate::text::visible_line;
use crate::workspace::modes::{set_mode, without_set_ids};
use crate::workspace::names::{ancestors, shown, split, unescaped};
use crate::workspace::plan::{give_to_owner, put};
use crate::workspace::walk::detailed::FileStat;
use crate::workspace::{Workspace, sync};

/// If there are more files than this, they are synced in batches before any of them is renamed to its path.
const FEW: usize = 48;
/// The most files and about the most bytes in a batch: the disk needs room for a batch beside the current files.
const BATCH: (usize, u64) = (2000, 64 << 20);

/// The result of carrying out a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RestoreReport {
    /// What could not be restored: the path for messages, and the reason.
    pub left: Vec<(String, String)>,
    /// The indexes of the changes that were not made.
    pub skipped: BTreeSet<usize>,
    /// Those of the skipped changes whose paths have changed since the plan was made.
    pub conflicting: BTreeSet<usize>,
}

impl RestoreReport {
    /// The planned changes that were made. After a hard stop (`recovered`), this includes changes that were made before
    /// the stop and whose paths somebody has changed again since.
    pub fn changes_made(&self, planned: Vec<TreeChange>, recovered: bool) -> Vec<TreeChange> {
        let mut made = Vec::new();
        for (n, change) in planned.into_iter().enumerate() {
            let mixed = recovered && self.conflicting.contains(&n);
            if mixed || !self.skipped.contains(&n) {
                made.push(TreeChange { mixed, ..change });
            }
        }
        made
    }
}

/// Why a change was not made.
enum StepError {
    /// The path has changed since the plan was made.
    Conflict,
    /// The change is impossible, for this reason (for messages).
    Impossible(String),
    /// A file system error: the change is skipped, unless the disk failed.
    Io(io::Error),
    /// A stored content cannot be read.
    Store(Error),
}

impl From<io::Error> for StepError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

type StepResult = Result<(), StepError>;

/// A file or link written under its temporary name.
struct PreparedFile {
    change: usize,
    /// Identifies what was at the file's path, to detect changes; None if nothing was there.
    place: Option<Identity>,
}

struct PlanExecution<'a> {
    plan: &'a UndoPlan,
    store: &'a mut CheckpointStore,
    workspace: &'a Workspace,
    restored: RestoreReport,
    /// Whether to skip contents that cannot be read, instead of failing.
    skip_unreadable: bool,
    /// Whether files are synced in batches.
    batched: bool,
    prepared: Vec<PreparedFile>,
    /// The size of the prepared files in bytes.
    prepared_bytes: u64,
    /// Changed folders that are not synced yet.
    folders: BTreeSet<String>,
}

impl UndoPlan {
    /// Removes the temporary files that an earlier attempt left.
    pub fn sweep(&self, workspace: &Workspace) {
        for (n, change) in self.changes.iter().enumerate() {
            if let Ok(folder) = workspace.folder_at(split(&change.path).0) {
                let _ = folder.remove_file(self.temporary(n));
            }
        }
    }

    /// Makes the changes that are not made yet, and syncs them to disk. `again` skips contents that cannot be read;
    /// otherwise a damaged disk would block the project forever.
    ///
    /// # Errors
    /// The disk is full or fails. The call can be repeated.
    pub fn carry_out(
        &self,
        store: &mut CheckpointStore,
        workspace: &Workspace,
        again: bool,
    ) -> Result<RestoreReport> {
        let is_file =
            |change: &&TreeChange| change.after.as_ref().and_then(TreeEntry::blob).is_some();
        let mut apply = PlanExecution {
            plan: self,
            store,
            workspace,
            restored: RestoreReport::default(),
            skip_unreadable: again,
            batched: atomic::SYNCS_ALL && self.changes.iter().filter(is_file).count() > FEW,
            prepared: Vec::new(),
            prepared_bytes: 0,
            folders: BTreeSet::new(),
        };
        if let Err(e) = apply.carry_out() {
            for prepared in std::mem::take(&mut apply.prepared) {
                apply.remove_temporary(&prepared);
            }
            return Err(e);
        }
        Ok(apply.restored)
    }
}

/// Whether the entry is removed, or replaced by one of another kind.
fn is_removed_or_replaced(change: &TreeChange) -> bool {
    let sort = |what: &Option<TreeEntry>| what.as_ref().map(std::mem::discriminant);
    let is_file = |what: &Option<TreeEntry>| {
        matches!(what, Some(TreeEntry::File { .. } | TreeEntry::Link { .. }))
    };
    change.before.is_some()
        && sort(&change.before) != sort(&change.after)
        && !(is_file(&change.before) && is_file(&change.after))
}

impl PlanExecution<'_> {
    fn carry_out(&mut self) -> Result<()> {
        let plan = self.plan;
        let all = || plan.changes.iter().enumerate();
        let is_moved = |path: &String| plan.moves.values().any(|from| from == path);
        for (_, change) in all() {
            if let Some(TreeEntry::Folder { mode }) = change.before {
                // If this fails, changing the folder's entries reports the error.
                let _ = self.set_mode(&change.path, mode | 0o700);
            }
        }
        // Remove entries that block a path first. Remove all others only after everything is restored: if restoring
        // fails, they may be the only copy.
        let going = |first| {
            all()
                .rev()
                .filter(move |(_, c)| is_removed_or_replaced(c) && plan.makes_room(c) == first)
        };
        let is_file = |change: &TreeChange| !is_folder(change.before.as_ref());
        let are_gone = |first, files| {
            going(first).filter(move |(_, c)| is_file(c) == files && !(files && is_moved(&c.path)))
        };
        self.each(are_gone(true, true), Self::remove)?;
        let coming = || all().filter(|(_, change)| change.before != change.after);
        self.each(coming().filter(|(_, c)| is_folder(c.after.as_ref())), Self::make_folder)?;
        for (n, change) in coming() {
            if let Some(from) = plan.moves.get(&change.path) {
                self.step(n, change, |apply, change| apply.move_back(from, change))?;
            }
        }
        self.each(are_gone(true, false), Self::remove)?;
        for (n, change) in coming() {
            if matches!(change.after, Some(TreeEntry::File { .. } | TreeEntry::Link { .. })) {
                self.prepare_or_make_room(n, change)?;
            }
        }
        self.place_prepared()?;
        let skipped = self.restored.skipped.iter().filter_map(|n| plan.changes[*n].after.as_ref());
        let lacking: BTreeSet<BlobId> = skipped.filter_map(TreeEntry::blob).cloned().collect();
        self.each(are_gone(false, true), |apply, change| {
            let content = change.before.as_ref().and_then(TreeEntry::blob);
            match content.filter(|content| lacking.contains(*content)) {
                Some(_) => Err(StepError::Impossible(ONLY_COPY.to_owned())),
                None => apply.remove(change),
            }
        })?;
        self.each(are_gone(false, false), Self::remove)?;
        for (n, change) in all().rev() {
            let skipped = self.restored.skipped.contains(&n);
            let folder = if skipped { &change.before } else { &change.after };
            if let Some(TreeEntry::Folder { mode }) = folder {
                let set = self.set_mode(&change.path, *mode);
                self.step(n, change, |_, _| Ok(set?))?;
            }
        }
        self.sync()
    }

    /// Makes each of these changes by calling `make`.
    fn each<'c>(
        &mut self,
        mut changes: impl Iterator<Item = (usize, &'c TreeChange)>,
        make: impl Fn(&mut Self, &TreeChange) -> StepResult,
    ) -> Result<()> {
        changes.try_for_each(|(n, change)| self.step(n, change, &make))
    }

    /// Makes a change, or records why it is skipped.
    fn step(
        &mut self,
        n: usize,
        change: &TreeChange,
        make: impl FnOnce(&mut Self, &TreeChange) -> StepResult,
    ) -> Result<()> {
        if self.restored.skipped.contains(&n) {
            return Ok(());
        }
        let why = match make(self, change) {
            Ok(()) => return Ok(()),
            Err(StepError::Conflict) => {
                self.restored.conflicting.insert(n);
                "it has changed in the meantime".to_owned()
            }
            Err(StepError::Impossible(why)) => why,
            Err(StepError::Store(e)) if self.skip_unreadable => e.to_string(),
            Err(StepError::Store(e)) => return Err(e),
            Err(StepError::Io(e)) => {
                let error = Error::io("put back", change.path.as_ref(), e);
                if error.is_disk_failure() {
                    return Err(error);
                }
                error.to_string()
            }
        };
        self.restored.skipped.insert(n);
        self.restored.left.push((change.shown(), why));
        Ok(())
    }

    fn current(&mut self, change: &TreeChange) -> Result<Option<TreeEntry>, StepError> {
        self.store.inspect(self.workspace, &change.path, false).map_err(StepError::Store)
    }

    fn mark_for_sync(&mut self, change: &TreeChange) {
        self.folders.insert(split(&change.path).0.to_owned());
    }

    /// Removes a file, a link, or an empty folder.
    fn remove(&mut self, change: &TreeChange) -> StepResult {
        let now = self.current(change)?;
        let is_made = is_folder(now.as_ref()) && is_folder(change.after.as_ref());
        if now.is_none() || now == change.after || is_made {
            return Ok(());
        }
        if is_folder(now.as_ref()) && is_folder(change.before.as_ref()) {
            let (folder, name) = self.workspace.parent_of(&change.path)?;
            match folder.remove_dir(name) {
                Err(e) if e.kind() == io::ErrorKind::DirectoryNotEmpty => {
                    return Err(StepError::Impossible(self.describe_remaining(change)));
                }
                removed => removed?,
            }
        } else if now == change.before && now.is_some_and(|now| now.not_stored().is_none()) {
            let (folder, name) = self.workspace.parent_of(&change.path)?;
            folder.remove_file(name)?;
        } else {
            return Err(StepError::Conflict);
        }
        self.mark_for_sync(change);
        Ok(())
    }

    /// Why a folder is not empty. For a repository's `.git`, this includes the command that moves it back.
    fn describe_remaining(&self, change: &TreeChange) -> String {
        let names = self.workspace.folder_at(&change.path).and_then(|folder| folder.entries());
        let mut names: Vec<OsString> =
            names.into_iter().flatten().flatten().map(|entry| entry.file_name()).collect();
        names.sort_unstable();
        let Some(first) = names.first() else { return "it is not empty".to_owned() };
        if let Some(home) =
            names.iter().find(|name| *name == ".git").and(self.folder_before_move(change))
        {
            let [from, to] = [&change.path, &home].map(|path| shown(path).replace('\'', "'\\''"));
            return format!("it contains the repository's .git: `mv '{from}/.git' '{to}/.git'`");
        }
        format!("it is not empty: '{}' stays", visible_line(&first.to_string_lossy()))
    }

    /// The path from which a folder was moved here, derived from the files that are moved back there.
    fn folder_before_move(&self, change: &TreeChange) -> Option<String> {
        let below = format!("{}/", change.path);
        let changes = &self.plan.changes;
        let gone = changes.iter().filter(|c| c.after.is_none() && c.path.starts_with(&below));
        gone.filter(|gone| !is_folder(gone.before.as_ref())).find_map(|gone| {
            let rest = &gone.path[change.path.len()..];
            let home = changes.iter().find(|home| {
                home.before.is_none() && home.after == gone.before && home.path.ends_with(rest)
            })?;
            Some(home.path[..home.path.len() - rest.len()].to_owned())
        })
    }

    fn make_folder(&mut self, change: &TreeChange) -> StepResult {
        match self.current(change)? {
            Some(TreeEntry::Folder { .. }) => return Ok(()),
            Some(_) => return Err(StepError::Conflict),
            None => {}
        }
        let (folder, name) = self.workspace.parent_of(&change.path)?;
        folder.create_dir(&name)?;
        give_to_owner(&folder, name.as_os_str())?;
        self.mark_for_sync(change);
        self.set_mode(&change.path, 0o700)?;
        Ok(())
    }

    fn set_mode(&mut self, path: &str, mode: u32) -> io::Result<()> {
        let (folder, found) = self.workspace.entry(path)?;
        let name = if path.is_empty() { ".".into() } else { unescaped(split(path).1) };
        if found.is_dir() && FileStat::of(&found).mode != mode {
            set_mode(&folder, &name, mode)?;
            self.folders.insert(path.to_owned());
        }
        Ok(())
    }

    /// Renames a file whose content is not stored back to its earlier path.
    fn move_back(&mut self, from: &str, change: &TreeChange) -> StepResult {
        let was = self.plan.change(from).and_then(|planned| planned.before.as_ref());
        let is = |path: &str| {
            let now = was.and_then(|was| self.workspace.as_not_stored(path, was));
            now.is_some() && is_same(was, now.as_ref())
        };
        if self.workspace.entry(&change.path).is_ok() {
            return if is(&change.path) { Ok(()) } else { Err(StepError::Conflict) };
        }
        if !is(from) {
            return Err(StepError::Conflict);
        }
        let (folder, name) = split(from);
        let (to, new) = self.workspace.parent_of(&change.path)?;
        rename_new(&self.workspace.folder_at(folder)?, &unescaped(name), &to, &new)?;
        self.folders.insert(folder.to_owned());
        self.mark_for_sync(change);
        Ok(())
    }

    /// Prepares a file or link. If the disk is full, renames the files prepared so far to their paths, and tries again.
    fn prepare_or_make_room(&mut self, n: usize, change: &TreeChange) -> Result<()> {
        match self.step(n, change, |apply, change| apply.prepare(n, change)) {
            Err(e) if e.is_disk_full() && !self.prepared.is_empty() => {
                self.place_prepared()?;
                self.step(n, change, |apply, change| apply.prepare(n, change))?;
            }
            done => done?,
        }
        let is_much = self.prepared.len() >= BATCH.0 || self.prepared_bytes >= BATCH.1;
        if is_much || !self.batched { self.place_prepared() } else { Ok(()) }
    }

    /// Writes a file or a link under its temporary name.
    fn prepare(&mut self, n: usize, change: &TreeChange) -> StepResult {
        let place = self.workspace.parent_of(&change.path);
        // Identify the entry before reading it, so that later changes are noticed.
        let identity =
            place.as_ref().ok().and_then(|(folder, name)| identity_except_ctime(folder, name));
        let now = self.current(change)?;
        if now == change.after {
            return Ok(());
        }
        let is_free = now.is_none() && (change.before.is_none() || is_removed_or_replaced(change));
        if now != change.before && !is_free
            || now.as_ref().is_some_and(|now| now.not_stored().is_some())
        {
            return Err(StepError::Conflict);
        }
        let ((folder, name), temporary) = (place?, self.plan.temporary(n));
        let _ = folder.remove_file(&temporary);
        match (&change.after, &now) {
            (
                Some(TreeEntry::File { blob, mode, .. }),
                Some(TreeEntry::File { blob: same, .. }),
            ) if blob == same => {
                set_mode(&folder, &name, without_set_ids(*mode))?;
                let was = now.as_ref().and_then(TreeEntry::mode).unwrap_or_default();
                // The file has just become readable, and may not be the expected one.
                if is_unreadable_mode(was) && self.current(change)? != change.after {
                    set_mode(&folder, &name, was)?;
                    return Err(StepError::Conflict);
                }
                // Syncing the folder does not sync a file's mode.
                self.batched |= atomic::SYNCS_ALL;
                self.mark_for_sync(change);
                return Ok(());
            }
            (Some(TreeEntry::File { blob, mode, size }), _) => {
                let bytes = self.store.blobs.read(blob).map_err(StepError::Store)?;
                let gone =
                    || StepError::Impossible("its earlier content is no longer stored".to_owned());
                let bytes = bytes.ok_or_else(gone)?;
                let like = folder.symlink_metadata(&name).ok().filter(Metadata::is_file);
                put(&folder, &temporary, &bytes, like.as_ref(), Some(*mode), !self.batched)?;
                self.prepared_bytes += size;
            }
            (Some(TreeEntry::Link { target }), _) => link(&folder, target, &temporary)?,
            _ => return Ok(()),
        }
        self.prepared.push(PreparedFile { change: n, place: identity });
        Ok(())
    }

    /// Renames the prepared files to their paths, once they are on disk.
    fn place_prepared(&mut self) -> Result<()> {
        if self.batched {
            let changes = &self.plan.changes;
            let folders =
                self.prepared.iter().map(|prepared| split(&changes[prepared.change].path).0);
            self.sync_all(folders.collect())?;
        }
        self.prepared_bytes = 0;
        while let Some(prepared) = self.prepared.pop() {
            let change = &self.plan.changes[prepared.change];
            let put =
                self.step(prepared.change, change, |apply, change| apply.rename(change, &prepared));
            if put.is_err() || self.restored.skipped.contains(&prepared.change) {
                self.remove_temporary(&prepared);
            }
            put?;
        }
        Ok(())
    }

    fn rename(&mut self, change: &TreeChange, prepared: &PreparedFile) -> StepResult {
        let (folder, name) = self.workspace.parent_of(&change.path)?;
        if identity_except_ctime(&folder, &name) != prepared.place {
            return Err(StepError::Conflict);
        }
        folder.rename(self.plan.temporary(prepared.change), &folder, &name)?;
        self.mark_for_sync(change);
        Ok(())
    }

    fn remove_temporary(&self, prepared: &PreparedFile) {
        if let Ok((folder, _)) = self.workspace.parent_of(&self.plan.changes[prepared.change].path)
        {
            // The failure that leads here has been reported.
            let _ = folder.remove_file(self.plan.temporary(prepared.change));
        }
    }

    fn sync(&self) -> Result<()> {
        if self.batched || atomic::SYNCS_ALL && self.folders.len() > FEW {
            return self.sync_all(self.folders.iter().map(String::as_str).collect());
        }
        for path in &self.folders {
            // A folder that was removed needs no sync.
            let Ok(folder) = self.workspace.folder_at(path) else { continue };
            match sync(&folder) {
                // An unreadable folder is as durable as its parent.
                Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {}
                done => done.map_err(|e| self.sync_error(e))?,
            }
        }
        Ok(())
    }

    /// Syncs the file systems that these folders are on.
    fn sync_all(&self, mut folders: Vec<&str>) -> Result<()> {
        folders.dedup();
        let mut done = BTreeSet::new();
        for path in folders {
            // A folder that cannot be opened is most likely on the same file system as its nearest ancestor.
            let open = |path: &str| self.workspace.folder_at(path).ok()?.open(".").ok();
            let Some(folder) = ancestors(path).rev().chain([""]).find_map(open) else { continue };
            let found = folder.metadata().map_err(|e| self.sync_error(e))?;
            if done.insert(found.dev()) {
                atomic::sync_all_of(&folder).map_err(|e| self.sync_error(e))?;
            }
        }
        Ok(())
    }

    fn sync_error(&self, error: io::Error) -> Error {
        Error::io("sync", self.workspace.path(), error)
    }
}

/// Identifies the entry, to detect changes; None if there is none. The ctime is left out, because restoring another
/// hard link of the same file changes it.
fn identity_except_ctime(folder: &Dir, name: &OsStr) -> Option<Identity> {
    let found = folder.symlink_metadata(name).ok()?;
    Some(Identity::of(&FileStat { changed: 0, ..FileStat::of(&found) }, found.len()))
}

fn link(folder: &Dir, target: &str, name: &str) -> io::Result<()> {
    folder.symlink_contents(unescaped(target), name)?;
    give_to_owner(folder, name)
}
