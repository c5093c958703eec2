//! Which simple commands a shell command line holds, as lists of words. A modest reader: it knows
//! quotes, separators, subshells, substitutions, redirections, comments and here-documents, and
//! takes everything else as it stands. Linear, and never fails.

/// One command: its words without quotes. What a substitution gives is left out of them.
pub(super) type Words = Vec<String>;

/// The simple commands of a line, in the order of their ends.
pub(super) fn commands(text: &str) -> Vec<Words> {
    let mut reader = Reader::new(text);
    reader.read();
    reader.found
}

/// What a level of nesting ends with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Bracket,
    /// The same of a subshell, which gives no word.
    Subshell,
    Backtick,
    /// The text itself.
    Never,
}

/// A command that is being read, perhaps within another.
struct Level {
    end: End,
    words: Words,
    word: Option<String>,
    /// Whether it stands between double quotes of the level above.
    quoted: bool,
    /// Whether the next word is a file of a redirection, or the mark of a here-document.
    skip: Skip,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Skip {
    No,
    File,
    Mark { tabs: bool },
}

struct Reader<'a> {
    chars: std::iter::Peekable<std::str::Chars<'a>>,
    levels: Vec<Level>,
    /// Here-documents that begin after this line: the mark, and whether tabs before it count not.
    documents: Vec<(String, bool)>,
    quoted: bool,
    found: Vec<Words>,
}

