//! deaddrop lets any chat window be a coding agent. This is the map of the house; each layer uses
//! only what stands above it here.
//!
//! | module | what it is for |
//! |---|---|
//! | [`text`], [`error`], [`clock`], [`atomic`], [`config`] | the ground: words, errors, times, whole files, settings |
//! | [`protocol`] | PURE: what replies say and what came of it, as values; the dialects |
//! | [`workspace`] | the only toucher of workspace files, beneath one handle |
//! | [`runner`] | a shell command → how it went; the helper that holds its processes together |
pub mod atomic;
pub mod base;
pub mod cli;
pub mod clock;
pub mod config;
pub mod daemon;
pub mod error;
pub mod inbox;
pub mod lock;
pub mod machine;
pub mod outbox;
pub mod place;
pub mod protocol;
pub mod runner;
pub mod session;
pub mod text;
pub mod turn;
pub mod watch;
pub mod workspace;
