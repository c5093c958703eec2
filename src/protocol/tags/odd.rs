//! What is no block in order: closing tags that are left over, names that are nearly right, thoughts,
//! and texts that are no reply.

use std::ops::Range;

use memchr::memmem;

use super::attributes::{self, brief};
use super::block::refused;
use super::catalogue::{COMMANDS, Command};
use super::marks::{Mark, What};
use super::names::{closes_there, name};
use super::reader::Reader;
use super::reasoning;
use super::repairs::Repairs;
use super::words::is_word;
use crate::protocol::{Kind, Mistake, Step, Warning, WarningSort};

impl<'a> Reader<'a> {
    /// A closing tag for which there is no open block.
    pub(super) fn left_over(&mut self, mark: &Mark) {
        let command = mark.command();
        let Some(closing) = command.closing else { return };
        let line = self.number(mark.line);
        let by_word = mark.what == What::ClosingByWord;
        let shown = brief(self.line_at(mark.line));
        let Some(block) = self.first[mark.which()] else {
            let count = self.blocks.steps.len();
            // Decorated it is words about the protocol; and before the end of a summary there are
            // commands that are meant.
            let is_words = if by_word {
                mark.repairs.decorates_beyond(Repairs::default())
            } else {
                !mark.is_plain() || command.kind == Kind::Done
            };
            if count > 0 && is_words {
                let closing = if by_word { format!("`{shown}`") } else { closing.to_owned() };
                let told = format!("the {closing} on line {line} closes nothing and was ignored");
                return self.note(Warning::new(WarningSort::StrayClosing, told));
            }
            // What stands before may be in its body.
            let opened = self.opened_before(mark);
            self.forget();
            let before = match count {
                0 => "it was not carried out".to_owned(),
                1 => "neither it nor the block before it was carried out".to_owned(),
                _ => format!("neither it nor the {count} blocks before it were carried out"),
            };
            let (after, form) = if by_word {
                let how = another_word(command);
                let form = format!("{}; where a body is to hold such a line, {how}", command.form);
                (", nor was anything after it", form)
            } else {
                ("", command.form.to_owned())
            };
            let sentence = format!(
                "Line {line}: `{shown}` closes a block whose opening tag is missing; {before}{after}.{opened} Correct form: {form}"
            );
            if by_word {
                // Its word says that a body holds tags: what follows may be of that, too.
                self.pass(mark.line, self.text.len());
            }
            let step = refused(command, line, Mistake::OpeningMissing, sentence);
            return self.push(Step { ends: by_word, ..step }, mark.line);
        };
        let origin = self.origins[block];
        let number = self.blocks.steps[block].line;
        self.blocks.steps.truncate(block);
        self.origins.truncate(block);
        let tag = self.line_at(origin);
        let has_word = by_word || {
            let rest = tag.split_once(command.name).map(|(_, rest)| rest);
            rest.and_then(attributes::token).is_some_and(|word| is_word(&word))
        };
        let left = if by_word { format!("`{shown}`") } else { closing.to_owned() };
        let why = format!("on line {line} a {left} is left over");
        let how = if has_word { another_word(command) } else { a_word(command) };
        self.end_reply(command, number, tag, &why, &how, origin);
    }

    /// The end of reasoning between two offsets whose beginning was lost.
    pub(super) fn ends_reasoning(&self, range: Range<usize>) -> Option<Mark> {
        let first = self.marks.partition_point(|mark| mark.at < range.start);
        let mut marks = self.marks[first..].iter().take_while(|mark| mark.at < range.end);
        marks.find(|mark| mark.what == What::ReasoningEnd && mark.until == 0).copied()
    }

    /// Nothing that was read counts.
    pub(super) fn forget(&mut self) {
        self.blocks.steps.clear();
        self.origins.clear();
        self.again.clear();
        self.first = [None; COMMANDS.len()];
    }

    /// A block whose end would have to be guessed.
    pub(super) fn ends_nowhere(&mut self, mark: &Mark, number: usize, why: &str) {
        let (command, tag) = (mark.command(), self.line_at(mark.line));
        self.end_reply(command, number, tag, why, &a_word(command), mark.line);
    }

    /// The same where a line is found that is meant to close it, perhaps.
    pub(super) fn ends_wrongly(&mut self, mark: &Mark, number: usize, why: &str) {
        let (command, tag) = (mark.command(), self.line_at(mark.line));
        let closing = command.closing.unwrap_or_default();
        let how = format!(
            "close it with {closing} alone on a line, and nothing around it; if that line is content, {}",
            instead(command)
        );
        self.end_reply(command, number, tag, why, &how, mark.line);
    }

    /// The same of a block that gives a word.
    pub(super) fn ends_unclear(&mut self, mark: &Mark, number: usize, why: &str) {
        let (command, tag) = (mark.command(), self.line_at(mark.line));
        self.end_reply(command, number, tag, why, &another_word(command), mark.line);
    }

