//! Spans whose commands are never executed: reasoning, elements whose tags are alone on their lines, files that
//! are shown as an outbox shows them, and pairs of SEARCH and REPLACE outside a block.
//!
//! They nest. When one ends, the items since its beginning are dropped and reported. What never ends was
//! words, except for reasoning, after whose beginning nothing is read.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::Range;

use memchr::memrchr;

use super::attributes::brief;
use super::lexer::{self, Token, TokenKind};
use super::pairs;
use super::parser::{Item, ItemKind, Parser};
use super::reasoning::{self, Line, Marker, Sort, Strength};
use super::recovery::{is_command, is_of_outbox};
use crate::protocol::{Mistake, Step, Warning, WarningSort};

/// The spans of a text as far as it was read.
#[derive(Default)]
pub(super) struct Spans {
    open: Vec<Open>,
    /// How many of these have not ended.
    live: usize,
    /// Where those of each key begin that are open, or were.
    keys: HashMap<String, Vec<usize>>,
    /// Bodies and spans that have ended, in order, none in another.
    pub(super) closed: Vec<Range<usize>>,
    /// Where what never ends begins, once that is known.
    words: HashSet<usize>,
    /// How often the text was read again from there on.
    again: u8,
    /// Up to where a body goes that may be cut by the end of an element.
    pub(super) body: usize,
    /// What began in that body and has not ended there.
    inner: HashMap<String, usize>,
    /// Where the first begins that is reasoning for certain.
    certain: Option<usize>,
}

/// The beginning of a span.
#[derive(Default)]
struct Open {
    key: String,
    line: usize,
    at: usize,
    end: usize,
    sort: Sort,
    /// Whether it is reasoning even if it never ends.
    is_certain: bool,
    /// Whether it ended within reasoning.
    is_over: bool,
    /// Whether it ended before one that began in it.
    is_closed: bool,
}

impl Spans {
    pub(super) fn is_empty(&self) -> bool {
        self.live == 0
    }

    pub(super) fn add(&mut self, span: Range<usize>) {
        let mut end = span.end;
        while let Some(last) = self.closed.pop_if(|last| last.start >= span.start) {
            end = end.max(last.end);
        }
        let start = self.closed.last().map_or(span.start, |last| last.end.max(span.start));
        if start < end {
            self.closed.push(start..end);
        }
    }

    fn begin(&mut self, open: Open) {
        if open.is_certain {
            self.certain = self.certain.or(Some(open.at));
        }
        self.keys.entry(open.key.clone()).or_default().push(open.at);
        self.live += 1;
        self.open.push(open);
    }

    /// Whether what is certain is reasoning whose end says so by itself.
    fn is_in_reasoning(&self) -> bool {
        let at = |at| self.open.binary_search_by_key(&at, |open| open.at).ok();
        self.certain.and_then(at).is_some_and(|n| self.open[n].sort == Sort::Reasoning)
    }

    /// Whether what ends began in the same body.
    fn ends_inner(&mut self, key: &str) -> bool {
        let Some(count) = self.inner.get_mut(key).filter(|count| **count > 0) else { return false };
        *count -= 1;
        true
    }

    /// Which of the open ones has that key, the last or the first.
    fn find(&mut self, key: &str, first: bool) -> Option<usize> {
        let all = self.keys.get_mut(key)?;
        let which = |at: &usize| self.open.binary_search_by_key(at, |open| open.at).ok();
        let is_of_key = |n: &usize| self.open[*n].key == key;
        while let Some(last) = all.last() {
            if let Some(n) = which(last).filter(is_of_key) {
                // Those before it were begun earlier, and none of them has ended.
                return if first {
                    self.open.iter().position(|open| open.key == key)
                } else {
                    Some(n)
                };
            }
            all.pop();
        }
        None
    }
}

