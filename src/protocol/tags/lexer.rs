//! Turns a line into a token: the tag on the line, and its decoration. The parser decides where a line begins, because
//! a tag may also follow the end of reasoning on the same line.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use memchr::memchr;

use super::attributes;
use super::catalogue::{COMMANDS, TagCommand, find_command};
use crate::protocol::Kind;

/// The set of repairs that were needed to read a tag. No repair changes the meaning of the tag.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Decoration(u16);

impl Decoration {
    pub(super) const EMPHASIS: Self = Self(1);
    pub(super) const HEADING: Self = Self(1 << 1);
    pub(super) const BULLET: Self = Self(1 << 2);
    pub(super) const NUMBER: Self = Self(1 << 3);
    pub(super) const QUOTED: Self = Self(1 << 4);
    pub(super) const ESCAPES: Self = Self(1 << 5);
    pub(super) const CASE: Self = Self(1 << 6);
    /// Unusual quotes or spaces, entities, and invisible characters.
    pub(super) const SIGNS: Self = Self(1 << 7);
    pub(super) const GLUED: Self = Self(1 << 8);
    /// Struck-out text: the model took the tag back.
    pub(super) const STRUCK: Self = Self(1 << 9);
    pub(super) const FENCE: Self = Self(1 << 10);
    /// The signs of list items and headings.
    pub(super) const ITEM: Self = Self(Self::HEADING.0 | Self::BULLET.0 | Self::NUMBER.0);
    /// Decoration that encloses a tag, so it also follows the tag.
    const ENCLOSING: Self = Self(Self::EMPHASIS.0 | Self::STRUCK.0 | Self::FENCE.0);
    const OF_LINE: Self = Self(Self::ITEM.0 | Self::EMPHASIS.0 | Self::QUOTED.0 | Self::STRUCK.0);

    pub(super) fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }

    pub(super) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Whether the line has decoration that `other` lacks.
    pub(super) fn exceeds(self, other: Self) -> bool {
        self.0 & Self::OF_LINE.0 & !other.0 != 0
    }
}

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    Open,
    /// A closing tag alone on its line, with or without an end word.
    Close {
        by_word: bool,
    },
    /// A line that looks like a tag but is not one. With `if_closed`, it counts only if a closing tag with its name
    /// follows.
    Lookalike {
        closes: bool,
        if_closed: bool,
    },
    /// The result of an operation in the form that outboxes use.
    Result,
}

/// A line that is not prose.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    /// The command that the tag names; None for an unknown name.
    pub(super) command: Option<&'static TagCommand>,
    /// The byte offsets of the line, of the tag, and of the end of the tag's name.
    pub(super) line: usize,
    pub(super) at: usize,
    pub(super) name_end: usize,
    /// The number of `>` before the tag.
    pub(super) quote: u8,
    pub(super) decoration: Decoration,
    /// Whether the line contains only the tag and its decoration.
    pub(super) alone: bool,
}

impl Token {
    /// An opening tag without decoration.
    pub(super) fn new(line: usize, at: usize, command: Option<&'static TagCommand>) -> Self {
        Self {
            kind: TokenKind::Open,
            command,
            line,
            at,
            name_end: at,
            quote: 0,
            decoration: Decoration::default(),
            alone: true,
        }
    }

    pub(super) fn command(&self) -> &'static TagCommand {
        // Only a lookalike has no command, and the code that reports it looks up its name.
        self.command.unwrap_or(&COMMANDS[0])
    }

    pub(super) fn opens(&self) -> bool {
        matches!(self.kind, TokenKind::Open | TokenKind::Lookalike { closes: false, .. })
    }

    pub(super) fn closes(&self) -> bool {
        matches!(self.kind, TokenKind::Close { .. } | TokenKind::Lookalike { closes: true, .. })
    }

    pub(super) fn is_plain(&self) -> bool {
        self.decoration.is_none()
    }

    /// Whether this is the opening tag of a command that is not quoted.
    pub(super) fn is_unquoted_command(&self) -> bool {
        self.kind == TokenKind::Open
            && self.alone
            && self.quote == 0
            && self.command().kind != Kind::Reply
    }

    /// Whether skipping this tag may lose work. Skipping a summary or message does not.
    pub(super) fn may_be_missed(&self) -> bool {
        self.command.is_none() || !matches!(self.command().kind, Kind::Done | Kind::Message)
    }
}

