//! What of a walk a listing shows: each file stands for itself, or belongs to a folder of build
//! products that stands as one, or is left out since rules ignore it. Pure, and linear in the files.

use std::cell::Cell;
use std::collections::HashSet;
use std::ops::Range;

use super::names::common_prefix;
use super::products::{fits, is_ignored_product, is_mark, is_marked, is_named_product, signs};
use super::walk::{Count, Listed, Walk};

thread_local! {
    static MADE: Cell<usize> = const { Cell::new(0) };
}

/// How many pictures this thread has made: each looks at every file of its walk.
pub fn made() -> usize {
    MADE.get()
}

/// A walk, sorted into what is listed and what is not.
#[derive(Debug)]
pub struct Picture<'w> {
    walk: &'w Walk,
    /// Numbers of files of the walk; from their number on, those of `products`.
    rows: Vec<usize>,
    products: Vec<Product<'w>>,
    ignored: Count,
}

/// One row of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PictureRow<'w> {
    /// A file that stands for itself.
    File(Listed<'w>),
    /// A folder whose files do not.
    Product(Product<'w>),
}

/// A folder of build products.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Product<'w> {
    /// Its path, with a `/` at the end.
    pub folder: &'w str,
    /// What is in it, listed or not.
    pub count: Count,
}

impl<'w> Picture<'w> {
    /// The picture of a walk. Files whose path is `touched` stand for themselves also among build
    /// products.
    pub fn of(walk: &'w Walk, touched: &[&str]) -> Self {
        MADE.set(MADE.get() + 1);
        let all = walk.files().len();
        let sorter = Sorter { walk, all, marked: marked(walk) };
        let left_out = |folder: &str| {
            walk.left_out().binary_search_by(|one| one.folder.as_str().cmp(folder)).is_ok()
        };
        let (mut rows, mut found) = (Vec::with_capacity(all), Vec::<Product>::new());
        let (mut n, mut folder) = (0, "");
        while n < all {
            let path = walk.file(n).path;
            let mut from = shared(folder, path);
            let product = loop {
                let Some(slash) = memchr::memchr(b'/', &path.as_bytes()[from..]) else {
                    break None;
                };
                let (parent, next) = (&path[..from], &path[..=from + slash]);
                if sorter.is_product(parent, next) || left_out(next) {
                    break Some(next);
                }
                from = next.len();
            };
            folder = &path[..from];
            let Some(product) = product else {
                rows.push(n);
                n += 1;
                continue;
            };
            let files = sorter.below(product, n);
            n = files.end;
            if left_out(product) {
                // Nothing of it is in the walk but what was asked for.
                rows.extend(files);
                continue;
            }
            rows.push(all + found.len());
            let touched = touched.iter().filter(|path| path.starts_with(product));
            let mut touched: Vec<usize> =
                touched.filter_map(|path| walk.find(path, files.clone())).collect();
            touched.sort_unstable();
            touched.dedup();
            rows.extend(touched);
            let mut count = Count::NONE;
            files.for_each(|n| count.file(walk.file(n).size));
            found.push(Product { folder: product, count });
        }
        let mut picture = Self { walk, rows, products: found, ignored: walk.ignored_files() };
        picture.leave_out();
        picture
    }

    /// Sorts in what the walk left out with its folder.
    fn leave_out(&mut self) {
        let (all, found) = (self.walk.files().len(), self.products.len());
        for one in self.walk.left_out() {
            let after =
                self.products[..found].partition_point(|product| *product.folder < *one.folder);
            match self.products[..after].last_mut() {
                Some(product) if one.folder.starts_with(product.folder) => {
                    product.count.add(one.count);
                }
                _ if is_ignored_product(&one.folder) => {
                    self.rows.push(all + self.products.len());
                    self.products.push(Product { folder: &one.folder, count: one.count });
                }
                _ => self.ignored.add(one.count),
            }
        }
        if self.products.len() > found {
            // Two runs that are sorted each: that takes one pass.
            let mut rows = std::mem::take(&mut self.rows);
            rows.sort_by(|a, b| self.path_of(*a).cmp(self.path_of(*b)));
            self.rows = rows;
        }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The row of that number; they are sorted by path.
    ///
    /// # Panics
    /// There are not so many.
    pub fn row(&self, n: usize) -> PictureRow<'w> {
        let files = self.walk.files().len();
        match self.rows[n] {
            file if file < files => PictureRow::File(self.walk.file(file)),
            product => PictureRow::Product(self.products[product - files]),
        }
    }

