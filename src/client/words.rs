//! Lines looked at from outside, and words for people about them.

use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::IgnoredAny;

use crate::protocol::jsonrpc::request;
use crate::text::visible_line;

/// No wait is longer, so that its end is a time that can be told.
pub(super) const LONGEST: Duration = Duration::from_hours(365 * 24);
/// So much is quoted of what a program wrote on standard error, in characters.
const SAID_LENGTH: usize = 500;
/// So much is quoted of a line, in characters.
const QUOTED_LENGTH: usize = 120;

/// The line of a request, or why there is none. JSON that is handed through may stand on many lines; within
/// strings there are no line ends.
pub(super) fn line(id: u64, method: &str, params: &impl Serialize) -> Result<String, String> {
    let fail = |e| format!("the parameters of '{method}' make no JSON: {e}");
    let params = serde_json::to_string(params).map_err(fail)?.replace('\n', " ");
    let params = serde_json::value::RawValue::from_string(params).map_err(fail)?;
    Ok(request(Some(id), method, &params))
}

/// Whether a line is an object of JSON, as every answer is.
pub(super) fn is_object(line: &[u8]) -> bool {
    line.trim_ascii_start().starts_with(b"{") && serde_json::from_slice::<IgnoredAny>(line).is_ok()
}

/// When so long a wait ends.
pub(super) fn end_of(patience: Duration) -> Instant {
    Instant::now() + patience.min(LONGEST)
}

/// Whether a line holds more than so many values, each of which takes many times the room of its text.
pub(super) fn is_crowded(line: &[u8], limit: usize) -> bool {
    let (mut values, mut in_text, mut escaped) = (0_usize, false, false);
    line.len() > limit
        && line.iter().any(|byte| {
            match (in_text, byte) {
                (true, _) if escaped => escaped = false,
                (true, b'\\') => escaped = true,
                (_, b'"') => in_text = !in_text,
                (false, b',' | b'[' | b'{') => values += 1,
                _ => {}
            }
            values > limit
        })
}

/// The beginning of a line, to be read by a person.
pub(super) fn quoted(line: &[u8]) -> String {
    // A character has four bytes at most.
    let cut = &line[..line.len().min(4 * (QUOTED_LENGTH + 1))];
    let text = String::from_utf8_lossy(cut);
    let text = text.trim_end();
    match text.char_indices().nth(QUOTED_LENGTH) {
        None => format!("'{}'", visible_line(text)),
        Some((end, _)) => format!("'{}…' ({} bytes)", visible_line(&text[..end]), line.len()),
    }
}

/// What is wrong with a line, which may quote the line itself: in one line of bounded length.
pub(super) fn brief(why: &str) -> String {
    match why.char_indices().nth(SAID_LENGTH) {
        None => visible_line(why).into_owned(),
        Some((end, _)) => format!("{}…", visible_line(&why[..end])),
    }
}

/// The end of what was written on standard error.
pub(super) fn last_of(said: &str) -> String {
    match said.char_indices().rev().nth(SAID_LENGTH - 1) {
        None | Some((0, _)) => said.to_owned(),
        Some((start, _)) => format!("…{}", &said[start..]),
    }
}
