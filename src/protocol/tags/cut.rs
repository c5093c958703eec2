//! A reply that ends within the line of a tag, or before a block is closed.

use memchr::memrchr;

use super::attributes::brief;
use super::block::{refused, tag_fault};
use super::catalogue::{COMMANDS, Command};
use super::marks::Mark;
use super::reader::Reader;
use super::wrong::Wrong;
use crate::protocol::{Mistake, Step};

impl Reader<'_> {
    /// Whether a tag that cannot be read and has no body is the end of the text; then it is taken.
    pub(super) fn is_cut(&mut self, mark: &Mark, number: usize) -> bool {
        let (line, below) = (self.line_at(mark.line), &self.text[self.line_end(mark.at)..]);
        let is_cut = mark.is_plain() && !line.ends_with(']') && below.trim_start().is_empty();
        if is_cut {
            self.cut_off(mark.command(), number, line, mark.line);
        }
        is_cut
    }

    /// Takes the beginning of a command's name that the text ends with.
    pub(super) fn cut_name(&mut self) {
        let text = self.text.trim_end();
        let begin = memrchr(b'\n', text.as_bytes()).map_or(0, |n| n + 1);
        if begin < self.at {
            return;
        }
        let line = &text[begin..];
        let word = line.trim_start().strip_prefix('[').filter(|word| !word.is_empty());
        let is_begun = |command: &&Command| word.is_some_and(|word| command.name.starts_with(word));
        if let Some(command) = COMMANDS.iter().find(is_begun) {
            let number = self.number(begin);
            self.cut_off(command, number, line, begin);
        } else if line.trim_start() == "[" && !self.blocks.steps.is_empty() {
            let number = self.number(begin);
            let told = format!(
                "Line {number}: the reply ends with `[` alone on a line (cut off?). Send again what was to follow, if anything was"
            );
            self.end_here(Step::refused(number, Mistake::CutOff, told), begin);
        }
    }

    /// Takes a block that nothing closes, up to the end of the text, as that sentence says.
    pub(super) fn cut_block(&mut self, mark: &Mark, body_at: usize, number: usize, told: String) {
        self.pass(body_at, self.text.len());
        self.end_here(refused(mark.command(), number, Mistake::CutOff, told), mark.line);
    }

    /// Takes a block that nothing closes and whose tag was given the body: its form is wrong, so it need
    /// not be the end of the reply that is missing. What follows may be the body all the same.
    pub(super) fn body_in_tag(
        &mut self,
        mark: &Mark,
        body_at: usize,
        number: usize,
        fault: &Wrong,
    ) {
        let (command, tag) = (mark.command(), self.line_at(mark.line));
        let is_last = self.text[body_at..].trim().is_empty();
        self.pass(body_at, self.text.len());
        let step = if is_last {
            Step::new(number, tag_fault(command, number, tag, fault))
        } else {
            let sentence = format!(
                "Line {number}: {} in `{}`, and no closing tag follows; what follows may be its body, so neither it nor anything after it was carried out. Send this block again and what follows it. Correct form: {}",
                fault.phrase,
                brief(tag),
                command.form
            );
            Step { ends: true, ..refused(command, number, fault.sort, sentence) }
        };
        self.push(step, mark.line);
    }

    fn cut_off(&mut self, command: &Command, number: usize, line: &str, origin: usize) {
        let tag = brief(line.trim());
        let sentence = format!(
            "Line {number}: the reply ends within `{tag}` (cut off?), so it was not carried out. Send this block again and what follows it. Correct form: {}",
            command.form
        );
        self.end_here(refused(command, number, Mistake::CutOff, sentence), origin);
    }

    /// Takes what was cut off; nothing is behind it.
    pub(super) fn end_here(&mut self, step: Step, origin: usize) {
        self.blocks.unclosed = true;
        self.at = self.text.len();
        self.push(Step { ends: true, ..step }, origin);
    }
}

/// That nothing closes a block, as a sentence; `wrong` says what is meant to, perhaps.
pub(super) fn never_closed(number: usize, tag: &str, wrong: &str, closing: &str) -> String {
    format!(
        "Line {number}: `{tag}` is never closed (cut off?){wrong}, so neither it nor anything after it was carried out. Send this block again and what follows it, and close it with {closing} alone on a line"
    )
}
