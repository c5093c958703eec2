//! What is in a folder, and below it, in a fixed order: links are what they are, and of deaddrop's own files none is
//! named. Folders are opened relative to their parent's handle and never through a link.

use std::ffi::{OsStr, OsString};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use cap_std::fs::Dir;

use super::locate::{DiskLocation, FinalLink, failed};
use super::walk::ignoring::{self, Budget, Rules};
use super::walk::{EntryKind, FileType, Handle, may_be_folder};
use super::{Workspace, process};
use crate::protocol::{Failure, RelPath};

/// Deeper folders are not looked at: each one on the way is held open.
const DEPTH: usize = 200;

/// One entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name, whatever its bytes.
    pub name: OsString,
    /// Whether it is a folder itself, and no link to one.
    pub is_dir: bool,
    /// Its size in bytes, of a link its own; 0 for folders.
    pub size: u64,
    /// When it was last written, in nanoseconds since 1970, if that can be told.
    pub written: Option<i64>,
}

/// What somebody named who wants to look below it, or at it.
pub(super) enum ListRoot {
    /// A folder, open, and its path from the root, free of links, with a `/` at the end; the root's is empty.
    Folder(Dir, String),
    /// Something else that stands there.
    File(Box<DiskLocation>),
}

/// Which of the entries are visited.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryFilter {
    /// All.
    All,
    /// All but git's own.
    WithoutGit,
    /// Those that no ignore rules leave out, and nothing of git's own.
    NotIgnored,
}

