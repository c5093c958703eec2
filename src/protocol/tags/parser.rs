//! Parses a reply into steps. Never fails: every text gives a list of steps, in time linear in its length.
//!
//! The first pass reads the lines outside bodies and collects items in order. It drops earlier items when it finds an
//! end of reasoning that nothing opened, or a stray closing tag. If the end of a block is unknown, nothing after the
//! block becomes an item. The second pass turns each item into a step. Steps are final.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use memchr::{memchr_iter, memrchr};

use super::attributes::{self, OpeningTag, brief};
use super::block::{TagBlock, refused, tag_fault};
use super::body::{self, RareText};
use super::catalogue::TagCommand;
use super::ends::{BlockEnd, TagIndex, closing_tag, may_have_tag};
use super::lexer::{self, Decoration, Token, TokenKind};
use super::lints;
use super::reasoning::{self, MarkedLine, MarkerKind};
use super::signs::Signs;
use super::spans::OpenSpan;
use crate::protocol::mistake::Problem;
use crate::protocol::{
    Dialect, Kind, Mistake, Operation, Reply, ReplyAddress, Step, StepContent, Warning,
    WarningKind, returns,
};

/// The error for a reply that contains no block.
pub(in crate::protocol) const NO_COMMAND: &str = "The reply contains no command, so nothing was done. A command begins a line with its tag; the shortest complete reply is three lines: [DONE], a summary, [/DONE]";

/// The most notes about text between blocks that are attached to one step. Further notes are only counted.
const NOTES: usize = 8;

/// The blocks of a text.
#[derive(Debug, Clone)]
pub(in crate::protocol) struct Blocks {
    /// The steps in order. If a path was rejected, `asked` contains the path as it was sent.
    pub(in crate::protocol) steps: Vec<Step>,
    /// Whether the text ends inside a block.
    pub(in crate::protocol) unclosed: bool,
    /// The byte ranges of bodies (with their closing tags), of reasoning, and of elements.
    pub(in crate::protocol) bodies: Vec<Range<usize>>,
    /// Notes that could not be attached to a step.
    pub(in crate::protocol) notes: Vec<Warning>,
    /// The outbox that the reply claims to answer.
    pub(in crate::protocol) answers: Option<ReplyAddress>,
}

/// Reads a reply (tag protocol, "Inbox Format").
///
/// # Examples
/// ```
/// use deaddrop::protocol::{StepContent, Operation, ShellCommand, tags};
/// let reply = tags::parse("Let me look.\n[RUN_COMMAND]\nls -l\n[/RUN_COMMAND]\n");
/// assert_eq!(reply.steps.len(), 1);
/// assert_eq!(reply.steps[0].asks, StepContent::Operation(Operation::Run(ShellCommand::new("ls -l"))));
/// ```
pub fn parse(text: &str) -> Reply {
    let Blocks { mut steps, unclosed, notes, answers, .. } = blocks(text, None);
    steps.iter_mut().for_each(|step| step.asked = None);
    let dialect = (!steps.is_empty()).then_some(Dialect::Tags);
    if steps.is_empty() {
        let step = Step::refused(1, Mistake::NoCommand, NO_COMMAND);
        steps.push(Step { warnings: notes, ..step });
    }
    Reply { steps, unclosed, dialect, answers }
}

/// Finds all blocks. If the real path of the workspace is given, absolute paths in the workspace are accepted.
pub(in crate::protocol) fn blocks(text: &str, workspace: Option<&str>) -> Blocks {
    let lines = returns::with_line_feeds(text);
    let had_returns_only = matches!(lines, Cow::Owned(_));
    let mut parser = Parser {
        text: &lines,
        workspace,
        last_line_number: (0, 1),
        signs: Signs::of(&lines),
        rare: RareText::of(&lines),
        ..Parser::default()
    };
    parser.read();
    if had_returns_only && !parser.items.is_empty() {
        let text =
            "the lines of the reply end in carriage returns (U+000D) alone, and were read as lines";
        parser.note(lines.len(), Warning::new(WarningKind::TagRepaired, text));
    }
    parser.into_steps()
}

/// A block, a refusal or a note, found outside bodies.
pub(super) struct ReplyItem<'a> {
    /// The offset of the beginning of its line.
    pub(super) origin: usize,
    /// The command of the block, even if the block is refused.
    pub(super) command: Option<&'static TagCommand>,
    pub(super) kind: ItemKind<'a>,
}

