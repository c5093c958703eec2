//! What stands in one place of the workspace, and in all of it.

use std::collections::HashSet;
use std::io::{self, Read};
use std::time::{SystemTime, UNIX_EPOCH};

use cap_std::fs::{Dir, Metadata};

use super::ignored;
use super::ignored_changes::IgnoredSnapshot;
use super::stat_cache::{CachedEntry, Unreadable};
use super::tree::{Identity, is_same, shown_path};
use super::trusted_times::TrustedTimes;
use super::{CheckpointStore, NotStored, TreeChange, TreeEntry, tracked};
use crate::blobs::BlobId;
use crate::error::{Error, Result};
use crate::workspace::folder_cache::FolderCache;
use crate::workspace::modes::without_set_ids;
use crate::workspace::names::{escaped_os, split, unescaped};
use crate::workspace::walk::detailed::{DetailedWalk, FileStat, IgnoreSource, WalkEntry};
use crate::workspace::walk::{EntryKind, PlaceKind, Walk, detailed_walk};
use crate::workspace::{Workspace, open_to_look};

/// What was changed so short a time ago may change again without another time, in nanoseconds; on
/// some file systems times are of two seconds.
pub(super) const YOUNG: i128 = 2_000_000_000;
/// A file that is written while it is read is read so often.
const TRIES: usize = 3;

/// What a scan of all of the workspace gives.
#[derive(Debug)]
pub(super) struct ScanResult {
    pub(super) walk: Walk,
    /// What differs from the last scan; of what is kept though rules leave it out, what is gone.
    pub(super) differences: Vec<Difference>,
    /// What rules leave out.
    pub(super) ignored: IgnoredSnapshot,
}

/// What differs from the last scan.
#[derive(Debug)]
pub(super) struct Difference {
    pub(super) change: TreeChange,
    /// Whether a scan meets it; otherwise it is only kept though rules leave it out.
    pub(super) is_scanned: bool,
    /// What is told of it now, where a walk met it.
    pub(super) facts: Option<(FileStat, u64)>,
}

impl CheckpointStore {
    /// Scans all that is not left out by these rules, and keeps what is new. Nothing of it is on disk before it
    /// is settled.
    ///
    /// # Errors
    /// The root cannot be listed, or something cannot be kept; then all is as before.
    pub(super) fn scan(&mut self, workspace: &Workspace, by: &IgnoreSource) -> Result<ScanResult> {
        self.cache.load(None)?;
        self.compare(workspace, by).inspect_err(|_| self.discard_unsynced())
    }

