//! What no look could meet, since a folder above it cannot be listed or searched: what stands there is
//! unknown, which is not the same as nothing.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::look::Difference;
use super::numbers::Identity;
use super::plan::ancestors;
use super::{What, Why};
use crate::workspace::walk::close::Facts;

/// Where a look could not see: folders with a `/` at their end (the root is empty), all below which is
/// hidden, and single entries with all below them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Hidden(BTreeSet<String>);

impl Hidden {
    pub(super) fn of(unreadable: Vec<String>) -> Self {
        Self(unreadable.into_iter().collect())
    }

    /// Whether what stands at an escaped path could not be met.
    pub(super) fn hides(&self, path: &str) -> bool {
        !self.0.is_empty()
            && (self.0.contains("")
                || ancestors(path).any(|above| {
                    self.0.contains(above) || above != path && self.0.contains(&format!("{above}/"))
                }))
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
        let is_old = |facts: &Facts| facts.changed != 0 && facts.changed < since.into();
        self.was_hidden() && self.stranger.as_ref().is_some_and(|(facts, _)| is_old(facts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_below_a_folder_is_hidden_with_it_and_an_entry_by_itself() {
        let hidden = Hidden::of(vec!["d/".to_owned(), "e/f".to_owned()]);
        for (path, is_hidden) in [
            ("d", false),
            ("d/x", true),
            ("d/e/x", true),
            ("dx", false),
            ("e/f", true),
            ("e/f/g", true),
            ("e/fg", false),
            ("", false),
        ] {
            assert_eq!(hidden.hides(path), is_hidden, "{path}");
        }
        assert!(Hidden::of(vec![String::new()]).hides("x"));
        assert!(!Hidden::default().hides("x"));
    }
}
