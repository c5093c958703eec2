//! What is wrong with a tag or a body, before it is told.

use crate::protocol::Mistake;
pub(in crate::protocol) use crate::protocol::mistake::Problem as Wrong;

/// A mistake of that sort.
pub(super) fn wrong(sort: Mistake, phrase: impl Into<String>) -> Wrong {
    Wrong::new(sort, phrase)
}