/// The decoration at the start of a line.
pub(super) struct LeadingDecoration {
    pub(super) length: usize,
    pub(super) quote: u8,
    pub(super) decoration: Decoration,
}

/// Whether a character has no width: zero-width spaces and joiners, soft hyphens, byte order marks, direction marks.
pub(super) fn is_zero_width(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}'
    )
}

/// The end of the line that contains an offset, before its newline.
pub(super) fn line_end(text: &str, at: usize) -> usize {
    memchr(b'\n', &text.as_bytes()[at..]).map_or(text.len(), |n| at + n)
}

/// The tokens of the lines in a range, which must begin at the start of a line.
pub(super) fn tokens(text: &str, range: Range<usize>) -> impl Iterator<Item = Token> {
    let mut next = range.start;
    std::iter::from_fn(move || {
        while next < range.end {
            let (line, end) = (next, line_end(text, next));
            next = end + 1;
            if let Some(token) = lex(text, line, end) {
                return Some(token);
            }
        }
        None
    })
}

/// The token at the start of a line, if there is one.
pub(super) fn lex(text: &str, line: usize, end: usize) -> Option<Token> {
    let shown = &text[line..end];
    // Most lines are prose.
    let first = shown.trim_start_matches([' ', '\t']).as_bytes().first()?;
    if first.is_ascii_lowercase() {
        return None;
    }
    let lead = leading_decoration(shown)?;
    let at = line + lead.length;
    let rest = &text[at..end];
    let is_begin = line == 0 || text.as_bytes()[line - 1] == b'\n';
    let (quote, decoration) = (lead.quote, lead.decoration);
    let mut token = Token { quote, decoration, alone: is_begin, ..Token::new(line, at, None) };
    let Some(inside) = rest.strip_prefix('[') else { return in_other_brackets(token, rest) };
    if let Some(result) = inside.strip_prefix("OK] ").or_else(|| inside.strip_prefix("FAILED] ")) {
        let named =
            |c: &TagCommand| result.strip_prefix(c.name).is_some_and(|r| r.starts_with(':'));
        return COMMANDS.iter().any(named).then_some(Token { kind: TokenKind::Result, ..token });
    }
    let name = match read_name(inside) {
        Some(name) if !name.misspelt => name,
        Some(near) => return misspelt(token, inside, &near),
        None => return other_name(token, inside).or_else(|| in_other_brackets(token, rest)),
    };
    token.command = Some(name.command);
    token.name_end = at + 1 + name.length;
    token.decoration.add(name.decoration);
    let behind = &inside[name.length..];
    let mut tail = without_suffix(behind, token.decoration);
    if name.closes {
        // This is the last line of a body with the closing tag attached to it.
        if token.decoration.has(Decoration::FENCE) {
            return None;
        }
        if let Some(before) = without_fence(tail) {
            token.decoration.add(Decoration::FENCE);
            tail = before;
        }
        token.kind = closing(&mut token, tail)?;
    } else {
        token.alone &= is_single_tag(tail);
    }
    if tail.len() < behind.trim_end().len() && token.is_plain() {
        token.decoration.add(Decoration::SIGNS);
    }
    Some(token)
}

/// The kind of a closing tag, based on the text after its name.
fn closing(token: &mut Token, tail: &str) -> Option<TokenKind> {
    let blank = |c: char| c.is_whitespace() || is_zero_width(c) || c == '\\';
    if let Some(inner) = tail.strip_suffix(']').filter(|inner| inner.chars().all(blank)) {
        if !inner.is_empty() {
            token.decoration.add(Decoration::SIGNS);
        }
        return Some(TokenKind::Close { by_word: false });
    }
    token.command().closing?;
    let (word, after) = attributes::closing_word(tail, &mut token.decoration)?;
    let is_one =
        attributes::is_end_word(&word) && without_suffix(after, token.decoration).is_empty();
    is_one.then_some(TokenKind::Close { by_word: true })
}

