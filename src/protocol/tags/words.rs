//! Blocks that share a word with their closing tag: `[CREATE_FILE path="a" end="EOF1"]` up to
//! `[/CREATE_FILE end="EOF1"]`.

use std::collections::HashMap;

use memchr::{memmem, memrchr};

use super::attributes::{self, Opening, brief};
use super::catalogue::Command;
use super::cut::never_closed;
use super::ends::End;
use super::line::line_end;
use super::marks::{ALL, Mark, PLAIN, What};
use super::reader::Reader;
use super::repairs::Repairs;
use super::tails::is_in_a_fence;

/// The tags with a word, by their command and that word, in order: those that are plain, and all.
#[derive(Default)]
pub(super) struct Words(HashMap<(usize, String), [Vec<Tag>; 2]>);

/// A tag with a word.
#[derive(Clone, Copy)]
struct Tag {
    /// Which mark it is, and where its line begins.
    mark: usize,
    line: usize,
    closes: bool,
    /// Whether it or one behind it is a closing tag.
    closed: bool,
    /// How many closing tags behind it have no opening tag of their own.
    left_over: usize,
}

impl Words {
    /// Those among the marks of a text.
    pub(super) fn of(text: &str, marks: &[Mark]) -> Self {
        let mut words = Self::default();
        if !marks.iter().any(|mark| mark.what == What::ClosingByWord) {
            return words;
        }
        for (n, mark) in marks.iter().enumerate() {
            let closes = mark.what == What::ClosingByWord;
            let opens = mark.what == What::Opening && mark.command().closing.is_some();
            if !mark.alone || !(closes || opens) {
                continue;
            }
            let word = attributes::token(&text[mark.name_end..line_end(text, mark.at)]);
            let Some(word) = word.filter(|word| is_word(word)) else { continue };
            let tags = words.0.entry((mark.which(), word)).or_default();
            let tag = Tag { mark: n, line: mark.line, closes, closed: closes, left_over: 0 };
            tags[ALL].push(tag);
            if mark.is_plain() {
                tags[PLAIN].push(tag);
            }
        }
        for tags in words.0.values_mut().flatten() {
            let (mut left_over, mut closed) = (0usize, false);
            for tag in tags.iter_mut().rev() {
                closed |= tag.closes;
                tag.closed = closed;
                tag.left_over = left_over;
                left_over = if tag.closes { left_over + 1 } else { left_over.saturating_sub(1) };
            }
        }
        words
    }

    /// Where the line of the next tag of a command and a word begins, if that is a closing one.
    pub(super) fn end(&self, which: usize, word: &str, class: usize, at: usize) -> Option<usize> {
        let first = self.behind(which, word, class, at).first();
        first.filter(|tag| tag.closes).map(|tag| tag.line)
    }

    /// Those of a command and a word from there on.
    fn behind(&self, which: usize, word: &str, class: usize, at: usize) -> &[Tag] {
        let tags = self.0.get(&(which, word.to_owned()));
        tags.map_or(&[], |tags| {
            let tags = &tags[class];
            &tags[tags.partition_point(|tag| tag.line < at)..]
        })
    }
}

impl Reader<'_> {
    /// Where the body of a block ends whose tags share a word: at the first closing tag with it, if
    /// none is left over behind that. Else the block is refused with all that follows.
    pub(super) fn end_by_word(
        &mut self,
        mark: &Mark,
        body_at: usize,
        number: usize,
        word: &str,
    ) -> Option<End> {
        if !is_word(word) {
            let why = format!(
                "end=\"{}\" is no word that closes it: that is 1 to 64 letters, digits, - and _",
                brief(word)
            );
            self.ends_nowhere(mark, number, &why);
            return None;
        }
        let class = if mark.is_plain() { PLAIN } else { ALL };
        let mut tags = self.words.behind(mark.which(), word, class, body_at);
        if !tags.first().is_some_and(|tag| tag.closed) {
            // Those that need repair.
            tags = self.words.behind(mark.which(), word, ALL, body_at);
        }
        let Some(first) = tags.first().filter(|tag| tag.closed).copied() else {
            self.never_closed(mark, body_at, number, word);
            return None;
        };
        let end = self.marks[first.mark];
        if !first.closes {
            let (line, shown) = (self.number(end.line), brief(self.line_at(end.line)));
            let why = format!("on line {line} `{shown}` opens another of that word within it");
            self.ends_unclear(mark, number, &why);
            return None;
        }
        let is_fenced = end.repairs.has(Repairs::FENCE);
        let is_of_body = is_fenced && is_in_a_fence(&self.text[body_at..end.line]);
        if end.repairs.decorates_beyond(mark.repairs) || is_of_body {
            let why = if is_of_body { self.fenced(&end) } else { self.lacks(&end) };
            self.ends_unclear(mark, number, &why);
            return None;
        }
        if first.left_over > 0 {
            let mut open = 0usize;
            let lost = tags[1..].iter().find(|tag| {
                let is_lost = tag.closes && open == 0;
                open = if tag.closes { open.saturating_sub(1) } else { open + 1 };
                is_lost
            });
            let lost = lost.map_or(end, |tag| self.marks[tag.mark]);
            let (line, shown) = (self.number(lost.line), brief(self.line_at(lost.line)));
            let why = format!("on line {line} another `{shown}` is left over");
            self.ends_unclear(mark, number, &why);
            return None;
        }
        Some(self.end_at(&end))
    }

    fn never_closed(&mut self, mark: &Mark, body_at: usize, number: usize, word: &str) {
        let command = mark.command();
        let closing = closing_tag(command, Some(word));
        let tag = brief(self.line_at(mark.line));
        let wrong = match nearly(&self.text[body_at..], command.name, word) {
            Some(at) => Some(self.does_not_close(body_at + at)),
            None => self.wrong_closing(mark, body_at, self.text.len()),
        };
        let wrong = wrong.unwrap_or_default();
        let sentence = never_closed(number, &tag, &wrong, &closing);
        self.cut_block(mark, body_at, number, sentence);
    }
}

