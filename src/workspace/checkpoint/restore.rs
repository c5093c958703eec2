//! Putting back what was planned. Each place is looked at again just before it is touched, and what is
//! not what was planned for is left alone. All of it can be done again after a hard stop: what stands
//! somewhere tells whether it is done.

use std::collections::BTreeSet;
use std::io::{self, Write};

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt};
use cap_std::fs::{Dir, OpenOptions};

use super::look::split;
use super::{Change, Plan, Store, What};
use crate::error::{Error, Result};
use crate::workspace::names::unescaped;
use crate::workspace::plan::{give_to_owner, keep_owner};
use crate::workspace::{Workspace, sync};

/// What became of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Restored {
    /// What could not be put back, by its path for people, and why.
    pub left: Vec<(String, String)>,
}

/// Said of what is not what it was when the plan was made.
const MEANWHILE: &str = "it was changed meanwhile";
/// Said of a folder that cannot go.
const HOLDS: &str = "the folder holds what is not kept, such as ignored files";

struct Hand<'a> {
    plan: &'a Plan,
    store: &'a mut Store,
    workspace: &'a Workspace,
    left: Vec<(String, String)>,
    /// Changes that are left alone from here on.
    given_up: BTreeSet<usize>,
    /// Folders with changes that are not synced.
    folders: BTreeSet<String>,
}

impl Plan {
    /// Removes what an earlier try left under temporary names.
    pub fn sweep(&self, workspace: &Workspace) {
        for (n, change) in self.changes.iter().enumerate() {
            if let Ok(folder) = workspace.folder_at(split(&change.path).0) {
                let _ = folder.remove_file(self.temporary(n));
            }
        }
    }

    /// Carries it out, or what is left of it. All of it is on disk then.
    ///
    /// # Errors
    /// The disk is full or fails: how far it came can be seen, and it can be done again.
    pub fn carry_out(&self, store: &mut Store, workspace: &Workspace) -> Result<Restored> {
        let (left, given_up, folders) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        let mut hand = Hand { plan: self, store, workspace, left, given_up, folders };
        for (folder, mode) in self.opened() {
            // Where that cannot be done, what is in it tells.
            let _ = hand.set_mode(folder, mode | 0o700);
        }
        let changes = || self.changes.iter().enumerate();
        let goes = |change: &Change| {
            change.before.is_some() && sort(change.before.as_ref()) != sort(change.after.as_ref())
        };
        for (n, change) in changes().rev().filter(|(_, change)| goes(change)) {
            hand.step(n, change, Hand::remove)?;
        }
        for (n, change) in changes() {
            match &change.after {
                Some(What::Folder { .. }) => hand.step(n, change, Hand::make_folder)?,
                Some(_) => hand.step(n, change, |hand, change| hand.write(n, change))?,
                None => {}
            }
        }
        for (n, change) in changes().rev() {
            if let Some(What::Folder { mode }) = change.after {
                hand.step(n, change, |hand, change| {
                    hand.set_mode(&change.path, mode).map(|()| None)
                })?;
            }
        }
        for (folder, mode) in self.opened().iter().rev() {
            let _ = hand.set_mode(folder, *mode);
        }
        hand.sync()?;
        Ok(Restored { left: hand.left })
    }
}

/// What sort of thing it is: one sort cannot become another in its place.
fn sort(what: Option<&What>) -> u8 {
    match what {
        None => 0,
        Some(What::File { .. } | What::Link { .. }) => 1,
        Some(What::Folder { .. }) => 2,
        Some(What::Unkept { .. }) => 3,
    }
}

