//! Carries out an [`UndoPlan`]. Each place is looked at again just before it is touched, and is left alone where
//! something else stands there than was planned for. What stands somewhere tells whether it is done, so all of it
//! can be repeated after a hard stop.
//!
//! Each file is on disk under a temporary name before it takes its place. Few are synced one by one; of many a
//! batch is written, synced at once with its file system, and renamed.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io;

use cap_std::fs::{Dir, Metadata, MetadataExt};

use super::merge::ONLY_COPY;
use super::scan::is_closed;
use super::tree::{Identity, is_folder, is_same};
use super::{Change, Store, TreeEntry, UndoPlan};
use crate::atomic::{self, rename_new};
use crate::blobs::BlobId;
use crate::error::{Error, Result};
use crate::text::visible_line;
use crate::workspace::modes::{set_mode, without_set_ids};
use crate::workspace::names::{ancestors, shown, split, unescaped};
use crate::workspace::plan::{give_to_owner, put};
use crate::workspace::walk::detailed::FileStat;
use crate::workspace::{Workspace, sync};

/// More files than these are synced in batches, before any of them gets its name.
const FEW: usize = 48;
/// The most files and about the most bytes of a batch: they need room beside what is there.
const BATCH: (usize, u64) = (2000, 64 << 20);

/// What became of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Restored {
    /// What could not be put back, by its path for people, and why.
    pub left: Vec<(String, String)>,
    /// The numbers of these changes.
    pub undone: BTreeSet<usize>,
    /// Those of them that were not made since something else stands there than the plan says.
    pub met: BTreeSet<usize>,
}

impl Restored {
    /// Which of the planned changes were made. After a stop (`recovered`) also those that were made before it
    /// and are others now, since somebody has changed them.
    pub fn made(&self, planned: Vec<Change>, recovered: bool) -> Vec<Change> {
        let mut made = Vec::new();
        for (n, change) in planned.into_iter().enumerate() {
            let mixed = recovered && self.met.contains(&n);
            if mixed || !self.undone.contains(&n) {
                made.push(Change { mixed, ..change });
            }
        }
        made
    }
}

/// Why a change was not made.
enum Fault {
    /// Something else stands there than when the plan was made.
    Meanwhile,
    /// The reason, for people.
    Left(String),
    /// It is left alone, unless the disk is to blame.
    Io(io::Error),
    /// A content cannot be read.
    Store(Error),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

type Step = Result<(), Fault>;

/// A file or a link that stands under its temporary name.
struct Ready {
    change: usize,
    /// What tells whether its place is still as it was; None where nothing stands there.
    place: Option<Identity>,
}

struct Apply<'a> {
    plan: &'a UndoPlan,
    store: &'a mut Store,
    workspace: &'a Workspace,
    restored: Restored,
    /// Whether a content that cannot be read is left out, and the rest goes on.
    gives_up: bool,
    /// Whether files are synced in batches.
    together: bool,
    ready: Vec<Ready>,
    /// The bytes of those.
    waiting: u64,
    /// Folders with changes that are not synced.
    folders: BTreeSet<String>,
}

impl UndoPlan {
    /// Removes what an earlier try left under temporary names.
    pub fn sweep(&self, workspace: &Workspace) {
        for (n, change) in self.changes.iter().enumerate() {
            if let Ok(folder) = workspace.folder_at(split(&change.path).0) {
                let _ = folder.remove_file(self.temporary(n));
            }
        }
    }

    /// Carries it out, or what is left of it; all of it is on disk then. With `again` a content that cannot be
    /// read is left out: otherwise nothing could ever go on where a disk is damaged.
    ///
    /// # Errors
    /// The disk is full or fails. It can be repeated.
    pub fn carry_out(
        &self,
        store: &mut Store,
        workspace: &Workspace,
        again: bool,
    ) -> Result<Restored> {
        let is_file = |change: &&Change| change.after.as_ref().and_then(TreeEntry::blob).is_some();
        let mut apply = Apply {
            plan: self,
            store,
            workspace,
            restored: Restored::default(),
            gives_up: again,
            together: atomic::SYNCS_ALL && self.changes.iter().filter(is_file).count() > FEW,
            ready: Vec::new(),
            waiting: 0,
            folders: BTreeSet::new(),
        };
        if let Err(e) = apply.carry_out() {
            for ready in std::mem::take(&mut apply.ready) {
                apply.drop_temporary(&ready);
            }
            return Err(e);
        }
        Ok(apply.restored)
    }
}

