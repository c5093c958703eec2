//! The attributes of an opening tag, as a chat window may have left them.

use super::catalogue::Command;
use super::demands::{carries_its_body, missing, unknown, unreadable};
use super::repairs::{Repairs, is_zero_width};
use super::wrong::{Wrong, wrong};
use crate::protocol::{Kind, Mistake, Warning};

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

/// Reads what follows a command's name in its opening tag, and notes what had to be overlooked. An
/// error says what is wrong with the tag.
pub(super) fn read<'a>(
    command: &Command,
    text: &'a str,
    repairs: &mut Repairs,
) -> Result<Opening<'a>, Wrong> {
    if repairs.has(Repairs::STRUCK) {
        return Err(wrong(Mistake::StruckTag, "the tag is struck out (~~)"));
    }
    let before = *repairs;
    let told = read_as(command, text, repairs, false);
    // As in most languages: `pattern="\"x\""`.
    let is_escaped = command.kind == Kind::Search && !before.has(Repairs::ESCAPES);
    // What no pattern ends in: the quote behind it does not end it.
    let is_cut = |opening: &Opening<'_>| {
        let pattern = opening.value(command, "pattern").unwrap_or_default();
        (pattern.len() - pattern.trim_end_matches('\\').len()) % 2 == 1
    };
    if !is_escaped || told.as_ref().is_ok_and(|opening| !is_cut(opening)) {
        return told;
    }
    let mut others = before;
    match read_as(command, text, &mut others, true) {
        Ok(opening) => {
            *repairs = others;
            Ok(opening)
        }
        Err(_) => told,
    }
}

/// The same; where `escaped` says so, a double quote with a backslash before it ends no value.
fn read_as<'a>(
    command: &Command,
    text: &'a str,
    repairs: &mut Repairs,
    escaped: bool,
) -> Result<Opening<'a>, Wrong> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut cursor = Cursor { rest: text, repairs, escaped };
    let mut unquoted = false;
    let after = loop {
        cursor.skip_blanks(!found.is_empty());
        let begin = cursor.rest;
        if let Some(after) = ["]", "/]", "\\]"].iter().find_map(|end| begin.strip_prefix(end)) {
            if begin.starts_with('\\') {
                cursor.repairs.add(Repairs::ESCAPES);
            }
            break after;
        }
        let (key, value, bare) = cursor.pair().ok_or_else(|| unreadable(command, begin))?;
        unquoted |= bare;
        // Of a pattern nobody could say which of its backslashes were meant.
        let pair = &begin[..begin.len() - cursor.rest.len()];
        if command.kind == Kind::Search
            && cursor.repairs.has(Repairs::ESCAPES)
            && pair.trim_start_matches('\\').contains('\\')
            && key.eq_ignore_ascii_case("pattern")
        {
            let told = "the characters of the tag came escaped (\\), so what its pattern was is not known: send it in a code block; it stands";
            return Err(wrong(Mistake::PatternUnclear, told));
        }
        let key = match key.to_ascii_lowercase().as_str() {
            "start" if cursor.repairs.has(Repairs::RANGE) => "start_line".to_owned(),
            "end" if cursor.repairs.has(Repairs::RANGE) => "end_line".to_owned(),
            _ => key,
        };
        let known = command.attributes.iter().find(|a| a.name.eq_ignore_ascii_case(&key));
        let key = match known {
            Some(known) => {
                if known.name != key {
                    cursor.repairs.add(Repairs::CASE);
                }
                known.name.to_owned()
            }
            None => key,
        };
        if found.iter().any(|(k, _)| *k == key) {
            let told = format!("the attribute {key} stands there twice");
            return Err(wrong(Mistake::AttributeTwice, told));
        }
        if found.len() == LIMIT {
            let told = format!("there are more than {LIMIT} attributes");
            return Err(wrong(Mistake::TagUnreadable, told));
        }
        found.push((key, value));
    };
    // Where a value without quotes ends is not known then.
    if unquoted && after.contains(']') && !after.contains("[/") {
        return Err(wrong(Mistake::TagUnreadable, "a value without quotes holds a ]"));
    }

    let warnings = unknown(command, &found)?;
    let is_there = |name: &str| found.iter().any(|(key, _)| key == name);
    if let Some(wanted) = command.attributes.iter().find(|a| a.required && !is_there(a.name)) {
        return Err(missing(command, wanted.name, &found));
    }
    // The range of an edit is given whole or not at all.
    let given = ["start_line", "end_line"].map(is_there);
    if command.kind == Kind::Edit && given[0] != given[1] {
        let wanted = if given[0] { "end_line" } else { "start_line" };
        return Err(missing(command, wanted, &found));
    }
    let mut values = Vec::with_capacity(command.attributes.len());
    for wanted in command.attributes {
        let value = found.iter_mut().find(|(key, _)| key == wanted.name);
        values.push(value.map(|(_, value)| std::mem::take(value)));
    }
    if let Some(key) = carries_its_body(command, &found) {
        let told =
            format!("{key} is no attribute of {} (its body goes on the lines below)", command.name);
        return Err(wrong(Mistake::BodyAsAttribute, told));
    }
    Ok(Opening { values, after, warnings })
}

