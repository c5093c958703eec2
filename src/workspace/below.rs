//! What lies below a folder, entry by entry, in the order of paths: folders are opened relative to
//! their parent's handle and never through a link, and of deaddrop's own files none is looked at.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::sync::Arc;

use cap_fs_ext::DirExt;
use cap_std::fs::{Dir, Metadata};

use super::locate::{Last, Spot, failed};
use super::walk::EntryKind;
use super::walk::ignoring::{self, Budget, Rules, SIZE_LIMIT};
use super::{Workspace, open_regular, process};
use crate::protocol::{Failure, FailureKind, RelPath};

/// Deeper folders are not looked at: each one on the way is held open.
const DEPTH: usize = 200;

/// What somebody named who wants to look below it, or at it.
pub(super) enum Start {
    /// A folder, open, and its names from the root, free of links.
    Folder(Dir, Vec<String>),
    /// Something else that stands there.
    File(Box<Spot>),
}

/// Which of the entries are met.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// All.
    All,
    /// Those that no ignore rules leave out, and nothing of git's own.
    NotIgnored,
}

/// What is met.
pub(super) enum Met<'a> {
    /// A folder, before what is in it.
    Folder(&'a str),
    /// Something that is no folder.
    File(Entry<'a>),
    /// A folder, or something else, that cannot be looked at.
    Unreadable(&'a str),
    /// Something of deaddrop's own, which is not told what it is.
    Own,
}

/// Something that is no folder.
pub(super) struct Entry<'a> {
    /// Its path from the root, as text.
    pub(super) path: &'a str,
    /// The folder that holds it.
    pub(super) folder: &'a Dir,
    /// Its name there.
    pub(super) name: &'a OsStr,
    /// What it is.
    pub(super) kind: EntryKind,
    /// Its size; of a link its own.
    pub(super) size: u64,
}

/// Is given all that is met, and may end it.
pub(super) type Visit<'a> = &'a mut dyn FnMut(Met<'_>) -> ControlFlow<()>;

/// What is in a folder.
struct Child {
    name: OsString,
    found: Option<Metadata>,
    is_folder: bool,
    is_own: bool,
}

impl Workspace {
    /// What stands where a path leads, links resolved; None is the root.
    pub(super) fn start(&self, path: Option<&RelPath>) -> Result<Start, Failure> {
        let Some(path) = path else {
            let root = self.root.try_clone().map_err(|e| {
                Failure::new(FailureKind::Execution, format!("Cannot open the root: {e}"))
            })?;
            return Ok(Start::Folder(root, Vec::new()));
        };
        let folder = || self.open_folder(path).map(|(dir, names)| Start::Folder(dir, names));
        match self.locate(path, Last::Follow) {
            Ok(Spot { found: None, .. }) => Err(self.nothing_at(path, None)),
            Ok(Spot { found: Some(found), .. }) if found.is_dir() => folder(),
            Ok(spot) => Ok(Start::File(Box::new(spot))),
            // A link may lead to a folder that has no name of its own, such as the root.
            Err(failure) => folder().map_err(|_| failure),
        }
    }

    /// Visits what lies below a folder, which has these names from the root.
    pub(super) fn each_below(&self, folder: &Dir, names: &[String], which: Which, visit: Visit) {
        let walk = Walk { workspace: self, which, budget: Budget::new() };
        let rules = match which {
            Which::All => None,
            Which::NotIgnored => walk.rules_above(names),
        };
        let prefix: String = names.iter().map(|name| format!("{name}/")).collect();
        let _ = walk.folder(folder, &prefix, rules.as_ref(), 0, visit);
    }
}

struct Walk<'a> {
    workspace: &'a Workspace,
    which: Which,
    budget: Budget,
}

impl Walk<'_> {
    /// The rules of the folders above one. Who names a folder that they leave out means it.
    fn rules_above(&self, names: &[String]) -> Option<Arc<Rules>> {
        let mut folder = self.workspace.root.try_clone().ok()?;
        let (mut prefix, mut rules) = (String::new(), None);
        for name in names {
            rules = self.rules_in(&folder, &prefix, rules.as_ref()).or(rules);
            if rules.as_ref().is_some_and(|rules: &Arc<Rules>| rules.ignores(&prefix, name, true)) {
                return None;
            }
            folder = folder.open_dir_nofollow(name).ok()?;
            prefix.push_str(name);
            prefix.push('/');
        }
        rules
    }

    fn rules_in(&self, dir: &Dir, prefix: &str, above: Option<&Arc<Rules>>) -> Option<Arc<Rules>> {
        let names: Vec<OsString> =
            dir.entries().ok()?.filter_map(|entry| Some(entry.ok()?.file_name())).collect();
        self.rules_of(dir, prefix, above, names.iter())
    }

    fn rules_of<'n>(
        &self,
        dir: &Dir,
        prefix: &str,
        above: Option<&Arc<Rules>>,
        names: impl Iterator<Item = &'n OsString>,
    ) -> Option<Arc<Rules>> {
        let names = names.map(|name| name.as_encoded_bytes());
        ignoring::here(prefix, above, names, &self.budget, |name| {
            let name = String::from_utf8_lossy(name);
            let file = open_regular(dir, OsStr::new(&*name))?;
            let mut bytes = Vec::new();
            file.take(SIZE_LIMIT + 1).read_to_end(&mut bytes)?;
            Ok(bytes)
        })
    }

    fn folder(
        &self,
        dir: &Dir,
        prefix: &str,
        above: Option<&Arc<Rules>>,
        depth: usize,
        visit: Visit,
    ) -> ControlFlow<()> {
        let unreadable = if prefix.is_empty() { "." } else { prefix };
        if depth > DEPTH {
            return visit(Met::Unreadable(unreadable));
        }
        let Ok(children) = self.children(dir, prefix) else {
            return visit(Met::Unreadable(unreadable));
        };
        let own = match self.which {
            Which::All => None,
            Which::NotIgnored => {
                self.rules_of(dir, prefix, above, children.iter().map(|child| &child.name))
            }
        };
        let rules = own.as_ref().or(above);
        for Child { name, found, is_folder, is_own } in &children {
            if *is_own {
                visit(Met::Own)?;
                continue;
            }
            let text = name.to_string_lossy();
            let is_gits = self.which == Which::NotIgnored && name.eq_ignore_ascii_case(".git");
            if is_gits || rules.is_some_and(|rules| rules.ignores(prefix, &text, *is_folder)) {
                continue;
            }
            let path = format!("{prefix}{text}");
            if *is_folder {
                let folder = dir.open_dir_nofollow(name);
                if folder.as_ref().is_ok_and(|folder| process::is_own(folder, &text)) {
                    visit(Met::Own)?;
                    continue;
                }
                visit(Met::Folder(&path))?;
                let below = path + "/";
                match folder {
                    Ok(folder) => self.folder(&folder, &below, rules, depth + 1, visit)?,
                    Err(_) => visit(Met::Unreadable(&below))?,
                }
                continue;
            }
            let Some(found) = found else {
                visit(Met::Unreadable(&path))?;
                continue;
            };
            let kind = match found {
                found if found.is_file() => EntryKind::File,
                found if found.is_symlink() => EntryKind::Link,
                _ => EntryKind::Other,
            };
            let size = if kind == EntryKind::Other { 0 } else { found.len() };
            visit(Met::File(Entry { path: &path, folder: dir, name, kind, size }))?;
        }
        ControlFlow::Continue(())
    }

    /// What is in a folder, in the order of the paths that lie there.
    fn children(&self, dir: &Dir, prefix: &str) -> io::Result<Vec<Child>> {
        let above = prefix.trim_end_matches('/');
        let mut children = Vec::new();
        for entry in dir.entries()? {
            let entry = entry?;
            let name = entry.file_name();
            let found = match entry.metadata() {
                Ok(found) => Some(found),
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(_) => None,
            };
            let own = |found: &Metadata| self.workspace.is_own(above, &name, found);
            let is_own = found.as_ref().is_some_and(own);
            let is_folder = match &found {
                Some(found) => found.is_dir(),
                None => entry.file_type()?.is_dir(),
            };
            children.push(Child { name, found, is_folder, is_own });
        }
        let order = |child: &Child| {
            let end: &[u8] = if child.is_folder { b"/" } else { b"" };
            [child.name.as_encoded_bytes(), end].concat()
        };
        children.sort_by_cached_key(order);
        Ok(children)
    }
}

/// The entry that a path names by itself.
pub(super) fn entry_of<'a>(spot: &'a Spot, path: &RelPath) -> Result<Entry<'a>, Failure> {
    let Some(found) = &spot.found else {
        return Err(failed("look at", path, &io::ErrorKind::NotFound.into()));
    };
    let kind = if found.is_file() { EntryKind::File } else { EntryKind::Other };
    let size = if kind == EntryKind::File { found.len() } else { 0 };
    let name = OsStr::new(&spot.name);
    Ok(Entry { path: spot.real.as_str(), folder: &spot.folder, name, kind, size })
}
