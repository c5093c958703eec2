//! A tree with counts: each folder is listed in full, or stands as one line for all that is in it.
//! Folders are opened one after another as long as there is room, first those on the way to what was
//! touched, then the nearest to it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::ops::Range;

use super::{line, spelled};
use crate::text::visible_line;
use crate::workspace::picture::{Picture, Row};
use crate::workspace::walk::Count;

/// Where a line stands: by its first row, and among lines of the same row outer folders first, then
/// the row itself, then what ends a folder, inner ones first.
type Key = (usize, usize);

const OF_ROW: usize = usize::MAX / 2;
/// How far the root is where nothing was touched.
const FAR: usize = 1 << 20;
/// By so many bytes at most a line for what more is in a folder is longer than one for all of it: for
/// the word itself, and since `9,999 bytes` is longer than `10 kB`.
const LONGER: usize = 16;

pub(super) struct Tree<'p, 'w> {
    picture: &'p Picture<'w>,
    /// The size of all files before a row that stand for themselves.
    bytes_before: Vec<u64>,
    /// The rows that are build products.
    products: Vec<(usize, Count)>,
    lines: BTreeMap<Key, String>,
    /// The folders on the way to what was touched, until they are filled.
    opened: BTreeMap<Key, Opened>,
    /// Of all lines together.
    bytes: usize,
    /// Bytes and lines that there may be.
    room: (usize, usize),
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Folder<'w> {
    /// Its first row.
    start: usize,
    end: usize,
    /// With a `/` at the end; empty for the root.
    path: &'w str,
}

enum Child<'w> {
    Row(usize),
    Folder(Folder<'w>),
}

/// What is shown of a folder in part.
#[derive(Default)]
struct Opened {
    keys: BTreeSet<Key>,
    shown: Counted,
}

/// What rows count for.
#[derive(Debug, Default)]
struct Counted {
    /// Files that stand for themselves.
    files: u64,
    bytes: u64,
    /// Folders of build products.
    folders: usize,
    /// Those that were not counted to their end.
    uncounted: usize,
    /// What is in them.
    built: Count,
}

impl Counted {
    fn add(&mut self, other: &Self) {
        self.files += other.files;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.folders += other.folders;
        self.uncounted += other.uncounted;
        self.built.add(other.built);
    }

    fn without(self, other: &Self) -> Self {
        let uncounted = self.uncounted.saturating_sub(other.uncounted);
        Self {
            files: self.files.saturating_sub(other.files),
            bytes: self.bytes.saturating_sub(other.bytes),
            folders: self.folders.saturating_sub(other.folders),
            uncounted,
            built: Count {
                files: self.built.files.saturating_sub(other.built.files),
                bytes: self.built.bytes.saturating_sub(other.built.bytes),
                is_whole: uncounted == 0,
            },
        }
    }

    /// In words, of what there is `more`. None where that is nothing.
    fn told(&self, more: bool) -> Option<String> {
        let files = Count { files: self.files, bytes: self.bytes, is_whole: true };
        let built = (self.folders > 0).then_some(self.built);
        (self.files > 0 || self.folders > 0).then(|| spelled::folded(files, built, more))
    }
}

impl Child<'_> {
    fn rows(&self) -> Range<usize> {
        match self {
            Self::Row(n) => *n..n + 1,
            Self::Folder(folder) => folder.rows(),
        }
    }
}

/// The folder that a path is in.
fn parent(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    &path[..memchr::memrchr(b'/', path.as_bytes()).map_or(0, |n| n + 1)]
}

impl Folder<'_> {
    fn rows(&self) -> Range<usize> {
        self.start..self.end
    }

    fn key(&self) -> Key {
        (self.start, self.path.len())
    }

    /// Where stands what more is in it.
    fn end_key(&self) -> Key {
        (self.end - 1, usize::MAX - self.path.len())
    }

    fn shown(&self) -> String {
        if self.path.is_empty() { "./".to_owned() } else { visible_line(self.path).into_owned() }
    }
}

impl<'p, 'w> Tree<'p, 'w> {
    /// The root as one line. There is at least one row.
    pub(super) fn new(picture: &'p Picture<'w>) -> Self {
        let (mut before, mut sum, mut products) = (Vec::new(), 0_u64, Vec::new());
        before.reserve_exact(picture.len() + 1);
        before.push(0);
        for n in 0..picture.len() {
            match picture.row(n) {
                Row::File(file) => sum = sum.saturating_add(file.size),
                Row::Product(product) => products.push((n, product.count)),
            }
            before.push(sum);
        }
        let (lines, room) = (BTreeMap::new(), (usize::MAX, usize::MAX));
        let opened = BTreeMap::new();
        let mut tree =
            Self { picture, bytes_before: before, products, lines, opened, bytes: 0, room };
        let all = tree.root();
        tree.add(all.key(), tree.folded(&all));
        tree
    }

