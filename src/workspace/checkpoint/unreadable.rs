//! What no scan could meet, since a folder above it cannot be listed or searched: what stands there is
//! unknown, which is not the same as nothing.

use std::collections::BTreeSet;
use std::ops::Bound;

use serde::{Deserialize, Serialize};

use super::tree::Identity;
use super::{NotStored, TreeEntry};

/// Where a scan could not see: folders with a `/` at their end (the root is empty), all below which is
/// hidden, and single entries with all below them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "BTreeSet<String>", into = "BTreeSet<String>")]
pub(super) struct Unreadable {
    places: BTreeSet<String>,
    /// The same with a `/` at the end of each, without those that lie below another.
    highest: BTreeSet<String>,
}

impl Unreadable {
    /// Whether what stands at an escaped path could not be met.
    pub(super) fn hides(&self, path: &str) -> bool {
        // What stands between a folder and a path below it in this order lies below that folder too.
        let last =
            self.highest.range::<str, _>((Bound::Unbounded, Bound::Included(path))).next_back();
        last.is_some_and(|folder| path.starts_with(folder.as_str())) || self.places.contains(path)
    }
}

impl From<BTreeSet<String>> for Unreadable {
    fn from(places: BTreeSet<String>) -> Self {
        let with_slash = |place: &String| match place.as_str() {
            "" => String::new(),
            place => format!("{}/", place.trim_end_matches('/')),
        };
        let all: BTreeSet<String> = places.iter().map(with_slash).collect();
        let mut highest: BTreeSet<String> = BTreeSet::new();
        for place in all {
            if highest.last().is_none_or(|last| !place.starts_with(last.as_str())) {
                highest.insert(place);
            }
        }
        Self { places, highest }
    }
}

impl From<Unreadable> for BTreeSet<String> {
    fn from(hidden: Unreadable) -> Self {
        hidden.places
    }
}

/// Whether where it is is all that is known of what stood at this path.
pub(super) fn is_unknown(path: &str, entry: Option<&TreeEntry>) -> bool {
    matches!(entry, Some(TreeEntry::Unkept { why: NotStored::Unreadable, is: Identity::At(at) }) if at == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_below_a_folder_is_hidden_with_it_and_an_entry_by_itself() {
        let places = ["d/", "d/e", "d/e/x/", "e/f", "e/f-g", "e/f-g/"].map(str::to_owned);
        let hidden = Unreadable::from(BTreeSet::from(places));
        for (path, is_hidden) in [
            ("d", false),
            ("d/x", true),
            ("d/e/x", true),
            ("dx", false),
            ("e/f", true),
            ("e/f/g", true),
            ("e/fg", false),
            ("e/f-g/h", true),
            ("e/f-", false),
            ("e/f-gh", false),
            ("e", false),
            ("", false),
        ] {
            assert_eq!(hidden.hides(path), is_hidden, "{path}");
        }
        assert!(Unreadable::from(BTreeSet::from([String::new()])).hides("x"));
        assert!(!Unreadable::default().hides("x"));
    }
}