pub(super) enum ItemKind<'a> {
    Block(Box<RawBlock<'a>>),
    /// A refused block.
    Step(Box<Step>),
    Note(Warning),
    /// The number of notes beyond the limit.
    More(usize),
}

impl RawBlock<'_> {
    /// Whether a tag without a body is followed by other text on its line.
    fn has_text_behind(&self) -> bool {
        let own = || format!("[/{}]", self.token.command().name);
        !self.after.is_empty() && inline_body(self.after, &own(), &self.token) != Some("")
    }
}

impl ReplyItem<'_> {
    pub(super) fn is_step(&self) -> bool {
        !matches!(self.kind, ItemKind::Note(_) | ItemKind::More(_))
    }

    /// Whether the item is a command, and not just the refusal of reasoning before it.
    pub(super) fn is_command(&self) -> bool {
        match &self.kind {
            ItemKind::Step(step) => match &step.asks {
                StepContent::Invalid(invalid) => invalid.mistake != Mistake::ThoughtsUnopened,
                StepContent::Operation(_) => true,
            },
            ItemKind::Block(_) => true,
            ItemKind::Note(_) | ItemKind::More(_) => false,
        }
    }

    /// Whether skipping the item loses work. Skipping a summary or message does not.
    pub(super) fn may_be_missed(&self) -> bool {
        let kind = self.command.map(|command| command.kind);
        self.is_step() && !matches!(kind, Some(Kind::Done | Kind::Message))
    }
}

/// A block whose opening tag was read and whose end is known.
pub(super) struct RawBlock<'a> {
    pub(super) token: Token,
    pub(super) tag: Result<OpeningTag<'a>, Problem>,
    /// The repairs that the tag needed.
    decoration: Decoration,
    /// The text after the tag on its line.
    after: &'a str,
    /// The body, if it is on the same line as the tag.
    inline: Option<&'a str>,
    /// The end word, which the closing tag must repeat.
    pub(super) word: Option<String>,
    /// The end of the body, if the body begins on the next line.
    end: Option<BlockEnd>,
    /// An end marker of reasoning in the body, if nothing in the body opened that reasoning.
    stray: Option<Range<usize>>,
}

#[derive(Default)]
pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    /// The real path of the workspace, if known.
    workspace: Option<&'a str>,
    /// The offset at which reading continues: the start of a line, or just after the end of reasoning.
    pub(super) at: usize,
    /// The bounds of the current line.
    pub(super) begin: usize,
    pub(super) end: usize,
    /// The markers of the current line, once they have been read.
    pub(super) line: Option<MarkedLine<'a>>,
    /// The position of the last stray end of reasoning that was found in a draft.
    pub(super) last_stray_end: usize,
    tags_on_line: u8,
    /// The offset after an end marker that nothing opened, and that marker's kind.
    pub(super) after_unopened_end: Option<(usize, MarkerKind)>,
    /// Up to this offset, only markers of reasoning are read.
    markers_only_to: usize,
    /// The end of the last block that was never closed.
    pub(super) unclosed_block_to: usize,
    /// Whether the last item ends the reply, so that nothing after it is read.
    pub(super) is_over: bool,
    pub(super) items: Vec<ReplyItem<'a>>,
    /// The commands of all items so far.
    pub(super) seen_kinds: BTreeSet<Kind>,
    /// The open spans, and the offset of the last closing marker in the text for each key.
    pub(super) spans: Vec<OpenSpan>,
    pub(super) last_ends: Option<HashMap<String, usize>>,
    /// Bodies and closed spans, in order and not overlapping.
    bodies: Vec<Range<usize>>,
    /// By command and whether only plain tags count: where the last search began, and the tag that it found.
    pub(super) next_tag_cache: BTreeMap<(Kind, bool), (usize, Option<Token>)>,
    pub(super) index: Option<TagIndex>,
    /// The last offset whose line number was requested, and that line number.
    last_line_number: (usize, usize),
    /// Whether a span contains the end of other reasoning or of a block.
    pub(super) contains_other_end: bool,
    pub(super) unclosed: bool,
    pub(super) answers: Option<ReplyAddress>,
    /// Whether a possible command was reported, not executed. Then `[DONE if="ok"]` does not end the session.
    pub(super) missed_command: bool,
    /// Whether there may be an operations message outside bodies and spans.
    pub(super) has_message: bool,
    /// Whether the reply contains a command that is not quoted.
    has_unquoted: bool,
    pub(super) signs: Signs,
    rare: RareText,
}

