//! A closing tag and the opening tag of another block on one line: what follows the first is no content.

use memchr::{memchr_iter, memmem, memrchr};

use super::attributes::{self, brief};
use super::ends::End;
use super::line::line_end;
use super::marks::Mark;
use super::names::name;
use super::odd::{another_word, own_word};
use super::reader::Reader;
use super::repairs::Repairs;
use super::tails::{is_one_tag, without_suffix};
use super::wrong::Wrong;

impl Reader<'_> {
    /// Where the body of a block ends, by the word that its tag gives, if it does; refused, if that is not
    /// clear.
    pub(super) fn end_of_body(
        &mut self,
        mark: &Mark,
        body_at: usize,
        number: usize,
        word: Option<&str>,
        fault: Option<&Wrong>,
    ) -> Option<End> {
        let end = match word {
            Some(word) => self.end_by_word(mark, body_at, number, word),
            None => self.end_of(mark, body_at, number, fault),
        };
        end.filter(|end| !self.is_joined(mark, body_at, number, end, word))
    }

    /// Whether a line of a body, up to where it ends, closes it and opens another block; then it is
    /// refused with all that follows.
    fn is_joined(
        &mut self,
        mark: &Mark,
        body_at: usize,
        number: usize,
        end: &End,
        word: Option<&str>,
    ) -> bool {
        let body = self.text.get(body_at..end.closing.start).unwrap_or_default();
        let Some(at) = joined(body, mark.command().name, word) else { return false };
        let at = body_at + at;
        let begin = memrchr(b'\n', &self.text.as_bytes()[..at]).map_or(0, |n| n + 1);
        let (line, shown) = (self.number(begin), brief(self.line_at(begin)));
        let why = format!("on line {line} `{shown}` closes it and opens another block");
        let (command, tag) = (mark.command(), self.line_at(mark.line));
        let other = if word.is_some() { another_word(command) } else { own_word(command) };
        let how = format!("put each tag alone on its line; if that line is content, {other}");
        self.end_reply(command, number, tag, &why, &how, mark.line);
        true
    }
}

/// Where in a body a closing tag of that name, with that word, stands at the beginning of a line or right
/// behind what it ends, and behind it nothing but an opening tag. In a code span they are of a sentence.
fn joined(body: &str, name_of: &str, word: Option<&str>) -> Option<usize> {
    let slash = format!("[/{name_of}");
    let (mut from, mut line) = (0, 0..0);
    while let Some(at) = memmem::find(&body.as_bytes()[from..], slash.as_bytes()) {
        let at = from + at;
        if at >= line.end {
            let begin = memrchr(b'\n', &body.as_bytes()[line.end..at]);
            line = begin.map_or(line.end, |n| line.end + n + 1)..line_end(body, at);
        }
        let end = line.end;
        from = at + slash.len();
        let before = &body[line.start..at];
        let stands = before.trim().is_empty() || !before.ends_with([' ', '\t']);
        let Some(after) = behind(&body[from..end], word).filter(|_| stands) else { continue };
        let opening = after.trim_start_matches(|c: char| c.is_whitespace() || "*_`~".contains(c));
        let inside = opening.strip_prefix('[');
        let found = inside.and_then(|inside| Some((inside, name(inside)?)));
        let Some((inside, found)) = found.filter(|(_, found)| !found.is_closing) else { continue };
        let mut decoration = Repairs::default();
        decoration.add(Repairs::EMPHASIS);
        if !found.is_misspelt
            && is_one_tag(without_suffix(&inside[found.length..], decoration))
            && !is_in_code(before, inside)
        {
            return Some(at);
        }
        // No line is looked at to its end more than once.
        from = end;
    }
    None
}

/// Whether a code span begins right before a tag, and ends with its line.
fn is_in_code(before: &str, rest: &str) -> bool {
    let is_open = || memchr_iter(b'`', before.as_bytes()).count() % 2 == 1;
    before.ends_with('`') && !before.ends_with("``") && rest.trim_end().ends_with('`') && is_open()
}

/// What stands behind a closing tag, from its name on, that has just that word.
fn behind<'a>(rest: &'a str, word: Option<&str>) -> Option<&'a str> {
    match word {
        None => rest.strip_prefix(']'),
        Some(word) => {
            let (given, after) = attributes::closing_word(rest, &mut Repairs::default())?;
            (given == word).then_some(after)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closing_tag_and_an_opening_one_are_found_at_the_beginning_and_behind_a_text() {
        for line in [
            "[/CREATE_FILE] [CREATE_FILE path=\"b\"]",
            "[/CREATE_FILE][RUN_COMMAND]",
            "}[/CREATE_FILE] **[DONE]**",
            "x = `a`[/CREATE_FILE][DONE]",
            "\"\"\"[/CREATE_FILE] [DONE]",
        ] {
            assert!(joined(&format!("x\n{line}\ny\n"), "CREATE_FILE", None).is_some(), "{line}");
        }
        for line in [
            "[/CREATE_FILE] x",
            "[/CREATE_FILE] [x]",
            "[/CREATE_FILE] [/DONE]",
            "[/CREATE_FILE] [CREATE_FILE path=\"b\"] x",
            "then [/CREATE_FILE] [DONE]",
            "[/CREATE_FILE end=\"T\"] [DONE]",
            "End with `[/CREATE_FILE][DONE]`",
            "\"[/CREATE_FILE] [DONE]\"",
        ] {
            assert!(joined(&format!("x\n{line}\ny\n"), "CREATE_FILE", None).is_none(), "{line}");
        }
        let line = "[/CREATE_FILE end=\"T\"] [DONE]\n";
        assert_eq!(joined(line, "CREATE_FILE", Some("T")), Some(0));
    }
}
