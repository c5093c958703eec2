//! Finds characters in a command that a chat window may have escaped.

use memchr::memchr_iter;

use crate::protocol::Mistake;
use crate::protocol::mistake::Problem;

/// Why the command in a body is unclear, if its tag arrived escaped: it contains escaped characters, too. Shells use
/// some of these escapes, so they prove nothing after an unescaped tag. The body begins on `line`.
pub(super) fn doubt(body: &str, line: usize) -> Option<Problem> {
    let is_escaped = |byte: &u8| b"_*[]()#<>~`&|!+-.{}".contains(byte);
    let at = memchr_iter(b'\\', body.as_bytes())
        .find(|at| body.as_bytes().get(at + 1).is_some_and(is_escaped))?;
    let line = line + memchr_iter(b'\n', &body.as_bytes()[..at]).count();
    let phrase = format!(
        "the characters of the tag arrived escaped (\\), and so may have those of the command (`{}` on line {line}), so what it was is unclear: send it in a code block",
        &body[at..at + 2]
    );
    Some(Problem::new(Mistake::CommandUnclear, phrase))
}
