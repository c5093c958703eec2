//! Lines that look like a tag and are words: a label, a link, a button of a page.

use super::attributes::brief;
use super::ends::inline_body;
use super::lead::lead as lead_of;
use super::marks::{ALL, Mark, What};
use super::names;
use super::reader::Reader;
use super::repairs::Repairs;
use super::tails::{is_one_tag, without_suffix};
use crate::protocol::{Kind, Warning, WarningSort};

/// What was found on the line of an opening tag, from its name on: all of it, whether it cannot be
/// read, what stands behind the tag, and what of that is a body up to a closing tag.
pub(super) struct Found<'a> {
    pub(super) rest: &'a str,
    pub(super) is_broken: bool,
    pub(super) after: &'a str,
    pub(super) inline: Option<&'a str>,
}

impl Reader<'_> {
    /// Tells of a line that looks like one with a tag.
    pub(super) fn seems(&mut self, mark: &Mark) {
        let (number, shown) = (self.number(mark.line), brief(self.line_at(mark.line)));
        let told = format!(
            "line {number} `{shown}` was read as words: a command begins its line with its tag, with nothing before it"
        );
        self.note(Warning::new(WarningSort::ReadAsWords, told));
    }

    /// Whether a line that is no plain tag is none at all: words in brackets, a link.
    pub(super) fn is_prose(&self, n: usize, mark: &Mark, found: &Found<'_>) -> bool {
        let (command, after) = (mark.command(), found.after);
        // Its name is a common word.
        if command.kind == Kind::Search
            && memchr::memmem::find(found.rest.to_ascii_lowercase().as_bytes(), b"pattern")
                .is_none()
        {
            return true;
        }
        let ends_there = without_suffix(found.rest, mark.repairs).ends_with(']');
        if command.closing.is_none() {
            let own = format!("[/{}]", command.name);
            if found.is_broken {
                return !ends_there;
            }
            return !after.is_empty() && inline_body(after, &own, mark) != Some("");
        }
        // What follows may be its body, which is never carried out.
        if names_a_path(found.rest) {
            return false;
        }
        if found.is_broken {
            return !ends_there;
        }
        let is_closed = {
            let next = self.marks.get(mark.next[ALL] as usize);
            next.is_some_and(|next| next.what == What::Closing)
        };
        if found.inline.is_some() || is_closed && !after.starts_with(['(', ':', '[']) {
            return false;
        }
        if !after.is_empty() {
            return true;
        }
        // A label over what follows, or an item of a list of what was done.
        let is_item = command.kind == Kind::Done
            && mark.repairs.has(Repairs::CASE)
            && [Repairs::BULLET, Repairs::NUMBER, Repairs::HEADING]
                .iter()
                .any(|sign| mark.repairs.has(*sign));
        let is_label = |next: &Mark| {
            let between = &self.text[self.next_line(mark.at).min(next.line)..next.line];
            is_item || between.trim_matches(|c: char| c.is_whitespace() || c == '`').is_empty()
        };
        matches!(command.kind, Kind::Message | Kind::Done)
            && self.marks.get(n + 1).is_some_and(is_label)
    }
}

/// A whole tag at the end of a line, behind few signs that are no decoration but seem to be meant as
/// one: `→ [READ_FILE path="a"]`, `Step 1: [DONE]`, `- [ ] [DELETE_FILE path="a"]`, `3  [DONE]`.
pub(super) fn seems(text: &str, at: usize, end: usize) -> Option<Mark> {
    const LONGEST: usize = 40;
    let name = names::exact(&text[at + 1..]).filter(|name| !name.is_closing)?;
    let name_end = at + 1 + name.length;
    let tail = text[name_end..end].trim_end();
    let before = &text.as_bytes()[at.saturating_sub(LONGEST)..at];
    let line = memchr::memrchr(b'\n', before).map(|n| at - before.len() + n + 1);
    let line = line.or_else(|| (at <= LONGEST).then_some(0))?;
    let lead = text[line..at].trim();
    let last = lead.chars().next_back()?;
    let is_sign = !last.is_ascii_alphabetic() && !"`\"'(,;*_\\".contains(last);
    let has_letter = lead.contains(char::is_alphabetic);
    let is_box = lead.ends_with("[ ]") || lead.ends_with("[x]") || lead.ends_with("[X]");
    let may_be = is_sign && (!has_letter || last == ':' || is_box) && last != '.';
    let is_tag = is_one_tag(tail) && (tail == "]" || tail.contains('='));
    (may_be && is_tag && lead_of(text, at).is_none()).then(|| Mark::of(What::Seems, line, at, end))
}

/// Whether a tag has a path: words in brackets have none.
fn names_a_path(rest: &str) -> bool {
    const KEY: &[u8] = b"path";
    rest.as_bytes().windows(KEY.len()).enumerate().any(|(at, word)| {
        word.eq_ignore_ascii_case(KEY) && {
            let after = rest.as_bytes()[at + KEY.len()..].trim_ascii_start();
            after.starts_with(b"=") || after.starts_with(b"\\=")
        }
    })
}
