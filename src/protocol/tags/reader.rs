//! Finds the blocks of a reply. Total: whatever the text, there is a list of steps, and the work is
//! linear in its length.

use std::borrow::Cow;
use std::ops::Range;

use memchr::{memchr_iter, memrchr};

use super::again::Again;
use super::attributes::{self, Opening, brief};
use super::block::{Block, tag_fault};
use super::bodies;
use super::catalogue::COMMANDS;
use super::ends::{body_there, inline_body};
use super::escapes;
use super::labels::Passed;
use super::line::line_end;
use super::marks::{self, Mark, What};
use super::names::name;
use super::notes;
use super::prose::Found;
use super::repairs::{Repairs, canonical, read_as};
use super::tails::{without_decoration, without_fence_behind};
use super::words::{Words, closing_tag, end_token};
use super::wrong::{Wrong, wrong};
use crate::protocol::{
    Address, Dialect, Kind, Mistake, Reply, Step, Warning, WarningSort, returns,
};

/// What is told of a reply that holds no block.
pub(in crate::protocol) const NO_COMMAND: &str = "The reply holds no command, so nothing was done. A command begins a line with its tag; the shortest complete reply is three lines: [DONE], a summary, [/DONE]";

/// No note about what stands between blocks is told with one that has so many warnings; the rest is
/// counted.
const NOTES: usize = 8;

/// The blocks of a text.
#[derive(Debug, Clone)]
pub(in crate::protocol) struct Blocks {
    /// What they ask for, in order. A path that was refused stands in `asked` as it was sent.
    pub(in crate::protocol) steps: Vec<Step>,
    /// Whether the text ends within a block.
    pub(in crate::protocol) unclosed: bool,
    /// Where what follows the opening lines stands: bodies and closing tags, in bytes.
    pub(in crate::protocol) bodies: Vec<Range<usize>>,
    /// What was ignored where no block is that could tell of it.
    pub(in crate::protocol) notes: Vec<Warning>,
    /// Which outbox it says it answers.
    pub(in crate::protocol) answers: Option<Address>,
}

/// Reads a reply (tag protocol, "Inbox Format").
///
/// # Examples
/// ```
/// use deaddrop::protocol::{Asks, Operation, ShellCommand, tags};
/// let reply = tags::parse("Let me look.\n[RUN_COMMAND]\nls -l\n[/RUN_COMMAND]\n");
/// assert_eq!(reply.steps.len(), 1);
/// assert_eq!(reply.steps[0].asks, Asks::Operation(Operation::Run(ShellCommand::new("ls -l"))));
/// ```
pub fn parse(text: &str) -> Reply {
    let Blocks { mut steps, unclosed, notes, answers, .. } = blocks(text);
    steps.iter_mut().for_each(|step| step.asked = None);
    let dialect = (!steps.is_empty()).then_some(Dialect::Tags);
    if steps.is_empty() {
        let step = Step::refused(1, Mistake::NoCommand, NO_COMMAND);
        steps.push(Step { warnings: notes, ..step });
    }
    Reply { steps, unclosed, dialect, answers }
}

/// Finds all blocks.
pub(in crate::protocol) fn blocks(text: &str) -> Blocks {
    let lines = returns::with_line_feeds(text);
    let has_none = matches!(lines, Cow::Owned(_));
    let text = &*lines;
    let marks = marks::find(text);
    let words = Words::of(text, &marks);
    let mut reader = Reader {
        text,
        marks: &marks,
        words: &words,
        at: 0,
        counted: (0, 1),
        origins: Vec::new(),
        first: [None; COMMANDS.len()],
        escaped: (0, 0),
        ignored: 0,
        passed_over: Passed::default(),
        again: Vec::new(),
        thought: 0,
        sought: [(0, None); COMMANDS.len()],
        numbered: None,
        blocks: Blocks {
            steps: Vec::new(),
            unclosed: false,
            bodies: Vec::new(),
            notes: Vec::new(),
            answers: None,
        },
    };
    for (n, mark) in marks.iter().enumerate() {
        if mark.line >= reader.at || mark.what == What::ReasoningEnd && mark.at >= reader.at {
            reader.at = reader.at.max(mark.line);
            reader.take(n, mark);
        }
    }
    if has_none && !reader.blocks.steps.is_empty() {
        let told =
            "the lines of the reply end in carriage returns (U+000D) alone, and were read as lines";
        reader.note(Warning::new(WarningSort::TagRepaired, told));
    }
    reader.finish()
}

