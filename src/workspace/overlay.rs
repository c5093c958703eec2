//! The workspace as it would look after changes that are only in memory. Paths are resolved by the same code as on
//! disk, and changes are refused for the same reasons as on disk.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::locate::{FinalLink, LocatedEntry, PathLocation, already_exists, is_folder};
use super::plan::digest;
use super::{
    Contents, EDIT_LIMIT, Workspace, changed, check_edit_size, read_up_to, refuse_elided_content,
    regular_size,
};
use crate::protocol::{Change, Detail, Digest, Existing, Failure, RelPath};

/// Changes in memory on top of an unchanged workspace.
pub struct Overlay<'a> {
    pub(super) workspace: &'a Workspace,
    /// New contents by resolved path; None for a deleted file or link. Entries on disk below these paths are ignored.
    files: BTreeMap<String, (RelPath, Option<Vec<u8>>)>,
    /// The former state of each path changed since the last [`Overlay::take_changes`].
    before: BTreeMap<String, Option<FileState>>,
}

/// What the overlay contains at a resolved path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cover {
    /// A file.
    File,
    /// A deletion: nothing exists here, even if something exists on disk.
    Gone,
    /// A folder, even if none exists on disk.
    Folder,
}

/// The state of a path, for display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileState {
    /// A file of these bytes.
    File(Vec<u8>),
    /// A file of more than [`EDIT_LIMIT`] bytes.
    Large,
    /// A link with this target.
    Link(String),
}

/// A file that would be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviewedChange {
    /// Its path.
    pub path: RelPath,
    /// The current state; None if the file does not exist.
    pub before: Option<FileState>,
    /// The state after the change; None if the file is deleted.
    pub after: Option<FileState>,
    /// The step (from 1) whose command would see this state; None for the end of the reply.
    pub by_step: Option<usize>,
}

/// A planned change to one file.
pub(super) struct PlannedChange {
    pub(super) location: PathLocation,
    /// The new content; None if the file is deleted.
    pub(super) content: Option<Vec<u8>>,
    pub(super) detail: Detail,
}

impl<'a> Overlay<'a> {
    /// An overlay without changes.
    pub fn new(workspace: &'a Workspace) -> Self {
        Self { workspace, files: BTreeMap::new(), before: BTreeMap::new() }
    }

    /// Creates a file with `content`, or replaces an existing file. A path with a protected name is refused unless the
    /// person permits it (`permit`).
    pub fn create(
        &mut self,
        path: &RelPath,
        content: &[u8],
        existing: Existing,
        permit: bool,
    ) -> Result<Detail, Failure> {
        Ok(self.make(self.plan_create(path, content, existing, permit)?))
    }

    /// Changes part of a file.
    pub fn edit(
        &mut self,
        path: &RelPath,
        change: &Change,
        permit: bool,
    ) -> Result<Detail, Failure> {
        Ok(self.make(self.plan_edit(path, change, permit)?.0))
    }

    /// Removes a file, or a link itself rather than its target.
    pub fn delete(&mut self, path: &RelPath, permit: bool) -> Result<Detail, Failure> {
        Ok(self.make(self.plan_delete(path, permit)?))
    }

    fn make(&mut self, planned: PlannedChange) -> Detail {
        self.put(&planned.location.real, planned.content);
        planned.detail
    }

    pub(super) fn plan_create(
        &self,
        path: &RelPath,
        content: &[u8],
        existing: Existing,
        permit: bool,
    ) -> Result<PlannedChange, Failure> {
        let location = self.resolve_for_write(path, FinalLink::Follow, permit)?;
        if let Some(found) = &location.found {
            if existing == Existing::Fail {
                return Err(already_exists(path, found.is_folder()));
            }
            self.require_readable(path, &location)?;
            if existing.must_compare_with(content) {
                let old = self.contents(path, &location, EDIT_LIMIT)?.bytes;
                refuse_elided_content(path, content, &old)?;
            }
        }
        let bytes = content.len() as u64;
        let detail = Detail::Created {
            path: location.real.clone(),
            bytes,
            replaced: location.found.is_some(),
        };
        Ok(PlannedChange { location, content: Some(content.to_vec()), detail })
    }

