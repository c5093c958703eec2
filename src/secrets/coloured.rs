//! A text without the colours that terminals show it in: `grep --color` writes them into a token where
//! what was looked for begins and ends.

use super::Span;

/// A text without sequences such as `␛[1;31m`, raw or as an outbox shows them.
pub(super) struct Uncoloured {
    pub(super) text: String,
    /// From which byte on so many bytes were left out before it, in order.
    left_out: Vec<(usize, usize)>,
}

impl Uncoloured {
    /// None where there are none.
    pub(super) fn of(text: &str) -> Option<Self> {
        let mut plain = Self { text: String::new(), left_out: Vec::new() };
        let (mut at, mut from, mut gone) = (0, 0, 0);
        while let Some(found) = next(&text[from..]) {
            let start = from + found;
            from = start + 1;
            while !text.is_char_boundary(from) {
                from += 1;
            }
            let Some(length) = sequence(&text.as_bytes()[start..]) else { continue };
            plain.text.push_str(&text[at..start]);
            (at, from, gone) = (start + length, start + length, gone + length);
            plain.left_out.push((plain.text.len(), gone));
        }
        if plain.left_out.is_empty() {
            return None;
        }
        plain.text.push_str(&text[at..]);
        Some(plain)
    }

    /// A part of it as the part of the text that it was taken from, from its first byte to its last.
    pub(super) fn back(&self, span: &Span) -> Span {
        let back = |at: usize| {
            let n = self.left_out.partition_point(|(from, _)| *from <= at);
            at + n.checked_sub(1).map_or(0, |n| self.left_out[n].1)
        };
        let start = back(span.range.start);
        let last = span.range.end.checked_sub(1).filter(|last| *last >= span.range.start);
        let range = start..last.map_or(start, |last| back(last) + 1);
        Span { range, ..span.clone() }
    }
}

/// `ESC` as an outbox shows it.
const SHOWN: &str = "␛";
/// What nobody sees in a text. NUL stands between the letters of one in UTF-16.
const UNSEEN: [&str; 7] =
    ["\0", "\u{ad}", "\u{200b}", "\u{200c}", "\u{200d}", "\u{2060}", "\u{feff}"];

/// Where a sequence may begin next: by its first byte, which many other characters have.
fn next(text: &str) -> Option<usize> {
    text.bytes().position(|byte| matches!(byte, 0 | 0x1b | 0xc2 | 0xe2 | 0xef))
}

/// How long the sequence is that a text begins with, if it is one of colour, clears a line, or is nothing
/// that is seen.
fn sequence(text: &[u8]) -> Option<usize> {
    if let Some(unseen) = UNSEEN.iter().find(|unseen| text.starts_with(unseen.as_bytes())) {
        return Some(unseen.len());
    }
    let rest = text.strip_prefix(b"\x1b").or_else(|| text.strip_prefix(SHOWN.as_bytes()))?;
    let length = match rest.first()? {
        // As `tput sgr0` chooses a character set.
        b'(' => usize::from(rest.get(1)?.is_ascii_alphanumeric()) * 2,
        b'[' => {
            let is_number = |byte: &&u8| matches!(byte, b'0'..=b'9' | b';' | b':');
            let numbers = rest[1..].iter().take_while(is_number).count();
            let ends = matches!(rest.get(1 + numbers)?, b'm' | b'K');
            usize::from(ends) * (numbers + 2)
        }
        _ => 0,
    };
    (length > 0).then(|| text.len() - rest.len() + length)
}

#[cfg(test)]
mod tests {
    use super::super::screen;
    use super::*;

    /// Never written down as it is.
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
            let screened = screen(&text, None);
            assert!(screened.text.contains("[withheld: GitHub token]"), "{}", screened.text);
            assert!(!screened.text.contains(after), "{}", screened.text);
            assert!(screened.text.ends_with(&format!("{escape}[0m end\n")), "{}", screened.text);
        }
    }

    #[test]
    fn what_nobody_sees_does_not_hide_one_either() {
        let token = token();
        for between in ["\u{1b}(B", "␛(B␛[m", "\u{200b}", "\u{ad}\u{2060}", "\u{feff}"] {
            let text = format!("é {}{between}{} end\n", &token[..20], &token[20..]);
            let screened = screen(&text, None);
            assert_eq!(screened.text, "é [withheld: GitHub token] end\n", "{between:?}");
        }
    }

    #[test]
    fn what_is_no_sequence_stays() {
        for text in ["", "␛", "␛[", "␛[31", "␛]0;x\u{7}", "∆␛x", "\u{1b}", "␛[2J", "ï é ∆"]
        {
            assert!(Uncoloured::of(text).is_none(), "{text}");
        }
        let plain = Uncoloured::of("a␛[mb\u{1b}[1;2Kc␛d").unwrap();
        assert_eq!(plain.text, "abc␛d");
    }
}
