//! What is written like a tag and is none: commands in other brackets, and files shown as an outbox
//! shows them.

use std::collections::HashMap;

use memchr::{memchr, memmem};

use super::lead::lead;
use super::line::Line;
use super::marks::{Mark, What};
use super::names;

/// Brackets that a tag may come in, beside `<`.
pub(super) const BRACKETS: [&str; 9] =
    ["[[", "［", "【", "&#91;", "&#091;", "&#x5b;", "&#x5B;", "&lbrack;", "&lsqb;"];
/// What closes them.
const CLOSING: [&str; 10] =
    [">", "]", "］", "】", "&#93;", "&#093;", "&#x5d;", "&#x5D;", "&rbrack;", "&rsqb;"];

/// A tag in other brackets that is alone on its line: `<CREATE_FILE path="a">`.
pub(super) fn tag(text: &str, at: usize, line: &mut Line) -> Option<Mark> {
    let rest = &text[at..];
    let open = BRACKETS.iter().find(|open| rest.starts_with(**open)).map_or(1, |open| open.len());
    let name = names::exact(&rest[open..])?;
    let lead = lead(text, at).filter(|lead| lead.repairs.is_none())?;
    let shown = text[at..line.for_one_more(text, at)?].trim_end();
    let is_whole = CLOSING.iter().any(|closing| shown.ends_with(closing));
    is_whole.then(|| Mark::misspelt(&name, lead.line, at, at + open + name.length))
}

/// Where files are shown as an outbox shows them, up to `limit`: `--- a.py ---`, up to
/// `--- end a.py ---`.
pub(super) fn shown(text: &str, limit: usize) -> Vec<Mark> {
    const SIGN: &str = "--- ";
    let mut begun: HashMap<&str, usize> = HashMap::new();
    let mut marks = Vec::new();
    for at in memmem::find_iter(&text.as_bytes()[..limit], SIGN) {
        if at > 0 && text.as_bytes()[at - 1] != b'\n' {
            continue;
        }
        let rest = &text[at..];
        let end = memchr(b'\n', rest.as_bytes()).unwrap_or(rest.len());
        let inner = rest[SIGN.len()..end.max(SIGN.len())].trim_end().strip_suffix(" ---");
        let Some(name) = inner else { continue };
        match name.strip_prefix("end ").and_then(|name| begun.remove(name)) {
            Some(from) => marks.push(Mark::of(What::Shown, from, from, at + end)),
            None => {
                begun.insert(name, at);
            }
        }
    }
    marks
}
