//! Checks code fences around a text. A fence that encloses a whole file or command is removed with a warning. Other
//! fences are kept with a warning, or the text is refused. Pure.

use std::fmt::Display;

use crate::protocol::mistake::{Problem, brief};
use crate::protocol::{Mistake, Warning, WarningKind};

/// If the whole of a text is in a fence, removes the fence, warns and returns the text inside; otherwise returns None.
/// `of` names the text in messages.
pub(in crate::protocol) fn strip<'a>(
    text: &'a str,
    of: &dyn Display,
    warnings: &mut Vec<Warning>,
) -> Result<Option<&'a str>, Problem> {
    let Some((fence, inner)) = around(text) else { return Ok(None) };
    if inner.lines().any(|line| closes(fence, line)) {
        let phrase = format!(
            "{of} begins and ends with a fence ({fence}) and contains another end of one, so what it encloses is not clear: send it without the fence around it"
        );
        return Err(Problem::new(Mistake::FenceUnclear, phrase));
    }
    let text = format!("the fence around {of} was removed: send it without one");
    warnings.push(Warning::new(WarningKind::FenceTakenOff, text));
    Ok(Some(inner))
}

/// A text without a fence that encloses all of it.
pub(in crate::protocol) fn inside(text: &str) -> &str {
    strip(text.trim_end(), &"", &mut Vec::new()).ok().flatten().unwrap_or(text)
}

/// Refuses a new text that is completely in a fence and replaces a part of a code file, because the fence may be meant
/// as content, for example in a comment. It is accepted if the old text has a fence, too, or if it is indented.
pub(in crate::protocol) fn refuse_around_part(
    old: &str,
    new: &str,
    of: &dyn Display,
) -> Result<(), Problem> {
    let is_fenced = new.starts_with(['`', '~']) && around(new).is_some();
    if !is_fenced || old.lines().any(|line| fence_of(line).is_some()) {
        return Ok(());
    }
    let first = brief(new.lines().next().unwrap_or_default().trim());
    let phrase = format!(
        "{of} begins with a fence (`{first}`) and ends with one, so whether the file is to contain that fence is not clear: send the text without it, or, if the file is to contain it, with a line of the file above or below it in both texts"
    );
    Err(Problem::new(Mistake::FenceUnclear, phrase))
}

/// A warning about a fence that begins or ends a code text without enclosing it. `first` is the number of the line on
/// which the text begins. `whose` follows the line number in the message.
pub(in crate::protocol) fn warn_kept(text: &str, first: usize, whose: &str) -> Option<Warning> {
    let (begin, inner) = (text.len() - text.trim_start().len(), text.trim());
    let last = inner.rfind('\n').map_or(0, |n| n + 1);
    let ends = [0, last].map(|at| (begin + at, inner[at..].lines().next().unwrap_or_default()));
    let (at, shown) = ends.into_iter().find(|(_, end)| fence_of(end).is_some())?;
    let line = first + memchr::memchr_iter(b'\n', &text.as_bytes()[..at]).count();
    let text = format!(
        "line {line}{whose} `{}` looks like a fence around the body, but the fence is not its first and its last line; it was kept",
        brief(shown)
    );
    Some(Warning::new(WarningKind::FenceKept, text))
}

/// The fence that a line opens, and the text after it. A line with more backticks after the first ones is a code span.
pub(in crate::protocol) fn opening(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let info = line.trim_start_matches(mark);
    let fence = &line[..line.len() - info.len()];
    (fence.len() >= 3 && (mark == '~' || !info.contains('`'))).then_some((fence, info))
}

/// The fence that a line opens, if no backticks follow it.
pub(in crate::protocol) fn fence_of(line: &str) -> Option<&str> {
    opening(line).filter(|(_, info)| !info.contains('`')).map(|(fence, _)| fence)
}

/// The fence with which a text begins and ends, and the text between.
fn around(text: &str) -> Option<(&str, &str)> {
    let (first, rest) = text.strip_suffix('\n').unwrap_or(text).split_once('\n')?;
    let fence = fence_of(first)?;
    let begin = rest.rfind('\n').map_or(0, |end| end + 1);
    closes(fence, &rest[begin..]).then_some((fence, &rest[..begin]))
}

/// Whether a line closes a fence.
pub(in crate::protocol) fn closes(fence: &str, line: &str) -> bool {
    let line = line.trim();
    line.len() >= fence.len() && line.bytes().all(|b| b == fence.as_bytes()[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_removed_from_a_whole_and_refused_around_a_part() {
        for (text, inner) in [
            ("```\nx\n```\n", Some("x\n")),
            ("~~~~rust\n```\n~~~~", Some("```\n")),
            ("```\n```\n", Some("")),
            ("```\nx\n", None),
            ("x\n```\n", None),
        ] {
            let mut warnings = Vec::new();
            assert_eq!(strip(text, &"it", &mut warnings).unwrap(), inner, "{text}");
            assert_eq!(warnings.is_empty(), inner.is_none(), "{text}");
            assert_eq!(refuse_around_part("x\n", text, &"it").is_err(), inner.is_some(), "{text}");
            assert!(refuse_around_part("a\n```\n", text, &"it").is_ok(), "{text}");
        }
        let several = "```\nx\n```\ny\n```\n";
        assert!(strip(several, &"it", &mut Vec::new()).is_err());
        assert!(refuse_around_part("x", several, &"it").is_err());
    }
}
