//! The name in a tag, as it may be written.

use super::catalogue::{COMMANDS, Command};
use super::repairs::{Repairs, is_zero_width};
use crate::protocol::Kind;

/// The name in a tag.
pub(super) struct Name {
    pub(super) command: u8,
    pub(super) is_closing: bool,
    pub(super) is_misspelt: bool,
    /// Whether it is misspelt so that only a tag that is plain otherwise can be meant.
    pub(super) is_far: bool,
    /// Whether it opens a tag with a word that is meant so only with a path, or with the command.
    pub(super) is_short: bool,
    /// Whether all of it is in capitals.
    pub(super) is_upper: bool,
    /// Where it ends, from the bracket on.
    pub(super) length: usize,
    pub(super) repairs: Repairs,
}

/// The longest name that is looked at, in characters.
const LONGEST: usize = 40;

/// The name that follows a bracket, with its slash; None where there is none of ours.
pub(super) fn name(inside: &str) -> Option<Name> {
    let (is_closing, word) = match inside.strip_prefix('/') {
        Some(word) => (true, word),
        None => (false, inside),
    };
    let is_end = |rest: &str| rest.chars().next().is_none_or(ends_name);
    let known = |(_, known): &(u8, &Command)| word.strip_prefix(known.name).is_some_and(is_end);
    let Some((command, known)) = (0..).zip(&COMMANDS).find(known) else {
        return loose_name(inside).or_else(|| far_name(inside));
    };
    let length = inside.len() - word.len() + known.name.len();
    Some(Name::new(command, is_closing, length))
}

impl Name {
    fn new(command: u8, is_closing: bool, length: usize) -> Self {
        Self {
            command,
            is_closing,
            is_misspelt: false,
            is_far: false,
            is_short: false,
            is_upper: true,
            length,
            repairs: Repairs::default(),
        }
    }
}

/// The name that follows another bracket than those of tags, as it should be written.
pub(super) fn exact(inside: &str) -> Option<Name> {
    let (is_closing, word, length) = capitals(inside);
    let command = called(word)?;
    let after = inside[length..].chars().next();
    let ends = after.is_some_and(|c| ends_name(c) || matches!(c, '>' | '］' | '】'));
    ends.then(|| Name::new(command, is_closing, length))
}

/// Other words for what commands do; those in the second list say it with a path only, of a command
/// to be run where nothing else stands in the tag, or the command.
const WORDS: [(Kind, &[&str], &[&str]); 8] = [
    (
        Kind::Create,
        &[
            "WRITE_FILE",
            "WRITE_TO_FILE",
            "OVERWRITE_FILE",
            "REPLACE_FILE",
            "SAVE_FILE",
            "SAVE_TO_FILE",
            "ADD_FILE",
            "NEW_FILE",
        ],
        &["CREATE", "WRITE", "FILE"],
    ),
    (
        Kind::Edit,
        &[
            "UPDATE_FILE",
            "MODIFY_FILE",
            "CHANGE_FILE",
            "PATCH_FILE",
            "APPEND_FILE",
            "APPEND_TO_FILE",
            "REPLACE_IN_FILE",
            "SEARCH_REPLACE",
            "INSERT_FILE",
            "INSERT_IN_FILE",
            "APPLY_PATCH",
            "APPLY_DIFF",
        ],
        &["EDIT", "UPDATE"],
    ),
    (Kind::Delete, &["DELETE_FILES", "REMOVE_FILE"], &["DELETE", "REMOVE"]),
    (
        Kind::Read,
        &["READ_FILES", "OPEN_FILE", "VIEW_FILE", "SHOW_FILE", "GET_FILE", "CAT_FILE"],
        &["READ", "OPEN", "VIEW"],
    ),
    (Kind::Move, &["RENAME_FILE", "MOVE_FOLDER", "RENAME_FOLDER"], &["MOVE", "RENAME"]),
    (
        Kind::List,
        &["LIST_DIR", "LIST_DIRECTORY", "LIST_FOLDER", "LIST_FILE", "READ_DIR"],
        &["LIST"],
    ),
    (Kind::Search, &["SEARCH_FILES", "SEARCH_FILE", "GREP_FILES", "FIND_IN_FILES"], &["GREP"]),
    (
        Kind::Run,
        &[
            "EXECUTE_COMMAND",
            "EXEC_COMMAND",
            "SHELL_COMMAND",
            "BASH_COMMAND",
            "RUN_SHELL",
            "RUN_BASH",
            "RUN_COMMANDS",
            "EXECUTE_COMMANDS",
        ],
        &["RUN", "BASH", "SHELL", "EXECUTE", "EXEC"],
    ),
];

/// What the command is for that another word stands for, and whether that says it with a path only.
pub(super) fn meant(word: &str) -> Option<(Kind, bool)> {
    WORDS.iter().find_map(|(kind, long, short)| {
        let is_short = short.contains(&word);
        (is_short || long.contains(&word)).then_some((*kind, is_short))
    })
}

