//! Finds the blocks of a reply. Never fails: every text gives a list of steps. The work is linear in its length.
//!
//! The lines outside bodies become items, in order. What is before a lost beginning of reasoning, or before a
//! closing tag that is left over, is dropped again; where the end of a block is not known, nothing after it
//! becomes an item. Then each item becomes a step, which is final.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use memchr::{memchr_iter, memrchr};

use super::attributes::{self, Opening, brief};
use super::block::{Block, refused, tag_fault};
use super::body;
use super::catalogue::Command;
use super::ends::{End, Index, closing_tag, may_have_tag};
use super::escapes;
use super::lexer::{self, Decoration, Token, TokenKind};
use super::lints;
use super::reasoning::{self, Line, Sort};
use super::spans::Span;
use crate::protocol::mistake::Problem;
use crate::protocol::{
    Address, Asks, Dialect, Kind, Mistake, Operation, Reply, Step, Warning, WarningKind, returns,
};

/// What a reply without a block is told.
pub(in crate::protocol) const NO_COMMAND: &str = "The reply contains no command, so nothing was done. A command begins a line with its tag; the shortest complete reply is three lines: [DONE], a summary, [/DONE]";

/// A step has at most so many notes about what is between blocks; further ones are counted.
const NOTES: usize = 8;

/// The blocks of a text.
#[derive(Debug, Clone)]
pub(in crate::protocol) struct Blocks {
    /// What they ask for, in order. A path that was refused stands in `asked` as it was sent.
    pub(in crate::protocol) steps: Vec<Step>,
    /// Whether the text ends within a block.
    pub(in crate::protocol) unclosed: bool,
    /// Where bodies with their closing tags, reasoning and elements are, in bytes.
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
    blocks_in(text, None)
}

/// The same where the real path of the workspace is known: an absolute path may lie in it.
pub(in crate::protocol) fn blocks_in(text: &str, workspace: Option<&str>) -> Blocks {
    let lines = returns::with_line_feeds(text);
    let had_returns_only = matches!(lines, Cow::Owned(_));
    let mut parser = Parser::new(&lines, workspace);
    parser.read();
    if had_returns_only && !parser.items.is_empty() {
        let text =
            "the lines of the reply end in carriage returns (U+000D) alone, and were read as lines";
        parser.note(lines.len(), Warning::new(WarningKind::TagRepaired, text));
    }
    parser.emit()
}

/// What was found outside bodies.
pub(super) struct Item<'a> {
    /// Where its line begins.
    pub(super) origin: usize,
    /// The command of a block, be it refused.
    pub(super) command: Option<&'static Command>,
    pub(super) kind: ItemKind<'a>,
}

pub(super) enum ItemKind<'a> {
    Block(Box<Found<'a>>),
    /// What is refused.
    Step(Box<Step>),
    Note(Warning),
    /// Further notes, of which only the number is kept.
    More(usize),
}

impl Found<'_> {
    /// Whether other text follows a tag that has no body.
    fn has_text_behind(&self) -> bool {
        let own = || format!("[/{}]", self.token.command().name);
        !self.after.is_empty() && inline_body(self.after, &own(), &self.token) != Some("")
    }
}

impl Item<'_> {
    pub(super) fn is_step(&self) -> bool {
        !matches!(self.kind, ItemKind::Note(_) | ItemKind::More(_))
    }

    /// Whether it is more than the refusal of thoughts before it.
    pub(super) fn is_command(&self) -> bool {
        match &self.kind {
            ItemKind::Step(step) => match &step.asks {
                Asks::Invalid(invalid) => invalid.mistake != Mistake::ThoughtsUnopened,
                Asks::Operation(_) => true,
            },
            ItemKind::Block(_) => true,
            ItemKind::Note(_) | ItemKind::More(_) => false,
        }
    }

    /// Whether more than a label is missed if it is not executed: not so of a summary or a message.
    pub(super) fn may_be_missed(&self) -> bool {
        let kind = self.command.map(|command| command.kind);
        self.is_step() && !matches!(kind, Some(Kind::Done | Kind::Message))
    }
}

