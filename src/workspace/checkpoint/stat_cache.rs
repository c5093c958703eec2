//! Caches the results of the last scan, so that unchanged files are not read again.
//!
//! The cache is a file of lines (`checksum " " JSON`). Each line contains the entry at a path, removes an entry, or
//! contains the ignore rules. Lines are only appended, once per turn, just before the first command. So the file grows
//! only by what has changed, and if the turn is resumed after a stop, the file still contains the state before that
//! command ([`CachePosition`]). Torn or damaged lines at the end are ignored.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::ops::Bound;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{NotStored, TreeEntry};
use crate::atomic;
use crate::blobs::BlobId;
use crate::error::{Error, Result};
use crate::workspace::names::common_prefix;
use crate::workspace::walk::EntryKind;
use crate::workspace::walk::detailed::{FileStat, Texts, WalkEntry};

/// How many bytes longer than necessary the file may become before it is rewritten.
const SLACK: u64 = 256 << 10;
/// How many bytes are written at once.
const CHUNK: usize = 64 << 10;

/// A scanned entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CachedEntry {
    #[serde(rename = "w")]
    pub(super) what: TreeEntry,
    #[serde(rename = "f")]
    pub(super) facts: FileStat,
    /// Its size in bytes, from its metadata.
    #[serde(rename = "z")]
    pub(super) size: u64,
    /// Whether equal metadata proves that the entry is unchanged.
    #[serde(rename = "s", default)]
    pub(super) sure: bool,
    /// Whether the entry is stored although it is ignored.
    #[serde(rename = "i", default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) ignored: bool,
    /// Whether scans include the entry although it is ignored, because git tracks it or something in it.
    #[serde(rename = "t", default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) tracked: bool,
}

impl CachedEntry {
    /// Whether scans include the entry.
    pub(super) fn is_scanned(&self) -> bool {
        !self.ignored || self.tracked
    }

    /// Whether the metadata proves that the entry is unchanged.
    pub(super) fn matches_entry(&self, met: &WalkEntry) -> bool {
        let same_kind = match (&self.what, met.kind) {
            (TreeEntry::Folder { .. }, None)
            | (TreeEntry::Link { .. }, Some(EntryKind::Link))
            | (TreeEntry::File { .. }, Some(EntryKind::File)) => true,
            (TreeEntry::NotStored { reason, .. }, Some(_)) => *reason != NotStored::Unreadable,
            _ => false,
        };
        let same = self.facts == met.facts && self.facts.is_number_of(&met.facts);
        self.sure && same_kind && same && self.size == met.size
    }
}

