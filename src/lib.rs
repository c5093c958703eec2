//! deaddrop turns any chat window into a coding agent: it writes a self-contained text file, a person pastes it into a
//! chat and saves the reply, and deaddrop executes the commands in it. A module uses only modules above it in this map:
//!
//! | module | responsibility |
//! |---|---|
//! | [`text`] `terminal` [`tokens`] [`error`] [`clock`] [`atomic`] [`settings`] [`program`] [`lock`] [`blobs`] | foundations: wording, terminal output, token counts, errors, times, atomic files, settings, helper programs with the person's rights, one writer per project, contents by digest |
//! | [`secrets`] | finds secrets in a text and replaces them (pure) |
//! | [`protocol`] | what replies say and their outcomes, as values; the dialects (pure) |
//! | [`workspace`] | the only code that accesses workspace files, beneath one directory handle |
//! | [`runner`] | runs shell commands in the sandbox, through a helper process |
//! | [`client`] | JSON-RPC client of the executor on another machine |
//! | [`clipboard`] | copies, reads and watches the clipboard |
//! | [`policy`] [`machine`] | allow, ask or deny an operation (pure); facts about this machine |
//! | [`session`] | a task and its conversation: state, store, journal, log |
//! | [`executor`] | executes operations: here, in a guest, or as a preview |
//! | [`admission`] [`event`] | whether a reply is accepted; events of a turn, for reporters |
//! | [`turn`] | one reply: steps → outcomes |
//! | [`inbox`] [`outbox`] [`context`] [`watch`] | incoming replies, the text of the next outbox (pure), the files that an outbox shows (pure), wake-ups |
//! | [`engine`] | an opened project: a reply from its steps to the next outbox |
//! | [`ipc`] [`space`] [`daemon`] | requests of other processes; the library's entry for other programs; the loop that serves |
//! | [`rpc`] | JSON-RPC server for programs and hosts |
//! | `serve` | the page in the browser, and the REST API |
//! | [`cli`] | what a person types and reads |

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
