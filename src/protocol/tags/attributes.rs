//! The attributes of an opening tag, as a chat window may have left them.

use super::catalogue::Command;
use super::lexer::{Decoration, is_zero_width};
use super::range::is_number;
use super::wrong::{Wrong, wrong};
pub(super) use crate::protocol::mistake::brief;
use crate::protocol::{Kind, Mistake, Warning, WarningSort};

/// More attributes than any command has; bounds the work on a hostile tag.
const LIMIT: usize = 16;

/// An opening tag's attributes, in the catalogue's order, and what follows its `]`.
pub(super) struct Opening<'a> {
    pub(super) values: Vec<Option<String>>,
    pub(super) after: &'a str,
    pub(super) warnings: Vec<Warning>,
}

impl Opening<'_> {
    /// The value of one of the command's attributes.
    pub(super) fn value(&self, command: &Command, name: &str) -> Option<&str> {
        let at = command.attributes.iter().position(|known| known.name == name)?;
        self.values.get(at)?.as_deref()
    }
}

/// Reads what follows a command's name in its opening tag, and adds what had to be overlooked. An
/// error says what is wrong with the tag.
pub(super) fn read<'a>(
    command: &Command,
    text: &'a str,
    decoration: &mut Decoration,
) -> Result<Opening<'a>, Wrong> {
    if decoration.has(Decoration::STRUCK) {
        return Err(wrong(Mistake::LooksLikeTag, "the tag is struck out (~~)"));
    }
    let mut found: Vec<(String, String)> = Vec::new();
    let mut cursor = Cursor { rest: text, decoration };
    let mut unquoted = false;
    let after = loop {
        cursor.skip_blanks(!found.is_empty());
        let begin = cursor.rest;
        if let Some(after) = ["]", "/]", "\\]"].iter().find_map(|end| begin.strip_prefix(end)) {
            if begin.starts_with('\\') {
                cursor.decoration.add(Decoration::ESCAPES);
            }
            break after;
        }
        let (key, value, bare) = cursor.pair().ok_or_else(|| unreadable(command, begin))?;
        unquoted |= bare;
        // Nobody could say which of a pattern's backslashes were meant.
        let pair = begin[..begin.len() - cursor.rest.len()].trim_start_matches('\\');
        let is_pattern = command.kind == Kind::Search && key.eq_ignore_ascii_case("pattern");
        if is_pattern && cursor.decoration.has(Decoration::ESCAPES) && pair.contains('\\') {
            let told = "the characters of the tag arrived escaped (\\), so its pattern is not known: send the tag in a code block; the pattern is";
            return Err(wrong(Mistake::PatternUnclear, told));
        }
        // No pattern ends in one: the quote behind it is meant to be of the pattern.
        if is_pattern && (value.len() - value.trim_end_matches('\\').len()) % 2 == 1 {
            return Err(unreadable(command, begin));
        }
        let known = command.attributes.iter().find(|a| a.name.eq_ignore_ascii_case(&key));
        if known.is_some_and(|known| known.name != key) {
            cursor.decoration.add(Decoration::CASE);
        }
        let key = known.map_or(key, |known| known.name.to_owned());
        if found.iter().any(|(k, _)| *k == key) {
            let told = format!("the attribute {key} is given twice");
            return Err(wrong(Mistake::AttributeTwice, told));
        }
        if found.len() == LIMIT {
            let told = format!("there are more than {LIMIT} attributes");
            return Err(wrong(Mistake::TagUnreadable, told));
        }
        found.push((key, value));
    };
    // Otherwise the end of a value without quotes is not known.
    if unquoted && after.contains(']') && !after.contains("[/") {
        return Err(wrong(Mistake::TagUnreadable, "a value without quotes contains a ]"));
    }
    let warnings = checked(command, &found)?;
    let mut values = Vec::with_capacity(command.attributes.len());
    for wanted in command.attributes {
        let value = found.iter_mut().find(|(key, _)| key == wanted.name);
        values.push(value.map(|(_, value)| std::mem::take(value)));
    }
    Ok(Opening { values, after, warnings })
}

