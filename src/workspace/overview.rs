//! Sorts the files of a walk for a listing. Each file gets a row, or belongs to a folder of build products that gets
//! one row, or is left out because rules ignore it. Pure, and linear in the number of files.

use std::cell::Cell;
use std::collections::HashSet;
use std::ops::Range;

use super::names::common_prefix;
use super::products::{
    is_ignored_product, is_marked, is_named_product, is_tool_marker, markers, matches_pattern,
};
use super::walk::{Count, Listed, Walk};

thread_local! {
    static SORTED: Cell<usize> = const { Cell::new(0) };
}

/// How many walks this thread has sorted. Sorting a walk takes a pass over all files.
pub fn sorted_count() -> usize {
    SORTED.get()
}

/// The files of a walk, sorted into rows.
#[derive(Debug)]
pub struct Overview<'w> {
    walk: &'w Walk,
    /// Indexes of files of the walk. Higher indexes refer to `products`.
    rows: Vec<usize>,
    products: Vec<Product<'w>>,
    ignored: Count,
}

/// One row of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverviewRow<'w> {
    /// A file.
    File(Listed<'w>),
    /// A folder of build products, instead of its files.
    Product(Product<'w>),
}

/// A folder of build products.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Product<'w> {
    /// The folder's path, with a `/` at the end.
    pub folder: &'w str,
    /// The number and size of the folder's files, including ignored files.
    pub count: Count,
}

impl<'w> Overview<'w> {
    /// Sorts the files of a walk. Files in `touched` get a row even if they are build products.
    pub fn of(walk: &'w Walk, touched: &[&str]) -> Self {
        SORTED.set(SORTED.get() + 1);
        let all = walk.files().len();
        let finder = ProductFinder { walk, all, marked: marked(walk) };
        let (mut rows, mut products) = (Vec::with_capacity(all), Vec::<Product>::new());
        let (mut n, mut folder) = (0, "");
        while n < all {
            let path = walk.file(n).path;
            let mut from = shared_folders(folder, path);
            let product = loop {
                let Some(slash) = memchr::memchr(b'/', &path.as_bytes()[from..]) else {
                    break None;
                };
                let (parent, next) = (&path[..from], &path[..=from + slash]);
                if finder.is_product(parent, next) || is_left_out(walk, next) {
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
            let files = finder.below(product, n);
            n = files.end;
            if is_left_out(walk, product) {
                // Of this folder's files, the walk contains only those that were requested.
                rows.extend(files);
                continue;
            }
            rows.push(all + products.len());
            let touched = touched.iter().filter(|path| path.starts_with(product));
            let mut touched: Vec<usize> =
                touched.filter_map(|path| walk.find(path, files.clone())).collect();
            touched.sort_unstable();
            touched.dedup();
            rows.extend(touched);
            let mut count = Count::NONE;
            files.for_each(|n| count.add_file(walk.file(n).size));
            products.push(Product { folder: product, count });
        }
        let mut listing = Self { walk, rows, products, ignored: walk.ignored_files() };
        listing.add_left_out();
        listing
    }

    /// Adds the folders of build products that the walk left out.
    fn add_left_out(&mut self) {
        let (all, walked) = (self.walk.files().len(), self.products.len());
        for one in self.walk.left_out() {
            let after =
                self.products[..walked].partition_point(|product| *product.folder < *one.folder);
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
        if self.products.len() > walked {
            // Both parts are sorted already, so this sort takes one pass.
            let mut rows = std::mem::take(&mut self.rows);
            rows.sort_by(|a, b| self.path_of(*a).cmp(self.path_of(*b)));
            self.rows = rows;
        }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Row `n`. The rows are sorted by path.
    ///
    /// # Panics
    /// There is no such row.
    pub fn row(&self, n: usize) -> OverviewRow<'w> {
        let files = self.walk.files().len();
        match self.rows[n] {
            file if file < files => OverviewRow::File(self.walk.file(file)),
            product => OverviewRow::Product(self.products[product - files]),
        }
    }

    /// The path of row `n`. The path of a folder ends in `/`.
    ///
    /// # Panics
    /// There is no such row.
    pub fn path(&self, n: usize) -> &'w str {
        self.path_of(self.rows[n])
    }

    fn path_of(&self, row: usize) -> &'w str {
        let files = self.walk.files().len();
        if row < files { self.walk.file(row).path } else { self.products[row - files].folder }
    }

    /// The rows below a folder. The folder's path ends in `/`, or is empty for the root.
    pub fn below(&self, folder: &str) -> Range<usize> {
        // If the folder contains build products, its own row is not below it.
        let start = self.rows.partition_point(|row| self.path_of(*row) <= folder);
        if folder.is_empty() {
            return 0..self.rows.len();
        }
        self.end_of(folder, start..self.rows.len())
    }

    /// The rows of `range` that are below a folder. The first row of `range` must be below it.
    pub fn end_of(&self, folder: &str, range: Range<usize>) -> Range<usize> {
        let rows = &self.rows[range.clone()];
        let below = rows.partition_point(|row| self.path_of(*row).starts_with(folder));
        range.start..range.start + below
    }

    /// The number of the row with this path.
    pub fn find(&self, path: &str) -> Option<usize> {
        self.rows.binary_search_by(|row| self.path_of(*row).cmp(path)).ok()
    }

    /// The files with a row of their own, sorted by path.
    pub fn files(&self) -> impl Iterator<Item = Listed<'w>> {
        let files = self.walk.files().len();
        self.rows.iter().filter(move |row| **row < files).map(|row| self.walk.file(*row))
    }

