//! Where the tags of a text are that begin their lines, in bodies or not. Made only where the end of a block
//! is not the next plain tag of its kind.

use std::collections::HashMap;

use memchr::{memchr_iter, memmem, memrchr};

use super::attributes;
use super::lexer::{self, Token, TokenKind, line_end};

/// The tags of a text, by command, word, and whether all are undecorated; and the lines that have the name of a
/// command, or a name that only looks like one.
#[derive(Default)]
pub(super) struct Index {
    tags: HashMap<(u8, String, bool), Vec<Tag>>,
    named: HashMap<String, Vec<Token>>,
    /// Those of them that close.
    closing: HashMap<String, Vec<Token>>,
}

/// A tag among those of its command and word.
#[derive(Clone, Copy)]
pub(super) struct Tag {
    pub(super) token: Token,
    /// Whether it or one behind it is a closing tag.
    pub(super) is_closed: bool,
    /// How many closing tags behind it have no opening tag of their own.
    pub(super) left_over: usize,
}

impl Index {
    pub(super) fn of(text: &str) -> Self {
        let (mut index, mut line) = (Self::default(), 0);
        for end in memchr_iter(b'\n', text.as_bytes()).chain([text.len()]) {
            let tokens = lexer::tokens(text, line, end);
            let counts = |token: &Token| token.line == line || token.opens();
            tokens.filter(counts).for_each(|token| index.add(text, token, end));
            line = end + 1;
        }
        for tags in index.tags.values_mut() {
            let (mut left_over, mut is_closed) = (0usize, false);
            for tag in tags.iter_mut().rev() {
                let closes = tag.token.closes();
                is_closed |= closes;
                (tag.is_closed, tag.left_over) = (is_closed, left_over);
                left_over = if closes { left_over + 1 } else { left_over.saturating_sub(1) };
            }
        }
        index
    }

    fn add(&mut self, text: &str, token: Token, end: usize) {
        // A closing tag with a word closes only what was opened with that.
        if token.opens() || token.closes() && token.kind != (TokenKind::Close { by_word: true }) {
            for name in [command_of(&token), name_in(text, &token)].into_iter().flatten() {
                if token.closes() {
                    self.closing.entry(name.clone()).or_default().push(token);
                }
                self.named.entry(name).or_default().push(token);
            }
        }
        let has_body = token.command.is_some() && token.command().closing.is_some();
        let by_word = match token.kind {
            TokenKind::Open if has_body && token.alone => None,
            TokenKind::Close { by_word } if token.alone => Some(by_word),
            _ => return,
        };
        let rest = &text[token.name_end..end];
        let word = (by_word != Some(false)).then(|| attributes::token(rest)).flatten();
        let word = word.filter(|word| attributes::is_word(word));
        // An opening tag with a word needs a closing one without it as well, where it has lost its own.
        let words = (by_word != Some(true)).then(String::new).into_iter().chain(word);
        for word in words {
            let tag = Tag { token, is_closed: false, left_over: 0 };
            for is_plain in [false, true].into_iter().filter(|plain| !plain || token.is_plain()) {
                let key = (token.command.unwrap_or_default(), word.clone(), is_plain);
                self.tags.entry(key).or_default().push(tag);
            }
        }
    }

    /// The tags that the end of a block may be among, from an offset on: of its command, with its word (empty
    /// for none), and only undecorated ones or all.
    pub(super) fn tags(&self, token: &Token, word: &str, from: usize, is_plain: bool) -> &[Tag] {
        let key = (token.command.unwrap_or_default(), word.to_owned(), is_plain);
        let tags = self.tags.get(&key).map_or(&[][..], Vec::as_slice);
        &tags[tags.partition_point(|tag| tag.token.line < from)..]
    }

    /// Whether the next tag of that command closes it.
    pub(super) fn is_closed(&self, token: &Token) -> bool {
        self.tags(token, "", token.at + 1, false).first().is_some_and(|tag| tag.token.closes())
    }

    /// The next tag behind a lookalike that has its command, or else its name.
    pub(super) fn after(&self, text: &str, token: &Token) -> Option<Token> {
        next_of(&self.named, text, token)
    }

    /// The next one of these that closes.
    pub(super) fn closing_after(&self, text: &str, token: &Token) -> Option<Token> {
        next_of(&self.closing, text, token)
    }
}

fn next_of(tags: &HashMap<String, Vec<Token>>, text: &str, token: &Token) -> Option<Token> {
    let name = command_of(token).or_else(|| name_in(text, token))?;
    let tags = tags.get(&name)?;
    tags.get(tags.partition_point(|tag| tag.at <= token.at)).copied()
}

fn command_of(token: &Token) -> Option<String> {
    token.command.map(|_| token.command().name.to_owned())
}

/// The name in a lookalike, which differs from a command's by its bracket.
fn name_in(text: &str, token: &Token) -> Option<String> {
    let is_one = matches!(token.kind, TokenKind::Lookalike { .. });
    let tag = text[token.at..token.name_end].strip_prefix('[').filter(|_| is_one)?;
    Some(format!("[{}", tag.strip_prefix('/').unwrap_or(tag)))
}

/// The next undecorated tag of a command that is alone on its line, from the beginning of a line on.
pub(super) fn next_plain(text: &str, token: &Token, from: usize) -> Option<Token> {
    let finder = memmem::Finder::new(token.command().name);
    let bytes = text.as_bytes();
    let mut from = from;
    while let Some(at) = finder.find(bytes.get(from..)?).map(|n| from + n) {
        let begin = memrchr(b'\n', &bytes[from..at]).map_or(from, |n| from + n + 1);
        let end = line_end(text, at);
        let is_tag = bytes[begin..at].ends_with(b"[") || bytes[begin..at].ends_with(b"[/");
        if is_tag && (begin == 0 || bytes[begin - 1] == b'\n') {
            let found = lexer::lex(text, begin, end).filter(|found| {
                let is_kind =
                    matches!(found.kind, TokenKind::Open | TokenKind::Close { by_word: false });
                is_kind && found.command == token.command && found.alone && found.is_plain()
            });
            if found.is_some() {
                return found;
            }
        }
        // No line is looked at twice.
        from = end;
    }
    None
}
