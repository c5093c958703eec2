//! Where the body of a block ends: at its closing tag; else, where that is beyond doubt, at the one
//! that needs repair.

use std::ops::Range;

use memchr::{memchr, memmem, memrchr};

use super::attributes::brief;
use super::block::{refused, tag_fault};
use super::cut::never_closed;
use super::marks::{ALL, Mark, NONE, PLAIN, What};
use super::names::name;
use super::reader::Reader;
use super::repairs::Repairs;
use super::tails::{is_in_a_fence, without_fence};
use super::wrong::Wrong;
use crate::protocol::{Kind, Mistake, Step};

/// Where a body ends.
pub(super) struct End {
    /// What closes it, in bytes.
    pub(super) closing: Range<usize>,
    pub(super) repairs: Repairs,
    pub(super) quote: u8,
}

impl Reader<'_> {
    /// Where the body of a block ends. Where that is not known, the block is refused, and the reading
    /// goes on where it can.
    pub(super) fn end_of(
        &mut self,
        mark: &Mark,
        body_at: usize,
        number: usize,
        fault: Option<&Wrong>,
    ) -> Option<End> {
        let class = if mark.is_plain() { PLAIN } else { ALL };
        let next = mark.next[class];
        let next = if next == NONE { None } else { self.marks.get(next as usize) };
        if let Some(end) = next.filter(|next| next.what == What::Closing) {
            let is_of_body =
                end.repairs.has(Repairs::FENCE) && is_in_a_fence(&self.text[body_at..end.line]);
            if !end.repairs.decorates_beyond(mark.repairs) && !is_of_body {
                return Some(self.end_at(end));
            }
            let why = if is_of_body { self.fenced(end) } else { self.lacks(end) };
            self.ends_wrongly(mark, number, &why);
            return None;
        }
        if let (Some(next), true) = (next, mark.left_over[class] > 0) {
            let inner = self.number(next.line);
            self.ends_nowhere(mark, number, &format!(
                "on line {inner} another {} opens within it, and there are more closing tags than that one needs",
                brief(self.text[next.at..self.line_end(next.at)].trim())
            ));
            return None;
        }
        let region_end = next.map_or(self.text.len(), |next| next.line);
        let repaired = || self.otherwise_closed(mark, body_at, region_end);
        if let Some(end) = (!mark.ends_all).then(repaired).flatten() {
            return Some(end);
        }
        // Where nothing closes any of them, the reply was cut off.
        let next = next.filter(|_| mark.closes[class]);
        let region_end = next.map_or(self.text.len(), |next| next.line);
        let command = mark.command();
        let closing = command.closing.unwrap_or_default();
        // The next of its kind may stand in the body of another block.
        if let (Some(next), Some(other)) = (next, self.opens_within(body_at, region_end)) {
            let wrong = self.wrong_closing(mark, body_at, other);
            let (other, next) = (self.number(other), self.number(next.line));
            let why = format!(
                "it is not closed before line {next}, where the next of its kind opens, and on line {other} another block opens in between"
            );
            match wrong {
                Some(wrong) => self.ends_wrongly(mark, number, &(why + &wrong)),
                None => {
                    let why = format!("{why}; close it with {closing} alone on a line");
                    self.ends_nowhere(mark, number, &why);
                }
            }
            return None;
        }
        let tag = brief(self.line_at(mark.line));
        let wrong =
            if mark.ends_all { None } else { self.wrong_closing(mark, body_at, region_end) };
        let wrong = wrong.unwrap_or_default();
        let Some(next) = next else {
            let sentence = match fault {
                Some(fault) if fault.sort == Mistake::BodyAsAttribute => {
                    self.body_in_tag(mark, body_at, number, fault);
                    return None;
                }
                Some(Wrong { phrase, .. }) => format!(
                    "Line {number}: {phrase} in `{tag}`, and it is never closed (cut off?), so neither it nor anything after it was carried out. Send this block again and what follows it. Correct form: {}",
                    command.form
                ),
                None => never_closed(number, &tag, &wrong, closing),
            };
            self.cut_block(mark, body_at, number, sentence);
            return None;
        };
        let step = if let Some(fault) = fault {
            Step::new(number, tag_fault(command, number, self.line_at(mark.line), fault))
        } else {
            let line = self.number(next.line);
            let sentence = format!(
                "Line {number}: `{tag}` is never closed: the next block of its kind opens on line {line}{wrong}. It was not carried out; send this block again, and close it with {closing} alone on a line"
            );
            refused(command, number, Mistake::NotClosed, sentence)
        };
        self.pass(body_at, region_end);
        self.push(step, mark.line);
        // That was no body, so it may have been reasoning.
        if let Some(end) = self.ends_reasoning(body_at..region_end) {
            self.end_of_reasoning(&end);
            self.pass(end.name_end, region_end);
        }
        None
    }

    /// That a closing tag is decorated as the opening one is not, as a phrase.
    pub(super) fn lacks(&mut self, end: &Mark) -> String {
        let (line, shown) = (self.number(end.line), brief(self.line_at(end.line)));
        format!(
            "the closing tag on line {line}, `{shown}`, has decoration that the opening one lacks"
        )
    }

    /// That a fence behind a closing tag may be of the body, as a phrase.
    pub(super) fn fenced(&mut self, end: &Mark) -> String {
        let (line, shown) = (self.number(end.line), brief(self.line_at(end.line)));
        format!(
            "the fence behind the closing tag on line {line}, `{shown}`, may be the end of one in the body"
        )
    }

    pub(super) fn end_at(&self, mark: &Mark) -> End {
        End {
            closing: mark.line..self.next_line(mark.at),
            repairs: mark.repairs,
            quote: mark.quote,
        }
    }

    /// The line of the first tag in a region that opens a block with a body, or begins the reply.
    fn opens_within(&self, from: usize, to: usize) -> Option<usize> {
        let first = self.marks.partition_point(|mark| mark.line < from);
        let mut marks = self.marks[first..].iter().take_while(|mark| mark.line < to);
        let opens = marks.find(|mark| {
            let is_opening = matches!(mark.what, What::Opening | What::Misspelt);
            let command = mark.command();
            let begins = command.kind == Kind::Reply && mark.is_plain();
            is_opening && (command.closing.is_some() || begins)
        })?;
        Some(opens.line)
    }

    /// Whether nothing but blanks follows up to a plain opening tag or the end of the text.
    fn is_followed_by_a_tag(&self, from: usize) -> bool {
        let next = self.marks.get(self.marks.partition_point(|mark| mark.line < from));
        let next = next.filter(|next| next.what == What::Opening && next.is_plain());
        self.text[from..next.map_or(self.text.len(), |next| next.line)].trim().is_empty()
    }

    /// The one closing tag in a region that needs repair, or stands behind other text on its line.
    fn otherwise_closed(&self, mark: &Mark, from: usize, to: usize) -> Option<End> {
        let closing = mark.command().closing?;
        let mut found: Option<End> = None;
        let first = self.marks.partition_point(|mark| mark.line < from);
        // Behind the end of thoughts on its line it stands behind text.
        let of_name = |other: &&Mark| {
            let is_closing = other.what == What::Closing && other.alone;
            is_closing && other.command().kind == mark.command().kind
        };
        let marks = self.marks[first..].iter().take_while(|mark| mark.line < to).filter(of_name);
        for other in marks {
            // A list of tags in a text that was cut off.
            if other.repairs.decorates_beyond(mark.repairs)
                || other.repairs.has(Repairs::FENCE) && is_in_a_fence(&self.text[from..other.line])
                || found.replace(self.end_at(other)).is_some()
            {
                return None;
            }
        }
        for at in memmem::find_iter(&self.text.as_bytes()[from..to], closing) {
            let at = from + at;
            let known = found.as_ref().is_some_and(|end| end.closing.contains(&at));
            if known {
                continue;
            }
            let after = self.text[at + closing.len()..self.line_end(at)].trim();
            let is_fenced = without_fence(after).is_some_and(str::is_empty);
            let begin =
                memrchr(b'\n', &self.text.as_bytes()[from..at]).map_or(from, |n| from + n + 1);
            // A whole block on that line has a closing tag of its own.
            let opens = self.text[begin..at].trim_start().strip_prefix('[').and_then(name);
            let is_said = matches!(mark.command().kind, Kind::Message | Kind::Done);
            // Behind a blank it may be part of a sentence about it.
            let is_last = is_said && self.text[self.next_line(at)..].trim_start().is_empty();
            let is_glued = is_last || !self.text[begin..at].ends_with([' ', '\t']);
            if found.is_some()
                || opens.is_some()
                || !is_glued
                || !after.is_empty() && !is_fenced
                || is_fenced && is_in_a_fence(&self.text[from..at])
                || !self.is_followed_by_a_tag(self.next_line(at))
            {
                return None;
            }
            let mut repairs = Repairs::default();
            repairs.add(Repairs::GLUED);
            if is_fenced {
                repairs.add(Repairs::FENCE);
            }
            found = Some(End { closing: at..self.next_line(at), repairs, quote: mark.quote });
        }
        found
    }

    /// What is meant to close a block, perhaps, in words: a closing tag that is not alone on its line,
    /// behind `tag`, or else a line below that looks like one.
    pub(super) fn wrong_closing(&mut self, mark: &Mark, from: usize, to: usize) -> Option<String> {
        let region = &self.text[from..to];
        let closing = mark.command().closing?;
        let alike = || {
            memmem::find_iter(region.as_bytes(), b"[/").take(8).find(|at| {
                let begins = region[..*at].trim_end_matches([' ', '\t']);
                let end = memchr(b'\n', &region.as_bytes()[*at..]).map_or(region.len(), |n| at + n);
                (begins.is_empty() || begins.ends_with('\n'))
                    && region[*at..end].trim_end().ends_with(']')
            })
        };
        let own = memmem::find(&self.text.as_bytes()[mark.name_end..to], closing.as_bytes());
        let ended = || ending(region, mark.command().name);
        let otherwise = || ended().or_else(alike).map(|at| from + at);
        own.map(|at| mark.name_end + at).or_else(otherwise).map(|at| self.does_not_close(at))
    }

    /// That the line of an offset closes nothing, as a phrase.
    pub(super) fn does_not_close(&mut self, at: usize) -> String {
        let begin = memrchr(b'\n', &self.text.as_bytes()[..at]).map_or(0, |n| n + 1);
        let shown = brief(self.text[begin..self.line_end(at)].trim());
        let line = self.number(at);
        format!(", and `{shown}` on line {line} does not close it")
    }
}