    fn compare(&mut self, workspace: &Workspace, by: &IgnoreSource) -> Result<ScanResult> {
        let now = now();
        let mut walk = detailed_walk(workspace, by)?;
        let mut close = *walk.take_detailed().unwrap_or_default();
        tracked::meet(
            workspace,
            walk.places(PlaceKind::Repository),
            by,
            &self.cache.rules,
            &mut close,
        );
        let DetailedWalk { mut met, left_out, rules, others, unreadable } = close;
        met.push(workspace.root_entry()?);
        met.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        let kept = ignored::kept(workspace, &left_out, self.ignored_limits);
        let paths: HashSet<String> = kept.iter().map(|kept| kept.path.clone()).collect();
        // What git tracks in an ignored folder is met by itself.
        let met = met.into_iter().map(|met| {
            let tracked = paths.contains(&met.path);
            (met, tracked, tracked)
        });
        let kept = kept.into_iter().map(|kept| (kept, true, false));
        self.cache.earlier = std::mem::take(&mut self.cache.seen);
        let (mut differences, mut folders) = (Vec::new(), FolderCache::new(workspace));
        let mut times = TrustedTimes::default();
        for (met, ignored, tracked) in met.chain(kept) {
            if self.cache.seen.contains_key(&met.path) {
                continue;
            }
            let is_scanned = !ignored || tracked;
            let earlier = &mut self.cache.earlier;
            let is_known =
                earlier.get(&met.path).is_some_and(|known| known.is_scanned() == is_scanned);
            let was = if is_known { earlier.remove(&met.path) } else { None };
            let known = self.cached_entry(&met, was.as_ref(), &mut folders, &mut times, now)?;
            let known = CachedEntry { ignored, tracked, ..known };
            let before = match &was {
                Some(known) => Some(known.what.clone()),
                None => {
                    let is_unknown = self.cache.unreadable.hides(&met.path);
                    is_unknown.then(|| TreeEntry::unreadable_at(&met.path))
                }
            };
            // What the root was is unknown where no scan before had it.
            let is_new_root = met.path.is_empty() && was.is_none();
            if is_scanned && before.as_ref() != Some(&known.what) && !is_new_root {
                // A file in the place of an ignored folder.
                let ignored = was.as_ref().is_some_and(|was| was.ignored && was.what.is_folder())
                    && !known.what.is_folder();
                let change = TreeChange::of(met.path.clone(), before, Some(known.what.clone()));
                let change = TreeChange { ignored, ..change };
                let facts = Some((met.facts, met.size));
                differences.push(Difference { change, is_scanned, facts });
            }
            if was.as_ref() == Some(&known) {
                self.cache.seen.insert(met.path, known);
            } else {
                self.cache.set(met.path, known);
            }
        }
        let unreadable = Unreadable::from(unreadable);
        let before = std::mem::take(&mut self.cache.earlier);
        self.mark_in_use(before.values().filter_map(|known| known.what.blob()));
        for (path, known) in before {
            let (is_scanned, CachedEntry { what, ignored, .. }) = (known.is_scanned(), known);
            // What cannot be listed may still be known by its name.
            let after = if is_scanned && !unreadable.hides(&path) {
                None
            } else {
                match folders.stands_at(&path).map(|(_, found)| found.is_dir()) {
                    Err(e) if folders.proves_absence(&path, &e) => None,
                    // A file in the place of an ignored folder is told by itself.
                    Ok(false) if !is_scanned && what.is_folder() => None,
                    _ if !is_scanned => Some(what.clone()),
                    Ok(_) => self.inspect_with(workspace, &mut folders, &path, true)?,
                    Err(_) => Some(TreeEntry::unreadable_at(&path)),
                }
            };
            if !self.cache.seen.contains_key(&path) {
                self.cache.remove(&path);
            }
            if after.as_ref() != Some(&what) {
                let change = TreeChange { ignored, ..TreeChange::of(path, Some(what), after) };
                differences.push(Difference { change, is_scanned, facts: None });
            }
        }
        self.cache.set_unreadable(unreadable);
        self.cache.set_rules(rules);
        if others {
            // What is listed goes by the rules on disk.
            walk = workspace.walk()?;
        }
        Ok(ScanResult { walk, differences, ignored: IgnoredSnapshot::of(left_out) })
    }

    /// What stands where that was met, as it `was` where that still holds.
    fn cached_entry(
        &mut self,
        met: &WalkEntry,
        was: Option<&CachedEntry>,
        folders: &mut FolderCache,
        times: &mut TrustedTimes,
        now: i128,
    ) -> Result<CachedEntry> {
        let tells = times.tell(met, folders);
        let holds = tells && was.is_some_and(|known| known.matches_entry(met));
        if !holds {
            self.mark_in_use(was.iter().filter_map(|known| known.what.blob()));
        }
        // What was not kept for lack of room is, where there is some now.
        let mut finds_room = |known: &CachedEntry| {
            known.what.not_stored() == Some(NotStored::Room) && self.has_room_for(known.size)
        };
        if let Some(known) = was.filter(|known| holds && !finds_room(known)) {
            // Its file system may have another number since.
            return Ok(CachedEntry { facts: met.facts, ..known.clone() });
        }
        let found = self.entry(folders.folder(split(&met.path).0).ok(), met, true)?;
        let (what, facts, size) =
            found.unwrap_or_else(|| (unreadable_entry(was, met), met.facts, met.size));
        let sure = tells && facts.changed != 0 && facts.changed + YOUNG < now;
        Ok(CachedEntry { what, facts, size, sure, ignored: false, tracked: false })
    }

