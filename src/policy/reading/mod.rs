//! What a command line makes the shell do: its simple commands, wherever they are in it.
//!
//! Only what `sh` and `bash` take apart in one way is read. Of all else nothing is believed: the line counts as
//! unreadable, and a policy decides about it as strictly as its lists allow.

mod lexer;
mod programs;

use std::borrow::Cow;

pub(super) use programs::{name, standard};

use crate::text::{shell_word, visible_line};

/// The longest line that is read, in bytes.
pub const LONGEST: usize = 64 << 10;
/// How deep lists in groups, in substitutions and in the texts of shells are read.
const DEPTH: u8 = 4;
const TOO_DEEP: &str = "commands within commands go too deep";
/// The most commands that are told apart.
const MOST: usize = 2_000;

/// Why a line is not read further.
type Fault = Cow<'static, str>;

/// A word of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Word {
    /// Without its quotes. `~` and `$HOME` in front are `~`; what a substitution gives is left out.
    pub text: String,
    /// As it is on the line.
    pub shown: String,
    /// Whether the shell puts in something that the line does not tell.
    pub open: bool,
    /// Whether it contains an unquoted `*`, `?` or `[`.
    pub glob: bool,
    /// Whether `text` begins with the home folder.
    pub home: bool,
}

impl Word {
    /// A word that is what it says.
    pub(super) fn known(text: &str) -> Self {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
        let is_plain = !text.is_empty() && text.chars().all(is_plain);
        let shown = if is_plain { text.to_owned() } else { shell_word(text) };
        Self { text: text.to_owned(), shown, ..Self::default() }
    }

    /// What it is, where the line alone tells.
    pub fn literal(&self) -> Option<&str> {
        (!self.open && !self.glob && !self.home).then_some(&self.text)
    }
}

/// One command as the shell would start it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Simple {
    /// Its words, the program first; never empty.
    pub words: Vec<Word>,
    /// Whether all that it does is to start another, which then is in the list as well.
    pub wrapper: bool,
}

impl Simple {
    /// The command in one line, for a person.
    pub fn text(&self) -> String {
        let words: Vec<&str> = self.words.iter().map(|word| &*word.shown).collect();
        words.join(" ")
    }
}

/// All that could be told of a command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    /// The simple commands; where a part is not read, those before it.
    pub commands: Vec<Simple>,
    /// What cannot be told from the text, a phrase each.
    pub unreadable: Vec<String>,
    /// Whether a part of the line was not read at all, so that anything may be in it.
    pub is_partial: bool,
}

impl Reading {
    /// Notes what cannot be told, once.
    fn cannot(&mut self, why: impl Into<String>) {
        let why = why.into();
        if !self.unreadable.contains(&why) && self.unreadable.len() < 20 {
            self.unreadable.push(why);
        }
    }

    /// Notes a variable after which the rest of the line may mean something else.
    fn sets(&mut self, text: &str) {
        if mentions(text) {
            let name = visible_line(text.split(['=', '[']).next().unwrap_or_default());
            self.cannot(format!("{name} is set, which changes what the line means"));
        }
    }
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Whether a text can be the name of a variable.
fn is_name(text: &str) -> bool {
    text.chars().all(is_of_name) && text.starts_with(|c: char| !c.is_ascii_digit())
}

/// Whether a text contains the name of a variable that decides which program a name stands for, or what programs run
/// beside.
fn mentions(text: &str) -> bool {
    text.split(|c| !is_of_name(c)).any(programs::misleads)
}

/// Reads a command line. Never fails.
pub fn read(text: &str) -> Reading {
    read_with(text, [])
}

/// The same of a line that is run with these variables besides those that every line has.
pub(super) fn read_with<'a>(text: &str, variables: impl IntoIterator<Item = &'a str>) -> Reading {
    let mut reading = Reading::default();
    for variable in variables {
        reading.sets(variable.split('=').next().unwrap_or_default());
    }
    if let Err(why) = read_into(text, &mut reading, DEPTH) {
        reading.is_partial = true;
        reading.cannot(why);
    }
    reading
}

/// Reads a command line that may be in another.
fn read_into(text: &str, into: &mut Reading, depth: u8) -> Result<(), Fault> {
    if text.len() > LONGEST {
        return Err(format!("it is longer than {} KiB", LONGEST >> 10).into());
    }
    if text.contains(|c: char| c.is_control() && !"\n\t".contains(c)) {
        return Err("it contains a control character".into());
    }
    lexer::Lexer::new(text, into, depth).list(None)
}

/// The words of a pattern of a policy: between blanks, without quotes.
pub(super) fn plain(pattern: &str) -> Vec<Word> {
    let word = |word| lexer::only_word(word).unwrap_or_else(|| Word::known(word));
    pattern.split_whitespace().map(word).collect()
}
