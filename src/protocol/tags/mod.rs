//! The tag dialect ("`CodingAgent`" 1.0), between text and values.
//!
//! ```text
//! reply    = { prose | block }                     any line that opens no block is prose
//! block    = opening NL { line NL } closing        CREATE_FILE EDIT_FILE RUN_COMMAND MESSAGE DONE
//!          | opening                               READ_FILE DELETE_FILE
//! opening  = "[" NAME { key "=" '"' value '"' } [ "/" ] "]"    at the start of a trimmed line
//! closing  = "[/" NAME "]"                         alone on a trimmed line
//! ```
//!
//! A body is the lines between its tags, verbatim, each with its newline; nothing in it is looked
//! at but for the closing tag. On tag lines some slips are forgiven with a warning; whatever would
//! have to be guessed is an error that quotes the line and shows the correct form. A block that is
//! never closed ends the reply: where its body ends is unknown, so nothing after it is carried out.

mod attributes;
mod catalogue;
mod printer;
mod reader;
mod results;

pub use catalogue::name;
pub use printer::print;
pub use reader::parse;
pub(in crate::protocol) use reader::{Blocks, NO_COMMAND, blocks};
pub use results::{output, summary};

/// What an LLM is told about this dialect: the PROTOCOL section of every outbox.
pub const PROMPT: &str = include_str!("../../../protocol-prompt/tags.md");

/// The version of the protocol that this dialect implements.
pub const VERSION: &str = "1.0";