/// The decoration at the start of a line. None if it is longer than that of any usual list or quotation.
pub(super) fn leading_decoration(line: &str) -> Option<LeadingDecoration> {
    const LONGEST: usize = 64;
    let (mut quote, mut decoration) = (0u8, Decoration::default());
    let mut rest = line.trim_start_matches([' ', '\t']);
    let begin = line.len() - rest.len();
    loop {
        let blank = rest.trim_start();
        rest = blank.trim_start_matches(is_zero_width);
        if rest.len() < blank.len() {
            decoration.add(Decoration::SIGNS);
            continue;
        }
        let length = line.len() - rest.len();
        if length - begin > LONGEST {
            return None;
        }
        let lead = LeadingDecoration { length, quote, decoration };
        let decorates = |c: &char| !c.is_ascii_alphabetic() && *c != '[';
        let Some(c) = rest.chars().next().filter(decorates) else { return Some(lead) };
        let run = rest.len() - rest.trim_start_matches(c).len();
        let after = rest[run..].chars().next();
        let ends = after.is_none_or(|c| {
            c.is_whitespace() || c.is_ascii_uppercase() || "[<&‹◁({［【=".contains(c)
        });
        let (added, length) = match c {
            '>' => {
                quote = quote.saturating_add(1);
                (Decoration::QUOTED, 1)
            }
            '#' if run <= 6 && ends => (Decoration::HEADING, run),
            // Directly before the tag, it is emphasis: `*[DONE]*`.
            '*' if run == 1 && after.is_some_and(char::is_whitespace) => (Decoration::BULLET, run),
            '-' | '+' | '•' | '‣' | '◦' | '▪' | '●' | '–' if run == c.len_utf8() && ends => {
                (Decoration::BULLET, run)
            }
            '*' | '_' if run <= 3 => (Decoration::EMPHASIS, run),
            '`' if run <= 2 => (Decoration::EMPHASIS, run),
            '~' if run <= 2 => (Decoration::STRUCK, run),
            '`' | '~' => (Decoration::FENCE, run),
            '0'..='9' => {
                let behind = rest.trim_start_matches(|c: char| c.is_ascii_digit());
                let digits = rest.len() - behind.len();
                let is_number = digits <= 3
                    && behind.strip_prefix(['.', ')']).is_some_and(|after| {
                        after.starts_with(|c: char| c.is_whitespace() || c == '[')
                    });
                if !is_number {
                    return Some(lead);
                }
                (Decoration::NUMBER, digits + 1)
            }
            '\\' if run == 1 && after.is_some_and(|c| "[<&‹◁=".contains(c)) => {
                (Decoration::ESCAPES, 1)
            }
            _ => return Some(lead),
        };
        decoration.add(added);
        rest = &rest[length..];
    }
}

/// The name in a tag.
pub(super) struct TagName {
    pub(super) command: &'static TagCommand,
    pub(super) closes: bool,
    /// Whether the name is only similar to the command's name.
    misspelt: bool,
    /// Whether the name is in capitals.
    upper: bool,
    /// The length in bytes from the bracket to the end of the name.
    length: usize,
    decoration: Decoration,
}

/// The longest name that is read, in characters.
const LONGEST: usize = 40;

