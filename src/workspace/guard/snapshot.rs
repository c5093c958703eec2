//! What stood under protected names before the first command of a turn, as a value that the journal
//! keeps; and what differs from it later. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::scope::Role;
use crate::protocol::{Digest, RelPath};
use crate::workspace::repository::GitNames;

/// What stood under protected names.
///
/// Paths in it are escaped (see `names`): whatever bytes a name has, it can be found again.
///
/// Devices are no part of it: a machine numbers them anew at every start (btrfs, ZFS, overlays, NFS),
/// and the person's own repository would pass for another. No command can put one file system in
/// another's place, so the number of a file tells as much without.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// The number of the workspace's root. Where it is another later, files were numbered anew (FAT
    /// and some network file systems do that), and only contents can be compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) inode: Option<u64>,
    /// The workspace's root and the repositories in it, the nearest first.
    pub(super) roots: Vec<Root>,
    /// Ignored folders, and repositories beyond the limit: what is found there is left alone.
    pub(super) left_alone: BTreeSet<String>,
    /// Whether `left_alone` is all of them; if not, new repositories are told of and not moved.
    pub(super) is_whole: bool,
    /// Writes that the person approved, and of which it was not yet seen whether they were made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) approved: Vec<Approved>,
    /// Folders that were closed: nobody knows what was in them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) closed: BTreeSet<String>,
    /// Digests of the rules that leave something out, by folder.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) rules: BTreeMap<String, u64>,
    /// What git's settings name.
    #[serde(default)]
    pub(super) git: GitNames,
    /// The files with a set-user-ID or set-group-ID bit; None in older journals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) set_ids: Option<Vec<Item>>,
}

/// A write under a protected name that the person approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Approved {
    /// Where, links resolved.
    pub(super) path: RelPath,
    /// What stood there before; None where nothing did.
    pub(super) before: Option<Digest>,
    /// What is to stand there; None where nothing is to.
    pub(super) after: Option<Digest>,
}

/// A folder in which protected names are looked for, and what stands under them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Root {
    /// From the workspace's root; empty for that itself.
    pub(super) path: String,
    /// Names here that git's settings lead to, escaped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) named: Vec<String>,
    /// By path from here.
    pub(super) items: BTreeMap<String, Item>,
    /// None where it was not looked for, as in older journals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) layout: Option<Layout>,
}

/// What git knows repositories by.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Layout {
    /// The root itself looks like a repository.
    pub(super) bare: bool,
    /// `HEAD`, `objects` and `refs` of the repository there, by path from the root, as far as git
    /// takes them for that.
    pub(super) parts: BTreeMap<String, What>,
}

/// Something that is compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Item {
    /// None where numbers say nothing.
    pub(super) inode: Option<u64>,
    pub(super) what: What,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum What {
    Folder {
        mode: u32,
        /// Whether all that is in it was looked at.
        whole: bool,
        role: Role,
    },
    File(Box<Content>),
    Link {
        target: String,
    },
    /// A FIFO, a socket, a device: never opened.
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Content {
    pub(super) size: u64,
    pub(super) mode: u32,
    pub(super) owner: (u32, u32),
    /// When it was last changed in any way, in nanoseconds since 1970.
    pub(super) changed: i128,
    /// None where it was too large, or could not be read.
    pub(super) digest: Option<Digest>,
    /// All of it, where it is short and text, to be put back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<String>,
}

/// How something differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Made,
    Changed,
    Removed,
}

impl Snapshot {
    /// The snapshot is to be compared with a workspace whose root has this number.
    pub(super) fn meet(&mut self, root: Option<u64>) {
        let before = self.inode.or(root);
        if before != root {
            let items = self.roots.iter_mut().flat_map(|root| root.items.values_mut());
            items.chain(self.set_ids.iter_mut().flatten()).for_each(|item| item.inode = None);
        }
    }
}

impl Root {
    /// The path of an item from the workspace's root.
    pub(super) fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}/{key}", self.path) }
    }

    /// Takes out an item and all that is below it.
    pub(super) fn take(&mut self, key: &str) -> BTreeMap<String, Item> {
        let below = format!("{key}/");
        let taken = |path: &str| path == key || path.starts_with(&below);
        let (gone, left) =
            std::mem::take(&mut self.items).into_iter().partition(|(path, _)| taken(path));
        self.items = left;
        gone
    }

    /// Whether a setting of git's leads to what has this path from the workspace's root.
    pub(super) fn has_named(&self, path: &str) -> bool {
        let (folder, name) = crate::workspace::names::split(path);
        self.path == folder && self.named.iter().any(|named| named == name)
    }

    /// What of `now` is not as it is here, the highest folder of each difference alone.
    pub(super) fn differences(&self, now: &Self) -> Vec<(String, Change)> {
        let mut found = Vec::new();
        let mut covered = BTreeSet::new();
        let keys: BTreeSet<&String> = self.items.keys().chain(now.items.keys()).collect();
        // A folder comes before what is in it.
        for key in keys {
            if above(key).any(|above| covered.contains(above)) {
                continue;
            }
            let change = match (self.items.get(key), now.items.get(key)) {
                (Some(before), Some(now)) if before.is_same(now) => continue,
                (Some(_), Some(_)) => Change::Changed,
                (None, Some(now)) if now.is_way() => continue,
                (None, _) => Change::Made,
                (Some(before), None) if before.is_way() => continue,
                (Some(_), None) => Change::Removed,
            };
            covered.insert(key.as_str());
            found.push((key.clone(), change));
        }
        found
    }
}

