//! The bounds of a value: in quotes, as a word of its own, in an element of XML.

use std::ops::Range;

/// The longest value.
pub(super) const LONGEST: usize = 600;

/// Behind the bytes from `at` on that are of a kind, at most so many.
pub(super) fn skip(text: &[u8], at: usize, most: usize, of: fn(u8) -> bool) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    at + rest.iter().take(most).take_while(|byte| of(**byte)).count()
}

/// What follows the quote at `at`, and which it is; it may be escaped.
pub(super) fn quoted(text: &[u8], at: usize) -> Option<(usize, u8)> {
    let quote = skip(text, at, 4, |byte| byte == b'\\');
    text.get(quote)
        .filter(|byte| matches!(byte, b'"' | b'\'' | b'`'))
        .map(|byte| (quote + 1, *byte))
}

/// What a literal at `at` holds, where that is one word: `"…"`, `"""…"""`, `"\"…\""`. With `is_cut` the
/// text may end within it.
pub(super) fn literal(text: &[u8], at: usize, is_cut: bool) -> Option<Range<usize>> {
    let (mut from, mut quote) = quoted(text, at)?;
    if text[from..].starts_with(&[quote, quote]) {
        from += 2;
    } else if text.get(from) == Some(&b'\\') {
        (from, quote) = quoted(text, from)?;
    }
    let inside = |byte: &&u8| byte.is_ascii_graphic() && **byte != quote && **byte != b'\\';
    let length = text[from..].iter().take(LONGEST).take_while(inside).count();
    let closed = text.get(from + length).map_or(is_cut, |byte| *byte == quote || *byte == b'\\');
    closed.then_some(from..from + length)
}

/// The word at `at` that stands without quotes, where it ends as a value does.
pub(super) fn bare(text: &[u8], at: usize) -> Option<Range<usize>> {
    const NO_PART: &[u8] = b"\"'`,;()<>{}[]|\\&";
    const BEHIND: &[u8] = b"\"'`,;&\\)}|";
    let part = |byte: &&u8| byte.is_ascii_graphic() && !NO_PART.contains(byte);
    let length = text.get(at..)?.iter().take(LONGEST).take_while(part).count();
    let ends = text
        .get(at + length)
        .is_none_or(|byte| byte.is_ascii_whitespace() || BEHIND.contains(byte));
    ends.then_some(at..at + length)
}

/// What an element of XML holds that begins at `from`, where that is one word.
pub(super) fn element(text: &[u8], from: usize) -> Option<Range<usize>> {
    let inside = |byte: &&u8| byte.is_ascii_graphic() && !matches!(byte, b'<' | b'>');
    let length = text[from..].iter().take(LONGEST).take_while(inside).count();
    text[from + length..].starts_with(b"</").then_some(from..from + length)
}