impl Level {
    fn new(end: End, quoted: bool) -> Self {
        Self { end, words: Vec::new(), word: None, quoted, skip: Skip::No }
    }
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            chars: text.chars().peekable(),
            levels: vec![Level::new(End::Never, false)],
            documents: Vec::new(),
            quoted: false,
            found: Vec::new(),
        }
    }

    fn read(&mut self) {
        while let Some(c) = self.chars.next() {
            match c {
                '\\' => match self.chars.next() {
                    None | Some('\n') => {}
                    Some(c) => self.push(c),
                },
                '"' => {
                    self.push_str("");
                    self.quoted = !self.quoted;
                }
                '$' if self.chars.next_if_eq(&'(').is_some() => self.enter(End::Bracket),
                '`' if self.end() == End::Backtick => self.leave(),
                '`' => self.enter(End::Backtick),
                c if self.quoted => self.push(c),
                '\'' => {
                    self.push_str("");
                    while let Some(c) = self.chars.next_if(|c| *c != '\'') {
                        self.push(c);
                    }
                    self.chars.next();
                }
                ' ' | '\t' => self.end_word(),
                '\n' => {
                    self.end_command();
                    self.skip_documents();
                }
                '&' if self.chars.peek() == Some(&'>') => {}
                '(' => self.enter(End::Subshell),
                ')' if matches!(self.end(), End::Bracket | End::Subshell) => self.leave(),
                ';' | '|' | '&' | ')' => self.end_command(),
                '<' | '>' => self.redirect(c),
                '#' if self.level().word.is_none() => {
                    while self.chars.next_if(|c| *c != '\n').is_some() {}
                }
                c => self.push(c),
            }
        }
        while self.levels.len() > 1 {
            self.leave();
        }
        self.end_command();
    }

    fn level(&mut self) -> &mut Level {
        if self.levels.is_empty() {
            self.levels.push(Level::new(End::Never, false));
        }
        let last = self.levels.len() - 1;
        &mut self.levels[last]
    }

    fn end(&mut self) -> End {
        self.level().end
    }

    fn push(&mut self, c: char) {
        self.level().word.get_or_insert_default().push(c);
    }

    fn push_str(&mut self, text: &str) {
        self.level().word.get_or_insert_default().push_str(text);
    }

    fn enter(&mut self, end: End) {
        let quoted = std::mem::take(&mut self.quoted);
        self.levels.push(Level::new(end, quoted));
    }

    fn leave(&mut self) {
        self.end_command();
        if let Some(level) = self.levels.pop() {
            self.quoted = level.quoted;
            if level.end != End::Subshell {
                // Something came of it, whatever that is.
                self.push_str("");
            }
        }
    }

    fn redirect(&mut self, c: char) {
        let level = self.level();
        if level.word.as_ref().is_some_and(|word| word.bytes().all(|b| b.is_ascii_digit())) {
            // The number of a descriptor.
            level.word = None;
        }
        self.end_word();
        let mut skip = Skip::File;
        if c == '<' && self.chars.next_if_eq(&'<').is_some() {
            if self.chars.next_if_eq(&'<').is_none() {
                skip = Skip::Mark { tabs: self.chars.next_if_eq(&'-').is_some() };
            }
        } else if self.chars.next_if_eq(&'(').is_some() {
            return self.enter(End::Bracket);
        } else {
            while self.chars.next_if(|c| matches!(c, '>' | '&' | '|')).is_some() {}
        }
        self.level().skip = skip;
    }

    fn end_word(&mut self) {
        let level = self.level();
        let Some(word) = level.word.take() else { return };
        match std::mem::replace(&mut level.skip, Skip::No) {
            Skip::No => level.words.push(word),
            Skip::File => {}
            Skip::Mark { tabs } => self.documents.push((word, tabs)),
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        let level = self.level();
        level.skip = Skip::No;
        let words = std::mem::take(&mut level.words);
        if !words.is_empty() {
            self.found.push(words);
        }
    }

    fn skip_documents(&mut self) {
        for (mark, tabs) in std::mem::take(&mut self.documents) {
            let mut line = String::new();
            while let Some(c) = self.chars.next() {
                if c != '\n' {
                    line.push(c);
                    if self.chars.peek().is_some() {
                        continue;
                    }
                }
                let text = if tabs { line.trim_start_matches('\t') } else { &line };
                if text == mark {
                    break;
                }
                line.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Vec<String> {
        commands(text).iter().map(|words| words.join("|")).collect()
    }

    #[test]
    fn lines_come_apart_into_commands() {
        assert_eq!(read("a b;c&&d||e|f&g\nh"), ["a|b", "c", "d", "e", "f", "g", "h"]);
        assert_eq!(read("(a; b) && { c; }"), ["a", "b", "{|c", "}"]);
        assert_eq!(read("a 'b;c' \"d e\" f\\ g"), ["a|b;c|d e|f g"]);
        assert_eq!(read("a\\\nb"), ["ab"]);
        assert_eq!(read("a '' \"\""), ["a||"]);
        assert_eq!(read("a 'never ends"), ["a|never ends"]);
    }

    #[test]
    fn substitutions_are_commands_of_their_own() {
        assert_eq!(read("a $(b c) d"), ["b|c", "a||d"]);
        assert_eq!(read("a \"x $(b \"c\") y\" d"), ["b|c", "a|x  y|d"]);
        assert_eq!(read("a `b c`"), ["b|c", "a|"]);
        assert_eq!(read("a '$(b)' \\`c"), ["a|$(b)|`c"]);
        assert_eq!(read("x=$((1+2)) a"), ["1+2", "x=|a"]);
        assert_eq!(read("diff <(a b) c"), ["a|b", "diff||c"]);
    }

    #[test]
    fn redirections_comments_and_documents_are_no_words() {
        assert_eq!(read("a >x 2>&1 </dev/null b"), ["a|b"]);
        assert_eq!(read("a &>x; b >>'y z' c"), ["a", "b|c"]);
        assert_eq!(read("a # b; c\nd#e"), ["a", "d#e"]);
        assert_eq!(read("cat <<E >f\nb; c\n E\nE\nd"), ["cat", "d"]);
        assert_eq!(read("cat <<-'E' x\nb\n\tE\nd"), ["cat|x", "d"]);
        assert_eq!(read("a <<<b c"), ["a|c"]);
        assert_eq!(read("cat <<E\nb"), ["cat"]);
    }

    proptest! {
        #[test]
        fn any_text_can_be_read(text in "([a-c]|[ \t\n'\"`$()<>|&;#\\\\]|\\$\\(|<<){0,60}") {
            let words = commands(&text).concat();
            prop_assert!(words.iter().map(String::len).sum::<usize>() <= text.len());
        }
    }

    #[test]
    fn deep_and_long_texts_take_linear_time() {
        let begun = std::time::Instant::now();
        for part in ["$(", "(", "`", "\"$(", "<<a\n", "'", "a;", "<<a ", "\"", "\\", "# "] {
            commands(&part.repeat(300_000));
        }
        assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{:?}", begun.elapsed());
    }
}
