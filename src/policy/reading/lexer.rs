//! From a line to the words of its commands, as `sh` and `bash` both take it apart: quotes, operators, redirections,
//! here-documents that are data, groups, and `$(…)`. Whatever else there is makes the line unreadable.

use super::programs::{add, add_loop, is_assignment};
use super::{Reading, Word, mentions, within};

/// How deep groups and substitutions may be nested.
const LEVELS: usize = 100;
const UNCLOSED: &str = "a quote or a bracket is not closed";
const ODD: &str = "its words and quotes can be taken in more than one way";
const SUBSTITUTION: &str = "it contains a substitution that cannot be followed";
const DOCUMENT: &str = "where its here-document ends is not certain";

/// Words of the grammar that a command follows, and those that end one.
const OPENERS: [&str; 9] = ["!", "{", "if", "then", "elif", "else", "while", "until", "do"];
const LOOPS: [&str; 2] = ["for", "select"];
const CLOSERS: [&str; 3] = ["}", "fi", "done"];

fn opens(word: &Word) -> bool {
    OPENERS.contains(&word.shown())
}

fn closes(word: &Word) -> bool {
    CLOSERS.contains(&word.shown())
}

/// A command while it is read.
#[derive(Default)]
struct Command {
    words: Vec<Word>,
    /// Whether an operator joins it to the one before.
    joined: bool,
    /// Whether a word behind it would belong to it in one shell, and begin a command in another.
    closed: bool,
    /// Whether it is a list in brackets.
    grouped: bool,
}

impl Command {
    /// Whether it sets variables, and does nothing else.
    fn only_sets(&self) -> bool {
        !self.words.is_empty() && self.words.iter().all(is_assignment)
    }

    /// Whether the grammar wants a command behind its last word.
    fn awaits_command(&self) -> bool {
        !self.grouped && self.words.last().is_some_and(opens)
    }

    /// A redirection ends its words.
    fn closes(&mut self) -> Result<(), Fault> {
        self.closed = true;
        if self.is_loop() { Err(ODD) } else { Ok(()) }
    }

    /// Whether it begins a loop over words.
    fn is_loop(&self) -> bool {
        let first = self.words.iter().find(|word| !opens(word) && !closes(word));
        first.is_some_and(|word| LOOPS.contains(&word.shown()))
    }
}

/// Why reading ends.
type Fault = &'static str;

pub(super) struct Lexer<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    pub(super) into: &'a mut Reading,
    /// How deep lines within lines may still be.
    pub(super) depth: u8,
    pub(super) level: usize,
    /// The words of the grammar that the present list must still have, the next one last.
    pub(super) awaited: Vec<&'static str>,
    /// Whether a command must follow, since an operator joins one to what was before.
    pub(super) joins: bool,
    /// Whether a `do` must follow, since what was before begins a loop over words.
    pub(super) is_head: bool,
    /// A here-document that begins at the end of the line: its mark, whether tabs before that do not count, and
    /// whether it is data whatever it contains.
    pub(super) document: Option<(String, bool, bool)>,
}

