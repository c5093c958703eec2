//! What a command wrote, bounded.

use serde::{Deserialize, Serialize};

use crate::text::count;

/// What a command wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Output {
    /// Both streams in the order written.
    Together(Capture),
    /// Each by itself.
    #[serde(rename_all = "camelCase")]
    Apart {
        /// Standard output.
        stdout: Capture,
        /// Standard error.
        stderr: Capture,
    },
}

impl Default for Output {
    fn default() -> Self {
        Self::Together(Capture::default())
    }
}

impl Output {
    /// What was written, one stream after the other where they were kept apart.
    pub fn captures(&self) -> Vec<&Capture> {
        match self {
            Self::Together(capture) => vec![capture],
            Self::Apart { stdout, stderr } => vec![stdout, stderr],
        }
    }

    /// At most `limit` characters of each stream.
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

/// Output of a command, bounded: its beginning and its end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Capture {
    /// The first characters, or all of them.
    pub head: String,
    /// How many characters were left out between `head` and `tail`.
    pub left_out: u64,
    /// The last characters; empty where nothing was left out.
    pub tail: String,
}

impl Capture {
    /// What was written, with a line between head and tail that counts what was left out.
    pub fn to_text(&self) -> String {
        self.text_of(&self.head, &self.tail)
    }

    /// The same made of other words for head and tail.
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

    /// At most `limit` characters of it, half of them from its beginning.
    #[must_use]
    pub fn within(&self, limit: usize) -> Self {
        let (head, tail) = (self.head.chars().count(), self.tail.chars().count());
        if head + tail <= limit {
            return self.clone();
        }
        // Where head or tail is shorter than its half, the other has its room.
        let first = match self.left_out {
            0 => limit.div_ceil(2),
            _ => limit.div_ceil(2).max(limit.saturating_sub(tail)).min(head),
        };
        let all = || self.head.chars().chain(self.tail.chars());
        let rest = limit - first;
        Self {
            head: all().take(first).collect(),
            left_out: self.left_out + (head + tail - limit) as u64,
            tail: all().skip(head + tail - rest).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(head: &str, left_out: u64, tail: &str, limit: usize) -> (String, u64, String) {
        let capture = Capture { head: head.into(), left_out, tail: tail.into() };
        let Capture { head, left_out, tail } = capture.within(limit);
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
    fn what_was_left_out_is_counted_on_a_line_of_its_own() {
        let text = |head: &str, left_out| {
            Capture { head: head.into(), left_out, tail: "z".into() }.to_text()
        };
        assert_eq!(text("a", 2), "a\n[... 2 characters left out ...]\nz");
        assert_eq!(text("a\n", 1), "a\n[... 1 character left out ...]\nz");
        assert_eq!(Capture { head: "a".into(), ..Capture::default() }.to_text(), "a");
    }
}
