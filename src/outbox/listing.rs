//! The section `## Workspace Files`: every file with its size or, of many files, a tree with counts.
//!
//! In a tree, a folder shows all of its children, only those that lead to the work (the files of the newest results
//! and those that the person named), or none. One line stands for the others. Narrow folders near the work are shown
//! first.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use super::budget::{Measure, greatest};
use crate::protocol::{Detail, Dialect};
use crate::session::Session;
use crate::text::{byte_count, grouped, grouped_byte_count, size, visible_line};
use crate::workspace::picture::{Picture, Row};
use crate::workspace::walk::{Count, EntryKind};

/// The most lines of a listing.
const LIMIT: usize = 400;
/// How many unreadable folders are named. The last two are named, too: a guest may put a summary there.
const UNREADABLE: usize = 20;
/// How many paths of the newest results count as near to the work.
const NEWEST: usize = 100;
/// How many words of the task are examined, and how many files they may name without a folder.
const WORDS: usize = 2_000;
const BY_NAME: usize = 20;
/// No folder has a higher price.
const HIGHEST_PRICE: usize = 1 << 40;
const NOT_LISTED: &str = "  (not listed)\n";

/// A listing that can be rendered for any room.
pub(super) struct Listing<'w> {
    picture: &'w Picture<'w>,
    dialect: Dialect,
    root: Folder<'w>,
    /// How many paths are near to the work, and the folders that lead to them.
    near: usize,
    ways: HashMap<&'w str, Way<'w>>,
    /// For each row, the size of all files before it.
    bytes_before: Vec<u64>,
    /// The rows that are build products.
    products: Vec<(usize, Count)>,
    /// Numbers of children, counted when first needed.
    widths: RefCell<HashMap<&'w str, usize>>,
}

/// A folder with its rows. Its path ends with a `/`; the root's is empty.
#[derive(Debug, Clone)]
struct Folder<'w> {
    rows: Range<usize>,
    path: &'w str,
}

#[derive(Debug, Clone)]
enum Child<'w> {
    Row(usize),
    Folder(Folder<'w>),
}

/// A folder that leads to the work.
struct Way<'w> {
    /// The number of the first path that it leads to, from 1; 0 for the root.
    rank: usize,
    /// How many levels it is above the nearest one.
    distance: usize,
    /// The children that lead on, by their first row, with their ranks.
    inner: BTreeMap<usize, (usize, Child<'w>)>,
}

/// How much of the tree is shown: how many of the near paths, the price up to which folders show all of their
/// children, and how many children other folders show that lead to the work.
type TreeLimits = [usize; 3];

impl<'w> Listing<'w> {
    pub(super) fn of(session: &'w Session, picture: &'w Picture<'w>) -> Self {
        Self::near(picture, session.dialect, &near(session, picture))
    }

    fn near(picture: &'w Picture<'w>, dialect: Dialect, near: &[&str]) -> Self {
        let (mut bytes_before, mut sum, mut products) = (vec![0], 0_u64, Vec::new());
        bytes_before.reserve_exact(picture.len());
        for n in 0..picture.len() {
            match picture.row(n) {
                Row::File(file) => sum = sum.saturating_add(file.size),
                Row::Product(product) => products.push((n, product.count)),
            }
            bytes_before.push(sum);
        }
        let root = Folder { rows: 0..picture.len(), path: "" };
        let ways = ways(picture, &root, near);
        let (near, widths) = (near.len(), RefCell::default());
        Self { picture, dialect, root, near, ways, bytes_before, products, widths }
    }

