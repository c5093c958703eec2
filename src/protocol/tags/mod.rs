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
//! A body consists of the lines between its tags, each with its newline. `docs/replies.md` describes how replies look
//! when they come out of a chat window. Decorated tag lines are still read, with a warning. A body is changed only by a
//! few rules, with a warning. Anything that would have to be guessed is an error that quotes the line and shows the
//! correct form. If the end of a block is unknown, the block ends the reply: nothing after it is carried out.
//!
//! `signs` finds the places where a tag may begin, `lexer` turns a line into a token, and `attributes` reads the
//! content of a tag. `parser` makes blocks of the lines: `ends` finds their ends, `spans` skips reasoning and elements
//! (whose markers are in `reasoning`), and `recovery` reports text that is not a proper block (`pasted` recognises the
//! prompt). `block` turns a block into a step: `body` checks its body, `paths` its paths, `pairs` reads the body of an
//! edit by search, and `lints` warns. The table of commands is in `catalogue`. `print` formats outcomes. `data/` has
//! the patterns.

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

/// The text that explains this dialect to a model: the PROTOCOL section of every outbox.
pub const PROMPT: &str = include_str!("../../../protocol-prompt/tags.md");
