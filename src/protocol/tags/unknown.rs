//! What is written like a block and is none of the commands: `[COPY_FILE path="a" to="b"]`, or
//! `[ASK]` up to `[/ASK]`. A word in brackets that nothing closes and that has no attributes is a label.

use std::collections::HashMap;

use super::attributes::brief;
use super::block::{DONE_IF_OK, refused};
use super::catalogue::{COMMANDS, Command};
use super::lead::lead;
use super::line::Line;
use super::marks::{Mark, What};
use super::names;
use super::reader::Reader;
use super::tails::is_one_tag;
use crate::protocol::{Kind, Mistake, Step};
use crate::text::nearest;

/// The longest name that is looked at, in bytes.
const LONGEST: usize = 40;

/// What names are for that are no other words for a command.
const MEANT: [(Kind, &[&str]); 9] = [
    (Kind::Create, &["SAVE", "TOUCH"]),
    (Kind::Edit, &["PATCH", "DIFF", "REPLACE", "INSERT", "APPEND"]),
    (Kind::Delete, &["RM", "RMDIR", "DELETE_FOLDER", "DELETE_DIRECTORY"]),
    (Kind::Read, &["CAT", "SHOW"]),
    (Kind::List, &["LS", "DIR", "TREE"]),
    (Kind::Search, &["FIND", "FIND_FILE", "FIND_FILES", "SEARCH_CODE", "RG"]),
    // Much of it only a command of the shell does.
    (
        Kind::Run,
        &[
            "MKDIR",
            "CREATE_FOLDER",
            "CREATE_DIRECTORY",
            "CREATE_DIR",
            "MAKE_DIRECTORY",
            "MAKE_DIR",
            "NEW_FOLDER",
            "COPY_FILE",
            "COPY",
            "CP",
            "COPY_FOLDER",
            "CHMOD",
            "TERMINAL",
            "COMMAND",
            "CMD",
            "CONSOLE",
            "GIT",
            "RUN_TESTS",
        ],
    ),
    (Kind::Message, &["ASK", "SAY", "ASK_USER", "QUESTION", "TELL", "ANSWER"]),
    (
        Kind::Done,
        &[
            "SUMMARY",
            "COMPLETE",
            "COMPLETED",
            "FINISH",
            "FINISHED",
            "TASK_COMPLETE",
            "TASK_COMPLETED",
            "TASK_DONE",
            "ATTEMPT_COMPLETION",
            "END",
        ],
    ),
];

/// Labels over words, which close like blocks in some forums.
const LABELS: [&str; 12] = [
    "NOTE",
    "NOTES",
    "TIP",
    "HINT",
    "INFO",
    "WARNING",
    "CAUTION",
    "IMPORTANT",
    "TODO",
    "QUOTE",
    "CODE",
    "SPOILER",
];

/// The blocks by names that are none, as they are met from the beginning of a text on.
#[derive(Default)]
pub(super) struct Unknown<'a> {
    /// The last opening of each name that nothing has closed: which of the marks it is.
    open: HashMap<&'a str, Mark>,
    /// What is one, in no order.
    marks: Vec<Mark>,
    line: Line,
}

impl<'a> Unknown<'a> {
    /// Looks at the bracket at an offset, which is no tag of ours.
    pub(super) fn see(&mut self, text: &'a str, at: usize) {
        let inside = &text[at + 1..];
        let word = inside.strip_prefix('/').unwrap_or(inside);
        let Some(length) = name(word) else { return };
        let Some(lead) = lead(text, at).filter(|lead| lead.repairs.is_none()) else { return };
        let name_end = at + 1 + inside.len() - word.len() + length;
        let name = &word[..length];
        let Some(end) = self.line.for_one_more(text, at) else { return };
        let tail = text[name_end..end].trim_end();
        if word.len() < inside.len() {
            if tail == "]"
                && let Some(mut opening) = self.open.remove(name)
                && !is_label(name, &text[opening.at..opening.name_end])
            {
                opening.name_end = end;
                self.marks.push(opening);
            }
            return;
        }
        let mark = Mark::of(What::Unknown, lead.line, at, end);
        let closing = tail.strip_suffix(']').and_then(|tail| tail.strip_suffix(name));
        let is_upper = !name.bytes().any(|c| c.is_ascii_lowercase());
        if closing.is_some_and(|tail| tail.ends_with("[/")) {
            if !is_label(name, &text[at..name_end]) {
                self.marks.push(mark);
            }
        } else if is_one_tag(tail) {
            // Closed further down it takes up what stands between.
            if let Some(before) = self.open.insert(name, mark).filter(|_| is_upper) {
                self.keep(text, before);
            }
        }
    }