impl<'a> Parser<'a> {
    fn read(&mut self) {
        while self.at < self.text.len() {
            self.read_line();
        }
        self.finish_spans();
        let is_end =
            |item: &&ReplyItem<'_>| matches!(&item.kind, ItemKind::Step(step) if step.ends);
        if let Some(item) = self.items.iter().find(is_end) {
            self.add_body(self.next_line(item.origin)..self.text.len());
        }
    }

    /// The number (from 1) of the line that contains an offset.
    pub(super) fn line_number_at(&mut self, at: usize) -> usize {
        let (from, line) = self.last_line_number;
        let lines = |range: Range<usize>| memchr_iter(b'\n', &self.text.as_bytes()[range]).count();
        let line =
            if at >= from { line + lines(from..at) } else { line.saturating_sub(lines(at..from)) };
        self.last_line_number = (at, line);
        line
    }

    /// The start of the line that contains an offset.
    pub(super) fn line_begin(&self, at: usize) -> usize {
        memrchr(b'\n', &self.text.as_bytes()[..at]).map_or(0, |n| n + 1)
    }

    /// The end of the line that contains an offset, before its newline.
    pub(super) fn line_end(&self, at: usize) -> usize {
        lexer::line_end(self.text, at)
    }

    /// The end of the line that contains an offset, after its newline.
    pub(super) fn next_line(&self, at: usize) -> usize {
        (self.line_end(at) + 1).min(self.text.len())
    }

    /// The line that contains an offset, trimmed and shortened for a message.
    pub(super) fn quoted_line(&self, at: usize) -> String {
        brief(self.text[self.line_begin(at)..self.line_end(at)].trim())
    }

    pub(super) fn push(
        &mut self,
        origin: usize,
        command: Option<&'static TagCommand>,
        kind: ItemKind<'a>,
    ) {
        self.seen_kinds.extend(command.map(|command| command.kind));
        self.items.push(ReplyItem { origin, command, kind });
    }

    pub(super) fn note(&mut self, origin: usize, note: Warning) {
        if let Some(ReplyItem { kind: ItemKind::More(count), .. }) = self.items.last_mut() {
            *count += 1;
            return;
        }
        let last = self.items.iter().rev().take(NOTES).filter(|item| !item.is_step()).count();
        let kind = if last == NOTES { ItemKind::More(1) } else { ItemKind::Note(note) };
        self.push(origin, None, kind);
    }

    /// Records a body or a span.
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

    /// Skips the body of a block that is refused. Markers of reasoning in this text are still read, because it may not
    /// have been a body.
    pub(super) fn skip(&mut self, range: Range<usize>) {
        self.add_body(range.clone());
        self.markers_only_to = self.markers_only_to.max(range.end);
        self.at = range.start;
    }

    /// Whether only markers of reasoning are read on the current line.
    pub(super) fn only_markers_count(&self) -> bool {
        self.is_over || self.begin < self.markers_only_to
    }

    /// Reports a line that looks like a tag but was read as prose.
    pub(super) fn report_lookalike(&mut self, token: &Token, why: &str) {
        let note = self.lookalike_warning(token, why);
        self.note(token.line, note);
    }

    fn lookalike_warning(&mut self, token: &Token, why: &str) -> Warning {
        self.missed_command |= token.may_be_missed();
        let (number, shown) = (self.line_number_at(token.line), self.quoted_line(token.at));
        let text = format!("line {number} `{shown}` was read as words: {why}");
        Warning::new(WarningKind::LooksLikeTag, text)
    }

    /// Limits how often one line is lexed, because each attempt may read the rest of the line.
    pub(super) fn may_lex_again(&mut self) -> bool {
        const MOST: u8 = 8;
        self.tags_on_line = self.tags_on_line.saturating_add(1);
        self.tags_on_line <= MOST
    }

