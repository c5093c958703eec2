//! The program as a person uses it: the real binary on real files. A folder for each feature; what they share is in
//! `support`, `scene` (ways to run commands) and `tmux`.
#![allow(clippy::disallowed_macros, clippy::disallowed_methods, reason = "clippy.toml is for src")]
#![allow(unreachable_pub, reason = "a test binary has no outside")]

mod approvals;
mod cli;
#[cfg(target_os = "linux")]
mod clipboard;
mod daemon;
mod guests;
#[cfg(target_os = "linux")]
mod operations;
mod outbox;
mod projects;
mod replies;
#[cfg(unix)]
mod rpc;
#[cfg(target_os = "linux")]
mod sandbox;
#[cfg(target_os = "linux")]
mod scene;
#[cfg(target_os = "linux")]
mod security;
#[cfg(target_os = "linux")]
mod serve;
mod settings;
mod support;
#[cfg(target_os = "linux")]
mod tmux;
mod undo;