/// A line of the file. A path is stored as the length of the prefix that it shares with the previous path, and the
/// rest. Otherwise the paths of nested folders would take quadratic space.
#[derive(Debug, Serialize, Deserialize)]
enum CacheLine<'a> {
    /// The first line: the file's random id.
    Id(Cow<'a, str>),
    /// The entry at a path; None removes it.
    At(usize, Cow<'a, str>, Option<Cow<'a, CachedEntry>>),
    /// The ignore rules of the last scan.
    Rules(Cow<'a, Texts>),
    Unreadable(Cow<'a, Unreadable>),
}

/// Places whose contents are unknown, not empty: a scan could not read them, because a folder cannot be listed or
/// searched. Each place ends in `/` (the root is empty) and hides everything at or below it. No place is below another.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "BTreeSet<String>")]
pub(super) struct Unreadable(BTreeSet<String>);

impl Unreadable {
    /// Whether this escaped path was hidden from the scan.
    pub(super) fn hides(&self, path: &str) -> bool {
        let path = format!("{path}/");
        // In sorted order, everything between a place and a path below that place is also below that place.
        let last = self.0.range::<str, _>((Bound::Unbounded, Bound::Included(&*path))).next_back();
        last.is_some_and(|place| path.starts_with(place))
    }
}

impl From<BTreeSet<String>> for Unreadable {
    fn from(places: BTreeSet<String>) -> Self {
        let is_ended = |place: &str| place.is_empty() || place.ends_with('/');
        let ended = |place: String| if is_ended(&place) { place } else { place + "/" };
        let mut highest: BTreeSet<String> = BTreeSet::new();
        for place in places.into_iter().map(ended).collect::<BTreeSet<_>>() {
            if highest.last().is_none_or(|last| !place.starts_with(last)) {
                highest.insert(place);
            }
        }
        Self(highest)
    }
}

/// A position in the cache file. It identifies the state of the cache when the file ended there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CachePosition {
    id: String,
    end: u64,
}

/// Entries by path, in a single list, because there can be many.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Entries(Vec<(Box<str>, Option<CachedEntry>)>);

impl Entries {
    /// Adds or removes an entry. The change takes effect at the next [`Entries::sort`].
    fn push(&mut self, path: impl Into<Box<str>>, entry: Option<CachedEntry>) {
        self.0.push((path.into(), entry));
    }

    /// Sorts the added entries. If several have the same path, the last one counts.
    fn sort(&mut self) {
        self.0.sort_by(|(a, _), (b, _)| a.cmp(b));
        self.0.dedup_by(|later, earlier| {
            let is_same = later.0 == earlier.0;
            if is_same {
                std::mem::swap(later, earlier);
            }
            is_same
        });
        self.0.retain(|(_, entry)| entry.is_some());
        self.0.shrink_to_fit();
    }

    fn find(&self, path: &str) -> Option<usize> {
        self.0.binary_search_by(|(other, _)| (**other).cmp(path)).ok()
    }

    pub(super) fn get(&self, path: &str) -> Option<&CachedEntry> {
        self.0[self.find(path)?].1.as_ref()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &CachedEntry)> {
        self.0.iter().filter_map(|(path, entry)| Some((&**path, entry.as_ref()?)))
    }
}

/// The results of the last scan.
#[derive(Debug, Default)]
pub(super) struct StatCache {
    path: PathBuf,
    id: String,
    pub(super) seen: Entries,
    /// During a scan: which entries of `seen` were found again, and the entries at new paths.
    is_found: Vec<bool>,
    added: Entries,
    pub(super) rules: Texts,
    /// What the last scan could not read.
    pub(super) unreadable: Unreadable,
    /// The file's length, and its length when it was last rewritten.
    end: u64,
    compact_end: u64,
    lines: Lines,
    is_loaded: bool,
}

impl StatCache {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, ..Self::default() }
    }

    /// Discards everything in memory. The next load reads the file again.
    pub(super) fn unload(&mut self) {
        *self = Self::new(std::mem::take(&mut self.path));
    }

    /// Reads the file unless it is loaded.
    pub(super) fn load(&mut self) -> Result<()> {
        if self.is_loaded {
            return Ok(());
        }
        self.unload();
        self.is_loaded = true;
        let fail = |e| Error::io("read", &self.path, e);
        let mut file = match atomic::open_own(File::options().read(true), &self.path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            file => BufReader::new(file.map_err(fail)?),
        };
        let (mut line, mut lines) = (Vec::new(), 0);
        loop {
            line.clear();
            let length = file.read_until(b'\n', &mut line);
            let length = length.map_err(|e| Error::io("read", &self.path, e))?;
            if parse_line(&line).and_then(|parsed| self.apply(parsed)).is_none() {
                break;
            }
            self.end += length as u64;
            lines += 1;
        }
        self.seen.sort();
        // Lines of removed and replaced entries take space, too.
        self.compact_end = self.end * self.seen.0.len() as u64 / lines.max(1);
        self.lines.are_kept = self.end > 0;
        Ok(())
    }

    /// Loads the state in the file. Returns whether it is the state at this position.
    pub(super) fn reload(&mut self, position: &CachePosition) -> Result<bool> {
        self.unload();
        self.load()?;
        Ok(self.position() == *position)
    }

    fn position(&self) -> CachePosition {
        CachePosition { id: self.id.clone(), end: self.end }
    }

    /// Applies a line; None if its path is invalid.
    fn apply(&mut self, line: CacheLine<'_>) -> Option<()> {
        match line {
            CacheLine::Id(id) => self.id = id.into_owned(),
            CacheLine::At(same, rest, known) => {
                replace_suffix(&mut self.lines.last, same, &rest)?;
                self.seen.push(&*self.lines.last, known.map(Cow::into_owned));
            }
            CacheLine::Rules(rules) => self.rules = rules.into_owned(),
            CacheLine::Unreadable(unreadable) => self.unreadable = unreadable.into_owned(),
        }
        Some(())
    }

    /// The entry at a path, if scans include it.
    pub(super) fn get(&self, path: &str) -> Option<&CachedEntry> {
        self.seen.get(path).filter(|known| known.is_scanned())
    }

    /// Begins a scan that found this many entries.
    pub(super) fn begin_scan(&mut self, entries: usize) {
        let known = self.seen.0.len();
        self.is_found = vec![false; known];
        self.added = Entries(Vec::with_capacity(entries.saturating_sub(known)));
    }

    /// Takes the last scan's entry at a path, with its position, if the entry meets a condition.
    pub(super) fn take_if(
        &mut self,
        path: &str,
        condition: impl Fn(&CachedEntry) -> bool,
    ) -> Option<(usize, CachedEntry)> {
        let at = self.seen.find(path)?;
        Some((at, self.seen.0[at].1.take_if(|entry| condition(entry))?))
    }

    /// Adds an entry that the current scan found. `at` is the position from which the previous entry was taken.
    pub(super) fn add(
        &mut self,
        path: String,
        at: Option<usize>,
        known: CachedEntry,
        is_new: bool,
    ) {
        if is_new {
            self.lines.add_at(&path, Some(&known));
        }
        match at {
            Some(at) => (self.seen.0[at].1, self.is_found[at]) = (Some(known), true),
            None => self.added.push(path, Some(known)),
        }
    }

    /// Ends a scan. Returns the entries of the last scan that this scan did not find again.
    pub(super) fn end_scan(&mut self) -> Vec<(Box<str>, CachedEntry)> {
        let mut is_found = std::mem::take(&mut self.is_found).into_iter();
        let missing = self.seen.0.extract_if(.., |_| is_found.next() == Some(false));
        let missing = missing.filter_map(|(path, known)| Some((path, known?))).collect();
        if self.seen.0.is_empty() {
            std::mem::swap(&mut self.seen, &mut self.added);
        }
        self.seen.0.append(&mut self.added.0);
        // No path occurs twice.
        self.seen.0.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        missing
    }

    /// Records that the current scan did not find an earlier entry.
    pub(super) fn remove(&mut self, path: &str) {
        self.lines.add_at(path, None);
    }

    pub(super) fn set_rules(&mut self, rules: Texts) {
        if rules != self.rules {
            self.lines.add(&CacheLine::Rules(Cow::Borrowed(&rules)));
            self.rules = rules;
        }
    }

    pub(super) fn set_unreadable(&mut self, unreadable: Unreadable) {
        if unreadable != self.unreadable {
            self.lines.add(&CacheLine::Unreadable(Cow::Borrowed(&unreadable)));
            self.unreadable = unreadable;
        }
    }

    /// Writes the new lines to disk. If the file has become too long, rewrites it.
    pub(super) fn write(&mut self) -> Result<CachePosition> {
        self.load()?;
        let written = if self.end == 0 || self.end > 2 * self.compact_end + SLACK {
            self.rewrite()
        } else if !self.lines.text.is_empty() {
            self.append().map_err(|e| Error::io("write", &self.path, e))
        } else {
            Ok(())
        };
        if let Err(e) = written {
            self.unload();
            return Err(e);
        }
        Ok(self.position())
    }

    fn append(&mut self) -> io::Result<()> {
        let mut file = atomic::open_own(File::options().write(true), &self.path)?;
        // Anything after `end` is torn.
        if file.metadata()?.len() != self.end {
            file.set_len(self.end)?;
        }
        file.seek(SeekFrom::Start(self.end))?;
        self.end += self.lines.write_to(&mut file)?;
        file.sync_data()
    }

    fn rewrite(&mut self) -> Result<()> {
        let fail = |e| Error::io("write", &self.path, e);
        let folder = self.path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(fail)?;
        let mut file = atomic::new_private(folder)?;
        self.id = uuid::Uuid::new_v4().simple().to_string();
        self.lines = Lines { are_kept: true, ..Lines::default() };
        self.lines.add(&CacheLine::Id(Cow::Borrowed(&self.id)));
        self.lines.add(&CacheLine::Unreadable(Cow::Borrowed(&self.unreadable)));
        self.lines.add(&CacheLine::Rules(Cow::Borrowed(&self.rules)));
        self.end = 0;
        for (path, known) in self.seen.iter() {
            self.lines.add_at(path, Some(known));
            if self.lines.text.len() > CHUNK {
                self.end += self.lines.write_to(&mut file).map_err(fail)?;
            }
        }
        self.end += self.lines.write_to(&mut file).map_err(fail)?;
        self.compact_end = self.end;
        // Later syncs cover the lines that are appended, but not the file's name.
        atomic::persist(file, &self.path)
    }

    /// The blobs of all entries; may also be called during a scan.
    pub(super) fn blobs(&self) -> BTreeSet<BlobId> {
        let all = self.seen.iter().chain(self.added.iter());
        all.filter_map(|(_, known)| known.what.blob().cloned()).collect()
    }
}

