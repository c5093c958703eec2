//! Characters of a command that a chat window may have escaped, and carriage returns in it.

use memchr::memchr_iter;

use super::wrong::{Wrong, wrong};
use crate::protocol::{Mistake, Warning, WarningSort, returns};

/// Why nobody can say which command a body is that begins on `line`, behind a tag that came escaped.
pub(super) fn doubt(body: &str, line: usize) -> Option<Wrong> {
    let (at, shown) = first(body)?;
    let line = line + memchr_iter(b'\n', &body.as_bytes()[..at]).count();
    let told = format!(
        "the characters of the tag came escaped (\\), and so may have those of the command (`{shown}` on line {line}), so what it was is not known: send it in a code block; it stands"
    );
    Some(wrong(Mistake::CommandUnclear, told))
}

/// Where the first stands, as it is written: `\_`. A shell knows some of them, too, so they tell something
/// only behind a tag that came escaped.
fn first(body: &str) -> Option<(usize, &str)> {
    let is_escaped = |byte: &u8| b"_*[]()#<>~`&|!+-.{}".contains(byte);
    let at = memchr_iter(b'\\', body.as_bytes())
        .find(|at| body.as_bytes().get(at + 1).is_some_and(is_escaped))?;
    Some((at, &body[at..at + 2]))
}

/// A command that begins on `line` without the carriage returns that its lines end in.
pub(super) fn without_returns(
    command: String,
    line: usize,
    warnings: &mut Vec<Warning>,
) -> Result<String, Wrong> {
    match returns::without(&command) {
        Ok(None) => Ok(command),
        Ok(Some(plain)) => {
            let told = format!(
                "the lines of the command from line {line} on ended in carriage returns (U+000D), which were taken off"
            );
            warnings.push(Warning::new(WarningSort::StrangeCharacters, told));
            Ok(plain)
        }
        Err(n) => {
            let told = returns::told(&format!("line {} of the reply", line + n - 1));
            Err(wrong(Mistake::CommandUnclear, told))
        }
    }
}