/// Where in a text a line begins that people write who mean the end of a block of that name:
/// `[END_CREATE_FILE]`, `</CREATE_FILE>`, `{/CREATE_FILE}`.
fn ending(text: &str, name: &str) -> Option<usize> {
    let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let mut begin = 0;
    for line in text.split_inclusive('\n') {
        let word = line.trim();
        let is_short = word.len() <= 2 * name.len() + 8 && word.starts_with(['[', '<', '{', '(']);
        if is_short && word.ends_with([']', '>', '}', ')']) {
            let letters = word.chars().filter(char::is_ascii_alphanumeric);
            let letters: String = letters.map(|c| c.to_ascii_uppercase()).collect();
            let rest = letters.strip_prefix(&name).or_else(|| letters.strip_suffix(&name));
            let says = matches!(rest, Some("END" | "CLOSE"));
            if says || rest == Some("") && word.contains('/') {
                return Some(begin + line.len() - line.trim_start().len());
            }
        }
        begin += line.len();
    }
    None
}

/// The text between an opening tag and a closing one at the end of its line.
pub(super) fn inline_body<'t>(after: &'t str, closing: &str, mark: &Mark) -> Option<&'t str> {
    if let Some(body) = after.strip_suffix(closing) {
        return Some(body);
    }
    if mark.is_plain() {
        return None;
    }
    let at = memmem::rfind(after.as_bytes(), b"[/")
        .or_else(|| memmem::rfind(after.as_bytes(), b"[\\/"))?;
    let name: String = after[at..].chars().filter(|c| *c != '\\').collect();
    let body = &after[..at];
    name.eq_ignore_ascii_case(closing).then(|| body.strip_suffix('\\').unwrap_or(body))
}

