//! Spans whose commands are never executed: reasoning, elements whose tags are alone on their lines, files in the form
//! that outboxes use, and pairs of SEARCH and REPLACE outside a block.
//!
//! Spans can be nested. Inside a span, only markers are read; tags are counted, and reported when the span ends. An
//! element begins a span only if its end follows anywhere in the text.

use std::collections::HashMap;
use std::ops::Range;

use super::attributes::brief;
use super::lexer::{self, Token, TokenKind};
use super::parser::{ItemKind, Parser, ReplyItem};
use super::reasoning::{self, MarkedLine, Marker, MarkerKind, PAIR, Strength};
use super::recovery::is_of_outbox;
use crate::protocol::{Mistake, Step, Warning, WarningKind};
use crate::text::count;

/// The most spans that may be open at once.
const DEEPEST: usize = 64;

/// A span that has not ended yet.
pub(super) struct OpenSpan {
    key: String,
    kind: MarkerKind,
    /// Whether the span counts even if nothing closes it.
    is_certain: bool,
    /// The start of the line, and the range of the opening marker.
    line: usize,
    marker: Range<usize>,
    /// The number of tags in the span, and whether skipping them may lose work.
    tags: usize,
    missed_command: bool,
    has_message: bool,
}

impl OpenSpan {
    fn is_reasoning(&self) -> bool {
        self.is_certain && self.kind == MarkerKind::Reasoning
    }

    /// Adds the contents of an inner span.
    fn absorb(&mut self, inner: &OpenSpan) {
        self.tags += inner.tags;
        self.missed_command |= inner.missed_command;
        self.has_message |= inner.has_message;
    }
}