    /// Reads a line, or the rest of a line after an end of reasoning.
    fn read_line(&mut self) {
        let at = self.at;
        if at == 0 || self.text.as_bytes()[at - 1] == b'\n' {
            (self.begin, self.tags_on_line) = (at, 0);
        }
        let is_whole = at == self.begin;
        // The rest of a line ends where the line ends.
        self.end = if is_whole || at > self.end { self.line_end(at) } else { self.end };
        let end = self.end;
        let only_markers_count = self.only_markers_count();
        self.at = (end + 1).min(self.text.len());
        let token = if self.may_lex_again() { lexer::lex(self.text, at, end) } else { None };
        self.has_unquoted |= token.is_some_and(|token| token.is_unquoted_command());
        let takes_line = |token: Token| token.command.is_some() || token.kind == TokenKind::Result;
        let is_tag = token.is_some_and(takes_line) && self.spans.is_empty() && !only_markers_count;
        // A line with a tag has no markers.
        if !is_tag && self.markers(at) || only_markers_count {
            return;
        }
        match token {
            Some(token) if !self.spans.is_empty() => self.count_tag(&token),
            Some(token) => {
                if !self.handle_token(&token) {
                    // The line was prose after all.
                    self.markers(token.name_end);
                }
            }
            None => self.prose(at, end),
        }
    }

    /// Handles a token and its line. Returns false if the line is prose.
    fn handle_token(&mut self, token: &Token) -> bool {
        match token.kind {
            TokenKind::Open => return self.open_block(token),
            TokenKind::Close { by_word } => self.stray_closing_tag(token, by_word),
            TokenKind::Lookalike { closes, if_closed } => {
                return !closes && self.lookalike(token, if_closed);
            }
            TokenKind::Result => self.result(token),
        }
        true
    }

    /// Reads the opening tag of a block, and finds the end of the block. Returns false if the line is prose.
    fn open_block(&mut self, token: &Token) -> bool {
        let end = self.end;
        if self.is_doubtful(token) {
            let why = "it follows an end marker that nothing opened";
            match token.command().closing {
                Some(_) => self.refuse_unclear_end(token, why),
                None => self.report_lookalike(token, why),
            }
            return true;
        }
        let command = token.command();
        if command.kind == Kind::Reply {
            return self.read_reply_line(token, true);
        }
        let mut found = self.read_tag(token);
        if let Some(line) = super::pasted::prompt_sentence(self.text, token) {
            self.refuse_pasted_outbox(line);
            return true;
        }
        if !token.is_plain() && self.is_prose(&found) {
            let needs_more = command.attributes.iter().any(|known| known.required);
            if token.alone || found.tag.is_ok() && needs_more {
                self.report_lookalike(
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
                // The block is refused, so skip its body.
                self.skip(body_at..end.closing.end);
            } else {
                // Text after the tag belongs to the body, too.
                let body = token.name_end..end.closing.start;
                let signs = self.signs.reasoning(body.clone());
                let stray = || reasoning::find_stray_end(self.text, body.clone(), signs, "");
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

    /// Whether a tag directly follows an end marker that nothing opened. Such a tag is a command only if it is plain
    /// and the marker ends reasoning.
    fn is_doubtful(&self, token: &Token) -> bool {
        self.after_unopened_end.is_some_and(|(from, sort)| {
            from == token.line && !(token.is_plain() && sort == MarkerKind::Reasoning)
        })
    }

    /// Reads the line of an opening tag.
    fn read_tag(&self, token: &Token) -> RawBlock<'a> {
        let command = token.command();
        let rest = &self.text[token.name_end..self.end];
        let mut decoration = token.decoration;
        let tag = attributes::read(command, rest, &mut decoration);
        let after = tag.as_ref().map_or("", |tag| tag.after);
        let mut after = lexer::without_decoration(after, token.decoration);
        // A fence may follow a tag without a body, or a block that ends on this line.
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
            // An unreadable tag may have an end word, too. Commands in its body must not count.
            Err(_) => attributes::end_word(rest),
        });
        let inline = command.closing.filter(|_| word.is_none()).and_then(|closing| match &tag {
            Ok(_) => inline_body(after, closing, token),
            // It is unknown where the body of an unreadable tag begins.
            Err(_) => (token.is_plain() && rest.trim_end().ends_with(closing)).then_some(""),
        });
        RawBlock { token: *token, tag, decoration, after, inline, word, end: None, stray: None }
    }

    /// Whether a decorated tag is really prose: words in brackets, a link, or a label.
    fn is_prose(&mut self, found: &RawBlock<'_>) -> bool {
        let (token, after) = (&found.token, found.after);
        let (command, rest) = (token.command(), &self.text[token.name_end..self.end]);
        let lower = rest.to_ascii_lowercase();
        // SEARCH is a common word.
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
        // The lines below may be the block's body, and must not be executed as commands.
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
        // This may be an item in a list of finished tasks.
        let is_item =
            token.decoration.has(Decoration::CASE) && token.decoration.has(Decoration::ITEM);
        closing == "[/DONE]" && is_item && found.tag.is_ok() && !is_closed()
    }

    /// Turns the items into steps.
    fn into_steps(mut self) -> Blocks {
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
                    self.lookalike_warning(&found.token, why)
                }
                ItemKind::Block(found) => {
                    all += 1;
                    escaped += usize::from(found.decoration.has(Decoration::ESCAPES));
                    let stray = found.stray.clone();
                    let step = self.step_of(*found);
                    let is_refused = matches!(step.asks, StepContent::Invalid(_));
                    let has_steps = !steps.is_empty();
                    // A refused block has no body, so the end of reasoning counts after all.
                    let lost = stray
                        .filter(|_| is_refused)
                        .map(|stray| self.refuse_before_stray_end(stray));
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
            let ends =
                matches!(step.asks, StepContent::Operation(Operation::Done { if_ok: true, .. }));
            step.passes_over = self.missed_command && ends;
        }
        let (unclosed, answers) = (self.unclosed, self.answers);
        Blocks { steps, unclosed, bodies: self.bodies, notes, answers }
    }