impl Parser<'_> {
    /// Looks at the markers of a line, or of the rest of one, up to the tag that takes the line; whether one was
    /// met, so that the line is no other. What follows one that ends something is read as a line.
    pub(super) fn markers(&mut self, mut line: Line<'_>, tag: Option<usize>) -> bool {
        let (end, mut at, mut begins) = (line.end, line.from, false);
        while let Some(marker) = line.marker(at).filter(|next| tag.is_none_or(|tag| next.at < tag))
        {
            at = marker.next().min(end);
            if !marker.is_end {
                begins |= self.begin_span(&line, marker);
                continue;
            }
            let had_one = self.spans.find(&marker.key, false).is_some();
            if let Some((strength, behind)) = line.closes(&marker)
                && self.end_span(&marker, strength, behind)
            {
                if !had_one {
                    self.plain_from = behind;
                }
                self.go_to(if behind < end { behind } else { (end + 1).max(behind) });
                return true;
            }
            if marker.ends_line() {
                let behind = marker.end.min(end);
                (line.from, line.lead) = (behind, lexer::lead(&self.text[behind..end]));
                if marker.is_of_its_own()
                    && self.may_seek_tag()
                    && (lexer::lex(self.text, behind, end).is_some()
                        || is_of_outbox(&self.text[behind..end]))
                {
                    self.plain_from = behind;
                    self.go_to(behind);
                    return true;
                }
            }
        }
        begins
    }

    /// Reads on from an offset.
    pub(super) fn go_to(&mut self, at: usize) {
        self.at = at.min(self.text.len());
        if !(self.begin..=self.end).contains(&self.at) {
            self.begin = memrchr(b'\n', &self.text.as_bytes()[..self.at]).map_or(0, |n| n + 1);
            self.end = 0;
        }
    }

    /// Whether a line begins reasoning.
    pub(super) fn begins_reasoning(&self, at: usize, end: usize) -> bool {
        let line = Line::new(self.text, at, end);
        let marker =
            line.marker(at).filter(|marker| !marker.is_end && marker.sort != Sort::Element);
        marker.is_some_and(|marker| line.opens(&marker) == Some(true))
    }

    fn begin_span(&mut self, line: &Line<'_>, marker: Marker) -> bool {
        let Marker { key, at, end, sort, .. } = marker;
        let is_word = self.spans.words.contains(&at);
        let marker = Marker { key, is_end: false, at, end, sort };
        let Some(is_plain) = (!is_word).then(|| line.opens(&marker)).flatten() else {
            return false;
        };
        if at < self.spans.body {
            *self.spans.inner.entry(marker.key).or_default() += 1;
            return false;
        }
        let is_certain = is_plain && sort != Sort::Element;
        let begin = if line.lead.as_ref().is_some_and(|lead| line.from + lead.length == at) {
            line.from
        } else {
            at
        };
        let Marker { key, .. } = marker;
        self.spans.begin(Open {
            key,
            line: begin,
            at,
            end,
            sort,
            is_certain,
            is_over: false,
            is_closed: false,
        });
        true
    }

    /// Ends the span that a marker closes, if it closes one.
    fn end_span(&mut self, marker: &Marker, strength: Strength, end: usize) -> bool {
        let is_in_body = marker.at < self.spans.body;
        if is_in_body && self.spans.ends_inner(&marker.key) {
            return false;
        }
        let Some(n) = self.spans.find(&marker.key, marker.ends_all()) else {
            // In other reasoning it is words, unless that never ends; in a comment it is not.
            let is_certain = self.spans.is_in_reasoning() && !self.ended;
            let is_lost = strength == Strength::Alone && !is_certain;
            if is_lost {
                self.lost(marker, end);
            }
            return is_lost;
        };
        // In a body that is drafted there it is text.
        (!is_in_body || marker.sort == Sort::Element) && self.close(n, end)
    }

    /// The end of reasoning in a text that is not read, whose beginning is not in it.
    pub(super) fn stray_end(&self, range: Range<usize>) -> Option<Marker> {
        let mut open: HashMap<String, usize> = HashMap::new();
        let mut at = range.start;
        while at < range.end {
            let end = self.line_end(at).min(range.end);
            let line = Line::new(self.text, at, end);
            let mut from = at;
            while let Some(marker) = line.marker(from) {
                from = marker.next().min(end);
                if !marker.is_end {
                    if line.opens(&marker).is_some() {
                        *open.entry(marker.key).or_default() += 1;
                    }
                    continue;
                }
                let Some((strength, _)) = line.closes(&marker) else { continue };
                match open.get_mut(&marker.key).filter(|count| **count > 0) {
                    Some(count) => *count -= 1,
                    None if strength == Strength::Alone => return Some(marker),
                    None => {}
                }
            }
            at = end + 1;
        }
        None
    }

    /// Refuses all if a body may be a draft in reasoning, which ends in it, and the block one that it was given
    /// up for: then its closing tag is that of another block.
    pub(super) fn is_draft(&mut self, token: &Token, body: Range<usize>, stray: &Marker) -> bool {
        if !may_open(token.command().name, &self.text[body]) {
            return false;
        }
        let (line, shown) = (self.number(stray.at), brief(&self.text[stray.at..stray.end]));
        let number = self.number(token.line);
        self.held |= self.items.iter().any(Item::may_be_missed);
        self.items.clear();
        self.spans.add(0..stray.end);
        let told = format!(
            "Line {line}: `{shown}` ends thoughts whose beginning is missing, or is in the body of the block on line {number}, so nothing before or after it was carried out. Send again what was meant as a command, without thoughts"
        );
        let step = Step::refused(line, Mistake::ThoughtsUnopened, told);
        self.end_with(step, stray.at, None);
        true
    }

    fn close(&mut self, n: usize, end: usize) -> bool {
        let open = &mut self.spans.open;
        if open[n].is_certain {
            // What began in it may go on behind it, or was words.
            let inner = open.split_off(n + 1);
            let before = inner.len();
            let rest = inner.into_iter().filter(|open| !open.is_closed && !open.is_over);
            open.extend(rest.map(|open| Open { is_certain: false, ..open }));
            let ended = before - (open.len() - n - 1);
            self.spans.live = self.spans.live.saturating_sub(ended);
        } else if open.last().is_some_and(|last| last.is_certain) {
            // Within reasoning an element ends with that.
            open[n].is_over = true;
            return false;
        }
        // Those that began in an element may go on behind it.
        let open = &mut self.spans.open[n];
        let closed = Open { at: open.at, is_closed: true, ..Open::default() };
        let ended = std::mem::replace(open, closed);
        self.end_open(&ended, end);
        while let Some(last) = self.spans.open.pop_if(|last| last.is_closed || last.is_over) {
            if last.is_over {
                self.end_open(&last, end);
            }
        }
        true
    }

    fn end_open(&mut self, open: &Open, end: usize) {
        self.drop_items(open, end);
        let spans = &mut self.spans;
        spans.add(open.line..end);
        (spans.body, spans.live) = (0, spans.live.saturating_sub(1));
        if spans.certain.is_some_and(|certain| certain >= open.at) {
            spans.certain = None;
        }
    }

    /// Drops what was asked for in a span, and reports it.
    fn drop_items(&mut self, open: &Open, end: usize) {
        let first = self.items.partition_point(|item| item.origin < open.at);
        let mut has_message = false;
        let mut tags = 0;
        for item in self.items.split_off(first) {
            self.held |= item.may_be_missed() && open.sort == Sort::Element;
            match item.kind {
                // It tells of what stands before.
                ItemKind::Step(_) if !is_command(&item) => self.items.push(item),
                ItemKind::Tag { .. } | ItemKind::Block(_) | ItemKind::Step(_) => tags += 1,
                ItemKind::Message => has_message = true,
                ItemKind::Note(_) => {}
            }
        }
        let asks = match tags {
            0 if !has_message => return,
            0 => "an operations message was".to_owned(),
            tags => tags_were(tags),
        };
        let (line, last) = (self.number(open.line), self.number(end));
        let (sort, told) = if open.sort == Sort::Element {
            let shown = brief(self.text[open.line..open.end].trim());
            let told = format!(
                "{asks} ignored: lines {line} to {last} are in `{shown}`, and what is in an element or in a file that is shown is not carried out. Send again what was meant as a command, without the lines around it"
            );
            (WarningSort::TagsInElement, told)
        } else {
            let told = format!("{asks} ignored: lines {line} to {last} are thoughts");
            (WarningSort::TagsInThoughts, told)
        };
        self.note(open.at, Warning::new(sort, told));
    }

    /// The end of reasoning whose beginning is missing: some chats leave it out. What stands before it
    /// does not count.
    fn lost(&mut self, marker: &Marker, end: usize) {
        let line = self.number(marker.at);
        let is_step = |item: &Item<'_>| matches!(item.kind, ItemKind::Step(_) | ItemKind::Block(_));
        if self.ended {
            self.items.retain(|item| matches!(&item.kind, ItemKind::Step(step) if step.ends));
            self.spans.add(0..self.text.len());
            let told = format!(
                "nothing before it was carried out either: line {line} ends thoughts whose beginning is missing"
            );
            return self.note(end, Warning::new(WarningSort::TagsInThoughts, told));
        }
        self.held |= self.items.iter().any(Item::may_be_missed);
        let is_open = |item: &&Item<'_>| matches!(item.kind, ItemKind::Tag { is_whole: false });
        let open = self.items.iter().find(is_open);
        if let Some(Item { origin, command, .. }) = open.filter(|item| item.command.is_some()) {
            // In its body it would be text.
            let token = Token::new(*origin, *origin, *command);
            let why = format!("line {line} may be in it, or end reasoning");
            self.items.clear();
            return self.end_unclear(&token, &why, false);
        }
        let count = self.items.iter().filter(|item| is_step(item)).count();
        let has_message = self.items.iter().any(|item| matches!(item.kind, ItemKind::Message));
        self.items.clear();
        self.spans.add(0..end);
        if count > 0 {
            let told = format!(
                "Line {line}: `{}` ends thoughts whose beginning is missing, so {} not carried out. Send again what was meant as a command",
                brief(&self.text[marker.at..marker.end]),
                if count == 1 {
                    "the block before it was".to_owned()
                } else {
                    format!("the {count} blocks before it were")
                }
            );
            let step = Step::refused(line, Mistake::ThoughtsUnopened, told);
            self.push(marker.at, None, ItemKind::Step(step));
        } else if has_message {
            let told = format!(
                "an operations message was ignored: lines 1 to {line} are thoughts, whose beginning is missing"
            );
            self.note(end, Warning::new(WarningSort::TagsInThoughts, told));
        }
    }

    /// A tag in what may turn out to be a span, or not. Its body is skipped where its end is beyond doubt.
    pub(super) fn inside(&mut self, token: &Token, end: usize) {
        if self.spans.body > token.at {
            return;
        }
        let body_end = (token.kind == TokenKind::Open).then(|| self.sure_end(token, end)).flatten();
        if token.opens() {
            let has_body = token.kind == TokenKind::Open && token.command().closing.is_some();
            let is_whole = !has_body || body_end.is_some() || self.ends_there(token, end);
            self.push(token.at, token.command, ItemKind::Tag { is_whole });
        }
        if matches!(token.kind, TokenKind::Close | TokenKind::CloseByWord) {
            self.push(token.at, token.command, ItemKind::Tag { is_whole: false });
        }
        let Some(body_end) = body_end else { return };
        // Whether it is one, or an element ends within half of a block, is a guess.
        let is_sure = |open: &Open| open.is_certain && open.sort == Sort::Reasoning;
        if self.spans.open.first().is_some_and(is_sure) {
            self.at = body_end;
        } else {
            self.spans.body = body_end;
            self.spans.inner.clear();
        }
    }

    fn ends_there(&self, token: &Token, end: usize) -> bool {
        let closing = token.command().closing.unwrap_or_default();
        self.text[token.name_end..end].contains(closing)
    }

    /// Reads a line as the beginning or the end of a shown file or of a pair.
    pub(super) fn section(&mut self, at: usize, end: usize) -> bool {
        let line = self.text[at..end].trim_end();
        let is_begin = at == 0 || self.text.as_bytes()[at - 1] == b'\n';
        let shown = line.strip_prefix("--- ").and_then(|line| line.strip_suffix(" ---"));
        let is_pair = pairs::is_beginning(line.trim());
        let mark = at + line.len();
        let begins = |key: String| Open {
            key,
            line: at,
            // What is told of the line itself stays.
            at: mark,
            end: mark,
            sort: Sort::Element,
            is_certain: false,
            is_over: false,
            is_closed: false,
        };
        let (key, is_end) = match shown.filter(|_| is_begin) {
            Some(name) => {
                let closed = name.strip_prefix("end ").map(|name| format!("--- {name}"));
                let closed = closed.filter(|key| self.spans.find(key, false).is_some());
                let is_end = closed.is_some();
                (closed.unwrap_or_else(|| format!("--- {name}")), is_end)
            }
            None if is_pair => (PAIR.to_owned(), false),
            None if pairs::is_any_marker(line.trim()) && line.ends_with("REPLACE") => {
                (PAIR.to_owned(), true)
            }
            None => return false,
        };
        let is_in_body = at < self.spans.body;
        if is_end {
            let next = self.next_line(at);
            if is_in_body && self.spans.ends_inner(&key) {
                return true;
            }
            return self.spans.find(&key, false).is_some_and(|n| self.close(n, next));
        }
        if is_in_body {
            *self.spans.inner.entry(key).or_default() += 1;
            return true;
        }
        if is_pair {
            let (number, shown) = (self.number(at), brief(line.trim()));
            let told = format!(
                "line {number} `{shown}` was read as words: a pair stands in a block, with [EDIT_FILE path=\"relative/path\"] alone on the line above it and [/EDIT_FILE] below"
            );
            self.held = true;
            self.note(at, Warning::new(WarningSort::LooksLikeTag, told));
        }
        if !self.spans.words.contains(&mark) {
            self.spans.begin(begins(key));
        }
        true
    }

    /// At the end of the text: whether it is to be read again, since what began somewhere was words.
    pub(super) fn finish_spans(&mut self) -> bool {
        const AGAIN: u8 = 2;
        let mut open = std::mem::take(&mut self.spans.open);
        open.retain(|open| !open.is_closed);
        self.spans.live = 0;
        if self.ended || open.is_empty() {
            return false;
        }
        let certain = open.iter().position(|open| open.is_certain || open.is_over);
        if certain != Some(0) && self.spans.again < AGAIN {
            let words = &open[..certain.unwrap_or(open.len())];
            self.spans.again += 1;
            self.spans.words.extend(words.iter().map(|open| open.at));
            self.restart(words[0].line);
            return true;
        }
        let open = &open[certain.unwrap_or_default()];
        let line = self.number(open.line);
        let begin = &self.text[open.at..open.end];
        let (shown, end) = (brief(begin), reasoning::end_of(begin));
        let told = format!(
            "Line {line}: `{shown}` is never closed by `{end}` at the start or the end of a line (cut off?), so nothing after it was carried out. Send again what follows your thoughts"
        );
        self.restart(open.line);
        self.spans.words.insert(open.at);
        self.spans.add(open.line..self.text.len());
        self.unclosed = true;
        self.end_with(Step::refused(line, Mistake::CutOff, told), open.line, None);
        true
    }

    /// Forgets what was read from the line of an offset on.
    fn restart(&mut self, at: usize) {
        let line = memrchr(b'\n', &self.text.as_bytes()[..at]).map_or(0, |n| n + 1);
        let closed = &mut self.spans.closed;
        closed.truncate(closed.partition_point(|span| span.start < line));
        // A span may end on that line.
        let from = closed.last().map_or(line, |last| line.max(last.end));
        self.items.truncate(self.items.partition_point(|item| item.origin < from));
        self.spans.keys.clear();
        self.spans.certain = None;
        self.spans.body = 0;
        if from < self.quiet.start {
            self.quiet = 0..0;
        }
        self.go_to(from);
    }
}