/// Whether a line, from a tag's name on, ends with a closing tag of that command.
pub(super) fn closes_there(tail: &str, command: usize) -> bool {
    let inside = tail.rfind("[/").filter(|_| tail.ends_with(']')).map(|at| &tail[at + 1..]);
    let name = inside.and_then(name).filter(|name| name.is_closing);
    name.is_some_and(|name| usize::from(name.command) == command)
}

/// Another word for a command, or its name with a sign behind that no tag has: `[READ_FILE: …]`.
fn far_name(inside: &str) -> Option<Name> {
    let (is_closing, word, length) = capitals(inside);
    let after = inside[length..].chars().next()?;
    let mut is_short = false;
    let command = if ends_name(after) {
        let (kind, needs_more) = meant(word)?;
        is_short = needs_more && !is_closing;
        (0..).zip(&COMMANDS).find(|(_, command)| command.kind == kind)?.0
    } else {
        let is_sign = matches!(after, ':' | '=' | ',' | '(' | '"' | '\'');
        called(word).filter(|_| is_sign && word.contains('_'))?
    };
    let name = Name::new(command, is_closing, length);
    Some(Name { is_misspelt: true, is_far: true, is_short, ..name })
}

/// Whether a slash begins it, the word in capitals that follows, and where that ends.
fn capitals(inside: &str) -> (bool, &str, usize) {
    let word = inside.strip_prefix('/').unwrap_or(inside);
    let end = word.bytes().position(|c| !c.is_ascii_uppercase() && c != b'_');
    let end = end.unwrap_or(word.len());
    (word.len() < inside.len(), &word[..end], inside.len() - word.len() + end)
}

fn ends_name(c: char) -> bool {
    // What an entity stands for is looked at where attributes are read.
    matches!(c, ']' | '/' | '&') || c.is_whitespace()
}

/// A name in any case, with escapes and invisible characters in it, or with its words not joined as
/// they should be.
fn loose_name(inside: &str) -> Option<Name> {
    let (mut is_closing, mut is_upper, mut repairs) = (false, true, Repairs::default());
    let mut word = String::new();
    let (mut first_ended, mut is_folded) = (false, false);
    for (at, given) in inside.char_indices().take(LONGEST) {
        let length = at;
        let c = folded(given);
        is_folded |= c != given;
        match c {
            '/' if word.is_empty() && !is_closing => is_closing = true,
            '\\' => repairs.add(Repairs::ESCAPES),
            c if is_zero_width(c) => repairs.add(Repairs::INVISIBLE),
            c if c.is_whitespace() && c != '\n' && word.is_empty() => repairs.add(Repairs::SPACES),
            c if c.is_ascii_alphabetic() || matches!(c, '_' | '-') => {
                is_upper &= !c.is_ascii_lowercase();
                word.push(c.to_ascii_uppercase());
            }
            _ if word.is_empty() => return None,
            _ => {
                let found = called(&word).filter(|_| !first_ended);
                if let Some(command) = found {
                    if !is_upper {
                        repairs.add(Repairs::CASE);
                    }
                    let name = Name::new(command, is_closing, length);
                    let name = Name { is_misspelt: is_folded, is_upper, repairs, ..name };
                    return ends_name(given).then_some(name);
                }
                if let Some(command) = named(&word, is_nearly).filter(|_| ends_name(c)) {
                    let name = Name::new(command, is_closing, length);
                    return Some(Name { is_misspelt: true, is_upper, repairs, ..name });
                }
                if first_ended || c == '\n' || !c.is_whitespace() {
                    return None;
                }
                first_ended = true;
            }
        }
    }
    None
}

/// The letter, the sign or the blank that a character looks like, of those that a name is made of.
fn folded(c: char) -> char {
    match c {
        // As wide as an ideograph.
        '\u{ff21}'..='\u{ff3a}' | '\u{ff41}'..='\u{ff5a}' | '\u{ff3f}' => {
            char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c)
        }
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        c => c,
    }
}

/// The command of just that name.
fn called(word: &str) -> Option<u8> {
    named(word, |name, word| name == word)
}

fn named(word: &str, alike: fn(&'static str, &str) -> bool) -> Option<u8> {
    (0..).zip(&COMMANDS).find(|(_, command)| alike(command.name, word)).map(|(n, _)| n)
}

/// Whether a word differs from a name only in how its words are joined.
fn is_nearly(name: &'static str, word: &str) -> bool {
    let letters = |text: &'static str| text.bytes().filter(u8::is_ascii_alphabetic);
    let sought = word.bytes().filter(u8::is_ascii_alphabetic);
    name.contains('_') && name != word && letters(name).eq(sought)
}
