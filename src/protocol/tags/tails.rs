//! What stands behind a tag's name on its line.

use memchr::memmem;

use super::repairs::{Repairs, is_zero_width};

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
