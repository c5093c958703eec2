//! Changes files in two steps: a plan, and its execution. The journal records the plan in between, so that after a
//! crash the disk shows whether it was executed. Several changes can be recorded and made together, which needs fewer
//! syncs.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use cap_fs_ext::DirExt;
use cap_std::fs::{
    Dir, File, Metadata, MetadataExt, OpenOptions, OpenOptionsExt, Permissions, PermissionsExt,
};
use rustix::fs::{AtFlags, Gid, Uid, chownat};
use rustix::path::Arg;

use super::locate::{DiskLocation, FinalLink, failed};
use super::modes::without_set_ids;
use super::overlay::PlannedChange;
use super::walk::detailed::FileStat;
use super::{EDIT_LIMIT, Workspace, read_up_to, sync};
use crate::atomic;
use crate::protocol::{Change, Detail, Digest, Existing, Failure, FileEffect, RelPath};

/// Up to this number, files are synced one by one, because syncing the whole file system also waits for the writes of
/// other programs.
const FEW: usize = 4;
/// The most files that are changed together, because the folder of each file is kept open.
const TOGETHER: usize = 64;
/// The most bytes of new content that are changed together. A single longer content is changed alone.
const TOGETHER_BYTES: usize = 8 << 20;

/// A change of one file that can be executed.
pub struct Plan {
    requested: RelPath,
    permit: bool,
    spot: DiskLocation,
    /// The new content; None to delete the file.
    content: Option<Vec<u8>>,
    effect: FileEffect,
}

impl Workspace {
    /// Plans to create or replace a file. With `permit`, the name may be protected.
    pub fn plan_create(
        &self,
        path: &RelPath,
        content: &[u8],
        existing: Existing,
        permit: bool,
    ) -> Result<Plan, Failure> {
        let overlay = self.as_is();
        let draft = overlay.plan_create(path, content, existing, permit)?;
        let before = overlay.digest(path, &draft.location)?;
        draft.plan(path, permit, before)
    }

    /// Plans to change part of a file.
    pub fn plan_edit(
        &self,
        path: &RelPath,
        change: &Change,
        permit: bool,
    ) -> Result<Plan, Failure> {
        let (draft, old) = self.as_is().plan_edit(path, change, permit)?;
        draft.plan(path, permit, Some(Digest::of(&old)))
    }

    /// Plans to delete a file, or a link itself rather than its target. Folders are never deleted.
    pub fn plan_delete(&self, path: &RelPath, permit: bool) -> Result<Plan, Failure> {
        let overlay = self.as_is();
        let draft = overlay.plan_delete(path, permit)?;
        let before = overlay.digest(path, &draft.location)?;
        draft.plan(path, permit, before)
    }

    fn locate_to_write(
        &self,
        path: &RelPath,
        last: FinalLink,
        permit: bool,
    ) -> Result<DiskLocation, Failure> {
        self.as_is().resolve_for_write(path, last, permit)?.on_disk(path)
    }

    /// The digest of the current content at a resolved path, as in [`FileEffect`]. None if nothing exists.
    pub fn digest(&self, real: &RelPath) -> Result<Option<Digest>, Failure> {
        let overlay = self.as_is();
        overlay.digest(real, &overlay.resolve(real, FinalLink::Keep)?)
    }

    /// Removes the temporary file of an effect, if it still exists.
    pub fn remove_temporary(&self, effect: &FileEffect) -> Result<(), Failure> {
        let Some(temporary) = &effect.temporary else { return Ok(()) };
        let spot = self.locate(&effect.path, FinalLink::Keep)?;
        match spot.folder.remove_file(temporary) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                Err(failed("remove the temporary file of", &effect.path, &e))
            }
            _ => Ok(()),
        }
    }
}

impl PlannedChange {
    /// Makes the plan. `before` is the digest of the current content.
    fn plan(self, path: &RelPath, permit: bool, before: Option<Digest>) -> Result<Plan, Failure> {
        let Self { location, content, detail } = self;
        let spot = location.on_disk(path)?;
        let temporary =
            content.is_some().then(|| format!(".deaddrop-{}.tmp", uuid::Uuid::new_v4().simple()));
        let after = content.as_deref().map(Digest::of);
        let effect = FileEffect { path: spot.real.clone(), temporary, before, after, detail };
        Ok(Plan { requested: path.clone(), permit, spot, content, effect })
    }
}

impl Plan {
    /// The effect, for the journal.
    pub fn effect(&self) -> &FileEffect {
        &self.effect
    }

