//! What is wrong with a tag or a body, before it is told.

use crate::protocol::Mistake;

/// A mistake: of what sort it is, and a phrase that says what is wrong.
#[derive(Debug, Clone)]
pub(in crate::protocol) struct Wrong {
    pub(in crate::protocol) sort: Mistake,
    pub(in crate::protocol) phrase: String,
}

/// A mistake of that sort.
pub(super) fn wrong(sort: Mistake, phrase: impl Into<String>) -> Wrong {
    Wrong { sort, phrase: phrase.into() }
}