    /// One that nothing closes, which is a command only where it has attributes.
    fn keep(&mut self, text: &str, mark: Mark) {
        if has_attribute(&text[mark.at..mark.name_end]) {
            self.marks.push(mark);
        }
    }

    /// All that were met.
    pub(super) fn marks(mut self, text: &str) -> Vec<Mark> {
        let is_upper = |name: &str| !name.bytes().any(|c| c.is_ascii_lowercase());
        for (name, mark) in std::mem::take(&mut self.open) {
            if is_upper(name) {
                self.keep(text, mark);
            }
        }
        self.marks
    }
}

/// How long the name is that a text begins with: in capitals, or of words that are joined by `_`.
fn name(text: &str) -> Option<usize> {
    let is_of_name = |c: &u8| c.is_ascii_alphanumeric() || *c == b'_';
    let length = text.bytes().take(LONGEST + 1).take_while(is_of_name).count();
    let name = &text[..length];
    let is_lower = name.bytes().any(|c| c.is_ascii_lowercase());
    let is_name = (2..=LONGEST).contains(&length)
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && (!is_lower || name.contains('_'));
    let ends = text[length..].starts_with(|c: char| c == ']' || c == '/' || c.is_whitespace());
    (is_name && ends).then_some(length)
}

/// Whether a name is none but of words, in a tag that says no more.
fn is_label(name: &str, tag: &str) -> bool {
    LABELS.contains(&name) && !has_attribute(tag)
}

/// Whether a tag has an attribute with a value in quotes.
fn has_attribute(tag: &str) -> bool {
    let quotes = ['"', '\'', '“', '”', '‘'];
    tag.match_indices('=').any(|(at, _)| {
        tag[..at].trim_end().ends_with(|c: char| c.is_ascii_alphanumeric())
            && tag[at + 1..].trim_start().starts_with(quotes)
    })
}

/// Which command is meant by a name.
fn meant(name: &str) -> Option<&'static Command> {
    let name = name.to_ascii_uppercase();
    let of_kind = |kind| COMMANDS.iter().find(|command| command.kind == kind);
    if name.starts_with("DONE_") {
        return of_kind(Kind::Done);
    }
    let own = || MEANT.iter().find(|(_, names)| names.contains(&name.as_str()));
    let kind = names::meant(&name).map(|found| found.0).or_else(|| own().map(|found| found.0));
    if let Some(kind) = kind {
        return of_kind(kind);
    }
    let near = nearest(&name, COMMANDS.iter().map(|command| command.name))?;
    COMMANDS.iter().find(|command| command.name == near)
}

impl Reader<'_> {
    /// A block, or a tag, by a name that no command has.
    pub(super) fn unknown(&mut self, mark: &Mark) {
        let number = self.number(mark.line);
        let end = self.line_end(mark.at);
        let tag = brief(self.text[mark.at..end].trim());
        let inside = &self.text[mark.at + 1..end];
        let meant = name(inside).and_then(|length| meant(&inside[..length]));
        self.at = self.next_line(mark.at);
        if mark.name_end > end {
            self.pass(self.at, self.next_line(mark.name_end));
        }
        let told = format!("Line {number}: `{tag}` is no command, so it was not carried out;");
        let step = match meant {
            Some(command) => {
                let is_if = command.kind == Kind::Done && inside.starts_with(command.name);
                let form = if is_if { DONE_IF_OK } else { command.form };
                let told =
                    format!("{told} {} is meant, perhaps. Correct form: {form}", command.name);
                refused(command, number, Mistake::OtherName, told)
            }
            None => {
                let commands = COMMANDS.iter().filter(|command| command.kind != Kind::Reply);
                let names: Vec<&str> = commands.map(|command| command.name).collect();
                let told = format!("{told} the commands are {}, and no others", names.join(", "));
                Step::refused(number, Mistake::OtherName, told)
            }
        };
        self.push(step, mark.line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_the_command_that_does_it() {
        for (name, command) in [
            ("MKDIR", Some("RUN_COMMAND")),
            ("ASK", Some("MESSAGE")),
            ("TASK_COMPLETE", Some("DONE")),
            ("RUN_COMAND", Some("RUN_COMMAND")),
            ("create_fiel", Some("CREATE_FILE")),
            ("QUUX", None),
        ] {
            assert_eq!(meant(name).map(|command| command.name), command, "{name}");
        }
    }
}
