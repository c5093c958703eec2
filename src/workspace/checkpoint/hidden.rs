//! What no look could meet, since a folder above it cannot be listed or searched: what stands there is
//! unknown, which is not the same as nothing.

use std::collections::BTreeSet;
use std::ops::Bound;

use serde::{Deserialize, Serialize};

use super::look::Difference;
use super::numbers::Identity;
use super::{What, Why};
use crate::workspace::walk::detailed::FileStat;

/// Where a look could not see: folders with a `/` at their end (the root is empty), all below which is
/// hidden, and single entries with all below them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "BTreeSet<String>", into = "BTreeSet<String>")]
pub(super) struct Hidden {
    places: BTreeSet<String>,
    /// The same with a `/` at the end of each, without those that lie below another.
    highest: BTreeSet<String>,
}

impl Hidden {
    pub(super) fn of(unreadable: Vec<String>) -> Self {
        unreadable.into_iter().collect::<BTreeSet<_>>().into()
    }

    /// Whether what stands at an escaped path could not be met.
    pub(super) fn hides(&self, path: &str) -> bool {
        // What stands between a folder and a path below it in this order lies below that folder too.
        let last =
            self.highest.range::<str, _>((Bound::Unbounded, Bound::Included(path))).next_back();
        last.is_some_and(|folder| path.starts_with(folder.as_str())) || self.places.contains(path)
    }
}

impl From<BTreeSet<String>> for Hidden {
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

impl From<Hidden> for BTreeSet<String> {
    fn from(hidden: Hidden) -> Self {
        hidden.places
    }
}

/// Of what cannot be looked at nothing is known but where it is.
pub(super) fn unreadable_at(path: &str) -> What {
    What::Unkept { why: Why::Unreadable, is: Identity::At(path.to_owned()) }
}

/// Whether that is all that is known of what stood at this path.
pub(super) fn is_unknown(path: &str, what: Option<&What>) -> bool {
    matches!(what, Some(What::Unkept { why: Why::Unreadable, is: Identity::At(at) }) if at == path)
}

impl Difference {
    /// Whether it could not be met before.
    pub(super) fn was_hidden(&self) -> bool {
        is_unknown(&self.path, self.before.as_ref())
    }

    /// Whether it was hidden before, and is unchanged since then: all that a command did is to let it be
    /// seen.
    pub(super) fn was_only_hidden(&self, since: i64) -> bool {
        let is_old = |facts: &FileStat| facts.changed != 0 && facts.changed < since.into();
        self.was_hidden() && self.facts.as_ref().is_some_and(|(facts, _)| is_old(facts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_below_a_folder_is_hidden_with_it_and_an_entry_by_itself() {
        let places = ["d/", "d/e", "d/e/x/", "e/f", "e/f-g", "e/f-g/"].map(str::to_owned);
        let hidden = Hidden::of(places.to_vec());
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
        assert!(Hidden::of(vec![String::new()]).hides("x"));
        assert!(!Hidden::default().hides("x"));
    }
}
