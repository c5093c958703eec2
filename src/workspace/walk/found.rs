//! What a walk found, as compact as there are many files of it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;

use super::Handle;
use super::detailed::{DetailedWalk, FileStat};
pub use crate::protocol::{Count, EntryKind, LeftOut};
use crate::workspace::Workspace;
use crate::workspace::names::{escaped, shown, unescaped};

/// The clock of a file system goes on in steps, of 10 ms at most: of what changed so shortly before, in nanoseconds, a
/// second change may not show.
const TICK: i64 = 20_000_000;

/// What stands in the workspace.
#[derive(Debug, Default)]
pub struct Walk {
    /// All paths, one after another.
    pub(super) names: String,
    pub(super) entries: Vec<Entry>,
    /// What was noted of other places.
    pub(super) places: BTreeSet<(PlaceKind, String)>,
    /// The rules that leave something out: by the escaped path of the folder that they stand in, with a `/` at the
    /// end, a digest.
    pub(super) rules: BTreeMap<String, u64>,
    /// What is in folders that were left out, as far as somebody has counted.
    pub(super) left_out: Vec<LeftOut>,
    /// Single files that were left out.
    pub(super) ignored_files: Count,
    /// What was met, where it was looked at closely.
    pub(super) detailed: Option<Box<DetailedWalk>>,
    /// The folders that were listed, by escaped path, and what they were just before.
    pub(super) folders: Vec<(String, FileStat)>,
    /// When the walk began.
    pub(super) begun: i64,
}

/// What a walk notes of a place beside its files. Paths are escaped where they must be found again, whatever their
/// bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::workspace) enum PlaceKind {
    /// A folder that could not be read, or an entry that could not be looked at, as text.
    Unreadable,
    /// A folder that could not be read, or of which nothing could be looked at, escaped.
    Closed,
    /// A folder that holds a `.git` of whatever sort, outside of ignored folders, escaped.
    Repository,
    /// A folder that git could take for a repository itself, escaped.
    Bare,
    /// A regular file with a set-user-ID or set-group-ID bit, outside of ignored folders, escaped.
    SetId,
    /// A folder that was left out because rules say so, escaped.
    Ignored,
    /// A single file that was left out and holds secrets by its nature, as text.
    IgnoredSecret,
}

impl Count {
    /// Nothing, and that is all.
    pub const NONE: Self = Self { files: 0, bytes: 0, is_whole: true };
    /// Nobody has counted.
    pub const UNKNOWN: Self = Self { files: 0, bytes: 0, is_whole: false };

    /// One more file.
    pub fn file(&mut self, bytes: u64) {
        self.files += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Both together.
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

#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    start: u32,
    end: u32,
    size: u64,
    kind: EntryKind,
}

/// One file of a [`Walk`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed<'a> {
    /// Its path from the root, `/` between components.
    pub path: &'a str,
    /// Its size in bytes.
    pub size: u64,
    /// What it is.
    pub kind: EntryKind,
}

