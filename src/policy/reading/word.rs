//! One word of a command, and what it is once the shell has taken its quotes away.

use std::ops::Range;

/// A word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Without its quotes. `~` and `$HOME` in front are `~`; what a substitution gives is left out.
    text: String,
    /// As it stands on the line.
    shown: String,
    /// Whether the shell puts in something that the line does not tell.
    open: bool,
    /// Whether it stands for the names of files.
    glob: bool,
    /// Whether `text` begins with the home folder.
    home: bool,
}

impl Word {
    /// A word that is what it says.
    pub(super) fn known(text: &str) -> Self {
        let shown = super::literal::quoted(text);
        Self { text: text.to_owned(), shown, open: false, glob: false, home: false }
    }

    /// A word that nothing is known of, as `shown` to a person.
    pub(super) fn unknown(shown: &str) -> Self {
        let (text, shown) = (String::new(), shown.to_owned());
        Self { text, shown, open: true, glob: false, home: false }
    }

    /// The same word where a part of it is put in by a program.
    pub(super) fn opened(&self) -> Self {
        Self { open: true, ..self.clone() }
    }

    /// The same word without the first `n` bytes of its text.
    pub(super) fn behind(&self, n: usize) -> Self {
        let text = self.text.get(n..).unwrap_or_default().to_owned();
        Self { text, home: false, ..self.clone() }
    }

    /// Its text without quotes, as far as that is known.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// As it stands on the line.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// What it is, where the line alone tells.
    pub fn literal(&self) -> Option<&str> {
        (!self.open && !self.glob && !self.home).then_some(&self.text)
    }

    /// Whether the shell puts in something that the line does not tell.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Whether it holds an unquoted `*`, `?` or `[`.
    pub fn is_glob(&self) -> bool {
        self.glob
    }

    /// Whether it begins with the home folder.
    pub fn is_home(&self) -> bool {
        self.home
    }
}

/// The words of a pattern of a policy: between blanks, without quotes.
pub(in crate::policy) fn plain(pattern: &str) -> Vec<Word> {
    let words = pattern.split_whitespace();
    words.map(|word| unquoted(word, 0, &[]).unwrap_or_else(|_| Word::known(word))).collect()
}

/// Why a text is not one word.
pub(super) type Fault = &'static str;
const ODD: Fault = "its words and quotes can be taken in more than one way";
const BACKTICK: Fault = "it holds a substitution that cannot be followed";

/// What `raw` is to the shell as one word. `spans` are the substitutions in it, in order, counted
/// from `offset` before it.
pub(super) fn unquoted(raw: &str, offset: usize, spans: &[Range<usize>]) -> Result<Word, Fault> {
    let mut reader = Reader { raw, offset, spans, at: 0, word: Word::unknown(raw) };
    reader.word.open = false;
    reader.read()?;
    Ok(reader.word)
}

/// The same of a text between double quotes, such as a here-document's.
pub(super) fn check_quoted(raw: &str, offset: usize, spans: &[Range<usize>]) -> Result<(), Fault> {
    let mut reader = Reader { raw, offset, spans, at: 0, word: Word::unknown(raw) };
    reader.double(None)
}

struct Reader<'a> {
    raw: &'a str,
    offset: usize,
    spans: &'a [Range<usize>],
    at: usize,
    word: Word,
}

impl Reader<'_> {
    fn read(&mut self) -> Result<(), Fault> {
        let (mut brace, mut list) = (false, false);
        while let Some(c) = self.peek() {
            if self.substitution(false)? {
                continue;
            }
            self.at += c.len_utf8();
            match c {
                '\\' => match self.next() {
                    None => return Err(ODD),
                    Some('\n') => {}
                    Some(c) => self.word.text.push(c),
                },
                '\'' => loop {
                    match self.next().ok_or(ODD)? {
                        '\'' => break,
                        c => self.word.text.push(c),
                    }
                },
                '"' => self.double(Some('"'))?,
                // `sh` and `bash` take these two apart in their own ways.
                '$' if matches!(self.peek(), Some('\'' | '"')) => {
                    if self.raw[self.at..].contains('\\') {
                        return Err(ODD);
                    }
                    self.word.open = true;
                }
                '$' => self.dollar(),
                '*' | '?' | '[' => {
                    self.word.glob = true;
                    self.word.text.push(c);
                }
                '~' if self.at == 1 => self.tilde(),
                '#' if self.at == 1 => return Err(ODD),
                ';' | '|' | '&' | '(' | ')' | '<' | '>' | '`' => return Err(ODD),
                c if c.is_whitespace() || c.is_control() => return Err(ODD),
                c => {
                    brace |= c == '{';
                    list |= brace && (c == ',' || (c == '.' && self.word.text.ends_with('.')));
                    self.word.text.push(c);
                }
            }
        }
        // `{a,b}` is two words.
        self.word.open |= list;
        // The command of that name is no pattern.
        self.word.glob &= !matches!(&*self.word.text, "[" | "[[");
        Ok(())
    }

    /// Reads up to the closing quote, or to the end where there is none.
    fn double(&mut self, end: Option<char>) -> Result<(), Fault> {
        loop {
            if self.peek().is_none() {
                return if end.is_none() { Ok(()) } else { Err(ODD) };
            }
            if self.substitution(true)? {
                continue;
            }
            match self.next() {
                c if c.is_some() && c == end => return Ok(()),
                Some('\\') => match self.next() {
                    Some('\n') => {}
                    Some(c @ ('$' | '`' | '"' | '\\')) => self.word.text.push(c),
                    Some(c) => self.word.text.extend(['\\', c]),
                    None => self.word.text.push('\\'),
                },
                Some('`') => return Err(BACKTICK),
                Some('$') => self.dollar(),
                Some(c) => self.word.text.push(c),
                None => {}
            }
        }
    }

    /// Passes a substitution that the grammar has found here.
    fn substitution(&mut self, quoted: bool) -> Result<bool, Fault> {
        let here = self.offset + self.at;
        while let Some((_, rest)) = self.spans.split_first().filter(|(span, _)| span.end <= here) {
            self.spans = rest;
        }
        if let Some(span) = self.spans.first().filter(|span| span.start <= here) {
            if span.start != here || span.end > self.offset + self.raw.len() {
                return Err(ODD);
            }
            let inner = &self.raw[self.at..span.end - self.offset];
            let first = self.at == usize::from(quoted) && self.word.text.is_empty();
            self.at = span.end - self.offset;
            if first && matches!(inner, "$HOME" | "${HOME}") && !self.word.open {
                self.word.home = true;
                self.word.text.push('~');
            } else {
                self.word.open = true;
            }
            return Ok(true);
        }
        let rest = &self.raw[self.at..];
        if rest.starts_with("$(") || rest.starts_with("${") || rest.starts_with("$[") {
            return Err(BACKTICK);
        }
        Ok(false)
    }

    /// A `$` that the grammar takes for itself.
    fn dollar(&mut self) {
        let named = |c: char| c.is_ascii_alphanumeric() || "_@*#?-$!".contains(c);
        if self.peek().is_some_and(named) {
            self.word.open = true;
        }
        self.word.text.push('$');
    }

    /// A `~` in front.
    fn tilde(&mut self) {
        self.word.text.push('~');
        match self.peek() {
            None | Some('/') => self.word.home = true,
            // Somebody's home folder.
            Some(_) => self.word.open = true,
        }
    }

    fn peek(&self) -> Option<char> {
        self.raw[self.at..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }
}
