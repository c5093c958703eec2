//! The entries under protected names before the first command of a turn, as a value that the journal stores, and the
//! comparison with the entries afterwards. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::is_git;
use super::scan::HEAD;
use super::scope::FolderRole;
use crate::protocol::Digest;
use crate::workspace::names::{ancestors, split};
use crate::workspace::repository::GitNames;

/// The entries under protected names.
///
/// Paths are escaped (see `names`), so that names with any bytes can be opened again.
///
/// Device numbers are not recorded: they can change at every boot (btrfs, ZFS, overlays, NFS), and the person's own
/// repository would look like another one. Inodes are enough: no command can replace a file system by another.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// The inode of the workspace's root. If it changes, the file system has assigned new inodes (as FAT and some
    /// network file systems do), and only contents can be compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) inode: Option<u64>,
    /// The workspace's root and the repositories in it, the nearest first.
    #[serde(rename = "roots")]
    pub(super) folders: Vec<WatchedFolder>,
    /// Ignored folders, and repositories beyond the limit. Nothing in them is moved away.
    pub(super) left_alone: BTreeSet<String>,
    /// Whether `left_alone` is complete. Otherwise new repositories are reported, but not moved.
    pub(super) is_whole: bool,
    /// Folders that could not be read, so it is unknown what they contain.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) closed: BTreeSet<String>,
    /// Digests of the ignore rules, by folder.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) rules: BTreeMap<String, u64>,
    /// The files and folders that git's settings name.
    #[serde(default)]
    pub(super) git: GitNames,
    /// The files with a set-user-ID or set-group-ID bit; None in journals of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) set_ids: Option<Vec<ProtectedEntry>>,
}

/// A folder in which protected names are searched, and the entries under them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WatchedFolder {
    /// The folder's path from the workspace's root; empty for the root.
    pub(super) path: String,
    /// Names in the folder to which git's settings lead, escaped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) named: Vec<String>,
    /// The entries that are compared, by path relative to the folder.
    #[serde(rename = "items")]
    pub(super) entries: BTreeMap<String, ProtectedEntry>,
    /// Whether git could treat the folder itself as a repository. None if unknown, as in journals of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) is_bare: Option<bool>,
}

/// An entry that is compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProtectedEntry {
    /// The entry's inode; None if inodes cannot be compared.
    pub(super) inode: Option<u64>,
    #[serde(rename = "what")]
    pub(super) kind: ProtectedKind,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum ProtectedKind {
    Folder {
        mode: u32,
        /// Whether everything in the folder was scanned.
        whole: bool,
        role: FolderRole,
    },
    File(Box<FileRecord>),
    Link {
        target: String,
    },
    /// A FIFO, a socket or a device, which is never opened.
    Other,
    /// `HEAD` of a repository. Git changes it often, so all contents that git accepts count as equal. None if git does
    /// not accept the content.
    Head(Option<Box<ProtectedKind>>),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FileRecord {
    pub(super) size: u64,
    pub(super) mode: u32,
    pub(super) owner: (u32, u32),
    /// When the file's content or metadata last changed (ctime), in nanoseconds since 1970.
    pub(super) changed: i64,
    /// The digest of the content; None if the file was too large or could not be read.
    pub(super) digest: Option<Digest>,
    /// The content to restore, if it is a short text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<String>,
}

/// How an entry differs from the snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryChange {
    Made,
    Changed,
    Removed,
}

impl Snapshot {
    /// Discards all inodes if the inode of the workspace's root has changed.
    pub(super) fn drop_inodes_if_renumbered(&mut self, root: Option<u64>) {
        if self.inode.or(root) != root {
            let entries = self.folders.iter_mut().flat_map(|folder| folder.entries.values_mut());
            entries.chain(self.set_ids.iter_mut().flatten()).for_each(|entry| entry.inode = None);
        }
    }
}