/// What is visited.
pub(super) enum Visited<'a> {
    /// A folder, before what is in it.
    Folder(&'a str),
    /// Something that is no folder.
    File(FileEntry<'a>),
    /// A folder, or something else, that cannot be looked at.
    Unreadable(&'a str),
    /// Something of deaddrop's own, which is not told what it is.
    OwnState,
}

/// Something that is no folder.
pub(super) struct FileEntry<'a> {
    /// Its path from the root, as text.
    pub(super) path: &'a str,
    /// The folder that holds it.
    pub(super) folder: &'a Handle,
    /// Its name there.
    pub(super) name: &'a [u8],
    /// What it is.
    pub(super) kind: EntryKind,
    /// Its size; of a link its own.
    pub(super) size: u64,
}

/// Is given all that is visited, and may end it.
pub(super) type Visit<'a> = &'a mut dyn FnMut(Visited<'_>) -> ControlFlow<()>;

/// What stands in a folder under a name.
enum ChildEntry {
    Folder,
    File(EntryKind, u64),
    /// It cannot be looked at, but for whether it is a folder.
    Unreadable(bool),
    OwnState,
}

impl Workspace {
    /// The entries of the folder that `path` names, or of the root, sorted by the bytes of their
    /// names. Links on the way are followed within the workspace.
    pub fn list(&self, path: Option<&RelPath>) -> Result<Vec<Entry>, Failure> {
        self.list_up_to(path, usize::MAX)
    }

    /// The same of `limit` entries at most, whichever the disk gives first.
    pub(super) fn list_up_to(
        &self,
        path: Option<&RelPath>,
        limit: usize,
    ) -> Result<Vec<Entry>, Failure> {
        let fail = |e: io::Error| match path {
            Some(path) => failed("list", path, &e),
            None => Failure::execution(format!("Cannot list the root: {e}")),
        };
        let (folder, prefix) = self.open_folder(path)?;
        let folder = Handle::root(&folder).map_err(fail)?;
        let mut entries = Vec::new();
        for (name, kind) in folder.entries(&mut buffer(), limit).map_err(fail)? {
            let (is_dir, size) = match self.child(&folder, &prefix, &name, kind) {
                None | Some(ChildEntry::OwnState) => continue,
                Some(ChildEntry::Folder) => (true, 0),
                Some(ChildEntry::File(_, size)) => (false, size),
                // What is mounted there may not answer, and has its name all the same.
                Some(ChildEntry::Unreadable(is_dir)) => (is_dir, 0),
            };
            let written = folder.stat(&name, true).ok().map(|(_, _, facts)| facts.written);
            entries.push(Entry {
                name: OsStr::from_bytes(&name).to_owned(),
                is_dir,
                size,
                written,
            });
        }
        entries.sort_unstable_by(|a, b| a.name.as_encoded_bytes().cmp(b.name.as_encoded_bytes()));
        Ok(entries)
    }

    /// What stands where a path leads, links resolved; None is the root.
    pub(super) fn start(&self, path: Option<&RelPath>) -> Result<ListRoot, Failure> {
        let folder = || self.open_folder(path).map(|(dir, prefix)| ListRoot::Folder(dir, prefix));
        let Some(path) = path else { return folder() };
        match self.locate(path, FinalLink::Follow) {
            Ok(DiskLocation { found: None, .. }) => Err(self.as_is().nothing_at(path)),
            Ok(DiskLocation { found: Some(found), .. }) if found.is_dir() => folder(),
            Ok(spot) => Ok(ListRoot::File(Box::new(spot))),
            // A link may lead to a folder that has no name of its own, such as the root.
            Err(failure) => folder().map_err(|_| failure),
        }
    }

    /// Visits what lies below a folder, in the order of paths; `prefix` is its path with a `/` at the end.
    pub(super) fn each_below(&self, folder: &Dir, prefix: &str, which: EntryFilter, visit: Visit) {
        let mut lister = Lister { workspace: self, which, budget: Budget::new(), buffer: buffer() };
        let rules = match which {
            EntryFilter::All | EntryFilter::WithoutGit => None,
            EntryFilter::NotIgnored => lister.rules_above(prefix),
        };
        let _ = match Handle::root(folder) {
            Ok(folder) => lister.folder(&folder, prefix, rules.as_ref(), 0, visit),
            Err(_) => visit(Visited::Unreadable(named(prefix))),
        };
    }

    /// What stands in a folder under a name; None where it is gone meanwhile.
    fn child(
        &self,
        folder: &Handle,
        prefix: &str,
        name: &[u8],
        kind: FileType,
    ) -> Option<ChildEntry> {
        match folder.stat(name, true) {
            Ok((_, _, facts)) if self.is_own(prefix, name, (facts.device, facts.inode)) => {
                Some(ChildEntry::OwnState)
            }
            Ok((None, ..)) => Some(ChildEntry::Folder),
            Ok((Some(EntryKind::Other), ..)) => Some(ChildEntry::File(EntryKind::Other, 0)),
            Ok((Some(kind), size, _)) => Some(ChildEntry::File(kind, size)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(_) => Some(ChildEntry::Unreadable(may_be_folder(kind))),
        }
    }

    /// Whether an entry of the folder `prefix` is deaddrop's own, by its path or by its device and inode.
    fn is_own(&self, prefix: &str, name: &[u8], id: (u64, u64)) -> bool {
        let is_there = |own: &RelPath| {
            own.as_str().as_bytes().strip_prefix(prefix.as_bytes()).is_some_and(|own| own == name)
        };
        self.state.iter().any(is_there) || self.state_ids.contains(&id)
    }
}

struct Lister<'a> {
    workspace: &'a Workspace,
    which: EntryFilter,
    budget: Budget,
    buffer: Vec<u8>,
}

impl Lister<'_> {
    /// The rules of the folders above one. Who names a folder that they leave out means it.
    fn rules_above(&mut self, prefix: &str) -> Option<Arc<Rules>> {
        let mut folder = Handle::root(&self.workspace.root).ok()?;
        let (mut at, mut rules) = (0, None);
        for name in prefix.split_terminator('/') {
            let above = &prefix[..at];
            let entries = folder.entries(&mut self.buffer, usize::MAX).unwrap_or_default();
            rules = self.rules_in(&folder, above, rules.as_ref(), &entries).or(rules);
            if rules.as_ref().is_some_and(|rules: &Arc<Rules>| rules.ignores(above, name, true)) {
                return None;
            }
            folder = folder.child(name.as_bytes()).ok()?;
            at += name.len() + 1;
        }
        rules
    }

    fn rules_in(
        &self,
        folder: &Handle,
        prefix: &str,
        above: Option<&Arc<Rules>>,
        entries: &[(Vec<u8>, FileType)],
    ) -> Option<Arc<Rules>> {
        let names = entries.iter().map(|(name, _)| name.as_slice());
        ignoring::here(prefix, above, names, &self.budget, |name| folder.read_small(name))
    }

    fn folder(
        &mut self,
        folder: &Handle,
        prefix: &str,
        above: Option<&Arc<Rules>>,
        depth: usize,
        visit: Visit,
    ) -> ControlFlow<()> {
        let entries =
            if depth > DEPTH { None } else { folder.entries(&mut self.buffer, usize::MAX).ok() };
        let Some(mut entries) = entries else {
            return visit(Visited::Unreadable(named(prefix)));
        };
        let own = match self.which {
            EntryFilter::All | EntryFilter::WithoutGit => None,
            EntryFilter::NotIgnored => self.rules_in(folder, prefix, above, &entries),
        };
        let rules = own.as_ref().or(above);
        entries.sort_by_cached_key(|(name, kind)| {
            let is_folder = *kind == FileType::Directory
                || may_be_folder(*kind)
                    && folder.stat(name, false).is_ok_and(|(kind, ..)| kind.is_none());
            [name.as_slice(), if is_folder { b"/" } else { b"" }].concat()
        });
        for (name, kind) in &entries {
            let is_gits = self.which != EntryFilter::All && name.eq_ignore_ascii_case(b".git");
            let child =
                if is_gits { None } else { self.workspace.child(folder, prefix, name, *kind) };
            let Some(child) = child else { continue };
            let is_folder = matches!(child, ChildEntry::Folder | ChildEntry::Unreadable(true));
            let text = String::from_utf8_lossy(name);
            if rules.is_some_and(|rules| rules.ignores(prefix, &text, is_folder)) {
                continue;
            }
            let path = format!("{prefix}{text}");
            match child {
                ChildEntry::OwnState => visit(Visited::OwnState)?,
                ChildEntry::File(kind, size) => {
                    visit(Visited::File(FileEntry { path: &path, folder, name, kind, size }))?;
                }
                ChildEntry::Unreadable(false) => visit(Visited::Unreadable(&path))?,
                ChildEntry::Folder | ChildEntry::Unreadable(true) => {
                    let opened = folder.child(name);
                    if opened.as_ref().is_ok_and(|opened| process::is_own(opened, &text)) {
                        visit(Visited::OwnState)?;
                        continue;
                    }
                    visit(Visited::Folder(&path))?;
                    let below = path + "/";
                    match opened {
                        Ok(opened) => self.folder(&opened, &below, rules, depth + 1, visit)?,
                        Err(_) => visit(Visited::Unreadable(&below))?,
                    }
                }
            }
        }
        ControlFlow::Continue(())
    }
}

/// A folder for a reader.
fn named(prefix: &str) -> &str {
    if prefix.is_empty() { "." } else { prefix }
}

fn buffer() -> Vec<u8> {
    Vec::with_capacity(32 << 10)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::ffi::OsStringExt;
    use std::os::unix::fs::symlink;

    use super::*;

    fn workspace() -> (tempfile::TempDir, Workspace) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir_all(root.join("sub/deep")).unwrap();
        fs::create_dir_all(root.join("sub/state")).unwrap();
        fs::create_dir_all(root.join("state")).unwrap();
        fs::write(root.join("state/secret"), "x").unwrap();
        fs::write(root.join("sub/file"), "text\n").unwrap();
        symlink("deep", root.join("sub/link")).unwrap();
        symlink("nowhere at all", root.join("sub/broken")).unwrap();
        symlink("..", root.join("sub/up")).unwrap();
        symlink("state", root.join("own")).unwrap();
        symlink("../outside", root.join("out")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, root.join("sub/fifo"), 0o600.into()).unwrap();
        let state = [root.join("state"), root.join("later"), root.join("sub/journal")];
        let workspace = Workspace::open(&root, &state, &[]).unwrap();
        fs::write(root.join("later"), "made after it was opened").unwrap();
        fs::write(root.join("sub/journal"), "so was this").unwrap();
        (folder, workspace)
    }

    fn names(listed: &[Entry]) -> Vec<&str> {
        listed.iter().map(|entry| entry.name.to_str().unwrap()).collect()
    }

    fn path(text: &str) -> RelPath {
        RelPath::parse(text).unwrap()
    }

    #[test]
    fn entries_are_sorted_and_links_are_not_followed() {
        let (_folder, workspace) = workspace();
        let listed = workspace.list(Some(&path("sub"))).unwrap();
        let entry = |name: &str, is_dir, size| (name.to_owned(), is_dir, size);
        let found =
            listed.iter().map(|it| (it.name.to_str().unwrap().to_owned(), it.is_dir, it.size));
        assert!(listed.iter().all(|entry| entry.written.is_some()));
        assert_eq!(
            found.collect::<Vec<_>>(),
            [
                entry("broken", false, "nowhere at all".len() as u64),
                entry("deep", true, 0),
                entry("fifo", false, 0),
                entry("file", false, 5),
                entry("link", false, "deep".len() as u64),
                entry("state", true, 0),
                entry("up", false, 2),
            ]
        );
        assert_eq!(workspace.list(Some(&path("sub/link"))).unwrap(), []);
    }

    #[test]
    fn deaddrops_own_state_is_never_listed() {
        let (_folder, workspace) = workspace();
        assert_eq!(names(&workspace.list(None).unwrap()), ["out", "own", "sub"]);
        assert_eq!(names(&workspace.list(Some(&path("sub/up"))).unwrap()), ["out", "own", "sub"]);
        for own in ["state", "own", "sub/up/state"] {
            let failure = workspace.list(Some(&path(own))).unwrap_err();
            assert!(failure.reason.contains("deaddrop's own state"), "{own}: {failure:?}");
        }
    }

    #[test]
    fn deaddrops_own_state_is_known_by_its_path_whatever_that_is() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let (state, other) = (root.join("a%b/state"), root.join("a%b/other"));
        let workspace = Workspace::open(root, &[state], &[]).unwrap();
        fs::create_dir_all(&other).unwrap();
        let found = cap_std::fs::Metadata::from_just_metadata(fs::metadata(other).unwrap());
        assert!(workspace.is_own("a%b/", b"state", (0, 0)));
        assert!(workspace.is_state("a%25b/state", &found));
        assert!(!workspace.is_own("a%25b/", b"state", (0, 0)));
        assert!(!workspace.is_own("a%b/", b"other", (0, 0)));
    }

    #[test]
    fn what_is_no_folder_here_is_told_with_its_path() {
        let (_folder, workspace) = workspace();
        for (at, why) in [
            ("nowhere", "No folder 'nowhere'"),
            ("nowhere/deep", "No folder 'nowhere/deep'"),
            ("sub/broken", "No folder 'sub/broken'"),
            ("sub/file", "'sub/file' is not a folder"),
            ("sub/fifo", "'sub/fifo' is not a folder"),
            ("sub/file/x", "'sub/file/x' cannot be there"),
            ("out", "outside workspace: 'out'"),
        ] {
            let failure = workspace.list(Some(&path(at))).unwrap_err();
            assert!(failure.reason.contains(why), "{at}: {failure:?}");
        }
    }

    #[test]
    fn names_are_sorted_by_their_bytes_and_need_be_no_text() {
        let (folder, workspace) = workspace();
        let all = folder.path().join("root/all");
        fs::create_dir(&all).unwrap();
        for name in [&b"b"[..], b"B", b"a", b"\xc3\xa9", b"\xff", b".hidden"] {
            fs::write(all.join(OsString::from_vec(name.to_vec())), "").unwrap();
        }
        let listed = workspace.list(Some(&path("all"))).unwrap();
        let names: Vec<&[u8]> = listed.iter().map(|e| e.name.as_encoded_bytes()).collect();
        assert_eq!(names, [&b".hidden"[..], b"B", b"a", b"b", b"\xc3\xa9", b"\xff"]);
    }
}
