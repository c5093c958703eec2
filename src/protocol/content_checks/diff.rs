//! Checks for diffs, lines of diffs and conflict markers in text that should be the content of a file. Pure.

use std::collections::HashSet;
use std::fmt::Display;

use memchr::memmem;

use crate::protocol::mistake::{Problem, brief};
use crate::protocol::{Mistake, Warning, WarningKind};

/// A warning about a text that is kept, or the reason why the text is refused.
pub(in crate::protocol) type Checked = Result<Option<Warning>, Problem>;

/// Checks code that is the whole content of a file. `of` names the text in messages.
pub(in crate::protocol) fn check_content(text: &str, of: &dyn Display) -> Checked {
    refuse_diff(text, of)?;
    refuse_conflict(text, of)?;
    check_signs(text, of, |added, lines| added == lines)
}

/// Checks code that replaces `old`. `of` names the text in messages.
pub(in crate::protocol) fn check_replacement(old: &str, new: &str, of: &dyn Display) -> Checked {
    let replaced = Signs::of(old);
    if replaced.are_of_diff() {
        return Ok(None);
    }
    refuse_diff(new, of)?;
    if !has_conflict(old) {
        refuse_conflict(new, of)?;
    }
    if let Some((_, line)) = diff_line(new, old.as_bytes()) {
        let phrase = format!(
            "`{}` in {of} is a line of a diff: send the lines as they are to be, without signs before them",
            brief(line)
        );
        return Err(Problem::new(Mistake::Diff, phrase));
    }
    check_signs(new, of, |_, _| replaced.added == 0)
}

/// Refuses a text that is a diff.
pub(in crate::protocol) fn refuse_diff(text: &str, of: &dyn Display) -> Result<(), Problem> {
    if !is_diff(text) {
        return Ok(());
    }
    let phrase = format!(
        "{of} is a diff: send the lines as they are to be, without the others and without signs before them (a file that is to contain a diff has a name in .diff or .patch, or a folder patches)"
    );
    Err(Problem::new(Mistake::Diff, phrase))
}

/// Refuses a text with the markers of a merge conflict.
pub(in crate::protocol) fn refuse_conflict(text: &str, of: &dyn Display) -> Result<(), Problem> {
    if !has_conflict(text) {
        return Ok(());
    }
    let phrase = format!(
        "{of} contains conflict markers (<<<<<<<, =======, >>>>>>>): send the lines as they are to be"
    );
    Err(Problem::new(Mistake::ConflictMarkers, phrase))
}

/// Refuses the lines of a diff with context, and warns about signs that are kept. `should_warn` receives the number of
/// lines that begin with `+` and the number of all lines, and decides whether to warn.
pub(in crate::protocol) fn check_signs(
    text: &str,
    of: &dyn Display,
    should_warn: impl Fn(usize, usize) -> bool,
) -> Checked {
    let signs = Signs::of(text);
    let are_of_diff = signs.are_of_diff();
    if are_of_diff && signs.context > 0 {
        let phrase = format!(
            "each line of {of} begins with -, + or a blank, as in a diff: send the lines as they are to be, without signs before them (or write them with a command, if the file is to contain lines like these)"
        );
        return Err(Problem::new(Mistake::Diff, phrase));
    }
    if !are_of_diff && (signs.added == 0 || !should_warn(signs.added, signs.lines)) {
        return Ok(None);
    }
    let (which, count) = if are_of_diff { ("+ or -", signs.lines) } else { ("+", signs.added) };
    let text = format!(
        "{of} has lines that begin with {which} ({count} of {}), as in a diff; the signs were kept as content: send the lines without them if the file has none",
        signs.lines
    );
    Ok(Some(Warning::new(WarningKind::SignsKept, text)))
}

/// Whether a text begins as a diff.
pub(in crate::protocol) fn is_diff(text: &str) -> bool {
    let is_said = |line: &&str| {
        !line.trim().is_empty() && !line.starts_with("Index: ") && !line.starts_with("=======")
    };
    let mut lines = text.lines().filter(is_said);
    let Some(first) = lines.next() else { return false };
    let is_head = ["diff --git ", "*** Begin Patch"].iter().any(|head| first.starts_with(head));
    is_head
        || is_hunk(first)
        || first.starts_with("--- ")
            && lines.next().is_some_and(|line| line.starts_with("+++ "))
            && lines.next().is_some_and(is_hunk)
}

