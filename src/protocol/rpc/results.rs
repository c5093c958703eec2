//! What the methods give (bouvet-jsonrpc, "Type Definitions"): every field always there.

use serde::{Deserialize, Serialize};

/// What stands at the end of a stream that was cut.
pub const TRUNCATED: &str = "\n... [output truncated]";

/// What `ping` gives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pong {
    /// True.
    pub pong: bool,
}

/// What `exec` and `exec_code` give.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecResult {
    /// The command's own; -1 where it could not be started or a signal ended it, 124 at the deadline.
    pub exit_code: i32,
    /// What it wrote, at most [`super::STREAM_LIMIT`] bytes; then [`TRUNCATED`] where it was more.
    pub stdout: String,
    /// The same of standard error; a line about how it ended stands last, where it has no exit code.
    pub stderr: String,
}

/// What `read_file` gives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileContent {
    /// All of the file.
    pub content: String,
}

/// What `write_file` gives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// True.
    pub success: bool,
}

/// What `list_dir` gives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entries {
    /// Sorted by name.
    pub entries: Vec<FileEntry>,
}

/// One entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Its name alone.
    pub name: String,
    /// Whether it is a folder itself, and no link to one.
    pub is_dir: bool,
    /// Its size in bytes; 0 for folders.
    pub size: u64,
}