    pub(super) fn end_reply(
        &mut self,
        command: &Command,
        number: usize,
        tag: &str,
        why: &str,
        how: &str,
        origin: usize,
    ) {
        let sentence = format!(
            "Line {number}: where `{}` ends is not clear: {why}. So neither it nor anything after it was carried out. Send it again from there; {how}",
            brief(tag)
        );
        let begin = self.at.min(self.next_line(origin));
        self.blocks.bodies.retain(|body| body.end <= begin);
        let begin = self.blocks.bodies.last().map_or(begin, |body| body.end.max(begin));
        self.pass(begin, self.text.len());
        let step = refused(command, number, Mistake::EndUnclear, sentence);
        self.push(Step { ends: true, ..step }, origin);
    }

    /// A tag whose name is nearly one.
    pub(super) fn misspelt(&mut self, n: usize, mark: &Mark) {
        let command = mark.command();
        let number = self.number(mark.line);
        let body_at = self.next_line(mark.at);
        let tag = brief(self.line_at(mark.line));
        let mut ends = false;
        if command.closing.is_some() {
            // Its body is nothing to be carried out.
            let mut of_kind =
                self.marks[n + 1..].iter().filter(|other| other.is_tag_of(command.kind));
            let next = of_kind.next();
            // Another that opens within may be closed by the tag that is found.
            let end = next.filter(|next| next.is_closing());
            let rest = self.text[mark.name_end..self.line_end(mark.at)].trim_end();
            if end.is_none() && closes_there(rest, mark.which()) {
                self.at = body_at;
            } else {
                ends = end.is_none_or(|end| end.repairs.decorates_beyond(mark.repairs));
                let end = end.filter(|_| !ends);
                let end_at = end.map_or(self.text.len(), |end| self.next_line(end.at));
                self.blocks.unclosed |= next.is_none();
                self.pass(body_at, end_at);
            }
        } else {
            self.at = body_at;
        }
        let after = if ends { ", and neither was anything after it" } else { "" };
        let sentence = format!(
            "Line {number}: `{tag}` is no command, so it was not carried out{after}; {} is meant, perhaps. Correct form: {}",
            command.name, command.form
        );
        let step = refused(command, number, misspelt(&self.text[mark.at..], command), sentence);
        self.push(Step { ends, ..step }, mark.line);
    }

    /// A section marker outside of blocks: this is no reply.
    pub(super) fn an_outbox(&mut self, mark: &Mark) {
        let line = self.number(mark.line);
        let marker = brief(&self.text[mark.at..mark.name_end]);
        let told = format!(
            "Nothing was carried out: line {line} is `{marker}`, so this is the message to the model, or the whole page of the chat, and its examples are no commands. Save the model's reply alone; a reply holds no such line outside of its commands"
        );
        self.refuse_all(Step::refused(line, Mistake::Outbox, told), mark.line);
    }

    /// The whole text is no reply, as that step says.
    pub(super) fn refuse_all(&mut self, step: Step, origin: usize) {
        self.forget();
        self.blocks.bodies.clear();
        self.blocks.notes.clear();
        self.blocks.answers = None;
        self.pass(0, self.text.len());
        self.push(step, origin);
    }

    /// Reasoning from its beginning on.
    pub(super) fn reasoning(&mut self, n: usize, mark: &Mark) {
        if mark.until == 0 {
            let line = self.number(mark.line);
            self.pass(mark.line, self.text.len());
            let begin = &self.text[mark.at..mark.name_end];
            let (shown, end) = (brief(begin), reasoning::end_of(begin));
            let told = format!(
                "Line {line}: `{shown}` is never closed by `{end}` at the start or the end of a line (cut off?), so nothing after it was carried out. Send again what follows your thoughts"
            );
            return self.end_here(Step::refused(line, Mistake::CutOff, told), mark.line);
        }
        let tags = self.tags_within(n, mark.until).len();
        self.pass(mark.line, mark.until);
        self.is_reasoning(tags, mark.line, mark.until, "");
    }

    /// Tells of what is asked for in reasoning, where anything is.
    fn is_reasoning(&mut self, tags: usize, from: usize, end: usize, but: &str) {
        let Some(asks) = self.asked_within(tags, from, end) else { return };
        let (line, last) = (self.number(from), self.number(end));
        let told = format!("{asks} ignored: lines {line} to {last} are thoughts{but}");
        self.note(Warning::new(WarningSort::TagsInThoughts, told));
    }

    /// What is asked for between two offsets, which hold so many tags.
    fn asked_within(&self, tags: usize, from: usize, end: usize) -> Option<String> {
        match tags {
            0 => {
                holds_message(&self.text[from..end]).then(|| "an operations message was".to_owned())
            }
            tags => Some(tags_were(tags)),
        }
    }

