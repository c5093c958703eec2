//! The tag dialect ("`CodingAgent`" 1.0 and what 1.1 adds), between text and values.
//!
//! ```text
//! reply    = { prose | block }                     any line that opens no block is prose
//! block    = opening NL { line NL } closing        CREATE_FILE EDIT_FILE RUN_COMMAND MESSAGE DONE
//!          | opening                               READ_FILE DELETE_FILE MOVE_FILE LIST_FILES SEARCH REPLY
//! opening  = "[" NAME { key "=" '"' value '"' } [ "/" ] "]"    at the start of a trimmed line
//! closing  = "[/" NAME "]"                         alone on a trimmed line
//!          | "[/" NAME " end=" '"' value '"' "]"   where the opening has that end
//! ```
//!
//! A body is the lines between its tags, each with its newline. What replies are like when they come
//! out of a chat window is in `docs/replies.md`: tag lines are read however they are decorated, with a
//! warning; a body is changed only by the few rules there, with a warning; whatever would have to be
//! guessed is an error that quotes the line and shows the correct form. Where a block's end is not
//! known, it ends the reply: nothing after it is carried out.
//!
//! `signs` finds where a tag may begin, `lexer` turns a line into a token, `attributes` reads what is in a tag, and `parser`
//! makes blocks of the lines: `ends` finds where they end, `spans` skips what is in reasoning and in elements (`reasoning` knows their
//! markers), `recovery` reports what is no block in order (`pasted` knows the outbox). `block` makes the step of a
//! block: `body` checks its body, `paths` its paths, `pairs` reads that of an edit by search, and `lints` warns. Commands
//! and their attributes are a table, `catalogue`. `print` writes what came of them. Words and patterns are in `data/`.

mod attributes;
mod block;
mod body;
mod catalogue;
mod ends;
mod lexer;
mod lints;
mod pairs;
mod parser;
mod pasted;
mod paths;
mod print;
mod reasoning;
mod recovery;
mod signs;
mod spans;

pub use catalogue::name;
pub use lints::is_button;
pub use parser::parse;
pub(in crate::protocol) use parser::{Blocks, NO_COMMAND, blocks};
pub use print::{EXCERPT_LINES, asked_at, excerpt, form_of_range, has_room, output, summary};

/// What a model is told about this dialect: the PROTOCOL section of every outbox.
pub const PROMPT: &str = include_str!("../../../protocol-prompt/tags.md");