/// Lines that are not written yet.
#[derive(Debug, Default)]
struct Lines {
    /// Whether a file exists to which the lines will be appended.
    are_kept: bool,
    text: String,
    /// The last path that was added.
    last: String,
}

impl Lines {
    fn add(&mut self, line: &CacheLine<'_>) {
        if self.are_kept {
            // Strings and numbers always become JSON.
            let json = serde_json::to_string(line).unwrap_or_default();
            let sum = blake3::hash(json.as_bytes()).to_hex();
            self.text.extend([&sum[..16], " ", &json, "\n"]);
        }
    }

    /// Adds the line for a path.
    fn add_at(&mut self, path: &str, known: Option<&CachedEntry>) {
        let mut same = common_prefix(&self.last, path);
        while !path.is_char_boundary(same) {
            same -= 1;
        }
        let rest = Cow::Borrowed(&path[same..]);
        self.add(&CacheLine::At(same, rest, known.map(Cow::Borrowed)));
        path.clone_into(&mut self.last);
    }

    /// Writes the lines to a file, and returns their length in bytes.
    fn write_to(&mut self, file: &mut impl Write) -> io::Result<u64> {
        file.write_all(self.text.as_bytes())?;
        let length = self.text.len() as u64;
        self.text.clear();
        Ok(length)
    }
}

