//! The section `## Workspace Files`: every file with its size or, if there are many files, a tree with counts.
//!
//! In a tree, a folder shows all of its children, or only those near the work (files of the newest results and files
//! that the person named), or none. One line counts the others. Small folders near the work are shown first.

use std::collections::HashMap;
use std::ops::Range;

use super::budget::greatest;
use crate::context::{NearPlace, near_places};
use crate::protocol::Dialect;
use crate::text::{byte_count, grouped, size, visible_line};
use crate::workspace::overview::{Overview, OverviewRow};
use crate::workspace::walk::{Count, EntryKind};

/// The most lines of a listing.
const LIMIT: usize = 400;
/// The most unreadable folders that are named first. The last two are also named: a guest may put a summary there.
const UNREADABLE: usize = 20;
pub(super) const NOT_LISTED: &str = "  (not listed)\n";

/// A listing that can be rendered for any room.
pub(super) struct Listing<'w> {
    overview: &'w Overview<'w>,
    dialect: Dialect,
    root: ListedFolder<'w>,
    /// The number of paths near the work.
    near: usize,
}

/// A folder of the tree.
struct ListedFolder<'w> {
    /// The folder's path with a `/` at the end; empty for the root.
    path: &'w str,
    first_row: usize,
    nearness: Option<NearPlace>,
    /// The number of children.
    width: usize,
    /// The first [`LIMIT`] children, and those near the work. Other children are never shown.
    children: Vec<ListedChild<'w>>,
    /// The numbers of files in the other children.
    rest: Counts,
    /// The numbers of files in all children.
    all: Counts,
}

/// The numbers of ordinary files and of build products.
type Counts = [Count; 2];

/// A row, or a folder with its rows.
struct ListedChild<'w> {
    row: usize,
    nearness: Option<NearPlace>,
    folder: Option<Box<ListedFolder<'w>>>,
}

/// The limits of a tree: how many near paths are shown, the cost up to which a folder shows all of its children, and
/// how many children other folders near the work show.
type TreeLimits = [usize; 3];

impl<'w> Listing<'w> {
    pub(super) fn new(overview: &'w Overview<'w>, dialect: Dialect, near: &[&str]) -> Self {
        let root = ListedFolder::new(overview, "", 0..overview.len(), &near_places(overview, near));
        Self { overview, dialect, root, near: near.len() }
    }

    /// Renders as much as fits into `room`; [`NOT_LISTED`] if nothing fits.
    pub(super) fn render(&self, room: usize, measure: fn(&str) -> usize) -> String {
        let closing = closing(self.overview);
        if self.overview.len() <= LIMIT {
            let lines = (0..self.overview.len()).map(|n| line(self.overview.row(n)));
            let mut text = lines.collect::<String>() + &closing;
            if text.is_empty() {
                text.push_str("(empty workspace)\n");
            }
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
            Some(end) if !self.overview.is_empty() => {
                self.grow(room - measure(&end), measure).concat() + &end
            }
            _ => NOT_LISTED.to_owned(),
        }
    }

    /// As much of the tree as fits: first the near paths, then whole folders. Half of the remaining room is for further
    /// children of folders near the work.
    fn grow(&self, room: usize, measure: fn(&str) -> usize) -> Vec<String> {
        let size = |limits| {
            let lines = self.tree(limits);
            (lines.len(), measure(&lines.concat()))
        };
        let (mut limits, mut most_lines, mut room) = ([0; 3], LIMIT, room);
        for (n, most) in [self.near, usize::MAX, LIMIT].into_iter().enumerate() {
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
            // 40 steps find any limit exactly.
            limits[n] = greatest(most, 40, fits).unwrap_or_default();
        }
        self.tree(limits)
    }

    /// The lines of the tree; incomplete if there are more than [`LIMIT`].
    fn tree(&self, limits: TreeLimits) -> Vec<String> {
        let mut lines = Vec::new();
        self.add_folder(&self.root, 0, limits, &mut lines);
        lines
    }

    /// Adds the lines of a folder, and a line for the children that are not shown.
    fn add_folder(
        &self,
        folder: &ListedFolder<'w>,
        distance: usize,
        limits: TreeLimits,
        lines: &mut Vec<String>,
    ) {
        let [near, highest_price, first] = limits;
        let is_near =
            |nearness: Option<NearPlace>| nearness.is_some_and(|nearness| nearness.rank <= near);
        let nearness = folder.nearness.filter(|nearness| is_near(Some(*nearness)));
        let distance = nearness.map_or(distance, |nearness| nearness.distance);
        let ListedFolder { width, first_row, .. } = *folder;
        // The files in the root show what kind of project it is.
        let steps = if folder.path.is_empty() { 1 } else { distance + 1 };
        let price = (width * steps).saturating_mul(self.overview.len()) + first_row;
        let is_whole = width <= LIMIT && price < highest_price;
        let (mut hidden, before) = (folder.rest, lines.len());
        for (n, child) in folder.children.iter().enumerate() {
            let is_shown = is_whole || nearness.is_some() && (n < first || is_near(child.nearness));
            match &child.folder {
                _ if !is_shown => add(&mut hidden, child.counts(self.overview)),
                Some(folder) => self.add_folder(folder, distance + 1, limits, lines),
                None => lines.push(line(self.overview.row(child.row))),
            }
            if lines.len() > LIMIT {
                return;
            }
        }
        if hidden != [Count::NONE; 2] {
            let path = if folder.path.is_empty() { "./".into() } else { visible_line(folder.path) };
            let more = if lines.len() > before { "more " } else { "" };
            lines.push(format!("  {path} ({})\n", describe_hidden(hidden, more)));
        }
    }
}