impl Lexer<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn next_if(&mut self, wanted: char) -> bool {
        let is_next = self.peek() == Some(wanted);
        self.at += usize::from(is_next);
        is_next
    }

    /// Passes blanks, and the ends of lines that are continued.
    fn skip_blanks(&mut self) {
        loop {
            let rest = &self.text[self.at..];
            let length = if rest.starts_with("\\\n") {
                2
            } else {
                usize::from(rest.starts_with([' ', '\t']))
            };
            if length == 0 {
                return;
            }
            self.at += length;
        }
    }

    /// Reads commands up to `end`, or to the end of the text.
    pub(super) fn list(&mut self, end: Option<char>) -> Result<(), Fault> {
        self.level += 1;
        if self.level > LEVELS {
            return Err("its parts are nested too deep");
        }
        self.skip_blanks();
        if self.peek() == end && end.is_some() {
            return Err(ODD);
        }
        let around = std::mem::take(&mut self.awaited);
        while !self.command(end)? {}
        self.level -= 1;
        let awaited = std::mem::replace(&mut self.awaited, around);
        if awaited.is_empty() { Ok(()) } else { Err(UNCLOSED) }
    }

    /// Reads one command with what ends it. Returns whether the list ends there.
    fn command(&mut self, end: Option<char>) -> Result<bool, Fault> {
        let mut command = Command { joined: std::mem::take(&mut self.joins), ..Command::default() };
        let is_over = loop {
            self.skip_blanks();
            let is_joined = self.text[..self.at].trim_end_matches([' ', '\t']).ends_with("\\\n");
            let Some(c) = self.peek() else {
                if is_joined {
                    return Err(ODD);
                }
                if end.is_some() || self.document.is_some() {
                    return Err(UNCLOSED);
                }
                break true;
            };
            match c {
                _ if Some(c) == end => {
                    self.at += 1;
                    if self.document.is_some() || command.only_sets() {
                        return Err(ODD);
                    }
                    break true;
                }
                '\n' => {
                    self.at += 1;
                    self.skip_document()?;
                    break false;
                }
                // To `sh` it is `&`.
                '&' if !command.closed && self.text[self.at..].starts_with("&>") => {
                    self.at += 2;
                    self.next_if('>');
                    self.target()?;
                    command.closes()?;
                }
                ';' | '|' | '&' => {
                    self.at += 1;
                    self.operator(c, &command)?;
                    return self.end(command, false);
                }
                '(' if !command.closed && command.words.iter().all(opens) => {
                    self.at += 1;
                    // Arithmetic to `bash`, a subshell in a subshell to others.
                    if self.peek() == Some('(') {
                        return Err(ODD);
                    }
                    self.list(Some(')'))?;
                    (command.closed, command.grouped) = (true, true);
                }
                ')' => return Err(ODD),
                '#' if is_joined || command.closed => return Err(ODD),
                '#' => self.comment()?,
                '<' | '>' => {
                    let last =
                        command.words.last().filter(|last| last.shown() != "-" && !opens(last));
                    let is_apart = self.text[..self.at].ends_with([' ', '\t']);
                    if self.text[self.at..].starts_with("<<")
                        && (last.is_none() || command.only_sets() || !is_apart)
                    {
                        return Err(ODD);
                    }
                    match self.redirection()? {
                        Some(word) => command.words.push(word),
                        None => command.closes()?,
                    }
                }
                _ => self.add_word(&mut command)?,
            }
        };
        let is_empty = command.words.is_empty();
        if (is_empty && command.closed && !command.grouped)
            || (is_over && command.awaits_command())
            || (is_over && command.joined && is_empty && !command.closed)
        {
            return Err(ODD);
        }
        self.joins = command.joined && is_empty && !command.closed;
        self.end(command, is_over)
    }

    /// Passes the rest of an operator that begins with `c`.
    fn operator(&mut self, c: char, command: &Command) -> Result<(), Fault> {
        let is_empty = command.words.is_empty() && !command.closed;
        self.joins = (c != ';' && self.next_if(c)) || c == '|';
        if is_empty
            || command.awaits_command()
            || (c == '|' && (command.only_sets() || self.peek() == Some('&')))
            || (c != ';' && command.is_loop())
            || self.document.is_some()
        {
            return Err(ODD);
        }
        Ok(())
    }

    fn comment(&mut self) -> Result<(), Fault> {
        let begins = self.at == 0 || self.text[..self.at].ends_with([' ', '\t', '\n']);
        let line = self.text[self.at..].split('\n').next().unwrap_or_default();
        self.at += line.len();
        if begins && !line.ends_with('\\') { Ok(()) } else { Err(ODD) }
    }

    /// Adds a word to a command, unless it is the number before a redirection.
    fn add_word(&mut self, command: &mut Command) -> Result<(), Fault> {
        let word = self.word()?;
        let shown = word.shown();
        let words = &command.words;
        if matches!(self.peek(), Some('<' | '>')) {
            if shown.bytes().all(|b| b.is_ascii_digit()) {
                return Ok(());
            }
            // `{name}>file` sets a variable, and `a2>file` is a word of some.
            let ends_in_digit = shown.ends_with(|c: char| c.is_ascii_digit());
            if is_assignment(&word) || ends_in_digit || shown.starts_with('{') {
                return Err(ODD);
            }
        }
        let is_begin = words.len() < LEVELS && words.iter().all(opens);
        let is_odd = match shown {
            // Only these put something in for it.
            "{}" => !words.iter().any(|word| matches!(word.text(), "find" | "xargs")),
            "!" => words.last().is_some_and(|last| last.shown() == "!"),
            "{" => !is_begin,
            "}" | "fi" | "done" | "then" | "do" | "elif" | "else" => command.joined && is_begin,
            _ => false,
        };
        let ended = words.last().is_some_and(closes);
        if is_odd || command.closed || (ended && words.iter().all(|it| opens(it) || closes(it))) {
            return Err(ODD);
        }
        command.words.push(word);
        Ok(())
    }

    /// Takes the grammar's words from a command, and notes it. Returns `is_over`.
    fn end(&mut self, command: Command, is_over: bool) -> Result<bool, Fault> {
        let is_loop = command.is_loop();
        let mut words = command.words;
        let head = words.first().map(Word::shown);
        if self.is_head && head.is_some_and(|head| head != "do") {
            return Err(ODD);
        }
        self.is_head = (self.is_head && head.is_none()) || is_loop;
        let before = words.iter().take_while(|word| opens(word) || closes(word)).count();
        for (n, word) in words.iter().take(before + 1).enumerate() {
            let (ends, awaits) = match word.shown() {
                "if" => (None, Some("then")),
                "then" => (Some("then"), Some("fi")),
                "elif" => (Some("fi"), Some("then")),
                "else" => (Some("fi"), Some("fi")),
                "fi" => (Some("fi"), None),
                "while" | "until" | "for" | "select" => (None, Some("do")),
                "do" => (Some("do"), Some("done")),
                "done" => (Some("done"), None),
                "{" => (None, Some("}")),
                "}" => (Some("}"), None),
                _ => continue,
            };
            let is_first = n == 0 || (ends.is_none() && words[n - 1].shown() != "!");
            if !is_first || (ends.is_some() && self.awaited.pop() != ends) {
                return Err("the shell's grammar does not fit it");
            }
            self.awaited.extend(awaits);
        }
        let words = words.split_off(before);
        if is_loop {
            add_loop(&words, self.into);
        } else {
            add(words, self.into, self.depth);
        }
        Ok(is_over)
    }

    /// Reads a redirection, or a substitution that begins like one and is a word.
    fn redirection(&mut self) -> Result<Option<Word>, Fault> {
        let begin = self.at;
        let c = self.next();
        if self.next_if('(') {
            if !self.text[..begin].ends_with([' ', '\t']) {
                return Err(ODD);
            }
            self.list(Some(')'))?;
            return Ok(Some(Word::unknown(&self.text[begin..self.at])));
        }
        if self.next_if('&') {
            let word = self.word()?;
            let is_file =
                !word.shown().is_empty() && word.shown().bytes().all(|b| b.is_ascii_digit());
            return if is_file || word.shown() == "-" { Ok(None) } else { Err(ODD) };
        }
        if c == Some('>') {
            let _ = self.next_if('>') || self.next_if('|');
        } else if self.next_if('<') {
            return self.begin_document().map(|()| None);
        }
        self.target().map(|()| None)
    }

    /// Passes the word behind a redirection.
    fn target(&mut self) -> Result<(), Fault> {
        self.skip_blanks();
        let begins = |c: char| !(c.is_whitespace() || c.is_control() || ";&|()<>#{-".contains(c));
        if !self.peek().is_some_and(begins) {
            return Err(ODD);
        }
        self.word()?;
        if matches!(self.peek(), Some('<' | '>')) { Err(ODD) } else { Ok(()) }
    }

    fn begin_document(&mut self) -> Result<(), Fault> {
        let strips = self.next_if('-');
        self.skip_blanks();
        let quote = self.peek().filter(|c| matches!(c, '\'' | '"'));
        self.at += usize::from(quote.is_some());
        let rest = &self.text[self.at..];
        let length = rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
        let mark = rest[..length].to_owned();
        self.at += length;
        let ends = match quote {
            Some(quote) => {
                self.next_if(quote)
                    && matches!(self.peek(), None | Some(' ' | '\t' | '\n' | ';' | '|' | '>'))
            }
            None => matches!(self.peek(), None | Some(' ' | '\t' | '\n' | ';' | '|' | '>')),
        };
        if mark.is_empty() || !ends || self.document.is_some() {
            return Err(DOCUMENT);
        }
        self.document = Some((mark, strips, quote.is_some()));
        Ok(())
    }

    /// Passes the here-document that begins here, if one does.
    fn skip_document(&mut self) -> Result<(), Fault> {
        let Some((mark, strips, is_data)) = self.document.take() else { return Ok(()) };
        if self.text[self.at..].trim_start_matches('\t').starts_with([' ', '\n']) {
            return Err(DOCUMENT);
        }
        loop {
            let rest = &self.text[self.at..];
            let Some(line) = rest.split_inclusive('\n').next() else { return Err(DOCUMENT) };
            self.at += line.len();
            let bare = line.strip_suffix('\n').unwrap_or(line);
            let bare = if strips { bare.trim_start_matches('\t') } else { bare };
            if bare == mark {
                // The list sees the end of the line that the mark is on.
                return Ok(());
            }
            if bare.starts_with(&mark) || bare.contains('\r') {
                return Err(DOCUMENT);
            }
            let is_name =
                |rest: &str| rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
            if !is_data && (bare.contains(['\\', '`']) || !bare.split('$').skip(1).all(is_name)) {
                return Err("its here-document is more than data");
            }
        }
    }

    /// Reads one word; substitutions in it are read as lines of their own.
    fn word(&mut self) -> Result<Word, Fault> {
        let begin = self.at;
        let mut word = Word::default();
        let (mut brace, mut list) = (false, false);
        while let Some(c) = self.peek() {
            if matches!(c, ' ' | '\t' | '\n' | ';' | '&' | '|' | ')' | '<' | '>') {
                break;
            }
            let is_first = self.at == begin;
            self.at += c.len_utf8();
            match c {
                '\\' => match self.next() {
                    Some(c) if !is_first && !c.is_control() && !c.is_whitespace() => {
                        word.text.push(c);
                    }
                    Some(c) if c.is_ascii_punctuation() => word.text.push(c),
                    _ => return Err(ODD),
                },
                '}' if is_first
                    && self.peek().is_some_and(|c| !c.is_whitespace() && !";&|)<>".contains(c)) =>
                {
                    return Err(ODD);
                }
                '\'' => loop {
                    match self.next().ok_or(UNCLOSED)? {
                        '\'' => break,
                        c => self.put(&mut word, c)?,
                    }
                },
                '"' => self.quoted(&mut word)?,
                '$' => self.dollar(&mut word, false)?,
                '`' => self.backticks(&mut word, false)?,
                '*' | '?' | '[' => {
                    word.glob = true;
                    word.text.push(c);
                }
                '~' if is_first => {
                    word.text.push(c);
                    let ends = |c: char| c == '/' || c.is_whitespace() || ";&|)<>".contains(c);
                    word.home = self.peek().is_none_or(ends);
                    // Otherwise it is somebody's home folder.
                    word.open |= !word.home;
                }
                '(' => return Err(ODD),
                '#' if !self.peek().is_some_and(|c| c.is_ascii_alphanumeric()) => return Err(ODD),
                c if c.is_whitespace() || c.is_control() => return Err(ODD),
                c => {
                    brace |= c == '{';
                    list |= brace && (c == ',' || (c == '.' && word.text.ends_with('.')));
                    word.text.push(c);
                }
            }
        }
        // `{a,b}` is two words.
        word.open |= list;
        let is_bracket = matches!(&*word.text, "]" | "]]");
        if word.text.contains(']')
            && !is_bracket
            && !word.glob
            && !self.text[begin..self.at].contains(['\'', '"', '\\'])
        {
            return Err(ODD);
        }
        if brace && word.text != "{" && !word.text.contains('}') {
            return Err(ODD);
        }
        self.text[begin..self.at].clone_into(&mut word.shown);
        // The command of that name is no pattern.
        word.glob &= !matches!(&*word.text, "[" | "[[");
        Ok(word)
    }

    fn put(&mut self, word: &mut Word, c: char) -> Result<(), Fault> {
        if c == '\n' && self.document.is_some() {
            return Err(DOCUMENT);
        }
        word.text.push(c);
        Ok(())
    }

    /// Reads up to the closing double quote.
    fn quoted(&mut self, word: &mut Word) -> Result<(), Fault> {
        loop {
            match self.next().ok_or(UNCLOSED)? {
                '"' => return Ok(()),
                '\\' => match self.next().ok_or(UNCLOSED)? {
                    '\n' if self.document.is_none() => {}
                    c @ ('$' | '`' | '"' | '\\') => word.text.push(c),
                    c => {
                        word.text.push('\\');
                        self.put(word, c)?;
                    }
                },
                '$' => self.dollar(word, true)?,
                '`' => self.backticks(word, true)?,
                c => self.put(word, c)?,
            }
        }
    }

    /// What is behind a `$`.
    fn dollar(&mut self, word: &mut Word, quoted: bool) -> Result<(), Fault> {
        let begins = word.text.is_empty() && !word.open;
        let begin = self.at;
        match self.peek() {
            Some('(') => {
                self.at += 1;
                word.open = true;
                if self.next_if('(') { self.arithmetic() } else { self.substitution() }
            }
            Some('{') => {
                self.at += 1;
                let rest = &self.text[self.at..];
                let body = &rest[..rest.find('}').ok_or(UNCLOSED)?];
                self.at += body.len() + 1;
                if begins && body == "HOME" {
                    word.home = true;
                    word.text.push('~');
                    return Ok(());
                }
                word.open = true;
                let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                let (name, default) = body.split_once(":-").unwrap_or((body, ""));
                let is_plain = default.chars().all(|c| is_name(c) || "./".contains(c));
                if is_plain && !name.is_empty() && name.chars().all(is_name) {
                    return Ok(());
                }
                Err("it contains an expansion that cannot be followed")
            }
            Some('\'' | '"' | '[') if !quoted => Err(ODD),
            Some('[') => Err(ODD),
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                while self.peek().is_some_and(|c| c.is_ascii_alphanumeric() || c == '_') {
                    self.at += 1;
                }
                if self.peek().is_some_and(|c| !c.is_ascii()) {
                    return Err(ODD);
                }
                if begins && &self.text[begin..self.at] == "HOME" {
                    word.home = true;
                    word.text.push('~');
                } else {
                    word.open = true;
                }
                Ok(())
            }
            Some(c) if c.is_ascii_digit() || "@*#?-$!".contains(c) => {
                self.at += 1;
                word.open = true;
                let goes_on = self
                    .peek()
                    .is_some_and(|c| !c.is_ascii() || c.is_ascii_alphanumeric() || c == '_');
                if goes_on { Err(ODD) } else { Ok(()) }
            }
            Some('"') if quoted => {
                word.text.push('$');
                Ok(())
            }
            _ => Err(ODD),
        }
    }

    fn substitution(&mut self) -> Result<(), Fault> {
        if self.document.is_some() { Err(DOCUMENT) } else { self.list(Some(')')) }
    }

    /// `$((…))` with names, numbers and signs alone.
    fn arithmetic(&mut self) -> Result<(), Fault> {
        let rest = &self.text[self.at..];
        let body = &rest[..rest.find("))").ok_or(SUBSTITUTION)?];
        let plain = |c: char| c.is_ascii_alphanumeric() || "_ +-*/%".contains(c);
        let ends_well = body.trim_end().ends_with(|c: char| c.is_ascii_alphanumeric());
        if !ends_well || !body.chars().all(plain) || mentions(body) {
            return Err(SUBSTITUTION);
        }
        self.at += body.len() + 2;
        Ok(())
    }

    fn backticks(&mut self, word: &mut Word, quoted: bool) -> Result<(), Fault> {
        word.open = true;
        let rest = &self.text[self.at..];
        let body = &rest[..rest.find('`').ok_or(UNCLOSED)?];
        self.at += body.len() + 1;
        if body.trim().is_empty()
            || body.contains(['\\', '#'])
            || (quoted && body.contains('"'))
            || self.document.is_some()
        {
            return Err(SUBSTITUTION);
        }
        within(body, self.into, self.depth - 1);
        Ok(())
    }
}

/// A text that is one word.
pub(super) fn only_word(text: &str) -> Option<Word> {
    let into = &mut Reading::default();
    let mut lexer = Lexer {
        text,
        at: 0,
        into,
        depth: 1,
        level: 0,
        awaited: Vec::new(),
        joins: false,
        is_head: false,
        document: None,
    };
    let word = lexer.word().ok()?;
    (lexer.at == text.len()).then_some(word)
}