/// Whether what stood there goes, or makes way for something of another sort.
fn goes(change: &Change) -> bool {
    let sort = |what: &Option<TreeEntry>| what.as_ref().map(std::mem::discriminant);
    let is_file = |what: &Option<TreeEntry>| {
        matches!(what, Some(TreeEntry::File { .. } | TreeEntry::Link { .. }))
    };
    change.before.is_some()
        && sort(&change.before) != sort(&change.after)
        && !(is_file(&change.before) && is_file(&change.after))
}

impl Apply<'_> {
    fn carry_out(&mut self) -> Result<()> {
        let plan = self.plan;
        let all = || plan.changes.iter().enumerate();
        let is_moved = |path: &String| plan.moves.values().any(|from| from == path);
        for (_, change) in all() {
            if let Some(TreeEntry::Folder { mode }) = change.before {
                // Where that cannot be done, what is in it tells.
                let _ = self.set_mode(&change.path, mode | 0o700);
            }
        }
        // What makes room for something else goes first, and all else once everything is back: where that fails, it
        // can be the only copy.
        let going =
            |first| all().rev().filter(move |(_, c)| goes(c) && plan.makes_room(c) == first);
        let is_file = |change: &Change| !is_folder(change.before.as_ref());
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
                self.prepare_with_room(n, change)?;
            }
        }
        self.put_ready()?;
        let undone = self.restored.undone.iter().filter_map(|n| plan.changes[*n].after.as_ref());
        let lacking: BTreeSet<BlobId> = undone.filter_map(TreeEntry::blob).cloned().collect();
        self.each(are_gone(false, true), |apply, change| {
            let content = change.before.as_ref().and_then(TreeEntry::blob);
            match content.filter(|content| lacking.contains(*content)) {
                Some(_) => Err(Fault::Left(ONLY_COPY.to_owned())),
                None => apply.remove(change),
            }
        })?;
        self.each(are_gone(false, false), Self::remove)?;
        for (n, change) in all().rev() {
            let undone = self.restored.undone.contains(&n);
            let folder = if undone { &change.before } else { &change.after };
            if let Some(TreeEntry::Folder { mode }) = folder {
                let set = self.set_mode(&change.path, *mode);
                self.step(n, change, |_, _| Ok(set?))?;
            }
        }
        self.sync()
    }

    /// Makes these changes, each in the same way.
    fn each<'c>(
        &mut self,
        mut changes: impl Iterator<Item = (usize, &'c Change)>,
        make: impl Fn(&mut Self, &Change) -> Step,
    ) -> Result<()> {
        changes.try_for_each(|(n, change)| self.step(n, change, &make))
    }

    /// Makes a change; where that fails, it is left alone.
    fn step(
        &mut self,
        n: usize,
        change: &Change,
        make: impl FnOnce(&mut Self, &Change) -> Step,
    ) -> Result<()> {
        if self.restored.undone.contains(&n) {
            return Ok(());
        }
        let why = match make(self, change) {
            Ok(()) => return Ok(()),
            Err(Fault::Meanwhile) => {
                self.restored.met.insert(n);
                "it was changed meanwhile".to_owned()
            }
            Err(Fault::Left(why)) => why,
            Err(Fault::Store(e)) if self.gives_up => e.to_string(),
            Err(Fault::Store(e)) => return Err(e),
            Err(Fault::Io(e)) => {
                let error = Error::io("put back", change.path.as_ref(), e);
                if error.is_disk_failure() {
                    return Err(error);
                }
                error.to_string()
            }
        };
        self.restored.undone.insert(n);
        self.restored.left.push((change.shown(), why));
        Ok(())
    }

    fn now(&mut self, change: &Change) -> Result<Option<TreeEntry>, Fault> {
        self.store.inspect(self.workspace, &change.path, false).map_err(Fault::Store)
    }

    fn touched(&mut self, change: &Change) {
        self.folders.insert(split(&change.path).0.to_owned());
    }

    /// Removes a file, a link, or an empty folder.
    fn remove(&mut self, change: &Change) -> Step {
        let now = self.now(change)?;
        let is_made = is_folder(now.as_ref()) && is_folder(change.after.as_ref());
        if now.is_none() || now == change.after || is_made {
            return Ok(());
        }
        if is_folder(now.as_ref()) && is_folder(change.before.as_ref()) {
            let (folder, name) = self.workspace.holder(&change.path)?;
            match folder.remove_dir(name) {
                Err(e) if e.kind() == io::ErrorKind::DirectoryNotEmpty => {
                    return Err(Fault::Left(self.why_not_empty(change)));
                }
                removed => removed?,
            }
        } else if now == change.before && now.is_some_and(|now| now.not_stored().is_none()) {
            let (folder, name) = self.workspace.holder(&change.path)?;
            folder.remove_file(name)?;
        } else {
            return Err(Fault::Meanwhile);
        }
        self.touched(change);
        Ok(())
    }

    /// What a folder holds that stays; of a repository's `.git` with the command that moves it back.
    fn why_not_empty(&self, change: &Change) -> String {
        let names = self.workspace.folder_at(&change.path).and_then(|folder| folder.entries());
        let mut names: Vec<OsString> =
            names.into_iter().flatten().flatten().map(|entry| entry.file_name()).collect();
        names.sort_unstable();
        let Some(first) = names.first() else { return "it is not empty".to_owned() };
        if let Some(home) = names.iter().find(|name| *name == ".git").and(self.home_of(change)) {
            let [from, to] = [&change.path, &home].map(|path| shown(path).replace('\'', "'\\''"));
            return format!("it holds the repository's .git: `mv '{from}/.git' '{to}/.git'`");
        }
        format!("it is not empty: '{}' stays", visible_line(&first.to_string_lossy()))
    }

    /// Where a folder was before it was moved here: what was in it goes back there.
    fn home_of(&self, change: &Change) -> Option<String> {
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

    fn make_folder(&mut self, change: &Change) -> Step {
        match self.now(change)? {
            Some(TreeEntry::Folder { .. }) => return Ok(()),
            Some(_) => return Err(Fault::Meanwhile),
            None => {}
        }
        let (folder, name) = self.workspace.holder(&change.path)?;
        folder.create_dir(&name)?;
        give_to_owner(&folder, name.as_os_str())?;
        self.touched(change);
        self.set_mode(&change.path, 0o700)?;
        Ok(())
    }

    fn set_mode(&mut self, path: &str, mode: u32) -> io::Result<()> {
        let (folder, found) = self.workspace.stands_at(path)?;
        let name = if path.is_empty() { ".".into() } else { unescaped(split(path).1) };
        if found.is_dir() && FileStat::of(&found).mode != mode {
            set_mode(&folder, &name, mode)?;
            self.folders.insert(path.to_owned());
        }
        Ok(())
    }

    /// Renames a file that is not stored to where it was.
    fn move_back(&mut self, from: &str, change: &Change) -> Step {
        let was = self.plan.change(from).and_then(|planned| planned.before.as_ref());
        let is = |path: &str| {
            let now = was.and_then(|was| self.workspace.as_unkept(path, was));
            now.is_some() && is_same(was, now.as_ref())
        };
        if self.workspace.stands_at(&change.path).is_ok() {
            return if is(&change.path) { Ok(()) } else { Err(Fault::Meanwhile) };
        }
        if !is(from) {
            return Err(Fault::Meanwhile);
        }
        let (folder, name) = split(from);
        let (to, new) = self.workspace.holder(&change.path)?;
        rename_new(&self.workspace.folder_at(folder)?, &unescaped(name), &to, &new)?;
        self.folders.insert(folder.to_owned());
        self.touched(change);
        Ok(())
    }

    /// Prepares a file or a link; where the disk is full, those before it get their places first.
    fn prepare_with_room(&mut self, n: usize, change: &Change) -> Result<()> {
        match self.step(n, change, |apply, change| apply.prepare(n, change)) {
            Err(e) if e.is_disk_full() && !self.ready.is_empty() => {
                self.put_ready()?;
                self.step(n, change, |apply, change| apply.prepare(n, change))?;
            }
            done => done?,
        }
        let is_much = self.ready.len() >= BATCH.0 || self.waiting >= BATCH.1;
        if is_much || !self.together { self.put_ready() } else { Ok(()) }
    }

    /// Writes a file or a link under its temporary name.
    fn prepare(&mut self, n: usize, change: &Change) -> Step {
        let place = self.workspace.holder(&change.path);
        // Before it is looked at: what is changed after that is seen.
        let identity = place.as_ref().ok().and_then(|(folder, name)| identity_of(folder, name));
        let now = self.now(change)?;
        if now == change.after {
            return Ok(());
        }
        let is_free = now.is_none() && (change.before.is_none() || goes(change));
        if now != change.before && !is_free
            || now.as_ref().is_some_and(|now| now.not_stored().is_some())
        {
            return Err(Fault::Meanwhile);
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
                // Now it can be read, and may be another than it was taken for.
                if is_closed(was) && self.now(change)? != change.after {
                    set_mode(&folder, &name, was)?;
                    return Err(Fault::Meanwhile);
                }
                // Its folder's entries do not say so.
                self.together |= atomic::SYNCS_ALL;
                self.touched(change);
                return Ok(());
            }
            (Some(TreeEntry::File { blob, mode, size }), _) => {
                let bytes = self.store.blobs.read(blob).map_err(Fault::Store)?;
                let gone = || Fault::Left("what it was is not kept any more".to_owned());
                let bytes = bytes.ok_or_else(gone)?;
                let like = folder.symlink_metadata(&name).ok().filter(Metadata::is_file);
                put(&folder, &temporary, &bytes, like.as_ref(), Some(*mode), !self.together)?;
                self.waiting += size;
            }
            (Some(TreeEntry::Link { target }), _) => link(&folder, target, &temporary)?,
            _ => return Ok(()),
        }
        self.ready.push(Ready { change: n, place: identity });
        Ok(())
    }

    /// What is prepared gets its place, once it is on disk.
    fn put_ready(&mut self) -> Result<()> {
        if self.together {
            let changes = &self.plan.changes;
            let folders = self.ready.iter().map(|ready| split(&changes[ready.change].path).0);
            self.sync_all(folders.collect())?;
        }
        self.waiting = 0;
        while let Some(ready) = self.ready.pop() {
            let change = &self.plan.changes[ready.change];
            let put = self.step(ready.change, change, |apply, change| apply.rename(change, &ready));
            if put.is_err() || self.restored.undone.contains(&ready.change) {
                self.drop_temporary(&ready);
            }
            put?;
        }
        Ok(())
    }

    fn rename(&mut self, change: &Change, ready: &Ready) -> Step {
        let (folder, name) = self.workspace.holder(&change.path)?;
        if identity_of(&folder, &name) != ready.place {
            return Err(Fault::Meanwhile);
        }
        folder.rename(self.plan.temporary(ready.change), &folder, &name)?;
        self.touched(change);
        Ok(())
    }

    fn drop_temporary(&self, ready: &Ready) {
        if let Ok((folder, _)) = self.workspace.holder(&self.plan.changes[ready.change].path) {
            // What is in the way of it has been reported.
            let _ = folder.remove_file(self.plan.temporary(ready.change));
        }
    }

    fn sync(&self) -> Result<()> {
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
            let open = |path: &str| self.workspace.folder_at(path).ok()?.open(".").ok();
            let Some(folder) = ancestors(path).rev().chain([""]).find_map(open) else { continue };
            let found = folder.metadata().map_err(|e| self.not_synced(e))?;
            if done.insert(found.dev()) {
                atomic::sync_all_of(&folder).map_err(|e| self.not_synced(e))?;
            }
        }
        Ok(())
    }

    fn not_synced(&self, error: io::Error) -> Error {
        Error::io("sync", self.workspace.path(), error)
    }
}

/// What tells whether something is still the same; None where nothing stands there. Another name of the same file
/// may have been put back meanwhile, which changes no more than its last time.
fn identity_of(folder: &Dir, name: &OsStr) -> Option<Identity> {
    let found = folder.symlink_metadata(name).ok()?;
    Some(Identity::of(&FileStat { changed: 0, ..FileStat::of(&found) }, found.len()))
}

fn link(folder: &Dir, target: &str, name: &str) -> io::Result<()> {
    folder.symlink_contents(unescaped(target), name)?;
    give_to_owner(folder, name)
}
