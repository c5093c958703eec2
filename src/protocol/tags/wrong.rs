//! What is wrong with a block.

use regex::Regex;
use serde::Deserialize;

use crate::protocol::content_checks::pattern;
pub(in crate::protocol) use crate::protocol::mistake::Problem;
use crate::protocol::{Kind, Mistake, PathFault};

/// What is wrong, by its code.
pub(super) fn wrong(mistake: Mistake, phrase: impl Into<String>) -> Problem {
    Problem::new(mistake, phrase)
}

/// Why a block cannot be used.
pub(super) enum Fault {
    /// A path is not inside the workspace. `given` is the value as it was sent.
    Outside {
        given: String,
        fault: PathFault,
    },
    Problem(Problem),
}

impl From<Problem> for Fault {
    fn from(wrong: Problem) -> Self {
        Self::Problem(wrong)
    }
}

/// What is refused if a pattern matches it: a row of a table.
#[derive(Deserialize)]
pub(super) struct Refused {
    #[serde(deserialize_with = "pattern")]
    pub(super) pattern: Regex,
    pub(super) mistake: Mistake,
    pub(super) phrase: String,
    /// The commands that an attribute is refused for.
    #[serde(default)]
    pub(super) kinds: Vec<Kind>,
    /// Whether a path is refused also after `./`.
    #[serde(default)]
    pub(super) always: bool,
}