impl Walk {
    /// The files, sorted by path (byte order).
    pub fn files(&self) -> impl ExactSizeIterator<Item = Listed<'_>> {
        self.entries.iter().map(|e| Listed { path: self.path(e), size: e.size, kind: e.kind })
    }

    /// The file of that number, in the order of [`Walk::files`].
    pub(in super::super) fn file(&self, n: usize) -> Listed<'_> {
        let entry = &self.entries[n];
        Listed { path: self.path(entry), size: entry.size, kind: entry.kind }
    }

    /// The number of the file of that path among these.
    pub(in super::super) fn find(&self, path: &str, files: Range<usize>) -> Option<usize> {
        let end = files.end;
        let at = self.first(files, |one| one < path);
        (at < end && self.file(at).path == path).then_some(at)
    }

    /// The number of the first file of `range` whose path is not `before` what is looked for, or the
    /// end of the range.
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

    /// The files that were left out singly and hold secrets by their nature, by path, sorted: ignored is what holds
    /// them most often.
    pub fn ignored_secrets(&self) -> impl Iterator<Item = &str> {
        self.places(PlaceKind::IgnoredSecret)
    }

    /// What was noted of other places, sorted.
    pub(in super::super) fn places(&self, kind: PlaceKind) -> impl Iterator<Item = &str> {
        let places = self.places.range((kind, String::new())..);
        places.take_while(move |(other, _)| *other == kind).map(|(_, path)| path.as_str())
    }

    /// The folders whose settings git obeys: those with a `.git`, and those that it could take for repositories.
    pub(in super::super) fn obeyed(&self) -> impl Iterator<Item = &str> {
        self.places(PlaceKind::Repository).chain(self.places(PlaceKind::Bare))
    }

    pub(super) fn note(&mut self, kind: PlaceKind, path: &str) {
        self.places.insert((kind, path.trim_end_matches('/').to_owned()));
    }

    /// Whether another walk would meet the same names: no folder has changed since, and none can have changed
    /// unseen while it was listed.
    pub(in super::super) fn is_current(&self, workspace: &Workspace) -> bool {
        let Ok(root) = Handle::root(&workspace.root) else { return false };
        let is_as_it_was = |(path, then): &(String, FileStat)| {
            let place = if path.is_empty() { ".".into() } else { unescaped(path) };
            then.changed + TICK < self.begun
                && root.stat(place.as_bytes(), true).is_ok_and(|(_, _, now)| now == *then)
        };
        self.places(PlaceKind::Closed).next().is_none() && self.folders.iter().all(is_as_it_was)
    }

    /// The rules that leave something out, by folder.
    pub(in super::super) fn rules(&self) -> &BTreeMap<String, u64> {
        &self.rules
    }

    /// A walk of files that are given, for previews and tests.
    pub fn of<'a>(files: impl IntoIterator<Item = (&'a str, u64)>) -> Self {
        let file = |(path, size): (&str, u64)| (path.to_owned(), size, EntryKind::File);
        Self::told(files.into_iter().map(file), Vec::new())
    }

    /// What another machine tells of its files, and of folders that cannot be read.
    pub fn told(
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

    /// The same, where this is known of what was left out; `files` are those beside `folders`.
    #[must_use]
    pub fn leaving_out(mut self, files: Count, mut folders: Vec<LeftOut>) -> Self {
        folders.sort_unstable_by(|a, b| a.folder.cmp(&b.folder));
        (self.ignored_files, self.left_out) = (files, folders);
        self
    }

    /// What was looked at closely, if that was asked for.
    pub(in super::super) fn take_detailed(&mut self) -> Option<Box<DetailedWalk>> {
        self.detailed.take()
    }

    /// The files that were left out singly, not with a folder.
    pub fn ignored_files(&self) -> Count {
        self.ignored_files
    }

    /// The folders that were left out and looked into (see [`Workspace::count_ignored`]), sorted.
    ///
    /// [`Workspace::count_ignored`]: super::super::Workspace::count_ignored
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// Lists a file too that was left out with its folder. One that is listed stays as it is.
    pub fn list_too(&mut self, path: &str, size: u64) {
        let Err(at) = self.entries.binary_search_by(|e| self.path(e).cmp(path)) else { return };
        let before = self.entries.len();
        self.push("", path, size, EntryKind::File);
        if self.entries.len() > before {
            self.entries[at..].rotate_right(1);
        }
    }

    fn path(&self, entry: &Entry) -> &str {
        &self.names[entry.start as usize..entry.end as usize]
    }

    pub(super) fn push(&mut self, prefix: &str, name: &str, size: u64, kind: EntryKind) {
        let start = self.names.len();
        self.names.push_str(prefix);
        self.names.push_str(name);
        // 4 GiB of names is more than any listing could use.
        if let (Ok(start), Ok(end)) = (u32::try_from(start), u32::try_from(self.names.len())) {
            self.entries.push(Entry { start, end, size, kind });
        } else {
            self.names.truncate(start);
        }
    }

    /// Notes that an entry of a folder cannot be looked at; without a name, that none of them can.
    pub(super) fn cannot_look(&mut self, folder: &str, name: &[u8]) {
        let place = format!("{folder}{}", escaped(name));
        let told = if place.is_empty() { ".".to_owned() } else { shown(&place) };
        self.places.insert((PlaceKind::Unreadable, told));
        if name.is_empty() {
            self.note(PlaceKind::Closed, &place);
        }
        if let Some(close) = &mut self.detailed {
            close.unreadable.insert(place);
        }
    }

    pub(super) fn sort(&mut self) {
        let names = &self.names;
        let path = |e: &Entry| &names.as_bytes()[e.start as usize..e.end as usize];
        // Of two walks that are sorted each, this takes one pass.
        self.entries.sort_by(|a, b| path(a).cmp(path(b)));
    }

    /// Both walks as one, sorted.
    pub(super) fn merged(mut self, mut other: Self) -> Self {
        self.places.append(&mut other.places);
        self.rules.append(&mut other.rules);
        self.folders.append(&mut other.folders);
        self.left_out.append(&mut other.left_out);
        self.ignored_files.add(other.ignored_files);
        let close = other.detailed.take();
        if let Ok(offset) = u32::try_from(self.names.len()) {
            self.names.push_str(&other.names);
            let moved = |e: Entry| Entry { start: e.start + offset, end: e.end + offset, ..e };
            self.entries.extend(other.entries.into_iter().map(moved));
        }
        if let (Some(mine), Some(close)) = (&mut self.detailed, close) {
            mine.append(*close);
        }
        self.sort();
        self
    }
}
