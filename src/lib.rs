//! deaddrop lets any chat window be a coding agent: it writes one self-contained text file, a person pastes it into a
//! chat and saves the reply, and deaddrop executes the commands in it. Each module uses only those above it in this map:
//!
//! | module | what it is for |
//! |---|---|
//! | [`text`] `terminal` [`tokens`] [`error`] [`clock`] [`atomic`] [`settings`] [`program`] [`lock`] [`blobs`] | the ground: words, what reaches a terminal, tokens, errors, times, whole files, settings, programs that are started with the person's rights, one writer, contents under their digests |
//! | [`secrets`] | what must not leave this machine, found in a text and left out of it (PURE) |
//! | [`protocol`] | PURE: what replies say and what came of it, as values; the dialects |
//! | [`workspace`] | the only toucher of workspace files, beneath one handle |
//! | [`runner`] | a shell command → how it went; the helper that holds its processes together |
//! | [`client`] | asks an agent elsewhere, over JSON-RPC |
//! | [`clipboard`] | puts a text on the clipboard so that it stays there, and reads what is there |
//! | [`policy`] [`machine`] | what may be done, denied or asked about (PURE); what this machine is |
//! | [`session`] | where a conversation stands, and its file |
//! | [`executor`] | what carries out operations: here, in a guest, or as a preview |
//! | [`admission`] [`event`] | whether a reply is accepted; what happens meanwhile, for whoever reports it |
//! | [`turn`] | one reply: steps → outcomes |
//! | [`inbox`] [`outbox`] [`context`] [`watch`] | replies in, the next text out (PURE), the files that it is about (PURE), wake-ups |
//! | [`engine`] | an opened project: one reply from steps to the next outbox |
//! | [`ipc`] [`space`] [`daemon`] | requests of a person, and of another program; one turn after another |
//! | [`rpc`] | the same workspace and runner for whoever connects, over JSON-RPC |
//! | `serve` | the page in the browser |
//! | [`cli`] | what a person types |

#![cfg_attr(test, allow(clippy::disallowed_macros, reason = "tests say what they skip"))]

pub mod admission;
pub mod atomic;
pub mod blobs;
pub mod cli;
pub mod client;
pub mod clipboard;
pub mod clock;
pub mod context;
pub mod daemon;
pub mod engine;
pub mod error;
pub mod event;
pub mod executor;
pub mod inbox;
pub mod ipc;
mod links;
pub mod lock;
pub mod machine;
pub mod outbox;
pub mod policy;
pub mod program;
pub mod protocol;
pub mod rpc;
pub mod runner;
pub mod secrets;
#[cfg(feature = "serve")]
pub mod serve;
pub mod session;
pub mod settings;
pub mod space;
mod terminal;
pub mod text;
pub mod tokens;
pub mod turn;
pub mod watch;
pub mod workspace;

pub use space::Space;