impl<'w> ListedFolder<'w> {
    /// Builds the tree of these rows.
    fn new(
        overview: &Overview<'w>,
        path: &'w str,
        mut rows: Range<usize>,
        near_places: &HashMap<String, NearPlace>,
    ) -> Self {
        let (nearness, children) = (near_places.get(path).copied(), Vec::new());
        let (first_row, width, rest, all) = (rows.start, 0, [Count::NONE; 2], [Count::NONE; 2]);
        let mut folder = Self { path, first_row, nearness, width, children, rest, all };
        while let Some(row) = rows.next() {
            let path = overview.path(row);
            let slash = memchr::memchr(b'/', &path.as_bytes()[folder.path.len()..]);
            // Build products are rows whose paths end with a `/`.
            let inner = slash.map(|slash| &path[..=folder.path.len() + slash]);
            let inner = inner.filter(|inner| inner.len() < path.len()).map(|inner| {
                let inside = overview.end_of(inner, row..rows.end);
                rows.start = inside.end;
                Box::new(Self::new(overview, inner, inside, near_places))
            });
            let nearness = match &inner {
                Some(inner) => inner.nearness,
                None => folder.nearness.and_then(|_| near_places.get(path).copied()),
            };
            let child = ListedChild { row, nearness, folder: inner };
            let counts = child.counts(overview);
            folder.width += 1;
            add(&mut folder.all, counts);
            if folder.width <= LIMIT || nearness.is_some() {
                folder.children.push(child);
            } else {
                add(&mut folder.rest, counts);
            }
        }
        folder
    }
}

impl ListedChild<'_> {
    fn counts(&self, overview: &Overview<'_>) -> Counts {
        match (&self.folder, overview.row(self.row)) {
            (Some(folder), _) => folder.all,
            (None, OverviewRow::Product(product)) => [Count::NONE, product.count],
            (None, OverviewRow::File(file)) => {
                [Count { files: 1, bytes: file.size, is_whole: true }, Count::NONE]
            }
        }
    }
}

fn add(sum: &mut Counts, counts: Counts) {
    sum.iter_mut().zip(counts).for_each(|(sum, count)| sum.add(count));
}

/// The line of one row.
fn line(row: OverviewRow<'_>) -> String {
    let (path, what) = match row {
        OverviewRow::Product(product) => (product.folder, describe_products(product.count)),
        OverviewRow::File(file) => (
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
fn closing(overview: &Overview<'_>) -> String {
    let mut text = match overview.ignored() {
        Count::NONE => String::new(),
        ignored => format!("  … {} (not listed)\n", describe(ignored, "ignored ")),
    };
    let mut folders: Vec<_> = overview.unreadable().map(visible_line).collect();
    let hidden = folders.len().saturating_sub(UNREADABLE + 2);
    if hidden > 0 {
        let more = format!("… and {} more", grouped(hidden as u64));
        folders.splice(UNREADABLE..UNREADABLE + hidden, [more.into()]);
    }
    text.extend(folders.iter().map(|path| format!("  {path} (cannot be read)\n")));
    text
}

/// Describes the unlisted content of a folder.
fn describe_hidden([files, products]: Counts, kind: &str) -> String {
    let files = (files != Count::NONE).then(|| describe(files, kind));
    let products = (products != Count::NONE).then(|| describe_products(products));
    files.into_iter().chain(products).collect::<Vec<_>>().join("; ")
}

/// Describes a number of files of a kind: `1,234 ignored files, 56 MB`.
fn describe(Count { files, bytes, is_whole }: Count, kind: &str) -> String {
    let noun = if files == 1 { "file" } else { "files" };
    let described = format!("{} {kind}{noun}, {}", grouped(files), size(bytes));
    match (files, is_whole) {
        (0, false) => format!("{kind}files, not counted"),
        (_, false) => format!("more than {described}"),
        (_, true) => described,
    }
}

fn describe_products(count: Count) -> String {
    format!("build products: {}", describe(count, ""))
}

#[cfg(test)]
mod tests;
