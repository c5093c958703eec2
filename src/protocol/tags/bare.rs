//! Tags whose brackets were lost: `DELETE_FILE path="a"`, `(DELETE_FILE path="a")`, and `RUN_COMMAND` up to
//! `/RUN_COMMAND`.

use memchr::memmem;

use super::catalogue::COMMANDS;
use super::lead::lead;
use super::line::line_end;
use super::marks::{Mark, What};
use super::repairs::Repairs;
use crate::protocol::Kind;

/// What names of commands end with that no other words have; `SEARCH` only where a pattern follows.
const ENDS: [&str; 3] = ["_FILE", "_COMMAND", "SEARCH pattern"];

/// All of them up to `limit`, in no order. With its attributes, or closed as it was opened, and alone on
/// its line such a line is a tag in other brackets; decorated otherwise it only seems to be one.
pub(super) fn find(text: &str, limit: usize) -> Vec<Mark> {
    let mut marks = Vec::new();
    // A command without attributes is one only where something closes it.
    let mut open: Option<Mark> = None;
    for end in ENDS {
        for at in memmem::find_iter(&text.as_bytes()[..limit], end) {
            let Some(mark) = name(text, at) else { continue };
            let rest = &text[mark.name_end..line_end(text, mark.name_end)];
            let is_run = mark.command().kind == Kind::Run;
            let inner = rest.trim_end().trim_end_matches([')', '}']).trim_end();
            if mark.what == What::MisspeltClosing {
                marks.extend(open.take().filter(|_| is_run));
                marks.push(mark);
            } else if is_run && inner.is_empty() && mark.what == What::Misspelt {
                open = Some(mark);
            } else if are_attributes(inner) {
                marks.push(mark);
            }
        }
    }
    marks
}

/// The name that a part of it at an offset belongs to, where it begins its line: as a mark, whatever
/// follows it.
fn name(text: &str, at: usize) -> Option<Mark> {
    const LONGEST: usize = 12;
    let before = &text.as_bytes()[at.saturating_sub(LONGEST)..at];
    let letters = before.iter().rev().take_while(|c| c.is_ascii_uppercase()).count();
    let begin = at - letters;
    let rest = &text[begin..];
    let ends =
        |rest: &str| rest.chars().next().is_none_or(|c| c.is_whitespace() || ")}".contains(c));
    let is_it = |name: &str| rest.strip_prefix(name).is_some_and(ends);
    let (which, command) = (0..).zip(&COMMANDS).find(|(_, command)| is_it(command.name))?;
    let name_end = begin + command.name.len();
    let slash = text[..begin].ends_with('/');
    let open = begin - usize::from(slash);
    let open = open - usize::from(text[..open].ends_with(['(', '{']));
    // Behind the end of thoughts or a REPLY line there may be others on that line.
    let is_line = |at: usize| at == 0 || text.as_bytes()[at - 1] == b'\n';
    let lead = lead(text, open).filter(|lead| is_line(lead.line))?;
    let tail = text[name_end..line_end(text, name_end)].trim();
    let what = if slash {
        let is_alone = tail.chars().all(|c| ")}".contains(c));
        (is_alone && command.closing.is_some()).then_some(What::MisspeltClosing)?
    } else if lead.repairs.is_none() {
        What::Misspelt
    } else {
        What::Seems
    };
    let mut mark = Mark::of(what, lead.line, open, name_end);
    mark.set_command(which);
    if what == What::Seems {
        mark.repairs.add(Repairs::EMPHASIS);
    }
    Some(mark)
}

/// Whether a text is attributes with their values in quotes, and nothing else but decoration.
fn are_attributes(text: &str) -> bool {
    const QUOTES: [char; 4] = ['"', '\'', '“', '”'];
    let (mut rest, mut some) = (text.trim(), false);
    loop {
        let key = rest.len()
            - rest.trim_start_matches(|c: char| c.is_ascii_lowercase() || c == '_').len();
        let value = rest[key..].trim_start().strip_prefix('=').map(str::trim_start);
        let inner = value.and_then(|value| value.strip_prefix(QUOTES));
        let Some((_, behind)) = inner.and_then(|inner| inner.split_once(QUOTES)) else {
            return some && rest.trim_matches(['*', '_', '`', ' ']).is_empty();
        };
        if key == 0 {
            return false;
        }
        some = true;
        rest = behind.trim_start();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_attributes_alone_is_a_tag() {
        for text in [" path=\"a\"", " path='a' to=“b”", " path=\"a\"**"] {
            assert!(are_attributes(text), "{text}");
        }
        for text in ["", " path", " path=\"a\" removes it", " path=a", " =\"a\"", " path=\"a"] {
            assert!(!are_attributes(text), "{text}");
        }
    }
}