    /// An element whose tags are alone on their lines. Reasoning in it may begin before it, or go on
    /// behind it.
    pub(super) fn element(&mut self, n: usize, mark: &Mark) {
        let marks = self.marks;
        let mut from = mark.line;
        let mut next = n + 1;
        while let Some(inner) = marks.get(next).filter(|inner| inner.at < mark.until) {
            match inner.what {
                What::ReasoningEnd if inner.until == 0 => {
                    self.end_of_reasoning(inner);
                    from = self.at;
                }
                What::Reasoning if inner.until == 0 || inner.until > mark.until => {
                    self.pass(from, inner.line.max(from));
                    return self.reasoning(next, inner);
                }
                _ => {}
            }
            next += 1;
        }
        let tags = self.tags_within(n, mark.until);
        self.pass(from, mark.until);
        let Some(asks) = self.asked_within(tags.len(), mark.line, mark.until) else { return };
        let (line, last) = (self.number(mark.line), self.number(mark.until));
        let shown = brief(&self.text[mark.at..mark.name_end]);
        let told = format!(
            "{asks} ignored: lines {line} to {last} are in `{shown}`, and what is in an element is not carried out. Send again what was meant as a command, without the lines of that element's tags"
        );
        self.note(Warning::new(WarningSort::TagsInElement, told));
        tags.into_iter().for_each(|tag| self.passes_over(tag));
    }

    /// The tags that stand between a mark and where what it tells of ends.
    pub(super) fn tags_within(&self, n: usize, end: usize) -> Vec<&'a Mark> {
        let within = self.marks[n + 1..].iter().take_while(|other| other.at < end);
        within.filter(|other| matches!(other.what, What::Opening | What::Misspelt)).collect()
    }

    /// A file that is shown as an outbox shows it: what it holds is no command.
    pub(super) fn shown(&mut self, n: usize, mark: &Mark) {
        let (tags, line) = (self.tags_within(n, mark.name_end), self.number(mark.line));
        self.pass(mark.line, mark.name_end);
        if tags.is_empty() {
            return;
        }
        let (were, last) = (tags_were(tags.len()), self.number(mark.name_end));
        let told = format!(
            "{were} ignored: lines {line} to {last} show a file, which is done by the program that carries out the commands"
        );
        self.note(Warning::new(WarningSort::TagsInShownFile, told));
        tags.into_iter().for_each(|tag| self.passes_over(tag));
    }

    /// `</think>` whose beginning is missing: some chats leave it out.
    pub(super) fn end_of_reasoning(&mut self, mark: &Mark) {
        let count = self.blocks.steps.len();
        self.forget();
        // A message before it counts as little; each part of the text is looked at once.
        let looked_at = std::mem::replace(&mut self.thought, mark.name_end);
        let from = self.blocks.bodies.last().map_or(0, |body| body.end).max(looked_at);
        self.blocks.bodies.clear();
        self.pass(0, mark.name_end);
        if count == 0 {
            return self.is_reasoning(0, from, mark.name_end, ", whose beginning is missing");
        }
        let line = self.number(mark.at);
        let told = format!(
            "Line {line}: `{}` ends thoughts whose beginning is missing, so {} not carried out. Send again what was meant as a command",
            brief(&self.text[mark.at..mark.name_end]),
            if count == 1 {
                "the block before it was".to_owned()
            } else {
                format!("the {count} blocks before it were")
            }
        );
        self.push(Step::refused(line, Mistake::ThoughtsUnopened, told), mark.line);
    }
}

/// What to do about a body that holds its closing tag.
fn a_word(command: &Command) -> String {
    let closing = command.closing.unwrap_or_default();
    let has_to = match command.kind {
        Kind::Message | Kind::Done => "",
        _ => "where one has to be, ",
    };
    format!("no line of its body may be {closing}: {has_to}{}", instead(command))
}

/// How to say what would close a block in its body.
fn instead(command: &Command) -> String {
    match command.kind {
        Kind::Message | Kind::Done => "say it in other words".to_owned(),
        _ => own_word(command),
    }
}

/// How to write a block that ends by a word.
pub(super) fn own_word(command: &Command) -> String {
    let path = match command.kind {
        Kind::Create | Kind::Edit => " path=\"…\"",
        _ => "",
    };
    let name = command.name;
    format!(
        "end the block by a word of your own, as in [{name}{path} end=\"EOF1\"] and [/{name} end=\"EOF1\"]"
    )
}

/// The same where the block gives a word.
pub(super) fn another_word(command: &Command) -> String {
    format!(
        "choose a word for end=\"…\" that does not stand in the body, and put [/{} end=\"…\"] with it behind the body once, and no other closing tag",
        command.name
    )
}

/// Whether a text names what an operations message begins with.
fn holds_message(text: &str) -> bool {
    let names = |key: &[u8]| memmem::find(text.as_bytes(), key).is_some();
    names(b"\"operations\"") && names(b"\"protocolVersion\"")
}

/// `a tag was`, `3 tags were`.
pub(super) fn tags_were(n: usize) -> String {
    if n == 1 { "a tag was".to_owned() } else { format!("{n} tags were") }
}

/// In which way the tag that a text begins with is not written as one of that command.
fn misspelt(text: &str, command: &Command) -> Mistake {
    match text.strip_prefix('[') {
        Some(inner) if !inner.starts_with('[') => {
            let is_near = inner.trim_start_matches('/').starts_with(command.name);
            let is_far = !is_near && name(inner).is_some_and(|name| name.is_far);
            if is_far { Mistake::OtherName } else { Mistake::Misspelt }
        }
        _ => Mistake::OtherBrackets,
    }
}
