//! Lines that look like a tag and are words: a label, a link, a button of a page.

use super::ends::inline_body;
use super::marks::{ALL, Mark, What};
use super::reader::Reader;
use super::repairs::Repairs;
use super::tails::without_suffix;
use crate::protocol::Kind;

/// What was found on the line of an opening tag, from its name on: all of it, whether it cannot be
/// read, what stands behind the tag, and what of that is a body up to a closing tag.
pub(super) struct Found<'a> {
    pub(super) rest: &'a str,
    pub(super) is_broken: bool,
    pub(super) after: &'a str,
    pub(super) inline: Option<&'a str>,
}

impl Reader<'_> {
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
            let has_words = !after.is_empty() && inline_body(after, &own, mark) != Some("");
            return has_words || self.is_mentioned(mark);
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

    /// Whether a tag that takes something away may only be told of: as an item of a list in a code span,
    /// since so what was done is listed, too; or quoted among others that are not, as what somebody said.
    fn is_mentioned(&self, mark: &Mark) -> bool {
        let is_item = || mark.repairs.has(Repairs::BULLET) || mark.repairs.has(Repairs::NUMBER);
        let is_listed = || is_item() && self.text[mark.line..mark.at].contains('`');
        matches!(mark.command().kind, Kind::Delete | Kind::Move)
            && (is_listed() || mark.quote > 0 && self.has_unquoted())
    }
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