    /// Whether the plan can be executed together with `others`: no path is within another, and the number of plans and
    /// the total length of their contents are within the limits.
    pub fn can_join(&self, others: &[Self]) -> bool {
        let length = |plan: &Self| plan.content.as_ref().map_or(0, Vec::len);
        let (path, bytes) = (&self.effect.path, others.iter().map(length).sum::<usize>());
        let mut paths = others.iter().map(|other| &other.effect.path);
        others.is_empty()
            || others.len() < TOGETHER
                && bytes + length(self) <= TOGETHER_BYTES
                && paths.all(|other| !path.is_within(other) && !other.is_within(path))
    }

    /// Executes plans in order until one fails. The later plans have no result and remain to be executed. If there are
    /// several plans and the file of one has changed since it was planned, that plan and the later ones also remain to
    /// be executed.
    pub fn execute_all(
        workspace: &Workspace,
        mut plans: Vec<Self>,
    ) -> Vec<Result<Detail, Failure>> {
        let each = !atomic::SYNCS_ALL || plans.len() <= FEW;
        let prepared: Vec<_> = plans.iter_mut().map(|plan| plan.prepare(each)).collect();
        let synced = if each { Ok(()) } else { sync_all(&plans) };
        let (mut results, mut done) = (Vec::new(), 0);
        for (plan, prepared) in plans.iter().zip(prepared) {
            results.push(match (&synced, prepared) {
                (Err(e), _) => Err(plan.failed(e)),
                (_, Err(e)) => Err(plan.failed(&e)),
                _ if plan.is_as_planned(workspace) => plan.put_in_place(),
                _ if plans.len() > 1 => break,
                _ => Err(Failure::execution(format!(
                    "'{}' was changed by somebody else at the same time, so this change was not made: READ_FILE it before you go on",
                    plan.requested
                ))),
            });
            if results[done].is_err() {
                break;
            }
            done += 1;
        }
        for Self { spot, effect, .. } in &plans[done..] {
            // Remove the temporary files of the other plans. Only the first error is reported.
            effect.temporary.iter().for_each(|name| drop(spot.folder.remove_file(name)));
        }
        let synced = if each { Ok(()) } else { sync_all(&plans[..done]) };
        for (plan, result) in plans[..done].iter().zip(&mut results) {
            let own = if each { sync(&plan.spot.folder) } else { Ok(()) };
            if let Err(e) = synced.as_ref().map_or_else(Err, |()| own.as_ref()) {
                let what = if plan.effect.after.is_some() { "written" } else { "deleted" };
                *result = Err(not_durable(what, &plan.requested, e));
            }
        }
        results
    }

    /// Executes a single plan.
    pub fn execute(self, workspace: &Workspace) -> Result<Detail, Failure> {
        Self::execute_all(workspace, vec![self]).remove(0)
    }

    /// Writes new content to a temporary file in the target's folder, which is created if missing. Writing in place
    /// could change hard links and leave partial content. With `syncs`, waits until the content is on disk.
    fn prepare(&mut self, syncs: bool) -> io::Result<()> {
        let (Some(content), Some(temporary)) = (self.content.take(), &self.effect.temporary) else {
            return Ok(());
        };
        let missing = std::mem::take(&mut self.spot.missing);
        self.spot.folder = make_folders(Arc::clone(&self.spot.folder), &missing)?;
        put(&self.spot.folder, temporary, &content, self.spot.found.as_ref(), None, syncs)
    }

    /// Whether the file at the path is still the one that the plan was made for.
    fn is_as_planned(&self, workspace: &Workspace) -> bool {
        let last = if self.effect.after.is_some() { FinalLink::Follow } else { FinalLink::Keep };
        let Ok(now) = workspace.locate_to_write(&self.requested, last, self.permit) else {
            return false;
        };
        let folder =
            |spot: &DiskLocation| spot.folder.dir_metadata().map(|f| (f.dev(), f.ino())).ok();
        let found = |spot: &DiskLocation| spot.found.as_ref().map(FileStat::of);
        (&now.real, &now.missing) == (&self.spot.real, &self.spot.missing)
            && folder(&now) == folder(&self.spot)
            && found(&now) == found(&self.spot)
    }

    fn put_in_place(&self) -> Result<Detail, Failure> {
        let DiskLocation { folder, name, .. } = &self.spot;
        let done = match &self.effect.temporary {
            Some(temporary) => folder.rename(temporary, folder, name),
            None => folder.remove_file(name),
        };
        done.map_err(|e| self.failed(&e)).map(|()| self.effect.detail.clone())
    }

    fn failed(&self, error: &io::Error) -> Failure {
        let what = if self.effect.after.is_some() { "write" } else { "delete" };
        failed(what, &self.requested, error)
    }
}