impl WatchedFolder {
    /// The path of an entry from the workspace's root.
    pub(super) fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}/{key}", self.path) }
    }

    /// The path and inode of the folder's `.git`, if it has one.
    pub(super) fn git(&self) -> Option<(String, Option<u64>)> {
        let is_git =
            |(key, entry): &(&String, &ProtectedEntry)| entry.is_repository() || is_git(key);
        let (key, git) = self.entries.iter().find(is_git)?;
        Some((self.path_of(key), git.inode))
    }

    /// Removes and returns an entry and everything below it.
    pub(super) fn take(&mut self, key: &str) -> BTreeMap<String, ProtectedEntry> {
        let below = format!("{key}/");
        self.entries.extract_if(.., |path, _| path == key || path.starts_with(&below)).collect()
    }

    /// Whether git's settings name this path, which is relative to the workspace's root.
    pub(super) fn has_named(&self, path: &str) -> bool {
        let (folder, name) = split(path);
        self.path == folder && self.named.iter().any(|named| named == name)
    }

    /// Whether the folder itself has become a repository.
    pub(super) fn is_completed(&self, now: &Self) -> bool {
        self.is_bare == Some(false) && now.is_bare == Some(true)
    }

    /// The entries that differ from `now`. If a folder differs, its entries are not listed.
    pub(super) fn differences(&self, now: &Self) -> Vec<(String, EntryChange)> {
        let is_completed = self.is_completed(now);
        let mut found = Vec::new();
        let mut covered = BTreeSet::new();
        let keys: BTreeSet<&String> = self.entries.keys().chain(now.entries.keys()).collect();
        // In sorted order, a folder comes before its entries.
        for key in keys {
            if above(key).any(|above| covered.contains(above)) {
                continue;
            }
            let change = match (self.entries.get(key), now.entries.get(key)) {
                (Some(before), Some(now))
                    if before.is_same(now) && !(is_completed && key == HEAD) =>
                {
                    continue;
                }
                (Some(_), Some(_)) => EntryChange::Changed,
                (None, Some(now)) if now.is_way() || now.is_part() => continue,
                (None, _) => EntryChange::Made,
                (Some(before), None) if before.is_way() => continue,
                (Some(_), None) => EntryChange::Removed,
            };
            covered.insert(key.as_str());
            found.push((key.clone(), change));
        }
        found
    }

    /// Updates the parts of repositories that git may change, so that a repair restores the latest ones.
    pub(super) fn update_parts(&mut self, now: Self) {
        for (key, entry) in now.entries.into_iter().filter(|(_, entry)| entry.is_part()) {
            let is_in_known = above(&key).next().is_none_or(|git| self.entries.contains_key(git));
            if is_in_known && !matches!(entry.kind, ProtectedKind::Head(None)) {
                self.entries.insert(key, entry);
            }
        }
    }
}

impl ProtectedEntry {
    /// Whether the entry is unchanged in all compared aspects.
    pub(super) fn is_same(&self, now: &Self) -> bool {
        use ProtectedKind::{File, Folder, Head, Link, Other};
        let is_itself = self.is_itself(now);
        match (&self.kind, &now.kind) {
            (Folder { role: FolderRole::Repository, .. }, Folder { .. }) | (Other, Other) => {
                is_itself
            }
            // The folder's entries are compared separately.
            (Folder { .. }, Folder { .. }) => true,
            (Link { target }, Link { target: now }) => target == now,
            (Head(_), Head(now)) => now.is_some(),
            (File(before), File(now)) => {
                let has_same_content = match (&before.digest, &now.digest) {
                    (Some(before), Some(now)) => before == now,
                    (None, _) => is_itself && before.changed == now.changed,
                    (Some(_), None) => false,
                };
                before.size == now.size && before.mode == now.mode && has_same_content
            }
            _ => false,
        }
    }

    /// Whether both can be the same file or folder, according to their inodes.
    pub(super) fn is_itself(&self, now: &Self) -> bool {
        self.inode.is_none() || now.inode.is_none() || self.inode == now.inode
    }

    pub(super) fn is_folder(&self) -> bool {
        matches!(self.kind, ProtectedKind::Folder { .. })
    }

    pub(super) fn is_repository(&self) -> bool {
        self.has_role(FolderRole::Repository)
    }

    /// Whether the entry is a folder that is not compared itself, but contains entries that are.
    pub(super) fn is_way(&self) -> bool {
        self.has_role(FolderRole::Way)
    }

    /// Whether git recognises a repository by this entry and may change it.
    pub(super) fn is_part(&self) -> bool {
        self.has_role(FolderRole::Part) || matches!(self.kind, ProtectedKind::Head(_))
    }

    fn has_role(&self, wanted: FolderRole) -> bool {
        matches!(self.kind, ProtectedKind::Folder { role, .. } if role == wanted)
    }
}

