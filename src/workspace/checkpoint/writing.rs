//! Files and links on their way to their places: each is on disk under a temporary name before it takes its
//! place. Few are synced each by itself; of many a batch is written, synced at once with its file system,
//! and renamed.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{self, Write};

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt};
use cap_std::fs::{Dir, OpenOptions};

use super::look::{is_closed, split};
use super::numbers::Identity;
use super::plan::ancestors;
use super::restore::{Fault, Hand, Step, Unmade, sort};
use super::spelling::Listed;
use super::{Change, What};
use crate::atomic;
use crate::error::{Error, Result};
use crate::workspace::modes::{set_mode, without_set_ids};
use crate::workspace::names::unescaped;
use crate::workspace::plan::{give_to_owner, keep_owner};
use crate::workspace::sync;
use crate::workspace::walk::close::Facts;

/// More files than these are brought to disk together, before any of them gets its name.
pub(super) const FEW: usize = 48;
/// So many of them at once, and about so many bytes: until then they need room beside what is there.
const BATCH: (usize, u64) = (2000, 64 << 20);

/// A file or a link that stands under its temporary name.
pub(super) struct Ready {
    change: usize,
    /// What tells whether its place is still as it was; None where nothing stands there.
    place: Option<Identity>,
}

impl Hand<'_> {
    /// Prepares a file or a link; where the room for it is missing, those before it get their places
    /// first.
    pub(super) fn prepare_with_room(&mut self, n: usize, change: &Change) -> Result<()> {
        match self.step(n, change, |hand, change| hand.prepare(n, change)) {
            Err(e) if e.is_of_a_full_disk() && !self.ready.is_empty() => {
                self.put_ready()?;
                self.step(n, change, |hand, change| hand.prepare(n, change))?;
            }
            done => done?,
        }
        let is_much = self.ready.len() >= BATCH.0 || self.waiting >= BATCH.1;
        if is_much || !self.together { self.put_ready() } else { Ok(()) }
    }

    /// Writes a file or a link under its temporary name.
    fn prepare(&mut self, n: usize, change: &Change) -> Step {
        let folder = self.folder(change);
        let name = unescaped(split(&change.path).1);
        // Before it is looked at: what is changed after that is seen.
        let place = folder.as_ref().ok().and_then(|folder| identity_of(folder, &name));
        let now = self.now(change)?;
        if now == change.after {
            return Ok(None);
        }
        // Of what is not kept this is the only copy, whatever was planned.
        if now.as_ref().is_some_and(What::is_unkept) {
            let is_planned = now == change.before;
            return Ok(Some(if is_planned { Unmade::Copy } else { Unmade::Meanwhile }));
        }
        // One sort was removed before another is made.
        let is_free = now.is_none() && sort(change.before.as_ref()) != 1;
        if now != change.before && !is_free {
            return Ok(Some(Unmade::Meanwhile));
        }
        let (folder, temporary) = (folder?, self.plan.temporary(n));
        let _ = folder.remove_file(&temporary);
        match (&change.after, &now) {
            (Some(What::File { blob, mode, .. }), Some(What::File { blob: same, .. }))
                if blob == same =>
            {
                set_mode(&folder, &name, without_set_ids(*mode))?;
                let was = now.as_ref().and_then(What::mode).unwrap_or_default();
                // Now it can be read, and may be another than it was taken for.
                if is_closed(was) && self.now(change)? != change.after {
                    set_mode(&folder, &name, was)?;
                    return Ok(Some(Unmade::Meanwhile));
                }
                // Its folder's entries do not say so.
                self.together |= atomic::SYNCS_ALL;
                self.touched(change);
                return Ok(None);
            }
            (Some(What::File { blob, mode, size }), _) => {
                let bytes = self.store.blobs.read(blob).map_err(Fault::Store)?;
                let Some(bytes) = bytes else {
                    return Ok(Some(Unmade::Gone));
                };
                // What a former version kept may have such bits.
                let mode = without_set_ids(*mode);
                put(&folder, &temporary, &name, &bytes, mode, !self.together)?;
                self.waiting += size;
            }
            (Some(What::Link { target }), _) => link(&folder, target, &temporary)?,
            _ => return Ok(None),
        }
        self.ready.push(Ready { change: n, place });
        Ok(None)
    }

    /// What is prepared gets its place, once it is on disk.
    pub(super) fn put_ready(&mut self) -> Result<()> {
        if self.together {
            let changes = &self.plan.changes;
            let folders = self.ready.iter().map(|ready| split(&changes[ready.change].path).0);
            self.sync_all(folders.collect())?;
        }
        self.waiting = 0;
        while let Some(ready) = self.ready.pop() {
            let change = &self.plan.changes[ready.change];
            let put = self.step(ready.change, change, |hand, change| hand.rename(change, &ready));
            if put.is_err() || self.restored.undone.contains(&ready.change) {
                self.drop_temporary(&ready);
            }
            put?;
        }
        Ok(())
    }

    fn rename(&mut self, change: &Change, ready: &Ready) -> Step {
        let folder = self.folder(change)?;
        let name = unescaped(split(&change.path).1);
        if identity_of(&folder, &name) != ready.place {
            return Ok(Some(Unmade::Meanwhile));
        }
        if !self.respell(ready.change, change)? {
            return Ok(Some(Unmade::Meanwhile));
        }
        folder.rename(self.plan.temporary(ready.change), &folder, &name)?;
        self.touched(change);
        Ok(None)
    }

    pub(super) fn drop_temporary(&self, ready: &Ready) {
        if let Ok(folder) = self.folder(&self.plan.changes[ready.change]) {
            // What is in the way of it has been told.
            let _ = folder.remove_file(self.plan.temporary(ready.change));
        }
    }

    pub(super) fn sync(&self) -> Result<()> {
        if self.together || atomic::SYNCS_ALL && self.folders.len() > FEW {
            return self.sync_all(self.folders.iter().map(String::as_str).collect());
        }
        for path in &self.folders {
            // What was removed needs none.
            let Ok(folder) = self.workspace.folder_at(path) else { continue };
            match sync(&folder) {
                // A folder that nobody may read is as durable as the one that holds it.
                Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {}
                done => done.map_err(|e| self.not_synced(e))?,
            }
        }
        Ok(())
    }

    /// Syncs the file systems that these folders are on.
    fn sync_all(&self, mut folders: Vec<&str>) -> Result<()> {
        folders.dedup();
        let mut done = BTreeSet::new();
        for path in folders {
            // As above; a folder that cannot be opened is on that of one above it, most likely.
            let above = ancestors(path).map(str::to_owned).collect::<Vec<_>>().into_iter().rev();
            let open = |path: String| self.workspace.folder_at(&path).ok()?.open(".").ok();
            let Some(folder) = above.chain([String::new()]).find_map(open) else { continue };
            let found = folder.metadata().map_err(|e| self.not_synced(e))?;
            if done.insert(device(&found)) {
                atomic::sync_all_of(&folder).map_err(|e| self.not_synced(e))?;
            }
        }
        Ok(())
    }

    fn not_synced(&self, error: io::Error) -> Error {
        Error::io("sync", self.workspace.path(), error)
    }
}

