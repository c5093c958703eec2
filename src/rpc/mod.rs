//! The JSON-RPC server (bouvet-jsonrpc): a workspace and a runner for whoever connects.
//!
//! Connections are served side by side, each on a thread, and the requests of one in order.
//! Standard input and output are one connection; a Unix socket and a port of a virtual machine's host
//! bring many.

mod budget;
mod connection;
mod exec;
mod files;
mod guest;
mod projects;
mod scratch_dir;
mod served;
mod server;
mod socket;
mod steps;
#[cfg(target_os = "linux")]
mod vsock;

use serde::Serialize;

use crate::error::Error;
use crate::protocol::jsonrpc::{
    About, Done, Entries, ExecResult, FileContent, Method, PathFactsResult, Pong, ReadResult,
    RpcError, State, WalkResult, Written,
};
pub use projects::Projects;
pub use scratch_dir::ScratchDir;
pub use served::{Served, Serving};
pub use server::{At, Listening};

/// What carries out requests: of many connections at once.
pub trait Service: Sync {
    /// Does what is asked for.
    ///
    /// # Errors
    /// Why it could not be done, for whoever asked.
    fn call(&self, method: Method) -> Result<Given, RpcError>;
    /// Ends a step that is being carried out, without waiting for it.
    fn interrupt(&self, key: &str);
}

/// What a request came to.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Given {
    /// Of `ping`.
    Pong(Pong),
    /// Of `exec` and `exec_code`.
    Ran(ExecResult),
    /// Of `read_file`.
    File(FileContent),
    /// Of `write_file` and `leave`.
    Written(Written),
    /// Of `list_dir`.
    Entries(Entries),
    /// Of `about`.
    About(About),
    /// Of `walk`.
    Walked(WalkResult),
    /// Of `look`.
    Looked(PathFactsResult),
    /// Of `read`.
    Contents(ReadResult),
    /// Of `find`.
    Found(Done),
    /// Of `step` and `result`.
    Step(State),
}

impl From<Error> for RpcError {
    fn from(error: Error) -> Self {
        Self::internal(error.to_string())
    }
}
