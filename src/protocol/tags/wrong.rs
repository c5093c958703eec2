//! What is wrong with a tag or a body, before it is told.

use crate::protocol::Mistake;

/// A mistake: of what sort it is, and a phrase that says what is wrong.
#[derive(Debug, Clone)]
pub(super) struct Wrong {
    pub(super) sort: Mistake,
    pub(super) phrase: String,
}

/// A mistake of that sort.
pub(super) fn wrong(sort: Mistake, phrase: impl Into<String>) -> Wrong {
    Wrong { sort, phrase: phrase.into() }
}
