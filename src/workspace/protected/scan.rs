//! Lists the entries under protected names, beneath the workspace's handle. It follows no links and never blocks.
//!
//! Contents are read again for each comparison, because times are not enough. On a tmpfs, for example, only the first
//! write to a mapped page changes them.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};

use cap_fs_ext::DirExt;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, Metadata, MetadataExt};

use super::scope::{FolderRole, Scope};
use super::snapshot::{FileRecord, ProtectedEntry, ProtectedKind, WatchedFolder};
use crate::protocol::{Digest, RelPath};
use crate::settings::is_repository;
use crate::workspace::modes::set_mode;
use crate::workspace::names::{escaped_os, shown, split, unescaped};
use crate::workspace::walk::detailed::FileStat;
use crate::workspace::{Workspace, open_regular};

pub(super) const HEAD: &str = "HEAD";

/// Files larger than this are compared by size and times.
const DIGEST_LIMIT: u64 = 4 << 20;
/// The most entries of a watched folder that are scanned.
const ENTRIES: usize = 20_000;
/// The most bytes of one file, and of all files, that are stored to be restored later.
const TEXT_LIMIT: usize = 64 << 10;
const TEXTS: usize = 1 << 20;
/// The longest `HEAD`, in bytes.
const HEAD_LIMIT: u64 = 4 << 10;
/// Folders at a greater depth are not scanned.
const DEPTH: usize = 64;

/// One scan: for a snapshot, or for a comparison with one.
pub(super) struct ProtectedScan<'a> {
    workspace: &'a Workspace,
    /// The folder with which the result is compared. New folders are then listed without their entries.
    known: Option<&'a WatchedFolder>,
    /// How many more bytes of contents may be stored.
    room: usize,
    entries: usize,
    found: WatchedFolder,
}

impl<'a> ProtectedScan<'a> {
    /// A scan for a snapshot of one or more folders.
    pub(super) fn new(workspace: &'a Workspace) -> Self {
        let found = WatchedFolder::default();
        Self { workspace, known: None, room: TEXTS, entries: ENTRIES, found }
    }

    /// Scans a known folder again.
    pub(super) fn again(
        workspace: &'a Workspace,
        known: &'a WatchedFolder,
    ) -> Option<WatchedFolder> {
        let mut scan = ProtectedScan { known: Some(known), room: 0, ..Self::new(workspace) };
        let parent = match &*known.path {
            "" => workspace.parent(),
            path => workspace.parent_of(path),
        };
        if let Ok((parent, name)) = parent {
            reopen(&parent, &name);
        }
        scan.folder(&known.path, known.named.clone(), known.is_bare)
    }

    /// A regular file at an escaped path, without its content. None if there is no regular file.
    pub(super) fn file(workspace: &'a Workspace, path: &str) -> Option<ProtectedEntry> {
        let (dir, name) = workspace.parent_of(path).ok()?;
        let found = dir.symlink_metadata(&name).ok().filter(Metadata::is_file)?;
        let kind = Self { room: 0, ..Self::new(workspace) }.file_kind(&dir, &name, &found);
        Some(ProtectedEntry { inode: Some(found.ino()), kind })
    }

    /// Scans the entries under protected names in a folder. None if the folder does not exist. `named` are names in the
    /// folder that git's settings contain.
    pub(super) fn folder(
        &mut self,
        path: &str,
        named: Vec<String>,
        is_bare: Option<bool>,
    ) -> Option<WatchedFolder> {
        self.entries = ENTRIES;
        let entries = BTreeMap::new();
        self.found = WatchedFolder { path: path.to_owned(), named, entries, is_bare: Some(false) };
        let Ok(folder) = self.workspace.folder_at(path) else {
            // A command can still create a path that git's settings name, along with its folders.
            return Some(std::mem::take(&mut self.found)).filter(|found| !found.named.is_empty());
        };
        let is_bare_now = self.workspace.protects_git && is_bare_repository(&folder);
        let is_bare = is_bare.unwrap_or(is_bare_now);
        self.found.is_bare = Some(is_bare_now);
        for name in names(&folder)? {
            let key = escaped_os(&name);
            let scope = self.scope_of(&key, is_bare).or_else(|| {
                // A new HEAD makes the folder a repository.
                (is_bare_now && key == HEAD).then_some(Scope::All)
            });
            if let Some(scope) = scope {
                self.entry(&folder, &name, key, scope, 0);
            }
        }
        Some(std::mem::take(&mut self.found))
    }

