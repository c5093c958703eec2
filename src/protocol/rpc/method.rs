//! What can be asked for: the six methods of bouvet-jsonrpc ("Methods Reference"), and those by which
//! a host carries out a session's operations in a guest (see [`super::guest`]).

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{AboutAsked, Fault, FindAsked, Key, LookAt, ReadOf, Request, ResultOf, StepAsked};

/// What a request asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Method {
    /// Whether somebody is there.
    Ping,
    /// A shell command.
    Exec(Exec),
    /// Code of a language.
    ExecCode(ExecCode),
    /// A file's contents.
    ReadFile(ReadFile),
    /// A file to be written.
    WriteFile(WriteFile),
    /// What is in a folder.
    ListDir(ListDir),
    /// What the guest is.
    About(AboutAsked),
    /// All files of the workspace.
    Walk,
    /// What can be told of an operation's path before it is done.
    Look(Box<LookAt>),
    /// A file's bytes, or the first of them.
    Read(ReadOf),
    /// Files, or lines in them.
    Find(Box<FindAsked>),
    /// An operation to be carried out once.
    Step(Box<StepAsked>),
    /// What a step came to.
    Result(ResultOf),
    /// A session is over, and what its commands had for themselves goes.
    Leave(Key),
    /// A step to be ended; a notification that overtakes.
    Interrupt(Key),
}

/// The parameters of `exec`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exec {
    /// For the shell.
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
    /// Absolute, or from the root.
    pub path: String,
}

/// The parameters of `write_file`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteFile {
    /// Absolute, or from the root.
    pub path: String,
    /// All of the file.
    pub content: String,
}

/// The parameters of `list_dir`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListDir {
    /// Absolute, or from the root.
    pub path: String,
}

impl Method {
    /// Reads what a request asks for.
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

/// Parameters of a method that has none: whatever is sent is ignored, so it is of the right type.
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