/// The folders above a path, the nearest first.
pub(super) fn above(path: &str) -> impl Iterator<Item = &str> {
    ancestors(split(path).0).rev()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn file(text: &str) -> ProtectedEntry {
        let content = FileRecord {
            size: text.len() as u64,
            mode: 0o644,
            owner: (0, 0),
            changed: 0,
            digest: Some(Digest::of(text.as_bytes())),
            text: None,
        };
        ProtectedEntry { inode: Some(1), kind: ProtectedKind::File(Box::new(content)) }
    }

    fn folder(inode: u64, role: FolderRole) -> ProtectedEntry {
        ProtectedEntry {
            inode: Some(inode),
            kind: ProtectedKind::Folder { mode: 0o755, whole: true, role },
        }
    }

    fn root<const N: usize>(items: [(&str, ProtectedEntry); N]) -> WatchedFolder {
        let entries = items.into_iter().map(|(path, item)| (path.to_owned(), item)).collect();
        WatchedFolder { entries, ..WatchedFolder::default() }
    }

    #[test]
    fn the_highest_difference_is_told() {
        let all = || folder(1, FolderRole::All);
        let before = root([
            (".a", all()),
            (".a/x", file("1")),
            (".a-b", file("1")),
            (".c", all()),
            (".c/d", all()),
            (".c/d/e", file("1")),
        ]);
        let now = root([
            (".a", file("")),
            (".a-b", file("2")),
            (".c", all()),
            (".n", all()),
            (".n/o", file("1")),
        ]);
        let told = before.differences(&now);
        let told: Vec<_> = told.iter().map(|(path, change)| (path.as_str(), *change)).collect();
        let expected = [
            (".a", EntryChange::Changed),
            (".a-b", EntryChange::Changed),
            (".c/d", EntryChange::Removed),
            (".n", EntryChange::Made),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn a_repository_is_compared_by_identity_and_what_leads_there_not_at_all() {
        let git = |inode| folder(inode, FolderRole::Repository);
        let before = root([(".git", git(1)), (".git/objects", folder(2, FolderRole::Way))]);
        assert_eq!(before.differences(&root([(".git", git(1))])), []);
        let other = root([(".git", git(5)), (".git/modules", folder(9, FolderRole::Way))]);
        assert_eq!(before.differences(&other), [(".git".to_owned(), EntryChange::Changed)]);
    }

    #[test]
    fn without_a_digest_the_place_and_its_last_change_count() {
        let large = |inode, changed| {
            let ProtectedEntry { kind: ProtectedKind::File(content), .. } = file("1") else {
                unreachable!()
            };
            let content = FileRecord { digest: None, changed, ..*content };
            root([(
                "x",
                ProtectedEntry { inode: Some(inode), kind: ProtectedKind::File(Box::new(content)) },
            )])
        };
        let changed = [("x".to_owned(), EntryChange::Changed)];
        assert_eq!(large(1, 1).differences(&large(1, 1)), []);
        assert_eq!(large(1, 1).differences(&large(1, 2)), changed);
        assert_eq!(large(1, 1).differences(&large(2, 1)), changed);
        assert_eq!(root([("x", file("1"))]).differences(&large(1, 0)), changed);
    }

    #[test]
    fn a_head_may_change_as_long_as_git_accepts_it_and_parts_must_be_there() {
        let head = |text: Option<&str>| {
            let head = text.map(|text| Box::new(file(text).kind));
            ProtectedEntry { inode: Some(7), kind: ProtectedKind::Head(head) }
        };
        let part = || folder(1, FolderRole::Part);
        let git = || (".git", folder(1, FolderRole::Repository));
        let all = |text| root([git(), (".git/HEAD", head(text)), (".git/refs", part())]);
        let mut before = all(Some("a"));
        assert_eq!(before.differences(&all(Some("b"))), []);
        let broken = root([git(), (".git/HEAD", head(None))]);
        let changed = |key: &str, change| (key.to_owned(), change);
        assert_eq!(
            before.differences(&broken),
            [
                changed(".git/HEAD", EntryChange::Changed),
                changed(".git/refs", EntryChange::Removed)
            ]
        );
        // Parts that did not exist before do not have to be created.
        assert_eq!(root([git()]).differences(&all(Some("a"))), []);
        before.update_parts(broken);
        assert_eq!(before, all(Some("a")));
        before.update_parts(all(Some("b")));
        assert_eq!(before, all(Some("b")));
        // Parts of an unknown repository are not added.
        let mut none = root([]);
        none.update_parts(all(Some("a")));
        assert_eq!(none, root([]));
    }

    fn any_root() -> impl Strategy<Value = WatchedFolder> {
        let item = (0..3_u64, "[ab]{0,1}").prop_map(|(kind, text)| match kind {
            0 => folder(1, FolderRole::All),
            1 => folder(1, FolderRole::Way),
            _ => file(&text),
        });
        prop::collection::btree_map("[ab](/[ab]){0,2}", item, 0..6)
            .prop_map(|entries| WatchedFolder { entries, ..WatchedFolder::default() })
    }

    proptest! {
        #[test]
        fn nothing_differs_from_itself(root in any_root()) {
            prop_assert_eq!(root.differences(&root), []);
        }

        #[test]
        fn every_difference_is_told_or_lies_below_one(before in any_root(), now in any_root()) {
            let told = before.differences(&now);
            for key in before.entries.keys().chain(now.entries.keys()) {
                let way = |root: &WatchedFolder| root.entries.get(key).is_none_or(ProtectedEntry::is_way);
                let same = match (before.entries.get(key), now.entries.get(key)) {
                    (Some(before), Some(now)) => before.is_same(now),
                    _ => way(&before) && way(&now),
                };
                let covers = |path: &str| told.iter().any(|(told, _)| told == path);
                prop_assert_eq!(covers(key), !same && !above(key).any(covers));
            }
        }

        #[test]
        fn it_is_kept_as_text(root in any_root()) {
            let snapshot = Snapshot { folders: vec![root], ..Snapshot::default() };
            let text = serde_json::to_string(&snapshot).unwrap();
            prop_assert!(!text.contains('\n'));
            prop_assert_eq!(serde_json::from_str::<Snapshot>(&text).unwrap(), snapshot);
        }
    }
}