    /// Renders as much as fits into `room`; [`NOT_LISTED`] if nothing does.
    pub(super) fn render(&self, room: usize, measure: Measure) -> String {
        let closing = closing(self.picture);
        if self.picture.len() <= LIMIT {
            let is_nothing = self.picture.is_empty() && self.picture.ignored() == Count::NONE;
            let mut text = if is_nothing { "(empty workspace)\n" } else { "" }.to_owned();
            text.extend((0..self.picture.len()).map(|n| line(self.picture.row(n))));
            text.push_str(&closing);
            if measure(&text) <= room {
                return text;
            }
        }
        let how = match self.dialect {
            Dialect::Tags => "[LIST_FILES path=\"FOLDER\"]",
            Dialect::Operations => "a shell operation with ls or find",
        };
        let hint = format!("  … folders with a count are not listed in full; {how} lists one\n");
        let ends = [[hint.as_str(), &closing].concat(), hint, String::new()];
        let least = measure(&self.tree([0; 3]).concat());
        match ends.into_iter().find(|end| least + measure(end) <= room) {
            Some(end) if !self.picture.is_empty() => {
                self.grow(room - measure(&end), measure).concat() + &end
            }
            _ => NOT_LISTED.to_owned(),
        }
    }

    /// The tree, as much of it as fits: first what is near, then whole folders, then as many children of the folders
    /// that lead there as half of the remaining room can hold.
    fn grow(&self, room: usize, measure: Measure) -> Vec<String> {
        let size = |limits| {
            let lines = self.tree(limits);
            (lines.len(), measure(&lines.concat()))
        };
        let (mut limits, mut most_lines, mut room) = ([0; 3], LIMIT, room);
        for (n, most) in [self.near, HIGHEST_PRICE, LIMIT].into_iter().enumerate() {
            if n == 2 {
                let (lines, used) = size(limits);
                (most_lines, room) = (lines.midpoint(most_lines), used.midpoint(room));
            }
            let fits = |limit| {
                let mut limits = limits;
                limits[n] = limit;
                let (lines, used) = size(limits);
                lines <= most_lines && used <= room
            };
            limits[n] = greatest(most, fits).unwrap_or_default();
        }
        self.tree(limits)
    }

    /// The lines of the tree; incomplete if they are more than [`LIMIT`].
    fn tree(&self, limits: TreeLimits) -> Vec<String> {
        let mut lines = Vec::new();
        self.add_folder(&self.root, 0, limits, &mut lines);
        lines
    }

    /// Adds the lines of a folder, and one for what they do not show.
    fn add_folder(
        &self,
        folder: &Folder<'w>,
        distance: usize,
        limits: TreeLimits,
        lines: &mut Vec<String>,
    ) {
        let [near, highest_price, first] = limits;
        let way = self.ways.get(folder.path).filter(|way| way.rank <= near);
        let distance = way.map_or(distance, |way| way.distance);
        let width = self.width(folder);
        let price = (width * (distance + 1)).saturating_mul(self.picture.len()) + folder.rows.start;
        let mut shown = BTreeMap::new();
        if width <= LIMIT && price < highest_price {
            shown.extend(children(self.picture, folder).map(Child::with_start));
        } else if let Some(way) = way {
            shown.extend(children(self.picture, folder).take(first).map(Child::with_start));
            let inner = way.inner.values().filter(|(rank, _)| *rank <= near);
            shown.extend(inner.map(|(_, child)| child.clone().with_start()));
        }
        let (mut files, mut built, mut at) = (Count::NONE, None, folder.rows.start);
        let is_rest = !shown.is_empty();
        for child in shown.into_values() {
            let rows = child.rows();
            self.add_count(at..rows.start, &mut files, &mut built);
            at = rows.end;
            match child {
                Child::Row(n) => lines.push(line(self.picture.row(n))),
                Child::Folder(folder) => self.add_folder(&folder, distance + 1, limits, lines),
            }
            if lines.len() > LIMIT {
                return;
            }
        }
        self.add_count(at..folder.rows.end, &mut files, &mut built);
        if files.files > 0 || built.is_some() {
            let path = if folder.path.is_empty() { "./".into() } else { visible_line(folder.path) };
            lines.push(format!("  {path} ({})\n", describe_folder(files, built, is_rest)));
        }
    }

