//! What a file's number tells: whether it is one that was seen, and whether that is as it was.

use serde::{Deserialize, Serialize};

use super::index::Known;
use super::{What, Why};
use crate::workspace::walk::EntryKind;
use crate::workspace::walk::detailed::{FileStat, WalkEntry};

impl Known {
    /// Whether it is known to be as it was.
    pub(super) fn holds_for(&self, met: &WalkEntry) -> bool {
        let same_sort = match (&self.what, met.kind) {
            (What::Folder { .. }, None)
            | (What::Link { .. }, Some(EntryKind::Link))
            | (What::File { .. }, Some(EntryKind::File)) => true,
            (What::Unkept { why, .. }, Some(_)) => *why != Why::Unreadable,
            _ => false,
        };
        let same = self.facts == met.facts && self.facts.is_number_of(&met.facts);
        self.sure && same_sort && same && self.size == met.size
    }
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

    #[test]
    fn a_number_counts_on_its_own_file_system() {
        let at = |device, inode| FileStat { device, inode, ..FileStat::default() };
        let (what, path, size) = (What::Link { target: "x".into() }, "l".to_owned(), 1);
        let known = |device| Known { what: what.clone(), facts: at(device, 7), size, sure: true };
        let met = |device| {
            let (path, kind, facts) = (path.clone(), Some(EntryKind::Link), at(device, 7));
            WalkEntry { path, kind, size, facts }
        };
        assert!(known(1).holds_for(&met(1)) && known(0).holds_for(&met(1)));
        assert!(!known(1).holds_for(&met(2)));
    }
}
