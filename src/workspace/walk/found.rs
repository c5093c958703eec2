//! The files that a walk found, stored compactly.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;

use super::Handle;
use super::detailed::{DetailedWalk, FileStat};
pub use crate::protocol::{Count, EntryKind, LeftOut};
use crate::workspace::Workspace;
use crate::workspace::names::{escaped, shown, unescaped};

/// File system clocks advance in steps of up to 10 ms. If a file changes twice within this time, in nanoseconds, both
/// changes may leave the same time stamp.
const TICK: i64 = 20_000_000;

/// The files of the workspace.
#[derive(Debug, Default)]
pub struct Walk {
    /// All paths, concatenated.
    pub(super) names: String,
    pub(super) entries: Vec<PackedFile>,
    /// Other places that the walk recorded.
    pub(super) places: BTreeSet<(PlaceKind, String)>,
    /// Digests of the ignore rules, by the escaped path of their folder, with a `/` at the end.
    pub(in crate::workspace) rules: BTreeMap<String, u64>,
    /// The folders that were left out, with the number of files in them once they are counted.
    pub(super) left_out: Vec<LeftOut>,
    /// The number and size of files that were left out individually, not with a folder.
    pub(super) ignored_files: Count,
    /// The details, if requested.
    pub(in crate::workspace) detailed: Option<Box<DetailedWalk>>,
    /// The folders that were listed, by escaped path, and their metadata just before they were listed.
    pub(super) folders: Vec<(String, FileStat)>,
    /// When the walk began.
    pub(super) begun: i64,
}

/// Why a walk recorded a place. Paths that are used to open the place again are escaped, because they can contain any
/// bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::workspace) enum PlaceKind {
    /// A folder that could not be read, or an entry that could not be inspected; as text.
    Unreadable,
    /// A folder that could not be read, or whose entries could not be inspected; escaped.
    Closed,
    /// A folder that contains a `.git` file or folder, outside ignored folders; escaped.
    Repository,
    /// A folder that git could treat as a repository itself; escaped.
    Bare,
    /// A regular file with a set-user-ID or set-group-ID bit, outside ignored folders; escaped.
    SetId,
    /// A folder that ignore rules left out; escaped.
    Ignored,
    /// A single ignored file whose name suggests that it contains secrets; as text.
    IgnoredSecret,
}

impl Count {
    /// No files, counted completely.
    pub const NONE: Self = Self { files: 0, bytes: 0, is_whole: true };
    /// Not counted.
    pub const UNKNOWN: Self = Self { files: 0, bytes: 0, is_whole: false };

    /// Adds a file.
    pub fn add_file(&mut self, bytes: u64) {
        self.files += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Adds another count.
    pub fn add(&mut self, other: Self) {
        self.files = self.files.saturating_add(other.files);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.is_whole &= other.is_whole;
    }
}

impl Default for Count {
    fn default() -> Self {
        Self::NONE
    }
}

/// A file whose path is a range of [`Walk::names`].
#[derive(Debug, Clone, Copy)]
pub(super) struct PackedFile {
    start: u32,
    end: u32,
    size: u64,
    kind: EntryKind,
}

/// One file of a [`Walk`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed<'a> {
    /// The path from the root, with `/` between components.
    pub path: &'a str,
    /// The size in bytes.
    pub size: u64,
    /// Whether it is a regular file, a link or something else.
    pub kind: EntryKind,
}

