//! Lists the entries of a folder, and visits everything below it, in a fixed order. Links are not followed, and
//! deaddrop's own files are left out. Each folder is opened relative to its parent's handle.

use std::ffi::{OsStr, OsString};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use cap_std::fs::Dir;

use super::locate::{DiskLocation, FinalLink, failed};
use super::walk::ignoring::{self, Budget, IgnoreRules};
use super::walk::{EntryKind, FileType, Handle, may_be_folder};
use super::{Workspace, process};
use crate::protocol::{Failure, RelPath};

/// The deepest level that is visited. The limit is needed because each parent folder is kept open.
const MAX_DEPTH: usize = 200;

/// One entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderEntry {
    /// The entry's name, which can be any bytes.
    pub name: OsString,
    /// Whether the entry is a folder; false for a link to a folder.
    pub is_dir: bool,
    /// The size in bytes: 0 for a folder, and the link's own size for a link.
    pub size: u64,
    /// When the entry was last written, in nanoseconds since 1970, if known.
    pub written: Option<i64>,
}

/// Where a listing or search begins.
pub(super) enum ListRoot {
    /// An open folder, and its path from the root without links, with a `/` at the end (empty for the root).
    Folder(Dir, String),
    /// Anything else.
    File(Box<DiskLocation>),
}

/// Which entries are visited.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryFilter {
    /// All entries.
    All,
    /// All entries except `.git`.
    WithoutGit,
    /// Entries that are not ignored, except `.git`.
    NotIgnored,
}

/// An entry passed to a visitor.
pub(super) enum Visited<'a> {
    /// A folder, reported before its entries.
    Folder(&'a str),
    /// Anything but a folder.
    File(VisitedFile<'a>),
    /// An entry that cannot be inspected, or a folder that cannot be read.
    Unreadable(&'a str),
    /// One of deaddrop's own files or folders. The name stays hidden.
    OwnState,
}

/// An entry that is not a folder.
pub(super) struct VisitedFile<'a> {
    /// Its path from the root, as text.
    pub(super) path: &'a str,
    /// The folder that contains the file.
    pub(super) folder: &'a Handle,
    /// Its name in the folder.
    pub(super) name: &'a [u8],
    pub(super) kind: EntryKind,
    /// The size; for a link, that of the link itself.
    pub(super) size: u64,
}

/// Receives each entry, and can end the visit.
pub(super) type Visit<'a> = &'a mut dyn FnMut(Visited<'_>) -> ControlFlow<()>;

/// The type of an entry.
enum ChildEntry {
    Folder,
    File(EntryKind, u64),
    /// The entry cannot be inspected. The value is whether it is a folder.
    Unreadable(bool),
    OwnState,
}

impl Workspace {
    /// The entries of a folder (None: the root), sorted by the bytes of their names. Links in the path are followed
    /// within the workspace.
    pub fn list(&self, path: Option<&RelPath>) -> Result<Vec<FolderEntry>, Failure> {
        self.list_up_to(path, usize::MAX)
    }

    /// Like [`Self::list`], but lists only the first `limit` entries that the file system returns.
    pub(super) fn list_up_to(
        &self,
        path: Option<&RelPath>,
        limit: usize,
    ) -> Result<Vec<FolderEntry>, Failure> {
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
                // An entry of a mount that does not respond is still listed by its name.
                Some(ChildEntry::Unreadable(is_dir)) => (is_dir, 0),
            };
            let written = folder.stat(&name, true).ok().map(|(_, _, facts)| facts.written);
            entries.push(FolderEntry {
                name: OsStr::from_bytes(&name).to_owned(),
                is_dir,
                size,
                written,
            });
        }
        entries.sort_unstable_by(|a, b| a.name.as_encoded_bytes().cmp(b.name.as_encoded_bytes()));
        Ok(entries)
    }

    /// Resolves the path where a listing or search begins; None is the root.
    pub(super) fn list_root(&self, path: Option<&RelPath>) -> Result<ListRoot, Failure> {
        let folder = || self.open_folder(path).map(|(dir, prefix)| ListRoot::Folder(dir, prefix));
        let Some(path) = path else { return folder() };
        match self.locate(path, FinalLink::Follow) {
            Ok(DiskLocation { found: None, .. }) => Err(self.as_is().nothing_at(path)),
            Ok(DiskLocation { found: Some(found), .. }) if found.is_dir() => folder(),
            Ok(spot) => Ok(ListRoot::File(Box::new(spot))),
            // A link can lead to a folder that has no path of its own, such as the root.
            Err(failure) => folder().map_err(|_| failure),
        }
    }

    /// Visits everything below a folder, in the order of paths. `prefix` is the folder's path with a `/` at the end.
    pub(super) fn visit_below(
        &self,
        folder: &Dir,
        prefix: &str,
        filter: EntryFilter,
        visit: Visit,
    ) {
        let mut lister =
            Lister { workspace: self, filter, budget: Budget::new(), buffer: buffer() };
        let rules = match filter {
            EntryFilter::All | EntryFilter::WithoutGit => None,
            EntryFilter::NotIgnored => lister.rules_above(prefix),
        };
        let _ = match Handle::root(folder) {
            Ok(folder) => lister.folder(&folder, prefix, rules.as_ref(), 0, visit),
            Err(_) => visit(Visited::Unreadable(shown_folder(prefix))),
        };
    }

    /// The type of an entry of a folder; None if the entry is gone.
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

    /// Whether an entry of the folder `prefix` is deaddrop's own, by its path or its device and inode.
    fn is_own(&self, prefix: &str, name: &[u8], id: (u64, u64)) -> bool {
        let is_there = |own: &RelPath| {
            own.as_str().as_bytes().strip_prefix(prefix.as_bytes()).is_some_and(|own| own == name)
        };
        self.state.iter().any(is_there) || self.state_ids.contains(&id)
    }
}

