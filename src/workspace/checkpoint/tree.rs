//! Entries of the workspace's tree and changes to them, as values. Pure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::blobs::BlobId;
use crate::protocol::RelPath;
use crate::text::visible_line;
use crate::workspace::names::{shown, unescaped};
use crate::workspace::walk::detailed::FileStat;

/// What is at a path of the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TreeEntry {
    /// A regular file.
    File {
        /// Its content.
        blob: BlobId,
        /// Its permission bits as in `chmod`, without set-user-ID and set-group-ID, because an undo never sets these.
        mode: u32,
        /// Its size in bytes.
        size: u64,
    },
    /// A symbolic link.
    Link {
        /// The target as stored in the link, escaped.
        target: String,
    },
    /// A folder.
    Folder {
        /// Its permission bits as in `chmod`.
        mode: u32,
    },
    /// Something whose content is not stored.
    #[serde(rename = "unkept")]
    NotStored {
        /// Why it is not stored.
        #[serde(rename = "why")]
        reason: NotStored,
        /// Identifies the entry, to detect changes.
        #[serde(rename = "is")]
        identity: Identity,
    },
}

/// Why something is not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NotStored {
    /// The file is larger than `checkpoint_file_bytes`.
    Large,
    /// There was no room for the file within `checkpoint_max_bytes`.
    Room,
    /// The entry is neither a file nor a link nor a folder.
    Other,
    /// The entry could not be read.
    Unreadable,
    /// The entry is the `.git` of a repository.
    Repository,
}

impl TreeEntry {
    /// An entry whose content is not stored, identified by its metadata.
    pub(super) fn new_not_stored(reason: NotStored, stat: &FileStat, size: u64) -> Self {
        Self::NotStored { reason, identity: Identity::of(stat, size) }
    }

    /// An entry whose metadata cannot be read: only its path is known.
    pub(super) fn unreadable_at(path: &str) -> Self {
        Self::NotStored { reason: NotStored::Unreadable, identity: Identity::Path(path.to_owned()) }
    }

    /// The `.git` folder of a repository. Git can write to it at any time, so it never counts as unchanged.
    pub(super) fn repository_at(path: &str) -> Self {
        Self::NotStored { reason: NotStored::Repository, identity: Identity::Path(path.to_owned()) }
    }

    /// The blob that stores a file's content.
    pub fn blob(&self) -> Option<&BlobId> {
        match self {
            Self::File { blob, .. } => Some(blob),
            _ => None,
        }
    }

    /// The entry's permission bits as in `chmod`, if they are known.
    pub fn mode(&self) -> Option<u32> {
        match self {
            Self::File { mode, .. } | Self::Folder { mode } => Some(*mode),
            Self::Link { .. } | Self::NotStored { .. } => None,
        }
    }

    /// Why the entry is not stored; None if it is stored.
    pub fn not_stored(&self) -> Option<NotStored> {
        match self {
            Self::NotStored { reason, .. } => Some(*reason),
            _ => None,
        }
    }

    /// Whether the entry's metadata or content is unknown because it could not be read.
    pub fn is_unreadable(&self) -> bool {
        self.not_stored() == Some(NotStored::Unreadable)
    }

    /// Whether nothing is known about the entry except this path.
    pub(super) fn is_unknown_at(&self, path: &str) -> bool {
        matches!(self, Self::NotStored { reason: NotStored::Unreadable, identity: Identity::Path(at) } if at == path)
    }

    /// Whether the entry is a folder.
    pub fn is_folder(&self) -> bool {
        matches!(self, Self::Folder { .. })
    }

    /// The metadata that identifies a file that is not stored, even after a rename.
    pub(super) fn stable(&self) -> Option<StableStat> {
        match self {
            Self::NotStored { identity, .. } => identity.stable(),
            _ => None,
        }
    }
}

impl NotStored {
    /// A phrase for messages that gives the reason.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Large => "larger than checkpoint_file_bytes",
            Self::Room => "no room within checkpoint_max_bytes",
            Self::Other => "neither a file nor a link",
            Self::Unreadable => "it could not be read",
            Self::Repository => "what git keeps of a repository",
        }
    }
}

pub(super) fn is_folder(entry: Option<&TreeEntry>) -> bool {
    entry.is_some_and(TreeEntry::is_folder)
}

/// Whether two entries are equal. A file whose content is not stored stays equal when it is renamed.
pub(super) fn is_same(one: Option<&TreeEntry>, other: Option<&TreeEntry>) -> bool {
    let stable = |entry: Option<&TreeEntry>| entry.and_then(TreeEntry::stable);
    one == other || stable(one).is_some() && stable(one) == stable(other)
}

/// Finds the change of a path; `changes` must be sorted by path.
pub(super) fn find_change<'a>(changes: &'a [TreeChange], path: &str) -> Option<&'a TreeChange> {
    let found = changes.binary_search_by(|change| change.path.as_str().cmp(path));
    found.ok().map(|n| &changes[n])
}

