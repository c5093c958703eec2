//! The operations that a reply requests, in the same form for every dialect.
#![expect(missing_docs, reason = "the names say what most fields and variants are")]

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::operations::Encoding;
use super::{FileVersion, Invalid, Mistake, RelPath, Warning, elision};

/// One operation that a reply requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "type")]
pub enum Operation {
    /// Show a text, without a final newline, to the person.
    Message { text: String },
    /// Create a file, and its parent folders.
    Create { path: RelPath, content: TextOrBytes, existing: Existing },
    /// Change part of a file that exists.
    Edit { path: RelPath, change: Change },
    /// Delete a file.
    Delete { path: RelPath },
    /// Show the content of a file.
    Read {
        path: RelPath,
        #[serde(default)]
        reading: Reading,
    },
    /// List the files below a folder (None: the workspace).
    List {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<RelPath>,
    },
    /// Find the lines that match a regular expression, in a file or below a folder (None: the workspace).
    Search {
        pattern: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<RelPath>,
    },
    /// Move a file or a folder to a path that does not exist yet.
    Move { path: RelPath, to: RelPath },
    /// Run a shell command.
    Run(ShellCommand),
    /// Complete the task, which ends the session.
    Done {
        /// The summary, without a final newline.
        summary: String,
        /// Whether the session ends only if all operations before this one succeeded.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        if_ok: bool,
    },
}

/// When [`Operation::Read`] reads the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Reading {
    /// After all operations of the reply. The next outbox shows this part of the file as it is then.
    Later(Part),
    /// Like `Later`, but for the lines of the definition with this name, such as `Store.load`.
    Definition(String),
    /// In its place among the operations. The outcome contains the file in this encoding.
    Now(Encoding),
}

impl Default for Reading {
    fn default() -> Self {
        Self::Later(Part::default())
    }
}

/// The lines of a file that are shown, and how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Part {
    /// The first line, counted from 1; None for the first line of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<usize>,
    /// The last line, included in the part; None for the last line of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<usize>,
    /// Whether each line is shown after its number.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub numbered: bool,
}

impl Part {
    /// Whether this is the whole file without line numbers.
    pub fn is_whole(&self) -> bool {
        *self == Self::default()
    }
}

/// What [`Operation::Create`] does if the file exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Existing {
    Replace,
    /// Replace its content, unless a new line is a placeholder for lines that would be lost (see [`elision`]).
    ReplaceWhole,
    Fail,
}

impl Existing {
    /// Whether the current content of the file must be compared with `content` before it is replaced.
    pub fn must_compare_with(self, content: &[u8]) -> bool {
        self == Self::ReplaceWhole && str::from_utf8(content).is_ok_and(elision::may_leave_out)
    }
}

/// What [`Operation::Edit`] changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    /// Replace lines `start` to `end` (counted from 1, both included).
    #[serde(rename_all = "camelCase")]
    Lines {
        start: usize,
        end: usize,
        /// Complete lines, each ending in `\n`; empty to delete the lines.
        with: String,
        /// The file version that the model saw last; the edit fails for any other version. None if the model never saw
        /// the file. Set when the edit is executed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seen: Option<FileVersion>,
    },
    /// Replace the first occurrence of each text, in order. Either all are replaced or none.
    First(Vec<Replacement>),
    /// Replace texts that consist of whole lines and occur once, in order. Either all are replaced or none. White space
    /// at the ends of lines and look-alike punctuation may differ.
    Once(Vec<Replacement>),
}

/// A text and its replacement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Replacement {
    pub old: String,
    pub new: String,
}

/// The kinds of operations. Dialects have their own names for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Kind {
    Message,
    Create,
    Edit,
    Delete,
    Read,
    List,
    Search,
    Move,
    Run,
    Done,
    /// The reply as a whole.
    Reply,
}

impl Operation {
    /// The kind of this operation.
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

    /// The file or folder of the operation, if there is one. For a move, the old path.
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

/// A shell command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShellCommand {
    pub command: String,
    /// The working directory; None for the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<RelPath>,
    /// The requested timeout. The policy may shorten it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// The dialect's default timeout. With None, the policy and the settings decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_timeout: Option<Duration>,
    /// Additional environment variables.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    #[serde(default)]
    pub streams: Streams,
}

impl ShellCommand {
    /// A command in the workspace, with defaults for all other fields.
    pub fn new(command: impl Into<String>) -> Self {
        Self { command: command.into(), ..Self::default() }
    }

    /// The requested timeout, otherwise the dialect's default.
    pub fn wanted_timeout(&self) -> Option<Duration> {
        self.timeout.or(self.default_timeout)
    }
}

