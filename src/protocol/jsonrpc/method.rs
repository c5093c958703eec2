//! The six methods of bouvet-jsonrpc ("Methods Reference", "Type Definitions", "Language Mapping"):
//! their parameters and results, and which method a request asks for. Paths are absolute, or relative to
//! the root.
#![expect(missing_docs, reason = "the specification explains the fields, by these names")]

use serde::de::{IntoDeserializer, value};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{
    AboutParams, FindParams, Key, PathFactsParams, ReadParams, Request, ResultParams, RpcError,
    StepParams,
};

/// What a request asks for: the six methods with their parameters, and those of [`super::guest`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Checks that the server answers.
    Ping {},
    /// Runs a shell command.
    Exec { cmd: String },
    /// Runs code of a language, whose name is in any case.
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
    /// `find` lists or searches files: the answer is [`Done`](super::Done).
    Find(Box<FindParams>),
    /// `step` carries out an operation once: [`State`](super::State).
    Step(Box<StepParams>),
    /// `result` returns the [`State`](super::State) of a step.
    Result(ResultParams),
    /// `leave` ends a session and removes the directories of its commands: [`Written`].
    Leave(Key),
    /// `interrupt` ends a step: a notification that overtakes other requests.
    Interrupt(Key),
}

impl Method {
    /// Reads which method a request asks for. Parameters of an object that it does not have are ignored.
    ///
    /// # Errors
    /// There is no such method, or its parameters are wrong.
    pub fn of(request: Request) -> Result<Self, RpcError> {
        let Request { method, params, .. } = request;
        // The name alone makes no method, but shows whether there is one.
        let named =
            Self::deserialize(IntoDeserializer::<value::Error>::into_deserializer(&*method));
        if named.is_err_and(|e| e.to_string().starts_with("unknown variant")) {
            return Err(RpcError::new(RpcError::METHOD, format!("method not found: {method}")));
        }
        let tagged = |params| Value::from(Map::from_iter([(method, params)]));
        let read = match params? {
            params @ Value::Object(_) => serde_json::from_value(tagged(params)),
            // Only the reader of texts takes a list for the fields of a variant, and only if it has fields.
            Value::Array(list) if list.is_empty() => serde_json::from_value(tagged(json!({}))),
            params @ Value::Array(_) => serde_json::from_str(&tagged(params).to_string()),
            _ => return Err(RpcError::params("params must be an object")),
        };
        read.map_err(RpcError::params)
    }
}

// Their results.

/// What ends a stream that was truncated.
pub const TRUNCATED: &str = "\n... [output truncated]";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pong {
    pub pong: bool,
}

/// The result of `exec` and `exec_code`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecResult {
    /// The command's exit code; -1 if it could not be started or a signal ended it, 124 after a timeout.
    pub exit_code: i32,
    /// Its standard output, at most [`super::STREAM_LIMIT`] bytes, and [`TRUNCATED`] if there was more.
    pub stdout: String,
    /// Its standard error, likewise; if there is no exit code, the last line says how it ended.
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
    /// Whether it is a directory; a link to one is not.
    pub is_dir: bool,
    pub size: u64,
}

/// Returns the interpreter of a language, in any case: a program, to be looked up on `PATH`, and its option before
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
