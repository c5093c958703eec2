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
//! `marks` finds the lines that matter (`lead`, `labels`, `line`, `names`, `tails`, `other`, `bare`,
//! `outboxes`, `pasted`, `reasoning`, `unknown`), `reader` makes blocks of them (`address`, `again`, `prose`,
//! `ends`, `words`, `range`, `cut`, `joined`, `opened`, `odd`), `attributes` and `demands` read their tags,
//! `paths` the paths there. `block` says what a block asks for; `bodies` takes off what is none of its
//! body (`fences`, `gutter`, `markers`, `pairs`, `diffs`, by `sorts` of files), `escapes` and `notes` tell what is odd there
//! (`strange` of characters). Commands and their attributes are a table, `catalogue`; `repairs` and `wrong`
//! are what was overlooked and what is told. `printer` writes such blocks, `results` what came of them.

mod address;
mod again;
mod attributes;
mod bare;
mod block;
mod bodies;
mod catalogue;
mod cut;
mod demands;
mod diffs;
mod ends;
mod escapes;
pub(in crate::protocol) mod fences;
mod gutter;
mod invented;
mod joined;
mod labels;
mod lead;
mod line;
mod markers;
mod marks;
mod names;
mod notes;
mod odd;
mod opened;
mod other;
mod outboxes;
mod pairs;
mod pasted;
mod paths;
mod printer;
mod prose;
mod range;
mod reader;
mod reasoning;
mod repairs;
mod results;
mod sorts;
mod strange;
mod tails;
mod unknown;
mod words;
mod wrong;

pub use catalogue::name;
pub(in crate::protocol) use diffs::{in_place_of, of_content};
pub use notes::is_button;
pub(in crate::protocol) use paths::{no_path, stood_for};
pub use printer::{asked_at, print, range_asked};
pub use reader::parse;
pub(in crate::protocol) use reader::{Blocks, NO_COMMAND, blocks};
pub use results::{EXCERPT_LINES, excerpt, has_room, output, summary};
pub(crate) use sorts::{is_code, is_patch};
pub(in crate::protocol) use wrong::Wrong;

/// What an LLM is told about this dialect: the PROTOCOL section of every outbox.
pub const PROMPT: &str = include_str!("../../../protocol-prompt/tags.md");

/// The version of the protocol that this dialect implements.
pub const VERSION: &str = "1.1";