impl Walk {
    /// The files, sorted by path (byte order).
    pub fn files(&self) -> impl ExactSizeIterator<Item = Listed<'_>> {
        self.entries.iter().map(|e| Listed { path: self.path(e), size: e.size, kind: e.kind })
    }

    /// File `n` in the order of [`Walk::files`].
    pub(in super::super) fn file(&self, n: usize) -> Listed<'_> {
        let entry = &self.entries[n];
        Listed { path: self.path(entry), size: entry.size, kind: entry.kind }
    }

    /// The index of the file with this path, searched in a range of indexes.
    pub(in super::super) fn find(&self, path: &str, files: Range<usize>) -> Option<usize> {
        let end = files.end;
        let at = self.first(files, |one| one < path);
        (at < end && self.file(at).path == path).then_some(at)
    }

    /// The index of the first file of `range` for whose path `before` is false, or the end of the range.
    pub(in super::super) fn first(
        &self,
        range: Range<usize>,
        before: impl Fn(&str) -> bool,
    ) -> usize {
        range.start + self.entries[range].partition_point(|entry| before(self.path(entry)))
    }

    /// Folders that could not be read, sorted.
    pub fn unreadable(&self) -> impl Iterator<Item = &str> {
        self.places(PlaceKind::Unreadable)
    }

    /// The paths of single ignored files whose names suggest that they contain secrets, sorted. Files with secrets
    /// are usually ignored.
    pub fn ignored_secrets(&self) -> impl Iterator<Item = &str> {
        self.places(PlaceKind::IgnoredSecret)
    }

    /// The places recorded for a reason, sorted.
    pub(in super::super) fn places(&self, kind: PlaceKind) -> impl Iterator<Item = &str> {
        let places = self.places.range((kind, String::new())..);
        places.take_while(move |(other, _)| *other == kind).map(|(_, path)| path.as_str())
    }

    /// The folders whose settings git uses: those that contain a `.git`, and those that git could treat as one.
    pub(in super::super) fn git_folders(&self) -> impl Iterator<Item = &str> {
        self.places(PlaceKind::Repository).chain(self.places(PlaceKind::Bare))
    }

    pub(super) fn note(&mut self, kind: PlaceKind, path: &str) {
        self.places.insert((kind, path.trim_end_matches('/').to_owned()));
    }

    /// Whether another walk would find the same names: no folder has changed since it was listed, and none can have
    /// changed unnoticed during the listing.
    pub(in super::super) fn is_current(&self, workspace: &Workspace) -> bool {
        let Ok(root) = Handle::root(&workspace.root) else { return false };
        let is_as_it_was = |(path, then): &(String, FileStat)| {
            let place = if path.is_empty() { ".".into() } else { unescaped(path) };
            then.changed + TICK < self.begun
                && root.stat(place.as_bytes(), true).is_ok_and(|(_, _, now)| now == *then)
        };
        self.places(PlaceKind::Closed).next().is_none() && self.folders.iter().all(is_as_it_was)
    }

    /// A walk with the given paths and sizes, for previews and tests.
    pub fn of<'a>(files: impl IntoIterator<Item = (&'a str, u64)>) -> Self {
        let file = |(path, size): (&str, u64)| (path.to_owned(), size, EntryKind::File);
        Self::from_files(files.into_iter().map(file), Vec::new())
    }

    /// A walk with the given files and unreadable folders, for example those of a guest.
    pub fn from_files(
        files: impl IntoIterator<Item = (String, u64, EntryKind)>,
        unreadable: Vec<String>,
    ) -> Self {
        let places = unreadable.into_iter().map(|path| (PlaceKind::Unreadable, path));
        let mut walk = Self { places: places.collect(), ..Self::default() };
        for (path, size, kind) in files {
            walk.push("", &path, size, kind);
        }
        walk.sort();
        walk
    }

    /// Adds the counts of the files and folders that were left out.
    #[must_use]
    pub fn with_left_out(mut self, files: Count, mut folders: Vec<LeftOut>) -> Self {
        folders.sort_unstable_by(|a, b| a.folder.cmp(&b.folder));
        (self.ignored_files, self.left_out) = (files, folders);
        self
    }

    /// The number and size of files that were left out individually, not with a folder.
    pub fn ignored_files(&self) -> Count {
        self.ignored_files
    }

    /// The folders that were left out and counted (see [`Workspace::count_ignored`]), sorted.
    ///
    /// [`Workspace::count_ignored`]: super::super::Workspace::count_ignored
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// Adds a file that was left out with its folder, unless it is already listed.
    pub fn add_file(&mut self, path: &str, size: u64) {
        let Err(at) = self.entries.binary_search_by(|e| self.path(e).cmp(path)) else { return };
        let before = self.entries.len();
        self.push("", path, size, EntryKind::File);
        if self.entries.len() > before {
            self.entries[at..].rotate_right(1);
        }
    }

    fn path(&self, entry: &PackedFile) -> &str {
        &self.names[entry.start as usize..entry.end as usize]
    }

    pub(super) fn push(&mut self, prefix: &str, name: &str, size: u64, kind: EntryKind) {
        let start = self.names.len();
        self.names.push_str(prefix);
        self.names.push_str(name);
        // 4 GiB of names is more than any listing could use.
        if let (Ok(start), Ok(end)) = (u32::try_from(start), u32::try_from(self.names.len())) {
            self.entries.push(PackedFile { start, end, size, kind });
        } else {
            self.names.truncate(start);
        }
    }

    /// Records that an entry of a folder cannot be inspected. With an empty name, no entry can be inspected.
    pub(super) fn note_unreadable(&mut self, folder: &str, name: &[u8]) {
        let place = format!("{folder}{}", escaped(name));
        let path = if place.is_empty() { ".".to_owned() } else { shown(&place) };
        self.places.insert((PlaceKind::Unreadable, path));
        if name.is_empty() {
            self.note(PlaceKind::Closed, &place);
        }
        if let Some(detailed) = &mut self.detailed {
            detailed.unreadable.insert(place);
        }
    }

    pub(super) fn sort(&mut self) {
        let names = &self.names;
        let path = |e: &PackedFile| &names.as_bytes()[e.start as usize..e.end as usize];
        // After a merge of two sorted walks, this sort takes one pass.
        self.entries.sort_by(|a, b| path(a).cmp(path(b)));
    }

    /// Merges two walks into one sorted walk.
    pub(super) fn merged(mut self, other: Self) -> Self {
        // Each part is freed as soon as it is merged, because two walks of many files take a lot of memory.
        let Self { names, entries, mut places, mut rules, mut folders, mut left_out, .. } = other;
        self.places.append(&mut places);
        self.rules.append(&mut rules);
        self.folders.append(&mut folders);
        self.left_out.append(&mut left_out);
        self.ignored_files.add(other.ignored_files);
        if let Ok(offset) = u32::try_from(self.names.len()) {
            self.names.push_str(&names);
            drop(names);
            let moved =
                |e: PackedFile| PackedFile { start: e.start + offset, end: e.end + offset, ..e };
            self.entries.extend(entries.into_iter().map(moved));
        }
        self.sort();
        if let (Some(mine), Some(detailed)) = (&mut self.detailed, other.detailed) {
            mine.append(*detailed);
        }
        self
    }
}
