//! What replies say and what comes of it, as values. PURE: nothing here touches a file, a clock or
//! a process.
//!
//! Every dialect is read into the same [`Operation`]s, and every result leaves as the same
//! [`Outcome`]. What differs between dialects is data on the operation. Reading never fails: a
//! block that cannot be understood is a [`Step`] that carries an [`Invalid`].

mod bounded;
mod command;
mod content;
mod content_checks;
mod effect;
pub mod jsonrpc;
mod letter;
mod lines;
mod mistake;
pub mod operations;
mod outcome;
mod output;
mod path;
mod reply;
mod returns;
mod seen;
pub mod tags;
mod warning;

use serde::{Deserialize, Serialize};

pub use command::{ShellCommand, Streams};
pub use content::Content;
pub use content_checks::diff::diff_line;
pub use content_checks::elision;
pub(crate) use content_checks::{is_code, may_be_patch};
pub use effect::{Digest, Effect, FileEffect, MoveEffect, MoveLook};
pub use letter::{Letter, parsed};
pub use lines::Lines;
pub use mistake::{Invalid, Mistake, code};
pub use outcome::{Detail, Ending, Execution, Failure, FailureKind, HIT_WIDTH, Hit, Outcome};
pub use output::{Capture, Output};
pub use path::{PathFault, RelPath};
pub use reply::{Address, Reply, ends_early, read, read_run};
pub use seen::{Excerpt, Fresh, Likeness, Loosely, Revision, Seen};
pub use warning::{Warning, WarningSort};

/// The language between deaddrop and an LLM: what its outboxes teach and how they tell results.
/// Replies are understood in either.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Dialect {
    /// Blocks between tags.
    #[default]
    Tags,
    /// The JSON operations of Agent Spaces, answered by events.
    Operations,
}

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
        /// All of it.
        content: Content,
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
    /// Give the contents of a file.
    Read {
        /// Which file.
        path: RelPath,
        /// When, and how.
        #[serde(default)]
        reading: Reading,
    },
    /// Name the files below a folder.
    List {
        /// Which folder; None for the workspace itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<RelPath>,
    },
    /// Find the lines that a pattern matches.
    Search {
        /// A regular expression.
        pattern: String,
        /// The file or folder to look in; None for the workspace itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<RelPath>,
    },
    /// Give a file or a folder another name or place, where nothing stands yet.
    Move {
        /// What.
        path: RelPath,
        /// Where to, its own name included.
        to: RelPath,
    },
    /// Run a shell command.
    Run(ShellCommand),
    /// The task is complete; ends the session.
    Done {
        /// What was accomplished, without a final newline.
        summary: String,
        /// Whether it counts only where every operation before it succeeded.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        if_ok: bool,
    },
}

/// When a file is read that [`Operation::Read`] asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Reading {
    /// After all operations of the reply; that part stands in the next outbox as it is then.
    Later(Part),
    /// In its place among the operations; the outcome holds it in this encoding.
    Now(operations::Encoding),
}

impl Default for Reading {
    fn default() -> Self {
        Self::Later(Part::default())
    }
}

/// Which lines of a file are shown, and how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Part {
    /// The first line, counted from 1; None for the file's first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<usize>,
    /// The last line, included; None for the file's last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<usize>,
    /// Whether each line stands behind its number.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub numbered: bool,
}

impl Part {
    /// Whether it is all of the file, as it is.
    pub fn is_whole(&self) -> bool {
        *self == Self::default()
    }
}

/// What [`Operation::Create`] does where a file already stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Existing {
    /// Its content is replaced.
    Replace,
    /// The same, unless a line of the new content stands for others that would be lost: see
    /// [`elision`].
    ReplaceWhole,
    /// The operation fails.
    Fail,
}

impl Existing {
    /// What is done with a file that is to be replaced by `content`.
    pub fn replaced_by(content: &str) -> Self {
        if elision::may_leave_out(content) { Self::ReplaceWhole } else { Self::Replace }
    }
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
        /// What the file was like when who sent this last saw it: it fails on another one. None where
        /// they never did. Filled in when it is about to be carried out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seen: Option<Seen>,
    },
    /// Each of these, in order, replaces the first occurrence of a text, literally: all or none.
    First(Vec<Replacement>),
    /// Each of these, in order, replaces whole lines that occur once, be it only with white space at
    /// their ends or look-alike punctuation left out of account: all or none.
    Once(Vec<Replacement>),
}

/// One text for another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Replacement {
    /// What is to be found.
    pub old: String,
    /// What stands in its place then.
    pub new: String,
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
    /// [`Operation::List`]
    List,
    /// [`Operation::Search`]
    Search,
    /// [`Operation::Move`]
    Move,
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
            Self::List { .. } => Kind::List,
            Self::Search { .. } => Kind::Search,
            Self::Move { .. } => Kind::Move,
            Self::Run(_) => Kind::Run,
            Self::Done { .. } => Kind::Done,
        }
    }

    /// The file or folder it is about, if it is about one; of a move what is moved.
    pub fn path(&self) -> Option<&RelPath> {
        match self {
            Self::Create { path, .. }
            | Self::Edit { path, .. }
            | Self::Delete { path }
            | Self::Read { path, .. }
            | Self::Move { path, .. } => Some(path),
            Self::List { path } | Self::Search { path, .. } => path.as_ref(),
            Self::Message { .. } | Self::Run(_) | Self::Done { .. } => None,
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
    /// Whether the reply cannot be read beyond it, so that it and all that followed is to be sent
    /// again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends: bool,
    /// Of what ends the session only if all is well: whether the reply holds a whole tag that was read
    /// as words, so that it does not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub passes_over: bool,
    /// What was repaired in reading it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// What an event will know it by; only where the session's dialect is operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Asked>,
    /// Its opening tag as it stands in the reply, cut where it is long; None where it stands there as it is
    /// written for the operation, or the reply has no tags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_sent: Option<String>,
}

/// What a block was, in the words it was sent in: what an event repeats of its operation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Asked {
    /// The id that the LLM gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The path or the command as it was sent; empty where it is about neither.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
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
    /// What begins on that line and asks for that, with nothing more to say of it.
    pub(in crate::protocol) fn new(line: usize, asks: Asks) -> Self {
        Self {
            line,
            asks,
            ends: false,
            passes_over: false,
            warnings: Vec::new(),
            asked: None,
            as_sent: None,
        }
    }

    /// A reply that is refused as a whole, or a part of it that has no operation to blame.
    pub(in crate::protocol) fn refused(
        line: usize,
        sort: Mistake,
        reason: impl Into<String>,
    ) -> Self {
        let (kind, reason) = (Kind::Reply, reason.into());
        Self::new(line, Asks::Invalid(Invalid { kind, sort, rejected: false, reason }))
    }

    /// Which operation the block is, or was meant to be.
    pub fn kind(&self) -> Kind {
        match &self.asks {
            Asks::Operation(operation) => operation.kind(),
            Asks::Invalid(invalid) => invalid.kind,
        }
    }
}