/// A block, with its tag read.
pub(super) struct Found<'a> {
    pub(super) token: Token,
    pub(super) tag: Result<Opening<'a>, Problem>,
    /// What had to be overlooked in its tag.
    decoration: Decoration,
    /// What follows the tag on its line.
    after: &'a str,
    /// The body, where it ends on that line.
    inline: Option<&'a str>,
    /// The word that its closing tag repeats.
    pub(super) word: Option<String>,
    /// Where the body ends that begins on the next line.
    end: Option<End>,
    /// Where reasoning ends in that body that does not begin in it.
    stray: Option<Range<usize>>,
}

pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    /// The real path of the workspace, where that is known.
    workspace: Option<&'a str>,
    /// Where reading goes on: the start of a line, or an offset behind the end of reasoning.
    pub(super) at: usize,
    /// The bounds of the current line.
    pub(super) begin: usize,
    pub(super) end: usize,
    /// Its markers, where they were looked at.
    pub(super) line: Option<Line<'a>>,
    /// Where reasoning ended last in a draft that was looked through for that.
    pub(super) stray_at: usize,
    tags: u8,
    /// What is behind the end of a span that was not open.
    pub(super) doubtful_from: Option<(usize, Sort)>,
    /// Up to there nothing but the markers of reasoning counts.
    quiet_to: usize,
    /// Up to there a block goes that is never closed.
    pub(super) unclosed_to: usize,
    /// Whether nothing after the last item can be read.
    pub(super) ended: bool,
    pub(super) items: Vec<Item<'a>>,
    /// The commands that items had so far, as a set.
    pub(super) seen: HashSet<Kind>,
    /// The open spans; and for each key, the offset of its last closing marker.
    pub(super) spans: Vec<Span>,
    pub(super) last_ends: Option<HashMap<String, usize>>,
    /// Bodies and spans that have ended, in order, none in another.
    bodies: Vec<Range<usize>>,
    /// For a command, and whether it is to be undecorated: from where on a tag was sought, and the next one.
    pub(super) next_tags: HashMap<(Kind, bool), (usize, Option<Token>)>,
    pub(super) index: Option<Index>,
    /// An offset, and the number of its line.
    counted: (usize, usize),
    /// Whether a span contains the end of other reasoning, or of a block.
    pub(super) has_other_end: bool,
    pub(super) unclosed: bool,
    pub(super) answers: Option<Address>,
    /// Whether a command was reported that may have been meant, so that `[DONE if="ok"]` does not count.
    pub(super) missed_command: bool,
    /// Whether an operations message may be outside of bodies and spans.
    pub(super) has_message: bool,
    /// Whether a command is in the reply that is not quoted.
    has_unquoted: bool,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, workspace: Option<&'a str>) -> Self {
        Self {
            text,
            workspace,
            at: 0,
            begin: 0,
            end: 0,
            line: None,
            stray_at: 0,
            tags: 0,
            doubtful_from: None,
            quiet_to: 0,
            unclosed_to: 0,
            ended: false,
            items: Vec::new(),
            seen: HashSet::new(),
            spans: Vec::new(),
            last_ends: None,
            bodies: Vec::new(),
            next_tags: HashMap::new(),
            index: None,
            counted: (0, 1),
            has_other_end: false,
            unclosed: false,
            answers: None,
            missed_command: false,
            has_message: false,
            has_unquoted: false,
        }
    }

    fn read(&mut self) {
        while self.at < self.text.len() {
            self.line();
        }
        self.finish_spans();
        let is_end = |item: &&Item<'_>| matches!(&item.kind, ItemKind::Step(step) if step.ends);
        if let Some(item) = self.items.iter().find(is_end) {
            self.add_body(self.next_line(item.origin)..self.text.len());
        }
    }

    /// The number of the line that holds an offset.
    pub(super) fn number(&mut self, at: usize) -> usize {
        let (from, line) = self.counted;
        let lines = |range: Range<usize>| memchr_iter(b'\n', &self.text.as_bytes()[range]).count();
        let line =
            if at >= from { line + lines(from..at) } else { line.saturating_sub(lines(at..from)) };
        self.counted = (at, line);
        line
    }

    /// Where the line of an offset begins.
    pub(super) fn line_begin(&self, at: usize) -> usize {
        memrchr(b'\n', &self.text.as_bytes()[..at]).map_or(0, |n| n + 1)
    }

    /// Where the line of an offset ends, without its newline.
    pub(super) fn line_end(&self, at: usize) -> usize {
        lexer::line_end(self.text, at)
    }

    /// The same with its newline.
    pub(super) fn next_line(&self, at: usize) -> usize {
        (self.line_end(at) + 1).min(self.text.len())
    }

    /// The line of an offset, without blanks around it, for quoting.
    pub(super) fn shown(&self, at: usize) -> String {
        brief(self.text[self.line_begin(at)..self.line_end(at)].trim())
    }

    pub(super) fn push(
        &mut self,
        origin: usize,
        command: Option<&'static Command>,
        kind: ItemKind<'a>,
    ) {
        self.seen.extend(command.map(|command| command.kind));
        self.items.push(Item { origin, command, kind });
    }

    pub(super) fn note(&mut self, origin: usize, note: Warning) {
        if let Some(Item { kind: ItemKind::More(count), .. }) = self.items.last_mut() {
            *count += 1;
            return;
        }
        let last = self.items.iter().rev().take(NOTES).filter(|item| !item.is_step()).count();
        let kind = if last == NOTES { ItemKind::More(1) } else { ItemKind::Note(note) };
        self.push(origin, None, kind);
    }

    /// Remembers a body or a span.
    pub(super) fn add_body(&mut self, span: Range<usize>) {
        let mut end = span.end;
        while let Some(last) = self.bodies.pop_if(|last| last.start >= span.start) {
            end = end.max(last.end);
        }
        let start = self.bodies.last().map_or(span.start, |last| last.end.max(span.start));
        if start < end {
            self.bodies.push(start..end);
        }
    }

    /// Skips what is not the body of a block that is accepted: there the markers of reasoning count all the
    /// same, and nothing else does.
    pub(super) fn skip(&mut self, range: Range<usize>) {
        self.add_body(range.clone());
        self.quiet_to = self.quiet_to.max(range.end);
        self.at = range.start;
    }

    /// Whether nothing but the markers of reasoning counts on the line that is read.
    pub(super) fn is_quiet(&self) -> bool {
        self.ended || self.begin < self.quiet_to
    }

    /// Reports a line that looks like a tag and was read as words.
    pub(super) fn looks_like_tag(&mut self, token: &Token, why: &str) {
        let note = self.as_words(token, why);
        self.note(token.line, note);
    }

    fn as_words(&mut self, token: &Token, why: &str) -> Warning {
        self.missed_command |= token.may_be_missed();
        let (number, shown) = (self.number(token.line), self.shown(token.at));
        let text = format!("line {number} `{shown}` was read as words: {why}");
        Warning::new(WarningKind::LooksLikeTag, text)
    }

    /// Whether another tag is sought on a line: each may cost the rest of it.
    pub(super) fn may_seek_tag(&mut self) -> bool {
        const MOST: u8 = 8;
        self.tags = self.tags.saturating_add(1);
        self.tags <= MOST
    }

    /// Reads a line, or the rest of one behind the end of reasoning.
    fn line(&mut self) {
        let at = self.at;
        if at == 0 || self.text.as_bytes()[at - 1] == b'\n' {
            (self.begin, self.tags) = (at, 0);
        }
        let is_whole = at == self.begin;
        // The rest of a line has the same end.
        self.end = if is_whole || at > self.end { self.line_end(at) } else { self.end };
        let end = self.end;
        let is_quiet = self.is_quiet();
        self.at = (end + 1).min(self.text.len());
        let token = if self.may_seek_tag() { lexer::lex(self.text, at, end) } else { None };
        self.has_unquoted |= token.is_some_and(|token| token.is_unquoted_command());
        let takes_line = |token: Token| token.command.is_some() || token.kind == TokenKind::Result;
        let is_tag = token.is_some_and(takes_line) && self.spans.is_empty() && !is_quiet;
        // Markers count only where the line is no tag. A quiet line has nothing else.
        if !is_tag && self.markers(at) || is_quiet {
            return;
        }
        match token {
            Some(token) if !self.spans.is_empty() => self.count_tag(&token),
            Some(token) => {
                if !self.take(&token) {
                    // It was words.
                    self.markers(token.name_end);
                }
            }
            None => self.prose(at, end),
        }
    }

    /// Takes a token with its line; otherwise it is words.
    fn take(&mut self, token: &Token) -> bool {
        match token.kind {
            TokenKind::Open => return self.open(token),
            TokenKind::Close { by_word } => self.left_over(token, by_word),
            TokenKind::Lookalike { closes, if_closed } => {
                return !closes && self.lookalike(token, if_closed);
            }
            TokenKind::Result => self.result(token),
        }
        true
    }

    /// Reads the opening tag of a block, and finds where the block ends.
    fn open(&mut self, token: &Token) -> bool {
        let end = self.end;
        if self.is_doubtful(token) {
            let why = "it follows an end marker that nothing opened";
            match token.command().closing {
                Some(_) => self.end_unclear(token, why, false),
                None => self.looks_like_tag(token, why),
            }
            return true;
        }
        let command = token.command();
        if command.kind == Kind::Reply {
            return self.addressed(token, true);
        }
        let mut found = self.tag(token);
        if let Some(line) = super::pasted::sentence(self.text, token) {
            self.outbox(line);
            return true;
        }
        if !token.is_plain() && self.is_prose(&found) {
            let needs_more = command.attributes.iter().any(|known| known.required);
            if token.alone || found.tag.is_ok() && needs_more {
                self.looks_like_tag(
                    token,
                    "a command is alone on its line, with nothing around its tag",
                );
            }
            return false;
        }
        let body_at = (end + 1).min(self.text.len());
        if command.closing.is_none() {
            if found.tag.is_err() && self.is_cut(token) {
                return true;
            }
        } else if found.inline.is_none() {
            let Some(end) = self.end_of_body(&found, body_at) else { return true };
            if found.tag.is_err() {
                // It is refused, and what it contains is skipped.
                self.skip(body_at..end.closing.end);
            } else {
                // Text behind the tag is of the body, too.
                let body = token.name_end..end.closing.start;
                let stray = || reasoning::stray_end(self.text, body.clone(), "");
                let stray = found.word.is_none().then(stray).flatten();
                if let Some(stray) = &stray
                    && may_have_tag(&self.text[body], command)
                {
                    self.refuse_possible_draft(token, stray);
                    return true;
                }
                found.stray = stray;
                self.add_body(body_at..end.closing.end);
                self.at = end.closing.end;
            }
            found.end = Some(end);
        }
        self.push(token.line, token.command, ItemKind::Block(Box::new(found)));
        true
    }

    /// Whether a tag is right behind the end of a span that was not open: only a plain one behind that of reasoning
    /// is surely a command.
    fn is_doubtful(&self, token: &Token) -> bool {
        self.doubtful_from.is_some_and(|(from, sort)| {
            from == token.line && !(token.is_plain() && sort == Sort::Reasoning)
        })
    }

    /// Reads what is on the line of an opening tag.
    fn tag(&self, token: &Token) -> Found<'a> {
        let command = token.command();
        let rest = &self.text[token.name_end..self.end];
        let mut decoration = token.decoration;
        let tag = attributes::read(command, rest, &mut decoration);
        let after = tag.as_ref().map_or("", |tag| tag.after);
        let mut after = lexer::without_decoration(after, token.decoration);
        // A fence behind all of it, where the tag is alone or its block ends there.
        let is_whole = |before: &&str| match command.closing {
            Some(closing) => before.ends_with(closing),
            None => before.is_empty() && command.kind != Kind::Reply,
        };
        if let Some(before) = lexer::without_fence(after).filter(is_whole) {
            decoration.add(Decoration::FENCE);
            after = before;
        }
        let word = command.closing.and_then(|_| match &tag {
            Ok(tag) => command.value(&tag.values, "end").map(str::to_owned),
            // What such a body contains is no command either.
            Err(_) => attributes::token(rest),
        });
        let inline = command.closing.filter(|_| word.is_none()).and_then(|closing| match &tag {
            Ok(_) => inline_body(after, closing, token),
            // Nobody knows where such a body begins.
            Err(_) => (token.is_plain() && rest.trim_end().ends_with(closing)).then_some(""),
        });
        Found { token: *token, tag, decoration, after, inline, word, end: None, stray: None }
    }

    /// Whether a line that is no plain tag is none at all: words in brackets, a link, a label.
    fn is_prose(&mut self, found: &Found<'_>) -> bool {
        let (token, after) = (&found.token, found.after);
        let (command, rest) = (token.command(), &self.text[token.name_end..self.end]);
        let lower = rest.to_ascii_lowercase();
        // Its name is a common word.
        if command.kind == Kind::Search && !lower.contains("pattern") {
            return true;
        }
        let is_whole =
            found.tag.is_ok() || lexer::without_suffix(rest, token.decoration).ends_with(']');
        let Some(closing) = command.closing else {
            return !is_whole || found.has_text_behind();
        };
        let names_a_path = lower.match_indices("path").any(|(at, key)| {
            lower[at + key.len()..].trim_start().trim_start_matches('\\').starts_with('=')
        });
        // What follows may be its body, which is never executed.
        if names_a_path || found.inline.is_some() && found.tag.is_ok() {
            return false;
        }
        let mut is_closed = || {
            let next = self.next_without_word(token, self.next_line(token.at), false);
            next.is_some_and(|next| next.closes())
        };
        if !is_whole || !after.is_empty() {
            return !is_whole || after.starts_with(['(', ':', '[']) || !is_closed();
        }
        // An item of a list of what was done.
        let is_item =
            token.decoration.has(Decoration::CASE) && token.decoration.has(Decoration::ITEM);
        closing == "[/DONE]" && is_item && found.tag.is_ok() && !is_closed()
    }

    /// Makes steps of the items.
    fn emit(mut self) -> Blocks {
        let (mut escaped, mut all, mut ignored) = (0, 0, 0);
        let mut steps: Vec<Step> = Vec::new();
        let mut notes: Vec<Warning> = Vec::new();
        for item in std::mem::take(&mut self.items) {
            let note = match item.kind {
                ItemKind::Note(note) => note,
                ItemKind::More(count) => {
                    ignored += count;
                    continue;
                }
                ItemKind::Block(found) if self.is_mentioned(&found.token) => {
                    let why = "a command that deletes or moves is ignored in quotations and in lists of code spans";
                    self.as_words(&found.token, why)
                }
                ItemKind::Block(found) => {
                    all += 1;
                    escaped += usize::from(found.decoration.has(Decoration::ESCAPES));
                    let stray = found.stray.clone();
                    let step = self.step(*found);
                    let is_refused = matches!(step.asks, Asks::Invalid(_));
                    let has_steps = !steps.is_empty();
                    // The body of a block that is refused is no body, so nothing before that end counts.
                    let lost = stray.filter(|_| is_refused).map(|stray| self.unopened(stray));
                    if lost.is_some() {
                        steps.clear();
                    }
                    steps.push(step);
                    steps.extend(lost.filter(|_| has_steps));
                    continue;
                }
                ItemKind::Step(step) => {
                    steps.push(*step);
                    continue;
                }
            };
            steps.last_mut().map_or(&mut notes, |step| &mut step.warnings).push(note);
        }
        let told = steps.last_mut().map_or(&mut notes, |step| &mut step.warnings);
        if escaped * 2 > all {
            let text = "most tags of the reply arrived with escaped characters (\\_), so its bodies may contain some too; they were kept as they are";
            told.push(Warning::new(WarningKind::EscapedTags, text));
        }
        if ignored > 0 {
            let text = format!("and {ignored} more of this sort");
            told.push(Warning::new(WarningKind::More, text));
        }
        if let Some(first) = steps.first_mut() {
            first.warnings.append(&mut notes);
        }
        for step in &mut steps {
            let ends = matches!(step.asks, Asks::Operation(Operation::Done { if_ok: true, .. }));
            step.passes_over = self.missed_command && ends;
        }
        let (unclosed, answers) = (self.unclosed, self.answers);
        Blocks { steps, unclosed, bodies: self.bodies, notes, answers }
    }

    /// Refuses what is before the end of reasoning in a body that is refused.
    fn unopened(&mut self, stray: Range<usize>) -> Step {
        self.missed_command = true;
        self.add_body(0..stray.end);
        let (line, shown) = (self.number(stray.start), brief(&self.text[stray]));
        let text = format!(
            "Line {line}: `{shown}` may end thoughts whose beginning is missing, so nothing before it was carried out. Send again what was meant as a command"
        );
        Step::refused(line, Mistake::ThoughtsUnopened, text)
    }

    /// Whether a tag that takes something away may only be told of: as an item of a list in a code span,
    /// since so what was done is listed, too; or quoted among others that are not, as what somebody said.
    fn is_mentioned(&self, token: &Token) -> bool {
        let is_listed = || {
            let is_item = [Decoration::BULLET, Decoration::NUMBER];
            self.text[token.line..token.at].contains('`')
                && is_item.iter().any(|mark| token.decoration.has(*mark))
        };
        matches!(token.command().kind, Kind::Delete | Kind::Move)
            && (token.quote > 0 && self.has_unquoted || is_listed())
    }

    /// What a block asks for.
    fn step(&mut self, found: Found<'a>) -> Step {
        let has_text_behind = found.has_text_behind();
        let Found { token, tag, decoration, after, inline, word, end, .. } = found;
        let command = token.command();
        let number = self.number(token.line);
        let line = &self.text[token.line..self.line_end(token.at)];
        let malformed = |what: &Problem| Step::new(number, tag_fault(command, number, line, what));
        let Opening { values, warnings: more, .. } = match tag {
            Ok(tag) => tag,
            Err(what) => return malformed(&what),
        };
        let mut warnings = Vec::new();
        if !decoration.is_none() {
            let tag = canonical(command, &values);
            warnings.push(read_as(number, line, &tag, decoration));
        }
        warnings.extend(more);
        let Some(closing) = command.closing else {
            if has_text_behind {
                let shown = brief(after);
                // Perhaps a sentence that only begins with the tag.
                if matches!(command.kind, Kind::Delete | Kind::Move) {
                    let text =
                        format!("`{shown}` is behind the tag, which is to be alone on its line,");
                    return malformed(&Problem::new(Mistake::TextAfterTag, text));
                }
                let text = format!("`{shown}` after the tag on line {number} was ignored");
                warnings.push(Warning::new(WarningKind::TextAfterTag, text));
            }
            let body = String::new();
            let block =
                Block { command, number, tag: line, values, body, body_line: number, warnings };
            return block.step_in(self.workspace);
        };
        let first = inline.unwrap_or(after);
        if let Some(what) = with_uncertain_outcome(&token, closing, first) {
            return malformed(&Problem::new(Mistake::TextAfterTag, what));
        }
        let (mut lines, mut quote, mut is_glued) = ("", token.quote, false);
        if let Some(end) = end {
            let body_at = self.next_line(token.at);
            lines = &self.text[body_at..end.closing.start];
            quote = end.quote;
            is_glued = end.decoration.has(Decoration::GLUED);
            if !end.decoration.is_none() {
                let at = self.number(end.closing.start);
                let begin = self.line_begin(end.closing.start).max(body_at);
                let shown = &self.text[begin..end.closing.end];
                let meant = closing_tag(command, word.as_deref());
                warnings.push(read_as(at, shown, &meant, end.decoration));
            }
        }
        let (first, told) = lints::behind_tag(command.kind, first, lines, number);
        warnings.extend(told);
        let mut body = String::with_capacity(lines.len() + first.len() + 1);
        if !first.is_empty() {
            body.push_str(first);
            body.push('\n');
        }
        let lead = &self.text[token.line..token.at];
        let unquoted =
            (token.quote > 0).then(|| body::unquoted(lines, token.quote, lead)).flatten();
        if quote != token.quote || token.quote > 0 && unquoted.is_none() {
            let text = "the lines of the block are not all quoted (>) as its tag is, each with a blank behind or none,";
            return malformed(&Problem::new(Mistake::PartlyQuoted, text));
        }
        let lines = unquoted.as_deref().unwrap_or(lines);
        // Where the tag line ends in CRLF, so does the body: a property of the reply, not of it.
        if line.ends_with('\r') {
            body.push_str(&lines.replace("\r\n", "\n"));
        } else {
            body.push_str(lines);
        }
        if is_glued {
            body.push('\n');
        }
        let body_line = if first.is_empty() { number + 1 } else { number };
        let is_escaped = command.kind == Kind::Run && decoration.has(Decoration::ESCAPES);
        if let Some(what) = is_escaped.then(|| escapes::doubt(&body, body_line)).flatten() {
            return malformed(&what);
        }
        if command.kind == Kind::Create {
            warnings.extend(lints::indented(&body, lead, body_line));
        }
        Block { command, number, tag: line, values, body, body_line, warnings }
            .step_in(self.workspace)
    }

    /// A block that is refused, and with it all that follows.
    pub(super) fn end_reply(&mut self, token: &Token, mistake: Mistake, text: String) {
        let number = self.number(token.line);
        let step = refused(token.command(), number, mistake, text);
        self.end_with(step, token.line, token.command);
    }

    pub(super) fn end_with(
        &mut self,
        step: Step,
        origin: usize,
        command: Option<&'static Command>,
    ) {
        self.push(origin, command, ItemKind::Step(Box::new(Step { ends: true, ..step })));
        self.ended = true;
        // Reasoning that began before it may end in it.
        self.at = self.at.min(origin);
        self.begin = self.line_begin(self.at);
        self.end = self.line_end(self.at);
    }
}