/// Checks the attributes against those that the command knows and needs.
fn checked(command: &Command, found: &[(String, String)]) -> Result<Vec<Warning>, Wrong> {
    let name = command.name;
    let mut warnings = Vec::new();
    let is_known = |key: &str| command.attributes.iter().any(|known| known.name == key);
    for (key, _) in found.iter().filter(|(key, _)| !is_known(key)) {
        let but = match command.kind {
            // Elsewhere it may do harm.
            Kind::Run if is_place(key) => {
                "whose commands start in the workspace root (let the first line be `cd` and the folder)"
            }
            Kind::Done if is_condition(key) => "which knows only the condition if=\"ok\"",
            _ => "",
        };
        let key = brief(key);
        if !but.is_empty() {
            let told = format!("the attribute {key} is unknown to {name}, {but},");
            return Err(wrong(Mistake::UnknownAttribute, told));
        }
        let told = format!("the attribute {key} is unknown to {name} and was ignored");
        warnings.push(Warning::new(WarningSort::UnknownAttribute, told));
    }
    let is_there = |name: &str| found.iter().any(|(key, _)| key == name);
    if let Some(wanted) = command.attributes.iter().find(|a| a.required && !is_there(a.name)) {
        return Err(missing(command, wanted.name, found));
    }
    // An edit has both ends of its range or neither.
    let given = ["start_line", "end_line"].map(is_there);
    if command.kind == Kind::Edit && given[0] != given[1] {
        let wanted = if given[0] { "end_line" } else { "start_line" };
        return Err(missing(command, wanted, found));
    }
    let bodies: &[&str] = match command.kind {
        Kind::Run => &["command", "cmd"],
        Kind::Create | Kind::Edit => &["content", "contents"],
        Kind::Message | Kind::Done => &["text", "message", "summary"],
        _ => &[],
    };
    let is_body = |key: &&str| bodies.iter().any(|body| body.eq_ignore_ascii_case(key));
    if let Some(key) = found.iter().map(|(key, _)| key.as_str()).find(is_body) {
        let told = format!("{key} is no attribute of {name} (its body goes on the lines below)");
        return Err(wrong(Mistake::BodyAsAttribute, told));
    }
    Ok(warnings)
}

fn unreadable(command: &Command, from: &str) -> Wrong {
    let mut told = if from.trim_end().is_empty() {
        "the tag does not end in ]".to_owned()
    } else {
        format!("cannot read `{}` as attributes (key=\"value\") and a closing ]", brief(from))
    };
    if command.kind == Kind::Search && from.contains('"') {
        told.push_str(" (put a pattern that contains double quotes in single ones, without \\ before them: pattern='print(\"x\")')");
    }
    wrong(Mistake::TagUnreadable, told)
}

/// Whether an attribute reads like a condition: `if_ok`, `when`, `only_if`, `on_success`.
fn is_condition(key: &str) -> bool {
    const WORDS: [&str; 5] = ["ok", "on", "once", "until", "after"];
    const BEGINS: [&str; 7] = ["if", "only", "when", "unless", "condition", "provided", "require"];
    let key = key.to_ascii_lowercase();
    let mut words = key.split(|c: char| !c.is_ascii_alphabetic());
    words.any(|word| WORDS.contains(&word) || BEGINS.iter().any(|begin| word.starts_with(begin)))
}

/// Whether an attribute says where a command is to run: `cwd`, `dir`, `working_directory`.
fn is_place(key: &str) -> bool {
    const ENDS: [&str; 6] = ["cwd", "pwd", "dir", "directory", "folder", "path"];
    const WORDS: [&str; 6] = ["cd", "wd", "root", "location", "in", "at"];
    let key = key.to_ascii_lowercase();
    WORDS.contains(&&*key) || ENDS.iter().any(|end| key.ends_with(end))
}

fn missing(command: &Command, name: &str, found: &[(String, String)]) -> Wrong {
    let is_range = |value: &str| {
        value.split_once('-').is_some_and(|(a, b)| is_number(a.trim()) && is_number(b.trim()))
    };
    let is_known = |key: &str| command.attributes.iter().any(|known| known.name == key);
    match found.iter().find(|(key, value)| is_known(key) && is_range(value)) {
        Some((key, value)) => {
            let value = brief(value);
            let told = format!("{key}=\"{value}\" is no line number, and {name} is missing");
            wrong(Mistake::LineNumber, told)
        }
        None => wrong(Mistake::AttributeMissing, format!("the attribute {name} is missing")),
    }
}