/// Keeps this many bytes of a path and appends the rest; None if the path is shorter.
fn replace_suffix(path: &mut String, same: usize, rest: &str) -> Option<()> {
    path.get(..same)?;
    path.truncate(same);
    path.push_str(rest);
    Some(())
}

/// Parses a line; None if it is torn or damaged.
fn parse_line(bytes: &[u8]) -> Option<CacheLine<'_>> {
    let (sum, json) = std::str::from_utf8(bytes).ok()?.strip_suffix('\n')?.split_once(' ')?;
    let is_whole = *sum == blake3::hash(json.as_bytes()).to_hex()[..16];
    serde_json::from_str(json).ok().filter(|_| is_whole)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::workspace::walk::EntryKind;

    fn blank() -> CachedEntry {
        let (what, facts) = (TreeEntry::unreadable_at(""), FileStat::default());
        CachedEntry { what, facts, size: 0, sure: false, ignored: false, tracked: false }
    }

    fn known(path: &str) -> CachedEntry {
        let what = TreeEntry::unreadable_at(path);
        CachedEntry { what, size: 1, ..blank() }
    }

    fn add(cache: &mut StatCache, path: &str, known: CachedEntry) {
        cache.add(path.to_owned(), None, known, true);
        cache.seen.0.append(&mut cache.added.0);
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(
            paths in prop::collection::vec("[aé%/]{0,4}|(long/){30}[aàé]{0,2}", 0..12),
        ) {
            let dir = tempfile::tempdir().unwrap();
            let mut index = StatCache::new(dir.path().join("index"));
            index.load().unwrap();
            for (n, path) in paths.iter().enumerate() {
                if n % 5 == 1 {
                    index.seen.sort();
                    let position = index.write().unwrap();
                    let written = (index.seen.clone(), index.rules.clone());
                    // Entries that were found since then are lost with the process.
                    add(&mut index, "lost", known("lost"));
                    prop_assert!(index.reload(&position).unwrap());
                    prop_assert_eq!((&index.seen, &index.rules), (&written.0, &written.1));
                }
                if n % 3 == 2 {
                    index.remove(path);
                    index.seen.push(&**path, None);
                } else {
                    add(&mut index, path, known(path));
                }
                let mut rules = index.rules.clone();
                rules.insert(path.clone(), BTreeMap::from([(".ignore".to_owned(), "x".to_owned())]));
                index.set_rules(rules);
            }
            index.seen.sort();
            let position = index.write().unwrap();
            let mut again = StatCache::new(dir.path().join("index"));
            again.load().unwrap();
            prop_assert_eq!((&again.seen, &again.rules), (&index.seen, &index.rules));
            prop_assert_eq!(again.position(), position.clone());
            // A torn line counts as not written.
            let mut file = File::options().append(true).open(dir.path().join("index")).unwrap();
            file.write_all(b"0123456789abcdef {").unwrap();
            prop_assert!(again.reload(&position).unwrap());
            add(&mut again, "long/x", known("x"));
            prop_assert_ne!(again.write().unwrap(), position.clone());
            prop_assert!(!index.reload(&position).unwrap());
            again.seen.sort();
            prop_assert_eq!(&index.seen, &again.seen);
        }
    }

    #[test]
    fn a_number_counts_on_its_own_file_system() {
        let at = |device, inode| FileStat { device, inode, ..FileStat::default() };
        let (what, path, size) = (TreeEntry::Link { target: "x".into() }, "l".to_owned(), 1);
        let known = |device| CachedEntry {
            what: what.clone(),
            facts: at(device, 7),
            size,
            sure: true,
            ..blank()
        };
        let met = |device| {
            let (path, kind, facts) = (path.clone(), Some(EntryKind::Link), at(device, 7));
            WalkEntry { path, kind, size, facts }
        };
        assert!(known(1).matches_entry(&met(1)) && known(0).matches_entry(&met(1)));
        assert!(!known(1).matches_entry(&met(2)));
    }

    #[test]
    fn what_lies_below_a_folder_is_hidden_with_it_and_an_entry_by_itself() {
        let places = ["d/", "d/e", "d/e/x/", "e/f", "e/f-g", "e/f-g/"].map(str::to_owned);
        let hidden = Unreadable::from(BTreeSet::from(places));
        for (path, is_hidden) in [
            ("d", true),
            ("d/x", true),
            ("d/e/x", true),
            ("dx", false),
            ("e/f", true),
            ("e/f/g", true),
            ("e/fg", false),
            ("e/f-g/h", true),
            ("e/f-", false),
            ("e/f-gh", false),
            ("e", false),
            ("", false),
        ] {
            assert_eq!(hidden.hides(path), is_hidden, "{path}");
        }
        assert!(Unreadable::from(BTreeSet::from([String::new()])).hides("x"));
        assert!(!Unreadable::default().hides("x"));
    }
}