    fn root(&self) -> Folder<'w> {
        Folder { start: 0, end: self.picture.len(), path: "" }
    }

    /// The length of what [`write`](Self::write) gives.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn write(&self, out: &mut String) {
        self.lines.values().for_each(|line| out.push_str(line));
    }

    /// Opens folders up to so many bytes and lines.
    pub(super) fn grow(&mut self, touched: &[&str], bytes: usize, lines: usize) {
        self.room = (bytes, lines);
        let ways = self.ways(touched);
        let mut needed: BTreeMap<&str, Vec<Child<'w>>> = BTreeMap::new();
        for (folder, _) in ways.values().filter(|(folder, _)| !folder.path.is_empty()) {
            needed.entry(parent(folder.path)).or_default().push(Child::Folder(folder.clone()));
        }
        for n in touched.iter().filter_map(|path| self.picture.find(path)) {
            needed.entry(parent(self.picture.path(n))).or_default().push(Child::Row(n));
        }
        // Those above come first, and of each only what leads on.
        for (path, (folder, _)) in &ways {
            self.begin(folder, needed.remove(path).unwrap_or_default());
        }
        let mut heap: BinaryHeap<_> =
            ways.into_values().map(|(folder, distance)| Reverse((distance, folder))).collect();
        while let Some(Reverse((distance, folder))) = heap.pop() {
            for child in self.fill(&folder) {
                heap.push(Reverse((distance + 1, child)));
            }
        }
    }

    /// The folders on the way to each of the paths, with how far they are above the nearest of them.
    fn ways(&self, touched: &[&str]) -> BTreeMap<&'w str, (Folder<'w>, usize)> {
        let mut ways = BTreeMap::from([("", (self.root(), FAR))]);
        for path in touched {
            let mut folders = vec![self.root()];
            let whole = format!("{path}/");
            for slash in memchr::memchr_iter(b'/', whole.as_bytes()) {
                let rows = self.picture.below(&whole[..=slash]);
                if rows.is_empty() {
                    break;
                }
                let path = &self.picture.path(rows.start)[..=slash];
                folders.push(Folder { start: rows.start, end: rows.end, path });
            }
            for (distance, folder) in folders.into_iter().rev().enumerate() {
                let known = ways.entry(folder.path).or_insert((folder, FAR));
                known.1 = known.1.min(distance);
            }
        }
        ways
    }

    /// Lists of a folder only what is `needed`, if there is room, and how much more there is.
    fn begin(&mut self, folder: &Folder<'w>, needed: Vec<Child<'w>>) {
        if !self.lines.contains_key(&folder.key()) {
            return;
        }
        let (mut bytes, mut lines) = (self.bytes + LONGER, self.lines.len());
        let (mut opened, mut added) = (Opened::default(), Vec::new());
        for child in needed {
            let (key, text) = self.told(&child);
            if opened.keys.contains(&key)
                || bytes + text.len() > self.room.0
                || lines + 1 > self.room.1
            {
                continue;
            }
            (bytes, lines) = (bytes + text.len(), lines + 1);
            opened.keys.insert(key);
            opened.shown.add(&self.counts(&child.rows()));
            added.push((key, text));
        }
        if !added.is_empty() {
            self.remove(folder.key());
            added.into_iter().for_each(|(key, text)| self.add(key, text));
            self.tell_more(folder, &opened);
        }
        self.opened.insert(folder.key(), opened);
    }

    /// Lists a folder in full, if there is room; one on the way to what was touched also in part, as
    /// much of it as half of the room can hold. Returns the folders in it that stand as a line now.
    fn fill(&mut self, folder: &Folder<'w>) -> Vec<Folder<'w>> {
        let is_way = self.opened.contains_key(&folder.key());
        let opened = self.opened.remove(&folder.key()).unwrap_or_default();
        let old = if opened.keys.is_empty() { folder.key() } else { folder.end_key() };
        let Some(own) = self.lines.get(&old).map(String::len) else { return Vec::new() };
        let (bytes, lines) = (self.bytes - own, self.lines.len() - 1);
        let (added, is_all) = self.fitting(folder, &opened, self.room, (bytes, lines));
        if is_all {
            return self.replace(old, added);
        }
        if !is_way {
            return Vec::new();
        }
        let (bytes, lines) = (self.bytes + LONGER, self.lines.len());
        let half = |used: usize, all: usize| used + all.saturating_sub(used) / 2;
        let room = (half(bytes, self.room.0), half(lines, self.room.1));
        let (added, _) = self.fitting(folder, &opened, room, (bytes, lines));
        if added.is_empty() {
            return Vec::new();
        }
        let mut opened = opened;
        added.iter().for_each(|(child, ..)| opened.shown.add(&self.counts(&child.rows())));
        let folders = self.replace(old, added);
        self.tell_more(folder, &opened);
        folders
    }

    /// What of a folder is not shown yet and fits beside the bytes and lines that are `used`, and
    /// whether that is all.
    fn fitting(
        &self,
        folder: &Folder<'w>,
        opened: &Opened,
        room: (usize, usize),
        (mut bytes, mut lines): (usize, usize),
    ) -> (Vec<(Child<'w>, Key, String)>, bool) {
        let mut added = Vec::new();
        for child in self.children(folder) {
            let (key, text) = self.told(&child);
            if opened.keys.contains(&key) {
                continue;
            }
            (bytes, lines) = (bytes + text.len(), lines + 1);
            if bytes > room.0 || lines > room.1 {
                return (added, false);
            }
            added.push((child, key, text));
        }
        (added, true)
    }

    fn replace(&mut self, old: Key, added: Vec<(Child<'w>, Key, String)>) -> Vec<Folder<'w>> {
        self.remove(old);
        let mut folders = Vec::new();
        for (child, key, text) in added {
            self.add(key, text);
            if let Child::Folder(folder) = child {
                folders.push(folder);
            }
        }
        folders
    }

    /// Ends what is shown of a folder with a line for the rest of it, if there is one.
    fn tell_more(&mut self, folder: &Folder<'w>, opened: &Opened) {
        let left = self.counts(&folder.rows()).without(&opened.shown);
        if let Some(told) = left.told(true) {
            self.add(folder.end_key(), format!("  {} ({told})\n", folder.shown()));
        }
    }

    fn add(&mut self, key: Key, text: String) {
        self.bytes += text.len();
        self.lines.insert(key, text);
    }

    fn remove(&mut self, key: Key) {
        if let Some(text) = self.lines.remove(&key) {
            self.bytes -= text.len();
        }
    }

    fn told(&self, child: &Child<'w>) -> (Key, String) {
        match child {
            Child::Row(n) => ((*n, OF_ROW), line(self.picture.row(*n))),
            Child::Folder(folder) => (folder.key(), self.folded(folder)),
        }
    }

    fn folded(&self, folder: &Folder<'_>) -> String {
        let told = self.counts(&folder.rows()).told(false).unwrap_or_default();
        format!("  {} ({told})\n", folder.shown())
    }

    fn counts(&self, rows: &Range<usize>) -> Counted {
        let from = self.products.partition_point(|(n, _)| *n < rows.start);
        let within = self.products[from..].iter().take_while(|(n, _)| *n < rows.end);
        let mut counted = Counted::default();
        for (_, count) in within {
            counted.folders += 1;
            counted.uncounted += usize::from(!count.is_whole);
            counted.built.add(*count);
        }
        counted.files = (rows.len() - counted.folders) as u64;
        counted.bytes = self.bytes_before[rows.end] - self.bytes_before[rows.start];
        counted
    }

    /// What stands in a folder, in order.
    fn children(&self, folder: &Folder<'w>) -> impl Iterator<Item = Child<'w>> + use<'p, 'w> {
        let (picture, skipped) = (self.picture, folder.path.len());
        let mut rest = folder.rows();
        std::iter::from_fn(move || {
            let n = rest.next()?;
            let path = picture.path(n);
            let slash = memchr::memchr(b'/', &path.as_bytes()[skipped..]);
            let Some(slash) = slash.filter(|slash| skipped + slash + 1 < path.len()) else {
                return Some(Child::Row(n));
            };
            let inner = &path[..=skipped + slash];
            let rows = picture.end_of(inner, n..rest.end);
            rest.start = rows.end;
            Some(Child::Folder(Folder { start: rows.start, end: rows.end, path: inner }))
        })
    }
}