    /// Refuses everything before an end of reasoning that is in the body of a refused block.
    fn refuse_before_stray_end(&mut self, stray: Range<usize>) -> Step {
        self.missed_command = true;
        self.add_body(0..stray.end);
        let (line, shown) = (self.line_number_at(stray.start), brief(&self.text[stray]));
        let text = format!(
            "Line {line}: `{shown}` may end thoughts whose beginning is missing, so nothing before it was carried out. Send again what was meant as a command"
        );
        Step::refused(line, Mistake::ThoughtsUnopened, text)
    }

    /// Whether a tag that deletes or moves is possibly only mentioned: in a code span in a list item, which is also a
    /// usual form for listing finished work, or in a quotation while other commands are not quoted.
    fn is_mentioned(&self, token: &Token) -> bool {
        let is_listed = || {
            let is_item = [Decoration::BULLET, Decoration::NUMBER];
            self.text[token.line..token.at].contains('`')
                && is_item.iter().any(|mark| token.decoration.has(*mark))
        };
        matches!(token.command().kind, Kind::Delete | Kind::Move)
            && (token.quote > 0 && self.has_unquoted || is_listed())
    }

    /// The step of a block.
    fn step_of(&mut self, found: RawBlock<'a>) -> Step {
        let has_text_behind = found.has_text_behind();
        let RawBlock { token, tag, decoration, after, inline, word, end, .. } = found;
        let command = token.command();
        let number = self.line_number_at(token.line);
        let line = &self.text[token.line..self.line_end(token.at)];
        let malformed = |what: &Problem| Step::new(number, tag_fault(command, number, line, what));
        let OpeningTag { values, warnings: more, .. } = match tag {
            Ok(tag) => tag,
            Err(what) => return malformed(&what),
        };
        let mut warnings = Vec::new();
        if !decoration.is_none() {
            let tag = canonical_tag(command, &values);
            warnings.push(repair_warning(number, line, &tag));
        }
        warnings.extend(more);
        let Some(closing) = command.closing else {
            if has_text_behind {
                let shown = brief(after);
                // The line may be a sentence that begins with the tag.
                if matches!(command.kind, Kind::Delete | Kind::Move) {
                    let text =
                        format!("`{shown}` is behind the tag, which is to be alone on its line,");
                    return malformed(&Problem::new(Mistake::TextAfterTag, text));
                }
                let text = format!("`{shown}` after the tag on line {number} was ignored");
                warnings.push(Warning::new(WarningKind::TextAfterTag, text));
            }
            let (body, body_line, rare) = (String::new(), number, RareText::default());
            return TagBlock {
                command,
                number,
                tag: line,
                values,
                body,
                body_line,
                rare,
                warnings,
            }
            .step_in(self.workspace);
        };
        let first = inline.unwrap_or(after);
        if let Some(what) = ambiguity(&token, closing, first) {
            return malformed(&Problem::new(Mistake::TextAfterTag, what));
        }
        let (mut lines, mut quote, mut is_glued) = ("", token.quote, false);
        let mut rare = self.rare;
        if let Some(end) = end {
            let body_at = self.next_line(token.at);
            lines = &self.text[body_at..end.closing.start];
            rare.has_tag = !self.signs.tags(body_at..end.closing.start).is_empty();
            quote = end.quote;
            is_glued = end.decoration.has(Decoration::GLUED);
            if !end.decoration.is_none() {
                let at = self.line_number_at(end.closing.start);
                let begin = self.line_begin(end.closing.start).max(body_at);
                let shown = &self.text[begin..end.closing.end];
                let meant = closing_tag(command, word.as_deref());
                warnings.push(repair_warning(at, shown, &meant));
            }
        }
        let (first, told) = lints::text_after_tag(command.kind, first, lines, number);
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
        // If the tag line ends in CRLF, so does the whole reply, and the model did not choose the body's line ends.
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
        if let Some(what) = is_escaped.then(|| body::escapes(&body, body_line)).flatten() {
            return malformed(&what);
        }
        if command.kind == Kind::Create {
            warnings.extend(lints::indented(&body, lead, body_line));
        }
        rare.has_tag |= !first.is_empty();
        // A mark may follow the tag or a quotation sign instead of a line feed.
        rare.has_marks |= token.quote > 0 || !first.is_empty();
        TagBlock { command, number, tag: line, values, body, body_line, rare, warnings }
            .step_in(self.workspace)
    }