/// Whether a body mentions its own command in any way that could be an opening tag.
fn may_open(name: &str, body: &str) -> bool {
    let letters = |c: &char| c.is_ascii_alphabetic();
    let name: Vec<char> = name.chars().filter(letters).map(|c| c.to_ascii_lowercase()).collect();
    let is_word = name.len() < "runcommand".len();
    // The last signs that are letters, and the sign before each.
    let (mut last, mut before) = (VecDeque::new(), ' ');
    for c in body.chars().map(lexer::folded).filter(|c| !lexer::is_zero_width(*c)) {
        if !letters(&c) {
            before = if c.is_whitespace() || "\\_-*`".contains(c) { before } else { c };
            continue;
        }
        last.push_back((c.to_ascii_lowercase(), before));
        before = 'a';
        if last.len() > name.len() {
            last.pop_front();
        }
        let sign = last.front().map_or('/', |(_, sign)| *sign);
        let begins = if is_word { "[［【<‹({;".contains(sign) } else { sign != '/' };
        if begins && last.iter().map(|(c, _)| c).eq(&name) {
            return true;
        }
    }
    false
}

const PAIR: &str = "<<<<<<< SEARCH";

/// `a tag was`, `3 tags were`.
pub(super) fn tags_were(n: usize) -> String {
    if n == 1 { "a tag was".to_owned() } else { format!("{n} tags were") }
}