    /// What stands in a folder, as it was met, and what is told of it; None where it cannot be read. With `keep`
    /// the content of a file is kept, if it can be.
    fn entry(
        &mut self,
        folder: Option<&Dir>,
        met: &WalkEntry,
        keep: bool,
    ) -> Result<Option<(TreeEntry, FileStat, u64)>> {
        let name = split(&met.path).1;
        let what = match (met.kind, folder) {
            (None, _) => TreeEntry::Folder { mode: met.facts.mode },
            (Some(EntryKind::Other), _) => {
                TreeEntry::new_not_stored(NotStored::Other, &met.facts, met.size)
            }
            (_, None) => return Ok(None),
            (Some(EntryKind::File), Some(folder)) => return self.read(folder, name, keep),
            (Some(EntryKind::Link), Some(folder)) => {
                let Ok(target) = folder.read_link_contents(unescaped(name)) else {
                    return Ok(None);
                };
                TreeEntry::Link { target: escaped_os(target.as_os_str()) }
            }
        };
        Ok(Some((what, met.facts, met.size)))
    }

    /// What stands at a path; None where nothing does. With `keep` the content of a file is kept, if
    /// it can be.
    pub(super) fn inspect(
        &mut self,
        workspace: &Workspace,
        path: &str,
        keep: bool,
    ) -> Result<Option<TreeEntry>> {
        self.inspect_with(workspace, &mut FolderCache::new(workspace), path, keep)
    }

