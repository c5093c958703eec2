//! Looking: what stands in one place, and in all of the workspace.

use std::io::{self, Read};
use std::time::{SystemTime, UNIX_EPOCH};

use cap_std::fs::{Dir, Metadata};

use super::aside::Aside;
use super::clocks::Clocks;
use super::hidden::{Hidden, unreadable_at};
use super::index::Known;
use super::merge::is_same;
use super::numbers::Identity;
use super::{Store, What, Why, ignored, tracked};
use crate::blobs::BlobId;
use crate::error::{Error, Result};
use crate::text::visible_line;
use crate::workspace::folder_cache::FolderCache;
use crate::workspace::modes::without_set_ids;
use crate::workspace::names::{escaped_os, shown, split, unescaped};
use crate::workspace::walk::detailed::{DetailedWalk, FileStat, IgnoreSource, WalkEntry};
use crate::workspace::walk::{EntryKind, Walk, walk_closely};
use crate::workspace::{Workspace, open_to_look};

/// What was changed so short a time ago may change again without another time, in nanoseconds; on
/// some file systems times are of two seconds.
pub(super) const YOUNG: i128 = 2_000_000_000;
/// As the time of a look: nothing is so old that its times tell that it is as it was.
const NEVER: i128 = i128::MIN;
/// A file that is written while it is read is read so often.
const TRIES: usize = 3;

/// What a look at all of the workspace gives.
#[derive(Debug)]
pub(super) struct Looked {
    pub(super) walk: Walk,
    /// What differs from the last look.
    pub(super) differences: Vec<Difference>,
    /// What rules leave out.
    pub(super) aside: Aside,
    /// What was kept of that at the last look, and is gone.
    pub(super) deleted: Vec<Difference>,
}

/// What differs from the last look.
#[derive(Debug)]
pub(super) struct Difference {
    /// Where.
    pub(super) path: String,
    /// What stood there, and what does now.
    pub(super) before: Option<What>,
    pub(super) after: Option<What>,
    /// What is told of it now, if anything stands there.
    pub(super) facts: Option<(FileStat, u64)>,
}

/// Whether the times of what was met tell that it is as it was.
fn tells(folders: &mut FolderCache, met: &WalkEntry, clocks: &mut Clocks) -> bool {
    let (folder, name) = split(&met.path);
    met.kind != Some(EntryKind::File)
        || clocks.tell(met.facts.device, || Some((folders.folder(folder).ok()?, unescaped(name))))
}

impl Store {
    /// Looks at all that is not left out by these rules, and keeps what is new. Nothing of it is on disk before it
    /// is settled.
    ///
    /// # Errors
    /// The root cannot be listed, or something cannot be kept; then all is as before.
    pub(super) fn look_at_all(
        &mut self,
        workspace: &Workspace,
        by: &IgnoreSource,
    ) -> Result<Looked> {
        self.index.load(None)?;
        let looked = self.compare(workspace, by);
        if looked.is_err() {
            self.forget();
        }
        looked
    }

    fn compare(&mut self, workspace: &Workspace, by: &IgnoreSource) -> Result<Looked> {
        let now = now();
        let mut walk = walk_closely(workspace, by)?;
        let mut close = *walk.take_detailed().unwrap_or_default();
        tracked::meet(workspace, walk.repositories(), by, &self.index.rules, &mut close);
        let DetailedWalk { mut met, left_out, rules, others, unreadable } = close;
        met.push(workspace.met_root()?);
        met.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        self.index.earlier = std::mem::take(&mut self.index.seen);
        let (mut differences, mut folders) = (Vec::new(), FolderCache::new(workspace));
        let mut clocks = Clocks::default();
        for met in met {
            let was = self.index.earlier.remove(&met.path);
            let known = self.known_of(&met, was.as_ref(), &mut folders, &mut clocks, now)?;
            let hidden = was.is_none() && self.index.hidden.hides(&met.path);
            let was_what = match &was {
                Some(known) => Some(known.what.clone()),
                None => hidden.then(|| unreadable_at(&met.path)),
            };
            // What the root was is unknown where no look before had it.
            let is_new_root = met.path.is_empty() && was.is_none();
            if was_what.as_ref() != Some(&known.what) && !is_new_root {
                differences.push(Difference {
                    path: met.path.clone(),
                    before: was_what,
                    after: Some(known.what.clone()),
                    facts: Some((met.facts, met.size)),
                });
            }
            if was.as_ref() == Some(&known) {
                self.index.seen.insert(met.path, known);
            } else {
                self.index.set(met.path, known);
            }
        }
        let hidden = Hidden::of(unreadable);
        let before = std::mem::take(&mut self.index.earlier);
        self.hold(before.values().filter_map(|known| known.what.blob()));
        for (path, known) in before {
            // What cannot be listed may still be known by its name.
            let stands = hidden.hides(&path).then(|| folders.stands_at(&path).map(drop));
            let after = match stands {
                None => None,
                Some(Err(e)) if !folders.tells_nothing_is_there(&path, &e) => {
                    Some(unreadable_at(&path))
                }
                Some(_) => self.look_at_next(workspace, &mut folders, &path, true)?,
            };
            self.index.gone(&path);
            let before = Some(known.what);
            if before != after {
                differences.push(Difference { path, before, after, facts: None });
            }
        }
        self.index.hide(hidden);
        self.index.go_by(rules);
        let mut earlier = self.index.ignored.clone();
        for met in ignored::kept(workspace, &left_out, self.ignored_limits) {
            let was = earlier.remove(&met.path);
            let known = self.known_of(&met, was.as_ref(), &mut folders, &mut clocks, now)?;
            if was.as_ref() != Some(&known) {
                self.index.set_ignored(met.path, known);
            }
        }
        let mut deleted = Vec::new();
        for (path, known) in earlier {
            let is_folder = matches!(known.what, What::Folder { .. });
            let stands = folders.stands_at(&path).map(|(_, found)| found.is_dir() || !is_folder);
            if !stands.unwrap_or_else(|e| !folders.tells_nothing_is_there(&path, &e)) {
                self.hold(known.what.blob().into_iter());
                let before = Some(known.what);
                let path = path.clone();
                deleted.push(Difference { path, before, after: None, facts: None });
            }
            self.index.ignored_gone(&path);
        }
        if others {
            // What is listed goes by the rules on disk.
            walk = workspace.walk()?;
        }
        Ok(Looked { walk, differences, aside: Aside::of(left_out), deleted })
    }

