//! What stands behind a tag's name on its line.

use memchr::memmem;

use super::catalogue::Command;
use super::fences::fence_of;
use super::repairs::{Repairs, is_zero_width};
use crate::protocol::Kind;

/// Where a tag ends, from its name on: behind the first `]` outside of quotes.
pub(super) fn end_of_tag(tail: &str) -> Option<usize> {
    unquoted(tail).find(|(_, byte)| *byte == b']').map(|(at, _)| at + 1)
}

/// The bytes of a text that are in no quotes, each with where it stands.
fn unquoted(text: &str) -> impl Iterator<Item = (usize, u8)> {
    let mut is_quoted = false;
    text.bytes().enumerate().filter(move |(_, byte)| {
        is_quoted ^= *byte == b'"';
        !is_quoted
    })
}

/// Whether a tag ends where its line does, with no closing tag in it but in a value.
pub(super) fn is_one_tag(tail: &str) -> bool {
    match end_of_tag(tail) {
        Some(end) if end < tail.len() => false,
        Some(_) => !unquoted(tail).any(|(at, byte)| byte == b'/' && tail[..at].ends_with('[')),
        // Of quotes that do not come in pairs nobody knows what is in them.
        None => tail.ends_with(']') && memmem::find(tail.as_bytes(), b"[/").is_none(),
    }
}

/// The rest of a tag's line without blanks and what closes its decoration.
pub(super) fn without_suffix(rest: &str, repairs: Repairs) -> &str {
    let emphasis = is_enclosed(repairs);
    rest.trim_end_matches(|c: char| {
        c.is_whitespace() || is_zero_width(c) || emphasis && matches!(c, '*' | '_' | '`' | '~')
    })
}

/// The same without the fence that is glued behind it: three or more of a sign, at its end.
pub(super) fn without_fence(tail: &str) -> Option<&str> {
    let sign = tail.chars().next_back().filter(|c| matches!(c, '`' | '~'))?;
    let before = tail.trim_end_matches(sign);
    (tail.len() - before.len() >= 3 && !before.contains(sign)).then(|| before.trim_end())
}

/// What follows a tag on its line, without a fence behind all of it: where the tag is alone, or its block
/// ends there.
pub(super) fn without_fence_behind<'a>(
    command: &Command,
    after: &'a str,
    repairs: &mut Repairs,
) -> &'a str {
    let is_whole = |before: &&str| match command.closing {
        Some(closing) => before.ends_with(closing),
        None => before.is_empty() && command.kind != Kind::Reply,
    };
    let Some(before) = without_fence(after).filter(is_whole) else { return after };
    repairs.add(Repairs::FENCE);
    before
}

/// Whether a fence is open where a body ends, so that one behind its closing tag may be of that.
pub(super) fn is_in_a_fence(body: &str) -> bool {
    let mut open: Option<&str> = None;
    for line in body.lines() {
        let Some(fence) = fence_of(line) else { continue };
        open = match open {
            None => Some(fence),
            Some(first) if fence.starts_with(first) && line.trim() == fence => None,
            Some(first) => Some(first),
        };
    }
    open.is_some()
}

/// Whether what stands before a tag is closed behind it.
fn is_enclosed(repairs: Repairs) -> bool {
    [Repairs::EMPHASIS, Repairs::STRUCK, Repairs::FENCE].iter().any(|sign| repairs.has(*sign))
}

/// What follows a tag on its line, without what closes its decoration: right behind it, or where the
/// line ends with a tag. Anywhere else such signs are of the text.
pub(super) fn without_decoration(after: &str, repairs: Repairs) -> &str {
    let inner = without_suffix(after, repairs);
    if inner.is_empty() || inner.ends_with(']') {
        return inner.trim();
    }
    let after = without_suffix(after, Repairs::default());
    let inner = after.trim_start_matches(['*', '_', '`', '~']);
    if is_enclosed(repairs) && inner.starts_with(char::is_whitespace) {
        inner.trim()
    } else {
        after.trim()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_behind_a_tag_is_told_from_one_of_its_body() {
        assert_eq!(without_fence("]````"), Some("]"));
        assert_eq!(without_fence("] ~~~"), Some("]"));
        for tail in ["]", "]``", "]```bash", "] `a` ```", "````x"] {
            assert_eq!(without_fence(tail), None, "{tail}");
        }
        for (body, is_open) in [
            ("```\nls\n", true),
            ("```sh\nls\n```\n", false),
            ("````\n```\nls\n```\n", true),
            ("~~~\n```\n~~~\n", false),
            ("ls ```\n", false),
            ("", false),
        ] {
            assert_eq!(is_in_a_fence(body), is_open, "{body}");
        }
    }

    #[test]
    fn a_tag_is_one_up_to_the_first_bracket_outside_of_quotes() {
        for tail in ["]", " path=\"a]b\"]", " path=\"a[/b\" end=\"T\"]", " path='a\"b']"] {
            assert!(is_one_tag(tail), "{tail}");
        }
        for tail in ["", " path=\"a\"", "] x", "]x[/DONE]", " [/b]", " \"[/b]", " path=\"a\" [/b]"]
        {
            assert!(!is_one_tag(tail), "{tail}");
        }
    }
}
