//! Where the tags of a text are that begin their lines, in bodies or not. Made only where the end of a block
//! is not the next plain tag of its kind.

use std::collections::HashMap;

use memchr::{memchr_iter, memrchr};

use super::attributes;
use super::lexer::{self, Token, TokenKind, line_end};

/// How strictly the tags are chosen that a block's end is sought among: those without decoration, or all.
const PLAIN: usize = 0;
const ALL: usize = 1;

/// The tags of a text, by command and word, and those of blocks by names that are none.
pub(super) struct Index {
    tags: HashMap<(u8, String), [Vec<Tag>; 2]>,
    /// By name, with where the last closing one is that is none.
    mistaken: HashMap<String, (Vec<Token>, usize)>,
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

impl Tag {
    pub(super) fn closes(&self) -> bool {
        matches!(self.token.kind, TokenKind::Close | TokenKind::CloseByWord)
    }
}

impl Index {
    pub(super) fn of(text: &str) -> Self {
        let mut index = Self { tags: HashMap::new(), mistaken: HashMap::new() };
        let mut line = 0;
        let ends = memchr_iter(b'\n', text.as_bytes()).chain([text.len()]);
        for end in ends {
            let tokens = lexer::tokens(text, line, end);
            let counts = |token: &Token| token.line == line || token.opens();
            tokens.filter(counts).for_each(|token| index.add(text, token, end));
            line = end + 1;
        }
        for tags in index.tags.values_mut().flatten() {
            let (mut left_over, mut is_closed) = (0usize, false);
            for tag in tags.iter_mut().rev() {
                let closes = tag.closes();
                is_closed |= closes;
                (tag.is_closed, tag.left_over) = (is_closed, left_over);
                left_over = if closes { left_over + 1 } else { left_over.saturating_sub(1) };
            }
        }
        index
    }

    fn add(&mut self, text: &str, token: Token, end: usize) {
        let by_command = token.command.map(|_| token.command().name.to_owned());
        let is_mistaken = matches!(token.kind, TokenKind::Mistaken { .. });
        let by_name = is_mistaken.then(|| name_of(text, &token)).flatten();
        for key in by_command.into_iter().chain(by_name) {
            let (tags, last_end) = self.mistaken.entry(key).or_default();
            tags.push(token);
            if matches!(token.kind, TokenKind::Mistaken { closes: true, .. }) {
                *last_end = token.at;
            }
        }
        let Some(command) = token.command else { return };
        let rest = &text[token.name_end..end];
        let word = || attributes::token(rest).filter(|word| attributes::is_word(word));
        let (plainly, word) = match token.kind {
            TokenKind::Open if token.command().closing.is_none() => return,
            TokenKind::Open => (true, word()),
            TokenKind::Close => (true, None),
            TokenKind::CloseByWord => (false, word()),
            _ => return,
        };
        if !token.alone {
            return;
        }
        for word in plainly.then(String::new).into_iter().chain(word) {
            let lists = self.tags.entry((command, word)).or_default();
            let tag = Tag { token, is_closed: false, left_over: 0 };
            lists[ALL].push(tag);
            if token.is_plain() {
                lists[PLAIN].push(tag);
            }
        }
    }

    /// The tags that the end of a block may be among, from an offset on: of its command, with its word, and
    /// as plain as its own tag. Without a word it is empty.
    pub(super) fn tags(&self, token: &Token, word: &str, from: usize) -> &[Tag] {
        self.tags_of(token, word, from, if token.is_plain() { PLAIN } else { ALL })
    }

    /// The same with those that need repair.
    pub(super) fn all_tags(&self, token: &Token, word: &str, from: usize) -> &[Tag] {
        self.tags_of(token, word, from, ALL)
    }

    fn tags_of(&self, token: &Token, word: &str, from: usize, class: usize) -> &[Tag] {
        let key = (token.command.unwrap_or_default(), word.to_owned());
        self.tags.get(&key).map_or(&[], |lists| {
            let tags = &lists[class];
            &tags[tags.partition_point(|tag| tag.token.line < from)..]
        })
    }

    /// Whether the next tag of that command closes it.
    pub(super) fn is_closed(&self, token: &Token) -> bool {
        self.all_tags(token, "", token.at + 1).first().is_some_and(Tag::closes)
    }

    /// The tags that are of the same command as a mistaken one, or have its name, from behind it on; and where
    /// the last closing one of them is that is none.
    pub(super) fn of_name(&self, text: &str, token: &Token) -> (&[Token], usize) {
        let by_command = token.command.map(|_| token.command().name.to_owned());
        let key = by_command.or_else(|| name_of(text, token));
        let found = key.and_then(|key| self.mistaken.get(&key));
        found.map_or((&[], 0), |(tags, last_end)| {
            (&tags[tags.partition_point(|tag| tag.at <= token.at)..], *last_end)
        })
    }
}

/// The name in brackets of a mistaken tag, which is told from a command's by its bracket.
fn name_of(text: &str, token: &Token) -> Option<String> {
    let tag = text[token.at..token.name_end].strip_prefix('[')?;
    Some(format!("[{}", tag.strip_prefix('/').unwrap_or(tag)))
}

/// Where the line of a plain tag of a command begins, from an offset on that is the beginning of a line,
/// with that tag.
pub(super) fn next_plain(text: &str, token: &Token, from: usize) -> Option<Token> {
    let finder = memchr::memmem::Finder::new(token.command().name);
    let bytes = text.as_bytes();
    let mut from = from;
    while let Some(at) = finder.find(bytes.get(from..)?).map(|n| from + n) {
        let begin = memrchr(b'\n', &bytes[from..at]).map_or(from, |n| from + n + 1);
        let end = line_end(text, at);
        let is_tag = bytes[begin..at].ends_with(b"[") || bytes[begin..at].ends_with(b"[/");
        if is_tag && (begin == 0 || bytes[begin - 1] == b'\n') {
            let found = lexer::lex(text, begin, end);
            let is_tag = |found: &Token| {
                matches!(found.kind, TokenKind::Open | TokenKind::Close)
                    && found.command == token.command
                    && found.alone
                    && found.is_plain()
            };
            if let Some(found) = found.filter(is_tag) {
                return Some(found);
            }
        }
        // No line is looked at twice.
        from = end;
    }
    None
}