/// The text between an opening tag and a closing one at the end of its line.
fn inline_body<'t>(after: &'t str, closing: &str, token: &Token) -> Option<&'t str> {
    if let Some(body) = after.strip_suffix(closing) {
        return Some(body);
    }
    if token.is_plain() {
        return None;
    }
    let at = after.rfind("[/").or_else(|| after.rfind("[\\/"))?;
    let name: String = after[at..].chars().filter(|c| *c != '\\').collect();
    let body = &after[..at];
    name.eq_ignore_ascii_case(closing).then(|| body.strip_suffix('\\').unwrap_or(body))
}

/// What a line was read as.
fn read_as(number: usize, line: &str, tag: &str, decoration: Decoration) -> Warning {
    let line = brief(line.trim());
    let text = format!("line {number} `{line}` was read as {tag} ({})", decoration.phrases());
    Warning::new(WarningKind::TagRepaired, text)
}

/// An opening tag as it should have been written.
fn canonical(command: &Command, values: &[Option<String>]) -> String {
    let mut tag = format!("[{}", command.name);
    for (attribute, value) in command.attributes.iter().zip(values) {
        if let Some(value) = value {
            let quote = if value.contains('"') { '\'' } else { '"' };
            tag.push_str(&format!(" {}={quote}{}{quote}", attribute.name, brief(value)));
        }
    }
    tag + "]"
}

/// Why nobody can say which of the tags on its line is meant, if nobody can: a phrase.
fn with_uncertain_outcome(token: &Token, closing: &str, first: &str) -> Option<String> {
    let named = first.strip_prefix('[').and_then(lexer::name).map(|name| name.command);
    let lexed = || lexer::lex(first, 0, first.len()).and_then(|second| second.command);
    if first.contains(closing) {
        Some(format!("the text after the tag contains {closing}"))
    } else if named.or_else(lexed) == token.command || first.starts_with("[/") {
        Some(format!("the text after the tag begins with [{}", token.command().name))
    } else {
        None
    }
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
            assert!(invalid.reason.contains("`: the text after the tag contains [/"));
            assert!(invalid.reason.contains("Correct form: ["), "{}", invalid.reason);
        }
    }
}