    /// The number and size of ignored files that are not build products.
    pub fn ignored(&self) -> Count {
        self.ignored
    }

    /// Folders that could not be read, sorted.
    pub fn unreadable(&self) -> impl Iterator<Item = &'w str> {
        self.walk.unreadable()
    }
}

/// Whether a walk leaves out files at this path because they are in an ignored folder of build products.
pub fn is_ignored_product_file(walk: &Walk, path: &str) -> bool {
    let mut folders = memchr::memchr_iter(b'/', path.as_bytes()).map(|slash| &path[..=slash]);
    folders.any(|folder| is_ignored_product(folder) && is_left_out(walk, folder))
}

/// Whether a walk left out this folder. The path ends in `/`.
fn is_left_out(walk: &Walk, folder: &str) -> bool {
    walk.left_out().binary_search_by(|one| one.folder.as_str().cmp(folder)).is_ok()
}

/// The length of the parent folders that two paths have in common. `folder` ends in `/` or is empty.
fn shared_folders(folder: &str, path: &str) -> usize {
    if path.starts_with(folder) {
        return folder.len();
    }
    let same = common_prefix(folder, path);
    memchr::memrchr(b'/', &path.as_bytes()[..same]).map_or(0, |n| n + 1)
}

/// The folders that contain a tool's marker file, with a `/` at the end.
fn marked(walk: &Walk) -> HashSet<&str> {
    let mut found = HashSet::new();
    for file in walk.files() {
        // Checking the last letter first excludes nearly all other files quickly.
        if !file.path.ends_with(['G', 't', 'g']) {
            continue;
        }
        let start = memchr::memrchr(b'/', file.path.as_bytes()).map_or(0, |n| n + 1);
        let (folder, name) = file.path.split_at(start);
        let has =
            |name: &str| walk.find(&format!("{folder}{name}"), 0..walk.files().len()).is_some();
        if start > 0 && is_tool_marker(name) && is_marked(folder, name, has) {
            found.insert(folder);
        }
    }
    found
}

/// Recognises folders of build products.
struct ProductFinder<'w> {
    walk: &'w Walk,
    all: usize,
    marked: HashSet<&'w str>,
}

impl ProductFinder<'_> {
    /// Whether `folder`, which is in `parent`, contains build products. Both end in `/`, except for the root.
    fn is_product(&self, parent: &str, folder: &str) -> bool {
        let name = &folder[parent.len()..folder.len() - 1];
        is_named_product(name)
            || !self.marked.is_empty() && self.marked.contains(folder)
            || markers(name).any(|marker| {
                self.contains_any(parent, &marker.beside)
                    && self.contains_any(folder, &marker.within)
            })
    }

    /// Whether an entry of the folder matches one of the patterns, or there are no patterns.
    fn contains_any(&self, folder: &str, patterns: &[String]) -> bool {
        patterns.is_empty()
            || patterns.iter().any(|pattern| {
                if pattern.contains('*') {
                    self.names(folder).any(|name| matches_pattern(name, pattern))
                } else {
                    self.contains(&format!("{folder}{pattern}"))
                }
            })
    }

    /// Whether there is a file or folder at this path.
    fn contains(&self, path: &str) -> bool {
        let below = format!("{path}/");
        let at = self.walk.first(0..self.all, |one| *one < *below);
        self.walk.find(path, 0..self.all).is_some()
            || at < self.all && self.walk.file(at).path.starts_with(&below)
    }

    /// The names of the entries in a folder.
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

    /// The files below a folder. The first of them is file `first`.
    fn below(&self, folder: &str, first: usize) -> Range<usize> {
        first..self.walk.first(first..self.all, |path| path.starts_with(folder))
    }
}

#[cfg(test)]
mod tests;