fn is_hunk(line: &str) -> bool {
    let Some(inner) = line.strip_prefix("@@ -") else { return false };
    inner.starts_with(|c: char| c.is_ascii_digit())
        && inner.split_once(" +").is_some_and(|(_, rest)| rest.contains(" @@"))
}

/// Whether a text contains the markers of a merge conflict, in the correct order.
fn has_conflict(text: &str) -> bool {
    const MARKERS: [&str; 3] = ["<<<<<<<", "=======", ">>>>>>>"];
    if memmem::find(text.as_bytes(), MARKERS[0].as_bytes()).is_none() {
        return false;
    }
    let is = |marker: &str, line: &str| {
        let rest = line.strip_prefix(marker);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\r']))
    };
    let mut lines = text.lines();
    MARKERS.iter().all(|marker| lines.any(|line| is(marker, line)))
}

/// The number of lines that begin with each sign of a diff. Blank lines do not count.
#[derive(Default)]
struct Signs {
    /// Lines that begin with `+`, except those that are usual in code (`++x` and `+= x`).
    added: usize,
    /// All lines that begin with `+`.
    plus: usize,
    minus: usize,
    /// Lines that begin with a space, as the unchanged lines of a diff do.
    context: usize,
    lines: usize,
}

impl Signs {
    /// Counts the signs of a text. If no line begins with `+`, counts nothing.
    fn of(text: &str) -> Self {
        let mut signs = Self::default();
        if !has_line(text, "\n+") {
            return signs;
        }
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            signs.lines += 1;
            match line.as_bytes() {
                [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => {}
                [b'+', rest @ ..] => {
                    signs.plus += 1;
                    signs.added += usize::from(!matches!(rest, [b'+' | b'=', ..]));
                }
                [b'-', ..] => signs.minus += 1,
                [b' ', ..] => signs.context += 1,
                _ => {}
            }
        }
        signs
    }

    /// Whether all lines begin with a sign, some of them with `-` and some with `+`.
    fn are_of_diff(&self) -> bool {
        self.plus > 0 && self.minus > 0 && self.plus + self.minus + self.context == self.lines
    }
}

/// Whether any line of a text begins with a sign. `sign` is a line feed followed by that sign.
fn has_line(text: &str, sign: &str) -> bool {
    text.starts_with(&sign[1..]) || memmem::find(text.as_bytes(), sign.as_bytes()).is_some()
}

/// The first line of `new` that can only come from a diff against `replaced`, and its number (from 1): a replaced line
/// with `-` before it, or with an extra space before it if other lines begin with `+` or `-`.
pub fn diff_line<'a>(new: &'a str, replaced: &[u8]) -> Option<(usize, &'a str)> {
    let has_added = has_line(new, "\n+");
    if !has_added && !has_line(new, "\n-") {
        return None;
    }
    let lines = replaced.split(|b| *b == b'\n').map(<[u8]>::trim_ascii_end);
    let lines: HashSet<&[u8]> = lines.filter(|line| !line.is_empty()).collect();
    if lines.iter().any(|line| line.starts_with(b"+")) {
        return None;
    }
    let is_of_diff = |line: &str| {
        let Some(rest) = line.strip_prefix(['-', ' ']) else { return false };
        // A minus sign directly before a number is code.
        (line.starts_with(' ') || has_added || rest.starts_with([' ', '\t']))
            && rest.contains(char::is_alphanumeric)
            && lines.contains(rest.as_bytes())
            && !lines.contains(line.as_bytes())
    };
    let found = new.lines().enumerate().find(|(_, line)| is_of_diff(line.trim_end()));
    found.map(|(n, line)| (n + 1, line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_diff_are_told_by_what_they_replace() {
        for (new, old, line) in [
            ("-    a\n+    b\n", "    a\n", Some(1)),
            ("def f():\n-    a\n+    b\n", "def f():\n    a\n", Some(2)),
            ("     a\n+    z\n     b\n", "    a\n    b\n", Some(1)),
            ("-    a\n", "    a\n", Some(1)),
            ("-1\n", "1\n", None),
            ("- a\n- b\n", "a\nb\n", None),
            ("     a\n     b\n", "    a\n    b\n", None),
            ("+ a\n-b\n", "+ c\nb\n", None),
            ("+    x\n", "    a\n", None),
            ("", "", None),
        ] {
            assert_eq!(diff_line(new, old.as_bytes()).map(|found| found.0), line, "{new:?}");
        }
        let signs = Signs::of("+a\n\n+\n++b\n c\n");
        assert_eq!((signs.added, signs.lines), (2, 4));
    }
}
