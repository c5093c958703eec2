//! Putting back what was planned. Each place is looked at again just before it is touched, and what is
//! not what was planned for is left alone. All of it can be done again after a hard stop: what stands
//! somewhere tells whether it is done.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

use cap_std::fs::Dir;

use super::copies::content;
use super::look::split;
use super::plan::ancestors;
use super::writing::{FEW, Ready};
use super::{Change, Plan, Store, What};
use crate::atomic;
use crate::error::{Error, Result};
use crate::workspace::Workspace;
use crate::workspace::modes::set_mode;
use crate::workspace::names::unescaped;
use crate::workspace::plan::give_to_owner;
use crate::workspace::walk::close::Facts;

/// What became of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Restored {
    /// What could not be put back, by its path for people, and why.
    pub left: Vec<(String, String)>,
    /// Which changes these are, by number.
    pub undone: BTreeSet<usize>,
    /// Which of them are so since something else stands there than the plan says.
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

/// Why a change is not made though nothing fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unmade {
    /// What stands there is not what it was when the plan was made.
    Meanwhile,
    /// The folder that is to go is not empty.
    Holds,
    /// What is to stand there is gone.
    Gone,
    /// It may be the only copy of something that was not put back.
    Copy,
}

impl Unmade {
    /// A phrase for people.
    fn in_words(self) -> &'static str {
        match self {
            Self::Meanwhile => "it was changed meanwhile",
            Self::Holds => "the folder holds something that stays",
            Self::Gone => "what it was is not kept any more",
            Self::Copy => "it may be the only copy of something that could not be put back",
        }
    }
}

/// Why a change was not made.
pub(super) enum Fault {
    /// It is left alone, unless the disk is to blame.
    Io(io::Error),
    /// What is kept cannot be read.
    Store(Error),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// What became of a change: nothing to tell, or why it is left alone.
pub(super) type Step = Result<Option<Unmade>, Fault>;

pub(super) struct Hand<'a> {
    pub(super) plan: &'a Plan,
    pub(super) store: &'a mut Store,
    pub(super) workspace: &'a Workspace,
    pub(super) restored: Restored,
    /// Contents that did not come to be where they were.
    missed: BTreeSet<String>,
    /// Whether what cannot be read of what is kept is left alone.
    gives_up: bool,
    /// The changes that have something go, by their paths in lower case; only where that is asked for.
    pub(super) going: OnceCell<BTreeMap<String, usize>>,
    /// Whether files are brought to disk together.
    pub(super) together: bool,
    pub(super) ready: Vec<Ready>,
    /// How many bytes those are.
    pub(super) waiting: u64,
    /// Folders with changes that are not synced.
    pub(super) folders: BTreeSet<String>,
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

    /// Carries it out, or what is left of it. All of it is on disk then. With `again` what is kept and
    /// cannot be read is left alone: else nothing could ever go on where a disk is damaged.
    ///
    /// # Errors
    /// The disk is full or fails: how far it came can be seen, and it can be done again.
    pub fn carry_out(
        &self,
        store: &mut Store,
        workspace: &Workspace,
        again: bool,
    ) -> Result<Restored> {
        let is_file = |change: &&Change| change.after.as_ref().and_then(What::blob).is_some();
        let mut hand = Hand {
            plan: self,
            store,
            workspace,
            restored: Restored::default(),
            missed: BTreeSet::new(),
            gives_up: again,
            going: OnceCell::new(),
            together: atomic::SYNCS_ALL && self.changes.iter().filter(is_file).count() > FEW,
            ready: Vec::new(),
            waiting: 0,
            folders: BTreeSet::new(),
        };
        if let Err(e) = hand.carry_out() {
            for ready in std::mem::take(&mut hand.ready) {
                hand.drop_temporary(&ready);
            }
            return Err(e);
        }
        Ok(hand.restored)
    }
}

/// What sort of thing it is: one sort cannot become another in its place.
pub(super) fn sort(what: Option<&What>) -> u8 {
    match what {
        None => 0,
        Some(What::File { .. } | What::Link { .. }) => 1,
        Some(What::Folder { .. }) => 2,
        Some(What::Unkept { .. }) => 3,
    }
}

