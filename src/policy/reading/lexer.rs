//! Splits a line into the words of its commands, as far as `sh` and `bash` agree:
//!
//! ```text
//! list     = command { ( ";" | "&" | "&&" | "||" | "|" | newline ) command }
//! command  = { keyword } ( words and redirections | "(" list ")" )
//! word     = plain characters, quotes, `$name`, `${name}`, `${name:-plain}`, `$((plain))`, `$(list)`
//! document = "<<" mark, where the mark is quoted or its lines have no substitution
//! ```
//!
//! Any other syntax makes the line unreadable. The order of keywords and operators is not checked: if a line has a
//! syntax error, a shell runs nothing of it. Otherwise all commands are found.

use std::sync::LazyLock;

use regex::Regex;

use super::programs::{add, add_loop};
use super::{ParsedLine, ReadError, Word, is_of_name, mentions};

const UNCLOSED: &str = "a quote or a bracket is not closed";
const AMBIGUOUS: &str = "its words and quotes can be read in more than one way";
const SUBSTITUTION: &str = "it contains a substitution that cannot be read";
const DOCUMENT: &str = "it is not certain where its here-document ends";

/// What can follow a `$` that inserts a value: plain arithmetic, a name in braces with or without a plain default, one
/// character, or a name.
static VARIABLE: LazyLock<Regex> = LazyLock::new(|| {
    let arithmetic = r"\(\([A-Za-z0-9_ +*/%-]*[A-Za-z0-9_] *\)\)";
    let name = r"\{[A-Za-z0-9_]+(:-[A-Za-z0-9_./]*)?\}|[0-9@*#?$!-]|[A-Za-z_][A-Za-z0-9_]*";
    Regex::new(&format!("^(?:{arithmetic}|{name})")).expect("a pattern in order")
});

