//! What stands in the workspace, and how it changed, as values. Pure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::blobs::BlobId;
use crate::protocol::RelPath;
use crate::text::visible_line;
use crate::workspace::names::{shown, unescaped};
use crate::workspace::walk::detailed::FileStat;

/// What stands somewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TreeEntry {
    /// A regular file.
    File {
        /// Its content.
        blob: BlobId,
        /// Its permissions, as `chmod` has them, without set-user-ID and set-group-ID bits: no undo gives
        /// a file such a bit.
        mode: u32,
        /// Its size in bytes.
        size: u64,
    },
    /// A symbolic link.
    Link {
        /// What it leads to, as it says; escaped.
        target: String,
    },
    /// A folder.
    Folder {
        /// Its permissions, as `chmod` has them.
        mode: u32,
    },
    /// Something that is not stored.
    Unkept {
        /// Why.
        why: NotStored,
        /// What tells whether it is still the same.
        is: Identity,
    },
}

/// Why something is not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NotStored {
    /// The file is larger than `checkpoint_file_bytes`.
    Large,
    /// There was no room for it within `checkpoint_max_bytes`.
    Room,
    /// It is neither a file nor a link nor a folder.
    Other,
    /// It could not be read.
    Unreadable,
    /// It is the `.git` of a repository.
    Repository,
}

impl TreeEntry {
    /// Something that is not stored and of which this is told.
    pub(super) fn unkept(why: NotStored, facts: &FileStat, size: u64) -> Self {
        Self::Unkept { why, is: Identity::of(facts, size) }
    }

    /// Something at a path that cannot be looked at: nothing is known of it but where it is.
    pub(super) fn unreadable_at(path: &str) -> Self {
        Self::Unkept { why: NotStored::Unreadable, is: Identity::At(path.to_owned()) }
    }

    /// The `.git` folder of a repository. Git writes in it at any time, so nothing tells that it is as it was.
    pub(super) fn repository_at(path: &str) -> Self {
        Self::Unkept { why: NotStored::Repository, is: Identity::At(path.to_owned()) }
    }

    /// The content of a file that is stored.
    pub fn blob(&self) -> Option<&BlobId> {
        match self {
            Self::File { blob, .. } => Some(blob),
            _ => None,
        }
    }

    /// Its permissions, as `chmod` has them, where they are known.
    pub fn mode(&self) -> Option<u32> {
        match self {
            Self::File { mode, .. } | Self::Folder { mode } => Some(*mode),
            Self::Link { .. } | Self::Unkept { .. } => None,
        }
    }

    /// Why it is not stored, if that is so.
    pub fn not_stored(&self) -> Option<NotStored> {
        match self {
            Self::Unkept { why, .. } => Some(*why),
            _ => None,
        }
    }

    /// Whether nothing is known of it, or of its content, since it could not be read.
    pub fn is_unreadable(&self) -> bool {
        self.not_stored() == Some(NotStored::Unreadable)
    }

    /// Whether where it is, that path, is all that is known of it.
    pub(super) fn is_unknown_at(&self, path: &str) -> bool {
        matches!(self, Self::Unkept { why: NotStored::Unreadable, is: Identity::At(at) } if at == path)
    }

    /// Whether it is a folder.
    pub fn is_folder(&self) -> bool {
        matches!(self, Self::Folder { .. })
    }

    /// What tells a file that is not stored from others, also after a rename.
    pub(super) fn lasting(&self) -> Option<Lasting> {
        match self {
            Self::Unkept { is, .. } => is.lasting(),
            _ => None,
        }
    }
}

impl NotStored {
    /// A phrase for people.
    pub fn in_words(self) -> &'static str {
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

/// Whether both are the same; a rename makes no other file of one that is not stored.
pub(super) fn is_same(one: Option<&TreeEntry>, other: Option<&TreeEntry>) -> bool {
    let lasting = |entry: Option<&TreeEntry>| entry.and_then(TreeEntry::lasting);
    one == other || lasting(one).is_some() && lasting(one) == lasting(other)
}

/// That of these changes, in the order of their paths, which is of this one.
pub(super) fn change_at<'a>(changes: &'a [Change], path: &str) -> Option<&'a Change> {
    let found = changes.binary_search_by(|change| change.path.as_str().cmp(path));
    found.ok().map(|n| &changes[n])
}

/// How something in the workspace changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// Where, from the root, which is empty itself; names that are not UTF-8 are escaped.
    pub path: String,
    /// What stood there; None where nothing did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<TreeEntry>,
    /// What stands there since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<TreeEntry>,
    /// Whether somebody else changed it in between, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mixed: bool,
    /// Whether a command of the turn changed it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_command: bool,
    /// Whether rules leave it out: it is put back only where nothing stands.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ignored: bool,
}

impl Change {
    /// What stood there, and what does.
    pub fn of(path: String, before: Option<TreeEntry>, after: Option<TreeEntry>) -> Self {
        Self { path, before, after, mixed: false, by_command: false, ignored: false }
    }

    /// The contents of both sides, as far as they are kept.
    pub fn blobs(&self) -> impl Iterator<Item = &BlobId> {
        [&self.before, &self.after].into_iter().flatten().filter_map(TreeEntry::blob)
    }

