//! Carriage returns. They are line ends in a reply that has no others, and an error in a command where a terminal would
//! show another line than the one that runs. Pure.

use std::borrow::Cow;

use memchr::memchr;

/// A reply with line feeds in place of its carriage returns if its lines end in those alone. Offsets stay the same.
pub(super) fn with_line_feeds(text: &str) -> Cow<'_, str> {
    let holds = |byte| memchr(byte, text.as_bytes()).is_some();
    if holds(b'\n') || !holds(b'\r') { text.into() } else { text.replace('\r', "\n").into() }
}

/// Removes the carriage returns of a command whose lines all end in one. None if it has none.
///
/// # Errors
/// The number of the first line, from 1, that has a carriage return elsewhere, or at its end though other lines have
/// none.
pub(super) fn without(command: &str) -> Result<Option<String>, usize> {
    if memchr(b'\r', command.as_bytes()).is_none() {
        return Ok(None);
    }
    let inner = |line: &str| line.trim_end_matches('\n').strip_suffix('\r').map(str::len);
    let is_wrong = |line: &str| line[..inner(line).unwrap_or(line.len())].contains('\r');
    let lines = || command.split_inclusive('\n');
    // The last line may have no end.
    let is_plain = |line: &str| line.ends_with('\n') && inner(line).is_none();
    let ends = lines().position(|line| inner(line).is_some());
    match lines().position(is_wrong).or(ends.filter(|_| lines().any(is_plain))) {
        Some(line) => Err(line + 1),
        None => Ok(Some(command.replace('\r', ""))),
    }
}

/// Why a command is rejected if the line of this name has a carriage return.
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