    /// What stands where that was met, as it `was` where that still holds.
    fn known_of(
        &mut self,
        met: &WalkEntry,
        was: Option<&Known>,
        folders: &mut FolderCache,
        clocks: &mut Clocks,
        now: i128,
    ) -> Result<Known> {
        let tells = tells(folders, met, clocks);
        let holds = tells && was.is_some_and(|known| known.holds_for(met));
        if !holds {
            self.hold(was.iter().filter_map(|known| known.what.blob()));
        }
        match was.filter(|known| holds && !self.finds_room_for(known)) {
            // Its file system may have another number since.
            Some(known) => Ok(Known { facts: met.facts, ..known.clone() }),
            None => self.look_at_met(met, was, folders, if tells { now } else { NEVER }),
        }
    }

    /// Whether it was not kept for lack of room, and there is some now.
    fn finds_room_for(&mut self, known: &Known) -> bool {
        known.what.unkept() == Some(Why::Room) && self.has_room_for(known.size)
    }

    fn look_at_met(
        &mut self,
        met: &WalkEntry,
        was: Option<&Known>,
        folders: &mut FolderCache,
        now: i128,
    ) -> Result<Known> {
        let WalkEntry { path, kind, size, facts } = met;
        let known = |what| Known { what, facts: *facts, size: *size, sure: facts.is_old(now) };
        let unkept = |why| known(What::Unkept { why, is: Identity::of(facts, *size) });
        let (folder, name) = split(path);
        let folder = match kind {
            None => return Ok(known(What::Folder { mode: facts.mode })),
            Some(EntryKind::Other) => return Ok(unkept(Why::Other)),
            Some(EntryKind::File | EntryKind::Link) => folders.folder(folder),
        };
        let Ok(folder) = folder else { return Ok(unkept(Why::Unreadable)) };
        if *kind == Some(EntryKind::Link) {
            let target = folder.read_link_contents(unescaped(name));
            return Ok(target.map_or(unkept(Why::Unreadable), |target| {
                known(What::Link { target: escaped_os(target.as_os_str()) })
            }));
        }
        Ok(match self.read(folder, name, true)? {
            Some((what, facts, size)) => Known { what, facts, size, sure: facts.is_old(now) },
            None => unread(was, facts, *size).map_or_else(|| unkept(Why::Unreadable), known),
        })
    }

    /// What stands at a path; None where nothing does. With `keep` the content of a file is kept, if
    /// it can be.
    pub(super) fn look_at(
        &mut self,
        workspace: &Workspace,
        path: &str,
        keep: bool,
    ) -> Result<Option<What>> {
        self.look_at_next(workspace, &mut FolderCache::new(workspace), path, keep)
    }