/// Syncs the file systems of all plans.
fn sync_all(plans: &[Plan]) -> io::Result<()> {
    let mut synced = BTreeSet::new();
    for Plan { spot, .. } in plans {
        if synced.insert(spot.folder.dir_metadata()?.dev()) {
            atomic::sync_all_of(spot.folder.open(".")?)?;
        }
    }
    Ok(())
}

/// The digest of an entry's content. A file that is too large to be edited is identified by its inode, size and time.
pub(super) fn digest(
    path: &RelPath,
    folder: &Dir,
    name: &str,
    found: &Metadata,
) -> Result<Option<Digest>, Failure> {
    if found.is_symlink() {
        let target = folder.read_link_contents(name);
        let target = target.map_err(|e| failed("read the link", path, &e))?;
        return Ok(Some(Digest::of_link(target.to_string_lossy().as_bytes())));
    }
    if found.len() > EDIT_LIMIT {
        let written = found.modified().map(|time| format!("{time:?}")).unwrap_or_default();
        let identity = format!("{} {} {} {written}", found.dev(), found.ino(), found.len());
        return Ok(Some(Digest::of_link(identity.as_bytes())));
    }
    if !found.is_file() {
        return Ok(Some(Digest::of_link(b"no file")));
    }
    Ok(Some(Digest::of(&read_up_to(path, folder, name, EDIT_LIMIT)?.0)))
}

/// Creates missing folders below a folder, and opens the last of them.
pub(super) fn make_folders(mut folder: Arc<Dir>, names: &[String]) -> io::Result<Arc<Dir>> {
    for name in names {
        match folder.create_dir(name) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
            created => {
                if created.is_ok() {
                    give_to_owner(&folder, name)?;
                }
                sync(&folder)?;
            }
        }
        folder = Arc::new(folder.open_dir_nofollow(name)?);
    }
    Ok(folder)
}

/// The failure for a change that was made, but may be lost after a power failure.
pub(super) fn not_durable(done: &str, path: &RelPath, error: &io::Error) -> Failure {
    Failure::execution(format!(
        "'{path}' was {done}, but the disk did not confirm it ({error}): check it again"
    ))
}

/// Writes a new file with the owner of another file and, unless `mode` is given, its mode. With `syncs`, waits until
/// the content is on disk. If this fails, the new file is removed.
pub(super) fn put(
    folder: &Dir,
    name: &str,
    bytes: &[u8],
    like: Option<&Metadata>,
    mode: Option<u32>,
    syncs: bool,
) -> io::Result<()> {
    let owner = like.map(|like| (like.uid(), like.gid()));
    let mode = mode.or_else(|| like.map(|like| like.permissions().mode()));
    let written = write_new(folder, name, bytes, owner, mode);
    let written = written.and_then(|file| if syncs { file.sync_data() } else { Ok(()) });
    written.inspect_err(|_| drop(folder.remove_file(name)))
}

/// Writes a new file without set-user-ID and set-group-ID bits. If `owner` is None, the file gets the folder's owner.
pub(super) fn write_new(
    folder: &Dir,
    name: impl Arg + AsRef<Path>,
    bytes: &[u8],
    owner: Option<(u32, u32)>,
    mode: Option<u32>,
) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    if mode.is_some() {
        // Nobody else may read the file until its final mode is set.
        options.mode(0o600);
    }
    let mut file = folder.open_with(&name, &options)?;
    file.write_all(bytes)?;
    match owner {
        Some(owner) => set_owner(&file, owner)?,
        None => give_to_owner(folder, name)?,
    }
    if let Some(mode) = mode {
        file.set_permissions(Permissions::from_mode(without_set_ids(mode)))?;
    }
    Ok(file)
}

/// If this process is root, gives a new entry to the folder's owner, because commands run as the workspace's owner.
pub(super) fn give_to_owner(folder: &Dir, name: impl Arg) -> io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let owner = folder.dir_metadata()?;
    if owner.uid() != 0 {
        let (user, group) = (Uid::from_raw(owner.uid()), Gid::from_raw(owner.gid()));
        chownat(folder, name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW)?;
    }
    Ok(())
}

/// Sets the user and group of a file.
fn set_owner(file: &File, (user, group): (u32, u32)) -> io::Result<()> {
    let now = file.metadata()?;
    if (now.uid(), now.gid()) == (user, group) {
        return Ok(());
    }
    match std::os::unix::fs::fchown(file, Some(user), Some(group)) {
        // Without permission to change it, the owner stays as it is: the content is more important.
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        other => other,
    }
}