impl Hand<'_> {
    /// Does something for a change; where that fails, it is left alone.
    fn step(
        &mut self,
        n: usize,
        change: &Change,
        what: impl FnOnce(&mut Self, &Change) -> io::Result<Option<&'static str>>,
    ) -> Result<()> {
        if self.given_up.contains(&n) {
            return Ok(());
        }
        let why = match what(self, change) {
            Ok(None) => return Ok(()),
            Ok(Some(why)) => why.to_owned(),
            Err(e) => {
                let error = Error::io("put back", change.path.as_ref(), e);
                if error.is_of_the_disk() {
                    return Err(error);
                }
                error.to_string()
            }
        };
        self.given_up.insert(n);
        self.left.push((change.shown(), why));
        Ok(())
    }

    fn now(&mut self, change: &Change) -> io::Result<Option<What>> {
        let now = self.store.look_at(self.workspace, &change.path, false);
        now.map_err(|e| io::Error::other(e.to_string()))
    }

    fn folder(&self, change: &Change) -> io::Result<Dir> {
        self.workspace.folder_at(split(&change.path).0)
    }

    fn touched(&mut self, change: &Change) {
        self.folders.insert(split(&change.path).0.to_owned());
    }

    /// What stands there is to go.
    fn remove(&mut self, change: &Change) -> io::Result<Option<&'static str>> {
        let now = self.now(change)?;
        let Some(found) = &now else { return Ok(None) };
        let name = unescaped(split(&change.path).1);
        // A folder that was made before a stop has its permissions yet to get.
        let is_made = sort(now.as_ref()) == 2 && sort(change.after.as_ref()) == 2;
        if now == change.after || is_made {
            return Ok(None);
        }
        match (found, &change.before) {
            (What::Folder { .. }, Some(What::Folder { .. })) => {
                match self.folder(change)?.remove_dir(name) {
                    Err(e) if e.kind() == io::ErrorKind::DirectoryNotEmpty => {
                        return Ok(Some(HOLDS));
                    }
                    done => done?,
                }
            }
            _ if now == change.before => self.folder(change)?.remove_file(name)?,
            _ => return Ok(Some(MEANWHILE)),
        }
        self.touched(change);
        Ok(None)
    }

    fn make_folder(&mut self, change: &Change) -> io::Result<Option<&'static str>> {
        let name = unescaped(split(&change.path).1);
        match self.now(change)? {
            Some(What::Folder { .. }) => return Ok(None),
            Some(_) => return Ok(Some(MEANWHILE)),
            None => {}
        }
        let folder = self.folder(change)?;
        folder.create_dir(&name)?;
        give_to_owner(&folder, name.as_os_str())?;
        self.touched(change);
        self.set_mode(&change.path, 0o700)?;
        Ok(None)
    }

    fn write(&mut self, n: usize, change: &Change) -> io::Result<Option<&'static str>> {
        let now = self.now(change)?;
        if now == change.after {
            return Ok(None);
        }
        // One sort was removed before another is made.
        let is_free = now.is_none() && sort(change.before.as_ref()) != 1;
        if now != change.before && !is_free {
            return Ok(Some(MEANWHILE));
        }
        let folder = self.folder(change)?;
        let (name, temporary) = (unescaped(split(&change.path).1), self.plan.temporary(n));
        let _ = folder.remove_file(&temporary);
        match (&change.after, &now) {
            (Some(What::File { blob, mode, .. }), Some(What::File { blob: same, .. }))
                if blob == same =>
            {
                set_mode(&folder, &name, *mode)?;
                self.touched(change);
                return Ok(None);
            }
            (Some(What::File { blob, mode, .. }), _) => {
                let bytes = self.store.blobs.read(blob);
                let bytes = bytes.map_err(|e| io::Error::other(e.to_string()))?;
                let Some(bytes) = bytes else {
                    return Ok(Some("what it was is not kept any more"));
                };
                put(&folder, &temporary, &name, &bytes, *mode)?;
            }
            (Some(What::Link { target }), _) => link(&folder, target, &temporary)?,
            _ => return Ok(None),
        }
        folder.rename(&temporary, &folder, &name).inspect_err(|_| {
            // The error that counts is the first.
            let _ = folder.remove_file(&temporary);
        })?;
        self.touched(change);
        Ok(None)
    }

    fn set_mode(&mut self, path: &str, mode: u32) -> io::Result<()> {
        let (folder, name) = split(path);
        let (folder, name) = (self.workspace.folder_at(folder)?, unescaped(name));
        let found = folder.symlink_metadata(&name)?;
        if found.is_dir() && crate::workspace::walk::close::Facts::of(&found).mode != mode {
            set_mode(&folder, &name, mode)?;
            self.folders.insert(path.to_owned());
        }
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        for path in &self.folders {
            // What was removed needs none.
            let Ok(folder) = self.workspace.folder_at(path) else { continue };
            match sync(&folder) {
                // A folder that nobody may read is as durable as the one that holds it.
                Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {}
                done => done.map_err(|e| Error::io("sync", self.workspace.path(), e))?,
            }
        }
        Ok(())
    }
}

/// Writes a file under a temporary name as it is to be, all of it on disk.
fn put(
    folder: &Dir,
    temporary: &str,
    name: &std::ffi::OsStr,
    bytes: &[u8],
    mode: u32,
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
        file.sync_data()
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

#[cfg(unix)]
fn set_mode(folder: &Dir, name: &std::ffi::OsStr, mode: u32) -> io::Result<()> {
    use cap_std::fs::{Permissions, PermissionsExt};
    folder.set_permissions(name, Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn set_mode(_: &Dir, _: &std::ffi::OsStr, _: u32) -> io::Result<()> {
    Ok(())
}
