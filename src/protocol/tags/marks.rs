//! Finds the lines of a reply that can matter: those that begin with a tag, however decorated, and
//! those that show the reply to be something else. One pass over the text, by its brackets; where a
//! block ends is known from here without looking at any line twice.

use std::collections::HashSet;

use memchr::{memchr_iter, memchr2, memmem};

use super::attributes;
use super::bare;
use super::catalogue::{COMMANDS, Command};
use super::labels::seems;
use super::lead::{behind_comment, lead};
use super::line::{Line, line_end};
use super::names::{Name, closes_there, name};
use super::other;
use super::outboxes;
use super::pairs;
use super::pasted;
use super::reasoning;
use super::repairs::{Repairs, is_zero_width};
use super::tails::{is_one_tag, without_fence, without_suffix};
use super::unknown::Unknown;
use super::words::is_word;
use crate::protocol::Kind;

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// An opening tag.
    Opening,
    /// A closing tag alone on its line.
    Closing,
    /// A closing tag that gives a word, alone on its line.
    ClosingByWord,
    /// An opening tag whose name is nearly one: `[CREATE FILE …]`.
    Misspelt,
    /// The same of a closing tag.
    MisspeltClosing,
    /// A result as an outbox tells it.
    Result,
    /// A section marker of an outbox.
    Section,
    /// The beginning of reasoning, which ends at the mark's `until`.
    Reasoning,
    /// The end of reasoning, anywhere in a line; `until` is not 0 where its beginning stands before.
    ReasoningEnd,
    /// An element with other tags alone on their lines, which ends at the mark's `until`.
    Element,
    /// Where a file is shown as an outbox shows it; what follows the mark's name follows the file.
    Shown,
    /// A block by a name that no command has; what follows the mark's name follows it.
    Unknown,
    /// What looks like a tag behind something that is no decoration.
    Seems,
    /// The first line of a pair of SEARCH and REPLACE.
    Pair,
}

/// How strictly the events are chosen that a block's end is sought among.
pub(super) const PLAIN: usize = 0;
/// With those that need repair.
pub(super) const ALL: usize = 1;
/// No mark.
pub(super) const NONE: u32 = u32::MAX;

/// A line that can matter.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    pub(super) what: What,
    /// Where its line begins, its first sign, and what follows the tag's name, in bytes.
    pub(super) line: usize,
    pub(super) at: usize,
    pub(super) name_end: usize,
    /// Which of the commands it names.
    command: u8,
    /// How many `>` stand before it.
    pub(super) quote: u8,
    /// What is to be overlooked of its decoration and its name.
    pub(super) repairs: Repairs,
    /// Whether nothing but decoration stands around the tag.
    pub(super) alone: bool,
    /// The next opening or closing tag of the same name that is alone on its line, among the plain
    /// ones and among all.
    pub(super) next: [u32; 2],
    /// Whether any of those that follow is a closing tag.
    pub(super) closes: [bool; 2],
    /// Whether nothing behind it can close it, nor any other.
    pub(super) ends_all: bool,
    /// How many closing tags from there on have no opening tag of their own.
    pub(super) left_over: [u32; 2],
    /// Where reasoning or an element ends; 0 where nothing closes it.
    pub(super) until: usize,
}

impl Mark {
    pub(super) fn command(&self) -> &'static Command {
        &COMMANDS[usize::from(self.command)]
    }

    /// Which command that is in the catalogue.
    pub(super) fn which(&self) -> usize {
        usize::from(self.command)
    }

    pub(super) fn set_command(&mut self, which: u8) {
        self.command = which;
    }

    /// Whether it is a tag of that command, be it nearly.
    pub(super) fn is_tag_of(&self, kind: Kind) -> bool {
        let is_tag = matches!(self.what, What::Opening | What::Misspelt) || self.is_closing();
        is_tag && self.command().kind == kind
    }

    /// Whether it is a closing tag, be it nearly.
    pub(super) fn is_closing(&self) -> bool {
        matches!(self.what, What::Closing | What::MisspeltClosing)
    }

    /// Whether it is as protocol 1.0 has it.
    pub(super) fn is_plain(&self) -> bool {
        self.repairs.is_none()
    }
}