    /// Where it is, as operations name it; None where they cannot.
    pub fn place(&self) -> Option<RelPath> {
        RelPath::parse(unescaped(&self.path).to_str()?).ok()
    }

    /// Its path for people.
    pub fn shown(&self) -> String {
        if self.path.is_empty() { ".".to_owned() } else { shown_path(&self.path) }
    }
}

/// An escaped path for people.
pub(super) fn shown_path(path: &str) -> String {
    visible_line(&shown(path)).into_owned()
}

/// These changes, one list after the other, as one list: of each place what stood there first, and
/// what does in the end. Where it was something else in between than what the list before left, somebody
/// else changed it.
pub fn composed(lists: impl IntoIterator<Item = Vec<Change>>) -> Vec<Change> {
    let mut all: BTreeMap<String, Change> = BTreeMap::new();
    for change in lists.into_iter().flatten() {
        match all.get_mut(&change.path) {
            None => drop(all.insert(change.path.clone(), change)),
            Some(known) => {
                let goes_on = is_same(known.after.as_ref(), change.before.as_ref());
                known.mixed |= change.mixed || !goes_on;
                known.by_command |= change.by_command;
                known.ignored |= change.ignored;
                known.after = change.after;
            }
        }
    }
    let counts = |change: &Change| change.before != change.after || change.mixed;
    all.into_values().filter(counts).collect()
}

/// The same changes the other way round.
pub fn reversed(changes: Vec<Change>) -> Vec<Change> {
    let turned = |mut change: Change| {
        std::mem::swap(&mut change.before, &mut change.after);
        change
    };
    changes.into_iter().map(turned).collect()
}

/// What tells whether something is the same that cannot be compared otherwise.
///
/// It is kept as text: five numbers, or a colon and a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Identity {
    /// What was told of it.
    Told(Lasting, i128),
    /// Where it is: nothing could be told of it.
    At(String),
}

/// What a rename leaves of what is told of a file: all but the time at which anything of it was last changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lasting {
    inode: u64,
    mode: u32,
    size: u64,
    written: i128,
}

impl Identity {
    pub(super) fn of(facts: &FileStat, size: u64) -> Self {
        let FileStat { inode, mode, written, changed, .. } = *facts;
        Self::Told(Lasting { inode, mode, size, written }, changed)
    }

    /// What of it a rename leaves; None where it does not tell one file from others.
    pub(super) fn lasting(&self) -> Option<Lasting> {
        match self {
            // Some systems tell neither a number nor that time.
            Self::Told(lasting, changed) if lasting.inode != 0 && *changed != 0 => Some(*lasting),
            Self::Told(..) | Self::At(_) => None,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let inode = words.next()?.parse().ok()?;
        let mode = u32::from_str_radix(words.next()?, 8).ok()?;
        let size = words.next()?.parse().ok()?;
        let (written, changed) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let told = Self::Told(Lasting { inode, mode, size, written }, changed);
        words.next().is_none().then_some(told)
    }
}

impl From<String> for Identity {
    fn from(text: String) -> Self {
        if let Some(path) = text.strip_prefix(':') {
            return Self::At(path.to_owned());
        }
        // Former versions wrote paths without the colon.
        Self::parse(&text).unwrap_or(Self::At(text))
    }
}

impl From<Identity> for String {
    fn from(identity: Identity) -> Self {
        match identity {
            Identity::Told(Lasting { inode, mode, size, written }, changed) => {
                format!("{inode} {mode:o} {size} {written} {changed}")
            }
            Identity::At(path) => format!(":{path}"),
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
        let told = Identity::of(&facts, 3);
        assert!(told.lasting().is_some());
        let text = String::from(told.clone());
        assert_eq!(Identity::from(text.clone()), told);
        let named = Identity::At(text);
        assert_eq!((named.lasting(), Identity::from(String::from(named.clone()))), (None, named));
        for other in ["1 2 3 4", "1 2 3 4 5 6", "-1 2 3 4 5", "1 9 3 4 5", "1 2 -3 4 5", "a/b"] {
            assert_eq!(Identity::from(other.to_owned()), Identity::At(other.to_owned()));
        }
        assert_eq!(Identity::of(&FileStat { inode: 0, ..facts }, 3).lasting(), None);
        assert_eq!(Identity::of(&FileStat { changed: 0, ..facts }, 3).lasting(), None);
    }

    fn change(path: &str, before: Option<u32>, after: Option<u32>) -> Change {
        let what = |mode: Option<u32>| mode.map(|mode| TreeEntry::Folder { mode });
        Change::of(path.into(), what(before), what(after))
    }

    #[test]
    fn the_first_and_the_last_count_and_what_is_between_is_told() {
        let first = vec![change("a", None, Some(1)), change("b", Some(1), Some(2))];
        let then = vec![change("a", Some(1), None), change("b", Some(3), Some(4))];
        let both = composed([first, then]);
        assert_eq!(both, [Change { mixed: true, ..change("b", Some(1), Some(4)) }]);
        let back = reversed(both);
        assert_eq!(back, [Change { mixed: true, ..change("b", Some(4), Some(1)) }]);
    }
}