    /// The same in one of many places.
    fn inspect_with(
        &mut self,
        workspace: &Workspace,
        folders: &mut FolderCache,
        path: &str,
        keep: bool,
    ) -> Result<Option<TreeEntry>> {
        let found = match folders.stands_at(path).map(|(_, found)| found) {
            Ok(found) => found,
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                return Ok(Some(TreeEntry::unreadable_at(path)));
            }
            Err(e) if folders.proves_absence(path, &e) => return Ok(None),
            // A disk that fails does not tell that nothing is there, nor does a lack of open files.
            Err(e) => return Err(Error::io("look at", shown_path(path).as_ref(), e)),
        };
        let met = WalkEntry::of(path.to_owned(), &found);
        if workspace.is_state(path, &found) {
            return Ok(Some(TreeEntry::new_not_stored(NotStored::Other, &met.facts, met.size)));
        }
        if found.is_dir() && split(path).1 == ".git" {
            return Ok(Some(TreeEntry::repository_at(path)));
        }
        if let Some((what, ..)) = self.entry(Some(folders.last()), &met, keep)? {
            return Ok(Some(what));
        }
        self.cache.load(None)?;
        Ok(Some(unreadable_entry(self.cache.get(path), &met)))
    }

    /// What stands at a path, as `inspect` has it, or as one of these says it where it is that and not
    /// stored: a rename makes no other of it.
    pub(super) fn inspect_as(
        &mut self,
        workspace: &Workspace,
        path: &str,
        keep: bool,
        known: [Option<&TreeEntry>; 2],
    ) -> Result<Option<TreeEntry>> {
        let known = known.into_iter().flatten();
        let all: Vec<_> =
            known.filter_map(|what| Some((what, workspace.as_not_stored(path, what)?))).collect();
        let found = all
            .iter()
            .find(|(what, now)| now == *what)
            .or_else(|| all.iter().find(|(what, now)| is_same(Some(now), Some(what))));
        match found {
            Some((what, _)) => Ok(Some((*what).clone())),
            None => self.inspect(workspace, path, keep),
        }
    }

    /// Whether that is what stands at a path: contents, permissions, links; of what is not stored whether it
    /// is the same file, unchanged.
    ///
    /// # Errors
    /// It cannot be looked at.
    pub fn is_still(
        &mut self,
        workspace: &Workspace,
        path: &str,
        what: Option<&TreeEntry>,
    ) -> Result<bool> {
        let now = self.inspect_as(workspace, path, false, [what, None])?;
        Ok(is_same(now.as_ref(), what))
    }

    /// Whether what stands at a path is surely what it was at the last scan, as far as that tells without
    /// reading it.
    pub(super) fn is_unchanged_since_scan(&self, workspace: &Workspace, path: &str) -> bool {
        self.cache.get(path).filter(|known| known.sure).is_some_and(|known| {
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
    ) -> Result<Option<(TreeEntry, FileStat, u64)>> {
        for _ in 0..TRIES {
            let Ok((bytes, before, after)) = read_once(folder, name, self.file_limit) else {
                return Ok(None);
            };
            let (facts, size) = (FileStat::of(&before), before.len());
            let unkept = |why| TreeEntry::new_not_stored(why, &facts, size);
            let Some(bytes) = bytes else {
                return Ok(Some((unkept(NotStored::Large), facts, size)));
            };
            if facts != FileStat::of(&after) || bytes.len() as u64 != size {
                continue;
            }
            let blob = if keep { self.store_content(&bytes)? } else { Some(BlobId::of(&bytes)) };
            let what = match blob {
                Some(blob) => TreeEntry::File { blob, mode: without_set_ids(facts.mode), size },
                None => unkept(NotStored::Room),
            };
            return Ok(Some((what, facts, size)));
        }
        Ok(None)
    }
}

impl Workspace {
    /// The root, which no folder of a walk lists.
    fn root_entry(&self) -> Result<WalkEntry> {
        let found = self.root.dir_metadata();
        let found = found.map_err(|e| Error::io("look at", &self.path, e))?;
        Ok(WalkEntry::of(String::new(), &found))
    }

    /// What tells whether what stands at a path is the same.
    pub(super) fn identity_at(&self, path: &str) -> io::Result<Identity> {
        let (_, found) = self.stands_at(path)?;
        Ok(Identity::of(&FileStat::of(&found), found.len()))
    }

    /// What stands at a path now, said in the words of something that is not stored. None where nothing stands
    /// there, or that is stored.
    pub(super) fn as_not_stored(&self, path: &str, what: &TreeEntry) -> Option<TreeEntry> {
        let why = what.not_stored()?;
        Some(TreeEntry::NotStored { reason: why, identity: self.identity_at(path).ok()? })
    }
}

/// A file that cannot be read. Where only its permissions keep it from that, it has the content that it had when it
/// could be: its number, its size and its time of writing are still those. What it holds is looked at again when it
/// gets its permissions back.
fn unreadable_entry(was: Option<&CachedEntry>, met: &WalkEntry) -> TreeEntry {
    let WalkEntry { facts, size, .. } = met;
    let same = |was: &&CachedEntry| {
        was.facts.is_number_of(facts) && (was.facts.written, was.size) == (facts.written, *size)
    };
    let was = was.filter(same).filter(|_| facts.changed != 0 && is_unreadable_mode(facts.mode));
    match was.and_then(|was| was.what.blob()) {
        Some(blob) => {
            let mode = without_set_ids(facts.mode);
            TreeEntry::File { blob: blob.clone(), mode, size: *size }
        }
        None => TreeEntry::new_not_stored(NotStored::Unreadable, facts, *size),
    }
}

/// Whether these permissions keep an owner from reading.
pub(super) fn is_unreadable_mode(mode: u32) -> bool {
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

pub(super) fn now() -> i128 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i128::try_from(since.as_nanos()).unwrap_or_default()
}
