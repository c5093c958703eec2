//! Looks at what stands under protected names, beneath the workspace's handle, following no link
//! and waiting for nothing.

use std::ffi::OsStr;
use std::io::{self, Read};

use cap_fs_ext::{DirExt, FollowSymlinks, MetadataExt, OpenOptionsFollowExt};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, Metadata, OpenOptions};

use super::layout::is_bare;
use super::scope::{Role, Scope};
use super::snapshot::{Content, Item, Root, What};
use crate::protocol::{Digest, RelPath};
use crate::workspace::folder_cache::FolderCache;
use crate::workspace::modes::set_mode;
use crate::workspace::names::{escaped_os, shown, split, unescaped};
use crate::workspace::{Workspace, without_blocking};

/// Of a larger file size and times are compared.
const DIGEST_LIMIT: u64 = 4 << 20;
/// Of so many files of a root the content is compared, of more size and times.
const DIGESTS: usize = 5_000;
/// So many entries of a root are looked at.
const ITEMS: usize = 20_000;
/// Contents of this size, and so many bytes of them in all, are kept to be put back.
const TEXT_LIMIT: usize = 64 << 10;
const TEXTS: usize = 1 << 20;
/// Deeper folders are not looked at.
const DEPTH: usize = 64;

/// How many bytes of contents may still be kept.
pub(super) struct Room(usize);

impl Room {
    pub(super) fn new() -> Self {
        Self(TEXTS)
    }
}

/// What stands under protected names in a root; None where there is no such folder.
/// `named` are names there that git's settings lead to.
pub(super) fn all(
    workspace: &Workspace,
    path: &str,
    named: Vec<String>,
    room: &mut Room,
) -> Option<Root> {
    look(workspace, Root { path: path.to_owned(), named, ..Root::default() }, None, Some(room))
}

/// The same for a comparison: of what is not known no more than that it is there.
pub(super) fn again(workspace: &Workspace, path: &str, known: &Root) -> Option<Root> {
    let found = Root { path: path.to_owned(), named: known.named.clone(), ..Root::default() };
    look(workspace, found, Some(known), None)
}

fn look(
    workspace: &Workspace,
    found: Root,
    known: Option<&Root>,
    room: Option<&mut Room>,
) -> Option<Root> {
    if known.is_some()
        && let Ok((holder, name)) = holder(workspace, &found.path)
    {
        let_in(&holder, &name);
    }
    let Ok(folder) = workspace.folder_at(&found.path) else {
        // What git's settings lead to can be made yet, with folders on the way.
        return Some(found).filter(|found| !found.named.is_empty());
    };
    let is_bare = match known.and_then(|known| known.layout.as_ref()) {
        Some(layout) => layout.bare,
        None => is_bare(&folder),
    };
    let mut look = Look { workspace, known, room, found, digests: DIGESTS, items: ITEMS };
    for name in names(&folder)? {
        let key = escaped_os(&name);
        if let Some(scope) = scope_of(workspace, &look.found.named, is_bare, &key) {
            look.entry(&folder, &name, key, scope, 0);
        }
    }
    Some(look.found)
}

/// How an entry of a root is looked at; None where it is not.
pub(super) fn scope_of(
    workspace: &Workspace,
    named: &[String],
    is_bare: bool,
    key: &str,
) -> Option<Scope> {
    if let Some(protected) = workspace.protected.name_of(&shown(key)) {
        return Some(Scope::of_entry(&protected.to_lowercase()));
    }
    if named.iter().any(|named| named == key) {
        return Some(Scope::All);
    }
    Scope::Repository.below(key, true).filter(|_| is_bare && workspace.git_obeys)
}

/// Takes into a root what stands at the end of these names, the first of which is looked at, if `itself`;
/// and folders on the way to it that are not known.
pub(super) fn one(
    workspace: &Workspace,
    root: &mut Root,
    names: &[String],
    itself: bool,
) -> Option<()> {
    let mut dir = workspace.folder_at(&root.path).ok()?;
    let is_bare = root.layout.as_ref().is_some_and(|layout| layout.bare);
    let mut scope = scope_of(workspace, &root.named, is_bare, names.first()?)?;
    let mut key = String::new();
    for (n, text) in names.iter().enumerate() {
        let name = unescaped(text);
        let found = dir.symlink_metadata(&name).ok();
        if n > 0 {
            scope = scope.below(text, found.as_ref().is_some_and(Metadata::is_dir))?;
            key.push('/');
        }
        key.push_str(text);
        let is_last = n + 1 == names.len();
        let Some(found) = found else {
            if is_last && itself {
                root.take(&key);
            }
            return None;
        };
        let inode = Some(found.ino());
        if !is_last {
            let (mode, role) = (of_unix(&found).mode, scope.role());
            let what = What::Folder { mode, whole: true, role };
            dir = dir.open_dir_nofollow(&name).ok()?;
            root.items.entry(key.clone()).or_insert(Item { inode, what });
            scope = scope.settled(|| dir.symlink_metadata("HEAD").is_ok());
        } else if itself && !found.is_dir() {
            let what = alone(workspace, &dir, &name, &found, Some(&mut Room::new()));
            root.items.insert(key.clone(), Item { inode, what });
        }
    }
    Some(())
}