pub(super) struct Reader<'a> {
    pub(super) text: &'a str,
    pub(super) marks: &'a [Mark],
    pub(super) words: &'a Words,
    /// What stands before is done with.
    pub(super) at: usize,
    /// An offset, and the number of its line.
    pub(super) counted: (usize, usize),
    /// Where the tag of each step begins.
    pub(super) origins: Vec<usize>,
    /// The first step that is a block of each command, in the catalogue's order: where a closing tag
    /// is left over, that block may be the one that goes on up to it.
    pub(super) first: [Option<usize>; COMMANDS.len()],
    /// How many opening tags were escaped, of how many.
    pub(super) escaped: (usize, usize),
    /// How many notes were left out.
    pub(super) ignored: usize,
    /// Where the line that says which outbox it answers stands again, behind commands.
    pub(super) again: Vec<Again>,
    /// The whole tags that were read as words.
    pub(super) passed_over: Passed,
    /// Up to where the last end of thoughts was looked at that has no beginning.
    pub(super) thought: usize,
    /// Up to where an opening tag of each command was sought that no block begins with, and the last.
    pub(super) sought: [(usize, Option<usize>); COMMANDS.len()],
    /// Up to where a closing tag of an edit begins whose word is a number, once that was looked for.
    pub(super) numbered: Option<usize>,
    pub(super) blocks: Blocks,
}

impl<'a> Reader<'a> {
    /// The number of the line that holds an offset.
    pub(super) fn number(&mut self, at: usize) -> usize {
        let (from, line) = self.counted;
        let lines = |range: Range<usize>| memchr_iter(b'\n', &self.text.as_bytes()[range]).count();
        let line =
            if at >= from { line + lines(from..at) } else { line.saturating_sub(lines(at..from)) };
        self.counted = (at, line);
        line
    }

    /// Where the line of an offset ends, without its newline.
    pub(super) fn line_end(&self, at: usize) -> usize {
        line_end(self.text, at)
    }

    /// The same with its newline.
    pub(super) fn next_line(&self, at: usize) -> usize {
        (self.line_end(at) + 1).min(self.text.len())
    }