    fn scope_of(&self, key: &str, is_bare: bool) -> Option<Scope> {
        if let Some(protected) = self.workspace.protected.name_of(&shown(key)) {
            return Some(Scope::of_entry(protected));
        }
        if self.found.named.iter().any(|named| named == key) {
            return Some(Scope::All);
        }
        Scope::Repository.below(key, true).filter(|_| is_bare)
    }

    /// Scans an entry and everything below it. Returns false if the limit of entries is reached.
    fn entry(&mut self, dir: &Dir, name: &OsStr, key: String, scope: Scope, depth: usize) -> bool {
        let Ok(found) = dir.symlink_metadata(name) else { return true };
        if self.workspace.is_state(&self.found.path_of(&key), &found) {
            return true;
        }
        let before = self.known.map(|known| known.entries.get(&key));
        // Known entries do not count against the limit, so any number of new entries cannot hide them.
        if !matches!(before, Some(Some(_))) {
            if self.entries == 0 {
                return false;
            }
            self.entries -= 1;
        }
        let kind = if scope == Scope::Head {
            let head = head(dir, name, &found);
            if before.is_none() && head.is_none() {
                return true;
            }
            ProtectedKind::Head(head.map(Box::new))
        } else if found.is_dir() {
            let role = scope.role();
            // A new folder is reported as a single change.
            let is_new =
                before == Some(None) && matches!(role, FolderRole::All | FolderRole::Repository);
            let whole = !is_new
                && depth < DEPTH
                && self.inside(dir, name, &key, scope, depth).unwrap_or(false);
            ProtectedKind::Folder { mode: FileStat::of(&found).mode, whole, role }
        } else {
            self.file_kind(dir, name, &found)
        };
        let inode = (scope != Scope::Head).then(|| found.ino());
        self.found.entries.insert(key, ProtectedEntry { inode, kind });
        true
    }

    /// Scans the entries of a folder. Returns whether all entries were scanned.
    fn inside(
        &mut self,
        dir: &Dir,
        name: &OsStr,
        key: &str,
        scope: Scope,
        depth: usize,
    ) -> Option<bool> {
        let before = self.known.and_then(|known| known.entries.get(key));
        let before =
            before.map(|entry| matches!(entry.kind, ProtectedKind::Folder { whole: true, .. }));
        if before == Some(true) {
            reopen(dir, name);
        }
        let folder = dir.open_dir_nofollow(name).ok()?;
        let scope = scope.settled(|| folder.symlink_metadata(HEAD).is_ok());
        let mut whole = true;
        for name in names(&folder)? {
            let text = escaped_os(&name);
            let is_folder = || folder.symlink_metadata(&name).is_ok_and(|found| found.is_dir());
            let is_folder = scope == Scope::Modules && is_folder();
            let Some(below) = scope.below(&text, is_folder) else { continue };
            let key = format!("{key}/{text}");
            // If the folder was not scanned completely before, new entries cannot be recognised as new.
            let is_unknown = self.known.is_some_and(|known| !known.entries.contains_key(&key));
            if !(is_unknown && before == Some(false)) {
                whole &= self.entry(&folder, &name, key, below, depth + 1);
            }
        }
        Some(whole)
    }

    /// The kind of an entry that is not a folder.
    fn file_kind(&mut self, dir: &Dir, name: &OsStr, found: &Metadata) -> ProtectedKind {
        if found.is_file() {
            let bytes = (found.len() <= DIGEST_LIMIT).then(|| read(dir, name, DIGEST_LIMIT));
            // Git does not run the sample hooks.
            let is_sample = name.to_string_lossy().ends_with(".sample");
            let room = if is_sample { 0 } else { TEXT_LIMIT.min(self.room) };
            let record = FileRecord::of(found, bytes.flatten(), room);
            self.room -= record.text.as_ref().map_or(0, String::len);
            ProtectedKind::File(Box::new(record))
        } else if found.is_symlink() {
            let target = dir.read_link_contents(name).unwrap_or_default();
            ProtectedKind::Link { target: escaped_os(target.as_os_str()) }
        } else {
            ProtectedKind::Other
        }
    }
}

impl FileRecord {
    /// Records a file, and the digest of its content if it was read. Stores a text of at most `room` bytes.
    fn of(found: &Metadata, bytes: Option<Vec<u8>>, room: usize) -> Self {
        let FileStat { mode, changed, .. } = FileStat::of(found);
        let digest = bytes.as_deref().map(Digest::of);
        let text = bytes.filter(|bytes| bytes.len() <= room);
        let text = text.and_then(|bytes| String::from_utf8(bytes).ok());
        Self { size: found.len(), mode, owner: (found.uid(), found.gid()), changed, digest, text }
    }
}

