//! The JSON-RPC server (bouvet-jsonrpc). It offers a workspace and a command runner to its clients.
//!
//! Connections are served in parallel, each on its own thread. The requests of one connection are carried out in order.
//! Standard input and output are a single connection. A Unix socket or a vsock port accepts many.

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

/// Carries out requests, for many connections at once.
pub trait Service: Sync {
    /// Carries out one request.
    ///
    /// # Errors
    /// The reason for the failure, as reported to the client.
    fn call(&self, method: Method) -> Result<Given, RpcError>;
    /// Interrupts a step in progress, without waiting for it to end.
    fn interrupt(&self, key: &str);
}

/// The result of a request.
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
