//! What replies say and what comes of it, as values. PURE: nothing here touches a file, a clock or
//! a process.
//!
//! Every dialect is read into the same [`Operation`]s, and every result leaves as the same
//! [`Outcome`]. What differs between dialects is data on the operation. Reading never fails: a
//! block that cannot be understood is a [`Step`] that carries an [`Invalid`].

mod effect;
pub mod operations;
mod outcome;
mod path;
pub mod tags;

use serde::{Deserialize, Serialize};

pub use effect::{Digest, Effect, FileEffect};
pub use outcome::{Capture, Detail, Ending, Execution, Failure, FailureKind, Outcome};
pub use path::{PathFault, RelPath};

/// One thing that a reply asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "type")]
pub enum Operation {
    /// Show a text to the person.
    Message {
        /// The text, without a final newline.
        text: String,
    },
    /// Make a file, its parent folders too.
    Create {
        /// Where.
        path: RelPath,
        /// All of its text.
        content: String,
        /// What to do where a file already stands.
        existing: Existing,
    },
    /// Change part of a file that exists.
    Edit {
        /// Which file.
        path: RelPath,
        /// What to change in it.
        change: Change,
    },
    /// Remove a file.
    Delete {
        /// Which file.
        path: RelPath,
    },
    /// Give the contents of a file in the next outbox.
    Read {
        /// Which file.
        path: RelPath,
    },
    /// Run a shell command at the workspace root.
    Run {
        /// What the shell is given.
        command: String,
    },
    /// The task is complete; ends the session.
    Done {
        /// What was accomplished, without a final newline.
        summary: String,
    },
}

/// What [`Operation::Create`] does where a file already stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Existing {
    /// Its content is replaced.
    Replace,
    /// The operation fails.
    Fail,
}

/// What [`Operation::Edit`] changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    /// Lines `start` to `end` (counted from 1, both included) become `with`.
    #[serde(rename_all = "camelCase")]
    Lines {
        /// The first line to replace.
        start: usize,
        /// The last line to replace.
        end: usize,
        /// Whole lines, each with its `\n`; empty to remove the range.
        with: String,
    },
}

/// Which operation something is about; the dialects have their own names for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Kind {
    /// [`Operation::Message`]
    Message,
    /// [`Operation::Create`]
    Create,
    /// [`Operation::Edit`]
    Edit,
    /// [`Operation::Delete`]
    Delete,
    /// [`Operation::Read`]
    Read,
    /// [`Operation::Run`]
    Run,
    /// [`Operation::Done`]
    Done,
    /// The reply as a whole, where there is no operation to blame.
    Reply,
}

impl Operation {
    /// Which of the operations it is.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Message { .. } => Kind::Message,
            Self::Create { .. } => Kind::Create,
            Self::Edit { .. } => Kind::Edit,
            Self::Delete { .. } => Kind::Delete,
            Self::Read { .. } => Kind::Read,
            Self::Run { .. } => Kind::Run,
            Self::Done { .. } => Kind::Done,
        }
    }

    /// The file it is about, if it is about one.
    pub fn path(&self) -> Option<&RelPath> {
        match self {
            Self::Create { path, .. }
            | Self::Edit { path, .. }
            | Self::Delete { path }
            | Self::Read { path } => Some(path),
            Self::Message { .. } | Self::Run { .. } | Self::Done { .. } => None,
        }
    }
}

/// One block of a reply, in its place: something to do, or something that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// The line of the reply that the block begins on, counted from 1.
    pub line: usize,
    /// What the block asks for.
    pub asks: Asks,
    /// What was repaired in reading it, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// What a block came to in reading.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Asks {
    /// Something that can be tried.
    Operation(Operation),
    /// Something malformed, to be reported and not tried.
    Invalid(Invalid),
}

impl Step {
    /// Which operation the block is, or was meant to be.
    pub fn kind(&self) -> Kind {
        match &self.asks {
            Asks::Operation(operation) => operation.kind(),
            Asks::Invalid(invalid) => invalid.kind,
        }
    }
}

/// A malformed block: what it was meant to be and what is wrong with it, in words that let the LLM
/// send it right.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Invalid {
    /// What the block was meant to be.
    pub kind: Kind,
    /// Whether it was refused for safety rather than misunderstood.
    pub rejected: bool,
    /// The reason, with the line and the correct form.
    pub reason: String,
}