/// The body of a block that ends on the line of its tag: `rest` is that line from the tag's name on,
/// `after` what stands behind the tag. Where that cannot be read nobody knows where the body begins, so
/// it is empty.
pub(super) fn body_there<'t>(
    is_read: bool,
    rest: &str,
    after: &'t str,
    closing: &str,
    mark: &Mark,
) -> Option<&'t str> {
    if is_read {
        return inline_body(after, closing, mark);
    }
    (mark.is_plain() && rest.trim_end().ends_with(closing)).then_some("")
}

#[cfg(test)]
mod tests {
    use crate::protocol::{Asks, tags::parse};

    #[test]
    fn a_text_on_the_tag_line_cannot_hold_its_closing_tag() {
        for (text, steps) in [
            ("[MESSAGE][/MESSAGE][/MESSAGE]\n[DONE]x[/DONE]\n", 2),
            ("[DONE] [/DONE] x [/DONE]\n[MESSAGE]y[/MESSAGE]", 2),
            ("[MESSAGE][/MESSAGE] x\ny\n[/MESSAGE]\n[READ_FILE path=\"a\"]\n", 2),
        ] {
            let reply = parse(text);
            assert_eq!(reply.steps.len(), steps, "{text}");
            assert!(matches!(reply.steps[1].asks, Asks::Operation(_)), "{text}");
            let Asks::Invalid(invalid) = &reply.steps[0].asks else { panic!("{text}") };
            assert!(invalid.reason.starts_with("Line 1: the text after the tag holds [/"));
            assert!(invalid.reason.contains("Correct form: ["), "{}", invalid.reason);
        }
    }
}