/// The attributes of a tag up to where it cannot be read, and the rest of it.
pub(super) fn pairs(text: &str) -> (Vec<(String, String)>, &str) {
    let mut decoration = Decoration::default();
    let mut cursor = Cursor { rest: text, decoration: &mut decoration };
    let mut found = Vec::new();
    while found.len() < LIMIT {
        cursor.skip_blanks(true);
        let before = cursor.rest;
        let Some((key, value, _)) = cursor.pair() else { return (found, before) };
        found.push((key, value));
    }
    (found, cursor.rest)
}

/// Whether a text is attributes and nothing else but decoration.
pub(super) fn are_all(text: &str) -> bool {
    // A value without quotes needs an end.
    let text = format!("{} ", text.trim());
    let (found, rest) = pairs(&text);
    !found.is_empty() && rest.trim_matches(['*', '_', '`', ' ']).is_empty()
}

/// The word of an opening tag that its closing tag repeats, if it gives one. It is also looked for where the
/// tag cannot be read otherwise, since what such a body contains is no command. An `end` that cannot
/// be read is empty.
pub(super) fn token(text: &str) -> Option<String> {
    let (found, rest) = pairs(text);
    if let Some((_, word)) = found.into_iter().find(|(key, _)| key.eq_ignore_ascii_case("end")) {
        return Some(word);
    }
    let rest = rest.to_ascii_lowercase();
    let is_key = |(at, _): (usize, &str)| {
        let before = rest[..at].chars().next_back();
        let after = rest[at + 3..].trim_start().trim_start_matches('\\');
        before.is_none_or(|c| !c.is_alphanumeric() && c != '_') && after.starts_with('=')
    };
    rest.match_indices("end").any(is_key).then(String::new)
}

/// The word that a closing tag gives, from its name on, and what stands behind the tag.
pub(super) fn closing_word<'a>(
    text: &'a str,
    decoration: &mut Decoration,
) -> Option<(String, &'a str)> {
    let mut cursor = Cursor { rest: text, decoration };
    cursor.skip_blanks(false);
    let (key, word, _) = cursor.pair().filter(|(key, ..)| key.eq_ignore_ascii_case("end"))?;
    if key != "end" {
        cursor.decoration.add(Decoration::CASE);
    }
    cursor.skip_blanks(false);
    let rest = cursor.rest.strip_prefix('\\').unwrap_or(cursor.rest);
    Some((word, rest.strip_prefix(']')?))
}

/// Whether a word can close a block.
pub(super) fn is_word(word: &str) -> bool {
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    (1..=64).contains(&word.len()) && word.chars().all(is_of_word)
}

/// A tag as it is read from left to right.
struct Cursor<'a, 'r> {
    rest: &'a str,
    decoration: &'r mut Decoration,
}