/// The attributes of a tag up to where it cannot be read, and the rest of it.
pub(super) fn pairs(text: &str) -> (Vec<(String, String)>, &str) {
    let mut repairs = Repairs::default();
    let mut cursor = Cursor { rest: text, repairs: &mut repairs, escaped: false };
    let mut found = Vec::new();
    while found.len() < LIMIT {
        cursor.skip_blanks(true);
        let Some((key, value, _)) = cursor.pair() else { break };
        found.push((key, value));
    }
    (found, cursor.rest)
}

/// What a tag says that its closing tag repeats, if it says so: also where the tag cannot be read else,
/// since what its body holds is no command. An `end` that cannot be read is empty.
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
pub(super) fn closing_word<'a>(text: &'a str, repairs: &mut Repairs) -> Option<(String, &'a str)> {
    let mut cursor = Cursor { rest: text, repairs, escaped: false };
    cursor.skip_blanks(false);
    let (key, word, _) = cursor.pair().filter(|(key, ..)| key.eq_ignore_ascii_case("end"))?;
    if key != "end" {
        cursor.repairs.add(Repairs::CASE);
    }
    cursor.skip_blanks(false);
    let rest = cursor.rest.strip_prefix('\\').unwrap_or(cursor.rest);
    Some((word, rest.strip_prefix(']')?))
}

/// A tag as it is read from left to right.
struct Cursor<'a, 'r> {
    rest: &'a str,
    repairs: &'r mut Repairs,
    /// Whether a double quote with a backslash before it ends no value.
    escaped: bool,
}

impl<'a> Cursor<'a, '_> {
    fn skip_blanks(&mut self, commas: bool) {
        let mut rest = self.rest.chars();
        while let Some(c) = rest.clone().next() {
            if let Some(after) = rest.as_str().strip_prefix("&nbsp;") {
                self.repairs.add(Repairs::ENTITIES);
                rest = after.chars();
                continue;
            }
            match c {
                ' ' | '\t' | '\r' => {}
                ',' if commas => self.repairs.add(Repairs::SPACES),
                c if is_zero_width(c) => self.repairs.add(Repairs::INVISIBLE),
                c if c.is_whitespace() => self.repairs.add(Repairs::SPACES),
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
                '\\' if self.rest[at + 1..].starts_with('_') => self.repairs.add(Repairs::ESCAPES),
                c if is_zero_width(c) => self.repairs.add(Repairs::INVISIBLE),
                _ => break,
            }
        }
        if key.is_empty() {
            return None;
        }
        self.rest = &self.rest[end..];
        self.skip_blanks(false);
        if let Some(rest) = self.rest.strip_prefix("\\=") {
            self.repairs.add(Repairs::ESCAPES);
            self.rest = rest;
        } else {
            self.rest = self.rest.strip_prefix('=')?;
        }
        self.skip_blanks(false);
        if self.escaped
            && key.eq_ignore_ascii_case("pattern")
            && let Some(inner) = self.rest.strip_prefix('"')
        {
            let (value, after) = unescaped(inner)?;
            if value.len() + after.len() + 1 < inner.len() {
                self.repairs.add(Repairs::INNER_QUOTES);
            }
            self.rest = after;
            return Some((key, self.cleaned(&value), false));
        }
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
            self.repairs.add(Repairs::ESCAPES);
            self.rest = after;
            return Some((value, false));
        }
        if let Some(entity) = quote_entity(rest) {
            let inner = &rest[entity..];
            let ends = inner
                .match_indices('&')
                .find_map(|(at, _)| Some((at, quote_entity(&inner[at..])?)));
            let (at, length) = ends?;
            self.repairs.add(Repairs::ENTITIES);
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
                self.repairs.add(Repairs::QUOTES);
            }
            self.rest = &inner[at + end..];
            return Some((&inner[..at], false));
        }
        self.repairs.add(Repairs::QUOTES);
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
                self.repairs.add(Repairs::ENTITIES);
                value = decoded;
            }
        }
        // Whoever escapes a path has escaped the name before it.
        if self.repairs.has(Repairs::ESCAPES) && value.contains('\\') {
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

/// A value up to the first double quote that has no backslash of its own before it, without those of the
/// others, and what stands behind that quote.
fn unescaped(inner: &str) -> Option<(String, &str)> {
    let (mut value, mut is_escaped) = (String::new(), false);
    for (at, c) in inner.char_indices() {
        match c {
            '"' if is_escaped => {
                value.pop();
            }
            '"' => return Some((value, &inner[at + 1..])),
            _ => {}
        }
        value.push(c);
        is_escaped = c == '\\' && !is_escaped;
    }
    None
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

/// The first characters of `text`, for quoting.
pub(super) fn brief(text: &str) -> String {
    const LIMIT: usize = 100;
    let text = text.trim_end();
    let cut = text.char_indices().nth(LIMIT).map(|(cut, _)| cut);
    let shown = crate::text::visible_line(&text[..cut.unwrap_or(text.len())]);
    match cut {
        None => shown.into_owned(),
        Some(_) => format!("{shown}…"),
    }
}
