//! A tree with counts: each folder is listed in full, or one line stands for all that is in it. Folders
//! are opened one after another as long as there is room, first those on the way to what was touched, in
//! part if need be, then the nearest to it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::ops::Range;

use super::{folded, line};
use crate::text::visible_line;
use crate::workspace::picture::{Picture, Row};
use crate::workspace::walk::Count;

/// The order of lines: by the first row, and of the same row outer folders first, then the row itself,
/// then the line that ends a folder, inner ones first.
type Key = (usize, usize);

const OF_ROW: usize = usize::MAX / 2;
/// The distance of the root if nothing was touched.
const FAR: usize = 1 << 20;
/// How many bytes a line for the rest of a folder is longer at most than one for all of it: for the word
/// `more`, and since `9,999 bytes` is longer than `10 kB`.
const LONGER: usize = 16;

pub(super) struct Tree<'p, 'w> {
    picture: &'p Picture<'w>,
    /// For each row the size of all files before it.
    bytes_before: Vec<u64>,
    /// The rows that are build products.
    products: Vec<(usize, Count)>,
    lines: BTreeMap<Key, String>,
    /// The length of all lines.
    bytes: usize,
    /// Folders that are listed in part.
    opened: BTreeMap<Key, Opened>,
}

/// A folder with its rows. Its path ends with a `/`; the root's is empty.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Folder<'w> {
    start: usize,
    end: usize,
    path: &'w str,
}

enum Child<'w> {
    Row(usize),
    Folder(Folder<'w>),
}

/// A folder of which some is listed: the keys of that, and what the rest counts for.
struct Opened {
    keys: BTreeSet<Key>,
    rest: Counted,
}

/// What rows count for.
#[derive(Debug, Default)]
struct Counted {
    files: u64,
    bytes: u64,
    /// Folders of build products, and those that were not counted to their end.
    folders: usize,
    uncounted: usize,
    /// What is in them.
    built: Count,
}

impl Counted {
    fn remove(&mut self, part: &Self) {
        self.files = self.files.saturating_sub(part.files);
        self.bytes = self.bytes.saturating_sub(part.bytes);
        self.folders = self.folders.saturating_sub(part.folders);
        self.uncounted = self.uncounted.saturating_sub(part.uncounted);
        self.built.files = self.built.files.saturating_sub(part.built.files);
        self.built.bytes = self.built.bytes.saturating_sub(part.built.bytes);
        self.built.is_whole = self.uncounted == 0;
    }
}

impl Folder<'_> {
    fn rows(&self) -> Range<usize> {
        self.start..self.end
    }

    /// The key of the line for all that is in it.
    fn key(&self) -> Key {
        (self.start, self.path.len())
    }

    /// The key of the line for the rest of it.
    fn rest_key(&self) -> Key {
        (self.end - 1, usize::MAX - self.path.len())
    }

    /// A line that stands for what is in it, or for what `more` is.
    fn line(&self, counted: &Counted, more: bool) -> String {
        let path = if self.path.is_empty() { "./".into() } else { visible_line(self.path) };
        let files = Count { files: counted.files, bytes: counted.bytes, is_whole: true };
        let built = (counted.folders > 0).then_some(counted.built);
        format!("  {path} ({})\n", folded(files, built, more))
    }
}

/// The folder that a path is in.
fn parent(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    &path[..memchr::memrchr(b'/', path.as_bytes()).map_or(0, |n| n + 1)]
}

impl<'p, 'w> Tree<'p, 'w> {
    /// The root as one line. There is at least one row.
    pub(super) fn new(picture: &'p Picture<'w>) -> Self {
        let (mut bytes_before, mut sum, mut products) = (Vec::new(), 0_u64, Vec::new());
        bytes_before.reserve_exact(picture.len() + 1);
        bytes_before.push(0);
        for n in 0..picture.len() {
            match picture.row(n) {
                Row::File(file) => sum = sum.saturating_add(file.size),
                Row::Product(product) => products.push((n, product.count)),
            }
            bytes_before.push(sum);
        }
        let (lines, opened) = (BTreeMap::new(), BTreeMap::new());
        let mut tree = Self { picture, bytes_before, products, lines, bytes: 0, opened };
        let (key, line) = tree.line(&Child::Folder(tree.root()));
        tree.add(key, line);
        tree
    }

