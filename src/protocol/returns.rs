//! Carriage returns: a reply that ends its lines with nothing else is read as lines, and a command is not
//! taken where a terminal would show another line than the one that runs. Pure.

use std::borrow::Cow;

use memchr::memchr;

/// A reply whose lines end in carriage returns alone, with line feeds in their place: each byte stays
/// where it is.
pub(super) fn with_line_feeds(text: &str) -> Cow<'_, str> {
    let holds = |byte| memchr(byte, text.as_bytes()).is_some();
    if holds(b'\n') || !holds(b'\r') { text.into() } else { text.replace('\r', "\n").into() }
}

/// A command without the carriage returns that all of its lines end in; None where it holds none.
///
/// # Errors
/// The number of the first line, from 1, that a terminal shows otherwise: it holds one elsewhere, or
/// ends in one where others do not.
pub(super) fn without(command: &str) -> Result<Option<String>, usize> {
    if memchr(b'\r', command.as_bytes()).is_none() {
        return Ok(None);
    }
    let mut plain = String::with_capacity(command.len());
    let (mut ends, mut bare) = (None, false);
    for (n, line) in (1..).zip(command.split_inclusive('\n')) {
        let (text, end) = line.strip_suffix('\n').map_or((line, ""), |text| (text, "\n"));
        let inner = text.strip_suffix('\r');
        if inner.unwrap_or(text).contains('\r') {
            return Err(n);
        }
        if inner.is_some() {
            ends = ends.or(Some(n));
        } else {
            // The last line may have no end.
            bare |= !end.is_empty();
        }
        plain.push_str(inner.unwrap_or(text));
        plain.push_str(end);
    }
    match ends {
        Some(line) if bare => Err(line),
        _ => Ok(Some(plain)),
    }
}

/// Why a command is not taken of which that line, as it is named, holds one.
pub(super) fn told(line: &str) -> String {
    format!(
        "{line} holds a carriage return (U+000D), so a terminal shows another command than the one that would run: send it without (where it is meant, printf '\\r' writes one)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_reply_without_line_feeds_gets_some() {
        assert_eq!(with_line_feeds("a\rb\r"), "a\nb\n");
        for text in ["", "a", "a\r\nb", "a\rb\n"] {
            assert_eq!(with_line_feeds(text), text);
        }
    }

    #[test]
    fn carriage_returns_are_taken_off_where_every_line_ends_in_one() {
        for (command, plain) in [
            ("ls", None),
            ("", None),
            ("cd a\r\nls\r\n", Some("cd a\nls\n")),
            ("cd a\r\n\r\nls", Some("cd a\n\nls")),
            ("ls\r", Some("ls")),
        ] {
            assert_eq!(without(command), Ok(plain.map(str::to_owned)), "{command:?}");
        }
        for (command, line) in
            [("rm a\rls", 1), ("ls\nrm a\rls\r\n", 2), ("ls\r\r\n", 1), ("ls\ncd a\r\nls\n", 2)]
        {
            assert_eq!(without(command), Err(line), "{command:?}");
        }
    }
}