impl Hand<'_> {
    fn carry_out(&mut self) -> Result<()> {
        let plan = self.plan;
        for (folder, mode) in plan.opened() {
            // Where that cannot be done, what is in it tells.
            let _ = self.set_mode(folder, mode | 0o700);
        }
        let changes = || plan.changes.iter().enumerate();
        let goes = |change: &Change| {
            change.before.is_some() && sort(change.before.as_ref()) != sort(change.after.as_ref())
        };
        let in_the_way = |change: &Change| goes(change) && change.after.is_some();
        let in_the_way: BTreeSet<&str> =
            plan.changes.iter().filter(|c| in_the_way(c)).map(|c| c.path.as_str()).collect();
        let waits = |change: &Change| ancestors(&change.path).any(|p| in_the_way.contains(p));
        let contents = plan.changes.iter().filter_map(|c| content(c.after.as_ref()?));
        let wanted: BTreeSet<String> = contents.collect();
        // What came only with the turn makes room first.
        let is_new = |change: &Change| {
            let content = change.before.as_ref().and_then(content);
            content.is_some_and(|content| !wanted.contains(&content))
        };
        let first = |change: &Change| goes(change) && is_new(change) && !waits(change);
        for (n, change) in changes().rev().filter(|(_, change)| first(change)) {
            self.step(n, change, Self::remove)?;
        }
        // What may be needed elsewhere goes only when it stands there, as far as it is not in the way.
        for waiting in [false, true] {
            for (n, change) in changes().rev().filter(|(_, c)| waiting && goes(c) && waits(c)) {
                self.step(n, change, Self::remove_copy)?;
            }
            for (n, change) in changes().filter(|(_, change)| waits(change) == waiting) {
                match &change.after {
                    Some(What::Folder { .. }) => {
                        self.step(n, change, |hand, change| hand.make_folder(n, change))?;
                    }
                    Some(What::Unkept { .. }) => {
                        self.step(n, change, Self::move_back)?;
                    }
                    Some(_) => self.prepare_with_room(n, change)?,
                    None => {}
                }
            }
            self.put_ready()?;
        }
        let last = |change: &Change| goes(change) && !is_new(change) && !waits(change);
        for (n, change) in changes().rev().filter(|(_, change)| last(change)) {
            self.step(n, change, Self::remove_copy)?;
        }
        for (n, change) in changes().rev() {
            if let Some(What::Folder { mode }) = change.after {
                self.step(n, change, |hand, change| {
                    Ok(hand.set_mode(&change.path, mode).map(|()| None)?)
                })?;
            }
        }
        for (folder, mode) in plan.opened().iter().rev() {
            let _ = self.set_mode(folder, *mode);
        }
        self.sync()
    }

    /// Does something for a change; where that fails, it is left alone.
    pub(super) fn step(
        &mut self,
        n: usize,
        change: &Change,
        what: impl FnOnce(&mut Self, &Change) -> Step,
    ) -> Result<()> {
        if self.restored.undone.contains(&n) {
            return Ok(());
        }
        let why = match what(self, change) {
            Ok(None) => return Ok(()),
            Ok(Some(why)) => {
                if why == Unmade::Meanwhile {
                    self.restored.met.insert(n);
                }
                why.in_words().to_owned()
            }
            Err(Fault::Store(e)) if self.gives_up => e.to_string(),
            Err(Fault::Store(e)) => return Err(e),
            Err(Fault::Io(e)) => {
                let error = Error::io("put back", change.path.as_ref(), e);
                if error.is_of_the_disk() {
                    return Err(error);
                }
                error.to_string()
            }
        };
        self.restored.undone.insert(n);
        self.missed.extend(change.after.as_ref().and_then(content));
        self.restored.left.push((change.shown(), why));
        Ok(())
    }

    pub(super) fn now(&mut self, change: &Change) -> Result<Option<What>, Fault> {
        self.store.look_at(self.workspace, &change.path, false).map_err(Fault::Store)
    }

    pub(super) fn folder(&self, change: &Change) -> io::Result<Dir> {
        let folder = split(&change.path).0;
        // Another one may be reached by it.
        if !self.workspace.lists(folder) {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.workspace.folder_at(folder)
    }

    pub(super) fn touched(&mut self, change: &Change) {
        self.folders.insert(split(&change.path).0.to_owned());
    }

    /// What stands there is to go, unless it may be the only copy of something that was not put back.
    fn remove_copy(&mut self, change: &Change) -> Step {
        let content = change.before.as_ref().and_then(content);
        if content.is_some_and(|content| self.missed.contains(&content)) {
            return Ok(Some(Unmade::Copy));
        }
        self.remove(change)
    }

    /// What stands there is to go.
    fn remove(&mut self, change: &Change) -> Step {
        let carried = self.carried(change);
        let change = carried.as_ref().unwrap_or(change);
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
                        return Ok(Some(Unmade::Holds));
                    }
                    done => done?,
                }
            }
            // Where it was to be moved back, it is not.
            (What::Unkept { .. }, _) => return Ok(Some(Unmade::Copy)),
            _ if now == change.before => self.folder(change)?.remove_file(name)?,
            _ => return Ok(Some(Unmade::Meanwhile)),
        }
        self.touched(change);
        Ok(None)
    }

    fn make_folder(&mut self, n: usize, change: &Change) -> Step {
        let name = unescaped(split(&change.path).1);
        match self.now(change)? {
            Some(What::Folder { .. }) => return Ok(None),
            Some(_) => return Ok(Some(Unmade::Meanwhile)),
            None => {}
        }
        if !self.respell(n, change)? {
            return Ok(Some(Unmade::Meanwhile));
        }
        let folder = self.folder(change)?;
        if self.now(change)?.is_none() {
            folder.create_dir(&name)?;
            give_to_owner(&folder, name.as_os_str())?;
        }
        self.touched(change);
        self.set_mode(&change.path, 0o700)?;
        Ok(None)
    }

    fn set_mode(&mut self, path: &str, mode: u32) -> io::Result<()> {
        let (folder, found) = self.workspace.stands_at(path)?;
        let name = if path.is_empty() { ".".into() } else { unescaped(split(path).1) };
        if found.is_dir() && Facts::of(&found).mode != mode {
            set_mode(&folder, &name, mode)?;
            self.folders.insert(path.to_owned());
        }
        Ok(())
    }
}
