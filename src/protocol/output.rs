//! The output of a command, shortened to its beginning and end.
#![expect(missing_docs, reason = "the names say what some fields are")]

use serde::{Deserialize, Serialize};

use crate::text::count;

/// The output of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CommandOutput {
    /// Both streams together, in the order in which they were written.
    Together(Capture),
    /// Each stream separately.
    Apart { stdout: Capture, stderr: Capture },
}

impl Default for CommandOutput {
    fn default() -> Self {
        Self::Together(Capture::default())
    }
}

impl CommandOutput {
    /// The streams of the output.
    pub fn captures(&self) -> Vec<&Capture> {
        match self {
            Self::Together(capture) => vec![capture],
            Self::Apart { stdout, stderr } => vec![stdout, stderr],
        }
    }

    /// Shortens each stream to `limit` characters.
    #[must_use]
    pub fn within(&self, limit: usize) -> Self {
        match self {
            Self::Together(capture) => Self::Together(capture.within(limit)),
            Self::Apart { stdout, stderr } => {
                Self::Apart { stdout: stdout.within(limit), stderr: stderr.within(limit) }
            }
        }
    }
}

/// One stream of output, shortened to its beginning and end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Capture {
    /// The first characters, or all characters if nothing was left out.
    pub head: String,
    /// How many characters were left out between `head` and `tail`.
    pub left_out: u64,
    /// The last characters; empty if nothing was left out.
    pub tail: String,
    /// The text after `head`, up to [`Self::MARGIN`] bytes. Never shown, but helps to recognise a secret that was cut.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub after_head: String,
    /// The text before `tail`. It is never shown either.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub before_tail: String,
}

impl Capture {
    /// The most bytes beyond a cut that are kept. A private key of 4,096 bits is shorter.
    pub const MARGIN: usize = 4 << 10;

    /// Cuts a text of which both sides of the gap are known. `head` and `tail` are shown. `after_head` and
    /// `before_tail` are the texts on both sides inside the gap; they may overlap.
    pub fn cut(head: &str, after_head: &str, left_out: u64, before_tail: &str, tail: &str) -> Self {
        let after_head = &after_head[..after_head.floor_char_boundary(Self::MARGIN)];
        let margin = before_tail.len().saturating_sub(Self::MARGIN);
        let before_tail = &before_tail[before_tail.ceil_char_boundary(margin)..];
        let [head, after_head, before_tail, tail] =
            [head, after_head, before_tail, tail].map(str::to_owned);
        Self { head, left_out, tail, after_head, before_tail }
    }

    /// Removes and returns the text after the head and the text before the tail.
    pub fn take_margins(&mut self) -> (String, String) {
        (std::mem::take(&mut self.after_head), std::mem::take(&mut self.before_tail))
    }

    /// Head and tail. If something was left out, a line between them gives its length.
    pub fn to_text(&self) -> String {
        self.text_of(&self.head, &self.tail)
    }

    /// Like [`Self::to_text`], but with another head and tail.
    pub(super) fn text_of(&self, head: &str, tail: &str) -> String {
        let mut text = head.to_owned();
        if self.left_out > 0 {
            if !text.ends_with('\n') {
                text.push('\n');
            }
            let n = usize::try_from(self.left_out).unwrap_or(usize::MAX);
            text.push_str(&format!("[... {} left out ...]\n", count(n, "character")));
        }
        text + tail
    }

    /// Shortens the output to `limit` characters, half of them from its beginning.
    #[must_use]
    pub fn within(&self, limit: usize) -> Self {
        let (head, tail) = (self.head.chars().count(), self.tail.chars().count());
        if head + tail <= limit {
            let Self { head, left_out, tail, after_head, before_tail } = self;
            return Self::cut(head, after_head, *left_out, before_tail, tail);
        }
        // If head or tail is shorter than half the limit, the other may be longer.
        let first = match self.left_out {
            0 => limit.div_ceil(2),
            _ => limit.div_ceil(2).max(limit.saturating_sub(tail)).min(head),
        };
        let last = limit - first;
        let left_out = self.left_out.saturating_add((head + tail - limit) as u64);
        // The known text on either side of the gap. If there is no gap yet, it is the other part.
        let [after_head, before_tail] = match self.left_out {
            0 => [&self.tail, &self.head],
            _ => [&self.after_head, &self.before_tail],
        };
        let (before, after) = (self.head.clone() + after_head, before_tail.clone() + &self.tail);
        let (before, after_head) = before.split_at(char_offset(&before, first));
        let skipped = after.chars().count() - last;
        let (before_tail, after) = after.split_at(char_offset(&after, skipped));
        Self::cut(before, after_head, left_out, before_tail, after)
    }
}

/// The offset of the character with this index, or the end of the text.
fn char_offset(text: &str, number: usize) -> usize {
    text.char_indices().nth(number).map_or(text.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(head: &str, left_out: u64, tail: &str, limit: usize) -> (String, u64, String) {
        let capture = Capture::cut(head, "", left_out, "", tail);
        let Capture { head, left_out, tail, .. } = capture.within(limit);
        (head, left_out, tail)
    }

    #[test]
    fn of_a_capture_head_and_tail_are_kept_within_a_limit() {
        let is = |head: &str, left_out, tail: &str| (head.to_owned(), left_out, tail.to_owned());
        assert_eq!(within("abc", 0, "", 3), is("abc", 0, ""));
        assert_eq!(within("äbcdefgh", 0, "", 5), is("äbc", 3, "gh"));
        assert_eq!(within("abcd", 7, "wxyz", 8), is("abcd", 7, "wxyz"));
        assert_eq!(within("abcd", 7, "wxyz", 3), is("ab", 12, "z"));
        assert_eq!(within("abcdef", 7, "z", 4), is("abc", 10, "z"));
        assert_eq!(within("a", 7, "uvwxyz", 4), is("a", 10, "xyz"));
        assert_eq!(within("abcd", 7, "wxyz", 0), is("", 15, ""));
    }

    #[test]
    fn what_lies_beyond_a_cut_is_kept_up_to_a_margin() {
        let whole = Capture { head: "äbcdefgh".into(), ..Capture::default() };
        let capture = whole.within(5);
        assert_eq!((&*capture.after_head, &*capture.before_tail), ("defgh", "äbcdef"));
        let capture = Capture::cut("abcd", "ef", 9, "uv", "wxyz").within(4);
        assert_eq!((&*capture.head, &*capture.after_head), ("ab", "cdef"));
        assert_eq!((&*capture.before_tail, &*capture.tail), ("uvwx", "yz"));
        let long = "€".repeat(Capture::MARGIN);
        for capture in [
            Capture { head: long.clone(), ..Capture::default() }.within(4),
            Capture { after_head: long.clone(), before_tail: long, ..capture }.within(4),
        ] {
            assert_eq!(capture.after_head.len(), Capture::MARGIN / 3 * 3);
            assert_eq!(capture.before_tail.len(), Capture::MARGIN / 3 * 3);
        }
    }

    #[test]
    fn what_was_left_out_is_counted_on_a_line_of_its_own() {
        let text = |head: &str, left_out| Capture::cut(head, "", left_out, "", "z").to_text();
        assert_eq!(text("a", 2), "a\n[... 2 characters left out ...]\nz");
        assert_eq!(text("a\n", 1), "a\n[... 1 character left out ...]\nz");
        assert_eq!(Capture { head: "a".into(), ..Capture::default() }.to_text(), "a");
    }
}