/// A line of a here-document in which the shell expands only variables. A backslash at the end would join the next line
/// to it.
static DATA: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^(?:[^`\\$]|\\.|\$[A-Za-z_])*$").expect("a pattern in order"));

/// Keywords that a command can follow.
const KEYWORDS: [&str; 12] =
    ["!", "{", "}", "if", "then", "elif", "else", "fi", "while", "until", "do", "done"];

fn is_keyword(word: &Word) -> bool {
    KEYWORDS.contains(&&*word.shown)
}

/// A here-document that begins on the next line.
struct HereDocument {
    mark: String,
    strips_tabs: bool,
    /// Whether the shell expands nothing in the document.
    is_quoted: bool,
}

pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    into: &'a mut ParsedLine,
    /// How many more levels of nesting are allowed.
    depth: u8,
    document: Option<HereDocument>,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str, into: &'a mut ParsedLine, depth: u8) -> Self {
        Self { text, at: 0, into, depth, document: None }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn next_if(&mut self, wanted: &str) -> bool {
        let is_next = self.rest().starts_with(wanted);
        self.at += if is_next { wanted.len() } else { 0 };
        is_next
    }

    /// Skips white space and line continuations.
    fn skip_blanks(&mut self) {
        while self.next_if(" ") || self.next_if("\t") || self.next_if("\\\n") {}
    }

    /// Reads commands up to `end`, or to the end of the text.
    pub(super) fn list(&mut self, end: Option<char>) -> Result<(), ReadError> {
        self.depth = self.depth.checked_sub(1).ok_or(super::TOO_DEEP)?;
        loop {
            let mut words = self.command()?;
            let next = self.next();
            if next == Some('\n') {
                self.skip_document()?;
            } else if next == end && self.document.is_some() {
                return Err(DOCUMENT.into());
            } else if next != end && matches!(next, None | Some(')')) {
                return Err(UNCLOSED.into());
            }
            let keywords = words.iter().take_while(|word| is_keyword(word)).count();
            words.drain(..keywords);
            if words.first().is_some_and(|word| word.shown == "for") {
                add_loop(&words[1..], self.into)?;
            } else {
                add(words, self.into, self.depth)?;
            }
            if next == end {
                self.depth += 1;
                return Ok(());
            }
        }
    }

    /// Reads the words of one command, up to the end of the command.
    fn command(&mut self) -> Result<Vec<Word>, ReadError> {
        let mut words = Vec::new();
        let mut is_closed = false;
        loop {
            self.skip_blanks();
            match self.peek() {
                // In `sh`, the `&` of `&>` ends the command, and `>` begins another.
                Some('&') if self.next_if("&>") => {
                    self.at -= 1;
                    self.redirection()?;
                    is_closed = true;
                }
                None | Some('\n' | ';' | '|' | '&' | ')') => return Ok(words),
                Some('#') => self.at += self.rest().find('\n').unwrap_or(self.rest().len()),
                // In some shells, `((` begins an arithmetic expression.
                Some('(') if words.iter().all(is_keyword) && !self.rest().starts_with("((") => {
                    self.at += 1;
                    self.list(Some(')'))?;
                }
                Some('(') => return Err(AMBIGUOUS.into()),
                Some('<' | '>') => self.redirection()?,
                Some(_) => {
                    let word = self.word()?;
                    let is_number = word.shown.bytes().all(|b| b.is_ascii_digit());
                    if matches!(self.peek(), Some('<' | '>')) && word.shown.len() == 1 && is_number
                    {
                        continue;
                    }
                    // Some shells accept several digits, or `{name}`, as a file descriptor.
                    let is_odd = matches!(self.peek(), Some('<' | '>'))
                        && (is_number || word.shown.starts_with('{'));
                    if is_odd || is_closed {
                        return Err(AMBIGUOUS.into());
                    }
                    words.push(word);
                }
            }
        }
    }

    fn redirection(&mut self) -> Result<(), ReadError> {
        if self.next_if("<<") {
            return self.begin_document();
        }
        if self.next_if(">&") || self.next_if("<&") {
            let word = self.word()?;
            let is_file = word.shown.len() == 1
                && word.shown.starts_with(|c: char| c.is_ascii_digit() || c == '-');
            return if is_file { Ok(()) } else { Err(AMBIGUOUS.into()) };
        }
        let _ = self.next_if(">>") || self.next_if(">|") || self.next_if(">") || self.next_if("<");
        self.skip_blanks();
        let is_word = !self.word()?.shown.is_empty();
        if is_word && !matches!(self.peek(), Some('<' | '>')) {
            Ok(())
        } else {
            Err(AMBIGUOUS.into())
        }
    }

    fn begin_document(&mut self) -> Result<(), ReadError> {
        let strips_tabs = self.next_if("-");
        self.skip_blanks();
        let Word { text: mark, shown, .. } = self.word()?;
        let is_quoted = [format!("'{mark}'"), format!("\"{mark}\"")].contains(&shown);
        let is_plain = !mark.is_empty() && mark.chars().all(is_of_name);
        if !is_plain || (!is_quoted && mark != shown) || self.document.is_some() {
            return Err(DOCUMENT.into());
        }
        self.document = Some(HereDocument { mark, strips_tabs, is_quoted });
        Ok(())
    }

    /// Skips the here-document that begins here, if any.
    fn skip_document(&mut self) -> Result<(), ReadError> {
        let Some(document) = self.document.take() else { return Ok(()) };
        loop {
            let line = self.rest().split_inclusive('\n').next().ok_or(DOCUMENT)?;
            self.at += line.len();
            let line = line.strip_suffix('\n').unwrap_or(line);
            let line = if document.strips_tabs { line.trim_start_matches('\t') } else { line };
            if line == document.mark {
                return Ok(());
            }
            if line.starts_with(&document.mark) {
                return Err(DOCUMENT.into());
            }
            if !document.is_quoted && !DATA.is_match(line) {
                return Err("its here-document contains substitutions".into());
            }
        }
    }

    /// Reads one word, and records the commands in its substitutions.
    fn word(&mut self) -> Result<Word, ReadError> {
        let begin = self.at;
        let is_on_line = self.document.is_some();
        let mut word = Word::default();
        let mut has_brace = false;
        while let Some(c) = self.peek().filter(|c| !" \t\n;&|()<>".contains(*c)) {
            let is_first = self.at == begin;
            self.at += c.len_utf8();
            match c {
                '\\' => match self.next() {
                    Some(c) if !c.is_control() => word.text.push(c),
                    _ => return Err(AMBIGUOUS.into()),
                },
                '\'' => {
                    let text = self.rest().split('\'').next().unwrap_or_default();
                    word.text.push_str(text);
                    self.at += text.len();
                    if !self.next_if("'") {
                        return Err(UNCLOSED.into());
                    }
                }
                '"' => self.quoted(&mut word)?,
                '$' => self.dollar(&mut word, false)?,
                '`' => return Err(SUBSTITUTION.into()),
                '~' if is_first => {
                    word.text.push(c);
                    word.home = self.peek().is_none_or(|c| "/ \t\n;&|)<>".contains(c));
                    // `~name` is the home folder of another user.
                    word.open |= !word.home;
                }
                c if c.is_whitespace() || c.is_control() || (is_first && c == '#') => {
                    return Err(AMBIGUOUS.into());
                }
                c => {
                    word.glob |= "*?[".contains(c);
                    has_brace |= c == '{';
                    word.text.push(c);
                }
            }
        }
        // `{a,b}` expands to two words.
        word.open |= has_brace && (word.text.contains(',') || word.text.contains(".."));
        // `[` is also a command.
        word.glob &= !matches!(&*word.text, "[" | "[[");
        self.text[begin..self.at].clone_into(&mut word.shown);
        if is_on_line && word.shown.contains('\n') { Err(DOCUMENT.into()) } else { Ok(word) }
    }

    /// Reads up to the closing double quote.
    fn quoted(&mut self, word: &mut Word) -> Result<(), ReadError> {
        loop {
            match self.next().ok_or(UNCLOSED)? {
                '"' => return Ok(()),
                '\\' => match self.next().ok_or(UNCLOSED)? {
                    '\n' => {}
                    c @ ('$' | '`' | '"' | '\\') => word.text.push(c),
                    c => word.text.extend(['\\', c]),
                },
                '$' => self.dollar(word, true)?,
                '`' => return Err(SUBSTITUTION.into()),
                c => word.text.push(c),
            }
        }
    }

    /// Reads the text after a `$`.
    fn dollar(&mut self, word: &mut Word, is_quoted: bool) -> Result<(), ReadError> {
        let is_at_start = word.text.is_empty() && !word.open;
        let rest = self.rest();
        if rest.starts_with('(') && !rest.starts_with("((") {
            self.at += 1;
            word.open = true;
            return self.list(Some(')'));
        }
        let length = VARIABLE.find(rest).map_or(0, |found| found.len());
        match self.peek() {
            Some('{' | '(') if length == 0 => return Err(SUBSTITUTION.into()),
            // In some spellings, `$((PATH = 1))` sets a variable.
            Some('(') if mentions(&rest[..length]) => return Err(SUBSTITUTION.into()),
            Some(c) if "\\['`".contains(c) || (c == '"' && !is_quoted) || !c.is_ascii() => {
                return Err(AMBIGUOUS.into());
            }
            _ => {}
        }
        self.at += length;
        // Some shells allow non-ASCII letters in names.
        if self.peek().is_some_and(|c| !c.is_ascii()) {
            return Err(AMBIGUOUS.into());
        }
        word.home |= is_at_start && matches!(&rest[..length], "HOME" | "{HOME}");
        match length {
            0 => word.text.push('$'),
            _ if word.home && is_at_start => word.text.push('~'),
            _ => word.open = true,
        }
        Ok(())
    }
}

/// Parses a text that is exactly one word.
pub(super) fn only_word(text: &str) -> Option<Word> {
    let into = &mut ParsedLine::default();
    let mut lexer = Lexer::new(text, into, 1);
    let word = lexer.word().ok()?;
    (lexer.at == text.len()).then_some(word)
}