/// A regular file at an escaped path; None where no such stands there.
pub(super) fn file(workspace: &Workspace, folders: &mut FolderCache, path: &str) -> Option<Item> {
    let (folder, name) = split(path);
    let (dir, name) = (folders.folder(folder).ok()?, unescaped(name));
    let found = dir.symlink_metadata(&name).ok().filter(Metadata::is_file)?;
    let what = alone(workspace, dir, &name, &found, None);
    Some(Item { inode: Some(found.ino()), what })
}

/// One thing that is no folder.
fn alone(
    workspace: &Workspace,
    dir: &Dir,
    name: &OsStr,
    found: &Metadata,
    room: Option<&mut Room>,
) -> What {
    let of = Root::default();
    let mut look = Look { workspace, known: None, room, found: of, digests: 1, items: 1 };
    look.no_folder(dir, name, found, Before::Unasked)
}

/// The folder that holds a root, and its name there.
fn holder(workspace: &Workspace, path: &str) -> io::Result<(Dir, std::ffi::OsString)> {
    let (Some(parent), Some(name)) = (workspace.path.parent(), workspace.path.file_name()) else {
        return Err(io::ErrorKind::NotFound.into());
    };
    if path.is_empty() {
        return Ok((Dir::open_ambient_dir(parent, ambient_authority())?, name.to_owned()));
    }
    workspace.holder(path)
}

struct Look<'a> {
    workspace: &'a Workspace,
    known: Option<&'a Root>,
    room: Option<&'a mut Room>,
    found: Root,
    digests: usize,
    items: usize,
}

/// What is known of an entry from before.
#[derive(Clone, Copy)]
enum Before<'a> {
    /// It is looked at for the first time.
    Unasked,
    /// It was not there.
    Nothing,
    Known(&'a Item),
}

impl<'a> Look<'a> {
    fn before(&self, key: &str) -> Before<'a> {
        match self.known.map(|known| known.items.get(key)) {
            None => Before::Unasked,
            Some(None) => Before::Nothing,
            Some(Some(item)) => Before::Known(item),
        }
    }

    /// Looks at one entry and what is below it. Returns whether there was room for it.
    fn entry(&mut self, dir: &Dir, name: &OsStr, key: String, scope: Scope, depth: usize) -> bool {
        let Ok(found) = dir.symlink_metadata(name) else { return true };
        if self.workspace.is_state(&self.found.path_of(&key), &found) {
            return true;
        }
        let before = self.before(&key);
        // What a command made is told from what it left alone, however much it made.
        if !matches!(before, Before::Known(_)) {
            if self.items == 0 {
                return false;
            }
            self.items -= 1;
        }
        let what = if found.is_dir() {
            let role = scope.role();
            let is_new = matches!(before, Before::Nothing) && role != Role::Way;
            let whole = if is_new || depth >= DEPTH {
                // It is new as a whole.
                false
            } else {
                self.folder(dir, name, &key, scope, depth).unwrap_or(false)
            };
            What::Folder { mode: of_unix(&found).mode, whole, role }
        } else {
            self.no_folder(dir, name, &found, before)
        };
        let item = Item { inode: Some(found.ino()), what };
        self.found.items.insert(key, item);
        true
    }

    fn no_folder(&mut self, dir: &Dir, name: &OsStr, found: &Metadata, before: Before<'_>) -> What {
        if found.is_file() {
            What::File(Box::new(self.content(dir, name, found, before)))
        } else if found.is_symlink() {
            let target = dir.read_link_contents(name).unwrap_or_default();
            What::Link { target: escaped_os(target.as_os_str()) }
        } else {
            What::Other
        }
    }

    /// Looks at what is in a folder. Returns whether that was all.
    fn folder(
        &mut self,
        dir: &Dir,
        name: &OsStr,
        key: &str,
        scope: Scope,
        depth: usize,
    ) -> Option<bool> {
        let before = self.known.and_then(|known| known.items.get(key));
        let before = before.map(|item| matches!(item.what, What::Folder { whole: true, .. }));
        if before == Some(true) {
            let_in(dir, name);
        }
        let folder = dir.open_dir_nofollow(name).ok()?;
        let scope = scope.settled(|| folder.symlink_metadata("HEAD").is_ok());
        let mut whole = true;
        for name in names(&folder)? {
            let text = escaped_os(&name);
            let is_folder = || folder.symlink_metadata(&name).is_ok_and(|found| found.is_dir());
            let is_folder = scope == Scope::Modules && is_folder();
            let Some(below) = scope.below(&text, is_folder) else { continue };
            let key = format!("{key}/{text}");
            // Of a folder that was not looked at as a whole nobody knows what is new.
            let strange = self.known.is_some_and(|known| !known.items.contains_key(&key));
            if !(strange && before == Some(false)) {
                whole &= self.entry(&folder, &name, key, below, depth + 1);
            }
        }
        Some(whole)
    }

    fn content(
        &mut self,
        dir: &Dir,
        name: &OsStr,
        found: &Metadata,
        before: Before<'_>,
    ) -> Content {
        let Unix { mode, owner, changed } = of_unix(found);
        let size = found.len();
        let wanted = match before {
            Before::Unasked => size <= DIGEST_LIMIT && self.digests > 0,
            Before::Known(Item { what: What::File(before), .. }) => {
                before.digest.is_some() && before.size == size
            }
            Before::Known(_) | Before::Nothing => false,
        };
        let bytes = if wanted { read(dir, name).ok() } else { None };
        if matches!(before, Before::Unasked) && wanted {
            self.digests -= 1;
        }
        let digest = bytes.as_deref().map(Digest::of);
        // Nobody runs the samples that git puts beside its hooks.
        let kept = self.room.as_mut().filter(|_| !name.to_string_lossy().ends_with(".sample"));
        let text = match (kept, bytes) {
            (Some(room), Some(bytes)) if bytes.len() <= TEXT_LIMIT.min(room.0) => {
                let text = String::from_utf8(bytes).ok();
                room.0 -= text.as_ref().map_or(0, String::len);
                text
            }
            _ => None,
        };
        Content { size, mode, owner, changed, digest, text }
    }
}