/// Where the last line of a body begins that holds a closing tag and the word: it may be meant to
/// close it.
fn nearly(body: &str, name: &str, word: &str) -> Option<usize> {
    let slash = format!("/{name}");
    let (mut before, mut found) = (body.len(), None);
    while let Some(at) = memmem::rfind(&body.as_bytes()[..before], word.as_bytes()) {
        let begin = memrchr(b'\n', &body.as_bytes()[..at]).map_or(0, |n| n + 1);
        let line = body[begin..line_end(body, at)].replace('\\', "");
        // Not where it is part of another, as `E` is of the tag's name.
        let is_whole = line.split(|c: char| !is_of_word(c)).any(|other| other == word);
        let line = line.to_ascii_uppercase();
        if is_whole && memmem::find(line.as_bytes(), slash.as_bytes()).is_some() {
            found = Some(begin);
            break;
        }
        // Each line is looked at once.
        before = begin;
    }
    found
}

/// The closing tag of a block, with its word where it has one.
pub(super) fn closing_tag(command: &Command, word: Option<&str>) -> String {
    match word {
        Some(word) => format!("[/{} end=\"{word}\"]", command.name),
        None => command.closing.unwrap_or_default().to_owned(),
    }
}

/// The word that a block ends with, as its tag gives it. Also where the tag cannot be read: what such
/// a body holds is no command either.
pub(super) fn end_token(
    command: &Command,
    rest: &str,
    tag: Option<&Opening<'_>>,
    repairs: Repairs,
) -> Option<String> {
    match tag {
        _ if command.closing.is_none() || repairs.has(Repairs::RANGE) => None,
        Some(tag) => tag.value(command, "end").map(str::to_owned),
        None => attributes::token(rest),
    }
}

/// Whether a word can close a block.
pub(super) fn is_word(word: &str) -> bool {
    (1..=64).contains(&word.len()) && word.chars().all(is_of_word)
}

fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_')
}

#[cfg(test)]
mod tests {
    use crate::protocol::{Asks, Mistake, tags::parse};

    #[test]
    fn whatever_is_left_over_nothing_behind_is_read() {
        const OPEN: &str = "[CREATE_FILE path=\"a\" end=\"T\"]\n";
        const CLOSE: &str = "[/CREATE_FILE end=\"T\"]\n";
        const DELETE: &str = "[DELETE_FILE path=\"b\"]\n";
        let curly = CLOSE.replace('"', "”");
        // How many blocks are in order, and whether the last of all is refused with what follows.
        for (text, in_order, ends) in [
            (format!("{OPEN}{CLOSE}{OPEN}{CLOSE}{DELETE}"), 3, false),
            (format!("{OPEN}{curly}{OPEN}{curly}{DELETE}"), 3, false),
            (format!("{OPEN}{CLOSE}{OPEN}{CLOSE}{CLOSE}{DELETE}"), 0, true),
            (format!("{OPEN}{curly}{curly}{DELETE}"), 0, true),
            (format!("{OPEN}{CLOSE}{DELETE}{CLOSE}{OPEN}{CLOSE}"), 0, true),
            // What looks like a closing tag in a path is none.
            (
                format!("{OPEN}{CLOSE}[CREATE_FILE path=\"b[/c\" end=\"T\"]\n{CLOSE}{DELETE}"),
                3,
                false,
            ),
            (format!("{OPEN}{OPEN}{CLOSE}{DELETE}"), 0, true),
            (format!("{DELETE}{OPEN}{OPEN}{CLOSE}{CLOSE}{DELETE}"), 1, true),
            (format!("{OPEN}{CLOSE}{}{DELETE}", "[/CREATE_FILE]\n"), 0, true),
            (format!("{DELETE}{CLOSE}{DELETE}"), 0, true),
            (format!("{OPEN}`{}`\n{CLOSE}{DELETE}", CLOSE.trim_end()), 2, false),
        ] {
            let reply = parse(&text);
            let good = |asks: &Asks| matches!(asks, Asks::Operation(_));
            let good = reply.steps.iter().filter(|step| good(&step.asks)).count();
            assert_eq!(good, in_order, "{text}");
            assert_eq!(reply.steps.last().unwrap().ends, ends, "{text}");
        }
    }

    #[test]
    fn what_nearly_closes_a_block_is_quoted() {
        for nearly in
            ["x[/CREATE_FILE end=\"T\"]", "[/CREATE_FILE end=\"T\"] y", "[/Create_File T]"]
        {
            let text =
                format!("[CREATE_FILE path=\"a\" end=\"T\"]\nT T\n{nearly}\nT\n[/CREATE_FILE]\n");
            let Asks::Invalid(invalid) = &parse(&text).steps[0].asks else { panic!("{nearly}") };
            assert_eq!(invalid.sort, Mistake::CutOff);
            let told = format!("`{nearly}` on line 3 does not close it");
            assert!(invalid.reason.contains(&told), "{}", invalid.reason);
        }
    }
}
