//! Why a block cannot be used.

use regex::Regex;
use serde::Deserialize;

use crate::protocol::content_checks::pattern;
use crate::protocol::mistake::Problem;
use crate::protocol::{Kind, Mistake, PathFault};

/// What is wrong with a block.
pub(super) enum TagError {
    /// A path is not inside the workspace. `given` is the value as it was sent.
    PathOutside {
        given: String,
        fault: PathFault,
    },
    Problem(Problem),
}

impl From<Problem> for TagError {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

/// A row of a table: what its pattern matches is refused.
#[derive(Deserialize)]
pub(super) struct RefusedPattern {
    #[serde(deserialize_with = "pattern")]
    pub(super) pattern: Regex,
    pub(super) mistake: Mistake,
    pub(super) phrase: String,
    /// The commands for which an attribute is refused.
    #[serde(default)]
    pub(super) kinds: Vec<Kind>,
    /// Whether a path is refused even after `./`.
    #[serde(default)]
    pub(super) always: bool,
}
