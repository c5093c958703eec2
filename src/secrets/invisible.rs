//! Removes invisible parts of a text: terminal colours (`grep --color` writes them into a token where a match begins
//! and ends) and characters without a width.

use super::SecretSpan;
use super::rules::PATTERNS;

/// A text without its invisible parts.
pub(super) struct VisibleText {
    pub(super) text: String,
    /// Positions in `text`, each with the number of bytes removed before it.
    removed: Vec<(usize, usize)>,
}

impl VisibleText {
    /// Returns None if nothing was removed.
    pub(super) fn of(text: &str) -> Option<Self> {
        let mut hits = PATTERNS.invisible.find_iter(text.as_bytes()).peekable();
        hits.peek()?;
        let mut visible = Self { text: String::new(), removed: Vec::new() };
        let mut at = 0;
        for hit in hits {
            visible.text.push_str(&text[at..hit.start()]);
            at = hit.end();
            visible.removed.push((visible.text.len(), at - visible.text.len()));
        }
        visible.text.push_str(&text[at..]);
        Some(visible)
    }

    /// Maps a span of the visible text to the original text, from its first byte to its last.
    pub(super) fn original(&self, span: &SecretSpan) -> SecretSpan {
        let original = |at: usize| {
            let n = self.removed.partition_point(|(from, _)| *from <= at);
            at + n.checked_sub(1).map_or(0, |n| self.removed[n].1)
        };
        let start = original(span.range.start);
        let last = span.range.end.checked_sub(1).filter(|last| *last >= span.range.start);
        let end = last.map_or(start, |last| original(last) + 1);
        SecretSpan { range: start..end, ..span.clone() }
    }
}
#[cfg(test)]
mod tests {
    use super::super::redact;
    use super::*;

    /// Composed from pieces, so that this file contains no token.
    fn token() -> String {
        ["gh", "p_", "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"].concat()
    }

    #[test]
    fn colours_within_a_token_do_not_hide_it() {
        let token = token();
        for (escape, at) in [("\u{1b}", 4), ("␛", 4), ("␛", 9), ("\u{1b}", 39)] {
            let (before, after) = token.split_at(at);
            let text = format!(
                "ä{escape}[01;31m{escape}[K{before}{escape}[m{escape}[K{after}{escape}[0m end\n"
            );
            let redacted = redact(&text, None);
            assert!(redacted.text.contains("[withheld: GitHub token]"), "{}", redacted.text);
            assert!(!redacted.text.contains(after), "{}", redacted.text);
            assert!(redacted.text.ends_with(&format!("{escape}[0m end\n")), "{}", redacted.text);
        }
    }

    #[test]
    fn what_nobody_sees_does_not_hide_one_either() {
        let token = token();
        for between in ["\u{1b}(B", "␛(B␛[m", "\u{200b}", "\u{ad}\u{2060}", "\u{feff}"] {
            let text = format!("é {}{between}{} end\n", &token[..20], &token[20..]);
            let redacted = redact(&text, None);
            assert_eq!(redacted.text, "é [withheld: GitHub token] end\n", "{between:?}");
        }
    }

    #[test]
    fn what_is_no_sequence_stays() {
        for text in ["", "␛", "␛[", "␛[31", "␛]0;x\u{7}", "∆␛x", "\u{1b}", "␛[2J", "ï é ∆"]
        {
            assert!(VisibleText::of(text).is_none(), "{text}");
        }
        let plain = VisibleText::of("a␛[mb\u{1b}[1;2Kc␛d").unwrap();
        assert_eq!(plain.text, "abc␛d");
    }
}