impl Content {
    /// Of a short text, for its being put back.
    pub(super) fn of_text(found: &Metadata, bytes: Vec<u8>) -> Self {
        let Unix { mode, owner, .. } = of_unix(found);
        let size = found.len();
        let digest = Some(Digest::of(&bytes));
        Self { size, mode, owner, changed: 0, digest, text: String::from_utf8(bytes).ok() }
    }
}

/// The names in a folder.
fn names(folder: &Dir) -> Option<Vec<std::ffi::OsString>> {
    Some(folder.entries().ok()?.filter_map(|entry| Some(entry.ok()?.file_name())).collect())
}

pub(super) fn read(dir: &Dir, name: &OsStr) -> io::Result<Vec<u8>> {
    let mut options = OpenOptions::new();
    options.read(true).follow(FollowSymlinks::No);
    without_blocking(&mut options);
    let file = dir.open_with(name, &options)?;
    // What stands there now need not be what was looked at before.
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut bytes = Vec::new();
    file.take(DIGEST_LIMIT + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > DIGEST_LIMIT {
        Err(io::ErrorKind::FileTooLarge.into())
    } else {
        Ok(bytes)
    }
}

impl Workspace {
    /// Whether something at an escaped path is deaddrop's own, which changes as it pleases.
    pub(in crate::workspace) fn is_state(&self, path: &str, found: &Metadata) -> bool {
        let is_there = |state: &RelPath| {
            path == state.as_str() || path.contains('%') && *unescaped(path) == *state.as_str()
        };
        self.state.iter().any(is_there) || self.state_ids.contains(&(found.dev(), found.ino()))
    }
}

/// What only some systems have.
pub(super) struct Unix {
    pub(super) mode: u32,
    owner: (u32, u32),
    changed: i128,
}

#[cfg(unix)]
pub(super) fn of_unix(found: &Metadata) -> Unix {
    use cap_std::fs::MetadataExt;
    let changed = crate::clock::nanos(found.ctime(), found.ctime_nsec());
    Unix { mode: found.mode() & 0o7777, owner: (found.uid(), found.gid()), changed }
}

#[cfg(not(unix))]
pub(super) fn of_unix(found: &Metadata) -> Unix {
    let written = found.modified().map(cap_std::time::SystemTime::into_std);
    let since = written.ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    let changed = since.map_or(0, |since| i128::try_from(since.as_nanos()).unwrap_or(0));
    Unix { mode: 0, owner: (0, 0), changed }
}

/// Opens a folder that could be looked into before: a command may have closed it, to hide what it
/// made there.
pub(super) fn let_in(dir: &Dir, name: &OsStr) {
    let closed = |found: Metadata| found.is_dir() && of_unix(&found).mode & 0o500 != 0o500;
    if cfg!(unix) && dir.symlink_metadata(name).is_ok_and(closed) {
        // Where that fails, what is in it is told to be gone.
        let _ = open_up(dir, name);
    }
}

/// Gives a folder's owner all rights to it.
pub(super) fn open_up(dir: &Dir, name: &OsStr) -> io::Result<()> {
    set_mode(dir, name, of_unix(&dir.symlink_metadata(name)?).mode | 0o700)
}
