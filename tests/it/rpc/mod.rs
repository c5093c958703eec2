//! The JSON-RPC server as a client meets it: the real program, over pipes and sockets.

pub mod client;
#[cfg(target_os = "linux")]
mod crowds;
mod document;
mod examples;
mod hostile;
#[cfg(target_os = "linux")]
mod lost_steps;
#[cfg(target_os = "linux")]
pub mod methods;
#[cfg(target_os = "linux")]
mod own;
#[cfg(target_os = "linux")]
mod projects;
mod python;
mod sentences;
#[cfg(target_os = "linux")]
pub mod steps;
mod transport;
mod typed;
#[cfg(target_os = "linux")]
mod vsock;