    /// Plans an edit. Also returns the current content.
    pub(super) fn plan_edit(
        &self,
        path: &RelPath,
        change: &Change,
        permit: bool,
    ) -> Result<(PlannedChange, Vec<u8>), Failure> {
        let location = self.resolve_for_write(path, FinalLink::Follow, permit)?;
        check_edit_size(path, self.size(path, &location)?)?;
        let old = self.contents(path, &location, EDIT_LIMIT)?.bytes;
        let (content, detail) = changed(&location.real, &old, change)?;
        Ok((PlannedChange { location, content: Some(content), detail }, old))
    }

    pub(super) fn plan_delete(
        &self,
        path: &RelPath,
        permit: bool,
    ) -> Result<PlannedChange, Failure> {
        let location = self.resolve_for_write(path, FinalLink::Keep, permit)?;
        if !matches!(&location.found, Some(LocatedEntry::OnDisk(found)) if found.is_symlink()) {
            self.require_readable(path, &location)?;
        }
        let detail = Detail::Deleted { path: location.real.clone() };
        Ok(PlannedChange { location, content: None, detail })
    }

    /// Fails if a regular file cannot be read. Files larger than [`EDIT_LIMIT`] are not checked.
    fn require_readable(&self, path: &RelPath, location: &PathLocation) -> Result<(), Failure> {
        if self.size(path, location)? <= EDIT_LIMIT {
            self.contents(path, location, 0)?;
        }
        Ok(())
    }

    /// The digest of the content at a location; None if nothing exists.
    pub(super) fn digest(
        &self,
        path: &RelPath,
        location: &PathLocation,
    ) -> Result<Option<Digest>, Failure> {
        match &location.found {
            None => Ok(None),
            Some(LocatedEntry::Folder) => Err(is_folder(path)),
            Some(LocatedEntry::File) => Ok(Some(Digest::of(self.created(&location.real)))),
            Some(LocatedEntry::OnDisk(found)) => {
                let (folder, name) = location.place(path)?;
                digest(path, folder, name, found)
            }
        }
    }

    /// Reads a file, up to `limit` bytes from its beginning.
    pub fn read(&self, path: &RelPath, limit: u64) -> Result<Contents, Failure> {
        let location = self.resolve(path, FinalLink::Follow)?;
        self.size(path, &location)?;
        self.contents(path, &location, limit)
    }

    /// Checks that a file or a folder would exist at a path.
    ///
    /// # Errors
    /// Nothing would exist there, or the path cannot be reached.
    pub fn require_exists(&self, path: &RelPath) -> Result<(), Failure> {
        match self.resolve(path, FinalLink::Follow) {
            Ok(location) if location.found.is_none() => Err(self.nothing_at(path)),
            Err(failure) => self.workspace.list_root(path.into()).map(drop).map_err(|_| failure),
            Ok(_) => Ok(()),
        }
    }

    /// The bytes of the file at a location. None if it is not a file, or is too large for memory.
    pub(super) fn bytes_in_memory(
        &self,
        path: &RelPath,
        location: &PathLocation,
    ) -> Result<Option<Vec<u8>>, Failure> {
        match &location.found {
            Some(LocatedEntry::File) => Ok(Some(self.created(&location.real).to_vec())),
            Some(LocatedEntry::OnDisk(found)) if found.is_file() && found.len() <= EDIT_LIMIT => {
                Ok(Some(self.contents(path, location, EDIT_LIMIT)?.bytes))
            }
            _ => Ok(None),
        }
    }

    /// The files changed since the last call, sorted by path.
    pub fn take_changes(&mut self) -> Vec<PreviewedChange> {
        let before = std::mem::take(&mut self.before);
        before
            .into_iter()
            .filter_map(|(path, before)| {
                let (path, after) = self.files.get(&path)?;
                let (path, after) = (path.clone(), after.as_deref().map(shown));
                Some(PreviewedChange { path, before, after, by_step: None })
            })
            .filter(|file| file.before != file.after)
            .collect()
    }