/// All marks of a text, in order.
pub(super) fn find(text: &str) -> Vec<Mark> {
    let mut bytes = text.as_bytes();
    let mut marks: Vec<Mark> = Vec::new();
    let mut asked = false;
    let mut line = Line::default();
    let mut unknown = Unknown::default();
    for at in memchr_iter(b'[', bytes) {
        let may_be = bytes.get(at + 1).is_some_and(|next| {
            next.is_ascii_alphabetic() || matches!(next, b'/' | b'\\' | b' ' | 0xc2 | 0xe2 | 0xef)
        });
        let begins = at.checked_sub(1).is_none_or(|before| may_stand_before(bytes[before]));
        // Behind anything else only a tag in capitals can be meant.
        if !may_be || !begins && !bytes[at + 1].is_ascii_uppercase() {
            continue;
        }
        let end = line.end_at(text, at);
        if !begins {
            marks.extend(seems(text, at, end));
            continue;
        }
        let Some(mark) = bracket(text, at, end, &mut line) else {
            match seems(text, at, end) {
                Some(mark) => marks.push(mark),
                None => unknown.see(text, at),
            }
            continue;
        };
        if mark.what == What::MisspeltClosing {
            unknown.see(text, at);
        }
        if mark.what == What::Opening && mark.is_plain() {
            marks.extend(pasted::sentence(text, mark.line));
        }
        marks.push(mark);
        // Asked once. Without a slash nothing closes that tag, and without a `>` no reasoning, so it
        // ends the reply, and what is behind it will not be looked at.
        let opens = mark.what == What::Opening && mark.command().closing.is_some();
        if !asked && opens && mark.is_plain() {
            asked = true;
            if let (None, Some(last)) = (memchr2(b'/', b'>', &bytes[at..]), marks.last_mut()) {
                last.ends_all = true;
                bytes = &bytes[..at];
                break;
            }
        }
    }
    let tags = marks.len();
    link(&mut marks);
    let reasoning = reasoning::find(text, bytes.len(), &marks);
    let ends: HashSet<usize> = reasoning.iter().map(|mark| mark.until).collect();
    // Behind what is only written like the end of reasoning a tag is none.
    marks.retain_mut(|mark| {
        let before = &text[..mark.line];
        let is_behind = reasoning::SHARED_ENDS.iter().any(|end| before.ends_with(end));
        let is_one = !is_behind || ends.contains(&mark.line);
        let seems = || seems(text, mark.at, line_end(text, mark.at));
        is_one || seems().map(|seems| *mark = seems).is_some()
    });
    marks.extend(bare::find(text, bytes.len()));
    let mut line = Line::default();
    for at in memmem::find_iter(bytes, "=== ") {
        marks.extend(outboxes::section(text, at, &mut line));
    }
    let mut line = Line::default();
    for at in memchr_iter(b'<', bytes) {
        marks.extend(other::tag(text, at, &mut line));
    }
    for sign in other::BRACKETS {
        let mut line = Line::default();
        let found = memmem::find_iter(bytes, sign);
        marks.extend(found.filter_map(|at| other::tag(text, at, &mut line)));
    }
    marks.extend(reasoning);
    marks.extend(other::shown(text, bytes.len()));
    marks.extend(pairs::find(text, bytes.len()));
    marks.extend(unknown.marks(text));
    if marks.len() > tags {
        marks.sort_by_key(|mark| mark.at);
    }
    link(&mut marks);
    marks
}

/// Whether a tag can stand behind this byte.
fn may_stand_before(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte >= 0x80 || b"*_`~#>-+.)];\\".contains(&byte)
}

/// Tells each mark what comes next of its name.
fn link(marks: &mut [Mark]) {
    let mut next = [[NONE; 2]; COMMANDS.len()];
    let mut closes = [[false; 2]; COMMANDS.len()];
    let mut left_over = [[0u32; 2]; COMMANDS.len()];
    for n in (0..marks.len()).rev() {
        let mark = &mut marks[n];
        let name = usize::from(mark.command);
        (mark.next, mark.closes, mark.left_over) = (next[name], closes[name], left_over[name]);
        if !mark.alone || !matches!(mark.what, What::Opening | What::Closing) {
            continue;
        }
        for class in [PLAIN, ALL] {
            if class == PLAIN && !mark.is_plain() {
                continue;
            }
            next[name][class] = u32::try_from(n).unwrap_or(NONE);
            closes[name][class] |= mark.what == What::Closing;
            let left_over = &mut left_over[name][class];
            *left_over = match mark.what {
                What::Closing => left_over.saturating_add(1),
                _ => left_over.saturating_sub(1),
            };
        }
    }
}

impl Mark {
    /// A tag of a command that is not written as one; its name begins at `name` and ends at
    /// `name_end`.
    pub(super) fn misspelt(name: &Name, line: usize, at: usize, name_end: usize) -> Self {
        let what = if name.is_closing { What::MisspeltClosing } else { What::Misspelt };
        Self { command: name.command, ..Self::of(what, line, at, name_end) }
    }

