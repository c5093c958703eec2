//! The workspace seen through changes that were not made. Paths are walked by the same code as on
//! disk, and each change is refused for the same reasons.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::locate::{LocatedEntry, FinalLink, Location, already_exists, is_folder};
use super::plan::digest;
use super::{
    Contents, EDIT_LIMIT, Workspace, changed, editable, nothing_left_out, read_up_to, regular,
};
use crate::protocol::{Change, Detail, Digest, Existing, Failure, RelPath};

/// Changes in memory, over a workspace that stays as it is.
pub struct Overlay<'a> {
    pub(super) workspace: &'a Workspace,
    /// By real path; None where a file or link would be gone. What stands on disk below one of
    /// these is never looked at.
    files: BTreeMap<String, (RelPath, Option<Vec<u8>>)>,
    /// What stood at each place that was changed since changes were last taken.
    before: BTreeMap<String, Option<Standing>>,
}

/// What the overlay has at a real path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cover {
    /// A file.
    File,
    /// Nothing, whatever the disk has.
    Gone,
    /// A folder, if the disk has none.
    Folder,
}

/// What stands at a place, as far as it can be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// A file of these bytes.
    File(Vec<u8>),
    /// A file of more than [`EDIT_LIMIT`] bytes.
    Large,
    /// A link to this.
    Link(String),
}

/// A file that would be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewritten {
    /// Which.
    pub path: RelPath,
    /// What stands there now, if anything.
    pub before: Option<Standing>,
    /// What would stand there, if anything.
    pub after: Option<Standing>,
    /// The step that runs a command then, counted from 1; None for the end of the reply.
    pub by_step: Option<usize>,
}

/// A change of one file, thought out.
pub(super) struct PlannedChange {
    pub(super) way: Location,
    /// The new content; None where the file goes.
    pub(super) content: Option<Vec<u8>>,
    pub(super) detail: Detail,
}

impl<'a> Overlay<'a> {
    /// The workspace as it is.
    pub fn new(workspace: &'a Workspace) -> Self {
        Self { workspace, files: BTreeMap::new(), before: BTreeMap::new() }
    }

    /// Makes a file of `content`, or replaces the one that stands there; under a protected name only
    /// where the person permits it.
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

    /// Removes a file, or a link itself.
    pub fn delete(&mut self, path: &RelPath, permit: bool) -> Result<Detail, Failure> {
        Ok(self.make(self.plan_delete(path, permit)?))
    }

    fn make(&mut self, draft: PlannedChange) -> Detail {
        self.put(&draft.way.real, draft.content);
        draft.detail
    }

    pub(super) fn plan_create(
        &self,
        path: &RelPath,
        content: &[u8],
        existing: Existing,
        permit: bool,
    ) -> Result<PlannedChange, Failure> {
        let way = self.way_to_write(path, FinalLink::Follow, permit)?;
        if let Some(found) = &way.found {
            if existing == Existing::Fail {
                return Err(already_exists(path, found.is_folder()));
            }
            self.require_readable(path, &way)?;
            if existing.must_compare_with(content) {
                nothing_left_out(path, content, &self.contents(path, &way, EDIT_LIMIT)?.bytes)?;
            }
        }
        let bytes = content.len() as u64;
        let detail =
            Detail::Created { path: way.real.clone(), bytes, replaced: way.found.is_some() };
        Ok(PlannedChange { way, content: Some(content.to_vec()), detail })
    }

    /// Also gives the content that is changed.
    pub(super) fn plan_edit(
        &self,
        path: &RelPath,
        change: &Change,
        permit: bool,
    ) -> Result<(PlannedChange, Vec<u8>), Failure> {
        let way = self.way_to_write(path, FinalLink::Follow, permit)?;
        editable(path, self.size(path, &way)?)?;
        let old = self.contents(path, &way, EDIT_LIMIT)?.bytes;
        let (content, detail) = changed(&way.real, &old, change)?;
        Ok((PlannedChange { way, content: Some(content), detail }, old))
    }

    pub(super) fn plan_delete(&self, path: &RelPath, permit: bool) -> Result<PlannedChange, Failure> {
        let way = self.way_to_write(path, FinalLink::Keep, permit)?;
        if !matches!(&way.found, Some(LocatedEntry::OnDisk(found)) if found.is_symlink()) {
            self.require_readable(path, &way)?;
        }
        let detail = Detail::Deleted { path: way.real.clone() };
        Ok(PlannedChange { way, content: None, detail })
    }

    /// Fails where the regular file at the end of a way cannot be read. Of one that is not kept nobody asks that.
    fn require_readable(&self, path: &RelPath, way: &Location) -> Result<(), Failure> {
        if self.size(path, way)? <= EDIT_LIMIT {
            self.contents(path, way, 0)?;
        }
        Ok(())
    }

    /// What identifies the content of what stands at the end of a way; None where nothing does.
    pub(super) fn digest(&self, path: &RelPath, way: &Location) -> Result<Option<Digest>, Failure> {
        match &way.found {
            None => Ok(None),
            Some(LocatedEntry::Folder) => Err(is_folder(path)),
            Some(LocatedEntry::File) => Ok(Some(Digest::of(self.made(&way.real)))),
            Some(LocatedEntry::OnDisk(found)) => {
                let (folder, name) = way.place(path)?;
                digest(path, folder, name, found)
            }
        }
    }

