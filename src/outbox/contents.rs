//! `## Requested File Contents`: files as the LLM asked for them.

use std::borrow::Cow;

use super::boundaries::boundary;
use super::parts;
use crate::protocol::{Failure, FailureKind};
use crate::session::Session;
use crate::text::{count, is_hazard, visible, visible_line};
use crate::workspace::Contents;
use crate::workspace::edit::count_lines;

/// A file that the LLM asked for, and what was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requested {
    /// The file, or its beginning, or why there is nothing.
    pub contents: Result<Contents, Failure>,
}

impl Requested {
    /// Whether it is shown, and what the results say of it, where all these were requested.
    pub(super) fn told(&self, beside: &[Self]) -> (bool, String) {
        let contents = match &self.contents {
            Err(failure) if failure.kind == FailureKind::Rejected => {
                return (false, format!("REJECTED: {}", visible_line(&failure.reason)));
            }
            Err(failure) => return (false, visible_line(&failure.reason).into_owned()),
            Ok(contents) => contents,
        };
        if let Some(lines) = contents.lines.as_ref().filter(|_| is_within_whole(contents, beside)) {
            return (true, parts::within_whole(contents.path.as_str(), lines));
        }
        let shown = shown_bytes(contents);
        let text = String::from_utf8_lossy(shown);
        let mut told = match &contents.lines {
            Some(lines) => parts::told(contents.path.as_str(), contents.size, lines),
            None => format!("'{}' is shown below ({} bytes", contents.path, contents.size),
        };
        if contents.lines.is_some() {
            // That says which lines they are.
        } else if shown.len() as u64 == contents.size {
            told.push_str(&format!(", {})", count(count_lines(shown), "line")));
        } else {
            let lines = count_lines(shown);
            told.push_str(&format!(
                "; only its first {} bytes, lines 1-{lines}: for more use RUN_COMMAND, as in sed -n '{},{}p')",
                shown.len(), lines + 1, lines + 400
            ));
        }
        for (holds, note) in [
            (is_without_newline(contents, shown), "its last line has no newline"),
            (shown.windows(2).any(|pair| pair == b"\r\n"), "its lines end in CRLF"),
            (matches!(text, Cow::Owned(_)), "it is not UTF-8; what is not shows as U+FFFD"),
            (
                text.replace("\r\n", "\n").chars().any(is_hazard),
                "control and invisible characters show as ␛ or <U+202E>",
            ),
        ] {
            if holds {
                told.push_str(&format!("; {note}"));
            }
        }
        (true, told)
    }
}

/// Renders the files that could be read, each once.
pub(super) fn render(session: &Session, requested: &[Requested], out: &mut String) {
    for (n, file) in requested.iter().enumerate() {
        let Ok(contents) = &file.contents else { continue };
        let shown = |earlier: &Requested| {
            let same = |earlier: &Contents| {
                earlier.path == contents.path && earlier.lines == contents.lines
            };
            earlier.contents.as_ref().is_ok_and(same)
        };
        if requested[..n].iter().any(shown) || is_within_whole(contents, requested) {
            continue;
        }
        let text = String::from_utf8_lossy(shown_bytes(contents));
        let mut text = visible(&text);
        let mut name = contents.path.to_string();
        if let Some(lines) = &contents.lines {
            text = parts::numbered(&text, lines).into();
            name = parts::name(&name, lines);
        }
        let mark = match boundary(session, &name, &text) {
            Some(word) => format!("{name} (boundary {word})"),
            None => name,
        };
        out.push_str(&format!("--- {mark} ---\n"));
        out.push_str(&text);
        if !text.is_empty() && !text.ends_with('\n') {
            out.push('\n');
        }
        out.push_str(&format!("--- end {mark} ---\n"));
    }
}

/// Whether lines of a file stand in the whole of it, which is shown, too. Numbered ones are shown all
/// the same.
fn is_within_whole(contents: &Contents, requested: &[Requested]) -> bool {
    let is_whole = |other: &Requested| {
        other.contents.as_ref().is_ok_and(|other| {
            let shows_all = other.lines.is_none() && other.bytes.len() as u64 == other.size;
            shows_all && other.path == contents.path
        })
    };
    contents.lines.is_some_and(|lines| !lines.numbered) && requested.iter().any(is_whole)
}

/// Whether the last line of what is shown is the file's last, and ends without a newline.
fn is_without_newline(contents: &Contents, shown: &[u8]) -> bool {
    let goes_on = contents.lines.is_some_and(|lines| lines.within_line);
    !shown.is_empty() && !shown.ends_with(b"\n") && !goes_on
}

/// The bytes that are shown: all, or whole lines of a file that is longer.
fn shown_bytes(contents: &Contents) -> &[u8] {
    let bytes = contents.bytes.as_slice();
    if contents.lines.is_some() || bytes.len() as u64 == contents.size {
        return bytes;
    }
    memchr::memrchr(b'\n', bytes).map_or(bytes, |n| &bytes[..=n])
}
