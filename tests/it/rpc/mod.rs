//! The JSON-RPC server as a client meets it: the real program, over pipes and sockets.

pub mod client;
mod document;
mod examples;
mod hostile;
#[cfg(target_os = "linux")]
mod own;
mod python;
mod sentences;
mod transport;
#[cfg(target_os = "linux")]
mod vsock;
