//! What a command line makes the shell do: its simple commands, wherever they stand in it.
//!
//! The line is parsed by the shell grammar of tree-sitter. That grammar was made to colour text and
//! errs in places, so nothing of it is believed that a second look at the text does not bear out:
//! what stands between two words must be blank, and a word must be one word by the shell's rules of
//! quoting. Where the two disagree, or `sh` and `bash` would, the line counts as unreadable.

mod grammar;
mod heredoc;
mod kinds;
mod literal;
mod looked_through;
mod options;
mod shells;
mod substitutions;
mod tree;
mod variables;
mod word;

#[cfg(test)]
pub(super) use grammar::now;
pub(super) use looked_through::{name, standard};
pub use word::Word;
pub(super) use word::plain;

/// The longest line that is read, in bytes.
pub const LONGEST: usize = 64 << 10;
/// How deep a command line within a command line is looked into.
const DEPTH: u8 = 4;
/// The most simple commands that are told apart.
const MOST: usize = 2_000;

/// One command as the shell would start it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Simple {
    /// Its words, the program first; never empty.
    pub words: Vec<Word>,
    /// Whether all that it does is to start another, which then stands in the list as well.
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
    /// The simple commands; where a part cannot be read, perhaps not all.
    pub commands: Vec<Simple>,
    /// What cannot be told from the text, a phrase each.
    pub unreadable: Vec<String>,
}

impl Reading {
    /// Notes what cannot be read, once.
    fn cannot(&mut self, why: impl Into<String>) {
        let why = why.into();
        if !self.unreadable.contains(&why) && self.unreadable.len() < 20 {
            self.unreadable.push(why);
        }
    }
}

/// Reads a command line. Never fails, and takes 50 ms of the processor at most for parsing: what is
/// beyond that counts as unreadable.
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
        variables::set(variable, &mut reading);
    }
    let mut budget = grammar::Budget::new();
    within(text, &mut reading, &mut budget, DEPTH);
    reading
}

/// Reads a command line that stands in another.
fn within(text: &str, into: &mut Reading, budget: &mut grammar::Budget, depth: u8) {
    if depth == 0 {
        into.cannot("commands within commands go too deep");
    } else if text.len() > LONGEST {
        into.cannot(format!("it is longer than {} KiB", LONGEST >> 10));
    } else if text.contains('\0') {
        into.cannot("it holds a null character");
    } else if let Some(tree) = budget.parse(text) {
        if kinds::all_between(tree.root_node(), |at| text.is_char_boundary(at)) {
            tree::Walk { text, into, budget, depth }.program(tree.root_node());
        } else {
            into.cannot("its characters can be taken in more than one way");
        }
    } else {
        into.cannot("reading it takes too long");
    }
}
