//! The name in a tag, as it may be written.

use super::catalogue::COMMANDS;
use super::repairs::{Repairs, is_zero_width};

/// The name in a tag.
pub(super) struct Name {
    pub(super) command: u8,
    pub(super) is_closing: bool,
    pub(super) is_misspelt: bool,
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
    for (command, known) in (0..).zip(&COMMANDS) {
        if word.strip_prefix(known.name).is_some_and(is_end) {
            let length = inside.len() - word.len() + known.name.len();
            let repairs = Repairs::default();
            return Some(Name {
                command,
                is_closing,
                is_misspelt: false,
                is_upper: true,
                length,
                repairs,
            });
        }
    }
    loose_name(inside)
}

fn ends_name(c: char) -> bool {
    matches!(c, ']' | '/') || c.is_whitespace()
}

/// A name in any case, with escapes and invisible characters in it, or with its words not joined as
/// they should be.
fn loose_name(inside: &str) -> Option<Name> {
    let (mut is_closing, mut is_upper, mut repairs) = (false, true, Repairs::default());
    let mut word = String::new();
    let mut first_ended = false;
    for (at, c) in inside.char_indices().take(LONGEST) {
        let length = at;
        match c {
            '/' if word.is_empty() && !is_closing => is_closing = true,
            '\\' => repairs.add(Repairs::ESCAPES),
            c if is_zero_width(c) => repairs.add(Repairs::INVISIBLE),
            c if c.is_whitespace() && c != '\n' && word.is_empty() => repairs.add(Repairs::SPACES),
            c if c.is_ascii_alphabetic() || matches!(c, '_' | '-') => {
                is_upper &= !c.is_ascii_lowercase();
                word.push(c.to_ascii_uppercase());
            }
            _ => {
                if !first_ended && let Some(command) = named(&word, |name, word| name == word) {
                    if !is_upper {
                        repairs.add(Repairs::CASE);
                    }
                    let is_misspelt = false;
                    let name = Name { command, is_closing, is_misspelt, is_upper, length, repairs };
                    return ends_name(c).then_some(name);
                }
                let command = named(&word, is_nearly).filter(|_| ends_name(c));
                if let Some(command) = command {
                    let is_misspelt = true;
                    return Some(Name {
                        command,
                        is_closing,
                        is_misspelt,
                        is_upper,
                        length,
                        repairs,
                    });
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

fn named(word: &str, alike: fn(&str, &str) -> bool) -> Option<u8> {
    (0..).zip(&COMMANDS).find(|(_, command)| alike(command.name, word)).map(|(n, _)| n)
}

/// Whether a word differs from a name only in how its words are joined.
fn is_nearly(name: &str, word: &str) -> bool {
    let letters = |text: &str| text.bytes().filter(u8::is_ascii_alphabetic).collect::<Vec<_>>();
    name.contains('_') && name != word && letters(name) == letters(word)
}
