//! The six methods of bouvet-jsonrpc, typed.

use std::time::Duration;

use super::{Client, Gone};
use crate::protocol::jsonrpc::{
    Entries, Exec, ExecCode, ExecResult, FileContent, FileEntry, ListDir, Pong, ReadFile, RpcError,
    WriteFile, Written,
};

/// What the other side said: a result or a fault.
pub type Said<T> = Result<T, RpcError>;

impl Client {
    /// Whether somebody is there.
    ///
    /// # Errors
    /// See [`Client::call`]; here as with all that follow.
    pub fn ping(&mut self, patience: Duration) -> Result<Said<Pong>, Gone> {
        self.call("ping", &serde_json::json!({}), patience)
    }

    /// Runs a shell command.
    pub fn exec(&mut self, cmd: &str, patience: Duration) -> Result<Said<ExecResult>, Gone> {
        self.call("exec", &Exec { cmd: cmd.to_owned() }, patience)
    }

    /// Runs code of a language: `python`, `node`, `bash`, `sh`.
    pub fn exec_code(
        &mut self,
        lang: &str,
        code: &str,
        patience: Duration,
    ) -> Result<Said<ExecResult>, Gone> {
        let params = ExecCode { lang: lang.to_owned(), code: code.to_owned() };
        self.call("exec_code", &params, patience)
    }

    /// All of a text file.
    pub fn read_file(&mut self, path: &str, patience: Duration) -> Result<Said<String>, Gone> {
        let said = self.call("read_file", &ReadFile { path: path.to_owned() }, patience)?;
        Ok(said.map(|FileContent { content }| content))
    }

    /// Writes a text file, and makes its folders; gives whether that succeeded.
    pub fn write_file(
        &mut self,
        path: &str,
        content: &str,
        patience: Duration,
    ) -> Result<Said<bool>, Gone> {
        let params = WriteFile { path: path.to_owned(), content: content.to_owned() };
        let said = self.call("write_file", &params, patience)?;
        Ok(said.map(|Written { success }| success))
    }

    /// What is in a folder.
    pub fn list_dir(
        &mut self,
        path: &str,
        patience: Duration,
    ) -> Result<Said<Vec<FileEntry>>, Gone> {
        let said = self.call("list_dir", &ListDir { path: path.to_owned() }, patience)?;
        Ok(said.map(|Entries { entries }| entries))
    }
}
