//! The methods with which a host carries out a session's operations in a guest: those of an
//! [`Executor`](crate::executor::Executor), in addition to the six of bouvet-jsonrpc. An operation with an effect has a
//! key, so that nothing is done twice if a connection breaks. [`Method`](super::Method) lists the methods.
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

/// The version of these methods. A guest with another version is refused.
pub const VERSION: u32 = 4;

/// The parameters of `about`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AboutParams {
    /// Whether to return the tools, too. This takes a while.
    pub tools: bool,
}

/// Describes a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct About {
    /// The guest's [`VERSION`].
    pub version: u32,
    /// The program and its version.
    pub program: String,
    /// The operating system.
    pub system: String,
    /// The shell that runs commands.
    pub shell: String,
    /// A line that describes what confines commands.
    pub sandbox: String,
    /// A phrase that says whether commands can use the network if no policy decides it.
    pub network: String,
    /// Whether commands are confined at all, so that a policy can deny them the network.
    pub confined: bool,
    /// Whether commands cannot change protected names.
    pub guarded: bool,
    /// The names that only the person may write.
    pub protected: Vec<String>,
    /// Whether the guest's own policy denies commands the network, whatever the host requests.
    #[serde(default)]
    pub offline: bool,
    /// The tools with their versions, if they were requested.
    pub tools: Vec<String>,
    /// The root of the workspace, for display.
    pub root: String,
    /// The ID of the guest's record of steps. A record with another ID does not know steps begun earlier. May be empty.
    #[serde(default)]
    pub state: String,
}

/// All files of the workspace that are not ignored, and the folders that could not be read, both sorted by path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WalkResult {
    /// Path, size in bytes and type of each file.
    pub files: Vec<(String, u64, EntryKind)>,
    pub unreadable: Vec<String>,
    /// What ignore rules leave out: the count of single files, and the folders, sorted by path.
    pub ignored_files: Count,
    pub left_out: Vec<LeftOut>,
}

/// The parameters of `look`: an operation that is about to be carried out (see [`without_content`]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathFactsParams {
    pub operation: Operation,
    /// Whether to return the digest of the current content.
    #[serde(default, rename = "standing")]
    pub with_digest: bool,
}

/// The result of `look`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathFactsResult {
    /// The result of [`crate::executor::Executor::path_facts`].
    #[serde(rename = "look")]
    pub facts: Option<PathFacts>,
    /// The result of [`crate::executor::Executor::resolved_path`].
    #[serde(rename = "place")]
    pub resolved_path: Option<RelPath>,
    /// The result of [`crate::executor::Executor::content_digest`], if it was requested.
    #[serde(rename = "standing")]
    pub content_digest: Option<Digest>,
}

/// The parameters of `find`: a listing or a search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindParams {
    pub operation: Operation,
    /// The file rules of the host's policy, as in the settings. They apply in addition to the guest's own policy.
    pub files: Option<Value>,
    /// The key with which `interrupt` ends the operation.
    pub key: Option<String>,
}

/// The result of an operation, and warnings about it: the result of `find`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    pub detail: Detail,
    pub warnings: Vec<Warning>,
}

/// The parameters of `read`: a file, or lines of it. If lines are requested, the guest's own limit applies.
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
        /// The first bytes of the file, or its requested lines.
        bytes: TextOrBytes,
        /// The size of the whole file.
        size: u64,
        /// The range of these lines, if lines were requested.
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
    /// The operation. Its timeout is used unchanged.
    pub operation: Operation,
    /// Whether the person approved writes to protected names.
    #[serde(default)]
    pub protected: bool,
    /// Whether the person approved that git writes to the repository.
    #[serde(default)]
    pub repository: bool,
    /// Whether the command can use the network; None leaves it to the guest's settings.
    pub network: Option<bool>,
    /// The number of characters that are kept of a command's output, both streams together.
    pub output_limit: usize,
    /// The [`About::state`] that the host knows. A guest with another state does nothing ([`RpcError::OTHER`]).
    pub state: Option<String>,
    /// The host's session. Its commands have their own HOME and `/tmp`, which are kept from step to step. None for
    /// those of the guest's server.
    pub own: Option<String>,
    /// The keys of earlier steps whose results the host has recorded. The guest forgets these steps.
    #[serde(default)]
    pub settled: Vec<String>,
}

/// The parameters of `result`. The fields are as in [`StepParams`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultParams {
    pub key: String,
    pub state: Option<String>,
}

/// The key of a step; for `leave`, the session ([`StepParams::own`]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    pub key: String,
}

/// The state of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "state")]
#[allow(clippy::large_enum_variant, reason = "there is one at a time, and most are the large one")]
pub enum State {
    /// The step was never begun, or had no effect. It may be sent again.
    Unknown,
    Running,
    Done(Done),
}

impl ReadResult {
    /// Creates the result for a file. Bytes that are valid UTF-8 are sent as text.
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