/// Reads the command name after a bracket. It may have a slash, be in upper or lower case, contain escapes or invisible
/// characters, or have its words joined in another way.
pub(super) fn read_name(inside: &str) -> Option<TagName> {
    let (closes, word) = without_slash(inside);
    let is_end = |rest: &str| rest.chars().next().is_none_or(ends_name);
    let is_it = |name: &str| word.strip_prefix(name).is_some_and(is_end);
    if let Some(command) = find_command(is_it) {
        let length = inside.len() - word.len() + command.name.len();
        let decoration = Decoration::default();
        return Some(TagName { command, closes, misspelt: false, upper: true, length, decoration });
    }
    let (mut closes, mut upper, mut decoration) = (false, true, Decoration::default());
    let (mut word, mut first_ended, mut is_folded) = (String::new(), false, false);
    // A name also ends at the end of the line.
    let signs = inside.char_indices().chain([(inside.len(), '\n')]);
    for (length, given) in signs.take(LONGEST) {
        let c = fold_wide(given);
        is_folded |= c != given;
        match c {
            '/' if word.is_empty() && !closes => closes = true,
            '\\' => decoration.add(Decoration::ESCAPES),
            c if is_zero_width(c) => decoration.add(Decoration::SIGNS),
            c if c.is_whitespace() && c != '\n' && word.is_empty() => {
                decoration.add(Decoration::SIGNS);
            }
            c if c.is_ascii_alphabetic() || matches!(c, '_' | '-') => {
                upper &= !c.is_ascii_lowercase();
                word.push(c.to_ascii_uppercase());
            }
            _ if word.is_empty() => return None,
            _ => {
                let called = find_command(|name| name == word).filter(|_| !first_ended);
                let is_near = |name: &str| {
                    name.contains('_') && name != word && has_same_letters(name, &word)
                };
                let near = || find_command(is_near).filter(|_| ends_name(c));
                let misspelt = is_folded || called.is_none();
                if !upper && called.is_some() {
                    decoration.add(Decoration::CASE);
                }
                if let Some(command) = called.or_else(near) {
                    let name = TagName { command, closes, misspelt, upper, length, decoration };
                    return (misspelt && called.is_none() || ends_name(given)).then_some(name);
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

/// Maps full-width letters and dashes to the ASCII characters of names.
pub(super) fn fold_wide(c: char) -> char {
    match c {
        // Full-width forms of letters and `_`.
        '\u{ff21}'..='\u{ff3a}' | '\u{ff41}'..='\u{ff5a}' | '\u{ff3f}' => {
            char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c)
        }
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        c => c,
    }
}

/// Whether two words have the same letters in the same order.
fn has_same_letters(name: &str, word: &str) -> bool {
    fn letters(text: &str) -> impl Iterator<Item = u8> {
        text.bytes().filter(u8::is_ascii_alphabetic)
    }
    letters(name).eq(letters(word))
}

fn ends_name(c: char) -> bool {
    // `&` may begin an entity, which is decoded with the attributes.
    matches!(c, ']' | '/' | '&') || c.is_whitespace()
}

fn without_slash(inside: &str) -> (bool, &str) {
    inside.strip_prefix('/').map_or((false, inside), |word| (true, word))
}

/// The token of a misspelt command.
fn misspelt(token: Token, inside: &str, near: &TagName) -> Option<Token> {
    let tail = without_suffix(&inside[near.length..], token.decoration);
    let is_meant = if near.closes {
        tail.trim_matches(|c: char| c.is_whitespace() || c == '\\') == "]"
    } else {
        near.upper || tail.contains("path")
    };
    let name_end = token.at + 1 + near.length;
    let kind = TokenKind::Lookalike { closes: near.closes, if_closed: false };
    is_meant.then_some(Token { kind, command: Some(near.command), name_end, ..token })
}

/// The token of a tag with an alias of a command, or with any other name that is in capitals or contains `_`.
fn other_name(token: Token, inside: &str) -> Option<Token> {
    let (closes, word) = without_slash(inside);
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let length = word.find(|c| !is_of_name(c)).filter(|n| (2..=LONGEST).contains(n))?;
    let (name, tail) = (&word[..length], without_suffix(&word[length..], token.decoration));
    let is_upper = !name.bytes().any(|c| c.is_ascii_lowercase());
    let is_name = (is_upper || name.contains('_')) && name.starts_with(char::is_alphabetic);
    if !token.is_plain() || !is_name {
        return None;
    }
    let name_end = token.at + 1 + inside.len() - word.len() + length;
    let found = |command, if_closed| {
        let kind = TokenKind::Lookalike { closes, if_closed };
        Some(Token { kind, command, name_end, ..token })
    };
    if !tail.starts_with(ends_name) {
        // For example `[READ_FILE: a.py]`.
        let is_one = tail.starts_with([':', '=', ',', '(', '"', '\'']) && tail.ends_with(']');
        let command = find_command(|known| known == name && known.contains('_'))?;
        return found(Some(command), false).filter(|_| is_one);
    }
    let (alias, command) = (ALIASES.get(name), synonym(name));
    if closes {
        return found(command, false).filter(|_| tail == "]");
    }
    let (has_attribute, ends_itself) = (has_attribute(tail), ends_itself(tail, name));
    // Unless it is alone in its tag, the name of a shell is the label of a code block.
    let is_meant = if alias.is_some_and(|alias| alias.is_bare) {
        tail == "]" || tail.contains("command=") || ends_itself
    } else {
        has_attribute || name.contains('_') || tail.contains("path")
    };
    if command.is_some() && is_meant && tail.ends_with(']') {
        return found(command, false);
    }
    let is_label = alias.is_some_and(|alias| alias.command.is_none()) && !has_attribute;
    let is_whole = is_single_tag(tail) || ends_itself;
    let if_closed = !(is_upper && has_attribute || ends_itself);
    found(None, if_closed).filter(|_| is_whole && !is_label)
}

/// Whether the text after a tag's name ends with a closing tag for that name, or for the command that it stands for.
fn ends_itself(tail: &str, name: &str) -> bool {
    let inner = tail.strip_suffix(']').and_then(|tail| tail.rsplit_once("[/"));
    let called = |word: &str| find_command(|known| known == word).or_else(|| synonym(word));
    inner.is_some_and(|(_, closing)| {
        closing == name || called(closing).is_some() && called(closing) == called(name)
    })
}

/// Whether a tag has an attribute with a quoted value.
fn has_attribute(tag: &str) -> bool {
    let quotes = ['"', '\'', '“', '”', '‘'];
    tag.match_indices('=').any(|(at, _)| {
        tag[..at].trim_end().ends_with(|c: char| c.is_ascii_alphanumeric())
            && tag[at + 1..].trim_start().starts_with(quotes)
    })
}

/// The token of a command in other brackets, or without brackets.
fn in_other_brackets(token: Token, rest: &str) -> Option<Token> {
    const OPENING: [&str; 7] = ["[[", "<", "［", "【", "&", "(", "{"];
    const CLOSING: [&str; 8] = [">", "]", "］", "】", "&", ";", ")", "}"];
    const ENTITIES: [&str; 6] = ["#91;", "#091;", "#x5b;", "#x5B;", "lbrack;", "lsqb;"];
    let open = OPENING.iter().find(|open| rest.starts_with(**open)).map_or(0, |open| open.len());
    let inner = &rest[open..];
    let inner = ENTITIES.iter().find_map(|entity| inner.strip_prefix(entity)).unwrap_or(inner);
    let (closes, word) = without_slash(inner);
    let length = word.find(|c: char| !c.is_ascii_uppercase() && c != '_').unwrap_or(word.len());
    let command = find_command(|name| name == &word[..length])?;
    let tail = word[length..].trim_end();
    let mut if_closed = false;
    let is_one = if open == 0 || rest.starts_with(['(', '{']) {
        // Such a tag must have a whole line, not only the rest of a line after the end of reasoning.
        let inner = tail.trim_end_matches([')', '}']).trim();
        let is_bare = inner.is_empty() && (closes || command.kind == Kind::Run);
        if_closed = is_bare && !closes;
        let says = command.closing.is_some() && is_bare || attributes::are_all(inner);
        let is_name = command.name.contains('_') || inner.starts_with("pattern");
        let ends = tail.is_empty() || tail.starts_with([' ', '\t', ')', '}']);
        ends && is_name && says && token.alone
    } else {
        let ends = |c: char| ends_name(c) || CLOSING.iter().any(|sign| sign.starts_with(c));
        token.is_plain()
            && tail.starts_with(ends)
            && CLOSING.iter().any(|sign| tail.ends_with(sign))
    };
    let name_end = token.at + rest.len() - word.len() + length;
    let kind = TokenKind::Lookalike { closes, if_closed };
    is_one.then_some(Token { kind, command: Some(command), name_end, ..token })
}

/// Another name for a command, or a label that stands for no command.
struct Alias {
    command: Option<&'static TagCommand>,
    /// Whether the alias has a body if its command does.
    has_same_body: bool,
    /// Whether the alias counts even if it is alone in its tag.
    is_bare: bool,
}

static ALIASES: LazyLock<HashMap<String, Alias>> = LazyLock::new(|| {
    type Lists = HashMap<String, HashMap<String, Vec<String>>>;
    let table: Lists = toml::from_str(include_str!("data/names.toml")).expect("a constant table");
    let mut aliases = HashMap::new();
    for (name, lists) in table {
        let command = find_command(|known| known == name);
        for (list, words) in lists {
            let (has_same_body, is_bare) = (command.is_some() && list != "other", list == "bare");
            let alias = |word| (word, Alias { command, has_same_body, is_bare });
            aliases.extend(words.into_iter().map(alias));
        }
    }
    aliases
});

/// The command for which a name is an alias.
fn synonym(name: &str) -> Option<&'static TagCommand> {
    ALIASES.get(name).filter(|alias| alias.has_same_body)?.command
}

/// The command that an unknown name probably means, because it is an alias or similar.
pub(super) fn intended_command(name: &str) -> Option<&'static TagCommand> {
    let name = name.to_ascii_uppercase();
    let nearest = || {
        let nearest = crate::text::nearest(&name, COMMANDS.iter().map(|command| command.name))?;
        find_command(|known| known == nearest)
    };
    ALIASES.get(&name).and_then(|alias| alias.command).or_else(nearest)
}

/// The end of a tag, counted from the end of its name. A tag ends after the first `]` outside quotes.
pub(super) fn end_of_tag(tail: &str) -> Option<usize> {
    unquoted(tail).find(|(_, byte)| *byte == b']').map(|(at, _)| at + 1)
}

/// The bytes of a text outside quotes, each with its offset.
fn unquoted(text: &str) -> impl Iterator<Item = (usize, u8)> {
    let mut is_quoted = false;
    text.bytes().enumerate().filter(move |(_, byte)| {
        is_quoted ^= *byte == b'"';
        !is_quoted
    })
}

/// Whether a tag ends with its line and contains no closing tag outside its values.
fn is_single_tag(tail: &str) -> bool {
    match end_of_tag(tail) {
        Some(end) if end < tail.len() => false,
        Some(_) if !tail.contains("[/") => true,
        Some(_) => !unquoted(tail).any(|(at, byte)| byte == b'/' && tail[..at].ends_with('[')),
        // If a quote is not paired, it is unclear which text is quoted.
        None => tail.ends_with(']') && !tail.contains("[/"),
    }
}

/// The rest of a tag's line without the white space and decoration at its end.
pub(super) fn without_suffix(rest: &str, decoration: Decoration) -> &str {
    let is_enclosed = decoration.has(Decoration::ENCLOSING);
    rest.trim_end_matches(|c: char| {
        c.is_whitespace() || is_zero_width(c) || is_enclosed && "*_`~".contains(c)
    })
}

/// The text after a tag on its line, without the decoration that closes directly after the tag or at the end of a line
/// that ends with a tag. In other places such signs belong to the text.
pub(super) fn without_decoration(after: &str, decoration: Decoration) -> &str {
    let inner = without_suffix(after, decoration);
    if inner.is_empty() || inner.ends_with(']') {
        return inner.trim();
    }
    let after = without_suffix(after, Decoration::default());
    let inner = after.trim_start_matches(['*', '_', '`', '~']);
    let closes = decoration.has(Decoration::ENCLOSING) && inner.starts_with(char::is_whitespace);
    if closes { inner.trim() } else { after.trim() }
}

/// The text before a fence at the end of a line. A fence is three or more equal signs.
pub(super) fn without_fence(tail: &str) -> Option<&str> {
    let sign = tail.chars().next_back().filter(|c| matches!(c, '`' | '~'))?;
    let before = tail.trim_end_matches(sign);
    (tail.len() - before.len() >= 3 && !before.contains(sign)).then(|| before.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn a_tag_is_one_up_to_the_first_bracket_outside_of_quotes() {
        for tail in ["]", " path=\"a]b\"]", " path=\"a[/b\" end=\"T\"]", " path='a\"b']"] {
            assert!(is_single_tag(tail), "{tail}");
        }
        for tail in ["", " path=\"a\"", "] x", "]x[/DONE]", " [/b]", " \"[/b]", " path=\"a\" [/b]"]
        {
            assert!(!is_single_tag(tail), "{tail}");
        }
    }

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
            assert_eq!(intended_command(name).map(|command| command.name), command, "{name}");
        }
    }
}
