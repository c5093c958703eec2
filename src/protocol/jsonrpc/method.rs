//! The six methods of bouvet-jsonrpc ("Methods Reference", "Type Definitions", "Language Mapping"):
//! their parameters and results, and which method a request asks for.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{AboutAsked, Fault, FindAsked, Key, LookAt, ReadOf, Request, ResultOf, StepAsked};

/// What a request asks for: the six methods, and those of [`super::guest`].
#[derive(Debug, Clone, PartialEq)]
pub enum Method {
    /// Checks that the server answers.
    Ping,
    /// Runs a shell command.
    Exec(Exec),
    /// Runs code of a language.
    ExecCode(ExecCode),
    /// Returns a file's content.
    ReadFile(ReadFile),
    /// Writes a file.
    WriteFile(WriteFile),
    /// Lists a directory.
    ListDir(ListDir),
    /// Describes the guest.
    About(AboutAsked),
    /// Lists all files of the workspace.
    Walk,
    /// Inspects the path of an operation before it is carried out.
    Look(Box<LookAt>),
    /// Returns a file's first bytes or some of its lines.
    Read(ReadOf),
    /// Lists or searches files.
    Find(Box<FindAsked>),
    /// Carries out an operation once.
    Step(Box<StepAsked>),
    /// Returns the result of a step.
    Result(ResultOf),
    /// Ends a session and removes the directories of its commands.
    Leave(Key),
    /// Interrupts a step: a notification that overtakes other requests.
    Interrupt(Key),
}

/// The parameters of `exec`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exec {
    /// The command line.
    pub cmd: String,
}

/// The parameters of `exec_code`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecCode {
    /// The language, in any case.
    pub lang: String,
    /// The code.
    pub code: String,
}

/// The parameters of `read_file`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadFile {
    /// Absolute, or relative to the root.
    pub path: String,
}

/// The parameters of `write_file`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteFile {
    /// Absolute, or relative to the root.
    pub path: String,
    /// The whole content.
    pub content: String,
}

/// The parameters of `list_dir`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListDir {
    /// Absolute, or relative to the root.
    pub path: String,
}

impl Method {
    /// Reads which method a request asks for.
    ///
    /// # Errors
    /// There is no such method, or its parameters are wrong.
    pub fn of(request: Request) -> Result<Self, Fault> {
        let Request { method, params, .. } = request;
        Ok(match method.as_str() {
            "ping" => none(&params).map(|()| Self::Ping)?,
            "exec" => Self::Exec(read(params)?),
            "exec_code" => Self::ExecCode(read(params)?),
            "read_file" => Self::ReadFile(read(params)?),
            "write_file" => Self::WriteFile(read(params)?),
            "list_dir" => Self::ListDir(read(params)?),
            "about" => Self::About(read(params)?),
            "walk" => none(&params).map(|()| Self::Walk)?,
            "look" => Self::Look(Box::new(read(params)?)),
            "read" => Self::Read(read(params)?),
            "find" => Self::Find(Box::new(read(params)?)),
            "step" => Self::Step(Box::new(read(params)?)),
            "result" => Self::Result(read(params)?),
            "leave" => Self::Leave(read(params)?),
            "interrupt" => Self::Interrupt(read(params)?),
            _ => return Err(Fault::new(Fault::METHOD, format!("method not found: {method}"))),
        })
    }
}

/// Checks the parameters of a method that has none: they are ignored if they have the right type.
fn none(params: &Value) -> Result<(), Fault> {
    match params {
        Value::Object(_) | Value::Array(_) => Ok(()),
        _ => Err(Fault::params("params must be an object")),
    }
}

fn read<T: DeserializeOwned>(params: Value) -> Result<T, Fault> {
    none(&params)?;
    serde_json::from_value(params).map_err(Fault::params)
}

/// What ends a stream that was truncated.
pub const TRUNCATED: &str = "\n... [output truncated]";

/// The result of `ping`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pong {
    /// Always true.
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

/// The result of `read_file`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileContent {
    /// The whole content.
    pub content: String,
}

/// The result of `write_file`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// Always true.
    pub success: bool,
}

/// The result of `list_dir`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entries {
    /// Sorted by name.
    pub entries: Vec<FileEntry>,
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// The name alone.
    pub name: String,
    /// Whether it is a directory; a link to one is not.
    pub is_dir: bool,
    /// The size in bytes; 0 for directories.
    pub size: u64,
}

/// A program that is given code as an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interpreter {
    /// Its name, to be looked up on `PATH`.
    pub program: &'static str,
    /// The option before the code.
    pub flag: &'static str,
}

/// Returns the interpreter of a language, in any case; None for an unsupported one.
pub fn interpreter(language: &str) -> Option<Interpreter> {
    let (program, flag) = match language.to_ascii_lowercase().as_str() {
        "python" | "python3" => ("python3", "-c"),
        "node" | "javascript" | "js" => ("node", "-e"),
        "bash" => ("bash", "-c"),
        "sh" => ("sh", "-c"),
        _ => return None,
    };
    Some(Interpreter { program, flag })
}