    fn root(&self) -> Folder<'w> {
        Folder { start: 0, end: self.picture.len(), path: "" }
    }

    /// The length of the whole text.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The lines as a text.
    pub(super) fn into_text(self) -> String {
        self.lines.into_values().collect()
    }

    /// Opens folders up to so many bytes and lines.
    pub(super) fn grow(&mut self, touched: &[&str], room: (usize, usize)) {
        let ways = self.ways(touched);
        let mut needed: BTreeMap<&str, Vec<Child<'w>>> = BTreeMap::new();
        for (folder, _) in ways.values().filter(|(folder, _)| !folder.path.is_empty()) {
            needed.entry(parent(folder.path)).or_default().push(Child::Folder(folder.clone()));
        }
        let rows = touched.iter().filter_map(|path| self.picture.find(path));
        for n in rows.collect::<BTreeSet<usize>>() {
            needed.entry(parent(self.picture.path(n))).or_default().push(Child::Row(n));
        }
        // First only what leads to what was touched, outer folders first.
        for (path, (folder, _)) in &ways {
            self.open(folder, needed.remove(path).unwrap_or_default(), room, true);
        }
        let distances =
            ways.values().map(|(folder, distance)| Reverse((*distance, folder.clone())));
        let mut heap: BinaryHeap<_> = distances.collect();
        while let Some(Reverse((distance, folder))) = heap.pop() {
            let mut inner = self.open(&folder, children(self.picture, &folder), room, false);
            if inner.is_none() && ways.contains_key(folder.path) {
                // As much of it as half of the room can hold.
                let half = |used: usize, all: usize| used + all.saturating_sub(used) / 2;
                let room = (half(self.bytes + LONGER, room.0), half(self.lines.len(), room.1));
                inner = self.open(&folder, children(self.picture, &folder), room, true);
            }
            let inner = inner.into_iter().flatten();
            heap.extend(inner.map(|folder| Reverse((distance + 1, folder))));
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

    /// Lists children of a folder that are not listed yet: all of them, or if it may be `in_part` the first
    /// ones, as many as there is room for beside a line for the rest. Returns the folders among them; None
    /// if there is no room.
    fn open(
        &mut self,
        folder: &Folder<'w>,
        children: impl IntoIterator<Item = Child<'w>>,
        room: (usize, usize),
        in_part: bool,
    ) -> Option<Vec<Folder<'w>>> {
        let opened = self.opened.get(&folder.key());
        let old = if opened.is_some() { folder.rest_key() } else { folder.key() };
        let Some(line) = self.lines.get(&old) else { return Some(Vec::new()) };
        let (mut bytes, mut lines) = if in_part {
            (self.bytes + LONGER, self.lines.len())
        } else {
            (self.bytes - line.len(), self.lines.len() - 1)
        };
        let mut added = Vec::new();
        for child in children {
            let (key, text) = self.line(&child);
            if opened.is_some_and(|opened| opened.keys.contains(&key)) {
                continue;
            }
            (bytes, lines) = (bytes + text.len(), lines + 1);
            if bytes > room.0 || lines > room.1 {
                if in_part && !added.is_empty() {
                    break;
                }
                return None;
            }
            added.push((child, key, text));
        }
        if added.is_empty() {
            return Some(Vec::new());
        }
        self.remove(old);
        if in_part {
            let mut opened = self.opened.remove(&folder.key()).unwrap_or_else(|| {
                let rest = self.counted(&folder.rows());
                Opened { keys: BTreeSet::new(), rest }
            });
            for (child, key, _) in &added {
                opened.keys.insert(*key);
                opened.rest.remove(&self.counted(&child.rows()));
            }
            if opened.rest.files > 0 || opened.rest.folders > 0 {
                self.add(folder.rest_key(), folder.line(&opened.rest, true));
            }
            self.opened.insert(folder.key(), opened);
        }
        let mut folders = Vec::new();
        for (child, key, text) in added {
            self.add(key, text);
            if let Child::Folder(folder) = child {
                folders.push(folder);
            }
        }
        Some(folders)
    }

    fn add(&mut self, key: Key, text: String) {
        self.bytes += text.len();
        self.lines.insert(key, text);
    }

    fn remove(&mut self, key: Key) {
        self.bytes -= self.lines.remove(&key).map_or(0, |text| text.len());
    }

    fn line(&self, child: &Child<'w>) -> (Key, String) {
        match child {
            Child::Row(n) => ((*n, OF_ROW), line(self.picture.row(*n))),
            Child::Folder(folder) => {
                (folder.key(), folder.line(&self.counted(&folder.rows()), false))
            }
        }
    }

    fn counted(&self, rows: &Range<usize>) -> Counted {
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
}

impl Child<'_> {
    fn rows(&self) -> Range<usize> {
        match self {
            Self::Row(n) => *n..n + 1,
            Self::Folder(folder) => folder.rows(),
        }
    }
}

/// What is directly in a folder, in order.
fn children<'w>(picture: &Picture<'w>, folder: &Folder<'w>) -> impl Iterator<Item = Child<'w>> {
    let (mut rest, skipped) = (folder.rows(), folder.path.len());
    std::iter::from_fn(move || {
        let n = rest.next()?;
        let path = picture.path(n);
        let slash = memchr::memchr(b'/', &path.as_bytes()[skipped..]);
        let Some(slash) = slash.filter(|slash| skipped + slash + 1 < path.len()) else {
            return Some(Child::Row(n));
        };
        let path = &path[..=skipped + slash];
        let rows = picture.end_of(path, n..rest.end);
        rest.start = rows.end;
        Some(Child::Folder(Folder { start: rows.start, end: rows.end, path }))
    })
}
