//! The methods by which a host carries out a session's operations in a guest, beside the six of
//! bouvet-jsonrpc: those of an [`Executor`](crate::executor::Executor). What has an effect has a key, so that
//! nothing is done twice if a connection breaks. [`Method`](super::Method) lists them.
#![expect(missing_docs, reason = "the names say what most fields are")]

use serde::{Deserialize, Serialize};
use serde_json::Value;

#[cfg(doc)]
use super::RpcError;
use crate::protocol::operations::Encoding;
use crate::protocol::{
    Change, Count, Detail, Digest, EntryKind, Failure, LeftOut, LineRange, Operation, Part,
    PathFacts, Reading, RelPath, TextOrBytes, Warning,
};

/// The version of these methods. A guest of another version is refused.
pub const VERSION: u32 = 4;

/// The parameters of `about`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AboutParams {
    /// Whether tools are wanted, too, which takes a while.
    pub tools: bool,
}

/// What a guest is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct About {
    /// [`VERSION`] of the guest.
    pub version: u32,
    /// The program and its version.
    pub program: String,
    /// The operating system.
    pub system: String,
    /// The shell that commands are given to.
    pub shell: String,
    /// A line about what confines commands.
    pub sandbox: String,
    /// A phrase about whether commands reach the network, if no policy decides it.
    pub network: String,
    /// Whether commands are confined at all, so that a policy can keep the network from them.
    pub confined: bool,
    /// Whether protected names are kept from commands.
    pub guarded: bool,
    /// The names that only the person may write.
    pub protected: Vec<String>,
    /// Whether the guest's own policy keeps the network from commands, whatever the host asks for.
    #[serde(default)]
    pub offline: bool,
    /// Tools with their versions, if they were asked for.
    pub tools: Vec<String>,
    /// The root of the workspace, as it is shown to people.
    pub root: String,
    /// The ID of its memory of steps: another one knows nothing of what was begun before. May be empty.
    #[serde(default)]
    pub state: String,
}

/// All files of the workspace that are not ignored, and the folders that could not be read, both sorted by path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WalkResult {
    /// Path, size in bytes, and what it is.
    pub files: Vec<(String, u64, EntryKind)>,
    pub unreadable: Vec<String>,
    /// What ignore rules leave out: single files, and folders, sorted by path.
    pub ignored_files: Count,
    pub left_out: Vec<LeftOut>,
}

/// The parameters of `look`: an operation that is about to be carried out, see [`without_content`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathFactsParams {
    pub operation: Operation,
    /// Whether the digest of what is there is wanted.
    #[serde(default, rename = "standing")]
    pub with_digest: bool,
}

/// The result of `look`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathFactsResult {
    /// As [`crate::executor::Executor::path_facts`].
    #[serde(rename = "look")]
    pub facts: Option<PathFacts>,
    /// As [`crate::executor::Executor::resolved_path`].
    #[serde(rename = "place")]
    pub resolved_path: Option<RelPath>,
    /// As [`crate::executor::Executor::content_digest`], if it was wanted.
    #[serde(rename = "standing")]
    pub content_digest: Option<Digest>,
}

/// The parameters of `find`: a list or a search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindParams {
    pub operation: Operation,
    /// What the host's policy says of files, as the settings have it; it holds in addition to the guest's own policy.
    pub files: Option<Value>,
    /// The key by which `interrupt` ends it.
    pub key: Option<String>,
}

/// What an operation came to, and what is to be told beside it: the result of `find`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    pub detail: Detail,
    pub warnings: Vec<Warning>,
}

/// The parameters of `read`: a file, or lines of it. Of lines, the guest's own limit counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadParams {
    pub path: RelPath,
    /// The maximum number of bytes.
    pub limit: u64,
    #[serde(default)]
    pub part: Part,
}

/// The result of `read`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ReadResult {
    File {
        /// The path with links resolved.
        path: RelPath,
        /// The first bytes.
        bytes: TextOrBytes,
        /// The size of the whole.
        size: u64,
        /// The lines that these are, if a part was asked for.
        lines: Option<LineRange>,
    },
    Failed(Failure),
}

/// The parameters of `step`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepParams {
    /// The key of the step: 1 to 64 letters, digits and `-`.
    pub key: String,
    /// The operation. Its timeout is used as it is.
    pub operation: Operation,
    /// Whether the person approved writes to protected names.
    #[serde(default)]
    pub protected: bool,
    /// Whether the person approved writes of git to the repository.
    #[serde(default)]
    pub repository: bool,
    /// Whether the command reaches the network; by default the guest's settings decide.
    pub network: Option<bool>,
    /// The number of characters that are kept of a command's output, both streams together.
    pub output_limit: usize,
    /// [`About::state`] as the host knows it: a guest with another one does nothing ([`RpcError::OTHER`]).
    pub state: Option<String>,
    /// The session of the host, whose commands have a HOME and a `/tmp` of their own, kept from step to
    /// step; None for those of the guest's server.
    pub own: Option<String>,
    /// Keys of earlier steps whose results the host has recorded: the guest forgets them.
    #[serde(default)]
    pub settled: Vec<String>,
}

/// The parameters of `result`, as in [`StepParams`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultParams {
    pub key: String,
    pub state: Option<String>,
}

/// A step by its key; for `leave` a session by [`StepParams::own`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    pub key: String,
}

/// The state of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "state")]
#[allow(clippy::large_enum_variant, reason = "there is one at a time, and most are the large one")]
pub enum State {
    /// It was never begun, or had no effect: it may be sent again.
    Unknown,
    Running,
    Done(Done),
}

impl ReadResult {
    /// Creates the result of a file, whose bytes are sent as text if they are text.
    pub fn file(path: RelPath, bytes: Vec<u8>, size: u64, lines: Option<LineRange>) -> Self {
        let bytes = match String::from_utf8(bytes) {
            Ok(text) => TextOrBytes::Text(text),
            Err(e) => TextOrBytes::Bytes { base64: e.into_bytes() },
        };
        Self::File { path, bytes, size, lines }
    }
}

/// Returns an operation without the content that it would write, for [`PathFactsParams`].
#[must_use]
pub fn without_content(operation: &Operation) -> Operation {
    let mut operation = operation.clone();
    match &mut operation {
        Operation::Create { content, .. } => *content = "".into(),
        Operation::Edit { change, .. } => *change = Change::First(Vec::new()),
        Operation::Read { reading, .. } => *reading = Reading::Now(Encoding::Utf8),
        _ => {}
    }
    operation
}