    fn width(&self, folder: &Folder<'w>) -> usize {
        let count = || children(self.picture, folder).take(LIMIT + 1).count();
        *self.widths.borrow_mut().entry(folder.path).or_insert_with(count)
    }

    /// Adds the files and build products of these rows.
    fn add_count(&self, rows: Range<usize>, files: &mut Count, built: &mut Option<Count>) {
        let from = self.products.partition_point(|(n, _)| *n < rows.start);
        let within = self.products[from..].iter().take_while(|(n, _)| *n < rows.end);
        let mut folders = 0;
        for (_, count) in within {
            folders += 1;
            built.get_or_insert(Count::NONE).add(*count);
        }
        let bytes = self.bytes_before[rows.end] - self.bytes_before[rows.start];
        files.add(Count { files: rows.len() as u64 - folders, bytes, is_whole: true });
    }
}

/// The existing folders that lead to these paths.
fn ways<'w>(
    picture: &'w Picture<'w>,
    root: &Folder<'w>,
    near: &[&str],
) -> HashMap<&'w str, Way<'w>> {
    let way = |rank, distance| Way { rank, distance, inner: BTreeMap::new() };
    let mut ways = HashMap::from([("", way(0, if near.is_empty() { 0 } else { usize::MAX }))]);
    for (path, rank) in near.iter().zip(1..) {
        let mut folders = vec![root.clone()];
        let whole = format!("{path}/");
        for slash in memchr::memchr_iter(b'/', whole.as_bytes()) {
            let rows = picture.below(&whole[..=slash]);
            if rows.is_empty() {
                break;
            }
            folders.push(Folder { path: &picture.path(rows.start)[..=slash], rows });
        }
        let mut inner = picture.find(path).map(Child::Row);
        for (distance, folder) in folders.into_iter().rev().enumerate() {
            let known = ways.entry(folder.path).or_insert_with(|| way(rank, distance));
            known.distance = known.distance.min(distance);
            if let Some(inner) = inner {
                known.inner.entry(inner.rows().start).or_insert((rank, inner));
            }
            inner = Some(Child::Folder(folder));
        }
    }
    ways
}

impl Child<'_> {
    fn rows(&self) -> Range<usize> {
        match self {
            Self::Row(n) => *n..n + 1,
            Self::Folder(folder) => folder.rows.clone(),
        }
    }

    fn with_start(self) -> (usize, Self) {
        (self.rows().start, self)
    }
}

/// The children of a folder, in order.
fn children<'w>(
    picture: &'w Picture<'w>,
    folder: &Folder<'w>,
) -> impl Iterator<Item = Child<'w>> + use<'w> {
    let (mut rest, skipped) = (folder.rows.clone(), folder.path.len());
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
        Some(Child::Folder(Folder { rows, path }))
    })
}

/// The line of one row.
fn line(row: Row<'_>) -> String {
    let (path, what) = match row {
        Row::Product(product) => (product.folder, describe_products(product.count)),
        Row::File(file) => (
            file.path,
            match file.kind {
                EntryKind::File => byte_count(file.size),
                EntryKind::Link => "link".to_owned(),
                EntryKind::Other => "not a regular file".to_owned(),
            },
        ),
    };
    format!("  {} ({what})\n", visible_line(path))
}

/// The lines after the files.
fn closing(picture: &Picture<'_>) -> String {
    let ignored =
        describe_ignored(picture.ignored()).map(|what| format!("  … and {what} not listed\n"));
    let mut text = ignored.unwrap_or_default();
    let folders = picture.unreadable();
    let hidden = folders.len().saturating_sub(UNREADABLE + 2);
    for (n, folder) in folders.iter().enumerate() {
        match n.checked_sub(UNREADABLE) {
            Some(0) if hidden > 0 => {
                let more = grouped(hidden as u64);
                text.push_str(&format!("  … and {more} more (cannot be read)\n"));
            }
            Some(n) if n < hidden => {}
            _ => text.push_str(&format!("  {} (cannot be read)\n", visible_line(folder))),
        }
    }
    text
}

