//! Inspects single paths of the workspace, and scans the whole workspace.

use std::collections::HashSet;
use std::io::{self, Read};

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
use crate::workspace::walk::detailed::{DetailedWalk, FileStat, IgnoreSource, WalkEntry, now};
use crate::workspace::walk::{EntryKind, PlaceKind, Walk, detailed_walk};
use crate::workspace::{Workspace, open_nofollow};

/// If a file changed less than this many nanoseconds ago, another change may leave the same time stamp: some file
/// systems have a resolution of two seconds.
pub(super) const YOUNG: i64 = 2_000_000_000;
#[cfg(test)]
thread_local! {
    /// How many files were read in this thread.
    pub(super) static READS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// After this many entries of the walk, their memory is released.
const RELEASED: usize = 8_192;
/// How many times to try to read a file that changes while it is read.
const TRIES: usize = 3;

/// The result of scanning the whole workspace.
#[derive(Debug)]
pub(super) struct ScanResult {
    pub(super) walk: Walk,
    /// Differences from the last scan. For ignored files that are stored, only deletions.
    pub(super) differences: Vec<Difference>,
    /// The ignored entries.
    pub(super) ignored: IgnoredSnapshot,
}

/// A difference from the last scan.
#[derive(Debug)]
pub(super) struct Difference {
    pub(super) change: TreeChange,
    /// Whether scans include the entry. Otherwise it is ignored, and stored only to undo a deletion.
    pub(super) is_scanned: bool,
    /// The entry's current metadata and size, if the walk found it.
    pub(super) facts: Option<(FileStat, u64)>,
}

impl CheckpointStore {
    /// Scans everything that these rules do not ignore, and stores new contents. Nothing is on disk before the next
    /// sync. If `compares` is true, the differences from the last scan are collected.
    ///
    /// # Errors
    /// The root cannot be listed, or a content cannot be stored. In both cases the store is unchanged.
    pub(super) fn scan(
        &mut self,
        workspace: &Workspace,
        by: &IgnoreSource,
        compares: bool,
    ) -> Result<ScanResult> {
        self.try_scan(workspace, by, compares).inspect_err(|_| self.discard_unsynced())
    }

    fn try_scan(
        &mut self,
        workspace: &Workspace,
        by: &IgnoreSource,
        compares: bool,
    ) -> Result<ScanResult> {
        let now = now();
        let mut walk = detailed_walk(workspace, by)?;
        // Load the cache after the walk, because the walk needs much memory.
        self.cache.load()?;
        let mut close = *walk.detailed.take().unwrap_or_default();
        tracked::add_tracked(
            workspace,
            walk.places(PlaceKind::Repository),
            by,
            &self.cache.rules,
            &mut close,
        );
        let DetailedWalk { met: mut entries, left_out, rules, others, unreadable } = close;
        entries.push(workspace.root_entry()?);
        // Sort in descending order, because entries are popped from the end below.
        entries.sort_unstable_by(|a, b| b.path.cmp(&a.path));
        entries.dedup_by(|a, b| a.path == b.path);
        let mut kept = ignored::select(workspace, &left_out, self.ignored_limits);
        let paths: HashSet<String> = kept.iter().map(|kept| kept.path.clone()).collect();
        // The walk already contains the files in ignored folders that git tracks.
        kept.retain(|kept| {
            entries.binary_search_by(|entry| kept.path.as_str().cmp(&entry.path)).is_err()
        });
        self.cache.begin_scan(entries.len() + kept.len());
        let entries = std::iter::from_fn(|| {
            // Release the memory of visited entries, because the growing cache needs as much.
            if entries.len().is_multiple_of(RELEASED) {
                entries.shrink_to_fit();
            }
            entries.pop()
        });
        let entries = entries.map(|entry| {
            let tracked = paths.contains(&entry.path);
            (entry, tracked, tracked)
        });
        let kept = kept.into_iter().map(|kept| (kept, true, false));
        let (mut differences, mut folders) = (Vec::new(), FolderCache::new(workspace));
        let mut times = TrustedTimes::default();
        for (entry, ignored, tracked) in entries.chain(kept) {
            let is_scanned = !ignored || tracked;
            let is_known = |known: &CachedEntry| known.is_scanned() == is_scanned;
            let (at, was) = self.cache.take_if(&entry.path, is_known).unzip();
            let known = self.cached_entry(&entry, was.as_ref(), &mut folders, &mut times, now)?;
            let known = CachedEntry { ignored, tracked, ..known };
            // If no earlier scan included the root, its former state is unknown.
            let is_new_root = entry.path.is_empty() && was.is_none();
            let is_same = was.as_ref().is_some_and(|was| was.what == known.what);
            if compares && is_scanned && !is_same && !is_new_root {
                let before = match &was {
                    Some(known) => Some(known.what.clone()),
                    None => {
                        let is_unknown = self.cache.unreadable.hides(&entry.path);
                        is_unknown.then(|| TreeEntry::unreadable_at(&entry.path))
                    }
                };
                // A file has replaced an ignored folder.
                let ignored = was.as_ref().is_some_and(|was| was.ignored && was.what.is_folder())
                    && !known.what.is_folder();
                let change = TreeChange::of(entry.path.clone(), before, Some(known.what.clone()));
                let change = TreeChange { ignored, ..change };
                let facts = Some((entry.facts, entry.size));
                differences.push(Difference { change, is_scanned, facts });
            }
            let is_new = was.as_ref() != Some(&known);
            self.cache.add(entry.path, at, known, is_new);
        }
        let unreadable = Unreadable::from(unreadable);
        let missing = self.cache.end_scan();
        self.mark_in_use(missing.iter().filter_map(|(_, known)| known.what.blob()));
        for (path, known) in missing {
            let path = String::from(path);
            if self.cache.seen.get(&path).is_none() {
                self.cache.remove(&path);
            }
            if !compares {
                continue;
            }
            let (is_scanned, CachedEntry { what, ignored, .. }) = (known.is_scanned(), known);
            // If a folder cannot be listed, its entries may still be found by name.
            let after = if is_scanned && !unreadable.hides(&path) {
                None
            } else {
                match folders.entry(&path).map(|(_, found)| found.is_dir()) {
                    Err(e) if folders.proves_absence(&path, &e) => None,
                    // If a file replaced an ignored folder, the file is reported separately.
                    Ok(false) if !is_scanned && what.is_folder() => None,
                    _ if !is_scanned => Some(what.clone()),
                    Ok(_) => self.inspect_with(workspace, &mut folders, &path, true)?,
                    Err(_) => Some(TreeEntry::unreadable_at(&path)),
                }
            };
            if after.as_ref() != Some(&what) {
                let change = TreeChange { ignored, ..TreeChange::of(path, Some(what), after) };
                differences.push(Difference { change, is_scanned, facts: None });
            }
        }
        self.cache.set_unreadable(unreadable);
        self.cache.set_rules(rules);
        if others {
            // The listing must use the current rules on disk.
            walk = workspace.walk()?;
        }
        Ok(ScanResult { walk, differences, ignored: IgnoredSnapshot::of(left_out) })
    }

    /// Returns the entry that the walk found. If it is unchanged, the cached entry (`was`) is used.
    fn cached_entry(
        &mut self,
        entry: &WalkEntry,
        was: Option<&CachedEntry>,
        folders: &mut FolderCache,
        times: &mut TrustedTimes,
        now: i64,
    ) -> Result<CachedEntry> {
        let trusted = times.are_trusted(entry, folders);
        // The pack that contained the cached content may have been lost.
        let is_stored = |known: &CachedEntry| {
            known.what.blob().is_none_or(|blob| self.blobs.size_of(blob).is_some())
        };
        let holds =
            trusted && was.is_some_and(|known| known.matches_entry(entry) && is_stored(known));
        if !holds {
            self.mark_in_use(was.iter().filter_map(|known| known.what.blob()));
        }
        // If a file was not stored for lack of room, it is stored once there is room.
        let mut finds_room = |known: &CachedEntry| {
            known.what.not_stored() == Some(NotStored::Room) && self.has_room_for(known.size)
        };
        if let Some(known) = was.filter(|known| holds && !finds_room(known)) {
            // The device number of its file system may have changed.
            return Ok(CachedEntry { facts: entry.facts, ..known.clone() });
        }
        let found = self.entry(folders.folder(split(&entry.path).0).ok(), entry, true)?;
        let (what, facts, size) =
            found.unwrap_or_else(|| (unreadable_entry(was, entry), entry.facts, entry.size));
        let sure = trusted && facts.changed != 0 && facts.changed + YOUNG < now;
        Ok(CachedEntry { what, facts, size, sure, ignored: false, tracked: false })
    }

    /// Reads the entry that the walk found in a folder, and its metadata. None if it cannot be read. `keep` stores a
    /// file's content, if possible.
    fn entry(
        &mut self,
        folder: Option<&Dir>,
        entry: &WalkEntry,
        keep: bool,
    ) -> Result<Option<(TreeEntry, FileStat, u64)>> {
        let name = split(&entry.path).1;
        let what = match (entry.kind, folder) {
            (None, _) => TreeEntry::Folder { mode: entry.facts.mode },
            (Some(EntryKind::Other), _) => {
                TreeEntry::new_not_stored(NotStored::Other, &entry.facts, entry.size)
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
        Ok(Some((what, entry.facts, entry.size)))
    }

    /// Reads the entry at a path. None if nothing exists there. `keep` stores a file's content, if possible.
    pub(super) fn inspect(
        &mut self,
        workspace: &Workspace,
        path: &str,
        keep: bool,
    ) -> Result<Option<TreeEntry>> {
        self.inspect_with(workspace, &mut FolderCache::new(workspace), path, keep)
    }

    /// Like [`Self::inspect`], but uses a cache of open folders, for many paths.
    fn inspect_with(
        &mut self,
        workspace: &Workspace,
        folders: &mut FolderCache,
        path: &str,
        keep: bool,
    ) -> Result<Option<TreeEntry>> {
        let found = match folders.entry(path).map(|(_, found)| found) {
            Ok(found) => found,
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                return Ok(Some(TreeEntry::unreadable_at(path)));
            }
            Err(e) if folders.proves_absence(path, &e) => return Ok(None),
            // A failing disk or too many open files do not prove that nothing exists.
            Err(e) => return Err(Error::io("look at", shown_path(path).as_ref(), e)),
        };
        let entry = WalkEntry::of(path.to_owned(), &found);
        if workspace.is_state(path, &found) {
            return Ok(Some(TreeEntry::new_not_stored(NotStored::Other, &entry.facts, entry.size)));
        }
        if found.is_dir() && split(path).1 == ".git" {
            return Ok(Some(TreeEntry::repository_at(path)));
        }
        if let Some((what, ..)) = self.entry(Some(folders.last()), &entry, keep)? {
            self.mark_in_use(what.blob().into_iter());
            return Ok(Some(what));
        }
        self.cache.load()?;
        Ok(Some(unreadable_entry(self.cache.get(path), &entry)))
    }

    /// Like [`Self::inspect`], but if the content at the path is not stored and one of the `known` entries describes
    /// the same file (possibly renamed), returns that known entry.
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

    /// Whether the entry at a path has the same content, permissions and link target as `what`. If its content is not
    /// stored, whether it is the same, unchanged file.
    ///
    /// # Errors
    /// The entry cannot be read.
    pub fn is_still(
        &mut self,
        workspace: &Workspace,
        path: &str,
        what: Option<&TreeEntry>,
    ) -> Result<bool> {
        let now = self.inspect_as(workspace, path, false, [what, None])?;
        Ok(is_same(now.as_ref(), what))
    }

    /// Reads a regular file. With `keep`, stores its content. None if it cannot be read or is not a regular file.
    fn read(
        &mut self,
        folder: &Dir,
        name: &str,
        keep: bool,
    ) -> Result<Option<(TreeEntry, FileStat, u64)>> {
        #[cfg(test)]
        READS.set(READS.get() + 1);
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
    /// The root's entry, which a walk does not list.
    fn root_entry(&self) -> Result<WalkEntry> {
        let found = self.root.dir_metadata();
        let found = found.map_err(|e| Error::io("look at", &self.path, e))?;
        Ok(WalkEntry::of(String::new(), &found))
    }

    /// Identifies the entry at a path.
    pub(super) fn identity_at(&self, path: &str) -> io::Result<Identity> {
        let (_, found) = self.entry(path)?;
        Ok(Identity::of(&FileStat::of(&found), found.len()))
    }

    /// The current entry at a path, as an entry that is not stored for the same reason as `what`. None if nothing
    /// exists there or `what` is stored.
    pub(super) fn as_not_stored(&self, path: &str, what: &TreeEntry) -> Option<TreeEntry> {
        let why = what.not_stored()?;
        Some(TreeEntry::NotStored { reason: why, identity: self.identity_at(path).ok()? })
    }
}

/// The entry of a file that cannot be read. If only the permissions prevent reading, and inode number, size and
/// modification time are unchanged, the last known content is assumed. It is read again when it becomes readable.
fn unreadable_entry(was: Option<&CachedEntry>, entry: &WalkEntry) -> TreeEntry {
    let WalkEntry { facts, size, .. } = entry;
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

/// Whether these permission bits prevent the owner from reading.
pub(super) fn is_unreadable_mode(mode: u32) -> bool {
    mode & 0o400 == 0
}

/// A file's bytes (unless there are more than `limit`), and its metadata before and after reading.
fn read_once(
    folder: &Dir,
    name: &str,
    limit: u64,
) -> io::Result<(Option<Vec<u8>>, Metadata, Metadata)> {
    let (mut file, before) = open_nofollow(folder, &unescaped(name))?;
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
