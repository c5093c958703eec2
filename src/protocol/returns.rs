//! Carriage returns. If all lines of a reply end in carriage returns alone, these are read as line feeds. A command
//! with a carriage return inside a line is refused, because a terminal would not show the command that runs. Pure.

use std::borrow::Cow;

use memchr::memchr;

use super::mistake::Problem;
use super::{Mistake, Warning, WarningKind};

/// Replaces carriage returns by line feeds if a text contains no line feeds. Offsets stay the same.
pub(super) fn with_line_feeds(text: &str) -> Cow<'_, str> {
    let holds = |byte| memchr(byte, text.as_bytes()).is_some();
    if holds(b'\n') || !holds(b'\r') { text.into() } else { text.replace('\r', "\n").into() }
}

/// Removes the carriage returns of a command if each of its lines ends in one, with a warning. `first` is the line of
/// the reply on which the command begins, if it is known.
///
/// # Errors
/// A line contains a carriage return that is not at its end, or only some lines end in one.
pub(super) fn strip(
    command: String,
    first: Option<usize>,
    warnings: &mut Vec<Warning>,
) -> Result<String, Problem> {
    if memchr(b'\r', command.as_bytes()).is_none() {
        return Ok(command);
    }
    let stripped = command.replace("\r\n", "\n");
    let stripped = stripped.strip_suffix('\r').unwrap_or(&stripped);
    let are_mixed = command.matches('\n').count() > command.matches("\r\n").count();
    let before = |text: &str| text.split_once('\r').map(|(before, _)| before.matches('\n').count());
    if let Some(n) = before(stripped).or_else(|| before(&command).filter(|_| are_mixed)) {
        let line = match first {
            Some(first) => format!("line {} of the reply", first + n),
            None => format!("line {} of the command", n + 1),
        };
        let phrase = format!(
            "{line} contains a carriage return (U+000D), so a terminal would show a different command from the one that runs: send it without carriage returns (printf '\\r' writes one)"
        );
        return Err(Problem::new(Mistake::CommandUnclear, phrase));
    }
    let from = first.map(|line| format!(" from line {line} on")).unwrap_or_default();
    let text = format!(
        "the lines of the command{from} ended in carriage returns (U+000D), which were removed: end lines with line feeds alone"
    );
    warnings.push(Warning::new(WarningKind::StrangeCharacters, text));
    Ok(stripped.to_owned())
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
            let mut warnings = Vec::new();
            let stripped = strip(command.to_owned(), None, &mut warnings).unwrap();
            assert_eq!(stripped, plain.unwrap_or(command));
            assert_eq!(warnings.is_empty(), plain.is_none(), "{command:?}");
        }
        for (command, line) in
            [("rm a\rls", 1), ("ls\nrm a\rls\r\n", 2), ("ls\r\r\n", 1), ("ls\ncd a\r\nls\n", 2)]
        {
            let problem = strip(command.to_owned(), Some(7), &mut Vec::new()).unwrap_err();
            let phrase = format!("line {} of the reply contains", line + 6);
            assert!(problem.phrase.starts_with(&phrase), "{command:?}: {}", problem.phrase);
        }
    }
}
