//! What is noted of a turn on the way, so that it can be taken up again, and what it comes to.

use serde::{Deserialize, Serialize};

use super::{Change, KeptRules, LeftAside, Mark, What};

/// What must not be forgotten before an operation is carried out: all that it says is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Noted {
    /// What stood where something is about to change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) stood: Vec<(String, Option<What>)>,
    /// What all of the workspace was like before the first command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) all: Option<Mark>,
    /// When that was looked at, as files get it for their times, in nanoseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) since: Option<i64>,
    /// What an operation is about to change after a command has run, and whether that had changed it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) touched: Vec<(String, bool)>,
    /// What operations had left there before one more command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) left: Vec<(String, Option<What>)>,
    /// Why nothing of this turn can be taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) failed: Option<String>,
}

/// What a turn changed.
#[derive(Debug)]
pub struct Recorded {
    /// All that it changed, by path; else why that is not known.
    pub changes: Result<Vec<Change>, String>,
    /// The rules that the rest of the turn is to go by, where it has stopped to ask.
    pub rules: Option<KeptRules>,
    /// What changed beside that while its commands ran and is not kept, since rules leave it out; as far as
    /// that is known.
    pub ignored: Vec<LeftAside>,
}