/// A change to one path of the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TreeChange {
    /// The path relative to the root (empty for the root itself); names that are not UTF-8 are escaped.
    pub path: String,
    /// The entry before the change; None if nothing existed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<TreeEntry>,
    /// The entry after the change; None if nothing exists there any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<TreeEntry>,
    /// Whether somebody else also changed the path in between.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mixed: bool,
    /// Whether a command of the turn changed the path.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_command: bool,
    /// Whether ignore rules match the path. Such an entry is restored only if nothing exists at its path.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ignored: bool,
}

impl TreeChange {
    /// A change whose flags are all false.
    pub fn of(path: String, before: Option<TreeEntry>, after: Option<TreeEntry>) -> Self {
        Self { path, before, after, mixed: false, by_command: false, ignored: false }
    }

    /// The blobs of the contents before and after the change.
    pub fn blobs(&self) -> impl Iterator<Item = &BlobId> {
        [&self.before, &self.after].into_iter().flatten().filter_map(TreeEntry::blob)
    }

    /// The path in the form that operations use; None if no operation can name it.
    pub fn place(&self) -> Option<RelPath> {
        RelPath::parse(unescaped(&self.path).to_str()?).ok()
    }

    /// Its path for messages.
    pub fn shown(&self) -> String {
        if self.path.is_empty() { ".".to_owned() } else { shown_path(&self.path) }
    }
}

/// An escaped path, formatted for messages.
pub(super) fn shown_path(path: &str) -> String {
    visible_line(&shown(path)).into_owned()
}

/// Combines consecutive lists of changes into one list: the first `before` and the last `after` of each path. If a list
/// did not find what the previous list had left, somebody else changed the path in between (`mixed`).
pub fn compose(lists: impl IntoIterator<Item = Vec<TreeChange>>) -> Vec<TreeChange> {
    let mut all: BTreeMap<String, TreeChange> = BTreeMap::new();
    for change in lists.into_iter().flatten() {
        match all.get_mut(&change.path) {
            None => drop(all.insert(change.path.clone(), change)),
            Some(earlier) => {
                let is_consecutive = is_same(earlier.after.as_ref(), change.before.as_ref());
                earlier.mixed |= change.mixed || !is_consecutive;
                earlier.by_command |= change.by_command;
                earlier.ignored |= change.ignored;
                earlier.after = change.after;
            }
        }
    }
    let is_relevant = |change: &TreeChange| change.before != change.after || change.mixed;
    all.into_values().filter(is_relevant).collect()
}

/// Swaps before and after in each of these changes.
pub fn reverse(changes: Vec<TreeChange>) -> Vec<TreeChange> {
    let swap = |mut change: TreeChange| {
        std::mem::swap(&mut change.before, &mut change.after);
        change
    };
    changes.into_iter().map(swap).collect()
}

/// Identifies an entry whose content cannot be compared.
///
/// Earlier versions stored both variants as text, which is read as a path and therefore equals nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Identity {
    /// Its metadata, and when its inode last changed (ctime, in nanoseconds).
    Stat(StableStat, i64),
    /// Its path only, since its metadata could not be read.
    Path(String),
}

/// The metadata of a file that a rename does not change: everything except the ctime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StableStat {
    inode: u64,
    mode: u32,
    size: u64,
    written: i64,
}

impl Identity {
    pub(super) fn of(facts: &FileStat, size: u64) -> Self {
        let FileStat { inode, mode, written, changed, .. } = *facts;
        Self::Stat(StableStat { inode, mode, size, written }, changed)
    }

    /// The metadata that survives a rename; None if it does not identify the file.
    pub(super) fn stable(&self) -> Option<StableStat> {
        match self {
            // Some systems report no inode number or no ctime.
            Self::Stat(stable, changed) if stable.inode != 0 && *changed != 0 => Some(*stable),
            Self::Stat(..) | Self::Path(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_passes_for_what_was_told_of_a_file() {
        let facts =
            FileStat { inode: 7, mode: 0o644, written: -5, changed: 9, ..FileStat::default() };
        let stat = Identity::of(&facts, 3);
        assert!(stat.stable().is_some());
        let text = serde_json::to_string(&stat).unwrap();
        for identity in [stat, Identity::Path(text), Identity::Path("7 644 3 -5 9".to_owned())] {
            let text = serde_json::to_string(&identity).unwrap();
            assert_eq!(serde_json::from_str::<Identity>(&text).unwrap(), identity);
        }
        assert_eq!(Identity::of(&FileStat { inode: 0, ..facts }, 3).stable(), None);
        assert_eq!(Identity::of(&FileStat { changed: 0, ..facts }, 3).stable(), None);
    }

    fn change(path: &str, before: Option<u32>, after: Option<u32>) -> TreeChange {
        let what = |mode: Option<u32>| mode.map(|mode| TreeEntry::Folder { mode });
        TreeChange::of(path.into(), what(before), what(after))
    }

    #[test]
    fn the_first_and_the_last_count_and_what_is_between_is_told() {
        let first = vec![change("a", None, Some(1)), change("b", Some(1), Some(2))];
        let then = vec![change("a", Some(1), None), change("b", Some(3), Some(4))];
        let both = compose([first, then]);
        assert_eq!(both, [TreeChange { mixed: true, ..change("b", Some(1), Some(4)) }]);
        let back = reverse(both);
        assert_eq!(back, [TreeChange { mixed: true, ..change("b", Some(4), Some(1)) }]);
    }
}