impl<'a> Cursor<'a, '_> {
    fn skip_blanks(&mut self, commas: bool) {
        let mut rest = self.rest.chars();
        while let Some(c) = rest.clone().next() {
            if let Some(after) = rest.as_str().strip_prefix("&nbsp;") {
                self.decoration.add(Decoration::ENTITIES);
                rest = after.chars();
                continue;
            }
            match c {
                ' ' | '\t' | '\r' => {}
                ',' if commas => self.decoration.add(Decoration::SPACES),
                c if is_zero_width(c) => self.decoration.add(Decoration::INVISIBLE),
                c if c.is_whitespace() => self.decoration.add(Decoration::SPACES),
                _ => break,
            }
            rest.next();
        }
        self.rest = rest.as_str();
    }

    /// The next `key="value"`, and whether the value was without quotes.
    fn pair(&mut self) -> Option<(String, String, bool)> {
        let mut key = String::new();
        let mut end = 0;
        for (at, c) in self.rest.char_indices() {
            end = at;
            match c {
                c if c.is_ascii_alphabetic() || c == '_' => key.push(c),
                '0'..='9' | '-' if !key.is_empty() => key.push(c),
                '\\' if self.rest[at + 1..].starts_with('_') => {
                    self.decoration.add(Decoration::ESCAPES);
                }
                c if is_zero_width(c) => self.decoration.add(Decoration::INVISIBLE),
                _ => break,
            }
        }
        if key.is_empty() {
            return None;
        }
        self.rest = &self.rest[end..];
        self.skip_blanks(false);
        if let Some(rest) = self.rest.strip_prefix("\\=") {
            self.decoration.add(Decoration::ESCAPES);
            self.rest = rest;
        } else {
            self.rest = self.rest.strip_prefix('=')?;
        }
        self.skip_blanks(false);
        let (value, bare) = self.value()?;
        Some((key, self.cleaned(value), bare))
    }

    /// The raw text of a value, and whether it was without quotes.
    fn value(&mut self) -> Option<(&'a str, bool)> {
        let rest = self.rest;
        if let Some(inner) = rest.strip_prefix('"')
            && let Some((value, after)) = inner.split_once('"')
        {
            self.rest = after;
            return Some((value, false));
        }
        if let Some(inner) = rest.strip_prefix("\\\"") {
            let (value, after) = inner.split_once("\\\"").or_else(|| inner.split_once('"'))?;
            self.decoration.add(Decoration::ESCAPES);
            self.rest = after;
            return Some((value, false));
        }
        if let Some(entity) = quote_entity(rest) {
            let inner = &rest[entity..];
            let ends = inner
                .match_indices('&')
                .find_map(|(at, _)| Some((at, quote_entity(&inner[at..])?)));
            let (at, length) = ends?;
            self.decoration.add(Decoration::ENTITIES);
            self.rest = &inner[at + length..];
            return Some((&inner[..at], false));
        }
        let c = rest.chars().next()?;
        if let Some(family) = FAMILIES.iter().find(|family| family.contains(c)) {
            let inner = &rest[c.len_utf8()..];
            let at = inner.find(|c| family.contains(c))?;
            let end = inner[at..].chars().next()?.len_utf8();
            // There is no other way to write a value that holds a double quote.
            if c != '\'' || !inner[..at].contains('"') {
                self.decoration.add(Decoration::QUOTES);
            }
            self.rest = &inner[at + end..];
            return Some((&inner[..at], false));
        }
        self.decoration.add(Decoration::QUOTES);
        let end = if let Some(link) = link_length(rest) {
            link
        } else {
            let end = rest.find(|c: char| c.is_whitespace() || matches!(c, ']' | ',' | '"'))?;
            // `path=a.py/]` closes itself; no path ends in a slash.
            let value = rest[..end].trim_end_matches(['/', '\\']);
            if rest[end..].starts_with(']') { value.len() } else { end }
        };
        // Where such a value ends is not known either.
        let holds_a_bracket = link_length(rest).is_none() && rest[..end].contains('[');
        if end == 0 || holds_a_bracket || rest[end..].starts_with('"') {
            return None;
        }
        self.rest = &rest[end..];
        Some((&rest[..end], true))
    }

    /// A value without what the way here did to it.
    fn cleaned(&mut self, value: &str) -> String {
        let mut value = value.to_owned();
        if value.contains('&') {
            let decoded =
                ENTITIES.iter().fold(value.clone(), |text, (entity, c)| text.replace(entity, c));
            if decoded != value {
                self.decoration.add(Decoration::ENTITIES);
                value = decoded;
            }
        }
        // Whoever escapes a path has escaped the name before it.
        if self.decoration.has(Decoration::ESCAPES) && value.contains('\\') {
            let mut plain = String::with_capacity(value.len());
            let mut rest = value.chars().peekable();
            while let Some(c) = rest.next() {
                if c != '\\' || !rest.peek().is_some_and(char::is_ascii_punctuation) {
                    plain.push(c);
                }
            }
            value = plain;
        }
        value
    }
}

/// Characters that stand for one quote.
const FAMILIES: [&str; 3] = ["\"“”„‟″＂«»", "'‘’‚‛′", "`"];

/// The last is the ampersand's own, so that nothing is decoded twice.
const ENTITIES: [(&str, &str); 10] = [
    ("&quot;", "\""),
    ("&#34;", "\""),
    ("&#39;", "'"),
    ("&#x27;", "'"),
    ("&apos;", "'"),
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&nbsp;", " "),
    ("&#95;", "_"),
    ("&amp;", "&"),
];

/// How long the entity of a quote is that a text begins with.
fn quote_entity(text: &str) -> Option<usize> {
    const QUOTES: [&str; 8] =
        ["&quot;", "&#34;", "&#x22;", "&apos;", "&#39;", "&#x27;", "&ldquo;", "&rdquo;"];
    QUOTES.iter().find(|entity| text.starts_with(**entity)).map(|entity| entity.len())
}

/// How long the link `[text](target)` is that a text begins with.
fn link_length(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('[')?;
    let middle = inner.find("](").filter(|at| !inner[..*at].contains(']'))?;
    let end = inner[middle..].find(')')?;
    Some(1 + middle + end + 1)
}