impl Item {
    /// Whether this is the same as before, as far as that matters.
    pub(super) fn is_same(&self, now: &Self) -> bool {
        let same_place = self.is_itself(now);
        match (&self.what, &now.what) {
            (What::Folder { role: Role::Repository, .. }, What::Folder { .. })
            | (What::Other, What::Other) => same_place,
            // What is in it is compared by itself.
            (What::Folder { .. }, What::Folder { .. }) => true,
            (What::Link { target }, What::Link { target: now }) => target == now,
            (What::File(before), What::File(now)) => {
                let content = match (&before.digest, &now.digest) {
                    (Some(before), Some(now)) => before == now,
                    (None, _) => same_place && before.changed == now.changed,
                    (Some(_), None) => false,
                };
                before.size == now.size && before.mode == now.mode && content
            }
            _ => false,
        }
    }

    /// Whether it is the very same file or folder, as far as its number tells.
    pub(super) fn is_itself(&self, now: &Self) -> bool {
        self.inode.is_none() || now.inode.is_none() || self.inode == now.inode
    }

    pub(super) fn is_repository(&self) -> bool {
        matches!(self.what, What::Folder { role: Role::Repository, .. })
    }

    fn is_way(&self) -> bool {
        matches!(self.what, What::Folder { role: Role::Way, .. })
    }
}

/// The folders above a path, the nearest first.
pub(super) fn above(path: &str) -> impl Iterator<Item = &str> {
    memchr::memrchr_iter(b'/', path.as_bytes()).map(|at| &path[..at])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn file(text: &str) -> Item {
        let content = Content {
            size: text.len() as u64,
            mode: 0o644,
            owner: (0, 0),
            changed: 0,
            digest: Some(Digest::of(text.as_bytes())),
            text: None,
        };
        Item { inode: Some(1), what: What::File(Box::new(content)) }
    }

    fn folder(inode: u64, role: Role) -> Item {
        Item { inode: Some(inode), what: What::Folder { mode: 0o755, whole: true, role } }
    }

    fn root<const N: usize>(items: [(&str, Item); N]) -> Root {
        let items = items.into_iter().map(|(path, item)| (path.to_owned(), item)).collect();
        Root { items, ..Root::default() }
    }

    #[test]
    fn the_highest_difference_is_told() {
        let all = || folder(1, Role::All);
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
            (".a", Change::Changed),
            (".a-b", Change::Changed),
            (".c/d", Change::Removed),
            (".n", Change::Made),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn a_repository_is_compared_by_identity_and_what_leads_there_not_at_all() {
        let git = |inode| folder(inode, Role::Repository);
        let before = root([(".git", git(1)), (".git/objects", folder(2, Role::Way))]);
        assert_eq!(before.differences(&root([(".git", git(1))])), []);
        let other = root([(".git", git(5)), (".git/modules", folder(9, Role::Way))]);
        assert_eq!(before.differences(&other), [(".git".to_owned(), Change::Changed)]);
    }

    #[test]
    fn without_a_digest_the_place_and_its_last_change_count() {
        let large = |inode, changed| {
            let Item { what: What::File(content), .. } = file("1") else { unreachable!() };
            let content = Content { digest: None, changed, ..*content };
            root([("x", Item { inode: Some(inode), what: What::File(Box::new(content)) })])
        };
        let changed = [("x".to_owned(), Change::Changed)];
        assert_eq!(large(1, 1).differences(&large(1, 1)), []);
        assert_eq!(large(1, 1).differences(&large(1, 2)), changed);
        assert_eq!(large(1, 1).differences(&large(2, 1)), changed);
        assert_eq!(root([("x", file("1"))]).differences(&large(1, 0)), changed);
    }

    fn any_root() -> impl Strategy<Value = Root> {
        let item = (0..3_u64, "[ab]{0,1}").prop_map(|(kind, text)| match kind {
            0 => folder(1, Role::All),
            1 => folder(1, Role::Way),
            _ => file(&text),
        });
        prop::collection::btree_map("[ab](/[ab]){0,2}", item, 0..6)
            .prop_map(|items| Root { items, ..Root::default() })
    }

    proptest! {
        #[test]
        fn nothing_differs_from_itself(root in any_root()) {
            prop_assert_eq!(root.differences(&root), []);
        }

        #[test]
        fn every_difference_is_told_or_lies_below_one(before in any_root(), now in any_root()) {
            let told = before.differences(&now);
            for key in before.items.keys().chain(now.items.keys()) {
                let way = |root: &Root| root.items.get(key).is_none_or(Item::is_way);
                let same = match (before.items.get(key), now.items.get(key)) {
                    (Some(before), Some(now)) => before.is_same(now),
                    _ => way(&before) && way(&now),
                };
                let covers = |path: &str| told.iter().any(|(told, _)| told == path);
                prop_assert_eq!(covers(key), !same && !above(key).any(covers));
            }
        }

        #[test]
        fn it_is_kept_as_text(root in any_root()) {
            let snapshot = Snapshot { roots: vec![root], ..Snapshot::default() };
            let text = serde_json::to_string(&snapshot).unwrap();
            prop_assert!(!text.contains('\n'));
            prop_assert_eq!(serde_json::from_str::<Snapshot>(&text).unwrap(), snapshot);
        }
    }
}