impl Parser<'_> {
    /// Handles the markers of a line, starting at an offset. After a marker that ends a span, the rest of the line is
    /// read next, as a line of its own. Returns whether nothing else on the line must be read.
    pub(super) fn markers(&mut self, from: usize) -> bool {
        // The markers of a line are read only once.
        let known = self.line.take().filter(|line| line.begin == self.begin);
        let line = known.or_else(|| MarkedLine::new(self.text, self.begin..self.end));
        let Some(mut line) = line else { return false };
        line.read_from(from);
        let is_read = self.markers_of(&line, from);
        self.line = Some(line);
        is_read
    }

    fn markers_of(&mut self, line: &MarkedLine<'_>, from: usize) -> bool {
        let (mut begins, mut rest) = (false, None);
        let first = line.markers.partition_point(|marker| marker.at < from);
        for marker in &line.markers[first..] {
            if !marker.is_end {
                begins |= self.begin_span(line, marker);
                continue;
            }
            let is_known = self.spans.iter().any(|span| span.key == marker.key);
            let ends = line.closes(marker).is_some_and(|strength| self.end_span(marker, strength));
            let end = if ends { line.end_of(marker) } else { marker.end };
            if ends && !marker.ends_line() {
                // The text after the end of an element does not count as a new line.
                rest = Some(end);
                continue;
            }
            let (text, line_end) = (self.text, self.end);
            let has_tag =
                || lexer::lex(text, end, line_end).is_some() || is_of_outbox(&text[end..line_end]);
            if ends || marker.ends_line() && self.may_lex_again() && has_tag() {
                self.at = if end < self.end { end } else { self.next_line(end) };
                if !is_known {
                    self.after_unopened_end = Some((end, marker.kind));
                }
                return true;
            }
        }
        if let Some(from) = rest {
            self.prose(from, self.end);
        }
        begins || rest.is_some()
    }

    fn begin_span(&mut self, line: &MarkedLine<'_>, marker: &Marker) -> bool {
        let Some(is_certain) = line.opens(marker) else { return false };
        // In a block that was never closed, elements may be part of the block's content.
        if marker.kind == MarkerKind::Element && marker.at < self.unclosed_block_to {
            return false;
        }
        if marker.key == PAIR && self.spans.is_empty() && !self.only_markers_count() {
            let (number, shown) = (self.line_number_at(self.begin), self.quoted_line(self.begin));
            let text = format!(
                "line {number} `{shown}` was read as words: a pair is in a block, with [EDIT_FILE path=\"relative/path\"] alone on the line above it and [/EDIT_FILE] below"
            );
            self.missed_command = true;
            self.note(self.begin, Warning::new(WarningKind::LooksLikeTag, text));
        }
        if !is_certain && !self.ends_later(&marker.key, marker.at) {
            return false;
        }
        if self.spans.len() == DEEPEST {
            let line = self.line_number_at(marker.at);
            let text = format!(
                "Nothing was carried out: on line {line}, more than {DEEPEST} elements or thoughts are open. Send the commands alone"
            );
            self.refuse_all(Mistake::EndUnclear, text, marker.at);
            return true;
        }
        self.spans.push(OpenSpan {
            key: marker.key.clone(),
            kind: marker.kind,
            is_certain,
            line: self.begin,
            marker: marker.at..marker.end,
            tags: 0,
            missed_command: false,
            has_message: false,
        });
        true
    }

    /// Whether an end marker with this key follows after an offset, even inside a body.
    fn ends_later(&mut self, key: &str, at: usize) -> bool {
        let text = self.text;
        let last_ends = self.last_ends.get_or_insert_with(|| {
            let (mut last_ends, mut begin) = (HashMap::new(), 0);
            while begin < text.len() {
                let end = lexer::line_end(text, begin);
                if let Some(line) = MarkedLine::new(text, begin..end) {
                    let ends = line.markers.iter().filter(|marker| marker.is_end);
                    for marker in ends.filter(|marker| line.closes(marker).is_some()) {
                        last_ends.insert(marker.key.clone(), marker.at);
                    }
                }
                begin = end + 1;
            }
            last_ends
        });
        last_ends.get(key).is_some_and(|last| *last > at)
    }

    /// Ends the span that a marker closes. Returns whether the marker ended anything.
    fn end_span(&mut self, marker: &Marker, strength: Strength) -> bool {
        let is_same = |span: &OpenSpan| span.key == marker.key;
        let found = if marker.ends_all() {
            self.spans.iter().position(is_same)
        } else {
            self.spans.iter().rposition(is_same)
        };
        // Inside reasoning that is still open, other markers are ordinary text.
        let begins = found.map_or(0, |n| n + 1);
        let is_certain = found.is_some_and(|n| self.spans[n].is_certain);
        if !is_certain && self.spans[begins..].iter().any(OpenSpan::is_reasoning) && !self.is_over {
            self.contains_other_end |= strength == Strength::Alone;
            return false;
        }
        let Some(n) = found else {
            if strength == Strength::Alone {
                self.end_unopened_reasoning(marker);
            }
            return strength == Strength::Alone;
        };
        let mut span = self.spans.remove(n);
        // A span that began inside this one may continue after it.
        for inner in self.spans.split_off(n) {
            let goes_on = !is_certain && inner.is_certain
                || inner.key != span.key && self.ends_later(&inner.key, marker.at);
            if goes_on {
                self.spans.push(inner);
            } else {
                span.absorb(&inner);
            }
        }
        self.add_body(span.marker.start..marker.end);
        match self.spans.last_mut() {
            Some(outer) => outer.absorb(&span),
            None => self.report(&span, marker.end),
        }
        true
    }

    /// Reports the commands in a span that has ended.
    fn report(&mut self, span: &OpenSpan, end: usize) {
        let ignored = match span.tags {
            0 if !span.has_message => return,
            0 => "an operations message".to_owned(),
            tags => count(tags, "command"),
        };
        let is_element = span.kind == MarkerKind::Element;
        self.missed_command |= span.missed_command && is_element;
        let (line, last) = (self.line_number_at(span.line), self.line_number_at(end));
        let (kind, what, advice) = if is_element {
            let what =
                format!("`{}`, an element or a file that is shown,", self.quoted_line(span.line));
            let advice = ". Send again what was meant as a command, without the lines around it";
            (WarningKind::TagsInElement, what, advice)
        } else {
            let what = format!("a {} block", brief(&self.text[span.marker.clone()]));
            (WarningKind::TagsInThoughts, what, "")
        };
        let text = format!(
            "Lines {line}-{last} of your reply are {what} with {ignored}, not carried out{advice}"
        );
        self.note(span.line, Warning::new(kind, text));
    }

    /// Handles an end of reasoning that nothing opened, because some chats drop the opening marker. Nothing before it
    /// is carried out.
    fn end_unopened_reasoning(&mut self, marker: &Marker) {
        let line = self.line_number_at(marker.at);
        let (mut is_dropped, mut has_message) =
            (self.drop_items(), std::mem::take(&mut self.has_message));
        // Elements that are open continue after it.
        for span in &mut self.spans {
            is_dropped |= std::mem::take(&mut span.tags) > 0;
            has_message |= std::mem::take(&mut span.has_message);
            self.missed_command |= span.missed_command;
        }
        if self.is_over {
            self.add_body(0..self.text.len());
            let text = format!(
                "line {line} ends thoughts whose beginning is missing, so nothing before it was carried out either"
            );
            return self.note(marker.at, Warning::new(WarningKind::TagsInThoughts, text));
        }
        self.add_body(0..marker.end);
        if is_dropped {
            let text = format!(
                "Line {line}: `{}` ends thoughts whose beginning is missing, so nothing before it was carried out. Send again what was meant as a command",
                brief(&self.text[marker.at..marker.end]),
            );
            let step = Step::refused(line, Mistake::ThoughtsUnopened, text);
            self.push(marker.at, None, ItemKind::Step(Box::new(step)));
        } else if has_message {
            let text = format!(
                "Lines 1-{line} of your reply are thoughts whose beginning is missing; the operations message in them was not carried out"
            );
            self.note(marker.at, Warning::new(WarningKind::TagsInThoughts, text));
        }
    }

    /// Drops all blocks except a block that ends the reply. Returns whether any was dropped.
    pub(super) fn drop_items(&mut self) -> bool {
        self.missed_command |= self.items.iter().any(ReplyItem::may_be_missed);
        let ends = |item: &ReplyItem<'_>| matches!(&item.kind, ItemKind::Step(step) if step.ends);
        let is_dropped = self.items.iter().any(|item| item.is_step() && !ends(item));
        self.items.retain(ends);
        is_dropped
    }

    /// Counts a tag in a span. If the tag opens a draft of a block, skips the body of the draft.
    pub(super) fn count_tag(&mut self, token: &Token) {
        if token.kind == TokenKind::Open
            && self.spans.first().is_some_and(|span| span.kind != MarkerKind::Element)
            && let Some(end) = self.end_of_draft(token)
            && self.is_draft(end)
        {
            self.at = end;
            self.contains_other_end = true;
        }
        let closes = matches!(token.kind, TokenKind::Close { .. });
        self.contains_other_end |= closes;
        if let Some(span) = self.spans.last_mut() {
            span.tags += usize::from(token.opens());
            span.missed_command |= closes || token.may_be_missed();
        }
    }

    /// Whether a draft that ends at `end` may be skipped. In an element it may not, because the element's end may be in
    /// the draft. It may not be skipped either if it contains the end of reasoning that began before the draft.
    fn is_draft(&mut self, end: usize) -> bool {
        let Some(span) = self.spans.first() else { return false };
        match span.kind {
            MarkerKind::Reasoning => true,
            MarkerKind::Element => false,
            // Overlapping drafts contain the same end of reasoning.
            MarkerKind::Paired if (self.end..end).contains(&self.last_stray_end) => false,
            MarkerKind::Paired => {
                let signs = self.signs.reasoning(self.end..end);
                let stray = reasoning::find_stray_end(self.text, self.end..end, signs, &span.key);
                self.last_stray_end =
                    stray.as_ref().map_or(self.last_stray_end, |stray| stray.start);
                stray.is_none()
            }
        }
    }

    /// Records that a line contains the key of an operations message.
    pub(super) fn count_message(&mut self) {
        match self.spans.last_mut() {
            Some(span) => span.has_message = true,
            None => self.has_message = true,
        }
    }

    /// At the end of the text, refuses everything after the beginning of a span that was never closed.
    pub(super) fn finish_spans(&mut self) {
        let open = std::mem::take(&mut self.spans);
        let Some(span) = open.first().filter(|_| !self.is_over) else { return };
        self.missed_command = true;
        self.items.retain(|item| item.origin < span.marker.start);
        // A block or reasoning that ends inside the span may have begun before it.
        let is_dropped = self.contains_other_end && self.drop_items();
        self.add_body(if self.contains_other_end { 0 } else { span.marker.start }..self.text.len());
        let nothing = if is_dropped { "nothing before or after it" } else { "nothing after it" };
        let line = self.line_number_at(span.line);
        let text = format!(
            "Line {line}: `{}` is never closed at the start or the end of a line (cut off?), so {nothing} was carried out. Send again what was meant as a command, without thoughts",
            self.quoted_line(span.line)
        );
        self.unclosed = true;
        self.end_reply_with(Step::refused(line, Mistake::CutOff, text), span.line, None);
    }
}
