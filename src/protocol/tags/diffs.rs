//! Diffs, lines of them and conflict markers where the content of a file belongs, or lines that take the
//! place of others: of whichever dialect. Pure.

use super::attributes::brief;
use super::wrong::{Wrong, wrong};
use crate::protocol::{Mistake, Warning, WarningSort, signs};

/// What is told of a text that is kept, or why it is refused.
pub(in crate::protocol) type Told = Result<Option<Warning>, Wrong>;

/// Where a diff is content.
pub(super) const KEPT: &str =
    "(a file that is to hold a diff has a name in .diff or .patch, or a folder patches)";

/// Looks at the content of a file of code.
pub(in crate::protocol) fn of_content(text: &str, of: &str) -> Told {
    if is_diff(text) {
        let told =
            format!("{of} is a diff and not the content of the file: send all of that {KEPT}");
        return Err(wrong(Mistake::Diff, told));
    }
    if has_conflict(text) {
        return Err(wrong(Mistake::ConflictMarkers, format!("{of} {MARKERS}")));
    }
    let told = signed(text, of, &format!("of {of} "))?;
    let (some, all) = signs::added(text);
    let is_added = told.is_none() && some > 0 && some == all;
    Ok(told.or_else(|| added(text, of).filter(|_| is_added)))
}

/// What is said of conflict markers.
const MARKERS: &str =
    "holds conflict markers (<<<<<<<, =======, >>>>>>>): send the lines as they are to be";

/// Looks at a text of code that takes the place of another: `which` is what both are to whoever sent them,
/// `of` the same with its place.
pub(in crate::protocol) fn in_place_of(old: &str, new: &str, of: &str, which: &str) -> Told {
    if sorts_of_lines(old).is_some() {
        return Ok(None);
    }
    if is_diff(new) {
        let told = format!(
            "{which} is a diff and not the lines that are to stand there: send those without the others, and without signs before them"
        );
        return Err(wrong(Mistake::Diff, told));
    }
    if has_conflict(new) && !has_conflict(old) {
        return Err(wrong(Mistake::ConflictMarkers, format!("{which} {MARKERS}")));
    }
    if let Some((_, found)) = signs::of_a_diff(new, old.as_bytes()) {
        let told = format!(
            "`{}` in {which} is a line of a diff: send the lines as they are to stand there, without signs before them",
            brief(found)
        );
        return Err(wrong(Mistake::Diff, told));
    }
    let told = signed(new, of, &format!("of {which} "))?;
    let was_added = signs::added(old).0 > 0;
    Ok(told.or_else(|| added(new, of).filter(|_| !was_added)))
}

/// Whether a text is a diff from its beginning.
pub(super) fn is_diff(text: &str) -> bool {
    let is_said = |line: &&str| {
        !line.trim().is_empty() && !line.starts_with("Index: ") && !line.starts_with("=======")
    };
    let mut lines = text.lines().filter(is_said);
    let Some(first) = lines.next() else { return false };
    if ["diff --git ", "*** Begin Patch"].iter().any(|begin| first.starts_with(begin))
        || is_hunk(first)
    {
        return true;
    }
    first.starts_with("--- ")
        && lines.next().is_some_and(|line| line.starts_with("+++ "))
        && lines.next().is_some_and(is_hunk)
}

/// What is said of lines of a diff without its head.
const HUNK: &str = "each line begins with -, + or a blank, as in a diff: send the lines as they are to stand there, without signs before them (or with a command, where the file is to hold lines like these)";

/// Whether each line begins with a sign of a diff, and both are there, `-old` and `+new`; then, whether
/// there are lines with the blank that a diff has before those that stay.
fn sorts_of_lines(text: &str) -> Option<bool> {
    let (mut gone, mut new, mut stays) = (false, false, false);
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        match line.as_bytes()[0] {
            _ if line.starts_with("---") || line.starts_with("+++") => return None,
            b'-' => gone = true,
            b'+' => new = true,
            b' ' => stays = true,
            _ => return None,
        }
    }
    (gone && new).then_some(stays)
}

/// What is told of a text with the signs of a diff, which are kept where it may be one without
/// context; `refused` begins what is said of others.
pub(super) fn signed(text: &str, of: &str, refused: &str) -> Told {
    match sorts_of_lines(text) {
        None => Ok(None),
        Some(true) => Err(wrong(Mistake::Diff, format!("{refused}{HUNK}"))),
        Some(false) => {
            let told = format!(
                "each line of {of} begins with + or -, as in a diff; the signs were kept as content"
            );
            Ok(Some(Warning::new(WarningSort::SignsKept, told)))
        }
    }
}

/// What is told of lines that begin with a `+`, which is kept.
pub(super) fn added(text: &str, of: &str) -> Option<Warning> {
    let (some, all) = signs::added(text);
    let which = match some {
        0 => return None,
        _ if some == all => String::from("each line"),
        1 => String::from("a line"),
        _ => format!("{some} lines"),
    };
    let verb = if some == all || some == 1 { "begins" } else { "begin" };
    let told = format!(
        "{which} of {of} {verb} with +, as in a diff; the signs were kept as content: send the lines without them if they are none of the file"
    );
    Some(Warning::new(WarningSort::SignsKept, told))
}

fn is_hunk(line: &str) -> bool {
    let Some(inner) = line.strip_prefix("@@ -") else { return false };
    inner.starts_with(|c: char| c.is_ascii_digit())
        && inner.split_once(" +").is_some_and(|(_, rest)| rest.contains(" @@"))
}

/// Whether the markers of a merge stand in it, in their order.
pub(super) fn has_conflict(text: &str) -> bool {
    const MARKERS: [&str; 3] = ["<<<<<<<", "=======", ">>>>>>>"];
    if memchr::memmem::find(text.as_bytes(), MARKERS[0].as_bytes()).is_none() {
        return false;
    }
    let mut sought = MARKERS.iter();
    let mut next = sought.next();
    for line in text.lines() {
        let Some(marker) = next else { break };
        let rest = line.strip_prefix(marker);
        if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\r'])) {
            next = sought.next();
        }
    }
    next.is_none()
}
