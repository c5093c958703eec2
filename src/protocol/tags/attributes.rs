//! Reads the attributes of an opening tag, even if a chat window has changed them.
//!
//! ```text
//! attributes = { key "=" value [ "," ] } ( "]" | "/]" | "\]" )          blanks between all of them
//! value      = quote { any } quote | { any but a blank, "]", "," and '"' }
//! ```

use std::sync::LazyLock;

use memchr::memchr;
use regex::Regex;
use serde::Deserialize;

use super::catalogue::TagCommand;
use super::lexer::{Decoration, is_zero_width};
use crate::protocol::content_checks::TablePattern;
use crate::protocol::mistake::Problem;
pub(super) use crate::protocol::mistake::brief;
use crate::protocol::{Kind, Mistake, Warning, WarningKind};

/// The most unknown attributes that are read. This limits the work for a hostile tag.
const LIMIT: usize = 16;
/// The longest attribute, in bytes.
const LONGEST: usize = 1 << 14;

/// A row of a table. Anything that its pattern matches is refused.
#[derive(Deserialize)]
pub(super) struct RefusedPattern {
    pub(super) pattern: TablePattern,
    pub(super) mistake: Mistake,
    pub(super) phrase: String,
    /// The commands for which an attribute is refused.
    #[serde(default)]
    pub(super) kinds: Vec<Kind>,
    /// Whether a path is refused even after `./`.
    #[serde(default)]
    pub(super) always: bool,
}

#[derive(Deserialize)]
struct AttributeTables {
    blanks: TablePattern,
    blanks_and_commas: TablePattern,
    attribute: TablePattern,
    entities: Vec<(String, String)>,
    refused: Vec<RefusedPattern>,
    end: TablePattern,
}

static TABLES: LazyLock<AttributeTables> = LazyLock::new(|| {
    toml::from_str(include_str!("data/attributes.toml")).expect("a constant table")
});

/// The attributes of an opening tag, in the catalogue's order, and the text after its `]`.
pub(super) struct OpeningTag<'a> {
    pub(super) values: Vec<Option<String>>,
    pub(super) after: &'a str,
    pub(super) warnings: Vec<Warning>,
}

/// Reads the rest of an opening tag after the command's name, and adds the repairs it needed to `decoration`.
///
/// # Errors
/// The problem with the tag.
pub(super) fn read<'a>(
    command: &TagCommand,
    text: &'a str,
    decoration: &mut Decoration,
) -> Result<OpeningTag<'a>, Problem> {
    if decoration.has(Decoration::STRUCK) {
        return Err(Problem::new(Mistake::LooksLikeTag, "the tag is struck out (~~)"));
    }
    let attributes = &command.attributes;
    let mut values = vec![None; attributes.len()];
    let mut unknown: Vec<String> = Vec::new();
    let mut is_bare = false;
    let mut cursor = Cursor { rest: text, decoration };
    cursor.skip(&TABLES.blanks);
    while !(cursor.take("]") || cursor.take("/]") || cursor.take("\\]")) {
        let begin = cursor.rest;
        let pair = cursor.pair().ok_or_else(|| unreadable(command, begin))?;
        let at = attributes.iter().position(|known| known.name.eq_ignore_ascii_case(&pair.key));
        if command.kind == Kind::Search && at == Some(0) {
            let is_escaped = cursor.decoration.has(Decoration::ESCAPES);
            // It is unclear which backslashes belong to the pattern.
            if is_escaped && pair.raw.trim_start_matches('\\').contains('\\') {
                let phrase = "the characters of the tag arrived escaped (\\), so its pattern is unclear: send the tag in a code block";
                return Err(Problem::new(Mistake::PatternUnclear, phrase));
            }
            // A pattern cannot end in a single backslash, so the quote after the backslash belongs to the pattern.
            if (pair.value.len() - pair.value.trim_end_matches('\\').len()) % 2 == 1 {
                return Err(unreadable(command, begin));
            }
        }
        is_bare |= pair.is_bare;
        let is_twice = match at {
            Some(at) => {
                if attributes[at].name != pair.key {
                    cursor.decoration.add(Decoration::CASE);
                }
                values[at].replace(pair.value).is_some()
            }
            None => {
                let is_twice = unknown.contains(&pair.key);
                unknown.push(pair.key);
                is_twice
            }
        };
        if is_twice {
            let phrase = format!("`{}` gives an attribute twice", brief(pair.raw));
            return Err(Problem::new(Mistake::AttributeTwice, phrase));
        }
        if unknown.len() > LIMIT {
            let phrase = format!("there are more than {LIMIT} attributes");
            return Err(Problem::new(Mistake::TagUnreadable, phrase));
        }
        cursor.skip(&TABLES.blanks_and_commas);
    }
    let after = cursor.rest;
    // In this case it is unclear where an unquoted value ends.
    if is_bare && after.contains(']') && !after.contains("[/") {
        return Err(Problem::new(Mistake::TagUnreadable, "a value without quotes contains a ]"));
    }
    let mut given = attributes.iter().zip(&values);
    if let Some((wanted, _)) = given.find(|(known, value)| known.required && value.is_none()) {
        let phrase = format!("the attribute {} is missing", wanted.name);
        return Err(Problem::new(Mistake::AttributeMissing, phrase));
    }
    // An edit has both ends of its range, or neither.
    if command.kind == Kind::Edit
        && let [_, start, end, ..] = &values[..]
        && start.is_some() != end.is_some()
    {
        let wanted = if start.is_some() { "end_line" } else { "start_line" };
        let is_range = start.as_ref().or(end.as_ref()).is_some_and(|given| given.contains('-'));
        let mistake = if is_range { Mistake::LineNumber } else { Mistake::AttributeMissing };
        return Err(Problem::new(mistake, format!("the attribute {wanted} is missing")));
    }
    let warnings = unknown.iter().map(|key| check_unknown(command, key)).collect::<Result<_, _>>();
    Ok(OpeningTag { values, after, warnings: warnings? })
}