    pub(super) fn until(self, until: usize) -> Self {
        Self { until, ..self }
    }

    pub(super) fn of(what: What, line: usize, at: usize, name_end: usize) -> Self {
        Self {
            what,
            line,
            at,
            name_end,
            command: 0,
            quote: 0,
            repairs: Repairs::default(),
            alone: true,
            next: [NONE; 2],
            closes: [false; 2],
            ends_all: false,
            left_over: [0; 2],
            until: 0,
        }
    }
}

/// The mark that a bracket is, if it is one.
fn bracket(text: &str, at: usize, end: usize, line: &mut Line) -> Option<Mark> {
    let inside = &text[at + 1..];
    if let Some(rest) = inside.strip_prefix("OK] ").or_else(|| inside.strip_prefix("FAILED] ")) {
        COMMANDS.iter().find(|c| rest.strip_prefix(c.name).is_some_and(|r| r.starts_with(':')))?;
        let lead = lead(text, at).filter(|_| line.allows())?;
        return Some(Mark::of(What::Result, lead.line, at, at));
    }
    let name = name(inside)?;
    let lead = lead(text, at).or_else(|| behind_comment(text, at)).filter(|_| line.allows())?;
    let mut repairs = name.repairs;
    repairs.add(lead.repairs);
    // Behind a fence no block ends: that is the last line of its body, glued.
    if name.is_closing && repairs.has(Repairs::FENCE) {
        return None;
    }
    let begin = at + 1 + name.length;
    let rest = &text[begin..end.max(begin)];
    let mut tail = without_suffix(rest, repairs);
    if let Some(before) = without_fence(tail).filter(|_| name.is_closing) {
        repairs.add(Repairs::FENCE);
        tail = before;
    }
    let mut mark = Mark::of(What::Opening, lead.line, at, at + 1 + name.length);
    (mark.command, mark.quote) = (name.command, lead.quote);
    let is_known = !name.is_misspelt;
    if name.is_closing {
        let blank = |c: char| c.is_whitespace() || is_zero_width(c) || c == '\\';
        let inner = tail.strip_suffix(']').filter(|inner| inner.chars().all(blank));
        mark.what = match inner {
            Some(_) if is_known => What::Closing,
            Some(_) => What::MisspeltClosing,
            None => {
                let has_body = is_known && mark.command().closing.is_some();
                let (word, after) = attributes::closing_word(tail, &mut repairs)?;
                if !has_body || !is_word(&word) || !without_suffix(after, repairs).is_empty() {
                    return None;
                }
                What::ClosingByWord
            }
        };
        if inner.is_some_and(|inner| !inner.is_empty()) {
            repairs.add(Repairs::SPACES);
        }
    } else {
        mark.alone = is_one_tag(tail);
        // In prose a name that is nearly a tag's is no tag.
        let has_path = || memmem::find(tail.as_bytes(), b"path").is_some();
        let says_enough = || match mark.command().kind {
            Kind::Run => {
                let is_given = memmem::find(tail.as_bytes(), b"command=").is_some();
                tail == "]" || is_given || closes_there(tail, mark.which())
            }
            _ => has_path(),
        };
        let is_meant = if name.is_far {
            repairs.is_none() && tail.ends_with(']') && (!name.is_short || says_enough())
        } else {
            is_known || name.is_upper || has_path()
        };
        if !is_meant {
            return None;
        }
        mark.what = if is_known { What::Opening } else { What::Misspelt };
    }
    // Behind the end of thoughts on its line: it opens a block, but is in no other.
    mark.alone &= lead.line == 0 || text.as_bytes()[lead.line - 1] == b'\n';
    if tail.len() < rest.trim_end().len() && repairs.is_none() {
        repairs.add(Repairs::INVISIBLE);
    }
    mark.repairs = repairs;
    Some(mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_tags_are_sought_on_one_line() {
        let tags = |mark: &&Mark| mark.what != What::ReasoningEnd;
        for tag in ["[DONE]", "[/DONE]", "[OK] DONE: x", "<DONE>", "【DONE】", "=== HEADER ==="] {
            let text = format!("</think>{tag}").repeat(1000);
            assert!(find(&text).iter().filter(tags).count() <= 4, "{tag}");
        }
        let text = "</think>[DONE]\n".repeat(1000);
        assert_eq!(find(&text).iter().filter(|mark| mark.what == What::Opening).count(), 1000);
    }
}