    /// The line that begins at an offset, without blanks around it.
    pub(super) fn line_at(&self, begin: usize) -> &'a str {
        self.text[begin..self.line_end(begin)].trim()
    }

    fn take(&mut self, n: usize, mark: &Mark) {
        match mark.what {
            What::Opening => self.open(n, mark),
            What::Misspelt => self.misspelt(n, mark),
            What::Closing | What::ClosingByWord => self.left_over(mark),
            What::MisspeltClosing => {}
            What::Result => self.result(n, mark),
            What::Section => self.an_outbox(mark),
            What::Reasoning => self.reasoning(n, mark),
            What::ReasoningEnd => self.end_of_reasoning(mark),
            What::Element => self.element(n, mark),
            What::Shown => self.shown(n, mark),
            What::Seems => self.seems(n, mark),
            What::Unknown => self.unknown(mark),
            What::Pair => self.pair(n, mark),
        }
    }

    pub(super) fn push(&mut self, step: Step, origin: usize) {
        // What ends the reply may hold the end of reasoning that began before it.
        let end = if step.ends { self.ends_reasoning(origin..self.text.len()) } else { None };
        if let Some(end) = end {
            self.forget();
            self.blocks.bodies.clear();
            self.pass(0, self.text.len());
            let line = self.number(end.at);
            let told = format!(
                "nothing before it was carried out either: line {line} ends thoughts whose beginning is missing"
            );
            self.note(Warning::new(WarningSort::TagsInThoughts, told));
        }
        let notes = std::mem::take(&mut self.blocks.notes);
        self.blocks.steps.push(step);
        self.origins.push(origin);
        notes.into_iter().for_each(|note| self.note(note));
    }

    /// Tells something beside the last block, or the next where there is none.
    pub(super) fn note(&mut self, note: Warning) {
        let notes = match self.blocks.steps.last_mut() {
            Some(step) => &mut step.warnings,
            None => &mut self.blocks.notes,
        };
        if notes.len() < NOTES {
            notes.push(note);
        } else {
            self.ignored += 1;
        }
    }

    /// All up to `end` is read.
    pub(super) fn pass(&mut self, from: usize, end: usize) {
        if end > from {
            self.blocks.bodies.push(from..end);
        }
        self.at = end;
    }

    /// Reads the block that a tag opens.
    fn open(&mut self, n: usize, mark: &Mark) {
        let command = mark.command();
        let end = self.line_end(mark.at);
        let (line, rest) = (&self.text[mark.line..end], &self.text[mark.name_end..end]);
        let mut repairs = self.with_range(mark, rest);
        let tag = attributes::read(command, rest, &mut repairs);
        let after = tag.as_ref().map_or("", |tag| without_decoration(tag.after, mark.repairs));
        let after = without_fence_behind(command, after, &mut repairs);
        let token = end_token(command, rest, tag.as_ref().ok(), repairs);
        let inline = command.closing.filter(|_| token.is_none());
        let inline = inline.and_then(|end| body_there(tag.is_ok(), rest, after, end, mark));
        let found = Found { rest, is_broken: tag.is_err(), after, inline };
        let number = self.number(mark.line);
        if command.kind == Kind::Reply {
            return self.addressed(n, number, tag.ok(), found.after);
        }
        if !mark.is_plain() && self.is_prose(n, mark, &found) {
            return self.words(mark, number, line, &found);
        }
        let (body_at, mut warnings) = (self.next_line(mark.at), Vec::new());
        self.at = body_at;
        self.first[mark.which()].get_or_insert(self.blocks.steps.len());
        self.escaped.1 += 1;
        self.escaped.0 += usize::from(repairs.has(Repairs::ESCAPES));
        if let (false, Ok(tag)) = (repairs.is_none(), &tag) {
            warnings.push(read_as(number, line, &canonical(command, &tag.values), repairs));
        }
        let Some(closing) = command.closing else {
            return match tag {
                Ok(tag) => self.without_body(mark, number, line, tag, after, warnings),
                Err(_) if self.is_cut(mark, number) => {}
                Err(what) => self.malformed(mark, number, line, &what),
            };
        };

        // A body may begin, or even end, on the line of its opening tag.
        let mut lines = "";
        let mut quote = mark.quote;
        let mut closed = (None, Repairs::default());
        if inline.is_none() {
            let fault = tag.as_ref().err();
            let end = self.end_of_body(mark, body_at, number, token.as_deref(), fault);
            let Some(end) = end else { return };
            lines = &self.text[body_at..end.closing.start];
            quote = end.quote;
            closed = (Some(end.closing.clone()), end.repairs);
            self.pass(body_at, end.closing.end);
        }
        let Opening { values, warnings: more, .. } = match tag {
            Ok(tag) => tag,
            Err(what) => return self.malformed(mark, number, line, &what),
        };
        warnings.extend(more);
        let first = inline.unwrap_or(after);
        let what = in_doubt(mark, closing, first);
        if let Some(what) = what {
            let what = wrong(Mistake::TextAfterTag, what);
            return self.malformed(mark, number, line, &what);
        }
        if let (Some(range), false) = (&closed.0, closed.1.is_none()) {
            let at = self.number(range.start);
            let begin = memrchr(b'\n', &self.text.as_bytes()[..range.start]).map_or(0, |n| n + 1);
            let begin = begin.max(body_at);
            let meant = closing_tag(command, token.as_deref());
            warnings.push(read_as(at, &self.text[begin..range.end], &meant, closed.1));
        }
        let mut body = String::with_capacity(lines.len() + first.len() + 1);
        let (first, told) = notes::behind_tag(command.kind, first, lines, number);
        warnings.extend(told);
        if !first.is_empty() {
            body.push_str(first);
            body.push('\n');
        }
        let lead = &self.text[mark.line..mark.at];
        let unquoted =
            (mark.quote > 0).then(|| bodies::unquoted(lines, mark.quote, lead)).flatten();
        if quote != mark.quote || mark.quote > 0 && unquoted.is_none() {
            let told = "the lines of the block are not all quoted (>) as its tag is, each with a blank behind or none,";
            let what = wrong(Mistake::PartlyQuoted, told);
            return self.malformed(mark, number, line, &what);
        }
        let lines = unquoted.as_deref().unwrap_or(lines);
        // Where the tag line ends in CRLF, so does the body: a property of the reply, not of it.
        if line.ends_with('\r') {
            body.push_str(&lines.replace("\r\n", "\n"));
        } else {
            body.push_str(lines);
        }
        if closed.1.has(Repairs::GLUED) {
            body.push('\n');
        }
        let body_line = if first.is_empty() { number + 1 } else { number };
        let is_escaped = command.kind == Kind::Run && repairs.has(Repairs::ESCAPES);
        if let Some(what) = is_escaped.then(|| escapes::doubt(&body, body_line)).flatten() {
            return self.malformed(mark, number, line, &what);
        }
        if command.kind == Kind::Create {
            warnings.extend(notes::indented(&body, lead, body_line));
        }
        let block = Block { command, number, tag: line, values, body, body_line, warnings };
        self.push(block.step(), mark.line);
    }

    /// Takes a block that is its tag alone; `after` is what stands behind it.
    fn without_body(
        &mut self,
        mark: &Mark,
        number: usize,
        tag: &str,
        opening: Opening<'_>,
        after: &str,
        mut warnings: Vec<Warning>,
    ) {
        let command = mark.command();
        warnings.extend(opening.warnings);
        if !after.is_empty()
            && inline_body(after, &format!("[/{}]", command.name), mark) != Some("")
        {
            let shown = brief(after);
            // Perhaps a sentence that only begins with the tag.
            if matches!(command.kind, Kind::Delete | Kind::Move) {
                let told =
                    format!("`{shown}` stands behind the tag, which is to be alone on its line,");
                let what = wrong(Mistake::TextAfterTag, told);
                return self.malformed(mark, number, tag, &what);
            }
            let told = format!("`{shown}` after the tag on line {number} was ignored");
            warnings.push(Warning::new(WarningSort::TextAfterTag, told));
        }
        let (values, body) = (opening.values, String::new());
        let block = Block { command, number, tag, values, body, body_line: number, warnings };
        self.push(block.step(), mark.line);
    }

    /// Takes a block with which something is wrong.
    fn malformed(&mut self, mark: &Mark, number: usize, tag: &str, what: &Wrong) {
        let asks = tag_fault(mark.command(), number, tag, what);
        self.push(Step::new(number, asks), mark.line);
    }

    fn finish(mut self) -> Blocks {
        self.cut_name();
        self.refuse_several();
        let (escaped, all) = self.escaped;
        if escaped * 2 > all {
            let told = "most tags of the reply came with escaped characters (\\_), so its bodies may hold such too; they were kept as they are";
            self.note(Warning::new(WarningSort::EscapedTags, told));
        }
        if self.ignored > 0 {
            let more = self.ignored;
            let notes = match self.blocks.steps.last_mut() {
                Some(step) => &mut step.warnings,
                None => &mut self.blocks.notes,
            };
            let told = format!("and {more} more of this sort");
            notes.push(Warning::new(WarningSort::More, told));
        }
        self.hold_the_end();
        self.blocks
    }
}

/// Why nobody can say which of the tags on its line is meant, if nobody can: a phrase.
fn in_doubt(mark: &Mark, closing: &str, first: &str) -> Option<String> {
    let second = first.strip_prefix('[').and_then(name);
    if first.contains(closing) {
        Some(format!("the text after the tag holds {closing}"))
    } else if second.is_some_and(|second| usize::from(second.command) == mark.which()) {
        Some(format!("the text after the tag begins with [{}", mark.command().name))
    } else {
        None
    }
}