/// Warns about an unknown attribute, or refuses it if ignoring it could do harm.
fn check_unknown(command: &TagCommand, key: &str) -> Result<Warning, Problem> {
    let (shown, lower) = (brief(key), key.to_ascii_lowercase());
    let is_refused = |refused: &&RefusedPattern| {
        refused.kinds.contains(&command.kind) && refused.pattern.is_match(&lower)
    };
    if let Some(RefusedPattern { mistake, phrase, .. }) = TABLES.refused.iter().find(is_refused) {
        return Err(Problem::new(*mistake, format!("the attribute {shown} {phrase}")));
    }
    let text = format!("the attribute {shown} is unknown to {} and was ignored", command.name);
    Ok(Warning::new(WarningKind::UnknownAttribute, text))
}

fn unreadable(command: &TagCommand, from: &str) -> Problem {
    let mut phrase = if from.trim_end().is_empty() {
        "the tag does not end in ]".to_owned()
    } else {
        format!("cannot read `{}` as attributes (key=\"value\") and a closing ]", brief(from))
    };
    if command.kind == Kind::Search && from.contains('"') {
        phrase.push_str(" (put a pattern that contains double quotes in single ones, without \\ before them: pattern='print(\"x\")')");
    }
    Problem::new(Mistake::TagUnreadable, phrase)
}

/// The readable attributes at the start of a text, and the rest of the text.
pub(super) fn pairs(text: &str) -> (Vec<(String, String)>, &str) {
    let mut decoration = Decoration::default();
    let mut cursor = Cursor { rest: text, decoration: &mut decoration };
    let mut found = Vec::new();
    loop {
        cursor.skip(&TABLES.blanks_and_commas);
        let before = cursor.rest;
        match cursor.pair().filter(|_| found.len() < LIMIT) {
            Some(pair) => found.push((pair.key, pair.value)),
            None => return (found, before),
        }
    }
}

/// Whether a text contains only attributes and decoration.
pub(super) fn are_all(text: &str) -> bool {
    // A value without quotes needs something that ends it.
    let text = format!("{} ", text.trim());
    let (found, rest) = pairs(&text);
    !found.is_empty() && rest.trim_matches(['*', '_', '`', ' ']).is_empty()
}

/// The end word of an opening tag, if it has one. It is searched even if the tag cannot be read, because the body of
/// such a tag must not be executed. If the end word cannot be read, it is empty.
pub(super) fn end_word(text: &str) -> Option<String> {
    let (found, rest) = pairs(text);
    if let Some((_, word)) = found.into_iter().find(|(key, _)| key.eq_ignore_ascii_case("end")) {
        return Some(word);
    }
    TABLES.end.is_match(&rest.to_ascii_lowercase()).then(String::new)
}

/// The end word of a closing tag, and the text after the tag. `text` begins after the tag's name.
pub(super) fn closing_word<'a>(
    text: &'a str,
    decoration: &mut Decoration,
) -> Option<(String, &'a str)> {
    let mut cursor = Cursor { rest: text, decoration };
    cursor.skip(&TABLES.blanks);
    let pair = cursor.pair().filter(|pair| pair.key.eq_ignore_ascii_case("end"))?;
    if pair.key != "end" {
        cursor.decoration.add(Decoration::CASE);
    }
    cursor.skip(&TABLES.blanks);
    let rest = cursor.rest.strip_prefix('\\').unwrap_or(cursor.rest);
    Some((pair.value, rest.strip_prefix(']')?))
}

/// Whether a word is a valid end word.
pub(super) fn is_end_word(word: &str) -> bool {
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    (1..=64).contains(&word.len()) && word.chars().all(is_of_word)
}