/// Describes a folder of build products.
fn describe_products(Count { files: n, bytes, is_whole }: Count) -> String {
    let files = if n == 1 { "1 file".to_owned() } else { format!("{} files", grouped(n)) };
    match (n, is_whole) {
        (0, false) => "build products, not counted".to_owned(),
        (_, true) => format!("build products: {files}, {}", size(bytes)),
        (_, false) => format!("build products: more than {files}, {}", size(bytes)),
    }
}

/// Describes what a folder contains that is not listed; `more` says that some of it is listed.
fn describe_folder(of: Count, built: Option<Count>, more: bool) -> String {
    let mut parts = Vec::new();
    let more = if more { "more " } else { "" };
    if of.files > 0 {
        let noun = if of.files == 1 { "file" } else { "files" };
        parts.push(format!("{} {more}{noun}, {}", grouped(of.files), grouped_byte_count(of.bytes)));
    }
    parts.extend(built.map(describe_products));
    parts.join("; ")
}

/// Describes the ignored files: `3 ignored files (12 bytes) are`. None if there are none.
fn describe_ignored(Count { files: n, bytes, is_whole }: Count) -> Option<String> {
    let size = grouped_byte_count(bytes);
    Some(match (n, is_whole) {
        (0, true) => return None,
        (0, false) => "ignored folders, not counted, are".to_owned(),
        (1, true) => format!("1 ignored file ({size}) is"),
        (_, true) => format!("{} ignored files ({size}) are", grouped(n)),
        (_, false) => {
            format!("more than {} ignored files (more than {size}) are", grouped(n))
        }
    })
}

/// The paths of the newest results, the last ones first.
pub fn newest(session: &Session) -> Vec<&str> {
    let paths = session.last_results.iter().rev().filter_map(|outcome| match &outcome.detail {
        Detail::Created { path, .. }
        | Detail::Edited { path, .. }
        | Detail::Replaced { path, .. }
        | Detail::Deleted { path }
        | Detail::ReadLater { path, .. }
        | Detail::Moved { to: path, .. }
        | Detail::Read { path, .. } => Some(path.as_str()),
        _ => None,
    });
    paths.take(NEWEST).collect()
}

/// The paths near to the work: those of the newest results, and those that the person named. The latter are needed
/// only for a tree.
fn near<'a>(session: &'a Session, picture: &Picture<'a>) -> Vec<&'a str> {
    let mut near = newest(session);
    if picture.len() > LIMIT {
        let texts = std::iter::once(&session.task).chain(&session.said);
        near.extend(named(texts.map(String::as_str), picture));
    }
    near
}

/// The paths that words of these texts name, in full or by a file name.
fn named<'w>(texts: impl Iterator<Item = &'w str>, picture: &Picture<'w>) -> Vec<&'w str> {
    let is_around = |c: char| c.is_whitespace() || "\"'`()[]{}<>,;:!?|*=“”‘’„«»".contains(c);
    let words = texts.flat_map(|text| text.split(is_around)).take(WORDS);
    let (mut found, mut names) = (Vec::new(), HashSet::new());
    for word in words {
        let word = word.trim_end_matches(['.', '/']);
        let word = word.strip_prefix("./").unwrap_or(word);
        if word.len() < 2 {
            continue;
        }
        if picture.find(word).is_some() || !picture.below(&format!("{word}/")).is_empty() {
            found.push(word);
        } else if word.contains('.') && !word.contains('/') {
            names.insert(word);
        }
    }
    if !names.is_empty() {
        let of_name = |path: &&str| names.contains(path.rsplit('/').next().unwrap_or(path));
        found.extend(picture.files().map(|file| file.path).filter(of_name).take(BY_NAME));
    }
    found
}

#[cfg(test)]
mod tests;