/// What tells whether something is still the same; None where nothing stands there. Another name of the
/// same file may have been put back meanwhile, which changes no more than its last time.
fn identity_of(folder: &Dir, name: &OsStr) -> Option<Identity> {
    let found = folder.symlink_metadata(name).ok()?;
    if !matches!(Listed::of(folder, name), Listed::So) {
        return None;
    }
    Some(Identity::of(&Facts { changed: 0, ..Facts::of(&found) }, found.len()))
}

#[cfg(unix)]
pub(super) fn device(found: &cap_std::fs::Metadata) -> u64 {
    cap_std::fs::MetadataExt::dev(found)
}

#[cfg(not(unix))]
pub(super) fn device(_: &cap_std::fs::Metadata) -> u64 {
    0
}

/// Writes a file under a temporary name as it is to be; with `synced` all of it is on disk then.
fn put(
    folder: &Dir,
    temporary: &str,
    name: &OsStr,
    bytes: &[u8],
    mode: u32,
    synced: bool,
) -> io::Result<()> {
    let written = (|| {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).follow(FollowSymlinks::No);
        #[cfg(unix)]
        cap_std::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = folder.open_with(temporary, &options)?;
        file.write_all(bytes)?;
        match folder.symlink_metadata(name) {
            Ok(like) if like.is_file() => keep_owner(&file, &like)?,
            _ => give_to_owner(folder, temporary)?,
        }
        #[cfg(unix)]
        file.set_permissions(cap_std::fs::PermissionsExt::from_mode(mode))?;
        #[cfg(not(unix))]
        let _ = mode;
        if synced { file.sync_data() } else { Ok(()) }
    })();
    written.inspect_err(|_| drop(folder.remove_file(temporary)))
}

#[cfg(unix)]
fn link(folder: &Dir, target: &str, name: &str) -> io::Result<()> {
    folder.symlink_contents(unescaped(target), name)?;
    give_to_owner(folder, name)
}

#[cfg(not(unix))]
fn link(_: &Dir, _: &str, _: &str) -> io::Result<()> {
    Err(io::Error::other("links cannot be made here"))
}
