//! Finds the simple commands in a command line, even nested ones.
//!
//! Only syntax that `sh` and `bash` read in the same way is accepted. Any other line counts as unreadable. The policy
//! then decides as strictly as its lists allow.

mod lexer;
mod programs;

use std::borrow::Cow;

pub(super) use programs::{name, standard};

use crate::text::{shell_word, visible_line};

/// The longest line that is read, in bytes.
pub const LONGEST: usize = 64 << 10;
/// How deeply lists may be nested in groups, in substitutions and in texts for shells.
const MAX_DEPTH: u8 = 4;
const TOO_DEEP: &str = "its commands are nested too deeply";
/// The most commands that are read.
const MAX_COMMANDS: usize = 2_000;

/// The reason why the rest of a line is not read.
type ReadError = Cow<'static, str>;

/// A word of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Word {
    /// The word without quotes. `~` replaces a leading `$HOME`, and other substitutions are left out.
    pub text: String,
    /// The word as written.
    pub shown: String,
    /// Whether the shell inserts text that is not in the line.
    pub open: bool,
    /// Whether the word contains an unquoted `*`, `?` or `[`.
    pub glob: bool,
    /// Whether `text` begins with the home folder.
    pub home: bool,
}

impl Word {
    /// A word without expansions.
    pub(super) fn literal_of(text: &str) -> Self {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
        let is_plain = !text.is_empty() && text.chars().all(is_plain);
        let shown = if is_plain { text.to_owned() } else { shell_word(text) };
        Self { text: text.to_owned(), shown, ..Self::default() }
    }

    /// The value of the word, if the line alone determines it.
    pub fn literal(&self) -> Option<&str> {
        (!self.open && !self.glob && !self.home).then_some(&self.text)
    }
}

/// A simple command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Simple {
    /// The words, starting with the program. Never empty.
    pub words: Vec<Word>,
    /// Whether the command only starts another one, which is also in the list.
    pub wrapper: bool,
}

impl Simple {
    /// The command in one line, for display.
    pub fn text(&self) -> String {
        let words: Vec<&str> = self.words.iter().map(|word| &*word.shown).collect();
        words.join(" ")
    }
}

/// The readable parts of a command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParsedLine {
    /// The simple commands. If a part is unreadable, only those before it.
    pub commands: Vec<Simple>,
    /// Phrases that describe what cannot be determined from the text.
    pub unreadable: Vec<String>,
    /// Whether a part of the line was not read. That part may contain anything.
    pub is_partial: bool,
}

impl ParsedLine {
    /// Records something that cannot be determined, once.
    fn note_unreadable(&mut self, why: impl Into<String>) {
        let why = why.into();
        if !self.unreadable.contains(&why) && self.unreadable.len() < 20 {
            self.unreadable.push(why);
        }
    }

    /// Records a variable that may change the meaning of the rest of the line.
    fn note_variable(&mut self, text: &str) {
        if mentions(text) {
            let name = visible_line(text.split(['=', '[']).next().unwrap_or_default());
            self.note_unreadable(format!("{name} is set, which changes what the line means"));
        }
    }
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Whether a text is a valid variable name.
fn is_name(text: &str) -> bool {
    text.chars().all(is_of_name) && text.starts_with(|c: char| !c.is_ascii_digit())
}

/// Whether a text contains the name of a variable that determines which program a name refers to, or which other code
/// programs run.
fn mentions(text: &str) -> bool {
    text.split(|c| !is_of_name(c)).any(programs::misleads)
}

/// Reads a command line. Never fails.
pub fn read(text: &str) -> ParsedLine {
    read_with(text, [])
}

/// Reads a command line that runs with these additional variables.
pub(super) fn read_with<'a>(
    text: &str,
    variables: impl IntoIterator<Item = &'a str>,
) -> ParsedLine {
    let mut reading = ParsedLine::default();
    for variable in variables {
        reading.note_variable(variable.split('=').next().unwrap_or_default());
    }
    if let Err(why) = read_into(text, &mut reading, MAX_DEPTH) {
        reading.is_partial = true;
        reading.note_unreadable(why);
    }
    reading
}

/// Reads a command line, which may be nested in another one.
fn read_into(text: &str, into: &mut ParsedLine, depth: u8) -> Result<(), ReadError> {
    if text.len() > LONGEST {
        return Err(format!("it is longer than {} KiB", LONGEST >> 10).into());
    }
    if text.contains(|c: char| c.is_control() && !"\n\t".contains(c)) {
        return Err("it contains a control character".into());
    }
    lexer::Lexer::new(text, into, depth).list(None)
}

/// The words of a policy's pattern, separated by white space, without quotes.
pub(super) fn pattern_words(pattern: &str) -> Vec<Word> {
    let word = |word| lexer::only_word(word).unwrap_or_else(|| Word::literal_of(word));
    pattern.split_whitespace().map(word).collect()
}
