//! The six methods of bouvet-jsonrpc ("Methods Reference", "Type Definitions", "Language Mapping") with their
//! parameters and results. Determines which method a request calls. Paths are absolute, or relative to the root.
#![expect(missing_docs, reason = "the specification explains the fields, by these names")]

use serde::de::{IntoDeserializer, value};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{
    AboutParams, FindParams, Key, PathFactsParams, ReadParams, Request, ResultParams, RpcError,
    StepParams,
};

/// A call: one of the six methods with its parameters, or one of the methods of [`super::guest`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Checks that the server answers.
    Ping {},
    /// Runs a shell command.
    Exec { cmd: String },
    /// Runs code in a language, whose name may be in upper or lower case.
    ExecCode { lang: String, code: String },
    /// Returns a file's content.
    ReadFile { path: String },
    /// Writes a file.
    WriteFile { path: String, content: String },
    /// Lists a directory.
    ListDir { path: String },
    /// `about` describes the guest: [`About`](super::About).
    About(AboutParams),
    /// `walk` lists all files of the workspace: [`WalkResult`](super::WalkResult).
    Walk {},
    /// `look` inspects the path of an operation before it is carried out: [`PathFactsResult`](super::PathFactsResult).
    #[serde(rename = "look")]
    PathFacts(Box<PathFactsParams>),
    /// `read` returns a file's first bytes or some of its lines: [`ReadResult`](super::ReadResult).
    Read(ReadParams),
    /// `find` lists or searches files: [`Done`](super::Done).
    Find(Box<FindParams>),
    /// `step` carries out an operation once: [`State`](super::State).
    Step(Box<StepParams>),
    /// `result` returns the [`State`](super::State) of a step.
    Result(ResultParams),
    /// `leave` ends a session and removes the directories of its commands: [`Written`].
    Leave(Key),
    /// `interrupt` ends a step. It is a notification that is handled before other waiting requests.
    Interrupt(Key),
}

impl Method {
    /// Determines the method that a request calls. Unknown parameters in an object are ignored.
    ///
    /// # Errors
    /// There is no such method, or its parameters are invalid.
    pub fn of(request: Request) -> Result<Self, RpcError> {
        let Request { method, params, .. } = request;
        // A name alone is not a valid call, but the error shows whether the method exists.
        let named =
            Self::deserialize(IntoDeserializer::<value::Error>::into_deserializer(&*method));
        if named.is_err_and(|e| e.to_string().starts_with("unknown variant")) {
            return Err(RpcError::new(RpcError::METHOD, format!("method not found: {method}")));
        }
        let tagged = |params| Value::from(Map::from_iter([(method, params)]));
        let read = match params? {
            params @ Value::Object(_) => serde_json::from_value(tagged(params)),
            // Only `from_str` accepts a list as the fields of a variant, and only if the variant has fields.
            Value::Array(list) if list.is_empty() => serde_json::from_value(tagged(json!({}))),
            params @ Value::Array(_) => serde_json::from_str(&tagged(params).to_string()),
            _ => return Err(RpcError::params("params must be an object")),
        };
        read.map_err(RpcError::params)
    }
}

// The results of the methods.

/// The end of a stream that was truncated.
pub const TRUNCATED: &str = "\n... [output truncated]";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pong {
    pub pong: bool,
}

/// The result of `exec` and `exec_code`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecResult {
    /// The command's exit code. -1 if it could not be started or was ended by a signal, and 124 after a timeout.
    pub exit_code: i32,
    /// Its standard output, up to [`super::STREAM_LIMIT`] bytes, followed by [`TRUNCATED`] if there was more.
    pub stdout: String,
    /// Its standard error, in the same form. If there is no exit code, the last line says how the command ended.
    pub stderr: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileContent {
    pub content: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    pub success: bool,
}

/// The result of `list_dir`, sorted by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entries {
    pub entries: Vec<FileEntry>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    pub name: String,
    /// Whether it is a directory; false for a link to one.
    pub is_dir: bool,
    pub size: u64,
}

/// Returns the interpreter for a language (in upper or lower case): a program to be found on `PATH`, and its option for
/// code. None for an unsupported language.
pub fn interpreter(language: &str) -> Option<(&'static str, &'static str)> {
    Some(match language.to_ascii_lowercase().as_str() {
        "python" | "python3" => ("python3", "-c"),
        "node" | "javascript" | "js" => ("node", "-e"),
        "bash" => ("bash", "-c"),
        "sh" => ("sh", "-c"),
        _ => return None,
    })
}
