//! What git knows a repository by: a `HEAD`, and `objects` and `refs` beside it. Without these git
//! passes `.git` by, and obeys what looks like a repository in the folder around it. Git changes
//! `HEAD` all the time, so it is not compared: what git takes for one stays.

use cap_fs_ext::MetadataExt;
use cap_std::fs::{Dir, Metadata};

use super::look::{let_in, of_unix, read};
use super::quarantine::Quarantine;
use super::scope::Role;
use super::snapshot::{Content, Item, Layout, Root, What};
use super::told::Told;
use super::{Workspace, is_git};
use crate::config::is_repository;
use crate::workspace::names::escaped_os;

const HEAD: &str = "HEAD";
const PARTS: [&str; 3] = [HEAD, "objects", "refs"];
/// No `HEAD` is longer.
const HEAD_LIMIT: usize = 4 << 10;

/// Remembers what git knows the repositories of a root by, before a command runs. Returns whether
/// that is something else than before.
pub(super) fn learn(workspace: &Workspace, root: &mut Root) -> bool {
    let before = root.layout.clone();
    let is_bare = || workspace.folder_at(&root.path).is_ok_and(|folder| is_bare(&folder));
    let mut layout = before.clone().unwrap_or_else(|| Layout { bare: is_bare(), ..<_>::default() });
    layout.parts.retain(|key, _| repositories(root).any(|(git, _)| is_in(key, git)));
    for (git, item) in repositories(root) {
        let Some(folder) = opened(workspace, root, git, item) else { continue };
        for name in PARTS {
            if let Some(part) = part(&folder, name) {
                layout.parts.insert(format!("{git}/{name}"), part);
            }
        }
    }
    root.layout = Some(layout);
    root.layout != before
}

/// Sets right after a command what git knows repositories by, and puts away the `HEAD` of a
/// repository in the place of a root.
pub(super) fn set_right(
    workspace: &Workspace,
    quarantine: &Quarantine,
    root: &Root,
    told: &mut Vec<Told>,
) {
    let Some(layout) = &root.layout else { return };
    for (git, item) in repositories(root) {
        let Some(folder) = opened(workspace, root, git, item) else { continue };
        for name in PARTS {
            let key = format!("{git}/{name}");
            let Some(before) = layout.parts.get(&key) else { continue };
            if matches!(before, What::Folder { .. }) {
                let_in(&folder, name.as_ref());
            }
            if part(&folder, name).is_some_and(|now| is_good(name, before, &now)) {
                continue;
            }
            let is_there = folder.symlink_metadata(name).is_ok();
            let went = is_there.then(|| quarantine.take(&folder, name.as_ref()));
            let is_free = went.as_ref().is_none_or(Result::is_ok);
            let is_back =
                is_free && quarantine.put_back(&folder, name.as_ref(), before).unwrap_or(false);
            let is_folder = matches!(before, What::Folder { .. });
            told.push(Told::Unmade { place: root.path_of(&key), went, is_back, is_folder });
        }
    }
    if !layout.bare {
        unmake(workspace, quarantine, &root.path, told);
    }
}

/// The repositories at a root.
fn repositories(root: &Root) -> impl Iterator<Item = (&str, &Item)> {
    let is_one = |(key, item): &(&str, &Item)| is_git(key) && item.is_repository();
    root.items
        .iter()
        .map(|(key, item)| (key.as_str(), item))
        .filter(|(key, _)| !key.contains('/'))
        .filter(is_one)
}

fn is_in(key: &str, git: &str) -> bool {
    key.strip_prefix(git).is_some_and(|rest| rest.starts_with('/'))
}

/// The folder of a repository, where it is still the same.
fn opened(workspace: &Workspace, root: &Root, git: &str, item: &Item) -> Option<Dir> {
    let (holder, name) = workspace.holder(&root.path_of(git)).ok()?;
    let found = holder.symlink_metadata(&name).ok()?;
    if !found.is_dir() || item.inode.is_some_and(|inode| inode != found.ino()) {
        return None;
    }
    let_in(&holder, &name);
    workspace.folder_at(&root.path_of(git)).ok()
}

/// A part of a repository, where git would take it for one.
fn part(folder: &Dir, name: &str) -> Option<What> {
    let found = folder.symlink_metadata(name).ok()?;
    if found.is_symlink() {
        let target = folder.read_link_contents(name).ok()?;
        let target = escaped_os(target.as_os_str());
        return (name != HEAD || target.starts_with("refs/")).then_some(What::Link { target });
    }
    if name != HEAD {
        let mode = of_unix(&found).mode;
        return found.is_dir().then_some(What::Folder { mode, whole: false, role: Role::Way });
    }
    if !found.is_file() || is_closed(&found) || found.len() > HEAD_LIMIT as u64 {
        return None;
    }
    let bytes = read(folder, name.as_ref()).ok().filter(|bytes| bytes.len() <= HEAD_LIMIT)?;
    is_head(&bytes).then(|| What::File(Box::new(Content::of_text(&found, bytes))))
}

fn is_closed(found: &Metadata) -> bool {
    cfg!(unix) && of_unix(found).mode & 0o400 == 0
}

/// Whether git takes this text for that of a `HEAD`, by its own test.
fn is_head(text: &[u8]) -> bool {
    if let Some(to) = text.strip_prefix(b"ref:") {
        return to.trim_ascii_start().starts_with(b"refs/");
    }
    text.get(..40).is_some_and(|id| id.iter().all(u8::is_ascii_hexdigit))
}

/// Whether what stands there now will do for what stood there before.
fn is_good(name: &str, before: &What, now: &What) -> bool {
    match (before, now) {
        _ if name == HEAD => true,
        (What::Link { target }, What::Link { target: now }) => target == now,
        (_, What::Folder { .. }) => true,
        _ => false,
    }
}

/// Whether git could take a folder for a repository.
pub(super) fn is_bare(folder: &Dir) -> bool {
    let found = |name: &str| folder.symlink_metadata(name);
    is_repository(|name| found(name).is_ok_and(|found| name != HEAD || !found.is_dir()))
}

/// Puts away the `HEAD` of a folder that became a repository.
pub(super) fn unmake(
    workspace: &Workspace,
    quarantine: &Quarantine,
    path: &str,
    told: &mut Vec<Told>,
) {
    let Some(folder) = workspace.folder_at(path).ok().filter(is_bare) else { return };
    let went = quarantine.take(&folder, HEAD.as_ref());
    let root = Root { path: path.to_owned(), ..Root::default() };
    told.push(Told::Bare { place: root.path_of(HEAD), went });
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