/// How the output of a command is captured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Streams {
    /// Both streams together, up to as many characters as the settings allow.
    #[default]
    Together,
    /// Each stream separately, up to a megabyte.
    Apart,
    /// Only the first megabyte of each stream.
    First,
}

/// The content of a file, serialised as a text or as `{"base64": "…"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TextOrBytes {
    /// Content that was sent as text.
    Text(String),
    /// Content that was sent as Base64.
    Bytes {
        #[serde(with = "base64_text")]
        base64: Vec<u8>,
    },
}

impl TextOrBytes {
    /// The bytes of the file.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes { base64 } => base64,
        }
    }

    /// Converts the content into the bytes of the file.
    pub fn into_bytes(self) -> Vec<u8> {
        match self {
            Self::Text(text) => text.into_bytes(),
            Self::Bytes { base64 } => base64,
        }
    }

    /// The content as text. Bytes that are not UTF-8 become U+FFFD.
    pub fn to_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.as_bytes())
    }
}

impl<T: Into<String>> From<T> for TextOrBytes {
    fn from(text: T) -> Self {
        Self::Text(text.into())
    }
}

mod base64_text {
    use super::{Deserialize, Deserializer, Encoding, Serialize, Serializer, de};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        Encoding::Base64.encode(bytes).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(from)?;
        Ok(Encoding::Base64.decode(&text).map_err(de::Error::custom)?.into_owned())
    }
}

/// The lines of a file that were read, if only a part or line numbers were requested.
#[derive(Debug, Clone, Copy, Default, Hash, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LineRange {
    /// The first line, counted from 1; 0 if the file is empty.
    pub first: usize,
    /// The last line, included in the range.
    pub last: usize,
    /// The number of lines of the file.
    pub total: usize,
    /// Whether the file has more lines than were counted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub uncounted: bool,
    /// Whether fewer lines were read than requested, because together they are too long.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// Whether only the beginning of the last line was read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub within_line: bool,
    /// The length of that line in bytes, if it is known.
    pub length: Option<u64>,
    /// Whether each line is shown after its number.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub numbered: bool,
}

/// One block of a reply: an operation, or an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// The line of the reply on which the block begins, counted from 1.
    pub line: usize,
    /// The operation or the error.
    pub asks: StepContent,
    /// Whether nothing after this block can be read, so that the block and everything after it must be sent again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends: bool,
    /// Whether a tag of the reply was read as prose. In this case `[DONE if="ok"]` does not end the session.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub passes_over: bool,
    /// The person's reason (may be empty) if the person excluded the step. An excluded step is not executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<Box<str>>,
    /// Warnings about repairs, and about parts that look wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// The values that the step's event repeats, if the session's dialect is operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<SentValues>,
    /// The opening tag as it was sent, shortened. None if it was sent in the usual form or without tags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_sent: Option<String>,
}

/// The values of an operation that its event repeats.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SentValues {
    /// The ID that the model gave the operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The path or the command as it was sent, if any.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
}

/// The content of a block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StepContent {
    /// An operation to execute.
    Operation(Operation),
    /// A malformed block, which is only reported.
    Invalid(Invalid),
}

impl Step {
    /// A step without warnings or other additional data.
    pub(in crate::protocol) fn new(line: usize, asks: StepContent) -> Self {
        Self {
            line,
            asks,
            ends: false,
            passes_over: false,
            left_out: None,
            warnings: Vec::new(),
            asked: None,
            as_sent: None,
        }
    }

    /// The error for a reply as a whole.
    pub(crate) fn refused(line: usize, mistake: Mistake, reason: impl Into<String>) -> Self {
        let (kind, reason) = (Kind::Reply, reason.into());
        Self::new(line, StepContent::Invalid(Invalid { kind, mistake, rejected: false, reason }))
    }

    /// The kind of operation that the block contains, or was meant to contain.
    pub fn kind(&self) -> Kind {
        match &self.asks {
            StepContent::Operation(operation) => operation.kind(),
            StepContent::Invalid(invalid) => invalid.kind,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_bytes_come_back_as_they_were() {
        for content in [
            TextOrBytes::from("a\u{0}é"),
            TextOrBytes::Bytes { base64: vec![0, 255] },
            TextOrBytes::Bytes { base64: vec![] },
        ] {
            let kept = serde_json::to_string(&content).unwrap();
            assert_eq!(serde_json::from_str::<TextOrBytes>(&kept).unwrap(), content, "{kept}");
        }
        assert_eq!(serde_json::to_string(&TextOrBytes::from("x")).unwrap(), "\"x\"");
    }
}