    /// Refuses a block. Nothing after it is carried out.
    pub(super) fn end_reply(&mut self, token: &Token, mistake: Mistake, text: String) {
        let number = self.line_number_at(token.line);
        let step = refused(token.command(), number, mistake, text);
        self.end_reply_with(step, token.line, token.command);
    }

    pub(super) fn end_reply_with(
        &mut self,
        step: Step,
        origin: usize,
        command: Option<&'static TagCommand>,
    ) {
        self.push(origin, command, ItemKind::Step(Box::new(Step { ends: true, ..step })));
        self.is_over = true;
        // Reasoning that began before this place may end after it.
        self.at = self.at.min(origin);
        self.begin = self.line_begin(self.at);
        self.end = self.line_end(self.at);
    }
}

/// The text between an opening tag and a closing tag at the end of the same line.
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

/// The warning that a line was read as this tag.
fn repair_warning(number: usize, line: &str, tag: &str) -> Warning {
    let text = format!("line {number} `{}` was read as {tag}", brief(line.trim()));
    Warning::new(WarningKind::TagRepaired, text)
}

/// An opening tag in its correct form.
fn canonical_tag(command: &TagCommand, values: &[Option<String>]) -> String {
    let mut tag = format!("[{}", command.name);
    for (attribute, value) in command.attributes.iter().zip(values) {
        if let Some(value) = value {
            let quote = if value.contains('"') { '\'' } else { '"' };
            tag.push_str(&format!(" {}={quote}{}{quote}", attribute.name, brief(value)));
        }
    }
    tag + "]"
}

/// A phrase that explains why it is unclear which of the tags on the line counts. None if it is clear.
fn ambiguity(token: &Token, closing: &str, first: &str) -> Option<String> {
    let named = first.strip_prefix('[').and_then(lexer::read_name).map(|name| name.command);
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
    use crate::protocol::{StepContent, tags::parse};

    #[test]
    fn a_text_on_the_tag_line_cannot_hold_its_closing_tag() {
        for (text, steps) in [
            ("[MESSAGE][/MESSAGE][/MESSAGE]\n[DONE]x[/DONE]\n", 2),
            ("[DONE] [/DONE] x [/DONE]\n[MESSAGE]y[/MESSAGE]", 2),
            ("[MESSAGE][/MESSAGE] x\ny\n[/MESSAGE]\n[READ_FILE path=\"a\"]\n", 2),
        ] {
            let reply = parse(text);
            assert_eq!(reply.steps.len(), steps, "{text}");
            assert!(matches!(reply.steps[1].asks, StepContent::Operation(_)), "{text}");
            let StepContent::Invalid(invalid) = &reply.steps[0].asks else { panic!("{text}") };
            assert!(invalid.reason.contains("`: the text after the tag contains [/"));
            assert!(invalid.reason.contains("Correct form: ["), "{}", invalid.reason);
        }
    }
}
