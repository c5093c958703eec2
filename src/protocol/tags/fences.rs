//! Fences around a text, in either dialect: taken off where one stands around all of a file or of a command,
//! with a warning; else kept with a warning, or refused. Pure.

use super::attributes::brief;
use super::wrong::{Wrong, wrong};
use crate::protocol::{Mistake, Warning, WarningSort};

/// What stands in the fence that a text of code is, which is called `of`; None where it is none. `loosely`
/// overlooks blank lines behind it.
pub(in crate::protocol) fn without<'a>(
    text: &'a str,
    loosely: bool,
    of: &str,
    warnings: &mut Vec<Warning>,
) -> Result<Option<&'a str>, Wrong> {
    match around(text, loosely) {
        Fence::None => Ok(None),
        Fence::Around(inner) => {
            let told = format!(
                "{of} stood in a fence of its own, which was taken off: send it without one"
            );
            warnings.push(Warning::new(WarningSort::FenceTakenOff, told));
            Ok(Some(inner))
        }
        Fence::Several(fence) => {
            let told = format!(
                "{of} begins and ends with a fence ({fence}) and holds another end of one, so what of it is meant is not clear: send it without the fence around it"
            );
            Err(wrong(Mistake::FenceUnclear, told))
        }
    }
}

/// A text without the fence that stands around all of it.
pub(super) fn inside(text: &str) -> &str {
    match around(text, true) {
        Fence::Around(inner) => inner,
        _ => text,
    }
}

/// Refuses a fence that is all of what is to take the place of a part of a file of code, and is called `of`:
/// in a comment it may be meant. Where that part has one itself, or it is indented, it is.
pub(in crate::protocol) fn around_a_part(old: &str, new: &str, of: &str) -> Result<(), Wrong> {
    let is_one = || new.starts_with(['`', '~']) && !matches!(around(new, false), Fence::None);
    if !is_one() || old.lines().any(|line| fence_of(line).is_some()) {
        return Ok(());
    }
    let first = brief(new.lines().next().unwrap_or_default().trim());
    let told = format!(
        "{of} begins with a fence (`{first}`) and ends with one, so whether that fence is to stand in the file is not clear: send the text without it, or, where the file is to hold it, with a line of the file above or below it in both texts"
    );
    Err(wrong(Mistake::FenceUnclear, told))
}

/// A fence that begins or ends a text of code without enclosing it, on a line that is counted from `first`
/// on; `whose` lines these are.
pub(in crate::protocol) fn kept(text: &str, first: usize, whose: &str) -> Option<Warning> {
    let (begin, inner) = (text.len() - text.trim_start().len(), text.trim());
    let last = inner.rfind('\n').map_or(0, |n| n + 1);
    let ends = [0, last].map(|at| (begin + at, inner[at..].lines().next().unwrap_or_default()));
    let (at, shown) = ends.into_iter().find(|(_, end)| fence_of(end).is_some())?;
    let line = first + memchr::memchr_iter(b'\n', &text.as_bytes()[..at]).count();
    let told = format!(
        "line {line}{whose} `{}` looks like a fence around the body, but is not on its first and its last line; it was kept",
        brief(shown)
    );
    Some(Warning::new(WarningSort::FenceKept, told))
}

/// The fence that a line opens: three or more of a sign, with no more of it behind.
pub(super) fn fence_of(line: &str) -> Option<&str> {
    let line = line.trim();
    let sign = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = line.len() - line.trim_start_matches(sign).len();
    (length >= 3 && !line[length..].contains('`')).then(|| &line[..length])
}

/// The fence that a text begins and ends with.
enum Fence<'a> {
    None,
    /// One, and what stands in it.
    Around(&'a str),
    /// Perhaps several.
    Several(&'a str),
}

fn around(text: &str, loosely: bool) -> Fence<'_> {
    let text = if loosely { text.trim_end() } else { text.strip_suffix('\n').unwrap_or(text) };
    let Some((first, rest)) = text.split_once('\n') else { return Fence::None };
    let Some(fence) = fence_of(first) else { return Fence::None };
    let (inner, last) = match rest.rsplit_once('\n') {
        Some((inner, last)) => (&rest[..=inner.len()], last),
        None => ("", rest),
    };
    let closes = |line: &str| {
        let line = line.trim();
        line.len() >= fence.len() && line.bytes().all(|b| b == fence.as_bytes()[0])
    };
    if !closes(last) {
        Fence::None
    } else if inner.lines().any(closes) {
        Fence::Several(fence)
    } else {
        Fence::Around(inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_taken_off_a_whole_and_refused_around_a_part() {
        for (text, inner) in [
            ("```\nx\n```\n", Some("x\n")),
            ("~~~~rust\n```\n~~~~", Some("```\n")),
            ("```\n```\n", Some("")),
            ("```\nx\n", None),
            ("x\n```\n", None),
        ] {
            let mut warnings = Vec::new();
            assert_eq!(without(text, false, "it", &mut warnings).unwrap(), inner, "{text}");
            assert_eq!(warnings.is_empty(), inner.is_none(), "{text}");
            assert_eq!(around_a_part("x\n", text, "it").is_err(), inner.is_some(), "{text}");
            assert!(around_a_part("a\n```\n", text, "it").is_ok(), "{text}");
        }
        let several = "```\nx\n```\ny\n```\n";
        assert!(without(several, false, "it", &mut Vec::new()).is_err());
        assert!(around_a_part("x", several, "it").is_err());
    }
}