/// A `HEAD` file, if git accepts it. The time is not recorded, so that files with equal content are equal.
fn head(dir: &Dir, name: &OsStr, found: &Metadata) -> Option<ProtectedKind> {
    if found.is_symlink() {
        let target = escaped_os(dir.read_link_contents(name).ok()?.as_os_str());
        return target.starts_with("refs/").then_some(ProtectedKind::Link { target });
    }
    let is_readable = FileStat::of(found).mode & 0o400 != 0;
    let bytes = read(dir, name, HEAD_LIMIT).filter(|bytes| is_readable && is_head(bytes))?;
    let record = FileRecord::of(found, Some(bytes), TEXT_LIMIT);
    Some(ProtectedKind::File(Box::new(FileRecord { changed: 0, ..record })))
}

/// Whether git accepts this text as the content of `HEAD`. Git uses the same test.
fn is_head(text: &[u8]) -> bool {
    if let Some(to) = text.strip_prefix(b"ref:") {
        return to.trim_ascii_start().starts_with(b"refs/");
    }
    text.get(..40).is_some_and(|id| id.iter().all(u8::is_ascii_hexdigit))
}

/// Whether git could treat a folder as a repository.
pub(super) fn is_bare_repository(folder: &Dir) -> bool {
    let found = |name: &str| folder.symlink_metadata(name);
    is_repository(|name| found(name).is_ok_and(|found| name != HEAD || !found.is_dir()))
}

/// The names of a folder's entries.
fn names(folder: &Dir) -> Option<Vec<OsString>> {
    Some(folder.entries().ok()?.filter_map(|entry| Some(entry.ok()?.file_name())).collect())
}

/// The content of a regular file with at most `limit` bytes.
fn read(dir: &Dir, name: &OsStr, limit: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(dir, name).ok()?.take(limit + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= limit).then_some(bytes)
}

impl Workspace {
    /// Whether the entry at an escaped path is one of deaddrop's own, which deaddrop may change at any time.
    pub(in crate::workspace) fn is_state(&self, path: &str, found: &Metadata) -> bool {
        let is_there = |state: &RelPath| {
            path == state.as_str() || path.contains('%') && *unescaped(path) == *state.as_str()
        };
        self.state.iter().any(is_there) || self.state_ids.contains(&(found.dev(), found.ino()))
    }

    /// The parent folder of the root, and the root's name in it.
    fn parent(&self) -> io::Result<(Dir, OsString)> {
        let place = self.path.parent().zip(self.path.file_name());
        let (parent, name) = place.ok_or(io::ErrorKind::NotFound)?;
        Ok((Dir::open_ambient_dir(parent, ambient_authority())?, name.to_owned()))
    }

    /// The parent folder of an escaped path, and the last name. Fails for the root, so the root is never moved.
    pub(in crate::workspace) fn parent_of(&self, path: &str) -> io::Result<(Dir, OsString)> {
        if path.is_empty() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let (folder, name) = split(path);
        Ok((self.folder_at(folder)?, unescaped(name)))
    }
}

/// Makes a folder readable again that was readable before: a command may have closed it to hide new entries.
pub(super) fn reopen(dir: &Dir, name: &OsStr) {
    let is_closed = |found: Metadata| found.is_dir() && FileStat::of(&found).mode & 0o500 != 0o500;
    if dir.symlink_metadata(name).is_ok_and(is_closed) {
        // If this fails, the folder's entries are reported as removed.
        let _ = grant_owner(dir, name);
    }
}

/// Gives the owner of a folder all permissions.
pub(super) fn grant_owner(dir: &Dir, name: &OsStr) -> io::Result<()> {
    set_mode(dir, name, FileStat::of(&dir.symlink_metadata(name)?).mode | 0o700)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_names_a_ref_or_a_commit() {
        let id = "0123456789abcdef0123456789ABCDEF01234567";
        for head in ["ref: refs/heads/main\n", "ref:refs/x", "ref:\t refs/heads/.invalid\n", id] {
            assert!(is_head(head.as_bytes()), "{head}");
        }
        for none in ["", "ref: heads/main\n", "refs/heads/main\n", &id[1..], "ref: /etc\n"] {
            assert!(!is_head(none.as_bytes()), "{none}");
        }
    }
}