struct Lister<'a> {
    workspace: &'a Workspace,
    filter: EntryFilter,
    budget: Budget,
    buffer: Vec<u8>,
}

impl Lister<'_> {
    /// The ignore rules of the parent folders. None if these rules ignore the folder itself: a folder that a request
    /// names is listed completely.
    fn rules_above(&mut self, prefix: &str) -> Option<Arc<IgnoreRules>> {
        let mut folder = Handle::root(&self.workspace.root).ok()?;
        let (mut at, mut rules) = (0, None);
        for name in prefix.split_terminator('/') {
            let above = &prefix[..at];
            let entries = folder.entries(&mut self.buffer, usize::MAX).unwrap_or_default();
            rules = self.rules_in(&folder, above, rules.as_ref(), &entries).or(rules);
            if rules
                .as_ref()
                .is_some_and(|rules: &Arc<IgnoreRules>| rules.ignores(above, name, true))
            {
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
        above: Option<&Arc<IgnoreRules>>,
        entries: &[(Vec<u8>, FileType)],
    ) -> Option<Arc<IgnoreRules>> {
        let names = entries.iter().map(|(name, _)| name.as_slice());
        ignoring::here(prefix, above, names, &self.budget, |name| folder.read_small(name))
    }

    fn folder(
        &mut self,
        folder: &Handle,
        prefix: &str,
        above: Option<&Arc<IgnoreRules>>,
        depth: usize,
        visit: Visit,
    ) -> ControlFlow<()> {
        let entries = if depth > MAX_DEPTH {
            None
        } else {
            folder.entries(&mut self.buffer, usize::MAX).ok()
        };
        let Some(mut entries) = entries else {
            return visit(Visited::Unreadable(shown_folder(prefix)));
        };
        let own = match self.filter {
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
            let is_git = self.filter != EntryFilter::All && name.eq_ignore_ascii_case(b".git");
            let child =
                if is_git { None } else { self.workspace.child(folder, prefix, name, *kind) };
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
                    visit(Visited::File(VisitedFile { path: &path, folder, name, kind, size }))?;
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

/// The path of a folder, for display.
fn shown_folder(prefix: &str) -> &str {
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

    fn names(listed: &[FolderEntry]) -> Vec<&str> {
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