    /// What the overlay contains at a resolved path. None if the overlay does not affect the path.
    pub(super) fn cover(&self, real: impl FnOnce() -> String) -> Option<Cover> {
        if self.files.is_empty() {
            return None;
        }
        let real = real();
        let below = || {
            let folder = format!("{real}/");
            let from = (Bound::Excluded(folder.as_str()), Bound::Unbounded);
            let next = self.files.range::<str, _>(from).next();
            next.is_some_and(|(path, _)| path.starts_with(&folder))
        };
        match self.files.get(&real) {
            Some((_, Some(_))) => Some(Cover::File),
            // If a file was created and then deleted, its folder remains.
            _ if below() => Some(Cover::Folder),
            Some((_, None)) => Some(Cover::Gone),
            None => None,
        }
    }

    /// The size of the regular file at a location.
    pub(super) fn size(&self, path: &RelPath, location: &PathLocation) -> Result<u64, Failure> {
        match &location.found {
            None => Err(self.missing(path)),
            Some(LocatedEntry::Folder) => Err(is_folder(path)),
            Some(LocatedEntry::OnDisk(found)) => regular_size(path, found),
            Some(LocatedEntry::File) => Ok(self.created(&location.real).len() as u64),
        }
    }

    fn contents(
        &self,
        path: &RelPath,
        location: &PathLocation,
        limit: u64,
    ) -> Result<Contents, Failure> {
        let (bytes, size) = if matches!(location.found, Some(LocatedEntry::File)) {
            let created = self.created(&location.real);
            let shown = usize::try_from(limit).unwrap_or(usize::MAX).min(created.len());
            (created[..shown].to_vec(), created.len() as u64)
        } else {
            let (folder, name) = location.place(path)?;
            read_up_to(path, folder, name, limit)?
        };
        Ok(Contents { path: location.real.clone(), bytes, size, lines: None })
    }

    pub(super) fn created(&self, real: &RelPath) -> &[u8] {
        self.files.get(real.as_str()).and_then(|(_, after)| after.as_deref()).unwrap_or_default()
    }

    /// The files whose contents are in the overlay, by resolved path.
    pub(super) fn created_files(&self) -> impl Iterator<Item = &RelPath> {
        self.files.values().filter(|(_, after)| after.is_some()).map(|(path, _)| path)
    }

    pub(super) fn put(&mut self, real: &RelPath, after: Option<Vec<u8>>) {
        if !self.before.contains_key(real.as_str()) {
            let before = match self.files.get(real.as_str()) {
                Some((_, created)) => created.as_deref().map(shown),
                None => state_on_disk(self.workspace, real),
            };
            self.before.insert(real.as_str().to_owned(), before);
        }
        self.files.insert(real.as_str().to_owned(), (real.clone(), after));
    }
}

/// The state of a file with these bytes.
fn shown(bytes: &[u8]) -> FileState {
    match bytes.len() as u64 {
        ..=EDIT_LIMIT => FileState::File(bytes.to_vec()),
        _ => FileState::Large,
    }
}

/// The state on disk at a resolved path. None if nothing exists, or the state can no longer be determined.
fn state_on_disk(workspace: &Workspace, real: &RelPath) -> Option<FileState> {
    let spot = workspace.locate(real, FinalLink::Keep).ok()?;
    // If the overlay deleted a link in this path, the path now leads to another file.
    if spot.real != *real {
        return None;
    }
    let found = spot.found.as_ref()?;
    if found.is_symlink() {
        let target = spot.folder.read_link_contents(&spot.name).ok()?;
        return Some(FileState::Link(target.to_string_lossy().into_owned()));
    }
    if found.len() > EDIT_LIMIT {
        return Some(FileState::Large);
    }
    Some(FileState::File(read_up_to(real, &spot.folder, &spot.name, EDIT_LIMIT).ok()?.0))
}
