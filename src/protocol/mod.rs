//! The operations of replies and their outcomes, as values. This module uses no files, clocks or processes.
//!
//! Every dialect is parsed into the same [`Operation`]s, and every result is the same [`Outcome`]. Differences between
//! dialects are data in the operation. Parsing never fails: a malformed block is a [`Step`] with an [`Invalid`].

mod bounded;
mod content_checks;
mod effect;
mod file_version;
pub mod jsonrpc;
mod mistake;
mod operation;
pub mod operations;
mod outcome;
mod output;
mod path;
mod reply;
mod returns;
pub mod tags;

use serde::{Deserialize, Serialize};

pub use content_checks::diff::diff_line;
pub use content_checks::elision;
pub(crate) use content_checks::{is_code, may_be_patch};
pub use effect::{
    Count, Digest, Effect, EntryKind, FileEffect, LeftOut, MoveEffect, MoveFacts, PathFacts,
};
pub use file_version::{Excerpt, FileVersion, FuzzyMatch, Likeness, PresentFile, Revision};
pub use mistake::{Invalid, Mistake, Warning, WarningKind, code};
pub use operation::{
    Change, Existing, Kind, LineRange, Operation, Part, Reading, Replacement, SentValues,
    ShellCommand, Step, StepContent, Streams, TextOrBytes,
};
pub use outcome::{Detail, Ending, Execution, Failure, FailureKind, HIT_WIDTH, Hit, Outcome};
pub use output::{Capture, CommandOutput};
pub use path::{PathFault, RelPath};
pub use reply::{ParsedReply, Reply, ReplyAddress, parsed, read, read_run};

/// The dialect of a session's outboxes. Replies may be in either dialect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Dialect {
    /// Blocks between tags.
    #[default]
    Tags,
    /// The JSON operations of Agent Spaces, which are answered by events.
    Operations,
}