    /// The path of that row, of a folder with a `/` at the end.
    ///
    /// # Panics
    /// There are not so many.
    pub fn path(&self, n: usize) -> &'w str {
        self.path_of(self.rows[n])
    }

    fn path_of(&self, row: usize) -> &'w str {
        let files = self.walk.files().len();
        if row < files { self.walk.file(row).path } else { self.products[row - files].folder }
    }

    /// The rows below a folder, whose path has a `/` at the end or is empty for the root.
    pub fn below(&self, folder: &str) -> Range<usize> {
        // What the folder is itself, where it holds build products, is not below it.
        let start = self.rows.partition_point(|row| self.path_of(*row) <= folder);
        if folder.is_empty() {
            return 0..self.rows.len();
        }
        self.end_of(folder, start..self.rows.len())
    }

    /// The rows of `range` that are below a folder, where the first of them is.
    pub fn end_of(&self, folder: &str, range: Range<usize>) -> Range<usize> {
        let rows = &self.rows[range.clone()];
        let below = rows.partition_point(|row| self.path_of(*row).starts_with(folder));
        range.start..range.start + below
    }

    /// The number of the row with that path.
    pub fn find(&self, path: &str) -> Option<usize> {
        self.rows.binary_search_by(|row| self.path_of(*row).cmp(path)).ok()
    }

    /// The files that stand for themselves, sorted by path.
    pub fn files(&self) -> impl Iterator<Item = Listed<'w>> {
        let files = self.walk.files().len();
        self.rows.iter().filter(move |row| **row < files).map(|row| self.walk.file(*row))
    }

    /// What rules leave out, but for build products.
    pub fn ignored(&self) -> Count {
        self.ignored
    }

    /// Folders that could not be read, sorted.
    pub fn unreadable(&self) -> impl Iterator<Item = &'w str> {
        self.walk.unreadable()
    }
}

/// Whether a walk has left out a file of that path, if there is one, since it is in an ignored folder
/// of build products.
pub fn is_ignored_product_file(walk: &Walk, path: &str) -> bool {
    memchr::memchr_iter(b'/', path.as_bytes()).map(|slash| &path[..=slash]).any(|folder| {
        is_ignored_product(folder)
            && walk.left_out().binary_search_by(|one| one.folder.as_str().cmp(folder)).is_ok()
    })
}

/// How much of `path` is folders that `folder` is in too; the latter ends in `/`, or is empty.
fn shared(folder: &str, path: &str) -> usize {
    if path.starts_with(folder) {
        return folder.len();
    }
    let same = common_prefix(folder, path);
    memchr::memrchr(b'/', &path.as_bytes()[..same]).map_or(0, |n| n + 1)
}

/// Folders in which a tool has left its mark, with a `/` at the end.
fn marked(walk: &Walk) -> HashSet<&str> {
    let mut found = HashSet::new();
    for file in walk.files() {
        // Nearly all are told apart by their last letter.
        if !file.path.ends_with(['G', 't', 'g']) {
            continue;
        }
        let start = memchr::memrchr(b'/', file.path.as_bytes()).map_or(0, |n| n + 1);
        let (folder, name) = file.path.split_at(start);
        let has =
            |name: &str| walk.find(&format!("{folder}{name}"), 0..walk.files().len()).is_some();
        if start > 0 && is_mark(name) && is_marked(folder, name, has) {
            found.insert(folder);
        }
    }
    found
}

struct Sorter<'w> {
    walk: &'w Walk,
    all: usize,
    marked: HashSet<&'w str>,
}

impl Sorter<'_> {
    /// Whether `folder`, which is in `parent`, holds build products; both end in `/` but for the root.
    fn is_product(&self, parent: &str, folder: &str) -> bool {
        let name = &folder[parent.len()..folder.len() - 1];
        is_named_product(name)
            || !self.marked.is_empty() && self.marked.contains(folder)
            || signs(name).any(|sign| {
                self.holds_one(parent, &sign.beside) && self.holds_one(folder, &sign.within)
            })
    }

    /// Whether one of the patterns, if there are any, fits something in that folder.
    fn holds_one(&self, folder: &str, patterns: &[String]) -> bool {
        patterns.is_empty()
            || patterns.iter().any(|pattern| {
                if pattern.contains('*') {
                    self.names(folder).any(|name| fits(name, pattern))
                } else {
                    self.holds(&format!("{folder}{pattern}"))
                }
            })
    }

    /// Whether there is a file or folder of that path.
    fn holds(&self, path: &str) -> bool {
        let below = format!("{path}/");
        let at = self.walk.first(0..self.all, |one| *one < *below);
        self.walk.find(path, 0..self.all).is_some()
            || at < self.all && self.walk.file(at).path.starts_with(&below)
    }

    /// The names of what is in a folder.
    fn names(&self, folder: &str) -> impl Iterator<Item = &str> {
        let start = self.walk.first(0..self.all, |path| path < folder);
        let mut rest = self.below(folder, start);
        let skipped = folder.len();
        std::iter::from_fn(move || {
            let n = rest.next()?;
            let path = self.walk.file(n).path;
            let name = &path[skipped..];
            let Some(slash) = memchr::memchr(b'/', name.as_bytes()) else { return Some(name) };
            let inner = &path[..=skipped + slash];
            rest.start = self.walk.first(n..rest.end, |path| path.starts_with(inner));
            Some(&name[..slash])
        })
    }

    /// The files below a folder, of which `first` is the first.
    fn below(&self, folder: &str, first: usize) -> Range<usize> {
        first..self.walk.first(first..self.all, |path| path.starts_with(folder))
    }
}

#[cfg(test)]
mod tests;