/// An attribute.
struct Pair<'a> {
    key: String,
    value: String,
    /// The attribute as it was written.
    raw: &'a str,
    /// Whether the value has no quotes.
    is_bare: bool,
}

/// The unread rest of a tag.
struct Cursor<'a, 'r> {
    rest: &'a str,
    decoration: &'r mut Decoration,
}

impl<'a> Cursor<'a, '_> {
    fn take(&mut self, sign: &str) -> bool {
        let Some(rest) = self.rest.strip_prefix(sign) else { return false };
        self.add_decoration(sign);
        self.rest = rest;
        true
    }

    fn skip(&mut self, blanks: &Regex) {
        let is_blank = |byte: &u8| b" \t".contains(byte);
        let mut length = self.rest.bytes().take_while(is_blank).count();
        let next = self.rest.as_bytes().get(length).copied().unwrap_or(b']');
        if !next.is_ascii_graphic() || b"&,".contains(&next) {
            length = blanks.find(self.rest).map_or(0, |found| found.end());
        }
        let (blanks, rest) = self.rest.split_at(length);
        self.add_decoration(blanks);
        self.rest = rest;
    }

    /// Adds the repairs that are needed for a part of a tag other than a value.
    fn add_decoration(&mut self, text: &str) {
        for c in text.chars() {
            self.decoration.add(match c {
                '\\' => Decoration::ESCAPES,
                '&' | ',' => Decoration::SIGNS,
                c if is_zero_width(c) => Decoration::SIGNS,
                c if c.is_whitespace() && !" \t\r".contains(c) => Decoration::SIGNS,
                _ => Decoration::default(),
            });
        }
    }

    /// Reads the next `key="value"`.
    fn pair(&mut self) -> Option<Pair<'a>> {
        let text = self.rest;
        // Read the usual form without a pattern.
        let is_of_key = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-".contains(byte);
        let key = text.bytes().take_while(is_of_key).count();
        if text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && let Some(rest) = text[key..].strip_prefix("=\"")
            && let Some(value) = memchr(b'"', rest.as_bytes())
            && key + value + 3 < LONGEST
        {
            self.rest = &rest[value + 1..];
            let raw = &text[..key + value + 3];
            let (key, value) = (text[..key].to_owned(), self.decoded(&rest[..value]));
            return Some(Pair { key, value, raw, is_bare: false });
        }
        // Check the length first, because finding groups is slow.
        let whole = TABLES.attribute.find(text).filter(|whole| whole.len() < LONGEST)?;
        let found = TABLES.attribute.captures(whole.as_str())?;
        let [key, sign] = [found.get(1)?, found.get(2)?];
        let value = found.iter().skip(3).flatten().next()?;
        let (mut end, is_bare) = (whole.end(), sign.end() == value.start());
        let (mut value, after) = (&text[value.range()], &text[value.end()..]);
        if is_bare && after.starts_with(']') && !value.starts_with('[') {
            // In `path=a.py/]` the slash closes the tag: no path ends in a slash.
            value = value.trim_end_matches(['/', '\\']);
            end = sign.end() + value.len();
        }
        // In all other cases it is unclear where an unquoted value ends.
        let is_clear = |c: char| c.is_whitespace() || matches!(c, ']' | ',');
        if is_bare && (value.is_empty() || !after.starts_with(is_clear)) {
            return None;
        }
        self.add_decoration(&text[..sign.end()]);
        self.decoration.add(match text.as_bytes()[sign.end()] {
            b'"' if after.starts_with('"') => Decoration::default(),
            // Single quotes are the only way to write a value that contains a double quote.
            b'\'' if value.contains('"') => Decoration::default(),
            b'\\' if !is_bare => Decoration::ESCAPES,
            _ => Decoration::SIGNS,
        });
        self.rest = &text[end..];
        let key = key.as_str().chars().filter(|c| c.is_ascii() && *c != '\\').collect();
        Some(Pair { key, value: self.decoded(value), raw: &text[..end], is_bare })
    }

    /// Decodes the entities and escapes in a value.
    fn decoded(&mut self, value: &str) -> String {
        let decode = |text: String, (entity, c): &(String, String)| text.replace(entity, c);
        let mut plain = value.to_owned();
        if value.contains('&') {
            plain = TABLES.entities.iter().fold(plain, decode);
        }
        if plain != value {
            self.decoration.add(Decoration::SIGNS);
        }
        // If the name was escaped, the value was escaped, too.
        if self.decoration.has(Decoration::ESCAPES) && plain.contains('\\') {
            let mut rest = plain.chars().peekable();
            let mut unescaped = String::with_capacity(plain.len());
            while let Some(c) = rest.next() {
                if c != '\\' || !rest.peek().is_some_and(char::is_ascii_punctuation) {
                    unescaped.push(c);
                }
            }
            return unescaped;
        }
        plain
    }
}