    /// Reads a file, at most its first `limit` bytes.
    pub fn read(&self, path: &RelPath, limit: u64) -> Result<Contents, Failure> {
        let way = self.way(path, FinalLink::Follow)?;
        self.size(path, &way)?;
        self.contents(path, &way, limit)
    }

    /// Fails where nothing would stand at a path, be it a file or a folder.
    ///
    /// # Errors
    /// Nothing would, or it cannot be reached.
    pub fn stands(&self, path: &RelPath) -> Result<(), Failure> {
        match self.way(path, FinalLink::Follow) {
            Ok(way) if way.found.is_none() => Err(self.nothing_at(path)),
            Err(failure) => self.workspace.start(path.into()).map(drop).map_err(|_| failure),
            Ok(_) => Ok(()),
        }
    }

    /// The bytes of what would stand at the end of a way; None where it is no file that can be held.
    pub(super) fn held(&self, path: &RelPath, way: &Location) -> Result<Option<Vec<u8>>, Failure> {
        match &way.found {
            Some(LocatedEntry::File) => Ok(Some(self.made(&way.real).to_vec())),
            Some(LocatedEntry::OnDisk(found)) if found.is_file() && found.len() <= EDIT_LIMIT => {
                Ok(Some(self.contents(path, way, EDIT_LIMIT)?.bytes))
            }
            _ => Ok(None),
        }
    }

    /// The files that would be changed since this was last called, by path.
    pub fn take_changes(&mut self) -> Vec<Rewritten> {
        let before = std::mem::take(&mut self.before);
        before
            .into_iter()
            .filter_map(|(path, before)| {
                let (path, after) = self.files.get(&path)?;
                let (path, after) = (path.clone(), after.as_deref().map(shown));
                Some(Rewritten { path, before, after, by_step: None })
            })
            .filter(|file| file.before != file.after)
            .collect()
    }

    /// What it has at a real path.
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
            // A file that was made there and removed leaves its folder behind.
            _ if below() => Some(Cover::Folder),
            Some((_, None)) => Some(Cover::Gone),
            None => None,
        }
    }

    /// The size of the regular file at the end of a way.
    pub(super) fn size(&self, path: &RelPath, way: &Location) -> Result<u64, Failure> {
        match &way.found {
            None => Err(self.missing(path)),
            Some(LocatedEntry::Folder) => Err(is_folder(path)),
            Some(LocatedEntry::OnDisk(found)) => Ok(regular(path, found)?.len()),
            Some(LocatedEntry::File) => Ok(self.made(&way.real).len() as u64),
        }
    }

    fn contents(&self, path: &RelPath, way: &Location, limit: u64) -> Result<Contents, Failure> {
        let (bytes, size) = if matches!(way.found, Some(LocatedEntry::File)) {
            let made = self.made(&way.real);
            let shown = usize::try_from(limit).unwrap_or(usize::MAX).min(made.len());
            (made[..shown].to_vec(), made.len() as u64)
        } else {
            let (folder, name) = way.place(path)?;
            read_up_to(path, folder, name, limit)?
        };
        Ok(Contents { path: way.real.clone(), bytes, size, lines: None })
    }

    pub(super) fn made(&self, real: &RelPath) -> &[u8] {
        self.files.get(real.as_str()).and_then(|(_, after)| after.as_deref()).unwrap_or_default()
    }

    /// The files that there are only here, by real path.
    pub(super) fn made_files(&self) -> impl Iterator<Item = &RelPath> {
        self.files.values().filter(|(_, after)| after.is_some()).map(|(path, _)| path)
    }

    pub(super) fn put(&mut self, real: &RelPath, after: Option<Vec<u8>>) {
        if !self.before.contains_key(real.as_str()) {
            let before = match self.files.get(real.as_str()) {
                Some((_, made)) => made.as_deref().map(shown),
                None => standing(self.workspace, real),
            };
            self.before.insert(real.as_str().to_owned(), before);
        }
        self.files.insert(real.as_str().to_owned(), (real.clone(), after));
    }
}

/// A file of these bytes, as far as it can be shown.
fn shown(bytes: &[u8]) -> Standing {
    match bytes.len() as u64 {
        ..=EDIT_LIMIT => Standing::File(bytes.to_vec()),
        _ => Standing::Large,
    }
}

/// What stands on disk at a real path; None also where that can no longer be said.
fn standing(workspace: &Workspace, real: &RelPath) -> Option<Standing> {
    let spot = workspace.locate(real, FinalLink::Keep).ok()?;
    // Where a link on the way would be gone, what is beyond it is another file.
    if spot.real != *real {
        return None;
    }
    let found = spot.found.as_ref()?;
    if found.is_symlink() {
        let target = spot.folder.read_link_contents(&spot.name).ok()?;
        return Some(Standing::Link(target.to_string_lossy().into_owned()));
    }
    if found.len() > EDIT_LIMIT {
        return Some(Standing::Large);
    }
    Some(Standing::File(read_up_to(real, &spot.folder, &spot.name, EDIT_LIMIT).ok()?.0))
}
