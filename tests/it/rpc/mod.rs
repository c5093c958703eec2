//! The JSON-RPC server as a client meets it: the real program, over pipes and sockets.

#[cfg(target_os = "linux")]
mod bases;
pub mod client;
#[cfg(target_os = "linux")]
mod crowds;
mod document;
mod examples;
mod hostile;
#[cfg(target_os = "linux")]
mod own;
mod python;
mod sentences;
mod transport;
mod typed;
#[cfg(target_os = "linux")]
mod vsock;
