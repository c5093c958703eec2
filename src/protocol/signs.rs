//! The signs of a diff before lines of a text that is to take the place of another. Pure.

use std::collections::HashSet;

/// The first line of `new` that only a diff to `replaced` has, with its number from 1: a `-` before a
/// line that is replaced, or one more blank before it beside lines with a `+` or a `-`.
pub fn of_a_diff<'a>(new: &'a str, replaced: &[u8]) -> Option<(usize, &'a str)> {
    let (mut added, mut gone) = (false, false);
    for line in new.lines() {
        added |= line.starts_with('+');
        gone |= line.starts_with('-');
    }
    if !added && !gone {
        return None;
    }
    let lines = replaced.split(|b| *b == b'\n').map(<[u8]>::trim_ascii_end);
    let lines: HashSet<&[u8]> = lines.filter(|line| !line.is_empty()).collect();
    if lines.iter().any(|line| line.starts_with(b"+")) {
        return None;
    }
    let mut numbered = new.lines().enumerate();
    let found = numbered.find(|(_, line)| {
        let line = line.trim_end();
        let Some(sign) = line.chars().next().filter(|c| matches!(c, '-' | ' ')) else {
            return false;
        };
        let rest = &line[1..];
        // A bare minus before a number is code.
        (sign == ' ' || added || rest.starts_with([' ', '\t']))
            && rest.contains(char::is_alphanumeric)
            && lines.contains(rest.as_bytes())
            && !lines.contains(line.as_bytes())
    });
    found.map(|(n, line)| (n + 1, line))
}

/// How many lines of a text begin with a `+`, and how many are filled.
pub fn added(text: &str) -> (usize, usize) {
    let is_added =
        |line: &&str| line.starts_with('+') && !line.starts_with("++") && !line.starts_with("+=");
    let filled = text.lines().filter(|line| !line.trim().is_empty());
    filled.fold((0, 0), |(some, all), line| (some + usize::from(is_added(&line)), all + 1))
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
            assert_eq!(of_a_diff(new, old.as_bytes()).map(|found| found.0), line, "{new:?}");
        }
        assert_eq!(added("+a\n\n+\n++b\n c\n"), (2, 4));
    }
}
