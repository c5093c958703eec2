//! What a command line makes the shell do: its simple commands, wherever they are in it.
//!
//! Only what `sh` and `bash` take apart in one way is read. Of all else nothing is believed: the line counts as
//! unreadable, and a policy decides about it as strictly as its lists allow.

mod lexer;
mod options;
mod programs;
mod shells;

pub(super) use programs::{name, standard};

use crate::text::{shell_word, visible_line};

/// The longest line that is read, in bytes.
pub const LONGEST: usize = 64 << 10;
/// How deep a command line within a command line is looked into.
const DEPTH: u8 = 4;
/// The most simple commands that are told apart.
const MOST: usize = 2_000;

/// Variables that decide which program a name stands for, or what programs run beside.
const MISLEADING: [&str; 15] = [
    "PATH",
    "IFS",
    "ENV",
    "BASH_ENV",
    "BASH_CMDS",
    "BASH_ALIASES",
    "SHELLOPTS",
    "BASHOPTS",
    "PS4",
    "PROMPT_COMMAND",
    "NODE_OPTIONS",
    "BUN_OPTIONS",
    "LD_",
    "DYLD_",
    "BASH_FUNC_",
];

/// A word of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Word {
    /// Without its quotes. `~` and `$HOME` in front are `~`; what a substitution gives is left out.
    text: String,
    /// As it is on the line.
    shown: String,
    /// Whether the shell puts in something that the line does not tell.
    open: bool,
    /// Whether it stands for the names of files.
    glob: bool,
    /// Whether `text` begins with the home folder.
    home: bool,
}

impl Word {
    /// A word that is what it says.
    pub(super) fn known(text: &str) -> Self {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
        let is_plain = !text.is_empty() && text.chars().all(is_plain);
        let shown = if is_plain { text.to_owned() } else { shell_word(text) };
        Self { text: text.to_owned(), shown, ..Self::default() }
    }

    /// A word that nothing is known of, as `shown` to a person.
    fn unknown(shown: &str) -> Self {
        Self { shown: shown.to_owned(), open: true, ..Self::default() }
    }

    /// The same word where a part of it is put in by a program.
    fn opened(&self) -> Self {
        Self { open: true, ..self.clone() }
    }

    /// The same word without the first `n` bytes of its text.
    fn behind(&self, n: usize) -> Self {
        let text = self.text.get(n..).unwrap_or_default().to_owned();
        Self { text, home: false, ..self.clone() }
    }

    /// Its text without quotes, as far as that is known.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// As it is on the line.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// What it is, where the line alone tells.
    pub fn literal(&self) -> Option<&str> {
        (!self.open && !self.glob && !self.home).then_some(&self.text)
    }

    /// Whether the shell puts in something that the line does not tell.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Whether it contains an unquoted `*`, `?` or `[`.
    pub fn is_glob(&self) -> bool {
        self.glob
    }

    /// Whether it begins with the home folder.
    pub fn is_home(&self) -> bool {
        self.home
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
        let words: Vec<&str> = self.words.iter().map(Word::shown).collect();
        words.join(" ")
    }
}

/// All that could be told of a command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    /// The simple commands; where a part is not read, perhaps not all.
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

    /// Notes why a part was not read.
    fn stops(&mut self, why: impl Into<String>) {
        self.is_partial = true;
        self.cannot(why);
    }

    /// Notes a variable after which the rest of the line may mean something else.
    fn sets(&mut self, text: &str) {
        if mentions(text) {
            let name = text.split(['=', '[']).next().unwrap_or_default();
            self.cannot(format!(
                "{} is set, which changes what the line means",
                visible_line(name)
            ));
        }
    }
}

/// Whether a text contains the name of a misleading variable.
fn mentions(text: &str) -> bool {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.split(|c| !is_of_name(c)).any(|name| {
        MISLEADING.iter().any(|one| name == *one || (one.ends_with('_') && name.starts_with(one)))
    })
}

/// Reads a command line. Never fails.
///
/// # Examples
/// ```
/// use deaddrop::policy::reading::read;
/// let reading = read("cd src && env CI=1 npm test | tee \"$LOG\"");
/// let found: Vec<String> = reading.commands.iter().map(|simple| simple.text()).collect();
/// assert_eq!(found, ["cd src", "env CI=1 npm test", "npm test", "tee \"$LOG\""]);
/// assert!(reading.unreadable.is_empty());
/// assert!(!read("$EDITOR notes").unreadable.is_empty());
/// ```
pub fn read(text: &str) -> Reading {
    read_with(text, [])
}

/// The same of a line that is run with these variables besides those that every line has.
pub(super) fn read_with<'a>(text: &str, variables: impl IntoIterator<Item = &'a str>) -> Reading {
    let mut reading = Reading::default();
    for variable in variables {
        reading.sets(variable.split('=').next().unwrap_or_default());
    }
    within(text, &mut reading, DEPTH);
    reading
}

/// Reads a command line that is in another.
fn within(text: &str, into: &mut Reading, depth: u8) {
    if depth == 0 {
        into.stops("commands within commands go too deep");
    } else if text.len() > LONGEST {
        into.stops(format!("it is longer than {} KiB", LONGEST >> 10));
    } else if text.contains('\0') {
        into.stops("it contains a null character");
    } else if text.starts_with("\\\n")
        || text.match_indices("\\\n").any(|(at, _)| !text[..at].ends_with([' ', '\t']))
    {
        into.stops("lines are joined within a word");
    } else {
        let mut lexer = lexer::Lexer {
            text,
            at: 0,
            into,
            depth,
            level: 0,
            awaited: Vec::new(),
            joins: false,
            is_head: false,
            document: None,
        };
        if let Err(why) = lexer.list(None) {
            into.stops(why);
        }
    }
}

/// The words of a pattern of a policy: between blanks, without quotes.
pub(super) fn plain(pattern: &str) -> Vec<Word> {
    let word = |word| lexer::only_word(word).unwrap_or_else(|| Word::known(word));
    pattern.split_whitespace().map(word).collect()
}