    /// The same in one of many places.
    pub(super) fn look_at_next(
        &mut self,
        workspace: &Workspace,
        folders: &mut FolderCache,
        path: &str,
        keep: bool,
    ) -> Result<Option<What>> {
        let name = split(path).1;
        let stands = folders.stands_at(path).map(|(_, found)| found);
        let found = match stands {
            Ok(found) => found,
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                return Ok(Some(unreadable_at(path)));
            }
            Err(e) if folders.tells_nothing_is_there(path, &e) => return Ok(None),
            // A disk that fails does not tell that nothing is there, nor does a lack of open files.
            Err(e) => {
                let path = visible_line(&shown(path)).into_owned();
                return Err(Error::io("look at", path.as_ref(), e));
            }
        };
        let folder = folders.last();
        let facts = FileStat::of(&found);
        let unkept = |why| What::Unkept { why, is: Identity::of(&facts, found.len()) };
        if workspace.is_state(path, &found) {
            return Ok(Some(unkept(Why::Other)));
        }
        Ok(Some(if found.is_dir() && name == ".git" {
            repository_at(path)
        } else if found.is_dir() {
            What::Folder { mode: facts.mode }
        } else if found.is_symlink() {
            match folder.read_link_contents(unescaped(name)) {
                Ok(target) => What::Link { target: escaped_os(target.as_os_str()) },
                Err(_) => unkept(Why::Unreadable),
            }
        } else if found.is_file() {
            match self.read(folder, name, keep)? {
                Some((what, ..)) => what,
                None => {
                    self.index.load(None)?;
                    let was = self.index.seen.get(path);
                    unread(was, &facts, found.len()).unwrap_or_else(|| unkept(Why::Unreadable))
                }
            }
        } else {
            unkept(Why::Other)
        }))
    }

    /// What stands at a path, as `look_at` has it, or as one of these says it where it is that and not
    /// kept: a rename makes no other of it.
    pub(super) fn look_for(
        &mut self,
        workspace: &Workspace,
        path: &str,
        keep: bool,
        known: [Option<&What>; 2],
    ) -> Result<Option<What>> {
        let all = workspace.as_unkept(path, known);
        let found = all
            .iter()
            .find(|(what, now)| now == *what)
            .or_else(|| all.iter().find(|(what, now)| is_same(Some(now), Some(what))));
        match found {
            Some((what, _)) => Ok(Some((*what).clone())),
            None => self.look_at(workspace, path, keep),
        }
    }

    /// Whether what stands at a path is surely what it was at the last look, as far as that tells without
    /// reading it.
    pub(super) fn is_as_seen(&self, workspace: &Workspace, path: &str) -> bool {
        self.index.seen.get(path).filter(|known| known.sure).is_some_and(|known| {
            let same = Identity::of(&known.facts, known.size);
            workspace.identity_at(path).is_ok_and(|now| now == same)
        })
    }

    /// Reads a regular file, and keeps its content where that is asked for; None where it cannot be
    /// read, or is no such file.
    fn read(
        &mut self,
        folder: &Dir,
        name: &str,
        keep: bool,
    ) -> Result<Option<(What, FileStat, u64)>> {
        for _ in 0..TRIES {
            let Ok((bytes, before, after)) = read_once(folder, name, self.file_limit) else {
                return Ok(None);
            };
            let (facts, size) = (FileStat::of(&before), before.len());
            let unkept = |why| What::Unkept { why, is: Identity::of(&facts, size) };
            let Some(bytes) = bytes else { return Ok(Some((unkept(Why::Large), facts, size))) };
            if facts != FileStat::of(&after) || bytes.len() as u64 != size {
                continue;
            }
            let blob = if keep { self.keep(&bytes)? } else { Some(BlobId::of(&bytes)) };
            let what = match blob {
                Some(blob) => What::File { blob, mode: without_set_ids(facts.mode), size },
                None => unkept(Why::Room),
            };
            return Ok(Some((what, facts, size)));
        }
        Ok(None)
    }
}

impl FileStat {
    fn is_old(&self, now: i128) -> bool {
        self.changed != 0 && self.changed + YOUNG < now
    }
}

/// A file that its permissions keep from being read, with the content that it had when it could be: its
/// number, its size and its time of writing are still those. None where that is not so. What it holds is
/// looked at again when it gets its permissions back.
fn unread(was: Option<&Known>, facts: &FileStat, size: u64) -> Option<What> {
    let Known { what: What::File { blob, .. }, facts: then, size: before, .. } = was? else {
        return None;
    };
    let same = then.is_number_of(facts) && (then.written, *before) == (facts.written, size);
    let same = same && facts.changed != 0 && is_closed(facts.mode);
    let mode = without_set_ids(facts.mode);
    same.then(|| What::File { blob: blob.clone(), mode, size })
}

/// Whether these permissions keep an owner from reading.
pub(super) fn is_closed(mode: u32) -> bool {
    mode & 0o400 == 0
}

/// A file's bytes, unless there are more than `limit`; and what was told of it before and after.
fn read_once(
    folder: &Dir,
    name: &str,
    limit: u64,
) -> io::Result<(Option<Vec<u8>>, Metadata, Metadata)> {
    let (mut file, before) = open_to_look(folder, &unescaped(name))?;
    if !before.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    if before.len() > limit {
        return Ok((None, before.clone(), before));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(before.len()).unwrap_or_default());
    (&mut file).take(limit + 1).read_to_end(&mut bytes)?;
    let after = file.metadata()?;
    Ok((Some(bytes), before, after))
}

/// The `.git` folder of a repository. Git writes in it at any time, so nothing tells that it is as it was.
pub(super) fn repository_at(path: &str) -> What {
    What::Unkept { why: Why::Repository, is: Identity::At(path.to_owned()) }
}

pub(super) fn now() -> i128 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i128::try_from(since.as_nanos()).unwrap_or_default()
}
